"""Work: what matching has cost, and what the priority classes have saved (section 4.3.1)."""

from __future__ import annotations

from yfilter.engine.message_run import MessageRun
from yfilter.engine.targets import Priority


class Work:
    """Counts of the operator network over all messages."""

    def __init__(self) -> None:
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
        """``operators_run_…`` by class, and operators not run, by the reason."""
        return {
            **{
                f"operators_run_{priority.name.lower()}": self._executed[priority]
                for priority in Priority
            },
            "operators_skipped_reached": self._skipped_reached,
            "operators_skipped_not_taken": self._skipped_not_taken,
            "tuples": self._tuples,
            "over_limit": self.over_limit,
        }
