"""Drift: how far a network has drifted from its plan, and whether a new plan pays.

What the plan promised is held against what is there: the profiles as they are placed today, and
the messages as brokers have matched them.  The profiles are counted by plan_drift.py; who
asks the registration service for it loads no planner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from overlay.answers import Drift

if TYPE_CHECKING:
    from registration.planning.plan import Plan

# From here on a new plan pays.
COVERAGE_LOST = 0.05
IMBALANCE_GROWN = 0.25
SHARE_GROWN = 0.25
MESSAGES_LEAST = 100  # fewer say nothing about the matched share


@dataclass(frozen=True, slots=True)
class Measured:
    """What brokers have counted: the share of the brokers that a message matched at; of
    ``messages`` under this plan, the share of its partitions that one matched; None: not
    measured."""

    brokers_share: float | None = None
    messages: float = 0.0
    matched_share: float | None = None


UNMEASURED = Measured()


def reasons_for_another(plan: Plan, drift: Drift, measured: Measured = UNMEASURED) -> list[str]:
    """Why a new plan pays; none if it does not."""
    found = []
    if drift.coverage < plan.facts.coverage - COVERAGE_LOST:
        found.append(
            f"the patterns cover {drift.coverage:.1%} of the profiles, "
            f"{plan.facts.coverage:.1%} when the plan was made"
        )
    if drift.imbalance > plan.facts.imbalance + IMBALANCE_GROWN:
        found.append(
            f"the largest partition has {drift.imbalance:.2f} times the mean, "
            f"{plan.facts.imbalance:.2f} when the plan was made"
        )
    return found + shares_grown(measured, plan)


def shares_grown(measured: Measured, plan: Plan) -> list[str]:
    """What is matched at by more than the plan predicted."""
    found, facts = [], plan.facts
    if measured.messages >= MESSAGES_LEAST:
        found += _grown("in", measured.matched_share, facts.matched_share, "partitions")
    return found + _grown("at", measured.brokers_share, facts.brokers_share, "brokers")


def _grown(where: str, share: float | None, predicted: float, of: str) -> list[str]:
    if share is None or share <= predicted * (1 + SHARE_GROWN):
        return []
    return [f"a message matches {where} {share:.1%} of the {of}, predicted were {predicted:.1%}"]
