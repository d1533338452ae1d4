"""How far a network has drifted from its plan, and whether a new plan pays.

What the plan promised is held against what is there: the profiles as they are placed today, and
the messages as brokers have matched them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from registration.planning.plan import Placement, Placer, Plan
from yfilter.errors import ProfileRefused

# From here on a new plan pays.
COVERAGE_LOST = 0.05
IMBALANCE_GROWN = 0.25
SHARE_GROWN = 0.25
MESSAGES_LEAST = 100  # fewer say nothing about the matched share


@dataclass(frozen=True, slots=True)
class PlacedProfile:
    """A profile as it is; ``near``: it insists on its place."""

    text: str
    host: str
    near: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """What brokers have counted: the share of the brokers that a message matched at; of
    ``messages`` under this plan, the share of its partitions that one matched; None: not
    measured."""

    brokers_share: float | None = None
    messages: float = 0.0
    matched_share: float | None = None


@dataclass(frozen=True, slots=True)
class Drift:
    """``profiles``, of which ``misplaced`` are not at the plan's broker and ``near`` insist on
    another; ``coverage`` and ``imbalance`` (of the partitions) as they are now; ``moves``: how many
    would go from which broker to which; ``measured``: how messages match."""

    profiles: int
    misplaced: int
    near: int
    coverage: float
    imbalance: float
    moves: Mapping[tuple[str, str], int] = field(default_factory=dict)
    measured: Measured = field(default_factory=Measured)

    def reasons(self, plan: Plan) -> list[str]:
        """Why a new plan pays; none if it does not."""
        found = []
        if self.coverage < plan.facts.coverage - COVERAGE_LOST:
            found.append(
                f"the patterns cover {self.coverage:.1%} of the profiles, "
                f"{plan.facts.coverage:.1%} when the plan was made"
            )
        if self.imbalance > plan.facts.imbalance + IMBALANCE_GROWN:
            found.append(
                f"the largest partition has {self.imbalance:.2f} times the mean, "
                f"{plan.facts.imbalance:.2f} when the plan was made"
            )
        measured, facts = self.measured, plan.facts
        if measured.messages >= MESSAGES_LEAST:
            found += _grown("in", measured.matched_share, facts.matched_share, "partitions")
        found += _grown("at", measured.brokers_share, facts.brokers_share, "brokers")
        return found


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
            profiles=total,
            misplaced=self._moves.total(),
            near=self._near,
            coverage=self._covered / total if total else 1.0,
            imbalance=largest * self._placer.plan.partitions / total if total else 1.0,
            moves=dict(self._moves),
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


def _grown(where: str, share: float | None, predicted: float, of: str) -> list[str]:
    if share is None or share <= predicted * (1 + SHARE_GROWN):
        return []
    return [f"a message matches {where} {share:.1%} of the {of}, predicted were {predicted:.1%}"]
