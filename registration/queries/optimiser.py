"""The optimiser: a query graph, a market and what a user may do -> a query plan (2.1 step 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from math import inf

from registration.queries.access_plans import Places, RowsOf, open_sites
from registration.queries.block_plans import BlockPlans, blocks
from registration.queries.compatibility import Compatibility
from registration.queries.cost_model import (
    CHEAPEST,
    FASTEST,
    SPARK,
    USUAL,
    Charge,
    CostModel,
    Weights,
)
from registration.queries.fragment_sql import fragments_of
from registration.queries.idp import USUAL_EFFORT, Effort
from registration.queries.passed_rows import passed_rows
from registration.queries.providers import Market
from registration.queries.query_graph import QueryGraph
from registration.queries.query_plan import Figures, PlanNode
from registration.queries.refusals import QueryRefused


class Optimiser:
    """Plans queries of one user over one market.

    ``target``: URI of the cycle provider where results are wanted ("": the asking process).
    ``rows_of``: estimates rows of relations whose statistics do not say it (archives with a
    profile).  ``start_s``: seconds until the target can compute, which passes rows on at once.
    """

    def __init__(
        self,
        market: Market,
        allowed: Compatibility,
        target: str = "",
        model: CostModel = SPARK,
        weights: Weights = USUAL,
        rows_of: RowsOf = lambda relation, arguments: None,
        effort: Effort = USUAL_EFFORT,
        start_s: float = 0.0,
    ) -> None:
        self._market, self._allowed = market, allowed
        self._target = [site.uri for site in allowed.sites].index(target or market.client.uri)
        self._model, self._weights, self._rows_of = model, weights, rows_of
        self._effort, self._start_s = effort, start_s

    def plan(
        self, graph: QueryGraph, fits: Callable[[Figures], bool] = lambda figures: True
    ) -> PlanNode:
        """The cheapest plan by the weights; if its figures do not fit, the fastest or the cheapest
        one that does.  If none fits, the first: the caller says which limit it is over.
        QueryRefused: ``no-plan``, with the rules that forbid it."""
        first = self._planned(graph, self._weights)
        if not fits(first.figures):
            for weights in (FASTEST, CHEAPEST):
                other = self._planned(graph, weights)
                if fits(other.figures):
                    return other
        return first

    def _planned(self, graph: QueryGraph, weights: Weights) -> PlanNode:
        """Of a plan that computes at the target and one that does not, the cheaper with the start
        of the target."""
        first, cost = self._searched(graph, weights)
        start = weights.of(Charge(self._start_s))
        if start and _computes(first, graph):
            with suppress(QueryRefused):
                target = self._allowed.sites[self._target].uri
                other, price = self._searched(graph, weights, idle=target)
                if price < cost + start and not _computes(other, graph):
                    return other
        return first

    def _searched(
        self, graph: QueryGraph, weights: Weights, idle: str = ""
    ) -> tuple[PlanNode, float]:
        """The cheapest plan, and its cost in the scalar of the weights."""
        needed = self._needed(graph) | 1 << self._target
        opened = open_sites(self._allowed, needed, self._functions(graph))
        places = Places(
            self._market, self._allowed, opened, self._model, weights, self._rows_of, idle
        )
        target = (opened & ((1 << self._target) - 1)).bit_count()
        whole = BlockPlans(places, graph, self._effort)
        if whole.cost[target] == inf:
            raise self._kept_away(places, whole)
        return whole.node(target), whole.cost[target]

    def _needed(self, graph: QueryGraph) -> int:
        """The sites where data is read."""
        mask = 0
        for block in blocks(graph):
            for unit in block.units:
                if unit.relation is not None:
                    mask |= self._allowed.read_mask(unit.relation.uri)
        return mask

    def _functions(self, graph: QueryGraph) -> Iterator[int]:
        """The sites where each function may be, as masks."""
        for block in blocks(graph):
            for step in block.steps:
                for function in step.alternatives:
                    yield self._allowed.function_mask(function.uri)

    def _kept_away(self, places: Places, whole: BlockPlans) -> QueryRefused:
        """The result may be made somewhere, and may not go to the target."""
        target = self._allowed.sites[self._target]
        relations = dict(whole.relations())
        kept = [name for uri, name in relations.items() if self._allowed.why(uri, target.uri)]
        reason = f"rows of {', '.join(kept) or 'the result'} may not go to {target.name}"
        return places.no_plan(reason, relations, (target,))


def _computes(root: PlanNode, graph: QueryGraph) -> bool:
    """Whether the fragment that makes the result does more than to pass rows on."""
    return passed_rows(fragments_of(root, graph)[-1]) is None
