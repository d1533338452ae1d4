"""Syncs: how often a process waits until what it has written is on the disk, by ``strace``.

Whoever is traced is slow meanwhile: nothing else is to be measured then.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from benchmarks.network.processor import processes

_CALLS = "fsync,fdatasync,msync,sync_file_range"
_ATTACH_SECONDS = 20.0
_CALL = re.compile(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) .*(?:sync|sync_file_range)$", re.MULTILINE)


class Syncs:
    """``count`` is what was counted when the block has ended; None where it cannot be."""

    def __init__(self) -> None:
        self.count: int | None = None


@asynccontextmanager
async def counted_syncs(pid: int) -> AsyncIterator[Syncs]:
    """Of a process and those below it, all their threads, while the block runs."""
    syncs = Syncs()
    program = shutil.which("strace")
    if program is None:
        yield syncs
        return
    with tempfile.TemporaryDirectory(prefix="onyx-syncs-") as directory:
        file = Path(directory) / "summary"
        command = [program, "-f", "-c", "-e", f"trace={_CALLS}", "-o", str(file)]
        command += [f"--attach={one}" for one in processes(pid)]
        process = await trio.lowlevel.open_process(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, process_group=0
        )
        try:
            attached = await _is_attached(process)
            yield syncs
        finally:
            with trio.CancelScope(shield=True):
                process.send_signal(signal.SIGINT)
                await process.wait()
                assert process.stderr is not None
                await process.stderr.aclose()
        if attached:
            summary = file.read_text(encoding="ascii")
            syncs.count = sum(int(calls) for calls in _CALL.findall(summary))


async def _is_attached(process: trio.Process) -> bool:
    """Waits until it says so."""
    assert process.stderr is not None
    said = b""
    with trio.move_on_after(_ATTACH_SECONDS):
        async for data in process.stderr:
            said += data
            if b"attached" in said:
                return True
    return False
