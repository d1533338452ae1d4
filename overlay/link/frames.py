"""Every frame of the protocol: one dataclass each, from which its wire form follows.

A frame travels on one of the four flows (section 5 of the paper).  A *sequenced* frame belongs to
a channel - (peer, flow, key) - on which it has a number, is journaled by the sender, resent after
a lost connection, acknowledged, and so arrives exactly once and in order.  An *unsequenced* one
speaks about the connection itself and is gone with it.

Adding a frame is adding a dataclass here (its base is in ``frame``); ``frame_codec`` does the rest
from the annotations (``frame_fields``).  Bytes on the wire: docs/protocol.md.

``payload``, where a frame has it, is carried as it is: bytes that this layer never looks into.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from overlay.link.errors import ProtocolError
from overlay.link.events import Flow
from overlay.link.frame import ROLES, Frame, on_the_wire
from overlay.link.frame_fields import (
    BODY,
    Bound,
    Detail,
    FlowNumber,
    GivenDictionaries,
    Name,
    SequenceNumber,
    Text,
)
from overlay.link.limits import FRAME_BYTES_MAX_LEAST

VALIDATIONS = frozenset({"off", "report", "reject"})


# --- control flow: about the connection, unsequenced ----------------------------------------


@on_the_wire
@dataclass(frozen=True, slots=True)
class Hello(Frame):
    """The first frame in each direction.

    ``peer`` is the sender's own id and ``instance`` tells two runs of it apart (for people; the
    protocol does not depend on it).  ``received`` says, for each channel on which the sender
    receives from this peer, the last sequence number that it has: (flow, key, sequence).
    """

    type: ClassVar[str] = "hello"

    version: int
    role: Name
    peer: Name
    instance: Name
    formats: Annotated[list[Name], Bound(64)]
    frame_bytes_max: int
    received: Annotated[list[tuple[FlowNumber, Name, SequenceNumber]], Bound(65_536), BODY]

    def check(self) -> None:
        if self.frame_bytes_max < FRAME_BYTES_MAX_LEAST:
            raise ProtocolError(
                "bad-field",
                f"frame_bytes_max is {self.frame_bytes_max}; at least {FRAME_BYTES_MAX_LEAST}",
            )
        if self.role not in ROLES:
            raise ProtocolError("bad-field", f"role {self.role!r}; expected one of {sorted(ROLES)}")
        if not self.peer or any(c in "|/" or not c.isprintable() for c in self.peer):
            raise ProtocolError(
                "bad-field", "a peer's id is printable text without '|' and '/', and not empty"
            )


@on_the_wire
@dataclass(frozen=True, slots=True)
class Ack(Frame):
    """Everything on channel (``about``, ``key``) up to ``sequence`` is taken, durably."""

    type: ClassVar[str] = "ack"

    about: FlowNumber
    key: Name
    sequence: SequenceNumber


@on_the_wire
@dataclass(frozen=True, slots=True)
class Skipped(Frame):
    """Frames up to ``through`` on channel (``about``, ``key``) will not come; expect the next.

    ``lost`` of them were thrown away before anyone acknowledged them; the others had been
    acknowledged to this sender before (by a receiver that has since lost its memory of it).
    """

    type: ClassVar[str] = "skipped"

    about: FlowNumber
    key: Name
    through: SequenceNumber
    lost: SequenceNumber


@on_the_wire
@dataclass(frozen=True, slots=True)
class Ping(Frame):
    """Are you there?"""

    type: ClassVar[str] = "ping"

    nonce: int


@on_the_wire
@dataclass(frozen=True, slots=True)
class Pong(Frame):
    """Yes; ``nonce`` is the ping's."""

    type: ClassVar[str] = "pong"

    nonce: int


@on_the_wire
@dataclass(frozen=True, slots=True)
class ErrorFrame(Frame):
    """What was wrong (``errors.ERROR_CODES``); after a fatal one the sender closes."""

    type: ClassVar[str] = "error"

    code: Name
    detail: Detail
    fatal: bool


@on_the_wire
@dataclass(frozen=True, slots=True)
class Request(Frame):
    """A question; ``request`` is chosen by the asker and comes back in the Response."""

    type: ClassVar[str] = "request"

    request: Name
    verb: Name
    arguments: Annotated[Mapping[str, object], BODY]


