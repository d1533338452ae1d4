"""One direction of one channel: what is numbered, sent, acknowledged, or still to come.

::

    SendingChannel     1 ........ floor | floor+1 ... sent_through | ........... last
                       gone             | on the wire (window)     | waiting
                       ReceivingChannel 1 .. processed .. last | the next must be last + 1

Sequence numbers start at 1 and leave no gap.  These classes hold positions and frames, nothing
durable: rows are the journal's business.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from overlay.link.errors import ProtocolError
from overlay.link.events import Flow
from overlay.link.limits import WINDOW_FRAMES_CEILING, LinkLimits


class SendingChannel:
    """Frames for one peer on one (flow, key), oldest first, until they are acknowledged.

    Invariants: the journal holds exactly ``floor + 1 .. last``; ``acknowledged <= floor``; what
    is on the wire is ``in_flight``, also when it has been dropped from the journal meanwhile, so
    that a slow receiver's window stays closed.
    """

    __slots__ = (
        "_frames",
        "_in_flight",
        "acknowledged",
        "backlog_bytes",
        "confirmed",
        "floor",
        "flow",
        "in_flight_bytes",
        "key",
        "sent_through",
    )

    def __init__(self, flow: Flow, key: str) -> None:
        self.flow = flow
        self.key = key
        self.floor = 0
        self.acknowledged = 0  # by a hello or an Ack, ever
        self.confirmed = 0  # by an Ack, in this run of the process
        self.sent_through = 0  # on this connection
        self.backlog_bytes = 0
        self._frames: dict[int, bytes] = {}
        self._in_flight: deque[tuple[int, int]] = deque()  # (sequence, bytes)
        self.in_flight_bytes = 0

    @property
    def last(self) -> int:
        """The highest number given out."""
        return self.floor + len(self._frames)

    @property
    def has_waiting(self) -> bool:
        """Whether something (a frame, or the news that frames are gone) is not on the wire."""
        return self.sent_through < self.last

    def append(self, data: bytes) -> None:
        """Add the encoded frame with the number ``last + 1``."""
        self._frames[self.last + 1] = data
        self.backlog_bytes += len(data)

    def restore(self, sequence: int, data: bytes) -> None:
        """Add a stored frame; rows come in order of their numbers."""
        if sequence != self.last + 1:
            raise ValueError(f"frame {sequence} is stored where {self.last + 1} was expected")
        self.append(data)

    def frames(self, after: int = 0) -> Iterator[tuple[int, bytes]]:
        """What the journal holds beyond ``after``, oldest first."""
        for sequence in range(max(after, self.floor) + 1, self.last + 1):
            yield sequence, self._frames[sequence]

    def begin(self, received: int) -> None:
        """A new connection, on which the peer has everything up to ``received``."""
        self._in_flight.clear()
        self.in_flight_bytes = 0
        self.sent_through = received

    def trim(self, through: int) -> range:
        """Forget frames up to ``through``, which the peer has; returns the numbers removed."""
        self.acknowledged = max(self.acknowledged, through)
        self.sent_through = max(self.sent_through, through)
        while self._in_flight and self._in_flight[0][0] <= through:
            self.in_flight_bytes -= self._in_flight.popleft()[1]
        return self._remove(through)

    def drop(self, bytes_max: int) -> range:
        """Remove the oldest frames until at most ``bytes_max`` are left; returns the numbers."""
        through, left = self.floor, self.backlog_bytes
        for sequence, data in self._frames.items():
            if left <= bytes_max:
                break
            left -= len(data)
            through = sequence
        return self._remove(through)

    def adopt(self, received: int, renumber: Callable[[bytes, int], bytes]) -> range:
        """Go on after ``received``, a number beyond all that this journal knows to have given
        out (its store was lost); waiting frames get new numbers.  Returns the old ones."""
        old = range(self.floor + 1, self.last + 1)
        waiting = list(self._frames.values())
        self._frames.clear()
        self.backlog_bytes = 0
        self.floor = self.acknowledged = received
        for data in waiting:
            self.append(renumber(data, self.last + 1))
        return old

    def window_open(self, limits: LinkLimits) -> bool:
        """Whether the next thing to send may go now; one frame always may."""
        if not self._in_flight:
            return True
        size = len(self._frames.get(self.sent_through + 1, b""))
        return (
            len(self._in_flight) < limits.window_frames
            and self.in_flight_bytes + size <= limits.window_bytes
        )

    def skip_dropped(self) -> tuple[int, int] | None:
        """If the next frames are gone: (last one gone, how many nobody acknowledged)."""
        if self.sent_through >= self.floor:
            return None
        lost = self.floor - max(self.sent_through, self.acknowledged)
        self.sent_through = self.floor
        return self.floor, lost

    def take_next(self) -> bytes:
        """The next waiting frame, which is on the wire from now on."""
        # The seam for a journal larger than memory: read the frame from the store here.
        sequence = self.sent_through + 1
        data = self._frames[sequence]
        self.sent_through = sequence
        self._in_flight.append((sequence, len(data)))
        self.in_flight_bytes += len(data)
        return data

    def _remove(self, through: int) -> range:
        removed = range(self.floor + 1, min(through, self.last) + 1)
        for sequence in removed:
            self.backlog_bytes -= len(self._frames.pop(sequence))
        self.floor = max(self.floor, through)
        return removed


class ReceivingChannel:
    """How far one channel from one peer has been received.

    ``last`` has been handed to the core; ``processed`` is what the peer is told and what is
    stored.  They differ only where the core acknowledges by itself.
    """

    __slots__ = ("flow", "key", "last", "processed", "told")

    def __init__(self, flow: Flow, key: str, processed: int = 0) -> None:
        self.flow = flow
        self.key = key
        self.last = processed
        self.processed = processed
        self.told = processed  # by hello or Ack, on this connection

    def accept(self, sequence: int) -> bool:
        """Whether the frame is new; a gap or a frame far beyond any window is fatal."""
        if sequence <= self.last:
            return False
        if sequence != self.last + 1:
            raise ProtocolError(
                "not-expected",
                f"sequence {sequence} on channel {self.key!r} after {self.last}",
                fatal=True,
            )
        if sequence - self.told > WINDOW_FRAMES_CEILING:
            raise ProtocolError(
                "window-exceeded",
                f"{sequence - self.told} unacknowledged frames on channel {self.key!r}",
                fatal=True,
            )
        self.last = sequence
        return True
