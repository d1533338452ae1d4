"""Watersheds: where the root brokers are in the sequences of their sources.

A host broker sends a marker up each tree that is in use; the root answers with the last number of
each of its sources, behind all messages up to those.  Channels are in order, so when the answer has
come, so has every such message::

    host ──WatershedMarker──> B4 ──WatershedMarker──> B1 (root)       on the query flow
    host <──WatershedReached── B4 <──WatershedReached── B1            on the message flow

The answer comes down the tree that the root uses then, so that it is behind those messages also
when its tree changes meanwhile (tree_versions.py); a marker whose tree has ended is sent once more
up the next.

What is begun with one event shares one marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from onyx.broker.control_plane import ControlPlane
from overlay.link.events import Flow
from overlay.link.frame_fields import CLAIMED_SEQUENCE_MAX
from overlay.link.link_layer import LinkLayer
from overlay.link.move_frames import WatershedMarker, WatershedReached
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table
from overlay.network_shape import root_of, version_of


@dataclass(slots=True)
class Watershed:
    """``numbers`` by source, of the root brokers that have answered; ``waiting``: those that have
    not.

    A source that is not in ``numbers``, of a root that has answered or whose tree was not in use
    when the marker left, has its watershed before its first message.
    """

    marker: int
    waiting: set[str]
    numbers: dict[str, int]

    @property
    def is_known(self) -> bool:
        return not self.waiting


WATERSHEDS = Table("watershed", Watershed)


class Watersheds:
    """The watersheds that one broker has asked for, by name; durable."""

    def __init__(self, control: ControlPlane, links: LinkLayer, rows: RowLog) -> None:
        self._control = control
        self._links = links
        self._rows = rows
        self._watersheds: dict[str, Watershed] = {}
        self._unmarked: list[str] = []
        self._astray: set[str] = set()  # root brokers to which a marker may not have come
        self._given_up: list[str] = []  # those that waited for a lost root broker

    def __getitem__(self, name: str) -> Watershed:
        return self._watersheds[name]

    def restore(self, rows: StoredRows) -> None:
        self._watersheds.update(rows.take(WATERSHEDS))

    def begin(self, name: str, marker: int, trees: Iterable[str]) -> None:
        """Ask the roots of the trees in use; ``marker`` is a number that this broker uses for
        nothing else."""
        above = {root_of(tree) for tree in trees if self._control.parent(tree) is not None}
        self._watersheds[name] = Watershed(marker, above, dict(self._accepted_here()))
        self._unmarked.append(name)

    def end_tree(self, tree: str) -> None:
        """No marker goes up a tree any more.  Where its root broker is lost, all that came from
        there is on this side of the watershed."""
        root = root_of(tree)
        if root not in self._control.shapes.lost:
            self._astray.add(root)
            return
        sources = [s for s, entry in self._control.sources.items() if entry.root == root]
        for name, watershed in self._watersheds.items():
            if root in watershed.waiting:
                watershed.waiting.remove(root)
                watershed.numbers.update(dict.fromkeys(sources, CLAIMED_SEQUENCE_MAX))
                self._store(name)
                self._given_up.append(name)

    def flush(self, trees: Sequence[str]) -> list[str]:
        """Send the markers up the ``trees`` that are open; the names of the watersheds that are
        known without."""
        way = {root_of(tree): tree for tree in sorted(trees, key=version_of, reverse=True)}
        for watershed in self._watersheds.values():
            for root in sorted(watershed.waiting & self._astray):
                self._send_up(way.get(root), watershed.marker)
        self._astray.clear()
        begun = [self._watersheds[name] for name in self._unmarked]
        marker = min((watershed.marker for watershed in begun), default=0)
        for root in sorted({root for watershed in begun for root in watershed.waiting}):
            self._send_up(way.get(root), marker)
        for watershed in begun:
            watershed.marker = marker
        for name in self._unmarked:
            self._store(name)
        names = dict.fromkeys(self._unmarked + self._given_up)
        self._unmarked, self._given_up = [], []
        return [name for name in names if self._watersheds[name].is_known]

    def handle_marker(self, frame: WatershedMarker) -> None:
        """Pass it on towards the root; there, answer."""
        parent = self._control.parent(frame.root)
        if parent is not None:
            self._links.send(f"broker/{parent}", frame.root, frame)
            return
        numbers = list(self._accepted_here())
        tree = self._control.current_tree
        self._send_down(WatershedReached(tree, frame.host, frame.marker, numbers))

    def handle_reached(self, frame: WatershedReached) -> list[str]:
        """Pass it on towards the host; there, the names of the watersheds that are known now."""
        if frame.host != self._control.identity:
            self._send_down(frame)
            return []
        known = []
        for name, watershed in self._watersheds.items():
            if watershed.marker == frame.marker and root_of(frame.root) in watershed.waiting:
                watershed.waiting.remove(root_of(frame.root))
                watershed.numbers.update(frame.numbers)
                self._store(name)
                if watershed.is_known:
                    known.append(name)
        return known

    def drop(self, name: str) -> None:
        """A watershed is not needed any more."""
        del self._watersheds[name]
        for names in (self._unmarked, self._given_up):
            if name in names:
                names.remove(name)
        WATERSHEDS.delete(self._rows, name)

    def _accepted_here(self) -> Iterator[tuple[str, int]]:
        """The sources of this root broker, with the last number that it has dealt with."""
        for source, entry in self._control.sources.items():
            if entry.root == self._control.identity:
                receiving = self._links.journal(f"source/{source}").receiving
                channel = receiving.get((Flow.MESSAGE, source))
                yield source, 0 if channel is None else channel.last

    def _send_up(self, tree: str | None, marker: int) -> None:
        if tree is not None:
            frame = WatershedMarker(root=tree, host=self._control.identity, marker=marker)
            self._links.send(f"broker/{self._control.parent(tree)}", tree, frame)

    def _send_down(self, frame: WatershedReached) -> None:
        hop = self._control.hop_towards(frame.root, frame.host)
        self._links.send(f"broker/{hop}", frame.root, frame)

    def _store(self, name: str) -> None:
        WATERSHEDS.put(self._rows, name, self._watersheds[name])
