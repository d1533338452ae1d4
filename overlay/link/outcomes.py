"""Outcomes: what becomes of the messages that a source publishes, by their numbers."""

from __future__ import annotations

from collections import deque

from overlay.link.frames import AcceptedBefore, Refused


class Outcomes:
    """A message is ``open`` until the peer has acknowledged it; what is said of it comes before."""

    def __init__(self, kept_max: int) -> None:
        """Of those that nobody has taken the latest ``kept_max`` are kept."""
        self.open: deque[int] = deque()
        self._kept_max = kept_max
        self._kept: dict[int, Refused | AcceptedBefore | None] = {}

    def tell(self, said: Refused | AcceptedBefore) -> None:
        self._kept[said.number] = said

    def settle(self, through: int) -> None:
        """All through a number are acknowledged."""
        while self.open and self.open[0] <= through:
            self._kept.setdefault(self.open.popleft(), None)
        while len(self._kept) > self._kept_max:
            del self._kept[next(iter(self._kept))]

    def take(self, number: int) -> Refused | AcceptedBefore | None:
        """What became of a settled message; accepted, if nothing was said.  Once: then KeyError."""
        return self._kept.pop(number)
