"""Control plane: broadcast trees and the catalog of data sources (sections 3.2 and 5 of the paper).

A source's entry reaches every broker along the tree of its root broker; on the way back every
broker first sends up what it and its children want (query plane), then ``TreeReady``.  When the
root has heard from all its children, no broker's interest is missing, and the source may publish:

::

    registration ──SourceAnnounced──> root ──> children ──> ... ──> leaves
    registration <──SourceReady────── root <── TreeReady (behind the RoutingDelta) ── leaves

A source that is changed or removed goes down the same tree, but on the message flow
(``SourceChanged``, ``SourceGone``): so at every broker a message comes ahead of the change if it
was accepted before it.  ``TreeReady`` answers a change as it answers an entry.

A tree is known by its name, which is that of its root broker until the network's shape changes it
(overlay/network_shape.py).  A broker that joins has the entries of all sources from the
registration service before any tree has it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import cast

from msgspec.structs import replace

from formats import (
    EMPTY_DICTIONARY,
    Dictionary,
    DictionaryLookup,
    Schema,
    SchemaKind,
    Validation,
    derive_dictionary,
)
from overlay import verbs
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredMap, StoredValue
from overlay.link.frames import (
    ShapeAnnounced,
    SourceAnnounced,
    SourceChanged,
    SourceGone,
    SourceReady,
    TreeReady,
)
from overlay.link.part import Part
from overlay.link.principal import Principal
from overlay.link.request_server import RequestRefused
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.network_shape import SHAPE, NetworkShape, first_shape, refreshed
from overlay.nodes import Addresses, Link
from overlay.routing.branches import Branch, Branches
from overlay.routing.broadcast_tree import BroadcastTree
from overlay.settings import settings_of
from overlay.statistics import BrokerStatistics, Control
from overlay.topology import Topology
from overlay.tree_name import root_of, version_of
from registration.catalog import (
    REGISTRATION_KEY,
    SOURCES,
    FormerSchema,
    SourceEntry,
    announcement,
    entry_of,
)

# -------------------------------------------------------------------------------------------------
# GoneSources: what a broker has still to know of sources that are gone.
#
# Whoever looks for the watershed of a move (moves/watersheds.py) must know that all messages of
# such a source have come.  And messages may wait for users, in the words of its schemas, or as
# graphs with relative IRIs.


GONE_MAX = 256  # sources of which no message waits; who went earlier is forgotten


class _GoneRow(Row, frozen=True):
    """``order`` grows; ``former`` as in SourceEntry."""

    order: int
    base: str
    former: list[FormerSchema]

    def waits(self, oldest: int) -> bool:
        """Whether a message may wait, the oldest of all having this position."""
        return any(each.position >= oldest for each in self.former)


GONE = Table("source-gone", _GoneRow)


class GoneSources:
    """By id; durable.  Looked through when another goes."""

    def __init__(self, rows: RowLog) -> None:
        self._gone = StoredMap(rows, GONE, lambda row: row.order)  # the oldest first

    def __contains__(self, source: object) -> bool:
        return source in self._gone

    def __iter__(self) -> Iterator[str]:
        return iter(self._gone)

    def add(
        self, source: str, base: str, former: Sequence[FormerSchema], last: int, oldest: int
    ) -> None:
        """What waits for users has positions from ``oldest`` to ``last``."""
        order = 1 + max((row.order for row in self._gone.values()), default=0)
        # Without a schema, too, its messages may wait.
        self._gone[source] = _GoneRow(order, base, [*former, FormerSchema("", b"", last)])
        for place, (name, row) in enumerate(list(self._gone.items())):
            if not row.waits(oldest):
                if place < len(self._gone) - GONE_MAX:
                    self.discard(name)
                elif row.former:
                    self._gone[name] = replace(row, former=[])

    def discard(self, source: str) -> None:
        self._gone.pop(source)

    def base(self, source: str) -> str:
        """What relative IRIs in its graphs are relative to; "" for nothing."""
        row = self._gone.get(source)
        return "" if row is None else row.base

    def former(self, source: str) -> list[FormerSchema]:
        """Its schemas."""
        row = self._gone.get(source)
        found = () if row is None else row.former
        return [each for each in found if each.schema]


# -------------------------------------------------------------------------------------------------
# KnownShapes: the versions of the network's shape that a broker knows, and the trees in them.
#
# A broker keeps the version in force and every later one, until the registration service says that
# an older one is needed nowhere any more (overlay/network_shape.py).  In between a neighbour is a
# neighbour if it is one in any of them, so that links that go can be emptied, and links that come
# be there before they are needed.  Older versions stay only as the origin of trees that have not
# changed since: what a tree is, and which branches it shares, follows from the version that it
# began with.


class _Stages(Row, frozen=True):
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
        self._stages = StoredValue(rows, STAGES, _Stages(0, 0), "versions")
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
        if not stored:
            # The file may be another one at the next start; what this network began with stays.
            self._put(self._shapes[0])
            return
        versions = sorted(stored)
        self.told = stored[versions[-1]].declared
        stored = {v: refreshed(shape, self._started_with) for v, shape in stored.items()}
        settled = self._stages.now.settled
        self._shapes = {v: stored[v] for v in versions if v >= settled}
        self._origins = {v: stored[v] for v in versions if v < settled}
        self._find_lost()

    @property
    def newest(self) -> NetworkShape:
        return next(reversed(self._shapes.values()))

    @property
    def agreed(self) -> NetworkShape:
        """The newest that every broker holds: new trees are those of this one."""
        return self._shapes[self._stages.now.agreed]

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
        return self._stages.now.settled

    @property
    def is_settled(self) -> bool:
        """Whether nothing of before the newest is left anywhere."""
        return self._stages.now.settled == self.newest.version

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
        if version in self._shapes and version > self._stages.now.agreed:
            self._stages.put(_Stages(version, self._stages.now.settled))
            self._find_lost()

    def settle(self) -> None:
        """Nothing of before the version that was agreed on is left anywhere."""
        settled = self._stages.now.agreed
        self._stages.put(_Stages(settled, settled))
        every = self._origins | self._shapes
        needed = {origin for v in every if v >= settled for origin in every[v].origins}
        for old in [v for v in every if v < settled and v not in needed]:
            SHAPE.delete(self._rows, str(old))
            self._branches.pop(old, None)
        self._shapes = {v: every[v] for v in every if v >= settled}
        self._origins = {v: every[v] for v in every if v < settled and v in needed}
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
            if version <= self._stages.now.agreed and shape.has_broker(self._identity)
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
            if version <= self._stages.now.agreed and shape.has_broker(self._identity):
                for other in shape.declared.neighbours(self._identity):
                    if self._identity < other:
                        where[f"broker/{other}"] = shape.declared.broker(other).links_at
        return where

    def _origin(self, tree: str) -> NetworkShape | None:
        """The version that a tree began with."""
        version = version_of(tree)
        shape = self._shapes.get(version) or self._origins.get(version)
        return shape if shape is not None and shape.has_tree(tree) else None

    def _find_lost(self) -> None:
        agreed = [shape for v, shape in self._shapes.items() if v <= self._stages.now.agreed]
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

    def _put(self, shape: NetworkShape) -> None:
        SHAPE.put(self._rows, str(shape.version), shape.row())


def _within(topology: Topology, broker: str, links: int) -> set[str]:
    """The brokers that are so many links away at most."""
    found = {broker} & set(topology.broker_ids)
    for _ in range(links):
        found |= {other for each in found for other in topology.neighbours(each)}
    return found


# -------------------------------------------------------------------------------------------------


class _AwaitedRow(Row, frozen=True):
    """The children whose TreeReady is missing for a source on a tree."""

    tree: str
    children: set[str]


_NONE_AWAITED = _AwaitedRow("", set())


class CurrentTree(Row, frozen=True):
    """Messages published here go down it; announced before the first does."""

    tree: str


FORMER_MAX = 2
"""Former schemas of a source that are kept for what neighbours give back: the next update begins
when every broker has the last one.  Older ones are kept as long as messages wait for users here
that may be in their words."""

AWAITED = Table("awaited", _AwaitedRow)
CURRENT = Table("tree-current", CurrentTree)


class ControlPlane(Part):
    """What one broker knows of the network's shape and of its sources."""

    def __init__(self, context: CoreContext, kept_between: Callable[[], tuple[int, int]]) -> None:
        """``kept_between``: the first and the last record of the delivery log."""
        self.identity = context.identity
        self.shapes = KnownShapes(context.identity, context.topology, context.rows)
        self.sources = StoredMap(context.rows, SOURCES)
        self.validated: set[str] = set()  # sources whose messages are held against their schema
        self._links = context.links
        # The tree that messages published here go down, once one is in use.
        self._current = StoredValue(context.rows, CURRENT, CurrentTree(""), "own")
        self._awaited = StoredMap(context.rows, AWAITED)  # by source
        self._dictionaries: dict[str, Dictionary | None] = {}  # by source, of those in use
        self._derived: dict[bytes, Dictionary | None] = {}  # by schema: sources may share one
        self._former: dict[str, Mapping[bytes, Dictionary]] = {}  # by source, of those in use
        self.gone_sources = GoneSources(context.rows)
        self._kept_between = kept_between

    def restore(self, rows: StoredRows) -> None:
        self.shapes.restore(rows)
        for entry in self.sources.values():
            self._note_validated(entry)

    @property
    def topology(self) -> Topology:
        """The brokers and links in use."""
        return self.shapes.topology

    def check_root(self, source: str) -> None:
        """RequestRefused unless this is the root broker of a source."""
        entry = self.sources.get(source)
        if entry is None or entry.root != self.identity:
            raise RequestRefused("unknown-source", f"no source {source!r} publishes here")

    def source_named(
        self, asked: verbs.ArchiveRead | verbs.SourceAsk, asker: Principal
    ) -> Iterator[tuple[str, str]]:
        """For the check of the right of a verb about a source."""
        entry = self.sources.get(asked.source)
        yield asked.source, "" if entry is None else entry.owner

    @property
    def registration(self) -> str:
        """The registration service as a peer of the link layer."""
        return f"registration/{self.topology.registration[0].id}"

    @property
    def open_trees(self) -> set[str]:
        """The trees of the root brokers that have a source, so that they are in use."""
        trees = {self.shapes.agreed.tree(entry.root) for entry in self.sources.values()}
        return {tree for tree in trees if tree is not None}

    @property
    def current_tree(self) -> str:
        """The tree that messages published here go down."""
        return self._current.now.tree or self.shapes.agreed.tree(self.identity) or self.identity

    @property
    def has_own_tree(self) -> bool:
        """Whether a tree of this broker is in use, as a source publishes here."""
        return self._current.now.tree != ""

    def use_tree(self, tree: str) -> None:
        """What is published here from now on goes down this tree."""
        self._current.put(CurrentTree(tree))
        self.announce(CurrentTree(tree))

    def tree(self, tree: str) -> BroadcastTree:
        """By name; KeyError when there is none (any more)."""
        return self.shapes.tree(tree)

    def parent(self, tree: str) -> str | None:
        """The next broker on the way to the root broker; None at the root itself."""
        return self.tree(tree).parent.get(self.identity)

    def giver(self, tree: str) -> str | None:
        """Who passes messages on to this broker: its parent, or the next above that is left."""
        return self.shapes.above_lost.get(tree) or self.parent(tree)

    def is_past(self, arrival: Arrival) -> bool:
        """Whether a frame from above came past a parent that is lost."""
        return arrival.sender != self.parent(arrival.key)

    def children(self, tree: str) -> tuple[str, ...]:
        return self.tree(tree).children.get(self.identity, ())

    def branch(self, tree: str) -> Branch | None:
        """This broker with all below it on a tree; None at the root."""
        return self.shapes.branch(tree, self.identity)

    def branches_below(self, tree: str) -> list[Branch]:
        """The branches of the children on a tree."""
        return [self.branch_of(child, tree) for child in self.children(tree)]

    def branches(self, trees: Iterable[str]) -> list[Branch]:
        """This broker's different branches on some trees."""
        own = (self.branch(tree) for tree in trees)
        return list(dict.fromkeys(branch for branch in own if branch is not None))

    def branches_beside(self, own: Branch, trees: Iterable[str]) -> list[Branch]:
        """All different branches that hang on the parent of ``own`` on some trees, it included."""
        beside = (
            self.shapes.branch(tree, child)
            for tree in trees
            for child in self.tree(tree).children.get(own.parent, ())
        )
        return list(dict.fromkeys(branch for branch in beside if branch is not None))

    def branch_of(self, child: str, tree: str) -> Branch:
        """The branch of a child on a tree; KeyError if it is none there."""
        branch = self.shapes.branch(tree, child)
        if branch is None or branch.parent != self.identity:
            raise KeyError(child)
        return branch

    def hop_towards(self, tree: str, broker: str) -> str:
        """The child on a tree through which another broker is reached."""
        return self.tree(tree).next_hop_towards(self.identity, broker)

    def dictionary_of(self, source: str) -> Dictionary | None:
        """What follows from a source's schema; None without a source or a schema.

        Derived when first asked for, so that a broker pays for it only on the way of a dictionary
        form.
        """
        entry = self.sources.get(source)
        if entry is None or not entry.schema:
            return None
        if source not in self._dictionaries:
            self._dictionaries[source] = self._derive(entry.schema_kind, entry.schema)
        return self._dictionaries[source]

    def words_of(self, source: str) -> DictionaryLookup:
        """The dictionaries in whose words messages of a source may be."""
        known = self.dictionary_of(source)

        def find(version: bytes) -> Dictionary | None:
            if known is not None and known.version == version:
                return known
            if version == EMPTY_DICTIONARY.version:
                return EMPTY_DICTIONARY  # it may have had no schema before
            return self._former_words(source).get(version)

        return find

    def base_of(self, source: str) -> str:
        """What relative IRIs in the graphs of a source are relative to, "" for nothing; also of one
        that is gone, whose last messages may wait for users."""
        entry = self.sources.get(source)
        return self.gone_sources.base(source) if entry is None else entry.base

    def _former_words(self, source: str) -> Mapping[bytes, Dictionary]:
        if source not in self._former:
            entry = self.sources.get(source)
            former = self.gone_sources.former(source) if entry is None else entry.former
            found = (self._derive(each.kind, each.schema) for each in former)
            self._former[source] = {words.version: words for words in found if words is not None}
        return self._former[source]

    def _derive(self, kind: str, schema: bytes) -> Dictionary | None:
        key = sha256(kind.encode() + b" " + schema).digest()
        if key not in self._derived:
            self._derived[key] = derive_dictionary(Schema("", cast(SchemaKind, kind), schema))
        return self._derived[key]

    def schema_of(self, source: str) -> Schema:
        """Of a source that has one."""
        return _schema_of(self.sources[source])

    def is_ready(self, source: str) -> bool:
        """Whether everybody below has said what they want of a source, or is not waited for; of one
        that is gone nothing is waited for."""
        entry = self.sources.get(source)
        return source in self.gone_sources if entry is None else entry.ready

    def add_source(self, frame: SourceAnnounced, tree: str) -> SourceEntry | None:
        """Take a source into the catalog and pass it on along ``tree``; None at the root broker
        when it is known already.

        A source that was not ready when its tree changed is announced once more, on the new one,
        and one that gets another root broker with that.
        """
        entry = self.sources.get(frame.source)
        if entry is not None and entry.root == self.identity == frame.root:
            return None
        if entry is None or entry.root != frame.root:
            entry = entry_of(frame)
            self._forget_words(frame.source)
            self.gone_sources.discard(frame.source)
        self._put_source(entry)
        for child in self.children(tree):
            self._links.send(f"broker/{child}", tree, frame)
        return entry

    def change_source(
        self, frame: SourceAnnounced | SourceChanged, tree: str
    ) -> SourceEntry | None:
        """A source is in another version from here on, also below on ``tree``; None where there
        is no such source."""
        entry = self.sources.get(frame.source)
        if entry is None:
            return None
        if frame.version > entry.version:
            entry = _changed(entry, frame, self._former_of(entry, frame))
            self._forget_words(frame.source)
            self._put_source(entry)
        self._tell_changed(entry, tree)
        return entry

    def forget_source(self, source: str, tree: str) -> None:
        """It publishes no more, and its last message has come; also below on ``tree``."""
        for child in self.children(tree):
            self._links.send(f"broker/{child}", tree, SourceGone(root=tree, source=source))
        entry = self.sources.get(source)
        if entry is not None:
            self._drop(entry)

    def learn_source(self, frame: SourceAnnounced, ended: str = "") -> None:
        """Another root broker's source, of which nobody waits to hear: this broker has joined after
        it was announced, or the tree has ``ended``, that those below have it by as well."""
        if frame.source not in self.sources:
            self._put_ready(entry_of(frame))
            for child in self.children(ended) if self.shapes.knows(ended) else ():
                self._links.send(f"broker/{child}", ended, frame)

    def in_force(self, entry: SourceEntry) -> int:
        """The version of a source of this root broker that every broker is known to have."""
        return entry.version - (entry.source in self._awaited)

    def await_children(self, entry: SourceEntry, tree: str) -> None:
        """Begin to wait for the children's TreeReady; to be called when this broker's own
        interests are on their way up."""
        self._set_awaited(entry, tree, set(self.children(tree)))

    def handle_tree_ready(self, frame: TreeReady, child: str) -> None:
        entry = self.sources.get(frame.source)
        row = self._awaited.get(frame.source, _NONE_AWAITED)
        # The branches of a tree are called by trees that began with the same version.
        if entry is None or child not in row.children:
            return
        if version_of(frame.root) == version_of(row.tree):
            self._set_awaited(entry, row.tree, row.children - {child})

    def awaited(self) -> list[tuple[str, str, str]]:
        """(source, tree, child) of each TreeReady that is missing."""
        return [
            (source, row.tree, child)
            for source, row in self._awaited.items()
            for child in sorted(row.children)
        ]

    def go_on_without(self, source: str, child: str) -> None:
        """A child's TreeReady is not waited for."""
        row = self._awaited[source]
        self._set_awaited(self.sources[source], row.tree, row.children - {child})

    def has_told(self, branch: Branch) -> bool:
        """Whether a child has said all that it wants on a branch: it was ready there for another
        source."""
        return any(
            entry.ready
            and self.shapes.agreed.tree(entry.root) in branch.roots
            and branch.broker not in self._awaited.get(source, _NONE_AWAITED).children
            for source, entry in self.sources.items()
        )

    def drop_sources(self, roots: Collection[str]) -> None:
        """Root brokers are lost, and their sources with them."""
        for entry in [entry for entry in self.sources.values() if entry.root in roots]:
            self._drop(entry)

    def announce_again(self, tree: str) -> None:
        """The tree of this root broker is another from now on: sources for which the old one was
        not ready yet need the new one, and all where it goes round a broker that may not have told
        those behind it of them."""
        is_round = bool(self.shapes.away_from(tree))
        for entry in list(self.sources.values()):
            is_done = entry.ready and entry.source not in self._awaited
            if entry.root != self.identity or (is_done and not is_round):
                continue
            if not entry.ready or is_round:
                for child in self.children(tree):
                    self._links.send(f"broker/{child}", tree, announcement(entry))
            if entry.ready and not is_done:
                self._tell_changed(entry, tree)
            self.await_children(entry, tree)

    def report(self, said: BrokerStatistics) -> None:
        derived = sum(known is not None for known in self._derived.values())
        said.control = Control(len(self.sources), derived)

    def _set_awaited(self, entry: SourceEntry, tree: str, children: set[str]) -> None:
        if children:
            self._awaited[entry.source] = _AwaitedRow(tree, children)
            return
        self._awaited.pop(entry.source)
        self._report_ready(entry, tree)

    def _report_ready(self, entry: SourceEntry, tree: str) -> None:
        """This broker's whole subtree is ready for the source."""
        self._put_ready(entry)
        branch = self.branch(tree)
        if branch is None:
            said = SourceReady(source=entry.source, version=entry.version)
            self._links.send(self.registration, REGISTRATION_KEY, said)
        else:
            # Behind the routing query, which is on the channel of the branch.
            ready = TreeReady(root=branch.name, source=entry.source)
            self._links.send(f"broker/{branch.parent}", branch.name, ready)

    def _drop(self, entry: SourceEntry) -> None:
        """There is no such source any more; messages of it may wait for users."""
        source = entry.source
        del self.sources[source]
        self.validated.discard(source)
        self._forget_words(source)
        self._awaited.pop(source)
        oldest, last = self._kept_between()
        former = self._former_of(entry, None)
        self.gone_sources.add(source, entry.base, former, last, oldest)

    def _tell_changed(self, entry: SourceEntry, tree: str) -> None:
        for child in self.children(tree):
            self._links.send(f"broker/{child}", tree, _change(entry, tree))

    def _former_of(
        self, entry: SourceEntry, now: SourceAnnounced | SourceChanged | None
    ) -> list[FormerSchema]:
        """The schemas that a source has no more; the newest first."""
        oldest, last = self._kept_between()
        is_another = now is None or (entry.schema_kind, entry.schema) != (
            now.schema_kind,
            now.payload,
        )
        own = [FormerSchema(entry.schema_kind, entry.schema, last)]
        former = [*(own if entry.schema and is_another else ()), *entry.former]
        return [
            each
            for place, each in enumerate(former)
            if each.position >= oldest or place < FORMER_MAX
        ]

    def _forget_words(self, source: str) -> None:
        self._dictionaries.pop(source, None)
        self._former.pop(source, None)

    def _note_validated(self, entry: SourceEntry) -> None:
        if entry.validation != Validation.OFF:
            self.validated.add(entry.source)
        else:
            self.validated.discard(entry.source)

    def _put_ready(self, entry: SourceEntry) -> None:
        self._put_source(replace(entry, ready=True))
        self.announce(SourceReady(entry.source, entry.version))

    def _put_source(self, entry: SourceEntry) -> None:
        self.sources[entry.source] = entry
        self._note_validated(entry)


def _changed(
    entry: SourceEntry, frame: SourceAnnounced | SourceChanged, former: Iterable[FormerSchema]
) -> SourceEntry:
    told = settings_of(frame, SourceChanged)
    told.update(schema=told.pop("payload"), former=tuple(former), root=entry.root)
    return replace(entry, **told)


def _change(entry: SourceEntry, tree: str) -> SourceChanged:
    values = settings_of(entry, SourceChanged)
    return SourceChanged(**{**values, "root": tree, "payload": entry.schema})


def _schema_of(entry: SourceEntry) -> Schema:
    return Schema(entry.schema_name, cast(SchemaKind, entry.schema_kind), entry.schema)
