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

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from msgspec import Meta, Struct, defstruct, field
from msgspec.structs import asdict, fields, replace

from formats import WireFormat
from overlay.access import AccessOptions
from overlay.archive import ArchiveOptions
from overlay.errors import TopologyError
from overlay.gateway import GatewayTable
from overlay.limits import ALL_PROCESSES, Limits
from overlay.link.principal import Principal
from overlay.log_options import LogOptions
from overlay.nodes import (
    NOWHERE,
    Address,
    BrokerNode,
    Link,
    MetadataNode,
    NodeName,
    Place,
    RegistrationNode,
    Transformation,
    levels_of,
    links_address,
    standby_name,
)
from overlay.oidc import OidcOptions
from overlay.planning import PlanningOptions
from overlay.state_directory import KNOWN_NETWORKS, state_directory
from overlay.stores import TRIAL, StoreOptions
from overlay.toml_table import Text, line_said, read_record, read_toml, toml_lines, toml_text
from overlay.unfit import did_you_mean, quote

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
PORT_MAX = 65_535
REGISTRATION_NODES_MAX = 1  # a registration service of several nodes is not built yet
_DIRECTORY = "`$XDG_STATE_HOME/onyx/NAME`; where that is not set `~/.local/state/onyx/NAME`"
_NO_REGISTRATION = {"missing": "a network needs a [registration] node"}
_NO_BROKER = {"missing": "a network needs at least one [[broker]]"}
_BANDWIDTHS = ("bandwidth_kbps", "bandwidth_mbps")
_LEFT_OUT = {"stores": StoreOptions(), "log": LogOptions(), "planning": PlanningOptions()}
_AT_START = Meta(extra={"start": ALL_PROCESSES})


class AdminOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """The admin addresses of a network's processes (``[admin]``): off by itself.

    The address of each process follows from where it listens, so that a file of many brokers names
    none twice.
    """

    host: Text = "127.0.0.1"
    """where all processes of a machine listen for that; who reaches one sees metrics, and no
    contents of messages"""
    port_offset: Annotated[int, Meta(ge=0, le=40_000)] = 20_000
    """from the port where clients come to a process to this one (beyond 32 767: 30 000 back); 0:
    any free one, which its log and `onyx status --json` name"""

    def address(self, listen: Address) -> Address:
        """Of the process that listens there."""
        at = Address(self.host, listen.port if self.port_offset else 0)
        return at.beside(self.port_offset)


