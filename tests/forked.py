"""Processes of Onyx that tests start, forked from one that has imported it: a tenth of the work.

A broker's start takes a second of a processor, nearly all of it for imports, and a run of the
tests has hundreds of starts.  ``forked_starts`` puts a ``Popen`` in the place of Python's, in this
process alone.  A command ``python -m MODULE ...`` is forked from a *template*: this file as a
program, which was started with the same variables, as far as Python reads them, and has imported
the packages.  The new process has its words, descriptors, folder, environment and process group,
and is a child of the process that asked: signals and exit codes are those of any child.

::

    test ──words, environment, descriptors──> template ──fork──> between ──fork──> process
     │  <───────────────pid──────────────────────┘               (ends)               │
     └─────────────── parent, as the nearest that takes orphans ──────────────────────┘

The first command with such variables is started as users start it, and so is every other kind of
command.  ``onyx up``, the demo and the benchmarks, which start brokers, have a template of their
own.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

STARTED = subprocess.Popen  # as it is before the tests begin
_ROOT = str(Path(__file__).resolve().parents[1])
_PACKAGES = {"formats", "yfilter", "registration", "onyx", "demo", "benchmarks", "tests"}
_LOADED = (
    *("onyx.node_process", "onyx.broker.broker", "registration.service", "onyx.gateway_child"),
    *("onyx.cli.main", "onyx.cli.up", "onyx.cli.subscribe"),
)
_READ_AT_A_START = ("PYTHON", "LD_", "LC_", "LANG", "ONYX_PLAIN", "ONYX_COMPILE")
_TAKES_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER
_PACKET_BYTES = 1 << 17
_DESCRIPTORS_MAX = 64
_ABOVE_ALL = 1 << 16  # descriptors that any process has

Request = dict[str, Any]

sockets_to_templates: set[int] = set()
"""Descriptors of this process that no test has opened."""


class _Template:
    """That there is, by the socket that it hears; several threads may ask."""

    def __init__(self, asked: socket.socket) -> None:
        self._asked = asked
        self._lock = threading.Lock()

    def fork(self, request: Request, descriptors: Sequence[int]) -> int:
        """The pid of the process."""
        with self._lock:
            socket.send_fds(self._asked, [json.dumps(request).encode()], descriptors)
            pid = int(self._asked.recv(32))
        if pid < 0:
            raise OSError(f"{request['command']} cannot be started in {request['cwd']}")
        return pid


class _Templates:
    """By the variables that they were started with."""

    def __init__(self, own: _Template | None = None) -> None:
        """``own``: for those of this process, already there."""
        self._found: dict[str, _Template | None] = {}
        self._started: list[tuple[socket.socket, subprocess.Popen[Any]]] = []
        self._lock = threading.Lock()
        if own is not None:
            self._found[str(_variables(os.environ))] = own

    def of(self, environment: Mapping[str, str]) -> _Template | None:
        """None at first: whoever asks starts as users do."""
        variables = _variables(environment)
        key = str(variables)
        with self._lock:
            if key not in self._found:
                self._found[key] = None
                return None
            found = self._found[key] or self._start(variables)
            self._found[key] = found
            return found

    def close(self) -> None:
        for asked, process in self._started:
            sockets_to_templates.discard(asked.fileno())
            asked.close()
            process.wait()

    def _start(self, variables: Mapping[str, str]) -> _Template:
        asked, its = _sockets()
        with its:
            process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(its.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=variables,
                pass_fds=[its.fileno()],
                process_group=0,
            )
        self._started.append((asked, process))
        sockets_to_templates.add(asked.fileno())
        return _Template(asked)


def _variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Those that Python reads at its start, or its loader; without other code that of here."""
    found = {name: environment[name] for name in environment if name.startswith(_READ_AT_A_START)}
    path = [each for each in found.get("PYTHONPATH", "").split(os.pathsep) if each]
    if not any((Path(each) / "onyx").is_dir() for each in path):
        found["PYTHONPATH"] = os.pathsep.join([*path, _ROOT])
    return found


def _sockets() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


# -------------------------------------------------------------------------------------------------
# In the process that starts others.


@contextmanager
def forked_starts() -> Iterator[None]:
    """While the block runs; on Linux only."""
    if sys.platform != "linux":
        yield
        return
    templates = _Templates()
    before = subprocess.Popen
    _install(templates)
    try:
        yield
    finally:
        subprocess.Popen = before  # type: ignore[misc]
        templates.close()


def _install(templates: _Templates) -> None:
    ctypes.CDLL(None).prctl(_TAKES_ORPHANS, 1, 0, 0, 0)
    own: Any = type("Popen", (_Popen,), {"templates": templates})
    subprocess.Popen = own  # type: ignore[misc]


