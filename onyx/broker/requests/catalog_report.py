"""CatalogReport: what this broker has from the registration service, told to one that has lost it.

Docs/protocol.md has the picture.  Profiles go a portion at a time, so that messages go on
meanwhile; what changes behind that the registration service hears as ever, behind it.  A broker
that dies on the way begins again.

Of each profile the highest number is kept that was ever here, so that it is given to no other one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from onyx.broker.moves.profile_moves import ProfileMoves
from onyx.broker.network.access_rules import AccessRules
from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.network.taxonomies import Taxonomies
from onyx.broker.profiles.live_wait import LiveVersion
from onyx.broker.profiles.match_shares import MatchShares
from onyx.broker.profiles.query_plane import QueryPlane
from onyx.broker.shape.link_watch import LinkWatch
from onyx.broker.shape.shape_stages import ShapeStages
from onyx.broker.users.policy_changes import PolicyChanges
from overlay.delivery_policy import USUAL
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.frame import PACKED_SHAPES, Frame
from overlay.link.frames import (
    CatalogTold,
    CatalogWanted,
    DeliveryPolicies,
    ProfilesHosted,
    ProfilesMoving,
    SourceReady,
)
from overlay.link.part import Part, Taker, takes
from overlay.link.portions import PORTION_BYTES, PORTION_TEXTS
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Table
from registration.catalog import REGISTRATION_KEY, announcement


@dataclass(frozen=True, slots=True)
class _WantedRow:
    """There is one until all is told; as in CatalogWanted."""

    lost: list[str]
    rebuild: str = ""


@dataclass(frozen=True, slots=True)
class _HighestRow:
    """Of the numbers of profiles that were ever here."""

    number: int


WANTED = Table("catalog-wanted", _WantedRow)
HIGHEST = Table("highest-profile", _HighestRow)
_CURRENT = "current"


class CatalogReport(Part):
    """Idle but for the highest number, until it is asked."""

    section = "registration"

    def __init__(
        self,
        context: CoreContext,
        control: ControlPlane,
        query: QueryPlane,
        moves: ProfileMoves,
        policies: PolicyChanges,
        shares: MatchShares,
        access: AccessRules,
        taxonomies: Taxonomies,
        watch: LinkWatch,
        stages: ShapeStages,
    ) -> None:
        self._control = control
        self._query = query
        self._moves = moves
        self._policies = policies
        self._shares = shares
        self._access = access
        self._taxonomies = taxonomies
        self._watch = watch
        self._stages = stages
        self._links = context.links
        self._rows = context.rows
        self._wanted: _WantedRow | None = None
        self._left: deque[str] = deque()  # profiles that are still to be told
        self._highest = 0
        query.tell_added.append(self._note_number)

    def frames(self) -> Iterable[Taker]:
        yield takes(CatalogWanted, "registration", self._handle_wanted)

    def restore(self, rows: StoredRows) -> None:
        """All else must have been restored before."""
        for _, row in rows.take(HIGHEST):
            self._highest = row.number
        for profile in self._query.profiles:
            self._highest = max(self._highest, _number_of(profile))
        for _, self._wanted in rows.take(WANTED):
            self._begin()

    def flush(self) -> None:
        HIGHEST.put(self._rows, _CURRENT, _HighestRow(self._highest))

    def work(self) -> None:
        """The next portion; at the end, all else."""
        if self._wanted is None:
            return
        if not self._left:
            self._tell_shape(self._wanted)
            self._tell_moves(self._wanted.rebuild)
            self._wanted = None
            WANTED.delete(self._rows, _CURRENT)
            return
        told: list[tuple[str, str, str, int, int, bool]] = []
        size = 0
        while self._left and size < PORTION_BYTES and len(told) < PORTION_TEXTS:
            hosted = self._query.profiles.get(self._left.popleft())
            if hosted is not None:
                version = LiveVersion(hosted.profile, hosted.version)
                live = 0 if version in self._query.waits else hosted.version
                stands_by = hosted.profile in self._moves.coming
                told.append((*hosted[:4], live, stands_by))
                size += len(hosted.text)
        self._send(ProfilesHosted(told))
        self._tell_policies(profile for profile, *_, stands_by in told if not stands_by)
        self.work_soon()

    def statistics(self) -> Mapping[str, object]:
        return {"highest_profile": self._highest, "profiles_to_tell": len(self._left)}

    # --- helpers --------------------------------------------------------------------------

    def _handle_wanted(self, frame: CatalogWanted, arrival: Arrival) -> None:
        self._wanted = _WantedRow(frame.lost, frame.rebuild)
        WANTED.put(self._rows, _CURRENT, self._wanted)
        self._begin()

    def _begin(self) -> None:
        self._left = deque(self._query.profiles)
        self.work_soon()

    def _note_number(self, profile: str) -> None:
        number = _number_of(profile)
        if number > self._highest:
            self._highest = number
            self.flush_soon()

    def _tell_policies(self, profiles: Iterable[str]) -> None:
        found = [(profile, self._policies.of(profile)) for profile in profiles]
        unusual = [(profile, *policy) for profile, policy in found if policy != USUAL]
        if unusual:
            self._send(DeliveryPolicies(unusual))

    def _tell_shape(self, wanted: _WantedRow) -> None:
        shapes, reached = self._control.shapes, self._stages.reached
        is_packed = PACKED_SHAPES in self._links.features(self._control.registration)
        for shape in shapes.in_use:
            self._send(shape.announced(is_packed=is_packed))
        for entry in self._control.sources.values():
            is_own = entry.root == self._control.identity
            if is_own or entry.root in wanted.lost or not shapes.has_broker(entry.root):
                self._send(announcement(entry))
            if is_own and entry.ready:
                self._send(SourceReady(entry.source, self._control.in_force(entry)))
        for told in (self._access.announced(), self._taxonomies.announced()):
            if told is not None:
                self._send(told)
        self._send(
            CatalogTold(
                *(shapes.agreed.version, shapes.settled, *reached),
                profile=self._highest,
                move=self._moves.highest,
                rebuild=wanted.rebuild,
            )
        )
        self._watch.say_again()
        if not shapes.agreed.has_broker(self._control.identity):
            self._stages.releases.say()

    def _tell_moves(self, rebuild: str) -> None:
        plan = self._shares.announced()
        if plan is not None:
            self._send(plan)
        coming, leaving = self._moves.coming, self._moves.leaving
        self._tell_policies(leaving.let_go)
        self._send(ProfilesMoving(coming.under_way, leaving.under_way, rebuild))
        coming.say_again()
        leaving.say_again()

    def _send(self, frame: Frame) -> None:
        self._links.send(self._control.registration, REGISTRATION_KEY, frame)


def _number_of(profile: str) -> int:
    """That in the id of a profile, 0 where there is none."""
    number = profile[1:].partition("-")[0]
    return int(number) if number.isdecimal() else 0
