"""Frame: the base of all frames of the protocol, the words for them, and the roles of processes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, TypeVar

import msgspec

from overlay.link.errors import ProtocolError
from overlay.link.events import Flow
from overlay.link.principal import PROCESS_ROLES

PROTOCOL_VERSION = 2
"""The newest version of the protocol that this program speaks."""
OLDEST_VERSION = 2
"""The oldest; the one before PROTOCOL_VERSION, once there is one that can be negotiated."""
PUBLISH_KEYS = "publish-keys"  # publish-once, accepted-before
POLICIES = "policies"  # delivery-policies, rejected
SOURCE_CHANGES = "source-changes"  # source-changed, source-removed, source-gone
CATALOG_REPORT = "catalog-report"  # is_anew of a hello, catalog-wanted
GOING_ROUND = "going-round"  # passed-on; away of a shape, and after of a tree
MOVED_KEYS = "moved-keys"  # keys-released
PACKED_SHAPES = "packed-shapes"  # the payload of shape-announced, compressed
SOURCE_QUESTIONS = "source-questions"  # source-asked, source-answered
HELD_RESULTS = "held-results"  # the mode HELD of attach, profile.positions
AUDIT = "audit"  # audited, audit-marks
PUBLISHERS = "publishers"  # publisher and numbered of a hello, numbered
FEATURES: frozenset[str] = frozenset(
    {PUBLISH_KEYS, POLICIES, SOURCE_CHANGES, CATALOG_REPORT}
    | {GOING_ROUND, MOVED_KEYS, PACKED_SHAPES, SOURCE_QUESTIONS, HELD_RESULTS, AUDIT}
    | {PUBLISHERS}
)
"""What this program can do beyond OLDEST_VERSION, by name.  A frame type, or a field that must not
be passed over, is sent only to a peer whose hello names its feature (``LinkLayer.features``)."""

ROLES = frozenset({"broker", "registration", "source", "subscriber", "client"})
DURABLE_ROLES = PROCESS_ROLES | {"source"}
"""Channels exist between two processes of these roles; a client only asks and is answered, and what
a subscriber takes has numbers of its own (frames.py)."""


class Frame(msgspec.Struct, frozen=True, gc=False):
    """Base of all frames: ``type`` is its word on the wire, ``flow`` where it queues."""

    type: ClassVar[str] = ""
    flow: ClassVar[Flow] = Flow.CONTROL
    sequenced: ClassVar[bool] = False

    def check(self) -> None:
        """Conditions between fields; raises ProtocolError.  Single fields are checked before."""

    def called(self, peer: str, key: str, sequence: int) -> str:
        """What people call it, which is the same for no other sequenced frame."""
        return f"{self.type} from {peer}, number {sequence} of channel {key!r}"


class CatalogFrame(Frame, frozen=True):
    """A sequenced frame of the catalog flow."""

    flow: ClassVar[Flow] = Flow.CATALOG
    sequenced: ClassVar[bool] = True


class QueryFrame(Frame, frozen=True):
    """A sequenced frame of the query flow."""

    flow: ClassVar[Flow] = Flow.QUERY
    sequenced: ClassVar[bool] = True


class MessageFrame(Frame, frozen=True):
    """A sequenced frame of the message flow."""

    flow: ClassVar[Flow] = Flow.MESSAGE
    sequenced: ClassVar[bool] = True


FrameType = TypeVar("FrameType", bound=type[Frame])

FRAME_TYPES: dict[str, type[Frame]] = {}
"""The word on the wire -> its class; filled by ``on_the_wire``."""


def on_the_wire(cls: FrameType) -> FrameType:
    """Make a frame's class known to the codec, by its name as a word, unless it says another."""
    if "type" not in vars(cls):
        cls.type = re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()
    if cls.type in FRAME_TYPES:
        raise ValueError(f"frame type {cls.type!r} of {cls.__name__} is taken")
    FRAME_TYPES[cls.type] = cls
    return cls


def check_lengths(lengths: Iterable[int], payload: bytes) -> None:
    """ProtocolError unless results of these lengths, end to end, are the payload."""
    total = sum(lengths)
    if total != len(payload):
        raise ProtocolError(
            "bad-field", f"lengths add up to {total}, the payload has {len(payload)} bytes"
        )
