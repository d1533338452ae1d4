"""``python -m benchmarks objectglobe``: how queries over many providers are planned and run.

Each part is a module of this folder that adds its figures to the report.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from benchmarks.benchmark import Benchmark, positive
from benchmarks.objectglobe.budgets import measure_budgets
from benchmarks.objectglobe.estimating import measure_estimates
from benchmarks.objectglobe.executing import measure_executing
from benchmarks.objectglobe.lookup import measure_lookup
from benchmarks.objectglobe.planning import measure_planning
from benchmarks.objectglobe.sandboxed import measure_sandbox
from benchmarks.report import Report

PARTS: dict[str, Callable[[Report, argparse.Namespace], None]] = {
    "lookup": measure_lookup,
    "planning": measure_planning,
    "sandbox": measure_sandbox,
    "estimates": measure_estimates,
    "budgets": measure_budgets,
    "executing": measure_executing,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument("--part", action="append", choices=PARTS, help="instead of all; repeatable")
    parser.add_argument("--queries", metavar="N", type=positive, default=100, help="random ones")
    parser.add_argument("--seed", metavar="N", type=int, default=1)


def run(options: argparse.Namespace) -> Report:
    """Measures the parts."""
    report = Report("objectglobe: queries over many providers")
    report.condition("seed", "seed", options.seed)
    for part in options.part or PARTS:
        PARTS[part](report, options)
    return report


OBJECTGLOBE = Benchmark(
    "objectglobe",
    "queries over many providers: how long planning takes, how good iterative planning is",
    add_options,
    ("--queries", "5"),
    run,
)