class _Popen(subprocess.Popen[Any]):
    templates: _Templates

    def _execute_child(self, args: Any, executable: Any, *more: Any) -> None:
        """CPython 3.11 to 3.14 call it so, by position."""
        before, closes, passed, cwd, env, _, _, shell, *pipes = more[:14]
        _, gid, gids, uid, umask, session, group = more[14:]
        given = os.environ if env is None else env
        environment = {os.fsdecode(name): os.fsdecode(value) for name, value in given.items()}
        is_plain = closes and not (before or shell or executable) and umask < 0
        template = None
        if is_plain and gid is gids is uid is None and _is_ours(args):
            template = self.templates.of(environment)
        if template is None:
            super()._execute_child(args, executable, *more)  # type: ignore[misc]
            return
        command = list(map(os.fsdecode, args))
        standard = (pipes[0], pipes[3], pipes[5])
        own = [each if each >= 0 else place for place, each in enumerate(standard)]
        sys.audit("subprocess.Popen", command[0], command, cwd, env)
        request = {
            "command": command,
            "cwd": os.fsdecode(cwd or Path.cwd()),
            "environment": environment,
            "session": session,
            "group": os.getpgrp() if group < 0 else group,
            "descriptors": [0, 1, 2, *map(int, passed)],
        }
        self.pid = template.fork(request, [*own, *map(int, passed)])
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def _is_ours(args: Any) -> bool:
    """``python [-P] -m`` a module of this project."""
    if isinstance(args, str | bytes | os.PathLike):
        return False
    words = [each for each in args[:4] if each != "-P"]
    return (
        words[:2] == [sys.executable, "-m"]
        and len(words) > 2
        and words[2].partition(".")[0] in _PACKAGES
    )


# -------------------------------------------------------------------------------------------------
# In a template, and in the processes that are forked from it.


def _next_process(asked: socket.socket) -> Request:
    """Returns in each process that is forked, as what it is to be."""
    while True:
        packet, descriptors, _, _ = socket.recv_fds(asked, _PACKET_BYTES, _DESCRIPTORS_MAX)
        if not packet:
            os._exit(0)
        told, tells = os.pipe()
        between = os.fork()
        if not between:
            if os.fork():
                os._exit(0)
            asked.detach()
            request: Request = json.loads(packet)
            _take_place(request, descriptors, tells)
            return request
        os.close(tells)
        os.waitpid(between, 0)  # from here on the process is a child of the one that asked
        asked.send(os.read(told, 32) or b"-1")
        for each in (told, *descriptors):
            os.close(each)


def _take_place(request: Request, descriptors: list[int], tells: int) -> None:
    """Become what a new process would find itself to be, and tell the pid."""
    wanted: list[int] = request["descriptors"]
    above = max(*wanted, *descriptors, tells) + 1
    moved = [fcntl.fcntl(each, fcntl.F_DUPFD, above) for each in (*descriptors, tells)]
    *owns, tells = moved
    os.closerange(0, above)
    for own, place in zip(owns, wanted, strict=True):
        os.dup2(own, place)
    os.closerange(above, tells)
    if request["session"]:
        os.setsid()
    else:
        os.setpgid(0, request["group"])
    os.chdir(request["cwd"])
    for name in os.environ.keys() - request["environment"].keys():
        del os.environ[name]
    os.environ.update(request["environment"])
    for place, name in enumerate(("stdin", "stdout", "stderr")):
        _open_standard(place, name)
    os.write(tells, str(os.getpid()).encode())
    os.close(tells)


def _open_standard(place: int, name: str) -> None:
    """As Python does at its start; the stream that there is knows another file."""
    old = getattr(sys, name)
    new: Any = open(  # noqa: SIM115 - until the process ends
        place,
        "w" if place else "r",
        encoding=old.encoding,
        errors=old.errors,
        newline="\n" if place else None,
        closefd=False,
    )
    if place:
        is_by_line = place == 2 or os.isatty(place)
        at_once = bool(os.environ.get("PYTHONUNBUFFERED"))
        new.reconfigure(line_buffering=is_by_line, write_through=at_once)
    setattr(sys, name, new)
    setattr(sys, f"__{name}__", new)


def _run(request: Request) -> None:
    command = request["command"]
    place = command.index("-m") + 1
    if "-P" not in command[:place]:
        sys.path.insert(0, str(Path.cwd()))
    if _starts_others(command[place:]):
        _own_template()
    if not hasattr(sys.modules.get(command[place]), "__path__"):
        sys.modules.pop(command[place], None)  # it is the main module now
    sys.orig_argv, sys.argv = command, command[place:]
    runpy.run_module(command[place], run_name="__main__", alter_sys=True)


def _starts_others(words: list[str]) -> bool:
    """Whether it is a network of processes."""
    if words[:2] == ["onyx", "up"]:
        return not {"--broker", "--registration"} & set(words)
    return words[0] in ("demo", "benchmarks")


def _own_template() -> None:
    """For what this process will start: a fork of it before it does anything."""
    asked, its = _sockets()
    template = os.fork()
    if template:
        its.close()
        _install(_Templates(_Template(asked)))
        atexit.register(_end, asked, template)
        return
    os.setpgid(0, 0)
    heard = os.dup2(its.detach(), 3)
    nothing = os.open(os.devnull, os.O_RDWR)
    for place in range(3):
        os.dup2(nothing, place)
    asked.detach()
    os.closerange(4, _ABOVE_ALL)
    _run(_next_process(socket.socket(fileno=heard)))
    raise SystemExit


def _end(asked: socket.socket, template: int) -> None:
    """Its own goes before a process: it leaves none behind."""
    asked.close()
    os.waitpid(template, 0)


if __name__ == "__main__":
    for _module in _LOADED:
        with suppress(ImportError):  # of another release
            importlib.import_module(_module)
    gc.collect()
    gc.freeze()
    _run(_next_process(socket.socket(fileno=int(sys.argv[1]))))
