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

from onyx.broker.query_plane import HostedProfile
from overlay.link.frames import PartitionsMatched, PlanInForce
from overlay.link.link_layer import LinkLayer
from overlay.link.row_log import RowLog, read_record
from registration.catalog import REGISTRATION_KEY
from registration.planning.choice import stable_hash
from registration.planning.plan import Placer
from registration.planning.plan_file import PlanError, from_json
from yfilter.errors import ProfileRefused

PLAN_SPACE = "plan"
REPORT_SECONDS = 10.0  # at least, between two reports

_CURRENT = "current"
_NOWHERE = -1


class MatchShares:
    """Counts, for the plan in force; without one nothing is counted."""

    def __init__(
        self,
        identity: str,
        profiles: Mapping[str, HostedProfile],
        links: LinkLayer,
        rows: RowLog,
        registration: str,
    ) -> None:
        """``profiles``: those of this broker; ``registration``: the peer that is reported to."""
        self._identity = identity
        self._profiles = profiles
        self._links = links
        self._rows = rows
        self._registration = registration
        self._plan = ""
        self._placer: Placer | None = None
        self._own_dont_care: list[int] = []
        self._partitions: dict[str, tuple[int, int]] = {}  # profile -> version, partition
        self._accepted = 0
        self._matched: Counter[int] = Counter()
        self._report_at = 0.0
        self._counters: Counter[str] = Counter()

    def restore(self, rows: Iterable[tuple[str, str, bytes]]) -> None:
        for space, _, value in rows:
            if space == PLAN_SPACE:
                record = read_record(value)
                self._install(record["plan"], record["text"])

    def handle_plan(self, frame: PlanInForce) -> None:
        """Another plan is in force: what was counted for the one before is no longer asked for."""
        if frame.plan:
            record = {"plan": frame.plan, "text": frame.payload}
            self._rows.put(PLAN_SPACE, _CURRENT, record)
        else:
            self._rows.delete(PLAN_SPACE, _CURRENT)
        self._install(frame.plan, frame.payload)

    def note_accepted(self) -> None:
        """A message of a source here was accepted: what shares are shares of."""
        self._accepted += self._placer is not None

    def note_matched(self, profiles: Iterable[str]) -> None:
        """These profiles have matched one message."""
        if self._placer is not None:
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
            self._counters["reports"] += 1
            self._accepted = 0
            self._matched.clear()

    def statistics(self) -> dict[str, object]:
        """``unusable_plans``: this broker could not read them."""
        return {"plan": self._plan, "partitions_known": len(self._partitions), **self._counters}

    def _install(self, name: str, text: bytes) -> None:
        self._plan, self._placer, self._own_dont_care = "", None, []
        self._partitions.clear()
        self._matched.clear()
        self._accepted = 0
        if not name:
            return
        try:
            plan = from_json(text)
        except PlanError:
            self._counters["unusable_plans"] += 1
            return
        self._plan, self._placer = name, Placer(plan)
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
        assert self._placer is not None
        try:
            placement = self._placer.place(text)
        except ProfileRefused:
            return _NOWHERE
        if placement.pattern is None and self._own_dont_care:
            # Such a profile may be in any of these partitions; it went to the nearest broker.
            return self._own_dont_care[stable_hash(text) % len(self._own_dont_care)]
        here = self._placer.plan.broker_of(placement.partition) == self._identity
        return placement.partition if here else _NOWHERE
