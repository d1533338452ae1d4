"""What a network consists of: registration nodes, brokers, and the links between brokers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple, Self, TypeAlias

from msgspec import Meta, Struct, field
from msgspec.structs import force_setattr, replace

from formats import LEVELS, Compression
from formats.codec import WireFormat
from overlay.errors import TopologyError
from overlay.stores import SQLITE, check_store
from overlay.toml_table import Text
from overlay.unfit import quote

DEFAULT_LATENCY_MS = 1.0
DEFAULT_BANDWIDTH_KBPS = 1_000_000.0
DEFAULT_CAPACITY = 100_000
AUTO: Final = "auto"
LINKS_PORT_OFFSET = 10_000
"""From the port where clients come to the one where other processes of the network do, unless the
file names that."""
OUTGOING_FROM = 32_768
"""Above, systems take ports for outgoing connections (net.ipv4.ip_local_port_range)."""
_BACK = 30_000

if TYPE_CHECKING:
    LinkFormat: TypeAlias = WireFormat | Literal["auto"]
else:
    LinkFormat = Literal[(*map(str, WireFormat), AUTO)]  # as a file has it
NodeName: TypeAlias = Annotated[
    str,  # "." and ".." would be fine words but are no names for a directory
    Meta(
        pattern=r"^(?!\.+\Z)[A-Za-z0-9._-]{1,64}\Z",
        extra={"form": "is no name, expected 1 to 64 of A-Z a-z 0-9 . _ - (not only dots)"},
    ),
]
_HOST = re.compile(r"[A-Za-z0-9.:%_-]+")
_LINKS = "`listen`, 10 000 ports on (beyond 32 767: 30 000 back); port 0 where it is"


class Transformation(StrEnum):
    """What is done to messages on a link (section 4.2.2): nothing; what nobody behind it needs is
    cut out; and what ``return`` clauses make of them is computed where that makes them smaller."""

    OFF = "off"
    PROJECTION = "projection"
    FULL = "full"


class Address(tuple[str, int]):
    """Where a node listens; ``str()`` is the form of the file, an IPv6 host in brackets.

    No NamedTuple, which msgspec would take to be an array.
    """

    __slots__ = ()

    def __new__(cls, host: str, port: int) -> Self:
        return super().__new__(cls, (host, port))

    def __getnewargs__(self) -> tuple[str, int]:
        return (self.host, self.port)

    @property
    def host(self) -> str:
        return self[0]

    @property
    def port(self) -> int:
        return self[1]

    @classmethod
    def parse(cls, text: str) -> Self:
        """ValueError says what was expected."""
        host, colon, port = text.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise ValueError(f"{quote(text)}: write an IPv6 host in brackets, [::1]:7000")
        if not colon or not _HOST.fullmatch(host) or not (port.isascii() and port.isdecimal()):
            raise ValueError(f'{quote(text)} is no address, expected "host:port"')
        if len(port) > 5 or int(port) > 65_535:
            raise ValueError(f"{quote(text)}: the port is out of range, expected 0 to 65535")
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def beside(self, offset: int) -> Address:
        """So many ports on, and never a port that the system takes for outgoing connections:
        from there it goes 30,000 back, as often as that takes."""
        port = self.port + offset
        back = max(0, port - OUTGOING_FROM + _BACK) // _BACK
        return Address(self.host, port - back * _BACK)

    def __bool__(self) -> bool:
        return bool(self.host)


Addresses: TypeAlias = tuple[Address, ...]
"""Of one node: at one of them it is, whichever process it is by now."""


class Place(NamedTuple):
    """A point on the earth, in degrees; north and east are positive."""

    latitude: Annotated[float, Meta(ge=-90, le=90)]
    longitude: Annotated[float, Meta(ge=-180, le=180)]


NOWHERE = Address("", 0)
"""Also: there is none."""


def standby_name(node_id: str) -> str:
    """What the standby of a node is called among the processes; no id of a node."""
    return f"{node_id}/standby"


def links_address(listen: Address) -> Address:
    """Where other processes of the network come to a node at which clients come to ``listen``."""
    return listen.beside(LINKS_PORT_OFFSET) if listen.port else listen


class _Node(Struct, frozen=True, forbid_unknown_fields=True):
    id: NodeName
    """unique among all nodes"""
    listen: Address
    """where sources and users come: `"host:port"`, an IPv6 host in brackets; port 0: any free port;
    no two may be the same but for that"""
    links: Annotated[Address, Meta(extra={"shown": _LINKS})] = NOWHERE
    """where the other processes of the network come, written the same; clients are not let in
    there, nor these at `listen`, so that no number of clients keeps a broker off its links, and a
    firewall can tell them apart"""
    standby: Address = NOWHERE
    """where its standby listens, as `listen`; takes a store in PostgreSQL
    ([survival.md](survival.md))"""
    standby_links: Annotated[Address, Meta(extra={"shown": "as `links`"})] = NOWHERE
    """where the other processes of the network come to that"""
    store: Annotated[Text, Meta(extra={"shown": "`url` of `[stores]`"})] = SQLITE
    """where the rows of both are: `"postgresql://HOST/DATABASE"` without a password, or `"sqlite"`,
    a file in the data directory"""

    def __post_init__(self) -> None:
        if self.links == NOWHERE:
            force_setattr(self, "links", links_address(self.listen))
        if self.has_standby and self.standby_links == NOWHERE:
            force_setattr(self, "standby_links", links_address(self.standby))

    def check(self) -> None:
        """TopologyError where one does not go with another."""
        check_store("store", self.store)
        if self.has_standby and self.store == SQLITE:
            reason = 'has nothing to go on with: store is a file, expected "postgresql://..."'
            raise TopologyError("", "standby", reason)
        if self.standby_links and not self.has_standby:
            raise TopologyError(
                "", "standby_links", "there is no standby, expected standby as well"
            )

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


class RegistrationNode(_Node, frozen=True):
    """Brokers come to ``links``."""


class BrokerNode(_Node, frozen=True):
    """One broker."""

    label: Text = ""
    """for people, such as a city; shown in tables and pictures"""
    place: Annotated[Place | None, Meta(title="[latitude, longitude] in degrees")] = None
    """`[latitude, longitude]` in degrees, north and east positive; used for placement"""
    capacity: Annotated[int, Meta(ge=0, le=1_000_000_000)] = DEFAULT_CAPACITY
    """profiles that the broker may host; 0: it only routes"""

    def check(self) -> None:
        """TopologyError where one does not go with another."""
        super().check()
        if len(self.label) > 64 or not self.label.isprintable():
            raise TopologyError("", "label", "must be at most 64 printable characters")


class MetadataNode(Struct, frozen=True, forbid_unknown_fields=True):
    """A provider of metadata, which ``onyx up`` starts beside the nodes."""

    name: NodeName
    """it publishes as the source of this name; its files are in `metadata/NAME` of the data
    directory"""
    store: Annotated[Text, Meta(extra={"shown": "`url` of `[stores]`"})] = SQLITE
    """where its documents, rules and messages are: as that of a node"""
    member: NodeName | None = field(default=None, name="with")
    """a provider of several that hold the same, to be one of them; both are the operator"""
    prefixes: tuple[Text, ...] = ()
    """it is the home of the documents whose URIs begin so"""
    network: bool = False
    """it provides what this network is, as the operator, and takes no documents of others"""

    def check(self) -> None:
        """TopologyError where one does not go with another."""
        check_store("store", self.store)
        if self.member == self.name:
            raise TopologyError("", "with", f"{quote(self.name)} is this provider itself")
        if self.prefixes and self.member is None:
            raise TopologyError("", "prefixes", "need with: a provider that is alone has all")


class Link(Struct, frozen=True, forbid_unknown_fields=True):
    """A connection between two brokers, used in both directions.

    Latency and bandwidth are what the operator expects of it; broadcast trees and placement are
    computed from them, nothing is slowed down to them.
    """

    ends: Annotated[tuple[str, str], Meta(title="the ids of two brokers")]
    """the ids of two brokers; a pair has at most one link"""
    latency_ms: Annotated[float, Meta(ge=0, le=60_000)] = DEFAULT_LATENCY_MS
    """expected, one way; a thousandth of a millisecond counts"""
    given_kbps: Annotated[float, Meta(ge=1, le=1e9)] | None = field(
        default=None, name="bandwidth_kbps"
    )
    """expected, each way, in 1000 bits a second"""
    format: LinkFormat = WireFormat.BINARY
    """how messages are written on this link: `"binary"` (parsed once, at the root broker),
    `"dictionary"` (the same less the words of the source's schema) or `"text"`, each also with
    `+zstd` or `+zlib` to compress it ([formats.md](formats.md)); or `"auto"`: each end chooses for
    what it sends"""
    level: Annotated[int, Meta(ge=1, le=LEVELS[Compression.ZSTD][-1])] | None = None
    """of the compression: 1 to 19 (`+zstd`, else 3) or 1 to 9 (`+zlib`, else 6); higher is smaller
    and slower"""
    transformation: Transformation = Transformation.OFF
    """`"projection"`: what nobody behind the link needs is cut out of its messages
    ([transformation.md](transformation.md)); `"full"`: what `return` clauses make of them is
    computed on the way, too, where that makes them smaller; `"off"`: messages stay whole"""
    given_mbps: Annotated[float, Meta(ge=0.001, le=1e6)] | None = field(
        default=None, name="bandwidth_mbps"
    )
    """or in 1 000 000 bits a second; 1 Gbit/s where neither is said"""

    def __post_init__(self) -> None:
        if self.format != AUTO:
            force_setattr(self, "format", WireFormat(self.format))
        if self.given_mbps is not None:
            if self.given_kbps is not None:
                reason = "bandwidth_kbps is given as well, expected one of both"
                raise TopologyError("", "bandwidth_mbps", reason)
            force_setattr(self, "given_kbps", self.given_mbps * 1000)
            force_setattr(self, "given_mbps", None)

    @property
    def bandwidth_given(self) -> bool:
        """Whether the file names the bandwidth."""
        return self.given_kbps is not None

    @property
    def bandwidth_kbps(self) -> float:
        return DEFAULT_BANDWIDTH_KBPS if self.given_kbps is None else self.given_kbps

    def check(self) -> None:
        """TopologyError where the level is not one of the format."""
        if self.level is None or self.level in (levels := levels_of(self.format)):
            return
        if not levels:
            raise TopologyError("", "level", f"the format {quote(self.format)} is not compressed")
        raise TopologyError(
            "", "level", f"{self.level} is out of range, expected {levels[0]} to {levels[-1]}"
        )


def levels_of(form: str) -> Sequence[int]:
    """Of the compression of messages on a link; AUTO may choose one."""
    compression = next((each.compression for each in WireFormat if each == form), Compression.ZSTD)
    return LEVELS[compression] if compression is not Compression.NONE else ()
