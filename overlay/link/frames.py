"""Every frame of the protocol: one Struct each, from which its wire form follows.

A frame travels on one of the four flows (section 5 of the paper), and there is a file for each;
those by which a profile moves stand in ``move_frames``.

A *sequenced* frame belongs to a channel - (peer, flow, key) - on which it has a number, is
journaled by the sender, resent after a lost connection, acknowledged, and so arrives exactly once
and in order.  An *unsequenced* one speaks about the connection itself and is gone with it.

Adding a frame is adding a Struct to the file of its flow, and its name here; ``frame_codec``
does the rest from the annotations (``frame_fields``).  Bytes on the wire: docs/protocol.md.

``payload``, where a frame has it, is carried as it is: bytes that this layer never looks into.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, ClassVar, NamedTuple, TypeAlias, cast

from msgspec import Meta, field
from msgspec.structs import asdict

from overlay.delivery_policy import USUAL, DeliveryPolicy, WhenFull
from overlay.link.carried_message import CarriedMessage
from overlay.link.errors import ProtocolError
from overlay.link.events import Flow
from overlay.link.frame import (
    OLDEST_VERSION,
    ROLES,
    CatalogFrame,
    Frame,
    MessageFrame,
    QueryFrame,
    check_lengths,
    on_the_wire,
)
from overlay.link.frame_fields import (
    BODY,
    CLAIMED_SEQUENCE_MAX,
    Detail,
    FlowNumber,
    GivenDictionaries,
    Name,
    SequenceNumber,
    Text,
    Whole,
)
from overlay.link.limits import FRAME_BYTES_MAX_LEAST
from overlay.link.message_headers import DIGEST_BYTES, Headers
from overlay.settings import SourceTold, Validation

# -------------------------------------------------------------------------------------------------
# Frames about the connection itself: unsequenced, gone with it.


TOKEN_BYTES_MAX = 4096  # of one of OpenID Connect


@on_the_wire
class Hello(Frame, frozen=True):
    """The first frame in each direction.

    ``peer`` is the sender's own id and ``instance`` tells two runs of it apart (for people; the
    protocol does not depend on it).  ``received`` says, for each channel on which the sender
    receives from this peer, the last sequence number that it has: (flow, key, sequence).
    ``token``: one, from a client that dials without a certificate.  ``epoch`` counts the processes
    that have been this peer, where a standby can be it; 0 where none can.  ``is_anew``: a
    registration service has lost its store, and by an operator's word its channels go on where the
    peer says that they are (frames.py).  ``publisher``: which one of its source a publisher is; one
    that begins with RUN is of one run of a process.  ``numbered``: the highest number of a message
    of the source that it has been told.

    The two speak the lower one of both ``version`` (the newest that the sender speaks; ``oldest``
    is the other end), and use those ``features`` that both have.
    """

    version: Whole
    role: Name
    peer: Name
    instance: Name
    formats: Annotated[list[Name], Meta(max_length=64)]
    frame_bytes_max: Whole
    received: Annotated[
        list[tuple[FlowNumber, Name, SequenceNumber]], Meta(max_length=65_536), BODY
    ]
    token: Annotated[str, Meta(max_length=TOKEN_BYTES_MAX)] = ""
    oldest: Whole = OLDEST_VERSION
    features: Annotated[list[Name], Meta(max_length=256)] = field(default_factory=list)
    epoch: Whole = 0
    is_anew: bool = False
    publisher: Name = ""
    numbered: SequenceNumber = 0

    @property
    def said(self) -> str:
        """The peer: "role/id", and of a publisher with a name "source/id/publisher"."""
        return f"{self.role}/{self.peer}{self.publisher and '/'}{self.publisher}"

    def check(self) -> None:
        if self.frame_bytes_max < FRAME_BYTES_MAX_LEAST:
            raise ProtocolError(
                "bad-field",
                f"frame_bytes_max is {self.frame_bytes_max}; at least {FRAME_BYTES_MAX_LEAST}",
            )
        if self.role not in ROLES:
            raise ProtocolError("bad-field", f"role {self.role!r}; expected one of {sorted(ROLES)}")
        if not self.peer or not (is_peer_id(self.peer) and is_peer_id(self.publisher)):
            raise ProtocolError(
                "bad-field", "a peer's id is printable text without '|' and '/', and not empty"
            )
        if self.publisher and self.role != "source":
            raise ProtocolError("bad-field", f"a {self.role} has a publisher; expected none")


RUN = "~"
"""With which the name of a publisher begins that no later run of its process has."""


def is_peer_id(text: str) -> bool:
    """Whether a peer may be called so."""
    return not any(c in "|/" or not c.isprintable() for c in text)


@on_the_wire
class Ack(Frame, frozen=True):
    """Everything on channel (``about``, ``key``) up to ``sequence`` is taken, durably."""

    about: FlowNumber
    key: Name
    sequence: SequenceNumber


@on_the_wire
class PassedOn(Frame, frozen=True):
    """What was taken on channel (``about``, ``key``) up to ``sequence`` has been acknowledged to
    the sender by all to whom it had to be passed on; ``partly``: but those that are away for long.
    """

    about: FlowNumber
    key: Name
    sequence: SequenceNumber
    partly: bool = False


@on_the_wire
class Skipped(Frame, frozen=True):
    """Frames up to ``through`` on channel (``about``, ``key``) will not come; expect the next.

    This receiver has acknowledged them; one that starts anew without a store knows no more of it.
    """

    about: FlowNumber
    key: Name
    through: SequenceNumber


@on_the_wire
class Ping(Frame, frozen=True):
    """Are you there?"""

    nonce: Whole


@on_the_wire
class Pong(Frame, frozen=True):
    """Yes; ``nonce`` is the ping's."""

    nonce: Whole


