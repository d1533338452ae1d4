"""``python -m benchmarks survive``: what faults cost, in real networks of processes."""

from __future__ import annotations

import argparse

from benchmarks.benchmark import Benchmark, positive
from benchmarks.parts import add_part_option, run_parts
from benchmarks.report import Report
from benchmarks.survive.chaos import measure_chaos
from benchmarks.survive.dead import measure_dead
from benchmarks.survive.disks import measure_disks
from benchmarks.survive.publisher import measure_publisher
from benchmarks.survive.rebuild import measure_rebuild
from benchmarks.survive.takeover import measure_takeover
from benchmarks.survive.upgrade import measure_upgrade

# Each adds its figures to the report.
PARTS = {
    "chaos": measure_chaos,
    "disks": measure_disks,
    "dead": measure_dead,
    "takeover": measure_takeover,
    "upgrade": measure_upgrade,
    "publisher": measure_publisher,
    "rebuild": measure_rebuild,
}
# What the project promises; always there, without a value where it was not measured.
_PROMISED = (
    "lost",
    "doubled",
    "disordered",
    "takeover_p99_s",
    "detected_s",
    "others_p99_ratio",
    "publisher_crash_doubles",
    "upgrade_p99_s",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    add_part_option(parser, PARTS)
    parser.add_argument(
        "--seconds", metavar="N", type=positive, default=60, help="of chaos (default: 60)"
    )
    parser.add_argument(
        "--messages",
        metavar="N",
        type=positive,
        default=0,
        help="the chaos goes on until so many are acknowledged (default: 0)",
    )
    parser.add_argument(
        "--rate",
        metavar="N",
        type=positive,
        default=1_000,
        help="messages a second that are published in the chaos (default: 1,000)",
    )
    parser.add_argument(
        "--dead-seconds",
        metavar="N",
        type=positive,
        default=10,
        help="that a broker is dead (default: 10; 600 are promised)",
    )
    parser.add_argument(
        "--kills", metavar="N", type=positive, default=20, help="of each publisher (default: 20)"
    )
    parser.add_argument(
        "--profiles",
        metavar="N",
        type=positive,
        default=20_000,
        help="of the catalog that is rebuilt (default: 20,000)",
    )
    parser.add_argument("--seed", metavar="N", type=int, default=1)


def run(options: argparse.Namespace) -> Report:
    """Measures; the result is not good where anything was lost, doubled or out of order."""
    return run_parts(
        "survive: faults of processes, connections and disks", PARTS, _PROMISED, options
    )


SURVIVE = Benchmark(
    "survive",
    "what is lost, doubled or late while processes, connections and disks fail",
    add_options,
    (
        *("--part", "chaos", "publisher", "rebuild", "--seconds", "4", "--rate", "200"),
        *("--kills", "1", "--profiles", "100"),
    ),
    run,
)
