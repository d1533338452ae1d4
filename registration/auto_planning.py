"""AutoPlanning: the registration service makes plans by itself, uses them, and applies them.

Section 3.1 of the paper: the registration service places profiles, by PEP where it can (4.4).
About once a second this part looks at counts: is there a reason for a plan, and nothing against it?
Once that has been so for a while, a plan is made by a process of its own (planner_desk.py),
put in force as by ``plan use``, and applied as by ``plan apply``.  Where merely many profiles have
changed, the plan in force is compared with them first (plan_census.py): one that is still good
stays, so that nothing moves for nothing.

A plan that somebody else has put in force, or out of force, stays so until ``plan auto``.  What was
decided last, and on what grounds, is stored; what is under way is not: after a restart it is due
again.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from typing import cast

import msgspec
from msgspec.structs import replace

from formats.schema import Schema, SchemaKind
from overlay.answers import AutoPlan, Drift
from overlay.backoff import Backoff
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredValue
from overlay.link.events import AskDesk, DeskAnswered
from overlay.link.part import Hearer, Part, hears
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.state_table import StateMachine, StateTable
from overlay.statistics import Planning, RegistrationStatistics
from overlay.topology import Topology
from overlay.verbs import PLAN_AT_ONCE
from registration.catalog import Catalog, SourceEntry
from registration.measured_shares import MeasuredShares
from registration.placement_by_plan import PlanPlacement
from registration.plan_application import PlanApplication
from registration.plan_census import PlanCensus
from registration.plan_questions import PlanFailed, PlanMade, PlanWanted
from registration.planning.drift import (
    SHARE_GROWN,
    Measured,
    reasons_for_another,
    shares_grown,
)
from registration.planning.plan_file import PlanError, plan_id

# -------------------------------------------------------------------------------------------------
# SourceSchemas: the schemas of the catalog's sources, and which these are, by digest.


LOOK_AT = 32  # schemas in a look; each may have 4 MB


class SourceSchemas:
    """What is not whole counts as no schema: it does not say what a message cannot have."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._seen = -1
        self._to_do: list[SourceEntry] = []
        self._known: dict[tuple[str, int], str] = {}  # (source, version) -> digest
        self.digests: list[str] = []  # sorted, as of the last look that saw all

    def look(self) -> bool:
        """Look at some that are new; whether all have been looked at."""
        if self._seen != self._catalog.sources_changed:
            self._seen = self._catalog.sources_changed
            there = self._with_schema()
            self._known = {key: d for key, d in self._known.items() if key in there}
            self._to_do = [entry for key, entry in there.items() if key not in self._known]
        elif not self._to_do:
            return True
        for entry in self._to_do[:LOOK_AT]:
            named = f"{entry.schema_kind}\0{entry.schema_name}\0".encode()
            self._known[entry.source, entry.version] = sha256(named + entry.schema).hexdigest()[:16]
        del self._to_do[:LOOK_AT]
        self.digests = sorted(set(self._known.values()))
        return not self._to_do

    def schemas(self) -> tuple[tuple[Schema, ...], bool]:
        """Each once, and whether there are sources without."""
        there = self._with_schema()
        found = {
            Schema(entry.schema_name, cast("SchemaKind", entry.schema_kind), entry.schema): None
            for entry in there.values()
        }
        return tuple(found), len(there) < len(self._catalog.sources)

    def _with_schema(self) -> dict[tuple[str, int], SourceEntry]:
        return {
            (entry.source, entry.version): entry
            for entry in self._catalog.sources.values()
            if entry.schema and not entry.schema_unread and not entry.is_removed
        }


# -------------------------------------------------------------------------------------------------


RETRY = Backoff(60.0, 3_600.0)  # after a failure
STORED_EACH = 0.01  # of the profiles that have changed

NO_PLANNER = "this service has no planner"


class PlanningState(StrEnum):
    WAITING = "waiting"
    COUNTING = "counting"
    PLANNING = "planning"


class PlanningEvent(StrEnum):
    DRIFTED = "many profiles have changed"
    DUE = "a plan is due"
    GOOD = "the plan in force is good"
    PAYS = "a new plan pays"
    MADE = "a plan is made"
    FAILED = "it fails"
    STOPPED = "an operator takes over"


