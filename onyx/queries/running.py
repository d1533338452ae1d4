"""Runs: queries at work, watched and held to their limits (seed 001, 2.1 step 4 and 2.3).

An ``Execution`` is one query plan at work at its cycle providers.  A ``Run`` is a query of a user:
it gives the rows of an execution, and may go over to another one while it has given none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from itertools import takewhile
from math import inf
from time import monotonic
from typing import TypeAlias, TypeVar

import msgspec
import pyarrow as pa
from pyarrow import flight

from onyx.queries.lateness import JUDGED_FROM, expected
from onyx.queries.planning import QueryPlan
from onyx.queries.signatures import Order
from registration.queries.quality import Violation
from registration.queries.query_plan import Figures, Fragment, Scan
from registration.queries.refusals import QueryRefused
from registration.queries.stopped import QueryStopped
from registration.spark.job import Job, Measured, Scanned
from registration.spark.receive_source import Peer

T = TypeVar("T")
Bill: TypeAlias = Mapping[str, float]
"""Money by URI of a provider."""

WATCH_SECONDS = 0.3
ANSWER_SECONDS = 5.0
PATIENCE_SECONDS = {"plug": 180.0, "measured": 30.0}
"""For other answers than those that take a moment: a provider at work may be busy for a while."""
_MEASURED = msgspec.json.Decoder(list[Measured])  # made once: signatures.py says why
ANEW = 3
"""So many times a query is planned anew that will be late, or whose provider is away."""
OF_RUNS = ("seconds", "first_row_s", "cost")
"""Limits that a run is held to as it goes."""
_MEGABYTE = 1e6


class Execution:
    """A query plan that was plugged at all its cycle providers."""

    def __init__(self, job: Job, order: Order, peers: Collection[Peer], plan: QueryPlan) -> None:
        """``job``: of the last fragment, whose rows are the result."""
        self.plan, self.schema = plan, job.schema
        self._job, self._order, self._peers = job, order, peers
        self._elsewhere: dict[int, Measured] = {}

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        return self._order.fragments

    @property
    def measured(self) -> Mapping[int, Measured]:
        """By number of a fragment, as far as is known."""
        return {**self._elsewhere, self._job.fragment.number: self._job.measured()}

    @property
    def result(self) -> Measured:
        return self._job.measured()

    def batches(self) -> Generator[pa.RecordBatch]:
        return self._job.batches()

    def cancel(self) -> None:
        self._job.cancel()

    def look(self) -> None:
        """Ask all cycle providers how far they are; QueryStopped for one that does not answer."""
        for peer in self._peers:
            self._note(asked(peer, "measured", self._order.id.encode()))

    def end(self) -> None:
        """Nothing of it is left at any cycle provider that answers."""

        for answer in ended(self._order.id, self._peers):
            self._note(answer)

    def _note(self, answer: bytes) -> None:
        for each in _MEASURED.decode(answer):
            self._elsewhere[each.number] = each

    def share(self) -> float:
        """Of the work that is done, from 0 to 1."""
        weights = {f.number: max(f.estimate.seconds, 0.01) for f in self.fragments}
        done = sum(weights[number] * each.share for number, each in self.measured.items())
        return done / sum(weights.values())

    def scans(self) -> Iterator[tuple[Fragment, Scan, Scanned, Measured]]:
        """Each scan that something is known of, with its own and its fragment's figures."""
        measured = self.measured
        for fragment in self.fragments:
            one = measured.get(fragment.number, Measured(fragment.number))
            for scan, found in zip(fragment.scans, one.scans, strict=False):
                yield fragment, scan, found, one

    def bill(self) -> Bill:
        """By prices of the catalog: seconds of cycle providers, bytes of relations and links, rows
        of functions."""
        found: dict[str, float] = {}

        def add(provider: str, money: float) -> None:
            if money:
                found[provider] = found.get(provider, 0.0) + money

        links = {(one.source, one.target): one.price_per_megabyte for one in self.plan.market.links}
        measured = self.measured
        for fragment in self.fragments:
            one = measured.get(fragment.number, Measured(fragment.number))
            site = fragment.site
            add(site.uri, one.seconds * site.price_per_second)
            for plug in fragment.plugs:
                add(plug.function.provider, one.rows * plug.function.price_per_row)
            receiver = self._order.receiver(fragment.number)
            target = self._order.asker if receiver is None else receiver.uri
            add(site.uri, one.bytes_sent / _MEGABYTE * links.get((site.uri, target), 0.0))
        for _, scan, read, of in self.scans():
            price = read.bytes * of.share / _MEGABYTE * scan.relation.price_per_megabyte
            add(scan.relation.provider, price)
        return found