@on_the_wire
class ErrorFrame(Frame, frozen=True):
    """What was wrong (``errors.ERROR_CODES``); after a fatal one the sender closes."""

    type: ClassVar[str] = "error"

    code: Name
    detail: Detail
    fatal: bool


@on_the_wire
class Request(Frame, frozen=True):
    """A question; ``request`` is chosen by the asker and comes back in the Response."""

    request: Name
    verb: Name
    arguments: Annotated[Mapping[str, object], BODY]


@on_the_wire
class Response(Frame, frozen=True):
    """The answer: ``result`` is the result, or {"code", "message", ...} when not ``ok``."""

    request: Name
    ok: bool
    result: Annotated[Mapping[str, object], BODY]


@on_the_wire
class Observed(Frame, frozen=True):
    """What an observer asked to see as it happens; best effort, may be dropped."""

    events: Annotated[Sequence[Mapping[str, object]], Meta(max_length=4_096), BODY]


QUESTIONS_MAX, QUESTIONS_BYTES_MAX = 256, 16 * 1024 * 1024
"""Of the questions to one source that are not answered yet."""


@on_the_wire
class SourceAsked(Frame, frozen=True):
    """The root broker passes on a question to the process of a source.

    ``asker`` is the principal that asks, "" without TLS; it may publish as the source where the
    question ``writes``.
    """

    number: Whole
    asker: Detail
    writes: bool
    payload: bytes


@on_the_wire
class SourceAnswered(Frame, frozen=True):
    """The process of a source answers the question of this ``number`` by the payload, or refuses it
    by a ``fault``, which is empty otherwise."""

    number: Whole
    fault: Annotated[Mapping[str, object], BODY]
    payload: bytes


@on_the_wire
class Relayed(Frame, frozen=True):
    """A piece of a connection between two brokers whose link is gone, by way of the registration
    service: ``broker`` is the other end, ``number`` counts the pieces of a ``tunnel`` from 1; a
    ``closing`` piece is the last."""

    broker: Name
    tunnel: Whole
    number: Whole
    closing: bool
    payload: bytes


# -------------------------------------------------------------------------------------------------
# Frames of the message flow: messages, and what goes down a tree ahead of them.


@on_the_wire
class DictionaryTrained(MessageFrame, frozen=True):
    """``payload`` is the compression dictionary with which messages of ``source`` in ``form`` may
    be packed from here on: on the message flow, ahead of the messages that take it."""

    root: Name
    source: Name
    form: Name
    payload: bytes


@on_the_wire
class SourceChanged(SourceTold, MessageFrame, frozen=True):
    """``source`` is in this ``version`` from here on, as in SourceAnnounced: on the message flow,
    as the messages that follow on the tree ``root`` may be in the words of its new schema."""

    root: Name
    source: Name
    version: Whole
    HERE: ClassVar[None]
    validation: Validation
    payload: bytes = b""


@on_the_wire
class SourceGone(MessageFrame, frozen=True):
    """There is no ``source`` any more: no message of it follows on the tree ``root``."""

    root: Name
    source: Name


@on_the_wire
class TaxonomiesInForce(MessageFrame, frozen=True):
    """The taxonomies by which the graphs of the messages that follow on the tree ``root`` are
    closed, as in TaxonomiesAnnounced."""

    root: Name
    version: Whole
    payload: bytes


@on_the_wire
class TreeBegun(MessageFrame, frozen=True):
    """The first frame on the way down the new tree ``root``: tell your parent on it what you want
    of it.  It comes in the place of the tree ``after``; "" for none."""

    root: Name
    after: Name = ""


@on_the_wire
class TreeEnded(MessageFrame, frozen=True):
    """The last frame on the way down the tree ``root``: no message comes behind it."""

    root: Name


class WithHeaders(MessageFrame, frozen=True, kw_only=True):
    """``headers``: see message_headers.py."""

    headers: Headers | None = None


@on_the_wire
class Publish(WithHeaders, frozen=True):
    """A message from its source to its root broker; its number is the frame's sequence.

    ``format``: a wire format, or the media type of a graph, as text/turtle.
    """

    source: Name
    format: Name
    payload: bytes


