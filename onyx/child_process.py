"""ChildProcess: one node of a network as a process that is kept alive.

::

    starting ──ready──> ready ──dies──> waiting ──delay──> starting ...
        └──────dies───────────────────────^  └──too often, or for good──> LaunchError

A process that is ``kept``, as all are once their network has come up, is never given up: it is
tried again and again, each time later, up to a bound.

Invariants: at most one process at a time; ``run`` returns or raises only once it is gone, by
SIGTERM and, after a bounded time, SIGKILL.  What it says is passed on line by line, and the last
lines are kept for the case that it fails.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import trio

from onyx.errors import EXIT_CANNOT_CREATE, EXIT_CONFIG, EXIT_STORE, EXIT_SYSTEM, LaunchError
from onyx.start_progress import StartProgress
from overlay.backoff import Backoff

log = logging.getLogger("onyx.process")

State: TypeAlias = Literal["starting", "ready", "waiting", "stopped"]

LAST_LINES = 20
LINE_BYTES_MAX = 16 * 1024
_START_AGAIN = Backoff(0.1, 30.0)
# What a new start alone cannot cure.
_FOR_GOOD = frozenset({EXIT_CANNOT_CREATE, EXIT_STORE, EXIT_CONFIG})


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """How a process that died is brought back; seconds.

    delay           before a new start
    failures_max    failures in a row after which one that is not kept is given up
    stable_seconds  a process that was ready for so long has not failed in a row
    start_seconds   a network that is not ready, and has come no further in so much time of
                    waiting and work, is given up
    stop_seconds    between SIGTERM and SIGKILL
    """

    delay: Backoff = _START_AGAIN
    failures_max: int = 5
    stable_seconds: float = 10.0
    start_seconds: float = 60.0
    stop_seconds: float = 5.0


class ChildProcess:
    """Starts, watches, restarts and stops one process of a node: ``node_id``, or that of its
    standby."""

    def __init__(
        self,
        node_id: str,
        topology_file: Path,
        listen_fds: tuple[int, ...],
        lifeline_fd: int,
        credentials: Path | None,
        policy: RestartPolicy,
        report: Callable[[str, ChildProcess], None],
        write_line: Callable[[str], None],
    ) -> None:
        """``listen_fds``: of NodeSockets; none: it binds its addresses itself.  ``report``
        hears "started", "restoring", "ready", "died" as they happen; ``write_line`` is given what
        the process says."""
        self.node_id = node_id
        self.state: State = "stopped"
        self.is_kept = False
        self.restarts = 0
        self.failures = 0  # in a row
        self.pause_seconds = 0.0  # between the last death and the next start
        self.came = StartProgress()  # as far as it has said
        self.came_further_at = 0.0
        self.exit_code: int | None = None  # of the last one that ended; negative: by a signal
        self.last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self._topology_file = topology_file
        self._listen_fds = listen_fds
        self._lifeline_fd = lifeline_fd
        self._credentials = credentials
        self._policy = policy
        self._report = report
        self._write_line = write_line
        self._process: trio.Process | None = None
        self._killed_on_purpose = False
        self._became_ready = trio.Event()
        self._is_to_hang_up = False

    @property
    def pid(self) -> int | None:
        """None while there is no process."""
        return self._process.pid if self._process is not None else None

    def worked_seconds(self) -> float:
        """Of the processor, by the process that there is; 0 where that cannot be told."""
        with suppress(OSError, IndexError):
            times = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            return (int(times[0]) + int(times[1])) / os.sysconf("SC_CLK_TCK")
        return 0.0

    async def wait_ready(self) -> None:
        """Until the process is ready, at once if it is."""
        await self._became_ready.wait()

    def kill_nowait(self) -> None:
        """SIGKILL; it comes back as after any death, at once and without counting as a failure."""
        if self._process is None:
            raise LaunchError(f"{self.node_id} is not running", self.node_id)
        self._killed_on_purpose = True
        self._set_not_ready("starting")
        self._process.kill()

    def hang_up_nowait(self) -> None:
        """SIGHUP, now, or when it is ready: what has changed in its topology is to be taken."""
        self._is_to_hang_up = self.state != "ready"
        if not self._is_to_hang_up and self._process is not None:
            self._process.send_signal(signal.SIGHUP)

    async def run(self) -> None:
        """Keep the process alive until cancelled; LaunchError when it does not stay up and is not
        kept."""
        try:
            while True:
                self._note_death(await self._run_once())
                self._report("died", self)
                if not self.is_kept:
                    self._check_hope()
                await trio.sleep(self.pause_seconds)
                self.restarts += 1
        finally:
            self.state = "stopped"

    @property
    def trouble(self) -> str:
        """Why there is no process and when there will be; "" unless that is so."""
        if self.state != "waiting":
            return ""
        again = f"started again after {self.pause_seconds:g} s"
        return f"failed {self.failures} times in a row ({describe_exit(self.exit_code)}); {again}"

    async def _run_once(self) -> float:
        """One life of the process; how long it was ready, in seconds."""
        self._set_not_ready("starting")
        self._killed_on_purpose = False
        ready_read, ready_write = os.pipe()
        try:
            with trio.CancelScope(shield=True):  # a process that was started is known to us
                process = await trio.lowlevel.open_process(
                    self._command(ready_write),
                    pass_fds=(*self._listen_fds, self._lifeline_fd, ready_write),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env=_environment(),
                    process_group=0,  # Ctrl-C is for the launcher, which tells its children
                )
        except OSError as error:
            os.close(ready_read)
            self._take_line(f"onyx: {self.node_id} cannot be started: {error}".encode())
            self.exit_code = EXIT_SYSTEM
            self.state = "waiting"
            return 0.0
        finally:
            os.close(ready_write)
        self._process = process
        self.came = StartProgress()
        self.came_further_at = trio.current_time()
        self._report("started", self)
        ready_at: list[float] = []
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch_ready, ready_read, ready_at)
                nursery.start_soon(self._pass_lines_on, process)
                await process.wait()
        finally:
            await self._stop(process)
            self._process = None
            self.exit_code = process.returncode
            self._set_not_ready("waiting")
        return trio.current_time() - ready_at[0] if ready_at else 0.0

    def _command(self, ready_fd: int) -> list[str]:
        # -P: a directory called "formats" where the user happens to stand is not our package.
        return [
            *(sys.executable, "-P", "-m", "onyx.node_process"),
            *(str(self._topology_file), self.node_id),
            *("--listen-fds", *map(str, self._listen_fds)),
            *("--ready-fd", str(ready_fd)),
            *("--lifeline-fd", str(self._lifeline_fd)),
            *("--restarts", str(self.restarts)),
            *(("--kept",) if self.is_kept else ()),
            *(("--credentials", str(self._credentials)) if self._credentials else ()),
        ]

    async def _watch_ready(self, ready_read: int, ready_at: list[float]) -> None:
        async with trio.lowlevel.FdStream(ready_read) as stream:
            said = b""
            while data := await stream.receive_some(4096):
                *lines, said = (said + data).split(b"\n")
                for line in lines:
                    if self._killed_on_purpose:
                        return
                    self.came_further_at = trio.current_time()
                    word, *numbers = line.split()
                    if len(numbers) == 2:
                        self.came.note(word.decode(), int(numbers[0]), int(numbers[1]))
                        self._report("restoring", self)
                        continue
                    ready_at.append(trio.current_time())
                    self.state = "ready"
                    self._became_ready.set()
                    self._report("ready", self)
                    if self._is_to_hang_up:
                        self.hang_up_nowait()

    async def _pass_lines_on(self, process: trio.Process) -> None:
        assert process.stdout is not None
        rest = b""
        async for data in process.stdout:
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > LINE_BYTES_MAX:
                lines, rest = [*lines, rest], b""
            for line in lines:
                self._take_line(line)
        if rest:
            self._take_line(rest)

    def _take_line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        self.last_lines.append(text)
        self._write_line(text)

    async def _stop(self, process: trio.Process) -> None:
        """SIGTERM, a bounded wait, SIGKILL; and everything it still had to say."""
        with trio.CancelScope(shield=True):
            if process.returncode is None:
                process.terminate()
                with trio.move_on_after(self._policy.stop_seconds):
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(self._pass_lines_on, process)
                        await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
            assert process.stdout is not None
            await process.stdout.aclose()

    def _set_not_ready(self, state: State) -> None:
        self.state = state
        if self._became_ready.is_set():
            self._became_ready = trio.Event()

    def _note_death(self, lived_seconds: float) -> None:
        policy = self._policy
        if self._killed_on_purpose:
            self.pause_seconds = 0.0
            return
        self.failures = 1 if lived_seconds >= policy.stable_seconds else self.failures + 1
        self.pause_seconds = policy.delay.after(self.failures)
        if self.exit_code in _FOR_GOOD:
            self.pause_seconds = policy.delay.longest

    def _check_hope(self) -> None:
        """LaunchError when another start would be of no use."""
        if self._killed_on_purpose:
            return
        if self.exit_code in _FOR_GOOD:
            raise self._given_up("cannot run")
        if self.failures >= self._policy.failures_max:
            raise self._given_up(f"failed {self.failures} times in a row and is given up")

    def _given_up(self, what: str) -> LaunchError:
        reason = f"{self.node_id} {what} ({describe_exit(self.exit_code)})"
        return LaunchError(reason, self.node_id, tuple(self.last_lines))


@contextmanager
def lifeline() -> Iterator[int]:
    """The reading end of a pipe whose writing end only this process has."""
    read_end, write_end = os.pipe()
    try:
        yield read_end
    finally:
        os.close(read_end)
        os.close(write_end)


async def stop_at_end(lifeline: int, scope: trio.CancelScope) -> None:
    """In the child: the other end is the launcher's, which never writes."""
    async with trio.lowlevel.FdStream(lifeline) as stream:
        while await stream.receive_some(1):
            pass
        log.info("stopping: the launcher is gone")
        scope.cancel()


def describe_exit(exit_code: int | None) -> str:
    """ "exit code 70", "killed by SIGKILL"."""
    if exit_code is None:
        return "running"
    if exit_code < 0:
        return f"killed by {signal.Signals(-exit_code).name}"
    return f"exit code {exit_code}"


def _environment() -> dict[str, str]:
    """Ours, with the place that this very package was imported from in front."""
    root = str(Path(__file__).resolve().parent.parent)
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([root, path] if path else [root])}
