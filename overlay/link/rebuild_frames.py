"""The frames by which a registration service without its store has its catalog from the brokers.

It begins its channels anew (``Hello.is_anew``) and asks each broker once, which answers on both of
its channels::

    registration                                broker
         │<── hello ─────────────────────────────│
         │─── hello, is_anew; catalog-wanted ───>│
         │                                       │   on the catalog flow
         │<── shape-announced, source-announced, │
         │    source-ready, access-announced,    │
         │    taxonomies-announced ──────────────│
         │<── catalog-told ──────────────────────│   the last of it
         │                                       │   on the query flow
         │<── profiles-hosted, delivery-policies,│
         │    plan-in-force ─────────────────────│
         │<── profiles-moving ───────────────────│   the last of it

What else of those comes from a broker is what the service itself has told it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from overlay.link.catalog_frames import SETTLED
from overlay.link.frame import CatalogFrame, QueryFrame, on_the_wire
from overlay.link.frame_fields import BODY, Bound, Name, SequenceNumber, Text
from overlay.link.query_frames import PROFILES_MAX


@on_the_wire
@dataclass(frozen=True, slots=True)
class CatalogWanted(CatalogFrame):
    """A broker is to tell all that it has from the registration service; of sources those of its
    own, and of the root brokers that are ``lost``.  ``rebuild`` is what the answer is to say: one
    to a service that has lost its store since may still be on its way."""

    type: ClassVar[str] = "catalog-wanted"

    lost: Annotated[list[Name], Bound(1_000), BODY]
    rebuild: Name = ""


@on_the_wire
@dataclass(frozen=True, slots=True)
class CatalogTold(CatalogFrame):
    """What the sender knows of the network's shape and its sources is told.  Of the versions of the
    shape it has ``agreed`` on one and ``settled`` one, and reached a ``stage`` of ``version``
    (ShapeReached).  The highest numbers that it has heard of are those of a ``profile``, and of a
    ``move``.  ``rebuild``: as asked, "" by an earlier release."""

    type: ClassVar[str] = "catalog-told"

    agreed: int
    settled: int
    version: int
    stage: Annotated[int, Bound(SETTLED)]
    profile: SequenceNumber
    move: SequenceNumber
    rebuild: Name = ""


@on_the_wire
@dataclass(frozen=True, slots=True)
class ProfilesHosted(QueryFrame):
    """The sender hosts these profiles (id, user, text, version, the version that is live or 0,
    whether it only stands by)."""

    type: ClassVar[str] = "profiles-hosted"

    profiles: Annotated[list[tuple[Name, Name, Text, int, int, bool]], Bound(PROFILES_MAX), BODY]


@on_the_wire
@dataclass(frozen=True, slots=True)
class ProfilesMoving(QueryFrame):
    """What the sender knows of profiles is told; these are ``coming`` to it (id, move, version), or
    ``leaving`` it (id, move, version, whether it has let go).  ``rebuild``: as in CatalogTold."""

    type: ClassVar[str] = "profiles-moving"

    coming: Annotated[list[tuple[Name, SequenceNumber, int]], Bound(PROFILES_MAX), BODY]
    leaving: Annotated[list[tuple[Name, SequenceNumber, int, bool]], Bound(PROFILES_MAX), BODY]
    rebuild: Name = ""
