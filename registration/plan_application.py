"""PlanApplication: the profiles that are there are moved to where the plan in force has them.

The catalog is gone through, a slice at a time; each profile that is not at home is set on its way
(moves.py) as long as few enough are under way and not too many have begun this second.  A pass
that found nothing to do is the last one.

What cannot move now is looked at again in the next pass: it has no room at its home before others
have left, or its home is away.  A home at which a profile does not become live in time is tried
again, a few times.

Only what was asked for and what has come of it are stored: what is still to do shows when the
catalog is gone through again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum

from msgspec.structs import replace

from overlay.answers import PlanProgress
from overlay.link.core_context import CoreContext
from overlay.link.durable import StoredValue
from overlay.link.part import Part
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from overlay.statistics import RegistrationStatistics
from overlay.topology import Topology
from overlay.verbs import PLAN_AT_ONCE, PLAN_RATE
from registration.catalog import Catalog, ProfileEntry
from registration.moves import Move, Moves, Phase
from registration.placement_by_plan import PlanPlacement

_AWAY = " is away"

SLICE_PROFILES = 500  # looked at before anything else is done; some 10 ms
STANDBY_SECONDS = 30.0  # within which a profile must be live at its new host
TRIES_MAX = 3
RETRY_SECONDS = 5.0  # between two passes when nothing could be begun


class State(StrEnum):
    NEVER = "never"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    ABORTED = "aborted"


class _ApplicationRow(Row, frozen=True):
    """``came`` and ``left`` are by broker."""

    state: State
    plan: str
    rate: float
    at_once: int
    counters: Mapping[str, int]
    came: Mapping[str, int]
    left: Mapping[str, int]


APPLICATION = Table("application", _ApplicationRow)
_NEVER = _ApplicationRow(State.NEVER, "", PLAN_RATE, PLAN_AT_ONCE, {}, {}, {})


def _one_more(counts: Mapping[str, int], key: str) -> dict[str, int]:
    return {**counts, key: counts.get(key, 0) + 1}


class PlanApplication(Part):
    """At most one at a time; a new one takes the place of the one before."""

    def __init__(
        self, context: CoreContext, catalog: Catalog, placement: PlanPlacement, moves: Moves
    ) -> None:
        self.use_topology(context.topology)
        self._catalog = catalog
        self._placement = placement
        self._moves = moves
        self._stored = StoredValue(context.rows, APPLICATION, _NEVER)
        self._connected = context.links.connected
        self._scan: Iterator[str] = iter(())
        self._looked_at = 0  # in this pass, of
        self._to_look_at = 0
        self._begun_in_pass = 0
        self._put_off: Counter[str] = Counter()  # in this pass, by reason
        self._tries: Counter[str] = Counter()
        self._since: dict[int, float] = {}  # when a move was first seen to stand by
        self._tokens = 0.0  # moves that may begin; a second's worth is saved up
        self._now = 0.0
        self._pass_began = 0.0

    def use_topology(self, topology: Topology) -> None:
        """The network has changed."""
        self._capacity = {broker.id: broker.capacity for broker in topology.brokers}

    def restore(self, rows: StoredRows) -> None:
        if self._stored.now is not _NEVER:
            self._begin_pass()

    # --- what is asked for ----------------------------------------------------------------

    def begin(self, rate: float, at_once: int) -> None:
        """Move everybody home by the plan in force: at most ``rate`` begin in a second and
        ``at_once`` are under way.  Asked again while it runs: only these change."""
        row, plan = self._stored.now, self._placement.plan_id
        if not self.is_under_way or row.plan != plan:
            row = replace(_NEVER, plan=plan)
            self._tries.clear()
            self._begin_pass()
        self._stored.put(replace(row, state=State.RUNNING, rate=rate, at_once=at_once))
        self.work_soon()

    def pause(self) -> None:
        """Begin no more moves; those under way go on."""
        if self._stored.now.state is State.RUNNING:
            self._change(state=State.PAUSED)

    def resume(self) -> None:
        if self._stored.now.state is State.PAUSED:
            self._change(state=State.RUNNING)
            self.work_soon()

    def abort(self) -> None:
        """Begin no more moves, and give up those whose profiles are still at their old host."""
        if self.is_under_way:
            self._change(state=State.ABORTED)
            for move in self._moves:
                self._give_up(move)

    @property
    def is_under_way(self) -> bool:
        """Or paused."""
        return self._stored.now.state in (State.RUNNING, State.PAUSED)

    def progress(self) -> PlanProgress:
        row = self._stored.now
        return PlanProgress(
            state=row.state.value,
            plan=row.plan,
            rate=row.rate,
            at_once=row.at_once,
            moved=row.counters.get("moved", 0),
            given_up=row.counters.get("given_up", 0),
            under_way=len(self._moves),
            looked_at=self._looked_at,
            profiles=self._to_look_at,
            put_off=dict(self._put_off),
            came=row.came,
            left=row.left,
        )

    def report(self, said: RegistrationStatistics) -> None:
        left = self._to_look_at - self._looked_at if self.is_under_way else 0
        said.application.to_look_at = left

    # --- what happens ---------------------------------------------------------------------

    def moved(self, move: Move) -> None:
        """A move is over."""
        row = self._stored.now
        self._change(
            counters=_one_more(row.counters, "moved"),
            came=_one_more(row.came, move.new),
            left=_one_more(row.left, move.old),
        )
        self._tries.pop(move.profile, None)
        self.work_soon()

    def tick(self, now: float) -> None:
        """Go on with it, as far as is to be done at once."""
        if self._run(now):
            self.work_soon()

    def work(self) -> None:
        self.tick(self._now if self.agenda is None else self.agenda.now)

    def _run(self, now: float) -> bool:
        """Whether there is more to do at once."""
        rate = self._stored.now.rate
        self._tokens = min(max(1.0, rate), self._tokens + (now - self._now) * rate)
        self._now = now
        self._give_up_late()
        row = self._stored.now
        if row.state is not State.RUNNING:
            return False
        if row.plan != self._placement.plan_id:  # another plan is in force
            self.abort()
            return False
        for _ in range(SLICE_PROFILES):
            if self._tokens < 1 or self._under_way() >= row.at_once:
                return False
            profile = next(self._scan, None)
            if profile is None:
                return self._end_pass()
            self._looked_at += 1
            self._look_at(profile)
        return True

    # --- helpers --------------------------------------------------------------------------

    def _begin_pass(self) -> None:
        profiles = list(self._catalog.profiles)
        self._scan = iter(profiles)
        self._looked_at, self._to_look_at = 0, len(profiles)
        self._begun_in_pass = 0
        self._pass_began = self._now
        self._put_off.clear()

    def _end_pass(self) -> bool:
        """All have been looked at: when nothing is under way any more, look again, or be done."""
        if self._moves:
            return False
        if not self._begun_in_pass:
            if not any(reason.endswith(_AWAY) for reason in self._put_off):
                self._change(state=State.DONE)
                return False
            if self._now < self._pass_began + RETRY_SECONDS:
                return False
        self._begin_pass()
        return True

    def _look_at(self, profile: str) -> None:
        entry = self._catalog.profiles.get(profile)
        if entry is None or not entry.placed or profile in self._moves:
            return
        home = self._placement.home_of(entry)
        if home is None:
            return
        obstacle = self._obstacle(entry, home)
        if obstacle:
            self._put_off[obstacle] += 1
            return
        self._tokens -= 1
        self._begun_in_pass += 1
        self._tries[profile] += 1
        self._since[self._moves.begin(profile, home).number] = self._now

    def _obstacle(self, entry: ProfileEntry, home: str) -> str:
        """Why a profile cannot go home now; "" if it can."""
        for broker in (home, entry.host):
            if broker not in self._capacity:
                return f"{broker} is no broker any more"
            if not self._connected(f"broker/{broker}"):
                return f"{broker}{_AWAY}"
        if self._tries[entry.profile] >= TRIES_MAX:
            return f"not live at {home} in time"
        if self._catalog.profiles_by_broker[home] >= self._capacity[home]:
            return f"{home} is full"
        return ""

    def _under_way(self) -> int:
        """The moves that go on; one that waits for a host that is away holds up no others."""
        return sum(
            self._connected(f"broker/{move.new}") and self._connected(f"broker/{move.old}")
            for move in self._moves
        )

    def _give_up_late(self) -> None:
        """A profile must become live at its new host in time; until then it can stay."""
        standing_by = [move for move in self._moves if move.phase is Phase.STANDBY]
        self._since = {m.number: self._since.get(m.number, self._now) for m in standing_by}
        for move in standing_by:
            if self._now - self._since[move.number] > STANDBY_SECONDS:
                self._give_up(move)

    def _give_up(self, move: Move) -> None:
        if self._moves.give_up(move.profile):
            self._change(counters=_one_more(self._stored.now.counters, "given_up"))

    def _change(self, **changes: object) -> None:
        self._stored.put(replace(self._stored.now, **changes))
