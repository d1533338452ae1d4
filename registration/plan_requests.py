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

from overlay.access import Right
from overlay.link.frames import Request
from overlay.link.part import Part
from overlay.link.request_server import RequestRefused, Result, Verb, number_argument
from registration.auto_planning import AutoPlanning
from registration.measured_shares import MeasuredShares
from registration.placement_by_plan import PLAN_BYTES_MAX, PlanPlacement
from registration.plan_application import AT_ONCE, RATE, PlanApplication
from registration.plan_census import PlanCensus
from registration.planning.plan_file import PlanError

RATE_MAX = 10_000.0
AT_ONCE_MAX = 1_024


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
        self.verbs = {
            "plan.use": Verb(Right.OPERATE, self._use),
            "plan.show": Verb(Right.OPERATE, self._show),
            "plan.census": Verb(Right.OPERATE, self._count),
            "plan.apply": Verb(Right.OPERATE, self._apply),
            "plan.progress": Verb(Right.OPERATE, self._progress),
            "plan.pause": Verb(Right.OPERATE, self._pause),
            "plan.resume": Verb(Right.OPERATE, self._resume),
            "plan.abort": Verb(Right.OPERATE, self._abort),
            "plan.auto": Verb(Right.OPERATE, self._plan_by_itself),
        }

    def _use(self, connection: int, request: Request) -> Result:
        """``plan``: the text of a plan, for all profiles to come; empty to have none."""
        text = _plan_argument(request)
        try:
            used = self._auto.use(text)
        except PlanError as error:
            raise RequestRefused("plan-refused", str(error)) from error
        return {"plan": used}

    def _show(self, connection: int, request: Request) -> Result:
        measured = self._shares.measured()
        statistics = self._placement.statistics()
        return {**statistics, "text": self._placement.plan_text, "measured": measured}

    def _count(self, connection: int, request: Request) -> Result | None:
        """``plan``: the text of a plan, absent: the one in force."""
        text = _plan_argument(request) if "plan" in request.arguments else b""
        text = text or self._placement.plan_text
        if not text:
            raise _no_plan()
        try:
            plan = self._placement.plan_of(text)
        except PlanError as error:
            raise RequestRefused("plan-refused", str(error)) from error
        self._census.ask(connection, request.request, plan)
        return None

    def _apply(self, connection: int, request: Request) -> Result:
        """``rate``: moves that begin in a second; ``at_once``: that are under way."""
        if not self._placement.plan_id:
            raise _no_plan()
        rate = number_argument(request, "rate", RATE)
        at_once = int(number_argument(request, "at_once", AT_ONCE))
        if not 0 < rate <= RATE_MAX or not 0 < at_once <= AT_ONCE_MAX:
            raise RequestRefused(
                "bad-argument",
                f"'rate' is above 0 and at most {RATE_MAX:g}, 'at_once' 1 to {AT_ONCE_MAX}",
            )
        self._application.begin(rate, at_once)
        return self._application.progress()

    def _progress(self, connection: int, request: Request) -> Result:
        return self._application.progress()

    def _pause(self, connection: int, request: Request) -> Result:
        self._application.pause()
        return self._application.progress()

    def _resume(self, connection: int, request: Request) -> Result:
        self._application.resume()
        return self._application.progress()

    def _abort(self, connection: int, request: Request) -> Result:
        self._application.abort()
        return self._application.progress()

    def _plan_by_itself(self, connection: int, request: Request) -> Result:
        """``on``: whether it shall from now on, whoever has put which plan in force; absent: as it
        is."""
        if "on" in request.arguments:
            is_on = request.arguments["on"]
            if not isinstance(is_on, bool):
                raise RequestRefused("bad-argument", "'on' must be true or false")
            self._auto.turn(is_on=is_on)
        return self._auto.status()


def _plan_argument(request: Request) -> bytes:
    text = request.arguments.get("plan")
    if not isinstance(text, bytes) or len(text) > PLAN_BYTES_MAX:
        raise RequestRefused("bad-argument", f"'plan' must be at most {PLAN_BYTES_MAX} bytes")
    return text


def _no_plan() -> RequestRefused:
    return RequestRefused("no-plan", "there is no plan in force")
