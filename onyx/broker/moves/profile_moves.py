"""ProfileMoves: the profiles of one broker that are on the move, coming (standbys.py) and leaving
(releases.py); what the planes and the requests need to know of them."""

from __future__ import annotations

from collections.abc import Mapping

from onyx.broker.control_plane import ControlPlane
from onyx.broker.deliveries.mailboxes import Mailboxes
from onyx.broker.moves.releases import Releases
from onyx.broker.moves.standbys import Standbys
from onyx.broker.moves.watersheds import Watersheds
from onyx.broker.query_plane import QueryPlane
from overlay.link.frame import Frame
from overlay.link.frames import Delivery
from overlay.link.link_layer import LinkLayer
from overlay.link.move_frames import (
    HandedOver,
    HandoverWanted,
    MoveEnded,
    ProfileReleased,
    ReleaseProfile,
    StandBy,
    WatershedMarker,
    WatershedReached,
)
from overlay.link.row_log import RowLog

SENDERS: Mapping[type[Frame], frozenset[str]] = {
    StandBy: frozenset({"registration"}),
    ReleaseProfile: frozenset({"registration"}),
    ProfileReleased: frozenset({"registration"}),
    HandoverWanted: frozenset({"registration"}),
    HandedOver: frozenset({"registration"}),
    MoveEnded: frozenset({"registration"}),
    WatershedMarker: frozenset({"child"}),
    WatershedReached: frozenset({"parent"}),
}
"""The frames that are about moves, and who may send them."""


class ProfileMoves:
    """``leaving`` and ``coming`` are the two halves."""

    def __init__(
        self,
        control: ControlPlane,
        query: QueryPlane,
        mailboxes: Mailboxes,
        links: LinkLayer,
        rows: RowLog,
    ) -> None:
        self._query = query
        self.watersheds = Watersheds(control, links, rows)
        self.leaving = Releases(
            query, mailboxes, links, rows, self.watersheds, control.registration
        )
        bytes_max = control.topology.limits.delivery_backlog_bytes_max
        self.coming = Standbys(
            query, mailboxes, links, rows, self.watersheds, control.registration, bytes_max
        )

    def restore(self, rows: list[tuple[str, str, bytes]]) -> None:
        """The query plane must have been restored before."""
        self.watersheds.restore(rows)
        self.leaving.restore(rows)
        self.coming.restore(rows)

    def handle(self, frame: Frame) -> None:
        """A frame of ``SENDERS``; ProfileRefused."""
        match frame:
            case StandBy():
                self.coming.handle_stand_by(frame)
            case ProfileReleased():
                self.coming.handle_released(frame)
            case HandedOver():
                self.coming.handle_handed_over(frame)
            case ReleaseProfile():
                self.leaving.handle_release(frame)
            case HandoverWanted():
                self.leaving.handle_wanted(frame)
            case MoveEnded():
                self.coming.end(frame.profile, frame.move)
                self.leaving.end(frame.profile, frame.move)
            case WatershedMarker():
                self.watersheds.handle_marker(frame)
            case WatershedReached():
                self._handle_watersheds(self.watersheds.handle_reached(frame))

    @property
    def is_busy(self) -> bool:
        """Whether there are deliveries that ``intercepts`` has to be asked about."""
        return bool(self.coming or self.leaving)

    def intercepts(self, root: str, delivery: Delivery) -> bool:
        """Whether what a message of a tree gives for a profile is not to be delivered from here
        and now: the other host does, or this one will."""
        if delivery.profile in self.coming:
            self.coming.keep(delivery)
            return True
        if self.coming.is_delivered(delivery):
            return True
        return delivery.profile in self.leaving and not self.leaving.delivers(root, delivery)

    def __contains__(self, profile: str) -> bool:
        """Whether a profile is coming or leaving: who wants something of it has to wait."""
        return profile in self.coming or profile in self.leaving

    def sends_on(self, profile: str) -> bool:
        """Whether the results of a profile are not to be had here, but at its other host."""
        here = profile in self._query.profiles
        return profile in self.coming or (profile in self.leaving and not here)

    def flush(self) -> None:
        """To be called when an event has been handled, before the query plane's."""
        self.leaving.flush()
        self._handle_watersheds(self.watersheds.flush(self._query.table.roots))

    def statistics(self) -> dict[str, int]:
        return {**self.leaving.statistics(), **self.coming.statistics()}

    def _handle_watersheds(self, known: list[str]) -> None:
        for name in known:
            self.leaving.handle_watershed(name)
            self.coming.handle_watershed(name)
