"""ProfileMoves: the profiles of one broker that are on the move, coming (standbys.py) and leaving
(releases.py); what the planes and the requests need to know of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from onyx.broker.deliveries.delivery_log import without_results
from onyx.broker.deliveries.mailboxes import Mailboxes
from onyx.broker.moves.releases import Releases
from onyx.broker.moves.standbys import Standbys
from onyx.broker.moves.watersheds import Watersheds
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.profiles.query_plane import QueryPlane
from overlay.delivery_policy import USUAL
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.frames import Delivery, PlaceProfile
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
from overlay.link.part import FrameRefused, Part, Taker, takes
from overlay.link.stored_rows import StoredRows
from yfilter.errors import ProfileRefused

F = TypeVar("F")


class ProfileMoves(Part):
    """``leaving`` and ``coming`` are the two halves."""

    section = "moves"

    def __init__(
        self, context: CoreContext, control: ControlPlane, query: QueryPlane, mailboxes: Mailboxes
    ) -> None:
        self._query = query
        self._mailboxes = mailboxes
        self.watersheds = Watersheds(context, control)
        both = context, query, mailboxes, self.watersheds, control.registration
        self.leaving, self.coming = Releases(*both), Standbys(*both)

        query.tell_live.append(self.coming.handle_live)
        self.is_busy = False  # whether ``intercepts`` has to be asked about deliveries

    def frames(self) -> Iterable[Taker]:
        def handled(handle: Callable[[F], None]) -> Callable[[F, Arrival], None]:
            return lambda frame, arrival: self._handle(handle, frame)

        yield takes(PlaceProfile, "registration", handled(self._handle_place))
        yield takes(StandBy, "registration", handled(self.coming.handle_stand_by))
        yield takes(ProfileReleased, "registration", handled(self.coming.handle_released))
        yield takes(HandedOver, "registration", handled(self.coming.handle_handed_over))
        yield takes(ReleaseProfile, "registration", handled(self.leaving.handle_release))
        yield takes(HandoverWanted, "registration", handled(self.leaving.handle_wanted))
        yield takes(MoveEnded, "registration", handled(self._handle_ended))
        yield takes(WatershedMarker, "child", handled(self.watersheds.handle_marker))
        yield takes(WatershedReached, "parent", handled(self._handle_reached))

    def restore(self, rows: StoredRows) -> None:
        self.watersheds.restore(rows)
        self.leaving.restore(rows)
        self.coming.restore(rows)
        self._look_again()

    def end_tree(self, tree: str) -> None:
        """A tree has ended here."""
        self.watersheds.end_tree(tree)
        self.flush_soon()

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

    @property
    def highest(self) -> int:
        """The highest number of a move that is known here."""
        return max(self.coming.highest, self.leaving.highest, self.watersheds.highest)

    def sends_on(self, profile: str) -> bool:
        """Whether the results of a profile are not to be had here, but at its other host."""
        here = profile in self._query.profiles
        return profile in self.coming or (profile in self.leaving and not here)

    def flush(self) -> None:
        """Before the query plane's."""
        self.leaving.flush()
        self.watersheds.flush(self._query.table.roots)
        self._handle_known()
        self.is_busy = bool(self.coming or self.leaving)
        if self.leaving.is_reading:
            self.flush_soon()

    def statistics(self) -> Mapping[str, object]:
        return {**self.leaving.statistics(), **self.coming.statistics()}

    def _handle(self, handle: Callable[[F], None], frame: F) -> None:
        try:
            handle(frame)
        except ProfileRefused as refusal:
            raise FrameRefused("profile-refused", str(refusal)) from refusal
        finally:
            self._look_again()

    def _look_again(self) -> None:
        """Something has changed."""
        self.is_busy = bool(self.coming or self.leaving)
        self.flush_soon()

    def _handle_place(self, frame: PlaceProfile) -> None:
        """The registration service gives this broker a profile, perhaps one that is leaving, or
        one that had a host broker that is lost."""
        self.leaving.handle_place(frame)
        is_new = frame.profile not in self._query.profiles
        self._query.place(frame)
        if frame.lost and is_new:
            self._tell_lost(frame)

    def _tell_lost(self, frame: PlaceProfile) -> None:
        """The first delivery says what has happened, behind one that is missing."""
        self._mailboxes.take_over(frame.profile, frame.behind - 1, frame.behind)
        why = f"its host broker {frame.lost} was lost, and with it what waited there"
        boxes = self._mailboxes.boxes([frame.profile])
        said = without_results("host-lost", why)
        self._mailboxes.deliver_message("", 0, [(boxes, said)], None)

    def _handle_ended(self, frame: MoveEnded) -> None:
        self.coming.handle_ended(frame)
        self.leaving.handle_ended(frame)
        if frame.profile not in self._query.profiles:
            self._mailboxes.use_policy(frame.profile, USUAL)

    def _handle_reached(self, frame: WatershedReached) -> None:
        self.watersheds.handle_reached(frame)
        self._handle_known()

    def _handle_known(self) -> None:
        for name in self.watersheds.known():
            self.leaving.handle_watershed(name)
            self.coming.handle_watershed(name)
