"""How far a network has drifted from its plan, and whether a new plan pays.

What the plan promised is held against what is there: the profiles as they are placed today, and
the messages as brokers have matched them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from registration.planning.plan import Placer, Plan
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
    another; ``coverage`` and ``imbalance`` (of the partitions) as they are now; ``measured``: how
    messages match."""

    profiles: int
    misplaced: int
    near: int
    coverage: float
    imbalance: float
    measured: Measured

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


def measure_drift(
    plan: Plan, profiles: Iterable[PlacedProfile], measured: Measured | None = None
) -> Drift:
    """Places every profile anew and compares; about 15 us a profile."""
    placer = Placer(plan)
    loads: Counter[int] = Counter()
    misplaced = near = covered = 0
    for profile in profiles:
        try:
            placement = placer.place(profile.text)
        except ProfileRefused:
            continue  # accepted by another version; it has no place in this plan
        loads[placement.partition] += 1
        covered += placement.pattern is not None
        if profile.near:
            near += 1
        elif plan.brokers and not _is_at_home(plan, profile.host, placement.partition):
            misplaced += 1
    total = loads.total()
    return Drift(
        profiles=total,
        misplaced=misplaced,
        near=near,
        coverage=covered / total if total else 1.0,
        imbalance=max(loads.values()) * plan.partitions / total if total else 1.0,
        measured=measured or Measured(),
    )


def _grown(where: str, share: float | None, predicted: float, of: str) -> list[str]:
    if share is None or share <= predicted * (1 + SHARE_GROWN):
        return []
    return [f"a message matches {where} {share:.1%} of the {of}, predicted were {predicted:.1%}"]


def _is_at_home(plan: Plan, host: str, partition: int) -> bool:
    if partition in plan.dont_care:
        return any(plan.broker_of(other) == host for other in plan.dont_care)
    return plan.broker_of(partition) == host