@on_the_wire
class PublishOnce(Publish, frozen=True):
    """One that may have been published before: ``key`` is the digest of its publish key."""

    key: Annotated[bytes, Meta(max_length=DIGEST_BYTES)]

    def check(self) -> None:
        if len(self.key) != DIGEST_BYTES:
            raise ProtocolError(
                "bad-field", f"'key' has {len(self.key)} bytes; expected {DIGEST_BYTES}"
            )


@on_the_wire
class Numbered(MessageFrame, frozen=True):
    """Message ``number`` of this publisher is message ``first`` of the ``source``, as others have
    published meanwhile; those behind it follow, up to the next Numbered.  Takes the feature
    ``publishers``."""

    source: Name
    number: SequenceNumber
    first: SequenceNumber


@on_the_wire
class AcceptedBefore(MessageFrame, frozen=True):
    """Message ``number`` of this publisher has the publish key of message ``first`` of the source,
    which was accepted: so it is not published again."""

    source: Name
    number: SequenceNumber
    first: SequenceNumber


@on_the_wire
class Refused(MessageFrame, frozen=True):
    """Message ``number`` of this publisher was not taken; ``line`` and ``column`` count from 1, 0
    is unknown."""

    source: Name
    number: SequenceNumber
    code: Name
    reason: Detail
    line: Whole
    column: Whole


@on_the_wire
class Message(CarriedMessage, MessageFrame, frozen=True):
    """A message on its way down a broadcast tree."""


@on_the_wire
class MessageAgain(Message, frozen=True):
    """One that somebody on its way could not read: it may come behind later ones."""


# -------------------------------------------------------------------------------------------------
# The frames by which a registration service without its store has its catalog from the brokers.
#
# It begins its channels anew (``Hello.is_anew``) and asks each broker once, which answers on both
# of its channels::
#
#     registration                                broker
#          │<── hello ─────────────────────────────│
#          │─── hello, is_anew; catalog-wanted ───>│
#          │                                       │   on the catalog flow
#          │<── shape-announced, source-announced, │
#          │    source-ready, access-announced,    │
#          │    taxonomies-announced ──────────────│
#          │<── catalog-told ──────────────────────│   the last of it
#          │                                       │   on the query flow
#          │<── profiles-hosted, delivery-policies,│
#          │    plan-in-force ─────────────────────│
#          │<── profiles-moving ───────────────────│   the last of it
#
# What else of those comes from a broker is what the service itself has told it.


@on_the_wire
class CatalogWanted(CatalogFrame, frozen=True):
    """A broker is to tell all that it has from the registration service; of sources those of its
    own, and of the root brokers that are ``lost``.  ``rebuild`` is what the answer is to say: one
    to a service that has lost its store since may still be on its way."""

    lost: Annotated[list[Name], Meta(max_length=1_000), BODY]
    rebuild: Name = ""


@on_the_wire
class CatalogTold(CatalogFrame, frozen=True):
    """What the sender knows of the network's shape and its sources is told.  Of the versions of the
    shape it has ``agreed`` on one and ``settled`` one, and reached a ``stage`` of ``version``
    (ShapeReached).  The highest numbers that it has heard of are those of a ``profile``, and of a
    ``move``.  ``rebuild``: as asked, "" by an earlier release."""

    agreed: Whole
    settled: Whole
    version: Whole
    stage: Annotated[int, Meta(ge=0, le=SETTLED)]
    profile: SequenceNumber
    move: SequenceNumber
    rebuild: Name = ""


@on_the_wire
class ProfilesHosted(QueryFrame, frozen=True):
    """The sender hosts these profiles (id, user, text, version, the version that is live or 0,
    whether it only stands by)."""

    profiles: Annotated[
        list[tuple[Name, Name, Text, Whole, Whole, bool]], Meta(max_length=PROFILES_MAX), BODY
    ]


@on_the_wire
class ProfilesMoving(QueryFrame, frozen=True):
    """What the sender knows of profiles is told; these are ``coming`` to it (id, move, version), or
    ``leaving`` it (id, move, version, whether it has let go).  ``rebuild``: as in CatalogTold."""

    coming: Annotated[list[tuple[Name, SequenceNumber, Whole]], Meta(max_length=PROFILES_MAX), BODY]
    leaving: Annotated[
        list[tuple[Name, SequenceNumber, Whole, bool]], Meta(max_length=PROFILES_MAX), BODY
    ]
    rebuild: Name = ""


# -------------------------------------------------------------------------------------------------
# Frames of the query flow: profiles, routing queries, and whatever else goes up a tree.


PROFILES_MAX = 65_536  # in one frame


@on_the_wire
class RoutingDelta(QueryFrame, frozen=True):
    """The routing query of the sender's branch that is called ``root``, on all trees that have it
    (``branches.py``), gains and loses these disjuncts (texts)."""

    root: Name
    added: Annotated[list[Text], Meta(max_length=65_536), BODY]
    removed: Annotated[list[Text], Meta(max_length=65_536), BODY]


