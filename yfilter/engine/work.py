"""EngineStatistics: what matching has come to; QueryCosts: what it takes to make results."""

from __future__ import annotations

from msgspec import Struct


class EngineStatistics(Struct):
    """What the engine holds, and from ``messages`` on counts over all of them; docs/engine.md."""

    profiles: int = 0
    queries: int = 0
    profiles_bytes: int = 0
    routes: int = 0
    route_queries: int = 0
    target_groups: int = 0
    links_open: int = 0
    link_needs: int = 0
    needs: int = 0
    need_groups: int = 0
    index_queries: int = 0
    index_nodes: int = 0
    index_atoms: int = 0
    index_records: int = 0
    index_symbols: int = 0
    index_attributes: int = 0
    index_twigs: int = 0
    index_twig_nodes: int = 0
    index_bytes: int = 0
    index_bytes_used: int = 0
    index_lazy_bytes: int = 0
    operators: int = 0
    messages: int = 0
    local_not_asked: int = 0
    matched_route: int = 0
    matched_transformation: int = 0
    matched_profile: int = 0
    candidates_route: int = 0
    candidates_profile: int = 0
    candidates_skipped_reached: int = 0
    elements_spared: int = 0
    projected_messages: int = 0
    projected_links: int = 0
    projected_written: int = 0
    over_limit: int = 0
    index_heads: int = 0
    index_visits: int = 0
    index_candidates: int = 0
    index_twig_visits: int = 0
    index_lazy_steps_computed: int = 0
    index_lazy_turns: int = 0


class QueryCosts:
    """By the number of a query: ``seconds`` that its results have taken since they were taken
    here, and how many messages it is ``late``, for which it is not tried."""

    def __init__(self, late_messages: int) -> None:
        """``late_messages``: see EvaluationLimits."""
        self._late_messages = late_messages
        self.seconds: dict[int, float] = {}
        self.late: dict[int, int] = {}

    def add(self, query: int, seconds: float) -> None:
        self.seconds[query] = self.seconds.get(query, 0.0) + seconds

    def take(self, least: float) -> dict[int, float]:
        """Of those with at least so many seconds, which begin again."""
        taken = [query for query, seconds in self.seconds.items() if seconds >= least]
        return {query: self.seconds.pop(query) for query in taken}

    def note_late(self, query: int) -> None:
        """It has taken too long."""
        self.late[query] = self._late_messages

    def is_late(self, query: int) -> bool:
        """Whether it is not tried this time, as it took too long lately."""
        if not self.late:
            return False
        left = self.late.get(query, 0)
        if left > 1:
            self.late[query] = left - 1
        else:
            self.late.pop(query, None)
        return left > 0

    def forget(self, query: int) -> None:
        """It is gone."""
        self.seconds.pop(query, None)
        self.late.pop(query, None)
