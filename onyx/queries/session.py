"""Session: queries of one user over a catalog, from text to rows (seed 001, 2.1).

::

    with Session(Catalog.read("market.ttl"), credentials=Path("ann.pem")) as session:
        run = session.run("SELECT r.id, thumbnail(t.image) AS small FROM A.R r JOIN B.T t ON ...")
        for batch in run: ...
        print(run.complete, run.actual, run.bill)

The asking process is a cycle provider, too: the last fragment of a query plan is executed here, in
a Spark session that is started when the first one needs it: one that passes rows on does not.  All
others go to their cycle providers in a plan that the user's certificate signs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

import msgspec

from formats.errors import Refusal
from onyx.errors import NotAuthenticated
from onyx.queries.catalog import Catalog
from onyx.queries.functions import FunctionStore
from onyx.queries.identity import Identity
from onyx.queries.lateness import slowed, without
from onyx.queries.planning import START_SECONDS, QueryPlan, plan_query
from onyx.queries.provider_process import Peers, Refused, plug_in
from onyx.queries.running import OF_RUNS, Execution, Run, asked, ended, everywhere
from onyx.queries.secrets import SealedSecret, seal_secrets, where_allowed, with_secrets
from onyx.queries.signatures import Order, seal
from overlay.link.principal import Principal
from registration.queries.providers import CycleProvider, Market
from registration.queries.quality import Quality
from registration.queries.query_plan import Figures, Fragment, digest
from registration.queries.refusals import QueryRefused
from registration.queries.stopped import QueryStopped
from registration.spark.fragment_job import STATIC_SETTINGS, query_session
from registration.spark.passing_job import job_of
from registration.spark.receive_source import Peer
from registration.spark.session import Session as SparkSession
from registration.spark.session import SparkOptions, spark_session

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

PLANNED_AGAIN = 3
_REFUSED = msgspec.json.Decoder(Refused)  # made once: signatures.py says why
ELSEWHERE = (
    "provider-away",
    "no-resources",
    "not-allowed",
    "unknown-relation",
    "unknown-function",
    "not-certified",
)
"""Codes of a cycle provider's refusal after which a plan without it may do."""