@on_the_wire
class NeedsDelta(QueryFrame, frozen=True):
    """What the sender's branch that is called ``root`` needs of messages gains and loses these
    needs (texts).  ``number`` rises by one a frame, from 2; see ``reflects`` of Message."""

    root: Name
    number: SequenceNumber
    added: Annotated[list[Text], Meta(max_length=65_536), BODY]
    removed: Annotated[list[Text], Meta(max_length=65_536), BODY]


@on_the_wire
class TreeReady(QueryFrame, frozen=True):
    """The sender's branch, called ``root``, knows ``source``.

    On the query flow, because it must stay behind the RoutingDelta that says what is wanted there.
    """

    root: Name
    source: Name


@on_the_wire
class BranchReady(QueryFrame, frozen=True):
    """The sender's branch, called ``root``, of the new tree ``tree`` is set up: behind the
    RoutingDelta that says what is wanted there."""

    root: Name
    tree: Name


@on_the_wire
class LiveMarker(QueryFrame, frozen=True):
    """Sent up the trees of ``roots``, which all have the sender's branch ``root``, after a change
    at ``host``; everything before it is in force where it arrives."""

    root: Name
    host: Name
    marker: Whole
    roots: Annotated[list[Name], Meta(max_length=4_096)]


@on_the_wire
class LiveReached(QueryFrame, frozen=True):
    """The marker has reached ``broker`` on its way to ``roots``; travels back down to ``host``."""

    root: Name
    host: Name
    marker: Whole
    broker: Name
    roots: Annotated[list[Name], Meta(max_length=4_096)]


@on_the_wire
class PlaceProfile(QueryFrame, frozen=True):
    """The registration service gives a profile back to its host broker, which may have let go of
    it; or, where the host broker ``lost`` is gone for good, to another, whose first delivery comes
    behind the number ``behind``."""

    profile: Name
    user: Name
    text: Annotated[Text, BODY]
    version: Whole
    request: Name
    lost: Name = ""
    behind: SequenceNumber = 0


@on_the_wire
class PlaceProfiles(QueryFrame, frozen=True):
    """The registration service gives new profiles (id, user, text) to their host broker."""

    profiles: Annotated[list[tuple[Name, Name, Text]], Meta(max_length=PROFILES_MAX), BODY]


@on_the_wire
class DeliveryPolicies(QueryFrame, frozen=True):
    """How profiles are kept (id, and a DeliveryPolicy): the registration service tells a broker
    ahead of the profile, a host broker tells the service when it was changed there."""

    policies: Annotated[
        list[tuple[Name, Name, Whole, Whole, Whole, Whole, Whole]],
        Meta(max_length=PROFILES_MAX),
        BODY,
    ]

    def by_profile(self) -> Iterator[tuple[str, DeliveryPolicy]]:
        for profile, when_full, *numbers in self.policies:
            yield profile, DeliveryPolicy(cast("WhenFull", when_full), *numbers)

    def check(self) -> None:
        for _, policy in self.by_profile():
            try:
                USUAL.changed(asdict(policy))
            except ValueError as error:
                raise ProtocolError("bad-field", f"a policy is none: {error}") from None


@on_the_wire
class ProfilesPlaced(QueryFrame, frozen=True):
    """The host broker has these profiles, each in the version in which it was given them."""

    profiles: Annotated[list[Name], Meta(max_length=PROFILES_MAX), BODY]


@on_the_wire
class ProfilesChanged(QueryFrame, frozen=True):
    """Profiles have new versions (id, version, text), or are gone (text None)."""

    profiles: Annotated[list[tuple[Name, Whole, Text | None]], Meta(max_length=PROFILES_MAX), BODY]


@on_the_wire
class ProfilesLive(QueryFrame, frozen=True):
    """Every broker on the way has these versions of profiles (id, version)."""

    profiles: Annotated[list[tuple[Name, Whole]], Meta(max_length=PROFILES_MAX), BODY]


@on_the_wire
class Undecoded(CarriedMessage, QueryFrame, frozen=True):
    """A message that the sender has no means to read, as it came; the parent sends it once more,
    in a form that needs none, or as it came when it cannot read it either: who cannot read it a
    second time gives it up.

    On the query flow, which is never held back: the channel of messages is the other direction.
    """


@on_the_wire
class DictionaryHeld(QueryFrame, frozen=True):
    """The sender's part of the tree of ``root`` has this ``version`` of the compression dictionary
    of ``source`` in ``form``: no message given back after this was packed with an older one."""

    root: Name
    source: Name
    form: Name
    version: Whole


@on_the_wire
class PlanInForce(QueryFrame, frozen=True):
    """Profiles are placed by this plan from now on; ``plan`` "": by none.  ``payload`` is its
    text, from which a host broker knows the partitions of its profiles."""

    plan: Name
    payload: bytes = b""


