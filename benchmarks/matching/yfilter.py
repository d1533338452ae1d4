"""YFilter 1.0, the Java engine of the paper's authors, on the profiles and messages of a MatchJob.

Its classes are not part of Onyx: a directory that holds the release (``yfilter.jar``,
``java_cup.jar``, ``dtdparser113.jar`` anywhere below it) is given.  Its filtering alone is timed,
on messages that are parsed already; the driver is beside this file.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.benchmark import BenchmarkError
from benchmarks.matching.inputs import Lots
from benchmarks.matching.job import PROFILES, MatchJob

WARM_SECONDS = 5
_DRIVER = Path(__file__).parent / "YFilterDriver.java"


@dataclass(frozen=True, slots=True)
class YFilterTimings:
    """Microseconds and matches for each measured message, in their order."""

    build_us: float
    filter: list[float]
    matches: list[int]


def run_yfilter(release: Path, job: MatchJob, lots: Lots, folder: Path) -> YFilterTimings:
    """Runs it in a Java process; the measured messages are those the engine was measured on."""
    java = shutil.which("java")
    jars = sorted(release.rglob("*.jar"))
    if java is None:
        raise BenchmarkError("YFilter needs Java 17 or newer: no 'java' was found")
    if not any(jar.name == "yfilter.jar" for jar in jars):
        raise BenchmarkError(f"there is no yfilter.jar below {release}")
    classes = ":".join(map(str, jars))
    warm = _write(folder / "warm", lots.warm)
    measured = _write(folder / "measured", lots.measured)
    profiles = (str(folder / PROFILES), str(job.number))
    timing = (str(WARM_SECONDS), "cpu" if job.cpu_clock else "wall")
    done = subprocess.run(
        [java, "-cp", classes, str(_DRIVER), *profiles, str(warm), str(measured), *timing],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BenchmarkError(f"YFilter failed: {done.stderr.strip()[-500:]}")
    return _read(done.stdout, job.number, len(lots.measured))


def _write(directory: Path, messages: Sequence[bytes]) -> Path:
    directory.mkdir()
    for number, message in enumerate(messages):
        (directory / f"{number:06}.xml").write_bytes(message)
    return directory


def _read(output: str, profiles: int, messages: int) -> YFilterTimings:
    rows = [line.split("\t") for line in output.splitlines()]
    (_, build_us, registered), *measured = rows
    if int(registered) != profiles or len(measured) != messages:
        raise BenchmarkError(
            f"YFilter took {registered} of {profiles} profiles, {len(measured)} of {messages} "
            "messages"
        )
    return YFilterTimings(
        float(build_us), [float(row[1]) for row in measured], [int(row[2]) for row in measured]
    )
