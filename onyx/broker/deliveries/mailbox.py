"""Mailbox: the deliveries of one profile, from the first that its user has not taken.

::

    1 ........ floor | floor+1 ... sent | ........... last
    gone             | on the wire      | waiting

Numbers begin at 1 and leave no gap; of each delivery only the position in the log is here, 8 bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator

_COMPACT_AT = 1024  # positions at the front that are in no use


class Mailbox:
    """``acknowledged``: by the user, ever; ``index``: what it is called in the log, for ever.

    ``cursor``: the position in the log through which it holds nothing.  ``line`` and ``slot``: the
    connection that it is attached to, by number, 0 for none.  ``is_queued``: it waits for its turn
    there; what is in flight is behind ``confirmed``.
    """

    __slots__ = (
        "_positions",
        "_start",
        "acknowledged",
        "backlog_bytes",
        "confirmed",
        "cursor",
        "floor",
        "in_flight_bytes",
        "index",
        "is_queued",
        "line",
        "profile",
        "sent",
        "slot",
    )

    def __init__(self, profile: str, index: int = 0, cursor: int = 0) -> None:
        self.profile = profile
        self.index = index
        self.cursor = cursor
        self.acknowledged = self.floor = self.sent = self.confirmed = 0
        self.backlog_bytes = 0
        self.line = self.slot = 0
        self.is_queued = False
        self.in_flight_bytes = 0
        self._positions = array("Q")
        self._start = 0

    @property
    def last(self) -> int:
        """The highest number given out."""
        return self.floor + len(self._positions) - self._start

    def append(self, position: int, size: int) -> None:
        """A delivery more."""
        self._positions.append(position)
        self.backlog_bytes += size

    def position(self, number: int) -> int:
        """Where a delivery is in the log; it must be there."""
        return self._positions[self._start + number - self.floor - 1]

    def waiting(self, after: int) -> Iterator[tuple[int, int]]:
        """(number, position) of all behind ``after`` that are there."""
        for number in range(max(after, self.floor) + 1, self.last + 1):
            yield number, self.position(number)

    def begin(self, received: int) -> None:
        """A new connection, whose user has all through ``received``."""
        self.in_flight_bytes = 0
        self.sent = self.confirmed = received

    def send(self, size: int) -> int:
        """The next delivery is on the wire from now on; its number."""
        self.sent += 1
        self.in_flight_bytes += size
        return self.sent

    def on_wire(self) -> list[int]:
        """The positions of what was sent and is here."""
        return self._positions[self._start : self._start + max(0, self.sent - self.floor)].tolist()

    def is_open(self, frames_max: int, bytes_max: int) -> bool:
        """Whether the next one may go now; one always may."""
        in_flight = self.sent - self.confirmed
        return not in_flight or (in_flight < frames_max and self.in_flight_bytes < bytes_max)

    def skip(self) -> int:
        """The oldest were thrown away before they were sent; how many of them nobody had taken."""
        lost = self.floor - max(self.sent, self.acknowledged)
        self.confirmed += self.floor - self.sent
        self.sent = self.floor
        return lost

    def take(self, through: int) -> list[int]:
        """The user has all through a number; the positions that are held no more."""
        self.acknowledged = max(self.acknowledged, through)
        self.confirmed = max(self.confirmed, through)
        self.sent = max(self.confirmed, self.sent)
        return self.remove(through)

    def remove(self, through: int) -> list[int]:
        """Forget all through a number; their positions.  The caller has their sizes."""
        count = min(through, self.last) - self.floor
        self.floor = max(self.floor, through)
        if count <= 0:
            return []
        gone = self._positions[self._start : self._start + count].tolist()
        self._start += count
        self.cursor = gone[-1]
        if self._start > _COMPACT_AT and 2 * self._start > len(self._positions):
            del self._positions[: self._start]
            self._start = 0
        return gone

    def adopt(self, received: int) -> None:
        """Go on behind a number beyond all that were given out: the store was lost."""
        self.floor = self.acknowledged = received


def append_to_all(boxes: Iterable[Mailbox], position: int, size: int) -> int:
    """A delivery more in each; the bytes of the largest backlog of them."""
    # PERF: a call for each box would be most of what a message costs that 1,000 get who are away.
    largest = 0
    for box in boxes:
        box._positions.append(position)
        backlog = box.backlog_bytes = box.backlog_bytes + size
        largest = max(largest, backlog)
    return largest
