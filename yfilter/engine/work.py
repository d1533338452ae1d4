"""Work: what matching has cost, and what the priority classes have saved (section 4.3.1)."""

from __future__ import annotations

from yfilter.engine.message_run import MessageRun
from yfilter.engine.targets import Priority


class Work:
    """Counts over all messages; ``matched`` by class, ``messages`` and those asked for profiles."""

    def __init__(self) -> None:
        self.messages = 0
        self.local_asked = 0
        self.matched = [0] * len(Priority)
        self.over_limit = 0
        self._tuples = 0
        self._executed = [0] * len(Priority)
        self._skipped_reached = 0
        self._skipped_not_taken = 0

    def add(self, run: MessageRun) -> None:
        """A message is done with."""
        self.over_limit += run.over_limit
        self._tuples += run.tuples
        self._skipped_reached += run.skipped_reached
        self._skipped_not_taken += run.skipped_not_taken
        for priority in Priority:
            self._executed[priority] += run.executed[priority]

    def statistics(self) -> dict[str, int]:
        return {
            "messages": self.messages,
            "local_not_asked": self.messages - self.local_asked,
            **_by_class("matched", self.matched),
            **_by_class("operators_run", self._executed),
            "operators_skipped_reached": self._skipped_reached,
            "operators_skipped_not_taken": self._skipped_not_taken,
            "tuples": self._tuples,
            "over_limit": self.over_limit,
        }


def _by_class(name: str, counts: list[int]) -> dict[str, int]:
    return {f"{name}_{priority.name.lower()}": counts[priority] for priority in Priority}
