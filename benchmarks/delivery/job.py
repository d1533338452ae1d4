"""DeliverJob: one part of the benchmark, measured in a process of its own.

The process gets the job as JSON and tells figures, remarks and what went wrong as lines of JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter_ns, thread_time_ns
from typing import TextIO, TypeAlias

from benchmarks.benchmark import BenchmarkError, WrongAnswers
from benchmarks.report import Report

_ROOT = Path(__file__).resolve().parents[2]

Clock: TypeAlias = Callable[[], int]


@dataclass(frozen=True, slots=True)
class DeliverJob:
    """What to measure.

    part       which of ``benchmarks.delivery.process.PARTS``
    number     profiles
    suffix     of all keys: for a part that is measured with several numbers of profiles
    warmup     messages before anything counts, at most
    measured   messages that count, at most
    seconds    for warming up, and for measuring, one workload; three messages there always are
    checked    messages whose results are compared, and ``sample`` profiles of them
    operators  of ``cliff``, names of OPERATORS
    forms      of ``forms``, names of FORMS; ``elements`` in a message
    rules      the folder of a rule set
    """

    part: str
    number: int = 1_000
    suffix: str = ""
    warmup: int = 1_000
    measured: int = 300
    seconds: float = 10.0
    checked: int = 3
    sample: int = 100
    seed: int = 1
    cpu_clock: bool = False
    operators: Sequence[str] = ()
    forms: Sequence[str] = ()
    elements: int = 100
    rules: str = ""

    def clock(self) -> Clock:
        """Nanoseconds by the clock to be used."""
        return thread_time_ns if self.cpu_clock else perf_counter_ns


class Teller:
    """Tells what was found, in lines of JSON that ``run_job`` puts into a Report."""

    def __init__(self, job: DeliverJob, output: TextIO) -> None:
        self._suffix = job.suffix
        self._output = output

    def figure(
        self, key: str, label: str, value: float | None, unit: str = "", against: str | None = None
    ) -> None:
        """As ``Report.figure``; the suffix of the job is put to the key, and to the label."""
        label = f"{label}, {self._suffix.strip('_')}" if self._suffix else label
        against = None if against is None else against + self._suffix
        self._tell("figure", [key + self._suffix, label, value, unit, against])

    def condition(self, key: str, label: str, value: float | str) -> None:
        self._tell("condition", [key + self._suffix, label, value])

    def detail(self, key: str, values: dict[str, object]) -> None:
        self._tell("detail", [key + self._suffix, values])

    def remark(self, text: str) -> None:
        self._tell("remark", [text])

    def build(self, text: str) -> None:
        """The build that runs."""
        self._tell("build", [text])

    def wrong(self, text: str) -> None:
        """What was timed is wrong: nothing is reported."""
        self._tell("wrong", [text])

    def _tell(self, what: str, values: list[object]) -> None:
        print(json.dumps([what, values]), file=self._output, flush=True)


def run_job(job: DeliverJob, report: Report, timeout: float) -> str:
    """Measures and puts it into the report; gives the build that ran."""
    reason = ran = ""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.delivery.process"],
            input=json.dumps(asdict(job)).encode(),
            cwd=_ROOT,
            capture_output=True,
            check=False,
            timeout=timeout,
        )
        output = done.stdout
        if done.returncode:
            errors = done.stderr.decode(errors="replace").strip().splitlines()
            reason = errors[-1] if errors else f"exit code {done.returncode}"
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b""
        report.remark(f"{job.part}{job.suffix}: not done within {timeout:g} s; the rest is missing")
    for line in output.splitlines():
        what, values = json.loads(line)
        if what == "wrong":
            raise WrongAnswers(f"{job.part}: {values[0]}")
        if what == "build":
            ran = str(values[0])
            continue
        getattr(report, what)(*values)
    if reason:
        raise BenchmarkError(f"{job.part}: the measuring process failed: {reason}")
    return ran
