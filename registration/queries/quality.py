"""Quality: the limits that a user gives with a query (ObjectGlobe, 2.3), hard or soft.

The optimiser plans within them, and ``checked`` holds its plan to them before a byte is read.  A
hard limit that an estimate is beyond refuses the query; a soft one is told with the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from math import inf, isnan
from typing import NamedTuple

from formats.errors import Fault, Refusal
from registration.queries.providers import Function, Relation
from registration.queries.query_plan import Figures, Fragment, PlanNode, Scan
from registration.queries.refusals import QueryRefused, did_you_mean

_YES = ("yes", "true", "1")
_NO = ("no", "false", "0")
_OF_FIGURES = {
    "rows_min": "rows", "rows_max": "rows", "cost": "cost", "first_row_s": "first_row_s",
    "seconds": "seconds",
}  # fmt: skip
"""Limits on figures of a plan."""


class Violation(NamedTuple):
    """An estimate, or a figure, that is beyond a limit; ``by_relation``: names of relations, each
    with its own part, the largest first."""

    name: str
    limit: float
    estimate: float
    is_soft: bool
    by_relation: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        side = "least" if self.name == "rows_min" else "most"
        of = ", ".join(f"{name} {_shown(part)}" for name, part in self.by_relation)
        said = f"{self.name} would be {_shown(self.estimate)}, at {side} {_shown(self.limit)}"
        return f"{said} ({of})" if of else said


@dataclass(frozen=True, slots=True)
class Quality:
    """``rows_min``, ``rows_max``: of the answer; ``share``, above 0 and up to 1: so much of the
    bytes of each relation is read; ``age_s``: seconds since a relation was refreshed; ``cost``:
    money; ``first_row_s`` and ``seconds``: to the first and to the last row; ``certified``:
    functions with a validation report alone.  None: no limit.  ``soft``: names of limits that may
    be passed."""

    rows_min: float | None = None
    rows_max: float | None = None
    share: float | None = None
    age_s: float | None = None
    cost: float | None = None
    first_row_s: float | None = None
    seconds: float | None = None
    certified: bool = False
    soft: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refusal ``bad-limit``."""
        for name, limit in self.limits().items():
            if isnan(limit) or limit < 0 or (name == "share" and not 0 < limit <= 1):
                raise _bad(f"{name} {limit:g} is no limit", "a number of at least 0")
        if (self.rows_min or 0) > (inf if self.rows_max is None else self.rows_max):
            raise _bad("rows_min is more than rows_max", "rows_min up to rows_max")
        for name in self.soft:
            if name not in LIMITS:
                raise _unknown(name)

    @classmethod
    def parse(cls, hard: Iterable[str] = (), soft: Iterable[str] = ()) -> Quality:
        """Of texts ``NAME=VALUE``; Refusal ``bad-limit``."""
        found: dict[str, float | bool] = {}
        softened: list[str] = []
        for texts, names in ((hard, []), (soft, softened)):
            for text in texts:
                name, sign, value = text.partition("=")
                if name not in LIMITS:
                    raise _unknown(name)
                if not sign or name in found:
                    raise _bad(f"{text!r} is no limit, or a second one", "NAME=VALUE, each once")
                found[name] = _truth(value) if name == "certified" else _number(text, value)
                names.append(name)
        return cls(**found, soft=tuple(softened))  # type: ignore[arg-type]

    def limits(self) -> dict[str, float]:
        """Those that are numbers and are given."""
        found = {name: getattr(self, name) for name in LIMITS if name != "certified"}
        return {name: limit for name, limit in found.items() if limit is not None}

    @property
    def is_certified(self) -> bool:
        """Whether functions without a report are left out."""
        return self.certified and "certified" not in self.soft

    def allows(self, function: Function) -> bool:
        """Whether the function may be in a plan."""
        return not self.is_certified or function.certificate is not None

    def checked(self, root: PlanNode, now: datetime | None = None) -> tuple[Violation, ...]:
        """The soft limits that a plan is estimated to pass; QueryRefused ``over-limit`` for hard
        ones."""
        found = self.violations(root, now)
        if hard := [each for each in found if not each.is_soft]:
            raise QueryRefused("over-limit", "; ".join(map(str, hard)))
        return found

    def violations(self, root: PlanNode, now: datetime | None = None) -> tuple[Violation, ...]:
        """All limits that a plan is estimated to pass."""
        scans = list(scans_of(root))
        found = list(self.passed_by(root.figures))
        if self.certified and (lacking := _uncertified(root)):
            parts = tuple(sorted({(name, 0.0) for name in lacking}))
            found.append(Violation("certified", 1, 0, "certified" in self.soft, parts))
        ages = _ages((relation for relation, _ in scans), now or datetime.now(UTC))
        if self.age_s is not None and max(ages.values(), default=0) > self.age_s:
            old = {name: age for name, age in ages.items() if age > self.age_s}
            found.append(self._violation("age_s", max(old.values()), old))
        return tuple(
            each._replace(by_relation=each.by_relation or _parts(each.name, scans))
            for each in found
        )

    def passed_by(self, figures: Figures) -> Iterator[Violation]:
        """The limits that some figures are beyond, estimated or measured."""
        for name, limit in self.limits().items():
            if name in _OF_FIGURES:
                figure = getattr(figures, _OF_FIGURES[name])
                if figure < limit if name == "rows_min" else figure > limit:
                    yield self._violation(name, figure, {})

    def _violation(self, name: str, figure: float, parts: Mapping[str, float]) -> Violation:
        largest = sorted(parts.items(), key=lambda part: (-part[1], part[0]))
        return Violation(name, getattr(self, name), figure, name in self.soft, tuple(largest))

    def limited(self, fragments: Iterable[Fragment], cost: float) -> tuple[Fragment, ...]:
        """The fragments of a plan of an estimated ``cost``, whose scans may each read so much more
        than their estimate as the whole may cost more, and no more than ``share`` of all."""
        hard = {n: limit for n, limit in self.limits().items() if n not in self.soft}
        share, room = hard.get("share", 1.0), inf
        if cost:
            room = hard.get("cost", inf) / cost

        def limit(scan: Scan) -> Scan:
            most = scan.estimate.bytes_read * room if scan.estimate.bytes_read else inf
            if share < 1 and scan.relation.bytes is not None:
                most = min(most, scan.relation.bytes * share)
            return replace(scan, share=share, most_bytes=None if most == inf else int(most))

        return tuple(replace(f, scans=tuple(map(limit, f.scans))) for f in fragments)


