"""What may be asked of the registration service about plans: one verb, one function."""

from __future__ import annotations

from msgspec import UNSET, to_builtins

from overlay import verbs
from overlay.answers import AutoPlan, PlanProgress, PlanShown, PlanUsed
from overlay.link.frames import Request
from overlay.link.part import Part
from overlay.link.request_server import RequestRefused, Verb, alone
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
            Verb(verbs.PlanUse, alone(self._use)),
            Verb(verbs.PlanShow, alone(self._show)),
            Verb(verbs.PlanCensus, self._count),
            Verb(verbs.PlanApply, alone(self._apply)),
            Verb(verbs.PlanProgress, alone(self._progress)),
            Verb(verbs.PlanPause, alone(self._pause)),
            Verb(verbs.PlanResume, alone(self._resume)),
            Verb(verbs.PlanAbort, alone(self._abort)),
            Verb(verbs.PlanAuto, alone(self._plan_by_itself)),
        )

    def _use(self, asked: verbs.PlanUse) -> PlanUsed:
        """``plan``: the text of a plan, for all profiles to come; empty to have none."""
        text = asked.plan
        return PlanUsed(self._auto.use(text))

    def _show(self, asked: verbs.PlanShow) -> PlanShown:
        placed = {"plan": "", **to_builtins(self._placement.counted)}
        return PlanShown(**placed, text=self._placement.plan_text, measured=self._shares.measured())

    def _count(self, connection: int, request: Request, asked: verbs.PlanCensus) -> None:
        """``plan``: the text of a plan, absent: the one in force."""
        text = asked.plan or self._placement.plan_text
        if not text:
            raise _no_plan()
        self._census.ask(connection, request.request, self._placement.plan_of(text))

    def _apply(self, asked: verbs.PlanApply) -> PlanProgress:
        """``rate``: moves that begin in a second; ``at_once``: that are under way."""
        if not self._placement.plan_id:
            raise _no_plan()
        self._application.begin(asked.rate, int(asked.at_once))
        return self._application.progress()

    def _progress(self, asked: verbs.PlanProgress) -> PlanProgress:
        return self._application.progress()

    def _pause(self, asked: verbs.PlanPause) -> PlanProgress:
        self._application.pause()
        return self._application.progress()

    def _resume(self, asked: verbs.PlanResume) -> PlanProgress:
        self._application.resume()
        return self._application.progress()

    def _abort(self, asked: verbs.PlanAbort) -> PlanProgress:
        self._application.abort()
        return self._application.progress()

    def _plan_by_itself(self, asked: verbs.PlanAuto) -> AutoPlan:
        """``on``: whether it shall from now on, whoever has put which plan in force; absent: as it
        is."""
        if asked.on is not UNSET:
            self._auto.turn(is_on=asked.on)
        return self._auto.status()


def _no_plan() -> RequestRefused:
    return RequestRefused("no-plan", "there is no plan in force")
