"""LinkBacklogs: how much may wait for a neighbour before sources are held back for its sake.

A neighbour that is here and slow has ``link_backlog_bytes_max`` on each broadcast tree.  One that
is away would use that up in seconds, and hold back all who get anything by the same trees.  What
waits for it is on disk in any case (overlay/link/journal.py), so it has ``link_away_bytes_max`` on
all trees together, from the moment that it goes until it has caught up::

    here ── away ──> behind ── here again, and every tree within its limit ──> here

Beyond that nothing is thrown away: the trees by which something waits for it go on when it is back,
or is taken out of the network.  Trees by which nobody behind it wants anything go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping

from onyx.broker.network.control_plane import ControlPlane
from overlay.limits import Limits
from overlay.link.core_context import CoreContext
from overlay.link.events import Flow
from overlay.link.part import Part
from overlay.link.stored_rows import StoredRows


class LinkBacklogs(Part):
    """Asked where a child has more waiting than a slow one may have (data_plane.py).  Nothing is
    stored: what waits says who is behind."""

    section = "data"

    def __init__(self, context: CoreContext, control: ControlPlane) -> None:
        self._control = control
        self._links = context.links
        self._limits = context.limits
        self._behind: set[str] = set()  # neighbours that were away and have not caught up
        # Of each channel with something waiting: what waited at a time and has not all gone since.
        self._waits: dict[tuple[str, Flow, str], tuple[int, float]] = {}
        self._now = 0.0

    def take_limits(self, limits: Limits) -> None:
        self._limits = limits

    def restore(self, rows: StoredRows) -> None:
        """Whoever has that much waiting was away."""
        limit = self._limits.link_backlog_bytes_max
        for broker in self._links.peers("broker"):
            if max(self._waiting(broker), default=0) > limit:
                self._behind.add(broker)

    def tick(self, now: float) -> None:
        limit = self._limits.link_backlog_bytes_max
        neighbours = self._control.shapes.neighbours()
        self._behind &= neighbours
        for broker in neighbours:
            if not self._links.connected(f"broker/{broker}"):
                self._behind.add(broker)
            elif broker in self._behind and max(self._waiting(broker), default=0) <= limit:
                self._behind.discard(broker)
        self._note_ages(now)

    def is_behind(self, broker: str) -> bool:
        """Whether a neighbour was away, and has not caught up."""
        return broker in self._behind

    def may_grow(self, tree: str) -> bool:
        """Whether messages of a tree may go on coming: there is room for every child.

        Withheld acknowledgements fill the window of whoever sends here, and so on up to the
        source.  Waiting follows the direction of one tree, so it can never go round in a circle.
        """
        return all(self._has_room(child, tree) for child in self._control.children(tree))

    def _has_room(self, child: str, tree: str) -> bool:
        peer = f"broker/{child}"
        waiting = self._links.backlog_bytes(peer, Flow.MESSAGE, tree)
        if waiting <= self._limits.link_backlog_bytes_max:
            return True
        if child in self._behind or not self._links.connected(peer):
            return sum(self._waiting(child)) <= self._limits.link_away_bytes_max
        return False

    def _waiting(self, broker: str) -> list[int]:
        channels = self._links.channels_to(f"broker/{broker}")
        return [channel.backlog_bytes for channel in channels if channel.flow is Flow.MESSAGE]

    def _note_ages(self, now: float) -> None:
        """Of the oldest that waits on each channel at least, to a second."""
        waits = {}
        for broker in self._control.shapes.neighbours():
            for channel in self._links.channels_to(f"broker/{broker}"):
                if channel.backlog_bytes:
                    name = broker, channel.flow, channel.key
                    through, since = self._waits.get(name, (0, now))
                    if channel.floor >= through:
                        through, since = channel.last, now
                    waits[name] = through, since
        self._waits, self._now = waits, now

    def statistics(self) -> Mapping[str, object]:
        """``behind``: by neighbour that is, or was, away, the bytes that wait for it, on disk;
        ``waiting_s``: by neighbour for how long the oldest of what waits has, at least."""
        waiting = dict.fromkeys(self._control.shapes.neighbours(), 0.0)
        for (broker, _, _), (_, since) in self._waits.items():
            waiting[broker] = max(waiting.get(broker, 0.0), self._now - since)
        behind = {broker: sum(self._waiting(broker)) for broker in sorted(self._behind)}
        return {"behind": behind, "waiting_s": waiting}
