"""Work: what matching has come to, over all messages; QueryCosts: what it takes to make results."""

from __future__ import annotations

from yfilter.engine.targets import Priority


class Work:
    """Counts over all messages; ``matched`` by class, ``messages`` and those asked for profiles."""

    def __init__(self) -> None:
        self.messages = 0
        self.local_asked = 0
        self.matched = [0] * len(Priority)
        self.over_limit = 0

    def statistics(self) -> dict[str, int]:
        return {
            "messages": self.messages,
            "local_not_asked": self.messages - self.local_asked,
            **{f"matched_{priority.name.lower()}": self.matched[priority] for priority in Priority},
            "over_limit": self.over_limit,
        }


class QueryCosts:
    """By the number of a query: what its results cost, and whether it is not tried for a while."""

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
