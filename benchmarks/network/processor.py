"""What the system knows of a process and of those that it has started: their processor time, how
often they wait for the disk; and how many files this one may open."""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from pathlib import Path

import trio

from benchmarks.benchmark import BenchmarkError

_FILES_WANTED = 16_384
_LOOK_SECONDS = 0.1
_QUIET_LOOKS = 3
_LOOKS_MAX = 6_000


def processor_seconds(pid: int) -> float:
    """User and system time of all threads of a process and of those below it, to 10 ms."""
    stats = [_stat(one) for one in processes(pid)]
    ticks = sum(int(values[11]) + int(values[12]) for values in stats if values)
    return ticks / os.sysconf("SC_CLK_TCK")


def processes(pid: int) -> list[int]:
    """A process, and those that it and its own have started."""
    if not _stat(pid):
        raise BenchmarkError(f"there is no process {pid}")
    parents = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and (values := _stat(int(path.name))):
            parents[int(path.name)] = int(values[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def _stat(pid: int) -> Sequence[str]:
    """What the system says of a process, behind its name; () if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ()
    return stat.rpartition(")")[2].split()


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


def allow_many_files(needed: int = 0) -> None:
    """Each profile's results take a connection: as many open files as are ``needed``, or as the
    system lets us have, up to some thousands.  Processes that are started afterwards may have as
    many.  BenchmarkError where the system allows fewer than are needed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(_FILES_WANTED, needed)
    if hard != resource.RLIM_INFINITY:
        if hard < needed:
            raise BenchmarkError(
                f"{needed:,} open files are needed for so many connections, and a process may have "
                f"{hard:,} here: raise that (ulimit -Hn), or ask for fewer profiles"
            )
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