class _DecisionRow(Row, frozen=True):
    """What was decided last: ``plan`` stays or comes, ``at`` (of the calendar) for a ``reason``,
    which took so many ``seconds`` of planning; and how it was then: ``profiles``, ``brokers``,
    digests of ``schemas``, the measured ``share``.  ``changed`` profiles since; ``is_off``: an
    operator says so."""

    plan: str = ""
    at: float = 0.0
    reason: str = ""
    seconds: float = 0.0
    profiles: int = 0
    changed: int = 0
    brokers: list[str] = msgspec.field(default_factory=list)
    schemas: list[str] = msgspec.field(default_factory=list)
    share: float = 0.0
    is_off: bool = False


DECISION = Table("auto-plan", _DecisionRow)


class AutoPlanning(StateMachine[None, PlanningState, PlanningEvent], Part):
    """Of one network."""

    def __init__(
        self,
        context: CoreContext,
        catalog: Catalog,
        placement: PlanPlacement,
        shares: MeasuredShares,
        application: PlanApplication,
        census: PlanCensus,
        no_planner: str,
    ) -> None:
        """``no_planner``: why the shell cannot plan; "": it can."""
        self._catalog = catalog
        self._placement = placement
        self._shares = shares
        self._application = application
        self._census = census
        self._stored = StoredValue(context.rows, DECISION, _DecisionRow())
        self._wall = context.wall
        self._schemas = SourceSchemas(catalog)
        self._no_planner = no_planner
        self._state = PlanningState.WAITING
        self._now = 0.0
        self._base = 0  # of what the catalog has counted: what is in ``changed`` already
        self._why = "it has only begun"
        self._reason = ""  # for what is due or under way
        self._since: float | None = None  # there is this reason
        self._quiet_from = 0  # of what the catalog has counted
        self._began = 0.0
        self._asked = 0  # questions to the planner
        self._figures = Planning()
        self._failure = ""
        self._failures = 0  # in a row
        self._failed_at = self._pause = 0.0
        self.use_topology(context.topology)

    def use_topology(self, topology: Topology) -> None:
        """The network has changed, or its settings."""
        self._topology, self._options = topology, topology.planning
        self._never = self._no_planner
        if self._options.auto is False:
            self._never = "[planning] has auto = false"
            self.happen(None, PlanningEvent.STOPPED)
        self._brokers = sorted(broker.id for broker in topology.brokers if broker.capacity > 0)

    def restore(self, rows: StoredRows) -> None:
        self._base = self._catalog.texts_changed

    # --- what is asked for ----------------------------------------------------------------

    def turn(self, *, is_on: bool) -> None:
        """From now on, or not any more; the plan that is in force is its own from now on."""
        if is_on and self._is_held:
            self._decide("", self._placement.plan_id)
            self._store(at=0.0)  # nothing is to be waited for
        self._store(is_off=not is_on)
        if not is_on:
            self.happen(None, PlanningEvent.STOPPED)

    def status(self) -> AutoPlan:
        """``why``: it is on or not, does something or not; ``says``: all of that for people."""
        if not self._never and self._state is PlanningState.WAITING:
            self._why = self._hindrance() or self._why  # as of now, not of the last tick
        row = self._stored.now
        return AutoPlan(
            is_on=not (self._never or row.is_off or self._is_held),
            state=self._state.value,
            why=self._never or self._why,
            plan=row.plan,
            at=row.at,
            reason=row.reason,
            seconds=row.seconds,
            profiles=len(self._catalog.profiles),
            changed=self._changed,
            failures=self._failures,
            failure=self._failure,
            next_in=max(0.0, self._wait_seconds()),
            says=self._says(),
        )

    # --- what happens ---------------------------------------------------------------------

    def tick(self, now: float) -> None:
        self._now = now
        if self._never:
            return
        row = self._stored.now
        if self._changed - row.changed >= STORED_EACH * max(row.profiles, 100):
            self._store()
        if self._state is not PlanningState.WAITING:
            return
        event, reason = None, ""
        self._why = self._hindrance()
        if not self._why:
            event, reason = self._due()
        if event is None:
            self._since = None
        elif self._has_settled(reason):
            self.happen(None, event, reason)

    def events(self) -> Iterable[Hearer]:
        yield hears(DeskAnswered, self._answered)

    def _answered(self, event: DeskAnswered) -> bool:
        answer = event.answer
        if not isinstance(answer, PlanMade | PlanFailed):
            return False
        if event.key != str(self._asked):
            pass  # nobody is interested any more
        elif isinstance(answer, PlanMade):
            self.happen(None, PlanningEvent.MADE, answer)
        else:
            self.happen(None, PlanningEvent.FAILED, answer.reason)
        return True

    def _counted(self, drift: Drift) -> None:
        plan = self._placement.plan
        reasons = [] if plan is None else reasons_for_another(plan, drift)
        if reasons:
            self.happen(None, PlanningEvent.PAYS, f"{self._reason}: {'; '.join(reasons)}")
        else:
            self.happen(None, PlanningEvent.GOOD)

    def use(self, text: bytes) -> str:
        """Put a plan in force, and tell all who have to do with it; see PlanPlacement."""
        used = self._placement.use(text)
        self._shares.plan_changed()
        self._application.work_soon()
        if self._is_held:
            self.happen(None, PlanningEvent.STOPPED)
        return used

    def report(self, said: RegistrationStatistics) -> None:
        self._figures.states = {s.value: int(s is self._state) for s in PlanningState}
        said.planning = self._figures

    # --- is there a reason? ---------------------------------------------------------------

    @property
    def _is_held(self) -> bool:
        """Whether somebody else has put a plan in force, or this one's out of force."""
        return self._placement.plan_id != self._stored.now.plan

    @property
    def _changed(self) -> int:
        """Profiles, since what was decided last."""
        return self._stored.now.changed + self._catalog.texts_changed - self._base

    def _hindrance(self) -> str:
        """Why nothing is to be done, whatever has changed; "" if nothing stands in the way."""
        profiles, least = len(self._catalog.profiles), self._options.at_profiles
        if self._stored.now.is_off:
            return "an operator has switched it off; onyx plan auto switches it on"
        if self._is_held:
            what = f"put plan {self._placement.plan_id} in force"
            if not self._placement.plan_id:
                what = "put the plan out of force"
            return f"an operator has {what}; onyx plan auto takes it from there"
        if len(self._brokers) < 2:
            return "only one broker may host profiles"
        if profiles < least:
            return f"there are {profiles:,} profiles, fewer than {least:,}"
        if self._application.is_under_way:
            return "profiles are moving to where the plan has them, or their moves are paused"
        if not self._schemas.look():
            return "the schemas of sources are being looked at"
        wait = self._wait_seconds()
        return f"the next plan may be made in {wait:.0f} s" if wait > 0 else ""

    def _wait_seconds(self) -> float:
        if self._failures:
            begin, pause = self._failed_at, self._pause
        else:
            begin = self._stored.now.at
            pause = self._options.between_s if begin else 0.0
        return min(begin + pause - self._wall(), pause)  # a clock may have been put back

    def _due(self) -> tuple[PlanningEvent | None, str]:
        row, plan = self._stored.now, self._placement.plan
        if plan is None:
            return PlanningEvent.DUE, "there was no plan"
        for brokers, what in (
            (set(self._brokers) - set(row.brokers), "come"),
            (set(row.brokers) - set(self._brokers), "left"),
        ):
            if brokers:
                shown = ", ".join(sorted(brokers)[:3]) + (" and others" if len(brokers) > 3 else "")
                return PlanningEvent.DUE, f"{shown} has {what}"
        if self._schemas.digests != row.schemas:
            return PlanningEvent.DUE, "the schemas of the sources have changed"
        measured = self._measured()
        if (measured.matched_share or 0.0) > row.share * (1 + SHARE_GROWN):
            for reason in shares_grown(measured, plan):
                return PlanningEvent.DUE, reason
        most = self._options.drift * row.profiles
        if self._changed > most:
            return PlanningEvent.DRIFTED, f"{self._changed:,} profiles have changed"
        self._why = f"{self._changed:,} profiles have changed, no more than {int(most):,}"
        return None, ""

    def _has_settled(self, reason: str) -> bool:
        """There has been a reason for long enough, and the catalog is not just being filled."""
        counted = self._catalog.texts_changed
        most = self._options.drift * len(self._catalog.profiles)
        if self._since is None or counted - self._quiet_from > most:
            self._since, self._quiet_from = self._now, counted
        left = self._since + self._options.settle_s - self._now
        self._why = f"{reason}; it waits {left:.0f} s in case more changes"
        return left <= 0

    def _measured(self) -> Measured:
        measured = self._shares.measured()
        return Measured(None, measured.messages, measured.matched_share)

    # --- steps of the table ---------------------------------------------------------------

    def state(self, thing: None) -> PlanningState:
        return self._state

    def enter(self, thing: None, state: PlanningState) -> None:
        self._state, self._since = state, None

    def _count(self, thing: None, reason: str) -> None:
        plan = self._placement.plan
        assert plan is not None
        self._reason, self._began = reason, self._now
        self._census.count(plan, self._counted)

    def _make(self, thing: None, reason: str) -> None:
        self._reason, self._began = reason, self._now
        self._asked += 1
        self._quiet_from = self._catalog.texts_changed
        measured = self._shares.measured()
        wanted = PlanWanted(
            list(self._catalog.profiles.values()),
            self._topology,
            *self._schemas.schemas(),
            self._placement.plan_text,
            measured.messages,
            measured.matched,
        )
        self.ask_shell(AskDesk(str(self._asked), wanted))

    def _keep(self, thing: None) -> None:
        self._decide(self._reason, self._placement.plan_id)

    def _use(self, thing: None, made: PlanMade) -> None:
        try:
            plan = self._placement.plan_of(made.text)
        except PlanError as error:  # the network may be another by now
            self._fail(None, str(error))
            return
        self._figures.made += 1
        self._decide(self._reason, plan_id(plan), made.seconds)
        self._base = self._quiet_from
        self.use(made.text)
        self._store()
        self._application.begin(self._options.moves_per_second, PLAN_AT_ONCE)

    def _fail(self, thing: None, reason: str) -> None:
        self._failures += 1
        self._figures.failed += 1
        self._failure, self._failed_at = reason, self._wall()
        self._pause = RETRY.after(self._failures)

    def _stand_back(self, thing: None) -> None:
        self._asked += 1

    steps = StateTable(
        PlanningState.WAITING,
        {
            (PlanningState.WAITING, PlanningEvent.DUE): (_make, PlanningState.PLANNING),
            (PlanningState.WAITING, PlanningEvent.DRIFTED): (_count, PlanningState.COUNTING),
            (PlanningState.COUNTING, PlanningEvent.GOOD): (_keep, PlanningState.WAITING),
            (PlanningState.COUNTING, PlanningEvent.PAYS): (_make, PlanningState.PLANNING),
            (PlanningState.COUNTING, PlanningEvent.STOPPED): (_stand_back, PlanningState.WAITING),
            (PlanningState.PLANNING, PlanningEvent.MADE): (_use, PlanningState.WAITING),
            (PlanningState.PLANNING, PlanningEvent.FAILED): (_fail, PlanningState.WAITING),
            (PlanningState.PLANNING, PlanningEvent.STOPPED): (_stand_back, PlanningState.WAITING),
        },
    )

    # --- helpers --------------------------------------------------------------------------

    def _decide(self, reason: str, plan: str, seconds: float = 0.0) -> None:
        """``plan`` is in force as of now; what was counted so far has been seen."""
        self._failures, self._failure = 0, ""
        self._store(
            plan=plan,
            at=self._wall(),
            reason=reason,
            seconds=round(seconds, 3),
            profiles=len(self._catalog.profiles),
            brokers=self._brokers,
            schemas=self._schemas.digests,
            share=self._measured().matched_share or 0.0,
            changed=0,
        )

    def _store(self, **changes: object) -> None:
        """The profiles that have changed since, and other ``changes`` of what was decided last."""
        self._stored.put(replace(self._stored.now, **{"changed": self._changed, **changes}))
        self._base = self._catalog.texts_changed

    def _says(self) -> list[str]:
        if self._never:
            return [f"no plan is made automatically: {self._never}"]
        row, said = self._stored.now, []
        if self._state is PlanningState.WAITING:
            said.append(f"no plan is being made automatically: {self._why}")
        else:
            what = "a plan is being made"
            if self._state is PlanningState.COUNTING:
                what = "the plan in force is being compared with the profiles"
            said.append(f"{what}, for {self._now - self._began:.0f} s: {self._reason}")
        if self._failures:
            left = max(0.0, self._wait_seconds())
            said.append(
                f"planning has failed {self._failures} times in a row, next in {left:.0f} s: "
                f"{self._failure}"
            )
        if row.at:
            made = f"plan {row.plan} was made in {row.seconds:.0f} s"
            if not row.seconds:
                made = f"plan {row.plan} stays" if row.plan else "it goes on without a plan"
            when = datetime.fromtimestamp(row.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            said.append(f"{when}: {made}, as {row.reason}")
        return said