@on_the_wire
class PartitionsMatched(QueryFrame, frozen=True):
    """What the sender has counted since it last said so: messages ``accepted`` of its sources, and
    for each partition of ``plan`` that it hosts the messages that matched a profile of it
    (partition, messages)."""

    plan: Name
    accepted: Whole
    matched: Annotated[list[tuple[Whole, Whole]], Meta(max_length=65_536), BODY]


# -------------------------------------------------------------------------------------------------
# Frames of the catalog flow: what data sources there are, and which shape the network has.
#
# The registration service numbers the versions of the shape and moves every broker through the
# stages of a change; docs/protocol.md, "When the shape of the network changes".


HOLDS, SWITCHED, SETTLED = 1, 2, 3
"""The stages of a change of shape at a broker, see ShapeReached."""

AUDIT_LENGTH_MAX = 2_000  # characters that an entry of the audit log says
REVOKED_MAX = 100_000  # certificates; they are over after 90 days
KEYS_MAX = 64  # publish keys that go together
PUBLISHERS_MAX = 8_192  # of a source
SERIAL_BYTES = 20  # of a certificate


@on_the_wire
class SourceAnnounced(SourceTold, CatalogFrame, frozen=True):
    """A data source exists; ``payload`` is its schema, ``compression`` the compression dictionaries
    that were given with it (form, dictionary); ``owner`` is the principal that registered it ("":
    without TLS), ``base`` the IRI that relative ones in its graphs are relative to ("": none).  Of
    one that had another root broker before, that one has taken all messages through ``taken``, as
    far as is known.  ``version`` counts its updates from 1; a root broker that knows an older one
    tells its tree among the messages (SourceChanged)."""

    source: Name
    name: Name
    root: Name
    HERE: ClassVar[None]
    validation: Validation
    compression: GivenDictionaries
    owner: Name = ""
    base: Name = ""
    taken: SequenceNumber = 0
    version: Whole = 1
    payload: bytes = b""


@on_the_wire
class SourceReady(CatalogFrame, frozen=True):
    """The whole tree knows this ``version`` of ``source``; it may publish."""

    source: Name
    version: Whole = 1


@on_the_wire
class SourceRemoved(CatalogFrame, frozen=True):
    """There is no ``source`` any more: its root broker, to which this goes, takes nothing of it,
    tells its tree behind the last message (SourceGone), and answers with SourceReleased."""

    source: Name


@on_the_wire
class SourceReleased(CatalogFrame, frozen=True):
    """The sender is the root broker of ``source`` no longer; it has taken all messages through
    ``taken``, and takes no more."""

    source: Name
    taken: SequenceNumber


@on_the_wire
class KeysReleased(CatalogFrame, frozen=True):
    """The root broker of ``source`` before has accepted the messages ``numbers`` with publish keys,
    whose digests ``payload`` has end to end, the first of them at ``at``, in whole seconds of the
    calendar.
    ``publishers``: (name, how many of its messages were taken, the last one's number).
    It says so ahead of SourceReleased, and the next root broker is told ahead of SourceAnnounced.
    Takes the feature ``moved-keys``."""

    source: Name
    at: Whole
    numbers: Annotated[list[SequenceNumber], Meta(max_length=KEYS_MAX), BODY]
    payload: bytes
    publishers: Annotated[
        list[tuple[Name, SequenceNumber, SequenceNumber]], Meta(max_length=PUBLISHERS_MAX), BODY
    ] = field(default_factory=list)

    def check(self) -> None:
        if len(self.payload) != DIGEST_BYTES * len(self.numbers):
            raise ProtocolError(
                "bad-field",
                f"{len(self.payload)} bytes of digests; expected {DIGEST_BYTES} for each of "
                f"{len(self.numbers)} numbers",
            )


@on_the_wire
class ShapeAnnounced(CatalogFrame, frozen=True):
    """There is a new version of the network's shape: ``payload`` is the topology, compressed with
    zlib for peers that have the feature ``packed-shapes``, ``trees`` for
    each root broker the version since when its tree is what it is, ``down`` the links that are in
    the topology and out of use, ``lost`` the brokers from which nothing is to be awaited, ``away``
    those that no tree leads through, as they are away."""

    version: Whole
    trees: Annotated[list[tuple[Name, Whole]], Meta(max_length=1_000), BODY]
    down: Annotated[list[tuple[Name, Name]], Meta(max_length=10_000), BODY]
    lost: Annotated[list[Name], Meta(max_length=1_000), BODY]
    payload: bytes
    away: Annotated[list[Name], Meta(max_length=1_000), BODY] = field(default_factory=list)


@on_the_wire
class ShapeAgreed(CatalogFrame, frozen=True):
    """Every broker holds ``version`` of the shape: trees may be set up by it."""

    version: Whole


@on_the_wire
class ShapeSettled(CatalogFrame, frozen=True):
    """Nothing of before ``version`` of the shape is left anywhere: it may be forgotten."""

    version: Whole