@on_the_wire
@dataclass(frozen=True, slots=True)
class Response(Frame):
    """The answer: ``result`` is the result, or {"code", "message", ...} when not ``ok``."""

    type: ClassVar[str] = "response"

    request: Name
    ok: bool
    result: Annotated[Mapping[str, object], BODY]


@on_the_wire
@dataclass(frozen=True, slots=True)
class Observed(Frame):
    """What an observer asked to see as it happens; best effort, may be dropped."""

    type: ClassVar[str] = "observed"

    events: Annotated[Sequence[Mapping[str, object]], Bound(4_096), BODY]


# --- catalog flow, sequenced ----------------------------------------------------------------


@on_the_wire
@dataclass(frozen=True, slots=True)
class SourceAnnounced(Frame):
    """A data source exists; ``payload`` is its schema, ``validation`` what is done about messages
    against it ("off", "report", "reject"), ``compression`` the compression dictionaries that were
    given with it (form, dictionary), ``rate`` messages a second, ``size`` bytes a message as the
    source expects them, ``location`` wherever places are coordinates."""

    type: ClassVar[str] = "source-announced"
    flow: ClassVar[Flow] = Flow.CATALOG
    sequenced: ClassVar[bool] = True

    source: Name
    name: Name
    root: Name
    location: Annotated[list[float], Bound(8)] | None
    rate: float
    size: int
    schema_name: Name
    schema_kind: Name
    validation: Name
    compression: GivenDictionaries
    payload: bytes = b""

    def check(self) -> None:
        if self.validation not in VALIDATIONS:
            raise ProtocolError(
                "bad-field",
                f"validation {self.validation!r}; expected one of {sorted(VALIDATIONS)}",
            )


@on_the_wire
@dataclass(frozen=True, slots=True)
class SourceReady(Frame):
    """The whole tree knows ``source``; it may publish."""

    type: ClassVar[str] = "source-ready"
    flow: ClassVar[Flow] = Flow.CATALOG
    sequenced: ClassVar[bool] = True

    source: Name


# --- query flow, sequenced ------------------------------------------------------------------


@on_the_wire
@dataclass(frozen=True, slots=True)
class RoutingDelta(Frame):
    """The routing query of this link for ``root`` gains and loses these disjuncts (texts)."""

    type: ClassVar[str] = "routing-delta"
    flow: ClassVar[Flow] = Flow.QUERY
    sequenced: ClassVar[bool] = True

    root: Name
    added: Annotated[list[Text], Bound(65_536), BODY]
    removed: Annotated[list[Text], Bound(65_536), BODY]


@on_the_wire
@dataclass(frozen=True, slots=True)
class TreeReady(Frame):
    """The sender's part of the broadcast tree of ``root`` knows ``source``.

    On the query flow, because it must stay behind the RoutingDelta that says what that part wants.
    """

    type: ClassVar[str] = "tree-ready"
    flow: ClassVar[Flow] = Flow.QUERY
    sequenced: ClassVar[bool] = True

    root: Name
    source: Name


@on_the_wire
@dataclass(frozen=True, slots=True)
class LiveMarker(Frame):
    """Sent up the tree of ``root`` after a change at ``host``; everything before it is in force
    where it arrives."""

    type: ClassVar[str] = "live-marker"
    flow: ClassVar[Flow] = Flow.QUERY
    sequenced: ClassVar[bool] = True

    root: Name
    host: Name
    marker: int


@on_the_wire
@dataclass(frozen=True, slots=True)
class LiveReached(Frame):
    """The marker has reached ``broker`` on its way to the root; travels back down to ``host``."""

    type: ClassVar[str] = "live-reached"
    flow: ClassVar[Flow] = Flow.QUERY
    sequenced: ClassVar[bool] = True

    root: Name
    host: Name
    marker: int
    broker: Name


@on_the_wire
@dataclass(frozen=True, slots=True)
class PlaceProfile(Frame):
    """The registration service gives a profile to its host broker."""

    type: ClassVar[str] = "place-profile"
    flow: ClassVar[Flow] = Flow.QUERY
    sequenced: ClassVar[bool] = True

    profile: Name
    user: Name
    text: Annotated[str, Bound(256 * 1024), BODY]
    version: int
    request: Name


