"""What may be asked of the registration service about plans: one verb, one function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, to_builtins

from overlay import verbs
from overlay.answers import AutoPlan, PlanProgress, PlanShown, PlanUsed
from overlay.link.frames import Request
from overlay.link.part import Part
from overlay.link.request_server import Answering, RequestRefused, Verb, alone
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
            Verb(verbs.PlanProgress, self._after(lambda: None)),
            Verb(verbs.PlanPause, self._after(application.pause)),
            Verb(verbs.PlanResume, self._after(application.resume)),
            Verb(verbs.PlanAbort, self._after(application.abort)),
            Verb(verbs.PlanAuto, alone(self._plan_by_itself)),
        )

    def _use(self, asked: verbs.PlanUse) -> PlanUsed:
        return PlanUsed(self._auto.use(asked.plan))

    def _show(self, asked: verbs.PlanShow) -> PlanShown:
        placed = {"plan": "", **to_builtins(self._placement.counted)}
        return PlanShown(**placed, text=self._placement.plan_text, measured=self._shares.measured())

    def _count(self, connection: int, request: Request, asked: verbs.PlanCensus) -> None:
        text = asked.plan or self._placement.plan_text
        if not text:
            raise _no_plan()
        self._census.ask(connection, request.request, self._placement.plan_of(text))

    def _apply(self, asked: verbs.PlanApply) -> PlanProgress:
        if not self._placement.plan_id:
            raise _no_plan()
        self._application.begin(asked.rate, int(asked.at_once))
        return self._application.progress()

    def _after(self, change: Callable[[], None]) -> Answering[Any]:
        """The change, and how far the moves are then."""

        def answer(asked: verbs.Asked) -> PlanProgress:
            change()
            return self._application.progress()

        return alone(answer)

    def _plan_by_itself(self, asked: verbs.PlanAuto) -> AutoPlan:
        if asked.on is not UNSET:
            self._auto.turn(is_on=asked.on)
        return self._auto.status()


def _no_plan() -> RequestRefused:
    return RequestRefused("no-plan", "there is no plan in force")
