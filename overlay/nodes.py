"""What a network consists of: registration nodes, brokers, and the links between brokers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Literal, NamedTuple, Self, TypeAlias

from formats.codec import WireFormat
from overlay.stores import SQLITE

DEFAULT_LATENCY_MS = 1.0
DEFAULT_BANDWIDTH_KBPS = 1_000_000.0
DEFAULT_CAPACITY = 100_000
AUTO: Final = "auto"
LINKS_PORT_OFFSET = 10_000
"""From the port where clients come to the one where other processes of the network do, unless the
file names that."""

LinkFormat: TypeAlias = WireFormat | Literal["auto"]


class Transformation(StrEnum):
    """What is done to messages on a link (section 4.2.2): nothing; what nobody behind it needs is
    cut out; and what ``return`` clauses make of them is computed where that makes them smaller."""

    OFF = "off"
    PROJECTION = "projection"
    FULL = "full"


class Address(NamedTuple):
    """Where a node listens; ``str()`` is the form of the file, an IPv6 host in brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


Addresses: TypeAlias = tuple[Address, ...]
"""Of one node: at one of them it is, whichever process it is by now."""


class Place(NamedTuple):
    """A point on the earth, in degrees; north and east are positive."""

    latitude: float
    longitude: float


NOWHERE = Address("", 0)
"""Also: there is none."""


def standby_name(node_id: str) -> str:
    """What the standby of a node is called among the processes; no id of a node."""
    return f"{node_id}/standby"


def links_address(listen: Address) -> Address:
    """Where other processes of the network come to a node at which clients come to ``listen``."""
    port = listen.port + LINKS_PORT_OFFSET if listen.port else 0
    return Address(listen.host, port if port < 65_536 else listen.port - LINKS_PORT_OFFSET)


@dataclass(frozen=True, slots=True)
class _Listening:
    """``listen`` is where sources and users come, ``links`` where other processes of the network do
    (NOWHERE: to ``links_address(listen)``).  ``standby`` and ``standby_links`` are those of its
    standby (NOWHERE: it has none); ``store`` is where both have their rows (overlay/stores.py)."""

    id: str
    listen: Address
    links: Address = field(default=NOWHERE, kw_only=True)
    standby: Address = field(default=NOWHERE, kw_only=True)
    standby_links: Address = field(default=NOWHERE, kw_only=True)
    store: str = field(default=SQLITE, kw_only=True)

    def __post_init__(self) -> None:
        if self.links == NOWHERE:
            object.__setattr__(self, "links", links_address(self.listen))
        if self.has_standby and self.standby_links == NOWHERE:
            object.__setattr__(self, "standby_links", links_address(self.standby))

    @property
    def has_standby(self) -> bool:
        return self.standby != NOWHERE

    @property
    def clients_at(self) -> Addresses:
        """Where sources and users find it: at one of these, whichever process is the node."""
        return (self.listen, self.standby) if self.has_standby else (self.listen,)

    @property
    def links_at(self) -> Addresses:
        """Where other processes of the network do."""
        return (self.links, self.standby_links) if self.has_standby else (self.links,)

    def as_standby(self) -> Self:
        """The same node at the addresses of its standby, without one."""
        return replace(
            self,
            listen=self.standby,
            links=self.standby_links,
            standby=NOWHERE,
            standby_links=NOWHERE,
        )


@dataclass(frozen=True, slots=True)
class RegistrationNode(_Listening):
    """See the fields of ``_Listening``; brokers come to ``links``."""


@dataclass(frozen=True, slots=True)
class BrokerNode(_Listening):
    """One broker: ``capacity`` is how many profiles it may host (0: it only routes).  ``label`` is
    for people (a city, a data centre) and means nothing to the network.
    """

    place: Place | None = None
    capacity: int = DEFAULT_CAPACITY
    label: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A connection between two brokers, used in both directions.

    ``latency_ms`` (one way) and ``bandwidth_kbps`` (1000 bits a second, each way) are what the
    operator expects of it; broadcast trees and placement are computed from them, nothing is
    slowed down to them.  ``bandwidth_given`` says that the file names the bandwidth.  ``format`` is
    the wire format of messages on it, AUTO if its ends choose by what they measure; ``level`` that
    of its compression (None: the default).  ``transformation`` is what messages on it are cut
    down to.
    """

    ends: tuple[str, str]
    latency_ms: float = DEFAULT_LATENCY_MS
    bandwidth_kbps: float = DEFAULT_BANDWIDTH_KBPS
    format: LinkFormat = WireFormat.BINARY
    level: int | None = None
    bandwidth_given: bool = False
    transformation: Transformation = Transformation.OFF
