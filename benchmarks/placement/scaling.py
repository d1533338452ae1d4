"""The planning job from text to plan: time, and memory of all its processes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.placement.population import FigureNine
from registration.planning.planner import PlanOptions
from registration.spark.plan_job import PlanJob, run_plan_job
from registration.spark.session import SparkOptions, spark_session

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class JobTime:
    """``start_s``: until Spark is there; ``plan_s``: from the text to the written assignment;
    ``cpu_s``: computed by all processes; ``memory_mb``: all of them together at the most (both
    None where the system does not say)."""

    profiles: int
    start_s: float
    plan_s: float
    cpu_s: float | None
    memory_mb: float | None
    imbalance: float


def measure_job(
    profiles: int, partitions: int, seed: int, folder: Path, progress: Callable[[str], None]
) -> JobTime:
    """One run in a Spark of its own."""
    progress(f"{profiles:,} profiles from text to plan")
    path = folder / f"profiles-{profiles}.txt"
    with path.open("w") as stream:
        rest, part = profiles, 0
        while rest > 0:  # in pieces, so that the text of ten million never is in memory
            size = min(rest, 500_000)
            figure = FigureNine(seed + part, size, 1_000, zipf=False)
            stream.writelines(f"{text}\n" for text in figure.texts())
            rest, part = rest - size, part + 1
    job = PlanJob(
        (str(path),), PlanOptions(partitions), assignment=str(folder / f"assignment-{profiles}")
    )
    with _ProcessWatch() as watch:
        start = time.perf_counter()
        with spark_session(SparkOptions()) as session:
            started = time.perf_counter()
            plan = run_plan_job(session, job).plan
            done = time.perf_counter()
    path.unlink()
    return JobTime(
        profiles,
        started - start,
        done - started,
        watch.cpu_s,
        watch.peak_mb,
        plan.facts.imbalance,
    )


class _ProcessWatch:
    """What this process and its descendants hold at one time at the most, and compute in all;
    looked at twice a second.

    Shared pages are counted once (the proportional set size).
    """

    def __init__(self) -> None:
        self.peak_mb: float | None = None
        self._cpu_s: dict[str, float] = {}  # by process, when it was last seen
        self._own_s = time.process_time()  # used before
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    @property
    def cpu_s(self) -> float | None:
        return sum(self._cpu_s.values()) - self._own_s if self._cpu_s else None

    def __enter__(self) -> _ProcessWatch:
        if _PROC.is_dir():
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            held = 0.0
            for process in descendants():
                held += _held_mb(process)
                self._cpu_s[process] = _computed_s(process) or self._cpu_s.get(process, 0.0)
            self.peak_mb = max(self.peak_mb or 0.0, held)


def descendants() -> list[str]:
    """The ids of this process and of all that come from it."""
    children: dict[str, list[str]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdecimal():
            fields = stat_of(entry.name)
            if fields:
                children.setdefault(fields[1], []).append(entry.name)
    found = [Path("/proc/self").resolve().name]
    for process in found:
        found.extend(children.get(process, ()))
    return found


def stat_of(process: str) -> list[str]:
    """The fields behind the name: state, parent, ...; none for a process that is gone."""
    try:
        return (_PROC / process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _computed_s(process: str) -> float:
    fields = stat_of(process)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _held_mb(process: str) -> float:
    try:
        for line in (_PROC / process / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0
