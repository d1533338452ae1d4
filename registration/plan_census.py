"""PlanCensus: how the profiles of the catalog are placed, compared with a plan, in sums.

Millions of texts stay where they are: they are gone through a slice at a time, between other
events, and who has asked is answered with the sums.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from overlay.answers import Drift
from overlay.link.arrival import Arrival
from overlay.link.part import Part
from overlay.link.request_server import RequestRefused
from registration.catalog import Catalog
from registration.planning.plan import Plan
from registration.planning.plan_drift import DriftCount, PlacedProfile

SLICE_PROFILES = 500
WAITING_MAX = 8
HERE = -1

Answer = Callable[[int, str, Drift], None]


@dataclass(frozen=True, slots=True)
class _Counting:
    connection: int  # of who has asked, or HERE
    tell: Callable[[Drift], None]
    count: DriftCount
    left: Iterator[str]


class PlanCensus(Part):
    """One census after the other."""

    def __init__(self, catalog: Catalog, answer: Answer) -> None:
        """``answer(connection, request, result)`` answers who has asked."""
        self._catalog = catalog
        self._answer = answer
        self._waiting: deque[_Counting] = deque()

    def ask(self, connection: int, request: str, plan: Plan) -> None:
        """Begin one; RequestRefused when too many wait."""
        if len(self._waiting) >= WAITING_MAX:
            raise RequestRefused("busy", f"{WAITING_MAX} others are counting already")
        self.count(plan, partial(self._answer, connection, request), connection)

    def count(self, plan: Plan, tell: Callable[[Drift], None], connection: int = HERE) -> None:
        """Begin one, and ``tell`` what it comes to, unless the connection is gone by then."""
        left = iter(list(self._catalog.profiles))
        self._waiting.append(_Counting(connection, tell, DriftCount(plan), left))
        self.work_soon()

    def work(self) -> None:
        """Count a slice, and answer when it was the last."""
        if not self._waiting:
            return
        counting = self._waiting[0]
        for _ in range(SLICE_PROFILES):
            profile = next(counting.left, None)
            if profile is None:
                self._waiting.popleft()
                counting.tell(counting.count.drift())
                break
            entry = self._catalog.profiles.get(profile)
            if entry is not None:
                counting.count.add(PlacedProfile(entry.text, entry.host, entry.near))
        if self._waiting:
            self.work_soon()

    def gone(self, arrival: Arrival) -> None:
        """Nobody waits on a connection that is gone."""
        left = (one for one in self._waiting if one.connection != arrival.connection)
        self._waiting = deque(left)
