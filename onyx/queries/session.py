"""Session: queries of one user over a catalog, from text to rows (seed 001, 2.1).

::

    with Session(Catalog.read("market.ttl"), credentials=Path("ann.pem")) as session:
        run = session.run("SELECT r.id, thumbnail(t.image) AS small FROM A.R r JOIN B.T t ON ...")
        for batch in run: ...
        print(run.complete, run.actual, run.bill)

The asking process is a cycle provider, too: the last fragment of a query plan is executed here, in
a Spark session that is started when the first one needs it.  All others go to their cycle providers
in a plan that the user's certificate signs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, TypeAlias

import msgspec
import pyarrow as pa
from pyarrow import flight

from onyx.errors import NotAuthenticated
from onyx.queries.functions import FunctionStore
from onyx.queries.identity import Identity
from onyx.queries.planning import QueryPlan, plan_query
from onyx.queries.provider_process import Peers, Refused, plug_in
from onyx.queries.signatures import Order, seal
from registration.queries.providers import CycleProvider, Market
from registration.queries.quality import Quality
from registration.queries.query_plan import Figures, Fragment
from registration.queries.refusals import QueryRefused
from registration.queries.stopped import QueryStopped
from registration.spark.fragment_job import (
    STATIC_SETTINGS,
    FragmentJob,
    Measured,
    query_session,
)
from registration.spark.receive_source import Peer
from registration.spark.session import Session as SparkSession
from registration.spark.session import SparkOptions, spark_session

Bill: TypeAlias = Mapping[str, float]
"""Money by URI of a provider."""

WATCH_SECONDS = 0.3
ANSWER_SECONDS = 5.0
PLUG_SECONDS = 180.0
PLANNED_AGAIN = 3
ELSEWHERE = ("provider-away", "no-resources", "not-allowed", "unknown-relation", "unknown-function")
"""Codes of a cycle provider's refusal after which a plan without it may do."""
_MEGABYTE = 1e6


class Run:
    """A query at work: iterate over it once, for record batches of ``schema``.

    QueryStopped where it ends before its last row.  ``complete``: all rows were given;
    ``stopped``: why not; ``actual`` and ``bill`` are final then."""

    def __init__(
        self,
        job: FragmentJob,
        order: Order,
        peers: Mapping[str, Peer],
        market: Market,
        quality: Quality,
    ) -> None:
        self.schema: pa.Schema = job.schema
        self.complete = False
        self.stopped: QueryStopped | None = None
        self._job, self._order, self._peers, self._market = job, order, peers, market
        self._quality = quality
        self._measured: dict[int, Measured] = {}
        self._share = 0.0
        self._is_over = threading.Event()
        self._watch_stopped: QueryStopped | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        watch = threading.Thread(target=self._watch, daemon=True)
        watch.start()
        try:
            yield from self._limited()
            self.complete = True
        except QueryStopped as stopped:
            self.stopped = self._watch_stopped or stopped
            raise self.stopped from None
        finally:
            if not self.complete and self.stopped is None:
                self.stopped = QueryStopped("cancelled", "nobody took the rows that were left")
            self._is_over.set()
            watch.join()
            self._end()

    def _limited(self) -> Iterator[pa.RecordBatch]:
        """Up to the most rows that the user has allowed."""
        most = self._quality.rows_max
        if most is None or "rows_max" in self._quality.soft:
            yield from self._job.batches()
            return
        given = 0
        for batch in self._job.batches():
            yield batch.slice(0, int(most) - given)
            given += batch.num_rows
            if given > most:
                raise QueryStopped("over-limit", f"there are more than {most:,.0f} rows (rows_max)")

    def table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(list(self), self.schema)

    def cancel(self) -> None:
        """Stop within a second, here and at all cycle providers."""
        self._job.cancel()

    def progress(self) -> float:
        """The share of the work that is done, from 0 to 1; it never falls."""
        if self.complete:
            self._share = 1.0
        else:
            weights = {f.number: max(f.estimate.seconds, 0.01) for f in self._order.fragments}
            found = {**self._measured, self._job.fragment.number: self._job.measured()}
            done = sum(weights[number] * each.share for number, each in found.items())
            self._share = max(self._share, min(done / sum(weights.values()), 0.99))
        return self._share

    @property
    def actual(self) -> Figures:
        """As far as it has come."""
        fragments, bill = self._figures(), self.bill
        root = fragments.get(self._job.fragment.number, Measured(0))
        sent = [each.bytes_sent for number, each in fragments.items() if number != root.number]
        return Figures(
            rows=root.rows,
            bytes_read=sum(each.bytes_read for each in fragments.values()),
            bytes_moved=sum(sent),
            cost=sum(bill.values()),
            first_row_s=root.first_row_s,
            seconds=root.seconds,
        )

    @property
    def bill(self) -> Bill:
        """By prices of the catalog: seconds of cycle providers, bytes of relations and links, rows
        of functions."""
        measured, market = self._figures(), self._market
        found: dict[str, float] = {}

        def add(provider: str, money: float) -> None:
            if money:
                found[provider] = found.get(provider, 0.0) + money

        links = {(each.source, each.target): each.price_per_megabyte for each in market.links}
        for fragment in self._order.fragments:
            one = measured.get(fragment.number, Measured(fragment.number))
            site = fragment.site
            add(site.uri, one.seconds * site.price_per_second)
            sizes = {scan.view: scan.relation.bytes or 1.0 for scan in fragment.scans}
            whole = sum(sizes.values())
            for scan in fragment.scans:
                read = one.bytes_read * sizes[scan.view] / whole / _MEGABYTE
                add(scan.relation.provider, read * scan.relation.price_per_megabyte)
            for plug in fragment.plugs:
                add(plug.function.provider, one.rows * plug.function.price_per_row)
            receiver = self._order.receiver(fragment.number)
            target = self._order.asker if receiver is None else receiver.uri
            add(site.uri, one.bytes_sent / _MEGABYTE * links.get((site.uri, target), 0.0))
        return found

    def _figures(self) -> dict[int, Measured]:
        return {**self._measured, self._job.fragment.number: self._job.measured()}

    def _watch(self) -> None:
        """In a thread: how far the cycle providers are; one that answers no more stops all."""
        while not self._is_over.wait(WATCH_SECONDS):
            for peer in self._peers.values():
                try:
                    self._note(_asked(peer, "measured", self._order.id.encode()))
                except QueryStopped as stopped:
                    if not self._is_over.is_set():
                        self._watch_stopped = stopped
                        self._job.cancel()
                    return
            self._hold()

    def _hold(self) -> None:
        """Stop what is over a hard limit."""
        now = self.actual
        late = Figures(rows=inf, first_row_s=now.first_row_s, seconds=now.seconds, cost=now.cost)
        if not now.rows:
            late = replace(late, first_row_s=now.seconds)
        names = {"seconds", "cost", "first_row_s"}
        passed = (each for each in self._quality.passed_by(late) if each.name in names)
        for each in passed:
            if not each.is_soft and not self._is_over.is_set():
                self._watch_stopped = QueryStopped(
                    "over-limit", str(each).replace("would be", "is")
                )
                self._job.cancel()

    def _end(self) -> None:
        def end(peer: Peer) -> None:
            with suppress(QueryStopped):
                self._note(_asked(peer, "end", self._order.id.encode()))

        _everywhere(end, self._peers.values())

    def _note(self, answer: bytes) -> None:
        for each in msgspec.json.decode(answer, type=list[Measured]):
            self._measured[each.number] = each


