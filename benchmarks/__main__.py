"""``python -m benchmarks``: the list; ``python -m benchmarks NAME [options]``: one of them.

``python -m benchmarks all`` runs the quick version of each.  With ``--json`` the last line of the
output is one object.  Exit code 0: measured.  1: what was measured is wrong.  2: it could not be
run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from benchmarks.benchmark import Benchmark, BenchmarkError, Result, WrongAnswers
from benchmarks.ceiling.benchmark import CEILING
from benchmarks.crowd import CROWD
from benchmarks.deliver import DELIVER
from benchmarks.formats import FORMATS
from benchmarks.frames import FRAMES_BENCHMARK
from benchmarks.graph.benchmark import GRAPH
from benchmarks.graph_figures import GRAPH_FIGURES
from benchmarks.hour import HOUR
from benchmarks.language import LANGUAGE
from benchmarks.map.benchmark import MAP
from benchmarks.match import MATCH
from benchmarks.metadata.benchmark import METADATA
from benchmarks.network.benchmark import NETWORK
from benchmarks.objectglobe.benchmark import OBJECTGLOBE
from benchmarks.operate import OPERATE
from benchmarks.pep import PEP
from benchmarks.profiles import PROFILES
from benchmarks.results import RESULTS
from benchmarks.routing import ROUTING
from benchmarks.security.benchmark import SECURITY
from benchmarks.setting_up import SETUP
from benchmarks.spark import SPARK
from benchmarks.stores import STORES
from benchmarks.survive.benchmark import SURVIVE
from benchmarks.transformation import TRANSFORMATION

BENCHMARKS: tuple[Benchmark, ...] = (
    MATCH,
    DELIVER,
    NETWORK,
    SECURITY,
    CEILING,
    CROWD,
    FORMATS,
    FRAMES_BENCHMARK,
    GRAPH,
    GRAPH_FIGURES,
    LANGUAGE,
    MAP,
    METADATA,
    OBJECTGLOBE,
    OPERATE,
    PEP,
    PROFILES,
    RESULTS,
    ROUTING,
    SETUP,
    HOUR,
    SPARK,
    STORES,
    SURVIVE,
    TRANSFORMATION,
)

EXIT_GOOD, EXIT_WRONG, EXIT_NOT_RUN = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what the arguments name; gives the exit code."""
    options = _parser().parse_args(arguments)
    if options.benchmark is None:
        print(_listing())
        return EXIT_GOOD
    try:
        if options.benchmark == "all":
            _run_all(options)
        else:
            chosen = next(b for b in BENCHMARKS if b.name == options.benchmark)
            result = chosen.run(options)
            _print(result, options.json)
            return EXIT_GOOD if result.good else EXIT_WRONG
    except WrongAnswers as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return EXIT_WRONG
    except (BenchmarkError, OSError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return EXIT_NOT_RUN
    return EXIT_GOOD


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measures Onyx against named baselines."
    )
    verbs = parser.add_subparsers(dest="benchmark", metavar="NAME")
    for benchmark in BENCHMARKS:
        verb = verbs.add_parser(
            benchmark.name, help=benchmark.summary, description=benchmark.summary
        )
        benchmark.add_options(verb)
        _add_json(verb)
    _add_json(verbs.add_parser("all", help="a quick version of each"))
    return parser


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object, on one line")


def _listing() -> str:
    width = max(len(benchmark.name) for benchmark in BENCHMARKS) + 2
    lines = [f"  {benchmark.name:<{width}}{benchmark.summary}" for benchmark in BENCHMARKS]
    return "\n".join(
        [
            "python -m benchmarks NAME [options]; NAME --help has the options",
            "",
            *lines,
            f"  {'all':<{width}}a quick version of each",
        ]
    )


def _run_all(options: argparse.Namespace) -> None:
    reports = {}
    for benchmark in BENCHMARKS:
        if benchmark.quick is None:
            continue
        report = benchmark.run(_parser().parse_args([benchmark.name, *benchmark.quick]))
        reports[benchmark.name] = report.to_json()
        if not options.json:
            _print(report, as_json=False)
    if options.json:
        print(json.dumps(reports))


def _print(result: Result, as_json: bool) -> None:
    print(json.dumps(result.to_json()) if as_json else result.to_text())


if __name__ == "__main__":
    sys.exit(main())
