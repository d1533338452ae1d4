"""LocalDeliveries: what messages give to the profiles of this broker, at once or in slices.

The paper's fast path (section 4.3.1): a message is forwarded before any local profile is looked
at.  For that to be felt on the wire, what a message means for the links is committed and leaves
first, and what it means for users is worked out in later calls (``events.CallAgain``)::

    first call    Message to children (outbox) + this row + what was received (inbox)   one commit
    last call     results for users (delivery) + this row deleted                       one commit

So a crash in between loses nothing and doubles nothing: the row is found again, and only local
profiles are looked at.  A message of which there is much to do is deferred, too, whether a link
takes it or not; and so is what comes behind a deferred one, so that deliveries keep the order of
their messages.  Calls in between are slices: profiles are asked, and nothing is stored.

Before anything is handled by which a message might give something else, all that is deferred is
done: so a message meets the profiles that there were when it came.

A message that is deferred though no link takes it is *undecided*: it may still be refused, or be
of use to nobody.  Its source hears nothing of it until then.
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from formats import DecodeError, MessageRefused, WireFormat
from onyx.broker.deliveries.delivery_log import Results, without_results
from onyx.broker.deliveries.mailbox import Mailbox
from onyx.broker.deliveries.mailboxes import Mailboxes
from onyx.broker.messages.message_latency import LATENCY_EVERY, MessageLatency
from onyx.broker.messages.observers import Observers
from onyx.broker.moves.profile_moves import ProfileMoves
from onyx.broker.packing.parcel import KeptMessage, Parcel
from onyx.broker.profiles.match_shares import MatchShares
from onyx.broker.profiles.query_plane import QueryPlane
from overlay.link.core_context import CoreContext
from overlay.link.dead_letters import INTERNAL, said_of
from overlay.link.frames import Delivery
from overlay.link.row_log import number_key
from overlay.link.slices import SLICE_SECONDS
from overlay.link.stored_rows import StoredRows
from overlay.link.suspect import CoreFailed, suspect_message
from overlay.link.tables import Row, Table
from overlay.link.work_mark import AT, MARK
from overlay.statistics import Data
from overlay.transformation.reflection import WHOLE
from yfilter.errors import MatchLimitExceeded
from yfilter.matches import PAUSE, Delivered, MakesNow


class DeferredRow(Row, frozen=True):
    """A message as it came, with its format by name; see ``LocalDeliveries.put``."""

    root: str
    source: str
    number: int
    hops: int
    format: str
    payload: bytes
    reflects: int
    pieces: bytes
    undecided: bool = False
    accepted: int = 0
    by: tuple[str, int] | None = None


DEFERRED = Table("deferred", DeferredRow)
DEFERRED_BYTES_MAX = 4 * 1024 * 1024  # of messages; beyond, none is acknowledged
LARGE_BYTES = 64 * 1024  # a message of so many is deferred in any case
MANY = 64  # profiles that get the same, from which on it is remembered who they are


class Given(NamedTuple):
    """The same results of a message for some mailboxes; None: they are made when they are taken.
    ``is_of_now``: by the texts that the profiles have now.  ``is_late``: it is not known whether
    there are any.  No mailboxes: a pause."""

    boxes: list[Mailbox]
    results: Results | None
    is_of_now: bool
    is_late: bool = False


_PAUSE = Given([], None, True)


class _Late:
    """A message that may match."""

    def __init__(self, parcel: Parcel) -> None:
        self.payload = parcel.payload
        self._parcel = parcel

    def kept(self) -> KeptMessage:
        return self._parcel.kept()._replace(is_late=True)


class _Deferred(NamedTuple):
    """``given`` is asked later; see ``LocalDeliveries``."""

    key: str
    parcel: Parcel
    given: Iterable[Given]
    is_undecided: bool


Decided: TypeAlias = Callable[[Parcel, bool, MatchLimitExceeded | MessageRefused | None], None]
"""(message, whether it gives anything here, what it has exceeded or why it is passed over)."""


class LocalDeliveries:
    """``asked`` a message's profiles, then ``deliver`` it, or ``put`` it aside for ``run``.

    ``waiting``: what is deferred, of ``waiting_bytes``; ``undecided``: how many of each source are.
    """

    def __init__(
        self,
        context: CoreContext,
        query: QueryPlane,
        moves: ProfileMoves,
        mailboxes: Mailboxes,
        shares: MatchShares,
        observers: Observers,
        counted: Data,
        decided: Decided,
        latency: MessageLatency,
    ) -> None:
        """``decided`` is told of what was undecided."""
        self._rows = context.rows
        self._access = context.access
        self._matcher = query.matcher
        self._profiles = query.profiles
        self._transformation = query.transformation
        self._moves = moves
        self._mailboxes = mailboxes
        self._maker = mailboxes.maker
        self._shares = shares
        self._observers = observers
        self._counted = counted
        self._clock = context.clock
        self._decided = decided
        self._latency = latency
        self._dead = context.dead
        self.waiting: deque[_Deferred] = deque()
        self.waiting_bytes = 0
        self.undecided: Counter[str] = Counter()
        self._steps: Iterator[None] | None = None  # of the first that waits
        self._profiles = query.profiles
        self._last = 0
        self._by_number: dict[int, Mailbox] = {}  # of profiles as of so many changes
        self._by_numbers: dict[bytes, list[Mailbox]] = {}  # the same of many together
        self._changes = -1

    def restore(self, rows: StoredRows, reopen: Callable[[DeferredRow], Parcel]) -> None:
        """Only local profiles are left to look at."""
        for key, row in rows.take(DEFERRED):
            parcel = reopen(row)
            self._last = int(key)
            self.waiting.append(_Deferred(key, parcel, self._of_profiles(parcel), row.undecided))
            self.waiting_bytes += len(parcel.payload)
            self.undecided[parcel.source] += row.undecided

    def put(self, parcel: Parcel, given: Iterable[Given], *, is_undecided: bool) -> None:
        """Defer a message."""
        self._counted.deferred += 1
        self._last += 1
        key = number_key(self._last)
        row = DeferredRow(
            parcel.root,
            parcel.source,
            parcel.number,
            parcel.hops,
            parcel.wire_format.value,
            parcel.payload,
            parcel.reflects,
            parcel.pieces,
            is_undecided,
            parcel.accepted,
            parcel.by,
        )
        # PERF: DEFERRED.put would be a file and a call more on every message's way.
        self._rows.put(DEFERRED.space, key, DEFERRED.pack(row))
        self.waiting.append(_Deferred(key, parcel, given, is_undecided))
        self.waiting_bytes += len(parcel.payload)
        self.undecided[parcel.source] += is_undecided

    def run(self, is_over: Callable[[], bool]) -> None:
        """Those that wait, in order, until the slice is over."""
        if self.waiting_bytes >= LARGE_BYTES:
            is_over()  # it begins now: the first step may be long
        while self.waiting:
            key, parcel, given, is_undecided = self.waiting[0]
            what = f"local delivery of message {parcel.number} of {parcel.source}"
            MARK.pack_into(self._dead.mark, 0, AT, what.encode())
            if self._steps is None:
                self._steps = self.deliver(parcel, given, is_undecided=is_undecided)
                if self._dead.passed_over:
                    suspect = suspect_message(what, parcel.source, parcel.payload)
                    if self._dead.passes_stored(suspect):
                        self._steps = self._pass_over(parcel, is_undecided, said_of(suspect.id))
            try:
                for _ in self._steps:
                    if is_over():
                        return
            except Exception as error:
                raise CoreFailed(suspect_message(what, parcel.source, parcel.payload)) from error
            self._steps = None
            self.waiting.popleft()
            self._rows.delete(DEFERRED.space, key)
            self.waiting_bytes -= len(parcel.payload)
            self.undecided[parcel.source] -= is_undecided
            if self.waiting and is_over():
                return

    def put_off(self, parcel: Parcel) -> MakesNow:
        """Results are made at once where somebody takes them, where it takes them to know that
        there are any, and where they are the text that came; but none of those of a message that
        has taken long already."""
        began: list[float] = []
        boxes_of, is_full = self._boxes_of, self._mailboxes.is_full
        is_text = parcel.wire_format is WireFormat.TEXT and not parcel.is_cut

        def makes_now(numbers: array[int], is_uncertain: bool, is_whole: bool) -> bool:
            if self._moves.is_busy:
                return True
            now = self._clock()
            if not began:
                began.append(now)
            elif now - began[0] > SLICE_SECONDS:
                return False
            if is_uncertain or is_full:
                return is_uncertain
            return (is_whole and is_text) or any(box.line for box in boxes_of(numbers))

        return makes_now

    def given(self, parcel: Parcel, delivered: Iterable[Delivered]) -> Iterator[Given]:
        """What a message gives for profiles that it is whole for; then what it gives for former
        texts of the others."""
        self._profiles.asked = parcel.source, parcel.number
        takes_part = None
        if parcel.reflects != WHOLE:
            takes_part = self._transformation.takes_part(parcel)
        is_restricted = self._access.now.is_restricted
        for one in delivered:
            if one is PAUSE:
                yield _PAUSE
                continue
            boxes = self._boxes_of(one.numbers)
            if takes_part is not None:
                boxes = [box for box in boxes if takes_part(box.profile)]
            if is_restricted:
                boxes = [box for box in boxes if self._is_seen(parcel.source, box.profile)]
            if boxes and one.exceeded is not None and self._maker.is_late(one.exceeded):
                yield from self._late(parcel, boxes)
            elif boxes:
                made = None
                if one.is_made:
                    made = self._maker.fitting(one, boxes[0].profile)
                yield Given(boxes, made, True)
        if takes_part is not None:
            for profile, text, former in self._transformation.answered_by_former(parcel):
                if not is_restricted or self._is_seen(parcel.source, profile):
                    made = self._maker.fitting(former, profile, text)
                    yield Given(self._boxes_named([profile]), made, False)

    def deliver(
        self, parcel: Parcel, given: Iterable[Given], *, is_undecided: bool = False
    ) -> Iterator[None]:
        """Ask a message's profiles, with pauses; behind the last one, deliver all that it gives.

        A message that costs the Matcher more than its bound is delivered as far as that; one of
        before a restart that cannot be read any more is counted as abandoned.
        """
        matched: list[Mailbox] = []
        found: list[Given] = []
        exceeded = None
        span = None if parcel.span is None else parcel.span.child("deliver")
        try:
            for one in given:
                if found or one is _PAUSE:
                    yield
                if one is not _PAUSE:
                    found.append(one)
                    matched += one.boxes
        except MatchLimitExceeded as error:
            self._counted.match_over_limit += 1
            exceeded = error
            if not is_undecided:  # else its source is told
                found += self.untold(parcel, error.code, error.reason, matched)
        except (MessageRefused, DecodeError):
            self._counted.abandoned += 1
        if len(found) > 1:
            yield
        here: list[tuple[list[Mailbox], Results | None]] = []
        late: list[Mailbox] = []
        for boxes, results, is_of_now, is_late in found:
            if is_late:
                late += boxes
                continue
            staying = boxes
            if self._moves.is_busy and results is not None:
                staying = self._not_moving(parcel, boxes, results)
            if staying and is_of_now:
                here.append((staying, results))
            elif staying:
                self._deliver(parcel, [(staying, results)], None)
        if here:
            self._deliver(parcel, here, parcel)
        if late:
            self._deliver(parcel, [(late, None)], _Late(parcel))
        self._counted.matched_here += bool(matched)
        if self._shares.placer:
            self._shares.note_matched(box.profile for box in matched)
        if matched and parcel.accepted and not parcel.number % LATENCY_EVERY:
            self._latency.note(parcel.accepted)
        if span is not None:
            span.end(profiles=len(matched))
        if is_undecided:
            self._decided(parcel, bool(matched), exceeded)

    def pass_over(self, parcel: Parcel, why: str) -> Iterator[None]:
        """Every profile is told that a message was not evaluated, as none was asked."""
        yield from self.deliver(parcel, self.untold(parcel, INTERNAL, why))

    def untold(
        self, parcel: Parcel, code: str, why: str, asked: Iterable[Mailbox] = ()
    ) -> list[Given]:
        """What all profiles but those that were ``asked`` are told of a message that is too much:
        nobody knows who would have got it."""
        known = {box.profile for box in asked}
        profiles = [
            profile
            for profile in self._profiles
            if profile not in known and self._is_seen(parcel.source, profile)
        ]
        if not profiles:
            return []
        return [Given(self._boxes_named(profiles), without_results(code, why), True)]

    # --- helpers --------------------------------------------------------------------------

    def _late(self, parcel: Parcel, boxes: list[Mailbox]) -> Iterator[Given]:
        """For profiles that take more than their slice: when it is taken; but what moves meanwhile
        has to be known now."""
        if not self._moves.is_busy:
            self._counted.late += len(boxes)
            yield Given(boxes, None, True, is_late=True)
            return
        names = [box.profile for box in boxes]
        made = self._maker.at_once(parcel.source, parcel.number, parcel.stream, names)
        if made is not None:
            yield Given(boxes, made, True)

    def _pass_over(self, parcel: Parcel, is_undecided: bool, said: str) -> Iterator[None]:
        """A message that has ended this broker before, when its profiles were asked: its source is
        told if it still can be; else every profile, as none was asked."""
        self._counted.abandoned += 1
        if is_undecided:
            self._decided(parcel, False, MessageRefused(INTERNAL, said))
            return
        yield from self.pass_over(parcel, said)

    def _is_seen(self, source: str, profile: str) -> bool:
        """Whether a profile's user may see what comes of a source."""
        hosted = self._profiles.get(profile)
        return hosted is not None and self._access.now.sees(hosted.user, source)

    def _of_profiles(self, parcel: Parcel) -> Iterator[Given]:
        """Lazily: nothing is decoded before it is asked for."""
        _, delivered = self._matcher.deliver_in_stages(parcel.readings, "", self.put_off(parcel))
        yield from self.given(parcel, delivered)

    def _boxes_named(self, profiles: Iterable[str]) -> list[Mailbox]:
        """The mailboxes of profiles; one that was made for the occasion where a profile has none as
        it is on its way here."""
        if self._moves.is_busy:
            return [self._mailboxes.box(profile) for profile in profiles]
        return self._mailboxes.boxes(profiles)

    def _boxes_of(self, numbers: array[int]) -> list[Mailbox]:
        """Those of profiles by number; not to be changed."""
        if self._moves.is_busy:
            return self._boxes_named(map(self._matcher.id_of, numbers))
        if self._changes != self._matcher.changes:
            self._changes = self._matcher.changes
            self._by_number.clear()
            self._by_numbers.clear()
        # PERF: the same many profiles often get message after message.
        key = numbers.tobytes() if len(numbers) >= MANY else b""
        boxes = self._by_numbers.get(key)
        if boxes is None:
            found, id_of = self._by_number, self._matcher.id_of
            for number in numbers:
                if number not in found:
                    (found[number],) = self._mailboxes.boxes([id_of(number)])
            boxes = [found[number] for number in numbers]
            if key:
                if len(self._by_numbers) >= MANY:
                    self._by_numbers.clear()
                self._by_numbers[key] = boxes
        return boxes

    def _not_moving(self, parcel: Parcel, boxes: list[Mailbox], results: Results) -> list[Mailbox]:
        """Those whose results are delivered from here and now."""
        what = parcel.source, parcel.number, results.lengths, results.payload
        return self._mailboxes.boxes(
            box.profile
            for box in boxes
            if not self._moves.intercepts(parcel.root, Delivery(box.profile, *what))
        )

    def _deliver(
        self,
        parcel: Parcel,
        given: list[tuple[list[Mailbox], Results | None]],
        message: Parcel | _Late | None,
    ) -> None:
        mailboxes = self._mailboxes
        policies = mailboxes.policies
        are_heard = mailboxes.silence.boxes or policies.full or policies.untold
        if are_heard and not (given := mailboxes.heard(parcel.source, parcel.number, given)):
            return
        self._counted.dropped_deliveries += self._mailboxes.deliver_message(
            parcel.source, parcel.number, given, message
        )
        for boxes, _ in given:
            self._counted.delivered += len(boxes)
            if self._observers.connections:
                self._observers.note_deliveries(parcel, boxes)
