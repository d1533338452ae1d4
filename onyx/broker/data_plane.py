"""Data plane: a message's way through one broker (section 4.3 of the paper).

::

    Publish  ─ parse text, check the source ─┐
                                             ├─ match once ─┬─ RouteMatch   -> Message to the child
    Message  ─ decode the link's format ─────┘              └─ ProfileMatch -> Delivery to the user

Only children whose routing query holds get the message; undecoded bytes are passed on as they
came when the next link speaks the same format.  A broker that has no means to read a message (it
lost its disk, and with it the schema that the dictionary form takes) gives it back to its parent,
which sends it again in the binary form, and so from then on (``Undecoded``).

A message that is refused at the root broker is refused whole: its source is told where and why,
and nobody gets any of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from formats import (
    EMPTY_DICTIONARY,
    FORMS,
    ONLY_EMPTY,
    DecodeError,
    ElementStream,
    MessageRefused,
    Validation,
    WireFormat,
    compress,
    decode,
    encode,
    encoded_bytes_max,
    only,
    unpack,
)
from onyx.broker.control_plane import ControlPlane
from onyx.broker.observers import Observers
from overlay.link.events import Flow
from overlay.link.frames import Delivery, Message, Publish, Refused, Undecoded
from overlay.link.link_layer import LinkLayer
from yfilter.errors import MatchLimitExceeded
from yfilter.matcher import Matcher
from yfilter.matches import Match, ProfileMatch, RouteMatch

FRAME_HEADROOM = 1024  # bytes of a frame that are not the message
_NO_MEANS = frozenset(
    {"unknown-dictionary", "unknown-format"}
)  # of this broker, for a good message


@dataclass(frozen=True, slots=True)
class _Parcel:
    """A message at this broker: its identity, its bytes as they came, and its element stream."""

    root: str
    source: str
    number: int
    hops: int
    wire_format: WireFormat
    payload: bytes
    stream: ElementStream


class DataPlane:
    """Takes messages in and acts on what the Matcher decides."""

    def __init__(
        self, control: ControlPlane, links: LinkLayer, matcher: Matcher, observers: Observers
    ) -> None:
        self._control = control
        self._links = links
        self._matcher = matcher
        self._observers = observers
        self._limits = control.topology.limits
        frame = self._limits.link.frame_bytes_max
        self._room = frame - FRAME_HEADROOM - frame // 64  # compression may find nothing to save
        self._counters: Counter[str] = Counter()
        self._crossings: Counter[str] = Counter()  # messages sent, by child link
        self._invalid: Counter[str] = Counter()  # messages against their schema, by source
        self._plain: set[tuple[str, str]] = set()  # (child, source): it lacks the dictionary

    def handle_publish(self, frame: Publish, number: int) -> None:
        """A source's message, the ``number``-th of it; refused to the source when it is bad."""
        self._counters["published"] += 1
        identity = self._control.identity
        try:
            parcel = self._open(identity, frame.source, number, 0, frame.format, frame.payload)
            self._check_fits(parcel.stream, frame.source)
            self._validate(parcel)
            decisions = list(self._matcher.match(parcel.stream, root=identity))
        except (MessageRefused, DecodeError, MatchLimitExceeded) as refusal:
            self._refuse(frame.source, number, refusal)
            return
        self._observers.note("accepted", source=frame.source, number=number)
        self._act(parcel, decisions)

    def handle_message(self, frame: Message) -> None:
        """A message from the parent on the root broker's tree.

        What the root has accepted cannot be decoded here only if it was damaged, or if this
        broker's limits are tighter; it is counted and goes no further.  A message that costs the
        Matcher more than its bound goes to every child, so that nobody below misses it.
        """
        self._counters["received"] += 1
        try:
            parcel = self._open(
                frame.root, frame.source, frame.number, frame.hops, frame.format, frame.payload
            )
        except (MessageRefused, DecodeError) as refusal:
            parent = self._control.parent(frame.root)
            if refusal.code in _NO_MEANS and parent is not None:
                self._give_back(frame, parent)
            else:
                self._counters["abandoned"] += 1
            return
        decisions: list[Match]
        try:
            decisions = list(self._matcher.match(parcel.stream, root=frame.root))
        except MatchLimitExceeded:
            self._counters["match_over_limit"] += 1
            decisions = [RouteMatch(child) for child in self._control.children(frame.root)]
        self._act(parcel, decisions)

    def _give_back(self, frame: Message, parent: str) -> None:
        self._counters["given_back"] += 1
        undecoded = Undecoded(
            root=frame.root,
            source=frame.source,
            number=frame.number,
            format=frame.format,
            hops=frame.hops,
            payload=frame.payload,
        )
        self._links.send(f"broker/{parent}", frame.root, undecoded)

    def handle_undecoded(self, frame: Undecoded, child: str) -> None:
        """A child could not read a message that this broker sent: once more, without a dictionary.

        What this broker cannot read either was damaged on the way; it is counted and gone.
        """
        try:
            parcel = self._open(
                frame.root, frame.source, frame.number, frame.hops, frame.format, frame.payload
            )
        except (MessageRefused, DecodeError):
            self._counters["abandoned"] += 1
            return
        if frame.source not in self._control.sources:  # this broker cannot have sent that
            self._counters["abandoned"] += 1
            return
        self._counters["sent_again"] += 1
        self._plain.add((child, frame.source))
        again = Message(
            root=frame.root,
            source=frame.source,
            number=frame.number,
            format=WireFormat.BINARY.value,
            hops=frame.hops,
            payload=encode(parcel.stream, WireFormat.BINARY),
        )
        self._links.send(f"broker/{child}", frame.root, again)

    def may_acknowledge(self, root: str) -> bool:
        """Whether messages of a tree may go on coming: no child's backlog is beyond the limit.

        Withheld acknowledgements fill the window of whoever sends here, and so on up to the
        source.  Waiting follows the direction of one tree, so it can never go round in a circle.
        """
        limit = self._limits.link_backlog_bytes_max
        return all(
            self._links.backlog_bytes(f"broker/{child}", Flow.MESSAGE, root) <= limit
            for child in self._control.children(root)
        )

    def statistics(self) -> dict[str, object]:
        return {
            **self._counters,
            "crossings": dict(self._crossings),
            "invalid_by_source": dict(self._invalid),
            "without_dictionary": len(self._plain),
        }

    def _open(
        self, root: str, source: str, number: int, hops: int, format_name: str, payload: bytes
    ) -> _Parcel:
        try:
            wire_format = WireFormat(format_name)
        except ValueError:
            raise DecodeError("unknown-format", f"no wire format {format_name!r}") from None
        known = self._control.dictionary_of(source) if _takes_dictionary(wire_format) else None
        lookup = only(known) if known else ONLY_EMPTY
        stream = decode(payload, wire_format, self._limits.message, lookup)
        return _Parcel(root, source, number, hops, wire_format, payload, stream)

    def _check_fits(self, stream: ElementStream, source: str) -> None:
        """Every broker takes the message, whatever the format of its link; MessageRefused
        otherwise.  Entities and escapes can make a form larger than the text that came."""
        room = min(self._room, self._limits.message.bytes_max)
        if encoded_bytes_max(stream) <= room:
            return
        for wire_format in FORMS:
            size = len(self._encode(stream, wire_format, source))
            if size > room:
                raise MessageRefused(
                    "too-large", f"the message has {size} bytes as {wire_format}; at most {room}"
                )

    def _validate(self, parcel: _Parcel) -> None:
        """Hold a message against its source's schema, as the source asked; MessageRefused."""
        validation, validator = self._control.validator_of(parcel.source)
        if validator is None:
            return
        text = None
        if parcel.wire_format.form is WireFormat.TEXT:
            text = unpack(parcel.payload, parcel.wire_format, self._limits.message)
        violation = validator.check(parcel.stream, text)
        if violation is None:
            self._counters["valid"] += 1
            return
        self._counters["invalid"] += 1
        self._invalid[parcel.source] += 1
        self._observers.note(
            "invalid", source=parcel.source, number=parcel.number, reason=violation.reason
        )
        if validation is Validation.REJECT:
            raise MessageRefused("invalid", violation.reason, violation.line, violation.column)

    def _refuse(
        self, source: str, number: int, refusal: MessageRefused | DecodeError | MatchLimitExceeded
    ) -> None:
        self._counters["refused"] += 1
        self._observers.note("refused", source=source, number=number, code=refusal.code)
        frame = Refused(
            source=source,
            number=number,
            code=refusal.code,
            reason=refusal.reason,
            line=getattr(refusal, "line", 0),
            column=getattr(refusal, "column", 0),
        )
        self._links.send(f"source/{source}", source, frame)

    def _act(self, parcel: _Parcel, decisions: list[Match]) -> None:
        payload_in = self._encoder(parcel)
        for decision in decisions:
            if isinstance(decision, RouteMatch):
                self._forward(parcel, decision.link, payload_in)
            elif isinstance(decision, ProfileMatch):
                self._deliver(parcel, decision)

    def _encoder(self, parcel: _Parcel) -> Callable[[WireFormat], bytes]:
        """The message in any format, each made at most once; in its own format the very bytes."""
        made = {parcel.wire_format: parcel.payload}

        def payload_in(wire_format: WireFormat) -> bytes:
            if wire_format not in made:
                made[wire_format] = (
                    compress(payload_in(wire_format.form), wire_format.compression)
                    if wire_format.compression
                    else make(wire_format)
                )
            return made[wire_format]

        def make(form: WireFormat) -> bytes:
            if parcel.wire_format.form is form:
                return unpack(parcel.payload, parcel.wire_format, self._limits.message)
            return self._encode(parcel.stream, form, parcel.source)

        return payload_in

    def _encode(self, stream: ElementStream, form: WireFormat, source: str) -> bytes:
        known = self._control.dictionary_of(source) if _takes_dictionary(form) else None
        return encode(stream, form, known or EMPTY_DICTIONARY)

    def _forward(
        self, parcel: _Parcel, child: str, payload_in: Callable[[WireFormat], bytes]
    ) -> None:
        link = self._control.topology.link(self._control.identity, child)
        wire_format = self._format_for(child, link.format, parcel.source)
        frame = Message(
            root=parcel.root,
            source=parcel.source,
            number=parcel.number,
            format=wire_format.value,
            hops=parcel.hops + 1,
            payload=payload_in(wire_format),
        )
        self._links.send(f"broker/{child}", parcel.root, frame)
        self._crossings[child] += 1
        self._observers.note(
            "crossing",
            source=parcel.source,
            number=parcel.number,
            link=child,
            bytes=len(frame.payload),
        )

    def _format_for(self, child: str, wanted: WireFormat, source: str) -> WireFormat:
        """The link's format, unless source or child lack what it takes.

        A child that is away has not said what it reads; it gets the link's format, and would give
        back what it could not read.
        """
        if _takes_dictionary(wanted) and (
            (child, source) in self._plain or self._control.dictionary_of(source) is None
        ):
            wanted = wanted.without_dictionary
        listed = self._links.peer_formats(f"broker/{child}")
        if listed and wanted.value not in listed:
            self._counters["unlisted_format"] += 1
            return WireFormat.BINARY
        return wanted

    def _deliver(self, parcel: _Parcel, match: ProfileMatch) -> None:
        try:
            results = match.results()
        except MatchLimitExceeded:
            results = []
        if not results or sum(map(len, results)) > self._room:
            self._counters["results_over_limit"] += 1
            return
        subscriber = f"subscriber/{match.profile_id}"
        frame = Delivery(
            profile=match.profile_id,
            source=parcel.source,
            number=parcel.number,
            lengths=[len(result) for result in results],
            payload=b"".join(results),
        )
        self._links.send(subscriber, match.profile_id, frame)
        self._counters["delivered"] += 1
        self._counters["dropped_deliveries"] += self._links.drop_oldest(
            subscriber,
            Flow.MESSAGE,
            match.profile_id,
            self._limits.delivery_backlog_bytes_max,
        )
        self._observers.note(
            "delivery", source=parcel.source, number=parcel.number, profile=match.profile_id
        )


def _takes_dictionary(wire_format: WireFormat) -> bool:
    return wire_format.form is WireFormat.DICTIONARY
