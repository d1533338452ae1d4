"""A sandbox for the process of one function: no files, connections, processes (seed 001, 2.4).

``confine`` takes rights from the calling process, for good and without a privilege of its own:

- *Landlock* (Linux 5.13) refuses all files but those below the given folders, which are read only;
- *seccomp* refuses sockets, processes, signals, other processes' memory and kernel interfaces.
  Landlock alone lets UDP, fork and exec through, seccomp alone all files, so both are needed;
- a process of root loses its capabilities.

The calls go through ctypes, since no package for them is kept well.  ``missing`` names what a
machine cannot enforce.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

NO_NEW_PRIVS = 38
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446  # on all machines
_ABI_ONLY = 1  # flag of LANDLOCK_CREATE: tell the version
_PATH_BENEATH = 1
_EXECUTE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 2, 1 << 3
_CAPABILITIES_3 = 0x20080522
_CLONE_THREAD = 0x10000
_X32 = 0x40000000

_LAST_KNOWN = 462
"""The last call that this table was written against: a later one is answered as unknown."""

# By name: numbers on x86-64 and aarch64, -1 where a machine has no such call.
_REFUSED = {
    "socket": (41, 198), "connect": (42, 203), "socketpair": (53, 199), "bind": (49, 200),
    "fork": (57, -1), "vfork": (58, -1), "execve": (59, 221), "execveat": (322, 281),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kcmp": (312, 272), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "pidfd_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "unshare": (272, 97), "setns": (308, 268), "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264), "fanotify_init": (300, 262), "inotify_init1": (294, 26),
    "inotify_init": (253, -1), "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53),
    "chown": (92, -1), "fchown": (93, 55), "lchown": (94, -1), "fchownat": (260, 54),
    "utime": (132, -1), "utimes": (235, -1), "futimesat": (261, -1), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "fchmodat2": (452, 452),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "syslog": (103, 116),
    "shmget": (29, 194), "shmat": (30, 196), "msgget": (68, 186), "semget": (64, 190),
    "mq_open": (240, 180), "prlimit64": (302, 261), "setrlimit": (160, 164),
    "setpriority": (141, 140), "sched_setscheduler": (144, 119), "sched_setaffinity": (203, 122),
    "ioprio_set": (251, 30), "init_module": (175, 105), "finit_module": (313, 273),
    "kexec_load": (246, 104), "reboot": (169, 142), "swapon": (167, 224), "acct": (163, 89),
    "sethostname": (170, 161), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "adjtimex": (159, 171), "clock_adjtime": (305, 266), "personality": (135, 92),
    "setuid": (105, 146), "setgid": (106, 144), "setresuid": (117, 147), "setresgid": (119, 149),
    "setgroups": (116, 159), "capset": (126, 91), "quotactl": (179, 60),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "fsopen": (430, 430),
    "fsmount": (432, 432), "open_tree": (428, 428), "move_mount": (429, 429),
    "mount_setattr": (442, 442), "mknod": (133, -1), "mknodat": (259, 33),
}  # fmt: skip

_MACHINES = {"x86_64": 0, "aarch64": 1}
_AUDIT = (0xC000003E, 0xC00000B7)
_CLONE, _CLONE3, _SECCOMP, _CAPSET = (56, 220), (435, 435), (317, 277), (126, 91)


def missing() -> tuple[str, ...]:
    """The parts of the sandbox that this machine cannot enforce; () where all are there."""
    if sys.platform != "linux" or platform.machine() not in _MACHINES:
        return ("Landlock and seccomp (Linux on x86-64 or aarch64)",)
    found = []
    if _landlock_version() < 1:
        found.append("Landlock (Linux 5.13, and switched on)")
    if not _has_seccomp():
        found.append("seccomp filters")
    return tuple(found)


def confine(folders: Iterable[str]) -> None:
    """Take all rights from this process but to compute and to read below ``folders``.

    Threads that are there already keep their rights: to be called first of all.  A part that is
    ``missing`` on this machine is left out, so the caller asks for these first.  OSError where the
    kernel refuses."""
    if sys.platform != "linux" or platform.machine() not in _MACHINES:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    _checked("no_new_privs", libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0))
    if _landlock_version() >= 1:
        _restrict_files(folders)
    if os.geteuid() == 0:
        _drop_capabilities()
    if not _has_seccomp():
        return
    program = b"".join(struct.pack("HBBI", *step) for step in _filter(_machine()))
    text = ctypes.create_string_buffer(program)
    head = struct.pack("H6xQ", len(program) // 8, ctypes.addressof(text))
    _checked("seccomp", _call(_of(_SECCOMP), 1, 0, ctypes.create_string_buffer(head)))


def _restrict_files(folders: Iterable[str]) -> None:
    version = _landlock_version()
    files = (1 << 13) - 1 | sum(
        1 << bit for bit, since in ((13, 2), (14, 3), (15, 5)) if version >= since
    )
    ports = 3 if version >= 4 else 0  # TCP: bind, connect
    scopes = 3 if version >= 6 else 0  # abstract sockets, signals
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = ctypes.create_string_buffer(struct.pack("QQQ", files, ports, scopes))
    handle = _checked("Landlock", _call(_LANDLOCK_CREATE, rules, size, 0))
    try:
        for folder in folders:
            below = os.open(folder, os.O_PATH | os.O_CLOEXEC)
            try:
                rights = _READ_FILE | (_READ_DIR if Path(folder).is_dir() else 0)
                # Libraries are mapped to be executed, for which reading is enough.
                rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, below))
                _checked(folder, _call(_LANDLOCK_ADD, handle, _PATH_BENEATH, rule, 0))
            finally:
                os.close(below)
        _checked("Landlock", _call(_LANDLOCK_RESTRICT, handle, 0))
    finally:
        os.close(handle)


def _drop_capabilities() -> None:
    head = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITIES_3, 0))
    _checked("capset", _call(_of(_CAPSET), head, ctypes.create_string_buffer(24)))


def _filter(machine: int) -> Iterator[tuple[int, int, int, int]]:
    """A program of classic BPF: (code, steps if true, steps if false, value)."""
    load, equal, least, any_bit, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, refuse, unknown, kill = (
        0x7FFF0000,
        0x50000 | errno.EPERM,
        0x50000 | errno.ENOSYS,
        1 << 31,
    )
    number, architecture, first_argument = 0, 4, 16
    yield load, 0, 0, architecture
    yield equal, 1, 0, _AUDIT[machine]
    yield answer, 0, 0, kill
    yield load, 0, 0, number
    yield least, 0, 1, _X32 if machine == 0 else _LAST_KNOWN + 1
    yield answer, 0, 0, refuse
    yield least, 0, 1, _LAST_KNOWN + 1
    yield answer, 0, 0, unknown
    yield equal, 0, 1, _CLONE3[machine]  # then the C library takes clone, whose flags can be read
    yield answer, 0, 0, unknown
    for numbers in _REFUSED.values():
        if numbers[machine] >= 0:
            yield equal, 0, 1, numbers[machine]
            yield answer, 0, 0, refuse
    yield equal, 0, 3, _CLONE[machine]
    yield load, 0, 0, first_argument
    yield any_bit, 1, 0, _CLONE_THREAD
    yield answer, 0, 0, refuse
    yield answer, 0, 0, allow


def _has_seccomp() -> bool:
    # No filter is given, so the kernel answers EFAULT where it has seccomp and EINVAL where not.
    return _call(_of(_SECCOMP), 1, 0, None) == -errno.EFAULT


def _landlock_version() -> int:
    return _call(_LANDLOCK_CREATE, None, 0, _ABI_ONLY)


def _machine() -> int:
    return _MACHINES[platform.machine()]


def _of(numbers: tuple[int, int]) -> int:
    return numbers[_machine()]


def _call(number: int, *arguments: object) -> int:
    """The answer of the kernel, a negated errno where it refused."""
    libc = ctypes.CDLL(None, use_errno=True)
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    answer = int(libc.syscall(ctypes.c_long(number), *given))
    return answer if answer >= 0 else -ctypes.get_errno()


def _checked(what: str, answer: int) -> int:
    if answer < 0:
        raise OSError(-answer, f"{what}: {os.strerror(-answer)}")
    return answer
