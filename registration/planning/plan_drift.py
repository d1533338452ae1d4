"""What a plan promised held against what is there: the profiles as they are placed today."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from overlay.answers import Drift
from registration.planning.plan import Placement, Placer, Plan
from registration.planning.plan_file import plan_id
from yfilter.errors import ProfileRefused


@dataclass(frozen=True, slots=True)
class PlacedProfile:
    """A profile as it is; ``near``: it insists on its place."""

    text: str
    host: str
    near: bool = False


class DriftCount:
    """Sums up a population, a profile at a time, so that a large one can be taken in slices."""

    def __init__(self, plan: Plan) -> None:
        self._placer = Placer(plan)
        self._loads: Counter[int] = Counter()
        self._moves: Counter[tuple[str, str]] = Counter()
        self._near = self._covered = 0

    def add(self, profile: PlacedProfile) -> None:
        """Place it anew and compare; about 15 us."""
        try:
            placement = self._placer.place(profile.text)
        except ProfileRefused:
            return  # accepted by another version; it has no place in this plan
        self._loads[placement.partition] += 1
        self._covered += placement.pattern is not None
        self._near += profile.near
        home = home_of(self._placer.plan, placement, profile)
        if home is not None:
            self._moves[profile.host, home] += 1

    def drift(self) -> Drift:
        """What the profiles that were added come to."""
        total = self._loads.total()
        largest = max(self._loads.values(), default=0)
        return Drift(
            plan=plan_id(self._placer.plan),
            profiles=total,
            misplaced=self._moves.total(),
            near=self._near,
            coverage=self._covered / total if total else 1.0,
            imbalance=largest * self._placer.plan.partitions / total if total else 1.0,
            moves=[(*pair, count) for pair, count in sorted(self._moves.items())],
        )


def home_of(plan: Plan, placement: Placement, profile: PlacedProfile) -> str | None:
    """The broker where the plan has a profile that is elsewhere; None if it is at home, or insists
    on its place.  "Don't care" profiles are at home with each broker that has some."""
    if profile.near or not plan.brokers:
        return None
    homes = {plan.broker_of(placement.partition)}
    if placement.partition in plan.dont_care:
        homes = {plan.broker_of(partition) for partition in plan.dont_care}
    return None if profile.host in homes else plan.broker_of(placement.partition)
