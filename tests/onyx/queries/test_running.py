"""Runs are held to their limits: planned anew while nothing was given, else ended and marked.

The jobs of these runs are made here, and so is their clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pyarrow as pa
import pytest

from onyx.queries import running
from onyx.queries.lateness import expected, slowed
from onyx.queries.planning import QueryPlan
from onyx.queries.running import Execution, Run
from onyx.queries.signatures import Order
from registration.queries.providers import CLIENT, CycleProvider, Market, Relation
from registration.queries.quality import Quality
from registration.queries.query_graph import QueryGraph
from registration.queries.query_plan import Figures, Fragment, PlanNode, Receive, Scan
from registration.queries.stopped import QueryStopped
from registration.spark import job as jobs
from registration.spark.job import Measured, Scanned
from tests.hanging import SAFETY_SECONDS

A = CycleProvider("u:A", "A", port=1, cpu_megahertz=2000, price_per_second=0.1)
B = CycleProvider("u:B", "B", port=2, cpu_megahertz=2000)
MARKET = Market({}, {}, {each.uri: each for each in (A, B)}, {}, {})
R = Relation("u:R", "A.R", "u:a", ("u:A",), "csv", "/r", ())
FRAGMENT = Fragment(0, A, (Scan("s", R, ()),), (), (), "", Figures(seconds=30, first_row_s=10))
WHOLE = Scanned(100)
ROWS = pa.RecordBatch.from_pydict({"n": list(range(10))})


@dataclass
class Job:
    """Gives ``rows``; then it ends, or waits until it is cancelled."""

    rows: int = 0
    ends: bool = False
    scanned: Scanned = WHOLE
    share: float = 0.0
    fragment: Fragment = FRAGMENT
    schema: pa.Schema = ROWS.schema
    cancelled: threading.Event = field(default_factory=threading.Event)
    on_rows: Callable[[], None] = lambda: None

    def batches(self) -> Iterator[pa.RecordBatch]:
        for _ in range(self.rows):
            yield ROWS
        self.on_rows()
        if not self.ends:
            assert self.cancelled.wait(SAFETY_SECONDS)
            raise QueryStopped("cancelled", "the query was cancelled")

    def cancel(self) -> None:
        self.cancelled.set()

    def measured(self) -> Measured:
        return Measured(0, seconds=5.0, share=self.share, bytes_read=100, scans=(self.scanned,))


class Clock:
    """Shows what it is set to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _watched_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "WATCH_SECONDS", 1e-3)


def execution(job: Job, quality: Quality) -> Execution:
    root = PlanNode("scan", A, FRAGMENT.estimate)
    plan = QueryPlan("SELECT", MARKET, quality, cast(QueryGraph, None), root)
    return Execution(cast(jobs.Job, job), Order((FRAGMENT,), CLIENT), (), plan)


def run_of(
    job: Job, quality: Quality, faster: list[Job], clock: Clock | None = None
) -> tuple[Run, list[Execution]]:
    """Also the complete executions that it has told."""
    told: list[Execution] = []

    def plan_faster(old: Execution, used: Figures, away: str) -> QueryPlan | None:
        assert away in ("", "u:A")
        return old.plan if faster else None

    started = lambda plan: execution(faster.pop(0), plan.quality)  # noqa: E731
    return Run(execution(job, quality), started, plan_faster, told.append, clock or Clock()), told


def test_a_query_that_will_be_late_goes_over_to_a_faster_plan() -> None:
    clock = Clock()
    slow = Job(on_rows=lambda: setattr(clock, "now", 140.0))  # 40 s, of 30 nothing is done
    run, told = run_of(slow, Quality(seconds=60), [Job(rows=2, ends=True)], clock)
    assert run.table().num_rows == 20
    assert (run.complete, run.stopped, slow.cancelled.is_set()) == (True, None, True)
    assert run.actual.seconds == 40
    assert run.actual.bytes_read == 200, "of the plan that was left, too"
    assert run.bill == {"u:A": pytest.approx(1.0)}
    assert len(told) == 1 and told[0].fragments == (FRAGMENT,)


AWAY = QueryStopped("provider-away", "h:7: nobody answers", "u:A")


@dataclass
class Away(Job):
    """After its rows its provider answers no more: its stream breaks, or else stands still."""

    breaks: bool = False

    def batches(self) -> Iterator[pa.RecordBatch]:
        if self.breaks:
            for _ in range(self.rows):
                yield ROWS
            raise AWAY
        yield from super().batches()


@pytest.mark.parametrize("breaks", [False, True])
@pytest.mark.parametrize("rows", [0, 3])
def test_a_provider_that_is_away_is_left_out_while_nothing_was_given(
    monkeypatch: pytest.MonkeyPatch, rows: int, breaks: bool
) -> None:
    lost = Away(rows, breaks=breaks)
    run, told = run_of(lost, Quality(), [Job(rows=2, ends=True)])
    first, look = run._execution, Execution.look

    def looked(self: Execution) -> None:
        if self is first and run._is_given == bool(rows):
            raise AWAY
        look(self)

    if not breaks:
        monkeypatch.setattr(Execution, "look", looked)
    if rows:
        with pytest.raises(QueryStopped) as caught:
            run.table()
        assert caught.value is run.stopped is AWAY
        assert (run.actual.rows, run.complete, told) == (30, False, [])
        return
    assert run.table().num_rows == 20
    assert (run.complete, run.stopped, len(told)) == (True, None, 1)


