"""PlanCensus: how the profiles of the catalog are placed, compared with a plan, in sums.

Millions of texts stay where they are: they are gone through a slice at a time, between other
events, and who has asked is answered with the sums.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from overlay.link.request_server import RequestRefused, Result
from registration.catalog import Catalog
from registration.planning.plan import Plan
from registration.planning.plan_drift import Drift, DriftCount, PlacedProfile
from registration.planning.plan_file import plan_id

SLICE_PROFILES = 500
WAITING_MAX = 8

Answer = Callable[[int, str, Result], None]


@dataclass(frozen=True, slots=True)
class _Counting:
    connection: int
    request: str
    plan: str
    count: DriftCount
    left: Iterator[str]


class PlanCensus:
    """One census after the other."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._waiting: deque[_Counting] = deque()

    def ask(self, connection: int, request: str, plan: Plan) -> None:
        """Begin one; RequestRefused when too many wait."""
        if len(self._waiting) >= WAITING_MAX:
            raise RequestRefused("busy", f"{WAITING_MAX} others are counting already")
        left = iter(list(self._catalog.profiles))
        self._waiting.append(_Counting(connection, request, plan_id(plan), DriftCount(plan), left))

    def run(self, answer: Answer) -> bool:
        """Count a slice, and answer when it was the last; whether there is more to do."""
        if not self._waiting:
            return False
        counting = self._waiting[0]
        for _ in range(SLICE_PROFILES):
            profile = next(counting.left, None)
            if profile is None:
                self._waiting.popleft()
                result = drift_result(counting.plan, counting.count.drift())
                answer(counting.connection, counting.request, result)
                break
            entry = self._catalog.profiles.get(profile)
            if entry is not None:
                counting.count.add(PlacedProfile(entry.text, entry.host, entry.near))
        return bool(self._waiting)

    def forget(self, connection: int) -> None:
        """A connection is gone; nobody waits on it any more."""
        self._waiting = deque(one for one in self._waiting if one.connection != connection)

    def statistics(self) -> dict[str, int]:
        return {"counting": len(self._waiting)}


def drift_result(plan: str, drift: Drift) -> Result:
    """A drift as a response carries it; ``drift_of`` is the way back."""
    return {
        "plan": plan,
        "profiles": drift.profiles,
        "misplaced": drift.misplaced,
        "near": drift.near,
        "coverage": drift.coverage,
        "imbalance": drift.imbalance,
        "moves": [[old, new, count] for (old, new), count in sorted(drift.moves.items())],
    }


def drift_of(result: Result) -> Drift:
    return Drift(
        profiles=result["profiles"],
        misplaced=result["misplaced"],
        near=result["near"],
        coverage=result["coverage"],
        imbalance=result["imbalance"],
        moves={(old, new): count for old, new, count in result["moves"]},
    )
