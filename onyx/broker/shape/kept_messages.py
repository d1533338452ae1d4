"""KeptMessages: what a broker has taken and not passed on is still with the one above it.

A broker that dies has messages on its disk that nobody else has any more, unless its parent keeps
them (overlay/link/journal.py) until all children of it have acknowledged them::

    B1 ─ 41, 42, 43 ─> B2 ─ 17 ─> B3        B1 keeps 41 to 43, which B2 has acknowledged
    B1 <── passed on: 43 ── B2 <─ 17 ─ B3   now it does not

So the tree can go round B2 (bypasses.py).  It costs a message nothing: once a tick a broker notes
for each tree how far it has come and what it has sent down for that, and says so when that is
acknowledged.  A child that is away for long is not counted, which is said as well: then what its
parent keeps would not do for that child.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.packing.give_backs import GiveBacks
from onyx.broker.profiles.query_plane import QueryPlane
from onyx.broker.shape.link_watch import LinkWatch
from onyx.broker.shape.tree_versions import TreeVersions
from overlay.link.core_context import CoreContext
from overlay.link.events import Flow
from overlay.link.frame import GOING_ROUND
from overlay.link.frames import PassedOn
from overlay.link.part import Part


@dataclass(frozen=True, slots=True)
class _Mark:
    """All that came up to ``number`` has gone down when each child has this."""

    number: int
    children: Mapping[str, int]


class KeptMessages(Part):
    """What a child may have taken and not passed on; and what this broker tells its parents of
    itself, which is gone with the process and found out again."""

    section = "trees"

    def __init__(
        self,
        context: CoreContext,
        control: ControlPlane,
        query: QueryPlane,
        trees: TreeVersions,
        give_backs: GiveBacks,
    ) -> None:
        self._control = control
        self._links = links = context.links
        self._query = query
        self._trees = trees
        self._give_backs = give_backs
        self.watch: LinkWatch | None = None  # which asks this
        links.keeps, links.keeps_all = self._keeps, self._keeps_all
        self._marks: dict[str, _Mark] = {}
        self._said: dict[str, tuple[int, int, bool]] = {}  # connection, number, partly

    def tick(self, now: float) -> None:
        """Keep for those below; say to those above."""
        trees = self._query.table.roots
        for tree in trees:
            for child in self._control.children(tree):
                self._look_after(tree, child)
            if self._control.children(tree) and self._control.giver(tree) is not None:
                self._say(tree, now)
        for known in (self._marks, self._said):
            for tree in known.keys() - set(trees):
                del known[tree]

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

    def statistics(self) -> Mapping[str, object]:
        return {"not_passed_on": len(self._marks)}

    # --- helpers --------------------------------------------------------------------------

    def _keeps_all(self, peer: str) -> bool:
        broker = peer.partition("/")[2]
        is_reported = self.watch is not None and self.watch.is_reported(broker)
        return is_reported or self._control.shapes.is_away(broker)

    def _keeps(self, peer: str, flow: Flow, tree: str) -> bool:
        role, _, child = peer.partition("/")
        if role != "broker" or flow is not Flow.MESSAGE or not self._control.shapes.knows(tree):
            return False
        is_able = self._links.may_have(peer, GOING_ROUND)
        return is_able and bool(self._control.tree(tree).children[child])

    def _look_after(self, tree: str, child: str) -> None:
        """A child may be of another release since the channel began."""
        peer = f"broker/{child}"
        channel = self._links.sending(peer, Flow.MESSAGE, tree)
        if channel is not None and self._links.connected(peer):
            keeps = self._keeps(peer, Flow.MESSAGE, tree)
            if keeps is not channel.keeps:
                self._links.journal(peer).keep(Flow.MESSAGE, tree, keeps=keeps)

    def _say(self, tree: str, now: float) -> None:
        if tree in self._control.shapes.above_lost:
            return
        peer = f"broker/{self._control.parent(tree)}"
        connection = self._links.connection_of(peer)
        if connection is None or GOING_ROUND not in self._links.features(peer):
            return
        away = {child for child in self._control.children(tree) if self._is_away(child, now)}
        mark = self._marks.get(tree)
        if mark is not None:
            if not all(
                child in away or self._acknowledged(child, tree) >= number
                for child, number in mark.children.items()
            ):
                return
            del self._marks[tree]
            said = connection, mark.number, bool(away)
            if self._said.get(tree) != said:
                self._said[tree] = said
                frame = PassedOn(Flow.MESSAGE, tree, mark.number, bool(away))
                self._links.reply(connection, frame)
        channel = self._links.journal(peer).receiving.get((Flow.MESSAGE, tree))
        number = 0 if channel is None else channel.last
        if self._said.get(tree) == (connection, number, bool(away)):
            return
        if not (self._trees.holds(tree) or self._give_backs.awaits(tree)):
            sent = {child: self._sent(child, tree) for child in self._control.children(tree)}
            self._marks[tree] = _Mark(number, sent)

    def _is_away(self, child: str, now: float) -> bool:
        is_gone = self.watch is not None and self.watch.is_long_gone(child, now)
        return is_gone or child in self._control.shapes.newest.away

    def _sent(self, child: str, tree: str) -> int:
        channel = self._links.sending(f"broker/{child}", Flow.MESSAGE, tree)
        return 0 if channel is None else channel.last

    def _acknowledged(self, child: str, tree: str) -> int:
        channel = self._links.sending(f"broker/{child}", Flow.MESSAGE, tree)
        return 0 if channel is None else channel.floor
