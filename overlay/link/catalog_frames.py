"""Frames of the catalog flow: what data sources there are, and which shape the network has.

The registration service numbers the versions of the shape and moves every broker through the
stages of a change; docs/protocol.md, "When the shape of the network changes".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from overlay.link.errors import ProtocolError
from overlay.link.frame import CatalogFrame, on_the_wire
from overlay.link.frame_fields import BODY, Bound, GivenDictionaries, Name, SequenceNumber
from overlay.link.publish_key import DIGEST_BYTES

VALIDATIONS = frozenset({"off", "report", "reject"})

HELD, SWITCHED, SETTLED = 1, 2, 3
"""The stages of a change of shape at a broker, see ShapeReached."""

REVOKED_MAX = 100_000  # certificates; they are over after 90 days
KEYS_MAX = 64  # publish keys that go together
SERIAL_BYTES = 20  # of a certificate


def check_source(validation: str, location: tuple[float, float] | None) -> None:
    """ProtocolError for what a source cannot have."""
    if validation not in VALIDATIONS:
        raise ProtocolError(
            "bad-field",
            f"validation {validation!r}; expected one of {sorted(VALIDATIONS)}",
        )
    latitude, longitude = location or (0.0, 0.0)
    if abs(latitude) > 90 or abs(longitude) > 180:
        raise ProtocolError(
            "bad-field", f"location {location} is beyond 90 degrees of latitude or 180"
        )


@on_the_wire
@dataclass(frozen=True, slots=True)
class SourceAnnounced(CatalogFrame):
    """A data source exists; ``payload`` is its schema, ``validation`` what is done about messages
    against it ("off", "report", "reject"), ``compression`` the compression dictionaries that were
    given with it (form, dictionary), ``rate`` messages a second, ``size`` bytes a message as the
    source expects them, ``location`` its latitude and longitude in degrees; ``owner`` is the
    principal that registered it ("": without TLS), ``base`` the IRI that relative ones in its
    graphs are relative to ("": none).  Of one that had another root broker before, that one has
    taken all messages through ``taken``, as far as is known.  ``version`` counts its updates from
    1; a root broker that knows an older one tells its tree among the messages (SourceChanged)."""

    type: ClassVar[str] = "source-announced"

    source: Name
    name: Name
    root: Name
    location: tuple[float, float] | None
    rate: float
    size: int
    schema_name: Name
    schema_kind: Name
    validation: Name
    compression: GivenDictionaries
    owner: Name = ""
    base: Name = ""
    taken: SequenceNumber = 0
    version: int = 1
    payload: bytes = b""

    def check(self) -> None:
        check_source(self.validation, self.location)


@on_the_wire
@dataclass(frozen=True, slots=True)
class SourceReady(CatalogFrame):
    """The whole tree knows this ``version`` of ``source``; it may publish."""

    type: ClassVar[str] = "source-ready"

    source: Name
    version: int = 1


@on_the_wire
@dataclass(frozen=True, slots=True)
class SourceRemoved(CatalogFrame):
    """There is no ``source`` any more: its root broker, to which this goes, takes nothing of it,
    tells its tree behind the last message (SourceGone), and answers with SourceReleased."""

    type: ClassVar[str] = "source-removed"

    source: Name


@on_the_wire
@dataclass(frozen=True, slots=True)
class SourceReleased(CatalogFrame):
    """The sender is the root broker of ``source`` no longer; it has taken all messages through
    ``taken``, and takes no more."""

    type: ClassVar[str] = "source-released"

    source: Name
    taken: SequenceNumber


@on_the_wire
@dataclass(frozen=True, slots=True)
class KeysReleased(CatalogFrame):
    """The root broker of ``source`` before has accepted the messages ``numbers`` with publish keys,
    whose digests ``payload`` has end to end, the first of them at ``at``, in whole seconds of the
    calendar.
    It says so ahead of SourceReleased, and the next root broker is told ahead of SourceAnnounced.
    Takes the feature ``moved-keys``."""

    type: ClassVar[str] = "keys-released"

    source: Name
    at: int
    numbers: Annotated[list[SequenceNumber], Bound(KEYS_MAX), BODY]
    payload: bytes

    def check(self) -> None:
        if len(self.payload) != DIGEST_BYTES * len(self.numbers):
            raise ProtocolError(
                "bad-field",
                f"{len(self.payload)} bytes of digests; expected {DIGEST_BYTES} for each of "
                f"{len(self.numbers)} numbers",
            )


@on_the_wire
@dataclass(frozen=True, slots=True)
class ShapeAnnounced(CatalogFrame):
    """There is a new version of the network's shape: ``payload`` is the topology, compressed with
    zlib for peers that have the feature ``packed-shapes``, ``trees`` for
    each root broker the version since when its tree is what it is, ``down`` the links that are in
    the topology and out of use, ``lost`` the brokers from which nothing is to be awaited, ``away``
    those that no tree leads through, as they are away."""

    type: ClassVar[str] = "shape-announced"

    version: int
    trees: Annotated[list[tuple[Name, int]], Bound(1_000), BODY]
    down: Annotated[list[tuple[Name, Name]], Bound(10_000), BODY]
    lost: Annotated[list[Name], Bound(1_000), BODY]
    payload: bytes
    away: Annotated[list[Name], Bound(1_000), BODY] = field(default_factory=list)


@on_the_wire
@dataclass(frozen=True, slots=True)
class ShapeAgreed(CatalogFrame):
    """Every broker holds ``version`` of the shape: trees may be set up by it."""

    type: ClassVar[str] = "shape-agreed"

    version: int


@on_the_wire
@dataclass(frozen=True, slots=True)
class ShapeSettled(CatalogFrame):
    """Nothing of before ``version`` of the shape is left anywhere: it may be forgotten."""

    type: ClassVar[str] = "shape-settled"

    version: int


@on_the_wire
@dataclass(frozen=True, slots=True)
class ShapeReached(CatalogFrame):
    """How far the sender is with ``version`` of the shape; ``stage`` 1: it holds it; 2: what its
    own sources publish goes down the new tree; 3: nothing of before is left here, or waits for a
    neighbour."""

    type: ClassVar[str] = "shape-reached"

    version: int
    stage: Annotated[int, Bound(SETTLED)]


@on_the_wire
@dataclass(frozen=True, slots=True)
class LinkReported(CatalogFrame):
    """The sender has had no connection with ``neighbour`` for so long that its link counts as
    down (or has had one again, ``up``).  ``kept``: the sender has all that the neighbour may have
    taken and not passed on."""

    type: ClassVar[str] = "link-reported"

    neighbour: Name
    up: bool
    kept: bool = False


@on_the_wire
@dataclass(frozen=True, slots=True)
class TaxonomiesAnnounced(CatalogFrame):
    """What all registered taxonomies say together, by which root brokers close what their sources
    publish from now on: ``payload`` (formats/graph/taxonomy.py, compressed with zlib; empty for
    none), and ``version``, which grows with every change."""

    type: ClassVar[str] = "taxonomies-announced"

    version: int
    payload: bytes


@on_the_wire
@dataclass(frozen=True, slots=True)
class AccessAnnounced(CatalogFrame):
    """Who may do what from now on (overlay/access.py): all rules (principal, role, scope), and all
    tokens (principal, digest, second at which it expires, [(role, scope)]); and the serial numbers
    of certificates that nobody may show any more.  ``version`` grows with every change of the
    table."""

    type: ClassVar[str] = "access-announced"

    rules: Annotated[list[tuple[Name, Name, Name]], Bound(20_000), BODY]
    tokens: Annotated[
        list[tuple[Name, Annotated[bytes, Bound(32)], int, list[tuple[Name, Name]]]],
        Bound(20_000),
        BODY,
    ]
    revoked: Annotated[list[Annotated[bytes, Bound(SERIAL_BYTES)]], Bound(REVOKED_MAX), BODY]
    version: int = 0
