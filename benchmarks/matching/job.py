"""MatchJob: one measurement of the engine, made in a process of its own.

Memory per profile can only be told from outside where profiles lie in arrays of C, so a process
that has done nothing else builds the engine and looks at what it has grown by.  The process reads
``profiles.txt`` (one text a line), ``messages.msgpack`` and ``job.json`` in its folder and writes
``timings.json``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from bisect import bisect
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import repeat
from pathlib import Path
from random import Random
from time import perf_counter_ns, thread_time_ns

from benchmarks.benchmark import BenchmarkError
from benchmarks.workload.domains import zipf_weights

PROFILES, MESSAGES, JOB, TIMINGS = "profiles.txt", "messages.msgpack", "job.json", "timings.json"
ZIPF_SKEW = 0.8
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class MatchJob:
    """What to measure.

    number       profiles, the first so many lines; the lines that follow are added to the live
                 engine
    subscribers  0: each profile once; else so many registrations, Zipf over the profiles
    warmup       messages matched before anything counts; the first ``cold`` of them are told
    changes      profiles removed from the live engine, and as many added
    checked      measured messages whose matches are told, to be compared with an oracle
    block        messages in a row of which one thing is timed before the next is
    cpu_clock    time spent computing, not time passed: for a machine that has other work too
    limits       fields of MatchLimits that are not to be the default
    """

    number: int
    subscribers: int = 0
    warmup: int = 1_000
    cold: int = 100
    changes: int = 1_000
    checked: int = 20
    block: int = 50
    cpu_clock: bool = False
    limits: dict[str, int] = field(default_factory=dict)
    seed: int = 1

    def clock(self) -> Callable[[], int]:
        """Nanoseconds by the clock to be used."""
        return thread_time_ns if self.cpu_clock else perf_counter_ns

    def registrations(self) -> Iterator[int]:
        """The profile (counted from 0) of each registration, in order."""
        if not self.subscribers:
            yield from range(self.number)
            return
        weights = zipf_weights(self.number, ZIPF_SKEW)
        random = Random(f"subscribers {self.seed}")
        for _ in repeat(None, self.subscribers):
            yield bisect(weights, random.random() * weights[-1])


@dataclass(slots=True)
class Timings:
    """What the process tells; times in microseconds, one for each message or change."""

    build: str = ""
    registered: int = 0
    parse_profiles_us: float = 0.0
    install_us: float = 0.0
    resident_before: int = 0
    resident_built: int = 0
    resident_warm: int = 0
    cold: list[float] = field(default_factory=list)
    all_in: list[float] = field(default_factory=list)
    parse: list[float] = field(default_factory=list)
    lxml_parse: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    binary: list[float] = field(default_factory=list)
    matches: list[int] = field(default_factory=list)
    message_bytes: list[int] = field(default_factory=list)
    checked: list[list[int]] = field(default_factory=list)
    add: list[float] = field(default_factory=list)
    remove: list[float] = field(default_factory=list)
    parse_added: list[float] = field(default_factory=list)
    between_changes: list[float] = field(default_factory=list)
    statistics: dict[str, int] = field(default_factory=dict)


def run_job(job: MatchJob, folder: Path) -> Timings:
    """Measures in a process of its own."""
    (folder / JOB).write_text(json.dumps(asdict(job)), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.matching.process", str(folder)],
        cwd=_ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise BenchmarkError(f"the measuring process failed: {reason[-1]}")
    return Timings(**json.loads((folder / TIMINGS).read_text(encoding="utf-8")))