class Session:
    """A context manager; queries run one after the other or side by side.

    ``user`` is anonymous without ``credentials``, and with ``insecure``: cycle providers of this
    machine alone, no TLS and nothing signed, by the name that is said."""

    def __init__(
        self,
        catalog: Catalog | Market,
        *,
        user: str = "",
        credentials: Path | None = None,
        spark: SparkSession | None = None,
        insecure: bool = False,
        options: SparkOptions | None = None,
        weak_sandbox: bool = False,
        learned: Path | None = None,
        secrets: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """``spark``: a session of the user's own, else one by ``options``.  ``learned``: a file of
        figures of scans (``Estimates``), which is read and written.  ``secrets`` for old systems,
        by ``NAME`` or ``NAME@PROVIDER`` (``secrets.py``)."""
        self._market_for: Callable[[str], Market] = (
            (lambda _: catalog) if isinstance(catalog, Market) else catalog.market_for
        )
        self._identity = Identity()
        if not insecure and credentials is not None:
            self._identity = Identity.of(credentials)
        self.user = self._identity.user or user
        self._is_insecure = insecure
        self._spark, self._options = spark, options or SparkOptions()
        self._weak = weak_sandbox
        self._learned, self._secrets = learned, secrets
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
        return self._planned(sql, quality or Quality(), self._market_for(sql))

    def run(self, query: QueryPlan | str, quality: Quality | None = None) -> Run:
        """Plug a query plan and give what iterates over its rows; the text of a query is planned.

        A cycle provider that is away, or refuses, is left out and the query planned again, three
        times; so it is while no row was given where one goes away, or the query will be late.
        QueryRefused, QueryStopped."""
        plan = self.plan(query, quality) if isinstance(query, str) else query
        return Run(self._started(plan), self._started, self._another, self._note)

    def _planned(self, sql: str, quality: Quality, market: Market) -> QueryPlan:
        market = where_allowed(market, self._secrets)
        start_s = START_SECONDS if self._spark is None else 0.0
        return plan_query(sql, market, self.user, quality, self._learned, start_s)

    def _started(self, plan: QueryPlan) -> Execution:
        """At work, without the cycle providers that are away or refuse."""
        for _ in range(PLANNED_AGAIN):
            try:
                return self._plugged(plan)
            except _SiteMissing as missing:
                try:
                    market = without(plan.market, missing.uri)
                    plan = self._planned(plan.sql, plan.quality, market)
                except QueryRefused:
                    raise missing.error from None
        try:
            return self._plugged(plan)
        except _SiteMissing as missing:
            raise missing.error from None

    def _another(self, execution: Execution, used: Figures, away: str) -> QueryPlan | None:
        """Another plan within the limits that are left, without a cycle provider that is away, or
        by how fast machines have been."""
        plan = execution.plan
        market = without(plan.market, away)
        if not away:
            market = slowed(market, execution.fragments, execution.measured)
        limits = plan.quality.limits()
        left = {name: limits[name] - getattr(used, name) for name in OF_RUNS if name in limits}
        try:
            found = self._planned(plan.sql, replace(plan.quality, **left), market)
        except Refusal:
            return None
        same = digest(found.root) == digest(plan.root)
        return None if same else replace(found, quality=plan.quality)

    def _note(self, execution: Execution) -> None:
        """Keep figures of whole scans for the next plan."""
        if self._learned is None:
            return
        from onyx.queries.learning import Estimates, Observation  # noqa: PLC0415 - the engine

        observations = [
            Observation.of(fragment, scan, found.rows, found.bytes, of.seconds)
            for fragment, scan, found, of in execution.scans()
            if found.rows and not found.left
        ]
        with self._lock:
            Estimates(self._learned).note(observations)

    def _plugged(self, plan: QueryPlan) -> Execution:
        fragments, market = plan.limited, plan.market
        root = fragments[-1]
        client = market.client
        remote = {each.site.uri for each in fragments} - {client.uri}
        self._check(fragments, root, client, remote)
        identity = self._identity
        peers = Peers(market, identity)
        certified = plan.quality.is_certified
        order = Order(fragments, client.uri, "" if identity.signer else self.user, certified)
        reached = {uri: peers.peer(uri) for uri in remote}
        root = with_secrets(root, self._secrets)
        order = replace(order, secrets=self._sealed_secrets(order, reached))
        sealed = seal(order, identity.signer)
        try:
            everywhere(lambda peer: _plug(peer, sealed), reached.values())
            plugged = plug_in(market, self._functions, identity.check(), weak=self._weak)
            works = plugged(root, certified)
            job = job_of(
                lambda: query_session(self._spark_session()), root,
                peers.streams(order, root), works,
            )  # fmt: skip
        except BaseException:
            ended(order.id, reached.values())
            raise
        return Execution(job, order, reached.values(), plan)

    def _sealed_secrets(
        self, order: Order, reached: Mapping[str, Peer]
    ) -> tuple[SealedSecret, ...]:
        """For each cycle provider those of the relations that it reads."""
        signer, check = self._identity.signer, self._identity.check()
        of = order.id, "" if signer is None else str(signer.principal)

        def certificate(site: CycleProvider) -> Certificate:
            if check is None:
                reason = f"{site.name} has no certificate that secrets could be sealed for"
                raise NotAuthenticated(f"{reason}: it is --insecure")
            try:
                pem = asked(reached[site.uri], "holder", b"").decode("ascii", "replace")
            except QueryStopped as away:
                raise _SiteMissing(site.uri, away) from None
            found, holder = check.holder(pem)
            if holder != Principal("provider", site.name):
                raise NotAuthenticated(f"{site.name} shows the certificate of {holder}")
            return found

        return tuple(
            each
            for fragment in order.fragments
            if fragment.site.uri in reached
            for each in seal_secrets(
                of, fragment, self._secrets, partial(certificate, fragment.site)
            )
        )

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

    def _spark_session(self) -> SparkSession:
        with self._lock:
            if self._spark is None:
                settings = {**STATIC_SETTINGS, **self._options.settings}
                options = SparkOptions(self._options.master, settings, self._options.java)
                self._spark = self._stack.enter_context(spark_session(options))
            return self._spark


class _SiteMissing(Exception):
    """A cycle provider that a query plan cannot be executed at."""

    def __init__(self, uri: str, error: QueryRefused | QueryStopped) -> None:
        super().__init__(uri)
        self.uri, self.error = uri, error


def _plug(peer: Peer, sealed: bytes) -> None:
    try:
        answer = asked(peer, "plug", sealed)
    except QueryStopped as away:
        raise _SiteMissing(peer.uri, away) from None
    refused = _REFUSED.decode(answer)
    if refused.fault is not None:
        fault = refused.fault
        reason = f"{peer.address}: {fault.reason}"
        error = QueryRefused(fault.code, reason, refused.rule, hint=fault.hint)  # type: ignore[arg-type]
        raise _SiteMissing(peer.uri, error) if fault.code in ELSEWHERE else error
