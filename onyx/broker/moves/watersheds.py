"""Watersheds: where the root brokers are in the sequences of their sources.

A host broker sends a marker up each tree that is in use; the root answers with the last number of
each of its sources, behind all messages up to those.  Channels are in order, so when the answer has
come, so has every such message::

    host ──WatershedMarker──> B4 ──WatershedMarker──> B1 (root)       on the query flow
    host <──WatershedReached── B4 <──WatershedReached── B1            on the message flow

The answer comes down the tree that the root uses then, so that it is behind those messages also
when its tree changes meanwhile (tree_versions.py); a marker whose tree has ended is sent once more
up the next.

``Watersheds.steps`` is the protocol of one of them; docs/planning.md has its picture.  What is
begun with one event shares one marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.network.publishers import Publishers
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredMap
from overlay.link.frame_fields import CLAIMED_SEQUENCE_MAX
from overlay.link.frames import WatershedMarker, WatershedReached
from overlay.link.tables import MutableRow, Table
from overlay.state_table import StateMachine, StateTable
from overlay.tree_name import root_of, version_of


class Finding(StrEnum):
    """How far a watershed is found."""

    NOT_WANTED = "not wanted"
    MARKING = "markers to be sent"
    ASKED = "asked for"
    KNOWN = "known"


class WatershedEvent(StrEnum):
    BEGUN = "begun"
    SENT = "the markers are sent"
    STRAYED = "a tree that is waited for has ended"
    REACHED = "WatershedReached, or a root broker lost"
    ALL_CAME = "all answers are here"
    DROPPED = "not needed any more"


class Watershed(MutableRow):
    """``numbers`` by source, of the root brokers that have answered; ``waiting``: those that have
    not.

    A source that is not in ``numbers``, of a root that has answered or whose tree was not in use
    when the marker left, has its watershed before its first message.
    """

    marker: int
    waiting: set[str]
    numbers: dict[str, int]


WATERSHEDS = Table("watershed", Watershed)


class Watersheds(StateMachine[str, Finding, WatershedEvent]):
    """The watersheds that one broker has asked for, by name; durable."""

    def __init__(self, context: CoreContext, control: ControlPlane, publishers: Publishers) -> None:
        self._control = control
        self._publishers = publishers
        self._links = context.links
        self._watersheds = StoredMap(context.rows, WATERSHEDS)
        self._unmarked: dict[str, set[str]] = {}  # root brokers to which no marker is on its way
        self._marker = 0  # of what is begun with this event
        self._known: list[str] = []

    def __getitem__(self, name: str) -> Watershed:
        return self._watersheds[name]

    @property
    def highest(self) -> int:
        """Of the markers that are under way."""
        return max((found.marker for found in self._watersheds.values()), default=0)

    def begin(self, name: str, marker: int, trees: Iterable[str]) -> None:
        """Ask the roots of the trees in use; ``marker`` is a number that this broker uses for
        nothing else."""
        above = {root_of(tree) for tree in trees if self._control.parent(tree) is not None}
        self.happen(name, WatershedEvent.BEGUN, marker, above)

    def end_tree(self, tree: str) -> None:
        """No marker goes up a tree any more.  Where its root broker is lost, all that came from
        there is on this side of the watershed."""
        root = root_of(tree)
        sources = [s for s, entry in self._control.sources.items() if entry.root == root]
        for name in self._waiting_for(root):
            if root in self._control.shapes.lost:
                numbers = [(source, CLAIMED_SEQUENCE_MAX) for source in sources]
                self.happen(name, WatershedEvent.REACHED, root, numbers)
            else:
                self.happen(name, WatershedEvent.STRAYED, root)

    def flush(self, trees: Sequence[str]) -> None:
        """Send the markers up the ``trees`` that are open."""
        way = {root_of(tree): tree for tree in sorted(trees, key=version_of, reverse=True)}
        unmarked = list(self._unmarked)
        markers = {(r, self[name].marker) for name in unmarked for r in self._unmarked[name]}
        for root, marker in sorted(markers):
            if root in way:
                self._send_up(way[root], marker)
        self._marker = 0
        for name in unmarked:
            self.happen(name, WatershedEvent.SENT)

    def known(self) -> list[str]:
        """The names of those that are known; whoever has taken the numbers drops them."""
        return list(self._known)

    def handle_marker(self, frame: WatershedMarker) -> None:
        """Pass it on towards the root; there, answer."""
        parent = self._control.parent(frame.root)
        if parent is not None:
            self._links.send(f"broker/{parent}", frame.root, frame)
            return
        numbers = list(self._accepted_here())
        tree = self._control.current_tree
        self._send_down(WatershedReached(tree, frame.host, frame.marker, numbers))

    def handle_reached(self, frame: WatershedReached) -> None:
        """Pass it on towards the host; there, it is waited for."""
        if frame.host != self._control.identity:
            self._send_down(frame)
            return
        root = root_of(frame.root)
        for name in self._waiting_for(root):
            if self[name].marker == frame.marker:
                self.happen(name, WatershedEvent.REACHED, root, frame.numbers)

    def source_gone(self, source: str) -> None:
        """All messages of a source have come, on this side of every watershed that is not known
        by its number."""
        for name, watershed in self._watersheds.items():
            if watershed.waiting and source not in watershed.numbers:
                watershed.numbers[source] = CLAIMED_SEQUENCE_MAX
                if name not in self._unmarked:
                    self._watersheds.put(name)

    def drop(self, name: str) -> None:
        """A watershed is not needed any more."""
        self.happen(name, WatershedEvent.DROPPED)

    # --- helpers --------------------------------------------------------------------------

    def state(self, name: str) -> Finding:
        if name not in self._watersheds:
            return Finding.NOT_WANTED
        if name in self._unmarked:
            return Finding.MARKING
        return Finding.KNOWN if name in self._known else Finding.ASKED

    def _mark(self, name: str, marker: int, roots: set[str]) -> None:
        self._marker = self._marker or marker
        numbers = dict.fromkeys(self._control.gone_sources, CLAIMED_SEQUENCE_MAX)
        numbers.update(self._accepted_here())
        self._watersheds[name] = Watershed(self._marker, roots, numbers)
        self._unmarked[name] = set(roots)

    def _mark_again(self, name: str, root: str) -> None:
        self._unmarked.setdefault(name, set()).add(root)

    def _wait(self, name: str) -> None:
        del self._unmarked[name]
        self._watersheds.put(name)
        self._look_what_is_missing(name)

    def _take_numbers(self, name: str, root: str, numbers: Iterable[tuple[str, int]]) -> None:
        self[name].waiting.remove(root)
        self[name].numbers.update(numbers)
        self._unmarked.get(name, set()).discard(root)
        self._watersheds.put(name)
        self._look_what_is_missing(name)

    def _look_what_is_missing(self, name: str) -> None:
        if not self[name].waiting:
            self.happen(name, WatershedEvent.ALL_CAME)

    def _say_known(self, name: str) -> None:
        self._known.append(name)

    def _forget(self, name: str) -> None:
        del self._watersheds[name]
        self._unmarked.pop(name, None)
        if name in self._known:
            self._known.remove(name)

    def _waiting_for(self, root: str) -> list[str]:
        return [name for name, found in self._watersheds.items() if root in found.waiting]

    def _accepted_here(self) -> Iterator[tuple[str, int]]:
        """The sources of this root broker, with the last number that it has dealt with."""
        for source, entry in self._control.sources.items():
            if entry.root == self._control.identity:
                numbering = self._publishers.sources.get(source)
                yield source, 0 if numbering is None else numbering.last

    def _send_up(self, tree: str, marker: int) -> None:
        frame = WatershedMarker(root=tree, host=self._control.identity, marker=marker)
        self._links.send(f"broker/{self._control.parent(tree)}", tree, frame)

    def _send_down(self, frame: WatershedReached) -> None:
        hop = self._control.hop_towards(frame.root, frame.host)
        self._links.send(f"broker/{hop}", frame.root, frame)

    # --- the protocol ---------------------------------------------------------------------

    steps = StateTable(
        Finding.NOT_WANTED,
        {
            (Finding.NOT_WANTED, WatershedEvent.BEGUN): (_mark, Finding.MARKING),
            (Finding.MARKING, WatershedEvent.SENT): (_wait, Finding.ASKED),
            (Finding.MARKING, WatershedEvent.STRAYED): (_mark_again, Finding.MARKING),
            (Finding.MARKING, WatershedEvent.REACHED): (_take_numbers, Finding.MARKING),
            (Finding.MARKING, WatershedEvent.DROPPED): (_forget, Finding.NOT_WANTED),
            (Finding.ASKED, WatershedEvent.STRAYED): (_mark_again, Finding.MARKING),
            (Finding.ASKED, WatershedEvent.REACHED): (_take_numbers, Finding.ASKED),
            (Finding.ASKED, WatershedEvent.ALL_CAME): (_say_known, Finding.KNOWN),
            (Finding.ASKED, WatershedEvent.DROPPED): (_forget, Finding.NOT_WANTED),
            (Finding.KNOWN, WatershedEvent.DROPPED): (_forget, Finding.NOT_WANTED),
        },
    )
