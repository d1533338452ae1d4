"""Topology: the network as an operator describes it - brokers, links, registration, limits.

A topology file (TOML, see docs/topologies.md) is read once, checked completely, and then never
changes; every process of a network is started from the same one::

    name = "pair"
    [registration]                 # where sources and users register
    id = "registration"
    listen = "127.0.0.1:7000"
    [[broker]]
    id = "B1"
    listen = "127.0.0.1:7001"      # port 0: any free port, see Topology.with_addresses
    links = "127.0.0.1:17001"      # where other brokers come; if absent, port + 10,000
    [[broker]]
    id = "B2"
    listen = "127.0.0.1:7002"
    [[link]]
    ends = ["B1", "B2"]
    latency_ms = 5

Invariants of every topology that ``parse_topology`` returns: at least one broker and one
registration node; ids are unique; no two nodes listen at the same address; links join two
different brokers, each pair at most once; every broker can be reached from every other (Figures
3 and 4 of the paper).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TypedDict, TypeVar, cast

from formats import LEVELS, Compression, WireFormat
from overlay.access import AccessOptions, access_to_toml, read_access
from overlay.archive import ArchiveOptions, archive_to_toml, read_archive
from overlay.errors import TopologyError
from overlay.gateway import GatewayTable, gateway_to_toml, read_gateway
from overlay.limits import Limits, limits_to_toml, read_limits
from overlay.link.principal import Principal
from overlay.log_options import LogOptions, log_to_toml, read_log
from overlay.nodes import (
    AUTO,
    DEFAULT_CAPACITY,
    NOWHERE,
    Address,
    BrokerNode,
    Link,
    LinkFormat,
    Place,
    RegistrationNode,
    Transformation,
    standby_name,
)
from overlay.oidc import OidcOptions, oidc_to_toml, read_oidc
from overlay.planning import PlanningOptions, planning_to_toml, read_planning
from overlay.state_directory import KNOWN_NETWORKS, state_directory
from overlay.stores import SQLITE, TRIAL, StoreOptions, read_store, read_stores, stores_to_toml
from overlay.toml_table import (
    TomlTable,
    did_you_mean,
    quote,
    read_toml,
    shown_number,
    toml_text,
)

# -------------------------------------------------------------------------------------------------
# AdminOptions: where each process says how it is (``[admin]`` of a topology file).
#
# Off by itself.  The address of each process follows from where it listens, so that a file of many
# brokers names none twice.


@dataclass(frozen=True, slots=True)
class AdminOptions:
    """The admin addresses of a network's processes.

    host           of all of them; whoever reaches one sees metrics, and no contents of messages
    port_offset    from the port where clients come to a process; 0: any free one, which its log and
                   ``onyx status`` name
    """

    host: str = "127.0.0.1"
    port_offset: int = 20_000

    def address(self, listen: Address) -> Address:
        """Of the process that listens there; beyond the last port it counts down."""
        if not self.port_offset:
            return Address(self.host, 0)
        port = listen.port + self.port_offset
        return Address(self.host, port if port < 65_536 else listen.port - self.port_offset)


def read_admin(top: TomlTable) -> AdminOptions | None:
    """``[admin]`` of a topology file, None where it has none; TopologyError for what is wrong."""
    if "admin" not in top:
        return None
    table = top.table("admin", [field.name for field in fields(AdminOptions)])
    default = AdminOptions()
    return AdminOptions(
        host=table.text("host", default.host),
        port_offset=table.integer("port_offset", 0, 40_000, default.port_offset),
    )


def admin_to_toml(options: AdminOptions | None) -> Iterator[str]:
    """The lines of ``[admin]``, every value written out."""
    if options is not None:
        yield from ("", "[admin]", f"host = {toml_text(options.host)}")
        yield f"port_offset = {options.port_offset}"


# -------------------------------------------------------------------------------------------------


__all__ = [
    "Address",
    "BrokerNode",
    "Limits",
    "Link",
    "Place",
    "RegistrationNode",
    "Topology",
    "TopologyError",
    "Transformation",
    "load_topology",
    "parse_topology",
    "to_toml",
]

FILE_BYTES_MAX = 4 * 1024 * 1024
BROKERS_MAX = 1_000
LINKS_MAX = 10_000
REGISTRATION_NODES_MAX = 1  # a registration service of several nodes is not built yet

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TOP_KEYS = (
    *("name", "data_directory", "registration", "broker", "link", "defaults", "limits"),
    *("archive", "access", "oidc", "stores", "admin", "gateway", "log", "planning"),
)
_NODE_KEYS = ("id", "listen", "links", "standby", "standby_links", "store")
_BROKER_KEYS = (*_NODE_KEYS, "label", "place", "capacity")
_LINK_KEYS = (
    "ends",
    "latency_ms",
    "bandwidth_kbps",
    "bandwidth_mbps",
    "format",
    "level",
    "transformation",
)
_DEFAULT_KEYS = (*_LINK_KEYS[1:], "capacity")


@dataclass(frozen=True, slots=True)
class Topology:
    """A whole network; brokers and links in the order of the file.

    ``data_directory`` of a file is relative to that file, and by itself in the account's state
    directory (``$XDG_STATE_HOME/onyx/NAME``).
    """

    name: str
    data_directory: Path
    registration: tuple[RegistrationNode, ...]
    brokers: tuple[BrokerNode, ...]
    links: tuple[Link, ...] = ()
    limits: Limits = field(default_factory=Limits)
    archive: ArchiveOptions = field(default_factory=ArchiveOptions)
    access: AccessOptions = field(default_factory=AccessOptions)
    oidc: OidcOptions | None = None
    stores: StoreOptions = field(default_factory=StoreOptions)
    admin: AdminOptions | None = None
    gateway: GatewayTable | None = None
    log: LogOptions = field(default_factory=LogOptions)
    planning: PlanningOptions = field(default_factory=PlanningOptions)
    _broker_by_id: dict[str, BrokerNode] = field(init=False, repr=False, compare=False)
    _links_of: dict[str, dict[str, Link]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        links_of: dict[str, dict[str, Link]] = {broker.id: {} for broker in self.brokers}
        for link in self.links:
            a, b = link.ends
            links_of[a][b] = links_of[b][a] = link
        object.__setattr__(self, "_broker_by_id", {broker.id: broker for broker in self.brokers})
        object.__setattr__(self, "_links_of", links_of)

    @property
    def broker_ids(self) -> tuple[str, ...]:
        """In the order of the file."""
        return tuple(self._broker_by_id)

    def broker(self, broker_id: str) -> BrokerNode:
        """KeyError when there is no such broker."""
        return self._broker_by_id[broker_id]

    def neighbours(self, broker_id: str) -> tuple[str, ...]:
        """The brokers one link away, sorted; KeyError when there is no such broker."""
        return tuple(sorted(self._links_of[broker_id]))

    def link(self, a: str, b: str) -> Link:
        """The link between two brokers, either way round; KeyError when there is none."""
        return self._links_of[a][b]

    @property
    def transforms(self) -> bool:
        """Whether messages are cut down on any link."""
        return any(link.transformation is not Transformation.OFF for link in self.links)

    def transforming(self, transformation: Transformation) -> Topology:
        """The same network with this done to messages on every link."""
        links = tuple(replace(link, transformation=transformation) for link in self.links)
        return replace(self, links=links)

    @property
    def has_trial_store(self) -> bool:
        """Whether any node has its rows in the server that is started with the network."""
        return any(node.store == TRIAL for node in (*self.registration, *self.brokers))

    def with_trial_store(self, url: str) -> Topology:
        """The same network when that is known."""

        def told(node: _Node) -> _Node:
            return replace(node, store=url) if node.store == TRIAL else node

        stores = replace(self.stores, url=url) if self.stores.url == TRIAL else self.stores
        return replace(
            self,
            registration=tuple(told(node) for node in self.registration),
            brokers=tuple(told(broker) for broker in self.brokers),
            stores=stores,
        )

    def address(self, node_id: str) -> Address:
        """Where sources and users come to a broker or registration node; KeyError when there is
        no such node."""
        return self.node(node_id).listen

    def where(self, node_id: str) -> str:
        """The same for whoever dials: "host:port", or "host:port,host:port" with that of its
        standby; KeyError."""
        return ",".join(map(str, self.node(node_id).clients_at))

    def node(self, node_id: str) -> RegistrationNode | BrokerNode:
        """KeyError when there is no such node."""
        if node_id in self._broker_by_id:
            return self._broker_by_id[node_id]
        for node in self.registration:
            if node.id == node_id:
                return node
        raise KeyError(node_id)

    def principal(self, node_id: str) -> Principal:
        """Who a broker or registration node is."""
        is_broker = node_id in self._broker_by_id
        return Principal("broker" if is_broker else "registration", node_id)

    def with_addresses(
        self,
        addresses: Mapping[str, tuple[str, int]],
        links: Mapping[str, tuple[str, int]] | None = None,
    ) -> Topology:
        """The same network with the nodes in ``addresses`` (id -> host, port) listening there, and
        for other processes of the network at ``links``, or where that follows from the first; their
        standbys by ``standby_name``.

        The launcher binds the sockets of port 0 itself and tells everybody what it got.
        KeyError when an id is no node of this network.
        """
        at = dict(links or {})
        for name in addresses:
            self.node(name.partition("/")[0])

        def moved(node: _Node) -> _Node:
            name = standby_name(node.id)
            if name in addresses:
                standby, links = Address(*addresses[name]), Address(*at.get(name, NOWHERE))
                node = replace(node, standby=standby, standby_links=links)
            if node.id not in addresses:
                return node
            listen = Address(*addresses[node.id])
            return replace(node, listen=listen, links=Address(*at.get(node.id, NOWHERE)))

        return replace(
            self,
            registration=tuple(moved(node) for node in self.registration),
            brokers=tuple(moved(broker) for broker in self.brokers),
        )


_Node = TypeVar("_Node", RegistrationNode, BrokerNode)


def load_topology(path: Path) -> Topology:
    """Read and check a topology file; TopologyError says what is wrong with it and where."""
    file = str(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(FILE_BYTES_MAX + 1)
        if len(data) > FILE_BYTES_MAX:
            raise TopologyError(file, "", f"is longer than {FILE_BYTES_MAX} bytes")
        topology = parse_topology(data.decode("utf-8"), file)
        at = path.parent / topology.data_directory
        return replace(topology, data_directory=at)
    except OSError as error:
        raise TopologyError(file, "", f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise TopologyError(file, "", f"is not UTF-8 (byte {error.start})") from None


def parse_topology(text: str, file: str) -> Topology:
    """The topology in ``text``; ``file`` is its name for the TopologyError."""
    entries = read_toml(text, file)
    top = TomlTable(file, "", entries, _TOP_KEYS)
    name = _read_id(top, "name")
    stores = read_stores(top)
    registration = _read_registration(top, stores)
    defaults = top.table("defaults", _DEFAULT_KEYS)
    default_capacity = defaults.integer("capacity", 0, 1_000_000_000, DEFAULT_CAPACITY)
    default_link = _read_link_values(defaults, Link(("", "")))
    broker_tables = top.tables("broker", _BROKER_KEYS, BROKERS_MAX)
    brokers = tuple(_read_broker(table, default_capacity, stores) for table in broker_tables)
    if not brokers:
        raise top.refusal("broker", "a network needs at least one [[broker]]")
    _check_nodes(registration, brokers, top)
    link_tables = top.tables("link", _LINK_KEYS, LINKS_MAX)
    links = tuple(_read_links(link_tables, {broker.id for broker in brokers}, default_link))
    topology = Topology(
        *(name, _read_data_directory(top, name), registration, brokers, links),
        *(read_limits(top), read_archive(top), read_access(top), read_oidc(top), stores),
        *(read_admin(top), read_gateway(top, _read_address), read_log(top), read_planning(top)),
    )
    _check_connected(topology, top)
    return topology


def _read_data_directory(top: TomlTable, name: str) -> Path:
    if "data_directory" in top:
        written = top.text("data_directory")
        if "\0" in written:
            raise top.refusal("data_directory", "must not contain a NUL character")
        return Path(written)
    if name == KNOWN_NETWORKS:
        raise top.refusal("name", f"{quote(name)} is taken; give another, or a data_directory")
    try:
        return state_directory() / name
    except RuntimeError:
        raise top.refusal("data_directory", "the account has no home: say where") from None


def to_toml(topology: Topology) -> str:
    """The topology as a file, every value written out: ``parse_topology`` gives it back equal."""
    return "\n".join(_toml_lines(topology)) + "\n"


def _read_id(table: TomlTable, key: str) -> str:
    value = table.text(key)
    # "." and ".." would be fine words but are no names for a directory.
    if not _ID.fullmatch(value) or not value.strip("."):
        raise table.refusal(
            key, f"{quote(value)} is no name, expected 1 to 64 of A-Z a-z 0-9 . _ - (not only dots)"
        )
    return value


def _read_address(table: TomlTable, key: str) -> Address:
    value = table.text(key)
    host, colon, port = value.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise table.refusal(key, f"{quote(value)}: write an IPv6 host in brackets, [::1]:7000")
    if (
        not colon
        or not re.fullmatch(r"[A-Za-z0-9.:%_-]+", host)
        or not re.fullmatch("[0-9]+", port)
    ):
        raise table.refusal(key, f'{quote(value)} is no address, expected "host:port"')
    if len(port) > 5 or int(port) > 65_535:
        raise table.refusal(key, f"{quote(value)}: the port is out of range, expected 0 to 65535")
    return Address(host, int(port))


def _read_optional_address(table: TomlTable, key: str) -> Address:
    """NOWHERE where it is not there."""
    return _read_address(table, key) if key in table else NOWHERE


class _NodeValues(TypedDict):
    id: str
    listen: Address
    links: Address
    standby: Address
    standby_links: Address
    store: str


def _read_node(table: TomlTable, stores: StoreOptions) -> _NodeValues:
    """What all nodes have."""
    store = read_store(table, "store", stores.url)
    if "standby" in table and store == SQLITE:
        raise table.refusal(
            "standby", 'has nothing to go on with: store is a file, expected "postgresql://..."'
        )
    if "standby_links" in table and "standby" not in table:
        raise table.refusal("standby_links", "there is no standby, expected standby as well")
    return _NodeValues(
        id=_read_id(table, "id"),
        listen=_read_address(table, "listen"),
        links=_read_optional_address(table, "links"),
        standby=_read_optional_address(table, "standby"),
        standby_links=_read_optional_address(table, "standby_links"),
        store=store,
    )


def _read_registration(top: TomlTable, stores: StoreOptions) -> tuple[RegistrationNode, ...]:
    """``[registration]``, or ``[[registration]]`` when there is more than one node."""
    if "registration" not in top:
        raise top.refusal("registration", "a network needs a [registration] node")
    if top.is_array("registration"):
        tables = top.tables("registration", _NODE_KEYS, REGISTRATION_NODES_MAX)
    else:
        tables = [top.table("registration", _NODE_KEYS)]
    if not tables:
        raise top.refusal("registration", "a network needs a [registration] node")
    return tuple(RegistrationNode(**_read_node(table, stores)) for table in tables)


def _read_broker(table: TomlTable, default_capacity: int, stores: StoreOptions) -> BrokerNode:
    label = table.text("label") if "label" in table else ""
    if len(label) > 64 or not label.isprintable():
        raise table.refusal("label", "must be at most 64 printable characters")
    return BrokerNode(
        **_read_node(table, stores),
        place=_read_place(table) if "place" in table else None,
        capacity=table.integer("capacity", 0, 1_000_000_000, default_capacity),
        label=label,
    )


def _read_place(table: TomlTable) -> Place:
    expected = "[latitude, longitude] in degrees"
    values = table.array("place", 2, expected)
    degrees = []
    for value, what, bound in zip(values, ("latitude", "longitude"), (90, 180), strict=True):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise table.refusal("place", f"the {what} is not a number, expected {expected}")
        if not -bound <= value <= bound:
            shown = f"the {what} {shown_number(value)}"
            raise table.refusal("place", f"{shown} is out of range, expected -{bound} to {bound}")
        degrees.append(float(value))
    return Place(*degrees)


def _check_nodes(
    registration: tuple[RegistrationNode, ...], brokers: tuple[BrokerNode, ...], top: TomlTable
) -> None:
    """Ids and addresses are unique over all nodes."""
    prefix = "registration[{}]" if top.is_array("registration") else "registration"
    nodes: list[tuple[str, RegistrationNode | BrokerNode]] = [
        (prefix.format(index), node) for index, node in enumerate(registration)
    ]
    nodes += [(f"broker[{index}]", broker) for index, broker in enumerate(brokers)]
    key_of_id: dict[str, str] = {}
    key_of_address: dict[Address, str] = {}
    for key, node in nodes:
        first = key_of_id.setdefault(node.id, key)
        if first != key:
            raise top.refusal(f"{key}.id", f"{quote(node.id)} is already the id of {first}")
        _check_address(key_of_address, node.listen, f"{key}.listen", top)
    for key, node in nodes:
        for name in ("standby", "links", "standby_links"):
            _check_address(key_of_address, getattr(node, name), f"{key}.{name}", top)


def _check_address(
    key_of_address: dict[Address, str], address: Address, key: str, top: TomlTable
) -> None:
    first = key_of_address.setdefault(address, key) if address.port else key
    if first != key:
        reason = f"{quote(str(address))} is already the address of {first.removesuffix('.listen')}"
        raise top.refusal(key, reason)


def _read_links(tables: list[TomlTable], ids: set[str], default: Link) -> Iterator[Link]:
    path_of_pair: dict[frozenset[str], str] = {}
    for table in tables:
        ends = table.array("ends", 2, "the ids of two brokers")
        for end in ends:
            if not isinstance(end, str):
                raise table.refusal("ends", "must be the ids of two brokers, as strings")
            if end not in ids:
                reason = f"{quote(end)} is no broker of this network{did_you_mean(end, ids)}"
                raise table.refusal("ends", reason)
        a, b = cast("list[str]", ends)
        if a == b:
            raise table.refusal("ends", f"links {quote(a)} to itself")
        first = path_of_pair.setdefault(frozenset((a, b)), table.path)
        if first != table.path:
            raise table.refusal("ends", f"{quote(a)} and {quote(b)} are already joined by {first}")
        yield _read_link_values(table, replace(default, ends=(a, b)))


def _read_link_values(table: TomlTable, default: Link) -> Link:
    """``default`` with what the table says differently."""
    if "bandwidth_kbps" in table and "bandwidth_mbps" in table:
        raise table.refusal(
            "bandwidth_mbps", "bandwidth_kbps is given as well, expected one of both"
        )
    if "bandwidth_mbps" in table:
        bandwidth_kbps = table.number("bandwidth_mbps", 0.001, 1e6) * 1000
    else:
        bandwidth_kbps = table.number("bandwidth_kbps", 1, 1e9, default.bandwidth_kbps)
    chosen = table.choice("format", [*WireFormat, AUTO], default.format)
    wire_format: LinkFormat = AUTO if chosen == AUTO else WireFormat(chosen)
    transformation = table.choice("transformation", [*Transformation], default.transformation)
    return replace(
        default,
        latency_ms=table.number("latency_ms", 0, 60_000, default.latency_ms),
        bandwidth_kbps=bandwidth_kbps,
        format=wire_format,
        level=_read_level(table, wire_format, default),
        bandwidth_given=default.bandwidth_given
        or "bandwidth_kbps" in table
        or "bandwidth_mbps" in table,
        transformation=Transformation(transformation),
    )


def _read_level(table: TomlTable, wire_format: LinkFormat, default: Link) -> int | None:
    """``[defaults]`` (without ends) may name a level for those links that are compressed."""
    compression = Compression.ZSTD
    if default.ends[0] and isinstance(wire_format, WireFormat):
        compression = wire_format.compression
    levels = LEVELS[compression]
    if "level" not in table:
        return default.level if default.level in levels else None
    if compression is Compression.NONE:
        raise table.refusal("level", f"the format {quote(wire_format)} is not compressed")
    return table.integer("level", levels[0], levels[-1], levels[0])


def _check_connected(topology: Topology, top: TomlTable) -> None:
    start = topology.brokers[0].id
    reached = {start}
    frontier = [start]
    while frontier:
        new = [n for broker in frontier for n in topology.neighbours(broker) if n not in reached]
        frontier = list(dict.fromkeys(new))
        reached.update(frontier)
    lost = [broker_id for broker_id in topology.broker_ids if broker_id not in reached]
    if lost:
        shown = ", ".join(lost[:5]) + (f" and {len(lost) - 5} more" if len(lost) > 5 else "")
        raise top.refusal("link", f"the network is not connected: no way from {start} to {shown}")


def _toml_lines(topology: Topology) -> Iterator[str]:
    yield f"name = {toml_text(topology.name)}"
    yield f"data_directory = {toml_text(str(topology.data_directory))}"
    for node in topology.registration:
        yield from ("", "[registration]" if len(topology.registration) == 1 else "[[registration]]")
        yield from _node_lines(node, topology.stores)
    for broker in topology.brokers:
        yield from ("", "[[broker]]")
        yield from _node_lines(broker, topology.stores)
        if broker.label:
            yield f"label = {toml_text(broker.label)}"
        if broker.place is not None:
            yield f"place = [{broker.place.latitude!r}, {broker.place.longitude!r}]"
        yield f"capacity = {broker.capacity}"
    for link in topology.links:
        yield from ("", "[[link]]", f"ends = [{', '.join(toml_text(end) for end in link.ends)}]")
        yield f"latency_ms = {link.latency_ms!r}"
        if link.bandwidth_given:
            yield f"bandwidth_kbps = {link.bandwidth_kbps!r}"
        yield f"format = {toml_text(link.format)}"
        if link.level is not None:
            yield f"level = {link.level}"
        yield f"transformation = {toml_text(link.transformation)}"
    yield from (*limits_to_toml(topology.limits), *access_to_toml(topology.access))
    yield from (*oidc_to_toml(topology.oidc), *archive_to_toml(topology.archive))
    yield from (*stores_to_toml(topology.stores), *admin_to_toml(topology.admin))
    yield from (*gateway_to_toml(topology.gateway), *log_to_toml(topology.log))
    yield from planning_to_toml(topology.planning)


def _node_lines(node: RegistrationNode | BrokerNode, stores: StoreOptions) -> Iterator[str]:
    yield f"id = {toml_text(node.id)}"
    for key in ("listen", "links", "standby", "standby_links"):
        address = getattr(node, key)
        if address != NOWHERE:
            yield f"{key} = {toml_text(str(address))}"
    if node.store != stores.url:
        yield f"store = {toml_text(node.store)}"
