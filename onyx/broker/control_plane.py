"""Control plane: broadcast trees and the catalog of data sources (sections 3.2 and 5 of the paper).

A source's entry reaches every broker along the tree of its root broker; on the way back every
broker first sends up what it and its children want (query plane), then ``TreeReady``.  When the
root has heard from all its children, no broker's interest is missing, and the source may publish:

::

    registration ──SourceAnnounced──> root ──> children ──> ... ──> leaves
    registration <──SourceReady────── root <── TreeReady (behind the RoutingDelta) ── leaves
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import cast

from formats import Dictionary, Schema, SchemaKind, Validation, Validator, derive_dictionary
from overlay.link.frames import SourceAnnounced, SourceReady, TreeReady
from overlay.link.link_layer import LinkLayer
from overlay.link.row_log import RowLog, read_record
from overlay.routing.branches import Branch, Branches
from overlay.routing.broadcast_tree import BroadcastTree, broadcast_tree
from overlay.topology import Topology
from registration.catalog import REGISTRATION_KEY, SOURCE_SPACE, SourceEntry

AWAITED_SPACE = "awaited"


class ControlPlane:
    """What one broker knows of the network's shape and of its sources."""

    def __init__(self, identity: str, topology: Topology, links: LinkLayer, rows: RowLog) -> None:
        self.identity = identity
        self.topology = topology
        self.sources: dict[str, SourceEntry] = {}
        self._links = links
        self._rows = rows
        self._awaited: dict[str, set[str]] = {}  # source -> children whose TreeReady is missing
        self._tree = cache(lambda root: broadcast_tree(topology, root))
        self._branches = Branches(self._tree, topology.broker_ids)
        self._dictionaries: dict[str, Dictionary | None] = {}  # by source, of those in use
        self._validators: dict[str, Validator] = {}
        self._derived: dict[bytes, Dictionary | None] = {}  # by schema: sources may share one

    def restore(self, rows: Iterable[tuple[str, str, bytes]]) -> None:
        for space, key, value in rows:
            if space == SOURCE_SPACE:
                self.sources[key] = SourceEntry.from_record(key, read_record(value))
            elif space == AWAITED_SPACE:
                self._awaited[key] = set(read_record(value)["children"])

    @property
    def registration(self) -> str:
        """The registration service as a peer of the link layer."""
        return f"registration/{self.topology.registration[0].id}"

    @property
    def open_roots(self) -> set[str]:
        """The root brokers that have a source, so that their trees are in use."""
        return {entry.root for entry in self.sources.values()}

    def tree(self, root: str) -> BroadcastTree:
        return self._tree(root)

    def parent(self, root: str) -> str | None:
        """The next broker on the way to the root broker; None at the root itself."""
        return self.tree(root).parent[self.identity]

    def children(self, root: str) -> tuple[str, ...]:
        return self.tree(root).children[self.identity]

    def branch(self, root: str) -> Branch | None:
        """This broker with all below it on a root broker's tree; None at the root itself."""
        return self._branches.of(root, self.identity)

    def branches_below(self, root: str) -> list[Branch]:
        """The branches of the children on a root broker's tree."""
        return [self.branch_of(child, root) for child in self.children(root)]

    def branches(self, roots: Iterable[str]) -> list[Branch]:
        """This broker's different branches on some trees."""
        own = (self.branch(root) for root in roots)
        return list(dict.fromkeys(branch for branch in own if branch is not None))

    def branches_beside(self, own: Branch, roots: Iterable[str]) -> list[Branch]:
        """All different branches that hang on the parent of ``own`` on some trees, it included."""
        beside = (
            self._branches.of(root, child)
            for root in roots
            for child in self.tree(root).children[own.parent]
        )
        return list(dict.fromkeys(branch for branch in beside if branch is not None))

    def branch_of(self, child: str, root: str) -> Branch:
        """The branch of a child on a root broker's tree; KeyError if it is none there."""
        branch = self._branches.of(root, child)
        if branch is None or branch.parent != self.identity:
            raise KeyError(child)
        return branch

    def hop_towards(self, root: str, broker: str) -> str:
        """The child on a root broker's tree through which another broker is reached."""
        return self.tree(root).next_hop_towards(self.identity, broker)

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

    def validator_of(self, source: str) -> tuple[Validation, Validator | None]:
        """What to do about invalid messages of a source, and what finds them (None: off)."""
        entry = self.sources.get(source)
        validation = Validation(entry.validation) if entry is not None else Validation.OFF
        if entry is None or validation is Validation.OFF:
            return Validation.OFF, None
        if source not in self._validators:
            self._validators[source] = Validator(_schema_of(entry))
        return validation, self._validators[source]

    def add_source(self, frame: SourceAnnounced) -> SourceEntry | None:
        """Take a source into the catalog and pass it on; None when it was known already."""
        if frame.source in self.sources:
            return None
        entry = SourceEntry(
            source=frame.source,
            name=frame.name,
            root=frame.root,
            location=(frame.location[0], frame.location[1]) if frame.location else None,
            rate=frame.rate,
            size=frame.size,
            schema_name=frame.schema_name,
            schema_kind=frame.schema_kind,
            validation=frame.validation,
            compression=tuple(frame.compression),
            schema=frame.payload,
        )
        self._put_source(entry)
        for child in self.children(entry.root):
            self._links.send(f"broker/{child}", entry.root, frame)
        return entry

    def await_children(self, entry: SourceEntry) -> None:
        """Begin to wait for the children's TreeReady; to be called when this broker's own
        interests are on their way up."""
        self._set_awaited(entry, set(self.children(entry.root)))

    def handle_tree_ready(self, frame: TreeReady, child: str) -> None:
        entry = self.sources.get(frame.source)
        if entry is None or frame.source not in self._awaited:
            return
        self._set_awaited(entry, self._awaited[frame.source] - {child})

    def statistics(self) -> dict[str, int]:
        return {
            "sources": len(self.sources),
            "open_trees": len(self.open_roots),
            "dictionaries": sum(known is not None for known in self._derived.values()),
            "awaited_children": sum(len(children) for children in self._awaited.values()),
        }

    def _set_awaited(self, entry: SourceEntry, children: set[str]) -> None:
        if children:
            self._awaited[entry.source] = children
            self._rows.put(AWAITED_SPACE, entry.source, {"children": sorted(children)})
            return
        self._awaited.pop(entry.source, None)
        self._rows.delete(AWAITED_SPACE, entry.source)
        self._report_ready(entry)

    def _report_ready(self, entry: SourceEntry) -> None:
        """This broker's whole subtree is ready for the source."""
        self._put_source(replace(entry, ready=True))
        branch = self.branch(entry.root)
        if branch is None:
            self._links.send(self.registration, REGISTRATION_KEY, SourceReady(source=entry.source))
        else:
            # Behind the routing query, which is on the channel of the branch.
            ready = TreeReady(root=branch.name, source=entry.source)
            self._links.send(f"broker/{branch.parent}", branch.name, ready)

    def _put_source(self, entry: SourceEntry) -> None:
        self.sources[entry.source] = entry
        self._rows.put(SOURCE_SPACE, entry.source, entry.record())


def _schema_of(entry: SourceEntry) -> Schema:
    return Schema(entry.schema_name, cast(SchemaKind, entry.schema_kind), entry.schema)
