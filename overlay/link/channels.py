"""One direction of one channel: what is numbered, sent, acknowledged, or still to come.

::

    SendingChannel     1 ... deleted ... floor | floor+1 ... sent_through | ........... last
                       acknowledged            | on the wire (window)     | waiting
    ReceivingChannel   1 ................................... last  | the next must be last + 1

What is acknowledged is deleted, but where a channel ``keeps`` it, until the peer has passed it on
to others (``PassedOn``).  Sequence numbers start at 1 and leave no gap.  These classes hold
positions and frames, nothing durable: rows are the journal's business.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable

from overlay.link.errors import ProtocolError
from overlay.link.events import Flow
from overlay.link.frame_memory import UNBOUNDED, FrameMemory
from overlay.link.limits import WINDOW_FRAMES_CEILING, LinkLimits


class SendingChannel:
    """Frames for one peer on one (flow, key), oldest first, until they are acknowledged.

    Invariants: the journal holds exactly ``deleted + 1 .. last``; what was sent on this connection
    and is not acknowledged is ``in_flight``.  Of every frame the size is here, its bytes, of those
    that are not acknowledged, as far as ``memory`` has room; the others are ``missing`` and
    ``put_back`` from the store.
    """

    __slots__ = (
        "_frames",
        "_in_flight",
        "_memory",
        "_sizes",
        "_trimmed",
        "backlog_bytes",
        "base",
        "confirmed",
        "deleted",
        "floor",
        "flow",
        "gap",
        "in_flight_bytes",
        "is_partly",
        "is_reading",
        "keeps",
        "key",
        "passed",
        "row",
        "sent_through",
        "shift",
    )

    def __init__(self, flow: Flow, key: str, row: str, memory: FrameMemory = UNBOUNDED) -> None:
        """``row``: the key of its rows in the store."""
        self.flow = flow
        self.key = key
        self.row = row
        self.floor = 0  # acknowledged, by a hello or an Ack, ever
        self.confirmed = 0  # by an Ack, in this run of the process
        self.deleted = 0  # up to here nothing is in the store
        self.keeps = False  # what is acknowledged stays until it has been passed on
        self.passed = 0  # the peer has passed on all up to here
        self.is_partly = False  # but to some that are away
        self.gap = 0  # up to here the peer may have had to pass on what is not here any more
        self.sent_through = 0  # on this connection
        self.shift = 0  # a frame's number less that of its row
        self.base = 0  # the first number of a run that has not met the peer; 0: there is none
        self.is_reading = False  # rows were asked for
        self.backlog_bytes = 0
        self._memory = memory
        self._sizes = array("I")  # of floor + 1 .. last, behind so many that are trimmed
        self._trimmed = 0
        self._frames: dict[int, bytes] = {}
        self._in_flight: deque[tuple[int, int]] = deque()  # (sequence, bytes)
        self.in_flight_bytes = 0

    @property
    def last(self) -> int:
        """The highest number given out."""
        return self.deleted + len(self._sizes) - self._trimmed

    @property
    def committed(self) -> int:
        """The highest number given out by the last run that has met the peer, as far as it is
        known."""
        return self.base - 1 if self.base else self.last

    @property
    def is_whole(self) -> bool:
        """Whether all is here that the peer has taken and may not have passed on."""
        return (self.keeps or not self.floor) and self.passed >= self.gap and not self.is_partly

    @property
    def has_waiting(self) -> bool:
        """Whether a frame is not on the wire."""
        return self.sent_through < self.last

    @property
    def must_read(self) -> bool:
        """Whether the next frame to send has to come from the store."""
        return self.has_waiting and self.sent_through + 1 not in self._frames

    def append(self, data: bytes) -> None:
        """Add the encoded frame with the number ``last + 1``."""
        self._sizes.append(len(data))
        self.backlog_bytes += len(data)
        self._keep(self.last, data)

    def restore(self, sequence: int, size: int, data: bytes | None) -> None:
        """Add a stored frame; rows come in order of their numbers."""
        if sequence != self.last + 1:
            raise ValueError(f"frame {sequence} is stored where {self.last + 1} was expected")
        self._sizes.append(size)
        if sequence <= self.floor:
            return
        self.backlog_bytes += size
        if data is not None:
            self._keep(sequence, data)

    def release(self, sequence: int) -> None:
        """Leave a frame's bytes to the store if there is no room for them."""
        memory = self._memory
        if memory.bytes > memory.bytes_max and sequence in self._frames:
            self._memory.bytes -= len(self._frames.pop(sequence))

    def missing(self, limits: LinkLimits) -> range:
        """The next frames to send that are in the store only, a window of them at most."""
        first = following = self.sent_through + 1
        size = 0
        while following <= self.last and following not in self._frames:
            size += self._size(following)
            full = size > limits.window_bytes or following - first >= limits.window_frames
            if full and following > first:
                break
            following += 1
        return range(first, following)

    def window_end(self, first: int, limits: LinkLimits) -> int:
        """The last frame of a window that begins with one that waits."""
        last, size = first, self._size(first)
        while last < self.last and last - first < limits.window_frames:
            size += self._size(last + 1)
            if size > limits.window_bytes:
                break
            last += 1
        return last

    def put_back(self, sequence: int, data: bytes) -> None:
        """A frame as it was read; passed over when it is needed no longer."""
        if self.floor < sequence <= self.last and sequence not in self._frames:
            self._keep(sequence, data)
            self._memory.frames_read_back += 1

    def begin(self, received: int) -> None:
        """A new connection, on which the peer has everything up to ``received``; what it has
        acknowledged is gone, whatever it says."""
        self._in_flight.clear()
        self.in_flight_bytes = 0
        self.sent_through = max(received, self.floor)

    def trim(self, through: int) -> range:
        """The peer has the frames up to ``through``; returns the numbers to be deleted."""
        self.sent_through = max(self.sent_through, through)
        while self._in_flight and self._in_flight[0][0] <= through:
            self.in_flight_bytes -= self._in_flight.popleft()[1]
        taken = range(self.floor + 1, min(through, self.last) + 1)
        for sequence in taken:
            if sequence in self._frames:
                self._memory.bytes -= len(self._frames.pop(sequence))
        first = self._trimmed + self.floor - self.deleted
        self.backlog_bytes -= sum(self._sizes[first : first + len(taken)])
        self.floor = max(self.floor, through)
        return self.shed()

    def keep(self, *, keeps: bool) -> range:
        """Whether what is acknowledged is kept from now on; the numbers to be deleted."""
        if keeps and not self.keeps:
            self.gap = max(self.gap, self.floor)
        self.keeps = keeps
        return self.shed()

    def pass_on(self, through: int, *, partly: bool) -> range:
        """The peer has passed on what it took up to ``through``, ``partly`` if not to all; the
        numbers to be deleted."""
        self.passed = max(self.passed, min(through, self.last))
        self.is_partly = partly
        return self.shed()

    def shed(self) -> range:
        """The numbers of frames that nobody needs any more."""
        through = min(self.floor, self.passed) if self.keeps else self.floor
        if through <= self.deleted:
            return range(0)
        removed = range(self.deleted + 1, min(through, self.last) + 1)
        self._trimmed += len(removed)
        if 2 * self._trimmed >= len(self._sizes):  # each is moved once, however many wait
            del self._sizes[: self._trimmed]
            self._trimmed = 0
        self.deleted = through
        return removed

    def adopt(self, received: int, renumber: Callable[[bytes, int], bytes]) -> None:
        """Go on after ``received``, a number beyond all that this journal knows to have given
        out (its store was lost); waiting frames get new numbers, and keep their rows.  What is
        kept must have been deleted."""
        shift = received - self.floor
        self.shift += shift
        self.floor = self.deleted = received
        self.gap = max(self.gap, received)
        waiting, self._frames = self._frames, {}
        for sequence, data in waiting.items():
            self._memory.bytes -= len(data)
            self._keep(sequence + shift, renumber(data, sequence + shift))

    def window_open(self, limits: LinkLimits) -> bool:
        """Whether the next frame, which waits, may go now; one always may."""
        return not self._in_flight or (
            len(self._in_flight) < limits.window_frames
            and self.in_flight_bytes + self._size(self.sent_through + 1) <= limits.window_bytes
        )

    def take_next(self) -> bytes:
        """The next waiting frame, which is on the wire from now on."""
        sequence = self.sent_through + 1
        data = self._frames[sequence]
        self.sent_through = sequence
        self._in_flight.append((sequence, len(data)))
        self.in_flight_bytes += len(data)
        self.release(sequence)
        return data

    def _size(self, sequence: int) -> int:
        return self._sizes[self._trimmed + sequence - self.deleted - 1]

    def _keep(self, sequence: int, data: bytes) -> None:
        self._frames[sequence] = data
        self._memory.bytes += len(data)


