"""SourceAnnouncements: a source's entry on its way down the tree of its root broker, what becomes
of it later, and the answers on their way up (control_plane.py has the picture).

Interests go up ahead of ``TreeReady``: so when it has come from all children, the root knows what
everybody wants.  A child that is away for long is not waited for (query_plane.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from onyx.broker.messages.last_numbers import LastNumbers
from onyx.broker.messages.message_validation import MessageValidation
from onyx.broker.messages.publish_keys import PublishKeys
from onyx.broker.moves.profile_moves import ProfileMoves
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.network.publishers import Publishers
from onyx.broker.packing.compression_dictionaries import CompressionDictionaries
from onyx.broker.profiles.query_plane import QueryPlane
from onyx.broker.shape.source_releases import MOVED
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.frames import (
    SourceAnnounced,
    SourceChanged,
    SourceGone,
    SourceReleased,
    SourceRemoved,
    TreeReady,
)
from overlay.link.part import Part, Taker, takes
from registration.catalog import REGISTRATION_KEY

REMOVED = "source-removed"


class SourceAnnouncements(Part):
    """Joins control and query plane where a source comes."""

    def __init__(
        self,
        context: CoreContext,
        control: ControlPlane,
        query: QueryPlane,
        trained: CompressionDictionaries,
        moves: ProfileMoves,
        validation: MessageValidation,
        keys: PublishKeys,
        publishers: Publishers,
        last_numbers: LastNumbers,
        is_long_gone: Callable[[str, float], bool],
    ) -> None:
        """``is_long_gone(neighbour, now)``: nobody waits for it."""
        self._moves = moves
        self._validation = validation
        self._keys, self._publishers = keys, publishers
        self._last_numbers = last_numbers
        self._links = context.links
        self._is_long_gone = is_long_gone
        self._control = control
        self._query = query
        self._trained = trained

    def frames(self) -> Iterable[Taker]:
        yield takes(SourceAnnounced, "registration parent", self._handle_announced)
        yield takes(TreeReady, "child", self._handle_ready)
        yield takes(SourceChanged, "parent", lambda frame, arrival: self._change(frame, frame.root))
        yield takes(SourceRemoved, "registration", self._handle_removed)
        yield takes(
            SourceGone, "parent", lambda frame, arrival: self._forget(frame.source, frame.root)
        )

    def tick(self, now: float) -> None:
        """Go on without the children that are away for long."""
        for source, tree, child in self._control.awaited():
            if self._is_long_gone(child, now):
                branch = self._control.branch_of(child, tree)
                if not self._control.has_told(branch):
                    self._query.routes.presume(branch)
                self._query.flush()
                self._control.go_on_without(source, child)

    def _handle_announced(self, frame: SourceAnnounced, arrival: Arrival) -> None:
        tree = arrival.key
        if not arrival.peer.startswith("broker/"):
            if frame.root != self._control.identity:
                self._control.learn_source(frame)
                return
            tree = self._control.current_tree
            known = self._control.sources.get(frame.source)
            if known is not None and known.root == frame.root and known.version < frame.version:
                self._change(frame, tree)
                return
            self._control.use_tree(tree)
            self._publishers.begin(frame.source, frame.taken)
        entry = self._control.add_source(frame, tree)
        if entry is not None:
            self._trained.adopt_given(entry)
            self._query.open_tree(tree)
            self._query.flush()
            self._control.await_children(entry, tree)

    def _change(self, frame: SourceAnnounced | SourceChanged, tree: str) -> None:
        """What came before is in journals, and goes first."""
        entry = self._control.change_source(frame, tree)
        if entry is None:
            return
        if entry.root == self._control.identity:
            detail = (
                f"{entry.source} is in version {entry.version}; what is not taken is taken by that"
            )
            self._validation.begin_anew(entry.source, MOVED, detail)
        self._query.flush()
        self._control.await_children(entry, tree)

    def _handle_removed(self, frame: SourceRemoved, arrival: Arrival) -> None:
        """At the root broker: what was accepted of it is on its way, or decided on by now."""
        source = frame.source
        self._validation.begin_anew(source, REMOVED, f"{source} was removed")
        taken = self._publishers.send_away(source, REMOVED, f"{source} was removed")
        self._publishers.forget(source)
        self._keys.drop(source)
        self._forget(source, self._control.current_tree)
        said = SourceReleased(source=source, taken=taken)
        self._links.send(self._control.registration, REGISTRATION_KEY, said)

    def _forget(self, source: str, tree: str) -> None:
        """Its last message has come, to be told below ``tree``."""
        self._moves.watersheds.source_gone(source)
        self._control.forget_source(source, tree)
        self._trained.forget_source(source)
        self._last_numbers.forget(source)

    def _handle_ready(self, frame: TreeReady, arrival: Arrival) -> None:
        if self._query.routes.presumed:
            self._query.routes.confirm(self._control.branch_of(arrival.sender, frame.root))
        self._query.flush()
        self._control.handle_tree_ready(frame, arrival.sender)
