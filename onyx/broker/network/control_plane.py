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

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import cast

from formats import (
    EMPTY_DICTIONARY,
    Dictionary,
    DictionaryLookup,
    Schema,
    SchemaKind,
    Validation,
    derive_dictionary,
)
from formats.graph.striped import Closure
from onyx.broker.network.gone_sources import GoneSources
from onyx.broker.network.known_shapes import KnownShapes
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.frames import (
    SourceAnnounced,
    SourceChanged,
    SourceGone,
    SourceReady,
    TreeReady,
)
from overlay.link.part import Part
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table
from overlay.routing.branches import Branch
from overlay.routing.broadcast_tree import BroadcastTree
from overlay.topology import Topology
from overlay.tree_name import version_of
from registration.catalog import (
    CHANGES,
    REGISTRATION_KEY,
    SOURCES,
    FormerSchema,
    SourceEntry,
    announcement,
    entry_of,
    values_of,
)


@dataclass(frozen=True, slots=True)
class _AwaitedRow:
    """The children whose TreeReady is missing for a source on a tree."""

    tree: str
    children: set[str]


@dataclass(frozen=True, slots=True)
class _CurrentRow:
    tree: str


FORMER_MAX = 2
"""Former schemas of a source that are kept for what neighbours give back: the next update begins
when every broker has the last one.  Older ones are kept as long as messages wait for users here
that may be in their words."""

AWAITED = Table("awaited", _AwaitedRow)
CURRENT = Table("tree-current", _CurrentRow)


class ControlPlane(Part):
    """What one broker knows of the network's shape and of its sources."""

    section = "control"

    def __init__(self, context: CoreContext) -> None:
        self.identity = context.identity
        self.shapes = KnownShapes(context.identity, context.topology, context.rows)
        self.sources: dict[str, SourceEntry] = {}
        self.validated: set[str] = set()  # sources whose messages are held against their schema
        self._links = context.links
        self._rows = context.rows
        self._current = ""  # the tree that messages published here go down, once one is in use
        self.closure: Callable[[str], Closure | None] = _unclosed  # by tree; see taxonomies.py
        self.tell_used: list[Callable[[str], None]] = []  # that tree, before anything goes down it
        self.tell_ready: Callable[[str], None] = lambda source: None
        # source -> the tree it was announced on, and the children whose TreeReady is missing
        self._awaited: dict[str, tuple[str, set[str]]] = {}
        self._dictionaries: dict[str, Dictionary | None] = {}  # by source, of those in use
        self._derived: dict[bytes, Dictionary | None] = {}  # by schema: sources may share one
        self._former: dict[str, Mapping[bytes, Dictionary]] = {}  # by source, of those in use
        self.gone_sources = GoneSources(context.rows)
        self.kept_between: Callable[[], tuple[int, int]] = lambda: (1, 0)
        """The first and the last record of the delivery log."""

    def restore(self, rows: StoredRows) -> None:
        self.shapes.restore(rows)
        self.gone_sources.restore(rows)
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
        tree, children = self._awaited.get(frame.source, ("", set()))
        # The branches of a tree are called by trees that began with the same version.
        if entry is not None and child in children and version_of(frame.root) == version_of(tree):
            self._set_awaited(entry, tree, children - {child})

    def awaited(self) -> list[tuple[str, str, str]]:
        """(source, tree, child) of each TreeReady that is missing."""
        return [
            (source, tree, child)
            for source, (tree, children) in self._awaited.items()
            for child in sorted(children)
        ]

    def go_on_without(self, source: str, child: str) -> None:
        """A child's TreeReady is not waited for."""
        tree, children = self._awaited[source]
        self._set_awaited(self.sources[source], tree, children - {child})

    def has_told(self, branch: Branch) -> bool:
        """Whether a child has said all that it wants on a branch: it was ready there for another
        source."""
        return any(
            entry.ready
            and self.shapes.agreed.tree(entry.root) in branch.roots
            and branch.broker not in self._awaited.get(source, ("", set()))[1]
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
        SOURCES.delete(self._rows, source)
        if self._awaited.pop(source, None) is not None:
            AWAITED.delete(self._rows, source)
        oldest, last = self.kept_between()
        former = self._former_of(entry, None)
        self.gone_sources.add(source, entry.base, former, last, oldest)

    def _tell_changed(self, entry: SourceEntry, tree: str) -> None:
        for child in self.children(tree):
            self._links.send(f"broker/{child}", tree, _change(entry, tree))

    def _former_of(
        self, entry: SourceEntry, now: SourceAnnounced | SourceChanged | None
    ) -> list[FormerSchema]:
        """The schemas that a source has no more; the newest first."""
        oldest, last = self.kept_between()
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

    def _know_source(self, entry: SourceEntry) -> None:
        self.sources[entry.source] = entry
        if entry.validation != Validation.OFF:
            self.validated.add(entry.source)
        else:
            self.validated.discard(entry.source)

    def _put_ready(self, entry: SourceEntry) -> None:
        self._put_source(replace(entry, ready=True))
        self.tell_ready(entry.source)

    def _put_source(self, entry: SourceEntry) -> None:
        self._know_source(entry)
        SOURCES.put(self._rows, entry.source, entry.row())


def _unclosed(tree: str) -> None:
    """No taxonomy says anything."""


def _changed(
    entry: SourceEntry, frame: SourceAnnounced | SourceChanged, former: Iterable[FormerSchema]
) -> SourceEntry:
    values = values_of(frame, CHANGES)
    return replace(entry, **values, schema=frame.payload, former=tuple(former))


def _change(entry: SourceEntry, tree: str) -> SourceChanged:
    values = values_of(entry, CHANGES)
    return SourceChanged(root=tree, source=entry.source, **values, payload=entry.schema)


def _schema_of(entry: SourceEntry) -> Schema:
    return Schema(entry.schema_name, cast(SchemaKind, entry.schema_kind), entry.schema)
