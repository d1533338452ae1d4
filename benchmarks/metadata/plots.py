"""Figures 11 to 15 of the paper on MDV, as measured here, in one picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from onyx.charts import HEIGHT, WIDTH, Curve, curves_svg

Costs: TypeAlias = Mapping[str, Sequence[tuple[float, float]]]
"""By curve: microseconds of a document, by batch size or share."""

_TITLES = {
    "oid": "Figure 11: OID rules",
    "path": "Figure 12: PATH rules",
    "comp": "Figure 13: COMP rules, a tenth of which match",
    "join": "Figure 14: JOIN rules",
    "shares": "Figure 15: COMP rules by the share that match",
}
_COLUMNS = 2


def picture(figures: Mapping[str, Costs]) -> str:
    """As SVG; ``figures`` by kind of rules, and "shares"."""
    panels = []
    for at, (kind, title) in enumerate(_TITLES.items()):
        x_label = "documents of a batch" if kind != "shares" else "rules that match (%)"
        curves = [Curve(name, points) for name, points in figures[kind].items()]
        panel = curves_svg(title, x_label, "a document (us)", curves)
        x, y = at % _COLUMNS * WIDTH, at // _COLUMNS * HEIGHT
        panels.append(panel.replace("<svg ", f'<svg x="{x}" y="{y}" ', 1))
    width, height = _COLUMNS * WIDTH, -(-len(_TITLES) // _COLUMNS) * HEIGHT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">\n{"".join(panels)}</svg>\n'
    )
