"""PlannerDesk: has plans made, by a process of its own that ends with this one.

Profiles, schemas and measures go there as files of a directory, and the plan comes back as one.
The process and all that Spark starts are a group of low priority, which goes first when memory is
short (planner_process.py).
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import util
from pathlib import Path
from urllib.parse import urlencode

import msgspec
import trio

from overlay.archive_file import is_archive
from overlay.errors import TopologyError
from overlay.topology import Topology, to_toml
from registration.plan_questions import (
    PROFILES_FILE,
    RESULT_FILE,
    TASK_FILE,
    PlanFailed,
    PlanMade,
    PlannerResult,
    PlannerTask,
    PlanWanted,
)

SECONDS_MAX = 3_600.0
BATCH = 1_000
SAID_MAX = 300  # characters of what a process said last

log = logging.getLogger(__name__)

_INSTALL = "pip install 'onyx-dissemination[spark]'"


def what_it_lacks(topology: Topology) -> str:
    """Why no plans can be made here; "": they can.  TopologyError where they must be."""
    if util.find_spec("pyspark") is not None:
        return ""
    if topology.planning.auto:
        raise TopologyError(
            topology.name, "planning.auto", f"pyspark is not installed; get it with: {_INSTALL}"
        )
    return f"pyspark is not installed; to have plans made: {_INSTALL}"


class PlannerDesk:
    """One plan at a time."""

    def __init__(self, topology: Topology) -> None:
        self._archive = topology.archive.directory
        self._directory = topology.data_directory
        self._turn = trio.Lock()
        self._is_told = False

    async def answer(self, question: object) -> PlanMade | PlanFailed:
        """To a PlanWanted; the first one is told in the log."""
        assert isinstance(question, PlanWanted)
        if not self._is_told:
            self._is_told = True
            log.warning(
                "makes a plan of %d profiles by itself, with Java where they are many; profiles "
                "move to where it has them (onyx plan auto --off: never)",
                len(question.profiles),
            )
        began = trio.current_time()
        async with self._turn:
            try:
                with _scratch(self._directory) as directory:
                    result = await self._ask(question, directory)
            except OSError as error:
                result = PlannerResult(failure=f"{error.filename or 'planning'}: {error.strerror}")
        if result.failure:
            return PlanFailed(result.failure)
        return PlanMade(result.plan, trio.current_time() - began)

    async def _ask(self, question: PlanWanted, directory: Path) -> PlannerResult:
        await trio.to_thread.run_sync(_write_profiles, directory / PROFILES_FILE, question)
        (directory / TASK_FILE).write_bytes(msgspec.msgpack.encode(self._task(question)))
        with (directory / "said").open("w+b") as said:
            with trio.move_on_after(SECONDS_MAX) as scope:
                code = await _run(directory, said.fileno())
            if scope.cancelled_caught:
                return PlannerResult(failure=f"it took more than {SECONDS_MAX:.0f} s")
            said.seek(0)
            last = _last_line(said.read())
        try:
            found = (directory / RESULT_FILE).read_bytes()
            return msgspec.msgpack.decode(found, type=PlannerResult)
        except (FileNotFoundError, msgspec.MsgspecError):
            how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
            return PlannerResult(failure=f"the planning process ended {how}{last}")

    def _task(self, question: PlanWanted) -> PlannerTask:
        return PlannerTask(
            topology=to_toml(question.topology),
            schemas=[(schema.name, schema.kind, schema.data) for schema in question.schemas],
            have_none=question.have_none,
            archive=list(self._archives(question.topology)),
            plan=question.plan,
            messages=question.messages,
            matched=list(question.matched),
        )

    def _archives(self, topology: Topology) -> Iterator[str]:
        """Those of the brokers, by credentials that may read them, or the files of this machine."""
        shown = topology.planning.credentials
        if shown is not None and topology.archive.directory is not None:
            address = topology.registration[0].listen
            yield f"onyx://{address}?{urlencode({'credentials': shown.absolute()})}"
        elif self._archive is not None and is_archive(self._archive):
            yield str(self._archive.absolute())


@contextmanager
def _scratch(parent: Path) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="planning-", dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _write_profiles(path: Path, question: PlanWanted) -> None:
    """A line each, but for those that insist on their place."""
    encoder = msgspec.json.Encoder()
    with path.open("wb") as file:
        for first in range(0, len(question.profiles), BATCH):
            entries = question.profiles[first : first + BATCH]
            lines = [{"profile": e.profile, "text": e.text} for e in entries if not e.near]
            file.write(encoder.encode_lines(lines))


async def _run(directory: Path, said: int) -> int:
    """The planning process to its end, or to that of this task; its exit code."""
    process = await trio.lowlevel.open_process(
        [sys.executable, "-P", "-m", "registration.planner_process", str(directory)],
        stdin=subprocess.PIPE,  # its end is ours
        stdout=said,
        stderr=said,
        env={**os.environ, "TMPDIR": str(directory)},
        process_group=0,
    )
    try:
        return await process.wait()
    finally:
        with trio.CancelScope(shield=True):
            # Whoever is left in the group, too.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            assert process.stdin is not None
            await process.stdin.aclose()


def _last_line(said: bytes) -> str:
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    return f"; it said: {lines[-1][:SAID_MAX]}" if lines else ""