class Topology(Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """A whole network; brokers and links in the order of the file.

    A running network takes the values of a table that is not said to take a start
    (live_settings.py).
    """

    OTHER_KEYS: ClassVar = ("defaults",)

    name: NodeName
    """name of the network"""
    data_directory: Annotated[Path, Meta(extra={"shown": _DIRECTORY})]
    """where the processes keep what must survive a crash; relative to this file"""
    registration: Annotated[
        tuple[RegistrationNode, ...],
        Meta(min_length=1, max_length=REGISTRATION_NODES_MAX, extra=_NO_REGISTRATION),
    ]
    brokers: Annotated[
        tuple[BrokerNode, ...], Meta(min_length=1, max_length=BROKERS_MAX, extra=_NO_BROKER)
    ] = field(name="broker")
    links: Annotated[
        tuple[Link, ...], Meta(max_length=LINKS_MAX, title="an array of tables [[link]]")
    ] = field(name="link", default=())
    limits: Limits = Limits()
    access: Annotated[AccessOptions, _AT_START] = AccessOptions()
    oidc: Annotated[OidcOptions | None, _AT_START] = None
    archive: ArchiveOptions = ArchiveOptions()
    stores: Annotated[StoreOptions, Meta(extra={"start": "the whole network"})] = StoreOptions()
    admin: Annotated[AdminOptions | None, _AT_START] = None
    gateway: GatewayTable | None = None
    metadata: Annotated[
        tuple[MetadataNode, ...], Meta(title="an array of tables [[metadata]]")
    ] = ()
    log: LogOptions = LogOptions()
    planning: PlanningOptions = PlanningOptions()

    @cached_property
    def _broker_by_id(self) -> dict[str, BrokerNode]:
        return {broker.id: broker for broker in self.brokers}

    @cached_property
    def _links_of(self) -> dict[str, dict[str, Link]]:
        links_of: dict[str, dict[str, Link]] = {broker.id: {} for broker in self.brokers}
        for link in self.links:
            a, b = link.ends
            links_of[a][b] = links_of[b][a] = link
        return links_of

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
        stores = {node.store for node in (*self.registration, *self.brokers)}
        return TRIAL in stores | {each.store for each in self.metadata}

    def with_trial_store(self, url: str) -> Topology:
        """The same network when that is known."""

        def told(node: _HasStore) -> _HasStore:
            return replace(node, store=url) if node.store == TRIAL else node

        stores = replace(self.stores, url=url) if self.stores.url == TRIAL else self.stores
        return replace(
            self,
            registration=tuple(told(node) for node in self.registration),
            brokers=tuple(told(broker) for broker in self.brokers),
            metadata=tuple(told(each) for each in self.metadata),
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

    def at_port(self, port: int) -> Topology:
        """The same network whose clients come to the registration node at this port (0: any free
        one), and whose other ports are as far from it as they were.

        TopologyError where that leads to a port that there is not, or to one of another process.
        """
        key = "registration.listen"
        first = self.registration[0].listen.port
        if port and not first:
            raise TopologyError("", key, "is any free port, which no other port can follow")

        def moved(address: Address, key: str) -> Address:
            to = port and address.port and address.port - first + port
            if address.port and port and not 0 < to <= PORT_MAX:
                reason = f'"{address}" would get port {to}, expected 1 to {PORT_MAX}'
                raise TopologyError("", key, reason)
            return Address(address.host, to)

        def of_node(node: _Node) -> _Node:
            new = {
                name: moved(getattr(node, name), f"{node.id}.{name}")
                for name in ("listen", "standby")
            }
            for name, listen in (("links", "listen"), ("standby_links", "standby")):
                own = getattr(node, name)
                follows = own == links_address(getattr(node, listen))
                new[name] = NOWHERE if follows else moved(own, f"{node.id}.{name}")
            return replace(node, **new)

        gateway = self.gateway
        found = replace(
            self,
            registration=tuple(of_node(node) for node in self.registration),
            brokers=tuple(of_node(broker) for broker in self.brokers),
            gateway=gateway and replace(gateway, listen=moved(gateway.listen, "gateway.listen")),
        )
        _check(found)
        return found

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
_HasStore = TypeVar("_HasStore", RegistrationNode, BrokerNode, MetadataNode)


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
    node = entries.get("registration")
    if isinstance(node, dict):
        entries["registration"] = [node]
    try:
        topology = read_record(_with_defaults(entries, file), Topology, file)
        _check(topology)
    except TopologyError as error:
        key, reason = error.key, f"{line_said(text, error.key)}{error.reason}"
        if isinstance(node, dict):
            key, reason = (of.replace("registration[0]", "registration") for of in (key, reason))
        raise TopologyError(file, key, reason) from None
    return topology


Defaults = defstruct(
    "Defaults",
    [
        (each.name, each.type, field(name=each.encode_name, default=each.default))
        for each in (*fields(Link), *fields(BrokerNode))
        if each.name == "capacity" or each.name in Link.__struct_fields__[1:]
    ],
    namespace={"__post_init__": Link.__post_init__},
    frozen=True,
    forbid_unknown_fields=True,
)
"""``[defaults]``: of the brokers and links that do not say otherwise."""


def _with_defaults(entries: dict[str, Any], file: str) -> dict[str, Any]:
    """The entries of a file where each node and link says for itself what others say for all."""
    defaults = entries.pop("defaults", {})
    read_record(defaults, Defaults, file, "defaults")
    url = read_record(entries.get("stores", {}), StoreOptions, file, "stores").url
    capacity = {"capacity": defaults.pop("capacity")} if "capacity" in defaults else {}
    for key, usual in (("registration", {}), ("broker", capacity), ("metadata", {})):
        for place, node in enumerate(_tables(entries, key)):
            if node.get("store") == TRIAL:
                reason = f'"{TRIAL}" is of all nodes: say it as url in [stores]'
                raise TopologyError(file, f"{key}[{place}].store", reason)
            node.update({"store": url, **usual, **node})
    for link in _tables(entries, "link") if defaults else ():
        usual = {**defaults}
        if not link.keys().isdisjoint(_BANDWIDTHS):
            usual = {name: value for name, value in usual.items() if name not in _BANDWIDTHS}
        form = str({"format": WireFormat.BINARY, **usual, **link}["format"])
        if usual.get("level") not in levels_of(form):
            usual.pop("level", None)
        link.update({**usual, **link})
    name = entries.get("name")
    if "data_directory" in entries or not isinstance(name, str):
        return entries
    if name == KNOWN_NETWORKS:
        reason = f"{quote(name)} is taken; give another, or a data_directory"
        raise TopologyError(file, "name", reason)
    try:
        return {**entries, "data_directory": str(state_directory() / name)}
    except RuntimeError:
        reason = "the account has no home: say where"
        raise TopologyError(file, "data_directory", reason) from None


def _tables(entries: Mapping[str, Any], key: str) -> Iterator[dict[str, Any]]:
    found = entries.get(key)
    return (each for each in (found if isinstance(found, list) else ()) if isinstance(each, dict))


def _check(topology: Topology) -> None:
    """TopologyError for what does not go together."""
    nodes: dict[str, RegistrationNode | BrokerNode] = {
        **{f"registration[{place}]": node for place, node in enumerate(topology.registration)},
        **{f"broker[{place}]": broker for place, broker in enumerate(topology.brokers)},
    }
    links = {f"link[{place}]": link for place, link in enumerate(topology.links)}
    providers = {f"metadata[{place}]": each for place, each in enumerate(topology.metadata)}
    for key, part in {**asdict(topology), **nodes, **links, **providers}.items():
        try:
            if hasattr(part, "check"):
                part.check()
        except TopologyError as error:
            raise TopologyError("", f"{key}.{error.key}", error.reason) from None
    _check_names({f"{key}.id": node.id for key, node in nodes.items()})
    _check_names({f"{key}.name": each.name for key, each in providers.items()})
    _check_addresses(nodes)
    _check_links(links, topology.broker_ids)
    _check_connected(topology)


def _check_names(names: Mapping[str, str]) -> None:
    """They are unique."""
    key_of: dict[str, str] = {}
    for key, name in names.items():
        first = key_of.setdefault(name, key)
        if first != key:
            table, _, kind = first.rpartition(".")
            raise TopologyError("", key, f"{quote(name)} is already the {kind} of {table}")


def _check_addresses(nodes: Mapping[str, RegistrationNode | BrokerNode]) -> None:
    """They are unique over all nodes."""
    key_of_address: dict[Address, str] = {}
    for key, node in nodes.items():
        _check_address(key_of_address, node.listen, f"{key}.listen")
    for key, node in nodes.items():
        for name in ("standby", "links", "standby_links"):
            _check_address(key_of_address, getattr(node, name), f"{key}.{name}")


def _check_address(key_of_address: dict[Address, str], address: Address, key: str) -> None:
    first = key_of_address.setdefault(address, key) if address.port else key
    if first != key:
        reason = f"{quote(str(address))} is already the address of {first.removesuffix('.listen')}"
        raise TopologyError("", key, reason)


def _check_links(links: Mapping[str, Link], ids: Collection[str]) -> None:
    key_of_pair: dict[frozenset[str], str] = {}
    for key, link in links.items():
        a, b = link.ends
        unknown = next((end for end in link.ends if end not in ids), None)
        first = key_of_pair.setdefault(frozenset(link.ends), key)
        if unknown is not None:
            reason = f"{quote(unknown)} is no broker of this network{did_you_mean(unknown, ids)}"
        elif a == b:
            reason = f"links {quote(a)} to itself"
        elif first != key:
            reason = f"{quote(a)} and {quote(b)} are already joined by {first}"
        else:
            continue
        raise TopologyError("", f"{key}.ends", reason)


def _check_connected(topology: Topology) -> None:
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
        reason = f"the network is not connected: no way from {start} to {shown}"
        raise TopologyError("", "link", reason)


def to_toml(topology: Topology) -> str:
    """The topology as a file, every value written out but for _NEW_AND_USUAL: ``parse_topology``
    gives it back equal."""
    return "\n".join(_toml_lines(topology)) + "\n"


_TABLES = dict(zip(Topology.__struct_fields__, Topology.__struct_encode_fields__, strict=True))


_NEW = (
    *("source_processor_ms_s_max", "default_attributes_max"),
    *("entity_marks_max", "odd_elements_max", "origins", "source_publishers_max"),
)
_NEW_AND_USUAL = frozenset(
    line
    for line in (*toml_lines(Limits(), "limits"), *toml_lines(GatewayTable(), "gateway"))
    if line.partition(" = ")[0] in _NEW
)
"""Settings that processes of the former release refuse, as a key that they do not know, are written
where they are not the usual ones."""


def _toml_lines(topology: Topology) -> Iterator[str]:
    usual_store = f"store = {toml_text(topology.stores.url)}"
    for name, key in _TABLES.items():
        value = getattr(topology, name)
        if isinstance(value, tuple):
            heading = f"[{key}]" if key == "registration" else f"[[{key}]]"
            for each in value:
                lines = toml_lines(each)
                yield from ("", heading, *(line for line in lines if line != usual_store))
        elif not isinstance(value, Struct):
            if value is not None:
                yield f"{key} = {toml_text(str(value))}"
        elif value != _LEFT_OUT.get(name):
            lines = toml_lines(value, key)
            yield from ("", f"[{key}]", *(line for line in lines if line not in _NEW_AND_USUAL))
