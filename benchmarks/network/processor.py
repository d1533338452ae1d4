"""What the system knows of a process: its processor time; and how many files this one may open."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import trio

from benchmarks.benchmark import BenchmarkError

_FILES_WANTED = 16_384
_LOOK_SECONDS = 0.1
_QUIET_LOOKS = 3
_LOOKS_MAX = 6_000


def processor_seconds(pid: int) -> float:
    """User and system time of all threads of a process, to 10 ms."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError as error:
        raise BenchmarkError(f"the processor time of process {pid} is not known: {error}") from None
    values = stat.rpartition(")")[2].split()
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


async def settled_processor_seconds(pid: int) -> float:
    """The same once the process has nothing more to do: it has used next to nothing for a while."""
    now, quiet = processor_seconds(pid), 0
    for _ in range(_LOOKS_MAX):
        if quiet == _QUIET_LOOKS:
            break
        await trio.sleep(_LOOK_SECONDS)
        before, now = now, processor_seconds(pid)
        quiet = quiet + 1 if now - before <= 1 / os.sysconf("SC_CLK_TCK") else 0
    return now


def disk_bytes(directory: Path) -> int:
    """All files below a directory, by their length."""
    sizes = 0
    for path in directory.rglob("*"):
        if path.is_file():
            sizes += path.stat().st_size
    return sizes


def allow_many_files() -> None:
    """Each profile's results take a connection: as many open files as the system lets us have, up
    to some thousands.  Processes that are started afterwards may have as many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES_WANTED if hard == resource.RLIM_INFINITY else min(_FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