@on_the_wire
class ShapeReached(CatalogFrame, frozen=True):
    """How far the sender is with ``version`` of the shape; ``stage`` 1: it holds it; 2: what its
    own sources publish goes down the new tree; 3: nothing of before is left here, or waits for a
    neighbour."""

    version: Whole
    stage: Annotated[int, Meta(ge=0, le=SETTLED)]


@on_the_wire
class LinkReported(CatalogFrame, frozen=True):
    """The sender has had no connection with ``neighbour`` for so long that its link counts as
    down (or has had one again, ``up``).  ``kept``: the sender has all that the neighbour may have
    taken and not passed on."""

    neighbour: Name
    up: bool
    kept: bool = False


@on_the_wire
class TaxonomiesAnnounced(CatalogFrame, frozen=True):
    """What all registered taxonomies say together, by which root brokers close what their sources
    publish from now on: ``payload`` (formats/graph/taxonomy.py, compressed with zlib; empty for
    none), and ``version``, which grows with every change."""

    version: Whole
    payload: bytes


@on_the_wire
class AccessAnnounced(CatalogFrame, frozen=True):
    """Who may do what from now on (overlay/access.py): all rules (principal, role, scope), and all
    tokens (principal, digest, second at which it expires, [(role, scope)]); and the serial numbers
    of certificates that nobody may show any more.  ``version`` grows with every change of the
    table."""

    rules: Annotated[list[tuple[Name, Name, Name]], Meta(max_length=20_000), BODY]
    tokens: Annotated[
        list[tuple[Name, Annotated[bytes, Meta(max_length=32)], Whole, list[tuple[Name, Name]]]],
        Meta(max_length=20_000),
        BODY,
    ]
    revoked: Annotated[
        list[Annotated[bytes, Meta(max_length=SERIAL_BYTES)]], Meta(max_length=REVOKED_MAX), BODY
    ]
    version: Whole = 0


@on_the_wire
class Audited(CatalogFrame, frozen=True):
    """``who`` has asked a broker for ``what``, a verb: something was changed, or ``refused``, as
    ``detail`` says."""

    who: Name
    what: Name
    detail: Annotated[str, Meta(max_length=AUDIT_LENGTH_MAX)]
    refused: bool


@on_the_wire
class AuditMarks(Frame, frozen=True):
    """The last entries of the audit log (number, SHA-256 in hexadecimal, whether it is one of those
    refused), for a broker to keep."""

    marks: Annotated[
        list[tuple[Whole, Annotated[str, Meta(max_length=64)], bool]], Meta(max_length=16), BODY
    ]


# -------------------------------------------------------------------------------------------------
# Frames between a subscriber and a host broker.
#
# They are unsequenced, for deliveries have numbers of their own.  One connection carries the
# results of any number of profiles.  Each has a *slot* on it, a number that the subscriber chooses;
# the numbers of its deliveries begin at 1, leave no gap, and go on over all connections and
# brokers.  Several may share a profile; then each has some of the numbers::
#
#     Attach     ──>   profile p7 in slot 3, of which I have taken all through 41
#               <──    Deliveries   a result of a message, in slot 3 its 42nd, in slot 9 its 7th
#     Taken      ──>   all in slot 3 through 42, all in slot 9 through 7
#     Rejected   ──>   in slot 3, which is shared, not the 42nd: it is to come again later
#               <──    Missed       in slot 3 all through 50 were thrown away, expect the next
#               <──    Detached     slot 3 is over, and why
#
# Columns are packed: slots and counts of 4 bytes, numbers of deliveries of 8, the lowest byte
# first.


SLOTS_MAX = 65_536  # of one frame
RESULTS_MAX = 1_000_000  # of one message, for a profile
# Modes of an attachment, together or not.
SHARED = 1  # each delivery goes to one of all that share
EPHEMERAL = 2  # nothing is kept while nobody takes the profile
HELD = 4  # alone: what is taken is kept until it is released

Slot: TypeAlias = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Mode: TypeAlias = Annotated[int, Meta(ge=0, le=HELD)]
Slots: TypeAlias = Annotated[bytes, Meta(max_length=4 * SLOTS_MAX), BODY]
Numbers: TypeAlias = Annotated[bytes, Meta(max_length=8 * SLOTS_MAX), BODY]


class Ephemeral(IntEnum):
    """How a profile is kept that moves."""

    NOT = 0
    TAKEN = 1  # until now, and soon where it moves to
    SILENT = 2  # nothing is kept


@dataclass(frozen=True, slots=True)
class Delivery:
    """The results of ``profile`` on message ``number`` of ``source``: ``payload`` is the results
    end to end, ``lengths`` the bytes of each.

    A first one of no bytes, and the media type behind it, say that the others are not XML.  A last
    but one of no bytes, and the sentence behind it, say that a limit leaves the profile with those
    before them alone, or without any: the message was not evaluated to the end, or its results are
    too large.
    """

    profile: str
    source: str
    number: int
    lengths: list[int]
    payload: bytes

    def results(self) -> list[bytes]:
        """The results one by one."""
        return cut(self.lengths, self.payload)


