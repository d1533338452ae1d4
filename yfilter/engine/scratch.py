"""Scratch: what one message needs while the network runs on it, apart from the structure."""

from __future__ import annotations

from typing import TypeAlias

from formats.element_stream import ElementStream
from yfilter.engine.match_limits import DEFAULT_MATCH_LIMITS, MatchLimits
from yfilter.errors import MatchLimitExceeded
from yfilter.language.query_ast import NameTest

# What operators deliver: element numbers in document order, each once.
Elements: TypeAlias = list[int]

# What an operator delivers that is about the message as a whole: the document node.
DOCUMENT = -1


class Scratch:
    """The message, a budget of tuples, and which names of the message a test accepts."""

    __slots__ = ("_accepted", "limits", "stream", "tuples")

    def __init__(self, stream: ElementStream, limits: MatchLimits = DEFAULT_MATCH_LIMITS) -> None:
        self.stream = stream
        self.limits = limits
        self.tuples = 0
        self._accepted: dict[NameTest, list[bool]] = {}

    def charge(self, tuples: int) -> None:
        """Count work; MatchLimitExceeded once the message's budget is used up."""
        self.tuples += tuples
        if self.is_exhausted:
            raise MatchLimitExceeded(
                "too-many-tuples",
                f"the message needs more than {self.limits.tuples_max} tuples to be matched",
            )

    @property
    def is_exhausted(self) -> bool:
        """Whether the message's budget is used up."""
        return self.tuples > self.limits.tuples_max

    def accepts(self, test: NameTest, element: int) -> bool:
        accepted = self._accepted.get(test)
        if accepted is None:
            accepted = self._accepted[test] = [
                test.accepts(name.namespace, name.local) for name in self.stream.names
            ]
        return accepted[self.stream.element_name[element]]
