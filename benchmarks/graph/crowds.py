"""Profiles that are alike: what their number takes, and what passes for nothing where merged.

What ``crowd`` and ``graph-figures`` measure, for the keys of ``graph``.
"""

from __future__ import annotations

import argparse

from benchmarks import crowd
from benchmarks.graph.cluster_figures import merging, one_structure
from benchmarks.graph.figure_sizes import Sizes
from benchmarks.report import Report


def measure_crowd(report: Report, options: argparse.Namespace) -> None:
    """Adds ``range_growth``, ``range_growth_one_edge`` and ``range_growth_xml``, the worst of
    crowd's shapes: what most profiles take over what fewest do, of which as many match."""
    fewest, most = options.crowd
    sizes = Sizes(crowd=(fewest, most), rounds=options.rounds, seed=options.seed)
    of = f"{most:,} of one structure / {fewest:,}"
    for figure in one_structure(sizes):
        for key, growth in figure.stated.items():
            report.figure(key, f"{of}, {key}", growth)
    documents = crowd.run(argparse.Namespace(profiles=[fewest, most], rounds=20 * options.rounds))
    growths = [documents.ratio(f"{shape}_{most}_us") or 1.0 for shape in crowd.SHAPES]
    report.figure("range_growth_xml", f"{of}, XML, the worst shape", max(growths))


def measure_merging(report: Report, options: argparse.Namespace) -> None:
    """Adds ``useless_pairs_percent`` and what else the figures of merging state."""
    for figure in merging(Sizes(scale=options.merged_scale, seed=options.seed)):
        for key, value in figure.stated.items():
            report.figure(key, f"{figure.title}: {key}", value, "%")