@on_the_wire
class Attach(Frame, frozen=True):
    """(slot, profile, the number through which its deliveries were taken, mode), each from now on.

    A profile is taken by one connection at a time, the last that asked for it; or, with the mode
    SHARED, by all that share it: each delivery by one of them.  Then the number is the highest that
    came to this one.  With EPHEMERAL what is not taken when the last connection goes is thrown
    away, and nothing is kept until somebody takes the profile again; the last mode counts.  With
    HELD the number is the one behind which deliveries come, and nothing goes by it or by Taken,
    which opens the window: the verb ``profile.positions`` releases.  Takes the feature
    ``held-results``.
    """

    profiles: Annotated[
        list[tuple[Slot, Name, SequenceNumber, Mode]], Meta(max_length=SLOTS_MAX), BODY
    ]


@on_the_wire
class Detached(Frame, frozen=True):
    """Nothing comes in this slot any more: ``code`` is "unknown-profile", "moved", "forgotten",
    "replaced", "too-many", "shared", "store-lost" or "too-slow"."""

    slot: Slot
    code: Name
    detail: Detail


@on_the_wire
class Deliveries(Frame, frozen=True):
    """What message ``number`` of ``source`` gives for all profiles of this connection that have the
    same results of it: a slot each, and its number there."""

    flow: ClassVar[Flow] = Flow.MESSAGE

    source: Name
    number: SequenceNumber
    lengths: Annotated[list[Whole], Meta(max_length=RESULTS_MAX), BODY]
    slots: Slots
    numbers: Numbers
    payload: bytes

    def check(self) -> None:
        check_lengths(self.lengths, self.payload)
        check_columns(self.slots, self.numbers)


@on_the_wire
class Taken(Frame, frozen=True):
    """In each slot all through a number is done and need not come again; in one that is shared, the
    delivery of this number.  In one that is held it has come, and may come again."""

    slots: Slots
    numbers: Numbers

    def check(self) -> None:
        check_columns(self.slots, self.numbers)


@on_the_wire
class Rejected(Frame, frozen=True):
    """In a slot that is shared, whoever was sent the delivery of this number could not do with it,
    for a ``reason``: it is to come again (overlay/delivery_policy.py)."""

    slot: Slot
    number: SequenceNumber
    reason: Detail


@on_the_wire
class Missed(Frame, frozen=True):
    """In a slot all through a number will not come; ``lost`` of them nobody had taken.

    ``lost`` 0: results that were put off came to nothing, as the profile gets none of the message.
    In a slot that is shared, that is of the one number, which is to be taken.
    """

    flow: ClassVar[Flow] = Flow.MESSAGE

    slot: Slot
    through: SequenceNumber
    lost: Whole


class Contents(NamedTuple):
    """What a delivery has: ``results`` of a ``media_type``, "" for XML; ``limit``: why no more."""

    results: list[bytes]
    limit: str = ""
    media_type: str = ""


def contents(lengths: list[int], payload: bytes) -> Contents:
    """What results that lie end to end are."""
    results, limit, media_type = cut(lengths, payload), b"", b""
    if len(results) > 1 and not results[-2]:  # no document is empty
        *results, _, limit = results
    if len(results) > 1 and not results[0]:
        _, media_type, *results = results
    return Contents(
        results, limit.decode("utf-8", "replace"), media_type.decode("utf-8", "replace")
    )


def with_media_type(results: list[bytes], media_type: str) -> list[bytes]:
    """What ``contents`` reads, of at least one result."""
    return [b"", media_type.encode(), *results] if media_type else results


def with_limit(results: list[bytes], limit: str) -> list[bytes]:
    """What ``contents`` reads, of the results that a limit leaves."""
    return [*results, b"", limit.encode()]


def cut(lengths: list[int], payload: bytes) -> list[bytes]:
    """Results that lie end to end, one by one."""
    results, start = [], 0
    for length in lengths:
        results.append(payload[start : start + length])
        start += length
    return results


def packed_slots(slots: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(slots)}I", *slots)


