"""KnownShapes: the versions of the network's shape that a broker knows, and the trees in them.

A broker keeps the version in force and every later one, until the registration service says that
an older one is needed nowhere any more (overlay/network_shape.py).  In between a neighbour is a
neighbour if it is one in any of them, so that links that go can be emptied, and links that come be
there before they are needed.  Older versions stay only as the origin of trees that have not changed
since: what a tree is, and which branches it shares, follows from the version that it began with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from overlay.link.frames import ShapeAnnounced
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table
from overlay.network_shape import SHAPE, NetworkShape, first_shape, refreshed
from overlay.nodes import Addresses, Link
from overlay.routing.branches import Branch, Branches
from overlay.routing.broadcast_tree import BroadcastTree
from overlay.topology import Topology
from overlay.tree_name import root_of, version_of


@dataclass(frozen=True, slots=True)
class _Stages:
    """The versions that every broker holds, and before which nothing is left."""

    agreed: int
    settled: int


STAGES = Table("shape-agreed", _Stages)


class KnownShapes:
    """By version, oldest first; durable."""

    def __init__(self, identity: str, topology: Topology, rows: RowLog) -> None:
        """``topology`` is what the process was started with."""
        self._identity = identity
        self._rows = rows
        self._started_with = topology
        self.told = topology
        """The newest as the network was told of it, with its settings."""
        self._shapes = {0: first_shape(topology)}  # in use or to come
        self._origins: dict[int, NetworkShape] = {}  # older ones of which trees are left
        self._agreed = self._settled = 0
        self._trees: dict[str, BroadcastTree] = {}  # by name, as asked for
        self._links: dict[tuple[str, str], Link] = {}  # by their ends, as asked for
        self.lost: set[str] = set()  # brokers that others may wait for, and nothing comes from
        self._branches: dict[int, Branches] = {}  # by the version that the trees began with
        self.above_lost: dict[str, str] = {}
        """Tree -> the next that is left above a parent that is lost, or gone round."""
        self.below_lost: dict[str, dict[str, tuple[str, ...]]] = {}
        """Tree -> child of this broker that is lost, or gone round -> the next that are left below
        it."""

    def restore(self, rows: StoredRows) -> None:
        stored = {}
        for key, row in rows.take(SHAPE):
            stored[int(key)] = NetworkShape.from_row(int(key), row)
        for _, stages in rows.take(STAGES):
            self._agreed, self._settled = stages.agreed, stages.settled
        if not stored:
            # The file may be another one at the next start; what this network began with stays.
            self._put(self._shapes[0])
            return
        versions = sorted(stored)
        self.told = stored[versions[-1]].declared
        stored = {v: refreshed(shape, self._started_with) for v, shape in stored.items()}
        self._shapes = {v: stored[v] for v in versions if v >= self._settled}
        self._origins = {v: stored[v] for v in versions if v < self._settled}
        self._find_lost()

    @property
    def newest(self) -> NetworkShape:
        return next(reversed(self._shapes.values()))

    @property
    def agreed(self) -> NetworkShape:
        """The newest that every broker holds: new trees are those of this one."""
        return self._shapes[self._agreed]

    def is_away(self, broker: str) -> bool:
        """Whether any version that is in use or to come goes round a broker."""
        return any(broker in shape.away for shape in self._shapes.values())

    def away_from(self, tree: str) -> frozenset[str]:
        """The brokers that a tree was made to go round."""
        shape = self._origin(tree)
        return frozenset() if shape is None else shape.away

    @property
    def in_use(self) -> list[NetworkShape]:
        """All that are in use or to come, oldest first."""
        return list(self._shapes.values())

    @property
    def settled(self) -> int:
        """The version before which nothing is left anywhere."""
        return self._settled

    @property
    def is_settled(self) -> bool:
        """Whether nothing of before the newest is left anywhere."""
        return self._settled == self.newest.version

    @property
    def topology(self) -> Topology:
        return self.agreed.topology

    def add(self, frame: ShapeAnnounced) -> None:
        """A version that the registration service has announced; TopologyError when it is none."""
        shape = NetworkShape.from_announced(frame)
        self._shapes[shape.version] = shape
        self.told = shape.declared
        self._links.clear()
        self._put(shape)

    def agree(self, version: int) -> None:
        """Every broker holds a version."""
        if version in self._shapes and version > self._agreed:
            self._agreed = version
            self._find_lost()
            self._put_stages()

    def settle(self) -> None:
        """Nothing of before the version that was agreed on is left anywhere."""
        self._settled = self._agreed
        self._put_stages()
        every = self._origins | self._shapes
        needed = {origin for v in every if v >= self._settled for origin in every[v].origins}
        for old in [v for v in every if v < self._settled and v not in needed]:
            SHAPE.delete(self._rows, str(old))
            self._branches.pop(old, None)
        self._shapes = {v: every[v] for v in every if v >= self._settled}
        self._origins = {v: every[v] for v in every if v < self._settled and v in needed}
        self._trees.clear()
        self._links.clear()
        self._find_lost()

    # --- trees and links ------------------------------------------------------------------

    def tree(self, name: str) -> BroadcastTree:
        """KeyError when no version that is known has a tree of this name."""
        tree = self._trees.get(name)
        if tree is None:
            shape = self._origin(name)
            if shape is None:
                raise KeyError(name)
            tree = self._trees[name] = shape.broadcast_tree(root_of(name))
        return tree

    def branch(self, tree: str, broker: str) -> Branch | None:
        """A broker with all below it on a tree; None at the root, KeyError if there is none."""
        version = version_of(tree)
        branches = self._branches.get(version)
        if branches is None:
            shape = self._origin(tree)
            if shape is None:
                raise KeyError(tree)
            ways = shape.ways()
            branches = self._branches[version] = Branches(
                lambda name: ways.tree(root_of(name)),
                shape.new_trees,
                _within(shape.topology, self._identity, 2),
            )
        return branches.of(tree, broker)

    def knows(self, tree: str) -> bool:
        return self._origin(tree) is not None

    def is_alive(self, tree: str) -> bool:
        """Whether a version that is in use or to come has a tree."""
        return any(shape.has_tree(tree) for shape in self._shapes.values())

    def has_broker(self, broker: str) -> bool:
        return any(shape.has_broker(broker) for shape in self._shapes.values())

    def link(self, a: str, b: str) -> Link:
        """Between two brokers, as the newest version that has it says; KeyError."""
        known = self._links.get((a, b))
        if known is not None:
            return known
        for shape in reversed(self._shapes.values()):
            try:
                found = self._links[a, b] = shape.declared.link(a, b)
                return found
            except KeyError:
                continue
        raise KeyError(f"{a} - {b}")

    def neighbours(self) -> set[str]:
        """The brokers that may be at the other end of a connection."""
        return {
            other
            for shape in self._shapes.values()
            if shape.has_broker(self._identity)
            for other in shape.declared.neighbours(self._identity)
        }

    def is_retiring(self, other: str) -> bool:
        """Whether the link to another broker was in use, and is not in the newest shape that was
        agreed on, so that it has only to finish what it has begun."""
        uses = [
            other in shape.topology.neighbours(self._identity)
            for version, shape in self._shapes.items()
            if version <= self._agreed and shape.has_broker(self._identity)
        ]
        is_used = self.agreed.has_broker(self._identity) and uses[-1:] == [True]
        return any(uses) and not is_used

    def dials(self) -> Mapping[str, Addresses]:
        """Whom this broker dials, and where: by peer.  Of two neighbours the one with
        the smaller id dials; a link that is down too, so that it is noticed when it is up."""
        where: dict[str, Addresses] = {
            f"registration/{node.id}": node.links_at for node in self.agreed.declared.registration
        }
        for version, shape in self._shapes.items():
            if version <= self._agreed and shape.has_broker(self._identity):
                for other in shape.declared.neighbours(self._identity):
                    if self._identity < other:
                        where[f"broker/{other}"] = shape.declared.broker(other).links_at
        return where

    def statistics(self) -> dict[str, object]:
        return {
            "shapes": list(self._shapes),
            "agreed": self._agreed,
            "down": [sorted(pair) for pair in sorted(self.agreed.down, key=sorted)],
            "gone_round": sorted(self.agreed.away),
        }

    def _origin(self, tree: str) -> NetworkShape | None:
        """The version that a tree began with."""
        version = version_of(tree)
        shape = self._shapes.get(version) or self._origins.get(version)
        return shape if shape is not None and shape.has_tree(tree) else None

    def _find_lost(self) -> None:
        agreed = [shape for v, shape in self._shapes.items() if v <= self._agreed]
        self.lost = {broker for shape in agreed[1:] for broker in shape.lost}

        self.above_lost.clear()
        self.below_lost.clear()
        away = {broker for shape in agreed[1:] for broker in shape.away}
        names = {n for s in agreed if self.lost or away for n in map(s.tree, s.tree_versions) if n}
        for name in names:
            past = set(self.lost)
            if not self.agreed.has_tree(name):  # a newer one goes round them
                past |= away - self.away_from(name) - {root_of(name)}
            self._look_past(name, self.tree(name), past)

    def _look_past(self, name: str, tree: BroadcastTree, past: set[str]) -> None:
        above = tree.parent.get(self._identity)
        if above in past:
            while above in past:
                above = tree.parent[above]
            if above is not None:
                self.above_lost[name] = above
        for child in tree.children.get(self._identity, ()):
            if child in past:
                below = [child]
                for broker in below:
                    if broker in past:
                        below += tree.children[broker]
                left = tuple(broker for broker in below if broker not in past)
                self.below_lost.setdefault(name, {})[child] = left

    def past_lost(self, tree: str) -> set[str]:
        """The brokers that this one is a parent of on a tree, as those in between are lost."""
        return {broker for below in self.below_lost.get(tree, {}).values() for broker in below}

    @property
    def beside_lost(self) -> set[str]:
        """All that this broker talks to in the place of lost ones."""
        below = {broker for tree in self.below_lost for broker in self.past_lost(tree)}
        return below | set(self.above_lost.values())

    def _put_stages(self) -> None:
        STAGES.put(self._rows, "versions", _Stages(self._agreed, self._settled))

    def _put(self, shape: NetworkShape) -> None:
        SHAPE.put(self._rows, str(shape.version), shape.row())


def _within(topology: Topology, broker: str, links: int) -> set[str]:
    """The brokers that are so many links away at most."""
    found = {broker} & set(topology.broker_ids)
    for _ in range(links):
        found |= {other for each in found for other in topology.neighbours(each)}
    return found
