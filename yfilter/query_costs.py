"""QueryCosts: what it takes to make the results of queries, and whose are not tried for a while."""

from __future__ import annotations


class QueryCosts:
    """By the number of a query."""

    def __init__(self, late_messages: int) -> None:
        """``late_messages``: see EvaluationLimits."""
        self._late_messages = late_messages
        self._seconds: dict[int, float] = {}  # since they were taken
        self._late: dict[int, int] = {}  # how often they are not tried any more

    def add(self, query: int, seconds: float) -> None:
        self._seconds[query] = self._seconds.get(query, 0.0) + seconds

    def take(self, least: float) -> dict[int, float]:
        """Of those with at least so many seconds, which begin again."""
        taken = [query for query, seconds in self._seconds.items() if seconds >= least]
        return {query: self._seconds.pop(query) for query in taken}

    def note_late(self, query: int) -> None:
        """It has taken too long."""
        self._late[query] = self._late_messages

    def is_late(self, query: int) -> bool:
        """Whether it is not tried this time, as it took too long lately."""
        if not self._late:
            return False
        left = self._late.get(query, 0)
        if left > 1:
            self._late[query] = left - 1
        else:
            self._late.pop(query, None)
        return left > 0

    def forget(self, query: int) -> None:
        """It is gone."""
        self._seconds.pop(query, None)
        self._late.pop(query, None)
