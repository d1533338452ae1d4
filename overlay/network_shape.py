"""NetworkShape: which brokers and links a running network has, as a version of it.

The topology file that a network is started from is version 0.  Every later change (an operator
applies another file, a link is down or up again) makes the next version; the registration service
numbers them and keeps them.  ``declared`` is what an operator wants there to be, ``topology`` what
is in use: the same without the links that are ``down``.

It says for each root broker since which version its tree is what it is: tree_name.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias

from msgspec import structs

from formats import Compression, FormatError, compress, decompress
from overlay.link.frames import ShapeAnnounced
from overlay.link.tables import Row, Table
from overlay.routing.broadcast_tree import BroadcastTree, Ways, broadcast_tree, broadcast_trees
from overlay.topology import Topology, TopologyError, parse_topology, to_toml
from overlay.tree_name import root_of, tree_name

TEXT_BYTES_MAX = 64 * 1024 * 1024  # of a topology
_ZLIB = b"\x78\x9c"  # as no text in UTF-8 begins

Pair: TypeAlias = frozenset[str]
"""The ends of a link."""


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """``tree_versions``: by root broker; ``lost``: brokers of the version before that died with
    their disks, so that nothing is to be awaited from them; ``away``: brokers that no tree of
    another leads through, as they are away for long, and that nobody waits for."""

    version: int
    declared: Topology
    tree_versions: Mapping[str, int]
    down: frozenset[Pair] = frozenset()
    lost: tuple[str, ...] = ()
    away: frozenset[str] = frozenset()
    topology: Topology = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "topology", without_links(self.declared, self.down))

    def tree(self, root: str) -> str | None:
        """The name of a root broker's tree; None when there is no such broker."""
        version = self.tree_versions.get(root)
        return None if version is None else tree_name(root, version)

    def broadcast_tree(self, root: str) -> BroadcastTree:
        """KeyError when there is no such broker."""
        return broadcast_tree(self.topology, root, self.away)

    def ways(self) -> Ways:
        """For many of its trees."""
        return Ways.of(self.topology, self.away)

    def has_tree(self, tree: str) -> bool:
        return self.tree(root_of(tree)) == tree

    @property
    def new_trees(self) -> list[str]:
        """The trees that began with this version."""
        return [
            tree_name(root, since)
            for root, since in self.tree_versions.items()
            if since == self.version
        ]

    @property
    def origins(self) -> set[int]:
        """The versions that its trees began with."""
        return set(self.tree_versions.values())

    def has_broker(self, broker: str) -> bool:
        return broker in self.tree_versions

    def row(self) -> ShapeRow:
        return ShapeRow(
            to_toml(self.declared),
            self.tree_versions,
            [sorted(pair) for pair in sorted(self.down, key=sorted)],
            self.lost,
            tuple(sorted(self.away)),
        )

    @classmethod
    def from_row(cls, version: int, row: ShapeRow) -> NetworkShape:
        """TopologyError when its text is no topology."""
        return cls(
            version,
            parse_topology(row.declared, f"version {version} of the network"),
            row.trees,
            frozenset(map(frozenset, row.down)),
            row.lost,
            frozenset(row.away),
        )

    def announced(self, *, is_packed: bool) -> ShapeAnnounced:
        """What brokers are told of it; ``is_packed``: compressed, for who has PACKED_SHAPES."""
        payload = to_toml(self.declared).encode()
        return ShapeAnnounced(
            version=self.version,
            trees=list(self.tree_versions.items()),
            down=[(min(pair), max(pair)) for pair in self.down],
            lost=list(self.lost),
            payload=compress(payload, Compression.ZLIB) if is_packed else payload,
            away=sorted(self.away),
        )

    @classmethod
    def from_announced(cls, frame: ShapeAnnounced) -> NetworkShape:
        """TopologyError when it is none."""
        file = f"version {frame.version} of the network"
        try:
            declared = _declared(frame.payload)
        except TopologyError as error:
            raise TopologyError(file, error.key, error.reason) from None
        down = frozenset(frozenset(pair) for pair in frame.down)
        if set(dict(frame.trees)) != set(declared.broker_ids) or not is_connected(declared, down):
            raise TopologyError(file, "", "its trees are not those of its brokers and links")
        away = frozenset(frame.away)
        return cls(frame.version, declared, dict(frame.trees), down, tuple(frame.lost), away)


# PERF: most versions differ in links that are down, and all brokers tell the same when a catalog is
# rebuilt; to read a topology of 1,000 brokers takes 0.2 s.
@lru_cache(maxsize=4)
def _declared(payload: bytes) -> Topology:
    try:
        if payload.startswith(_ZLIB):
            payload = decompress(payload, Compression.ZLIB, TEXT_BYTES_MAX)
        return parse_topology(payload.decode(), "")
    except FormatError as error:
        raise TopologyError("", "", str(error)) from None
    except UnicodeDecodeError:
        raise TopologyError("", "", "is not UTF-8") from None