class ReceivingChannel:
    """How far one channel from one peer has been received: ``last`` has been taken by the core,
    is stored, and is what the peer is told.  Behind it so many are ``held`` (``Journal.hold``),
    and with one all that follow."""

    __slots__ = ("flow", "held", "key", "last", "row", "stored", "told")

    def __init__(self, flow: Flow, key: str, row: str, last: int = 0) -> None:
        self.flow = flow
        self.key = key
        self.row = row
        self.last = last
        self.stored = last
        self.held = 0
        self.told = last  # by hello or Ack, on this connection

    def accept(self, sequence: int) -> bool:
        """Whether the frame is new; a gap or a frame far beyond any window is fatal."""
        last = self.last + self.held
        if sequence <= last:
            return False
        if sequence != last + 1:
            raise ProtocolError(
                "not-expected",
                f"sequence {sequence} on channel {self.key!r} after {last}",
                fatal=True,
            )
        if sequence - self.told > WINDOW_FRAMES_CEILING:
            raise ProtocolError(
                "window-exceeded",
                f"{sequence - self.told} unacknowledged frames on channel {self.key!r}",
                fatal=True,
            )
        if self.held:
            self.held += 1
        else:
            self.last = sequence
        return True

    def hold(self, sequence: int) -> None:
        """A frame that was accepted is not taken yet."""
        if sequence == self.last:
            self.last -= 1
            self.held = 1

    def settle(self) -> None:
        """The first that is held is taken."""
        self.last += 1
        self.held -= 1
