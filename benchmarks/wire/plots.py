"""Pictures of what ``formats`` measured, as PNG and SVG: Figures 7 and 8 of the paper; folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.benchmark import BenchmarkError

_FORMATS = {
    "text": ("text", "#4d4d4d", "-"),
    "text+zstd": ("text, zstd", "#4d4d4d", "--"),
    "binary": ("binary", "#1f77b4", "-"),
    "binary+zstd": ("binary, zstd", "#1f77b4", "--"),
    "dictionary": ("dictionary", "#d62728", "-"),
    "dictionary+zstd": ("dictionary, zstd", "#d62728", "--"),
}
_BESIDE = {
    "gzip of the text": ("gzip of the text", "#b8b8b8"),
    "msgpack of a tree": ("msgpack of a tree", "#8c8c8c"),
    "EXI": ("EXI", "#c5b0d5"),
    "EXI compressed": ("EXI, compressed", "#9467bd"),
    "binary": ("binary", "#1f77b4"),
    "binary+zstd": ("binary, zstd", "#9ecae1"),
    "dictionary": ("dictionary", "#d62728"),
    "dictionary+zstd": ("dictionary, zstd", "#ff9896"),
}
_Rows = Mapping[str, Mapping[str, Any]]


def draw(values: Mapping[str, Any], directory: Path) -> list[Path]:
    """Writes ``formats-news`` and, if there are folders, ``formats-folders``; returns the files.

    BenchmarkError where matplotlib (the extra ``plots``) is not installed.
    """
    try:
        from matplotlib import pyplot  # noqa: PLC0415 - only whoever draws needs it
    except ImportError:
        raise BenchmarkError(
            "pictures need matplotlib: pip install 'onyx-dissemination[plots]'"
        ) from None
    pyplot.switch_backend("Agg")
    pyplot.rcParams["svg.hashsalt"] = "onyx"  # the same picture for the same figures
    directory.mkdir(parents=True, exist_ok=True)
    pictures = {"formats-news": _news(pyplot, values["news"])}
    if values["folders"]:
        pictures["formats-folders"] = _folders(pyplot, values["folders"])
    written = []
    for name, figure in pictures.items():
        for suffix in ("png", "svg"):
            path = directory / f"{name}.{suffix}"
            figure.savefig(path, dpi=110, metadata={"Date": None} if suffix == "svg" else None)
            written.append(path)
        pyplot.close(figure)
    return written


def _news(pyplot: Any, news: _Rows) -> Any:
    figure, (sizes, delays) = pyplot.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    complexities = list(news)
    for name, (label, color, style) in _FORMATS.items():
        line = {"color": color, "linestyle": style, "marker": "o", "markersize": 4, "label": label}
        sizes.plot(complexities, [row["bytes"][name] for row in news.values()], **line)
        both = [row["encode_us"][name] + row["decode_us"][name] for row in news.values()]
        delays.plot(complexities, both, **line)
    gzipped = [row["bytes"]["gzip of the text"] for row in news.values()]
    sizes.plot(complexities, gzipped, color="#2ca02c", linestyle=":", label="gzip of the text")
    expat = [row["expat_events_us"] for row in news.values()]
    delays.plot(
        complexities, expat, color="#2ca02c", linestyle=":", label="expat with Python handlers"
    )
    sizes.set(title="Wire size (Figure 7)", ylabel="bytes a message, mean")
    delays.set(title="Processing delay (Figure 8)", ylabel="encoding and decoding, µs CPU")
    for axes in (sizes, delays):
        axes.set_xlabel("message complexity (document depth - most repeats)")
        axes.set_ylim(bottom=0)
        axes.grid(axis="y", alpha=0.3)
        axes.legend(fontsize=8, frameon=False)
    return figure


def _folders(pyplot: Any, folders: _Rows) -> Any:
    figure, axes = pyplot.subplots(figsize=(11, 4.2), layout="constrained")
    width = 0.8 / len(_BESIDE)
    for place, (name, (label, color)) in enumerate(_BESIDE.items()):
        shown = [
            (number + place * width - 0.4 + width / 2, row["bytes"][name] / row["bytes"]["text"])
            for number, row in enumerate(folders.values())
            if row["schema"] or not name.startswith("dictionary")
        ]
        if shown:
            axes.bar(*zip(*shown, strict=True), width, color=color, label=label)
    axes.axhline(1, color="#4d4d4d", linewidth=0.8)
    labels = [f"{name}\n{row['bytes']['text']:,.0f} bytes" for name, row in folders.items()]
    axes.set_xticks(range(len(folders)), labels)
    axes.set(
        title="Messages of others: size by folder (dictionary: where there is a schema)",
        ylabel="bytes over those of the text",
        xlabel="folder, and the mean size of its messages as text",
    )
    axes.legend(fontsize=8, frameon=False, ncols=len(_BESIDE), loc="upper center")
    axes.set_ylim(0, max(1.25, axes.get_ylim()[1] * 1.1))
    return figure