def packed_numbers(numbers: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def columns(frame: Deliveries | Taken) -> zip[tuple[int, int]]:
    """(slot, number), one after the other."""
    count = len(frame.slots) // 4
    slots = struct.unpack(f"<{count}I", frame.slots)
    return zip(slots, struct.unpack(f"<{count}Q", frame.numbers), strict=True)


def check_columns(slots: bytes, numbers: bytes) -> None:
    """ProtocolError unless that is as many slots as numbers, each within its bound."""
    if len(slots) % 4 or len(numbers) != 2 * len(slots):
        raise ProtocolError(
            "bad-field",
            f"slots of {len(slots)} bytes, numbers of {len(numbers)}; expected 4 and 8 bytes each",
        )
    largest = max(struct.unpack(f"<{len(slots) // 4}Q", numbers), default=0)
    if largest > CLAIMED_SEQUENCE_MAX:
        raise ProtocolError(
            "bad-field", f"a number is {largest}; expected 0 to {CLAIMED_SEQUENCE_MAX}"
        )


# -------------------------------------------------------------------------------------------------
# The frames by which a profile moves from one host broker to another, live.
#
# The registration service stands between the two hosts and leads; everything travels on its
# channels, but for what finds the watershed, which travels on the broadcast trees
# (docs/planning.md, "How a profile moves")::
#
#     registration   old host      new host          each root broker
#          |-- stand-by ------------->|                   placed, announced, silent
#          |<- standing-by -----------|                   live: it misses nothing from here on
#          |-- release-profile ->|
#          |                     |-- watershed-marker ------->|
#          |                     |<- watershed-reached -------|   behind all messages up to it
#          |<- profile-released -|
#          |-- profile-released ----->|
#          |<- handover-wanted -------|                   while results wait at the old host
#          |-- handover-wanted ->|
#          |<- handed-over ------|
#          |-- handed-over ---------->|
#          |<- profile-taken ---------|
#          |-- move-ended ------>|                        all is forgotten
#
# ``move`` is the number of the move: what is said about another one is too late.


@on_the_wire
class StandBy(QueryFrame, frozen=True):
    """A profile is to be announced and matched, and not delivered yet; once more with each new
    version that it gets at its host meanwhile."""

    profile: Name
    move: SequenceNumber
    user: Name
    text: Annotated[Text, BODY]
    version: Whole


@on_the_wire
class StandingBy(QueryFrame, frozen=True):
    """This version of the profile is live at the host that stands by: every root sends it what
    the profile wants, and it keeps it."""

    profile: Name
    move: SequenceNumber
    version: Whole


@on_the_wire
class ReleaseProfile(QueryFrame, frozen=True):
    """The host is to ask for the watershed, deliver up to it, and let go of the profile; of no
    effect when the profile has another version by now, or is gone."""

    profile: Name
    move: SequenceNumber
    version: Whole


@on_the_wire
class ProfileReleased(QueryFrame, frozen=True):
    """The old host has delivered up to the ``watershed`` (source, number; of a source that is not
    there, nothing), and lets go.

    Its mailbox stands at ``last``, of which the user has taken all through ``acknowledged``, and
    all through ``floor`` are gone; the rest waits to be handed over.  ``ephemeral``: see Ephemeral;
    ``unclaimed_since``: the second since when nobody has claimed it, 0 if somebody has.
    """

    profile: Name
    move: SequenceNumber
    version: Whole
    acknowledged: SequenceNumber
    floor: SequenceNumber
    last: SequenceNumber
    ephemeral: Annotated[int, Meta(ge=0, le=Ephemeral.SILENT.value)]
    unclaimed_since: SequenceNumber
    watershed: Annotated[list[tuple[Name, SequenceNumber]], Meta(max_length=65_536), BODY]


@on_the_wire
class HandoverWanted(QueryFrame, frozen=True):
    """The new host asks for the next results that wait at the old one, those after ``after``."""

    profile: Name
    move: SequenceNumber
    after: SequenceNumber


@on_the_wire
class HandedOver(QueryFrame, frozen=True):
    """A delivery that waited at the old host with number ``position`` in the mailbox, which it
    keeps; ``ends``: ask for more.

    What is between two of them is gone.  Without a ``source`` it is no delivery: nothing waits any
    more, and the mailbox stands at ``position``.
    """

    profile: Name
    move: SequenceNumber
    position: SequenceNumber
    ends: bool
    source: Name
    number: SequenceNumber
    lengths: Annotated[list[Whole], Meta(max_length=RESULTS_MAX), BODY]
    payload: bytes

    def check(self) -> None:
        check_lengths(self.lengths, self.payload)


@on_the_wire
class ProfileTaken(QueryFrame, frozen=True):
    """The new host has all that waited and delivers from here on."""

    profile: Name
    move: SequenceNumber
    version: Whole


@on_the_wire
class MoveEnded(QueryFrame, frozen=True):
    """To the old host: the profile lives elsewhere now.  To one that stands by: it stays where it
    is.  In either case all that is kept for the move is to be forgotten."""

    profile: Name
    move: SequenceNumber


@on_the_wire
class WatershedMarker(QueryFrame, frozen=True):
    """Sent up the tree of ``root`` by ``host``, which profiles leave or come to: where is the
    watershed?"""

    root: Name
    host: Name
    marker: Whole


@on_the_wire
class WatershedReached(MessageFrame, frozen=True):
    """The root's answer, on its way down to ``host`` behind all messages up to the last numbers of
    its sources (source, number), which are the watershed."""

    root: Name
    host: Name
    marker: Whole
    numbers: Annotated[list[tuple[Name, SequenceNumber]], Meta(max_length=65_536), BODY]


# -------------------------------------------------------------------------------------------------
