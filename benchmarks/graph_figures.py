"""``python -m benchmarks graph-figures``: the figures of the papers on filtering graphs, measured.

G: Petrovic, Liu, Jacobsen, WWW 2005.  C: Liu, Petrovic, Jacobsen, WWW 2008.  Both print shapes on
machines of their time; ours stand beside what they say of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from benchmarks import machine
from benchmarks.benchmark import Benchmark, positive, share
from benchmarks.graph import cluster_figures, topss_figures
from benchmarks.graph.figure_plots import draw
from benchmarks.graph.figure_sizes import Sizes
from benchmarks.graph.paper_figure import PaperFigure, PaperFigures
from formats.kernel import build_info

_MEASURED: dict[tuple[str, ...], Callable[[Sizes], list[PaperFigure]]] = {
    ("G9a",): topss_figures.memory_by_subscriptions,
    ("G9b",): topss_figures.time_by_subscriptions,
    ("G9c", "G9d"): topss_figures.memory_by_overlap_and_size,
    ("G9e",): topss_figures.time_by_size,
    ("G9f",): topss_figures.time_by_matches,
    ("G9g", "G9h"): topss_figures.variables_everywhere,
    ("C9a",): cluster_figures.index_look_up,
    ("C9b",): cluster_figures.one_structure,
    ("C9c", "C9d", "C9f"): cluster_figures.containment,
    ("C9e", "C9g", "C9h"): cluster_figures.merging,
}
_NAMES = sorted(name for names in _MEASURED for name in names)
_QUICK_SCALE, _QUICK_CROWD = 0.002, (100, 400)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options of the benchmark."""
    parser.add_argument(
        "--figure", choices=_NAMES, nargs="+", default=_NAMES, help="(default: all)"
    )
    parser.add_argument(
        "--scale",
        metavar="SHARE",
        type=share,
        default=0.1,
        help="of the papers' numbers of subscriptions (default: 0.1)",
    )
    parser.add_argument(
        "--crowd",
        metavar="N",
        type=positive,
        nargs="+",
        default=[1_000, 10_000, 100_000],
        help="subscriptions of one structure, C9b (default: 1,000 10,000 100,000)",
    )
    parser.add_argument(
        "--rounds", metavar="N", type=positive, default=5, help="the median counts (default: 5)"
    )
    parser.add_argument("--quick", action="store_true", help="few subscriptions, to see it run")
    parser.add_argument(
        "--plots", metavar="DIR", type=Path, help="directory to write pictures to, as PNG"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=1)


def run(options: argparse.Namespace) -> PaperFigures:
    """Measures; raises WrongAnswers where others match than pyoxigraph finds."""
    sizes = Sizes(options.scale, tuple(options.crowd), options.rounds, seed=options.seed)
    if options.quick:
        sizes = Sizes(_QUICK_SCALE, _QUICK_CROWD, 1, 20, options.seed)
    chosen = set(options.figure)
    figures = [
        figure
        for names, measure in _MEASURED.items()
        if chosen.intersection(names)
        for figure in measure(sizes)
        if figure.name in chosen
    ]
    if options.plots is not None:
        draw(figures, options.plots)
    conditions = {
        "machine": machine.description(),
        "build": build_info(),
        "scale": f"{sizes.scale:g} of the papers' subscriptions, seed {sizes.seed}",
    }
    return PaperFigures(conditions, figures)


GRAPH_FIGURES = Benchmark(
    name="graph-figures",
    summary="the figures of the papers on filtering graphs, ours beside what they print",
    add_options=add_options,
    quick=("--quick",),
    run=run,
)
