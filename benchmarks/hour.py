"""``hour``: the first hour of a new user, by the commands that README.md prints.

The project is cloned as it is committed, into an empty folder, with an empty home; ``make setup``
runs there, ``onyx up`` starts README's network, and its commands are typed as they stand, until a
subscriber has the first result, which must be the printed one.  Then a source and a profile of
one's own give the first own result.  What people read and type takes no time here.

The broken set-ups are those of ``tests/onyx/test_doctor_causes.py``: of each the doctor has to name
the cause and its remedy.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import machine
from benchmarks.benchmark import Benchmark, BenchmarkError, WrongAnswers
from benchmarks.report import Report
from benchmarks.setting_up import ROOT, bare_environment, run_lines
from tests.onyx.pages import Command, Page, Types

NETWORK = "topologies/figure4.toml"
READY_SECONDS = 120.0
OWN = b"<order><total>%d</total></order>"
OWN_PROFILE = "for $o in /order return <own>{$o/total}</own>"
OWN_MESSAGES = 3


class Typed:
    """A shell: ``run`` types words of ``onyx``, as the Shell of the tests."""

    def __init__(self, program: Path, environment: Mapping[str, str]) -> None:
        self._program = program
        self._environment = environment
        self.out = self.err = ""

    def run(self, *words: object) -> int:
        """The exit code."""
        is_given = isinstance(getattr(sys.stdin, "buffer", None), BytesIO)
        command = [str(self._program), *map(str, words)]
        done = subprocess.run(
            command,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            input=sys.stdin.read() if is_given else "",
        )
        self.out, self.err = done.stdout, done.stderr
        return done.returncode

    def line(self, *words: object) -> str:
        """The first line that a command prints, which must succeed."""
        if self.run(*words):
            raise BenchmarkError(f"onyx {' '.join(map(str, words))}: {self.err}")
        return self.out.splitlines()[0]


class _Came(Exception):
    """A subscriber has a result."""


class _FirstResult(Page):
    def _type(self, shell: Types, command: Command) -> int:
        code = super()._type(shell, command)
        if command.words[:2] == ("onyx", "subscribe") and not code:
            if shell.out not in self.text:
                raise WrongAnswers(f"the page does not print this result: {shell.out}")
            raise _Came
        return code


def follow_to_result(text: str, shell: Types) -> None:
    """The commands of a page in the current directory, until a subscriber has what it prints."""
    try:
        _FirstResult(text).follow(shell)
    except _Came:
        return
    except AssertionError as error:
        raise WrongAnswers(str(error)) from error
    raise WrongAnswers("no command of the page takes a result")


def own_result(shell: Typed) -> None:
    """A source, a profile and messages of one's own, in the current directory, to their results."""
    Path("own.xq").write_text(OWN_PROFILE, encoding="utf-8")
    files = [Path(f"order{number}.xml") for number in range(OWN_MESSAGES)]
    for number, file in enumerate(files):
        file.write_bytes(OWN % number)
    source = shell.line("source", "register", "--name", "own", "--key", "own")
    profile = shell.line("profile", "add", "own.xq", "--key", "own", "--wait")
    shell.line("source", "publish", source, *files)
    shell.line("subscribe", profile, "--count", OWN_MESSAGES)
    if shell.out.split() != [
        f"<own><total>{number}</total></own>" for number in range(OWN_MESSAGES)
    ]:
        raise WrongAnswers(f"own results: {shell.out}")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument(
        "--source", metavar="REPOSITORY", default=str(ROOT), help="what is cloned (default: this)"
    )


def run(options: argparse.Namespace) -> Report:
    """Measures; BenchmarkError where a command fails, WrongAnswers where it prints what it should
    not."""
    report = Report("hour: the first hour of a new user")
    report.condition("machine", "machine", machine.description())
    with TemporaryDirectory(prefix="onyx-hour-") as directory:
        clone, home, work = (Path(directory) / name for name in ("onyx", "home", "work"))
        for each in (home, work):
            each.mkdir()
        environment = bare_environment(os.environ, home)
        began = time.monotonic()
        run_lines(["git", "clone", "--quiet", options.source, str(clone)], home, environment)
        run_lines(["make", "setup"], clone, environment)
        report.figure("setup_s", "clone and make setup", time.monotonic() - began, "s")
        with _network(clone, environment) as shell, chdir(work):
            follow_to_result((clone / "README.md").read_text(encoding="utf-8"), shell)
            report.figure("first_result_s", "README's first result", time.monotonic() - began, "s")
            own_result(shell)
            report.figure("own_result_s", "the first own result", time.monotonic() - began, "s")
    named, total = broken_named()
    report.figure("broken_named", "broken set-ups whose cause the doctor names", named)
    report.figure("broken_set_ups", "of so many", total)
    return report


@contextmanager
def _network(clone: Path, environment: Mapping[str, str]) -> Iterator[Typed]:
    """README's network, once its status can be asked for."""
    program = clone / ".venv" / "bin" / "onyx"
    shell = Typed(program, {**environment, "ONYX_REGISTRATION": "127.0.0.1:7200"})
    with subprocess.Popen(
        [program, "up", NETWORK], cwd=clone, env=environment, stdout=subprocess.DEVNULL
    ) as up:
        try:
            until = time.monotonic() + READY_SECONDS
            while shell.run("status"):
                if up.poll() is not None or time.monotonic() > until:
                    raise BenchmarkError(f"onyx up {NETWORK} is not up: {shell.err}")
            yield shell
        finally:
            up.terminate()


def broken_named() -> tuple[int, int]:
    """Of how many broken set-ups the doctor names the cause, and how many there are."""
    file = "tests/onyx/test_doctor_causes.py"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", file]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = {what: int(count) for count, what in re.findall(r"(\d+) (passed|failed)", done.stdout)}
    if not found:
        raise BenchmarkError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    named = found.get("passed", 0)
    return named, named + found.get("failed", 0)


HOUR = Benchmark(
    name="hour",
    summary="the first hour: README's first result, a first own one, broken set-ups named",
    add_options=add_options,
    quick=None,
    run=run,
)
