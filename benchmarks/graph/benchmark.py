"""``python -m benchmarks graph``: graphs as messages, in P, what pyoxigraph takes to read them."""

from __future__ import annotations

import argparse

from benchmarks.benchmark import Benchmark, positive, share
from benchmarks.graph.classes import measure_classes
from benchmarks.graph.crossings import measure_crossings
from benchmarks.graph.crowds import measure_crowd, measure_merging
from benchmarks.graph.matching import measure_matching
from benchmarks.graph.network import measure_network
from benchmarks.graph.profiles import measure_profiles
from benchmarks.graph.rdf_xml import measure_rdf_xml
from benchmarks.graph.reading import measure_reading
from benchmarks.graph.results import measure_results
from benchmarks.parts import add_part_option, run_parts
from benchmarks.report import Report

# Each adds its figures to the report.
PARTS = {
    "reading": measure_reading,
    "rdf_xml": measure_rdf_xml,
    "matching": measure_matching,
    "results": measure_results,
    "network": measure_network,
    "profiles": measure_profiles,
    "classes": measure_classes,
    "crowd": measure_crowd,
    "merging": measure_merging,
    "crossings": measure_crossings,
}
# What the project promises of graphs; always there, without a value where it was not measured.
_PROMISED = (
    "root_over_p",
    "all_in_10k_p",
    "all_in_100k_p",
    "all_in_1m_p",
    "ask_loop_ratio_100k",
    "range_growth",
    "range_growth_xml",
    "add_ms",
    "remove_ms",
    "bytes_per_profile",
    "useless_pairs_percent",
    "crossings_over_optimum_budget",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    add_part_option(parser, PARTS)
    parser.add_argument(
        "--messages", metavar="N", type=positive, default=300, help="(default: 300)"
    )
    parser.add_argument(
        "--matched",
        metavar="N",
        type=positive,
        nargs="+",
        default=[10_000, 100_000],
        help="profiles that messages are matched with; 1,000,000 take ten minutes and some GB "
        "(default: 10,000 100,000)",
    )
    parser.add_argument(
        "--star-triples",
        metavar="N",
        type=int,
        choices=(1, 2, 3),
        default=1,
        help="each star of those has at least so many; with 2 a message matches 0.1 %% "
        "(default: 1)",
    )
    parser.add_argument(
        "--classed",
        metavar="N",
        type=positive,
        default=10_000,
        help="profiles that ask for classes (default: 10,000)",
    )
    parser.add_argument(
        "--crowd",
        metavar="N",
        type=positive,
        nargs=2,
        default=[1_000, 100_000],
        help="profiles of one structure, fewest and most (default: 1,000 100,000)",
    )
    parser.add_argument(
        "--merged-scale",
        metavar="SHARE",
        type=share,
        default=0.1,
        help="of the 10,000 subscriptions of which most are merged (default: 0.1)",
    )
    parser.add_argument(
        "--hosted",
        metavar="N",
        type=positive,
        default=100,
        help="profiles at each of the 15 brokers whose crossings are counted (default: 100)",
    )
    parser.add_argument(
        "--rounds", metavar="N", type=positive, default=5, help="the quickest counts (default: 5)"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=1)


def run(options: argparse.Namespace) -> Report:
    """Measures; raises WrongAnswers where a graph is not read as pyoxigraph reads it."""
    report = run_parts("graph: RDF graphs as messages", PARTS, _PROMISED, options)
    report.remark("P is pyoxigraph's list of a message's triples, from Turtle, in the same run")
    return report


GRAPH = Benchmark(
    name="graph",
    summary="graphs as messages: reading them, profiles matched, results, from source to user",
    add_options=add_options,
    quick=(
        *("--messages", "20", "--rounds", "2", "--matched", "2000", "--crowd", "100", "400"),
        *("--merged-scale", "0.005", "--hosted", "10", "--classed", "500"),
    ),
    run=run,
)
