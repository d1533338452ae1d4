"""TreeVersions: a broadcast tree gives way to another, and no message is lost or doubled over it.

When all brokers hold a version of the network's shape (shape_stages.py), a root broker whose tree
changes sets the new one up beside the old one and goes over to it when it is complete::

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
- what comes down a new tree waits until the older one has ended here, which never depends on the
  new one: sources keep their order, and waiting cannot go round in a circle;
- a tree whose links are lost before it was complete is given up as it is, and the next begun;
- a broker that the version goes round is a leaf of all its trees.  Nobody waits for it: it is
  presumed to want everything (query_plane.py).  When it is back it takes one tree of a root after
  the other, in the order of ``TreeBegun.after``, and those of versions that it does not know yet
  when it does.

``TreeVersions.steps`` is the protocol of one tree at one broker; docs/protocol.md has its picture.

Section 5 of the paper leaves this to the overlay network.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import StrEnum
from itertools import takewhile

from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.packing.compression_dictionaries import CompressionDictionaries
from onyx.broker.packing.give_backs import GiveBacks
from onyx.broker.profiles.query_plane import QueryPlane
from onyx.broker.shape.bypasses import Bypasses
from overlay.link.core_context import CoreContext
from overlay.link.durable import Member, StoredMap, StoredSet
from overlay.link.events import Flow
from overlay.link.frame_codec import LENGTH_BYTES, decode, encode
from overlay.link.frames import (
    BranchReady,
    MessageAgain,
    SourceAnnounced,
    SourceReady,
    TreeBegun,
    TreeEnded,
)
from overlay.link.link_layer import Arrival
from overlay.link.part import Hearer, Part, Taker, hears, takes
from overlay.link.row_log import RowLog, number_key
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.state_table import StateMachine, StateTable
from overlay.tree_name import root_of, version_of

# -------------------------------------------------------------------------------------------------
# HeldFrames: what came down a tree ahead of what it has to wait for.
#
# A new tree may be faster than the old one.  So that nobody gets a source's messages out of order,
# a broker lets what comes down a tree wait until the tree before it has ended here, and until it is
# ready for their source, which it may not be where it was away when that came; each frame is kept
# on disk, and its tree's acknowledgements are withheld, so that no more than one window of a
# neighbour ever waits.


class _HeldRow(Row, frozen=True):
    peer: str
    frame: bytes


HELD = Table("held", _HeldRow)


class HeldFrames:
    """By tree, first in, first out, but that the entries of sources are next: they come on a flow
    of their own, and messages wait for them; durable."""

    def __init__(self, rows: RowLog) -> None:
        self._rows = rows
        self._waiting: dict[str, deque[tuple[str, Arrival]]] = {}
        self._last = 0

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def restore(self, rows: StoredRows) -> None:
        for key, row in rows.take(HELD):
            envelope = decode(row.frame[LENGTH_BYTES:])
            arrival = Arrival(0, row.peer, envelope.frame, envelope.key, envelope.sequence)
            self._add(key, arrival)
            self._last = int(key)

    def put(self, arrival: Arrival) -> None:
        """A frame of a tree that has to wait."""
        assert arrival.frame is not None
        self._last += 1
        key = number_key(self._last)
        frame = encode(arrival.frame, arrival.key, arrival.sequence)
        HELD.put(self._rows, key, _HeldRow(arrival.peer, frame))
        self._add(key, arrival)

    def _add(self, key: str, arrival: Arrival) -> None:
        waiting = self._waiting.setdefault(arrival.key, deque())
        is_entry = isinstance(arrival.frame, SourceAnnounced)
        ahead = takewhile(lambda each: isinstance(each[1].frame, SourceAnnounced), waiting)
        waiting.insert(sum(1 for _ in ahead) if is_entry else len(waiting), (key, arrival))

    @property
    def trees(self) -> tuple[str, ...]:
        """Of which frames are here."""
        return tuple(self._waiting)

    def first(self, tree: str) -> Arrival | None:
        """The frame of a tree that is next."""
        waiting = self._waiting.get(tree)
        return waiting[0][1] if waiting else None

    def drop_first(self, tree: str) -> None:
        """It waits no longer."""
        waiting = self._waiting[tree]
        HELD.delete(self._rows, waiting.popleft()[0])
        if not waiting:
            del self._waiting[tree]


# -------------------------------------------------------------------------------------------------


class _SettingUpRow(Row, frozen=True):
    """The children whose BranchReady is missing."""

    children: set[str]


SETTING_UP = Table("tree-setting-up", _SettingUpRow)
ENDING = Table("tree-ending", Member)
ENDED = Table("tree-ended", Member)


class TreeState(StrEnum):
    """What a tree is to a broker."""

    UNKNOWN = "unknown"
    SETTING_UP = "setting up"
    OPEN = "open"
    ENDING = "ending"
    ENDED = "ended"


class TreeEvent(StrEnum):
    BEGUN = "TreeBegun"
    CHILD_READY = "BranchReady"
    ALL_READY = "all children are ready"
    LAST_CAME = "TreeEnded"
    ALL_CAME = "nothing is to come"
    REPLACED = "another is used"
    SETTLED = "ShapeSettled"


class TreeVersions(Part, StateMachine[str, TreeState, TreeEvent]):
    """The trees of one broker that begin and end; durable."""

    def __init__(
        self,
        context: CoreContext,
        control: ControlPlane,
        query: QueryPlane,
        trained: CompressionDictionaries,
        give_backs: GiveBacks,
        bypasses: Bypasses,
    ) -> None:
        self._control = control
        self._shapes = control.shapes
        self._query = query
        self._trained = trained
        self._give_backs = give_backs
        self._bypasses = bypasses
        self._links = context.links
        self._held = HeldFrames(context.rows)
        self._awaited = StoredMap(context.rows, SETTING_UP)  # by new tree
        # No more comes of these trees but messages that were given back, or are held.
        self.ending = StoredSet(context.rows, ENDING)
        self._ended = StoredSet(context.rows, ENDED)  # as long as their origin is known
        self.waiting: set[str] = set()  # open trees with an older one of the same root, that has
        # to end before what comes down them is taken, and those of
        self._unheard: dict[str, str] = {}  # tree -> the source that has to be ready first
        self._early: set[str] = set()  # trees that come before their version, or the one before

    def frames(self) -> Iterable[Taker]:
        yield takes(TreeBegun, "parent", self._handle_begun)
        yield takes(
            TreeEnded, "parent", lambda f, arrival: self.happen(f.root, TreeEvent.LAST_CAME)
        )
        yield takes(
            BranchReady,
            "child",
            lambda f, arrival: self.happen(f.tree, TreeEvent.CHILD_READY, arrival.sender),
        )

    def events(self) -> Iterable[Hearer]:
        yield hears(SourceReady, lambda ready: self.heard(ready.source))

    def restore(self, rows: StoredRows) -> None:
        """The other planes must have been restored before."""
        self._held.restore(rows)
        self._find_waiting()
        for tree in self._held.trees:
            if not self._note_early(tree):
                self.must_wait(tree, self._held.first(tree))

    # --- a version of the shape -----------------------------------------------------------

    def set_up_own(self) -> None:
        """The sources of this broker get the tree that they have in the version agreed on; none if
        it leaves."""
        wanted = self._shapes.agreed.tree(self._control.identity)
        own = self._of_root(self._control.identity)
        if not own or wanted in own:
            return
        for tree in own:
            if wanted is None or tree != self._control.current_tree:
                self.happen(tree, TreeEvent.REPLACED)
        if wanted is not None:
            self.happen(wanted, TreeEvent.BEGUN, self._control.current_tree)

    def is_switched(self) -> bool:
        """Whether what is published here goes down the tree of the version agreed on."""
        identity = self._control.identity
        wanted = self._shapes.agreed.tree(identity)
        return not self._of_root(identity) or self._control.current_tree == wanted

    def is_drained(self) -> bool:
        """Whether nothing of older versions is here, or waits for a neighbour."""
        return (
            all(map(self._shapes.agreed.has_tree, self._query.table.roots))
            and not self._held
            and self._bypasses.are_done()
            and all(
                self._links.journal(f"broker/{peer}").is_drained(Flow.MESSAGE, self._ended)
                for peer in self._peers()
            )
        )

    def _peers(self) -> set[str]:
        """Who is told of trees that end, before this broker says that they have."""
        shapes = self._shapes
        return (shapes.neighbours() | shapes.beside_lost) - shapes.lost - self._away()

    def _away(self) -> frozenset[str]:
        """Neighbours that are gone round: they have the old trees from their channels later."""
        shape = self._shapes.agreed
        if not (shape.away and shape.has_broker(self._control.identity)):
            return frozenset()
        return shape.away.intersection(shape.declared.neighbours(self._control.identity))

    def is_whole(self, neighbour: str) -> bool:
        """Whether this broker has all that a neighbour may not have passed on, and waits for
        nothing of it that others cannot give."""
        for tree in self._query.table.roots:
            shape = self._control.tree(tree)
            channel = self._links.sending(f"broker/{neighbour}", Flow.MESSAGE, tree)
            is_above = neighbour in self._control.children(tree) and shape.children[neighbour]
            if is_above and channel is not None and not channel.is_whole:
                return False
            if self._control.parent(tree) == neighbour and self._give_backs.awaits(tree):
                return False
        return True

    def forget_ended(self) -> None:
        """The trees that no version has any more are needed nowhere, but by who is away."""
        gone = {tree for tree in self._ended if not self._shapes.knows(tree)}
        neighbours = self._shapes.neighbours()
        away = self._away()
        for peer in self._links.peers("broker"):
            if peer not in neighbours:
                self._links.forget(f"broker/{peer}")
            elif peer not in away:
                self._links.journal(f"broker/{peer}").forget_channels(gone)
        self._bypasses.forget(gone)
        for tree in () if away else gone:
            self.happen(tree, TreeEvent.SETTLED)

    def leave_lost(self) -> None:
        """Brokers died for good: nothing comes from them.  What one had passed on before goes its
        way, also down its own tree; what waits for it goes past it (bypasses.py)."""
        self._bypasses.flush_soon()
        lost = self._shapes.lost
        if not lost:
            return
        for broker in lost:
            connection = self._links.connection_of(f"broker/{broker}")
            if connection is not None:
                self._links.refuse(connection, "lost", f"{broker} was given up for good")
        for tree in self._query.table.roots:
            if self._control.parent(tree) in lost and self._query.table.is_open(tree):
                self._give_backs.end_tree(tree)
                if tree not in self._shapes.above_lost:
                    self.happen(tree, TreeEvent.LAST_CAME)
                else:
                    self.end_if_complete(tree)
        self._drop_lost_sources()

    # --- frames of trees ------------------------------------------------------------------

    def must_wait(self, tree: str, arrival: Arrival | None) -> bool:
        """Whether a frame that came down a tree has to be held."""
        if tree in self.waiting:
            return True
        if arrival is None or isinstance(arrival.frame, MessageAgain | SourceAnnounced):
            return False
        source = getattr(arrival.frame, "source", "")
        if not source:
            return isinstance(arrival.frame, TreeBegun) and self._must_follow(arrival.frame)
        if self._control.is_ready(source):
            return False
        self._unheard[tree] = source
        self.waiting.add(tree)
        return True

    def hold_early(self, arrival: Arrival) -> bool:
        """Hold a frame of a tree of a version that this broker has not been told of; False if it
        is none."""
        is_early = self._note_early(arrival.key)
        if is_early:
            self._held.put(arrival)
        return is_early

    def holds(self, tree: str) -> bool:
        """Whether anything of a tree waits here to be taken."""
        return tree in self.waiting or self._held.first(tree) is not None

    def look_again(self) -> None:
        """A version has been announced, or a tree has begun, for which others may have waited."""
        early, self._early = self._early, set()
        if early:
            self._find_waiting()
            for tree in sorted(early, key=version_of):
                if not self._note_early(tree):
                    self._take_held(tree)

    def heard(self, source: str) -> None:
        """A source is ready here."""
        for tree in [tree for tree, unheard in self._unheard.items() if unheard == source]:
            del self._unheard[tree]
            self._find_waiting()
            self._take_held(tree)

    def hold(self, arrival: Arrival) -> None:
        """A frame of a tree that must wait."""
        self._held.put(arrival)

    def end_if_complete(self, tree: str) -> None:
        """End a tree behind whose last message nothing is to come, when nothing of it waits."""
        if tree in self.ending and not (self._give_backs.awaits(tree) or tree in self.waiting):
            self.happen(tree, TreeEvent.ALL_CAME)

    def is_over(self, tree: str) -> bool:
        """Whether a tree has ended here, or everywhere."""
        return tree in self._ended or self.is_forgotten(tree)

    def is_forgotten(self, tree: str) -> bool:
        """Whether a tree ended everywhere, so that nothing is known of it any more."""
        return version_of(tree) < self._shapes.agreed.version and not self._shapes.knows(tree)

    # --- helpers --------------------------------------------------------------------------

    def _note_early(self, tree: str) -> bool:
        if version_of(tree) <= self._shapes.newest.version:
            return False
        self._early.add(tree)
        self.waiting.add(tree)
        return True

    def _must_follow(self, begun: TreeBegun) -> bool:
        """Whether the tree before has not begun here yet, as this broker was gone round."""
        before = begun.after
        if (
            not before
            or not self._shapes.is_away(self._control.identity)
            or self.state(before) is not TreeState.UNKNOWN
            or self.is_over(before)
        ):
            return False
        self._early.add(begun.root)
        self.waiting.add(begun.root)
        return True

    def state(self, tree: str) -> TreeState:
        if tree in self._ended:
            return TreeState.ENDED
        if tree in self.ending:
            return TreeState.ENDING
        if tree in self._awaited:
            return TreeState.SETTING_UP
        return TreeState.OPEN if self._query.table.is_open(tree) else TreeState.UNKNOWN

    def _handle_begun(self, frame: TreeBegun, arrival: Arrival) -> None:
        self.happen(frame.root, TreeEvent.BEGUN, frame.after)
        self.look_again()

    def _set_up(self, tree: str, after: str) -> None:
        children = self._control.children(tree)
        for below in children:
            self._links.send(f"broker/{below}", tree, TreeBegun(root=tree, after=after))
        self._query.open_tree(tree)
        away = self._shapes.newest.away.intersection(children)
        self._presume(tree, away)
        self._query.flush()
        self._find_waiting()
        self._await(tree, set(children) - away)

    def _presume(self, tree: str, away: Iterable[str]) -> None:
        for child in away:
            self._query.routes.presume(self._control.branch_of(child, tree))

    def go_on_without(self, away: frozenset[str]) -> None:
        """Children that are gone round from now on are not awaited."""
        for tree, children in [(tree, row.children) for tree, row in self._awaited.items()]:
            if children & away:
                self._presume(tree, children & away)
                self._query.flush()
                self._await(tree, children - away)

    def _confirm(self, tree: str, child: str) -> None:
        """A child that was away has said what it wants."""
        if self._query.routes.presumed:
            self._query.routes.confirm(self._control.branch_of(child, tree))

    def _strike_child(self, tree: str, child: str) -> None:
        self._confirm(tree, child)
        awaited = self._awaited[tree].children
        if child in awaited:
            self._query.flush()
            self._await(tree, awaited - {child})

    def _await(self, tree: str, children: set[str]) -> None:
        self._awaited[tree] = _SettingUpRow(children)
        if not children:
            self.happen(tree, TreeEvent.ALL_READY)

    def _say_ready(self, tree: str) -> None:
        """To the parent; the root broker goes over to the tree."""
        del self._awaited[tree]
        branch = self._control.branch(tree)
        if branch is not None:
            # On the channel of the branch, on which the routing query went.
            ready = BranchReady(root=branch.name, tree=tree)
            self._links.send(f"broker/{branch.parent}", branch.name, ready)
            return
        old = self._control.current_tree
        self._control.use_tree(tree)
        self.happen(old, TreeEvent.REPLACED)
        self._control.announce_again(tree)

    def _end_soon(self, tree: str) -> None:
        """No message comes down a tree any more, but those that were given back."""
        self.ending.add(tree)
        self.end_if_complete(tree)

    def _end(self, tree: str) -> None:
        self._query.flush()
        ended = TreeEnded(root=tree)
        for below in self._control.children(tree):
            self._links.send(f"broker/{below}", tree, ended)
        self._query.close_tree(tree)
        self.announce(ended)
        self._awaited.pop(tree)
        self._give_backs.end_tree(tree)
        self.ending.discard(tree)
        self._ended.add(tree)
        left = self._of_root(root_of(tree))
        self._trained.end_tree(tree, left)
        self._find_waiting()
        if left:
            self._take_held(left[0])
        self._drop_lost_sources()

    def _take_held(self, tree: str) -> None:
        """What was held of a tree that waits no longer."""
        while (arrival := self._held.first(tree)) and not self.must_wait(tree, arrival):
            self._held.drop_first(tree)
            self.hand_on(arrival)
        self.end_if_complete(tree)

    def _forget(self, tree: str) -> None:
        self._ended.remove(tree)

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
        self.waiting = {tree for trees in by_root.values() for tree in trees[1:]}
        self.waiting.update(self._unheard)
        self.waiting.update(self._early)

    # --- the protocol ---------------------------------------------------------------------

    steps = StateTable(
        TreeState.UNKNOWN,
        {
            (TreeState.UNKNOWN, TreeEvent.BEGUN): (_set_up, TreeState.SETTING_UP),
            (TreeState.UNKNOWN, TreeEvent.LAST_CAME): (_end_soon, TreeState.ENDING),
            (TreeState.SETTING_UP, TreeEvent.CHILD_READY): (_strike_child, TreeState.SETTING_UP),
            (TreeState.SETTING_UP, TreeEvent.ALL_READY): (_say_ready, TreeState.OPEN),
            (TreeState.SETTING_UP, TreeEvent.LAST_CAME): (_end_soon, TreeState.ENDING),
            (TreeState.SETTING_UP, TreeEvent.REPLACED): (_end, TreeState.ENDED),
            (TreeState.OPEN, TreeEvent.BEGUN): (_set_up, TreeState.SETTING_UP),
            (TreeState.OPEN, TreeEvent.CHILD_READY): (_confirm, TreeState.OPEN),
            (TreeState.OPEN, TreeEvent.LAST_CAME): (_end_soon, TreeState.ENDING),
            (TreeState.OPEN, TreeEvent.REPLACED): (_end, TreeState.ENDED),
            (TreeState.ENDING, TreeEvent.LAST_CAME): (_end_soon, TreeState.ENDING),
            (TreeState.ENDING, TreeEvent.ALL_CAME): (_end, TreeState.ENDED),
            (TreeState.ENDED, TreeEvent.SETTLED): (_forget, TreeState.UNKNOWN),
        },
    )
    """A source's entry opens an unknown tree, too (source_announcements.py)."""
