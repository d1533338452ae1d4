"""TreeVersions: a broadcast tree gives way to another, and no message is lost or doubled over it.

The registration service numbers the versions of the network's shape and takes every broker through
the stages of a change (registration/shape_changes.py).  A root broker whose tree changes sets the
new one up beside the old one and goes over to it when it is complete::

    root ──TreeBegun──> children ──> ... ──> leaves          down the new tree
    root <─BranchReady─ children <── ... <── leaves          behind the routing queries
    root: what is accepted from now on goes down the new tree
    root ──TreeEnded──> children ──> ... ──> leaves          down the old tree, behind its messages

Invariants:

- a message goes down exactly one tree, so nobody gets it twice;
- a tree has its own channels, so behind ``TreeEnded`` nothing comes any more but what was given
  back (packing/give_backs.py): when all of that has come again, the tree ends here, further down
  only then, and its routing table is not needed any more;
- interests that come meanwhile are told on both, so that a live profile is so on both;
- what comes down a new tree waits until the older one has ended here (held_frames.py), which never
  depends on the new one: sources keep their order, and waiting cannot go round in a circle;
- a tree whose links are lost before it was complete is given up as it is, and the next begun.

Section 5 of the paper leaves this to the overlay network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from onyx.broker.control_plane import ControlPlane
from onyx.broker.live_wait import LiveVersion
from onyx.broker.packing.compression_dictionaries import CompressionDictionaries
from onyx.broker.packing.give_backs import GiveBacks
from onyx.broker.query_plane import QueryPlane
from onyx.broker.shape.held_frames import HeldFrames
from overlay.link.catalog_frames import HELD, SETTLED, SWITCHED
from overlay.link.events import Flow
from overlay.link.frame import Frame
from overlay.link.frames import (
    BranchReady,
    ShapeAgreed,
    ShapeAnnounced,
    ShapeReached,
    ShapeSettled,
    TreeBegun,
    TreeEnded,
)
from overlay.link.link_layer import Arrival, LinkLayer
from overlay.link.row_log import RowLog, read_record
from overlay.network_shape import root_of, version_of
from registration.catalog import REGISTRATION_KEY

SETTING_UP_SPACE = "tree-setting-up"
ENDING_SPACE = "tree-ending"
ENDED_SPACE = "tree-ended"
REACHED_SPACE = "shape-reached"


SENDERS: Mapping[type[Frame], frozenset[str]] = {
    ShapeAnnounced: frozenset({"registration"}),
    ShapeAgreed: frozenset({"registration"}),
    ShapeSettled: frozenset({"registration"}),
    TreeBegun: frozenset({"parent"}),
    TreeEnded: frozenset({"parent"}),
    BranchReady: frozenset({"child"}),
}
"""The frames that are about trees and their versions, and who may send them."""


class TreeVersions:
    """The trees of one broker that begin and end; durable."""

    def __init__(
        self,
        control: ControlPlane,
        query: QueryPlane,
        trained: CompressionDictionaries,
        give_backs: GiveBacks,
        links: LinkLayer,
        rows: RowLog,
        hand_on: Callable[[Arrival], None],
        ended: Callable[[str, list[LiveVersion]], None],
    ) -> None:
        """``hand_on`` takes what was held; ``ended`` hears of a tree that has ended here, and what
        is live by that."""
        self._control = control
        self._shapes = control.shapes
        self._query = query
        self._trained = trained
        self._give_backs = give_backs
        self._links = links
        self._rows = rows
        self._hand_on = hand_on
        self._tell_ended = ended
        self._held = HeldFrames(rows)
        self._awaited: dict[str, set[str]] = {}  # new tree -> children whose BranchReady is missing
        self._ending: set[str] = set()  # no more comes but what was given back, or is held
        self._ended: set[str] = set()  # as long as their origin is known
        self._waiting: set[str] = set()  # open trees with an older one of the same root
        self._reached = (0, SETTLED)  # version and stage, as the registration service was told
        self.dials_changed = False  # whom to dial is not what the shell was told last

    def restore(self, rows: Iterable[tuple[str, str, bytes]]) -> None:
        """The other planes must have been restored before."""
        rows = list(rows)
        self._held.restore(rows)
        for space, key, value in rows:
            if space == SETTING_UP_SPACE:
                self._awaited[key] = set(read_record(value)["children"])
            elif space == ENDING_SPACE:
                self._ending.add(key)
            elif space == ENDED_SPACE:
                self._ended.add(key)
            elif space == REACHED_SPACE:
                record = read_record(value)
                self._reached = record["version"], record["stage"]
        self._find_waiting()
        self.dials_changed = self._shapes.agreed.version > 0

    def handle(self, frame: Frame, sender: str) -> None:
        """A frame of ``SENDERS``; TopologyError when a shape is none."""
        match frame:
            case ShapeAnnounced():
                self._handle_announced(frame)
            case ShapeAgreed():
                self._handle_agreed(frame)
            case ShapeSettled():
                self._handle_settled(frame)
            case TreeBegun():
                self._begin(frame.root)
            case TreeEnded():
                self._end_soon(frame.root)
            case BranchReady():
                self._handle_ready(frame, sender)

    # --- the stages of a change -----------------------------------------------------------

    def _handle_announced(self, frame: ShapeAnnounced) -> None:
        """There is a new version: know its trees and neighbours, and say so."""
        if frame.version > self._shapes.newest.version:
            self._shapes.add(frame)
            self._query.use_shape()
            self._report(frame.version, HELD)

    def _handle_agreed(self, frame: ShapeAgreed) -> None:
        """Everybody knows it: the sources of this broker get their tree of it."""
        self._query.flush()  # on the trees of before
        self._shapes.agree(frame.version)
        self.dials_changed = True
        self._leave_lost()
        wanted = self._shapes.agreed.tree(self._control.identity)
        own = self._of_root(self._control.identity)
        if wanted is None or not own or wanted in own:
            return
        for tree in own:
            if tree != self._control.current_tree:
                self._end(tree)
        self._begin(wanted)

    def _handle_settled(self, frame: ShapeSettled) -> None:
        """Nothing of before is left anywhere."""
        if frame.version != self._shapes.agreed.version:
            return
        self._query.flush()
        self._shapes.settle()
        self.dials_changed = True
        self._query.forget_closed()
        gone = {tree for tree in self._ended if not self._shapes.knows(tree)}
        neighbours = self._shapes.neighbours()
        for peer in self._links.peers("broker"):
            if peer in neighbours:
                self._links.journal(f"broker/{peer}").forget_channels(gone)
            else:
                self._links.forget(f"broker/{peer}")
        for tree in gone:
            self._rows.delete(ENDED_SPACE, tree)
        self._ended -= gone

    def report_progress(self) -> None:
        """Tell the registration service how far this broker is; to be called after every event."""
        agreed = self._shapes.agreed
        version, identity = agreed.version, self._control.identity
        if self._reached == (version, SETTLED) or self._reached[0] > version:
            return
        if self._of_root(identity) and self._control.current_tree != agreed.tree(identity):
            return
        if all(map(agreed.has_tree, self._query.table.roots)) and self._is_drained():
            self._report(version, SETTLED)
        elif self._reached < (version, SWITCHED):
            self._report(version, SWITCHED)

    # --- frames of trees ------------------------------------------------------------------

    def _handle_ready(self, frame: BranchReady, child: str) -> None:
        """A child and all below it have a new tree."""
        awaited = self._awaited.get(frame.tree, ())
        if child in awaited:
            self._query.flush()
            self._set_awaited(frame.tree, set(awaited) - {child})

    def must_wait(self, tree: str) -> bool:
        """Whether what comes down a tree has to wait, because an older one has not ended."""
        return tree in self._waiting

    def hold(self, arrival: Arrival) -> None:
        """A frame of a tree that must wait."""
        self._held.put(arrival)

    def end_if_complete(self, tree: str) -> None:
        """End a tree behind whose last message nothing is to come, when nothing of it waits."""
        if tree in self._ending and not (self._give_backs.awaits(tree) or self.must_wait(tree)):
            self._end(tree)

    def is_over(self, tree: str) -> bool:
        """Whether a tree has ended here, or everywhere."""
        return tree in self._ended or self.is_forgotten(tree)

    def is_forgotten(self, tree: str) -> bool:
        """Whether a tree ended everywhere, so that nothing is known of it any more."""
        return version_of(tree) < self._shapes.agreed.version and not self._shapes.knows(tree)

    def statistics(self) -> dict[str, object]:
        return {
            "trees": list(self._query.table.roots),
            "setting_up": sorted(self._awaited),
            "ending": sorted(self._ending),
            "ended": sorted(self._ended),
            "held_frames": len(self._held),
        }

    # --- helpers --------------------------------------------------------------------------

    def _begin(self, tree: str) -> None:
        children = self._control.children(tree)
        for child in children:
            self._links.send(f"broker/{child}", tree, TreeBegun(root=tree))
        self._query.open_tree(tree)
        self._query.flush()
        self._find_waiting()
        self._set_awaited(tree, set(children))

    def _set_awaited(self, tree: str, children: set[str]) -> None:
        if children:
            self._awaited[tree] = children
            self._rows.put(SETTING_UP_SPACE, tree, {"children": sorted(children)})
            return
        self._awaited.pop(tree, None)
        self._rows.delete(SETTING_UP_SPACE, tree)
        branch = self._control.branch(tree)
        if branch is None:
            self._switch(tree)
        else:
            # On the channel of the branch, on which the routing query went.
            ready = BranchReady(root=branch.name, tree=tree)
            self._links.send(f"broker/{branch.parent}", branch.name, ready)

    def _switch(self, tree: str) -> None:
        """The new tree of this root broker is complete."""
        old = self._control.current_tree
        self._control.use_tree(tree)
        self._end(old)
        self._control.announce_again(tree)

    def _end_soon(self, tree: str) -> None:
        """No message comes down a tree any more, but those that were given back."""
        self._ending.add(tree)
        self._rows.put(ENDING_SPACE, tree, {})
        self.end_if_complete(tree)

    def _end(self, tree: str) -> None:
        self._query.flush()
        for child in self._control.children(tree):
            self._links.send(f"broker/{child}", tree, TreeEnded(root=tree))
        self._tell_ended(tree, self._query.close_tree(tree))
        if self._awaited.pop(tree, None) is not None:
            self._rows.delete(SETTING_UP_SPACE, tree)
        self._give_backs.end_tree(tree)
        self._ending.discard(tree)
        self._rows.delete(ENDING_SPACE, tree)
        self._ended.add(tree)
        self._rows.put(ENDED_SPACE, tree, {})
        left = self._of_root(root_of(tree))
        self._trained.end_tree(tree, left)
        self._find_waiting()
        if left:
            for arrival in self._held.take(left[0]):
                self._hand_on(arrival)
            self.end_if_complete(left[0])
        self._drop_lost_sources()

    def _is_drained(self) -> bool:
        """Whether nothing of an ended tree waits, neither here nor for a neighbour."""
        return not self._held and all(
            self._links.journal(f"broker/{peer}").is_drained(Flow.MESSAGE, self._ended)
            for peer in self._shapes.neighbours()
        )

    def _leave_lost(self) -> None:
        """Brokers died for good: nothing comes from them, nothing waits for them.  What one had
        passed on before goes its way, also down its own tree."""
        lost = self._shapes.lost
        if not lost:
            return
        for broker in lost:
            self._query.forget_child(broker)
            self._links.forget(f"broker/{broker}")
        for tree in self._query.table.roots:
            if self._control.parent(tree) in lost and self._query.table.is_open(tree):
                self._give_backs.end_tree(tree)
                self._end_soon(tree)
        self._drop_lost_sources()

    def _drop_lost_sources(self) -> None:
        """When none of their messages can come any more, which take their dictionaries."""
        open_roots = set(map(root_of, self._query.table.roots))
        self._control.drop_sources(self._shapes.lost - open_roots)

    def _of_root(self, root: str) -> list[str]:
        """The open trees of a root broker, oldest first."""
        trees = [tree for tree in self._query.table.roots if root_of(tree) == root]
        return sorted(trees, key=version_of)

    def _find_waiting(self) -> None:
        by_root: dict[str, list[str]] = {}
        for tree in sorted(self._query.table.roots, key=version_of):
            by_root.setdefault(root_of(tree), []).append(tree)
        self._waiting = {tree for trees in by_root.values() for tree in trees[1:]}

    def _report(self, version: int, stage: int) -> None:
        self._reached = version, stage
        self._rows.put(REACHED_SPACE, "stage", {"version": version, "stage": stage})
        frame = ShapeReached(version=version, stage=stage)
        self._links.send(self._control.registration, REGISTRATION_KEY, frame)
