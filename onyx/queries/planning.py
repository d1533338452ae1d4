"""From the text of a query to its plan: read, look up, optimise, hold to limits (seed 001, 2.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from registration.queries.compatibility import Compatibility
from registration.queries.early_aggregates import aggregated_early
from registration.queries.fragment_sql import fragments_of
from registration.queries.optimiser import Optimiser
from registration.queries.providers import Market, Relation
from registration.queries.quality import Quality, Violation
from registration.queries.query_graph import QueryGraph
from registration.queries.query_plan import Figures, Fragment, PlanNode, drawing, to_json
from registration.queries.refusals import QueryRefused
from registration.queries.sql_reader import read_query

if TYPE_CHECKING:
    from onyx.queries.learning import Estimates

START_SECONDS = 5.0
"""Until a process that has none has a session of Spark."""


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query as it is executed; ``passed``: soft limits that its estimate is beyond."""

    sql: str
    market: Market
    quality: Quality
    graph: QueryGraph
    root: PlanNode
    passed: tuple[Violation, ...] = ()

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        return fragments_of(self.root, self.graph)

    @property
    def limited(self) -> tuple[Fragment, ...]:
        """The fragments, with the bytes that their scans may read; the last makes the result."""
        return self.quality.limited(self.fragments, self.estimate.cost)

    @property
    def estimate(self) -> Figures:
        return self.root.figures

    def explain(self) -> str:
        """A drawing of the operators with their cycle providers."""
        return drawing(self.root)

    def to_json(self) -> dict[str, object]:
        """``query_plan`` (digest), ``estimate`` and ``root``, nested operators."""
        return to_json(self.root)


def plan_query(
    sql: str,
    market: Market,
    user: str = "",
    quality: Quality | None = None,
    learned: Path | None = None,
    start_s: float = START_SECONDS,
) -> QueryPlan:
    """``user`` "": anonymous.  ``learned``: a file of what scans gave (``Estimates``).
    ``start_s``: seconds until the asking process has Spark.
    QueryRefused: what is wrong with the text and where, the rules that forbid a plan, or the limit
    that no plan keeps with the estimate."""
    quality = quality or Quality()
    if quality.is_certified:
        allowed = {uri: each for uri, each in market.functions.items() if quality.allows(each)}
        market = replace(market, functions=allowed)

    @cache
    def estimates() -> Estimates:
        # PERF: it loads the engine, and only archives without figures ask for it.
        from onyx.queries.learning import Estimates  # noqa: PLC0415

        return Estimates(learned)

    def rows_of(relation: Relation, arguments: tuple[tuple[str, str], ...]) -> float | None:
        if learned is None and relation.format != "archive":
            return None
        return estimates().rows_of(relation, arguments)

    known = market if learned is None else _with_figures(market, estimates())
    graph = read_query(sql, known).graph
    matrices = Compatibility(known, user)
    optimiser = Optimiser(known, matrices, known.client.uri, rows_of=rows_of, start_s=start_s)

    def fits(figures: Figures) -> bool:
        return all(each.is_soft for each in quality.passed_by(figures))

    try:
        root = optimiser.plan(graph, fits)
    except QueryRefused as refused:
        early = aggregated_early(
            graph, lambda uri: matrices.flow_mask(uri) != matrices.aggregate_mask(uri)
        )
        if early == graph:
            raise
        graph = early
        try:
            root = optimiser.plan(graph, fits)
        except QueryRefused:
            raise refused from None
    return QueryPlan(sql, market, quality, graph, root, quality.checked(root))


def _with_figures(market: Market, estimates: Estimates) -> Market:
    """With the bytes that scans have read where nobody says how many there are, and cycle providers
    as slow as their runs."""
    sites = {
        site.uri: replace(site, slowness=site.slowness * estimates.slowness(site.uri))
        for site in market.sites
    }
    relations = {
        uri: replace(each, bytes=estimates.bytes_of(each))
        for uri, each in market.relations.items()
        if each.bytes is None and each.format != "parquet"  # of which only some columns were read
    }
    return replace(market, relations={**market.relations, **relations}, cycle_providers=sites)