@on_the_wire
@dataclass(frozen=True, slots=True)
class ProfileChanged(Frame):
    """A profile has a new text, or none any more (``text`` None: removed)."""

    type: ClassVar[str] = "profile-changed"
    flow: ClassVar[Flow] = Flow.QUERY
    sequenced: ClassVar[bool] = True

    profile: Name
    version: int
    text: Annotated[str | None, Bound(256 * 1024), BODY]
    user: Name


@on_the_wire
@dataclass(frozen=True, slots=True)
class ProfileLive(Frame):
    """Every broker on the way has this version of the profile."""

    type: ClassVar[str] = "profile-live"
    flow: ClassVar[Flow] = Flow.QUERY
    sequenced: ClassVar[bool] = True

    profile: Name
    version: int


@on_the_wire
@dataclass(frozen=True, slots=True)
class Undecoded(Frame):
    """A message of the tree of ``root`` that the sender has no means to read, as it came; the
    parent sends it once more, in a form that needs none.

    On the query flow, which is never held back: the channel of messages is the other direction.
    """

    type: ClassVar[str] = "undecoded"
    flow: ClassVar[Flow] = Flow.QUERY
    sequenced: ClassVar[bool] = True

    root: Name
    source: Name
    number: SequenceNumber
    format: Name
    hops: int
    payload: bytes


@on_the_wire
@dataclass(frozen=True, slots=True)
class DictionaryHeld(Frame):
    """The sender's part of the tree of ``root`` has this ``version`` of the compression dictionary
    of ``source`` in ``form``: no message given back after this was packed with an older one."""

    type: ClassVar[str] = "dictionary-held"
    flow: ClassVar[Flow] = Flow.QUERY
    sequenced: ClassVar[bool] = True

    root: Name
    source: Name
    form: Name
    version: int


# --- message flow, sequenced ----------------------------------------------------------------


@on_the_wire
@dataclass(frozen=True, slots=True)
class DictionaryTrained(Frame):
    """``payload`` is the compression dictionary with which messages of ``source`` in ``form`` may
    be packed from here on: on the message flow, ahead of the messages that take it."""

    type: ClassVar[str] = "dictionary-trained"
    flow: ClassVar[Flow] = Flow.MESSAGE
    sequenced: ClassVar[bool] = True

    root: Name
    source: Name
    form: Name
    payload: bytes


@on_the_wire
@dataclass(frozen=True, slots=True)
class Publish(Frame):
    """A message from its source to its root broker; its number is the frame's sequence."""

    type: ClassVar[str] = "publish"
    flow: ClassVar[Flow] = Flow.MESSAGE
    sequenced: ClassVar[bool] = True

    source: Name
    format: Name
    payload: bytes


@on_the_wire
@dataclass(frozen=True, slots=True)
class Refused(Frame):
    """Message ``number`` was not taken; ``line`` and ``column`` count from 1, 0 is unknown."""

    type: ClassVar[str] = "refused"
    flow: ClassVar[Flow] = Flow.MESSAGE
    sequenced: ClassVar[bool] = True

    source: Name
    number: SequenceNumber
    code: Name
    reason: Detail
    line: int
    column: int


@on_the_wire
@dataclass(frozen=True, slots=True)
class Message(Frame):
    """A message on its way down the broadcast tree of ``root``."""

    type: ClassVar[str] = "message"
    flow: ClassVar[Flow] = Flow.MESSAGE
    sequenced: ClassVar[bool] = True

    root: Name
    source: Name
    number: SequenceNumber
    format: Name
    hops: int
    payload: bytes


@on_the_wire
@dataclass(frozen=True, slots=True)
class Delivery(Frame):
    """The results of ``profile`` on one message: ``payload`` is the results end to end,
    ``lengths`` the bytes of each."""

    type: ClassVar[str] = "delivery"
    flow: ClassVar[Flow] = Flow.MESSAGE
    sequenced: ClassVar[bool] = True

    profile: Name
    source: Name
    number: SequenceNumber
    lengths: Annotated[list[int], Bound(1_000_000), BODY]
    payload: bytes

    def check(self) -> None:
        if sum(self.lengths) != len(self.payload):
            raise ProtocolError(
                "bad-field",
                f"lengths add up to {sum(self.lengths)}, the payload has {len(self.payload)} bytes",
            )

    def results(self) -> list[bytes]:
        """The results one by one."""
        results, start = [], 0
        for length in self.lengths:
            results.append(self.payload[start : start + length])
            start += length
        return results
