"""Frames of the query flow: profiles, routing queries, and whatever else goes up a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from overlay.delivery_policy import DeliveryPolicy, policy_of
from overlay.link.carried_message import CarriedMessage
from overlay.link.errors import ProtocolError
from overlay.link.frame import QueryFrame, on_the_wire
from overlay.link.frame_fields import BODY, Bound, Name, SequenceNumber, Text

PROFILES_MAX = 65_536  # in one frame


@on_the_wire
@dataclass(frozen=True, slots=True)
class RoutingDelta(QueryFrame):
    """The routing query of the sender's branch that is called ``root``, on all trees that have it
    (``branches.py``), gains and loses these disjuncts (texts)."""

    type: ClassVar[str] = "routing-delta"

    root: Name
    added: Annotated[list[Text], Bound(65_536), BODY]
    removed: Annotated[list[Text], Bound(65_536), BODY]


@on_the_wire
@dataclass(frozen=True, slots=True)
class NeedsDelta(QueryFrame):
    """What the sender's branch that is called ``root`` needs of messages gains and loses these
    needs (texts).  ``number`` rises by one a frame, from 2; see ``reflects`` of Message."""

    type: ClassVar[str] = "needs-delta"

    root: Name
    number: SequenceNumber
    added: Annotated[list[Text], Bound(65_536), BODY]
    removed: Annotated[list[Text], Bound(65_536), BODY]


@on_the_wire
@dataclass(frozen=True, slots=True)
class TreeReady(QueryFrame):
    """The sender's branch, called ``root``, knows ``source``.

    On the query flow, because it must stay behind the RoutingDelta that says what is wanted there.
    """

    type: ClassVar[str] = "tree-ready"

    root: Name
    source: Name


@on_the_wire
@dataclass(frozen=True, slots=True)
class BranchReady(QueryFrame):
    """The sender's branch, called ``root``, of the new tree ``tree`` is set up: behind the
    RoutingDelta that says what is wanted there."""

    type: ClassVar[str] = "branch-ready"

    root: Name
    tree: Name


@on_the_wire
@dataclass(frozen=True, slots=True)
class LiveMarker(QueryFrame):
    """Sent up the trees of ``roots``, which all have the sender's branch ``root``, after a change
    at ``host``; everything before it is in force where it arrives."""

    type: ClassVar[str] = "live-marker"

    root: Name
    host: Name
    marker: int
    roots: Annotated[list[Name], Bound(4_096)]


@on_the_wire
@dataclass(frozen=True, slots=True)
class LiveReached(QueryFrame):
    """The marker has reached ``broker`` on its way to ``roots``; travels back down to ``host``."""

    type: ClassVar[str] = "live-reached"

    root: Name
    host: Name
    marker: int
    broker: Name
    roots: Annotated[list[Name], Bound(4_096)]


@on_the_wire
@dataclass(frozen=True, slots=True)
class PlaceProfile(QueryFrame):
    """The registration service gives a profile back to its host broker, which may have let go of
    it; or, where the host broker ``lost`` is gone for good, to another, whose first delivery comes
    behind the number ``behind``."""

    type: ClassVar[str] = "place-profile"

    profile: Name
    user: Name
    text: Annotated[Text, BODY]
    version: int
    request: Name
    lost: Name = ""
    behind: SequenceNumber = 0


@on_the_wire
@dataclass(frozen=True, slots=True)
class PlaceProfiles(QueryFrame):
    """The registration service gives new profiles (id, user, text) to their host broker."""

    type: ClassVar[str] = "place-profiles"

    profiles: Annotated[list[tuple[Name, Name, Text]], Bound(PROFILES_MAX), BODY]


@on_the_wire
@dataclass(frozen=True, slots=True)
class DeliveryPolicies(QueryFrame):
    """How profiles are kept (id, and a DeliveryPolicy): the registration service tells a broker
    ahead of the profile, a host broker tells the service when it was changed there."""

    type: ClassVar[str] = "delivery-policies"

    policies: Annotated[list[tuple[Name, Name, int, int, int, int, int]], Bound(PROFILES_MAX), BODY]

    def by_profile(self) -> Iterator[tuple[str, DeliveryPolicy]]:
        for profile, when_full, *numbers in self.policies:
            yield profile, DeliveryPolicy(when_full, *numbers)

    def check(self) -> None:
        for _, policy in self.by_profile():
            try:
                policy_of(policy._asdict())
            except ValueError as error:
                raise ProtocolError("bad-field", f"a policy is none: {error}") from None


@on_the_wire
@dataclass(frozen=True, slots=True)
class ProfilesPlaced(QueryFrame):
    """The host broker has these profiles, each in the version in which it was given them."""

    type: ClassVar[str] = "profiles-placed"

    profiles: Annotated[list[Name], Bound(PROFILES_MAX), BODY]


@on_the_wire
@dataclass(frozen=True, slots=True)
class ProfilesChanged(QueryFrame):
    """Profiles have new versions (id, version, text), or are gone (text None)."""

    type: ClassVar[str] = "profiles-changed"

    profiles: Annotated[list[tuple[Name, int, Text | None]], Bound(PROFILES_MAX), BODY]


@on_the_wire
@dataclass(frozen=True, slots=True)
class ProfilesLive(QueryFrame):
    """Every broker on the way has these versions of profiles (id, version)."""

    type: ClassVar[str] = "profiles-live"

    profiles: Annotated[list[tuple[Name, int]], Bound(PROFILES_MAX), BODY]


@on_the_wire
@dataclass(frozen=True, slots=True)
class Undecoded(CarriedMessage, QueryFrame):
    """A message that the sender has no means to read, as it came; the parent sends it once more,
    in a form that needs none, or as it came when it cannot read it either: who cannot read it a
    second time gives it up.

    On the query flow, which is never held back: the channel of messages is the other direction.
    """

    type: ClassVar[str] = "undecoded"


@on_the_wire
@dataclass(frozen=True, slots=True)
class DictionaryHeld(QueryFrame):
    """The sender's part of the tree of ``root`` has this ``version`` of the compression dictionary
    of ``source`` in ``form``: no message given back after this was packed with an older one."""

    type: ClassVar[str] = "dictionary-held"

    root: Name
    source: Name
    form: Name
    version: int


@on_the_wire
@dataclass(frozen=True, slots=True)
class PlanInForce(QueryFrame):
    """Profiles are placed by this plan from now on; ``plan`` "": by none.  ``payload`` is its
    text, from which a host broker knows the partitions of its profiles."""

    type: ClassVar[str] = "plan-in-force"

    plan: Name
    payload: bytes = b""


@on_the_wire
@dataclass(frozen=True, slots=True)
class PartitionsMatched(QueryFrame):
    """What the sender has counted since it last said so: messages ``accepted`` of its sources, and
    for each partition of ``plan`` that it hosts the messages that matched a profile of it
    (partition, messages)."""

    type: ClassVar[str] = "partitions-matched"

    plan: Name
    accepted: int
    matched: Annotated[list[tuple[int, int]], Bound(65_536), BODY]
