"""SourceAnnouncements: a source's entry on its way down the tree of its root broker, and the
answers on their way up (control_plane.py has the picture).

Interests go up ahead of ``TreeReady``: so when it has come from all children, the root knows what
everybody wants.
"""

from __future__ import annotations

from collections.abc import Iterable

from onyx.broker.control_plane import ControlPlane
from onyx.broker.packing.compression_dictionaries import CompressionDictionaries
from onyx.broker.query_plane import QueryPlane
from overlay.link.arrival import Arrival
from overlay.link.events import Flow
from overlay.link.frames import Skipped, SourceAnnounced, TreeReady
from overlay.link.link_layer import LinkLayer
from overlay.link.part import Part, Taker, takes


class SourceAnnouncements(Part):
    """Joins control and query plane where a source comes."""

    def __init__(
        self,
        control: ControlPlane,
        query: QueryPlane,
        trained: CompressionDictionaries,
        links: LinkLayer,
    ) -> None:
        self._links = links
        self._control = control
        self._query = query
        self._trained = trained

    def frames(self) -> Iterable[Taker]:
        yield takes(SourceAnnounced, "registration parent", self._handle_announced)
        yield takes(TreeReady, "child", self._handle_ready)

    def _handle_announced(self, frame: SourceAnnounced, arrival: Arrival) -> None:
        tree = arrival.key
        if not arrival.peer.startswith("broker/"):
            if frame.root != self._control.identity:
                self._control.learn_source(frame)
                return
            tree = self._control.current_tree
            self._control.use_tree(tree)
            if frame.taken:  # by a root broker before this one
                journal = self._links.journal(f"source/{frame.source}")
                journal.skip(Skipped(Flow.MESSAGE, frame.source, frame.taken))
        entry = self._control.add_source(frame, tree)
        if entry is not None:
            self._trained.adopt_given(entry)
            self._query.open_tree(tree)
            self._query.flush()
            self._control.await_children(entry, tree)

    def _handle_ready(self, frame: TreeReady, arrival: Arrival) -> None:
        self._query.flush()
        self._control.handle_tree_ready(frame, arrival.sender)
