"""Pictures of the papers' figures as measured: one of each paper, a panel for each figure."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Any

from benchmarks.benchmark import BenchmarkError
from benchmarks.graph.paper_figure import PaperFigure

_COLUMNS = 4
_PAPERS = {"G": "graph-figures-2005", "C": "graph-figures-2008"}


def draw(figures: Sequence[PaperFigure], directory: Path) -> list[Path]:
    """Writes a PNG for each paper with a figure; returns the files.

    BenchmarkError where matplotlib (the extra ``plots``) is not installed.
    """
    try:
        from matplotlib import pyplot  # noqa: PLC0415 - only whoever draws needs it
    except ImportError:
        raise BenchmarkError(
            "pictures need matplotlib: pip install 'onyx-dissemination[plots]'"
        ) from None
    pyplot.switch_backend("Agg")
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for paper, name in _PAPERS.items():
        chosen = [figure for figure in figures if figure.name.startswith(paper)]
        if chosen:
            path = directory / f"{name}.png"
            picture = _picture(pyplot, chosen)
            picture.savefig(path, dpi=80)
            pyplot.close(picture)
            written.append(path)
    return written


def _picture(pyplot: Any, figures: Sequence[PaperFigure]) -> Any:
    columns = min(_COLUMNS, len(figures))
    rows = ceil(len(figures) / columns)
    picture, grid = pyplot.subplots(
        rows, columns, figsize=(3.8 * columns, 3.2 * rows), layout="constrained", squeeze=False
    )
    panels = list(grid.flat)
    for axes, figure in zip(panels, figures, strict=False):
        for label, points in figure.series.items():
            axes.plot(*zip(*points, strict=True), marker="o", markersize=4, label=label)
        axes.set_title(f"{figure.name}: {figure.title}", fontsize=8)
        axes.set_xlabel(figure.x_label, fontsize=8)
        axes.set_ylabel(figure.y_label, fontsize=8)
        axes.tick_params(labelsize=7)
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", alpha=0.3)
        if len(figure.series) > 1:
            axes.legend(fontsize=7, frameon=False)
    for axes in panels[len(figures) :]:
        axes.set_axis_off()
    return picture
