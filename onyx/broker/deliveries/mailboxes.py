"""Mailboxes: what waits for the users of this broker, and their connections.

::

    deliver ──> log: a record          one row a result of a message, whoever gets it
           └──> mailboxes: its position, 8 bytes for each profile
    flush   ──> connections: to each the record once, with the slots of its profiles that get it

A user who is away is a number: through what they have taken.  Whoever comes gets what is behind it,
as far as the window of each profile allows; what has been taken is forgotten, and a record with the
last mailbox that held it.

=============  =======================  ============================================================
space          key                      value
=============  =======================  ============================================================
delivery       a position               see delivery_log.py
mailbox        the profile              acknowledged, floor, shift, since (see mailbox.py)
change         a number                 the same of all mailboxes that have changed in a call, which
                                        counts instead; None for one that is gone
=============  =======================  ============================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from onyx.broker.deliveries.delivery_log import DELIVERY_SPACE, DeliveryLog
from onyx.broker.deliveries.mailbox import Mailbox
from overlay.link.delivery_frames import (
    SLOTS_MAX,
    Attach,
    Deliveries,
    Delivery,
    Detached,
    Missed,
    Taken,
    columns,
    packed_numbers,
    packed_slots,
)
from overlay.link.errors import ProtocolError, StoreError
from overlay.link.events import ReadRows, RowsRead
from overlay.link.frame import Frame
from overlay.link.limits import LinkLimits
from overlay.link.link_layer import LinkLayer
from overlay.link.row_log import RowLog, number_key, read_record

MAILBOX_SPACE = "mailbox"
CHANGE_SPACE = "mailbox-change"

SENT_AT_ONCE = 4_096  # deliveries of one call; then others have their turn
SENT_BYTES_AT_ONCE = 4 * 1024 * 1024
READ_AHEAD = 32  # deliveries of a mailbox that are read from the store together

Row = tuple[str, str, bytes]


@dataclass(slots=True, eq=False)
class _Line:
    """A connection with the mailboxes in its slots; ``queue`` is a heap of (position, slot)."""

    connection: int
    boxes: dict[int, Mailbox] = field(default_factory=dict)
    queue: list[tuple[int, int]] = field(default_factory=list)


class Mailboxes:
    """``deliver``; ``attach``, ``take`` and ``close`` as connections say; ``flush`` in the end."""

    def __init__(
        self, links: LinkLayer, rows: RowLog, limits: LinkLimits, backlog_bytes_max: int
    ) -> None:
        """``backlog_bytes_max`` may wait for one profile; beyond, the oldest goes."""
        self._links = links
        self._rows = rows
        self._limits = limits
        self._backlog_bytes_max = backlog_bytes_max
        self._log = DeliveryLog(rows, limits.journal_memory_bytes)
        self._boxes: dict[str, Mailbox] = {}
        self._lines: dict[int, _Line] = {}
        self._busy: dict[int, _Line] = {}  # by connection, with something to send
        self._reading: dict[int, _Line] = {}  # by connection, that wait for the store
        self._changed: dict[str, Mailbox | None] = {}  # in this call; None: it is gone
        self._unwritten: dict[str, None] = {}  # whose row is of before some changes
        self._changes: list[str] = []  # the keys of rows of changes, in order
        self._counters: Counter[str] = Counter()

    def restore(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Take back its rows, in any order; the others come out."""
        records: list[tuple[int, Sequence[str], Sequence[int]]] = []
        states: dict[str, list[int] | None] = {}
        changes: list[tuple[str, list[tuple[str, list[int] | None]]]] = []
        for space, key, value in rows:
            if space == DELIVERY_SPACE:
                records.append(self._log.restore(key, value))
            elif space == MAILBOX_SPACE:
                states[key] = read_record(value)["state"]
            elif space == CHANGE_SPACE:
                changes.append((key, read_record(value)["states"]))
            else:
                yield space, key, value
        for key, changed in sorted(changes, key=lambda change: change[0]):
            states.update((profile, state) for profile, state in changed)
            self._unwritten.update((profile, None) for profile, _ in changed)
            self._changes.append(key)
        for profile, state in states.items():
            if state is not None:
                box = self._boxes[profile] = Mailbox(profile, state[3])
                box.acknowledged, box.floor, box.shift = state[:3]
                self._log.last = max(self._log.last, box.since)
        for position, profiles, numbers in sorted(records, key=lambda record: record[0]):
            self._restore_record(position, profiles, numbers)

    @property
    def has_more(self) -> bool:
        """Whether there is more to send now than one ``flush`` does."""
        return bool(self._busy)

    # --- what messages give ---------------------------------------------------------------

    def deliver(
        self, source: str, number: int, results: Sequence[bytes], profiles: Sequence[str]
    ) -> int:
        """The same results of a message for some profiles, each named once; how many of former
        messages had to go for want of room."""
        boxes = [self._box(profile) for profile in profiles]
        numbers = [box.last + 1 - box.shift for box in boxes]
        record = self._log.append(source, number, results, profiles, numbers)
        position, size, dropped = self._log.last, record.size, 0
        lines = self._lines
        is_sent = False
        for box in boxes:
            box.append(position, size)
            if box.line and not box.is_queued:
                self._queue(lines[box.line], box)
            is_sent |= box.is_queued
            if box.backlog_bytes > self._backlog_bytes_max:
                dropped += self._drop_oldest(box)
        if not is_sent:
            self._log.let_go(record)
        return dropped

    # --- connections ----------------------------------------------------------------------

    def attach(
        self, connection: int, frame: Attach, refusal: Callable[[str], tuple[str, str] | None]
    ) -> None:
        """Profiles are taken by a connection from now on, but those for which there is a
        ``refusal``: (code, detail)."""
        line = self._lines.setdefault(connection, _Line(connection))
        for slot, profile, received in frame.profiles:
            refused = refusal(profile)
            if refused is not None:
                self._send(line, Detached(slot, *refused))
                continue
            box = self._box(profile)
            if box.line:
                self._detach(box, "replaced", f"somebody else takes {profile!r} now")
            former = line.boxes.get(slot)
            if former is not None:
                self._detach(former, "replaced", f"another profile has slot {slot} now")
            if received > box.last:
                box.adopt(received)
                self._changed[profile] = box
                self._counters["adopted"] += 1
            box.line, box.slot = connection, slot
            line.boxes[slot] = box
            box.begin(received)
            self._release(box, box.take(received))
            box.in_flight_bytes = 0
            self._queue(line, box)

    def take(self, connection: int, frame: Taken) -> None:
        """Deliveries are done; a number that was never given out is a ProtocolError."""
        line = self._lines.get(connection)
        for slot, number in columns(frame):
            box = None if line is None else line.boxes.get(slot)
            if line is None or box is None:
                continue  # it was detached meanwhile
            if number > box.last:  # over an earlier connection it may have been sent
                raise ProtocolError(
                    "not-expected", f"delivery {number} of {box.profile!r} was never given out"
                )
            before = box.backlog_bytes
            self._release(box, box.take(number))
            if box.confirmed == box.sent:
                box.in_flight_bytes = 0
            else:
                box.in_flight_bytes -= before - box.backlog_bytes
            if box.sent < box.last and not box.is_queued:
                self._queue(line, box)

    def close(self, connection: int) -> None:
        """A connection is gone."""
        line = self._lines.pop(connection, None)
        self._busy.pop(connection, None)
        self._reading.pop(connection, None)
        for box in () if line is None else line.boxes.values():
            _leave(box)

    def flush(self) -> None:
        """Send what can be sent, so much of it that others have their turn soon."""
        room, room_bytes = SENT_AT_ONCE, SENT_BYTES_AT_ONCE
        for connection, line in list(self._busy.items()):
            while line.queue and room > 0 and room_bytes > 0:
                sent, size = self._send_next(line)
                room -= sent
                room_bytes -= size
                if connection in self._reading:
                    break
            if not line.queue or connection in self._reading:
                self._busy.pop(connection, None)
        if self._changed:
            self._note_changed()

    def tick(self) -> None:
        """Now and then: what has changed meanwhile becomes a row for each mailbox."""
        for profile in self._unwritten:
            box = self._boxes.get(profile)
            if box is not None:
                self._rows.put(MAILBOX_SPACE, profile, {"state": _state(box)})
        for key in self._changes:
            self._rows.delete(CHANGE_SPACE, key)
        self._unwritten.clear()
        self._changes.clear()

    def reads(self) -> list[ReadRows]:
        """What is to be read from the store; ``handle_read`` takes it."""
        return self._log.reads()

    def handle_read(self, rows: RowsRead) -> None:
        """Rows of DELIVERY_SPACE."""
        self._log.put_back(rows)
        self._busy.update(self._reading)
        self._reading.clear()

    # --- profiles that come and go --------------------------------------------------------

    def forget(self, profile: str) -> None:
        """A profile is gone, with all that waits for its user."""
        box = self._boxes.pop(profile, None)
        if box is not None:
            self._detach(box, "forgotten", f"profile {profile!r} was removed")
            self._release(box, box.remove(box.last))
            self._rows.delete(MAILBOX_SPACE, profile)
            self._changed[profile] = None

    def send_away(self, profile: str, code: str, detail: str) -> None:
        """Whoever takes a profile does so no longer here."""
        box = self._boxes.get(profile)
        if box is not None:
            self._detach(box, code, detail)

    def take_over(self, profile: str, acknowledged: int, floor: int) -> None:
        """A mailbox that another broker has begun goes on here: next is delivery ``floor + 1``."""
        box = self._box(profile)
        box.acknowledged, box.floor = acknowledged, floor
        self._changed[profile] = box

    def box(self, profile: str) -> Mailbox:
        """That of a profile, empty if there was none."""
        return self._boxes.get(profile) or Mailbox(profile)

    def portion(self, profile: str, after: int, bytes_max: int) -> list[tuple[int, Delivery]]:
        """(number, delivery) of the next ones behind ``after``, some bytes of them; none where the
        next one has to be read, which is asked for then."""
        box = self.box(profile)
        found: list[tuple[int, Delivery]] = []
        size = 0
        for number, position in box.waiting(after):
            record = self._log.records[position]
            if record.payload is None:
                if not found:
                    self._read_ahead(box, number)
                break
            found.append(
                (
                    number,
                    Delivery(profile, record.source, record.number, record.lengths, record.payload),
                )
            )
            size += record.size
            if size >= bytes_max:
                break
        for number, _ in found:
            self._log.let_go(self._log.records[box.position(number)])
        return found

    def statistics(self) -> dict[str, object]:
        """``waiting``: deliveries that nobody has taken, with ``waiting_bytes``; ``stored_bytes``:
        the results of these, each once; ``subscribers``: connections that take any, ``attached``
        profiles."""
        boxes = self._boxes.values()
        return {
            "mailboxes": len(self._boxes),
            "waiting": sum(box.last - box.floor for box in boxes),
            "waiting_bytes": sum(box.backlog_bytes for box in boxes),
            "subscribers": len(self._lines),
            "attached": sum(len(line.boxes) for line in self._lines.values()),
            **self._log.statistics(),
            **self._counters,
        }

    # --- helpers --------------------------------------------------------------------------

    def _note_changed(self) -> None:
        """One row for all mailboxes that have changed in this call."""
        key = number_key(int(self._changes[-1]) + 1 if self._changes else 1)
        states = [(profile, _state(box)) for profile, box in self._changed.items()]
        self._rows.put(CHANGE_SPACE, key, {"states": states})
        self._changes.append(key)
        self._unwritten.update(dict.fromkeys(self._changed))
        self._changed.clear()

    def _box(self, profile: str) -> Mailbox:
        box = self._boxes.get(profile)
        if box is None:
            box = self._boxes[profile] = Mailbox(profile, self._log.last)
            self._changed[profile] = box
        return box

    def _restore_record(
        self, position: int, profiles: Sequence[str], numbers: Sequence[int]
    ) -> None:
        record = self._log.records[position]
        record.holders = 1  # this one, until all are counted
        for profile, number in zip(profiles, numbers, strict=True):
            box = self._boxes.get(profile)
            if box is None or position <= box.since or number + box.shift <= box.floor:
                continue
            if number + box.shift != box.last + 1:
                raise StoreError(
                    f"delivery {number} of {profile!r} is stored where "
                    f"{box.last + 1 - box.shift} was expected"
                )
            box.append(position, record.size)
            record.holders += 1
        self._log.release(position)

    def _queue(self, line: _Line, box: Mailbox) -> None:
        """The next delivery of a mailbox has its turn, if there is one and the window is open."""
        if box.sent < box.floor:
            self._send(line, Missed(box.slot, box.floor, box.skip()))
        is_open = box.is_open(self._limits.window_frames, self._limits.window_bytes)
        if box.sent < box.last and is_open:
            box.is_queued = True
            heappush(line.queue, (box.position(box.sent + 1), box.slot))
            if line.connection not in self._reading:
                self._busy[line.connection] = line

    def _send_next(self, line: _Line) -> tuple[int, int]:
        """One record to all of a connection's mailboxes whose next it is; how many these were, and
        its bytes."""
        position = line.queue[0][0]
        boxes: list[Mailbox] = []
        while line.queue and line.queue[0][0] == position and len(boxes) < SLOTS_MAX:
            box = line.boxes.get(heappop(line.queue)[1])
            if box is None or not box.is_queued:
                continue
            box.is_queued = False
            has_next = box.floor <= box.sent < box.last
            if not has_next or box.position(box.sent + 1) != position:
                self._queue(line, box)  # the oldest have gone, or were taken, meanwhile
                continue
            boxes.append(box)
        if not boxes:
            return 0, 0
        record = self._log.records[position]
        if record.payload is None:
            self._read_ahead(boxes[0], boxes[0].sent + 1)
            self._reading[line.connection] = line
            for box in boxes:
                self._queue(line, box)
            return 0, 0
        slots = [box.slot for box in boxes]
        numbers = [box.send(record.size) for box in boxes]
        frame = Deliveries(
            record.source,
            record.number,
            record.lengths,
            packed_slots(slots),
            packed_numbers(numbers),
            record.payload,
        )
        self._log.let_go(record)
        if self._send(line, frame):
            for box in boxes:
                if box.sent < box.last:
                    self._queue(line, box)
        return len(boxes), record.size

    def _read_ahead(self, box: Mailbox, number: int) -> None:
        """Ask for the next deliveries of a mailbox that are in the store only."""
        wanted: list[int] = []
        size = 0
        for following in range(number, min(number + READ_AHEAD, box.last + 1)):
            record = self._log.records[box.position(following)]
            size += record.size
            if record.payload is None:
                wanted.append(box.position(following))
            if size > self._limits.window_bytes:
                break
        self._log.ask(wanted)

    def _send(self, line: _Line, frame: Frame) -> bool:
        """False where that ended the connection: what it accepts is less than this."""
        try:
            self._links.reply(line.connection, frame)
        except ProtocolError as error:
            self._links.refuse(line.connection, "peer-limit", error.detail)
            self.close(line.connection)
            return False
        return True

    def _detach(self, box: Mailbox, code: str, detail: str) -> None:
        line = self._lines.get(box.line)
        if line is not None:
            self._send(line, Detached(box.slot, code, detail))
            line.boxes.pop(box.slot, None)
        _leave(box)

    def _release(self, box: Mailbox, positions: list[int]) -> None:
        """A mailbox holds some records no longer."""
        self._changed[box.profile] = box
        for position in positions:
            box.backlog_bytes -= self._log.records[position].size
            self._log.release(position)

    def _drop_oldest(self, box: Mailbox) -> int:
        """What is too much for a mailbox; how many."""
        through, left = box.floor, box.backlog_bytes
        for number, position in box.waiting(box.floor):
            if left <= self._backlog_bytes_max:
                break
            left -= self._log.records[position].size
            through = number
        gone = box.remove(through)
        self._release(box, gone)
        line = self._lines.get(box.line)
        if line is not None and not box.is_queued:
            self._queue(line, box)
        return len(gone)


def _state(box: Mailbox | None) -> tuple[int, int, int, int] | None:
    return None if box is None else (box.acknowledged, box.floor, box.shift, box.since)


def _leave(box: Mailbox) -> None:
    """It is attached to no connection."""
    box.line = box.slot = 0
    box.is_queued = False
