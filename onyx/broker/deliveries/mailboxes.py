"""Mailboxes: what waits for the users of this broker, and their connections.

::

    deliver ──> log: a record          one of a message, whoever gets anything of it
           └──> mailboxes: its position, 8 bytes for each profile
    flush   ──> results that are not made yet
           └──> connections: to each equal results once, with the slots of who gets them

A user who is away is a cursor: the position through which they have taken all.  Whoever comes gets
what is behind it, as far as the window of each profile allows, made of the message by the text that
the profile had at that position.  What has been taken is forgotten, and a record when none has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from onyx.broker.deliveries.delivery_log import (
    DELIVERIES,
    NOTHING,
    RECORD_BYTES,
    DeliveryLog,
    Group,
    Message,
    ReadStore,
    Record,
    Results,
    joined,
)
from onyx.broker.deliveries.former_texts import TEXTS, FormerTexts
from onyx.broker.deliveries.late_spaces import BODY_SPACE
from onyx.broker.deliveries.lines import Lines
from onyx.broker.deliveries.mailbox import (
    SHARERS_MAX,
    Mailbox,
    MailboxState,
    Sharer,
    append_to_all,
)
from onyx.broker.deliveries.overflow import Overflow
from onyx.broker.deliveries.policies import Policies
from onyx.broker.deliveries.result_maker import ResultMaker
from onyx.broker.deliveries.silence import Given, Silence
from overlay import statistics
from overlay.answers import Waiting, WaitingPage
from overlay.delivery_policy import DeliveryPolicy
from overlay.limits import Limits
from overlay.link.dead_letters import UNDELIVERABLE, DeadLetter, DeadLetters
from overlay.link.events import Evaluated, RowsRead
from overlay.link.frames import (
    EPHEMERAL,
    HELD,
    SHARED,
    Attach,
    Ephemeral,
    Rejected,
    Taken,
    columns,
)
from overlay.link.link_layer import LinkLayer
from overlay.link.lost_stores import STORE_LOST, lost_detail
from overlay.link.part import FrameRefused, Hearer, Part, hears
from overlay.link.request_server import RequestRefused
from overlay.link.row_log import RowLog, number_key, numbered_key
from overlay.link.slices import Slice, never
from overlay.link.stored_rows import StoredRows, Stream, streamed, unread
from overlay.link.tables import Row, Table
from overlay.statistics import BrokerStatistics

# -------------------------------------------------------------------------------------------------
# Rows of mailboxes: what is stored of them, beside what they hold.
#
# space           key                     value
# delivery        a position              see delivery_log.py
# mailbox         the profile             acknowledged, floor, cursor, index (see mailbox.py), and,
#                                         where any are open or it is ephemeral, the numbers and the
#                                         positions of these, whether it is, and how often which of
#                                         them were rejected
# mailbox-change  a number                the same of all mailboxes that have changed in a call;
#                                         it counts instead; None for one that is gone
# former-text     a profile, a position   see former_texts.py
# delivery-       a profile, a number     see mailboxes.py
# delayed


WRITTEN_AT_ONCE = 256  # rows of mailboxes; then others have their turn


class MailboxRow(Row, frozen=True):
    """Its key is the profile."""

    state: MailboxState


class ChangeRow(Row, frozen=True):
    """The mailboxes that have changed in a call, which counts instead of their rows; None: gone."""

    states: list[tuple[str, MailboxState | None]]


MAILBOXES = Table("mailbox", MailboxRow)
CHANGES = Table("mailbox-change", ChangeRow)


class MailboxRows:
    """``note`` what has changed, ``put_changed`` at the end of a call; ``write`` it now and then as
    a row for each mailbox."""

    def __init__(self, rows: RowLog, boxes: Mapping[str, Mailbox]) -> None:
        self.changed: dict[str, Mailbox | None] = {}
        """In this call; None: it is gone."""
        self._rows = rows
        self._boxes = boxes
        self._unwritten: dict[str, None] = {}  # whose row is of before some changes
        self._changes: list[str] = []  # the keys of rows of changes, in order
        self._change = 0  # the last of them
        self._to_write: list[str] = []  # profiles whose rows are being written, and
        self._replaced: list[str] = []  # the changes that these replace
        self._states: dict[str, MailboxState | None] = {}  # while rows are restored

    def restore_row(self, profile: str, row: MailboxRow) -> None:
        self._states[profile] = row.state

    def restore(self, rows: StoredRows) -> dict[str, MailboxState]:
        """What mailboxes are, behind all their rows."""
        states, self._states = self._states, {}
        for key, change in rows.take(CHANGES):
            states.update(change.states)
            self._unwritten.update((profile, None) for profile, _ in change.states)
            self._changes.append(key)
            self._change = int(key)
        return {profile: state for profile, state in states.items() if state is not None}

    def put_changed(self) -> None:
        """One row for all mailboxes that have changed in this call."""
        self._change += 1
        key = number_key(self._change)
        states = [
            (profile, None if box is None else box.state()) for profile, box in self.changed.items()
        ]
        CHANGES.put(self._rows, key, ChangeRow(states))
        self._changes.append(key)
        self._unwritten.update(dict.fromkeys(self.changed))
        self.changed.clear()

    def forget(self, profile: str) -> None:
        MAILBOXES.delete(self._rows, profile)
        self.changed[profile] = None

    def begin_writing(self) -> bool:
        """What has changed up to now becomes rows of mailboxes, unless some are being written;
        whether there is more of that to ``write``."""
        if not self._replaced:
            self._to_write, self._unwritten = list(self._unwritten), {}
            self._replaced, self._changes = self._changes, []
            return self.write()
        return False

    def write(self) -> bool:
        """Some of the rows; when all are there, the changes that they replace go.  Whether there
        is more."""
        for profile in self._to_write[-WRITTEN_AT_ONCE:]:
            box = self._boxes.get(profile)
            if box is not None:
                MAILBOXES.put(self._rows, profile, MailboxRow(box.state()))
        del self._to_write[-WRITTEN_AT_ONCE:]
        if self._to_write:
            return True
        for key in self._replaced:
            CHANGES.delete(self._rows, key)
        self._replaced.clear()
        return False


# -------------------------------------------------------------------------------------------------
# Portions: what waits in a mailbox, for the broker at which it goes on.


PAGE_BYTES = 1024 * 1024  # of a page for the user; one delivery may always be
PAGE_DELIVERIES = 1024  # of a page that are read from the store together


class Portions:
    def __init__(self, log: DeliveryLog, lines: Lines) -> None:
        self._log = log
        self._lines = lines

    def of(
        self,
        box: Mailbox,
        after: int,
        bytes_max: int,
        through: float = inf,
        is_over: Callable[[], bool] = never,
    ) -> list[Waiting]:
        """The next ones behind ``after``, some bytes of them, until the slice is over; none where
        the next one has to be read or evaluated, which is asked for."""
        found: list[Waiting] = []
        records: list[Record] = []
        size = 0
        for number, position in box.waiting(after):
            if number > through:
                break
            record = self._log.records[position]
            if record.results(box.index) is None and record.message is not None:
                self._lines.make(record, position, [box], is_over)
            results = record.results(box.index)
            if results is None:
                ahead = (position for _, position in box.waiting(number - 1))
                self._lines.read_ahead(box.index, ahead, PAGE_DELIVERIES)
                break
            what = record.source, record.number, results.lengths, results.payload
            found.append(Waiting(number, *what))
            records.append(record)
            size += RECORD_BYTES + len(results.payload)
            if size >= bytes_max or is_over():
                break
        for record in records:
            self._log.let_go(record)
        return found


# -------------------------------------------------------------------------------------------------
# Rejections: what users could not do with comes again later, and in the end is a dead letter.
#
# ::
#
#     given out ──> taken                              it goes
#               ──> rejected, fewer times than may be   delayed ──> due: given out again
#               ──> rejected for the last time          dead letter, which may be replayed
#               ──> its connection broke, BREAKS_MAX    likewise
#                   times while it was the oldest
#                   there
#
# Only of profiles that are shared: there each delivery is taken by itself.


BREAKS_MAX = 20  # connections that broke while one delivery was worked on


class _DelayedRow(Row, frozen=True):
    """Under the profile, ``|`` and the number of a delivery: seconds of the calendar."""

    due: float


DELAYED = Table("delivery-delayed", _DelayedRow)


class _Burial(NamedTuple):
    """A delivery that was rejected for the last time."""

    box: Mailbox
    number: int
    position: int
    reason: str


class Rejections:
    """``reject`` as users say, ``return_due`` as time goes on, ``bury`` when rows were read."""

    def __init__(
        self,
        rows: RowLog,
        boxes: Mapping[str, Mailbox],
        lines: Lines,
        log: DeliveryLog,
        policies: Policies,
        dead: DeadLetters,
        wall: Callable[[], float],
        release: Callable[[Mailbox, list[int]], None],
        deliver: Callable[[str, int, list[Given], None], int],
        counted: statistics.Mailboxes,
    ) -> None:
        """``wall``: seconds of the calendar; ``release``: a mailbox holds some positions no
        longer, or is another; ``deliver``: see Mailboxes."""
        self._rows = rows
        self._boxes = boxes
        self._deliver = deliver
        self._lines = lines
        self._log = log
        self._policies = policies
        self._dead = dead
        self._wall = wall
        self._release = release
        self._delayed: dict[Mailbox, None] = {}
        self._burials: list[_Burial] = []
        self._counted = counted

    def restore(self, rows: StoredRows) -> None:
        """Behind the mailboxes, with what is open."""
        for key, row in rows.take(DELAYED):
            profile, _, number = key.rpartition("|")
            box = self._boxes.get(profile)
            if box is None or box.sharing is None or int(number) not in box.sharing.open:
                DELAYED.delete(self._rows, key)
            else:
                box.sharing.delay(int(number), row.due)
                self._delayed[box] = None

    def reject(self, taker: Mailbox | Sharer, frame: Rejected) -> None:
        """FrameRefused of one who does not share the profile."""
        if not isinstance(taker, Sharer) or taker.in_order:
            detail = f"only who shares {taker.profile!r} may reject a delivery of it"
            raise FrameRefused("not-expected", detail)
        box, policy = taker.box, self._policies.of(taker.profile)
        position = taker.sharing.open.get(frame.number, 0)
        due = self._wall() + policy.retry_s
        times = self._lines.reject(taker, frame.number, due)
        if not times:
            return  # it was thrown away meanwhile
        self._counted.rejected += 1
        self._release(box, [])
        self._delayed[box] = None
        if times < policy.attempts_max:
            DELAYED.put(self._rows, numbered_key(box.profile, frame.number), _DelayedRow(due))
        else:
            taker.sharing.hold(frame.number)
            reason = frame.reason or "no reason was given"
            self._burials.append(_Burial(box, frame.number, position, reason))
            self.bury()

    def note_broken(self, box: Mailbox, number: int, times: int) -> None:
        """The connection of one who shared a mailbox is gone; see Sharing.note_broken.  One break
        says nothing of the delivery; if it is always this one, whoever works on it dies of it."""
        if times == BREAKS_MAX and box.sharing is not None:
            box.sharing.hold(number)
            reason = f"{times} connections broke while it was worked on"
            self._burials.append(_Burial(box, number, box.sharing.open[number], reason))
            self.bury()

    def return_due(self) -> bool:
        """What was delayed and is due has its turn again; whether there is any."""
        is_any = False
        for box in list(self._delayed):
            sharing = box.sharing
            due = [] if sharing is None else sharing.return_due(self._wall())
            for number in due:
                DELAYED.delete(self._rows, numbered_key(box.profile, number))
            if due and box.line:
                self._lines.queue(box)
                is_any = True
            if sharing is None or not sharing.delayed:
                del self._delayed[box]
        return is_any

    def bury(self) -> None:
        """Dead letters of what was rejected for good, as soon as its results are in memory."""
        burials, self._burials = self._burials, []
        for burial in burials:
            box, number, position, reason = burial
            if box.sharing is None or box.sharing.open.get(number) != position:
                continue  # it was thrown away, or is given out once more by somebody in order
            record = self._log.records[position]
            if record.results(box.index) is None and record.message is not None:
                self._lines.make(record, position, [box])
            results = record.results(box.index)
            if results is None:
                self._burials.append(burial)
                self._log.ask([position])
                continue
            what = (record.source, record.number), reason
            made = results.lengths, results.payload
            self._dead.note_undeliverable(box.user.name, box.profile, *what, made)
            self._log.let_go(record)
            del box.sharing.open[number]
            self._release(box, [position])

    def replay(self, letter: DeadLetter) -> None:
        """Deliver what was rejected once more."""
        if letter.kind != UNDELIVERABLE:
            return
        box = self._boxes.get(letter.profile)
        if box is None:
            raise RequestRefused("unknown-profile", f"{letter.profile} is not here any more")
        results = Results(letter.lengths, letter.data)
        self._deliver(letter.source, letter.number, [([box], results)], None)

    def forget(self, box: Mailbox) -> None:
        self._delayed.pop(box, None)
        for _, number in () if box.sharing is None else box.sharing.delayed:
            DELAYED.delete(self._rows, numbered_key(box.profile, number))


# -------------------------------------------------------------------------------------------------


READ_SPACES = (DELIVERIES.space, BODY_SPACE)

OF_NETWORK = "limits of the network"


class _Asking(NamedTuple):
    """A connection that waits for a page.  ``has_turn``: it is asked for in the next turn, as the
    slice was over; else when rows are read, or results evaluated."""

    connection: int
    ask: Callable[[], None]
    has_turn: bool


class Mailboxes(Part):
    """``deliver``; ``attach``, ``take`` and ``close`` as connections say; ``flush`` in the end."""

    def __init__(
        self,
        links: LinkLayer,
        rows: RowLog,
        limits: Limits,
        log: DeliveryLog,
        maker: ResultMaker,
        user_of: Callable[[str], str | None],
        slice_: Slice,
        dead: DeadLetters,
        wall: Callable[[], float],
    ) -> None:
        """``user_of``: whose a profile is, None if it is not here; ``slice_``: of the event;
        ``dead`` keeps what is rejected for good; ``wall``: seconds."""
        self.maker = maker
        self._slice = slice_
        self._limits = limits
        self._wall = wall
        self._log = log
        self._user_of = user_of
        self._boxes: dict[str, Mailbox] = {}
        self._mailbox_rows = MailboxRows(rows, self._boxes)
        self._texts = FormerTexts(rows)
        self._lines = Lines(links, limits.link, self._log, self._texts, maker, slice_)
        self._portions = Portions(self._log, self._lines)
        self.silence = Silence(lambda box: self._release(box, box.empty()))
        self.counted = statistics.Mailboxes()
        self._overflow = Overflow(limits, self._boxes, self._log, self._drop, self.counted)
        self.policies = Policies(
            *(rows, self._log, dead, limits.delivery_backlog_bytes_max, self._drop),
            self._lines.detach,
            self.deliver_message,
        )
        self._rejections = Rejections(
            *(rows, self._boxes, self._lines, self._log, self.policies, dead, wall),
            *(self._release, self.deliver_message, self.counted),
        )
        self._dead = dead
        self._last_boxes: Sequence[Mailbox] = ()  # of the last group, and
        self._last_indexes: list[int] = []  # what these are called
        self._index = 0  # the last that was given to a mailbox
        self._asking: list[_Asking] = []
        self._is_behind = False  # there was more to send than one flush does
        self._is_called = False  # to go on with that

    def events(self) -> Iterable[Hearer]:
        yield hears(RowsRead, self.handle_read)
        yield hears(Evaluated, self.handle_evaluated)
        yield hears(DeadLetter, self._rejections.replay)

    def streams(self) -> Iterable[Stream]:
        yield streamed(DELIVERIES, self._log.restore)
        yield streamed(MAILBOXES, self._mailbox_rows.restore_row)
        yield unread(BODY_SPACE)

    def take_limits(self, limits: Limits) -> None:
        self._limits = limits
        self.policies.bytes_max = limits.delivery_backlog_bytes_max
        self._overflow.take_limits(limits)

    def restore(self, rows: StoredRows) -> None:
        for key, text in rows.take(TEXTS):
            self._texts.restore(key, text)
        by_index: dict[int, Mailbox] = {}
        opened: dict[int, set[int]] = {}  # positions, by index
        self.policies.restore(rows)
        for profile, state in self._mailbox_rows.restore(rows).items():
            box = self._boxes[profile] = Mailbox.restored(profile, state)
            by_index[box.index] = box
            if box.sharing is not None:
                opened[box.index] = set(box.sharing.open.values())
        cursors = (box.cursor for box in self._boxes.values())
        self._log.last = max(self._texts.last, *cursors, 0)
        self._index = max(by_index, default=0)
        for position, record, boxes in self._log.restored():
            for holder in map(by_index.get, boxes):
                if holder is None:
                    continue
                if position > holder.cursor:
                    holder.append(position, record.size)
                    record.holders += 1
                elif holder.index in opened and position in opened[holder.index]:
                    holder.backlog_bytes += record.size
                    record.holders += 1
            record.holders -= 1
            if not record.holders:
                self._log.release(position)
        self.counted.waiting = sum(box.count for box in self._boxes.values())
        self.counted.waiting_bytes = sum(box.backlog_bytes for box in self._boxes.values())
        self.silence.begin([box for box in self._boxes.values() if box.is_ephemeral])
        if self.policies:
            for box in self._boxes.values():
                self.policies.begin(box)
        self._rejections.restore(rows)

    # --- what messages give ---------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether there is no room in memory for results until they are taken."""
        return self._log.is_full

    def deliver(
        self, source: str, number: int, results: Sequence[bytes], profiles: Sequence[str]
    ) -> int:
        """The same results of a message for some profiles, none for what was put off and came to
        nothing; see ``deliver_message``."""
        made = joined(results) if results else NOTHING
        given = self.heard(source, number, [(self.boxes(profiles), made)])
        return self.deliver_message(source, number, given, None) if given else 0

    def heard(self, source: str, number: int, given: list[Given]) -> list[Given]:
        """What a message gives, but to mailboxes that keep nothing: where any are silent, full."""
        if self.silence.boxes:
            given = self.silence.heard(given)
        policies = self.policies
        are_heard = policies.full or policies.untold
        return policies.heard(source, number, given) if are_heard else given

    def boxes(self, profiles: Iterable[str]) -> list[Mailbox]:
        """Those of some profiles, new where they had none."""
        return [self._box(profile) for profile in profiles]

    def deliver_message(
        self, source: str, number: int, given: Iterable[Given], message: Message | None
    ) -> int:
        """What a message gives to mailboxes, as ``heard``, each in one place; how many deliveries
        had to go for want of room.  ``message`` is for results that are not made."""
        self.flush_soon()
        parts: dict[object, list[Given]] = {}
        boxes: list[Mailbox] = []
        for part in given:
            some, results = part
            boxes += some
            # equal results are one group, whatever they were made by
            parts.setdefault(None if results is None else results.key, []).append(part)
        groups = [Group(self._indexes(alike), alike[0][1]) for alike in parts.values()]
        second = int(self._wall())
        record = self._log.append(source, number, second, groups, message)
        dropped = 0
        largest, most = append_to_all(boxes, self._log.last, record.size)
        self.counted.waiting += len(boxes)
        self.counted.waiting_bytes += len(boxes) * record.size
        is_sent = False
        for box in [box for box in boxes if box.line]:
            if not box.is_queued:
                self._lines.queue(box)
            is_sent |= box.is_queued
        full = self.policies.full
        if self.policies.bounded:
            dropped += self.policies.check(boxes)
            self.silence.begin(self._lines.left())
        if largest > self._limits.delivery_backlog_bytes_max:
            for box in boxes:
                if box.backlog_bytes > self._limits.delivery_backlog_bytes_max and box not in full:
                    dropped += self._overflow.drop_oldest(box)
        if most > self._overflow.users.bytes_max:
            dropped += self._overflow.drop_of_users(boxes)
        if not is_sent:
            self._log.let_go(record)
        if self._log.stored_bytes > self._limits.delivery_store_bytes_max:
            dropped += self._overflow.make_room()
        return dropped

    def _indexes(self, alike: list[Given]) -> list[int]:
        """What the mailboxes of some parts are called in the log, ascending; not to be changed."""
        if len(alike) > 1:
            return sorted([box.index for boxes, _ in alike for box in boxes])
        boxes = alike[0][0]
        if boxes is not self._last_boxes:
            self._last_boxes, self._last_indexes = boxes, sorted([box.index for box in boxes])
        return self._last_indexes

    def keep_text(self, profile: str, text: str) -> None:
        """A profile had this text for all that waits for its user by now."""
        box = self._boxes.get(profile)
        if box is not None and box.count:
            self._texts.keep(profile, self._log.last, text)

    # --- connections ----------------------------------------------------------------------

    def attach(
        self, connection: int, frame: Attach, refusal: Callable[[str], tuple[str, str] | None]
    ) -> None:
        """Profiles are taken by a connection from now on, but those for which there is a
        ``refusal``: (code, detail)."""
        self.flush_soon()
        for slot, profile, received, mode in frame.profiles:
            refused = refusal(profile)
            if refused is not None:
                self._lines.refuse(connection, slot, *refused)
                continue
            box = self._box(profile)
            if mode & SHARED and box.sharing and len(box.sharing.sharers) >= SHARERS_MAX:
                detail = f"{SHARERS_MAX} share profile {profile!r} already"
                self._lines.refuse(connection, slot, "too-many", detail)
                continue
            if mode & HELD and box.sharing and box.sharing.open:
                self._lines.refuse(connection, slot, "shared", _left(box))
                continue
            if received > box.last:
                self._lines.refuse(connection, slot, STORE_LOST, _lost(box, received))
                continue
            self.claim(profile)
            if box.is_ephemeral or mode & EPHEMERAL:
                self.silence.end(box)
                box.is_ephemeral = bool(mode & EPHEMERAL)
                self._note(profile, box)
            self.policies.expire(box, int(self._wall()))
            if mode & SHARED:
                self._lines.share(connection, slot, box)
            else:
                self._lines.put(connection, slot, box)
            if not mode & SHARED:
                box.begin(received, is_held=bool(mode & HELD))
                if not box.is_held:
                    self._release(box, box.take(received))
                    box.in_flight_bytes = 0
                self._lines.put_in_order(box)
            self._lines.queue(box)
        self.silence.begin(self._lines.left())

    def take(self, connection: int, frame: Taken) -> None:
        """Deliveries are done; a number that was never given out is FrameRefused."""
        for slot, number in columns(frame):
            taker = self._lines.taker(connection, slot)
            if taker is None:
                continue  # it was detached meanwhile
            box = taker.box if isinstance(taker, Sharer) else taker
            if number > box.last:  # over an earlier connection it may have been sent
                raise FrameRefused(
                    "not-expected", f"delivery {number} of {box.profile!r} was never given out"
                )
            if isinstance(taker, Sharer):
                self._release(box, self._lines.take_one(taker, number))
                continue
            if box.is_held:
                self._confirm(box, number)
                continue
            before, on_wire = box.backlog_bytes, max(0, box.sent - box.floor)
            taken = box.take(number)
            self._lines.note_taken(box, number, taken[:on_wire])
            self._release(box, taken)
            if box.confirmed == box.sent:
                box.in_flight_bytes = 0
            else:
                box.in_flight_bytes -= before - box.backlog_bytes
            if box.sent < box.last and not box.is_queued:
                self._lines.queue(box)

    def release(self, profile: str, through: int) -> tuple[str, str] | None:
        """The user of a profile is done with all through a number, whoever takes it; from now on
        all that comes is kept.  (code, detail) where the number was never given out."""
        box = self._box(profile)
        if through > box.last:
            return STORE_LOST, _lost(box, through)
        self.silence.end(box)
        box.is_claimed, box.is_ephemeral = True, False
        if box.line and box.sharing is None:
            self._confirm(box, through)
        self._release(box, box.take(through))
        return None

    def reject(self, connection: int, frame: Rejected) -> None:
        """Who shares a profile could not do with a delivery: it comes again later, or is a dead
        letter.  FrameRefused of one that does not share it."""
        taker = self._lines.taker(connection, frame.slot)
        if taker is not None:  # or it was detached meanwhile
            self.flush_soon()
            self._rejections.reject(taker, frame)

    def close(self, connection: int) -> None:
        """A connection is gone."""
        for broken in self._lines.close(connection):
            self._rejections.note_broken(*broken)
        self.silence.begin(self._lines.left())
        self._asking = [one for one in self._asking if one.connection != connection]
        self.flush_soon()

    def flush(self) -> None:
        """Send what can be sent, so much of it that others have their turn soon; the rest when that
        has left, whatever else happens until then."""
        self._is_behind |= self._slice.until > 0.0 and self._slice.is_over()  # by what others did
        if self._is_called or not (
            self._is_behind or (self._lines.hold_until and self._may_hold())
        ):
            self._is_called, self._is_behind = False, self._lines.flush()
        if self._mailbox_rows.changed:
            self._mailbox_rows.put_changed()
        for asked in self._log.reads():
            self.ask_shell(asked)
        for question in self._lines.late.asks:
            self.ask_shell(question)
        self._lines.late.asks.clear()
        if self._is_behind:
            self.work_soon()

    def _may_hold(self) -> bool:
        """Whether results wait for those of messages that are here already, to leave together."""
        agenda = self.agenda
        if agenda is None or not agenda.is_busy or self._slice.clock() >= self._lines.hold_until:
            return False
        self.flush_at_end()
        return True

    def work(self) -> None:
        """Go on with what was left."""
        if self._mailbox_rows.write():
            self.work_soon()
        self._is_called = True
        self.flush_soon()
        self._ask_again(has_turn=True)

    def tick(self, now: float) -> None:
        """Now and then: what has waited for too long goes, and what has changed meanwhile becomes
        a row for each mailbox."""
        self.silence.tick()
        self._ask_again()  # a profile may have gone elsewhere
        if self._limits.delivery_age_s_max:
            self._overflow.drop_aged(int(self._wall()))
        if self.policies:
            self.policies.drop_aged(int(self._wall()))
        if self.policies.dropped:
            self.policies.tell_dropped()
        if self.policies.untold:
            self.policies.tell_all(self._boxes.get)
        if self._rejections.return_due():
            self.flush_soon()
        for profile in self._texts.profiles():
            kept = self._boxes[profile]
            self._texts.forget(profile, kept.empty_through if kept.count else self._log.last)
        if self._mailbox_rows.begin_writing():
            self.work_soon()

    def handle_read(self, rows: RowsRead) -> bool:
        if rows.space not in READ_SPACES:
            return False
        self.flush_soon()
        self._log.put_back(rows)
        self._rejections.bury()
        self._lines.resume()
        self._ask_again()
        return True

    def handle_evaluated(self, event: Evaluated) -> bool:
        """What takes long has been evaluated."""
        self.flush_soon()
        self._lines.late.answered(event)
        self._lines.resume()
        self._ask_again()
        return True

    def make_stored(self, read: ReadStore) -> Iterator[tuple[int, int]]:
        """For another release: make results that wait and store them in place of their messages;
        after each message how many are done, of how many."""
        by_index = {box.index: box for box in self._boxes.values()}
        for done, position in enumerate(unmade := self._log.unmade(), 1):
            boxes = filter(None, map(by_index.get, self._log.read_whole(position, read)))
            holders = [box for box in boxes if box.holds(position)]
            self._lines.make(self._log.records[position], position, holders)
            self._log.keep_results(position)
            yield done, len(unmade)

    # --- profiles that come and go --------------------------------------------------------

    def belongs(self, profile: str, user: str) -> None:
        """Whose a profile is, and with it the mailbox that there is for it."""
        if (box := self._boxes.get(profile)) is not None:
            self._overflow.users.give(box, user)

    def forget(self, profile: str) -> None:
        """A profile is gone, with all that waits for its user."""
        box = self._boxes.pop(profile, None)
        self.policies.forget(profile, box)
        self._dead.forget_profile(profile)
        if box is not None:
            self._rejections.forget(box)
            self._lines.detach(box, "forgotten", f"profile {profile!r} was removed")
            self._release(box, box.remove(box.last))
            self._texts.forget(profile, self._log.last)
            self.silence.end(box)
            self._overflow.users.leave(box)
            self._mailbox_rows.forget(profile)
            self.flush_soon()

    def send_away(self, profile: str, code: str, detail: str) -> None:
        """Whoever takes a profile does so no longer here, but soon elsewhere: so an ephemeral one
        is kept for a while."""
        box = self._boxes.get(profile)
        if box is not None:
            self._lines.detach(box, code, detail)
            self.silence.wait(self._lines.left())

    def use_policy(self, profile: str, policy: DeliveryPolicy) -> None:
        """How a profile is kept from now on, here or soon."""
        self.policies.put(profile, policy, self._boxes.get(profile))
        self.flush_soon()

    def ephemeral(self, profile: str) -> Ephemeral:
        """Whether a profile is ephemeral, and whether somebody takes it."""
        return self.silence.state(self.box(profile))

    def take_over(
        self, profile: str, acknowledged: int, floor: int, ephemeral: Ephemeral = Ephemeral.NOT
    ) -> None:
        """A mailbox that another broker has begun goes on here: next is delivery ``floor + 1``."""
        box = self._box(profile)
        box.acknowledged, box.floor = acknowledged, floor
        self.silence.take_over(box, ephemeral)
        self._note(profile, box)

    def open_through(self, profile: str, number: int) -> None:
        """Of what another broker has begun all through a number is here that was not taken."""
        box = self._box(profile)
        box.open_through(number)
        self._note(profile, box)

    def claim(self, profile: str) -> Mailbox:
        """Somebody has come for the results of a profile; its mailbox."""
        box = self._box(profile)
        if not box.is_claimed:
            box.is_claimed = True
            self._note(profile, box)
        return box

    def box(self, profile: str) -> Mailbox:
        """That of a profile, to be read; if there is none, an empty one that nobody keeps."""
        return self._boxes.get(profile) or Mailbox(profile)

    def portion(self, profile: str, after: int, bytes_max: int) -> list[Waiting]:
        """The next ones behind ``after``, some bytes of them; none where the next one has to be
        read, which is asked for then."""
        self.flush_soon()
        return self._portions.of(self.box(profile), after, bytes_max)

    def page(
        self, profile: str, after: int, through: int, connection: int, ask_again: Callable[[], None]
    ) -> WaitingPage | None:
        """The same for its user, until the slice is over.  None where the next delivery has to be
        read or evaluated first: ``ask_again`` is called when more is there, unless the connection
        is gone.  RequestRefused where ``after`` was never given out, or those who shared the
        profile have left some."""
        box = self.box(profile)
        if after > box.last:
            raise RequestRefused(STORE_LOST, _lost(box, after))
        if box.sharing is not None and box.sharing.open:
            raise RequestRefused("shared", _left(box))
        self.flush_soon()
        found = self._portions.of(box, after, PAGE_BYTES, through, self._slice.is_over)
        if not found and next(box.waiting(after), (inf, 0))[0] <= through:
            is_over = self._slice.is_over()
            self._asking.append(_Asking(connection, ask_again, is_over))
            if is_over:
                self.work_soon()
            return None
        return WaitingPage(found, box.bottom, box.last)

    @property
    def stored_bytes(self) -> int:
        return self._log.stored_bytes  # of the results that wait, each once

    def report(self, said: BrokerStatistics) -> None:
        said.mailboxes = counted = self.counted
        counted.bytes_of_users = self._overflow.users
        counted.silent, counted.attached = len(self.silence.boxes), self._lines.attached
        counted.subscribers = self._lines.connections
        counted.stored_bytes = self._log.stored_bytes
        counted.oldest_s = self._log.oldest_seconds(self._wall())

    # --- helpers --------------------------------------------------------------------------

    def _ask_again(self, *, has_turn: bool = False) -> None:
        """``has_turn``: only of those that waited for it."""
        asking, self._asking = self._asking, []
        for one in asking:
            if has_turn and not one.has_turn:
                self._asking.append(one)
            else:
                one.ask()

    def _note(self, profile: str, box: Mailbox) -> None:
        """A mailbox is another."""
        self._mailbox_rows.changed[profile] = box
        self.flush_soon()

    def _box(self, profile: str) -> Mailbox:
        box = self._boxes.get(profile)
        if box is None:
            self._index += 1
            box = self._boxes[profile] = Mailbox(profile, self._index, self._log.last)
            self._note(profile, box)
            if self.policies:
                self.policies.begin(box)
            if (user := self._user_of(profile)) is not None:
                self._overflow.users.give(box, user)
        return box

    def _release(self, box: Mailbox, positions: list[int]) -> None:
        """A mailbox holds some records no longer."""
        self._note(box.profile, box)
        for position in positions:
            size = self._log.records[position].size
            box.backlog_bytes -= size
            box.user.bytes -= size
            self.counted.waiting_bytes -= size
            self._log.release(position)
        self.counted.waiting -= len(positions)
        if self.policies.full and box in self.policies.full:
            self.policies.note_room(box)

    def _confirm(self, box: Mailbox, number: int) -> None:
        """A connection has got its deliveries of a mailbox through a number; they stay here."""
        come = box.confirm(number)
        self._lines.note_taken(box, number, come)
        box.in_flight_bytes -= sum(self._log.records[position].size for position in come)
        if box.confirmed == box.sent:
            box.in_flight_bytes = 0
        if box.sent < box.last and not box.is_queued:
            self._lines.queue(box)
            self.flush_soon()

    def _drop(self, box: Mailbox, through: int, why: str = OF_NETWORK) -> int:
        on_wire = box.on_wire(through) if box.line and box.sharing is None else []
        gone = box.drop(through)
        if on_wire:
            self._lines.note_gone(box, min(through, box.sent), on_wire)
        self._release(box, gone)
        self.policies.dropped[box, why] += len(gone)
        if why is OF_NETWORK:
            self.counted.dropped_for_limits += len(gone)
        if box.line and not box.is_queued:
            self._lines.queue(box)
        return len(gone)


def _left(box: Mailbox) -> str:
    count = 0 if box.sharing is None else len(box.sharing.open)
    return f"{count} deliveries of {box.profile!r} are left by those who shared it"


def _lost(box: Mailbox, number: int) -> str:
    """How much of a mailbox a broker has lost whose user has all through a number."""
    known = f"{number} deliveries of {box.profile!r} have come, and it knows of {box.last}"
    return lost_detail("this broker", known)
