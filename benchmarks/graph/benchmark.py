"""``python -m benchmarks graph``: graphs as messages, in P, what pyoxigraph takes to read them."""

from __future__ import annotations

import argparse

from benchmarks import machine
from benchmarks.benchmark import Benchmark, positive
from benchmarks.graph.matching import measure_matching
from benchmarks.graph.network import measure_network
from benchmarks.graph.profiles import measure_profiles
from benchmarks.graph.rdf_xml import measure_rdf_xml
from benchmarks.graph.reading import measure_reading
from benchmarks.graph.results import measure_results
from benchmarks.report import Report
from formats.build import build_info

# Each adds its figures to the report.
PARTS = {
    "reading": measure_reading,
    "rdf_xml": measure_rdf_xml,
    "matching": measure_matching,
    "results": measure_results,
    "network": measure_network,
    "profiles": measure_profiles,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument(
        "--part", choices=PARTS, nargs="+", default=list(PARTS), help="(default: all)"
    )
    parser.add_argument(
        "--messages", metavar="N", type=positive, default=300, help="(default: 300)"
    )
    parser.add_argument(
        "--matched",
        metavar="N",
        type=positive,
        nargs="+",
        default=[10_000, 100_000],
        help="profiles that messages are matched with (default: 10,000 100,000)",
    )
    parser.add_argument(
        "--rounds", metavar="N", type=positive, default=5, help="the quickest counts (default: 5)"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=1)


def run(options: argparse.Namespace) -> Report:
    """Measures; raises WrongAnswers where a graph is not read as pyoxigraph reads it."""
    report = Report("graph: RDF graphs as messages")
    report.condition("machine", "machine", machine.description())
    report.condition("build", "build", build_info())
    for part in options.part:
        PARTS[part](report, options)
    report.remark("P is pyoxigraph's list of a message's triples, from Turtle, in the same run")
    return report


GRAPH = Benchmark(
    name="graph",
    summary="graphs as messages: reading them, profiles matched, results, from source to user",
    add_options=add_options,
    quick=("--messages", "20", "--rounds", "2", "--matched", "2000"),
    run=run,
)
