"""``crowd``: profiles that share an equality and differ in the bound of a range (seed 003, 9b).

``/a[@s = "A"]/b[@n > V]``, as many as are named, of which a message matches the same hundred.  The
baseline is the smallest number of them: what is level is found without a look at all.
"""

from __future__ import annotations

import argparse
from random import Random
from time import thread_time_ns

from benchmarks import machine
from benchmarks.benchmark import Benchmark, WrongAnswers, positive
from benchmarks.report import Report
from benchmarks.samples import median
from formats import parse_text
from formats.build import build_info
from yfilter import Matcher

MATCHED = 100
MESSAGE = b'<a s="A"><b n="50"><c m="50"/></b></a>'
SHAPES = {
    "range": "/a/b[@n > {}]",
    "equality_range": '/a[@s = "A"]/b[@n > {}]',
    "equality_range_below": '/a[@s = "A"]/b[c/@m > {}]',
    "equality_ranges": '/a[@s = "A"]/b[@n > {}][@n < 1000000]',
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
    for name, text in SHAPES.items():
        base = f"{name}_{options.profiles[0]}_us"
        for number in options.profiles:
            key = f"{name}_{number}_us"
            label = f"{text.format('V')}, {number:,}"
            against = None if key == base else base
            report.figure(key, label, _match_us(text, number, options.rounds), "us", against)
    report.remark(f"a message is matched by {MATCHED} of them; processor time, the median")
    return report


def _match_us(text: str, number: int, rounds: int) -> float:
    matcher = Matcher()
    bounds = [at * 49 / MATCHED for at in range(MATCHED)]
    bounds += [51.0 + at for at in range(number - MATCHED)]
    Random(1).shuffle(bounds)
    for bound in bounds:
        matcher.add(text.format(bound))
    message = parse_text(MESSAGE)
    samples = []
    for _ in range(rounds + 3):
        start = thread_time_ns()
        found = matcher.matched_ids(message)
        samples.append((thread_time_ns() - start) / 1000)
        if len(found) != MATCHED:
            raise WrongAnswers(f"{text}: {len(found)} of {number} match, expected {MATCHED}")
    return median(samples[3:])


CROWD = Benchmark(
    name="crowd",
    summary="profiles that share an equality and differ in the bound of a range",
    add_options=add_options,
    quick=("--profiles", "1000", "10000", "--rounds", "20"),
    run=run,
)