class Session:
    """A context manager; queries run one after the other or side by side.

    ``user`` is anonymous without ``credentials``, and with ``insecure``: cycle providers of this
    machine alone, no TLS and nothing signed, by the name that is said."""

    def __init__(
        self,
        catalog: Any,
        *,
        user: str = "",
        credentials: Path | None = None,
        spark: SparkSession | None = None,
        insecure: bool = False,
        options: SparkOptions | None = None,
        weak_sandbox: bool = False,
        groups: Collection[str] = (),
        learned: Path | None = None,
    ) -> None:
        """``catalog``: a ``Catalog`` or a ``Market``.  ``spark``: a session of the user's own, else
        one by ``options``.  ``learned``: a file of what scans gave (``Estimates``)."""
        self.catalog = catalog
        self._identity = Identity()
        if not insecure and credentials is not None:
            self._identity = Identity.of(credentials)
        self.user = self._identity.user or user
        self._is_insecure = insecure
        self._spark, self._options = spark, options or SparkOptions()
        self._weak, self._groups = weak_sandbox, groups
        self._learned = learned
        self._lock = threading.Lock()
        self._stack = ExitStack()
        folder = self._stack.enter_context(TemporaryDirectory(prefix="onyx-functions-"))
        self._functions = FunctionStore(Path(folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the Spark session, where it was started here."""
        self._stack.close()

    def plan(self, sql: str, quality: Quality | None = None) -> QueryPlan:
        """QueryRefused: what is wrong with the text and where, the rules that forbid a plan, or the
        limit that no plan keeps with the estimate."""
        market = (
            self.catalog.market_for(sql) if hasattr(self.catalog, "market_for") else self.catalog
        )
        return self._planned(sql, quality or Quality(), market)

    def run(self, query: QueryPlan | str, quality: Quality | None = None) -> Run:
        """Plug a query plan and give what iterates over its rows; the text of a query is planned.

        A cycle provider that is away, or refuses, is left out and the query planned again, three
        times.  QueryRefused, QueryStopped."""
        plan = self.plan(query, quality) if isinstance(query, str) else query
        for _ in range(PLANNED_AGAIN):
            try:
                return self.execute(plan.fragments, plan.market, plan.quality)
            except _SiteMissing as missing:
                sites = {u: s for u, s in plan.market.cycle_providers.items() if u != missing.uri}
                market = replace(plan.market, cycle_providers=sites)
                try:
                    plan = self._planned(plan.sql, plan.quality, market)
                except QueryRefused:
                    raise missing.error from None
        try:
            return self.execute(plan.fragments, plan.market, plan.quality)
        except _SiteMissing as missing:
            raise missing.error from None

    def _planned(self, sql: str, quality: Quality, market: Market) -> QueryPlan:
        return plan_query(sql, market, self.user, self._groups, quality, self._learned)

    def execute(
        self, fragments: tuple[Fragment, ...], market: Market, quality: Quality | None = None
    ) -> Run:
        """Plug fragments; as ``run``, but nothing is planned again."""
        root = result_of(fragments)
        client = market.client
        remote = {each.site.uri for each in fragments} - {client.uri}
        self._check(fragments, root, client, remote)
        identity = self._identity
        peers = Peers(market, identity.signer, identity.network, identity.authority)
        order = Order(fragments, client.uri, "" if identity.signer else self.user)
        reached = {uri: peers.peer(uri) for uri in remote}
        sealed = seal(order, identity.signer)
        try:
            _everywhere(lambda peer: _plug(peer, sealed), reached.values())
            session = query_session(self._started())
            works = plug_in(market, self._functions, weak=self._weak)(root)
            job = FragmentJob(session, root, peers.streams(order, root), works)
        except BaseException:
            _everywhere(lambda peer: _ended(peer, order.id), reached.values())
            raise
        return Run(job, order, reached, market, quality or Quality())

    def _check(
        self,
        fragments: Collection[Fragment],
        root: Fragment,
        client: CycleProvider,
        remote: Collection[str],
    ) -> None:
        if root.site.uri != client.uri:
            raise QueryRefused("no-plan", f"the result would stay at {root.site.name}", client.uri)
        for each in fragments:
            if each is not root and each.site.uri == client.uri:
                reason = f"{client.name} has no address, so nobody can receive rows from it"
                raise QueryRefused("no-plan", reason, client.uri)
        if remote and not (self._is_insecure or self._identity.authority):
            raise NotAuthenticated(
                "no credentials: cycle providers are known by those of a network (--credentials "
                "FILE), or are on this machine (--insecure)"
            )

    def _started(self) -> SparkSession:
        with self._lock:
            if self._spark is None:
                settings = {**STATIC_SETTINGS, **self._options.settings}
                options = SparkOptions(self._options.master, settings, self._options.java)
                self._spark = self._stack.enter_context(spark_session(options))
            return self._spark


def result_of(fragments: Collection[Fragment]) -> Fragment:
    """The one whose rows no other receives."""
    received = {each.fragment for fragment in fragments for each in fragment.receives}
    (root,) = (each for each in fragments if each.number not in received)
    return root


class _SiteMissing(Exception):
    """A cycle provider that a query plan cannot be executed at."""

    def __init__(self, uri: str, error: QueryRefused | QueryStopped) -> None:
        super().__init__(uri)
        self.uri, self.error = uri, error


def _plug(peer: Peer, sealed: bytes) -> None:
    try:
        answer = _asked(peer, "plug", sealed)
    except QueryStopped as away:
        raise _SiteMissing(peer.uri, away) from None
    refused = msgspec.json.decode(answer, type=Refused)
    if refused.fault is not None:
        fault = refused.fault
        reason = f"{peer.address}: {fault.reason}"
        error = QueryRefused(fault.code, reason, refused.rule, hint=fault.hint)  # type: ignore[arg-type]
        raise _SiteMissing(peer.uri, error) if fault.code in ELSEWHERE else error


def _ended(peer: Peer, query: str) -> None:
    with suppress(QueryStopped):
        _asked(peer, "end", query.encode())


def _asked(peer: Peer, name: str, body: bytes) -> bytes:
    """The answer of a cycle provider; QueryStopped."""
    options = flight.FlightCallOptions(timeout=PLUG_SECONDS if name == "plug" else ANSWER_SECONDS)
    try:
        with peer.connected() as client:
            (found,) = client.do_action(flight.Action(name, body), options)
            return bytes(found.body)
    except (flight.FlightError, pa.ArrowException, OSError) as error:
        raise peer.stopped(error) from None


def _everywhere(done: Callable[[Peer], None], peers: Collection[Peer]) -> None:
    """At all cycle providers at once; the first error is raised when all have answered."""
    if peers:
        with ThreadPoolExecutor(len(peers)) as pool:
            asked = [pool.submit(done, peer) for peer in peers]
        for each in asked:
            each.result()
