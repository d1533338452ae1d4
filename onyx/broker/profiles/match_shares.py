"""MatchShares: how many messages match something of each partition that this broker hosts.

The registration service says which plan is in force; partitions follow from its rules and the text
of a profile, so that nothing has to be said for each profile.  A profile's partition is found out
when it first matches.  What was counted is reported as increments, now and then; what was not
reported yet is lost with the process, which makes the share no different.

Profiles that are not where the plan has them (near to their user, or not moved yet) count nowhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from onyx.broker.network.control_plane import ControlPlane
from onyx.broker.profiles.hosted_profiles import HostedProfile
from overlay.link.arrival import Arrival
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredValue
from overlay.link.frames import PartitionsMatched, PlanInForce
from overlay.link.part import Part, Taker, takes
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from registration.catalog import REGISTRATION_KEY
from registration.planning.choice import stable_hash
from registration.planning.plan import Placer
from registration.planning.plan_file import PlanError, from_json
from yfilter.errors import ProfileRefused

REPORT_SECONDS = 10.0  # at least, between two reports

_NOWHERE = -1


class _PlanRow(Row, frozen=True):
    plan: str
    text: bytes


PLAN = Table("plan", _PlanRow)


class MatchShares(Part):
    """Counts, for the plan in force; without one nothing is counted."""

    def __init__(
        self, context: CoreContext, control: ControlPlane, profiles: Mapping[str, HostedProfile]
    ) -> None:
        """``profiles``: those of this broker."""
        self._identity = context.identity
        self._profiles = profiles
        self._links = context.links
        self._stored: StoredValue[_PlanRow | None] = StoredValue(context.rows, PLAN, None)
        self._registration = control.registration
        self._plan, self._text = "", b""
        self.placer: Placer | None = None  # None: nothing is counted
        self._own_dont_care: list[int] = []
        self._partitions: dict[str, tuple[int, int]] = {}  # profile -> version, partition
        self._accepted = 0
        self._matched: Counter[int] = Counter()
        self._report_at = 0.0

    def frames(self) -> Iterable[Taker]:
        yield takes(PlanInForce, "registration", self._handle_plan)

    def restore(self, rows: StoredRows) -> None:
        if self._stored.now is not None:
            self._install(self._stored.now.plan, self._stored.now.text)

    def _handle_plan(self, frame: PlanInForce, arrival: Arrival) -> None:
        """Another plan is in force: what was counted for the one before is no longer asked for."""
        self._stored.put(_PlanRow(frame.plan, frame.payload) if frame.plan else None)
        self._install(frame.plan, frame.payload)

    def announced(self) -> PlanInForce | None:
        """As the registration service has said it; None: there is no plan, or it cannot be read."""
        return None if self.placer is None else PlanInForce(self._plan, self._text)

    def note_accepted(self) -> None:
        """A message of a source here was accepted: what shares are shares of."""
        self._accepted += 1

    def note_matched(self, profiles: Iterable[str]) -> None:
        """These profiles have matched one message."""
        found = {self._partition(profile) for profile in profiles}
        found.discard(_NOWHERE)
        self._matched.update(found)

    def tick(self, now: float) -> None:
        """Report, if there is something to report and the last time was long enough ago."""
        if now >= self._report_at and (self._accepted or self._matched):
            self._report_at = now + REPORT_SECONDS
            matched = sorted(self._matched.items())
            report = PartitionsMatched(plan=self._plan, accepted=self._accepted, matched=matched)
            self._links.send(self._registration, REGISTRATION_KEY, report)
            self._accepted = 0
            self._matched.clear()

    def _install(self, name: str, text: bytes) -> None:
        self._plan, self._text, self.placer, self._own_dont_care = "", b"", None, []
        self._partitions.clear()
        self._matched.clear()
        self._accepted = 0
        if not name:
            return
        try:
            plan = from_json(text)
        except PlanError:
            return
        self._plan, self._text, self.placer = name, text, Placer(plan)
        self._own_dont_care = [p for p in plan.dont_care if plan.broker_of(p) == self._identity]

    def _partition(self, name: str) -> int:
        profile = self._profiles.get(name)
        if profile is None:
            return _NOWHERE
        known = self._partitions.get(name)
        if known is not None and known[0] == profile.version:
            return known[1]
        if len(self._partitions) > 2 * len(self._profiles):
            self._partitions.clear()  # most are of profiles that are gone
        partition = self._place(profile.text)
        self._partitions[name] = profile.version, partition
        return partition

    def _place(self, text: str) -> int:
        assert self.placer is not None
        try:
            placement = self.placer.place(text)
        except ProfileRefused:
            return _NOWHERE
        if placement.pattern is None and self._own_dont_care:
            # Such a profile may be in any of these partitions; it went to the nearest broker.
            return self._own_dont_care[stable_hash(text) % len(self._own_dont_care)]
        here = self.placer.plan.broker_of(placement.partition) == self._identity
        return placement.partition if here else _NOWHERE
