"""``setup``: how long it takes from nothing to a demo that has run, and what has to be compiled.

The project is cloned as it is committed, into an empty folder, and ``make demo`` runs there with an
empty home and next to no variables: no cache of packages, of extensions or of bytecode helps.  The
only ratio is that of one changed file to all.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import machine
from benchmarks.benchmark import Benchmark, BenchmarkError, WrongAnswers
from benchmarks.report import Report

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("formats", "yfilter", "overlay", "registration", "onyx")
HOT_PACKAGES = PACKAGES[:2]
BEGINS_PIP = "setup: virtual environment"
BEGINS_COMPILING = "setup: hot modules"
ENDS_COMPILING = "setup: done, build: "
# Of the environment, how programs are found and how packages are reached.
_KEPT = ("PATH", "LANG", "TZ")
_KEPT_PREFIXES = ("PIP_", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_LAST_LINES = 20


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument(
        "--source", metavar="REPOSITORY", default=str(ROOT), help="what is cloned (default: this)"
    )


def run(options: argparse.Namespace) -> Report:
    """Measures; raises BenchmarkError where there is no demo, or no compiled one."""
    with TemporaryDirectory(prefix="onyx-setup-") as directory:
        return _measured(options.source, Path(directory))


def _measured(source: str, directory: Path) -> Report:
    clone, home = directory / "onyx", directory / "home"
    home.mkdir()
    environment = bare_environment(os.environ, home)
    began = time.monotonic()
    run_lines(["git", "clone", "--quiet", source, str(clone)], directory, environment)
    lines = run_lines(["make", "demo"], clone, environment)
    demo_s = time.monotonic() - began
    pip_s, compile_s = parts_of(lines)
    hot = longest_source(clone)
    with hot.open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    began = time.monotonic()
    run_lines(["make", "setup"], clone, environment)
    rebuild_s = time.monotonic() - began
    report = Report("setup: from a clone to a demo that has run")
    report.condition("machine", "machine", machine.description())
    (commit,) = run_lines(["git", "rev-parse", "HEAD"], clone, environment)
    report.condition("commit", "commit", commit.text)
    report.figure("core_pip_s", "virtual environment and packages", pip_s, "s")
    report.figure("compile_s", "compiling", compile_s, "s")
    report.figure("demo_s", "all, to the demo's last line", demo_s, "s")
    report.figure(
        "rebuild_s", f"{hot.relative_to(clone)} changed", rebuild_s, "s", against="compile_s"
    )
    for key, (label, value) in counts(clone).items():
        report.figure(key, label, value)
    return report


def bare_environment(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """With an empty home and nothing that others have set, but for the way to the packages."""
    kept = {
        name: value
        for name, value in environment.items()
        if name in _KEPT or name.upper().startswith(_KEPT_PREFIXES)
    }
    return kept | {"HOME": str(home), "PIP_NO_CACHE_DIR": "1"}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of output, and when it came."""

    text: str
    at: float


def parts_of(lines: Sequence[Line]) -> tuple[float, float]:
    """The seconds of ``make setup`` before and while it compiles, by its lines."""
    found: dict[str, Line] = {}
    for line in lines:
        for beginning in (BEGINS_PIP, BEGINS_COMPILING, ENDS_COMPILING):
            if line.text.startswith(beginning):
                found.setdefault(beginning, line)
    if len(found) < 3:
        raise BenchmarkError("make demo did not say when it installed and when it compiled")
    if found[ENDS_COMPILING].text != f"{ENDS_COMPILING}compiled":
        raise WrongAnswers(found[ENDS_COMPILING].text)
    pip, compiling, done = (
        found[each].at for each in (BEGINS_PIP, BEGINS_COMPILING, ENDS_COMPILING)
    )
    return compiling - pip, done - compiling


def longest_source(clone: Path) -> Path:
    """Of the hot modules."""
    sources = [file for package in HOT_PACKAGES for file in (clone / package).rglob("*.pyx")]
    if not sources:
        raise BenchmarkError("there is no hot module")
    return max(sources, key=lambda file: file.stat().st_size)


def counts(clone: Path) -> dict[str, tuple[str, float]]:
    """By key, what there is in a clone that is compiled, each with a label.

    A header has lines, and is no file of the product: it goes with the module of its name.
    """
    extensions = [
        file
        for package in HOT_PACKAGES
        for suffix in ("so", "pyd")
        for file in (clone / package).rglob(f"*.{suffix}")
    ]
    generated = [file for file in (clone / "build").rglob("*.c") if file.is_file()]
    product = [
        file
        for package in PACKAGES
        for suffix in ("py", "pyx", "pxd")
        for file in (clone / package).rglob(f"*.{suffix}")
    ]
    return {
        "extensions": ("extension modules", len(extensions)),
        "c_megabytes": ("C, megabytes", sum(file.stat().st_size for file in generated) / 1e6),
        "product_lines": ("lines of the product", _lines(product)),
        "product_files": (
            "files of the product",
            sum(file.suffix != ".pxd" for file in product),
        ),
        "test_lines": ("lines of tests", _lines(list((clone / "tests").rglob("*.py")))),
    }


def _lines(files: Sequence[Path]) -> int:
    return sum(file.read_bytes().count(b"\n") for file in files)


def run_lines(words: Sequence[str], directory: Path, environment: Mapping[str, str]) -> list[Line]:
    """The lines of a command's output; BenchmarkError if it fails."""
    lines: list[Line] = []
    last: deque[str] = deque(maxlen=_LAST_LINES)
    with subprocess.Popen(
        words,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for text in process.stdout:
            line = Line(text.rstrip("\n"), time.monotonic())
            lines.append(line)
            last.append(line.text)
            if line.text.startswith("setup: "):
                print(line.text, file=sys.stderr, flush=True)
    if process.returncode:
        raise BenchmarkError(f"{' '.join(words)} failed:\n" + "\n".join(last))
    return lines


SETUP = Benchmark(
    name="setup",
    summary="from a clone to a demo that has run; what is compiled, and how much there is",
    add_options=add_options,
    quick=None,
    run=run,
)
