"""``python -m benchmarks deliver``: the whole way of a message, from bytes to finished results.

The unit, U, is ``lxml.etree.fromstring`` of the same message in the same run.  What is timed goes
on in one process: parsed, matched, the results of all matching profiles there as bytes, for
messages that the engine has not seen before.  Answers are held against Saxon and lxml before
anything is told.  Parts:

========  ========================================================================================
paths     generated paths, whole messages as results: 5,000 and 100,000, or ``--number``
flwor     FLWOR profiles with ``or``, ``contains`` and ``not`` mixed
returns   what is copied into constructed elements, beside lxml and Saxon
cliff     profiles of one operator each, and of one form each with 1 to 1,000 elements a
          message, beside equalities that are as selective, and forms beside lxml too
rules     Schematron rule sets, each beside its stylesheet in Saxon; needs ``--rules``
grouping  2,000 distinct values grouped
links     messages cut for 1, 8 and 32 links
places    1,000 and 10,000 profiles with an area each, beside a loop over these; without Saxon
========  ========================================================================================
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks import machine
from benchmarks.benchmark import Benchmark, BenchmarkError, count, positive
from benchmarks.delivery.answers import need_saxon
from benchmarks.delivery.job import DeliverJob, run_job
from benchmarks.report import Report
from benchmarks.workload.forms import FORMS
from benchmarks.workload.operators import OPERATORS

_PARTS = ("paths", "flwor", "returns", "cliff", "rules", "grouping", "links", "places")
_PATHS, _LARGER = 5_000, 100_000
_PLACES = (1_000, 10_000)
_CLIFF, _CLIFF_FORMS = (1_000, 10_000), (10, 1_000, 10_000)
_QUICK_NUMBER, _QUICK_ELEMENTS = 30, 5


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument(
        "--part", nargs="+", choices=_PARTS, default=None, help="default: all that can be run"
    )
    parser.add_argument(
        "--number",
        metavar="N",
        type=positive,
        help=f"path profiles (default: {_PATHS:,}, then {_LARGER:,})",
    )
    parser.add_argument(
        "--flwor-number", metavar="N", type=positive, default=1_000, help="of flwor and returns"
    )
    parser.add_argument(
        "--cliff-number",
        metavar="N",
        type=positive,
        nargs="+",
        help="profiles of each operator (default: 1,000 and 10,000) and form (10 too)",
    )
    parser.add_argument(
        "--cliff-elements",
        metavar="N",
        type=positive,
        nargs="+",
        default=[1, 10, 100, 1_000],
        help="elements that a form looks at (default: 1, 10, 100 and 1,000)",
    )
    for group, names in (("operators", OPERATORS), ("forms", FORMS)):
        parser.add_argument(
            f"--{group}", nargs="*", choices=names, default=list(names), help="of cliff"
        )
    parser.add_argument(
        "--rules",
        metavar="DIR",
        type=Path,
        nargs="+",
        default=[],
        help="a rule set each: a folder with a schema, its stylesheet and messages",
    )
    parser.add_argument("--seed", metavar="N", type=count, default=1)
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="time passed, or time computed"
    )
    parser.add_argument("--warmup", metavar="N", type=positive, default=1_000, help="messages")
    parser.add_argument("--measured", metavar="N", type=positive, default=300, help="messages")
    parser.add_argument(
        "--seconds",
        metavar="S",
        type=positive,
        default=10,
        help="at most for warming up, and for measuring, each workload (default: 10)",
    )
    parser.add_argument(
        "--timeout", metavar="S", type=positive, default=1_200, help="for a part (default: 1,200)"
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes: to see that it runs")


def run(options: argparse.Namespace) -> Report:
    """Measures as the options say; raises WrongAnswers where results differ."""
    if options.part != ["places"]:
        need_saxon()
    if options.quick:
        options.number = options.number or _QUICK_NUMBER
        options.flwor_number, options.cliff_number = _QUICK_NUMBER, [_QUICK_NUMBER]
        options.cliff_elements = [_QUICK_ELEMENTS]
    report = Report("deliver")
    report.condition("machine", "machine", machine.description())
    report.condition("clock", "clock", options.clock)
    build = ""
    jobs = list(_jobs(options, report))
    for job in jobs:
        if sys.stderr.isatty():
            print(f"deliver: {job.part} {job.suffix.strip('_')} ...", file=sys.stderr)
        build = run_job(job, report, options.timeout)
    report.condition("build", "build", build)
    _tell_dearest(report, jobs)
    return report


def _jobs(options: argparse.Namespace, report: Report) -> Iterator[DeliverJob]:
    base = DeliverJob(
        "",
        warmup=options.warmup,
        measured=options.measured,
        seconds=options.seconds,
        seed=options.seed,
        cpu_clock=options.clock == "cpu",
        operators=options.operators,
        forms=options.forms,
    )
    if options.quick:
        base = replace(base, warmup=5, measured=6, seconds=1.0, sample=6, checked=1)
    for part in options.part or _PARTS:
        if part == "paths":
            yield replace(base, part=part, number=options.number or _PATHS)
            if options.number is None:
                yield replace(base, part=part, number=_LARGER, suffix=f"_{_LARGER}")
        elif part == "places":
            for number in (_QUICK_NUMBER,) if options.quick else _PLACES:
                yield replace(base, part=part, number=number, suffix=f"_{number}")
        elif part == "cliff":
            yield from _cliff_jobs(base, options)
        elif part == "rules":
            if options.part and not options.rules:
                raise BenchmarkError("the part rules needs --rules DIR")
            for folder in options.rules:
                suffix = f"_{folder.resolve().name}"
                yield replace(base, part=part, rules=str(folder.resolve()), suffix=suffix)
        else:
            yield replace(base, part=part, number=options.flwor_number)


def _cliff_jobs(base: DeliverJob, options: argparse.Namespace) -> Iterator[DeliverJob]:
    for number in (options.cliff_number or _CLIFF) if options.operators else ():
        yield replace(base, part="cliff", number=number, suffix=f"_{number}")
    for number in (options.cliff_number or _CLIFF_FORMS) if options.forms else ():
        for elements in options.cliff_elements:
            suffix = f"_{number}_{elements}"
            yield replace(base, part="forms", number=number, elements=elements, suffix=suffix)


def _tell_dearest(report: Report, jobs: Iterable[DeliverJob]) -> None:
    """``cliff_ratio`` of all numbers of profiles and elements."""
    ratios = [report.value(f"cliff_ratio{job.suffix}") for job in jobs]
    if found := [ratio for ratio in ratios if ratio is not None]:
        report.figure("cliff_ratio", "the dearest operator or form over equality", max(found))


DELIVER = Benchmark(
    name="deliver",
    summary="the whole way of a message: bytes in, finished results out",
    add_options=add_options,
    quick=("--quick",),
    run=run,
)
