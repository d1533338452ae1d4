"""``python -m benchmarks pep``: profiles partitioned by exclusiveness patterns, against others.

The paper's Figure 9, by default; further parts on request: Zipf values, profiles derived from real
messages, the planning job's time and memory, and a network of brokers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks import machine
from benchmarks.benchmark import Benchmark, count, positive
from benchmarks.placement.figure9 import REPEATS, FigureNineResult, measure
from benchmarks.placement.network import SOURCES, SUBJECTS, measure_network
from benchmarks.placement.population import PATTERNS, FigureNine
from benchmarks.placement.real import measure_real
from benchmarks.placement.scaling import measure_job
from benchmarks.report import Report
from onyx.charts import Curve, curves_svg

_NAMES = {"random": "random", "paper": "PEP as in the paper", "pep": "PEP"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parts = parser.add_argument_group("what is measured; Figure 9 if nothing is said")
    parts.add_argument("--figure9", action="store_true", help="uniform values, as the paper")
    parts.add_argument("--zipf", action="store_true", help="Figure 9 with Zipf values")
    parts.add_argument("--data", metavar="DIR", type=Path, help="profiles from real messages")
    parts.add_argument(
        "--scaling",
        metavar="N",
        type=positive,
        nargs="+",
        default=[],
        help="the planning job on Spark from so many profiles as text",
    )
    parts.add_argument("--network", action="store_true", help="link crossings and broker CPU")
    size = parser.add_argument_group("how much")
    size.add_argument("--number", metavar="N", type=positive, default=1_000_000, help="profiles")
    size.add_argument("--partitions", metavar="K", type=positive, default=200)
    size.add_argument("--values", metavar="V", type=positive, default=1_000, help="of each pattern")
    size.add_argument("--messages", metavar="N", type=positive, default=200, help="at each point")
    size.add_argument("--derived", metavar="N", type=positive, default=20_000, help="for --data")
    size.add_argument("--brokers", metavar="N", type=positive, default=50, help="for --network")
    size.add_argument("--hosted", metavar="N", type=positive, default=20_000, help="for --network")
    size.add_argument(
        "--subjects",
        metavar="N",
        type=positive,
        default=SUBJECTS,
        help="for --network: that profiles name, most with one of three quarters as many areas",
    )
    parser.add_argument("--seed", metavar="N", type=count, default=1)
    parser.add_argument("--svg", metavar="FILE", type=Path, help="draw the curves of Figure 9")


def run(options: argparse.Namespace) -> Report:
    """Measures as the options say."""
    report = Report("pep")
    report.condition("machine", "machine", machine.description())
    others = options.zipf or options.data or options.scaling or options.network
    if options.figure9 or not others:
        _tell_figure9(report, options, zipf=False)
    if options.zipf:
        _tell_figure9(report, options, zipf=True)
    if options.data:
        _tell_real(report, options)
    if options.scaling:
        _tell_scaling(report, options)
    if options.network:
        _tell_network(report, options)
    return report


def _tell_figure9(report: Report, options: argparse.Namespace, zipf: bool) -> None:
    mark, title = ("zipf_", "Zipf") if zipf else ("", "uniform")
    _progress(f"Figure 9, {title} values: {options.number:,} profiles")
    figure = FigureNine(options.seed, options.number, options.values, zipf)
    result = measure(figure, options.partitions, options.messages, options.seed, _progress)
    report.condition(
        f"{mark}population",
        f"Figure 9, {title}",
        f"{options.number:,} profiles of two of {PATTERNS} patterns with {options.values:,} values "
        f"each, {options.partitions} partitions, {options.messages} messages a point, "
        f"seed {options.seed}",
    )
    for repeated in (REPEATS[0], REPEATS[-1]):
        place = REPEATS.index(repeated)
        for scheme, name in _NAMES.items():
            report.figure(
                f"{mark}{scheme}_percent_at_{repeated}_repeats",
                f"{name}, {title}, {repeated} repeated",
                result.by_pattern[scheme][place],
                "%",
                f"{mark}random_percent_at_{repeated}_repeats" if scheme != "random" else None,
            )
            report.figure(
                f"{mark}{scheme}_whole_percent_at_{repeated}_repeats",
                f"{name}, {title}, {repeated} repeated, matched in full",
                result.whole[scheme][place],
                "%",
            )
    for scheme, name in _NAMES.items():
        report.figure(
            f"{mark}{scheme}_imbalance",
            f"{name}, {title}, largest / mean",
            result.imbalance[scheme],
        )
    report.figure(f"{mark}patterns", f"{title}, patterns chosen", len(result.plan.rules))
    report.figure(f"{mark}plan_s", f"{title}, planning in memory", result.plan_seconds, "s")
    report.detail(
        f"{mark}curves",
        {"repeats": list(REPEATS)}
        | dict(result.by_pattern)
        | {f"{scheme}_whole": values for scheme, values in result.whole.items()},
    )
    if options.svg and not zipf:
        options.svg.write_text(_picture(result, options))
    if options.svg and zipf:
        options.svg.with_stem(f"{options.svg.stem}-zipf").write_text(_picture(result, options))


def _picture(result: FigureNineResult, options: argparse.Namespace) -> str:
    curves = [
        Curve(name, list(zip(REPEATS, result.by_pattern[scheme], strict=True)))
        for scheme, name in _NAMES.items()
    ]
    curves += [
        Curve(name, list(zip(REPEATS, result.whole[scheme], strict=True)), dashed=True)
        for scheme, name in _NAMES.items()
    ]
    return curves_svg(
        f"Partitions that a message matches, {options.number:,} profiles (dashed: in full)",
        "repeated elements in a message",
        f"of {options.partitions} partitions (%)",
        curves,
    )


def _tell_real(report: Report, options: argparse.Namespace) -> None:
    result = measure_real(
        options.data, options.derived, options.partitions, options.seed, _progress
    )
    report.condition(
        "real_population",
        "derived",
        f"{result.profiles:,} profiles from {options.data.name}, {result.messages:,} messages, "
        f"{options.partitions} partitions",
    )
    report.figure("real_matches", "derived, matches a message", result.matches)
    for scheme, name in _NAMES.items():
        against = "real_random_percent" if scheme != "random" else None
        percent = result.percent[scheme]
        report.figure(f"real_{scheme}_percent", f"{name}, derived, in full", percent, "%", against)
    report.figure("real_predicted_percent", "derived, predicted", result.predicted_percent, "%")
    report.figure("real_patterns", "derived, patterns chosen", result.patterns)
    report.figure("real_coverage", "derived, coverage", result.coverage)
    report.figure("real_imbalance", "PEP, derived, largest / mean", result.imbalance)


def _tell_scaling(report: Report, options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="onyx-pep-") as name:
        for profiles in options.scaling:
            job = measure_job(profiles, options.partitions, options.seed, Path(name), _progress)
            key, label = f"job_{profiles}", f"{profiles:,} profiles"
            report.figure(f"{key}_start_s", f"{label}, Spark started", job.start_s, "s")
            report.figure(f"{key}_plan_s", f"{label}, text to assignment", job.plan_s, "s")
            report.figure(f"{key}_s", f"{label}, in all", job.start_s + job.plan_s, "s")
            report.figure(f"{key}_cpu_s", f"{label}, CPU of all processes", job.cpu_s, "s")
            report.figure(f"{key}_memory_mb", f"{label}, memory", job.memory_mb, "MB")
            report.figure(f"{key}_imbalance", f"{label}, largest / mean", job.imbalance)


def _tell_network(report: Report, options: argparse.Namespace) -> None:
    result = measure_network(
        options.brokers,
        options.hosted,
        options.subjects,
        options.messages,
        options.seed,
        _progress,
    )
    report.condition(
        "network",
        "network",
        f"{options.brokers} brokers, {options.hosted:,} profiles on one of {options.subjects} "
        "subjects, most of an area as well, "
        f"{options.messages} messages of {SOURCES} sources",
    )
    report.figure("network_matches", "network, matches a message", result.matches)
    report.figure("flooding_crossings", "links of a tree", result.flooding)
    for name in ("random", "location", "pep"):
        report.figure(
            f"{name}_crossings",
            f"{name}, links crossed",
            result.crossings[name],
            against="random_crossings" if name != "random" else None,
        )
    for name in ("random", "location", "pep"):
        report.figure(
            f"{name}_cpu_us",
            f"{name}, processor time of all brokers",
            result.cpu_us[name],
            "us",
            "random_cpu_us" if name != "random" else None,
        )
    report.remark(
        "network: the brokers' own cores in one process, every frame encoded and acknowledged; "
        "without sockets and disks"
    )


def _progress(text: str) -> None:
    print(f"pep: {text}", file=sys.stderr)


PEP = Benchmark(
    "pep",
    "partitions that a message visits, by how profiles are placed (Figure 9)",
    add_options,
    ("--number", "20000", "--messages", "20", "--network", "--hosted", "500", "--figure9"),
    run,
)
