"""Mailbox: the deliveries of one profile, from the first that its user has not taken.

::

    1 ........ floor | floor+1 ... sent | ........... last
    gone             | on the wire      | waiting

Numbers begin at 1 and leave no gap; of each delivery only the position in the log is here, 8 bytes.

Several may share a mailbox.  What is given to one of them leaves the front and is *open* until it
is taken, each for itself; what one had who has gone is given to another first::

    floor+1 ........... last          waiting, as above
       │ give
       v
    open  17 18 23 ────────────>      17, 23 at one of them, 18 at nobody now

What one of them rejects is *delayed*: open, and at nobody until it is due.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from math import inf
from typing import NamedTuple

import msgpack

from onyx.broker.deliveries.delivery_log import pack_ascending, unpack_ascending

_COMPACT_AT = 1024  # positions at the front that are in no use
SHARED_LINE = -1  # the connection of a mailbox that is shared
SHARERS_MAX = 1_024  # of one mailbox
OPEN_MAX = 4_096  # deliveries that all who share a mailbox have; one each may always be
TAKEN_AHEAD_MAX = 65_536  # so far beyond what was given out one may have taken before a restart


class MailboxState(NamedTuple):
    """What is stored of a mailbox: ``numbers`` and ``positions`` are of what is open
    (``pack_ascending``), ``rejected`` what was rejected of it, how often (number, times)."""

    acknowledged: int
    floor: int
    cursor: int
    log_index: int
    numbers: bytes = b""
    positions: bytes = b""
    is_ephemeral: bool = False
    is_claimed: bool = False
    rejected: bytes = b""


class UserBacklog:
    """``bytes`` that wait for a user in ``boxes``."""

    __slots__ = ("boxes", "bytes", "name")

    def __init__(self, name: str, size: float = 0) -> None:
        self.name = name
        self.bytes = size
        self.boxes: set[Mailbox] = set()


UNKNOWN_USER = UserBacklog("", -inf)
"""Of mailboxes whose profile is not here, or not yet: no sum of theirs is ever too much."""


class Mailbox:
    """``acknowledged``: by the user, ever; ``index``: what it is called in the log, for ever.

    ``cursor``: the position in the log through which it holds nothing.  ``line`` and ``slot``: the
    connection that it is attached to, by number, 0 for none.  ``is_queued``: it waits for its turn
    there; what is in flight is behind ``confirmed``.  ``sharing``: by those who share it, and while
    anything is open; ``floor`` is through which nothing waits then, and ``acknowledged`` so much
    less as was lost that nobody was told of.  ``is_ephemeral``: it keeps nothing while nobody takes
    it; ``is_claimed``: somebody has taken it once.  ``is_held``: what its connection has taken,
    through ``confirmed``, stays until it is released.  ``user``: whose it is, with others of
    theirs.
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
        "is_claimed",
        "is_ephemeral",
        "is_held",
        "is_queued",
        "line",
        "profile",
        "sent",
        "sharing",
        "slot",
        "user",
    )

    def __init__(self, profile: str, index: int = 0, cursor: int = 0) -> None:
        self.profile = profile
        self.index = index
        self.cursor = cursor
        self.acknowledged = self.floor = self.sent = self.confirmed = 0
        self.backlog_bytes = 0
        self.line = self.slot = 0
        self.is_queued = self.is_ephemeral = self.is_claimed = self.is_held = False
        self.in_flight_bytes = 0
        self.sharing: Sharing | None = None
        self.user = UNKNOWN_USER
        self._positions = array("Q")
        self._start = 0

    @staticmethod
    def restored(profile: str, state: MailboxState) -> Mailbox:
        """Without what is in it; the caller appends that."""
        box = Mailbox(profile, state.log_index, state.cursor)
        box.acknowledged, box.floor = state.acknowledged, state.floor
        box.is_ephemeral, box.is_claimed = state.is_ephemeral, state.is_claimed
        if state.numbers or box.is_ephemeral:
            numbers, positions = unpack_ascending(state.numbers), unpack_ascending(state.positions)
            box.sharing = Sharing(numbers, positions)
            if state.rejected:
                box.sharing.rejected = dict(msgpack.unpackb(state.rejected))
        return box

    def state(self) -> MailboxState:
        state = self.acknowledged, self.floor, self.cursor, self.index
        opened = {} if self.sharing is None else self.sharing.open
        flags = self.is_ephemeral, self.is_claimed
        if not opened and not any(flags):
            return MailboxState(*state)
        numbers = sorted(opened)
        positions = pack_ascending([opened[number] for number in numbers])
        rejected = b""
        if self.sharing is not None and self.sharing.rejected:
            times = [each for each in self.sharing.rejected.items() if each[0] in opened]
            rejected = msgpack.packb(times) if times else b""
        return MailboxState(*state, pack_ascending(numbers), positions, *flags, rejected)

    @property
    def last(self) -> int:
        """The highest number given out."""
        return self.floor + len(self._positions) - self._start

    @property
    def bottom(self) -> int:
        """All through this number is gone."""
        opened = () if self.sharing is None else self.sharing.open
        return min(opened, default=self.floor + 1) - 1

    @property
    def lost(self) -> int:
        """How many of what is gone nobody had taken."""
        return self.floor - self.acknowledged

    @property
    def count(self) -> int:
        """How many deliveries are here."""
        return self.last - self.floor + (0 if self.sharing is None else len(self.sharing.open))

    @property
    def empty_through(self) -> int:
        """The position in the log through which it holds nothing."""
        if self.sharing is None:
            return self.cursor
        return min(self.sharing.open.values(), default=self.cursor + 1) - 1

    def holds(self, position: int) -> bool:
        """Whether it has what is at a position, where it is one of those that got it."""
        opened = () if self.sharing is None else self.sharing.open.values()
        return position > self.cursor or position in opened

    def append(self, position: int, size: int) -> None:
        """A delivery more."""
        self._positions.append(position)
        self.backlog_bytes += size

    def waiting(self, after: int) -> Iterator[tuple[int, int]]:
        """(number, position) of all behind ``after`` that are there."""
        if self.sharing is not None:
            yield from sorted(each for each in self.sharing.open.items() if each[0] > after)
        for number in range(max(after, self.floor) + 1, self.last + 1):
            yield number, self._positions[self._start + number - self.floor - 1]

    def begin(self, received: int, *, is_held: bool = False) -> None:
        """A new connection, whose user has all through ``received``."""
        self.is_held = is_held
        self.in_flight_bytes = 0
        self.sent = self.confirmed = received

    def next_position(self) -> int:
        """Where the next delivery is that is to be sent; 0: there is none."""
        following = self.sent - self.floor
        place = self._start + following
        return self._positions[place] if following >= 0 and place < len(self._positions) else 0

    def ahead(self) -> Iterator[int]:
        """The positions of what is to be sent."""
        return (position for _, position in self.waiting(self.sent))

    @property
    def has_on_wire(self) -> bool:
        """Whether something was sent and is not taken."""
        return self.sent > self.confirmed

    def send(self, size: int) -> int:
        """The next delivery is on the wire from now on; its number."""
        self.sent += 1
        self.in_flight_bytes += size
        return self.sent

    def on_wire(self, through: int) -> list[int]:
        """The positions of what was sent through a number, is not taken and is here."""
        first = max(self.confirmed, self.floor)
        behind = max(first, min(through, self.sent))
        start = self._start - self.floor
        return self._positions[start + first : start + behind].tolist()

    def confirm(self, through: int) -> list[int]:
        """The user has all through a number, which stays here; the positions of what was on the
        wire."""
        come = self.on_wire(through)
        self.confirmed = max(self.confirmed, through)
        self.sent = max(self.confirmed, self.sent)
        return come

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
        opened = [] if self.sharing is None else self.sharing.remove(through)
        return opened + self._remove_front(through)

    def empty(self) -> list[int]:
        """Forget all, of which nobody is told; their positions."""
        gone = self.remove(self.last)
        self.acknowledged = self.floor
        self.sharing = None
        return gone

    def drop(self, through: int) -> list[int]:
        """The same, of what is too much to keep: whoever takes the rest is told what is lost."""
        if self.sharing is not None:
            self.acknowledged = max(0, self.acknowledged - self.sharing.at_nobody(through))
        return self.remove(through)

    def _remove_front(self, through: int) -> list[int]:
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

    def seat(self, line: int, slot: int, in_order: bool = False) -> Sharer:
        """One more who shares it, in a slot of a connection; ``in_order``: the only one."""
        if self.sharing is None:
            self.sharing = Sharing()
        sharer = Sharer(self, self.sharing, line, slot, in_order)
        self.sharing.sharers.append(sharer)
        self.line, self.slot = SHARED_LINE, 0
        return sharer

    def leave(self, sharer: Sharer) -> None:
        """One shares it no more; what they have not taken is at nobody now."""
        sharing = sharer.sharing
        sharing.sharers.remove(sharer)
        for number in sharer.given:
            if number in sharing.open:
                heappush(sharing.returned, number)
        if not sharing.sharers:
            self.line = 0
            if not sharing.open:
                self.sharing = None

    def rejoin(self, sharer: Sharer) -> None:
        """Nothing is open any more, and the only one who shares it takes it alone from now on."""
        self.line, self.slot = sharer.line, sharer.slot
        self.is_queued = False
        self.sharing = None
        self.begin(sharer.through)

    def next_number(self) -> int:
        """Of what is at nobody the oldest; 0: there is nothing."""
        assert self.sharing is not None
        returned = self.sharing.returned
        while returned and returned[0] not in self.sharing.open:
            heappop(returned)  # it was taken or thrown away
        if returned:
            return returned[0]
        return self.floor + 1 if self.floor < self.last else 0

    def give_out(self, number: int) -> int:
        """What ``next_number`` said is open from now on; its position."""
        assert self.sharing is not None
        returned = self.sharing.returned
        if returned and returned[0] == number:
            heappop(returned)
        else:
            self._open_front(number)
        return self.sharing.open[number]

    def open_through(self, through: int) -> None:
        """All through a number that is here is at nobody, the rest of it was taken."""
        if self.sharing is None:
            self.sharing = Sharing()
        before = self.floor
        for number in range(before + 1, min(through, self.last) + 1):
            self._open_front(number)
            heappush(self.sharing.returned, number)
        if through > self.floor:
            self.acknowledged += through - self.floor
            self.floor = through

    def _open_front(self, number: int) -> None:
        assert self.sharing is not None
        (self.sharing.open[number],) = self._remove_front(number)
        self.acknowledged += 1

    def reject(self, sharer: Sharer, number: int, due: float) -> int:
        """One of those who share it, not in order, could not do with what they were sent: it is at
        nobody, and delayed until then.  How often that was so; 0: they do not have it."""
        sharing = sharer.sharing
        if number not in sharing.open or not sharer.was_sent(number):
            return 0
        heappush(sharing.delayed, (due, number))
        sharing.rejected[number] = sharing.rejected.get(number, 0) + 1
        return sharing.rejected[number]

    def take_one(self, sharer: Sharer, number: int) -> list[int]:
        """One of those who share it has a delivery, or, in order, all through it; the positions
        that are held no more."""
        sharing = sharer.sharing
        if not sharer.in_order:
            if self.floor < number <= min(self.last, self.floor + TAKEN_AHEAD_MAX):
                self.open_through(number)  # they had it before a restart
            if sharing.rejected:
                sharing.rejected.pop(number, None)
            position = sharing.open.pop(number, 0)
            return [position] if position else []
        lost = self.lost
        gone = self.remove(number)
        self.acknowledged = self.floor - lost
        sharer.through = max(sharer.through, number)
        return gone


