"""PaperFigure: a figure of a paper, what it prints and what is measured here; the result of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Points: TypeAlias = "Sequence[tuple[float, float]]"


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """``name``: G or C and the letter of the figure; ``printed``: what the paper's figure shows and
    its text says of it; ``series``: points by label; ``stated``: single numbers by their keys."""

    name: str
    title: str
    x_label: str
    y_label: str
    printed: str
    series: Mapping[str, Points]
    stated: Mapping[str, float] = field(default_factory=dict)

    def to_text(self) -> str:
        """A table: a column for each x, a row for each series."""
        places = sorted({x for points in self.series.values() for x, _ in points})
        width = max(map(len, (self.x_label, *self.series, *self.stated))) + 2
        lines = [f"{self.name}  {self.title}", f"  the paper: {self.printed}"]
        lines.append(_row(self.x_label, width, places))
        for label, points in self.series.items():
            found = dict(points)
            lines.append(_row(label, width, [found.get(place) for place in places]))
        lines += [_row(key, width, [value]) for key, value in self.stated.items()]
        return "\n".join((*lines, f"  ({self.y_label})"))


def _row(label: str, width: int, values: Sequence[float | None]) -> str:
    return f"  {label:<{width}}" + "".join(f"{_shown(value):>11}" for value in values)


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.3g}"


@dataclass(frozen=True, slots=True)
class PaperFigures:
    """The result; ``conditions``: machine, build, options."""

    conditions: Mapping[str, str]
    figures: Sequence[PaperFigure]

    @property
    def good(self) -> bool:
        """What is wrong raises WrongAnswers."""
        return True

    def to_text(self) -> str:
        conditions = "\n".join(f"  {key:<9}{value}" for key, value in self.conditions.items())
        return "\n\n".join(
            (f"graph-figures\n{conditions}", *(figure.to_text() for figure in self.figures))
        )

    def to_json(self) -> dict[str, object]:
        """Each figure's series by its name, single numbers by their own keys."""
        values: dict[str, object] = {"benchmark": "graph-figures", **self.conditions}
        for figure in self.figures:
            values[figure.name] = {
                label: [list(point) for point in points] for label, points in figure.series.items()
            }
            values.update(figure.stated)
        return values
