"""``python -m benchmarks``: the list, one benchmark, all of them."""

from __future__ import annotations

import argparse
import json

import pytest

from benchmarks import __main__ as command
from benchmarks.benchmark import Benchmark, BenchmarkError, WrongAnswers, count, positive
from benchmarks.report import Report


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--number", type=count, default=7)


def run(options: argparse.Namespace) -> Report:
    if options.number == 13:
        raise BenchmarkError("it cannot be run")
    if options.number == 14:
        raise WrongAnswers("it is wrong")
    report = Report("example")
    report.figure("number", "number", options.number)
    return report


@pytest.fixture(autouse=True)
def only_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    example = Benchmark("example", "an example", add_options, ("--number", "3"), run)
    monkeypatch.setattr(command, "BENCHMARKS", (example,))


def test_without_arguments_it_lists(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 0
    out = capsys.readouterr().out
    assert "example" in out
    assert "an example" in out


def test_one_benchmark_as_table_and_as_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["example"]) == 0
    assert "number" in capsys.readouterr().out
    assert command.main(["example", "--number", "1,000", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["number"] == 1_000


def test_all_runs_the_quick_version_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["all", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["example"]["number"] == 3
    assert command.main(["all"]) == 0
    assert "example" in capsys.readouterr().out


@pytest.mark.parametrize(("number", "code"), [("13", 2), ("14", 1)])
def test_what_went_wrong_is_told(
    capsys: pytest.CaptureFixture[str], number: str, code: int
) -> None:
    assert command.main(["example", "--number", number]) == code
    captured = capsys.readouterr()
    assert captured.err.startswith("benchmarks: it ")
    assert not captured.out


def test_counts() -> None:
    assert count("1_000") == count("1,000") == positive("1000") == 1_000
    assert count("0") == 0
    for text in ("-1", "many", "1.5", ""):
        with pytest.raises(argparse.ArgumentTypeError, match="is not a count"):
            count(text)
    with pytest.raises(argparse.ArgumentTypeError, match="at least 1"):
        positive("0")