class Sharing:
    """What is open of a mailbox, its position by number; ``returned`` is a heap of the numbers of
    what is at nobody, among some that are not open any more.  ``rejected``: how often what is open
    was, by number; ``delayed``: a heap of these (due, number), until they are returned;
    ``broken``: how often a connection broke of which this number was the oldest, in this run."""

    __slots__ = ("broken", "delayed", "open", "rejected", "returned", "sharers")

    def __init__(self, numbers: Sequence[int] = (), positions: Sequence[int] = ()) -> None:
        """What is open, by number."""
        self.open = dict(zip(numbers, positions, strict=True))
        self.returned = sorted(numbers)
        self.rejected: dict[int, int] = {}
        self.broken: dict[int, int] = {}
        self.delayed: list[tuple[float, int]] = []
        self.sharers: list[Sharer] = []

    def hold(self, number: int) -> None:
        """What is at nobody is not given out again."""
        self.delayed = [each for each in self.delayed if each[1] != number]
        heapify(self.delayed)
        self.returned = [each for each in self.returned if each != number]
        heapify(self.returned)

    def note_broken(self, sharer: Sharer) -> tuple[int, int]:
        """The connection of one is gone: the number that they were at, which is the oldest that was
        sent and is open, and how often it was that; (0, 0): none."""
        at = (each for each in sharer.given if each != sharer.next and each in self.open)
        number = 0 if sharer.in_order else min(at, default=0)
        if not number:
            return 0, 0
        self.broken = {each: times for each, times in self.broken.items() if each in self.open}
        self.broken[number] = times = self.broken.get(number, 0) + 1
        return number, times

    def delay(self, number: int, due: float) -> None:
        """What is at nobody, after a restart, is not given out again until then."""
        self.hold(number)
        heappush(self.delayed, (due, number))

    def return_due(self, now: float) -> list[int]:
        """What was delayed and is due may be given out again; the numbers."""
        due = []
        while self.delayed and self.delayed[0][0] <= now:
            due.append(heappop(self.delayed)[1])
            heappush(self.returned, due[-1])
        return due

    def chosen(self, frames_max: int, bytes_max: int) -> Sharer | None:
        """Who gets the next delivery: of those with an open window, who has fewest, and of these
        who was given something the longest ago."""
        frames_max = min(frames_max, max(1, OPEN_MAX // max(1, len(self.sharers))))
        best = None
        for sharer in self.sharers:
            if sharer.is_open(frames_max, bytes_max) and (
                best is None or (len(sharer.given), sharer.turn) < (len(best.given), best.turn)
            ):
                best = sharer
        return best

    def at_nobody(self, through: int) -> int:
        """How many open ones through a number nobody has."""
        return sum(
            number <= through and not any(sharer.was_sent(number) for sharer in self.sharers)
            for number in self.open
        )

    def remove(self, through: int) -> list[int]:
        return [self.open.pop(n) for n in sorted(n for n in self.open if n <= through)]


class Sharer:
    """One of those who share a mailbox, in a slot of a connection.

    ``given``: position and size of what they have and have not taken, by number.  ``next``: what of
    it has not been sent; 0: nothing.  ``turn``: when they were given something last.  ``in_order``:
    they are alone, and know nothing of sharing: they get what others who shared have left, are told
    of what is between it, and take all ``through`` a number.
    """

    __slots__ = (
        "box",
        "given",
        "given_bytes",
        "in_order",
        "index",
        "is_queued",
        "line",
        "next",
        "profile",
        "sharing",
        "slot",
        "through",
        "turn",
    )

    def __init__(
        self, box: Mailbox, sharing: Sharing, line: int, slot: int, in_order: bool
    ) -> None:
        self.box = box
        self.sharing = sharing
        self.profile, self.index = box.profile, box.index
        self.line, self.slot = line, slot
        self.in_order = in_order
        self.is_queued = False
        self.given: dict[int, tuple[int, int]] = {}
        self.given_bytes = 0
        self.next = self.through = self.turn = 0

    def is_open(self, frames_max: int, bytes_max: int) -> bool:
        """Whether they may be given something now."""
        if self.next:
            return False
        return not self.given or (len(self.given) < frames_max and self.given_bytes < bytes_max)

    def give(self, number: int, position: int, size: int) -> None:
        """The next to be sent."""
        self.next = number
        self.given[number] = position, size
        self.given_bytes += size

    def give_back(self, number: int) -> int:
        """They have something no more; its position, 0 if it was not sent."""
        position, size = self.given.pop(number, (0, 0))
        self.given_bytes -= size
        if number == self.next:
            self.next = 0
            return 0
        return position

    def was_sent(self, number: int) -> bool:
        return number in self.given and number != self.next

    @property
    def has_on_wire(self) -> bool:
        return len(self.given) > bool(self.next)

    def on_wire(self) -> list[int]:
        return [each[0] for number, each in self.given.items() if number != self.next]

    def next_position(self) -> int:
        if self.next and self.next not in self.sharing.open:
            self.give_back(self.next)  # it was taken by one who had it before, or thrown away
        return self.sharing.open.get(self.next, 0)

    def ahead(self) -> Iterator[int]:
        yield self.sharing.open[self.next]
        for _, position in self.box.waiting(self.box.floor):
            yield position

    def send(self, size: int) -> int:
        number, self.next = self.next, 0
        return number


def append_to_all(boxes: Iterable[Mailbox], position: int, size: int) -> tuple[int, float]:
    """A delivery more in each; the bytes of the largest backlog of them, and of a user of them."""
    # PERF: a call for each box would be most of what a message costs that 1,000 get who are away.
    largest, most = 0, 0.0
    for box in boxes:
        box._positions.append(position)
        backlog = box.backlog_bytes = box.backlog_bytes + size
        if backlog > largest:  # noqa: PLR1730
            largest = backlog
        user = box.user
        waiting = user.bytes = user.bytes + size
        if waiting > most:  # noqa: PLR1730
            most = waiting
    return largest, most
