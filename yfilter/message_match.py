"""MessageMatch: one message on the index, one priority class after the other.

::

    routing queries    links that are reached
    needs              what is left for these; not looked at without any
    local profiles     when the caller asks for them

The first two are *urgent*: a broker can send the message on before any local profile is looked
at.  They can be settled before the structure changes, so that a route on the move loses no message;
what was found then is handed out later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TypeAlias

from formats.element_stream import ElementStream
from yfilter.engine.match_limits import MatchLimits
from yfilter.engine.readings import Readings
from yfilter.errors import MatchLimitExceeded
from yfilter.index.index import Index
from yfilter.link_queries import LinkQueries
from yfilter.projection.transformations import Transformations

# A link that is reached, or what is left of the message for it.
Urgent: TypeAlias = str | tuple[str, ElementStream]


class MessageMatch:
    """``urgent`` and then ``local`` drive it; or, in steps, the index with the ``visits_left``."""

    def __init__(
        self,
        index: Index,
        link_queries: LinkQueries,
        transformations: Transformations,
        message: Readings,
        root: str,
        limits: MatchLimits,
    ) -> None:
        self.message = message
        self._index = index
        self._transformations = transformations
        self._root = root
        self.visits_left = limits.visits_max
        self._found: deque[Urgent] = deque()
        self._failure: MatchLimitExceeded | None = None
        self._finding: Iterator[Urgent] = iter(())
        if link_queries.routes:
            self._finding = self._find_urgent()

    def urgent(self) -> Iterator[Urgent]:
        """Each link of the tree whose routing query holds, once, as soon as it is known; then what
        is left for those of them that are transformed.  Raises MatchLimitExceeded."""
        while True:
            if self._found:
                yield self._found.popleft()
                continue
            if self._failure is not None:
                raise self._failure
            found = next(self._finding, None)
            if found is None:
                return
            yield found

    def settle(self) -> None:
        """Find all that is urgent now; ``urgent`` hands it out later, as it does a failure."""
        try:
            self._found.extend(self._finding)
        except MatchLimitExceeded as exceeded:
            self._failure = exceeded

    def local(self) -> list[int]:
        """The numbers of the local queries that match."""
        return self._index.match(self.message, self.visits_left)

    def _find_urgent(self) -> Iterator[Urgent]:
        reached: list[str] = []
        for link in self._links():
            reached.append(link)
            yield link
        if reached and not self._transformations.is_empty:
            yield from self._transformations.left(self.message, self._root, reached).items()

    def _links(self) -> Iterator[str]:
        try:
            links = self._index.links(self.message, self._root, self.visits_left)
        except MatchLimitExceeded:
            yield from self._index.reached
            raise
        self.visits_left -= self._index.visits_last
        yield from links
