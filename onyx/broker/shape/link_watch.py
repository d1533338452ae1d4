"""LinkWatch: which links of this broker are down, as the registration service is told.

A link counts as down when its neighbour could not be talked to over it for so long
(``link_down_after_s``), and as up again when it could for as long; that with a broker which is gone
round (shape_parts.py) only when what waits for it has gone there.  One over which both ends never
met has ten times as long: most likely the network is being started.  Both ends say so; what follows
from it is decided where both reports come together (registration/link_reports.py, going_round.py).
"""

from __future__ import annotations

from collections.abc import Callable

from onyx.broker.network.control_plane import ControlPlane
from overlay.limits import Limits
from overlay.link.core_context import CoreContext
from overlay.link.durable import Member, StoredSet
from overlay.link.frames import LinkReported
from overlay.link.part import Part
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table
from registration.catalog import REGISTRATION_KEY

MISSED = Table("link-missed", Member)
"""The neighbours with which a link was reported down."""
MET = Table("link-met", Member)
"""The neighbours that were met at least once."""
NEVER_MET_TIMES = 10
"""``link_down_after_s`` of a link over which both ends never met."""


class LinkWatch(Part):
    """Looks now and then.  Which links it has reported down is durable: as long as one is, all is
    kept that its neighbour may not pass on, as the report has said (shape_parts.py)."""

    def __init__(
        self,
        context: CoreContext,
        control: ControlPlane,
        is_whole: Callable[[str], bool],
        is_behind: Callable[[str], bool],
    ) -> None:
        """Of a neighbour: ``is_whole``: whether all is here that it may not have passed on;
        ``is_behind``: whether it has not caught up since it was away."""
        self._is_whole = is_whole
        self._is_behind = is_behind
        self._control = control
        self._links = context.links
        self._after_s = control.topology.limits.link_down_after_s
        self._since: dict[str, tuple[bool, float]] = {}  # by neighbour: here or not, since when
        self._reported: dict[str, bool] = {}
        self._missed = StoredSet(context.rows, MISSED)
        self._met = StoredSet(context.rows, MET)

    def restore(self, rows: StoredRows) -> None:
        self._reported = dict.fromkeys(self._missed, False)

    def take_limits(self, limits: Limits) -> None:
        self._after_s = limits.link_down_after_s

    def tick(self, now: float) -> None:
        """Time goes on."""
        neighbours = self._control.shapes.neighbours()
        for neighbour in self._reported.keys() - neighbours:
            del self._reported[neighbour]
            self._missed.discard(neighbour)
        for neighbour in self._met - neighbours:
            self._met.remove(neighbour)
        for neighbour in neighbours:
            is_here = self.is_here(neighbour)
            if is_here:
                self._met.add(neighbour)
            if neighbour not in self._since or self._since[neighbour][0] != is_here:
                self._since[neighbour] = is_here, now
        shape = self._control.shapes.agreed
        if not shape.has_broker(self._control.identity):
            return
        for neighbour in shape.declared.neighbours(self._control.identity):
            is_here, since = self._since[neighbour]
            if is_here and neighbour in shape.away and self._is_behind(neighbour):
                continue
            after_s = self._after_s * (1 if neighbour in self._met else NEVER_MET_TIMES)
            if now - since >= after_s and self._reported.get(neighbour) is not is_here:
                self._reported[neighbour] = is_here
                if is_here:
                    self._missed.discard(neighbour)
                else:
                    self._missed.add(neighbour)
                self._report(neighbour)

    def say_again(self) -> None:
        """The registration service does not know any more what it was told."""
        for neighbour in self._reported:
            self._report(neighbour)

    def is_here(self, neighbour: str) -> bool:
        """Whether there is a connection over the link itself."""
        connection = self._links.connection_of(f"broker/{neighbour}")
        return connection is not None and connection > 0

    def is_reported(self, neighbour: str) -> bool:
        """Whether the registration service was told that a link is down."""
        return self._reported.get(neighbour) is False

    def is_long_gone(self, neighbour: str, now: float) -> bool:
        is_here, since = self._since.get(neighbour, (True, now))
        return not is_here and now - since >= self._after_s

    def _report(self, neighbour: str) -> None:
        up = self._reported[neighbour]
        kept = not up and self._is_whole(neighbour)
        frame = LinkReported(neighbour=neighbour, up=up, kept=kept)
        self._links.send(self._control.registration, REGISTRATION_KEY, frame)