LIMITS = tuple(each.name for each in fields(Quality) if each.name != "soft")
"""Names of limits."""


def scans_of(root: PlanNode) -> Iterator[tuple[Relation, Figures]]:
    """The relations that a plan reads, with the figures of each scan."""
    if root.operator == "scan" and root.relation is not None:
        yield root.relation, root.figures
    for each in root.inputs:
        yield from scans_of(each)


def _parts(name: str, scans: Iterable[tuple[Relation, Figures]]) -> tuple[tuple[str, float], ...]:
    found: dict[str, float] = {}
    for relation, figures in scans:
        part = getattr(figures, _OF_FIGURES[name])
        found[relation.name] = found.get(relation.name, 0.0) + part
    return tuple(sorted(found.items(), key=lambda part: (-part[1], part[0])))


def _ages(relations: Iterable[Relation], now: datetime) -> dict[str, float]:
    """Seconds by name, infinite where nobody says when a relation was refreshed."""
    return {
        each.name: inf if each.refreshed is None else (now - each.refreshed).total_seconds()
        for each in relations
        if each.format != "archive" or each.refreshed is not None
    }


def _uncertified(root: PlanNode) -> list[str]:
    own = [root.function.name] if root.function and root.function.certificate is None else []
    return own + [name for each in root.inputs for name in _uncertified(each)]


def _shown(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 and figure != inf else f"{figure:.3g}"


def _truth(value: str) -> bool:
    if value.lower() not in (*_YES, *_NO):
        raise _bad(f"certified={value} is neither", "yes or no")
    return value.lower() in _YES


def _number(text: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise _bad(f"{text!r} is no limit", "NAME=NUMBER") from None


def _unknown(name: str) -> Refusal:
    return _bad(f"there is no limit {name!r}", ", ".join(LIMITS), did_you_mean(name, LIMITS))


def _bad(reason: str, expected: str, hint: str = "") -> Refusal:
    return Refusal(Fault("bad-limit", reason, expected, hint=hint))
