"""Functions that try to get out of their sandbox: each attempt by name, as Python."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

import pyarrow as pa

from registration.queries.providers import Function
from registration.queries.stopped import QueryStopped
from registration.spark.function_runner import FunctionRunner, Work

COPY = Function(
    *("urn:copy", "copy", "urn:provider", "scalar", (("text", "STRING"),), (("", "STRING"),)),
    seconds_per_row=1e-4,
    bytes_per_row=100.0,
    megabytes=64.0,
)

ATTEMPTS: Mapping[str, str] = {
    "read a file": "open('/etc/passwd').read()",
    "read by descriptor": "os.open('/etc/hostname', os.O_RDONLY)",
    "write a file": "open('/tmp/onyx-escaped', 'w').write('x')",
    "write below the code": "open(os.__file__ + 'x', 'w')",
    "append to the code": "open(os.__file__, 'a')",
    "cut the code": "os.truncate(os.__file__, 0)",
    "list the root": "os.listdir('/')",
    "list a home": "os.listdir('/root') + os.listdir('/home')",
    "its environment": "open('/proc/self/environ').read()",
    "memory of the worker": "open(f'/proc/{os.getppid()}/mem', 'rb')",
    "environment of the worker": "open(f'/proc/{os.getppid()}/environ').read()",
    "descriptors of the worker": "os.listdir(f'/proc/{os.getppid()}/fd')",
    "TCP": "socket.create_connection(('127.0.0.1', 9), 1)",
    "TCP, IPv6": "socket.create_connection(('::1', 9), 1)",
    "UDP": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "a Unix socket": "socket.socket(socket.AF_UNIX)",
    "a pair of sockets": "socket.socketpair()",
    "raw packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "a name's address": "socket.getaddrinfo('localhost', 9) and socket.socket()",
    "fork": "os.fork()",
    "exec": "os.execv('/bin/true', ['true'])",
    "a shell": "os.system('true') and error()",
    "a process": "subprocess.run(['/bin/true'])",
    "spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "kill the worker": "os.kill(os.getppid(), 9)",
    "stop all": "os.kill(-1, 19)",
    "a signal by descriptor": "signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 9)",
    "trace the worker": "refused(libc.ptrace(16, os.getppid(), 0, 0))",
    "memory as a file": "os.memfd_create('x')",
    "shared memory": "refused(libc.shmget(0, 4096, 0o1600))",
    "another namespace": "refused(libc.unshare(0x10000000))",
    "a mount": "refused(libc.mount(b'x', b'/tmp', b'tmpfs', 0, None))",
    "chroot": "os.chroot('/')",
    "another user": "os.setuid(1)",
    "more memory": "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    "a device": "os.mknod('/tmp/onyx-device', 0o600 | 0o60000, 1)",
    "a link": "os.symlink('/etc/passwd', '/tmp/onyx-link')",
    "remove a file": "os.unlink('/etc/hostname')",
    "rename the code": "os.rename(os.__file__, os.__file__ + 'x')",
    "rights of a file": "os.chmod(os.__file__, 0o777)",
    "io_uring": "refused(libc.syscall(425, 8, bytes(120)))",
    "an eBPF program": "refused(libc.syscall(321, 0, bytes(120), 120))",
    "a call of the future": "refused(libc.syscall(480, 0))",
    "3 GiB": "bytearray(3 << 30)",
    "a terminal": "open('/dev/tty', 'w')",
    "a random device": "open('/dev/random', 'rb')",
}
"""Every one ends with an exception; ``error()`` and ``refused(-1)`` raise one."""

ALLOWED: Mapping[str, str] = {
    "threads": "[t.start() or t.join() for t in [threading.Thread(target=int)]]",
    "imports": "__import__('decimal').Decimal(1)",
    "numpy": "__import__('numpy').arange(10).sum()",
    "compute": "__import__('pyarrow.compute').compute.sum(pa.array([1]))",
    "random numbers": "os.urandom(8)",
    "time zones": "zoneinfo.ZoneInfo('Europe/Berlin')",
    "print": "print('hello')",
}

_MODULE = """\
import ctypes, os, resource, signal, socket, subprocess, threading, zoneinfo
import pyarrow as pa
libc = ctypes.CDLL(None, use_errno=True)
def error(): raise OSError('refused')
def refused(answer):
    if answer < 0: error()
def tried(text):
    try: exec(text, dict(globals()))
    except BaseException as error: return type(error).__name__
    return 'done'
def work(texts):
    return pa.array([tried(text.as_py()) for text in texts])
"""

KILLED: Mapping[str, tuple[str, str, str]] = {
    "a loop": ("function-over-cost", "while True: pass", "of processor"),
    "half of the rows": ("function-failed", "return given[:1]", "1 values came back for 2 rows"),
    "another type": ("function-failed", "return pa.array([[1], [2]])", "ArrowNotImplementedError"),
    "no array": ("function-failed", "return 7", "int came back"),
    "much output": ("function-over-cost", "return pa.array(['x' * (1 << 22)] * 2)", "bytes"),
    "its end": ("function-failed", "os._exit(3)", "ended with 3"),
    "a fault": ("function-failed", "ctypes.string_at(0)", "ended with -11"),
    "a great frame": (
        *("function-over-cost", "os.write(1, b'R' + b'\\xff' * 8); return given"),
        "bytes at once",
    ),
    "no rows": (
        *("function-failed", "os.write(1, b'R' + bytes([9]) + bytes(16)); return given"),
        "no rows of its signature",
    ),
    "another turn": (
        *("function-failed", "os.write(1, b'Y' + bytes(8)); return given"),
        "out of turn",
    ),
    "an exception": (
        "function-failed",
        "return 1 / 0",
        "ZeroDivisionError: division by zero (hostile.py, line 3)",
    ),
}
"""Code, body of the function, and a part of the sentence."""


def zipped(module: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("hostile.py", module)
    return file.getvalue()


def outcomes(attempts: Mapping[str, str]) -> dict[str, str]:
    """By attempt the exception that it ended with, or ``done``."""
    batch = pa.record_batch([pa.array(list(attempts.values()))], ["text"])
    with FunctionRunner(Work(COPY, zipped(_MODULE), "hostile:work")) as runner:
        (answer,) = runner.run([batch])
    return dict(zip(attempts, answer.column(0).to_pylist(), strict=True))


def stopped(body: str) -> QueryStopped | None:
    """The end of a function with this body over two rows, None where it did its work."""
    module = f"import ctypes, os, pyarrow as pa\ndef work(given):\n    {body}\n"
    batch = pa.record_batch([pa.array(["a", "b"])], ["text"])
    try:
        with FunctionRunner(Work(COPY, zipped(module), "hostile:work")) as runner:
            list(runner.run([batch]))
    except QueryStopped as error:
        return error
    return None


if __name__ == "__main__":
    for name, outcome in (outcomes(ATTEMPTS) | outcomes(ALLOWED)).items():
        print(f"{name}\t{outcome}")