def test_a_provider_that_was_left_may_be_away_while_another_plan_is_plugged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost, next_one, looked_again = Away(breaks=True), Job(rows=2, ends=True), threading.Event()
    left: list[Execution] = []

    def look(self: Execution) -> None:
        if self in left:
            looked_again.set()
            raise AWAY

    def start(plan: QueryPlan) -> Execution:
        left.append(run._execution)
        for _ in range(2):  # the second look begins when the first one has been told
            assert looked_again.wait(SAFETY_SECONDS)
            looked_again.clear()
        return execution(next_one, plan.quality)

    monkeypatch.setattr(Execution, "look", look)
    first = execution(lost, Quality())
    run = Run(first, start, lambda old, used, away: old.plan, lambda _: None)
    assert run.table().num_rows == 20
    assert (run.complete, run.stopped, next_one.cancelled.is_set()) == (True, None, False)


def test_without_another_plan_a_provider_that_is_away_ends_the_query() -> None:
    run, _ = run_of(Away(breaks=True), Quality(), [])
    with pytest.raises(QueryStopped) as caught:
        run.table()
    assert caught.value is AWAY
    lost = [Away(breaks=True) for _ in range(9)]
    run, _ = run_of(lost.pop(), Quality(), list[Job](lost))
    with pytest.raises(QueryStopped) as caught:
        run.table()
    assert caught.value is AWAY and run._anew == running.ANEW


def test_a_query_that_has_given_rows_is_ended_at_its_limit_and_marked() -> None:
    clock = Clock()
    job = Job(rows=3, on_rows=lambda: setattr(clock, "now", 161.0))
    run, told = run_of(job, Quality(seconds=60), [Job(rows=9, ends=True)], clock)
    assert run.table().num_rows == 30, "the rows that there were"
    assert not run.complete and run.stopped is not None and not told
    assert run.stopped.fault.facts()["code"] == "over-limit"
    assert run.stopped.reason == "seconds is 61, at most 60"


@pytest.mark.parametrize("limit", ["seconds", "first_row_s"])
def test_without_a_faster_plan_it_goes_on_to_its_limit(limit: str) -> None:
    clock = Clock()
    times = iter([140.0, 150.0, 170.0])

    class Asked(Job):
        def measured(self) -> Measured:
            clock.now = next(times, clock.now)
            return super().measured()

    run, _ = run_of(Asked(), Quality(**{limit: 60}), [], clock)  # type: ignore[arg-type]
    assert run.table().num_rows == 0
    assert run.stopped is not None and limit in run.stopped.reason
    assert clock.now == 170


def test_a_soft_limit_is_passed() -> None:
    clock = Clock()
    job = Job(rows=1, ends=True, on_rows=lambda: setattr(clock, "now", 900.0))
    run, _ = run_of(job, Quality(seconds=60, soft=("seconds",)), [Job()], clock)
    assert (run.table().num_rows, run.complete) == (10, True)


def test_a_scan_that_stopped_at_its_share_marks_the_answer() -> None:
    run, _ = run_of(Job(rows=1, ends=True, scanned=Scanned(100, 300)), Quality(share=0.25), [])
    assert (run.table().num_rows, run.complete) == (10, False)
    assert run.stopped is not None
    assert run.stopped.reason == "A.R was read to 100 of 400 bytes"


def test_cancel_ends_it_as_cancelled() -> None:
    run, _ = run_of(Job(rows=1), Quality(), [])
    rows = iter(run)
    next(rows)
    run.cancel()
    with pytest.raises(QueryStopped, match="cancelled"):
        list(rows)
    assert run.stopped is not None and run.stopped.code == "cancelled"


def test_who_takes_no_more_rows_has_cancelled() -> None:
    run, told = run_of(Job(rows=5, ends=True), Quality(), [])
    rows = cast(Any, iter(run))
    next(rows)
    rows.close()
    assert run.stopped is not None and run.stopped.code == "cancelled" and not told


def test_the_rest_is_expected_to_be_as_slow_as_the_share_that_is_done() -> None:
    estimate = Figures(seconds=30, first_row_s=10, cost=3)
    whole = expected(estimate, Figures(seconds=20, cost=1), 0.25)
    assert (whole.seconds, whole.cost) == (80, 4)
    assert whole.first_row_s == pytest.approx(80 / 3)
    begun = expected(estimate, Figures(rows=5, first_row_s=2, seconds=20, cost=1), 0.0)
    assert (begun.seconds, begun.first_row_s, begun.cost) == (50, 2, 4)


def test_machines_are_as_slow_as_they_were_but_for_those_that_wait() -> None:
    below = replace(FRAGMENT, number=1)
    above = replace(FRAGMENT, number=2, site=B, receives=(Receive("r", 1, ()),))
    late = {1: Measured(1, seconds=60, share=0.5), 2: Measured(2, seconds=60, share=0.1)}
    found = slowed(MARKET, (below, above), late).cycle_providers
    assert (found["u:A"].slowness, found["u:B"]) == (4, B)
    in_time = {1: Measured(1, seconds=16, share=0.5), 2: Measured(2, seconds=300, share=1.0)}
    found = slowed(MARKET, (below, above), in_time).cycle_providers
    assert (found["u:A"], found["u:B"].slowness) == (A, 10)
