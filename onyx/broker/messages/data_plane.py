"""Data plane: a message's way through one broker (section 4.3 of the paper).

::

    Publish  ─ parse text, check the source ─┐
                                             ├─ match once ─┬─ RouteMatch   -> Message to the child
    Message  ─ decode the link's format ─────┘              │       first, and then:
                                                            └─ ProfileMatch -> Delivery to the user

Only children whose routing query holds get the message, or what is left of it for them
(transformation.py), as the link wants it (packing/link_formats.py), undecoded bytes as they came
when that is what they are (packing/parcel.py); it leaves before the local profiles are looked at
(local_deliveries.py).  A message that nobody here wants any more is not even decoded.

A message that is refused at the root broker is refused whole: its source is told where and why,
and nobody gets any of it.  One that has ended another broker goes on from there as
``NOT_EVALUATED``: all who may have wanted it get a delivery that says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter

from msgspec.structs import replace

from formats import (
    FORMS,
    DecodeError,
    ElementStream,
    MessageRefused,
    WireFormat,
    encoded_bytes_max,
)
from formats.codec import dictionary_bytes_max
from formats.graph.striped import GRAPH_NAMESPACE
from formats.schema_questions import MessageRead
from onyx.broker.archive.archive_feed import ArchiveFeed
from onyx.broker.deliveries.mailboxes import Mailboxes
from onyx.broker.deliveries.result_maker import results_bytes_max
from onyx.broker.messages.last_numbers import LastNumbers
from onyx.broker.messages.local_deliveries import (
    LARGE_BYTES,
    DeferredRow,
    Given,
    LocalDeliveries,
)
from onyx.broker.messages.message_latency import MessageLatency
from onyx.broker.messages.message_spans import MessageSpans
from onyx.broker.messages.message_validation import MessageValidation
from onyx.broker.messages.observers import Observers
from onyx.broker.messages.publish_keys import PublishKeys
from onyx.broker.messages.publish_quota import PublishQuota
from onyx.broker.messages.source_costs import SourceCosts
from onyx.broker.moves.profile_moves import ProfileMoves
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.network.publishers import Publishers
from onyx.broker.packing.codebook import wire_format_of
from onyx.broker.packing.packing_parts import PackingParts
from onyx.broker.packing.parcel import Parcel
from onyx.broker.profiles.match_shares import MatchShares
from onyx.broker.profiles.query_plane import QueryPlane
from onyx.broker.profiles.transformation import Cut
from overlay.access import Right
from overlay.limits import Limits
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.events import DiskRoom, Flow
from overlay.link.frames import (
    AcceptedBefore,
    Message,
    MessageAgain,
    Publish,
    PublishOnce,
    Refused,
    TreeEnded,
    Undecoded,
)
from overlay.link.part import FrameRefused, Hearer, Part, Taker, hears, takes
from overlay.link.slices import never
from overlay.link.stored_rows import StoredRows
from overlay.link.work_mark import BEHIND
from overlay.routing.message_sample import SAMPLE_EVERY
from overlay.statistics import BrokerStatistics
from overlay.transformation.reflection import WHOLE
from yfilter.errors import MatchLimitExceeded
from yfilter.matches import Match, RouteMatch, TransformationMatch

NOT_EVALUATED = "not-evaluated"
"""The format of a message of which nothing is left but why, as its payload."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The ``links`` that want a message, what is ``left`` of it for those that are transformed, and
    its ``local`` profiles: already a list where these are looked at before anybody is told."""

    links: list[str]
    left: Mapping[str, ElementStream]
    local: Iterable[Given]


class DataPlane(Part):
    """Takes messages in and acts on what the Matcher decides."""

    def __init__(
        self,
        context: CoreContext,
        control: ControlPlane,
        packing: PackingParts,
        query: QueryPlane,
        moves: ProfileMoves,
        mailboxes: Mailboxes,
        shares: MatchShares,
        observers: Observers,
        keys: PublishKeys,
        publishers: Publishers,
        archive: ArchiveFeed,
        spans: MessageSpans,
    ) -> None:
        self._is_over = context.slice.is_over
        self._dead = context.dead
        self._spans = spans
        self._keys, self.publishers = keys, publishers
        self._control = control
        self._links = context.links
        self._matcher = query.matcher
        self._trained = packing.trained
        self._codebook = packing.codebook
        self._give_backs = packing.give_backs
        self._formats = packing.formats
        self._observers = observers
        self._query = query
        self._shares = shares
        self._transformation = query.transformation
        self.counted = packing.codebook.counted
        self._latency = MessageLatency(spans.wall, self.counted.end_to_end)
        self.local = LocalDeliveries(
            *(context, query, moves, mailboxes, shares, observers),
            *(self.counted, self._decided, self._latency),
        )
        self.deferred = self.local.waiting  # messages that local profiles have not seen
        self._published = self._codebook.of_published(context.clock)
        self.last_numbers = LastNumbers(context.rows, control.gone_sources)
        self._kind: type[Message] = Message  # of what is handled from the parent
        self.archive = archive
        self.limits = context.limits
        self.quota, self.costs = PublishQuota(context), SourceCosts(context)
        self._room = results_bytes_max(self.limits.link)
        self.validation = MessageValidation(
            *(context, control, self.quota, observers, self.counted),
            *(self._published, self._open_published),
        )

    def frames(self) -> Iterable[Taker]:
        for kind in (Publish, PublishOnce):
            take = self._handle_publish
            yield takes(kind, "source", take, is_aside=True, right=Right.PUBLISH)
        yield takes(Message, "parent", self._handle_message, is_aside=True)
        yield takes(MessageAgain, "parent", self._handle_message, is_aside=True)
        yield takes(Undecoded, "child", self._handle_undecoded)

    def events(self) -> Iterable[Hearer]:
        yield hears(DiskRoom, self.quota.note_disk)
        yield hears(TreeEnded, lambda ended: self.last_numbers.end_tree(ended.root))

    def _handle_publish(self, frame: Publish, arrival: Arrival) -> None:
        """The ``sequence``-th message of a publisher, which is told when it is refused."""
        peer, numbering = arrival.peer, self.publishers.sources.get(frame.source)
        if numbering is None or peer not in numbering.shifts:
            raise FrameRefused("not-expected")
        held = self.validation.turn
        may_wait = (  # PERF: a plain message asks nothing
            frame.source in self._control.validated
            or self.validation.lines
            or len(frame.payload) >= LARGE_BYTES
        )
        if held is None and may_wait and self.validation.awaits(arrival):
            self.validation.hold(arrival)
            return
        number = arrival.sequence + numbering.shifts[peer]
        if number <= numbering.last:  # another of its publishers was in between
            number = self.publishers.renumber(numbering, frame.source, arrival)
        numbering.last = number
        by, parcel = (peer, arrival.sequence), None
        key = frame.key if isinstance(frame, PublishOnce) else b""
        if key and self._comes_again(frame.source, key, arrival):
            return
        self._published.take_seconds()  # of others
        self.counted.published += 1
        self.counted.sources[frame.source] += 1
        self.counted.source_bytes[frame.source] += len(frame.payload)
        try:
            if held is not None:
                parcel = held.open(self._control.current_tree, number)
            elif self.quota.is_on and self.agenda is not None:
                self.quota.check(arrival.connection, len(frame.payload), self.agenda.now)
            parcel = parcel or self._open_published(frame, number)
            parcel.by = by
            self._check_fits(parcel.stream, frame, 0 if held is None else held.largest)
            if held is not None:
                self.validation.judge(held, number)
            taken = self._match(parcel)
        except (MessageRefused, DecodeError, MatchLimitExceeded) as refusal:
            self._refuse(frame.source, number, refusal, (frame.format, frame.payload), by)
            if parcel is not None and parcel.span is not None:
                parcel.span.end(refused=refusal.code)
            return
        finally:
            seconds = self._published.take_seconds() + (0.0 if held is None else held.seconds)
            self.costs.charge(arrival.connection, frame.source, len(frame.payload), seconds)
        if key:
            self._keys.note(frame.source, key, number)
        if not self._act(parcel, taken):
            self._accept(parcel)
        if parcel.span is not None:
            parcel.span.end(links=len(taken.links))

    def _comes_again(self, source: str, key: bytes, arrival: Arrival) -> bool:
        """Whether a message was accepted with this publish key before, as its source is told."""
        first = self._keys.number(source, key)
        if first and self.local.undecided[source]:
            self.finish()  # that one may be refused yet
            first = self._keys.number(source, key)
        if first:
            self.counted.published_again += 1
            said = AcceptedBefore(source, arrival.sequence, first)
            self._links.send(arrival.peer, source, said)
        return bool(first)

    def _accept(self, parcel: Parcel) -> None:
        """A message that was published here is not refused."""
        if self._observers.connections:
            size = len(parcel.payload)
            self._observers.note("accepted", parcel.source, parcel.number, parcel, bytes=size)
        if self._shares.placer:
            self._shares.note_accepted()
        if self.archive.below:
            self.archive.offer(parcel)
        for form in self._trained.wanted(parcel.source):
            self._trained.sample(parcel.source, form, parcel.in_form(form))

    def _handle_message(self, frame: Message, arrival: Arrival) -> None:
        """A message from the parent on the root broker's tree.

        What the root has accepted cannot be decoded here only if it was damaged, or if this
        broker lacks what it takes; it is counted and goes no further, or back.  A message that
        costs the Matcher more than its bound goes to every child, so that nobody below misses it.
        """
        self.counted.received += 1
        self._kind = type(frame)
        comes_again = self._kind is MessageAgain and self._give_backs.comes_again(frame)
        if self._kind is Message and frame.hops > 1 and not self.last_numbers.is_new(frame):
            self.counted.passed_over += 1
            return
        if not self._query.table.is_wanted(frame.root):
            self.counted.unwanted += 1
            return
        if frame.reflects != WHOLE:
            frame = self.last_numbers.counted(frame, self._control.is_past(arrival))
        if frame.format == NOT_EVALUATED:
            self._tell_not_evaluated(frame)
            return
        try:
            parcel = self._open(
                *(frame.root, frame.source, frame.number, frame.hops, frame.format, frame.payload),
                *(frame.reflects, frame.pieces, frame.accepted),
            )
            parcel.unknown = frame.unknown
            if frame.headers is not None:
                parcel.headers = frame.headers
                self._spans.begin(parcel, "hop")
            taken = self._match(parcel)
        except (MessageRefused, DecodeError) as refusal:
            if comes_again or not self._give_backs.give_back(frame, refusal):
                self.counted.abandoned += 1
            return
        except MatchLimitExceeded as exceeded:
            self.counted.match_over_limit += 1
            links = list(self._control.children(frame.root))
            left = self._matcher.transformed(parcel.readings, parcel.root, links)
            untold = self.local.untold(parcel, exceeded.code, exceeded.reason)
            taken = Taken(links, left, untold)
        self._query.note_arrival(frame)
        if not (taken.links or taken.local):
            self._note_useless(parcel)
        self._act(parcel, taken)
        if parcel.span is not None:
            parcel.span.end(links=len(taken.links), hops=parcel.hops)

    def _tell_not_evaluated(self, frame: Message) -> None:
        """Everybody, here and below, as nobody knows who would have got it."""
        self.finish()  # deliveries keep the order of their messages
        self._query.note_arrival(frame)
        for child in self._control.children(frame.root):
            if self._query.table.wanted(frame.root, child):
                below = replace(frame, hops=frame.hops + 1)
                self._links.send(f"broker/{child}", frame.root, below)
        parcel = self._open(frame.root, frame.source, frame.number, frame.hops, "text", b"")
        for _ in self.local.pass_over(parcel, frame.payload.decode(errors="replace")):
            pass

    def _note_useless(self, parcel: Parcel) -> None:
        """Nobody here or below wants a message that came."""
        if parcel.number % SAMPLE_EVERY == 0:
            return
        self.counted.matched_nothing += 1
        self._query.note_useless(parcel.root, parcel.readings)

    def _decided(
        self, parcel: Parcel, is_wanted: bool, exceeded: MatchLimitExceeded | MessageRefused | None
    ) -> None:
        """What a message gives was not known when it came, and is now."""
        if parcel.hops:
            if not is_wanted and exceeded is None:
                self._note_useless(parcel)
        elif exceeded is not None:
            self._keys.forget(parcel.source, parcel.number)
            what = parcel.wire_format.value, parcel.payload
            by = parcel.by or (f"source/{parcel.source}", parcel.number)  # of a former release
            self._refuse(parcel.source, parcel.number, exceeded, what, by)
        else:
            self._accept(parcel)

    def _handle_undecoded(self, frame: Undecoded, arrival: Arrival) -> None:
        """A child gives back a message that it could not read."""
        if not self._give_backs.handle_undecoded(frame, arrival.sender):
            self.counted.abandoned += 1

    def take_limits(self, limits: Limits) -> None:
        self.limits = limits
        self._published.hold_to(limits.message)
        self.quota.take_limits(limits)

    def restore(self, rows: StoredRows) -> None:
        """What was deferred is looked at when everything is there."""
        self.last_numbers.restore(rows)
        self.local.restore(rows, self._reopen)
        if self.deferred:
            self.work_soon()

    def work(self) -> None:
        """Local profiles see the messages that were sent on before they were looked at."""
        self.local.run(self._is_over)
        self._dead.mark[0] = BEHIND
        if self.deferred:
            self.work_soon()

    def finish(self) -> None:
        """The same at once: before anything is handled that these messages come ahead of."""
        if self.deferred:
            self.local.run(never)

    def has_room(self, root: str) -> bool:
        """Whether no child's backlog on a tree is beyond what a slow one may have."""
        limit = self.limits.link_backlog_bytes_max
        return all(
            self._links.backlog_bytes(f"broker/{child}", Flow.MESSAGE, root) <= limit
            for child in self._control.children(root)
        )

    def report(self, said: BrokerStatistics) -> None:
        counted = self.counted
        for counts in (counted.sources, counted.source_bytes):
            for source in counts.keys() & self._control.gone_sources:
                del counts[source]
        counted.disk_is_short, counted.formats = self.quota.disk_is_short, self._formats.chosen()

    def _open(
        self,
        root: str,
        source: str,
        number: int,
        hops: int,
        format_name: str,
        payload: bytes,
        reflects: int = WHOLE,
        pieces: bytes = b"",
        accepted: int = 0,
    ) -> Parcel:
        what = wire_format_of(format_name), payload, reflects, pieces, accepted
        return Parcel(self._codebook, root, source, number, hops, *what)

    def _open_published(
        self, frame: Publish, number: int, read: MessageRead | None = None
    ) -> Parcel:
        """``read``: as another process has read it."""
        tree, accepted = self._control.current_tree, self._latency.accepted()
        if read is not None:
            of = frame.source, number, read, accepted
            parcel = Parcel.of_read(self._codebook, tree, *of)
        elif "/" in frame.format:  # PERF: is_media_type
            what = frame.source, number, frame.format, frame.payload, accepted
            parcel = Parcel.of_graph(self._published, tree, *what)
        else:
            form = wire_format_of(frame.format), frame.payload, WHOLE, b"", accepted
            parcel = Parcel(self._published, tree, frame.source, number, 0, *form)
        if frame.headers is not None:
            parcel.headers = frame.headers
            self._spans.begin(parcel, "accept")
        return parcel

    def _check_fits(self, stream: ElementStream, frame: Publish, largest: int) -> None:
        """Every broker takes the message for what it is, whatever the format of its link;
        MessageRefused otherwise.  Entities and escapes can make a form larger than the text that
        came.  ``largest``: bytes of the largest form, 0 if it is not known."""
        root = stream.names[stream.element_name[0]]
        if root.namespace == GRAPH_NAMESPACE and "/" not in frame.format:
            raise MessageRefused(
                "reserved-namespace",
                f"the root element is in {GRAPH_NAMESPACE}, which is how brokers write graphs; "
                "publish the graph itself, under its media type",
            )
        room = min(self._room, self.limits.message.bytes_max)
        if (largest or encoded_bytes_max(stream)) <= room:
            return
        size = 0
        for wire_format in FORMS:
            if wire_format is WireFormat.DICTIONARY and dictionary_bytes_max(stream, size) <= room:
                return
            size = len(self._codebook.encode(frame.source, wire_format, stream))
            if size > room:
                raise MessageRefused(
                    "too-large", f"the message has {size} bytes as {wire_format}; at most {room}"
                )

    def _refuse(
        self,
        source: str,
        number: int,
        refusal: MessageRefused | DecodeError | MatchLimitExceeded,
        what: tuple[str, bytes],
        by: tuple[str, int],
    ) -> None:
        """``what``: the message, with the name of its format; ``by``: see Parcel."""
        self.counted.refused += 1
        self.counted.refused_by_code[refusal.code] += 1
        self._dead.note_refused(source, number, f"{refusal.reason} [{refusal.code}]", *what)
        if self._observers.connections:
            self._observers.note("refused", source, number, code=refusal.code)
        where = refusal.line, refusal.column
        peer, sequence = by
        frame = Refused(source, sequence, refusal.code, refusal.reason, *where)
        self._links.send(peer, source, frame)

    def _match(self, parcel: Parcel) -> Taken:
        """MatchLimitExceeded."""
        span = None if parcel.span is None else parcel.span.child("match")
        urgent, delivered = self._matcher.deliver_in_stages(
            parcel.readings, parcel.root, self.local.put_off(parcel)
        )
        given = self.local.given(parcel, delivered)
        links, left = urgent_of(urgent)
        if parcel.number % SAMPLE_EVERY == 0:
            sampling = self._query.table.take_sample(parcel.root, parcel.readings)
            links, left = list(dict.fromkeys((*links, *sampling))), {}
        if span is not None:
            span.end(links=len(links))
        is_later = links or len(parcel.payload) >= LARGE_BYTES
        return Taken(links, left, given if is_later else list(filter(itemgetter(0), given)))

    def _act(self, parcel: Parcel, taken: Taken) -> bool:
        """Send a message on; then deliver it, or later if it was sent on, is large, or comes behind
        one that was put off: deliveries keep the order of their messages.  True where it is not
        decided yet whether anybody wants it, and whether it may be refused."""
        given = taken.local
        for link, cut in self._transformation.cuts(parcel, taken.links, taken.left).items():
            self._forward(parcel, link, cut)
        is_undecided = not (taken.links or isinstance(given, list)) and bool(self._query.profiles)
        if is_undecided or (self._query.profiles and (taken.links or (given and self.deferred))):
            self.local.put(parcel, given, is_undecided=is_undecided)
            self.work_soon()
        else:
            for _ in self.local.deliver(parcel, given):
                pass
        return is_undecided

    def _reopen(self, row: DeferredRow) -> Parcel:
        parcel = self._open(
            *(row.root, row.source, row.number, row.hops, row.format, row.payload),
            *(row.reflects, row.pieces, row.accepted),
        )
        parcel.by = row.by
        return parcel

    def _forward(self, parcel: Parcel, child: str, cut: Cut) -> None:
        packing = self._formats.packing_for(cut.parcel, child)
        payload = cut.parcel.packed(packing)
        kind = self._kind if parcel.hops else Message
        frame = kind(
            root=parcel.root,
            source=parcel.source,
            number=parcel.number,
            format=packing.wire_format.value,
            hops=parcel.hops + 1,
            payload=payload,
            reflects=cut.reflects,
            accepted=parcel.accepted,
            pieces=cut.parcel.pieces,
            unknown=parcel.unknown,
            headers=parcel.headers,
        )
        # What comes behind one that was given back must not be known below before that is stored.
        is_early = parcel.hops > 0 and kind is Message and not self._give_backs.awaits(parcel.root)
        self._links.send(f"broker/{child}", parcel.root, frame, is_early=is_early)
        size = len(payload) + len(frame.pieces)
        self.counted.crossings[child] += 1
        self.counted.crossing_bytes[child] += size
        self._transformation.note_sent(parcel, child, cut, size)
        if payload is parcel.payload:
            self.counted.passed_on_unchanged += 1
        if self._observers.connections:
            about = parcel.source, parcel.number, parcel
            self._observers.note("crossing", *about, link=child, bytes=size)


def not_evaluated(frame: Message, why: str) -> Message:
    """What is left of a message that cannot be looked at."""
    return replace(frame, format=NOT_EVALUATED, payload=why.encode(), reflects=WHOLE, pieces=b"")


def urgent_of(matches: Iterable[Match]) -> tuple[list[str], dict[str, ElementStream]]:
    """The links that are taken, and what is left of the message for those that are transformed."""
    links: list[str] = []
    left: dict[str, ElementStream] = {}
    for match in matches:
        if isinstance(match, RouteMatch):
            links.append(match.link)
        elif isinstance(match, TransformationMatch):
            left[match.link] = match.stream
    return links, left
