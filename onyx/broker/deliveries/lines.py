"""Lines: the connections of users, and what leaves on them.

Of each mailbox in a slot the next delivery has its turn when its window is open, the oldest of a
connection first; results that are not there yet are read, or made, before they leave.

A connection has a window, too, for all its slots together.  While it is full, only a slot that has
nothing on the wire gets anything; the others wait for room, the oldest first.  So one who takes
only one of their profiles does not stand still, and one who takes none gets a delivery of each.

In the slots of those who share a mailbox are Sharers of it; the next delivery is given to one of
them, and then has its turn on their connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import islice
from math import inf
from typing import TypeAlias

from onyx.broker.deliveries.delivery_log import NOTHING, DeliveryLog, Record, Results
from onyx.broker.deliveries.former_texts import FormerTexts
from onyx.broker.deliveries.mailbox import SHARED_LINE, Mailbox, Sharer
from onyx.broker.deliveries.result_maker import ResultMaker
from overlay.link.frame import Frame
from overlay.link.frame_codec import LENGTH_BYTES
from overlay.link.frames import (
    SLOTS_MAX,
    Detached,
    Missed,
)
from overlay.link.limits import LinkLimits
from overlay.link.link_layer import LinkLayer
from overlay.link.slices import Slice, never

# -------------------------------------------------------------------------------------------------
# Line: one connection of a user, with the mailboxes in its slots and what is on the wire.


Taker: TypeAlias = Mailbox | Sharer
"""What is in a slot."""


@dataclass(slots=True, eq=False)
class Line:
    """A connection with the mailboxes in its slots.

    ``queue`` is a heap of (position, slot), and so is ``held``, where each slot is once, with
    whether it still waits until there is room on the wire: ``waits``.  What is there: of each
    position its bytes, and in how many slots it is not taken; it counts until it is taken in all.
    ``gone``: by slot what has left a mailbox while it was on the wire, with its last number.
    """

    connection: int
    frame_bytes_max: int
    boxes: dict[int, Taker] = field(default_factory=dict)
    queue: list[tuple[int, int]] = field(default_factory=list)
    held: list[tuple[int, int]] = field(default_factory=list)
    waits: dict[int, bool] = field(default_factory=dict)
    on_wire: dict[int, list[int]] = field(default_factory=dict)
    on_wire_bytes: int = 0
    gone: dict[int, tuple[int, list[int]]] = field(default_factory=dict)


# -------------------------------------------------------------------------------------------------


SENT_AT_ONCE = 4_096  # deliveries of one call; then others have their turn
SENT_BYTES_AT_ONCE = 1024 * 1024  # more than a processor keeps at hand is slower, too
READ_AHEAD = 32  # deliveries of a mailbox that are read from the store together
HELD_SECONDS_EACH = 1e-4
"""Of processor time: while messages wait to be handled, a connection gets something again after so
long for each that has got something.  So the writing of many small pieces stays a part of what a
broker does under load; where nothing waits nothing is held."""
HELD_SECONDS_MAX = 0.1


class Lines:
    """``put`` mailboxes into slots, ``queue`` what has something to send, ``flush`` in the end."""

    def __init__(
        self,
        links: LinkLayer,
        limits: LinkLimits,
        log: DeliveryLog,
        texts: FormerTexts,
        maker: ResultMaker,
        slice_: Slice,
    ) -> None:
        """``slice_``: of the event under way."""
        self._links = links
        self._limits = limits
        self._log = log
        self._texts = texts
        self._maker = maker
        self.late = maker.late
        self._is_over = slice_.is_over
        self._clock = slice_.clock
        self._lines: dict[int, Line] = {}
        self._busy: dict[int, Line] = {}  # by connection, with something to send
        self._heads: list[tuple[int, int]] = []  # of these (position, connection), a heap
        self._reading: dict[int, Line] = {}  # by connection, that wait for the store
        self.hold_until = 0.0  # in processor time: meanwhile what can be sent may wait for more
        self._left: list[Mailbox] = []  # ephemeral ones that somebody took
        self.attached = 0  # slots with a mailbox in them
        self.on_wire_bytes = 0  # of what was sent and is not taken, on all connections
        self._turn = 0  # counts what is given to those who share

    @property
    def connections(self) -> int:
        return len(self._lines)

    def left(self) -> list[Mailbox]:
        """The ephemeral mailboxes that nobody takes any more, since this was asked last."""
        if not self._left:
            return []
        left, self._left = self._left, []
        return [box for box in left if not box.line]

    def put(self, connection: int, slot: int, box: Mailbox) -> None:
        """A mailbox into a slot, which ends what was there, and where it was."""
        self._replace(box)
        line = self._free(connection, slot)
        box.line, box.slot = connection, slot
        line.boxes[slot] = box
        self.attached += 1

    def put_in_order(self, box: Mailbox) -> None:
        """Of a mailbox that was put into a slot, taken through what its user had: what those who
        shared it have left comes first."""
        if box.sharing is None or not box.sharing.open:
            box.sharing = None
            return
        box.sharing.return_due(inf)
        line, slot, through = self._lines[box.line], box.slot, box.sent
        sharer = line.boxes[slot] = box.seat(line.connection, slot, in_order=True)
        sharer.through = through

    def share(self, connection: int, slot: int, box: Mailbox) -> None:
        """A slot more for a mailbox, which ends what was there, and whoever takes it alone."""
        if box.line != SHARED_LINE or (
            box.sharing is not None and any(sharer.in_order for sharer in box.sharing.sharers)
        ):
            self._replace(box)
        line = self._free(connection, slot)
        line.boxes[slot] = box.seat(connection, slot)
        self.attached += 1

    def _replace(self, box: Mailbox) -> None:
        if box.line:
            self.detach(box, "replaced", f"somebody else takes {box.profile!r} now")

    def _free(self, connection: int, slot: int) -> Line:
        """A connection, with nothing in a slot."""
        line = self._line(connection)
        former = line.boxes.get(slot)
        detail = f"another profile has slot {slot} now"
        if isinstance(former, Sharer):
            self._unseat(former, "replaced", detail)
            if former.box.line:
                self.queue(former.box)
        elif former is not None:
            self.detach(former, "replaced", detail)
        return line

    def refuse(self, connection: int, slot: int, code: str, detail: str) -> None:
        """Nothing comes in a slot."""
        line = self._line(connection)
        self._say(line, Detached(slot, code, detail))

    def taker(self, connection: int, slot: int) -> Taker | None:
        """What is in a slot."""
        line = self._lines.get(connection)
        return None if line is None else line.boxes.get(slot)

    def queue(self, box: Taker) -> None:
        """The next delivery of a mailbox has its turn, if there is one and the window is open."""
        if box.sharing is not None:
            self._give_out(box)
            return
        line = self._lines[box.line]
        if not box.is_open(self._limits.window_frames, self._limits.window_bytes):
            return
        if box.sent < box.floor:
            self._say(line, Missed(box.slot, box.floor, box.skip()))
        position = box.next_position()
        if position:
            box.is_queued = True
            heappush(line.queue, (position, box.slot))
            self._wake(line)

    def note_taken(self, box: Mailbox, through: int, positions: list[int]) -> None:
        """What was on the wire for a mailbox is taken through a number; its positions."""
        line = self._lines[box.line]
        if line.gone and line.gone.get(box.slot, (through + 1,))[0] <= through:
            self._leave_wire(line, line.gone.pop(box.slot)[1])
        self._leave_wire(line, positions)
        if box.sent == box.confirmed and line.waits.get(box.slot):
            line.waits[box.slot] = box.is_queued = False

    def note_gone(self, box: Mailbox, through: int, positions: list[int]) -> None:
        """The same has left the mailbox and is still on the wire."""
        gone = self._lines[box.line].gone
        _, before = gone.get(box.slot, (0, []))
        gone[box.slot] = through, before + positions

    def take_one(self, sharer: Sharer, number: int) -> list[int]:
        """One who shares a mailbox has a delivery, or all through it; what is held no more."""
        box = sharer.box
        gone = box.take_one(sharer, number)
        numbers = [n for n in sharer.given if n <= number] if sharer.in_order else [number]
        line = self._lines[sharer.line]
        self._leave_wire(line, [p for p in map(sharer.give_back, numbers) if p])
        if not sharer.has_on_wire and line.waits.get(sharer.slot):
            line.waits[sharer.slot] = sharer.is_queued = False
        if sharer.in_order and not sharer.given and not sharer.sharing.open:
            box.rejoin(sharer)
            line.boxes[box.slot] = box
        self.queue(sharer if box.sharing is not None else box)
        return gone

    def reject(self, sharer: Sharer, number: int, due: float) -> int:
        """One who shares a mailbox could not do with what they were sent; see Mailbox.reject."""
        times = sharer.box.reject(sharer, number, due)
        if times:
            line = self._lines[sharer.line]
            self._leave_wire(line, [sharer.give_back(number)])
            if not sharer.has_on_wire and line.waits.get(sharer.slot):
                line.waits[sharer.slot] = sharer.is_queued = False
            self.queue(sharer)
        return times

    def detach(self, box: Mailbox, code: str, detail: str) -> None:
        """Whoever takes a mailbox does so no more."""
        if box.sharing is not None:
            for sharer in list(box.sharing.sharers):
                self._unseat(sharer, code, detail)
            return
        line = self._lines.get(box.line)
        if line is not None:
            self.note_taken(box, max(box.sent, box.floor), box.on_wire(box.sent))
            self._end_slot(line, box.slot, code, detail)
        self._leave(box)

    def _unseat(self, sharer: Sharer, code: str, detail: str) -> None:
        line = self._lines[sharer.line]
        self._leave_wire(line, sharer.on_wire())
        self._end_slot(line, sharer.slot, code, detail)
        self._leave_shared(sharer)

    def _end_slot(self, line: Line, slot: int, code: str, detail: str) -> None:
        self._say(line, Detached(slot, code, detail))
        del line.boxes[slot]
        self.attached -= 1
        if slot in line.waits:
            line.waits[slot] = False

    def close(self, connection: int) -> list[tuple[Mailbox, int, int]]:
        """A connection is gone; what one had who shared a mailbox goes to the others.  Of those the
        mailbox, and see Sharing.note_broken."""
        line = self._lines.pop(connection, None)
        self._busy.pop(connection, None)
        self._reading.pop(connection, None)
        takers = [] if line is None else list(line.boxes.values())
        self.attached -= len(takers)
        self.on_wire_bytes -= 0 if line is None else line.on_wire_bytes
        broken = []
        for taker in takers:
            if isinstance(taker, Sharer):
                broken.append((taker.box, *taker.sharing.note_broken(taker)))
                self._leave_shared(taker)
            else:
                self._leave(taker)
        for taker in takers:
            if isinstance(taker, Sharer) and taker.box.line:
                self.queue(taker.box)
        return broken

    def flush(self) -> bool:
        """Send what can be sent, so much of it that others have their turn soon; of all lines the
        oldest message first, as what it takes to make its results is there once.  Whether there is
        more."""
        room, room_bytes = SENT_AT_ONCE, SENT_BYTES_AT_ONCE
        used: set[int] = set()
        while self._heads and room > 0 and room_bytes > 0:
            connection = heappop(self._heads)[1]
            line = self._busy.pop(connection, None)
            if line is None:
                continue
            used.add(connection)
            if line.held:
                self._let_in(line)
            if line.queue:
                sent, size = self._send_alone(line, room, room_bytes) or self._send_next(line)
                room -= sent
                room_bytes -= size
                if line.queue or line.held:
                    self._wake(line)
            if self._heads and self._is_over():
                break
        self.hold_until = 0.0
        if len(used) > 1:
            self.hold_until = self._clock() + min(len(used) * HELD_SECONDS_EACH, HELD_SECONDS_MAX)
        return bool(self._busy)

    def resume(self) -> None:
        """What was asked of the store has come."""
        lines, self._reading = self._reading, {}
        for line in lines.values():
            self._wake(line)

    def make(
        self,
        record: Record,
        position: int,
        boxes: Iterable[Taker],
        is_over: Callable[[], bool] = never,
    ) -> None:
        """Make results of a message that is in memory, until the slice is over."""
        assert record.message is not None
        is_over()  # the slice begins now, if it has not: to open a message may take long
        index = {box.profile: box.index for box in boxes}
        texts = [(box.profile, self._texts.at(box.profile, position)) for box in boxes]
        made: dict[tuple[bytes, tuple[int, ...]], Results] = {}
        for profiles, results in self._maker.make(
            record.source, record.number, record.message, texts, at_once=is_over is never
        ):
            shared = NOTHING
            if results is not None:
                shared = made.setdefault(results.key, results)
            self._log.make(record, [index[profile] for profile in profiles], shared)
            if is_over():
                return

    def read_ahead(self, index: int, positions: Iterable[int], most: int = READ_AHEAD) -> None:
        """Ask for the next deliveries of a mailbox that are in the store only."""
        wanted: list[int] = []
        size = 0
        for position in islice(positions, most):
            record = self._log.records[position]
            size += record.size
            if record.results(index) is None and record.message is None:
                wanted.append(position)
            if size > self._limits.window_bytes:
                break
        self._log.ask(wanted)

    # --- helpers --------------------------------------------------------------------------

    def _leave(self, box: Mailbox) -> None:
        """It is attached to no connection."""
        if box.is_ephemeral:
            self._left.append(box)
        box.line = box.slot = 0
        box.is_queued = False

    def _leave_shared(self, sharer: Sharer) -> None:
        sharer.box.leave(sharer)
        if sharer.box.is_ephemeral:
            self._left.append(sharer.box)

    def _send_next(self, line: Line) -> tuple[int, int]:
        """What one message gives to all of a connection's mailboxes whose next it is; how many
        these were, and its bytes."""
        position = line.queue[0][0]
        boxes: list[Taker] = []
        while line.queue and line.queue[0][0] == position and len(boxes) < SLOTS_MAX:
            box = line.boxes.get(heappop(line.queue)[1])
            if box is None or not box.is_queued:
                continue
            box.is_queued = False
            if box.next_position() != position:
                self.queue(box)  # the oldest have gone, or were taken, meanwhile
                continue
            boxes.append(box)
        if line.on_wire_bytes >= self._limits.connection_window_bytes:
            boxes = self._hold_back(line, position, boxes)
        if not boxes:
            return 0, 0
        record = self._log.records[position]
        sent, left = self._there(record, position, boxes)
        if left and record.message is None:
            self.read_ahead(left[0].index, left[0].ahead())
            self._reading[line.connection] = line
        elif left and self.late.is_awaited:
            self._reading[line.connection] = line  # until any is answered
        size = count = 0
        for results, wanted in sent:
            some = wanted
            if line.on_wire_bytes + size >= self._limits.connection_window_bytes:
                some = self._hold_back(line, position, wanted)
                if not some:
                    continue
            count += len(some)
            slots = [box.slot for box in some]
            numbers = [box.send(record.size) for box in some]
            if results is NOTHING:
                for slot, number in zip(slots, numbers, strict=True):
                    self._say(line, Missed(slot, number, 0))
                continue
            length = self._send_results(line, record, results, slots, numbers)
            if not length:
                return len(boxes), size
            size += length
        if count:
            line.on_wire_bytes += size
            self.on_wire_bytes += size
            on_wire = line.on_wire.get(position)
            if on_wire is None:
                line.on_wire[position] = [size, count]
            else:
                on_wire[0] += size
                on_wire[1] += count
        self._log.let_go(record)
        for box in boxes:
            if not box.is_queued:
                self.queue(box)
        return count, size

    def _send_alone(self, line: Line, room: int, room_bytes: int) -> tuple[int, int] | None:
        """Of a connection with one mailbox, which nobody shares, all that may be sent and whose
        results are there; how many, and their bytes.  None: that takes a closer look."""
        # PERF: no heap, and no lists of slots: the way of most users, who have a connection each.
        if line.held or len(line.queue) != 1 or len(line.boxes) != 1:
            return None
        (position, slot), box = line.queue[0], next(iter(line.boxes.values()))
        if not isinstance(box, Mailbox) or box.slot != slot or box.next_position() != position:
            return None
        limits, log, on_wire = self._limits, self._log, line.on_wire
        frames_max, bytes_max = limits.window_frames, limits.window_bytes
        wire_max = limits.connection_window_bytes
        sent = total = 0
        while position and sent < room and total < room_bytes:
            if box.has_on_wire and line.on_wire_bytes >= wire_max:
                break
            record = log.records[position]
            results = record.results(box.index)
            if results is None or results is NOTHING:
                break
            encoder = results.encoder or results.encode(record)
            head = encoder.head_of_one(slot, box.sent + 1)
            size = len(head) + len(results.payload)
            if size - LENGTH_BYTES > line.frame_bytes_max:
                break
            box.send(record.size)
            self._links.reply_results(line.connection, head, results.payload)
            on_wire[position] = [size, 1]
            line.on_wire_bytes += size
            total += size
            sent += 1
            log.let_go(record)
            is_open = box.is_open(frames_max, bytes_max)
            position = box.next_position() if is_open else 0
        if not sent:
            return None
        self.on_wire_bytes += total
        line.queue.clear()
        box.is_queued = False
        self.queue(box)
        return sent, total

    def _give_out(self, box: Taker) -> None:
        """What those who share a mailbox have room for; the last were sent what they had."""
        if isinstance(box, Sharer):
            if box.next_position() and not box.is_queued:
                self._have_turn(box, box.next_position())
            box = box.box
        windows = self._limits.window_frames, self._limits.window_bytes
        assert box.sharing is not None
        while (sharer := box.sharing.chosen(*windows)) is not None:
            lost = box.lost
            number = box.next_number()
            if sharer.in_order and number > sharer.through + 1:
                self._say(self._lines[sharer.line], Missed(sharer.slot, number - 1, lost))
                box.acknowledged = box.floor
            elif lost and not sharer.in_order:
                self._say(self._lines[sharer.line], Missed(sharer.slot, box.floor, lost))
                box.acknowledged = box.floor
            if not number:
                return
            position = box.give_out(number)
            sharer.give(number, position, self._log.records[position].size)
            sharer.through = max(sharer.through, number)
            self._turn += 1
            sharer.turn = self._turn
            self._have_turn(sharer, position)

    def _have_turn(self, sharer: Sharer, position: int) -> None:
        line = self._lines[sharer.line]
        sharer.is_queued = True
        heappush(line.queue, (position, sharer.slot))
        self._wake(line)

    def _hold_back(self, line: Line, position: int, boxes: list[Taker]) -> list[Taker]:
        """Those that may have a delivery while there is no room on the wire; the others wait."""
        for box in boxes:
            if box.has_on_wire:
                box.is_queued = True
                if box.slot not in line.waits:
                    heappush(line.held, (position, box.slot))
                line.waits[box.slot] = True
        return [box for box in boxes if not box.is_queued]

    def _let_in(self, line: Line) -> None:
        """As many of the oldest that wait as there is room for on the wire; what is equal counts
        once."""
        room = self._limits.connection_window_bytes - line.on_wire_bytes
        position = line.held[0][0]
        record = self._log.records.get(position)
        counted: set[int] = set()
        while room > 0 and line.held and line.held[0][0] == position:
            slot = heappop(line.held)[1]
            if not line.waits.pop(slot):
                continue
            heappush(line.queue, (position, slot))
            if record is None:
                continue  # it has been thrown away meanwhile
            results = record.results(line.boxes[slot].index)
            if results is None:
                room -= record.size
            elif id(results) not in counted:
                counted.add(id(results))
                room -= len(results.payload)

    def _leave_wire(self, line: Line, positions: list[int]) -> None:
        on_wire = line.on_wire
        for position in positions:
            sent = on_wire[position]
            if sent[1] > 1:
                sent[1] -= 1
            else:
                line.on_wire_bytes -= sent[0]
                self.on_wire_bytes -= sent[0]
                del on_wire[position]
        if line.held:
            self._wake(line)

    def _there(
        self, record: Record, position: int, boxes: list[Taker]
    ) -> tuple[list[tuple[Results, list[Taker]]], list[Taker]]:
        """Mailboxes by the results that they get, and those whose results are not there yet, nor
        made before the slice is over."""
        if record.common is not None:
            return [(record.common, boxes)], []
        if record.message is not None:
            lacking = [box for box in boxes if record.results(box.index) is None]
            if lacking:
                self.make(record, position, lacking, self._is_over)
        by_results: dict[int, tuple[Results, list[Taker]]] = {}
        left = []
        for box in boxes:
            results = record.results(box.index)
            if results is None:
                left.append(box)
            else:
                by_results.setdefault(id(results), (results, []))[1].append(box)
        return list(by_results.values()), left

    def _send_results(
        self, line: Line, record: Record, results: Results, slots: list[int], numbers: list[int]
    ) -> int:
        """The bytes of it; 0 where that ended the connection: what it accepts is less than this."""
        encoder = results.encoder or results.encode(record)
        head = encoder.head(slots, numbers)
        size = len(head) + len(results.payload)
        if size - LENGTH_BYTES > line.frame_bytes_max:
            detail = f"deliveries frame of {size} bytes; at most {line.frame_bytes_max}"
            self._links.refuse(line.connection, "peer-limit", detail)
            self.close(line.connection)
            return 0
        self._links.reply_results(line.connection, head, results.payload)
        return size

    def _line(self, connection: int) -> Line:
        line = self._lines.get(connection)
        if line is None:
            most = self._links.frame_bytes_max(connection)
            line = self._lines[connection] = Line(connection, most)
        return line

    def _wake(self, line: Line) -> None:
        """A connection has its turn, if there may be something to send on it."""
        connection, waiting = line.connection, line.queue or line.held
        is_there = connection in self._lines  # or what it was sent has ended it
        has_turn = connection in self._busy or connection in self._reading
        if waiting and is_there and not has_turn:
            self._busy[connection] = line
            heappush(self._heads, (waiting[0][0], connection))

    def _say(self, line: Line, frame: Frame) -> None:
        """Something else, behind the results that leave."""
        self._links.reply(line.connection, frame)
