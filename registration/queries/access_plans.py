"""Access plans: where a unit of a query can be had, and by which scan or wrapper (2.2).

``Places`` has all that an optimiser knows beside the query: cycle providers and links, the
user's compatibility matrices, the cost model and its weights, and who estimates rows of archives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from registration.queries.compatibility import Compatibility
from registration.queries.cost_model import Charge, CostModel, Weights, pipelined, width_of
from registration.queries.join_plans import Problem, bits
from registration.queries.providers import Column, Function, Link, Market, Relation
from registration.queries.query_graph import Unit
from registration.queries.query_plan import PlanNode

ROWS = 1_000.0
"""Of a relation of which nobody knows how many it has."""
SITES = 8
"""Cycle providers that are looked at beside those where the data of a query is read."""

RowsOf = Callable[[Relation, tuple[tuple[str, str], ...]], float | None]
"""Rows of a relation read with such arguments (``profile``); None: as its statistics say."""


@dataclass(frozen=True, slots=True)
class Access:
    """A way to have a unit at a cycle provider, with its own work and money."""

    node: PlanNode
    charge: Charge


class Places:
    """The cycle providers that are looked at for a query; masks and numbers of sites are over
    ``sites`` from here on.

    ``opened``: their places in ``allowed.sites``.  ``moves``: a problem with nothing but the costs
    of sites and links.
    """

    def __init__(
        self, market: Market, allowed: Compatibility, opened: Sequence[int],
        model: CostModel, weights: Weights, rows_of: RowsOf,
    ) -> None:  # fmt: skip
        self.market, self.model, self.allowed = market, model, allowed
        self.sites = tuple(allowed.sites[place] for place in opened)
        self.everywhere = (1 << len(self.sites)) - 1
        self._opened, self._weights, self._rows_of = opened, weights, rows_of
        links = {(link.source, link.target): link for link in market.links}
        self.links = [
            [links.get((one.uri, other.uri)) or Link(one.uri, other.uri) for other in self.sites]
            for one in self.sites
        ]
        byte, start = self.model.send_byte, self.model.send_start
        self.moves = Problem(
            (), (), (), (),
            work=tuple(self.scalar(model.rows(site, 1.0)) for site in self.sites),
            per_byte=tuple(tuple(self.scalar(byte(each)) for each in row) for row in self.links),
            per_send=tuple(tuple(self.scalar(start(each)) for each in row) for row in self.links),
        )  # fmt: skip

    def read_mask(self, relation: str) -> int:
        return self._narrow(self.allowed.read_mask(relation))

    def flow_mask(self, relation: str) -> int:
        return self._narrow(self.allowed.flow_mask(relation))

    def aggregate_mask(self, relation: str) -> int:
        return self._narrow(self.allowed.aggregate_mask(relation))

    def function_mask(self, function: str) -> int:
        return self._narrow(self.allowed.function_mask(function))

    def why(self, resources: Iterable[str], sites: Iterable[str]) -> tuple[str, ...]:
        """The rules that keep some resources from some sites ("": from all), by URI."""
        places = tuple(sites)
        found = (self.allowed.why(each, site) for each in resources for site in places)
        return tuple(dict.fromkeys(rule for rules in found for rule in rules))

    def _narrow(self, mask: int) -> int:
        return sum(1 << at for at, place in enumerate(self._opened) if mask >> place & 1)

    def scalar(self, charge: Charge) -> float:
        return self._weights.of(charge)

    def has_room(self, site: int, function: Function) -> bool:
        return function.megabytes <= self.sites[site].memory_megabytes

    def accesses(self, unit: Unit, number: int) -> dict[int, Access]:
        """Of a relation, by site; none where no rule lets it be read."""
        relation = unit.relation
        assert relation is not None
        mask = self.read_mask(relation.uri)
        function = self.market.functions.get(relation.wrapper or "")
        if relation.wrapper is not None:
            mask &= self.function_mask(relation.wrapper)
        found = {}
        for site in bits(mask):
            if function is None:
                found[site] = self._scan(unit, relation, number, site)
            elif self.has_room(site, function):
                found[site] = self._wrap(unit, relation, function, number, site)
        return found

    def rows(self, unit: Unit) -> float:
        """Of a relation, before any predicate."""
        relation = unit.relation
        assert relation is not None
        told = self._rows_of(relation, unit.arguments)
        known = relation.rows if told is None else told
        return max(1.0, ROWS if known is None else known)

    def _scan(self, unit: Unit, relation: Relation, number: int, site: int) -> Access:
        rows, place = self.rows(unit), self.sites[site]
        size = bytes_read(relation, [each.name for each in unit.columns], rows)
        charge = self.model.scan(place, relation, size, rows)
        figures = pipelined((), charge, rows, bytes_read=size)
        widths = widths_of(relation)
        node = PlanNode(
            "scan", place, figures, (), number, relation=relation, text=relation.name,
            width=sum(widths.get(each.name, 0.0) for each in unit.columns),
        )  # fmt: skip
        return Access(node, charge)

    def _wrap(
        self, unit: Unit, relation: Relation, function: Function, number: int, site: int
    ) -> Access:
        """Files are the rows of the scan, which the wrapper makes the rows of the relation of."""
        rows, place = self.rows(unit), self.sites[site]
        files = max(1.0, rows / max(function.rows_per_row, 1e-9))
        size = relation.bytes if relation.bytes is not None else files * width_of("binary")
        read = self.model.scan(place, relation, size, files)
        scan = PlanNode(
            "scan", place, pipelined((), read, files, bytes_read=size), (), number,
            relation=relation, text=relation.name, width=size / files,
        )  # fmt: skip
        row = self.model.function_row(place, function)
        start = self.model.function_start(place)
        own = start.plus(Charge(row.seconds * files, row.money * files))
        widths = widths_of(relation)
        node = PlanNode(
            "wrap", place, pipelined((scan.figures,), own, rows), (scan,), number,
            relation=relation, function=function, text=function.name,
            width=sum(widths.get(each.name, 0.0) for each in unit.columns),
            memory_megabytes=function.megabytes,
        )  # fmt: skip
        return Access(node, read.plus(own))


def open_sites(allowed: Compatibility, needed: int, functions: Iterable[int]) -> list[int]:
    """The sites that are looked at: the ``needed`` ones, and SITES each of all and of those where
    each of the functions may be, the cheapest and fastest first."""

    def worth(site: int) -> tuple[float, float]:
        place = allowed.sites[site]
        return place.price_per_second, -place.cpu_megahertz * place.cores

    for mask in (allowed.execute_mask, *functions):
        for site in sorted(bits(mask), key=worth)[:SITES]:
            needed |= 1 << site
    return list(bits(needed))


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
