"""``crowd``: profiles that share an equality and differ in the bound of a range (seed 003, 9b).

``/a[@s = "A"]/b[@n > V]``, as many as are named, of which a message matches the same hundred.  The
baseline is the smallest number of them: what is level is found without a look at all.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from random import Random
from time import thread_time_ns

from benchmarks import machine
from benchmarks.benchmark import Benchmark, WrongAnswers, positive
from benchmarks.report import Report
from benchmarks.samples import median
from formats import parse_text
from formats.kernel import build_info
from yfilter import Matcher

MATCHED = 100
MESSAGE = b'<a s="A"><b n="50"><c m="50"/></b><d k="1" j="2" n="50"/></a>'
SHAPES = {
    "range": "/a/b[@n > {}]",
    "equality_range": '/a[@s = "A"]/b[@n > {}]',
    "equality_range_below": '/a[@s = "A"]/b[c/@m > {}]',
    "equality_ranges": '/a[@s = "A"]/b[@n > {}][@n < 1000000]',
    "branch_range": '/a[@s = "A"][d[@k = "1"][@j = "2"][@n > {}]]/b',
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument(
        "--profiles",
        metavar="N",
        type=positive,
        nargs="+",
        default=[1_000, 10_000, 100_000],
        help="how many (default: 1,000 10,000 100,000)",
    )
    parser.add_argument("--rounds", metavar="N", type=positive, default=100)


def run(options: argparse.Namespace) -> Report:
    """Measures; raises WrongAnswers where a message matches others than the hundred."""
    report = Report("crowd: profiles that share an equality and differ in a bound")
    report.condition("machine", "machine", machine.description())
    report.condition("build", "build", build_info())
    growth = []
    for name, text in SHAPES.items():
        taken = _match_us(text, options.profiles, options.rounds)
        growth.append(taken[-1] / taken[0])
        base = f"{name}_{options.profiles[0]}_us"
        for number, value in zip(options.profiles, taken, strict=True):
            key = f"{name}_{number}_us"
            label = f"{text.format('V')}, {number:,}"
            report.figure(key, label, value, "us", None if key == base else base)
    label = f"from {options.profiles[0]:,} to {options.profiles[-1]:,} profiles, the worst"
    report.figure("range_growth_xml", label, max(growth), "times", None)
    report.remark(f"a message is matched by {MATCHED} of them; processor time, the median")
    return report


def _match_us(text: str, numbers: Sequence[int], rounds: int) -> list[float]:
    """Of so many profiles each the median; in turn, so that all have the same neighbours."""
    matchers = [_matcher_of(text, number) for number in numbers]
    message = parse_text(MESSAGE)
    samples: list[list[float]] = [[] for _ in numbers]
    for _ in range(rounds + 3):
        for matcher, taken in zip(matchers, samples, strict=True):
            start = thread_time_ns()
            found = matcher.matched_ids(message)
            taken.append((thread_time_ns() - start) / 1000)
            if len(found) != MATCHED:
                raise WrongAnswers(f"{text}: {len(found)} match, expected {MATCHED}")
    return [median(taken[3:]) for taken in samples]


def _matcher_of(text: str, number: int) -> Matcher:
    matcher = Matcher()
    bounds = [at * 49 / MATCHED for at in range(MATCHED)]
    bounds += [51.0 + at for at in range(number - MATCHED)]
    Random(1).shuffle(bounds)
    for bound in bounds:
        matcher.add(text.format(bound))
    return matcher


CROWD = Benchmark(
    name="crowd",
    summary="profiles that share an equality and differ in the bound of a range",
    add_options=add_options,
    quick=("--profiles", "1000", "10000", "--rounds", "20"),
    run=run,
)
