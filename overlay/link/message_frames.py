"""Frames of the message flow: messages, and what goes down a tree ahead of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from overlay.link.carried_message import CarriedMessage
from overlay.link.catalog_frames import check_source
from overlay.link.errors import ProtocolError
from overlay.link.frame import MessageFrame, on_the_wire
from overlay.link.frame_fields import Bound, Detail, Name, SequenceNumber
from overlay.link.message_headers import Headers
from overlay.link.publish_key import DIGEST_BYTES


@on_the_wire
@dataclass(frozen=True, slots=True)
class DictionaryTrained(MessageFrame):
    """``payload`` is the compression dictionary with which messages of ``source`` in ``form`` may
    be packed from here on: on the message flow, ahead of the messages that take it."""

    type: ClassVar[str] = "dictionary-trained"

    root: Name
    source: Name
    form: Name
    payload: bytes


@on_the_wire
@dataclass(frozen=True, slots=True)
class SourceChanged(MessageFrame):
    """``source`` is in this ``version`` from here on, as in SourceAnnounced: on the message flow,
    as the messages that follow on the tree ``root`` may be in the words of its new schema."""

    type: ClassVar[str] = "source-changed"

    root: Name
    source: Name
    version: int
    location: tuple[float, float] | None
    rate: float
    size: int
    schema_name: Name
    schema_kind: Name
    validation: Name
    payload: bytes = b""

    def check(self) -> None:
        check_source(self.validation, self.location)


@on_the_wire
@dataclass(frozen=True, slots=True)
class SourceGone(MessageFrame):
    """There is no ``source`` any more: no message of it follows on the tree ``root``."""

    type: ClassVar[str] = "source-gone"

    root: Name
    source: Name


@on_the_wire
@dataclass(frozen=True, slots=True)
class TaxonomiesInForce(MessageFrame):
    """The taxonomies by which the graphs of the messages that follow on the tree ``root`` are
    closed, as in TaxonomiesAnnounced."""

    type: ClassVar[str] = "taxonomies-in-force"

    root: Name
    version: int
    payload: bytes


@on_the_wire
@dataclass(frozen=True, slots=True)
class TreeBegun(MessageFrame):
    """The first frame on the way down the new tree ``root``: tell your parent on it what you want
    of it.  It comes in the place of the tree ``after``; "" for none."""

    type: ClassVar[str] = "tree-begun"

    root: Name
    after: Name = ""


@on_the_wire
@dataclass(frozen=True, slots=True)
class TreeEnded(MessageFrame):
    """The last frame on the way down the tree ``root``: no message comes behind it."""

    type: ClassVar[str] = "tree-ended"

    root: Name


@on_the_wire
@dataclass(frozen=True, slots=True)
class Publish(MessageFrame):
    """A message from its source to its root broker; its number is the frame's sequence.

    ``format``: a wire format, or the media type of a graph, as text/turtle; ``headers``: see
    message_headers.py.
    """

    type: ClassVar[str] = "publish"

    source: Name
    format: Name
    payload: bytes
    headers: Headers | None = field(default=None, kw_only=True)


@on_the_wire
@dataclass(frozen=True, slots=True)
class PublishOnce(Publish):
    """One that may have been published before: ``key`` is the digest of its publish key."""

    type: ClassVar[str] = "publish-once"

    key: Annotated[bytes, Bound(DIGEST_BYTES)]

    def check(self) -> None:
        if len(self.key) != DIGEST_BYTES:
            raise ProtocolError(
                "bad-field", f"'key' has {len(self.key)} bytes; expected {DIGEST_BYTES}"
            )


@on_the_wire
@dataclass(frozen=True, slots=True)
class AcceptedBefore(MessageFrame):
    """Message ``number`` has the publish key of message ``first``, which was accepted: so it is not
    published again."""

    type: ClassVar[str] = "accepted-before"

    source: Name
    number: SequenceNumber
    first: SequenceNumber


@on_the_wire
@dataclass(frozen=True, slots=True)
class Refused(MessageFrame):
    """Message ``number`` was not taken; ``line`` and ``column`` count from 1, 0 is unknown."""

    type: ClassVar[str] = "refused"

    source: Name
    number: SequenceNumber
    code: Name
    reason: Detail
    line: int
    column: int


@on_the_wire
@dataclass(frozen=True, slots=True)
class Message(CarriedMessage, MessageFrame):
    """A message on its way down a broadcast tree."""

    type: ClassVar[str] = "message"


@on_the_wire
@dataclass(frozen=True, slots=True)
class MessageAgain(Message):
    """One that somebody on its way could not read: it may come behind later ones."""

    type: ClassVar[str] = "message-again"
