"""Work: what matching has come to, over all messages."""

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
