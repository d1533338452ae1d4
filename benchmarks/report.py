"""Report: what a benchmark has measured, as a table for people and as one object for programs.

::

    match: 1,000 profiles ...
                                      value            against
      lxml parses (U)                92.1 us
      all-in                         55.0 us    0.60 x lxml parses (U)

Every figure has a key, under which it stands in the object; the ratio of a figure to the one it is
measured against stands under ``ratios``: ``{"all_in_us": {"to": "lxml_parse_us", "is": 0.6}}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Value = float | int | str | bool | None


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table; ``against`` is the key of an earlier figure in the same unit."""

    key: str
    label: str
    value: float | None
    unit: str
    against: str | None


class Report:
    """Figures in the order in which they were told, what they were measured on, and remarks."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._conditions: dict[str, tuple[str, Value]] = {}
        self._figures: dict[str, Figure] = {}
        self._details: dict[str, dict[str, object]] = {}
        self._remarks: list[str] = []

    @property
    def good(self) -> bool:
        """A benchmark whose answers are wrong raises WrongAnswers instead of reporting."""
        return True

    def condition(self, key: str, label: str, value: Value) -> None:
        """What the figures hold for: the machine, the build, an option."""
        self._new(key)
        self._conditions[key] = (label, value)

    def figure(
        self, key: str, label: str, value: float | None, unit: str = "", against: str | None = None
    ) -> None:
        """Something measured (None: could not be), and the figure it is to be compared with."""
        self._new(key)
        if against is not None and self._figures[against].unit != unit:
            raise ValueError(f"{key} is in {unit!r}, {against} is not")
        self._figures[key] = Figure(key, label, value, unit, against)

    def detail(self, key: str, values: Mapping[str, object]) -> None:
        """For programs only."""
        self._new(key)
        self._details[key] = dict(values)

    def remark(self, text: str) -> None:
        """A sentence below the table: what is extrapolated, what was left out."""
        self._remarks.append(text)

    def value(self, key: str) -> float | None:
        """What was measured under a key; None if nothing was."""
        figure = self._figures.get(key)
        return figure.value if figure else None

    def ratio(self, key: str) -> float | None:
        """The figure divided by the one it is measured against; None if there is no such number."""
        figure = self._figures[key]
        if figure.against is None or figure.value is None:
            return None
        base = self._figures[figure.against].value
        return figure.value / base if base else None

    def to_json(self) -> dict[str, object]:
        """Every figure and condition under its key; ``ratios`` and ``remarks`` beside them."""
        values: dict[str, object] = {"benchmark": self.title}
        values.update({key: value for key, (_, value) in self._conditions.items()})
        values.update({key: _rounded(figure.value) for key, figure in self._figures.items()})
        values.update(self._details)
        values["ratios"] = {
            key: {"to": figure.against, "is": _rounded(self.ratio(key))}
            for key, figure in self._figures.items()
            if figure.against is not None
        }
        values["remarks"] = list(self._remarks)
        return values

    def to_text(self) -> str:
        """The table."""
        width = max((len(label) for label, _ in self._labels()), default=0) + 2
        lines = [self.title]
        for label, value in self._conditions.values():
            lines.append(f"  {label:<{width}}{_shown(value)}")
        lines.append("")
        for figure in self._figures.values():
            lines.append(f"  {figure.label:<{width}}{self._right(figure)}".rstrip())
        lines.extend(f"  * {remark}" for remark in self._remarks)
        return "\n".join(lines)

    def _labels(self) -> list[tuple[str, object]]:
        return [*self._conditions.values(), *((f.label, f) for f in self._figures.values())]

    def _right(self, figure: Figure) -> str:
        value = f"{_number(figure.value):>14} {figure.unit:<6}"
        ratio = self.ratio(figure.key)
        if ratio is None or figure.against is None:
            return value
        return f"{value} {_number(ratio):>10} x {self._figures[figure.against].label}"

    def _new(self, key: str) -> None:
        if key in self._figures or key in self._conditions or key in self._details:
            raise ValueError(f"{key} is there already")


def _rounded(value: float | None) -> float | None:
    """Five significant digits: the rest is noise."""
    if value is None or isinstance(value, int):
        return value
    return float(f"{value:.5g}")


def _shown(value: Value) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
