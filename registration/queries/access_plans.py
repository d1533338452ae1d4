"""Access plans: where a unit of a query can be had, and by which scan or wrapper (2.2).

``Places`` has all that an optimiser knows beside the query: cycle providers and links, the
user's compatibility matrices, the cost model and its weights, and who estimates rows of archives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any

from registration.queries.compatibility import Compatibility
from registration.queries.cost_model import Charge, CostModel, Weights, figures, width_of
from registration.queries.join_plans import Problem, bits
from registration.queries.passed_rows import PASSED
from registration.queries.providers import (
    Column,
    CycleProvider,
    Function,
    Link,
    Market,
    Relation,
)
from registration.queries.query_graph import Unit
from registration.queries.query_plan import PlanNode
from registration.queries.refusals import QueryRefused

ROWS = 1_000.0
"""Of a relation of which nobody knows how many it has."""
SITES = 8
"""Cycle providers that are looked at beside those where the data of a query is read."""

RowsOf = Callable[[Relation, tuple[tuple[str, str], ...]], float | None]
"""Rows of a relation read with such arguments (``profile``); None: as its statistics say."""


def operator(
    name: str, site: CycleProvider, below: Sequence[PlanNode], own: Charge, rows: float,
    width: float, *, waits: int = 0, bytes_read: float = 0.0, **said: Any,
) -> PlanNode:  # fmt: skip
    """An operator with its figures; ``waits``: see ``cost_model.figures``."""
    of = figures([e.figures for e in below], own, rows, waits=waits, bytes_read=bytes_read)
    return PlanNode(name, site, of, tuple(below), width=width, **said)


class Places:
    """The cycle providers that are looked at for a query, ``opened`` of all that are allowed; masks
    and numbers of sites are over them, as ``may`` says them.

    ``moves``: a problem with nothing but the costs of sites and links.  ``busy``: the sites that
    compute, all but the one whose rows are to be passed on as they are.
    """

    def __init__(
        self, market: Market, allowed: Compatibility, opened: int,
        model: CostModel, weights: Weights, rows_of: RowsOf, idle: str = "",
    ) -> None:  # fmt: skip
        """``idle``: URI of the site that does not compute."""
        self.market, self.model, self.allowed = market, model, allowed
        self.may = allowed.over(opened)
        self.sites = self.may.sites
        self.everywhere = (1 << len(self.sites)) - 1
        self.busy = sum(1 << at for at, site in enumerate(self.sites) if site.uri != idle)
        self._weights, self._rows_of = weights, rows_of
        links = {(link.source, link.target): link for link in market.links}
        self.links = [
            [links.get((one.uri, other.uri)) or Link(one.uri, other.uri) for other in self.sites]
            for one in self.sites
        ]
        byte, start = self.model.send_byte, self.model.send_start
        self.moves = Problem(
            (), (), (), (),
            work=tuple(
                self.scalar(model.rows(site, 1.0)) if self.busy >> at & 1 else inf
                for at, site in enumerate(self.sites)
            ),
            per_byte=tuple(tuple(self.scalar(byte(each)) for each in row) for row in self.links),
            per_send=tuple(tuple(self.scalar(start(each)) for each in row) for row in self.links),
        )  # fmt: skip

    def no_plan(
        self, reason: str, resources: Iterable[str], sites: Iterable[CycleProvider] = ()
    ) -> QueryRefused:
        """With the URIs of the rules that keep some resources from some sites, from all without."""
        at = [site.uri for site in sites] or [""]
        found = (self.allowed.why(each, site) for each in resources for site in at)
        rules = dict.fromkeys(rule for rules in found for rule in rules)
        return QueryRefused("no-plan", reason, " ".join(rules))

    def scalar(self, charge: Charge) -> float:
        return self._weights.of(charge)

    def has_room(self, site: int, function: Function) -> bool:
        return function.megabytes <= self.sites[site].memory_megabytes

    def accesses(self, unit: Unit, number: int) -> dict[int, PlanNode]:
        """Of a relation, by site; none where no rule lets it be read."""
        relation = unit.relation
        assert relation is not None
        mask = self.may.read_mask(relation.uri)
        if relation.format not in PASSED:
            mask &= self.busy
        function = self.market.functions.get(relation.wrapper or "")
        if relation.wrapper is not None:
            mask &= self.may.function_mask(relation.wrapper)
        return {
            site: self._access(unit, relation, function, number, self.sites[site])
            for site in bits(mask)
            if function is None or self.has_room(site, function)
        }

    def rows(self, unit: Unit) -> float:
        """Of a relation, before any predicate."""
        relation = unit.relation
        assert relation is not None
        told = self._rows_of(relation, unit.arguments)
        known = relation.rows if told is None else told
        return max(1.0, ROWS if known is None else known)

    def _access(
        self, unit: Unit, relation: Relation, function: Function | None, number: int,
        place: CycleProvider,
    ) -> PlanNode:  # fmt: skip
        """A scan; files are the rows of one below the wrapper that makes the relation's of them."""
        rows, widths = self.rows(unit), widths_of(relation)
        width = sum(widths.get(each.name, 0.0) for each in unit.columns)
        files = rows if function is None else max(1.0, rows / max(function.rows_per_row, 1e-9))
        if function is None:
            size = bytes_read(relation, [each.name for each in unit.columns], rows)
        else:
            size = relation.bytes if relation.bytes is not None else files * width_of("binary")
        scan = operator(
            "scan", place, (), self.model.scan(place, relation, size, files), files,
            width if function is None else size / files,
            bytes_read=size, index=number, relation=relation, text=relation.name,
        )  # fmt: skip
        if function is None:
            return scan
        start, row = self.model.function(place, function)
        return operator(
            "wrap", place, (scan,), start.plus(row.times(files)), rows, width, index=number,
            relation=relation, function=function, text=function.name,
            memory_megabytes=function.megabytes,
        )  # fmt: skip


def open_sites(allowed: Compatibility, needed: int, functions: Iterable[int]) -> int:
    """The sites that are looked at: the ``needed`` ones, and SITES each of all and of those where
    each of the functions may be, the cheapest and fastest first."""

    def worth(site: int) -> tuple[float, float]:
        place = allowed.sites[site]
        return place.price_per_second, -place.cpu_megahertz * place.cores / place.slowness

    for mask in (allowed.execute_mask, *functions):
        for site in sorted(bits(mask), key=worth)[:SITES]:
            needed |= 1 << site
    return needed


def bytes_read(relation: Relation, columns: Sequence[str], rows: float) -> float:
    """Of a scan; of Parquet only the columns that are asked for."""
    widths = widths_of(relation)
    whole = sum(widths.values())
    size = relation.bytes if relation.bytes is not None else rows * whole
    if relation.format == "parquet" and whole > 0:
        size *= min(1.0, sum(widths[name] for name in columns if name in widths) / whole)
    return size


def widths_of(relation: Relation) -> dict[str, float]:
    """Bytes of each column: as measured, by its type, or an equal part of what the rows have left
    for columns without a fixed length."""
    known: dict[str, float] = {}
    unknown: list[Column] = []
    for column in relation.columns:
        usual = width_of(column.type)
        if column.width is not None:
            known[column.name] = column.width
        elif usual <= 8:
            known[column.name] = usual
        else:
            unknown.append(column)
    rest = 0.0
    if unknown and relation.bytes is not None and relation.rows:
        rest = (relation.bytes / relation.rows - sum(known.values())) / len(unknown)
    for column in unknown:
        known[column.name] = rest if rest > 0 else width_of(column.type)
    return known
