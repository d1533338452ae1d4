"""What may be asked of the registration service about plans: one verb, one function.

==================  ==========================================================================
``plan.use``         new profiles are placed by this plan
``plan.show``        the plan in force
``plan.census``      the profiles that there are, compared with a plan, in sums; answered when all
                     have been looked at
``plan.apply``       the profiles that there are are moved to where the plan in force has them
``plan.progress``    how far that is
``plan.pause``, ``plan.resume``, ``plan.abort``
``plan.auto``        why the service plans by itself, or does not; whether it shall
==================  ==========================================================================
"""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from overlay import verbs
from overlay.answers import AutoPlan, PlanProgress, PlanShown, PlanUsed
from overlay.link.frames import Request
from overlay.link.part import Part
from overlay.link.request_server import RequestRefused, Verb
from registration.auto_planning import AutoPlanning
from registration.measured_shares import MeasuredShares
from registration.placement_by_plan import PlanPlacement
from registration.plan_application import PlanApplication
from registration.plan_census import PlanCensus


class PlanRequests(Part):
    """The verbs about plans."""

    def __init__(
        self,
        placement: PlanPlacement,
        shares: MeasuredShares,
        application: PlanApplication,
        census: PlanCensus,
        auto: AutoPlanning,
    ) -> None:
        self._placement = placement
        self._shares = shares
        self._application = application
        self._census = census
        self._auto = auto
        self.verbs = (
            Verb(verbs.PlanUse, self._use),
            Verb(verbs.PlanShow, self._show),
            Verb(verbs.PlanCensus, self._count),
            Verb(verbs.PlanApply, self._apply),
            Verb(verbs.PlanProgress, self._progress),
            Verb(verbs.PlanPause, self._pause),
            Verb(verbs.PlanResume, self._resume),
            Verb(verbs.PlanAbort, self._abort),
            Verb(verbs.PlanAuto, self._plan_by_itself),
        )

    def _use(self, connection: int, request: Request, asked: verbs.PlanUse) -> PlanUsed:
        """``plan``: the text of a plan, for all profiles to come; empty to have none."""
        text = asked.plan
        return PlanUsed(self._auto.use(text))

    def _show(self, connection: int, request: Request, asked: verbs.PlanShow) -> PlanShown:
        facts: dict[str, Any] = self._placement.statistics()
        return PlanShown(**facts, text=self._placement.plan_text, measured=self._shares.measured())

    def _count(self, connection: int, request: Request, asked: verbs.PlanCensus) -> None:
        """``plan``: the text of a plan, absent: the one in force."""
        text = asked.plan or self._placement.plan_text
        if not text:
            raise _no_plan()
        self._census.ask(connection, request.request, self._placement.plan_of(text))

    def _apply(self, connection: int, request: Request, asked: verbs.PlanApply) -> PlanProgress:
        """``rate``: moves that begin in a second; ``at_once``: that are under way."""
        if not self._placement.plan_id:
            raise _no_plan()
        self._application.begin(asked.rate, int(asked.at_once))
        return self._application.progress()

    def _progress(
        self, connection: int, request: Request, asked: verbs.PlanProgress
    ) -> PlanProgress:
        return self._application.progress()

    def _pause(self, connection: int, request: Request, asked: verbs.PlanPause) -> PlanProgress:
        self._application.pause()
        return self._application.progress()

    def _resume(self, connection: int, request: Request, asked: verbs.PlanResume) -> PlanProgress:
        self._application.resume()
        return self._application.progress()

    def _abort(self, connection: int, request: Request, asked: verbs.PlanAbort) -> PlanProgress:
        self._application.abort()
        return self._application.progress()

    def _plan_by_itself(self, connection: int, request: Request, asked: verbs.PlanAuto) -> AutoPlan:
        """``on``: whether it shall from now on, whoever has put which plan in force; absent: as it
        is."""
        if asked.on is not UNSET:
            self._auto.turn(is_on=asked.on)
        return self._auto.status()


def _no_plan() -> RequestRefused:
    return RequestRefused("no-plan", "there is no plan in force")
