"""Helper: another process of this benchmark, asked and answered in lines of JSON.

::

    async with helper("benchmarks.network.ping", {"address": "127.0.0.1:7201"}) as ping:
        await ping.tell({"begin": True})
        answer = await ping.ask({"end": True})

A helper reads its job and then questions from its standard input, and ends with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

import trio

from benchmarks.benchmark import BenchmarkError

ROOT = Path(__file__).resolve().parents[2]
_STOP_SECONDS = 15.0  # a network gives each of its processes five


class Helper:
    """A process that is running; ``pid`` is its id."""

    def __init__(self, name: str, process: trio.Process, errors: IO[bytes]) -> None:
        assert process.stdout is not None
        self.pid = process.pid
        self._name = name
        self._process = process
        self._errors = errors
        self._lines = Lines(process.stdout)

    async def tell(self, question: Mapping[str, object]) -> None:
        """Without an answer."""
        assert self._process.stdin is not None
        try:
            await self._process.stdin.send_all(json.dumps(question).encode() + b"\n")
        except trio.BrokenResourceError:
            raise self._died() from None

    async def answer(self) -> Any:
        """The next one."""
        try:
            return await self._lines.next()
        except EOFError:
            raise self._died() from None

    async def ask(self, question: Mapping[str, object]) -> Any:
        """A question and its answer."""
        await self.tell(question)
        return await self.answer()

    def _died(self) -> BenchmarkError:
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()
        print(said, file=sys.stderr)  # the last line alone may hide what caused it
        last = said.splitlines()[-1:]
        return BenchmarkError(": ".join([f"{self._name} has ended", *last]))


class Lines:
    """Lines of JSON of a stream."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream
        self._rest = bytearray()
        self._searched = 0

    async def next(self) -> Any:
        """The next value; EOFError when there is none any more."""
        while (end := self._rest.find(b"\n", self._searched)) < 0:
            self._searched = len(self._rest)
            data = await self._stream.receive_some(1 << 20)
            if not data:
                raise EOFError
            self._rest += data
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        self._searched = 0
        return json.loads(line)


def questions() -> Lines:
    """In a helper: its job, and what it is asked."""
    return Lines(trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())))


def say(answer: Mapping[str, object]) -> None:
    """In a helper: an answer."""
    print(json.dumps(answer), flush=True)


@asynccontextmanager
async def running(name: str, command: list[str]) -> AsyncIterator[Helper]:
    """A process that speaks lines of JSON; ended with the block."""
    with tempfile.TemporaryFile() as errors:
        process = await trio.lowlevel.open_process(
            command,
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            process_group=0,  # Ctrl-C is for this process, which ends the other
        )
        try:
            yield Helper(name, process, errors)
        finally:
            with trio.CancelScope(shield=True):
                await _stop(process)


@asynccontextmanager
async def helper(module: str, job: Mapping[str, object]) -> AsyncIterator[Helper]:
    """A module of ours that was given its job."""
    async with running(module, [sys.executable, "-m", module]) as started:
        await started.tell(job)
        yield started


def environment() -> dict[str, str]:
    """Ours, with this very checkout in front of what is installed."""
    path = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), path] if path else [str(ROOT)])}


async def _stop(process: trio.Process) -> None:
    """SIGTERM, and SIGKILL to what does not end by it."""
    if process.returncode is None:
        process.terminate()
        with trio.move_on_after(_STOP_SECONDS):
            await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()
    assert process.stdin is not None and process.stdout is not None
    await process.stdin.aclose()
    await process.stdout.aclose()
