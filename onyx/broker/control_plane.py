"""Control plane: broadcast trees and the catalog of data sources (sections 3.2 and 5 of the paper).

A source's entry reaches every broker along the tree of its root broker; on the way back every
broker first sends up what it and its children want (query plane), then ``TreeReady``.  When the
root has heard from all its children, no broker's interest is missing, and the source may publish:

::

    registration ──SourceAnnounced──> root ──> children ──> ... ──> leaves
    registration <──SourceReady────── root <── TreeReady (behind the RoutingDelta) ── leaves

A tree is known by its name, which is that of its root broker until the network's shape changes it
(overlay/network_shape.py).  A broker that joins has the entries of all sources from the
registration service before any tree has it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import cast

from formats import Dictionary, Schema, SchemaKind, Validation, derive_dictionary
from formats.graph.striping import Closure
from onyx.broker.known_shapes import KnownShapes
from overlay.link.frames import SourceAnnounced, SourceReady, TreeReady
from overlay.link.link_layer import LinkLayer
from overlay.link.part import Part
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table
from overlay.routing.branches import Branch
from overlay.routing.broadcast_tree import BroadcastTree
from overlay.topology import Topology
from overlay.tree_name import version_of
from registration.catalog import REGISTRATION_KEY, SOURCES, SourceEntry, announcement


@dataclass(frozen=True, slots=True)
class _AwaitedRow:
    """The children whose TreeReady is missing for a source on a tree."""

    tree: str
    children: set[str]


@dataclass(frozen=True, slots=True)
class _CurrentRow:
    tree: str


AWAITED = Table("awaited", _AwaitedRow)
CURRENT = Table("tree-current", _CurrentRow)


class ControlPlane(Part):
    """What one broker knows of the network's shape and of its sources."""

    section = "control"

    def __init__(self, identity: str, topology: Topology, links: LinkLayer, rows: RowLog) -> None:
        self.identity = identity
        self.shapes = KnownShapes(identity, topology, rows)
        self.sources: dict[str, SourceEntry] = {}
        self.validated: set[str] = set()  # sources whose messages are held against their schema
        self._links = links
        self._rows = rows
        self._current = ""  # the tree that messages published here go down, once one is in use
        self.closure: Callable[[str], Closure | None] = _unclosed  # by tree; see taxonomies.py
        self.tell_used: list[Callable[[str], None]] = []  # that tree, before anything goes down it
        # source -> the tree it was announced on, and the children whose TreeReady is missing
        self._awaited: dict[str, tuple[str, set[str]]] = {}
        self._dictionaries: dict[str, Dictionary | None] = {}  # by source, of those in use
        self._derived: dict[bytes, Dictionary | None] = {}  # by schema: sources may share one

    def restore(self, rows: StoredRows) -> None:
        self.shapes.restore(rows)
        for source, row in rows.take(SOURCES):
            self._know_source(SourceEntry.from_row(source, row))
        for source, awaited in rows.take(AWAITED):
            self._awaited[source] = awaited.tree, awaited.children
        for _, current in rows.take(CURRENT):
            self._current = current.tree

    @property
    def topology(self) -> Topology:
        """The brokers and links in use."""
        return self.shapes.topology

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
        return self._current or self.shapes.agreed.tree(self.identity) or self.identity

    @property
    def has_own_tree(self) -> bool:
        """Whether a tree of this broker is in use, as a source publishes here."""
        return self._current != ""

    def use_tree(self, tree: str) -> None:
        """What is published here from now on goes down this tree."""
        self._current = tree
        CURRENT.put(self._rows, "own", _CurrentRow(tree))
        for tell in self.tell_used:
            tell(tree)

    def tree(self, tree: str) -> BroadcastTree:
        """By name; KeyError when there is none (any more)."""
        return self.shapes.tree(tree)

    def parent(self, tree: str) -> str | None:
        """The next broker on the way to the root broker; None at the root itself."""
        return self.tree(tree).parent.get(self.identity)

    def children(self, tree: str) -> tuple[str, ...]:
        children = self.tree(tree).children.get(self.identity, ())
        lost = self.shapes.lost
        return tuple(child for child in children if child not in lost) if lost else children

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
            key = sha256(entry.schema_kind.encode() + b" " + entry.schema).digest()
            if key not in self._derived:
                self._derived[key] = derive_dictionary(_schema_of(entry))
            self._dictionaries[source] = self._derived[key]
        return self._dictionaries[source]

    def schema_of(self, source: str) -> Schema:
        """Of a source that has one."""
        return _schema_of(self.sources[source])

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
            entry = _entry_of(frame)
        self._put_source(entry)
        for child in self.children(tree):
            self._links.send(f"broker/{child}", tree, frame)
        return entry

    def learn_source(self, frame: SourceAnnounced) -> None:
        """Another root broker's source, from the registration service: this broker has joined
        after it was announced."""
        if frame.source not in self.sources:
            self._put_source(replace(_entry_of(frame), ready=True))

    def await_children(self, entry: SourceEntry, tree: str) -> None:
        """Begin to wait for the children's TreeReady; to be called when this broker's own
        interests are on their way up."""
        self._set_awaited(entry, tree, set(self.children(tree)))

    def handle_tree_ready(self, frame: TreeReady, child: str) -> None:
        entry = self.sources.get(frame.source)
        tree, children = self._awaited.get(frame.source, ("", set()))
        # The branches of a tree are called by trees that began with the same version.
        if entry is not None and child in children and version_of(frame.root) == version_of(tree):
            self._set_awaited(entry, tree, children - {child})

    def drop_sources(self, roots: Collection[str]) -> None:
        """Root brokers are lost, and their sources with them."""
        for source in [s for s, entry in self.sources.items() if entry.root in roots]:
            del self.sources[source]
            self.validated.discard(source)
            SOURCES.delete(self._rows, source)
            if self._awaited.pop(source, None) is not None:
                AWAITED.delete(self._rows, source)

    def announce_again(self, tree: str) -> None:
        """The tree of this root broker is another from now on: sources for which the old one was
        not ready yet need the new one."""
        for entry in list(self.sources.values()):
            if entry.root == self.identity and not entry.ready:
                for child in self.children(tree):
                    self._links.send(f"broker/{child}", tree, announcement(entry))
                self.await_children(entry, tree)

    def statistics(self) -> Mapping[str, object]:
        return {
            "sources": len(self.sources),
            "open_trees": len(self.open_trees),
            "dictionaries": sum(known is not None for known in self._derived.values()),
            "awaited_children": sum(len(children) for _, children in self._awaited.values()),
            **self.shapes.statistics(),
        }

    def _set_awaited(self, entry: SourceEntry, tree: str, children: set[str]) -> None:
        if children:
            self._awaited[entry.source] = tree, children
            AWAITED.put(self._rows, entry.source, _AwaitedRow(tree, children))
            return
        self._awaited.pop(entry.source, None)
        AWAITED.delete(self._rows, entry.source)
        self._report_ready(entry, tree)

    def _report_ready(self, entry: SourceEntry, tree: str) -> None:
        """This broker's whole subtree is ready for the source."""
        self._put_source(replace(entry, ready=True))
        branch = self.branch(tree)
        if branch is None:
            self._links.send(self.registration, REGISTRATION_KEY, SourceReady(source=entry.source))
        else:
            # Behind the routing query, which is on the channel of the branch.
            ready = TreeReady(root=branch.name, source=entry.source)
            self._links.send(f"broker/{branch.parent}", branch.name, ready)

    def _know_source(self, entry: SourceEntry) -> None:
        self.sources[entry.source] = entry
        if entry.validation != Validation.OFF:
            self.validated.add(entry.source)

    def _put_source(self, entry: SourceEntry) -> None:
        self._know_source(entry)
        SOURCES.put(self._rows, entry.source, entry.row())


def _unclosed(tree: str) -> None:
    """No taxonomy says anything."""


def _entry_of(frame: SourceAnnounced) -> SourceEntry:
    return SourceEntry(
        source=frame.source,
        name=frame.name,
        root=frame.root,
        location=frame.location,
        rate=frame.rate,
        size=frame.size,
        schema_name=frame.schema_name,
        schema_kind=frame.schema_kind,
        validation=frame.validation,
        compression=tuple(frame.compression),
        schema=frame.payload,
        owner=frame.owner,
        base=frame.base,
    )


def _schema_of(entry: SourceEntry) -> Schema:
    return Schema(entry.schema_name, cast(SchemaKind, entry.schema_kind), entry.schema)