class ShapeRow(Row, frozen=True):
    """A version of the shape as it is stored; ``down`` has the two ends of each link."""

    declared: str
    trees: Mapping[str, int]
    down: list[list[str]]
    lost: tuple[str, ...]
    away: tuple[str, ...] = ()


SHAPE = Table("shape", ShapeRow)
"""By version."""


class ReachedRow(Row, frozen=True):
    """How far a broker has come."""

    version: int
    stage: int


def first_shape(topology: Topology) -> NetworkShape:
    """The version that a network starts with."""
    return NetworkShape(0, topology, dict.fromkeys(topology.broker_ids, 0))


def next_shape(
    before: NetworkShape,
    declared: Topology,
    down: Iterable[Pair] = (),
    lost: Iterable[str] = (),
    away: Iterable[str] = (),
) -> NetworkShape:
    """The version after ``before``; a root broker whose tree is the same keeps its name.

    The links that are left must connect all brokers (``is_connected``).
    """
    links = {frozenset(link.ends) for link in declared.links}
    kept_down = frozenset(pair for pair in down if pair in links)
    version = before.version + 1
    topology = without_links(declared, kept_down)
    kept_away = frozenset(away)
    earlier = broadcast_trees(before.topology, before.away)
    versions = {
        root: before.tree_versions[root]
        if root in earlier and earlier[root].parent == tree.parent
        else version
        for root, tree in broadcast_trees(topology, kept_away).items()
    }
    return NetworkShape(version, declared, versions, kept_down, tuple(lost), kept_away)


def is_connected(topology: Topology, down: Iterable[Pair] = ()) -> bool:
    """Whether every broker reaches every other without the links that are down."""
    return not cut_off(topology, down)


def is_connected_without(topology: Topology, away: Iterable[str], down: Iterable[Pair]) -> bool:
    """Whether the brokers that are not away reach each other without those that are."""
    for broker in away:
        topology = without_broker(topology, broker)
    return is_connected(topology, down)


def cut_off(topology: Topology, down: Iterable[Pair] = ()) -> list[str]:
    """The brokers that are not in the largest part whose brokers reach each other."""
    left = without_links(topology, frozenset(down))
    largest: set[str] = set()
    rest = set(left.broker_ids)
    while len(rest) > len(largest):
        reached = {min(rest)}
        frontier = list(reached)
        for broker in frontier:
            new = [other for other in left.neighbours(broker) if other not in reached]
            reached.update(new)
            frontier += new
        rest -= reached
        largest = max(largest, reached, key=len)
    return [broker for broker in left.broker_ids if broker not in largest]


def kept_down(now: NetworkShape, declared: Topology) -> list[Pair]:
    """The links that stay out of use, as far as a changed network is connected without them."""
    links = {frozenset(link.ends) for link in declared.links}
    down: list[Pair] = []
    for pair in sorted(now.down & links, key=sorted):
        if is_connected(declared, [*down, pair]):
            down.append(pair)
    return down


def without_broker(topology: Topology, broker: str) -> Topology:
    """The same network without a broker and its links; perhaps no longer connected."""
    return structs.replace(
        topology,
        brokers=tuple(each for each in topology.brokers if each.id != broker),
        links=tuple(link for link in topology.links if broker not in link.ends),
    )


def without_links(topology: Topology, pairs: frozenset[Pair]) -> Topology:
    """The same network without some links; perhaps no longer connected."""
    if not pairs:
        return topology
    return structs.replace(
        topology,
        links=tuple(link for link in topology.links if frozenset(link.ends) not in pairs),
    )


def refreshed(shape: NetworkShape, file: Topology) -> NetworkShape:
    """A version from the store with what a process was started with: addresses, capacities,
    formats and limits may have changed while it was down, brokers and links have not."""
    brokers = {broker.id: broker for broker in file.brokers}
    links = {frozenset(link.ends): link for link in file.links}
    declared = structs.replace(
        shape.declared,
        data_directory=file.data_directory,
        registration=file.registration,
        limits=file.limits,
        archive=file.archive,
        log=file.log,
        planning=file.planning,
        stores=file.stores,
        admin=file.admin,
        brokers=tuple(brokers.get(broker.id, broker) for broker in shape.declared.brokers),
        links=tuple(
            structs.replace(links.get(frozenset(link.ends), link), latency_ms=link.latency_ms)
            for link in shape.declared.links
        ),
    )
    return replace(shape, declared=declared)