class Run:
    """A query at work: iterate over it once, for record batches of ``schema``.

    QueryStopped where it ends before its last row, but for a limit of the user's (``over-limit``):
    the iteration ends with the rows that there are then.  ``complete``: all rows were given, of all
    that the relations have; ``stopped``: why not; ``actual`` and ``bill`` are final then."""

    def __init__(
        self,
        execution: Execution,
        start: Callable[[QueryPlan], Execution],
        another: Callable[[Execution, Figures, str], QueryPlan | None],
        ended: Callable[[Execution], None],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """``another``: a plan for a query that has used up so much, without the cycle provider of a
        URI, or else by how slow all are; None where there is none within its limits.  ``start``
        plugs it.  ``ended``: told of a complete execution."""
        self.schema: pa.Schema = execution.schema
        self.complete = False
        self.stopped: QueryStopped | None = None
        self._execution, self._quality = execution, execution.plan.quality
        self._start, self._another, self._tell_ended, self._clock = start, another, ended, clock
        self._past: list[Execution] = []
        self._spent, self._anew = Figures(), 0
        self._begun = self._first = self._ended = 0.0
        self._rows, self._share = 0, 0.0
        self._lock = threading.Lock()  # of the next three
        self._next: QueryPlan | None = None
        self._is_given = False
        self._stopped_by: QueryStopped | None = None
        self._is_over = threading.Event()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._begun = self._clock()
        watch = threading.Thread(target=self._watch, daemon=True)
        watch.start()
        try:
            yield from self._limited()
            self.complete = True
        except QueryStopped as stopped:
            self.stopped = self._stopped_by or stopped
            if self.stopped.code != "over-limit":
                raise self.stopped from None
        finally:
            if not self.complete and self.stopped is None:
                self.stopped = QueryStopped("cancelled", "nobody took the rows that were left")
            self._is_over.set()
            watch.join()
            self._execution.end()
            self._ended = self._clock()
            if self.complete:
                self._tell_ended(self._execution)
                self._mark_scans()

    def _limited(self) -> Iterator[pa.RecordBatch]:
        """Up to the most rows that the user has allowed."""
        most = self._quality.rows_max
        if most is None or "rows_max" in self._quality.soft:
            most = inf
        for batch in self._batches():
            self._first = self._first or self._clock()
            room = most - self._rows
            self._rows += batch.num_rows
            yield batch if batch.num_rows <= room else batch.slice(0, int(room))
            if self._rows > most:
                self._rows = int(most)
                raise QueryStopped("over-limit", f"there are more than {most:,.0f} rows (rows_max)")

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Of the execution; of the next one where that is wanted before a row was given."""
        while True:
            try:
                with closing(self._execution.batches()) as batches:
                    yield from takewhile(self._takes, batches)
            except QueryStopped as stopped:
                if self._next is None:
                    self._go_around(self._stopped_by or stopped)
            if self._next is None:
                return
            self._go_over(self._next)

    def _takes(self, batch: pa.RecordBatch) -> bool:
        with self._lock:
            self._is_given |= self._next is None and batch.num_rows > 0
            return self._next is None

    def _go_around(self, stopped: QueryStopped) -> None:
        """Have a plan without a provider that is away, while no row was given.  QueryStopped."""
        plan = None
        if stopped.code == "provider-away" and not self._is_given and self._anew < ANEW:
            self._anew += 1
            plan = self._another(self._execution, self.actual, stopped.provider)
        if plan is None:
            raise stopped
        with self._lock:
            if self._stopped_by is not None and self._stopped_by.code != stopped.code:
                raise self._stopped_by
            self._next, self._stopped_by = plan, None

    def _go_over(self, plan: QueryPlan) -> None:
        """To the execution of another plan.  QueryStopped."""
        self._execution.end()
        self._spent = self.actual
        try:
            execution = self._start(plan)
        except QueryRefused as refused:
            raise QueryStopped("over-limit", f"it is late, and {refused.reason}") from None
        with self._lock:
            self._past.append(self._execution)
            self._execution, self._next = execution, None
            if self._stopped_by is not None:
                execution.cancel()

    def _mark_scans(self) -> None:
        """Of scans that stopped at their share of the bytes."""
        left = [(scan.relation, one) for _, scan, one, _ in self._execution.scans() if one.left]
        if left:
            said = ", ".join(
                f"{relation.name} was read to {one.bytes:,} of {one.bytes + one.left:,} bytes"
                for relation, one in left
            )
            self.complete = False
            self.stopped = QueryStopped("over-limit", said, left[0][0].uri)

    def table(self) -> pa.Table:
        """All rows, or those up to a limit."""
        return pa.Table.from_batches(list(self), self.schema)

    def cancel(self) -> None:
        """Stop within a second, here and at all cycle providers."""
        self._stop(QueryStopped("cancelled", "the query was cancelled"))

    def progress(self) -> float:
        """The share of the work that is done, from 0 to 1; it never falls."""
        done = 1.0 if self.complete else min(self._execution.share(), 0.99)
        self._share = max(self._share, done)
        return self._share

    @property
    def actual(self) -> Figures:
        """As far as it has come, with what was begun and left for a faster plan."""
        executions = (*self._past, self._execution)
        moved = read = 0
        for each in executions:
            result = each.result.number
            read += sum(one.bytes_read for one in each.measured.values())
            moved += sum(one.bytes_sent for n, one in each.measured.items() if n != result)
        return Figures(
            rows=self._rows,
            bytes_read=read,
            bytes_moved=moved,
            cost=sum(self.bill.values()),
            first_row_s=self._first - self._begun if self._first else 0.0,
            seconds=(self._ended or self._clock()) - self._begun if self._begun else 0.0,
        )

    @property
    def bill(self) -> Bill:
        """Money by provider, by prices of the catalog."""
        found: dict[str, float] = {}
        for execution in (*self._past, self._execution):
            for provider, money in execution.bill().items():
                found[provider] = found.get(provider, 0.0) + money
        return found

    def _watch(self) -> None:
        """In a thread: how far the cycle providers are; one that answers no more stops the plan."""
        while not self._is_over.wait(WATCH_SECONDS):
            execution = self._execution
            try:
                execution.look()
            except QueryStopped as stopped:
                self._stop(stopped, execution)
            if self._stopped_by is None and self._next is None:
                self._hold()

    def _hold(self) -> None:
        """Stop what is over a hard limit; plan anew what will be, while nothing was given."""
        now = self.actual
        if not self._first:
            now = replace(now, first_row_s=now.seconds)
        for each in self._passed(now):
            self._stop(QueryStopped("over-limit", str(each).replace("would be", "is")))
            return
        if self._is_given or self._anew >= ANEW:
            return
        limits = self._quality.limits()
        late = (each.name for each in self._passed(self._expected(now)))
        if any(getattr(now, name) >= JUDGED_FROM * limits[name] for name in late):
            self._anew += 1
            plan = self._another(self._execution, now, "")
            with self._lock:
                if plan is not None and not self._is_given:
                    self._next = plan
                    self._execution.cancel()

    def _expected(self, now: Figures) -> Figures:
        """Of the whole run, as far as can be said now."""
        execution, spent = self._execution, self._spent

        def less(figures: Figures, sign: float) -> Figures:
            seconds = sign * spent.seconds
            return replace(
                figures,
                seconds=figures.seconds - seconds,
                first_row_s=figures.first_row_s - seconds,
                cost=figures.cost - sign * spent.cost,
            )

        return less(expected(execution.plan.estimate, less(now, 1), execution.share()), -1)

    def _passed(self, figures: Figures) -> Iterator[Violation]:
        """The hard limits on the time and money of a run."""
        for each in self._quality.passed_by(replace(figures, rows=inf)):
            if each.name in OF_RUNS and not each.is_soft:
                yield each

    def _stop(self, stopped: QueryStopped, of: Execution | None = None) -> None:
        """``of``: the execution that it is about, which the run may have left already."""
        with self._lock:
            is_left = of is not None and (of is not self._execution or self._next is not None)
            if not is_left and not self._is_over.is_set() and self._stopped_by is None:
                self._stopped_by, self._next = stopped, None
                self._execution.cancel()


def asked(peer: Peer, name: str, body: bytes) -> bytes:
    """The answer of a cycle provider; QueryStopped."""
    options = flight.FlightCallOptions(timeout=PATIENCE_SECONDS.get(name, ANSWER_SECONDS))
    try:
        with peer.connected() as client:
            (found,) = client.do_action(flight.Action(name, body), options)
            return bytes(found.body)
    except (flight.FlightError, pa.ArrowException, OSError) as error:
        raise peer.stopped(error) from None


def everywhere(done: Callable[[Peer], T], peers: Collection[Peer]) -> list[T]:
    """At all cycle providers at once; the first error is raised when all have answered."""
    with ThreadPoolExecutor(max(len(peers), 1)) as pool:
        tasks = [pool.submit(done, peer) for peer in peers]
    return [each.result() for each in tasks]


def ended(query: str, peers: Collection[Peer]) -> list[bytes]:
    """End a query at cycle providers; the last figures of those that answer."""

    def end(peer: Peer) -> bytes:
        try:
            return asked(peer, "end", query.encode())
        except QueryStopped:
            return b""

    return [answer for answer in everywhere(end, peers) if answer]
