"""Charts as SVG text without references to anything outside: curves, and columns.

Light or dark as the reader's system is.  A chart draws its data only; nothing is fitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 56, 52
COLOURS = ("#0b6e99", "#c2410c", "#4d7c0f", "#7e22ce", "#b45309", "#0f766e")

STYLE = """
text { font: 12px "Inter", "Segoe UI", "Helvetica Neue", "DejaVu Sans", Arial, sans-serif; }
.paper { fill: #ffffff; }
.title { font-size: 16px; font-weight: 600; fill: #17202b; }
.label { fill: #3d4a59; }
.grid { stroke: #e3e9ef; }
.axis { stroke: #8fa1b5; }
.curve { fill: none; stroke-width: 2; }
.mean { stroke: #c2410c; stroke-dasharray: 5 4; }
@media (prefers-color-scheme: dark) {
.paper { fill: #10161d; }
.title { fill: #e8eef5; }
.label { fill: #c2cdd9; }
.grid { stroke: #2b3643; }
.axis { stroke: #5c6f84; }
}
"""


@dataclass(frozen=True, slots=True)
class Curve:
    """``points``: (x, y), by x.  A ``dashed`` curve has the colour of the solid one of its name."""

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


def curves_svg(
    title: str,
    x_label: str,
    y_label: str,
    curves: Sequence[Curve],
    *,
    is_bare: bool = False,
    x_max: float = 1.0,
) -> str:
    """Curves over one pair of axes that start at 0; ``is_bare``: without points and style, for a
    page that has it."""
    plane = _Plane(
        max((x for curve in curves for x, _ in curve.points), default=x_max),
        max((y for curve in curves for _, y in curve.points), default=1.0),
    )
    parts = [*_frame(title, x_label, y_label), *plane.grid(x_ticks=True)]
    for curve in curves:
        colour = _colour(curve, curves)
        points = " ".join(f"{plane.x(x):.1f},{plane.y(y):.1f}" for x, y in curve.points)
        dashes = ' stroke-dasharray="6 4"' if curve.dashed else ""
        parts.append(f'<polyline class="curve" stroke="{colour}"{dashes} points="{points}"/>')
        parts += (
            []
            if is_bare
            else [
                f'<circle cx="{plane.x(x):.1f}" cy="{plane.y(y):.1f}" r="2.6" fill="{colour}"/>'
                for x, y in curve.points
            ]
        )
    parts += _legend(curves)
    return _document(parts, title, is_bare=is_bare)


def columns_svg(title: str, x_label: str, y_label: str, values: Sequence[float]) -> str:
    """A column for each value, and a dashed line at their mean."""
    plane = _Plane(max(len(values), 1), max(values, default=1.0))
    parts = [*_frame(title, x_label, y_label), *plane.grid(x_ticks=False)]
    width = plane.x(1) - plane.x(0)
    for place, value in enumerate(values):
        top = plane.y(value)
        parts.append(
            f'<rect x="{plane.x(place) + width * 0.1:.2f}" y="{top:.2f}" width="{width * 0.8:.2f}" '
            f'height="{HEIGHT - BOTTOM - top:.2f}" fill="{COLOURS[0]}"/>'
        )
    if values:
        mean = plane.y(sum(values) / len(values))
        parts.append(
            f'<line class="mean" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{mean:.1f}" y2="{mean:.1f}"/>'
        )
    return _document(parts, title)


class _Plane:
    """Data to places on the picture."""

    def __init__(self, x_max: float, y_max: float) -> None:
        self._x_max = x_max or 1.0
        self._step = _round_step((y_max or 1.0) / 5)
        self._y_max = self._step * ceil((y_max or 1.0) / self._step - 1e-9)

    def x(self, value: float) -> float:
        return LEFT + value / self._x_max * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - value / self._y_max * (HEIGHT - TOP - BOTTOM)

    def grid(self, x_ticks: bool) -> Iterator[str]:
        for number in range(round(self._y_max / self._step) + 1):
            value = number * self._step
            y = self.y(value)
            kind = "grid" if number else "axis"
            yield f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
            yield (
                f'<text class="label" text-anchor="end" x="{LEFT - 8}" y="{y + 4}">'
                f"{value:,.10g}</text>"
            )
        step = _round_step(self._x_max / 6)
        for number in range(floor(self._x_max / step) + 1):
            x = self.x(number * step)
            yield (
                f'<text class="label" text-anchor="middle" x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}">'
                f"{number * step:,.10g}</text>"
            )
            if x_ticks and number:
                yield f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'


def _round_step(rough: float) -> float:
    """1, 2 or 5 times a power of ten, not below ``rough``."""
    power = 10.0 ** floor(log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)


def _frame(title: str, x_label: str, y_label: str) -> Iterator[str]:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    yield f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="8"/>'
    yield f'<text class="title" x="{LEFT}" y="24">{escape(title)}</text>'
    yield (
        f'<text class="label" text-anchor="middle" x="{(LEFT + WIDTH - RIGHT) / 2}" '
        f'y="{HEIGHT - 12}">{escape(x_label)}</text>'
    )
    yield (
        f'<text class="label" text-anchor="middle" transform="translate(16 {middle}) rotate(-90)">'
        f"{escape(y_label)}</text>"
    )


def _legend(curves: Sequence[Curve]) -> Iterator[str]:
    x = float(LEFT)
    for curve in {curve.name: curve for curve in curves if not curve.dashed}.values():
        colour = _colour(curve, curves)
        yield f'<rect x="{x}" y="36" width="12" height="4" rx="2" fill="{colour}"/>'
        yield f'<text class="label" x="{x + 17}" y="42">{escape(curve.name)}</text>'
        x += 36 + 6.6 * len(curve.name)


def _colour(curve: Curve, curves: Sequence[Curve]) -> str:
    names = list(dict.fromkeys(other.name for other in curves))
    return COLOURS[names.index(curve.name) % len(COLOURS)]


def _document(parts: Sequence[str], title: str, *, is_bare: bool = False) -> str:
    body, style = "\n".join(parts), "" if is_bare else f"<style>{STYLE}</style>\n"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{escape(title)}">\n'
        f"{style}{body}\n</svg>\n"
    )
