"""A cycle provider: a Spark session behind Arrow Flight, which executes fragments of query plans.

A query plan is *plugged* first (seed 001, 2.1 step 3): the provider checks its signature and its
own rules, never those that the plan was made by, takes relations, functions and addresses from its
own catalog, holds the memory and makes Spark check the SQL.  Then the receiver of the rows of a
fragment asks for them with a ticket, and Spark executes the fragment while they are taken.

===========  ==================================  =================================================
call         body                                answer
===========  ==================================  =================================================
``plug``     signed query plan                   ``{}``, or the fault that it is refused for
``holder``   nothing                             the provider's certificate, "" without TLS
``queries``  signed question                     the queries at work here, as far as the user may
                                                 know of them: an operator of all, others of theirs
``measured`` id of the query                     figures of its fragments here
``end``      id of the query                     the same, and nothing of the query is left here
``DoGet``    signed ticket                       rows
``GetSchema``  signed ticket                     the types of these rows
===========  ==================================  =================================================
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from time import monotonic
from typing import Any, Self, TypeAlias

import msgspec
import pyarrow as pa
from pyarrow import flight

from formats.errors import Fault
from onyx.errors import EXIT_CONFIG, NotAuthenticated, UserError
from onyx.identity.signing import SignatureCheck
from onyx.queries.functions import FunctionStore
from onyx.queries.identity import Identity
from onyx.queries.secrets import open_secrets, with_secrets
from onyx.queries.signatures import GOOD_SECONDS, Gate, Order, ticket
from onyx.queries.validation import SignedReport
from overlay.link.principal import Principal
from registration.queries.compatibility import Compatibility
from registration.queries.fragment_check import checked_fragment, rows_sent
from registration.queries.providers import CycleProvider, Market
from registration.queries.query_plan import Fragment
from registration.queries.refusals import QueryRefused
from registration.queries.stopped import QueryStopped
from registration.spark.fragment_job import query_session
from registration.spark.function_runner import Work
from registration.spark.job import Job, Measured
from registration.spark.passing_job import job_of
from registration.spark.receive_source import Peer, Stream
from registration.spark.session import Session

PlugIn: TypeAlias = Callable[[Fragment, bool], Mapping[str, Work]]
"""The functions of a fragment by their names in its SQL; QueryRefused for one that is not good, or
not certified where that is wanted."""


LEFT_SECONDS = 20.0

log = logging.getLogger("onyx.process")


class Refused(msgspec.Struct, frozen=True):
    """Of an answer: ``fault`` None where the request was done."""

    fault: Fault | None = None
    rule: str = ""


class AtWork(msgspec.Struct, frozen=True):
    """A query at a cycle provider: ``user`` as a principal, "" for somebody anonymous; ``seconds``
    since it was plugged; of all its fragments here ``rows`` and ``bytes_sent`` that they gave,
    ``bytes_read``, and the ``share`` of their tasks that is done, from 0 to 1."""

    id: str
    user: str
    seconds: float
    share: float
    rows: int
    bytes_read: int
    bytes_sent: int


@dataclass
class _Query:
    """A query at work here; ``user`` None: anonymous; ``seen``: when anybody asked for it last."""

    order: Order
    user: Principal | None
    fragments: list[Fragment]
    begun: float = field(default_factory=monotonic)
    seen: float = field(default_factory=monotonic)
    made: dict[int, Callable[[], Job]] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)

    def job(self, number: int) -> Job:
        """Of a fragment here; made now where it has waited for others, whose streams say types."""
        if number not in self.jobs:
            self.jobs[number] = self.made[number]()
        return self.jobs[number]

    @property
    def memory(self) -> float:
        """Megabytes."""
        return sum(each.memory_megabytes for each in self.fragments)

    @property
    def receives(self) -> int:
        """Tasks that wait for rows of elsewhere."""
        return sum(len(each.receives) for each in self.fragments)

    @property
    def measured(self) -> list[Measured]:
        return [job.measured() for job in list(self.jobs.values())]

    def at_work(self, now: float) -> AtWork:
        measured = self.measured
        total = [sum(getattr(each, n) for each in measured) for n in AtWork.__struct_fields__[3:]]
        share = total.pop(0) / max(len(measured), 1)
        user = str(self.user or self.order.user)
        return AtWork(self.order.id, user, now - self.begun, share, *total)

    def is_left(self, now: float) -> bool:
        """Whether nobody wants it any more, though nobody has ended it: a process that has asked
        looks at what it has begun, several times a second."""
        is_at_work = any(job.is_at_work for job in list(self.jobs.values()))
        patience = LEFT_SECONDS if self.taken else GOOD_SECONDS
        return not is_at_work and self.seen < now - patience


class Peers:
    """How cycle providers of a market are reached, by whom this process is."""

    def __init__(self, market: Market, identity: Identity) -> None:
        self._market, self.identity = market, identity

    def peer(self, uri: str) -> Peer:
        """QueryRefused ``provider-away`` where the market has no address for it."""
        site = self._market.cycle_providers.get(uri)
        if site is None or site.port is None:
            raise QueryRefused("provider-away", f"no address of {uri} is known", uri)
        host_name = Principal("provider", site.name).host_name(self.identity.network)
        return Peer(uri, f"{site.host}:{site.port}", host_name, self.identity.authority)

    def streams(self, order: Order, fragment: Fragment) -> dict[int, Stream]:
        """Of the fragments that this one receives."""
        sites = {each.number: each.site.uri for each in order.fragments}
        return {
            number: Stream(self.peer(sites[number]), ticket(order.id, number, self.identity.signer))
            for number in (each.fragment for each in fragment.receives)
        }


def plug_in(
    market: Market, store: FunctionStore, check: SignatureCheck | None, *, weak: bool = False
) -> PlugIn:
    """Functions are fetched from their providers into a store, which checks their digests.
    ``check``: of validation reports, None: without signatures, for this machine alone."""

    def works(fragment: Fragment, is_certified: bool) -> Mapping[str, Work]:
        found = {}
        for plug in fragment.plugs:
            if is_certified:
                report = market.reports.get(plug.function.certificate or "", "")
                SignedReport(report).check(plug.function, check)
            provider = market.function_providers[plug.function.provider]
            archive = store.load(plug.function, provider)
            found[plug.name] = archive.work(plug.function, weak=weak)
        return found

    return works


class CycleService:
    """The work of a cycle provider, without a connection."""

    def __init__(
        self, own: CycleProvider, market: Market, session: Callable[[], Session], gate: Gate,
        peers: Peers, plug_in: PlugIn, *, is_open: bool = False,
    ) -> None:  # fmt: skip
        """``session``: gives that of the process, once it has started.  ``is_open``: who asks is
        not checked, for this machine alone."""
        self._own, self._market, self._session = own, market, session
        self._gate, self._peers, self._plug_in, self._is_open = gate, peers, plug_in, is_open
        self._lock = threading.Lock()
        self._queries: dict[str, _Query] = {}

    def plug(self, sealed: bytes, is_gone: Callable[[], bool] = lambda: False) -> None:
        """Make the fragments of a query plan that are for this provider ready, unless the process
        that asks ``is_gone`` meanwhile.  QueryRefused, QueryStopped."""
        order, user = self._gate.order(sealed)
        fragments = self._checked(order, user)
        query = _Query(order, user, fragments)
        self._hold(query)
        try:
            of = order.id, "" if user is None else str(user)
            secrets = open_secrets(of, order.secrets, self._own.uri, self._peers.identity.signer)
            session = cache(lambda: query_session(self._session()))
            for each in [with_secrets(fragment, secrets) for fragment in fragments]:
                streams = self._peers.streams(order, each)
                works = self._plug_in(each, order.certified)
                query.made[each.number] = partial(job_of, session, each, streams, works)
                if all(receive.is_typed for receive in each.receives):
                    query.job(each.number)
            if is_gone():
                raise QueryStopped("failed", "the process that asks has gone", self._own.uri)
        except BaseException:
            self.end(order.id)
            raise

    def holder(self) -> str:
        """The certificate for which secrets are sealed, in PEM; "" without one."""
        signer = self._peers.identity.signer
        return "" if signer is None else signer.certificate

    def schema(self, sealed: bytes) -> pa.Schema:
        """Of the rows of the fragment that a ticket is for; QueryRefused, QueryStopped."""
        query, number = self._of_ticket(sealed)
        return query.job(number).schema

    def rows(self, sealed: bytes) -> Job:
        """The job of the fragment that a ticket is for; QueryRefused, QueryStopped."""
        query, number = self._of_ticket(sealed)
        with self._lock:
            if number in query.taken:
                raise QueryRefused("not-allowed", "the rows of this fragment were taken already")
            query.taken.add(number)
        return query.job(number)

    def _of_ticket(self, sealed: bytes) -> tuple[_Query, int]:
        """A query and the number of the fragment whose rows the ticket is for."""
        query_id, number, who = self._gate.ticket(sealed)
        query = self._queries.get(query_id)
        if query is None or number not in query.made:
            raise QueryRefused("no-plan", f"no query {query_id} is at work here")
        receiver = query.order.receiver(number)
        wanted = query.user
        if receiver is not None and receiver.uri != query.order.asker:
            wanted = Principal("provider", receiver.name)
        if not self._is_open and who != wanted:
            reason = f"rows of this fragment are for {wanted or 'anonymous'}, not for {who}"
            raise QueryRefused("not-allowed", reason)
        query.seen = monotonic()
        return query, number

    def measured(self, query_id: str) -> list[Measured]:
        query = self._queries.get(query_id)
        if query is None:
            return []
        query.seen = monotonic()
        return query.measured

    def queries(self, sealed: bytes) -> list[AtWork]:
        """The queries that the user of a signed question may end.  QueryRefused."""
        who = self._gate.question(sealed, self._own.uri)
        sees_all = self._is_open or (who is not None and who.role == "operator")
        now = monotonic()
        return [
            one.at_work(now)
            for one in list(self._queries.values())
            if not one.is_left(now) and (sees_all or who == one.user is not None)
        ]

    def end(self, query_id: str) -> list[Measured]:
        """Stop what runs of a query."""
        found = self.measured(query_id)
        with self._lock:
            query = self._queries.pop(query_id, None)
        for job in query.jobs.values() if query else ():
            job.cancel()
        return found

    @property
    def is_idle(self) -> bool:
        """Whether no query is at work here."""
        now = monotonic()
        return all(one.is_left(now) for one in list(self._queries.values()))

    def take_identity(self, identity: Identity) -> None:
        """NotAuthenticated for one of somebody else."""
        former = self._peers.identity.signer
        if identity.signer is None or (former and identity.signer.principal != former.principal):
            raise NotAuthenticated("the new credentials are not of this cycle provider")
        self._peers.identity = identity

    def close(self) -> None:
        for query_id in list(self._queries):
            self.end(query_id)

    def _checked(self, order: Order, user: Principal | None) -> list[Fragment]:
        """The fragments for this provider, with all that its own catalog says in place of the
        plan's."""
        name = order.user if self._is_open else user.name if user is not None else ""
        compatibility = Compatibility(self._market, name)
        own = [each for each in order.fragments if each.site.uri == self._own.uri]
        if not own:
            raise QueryRefused("no-plan", "no fragment of the query plan is for this provider")
        self._check_flows(order, own, compatibility)
        return [checked_fragment(self._market, compatibility, self._own, each) for each in own]

    def _check_flows(self, order: Order, own: list[Fragment], allowed: Compatibility) -> None:
        """Rows that are scanned here go only where this provider's catalog lets them."""
        mine = {scan.relation.uri for fragment in own for scan in fragment.scans}
        bits = {site.uri: 1 << at for at, site in enumerate(allowed.sites)}
        for number, rows in rows_sent(order.fragments).items():
            to = order.receiver(number)
            target = order.asker if to is None else to.uri
            for relation in rows.keys() & mine:
                mask = allowed.aggregate_mask if rows[relation] else allowed.flow_mask
                if not mask(relation) & bits.get(target, 0):
                    rules = " ".join(allowed.why(relation, target))
                    reason = f"rows of {relation} may not go to {target}"
                    raise QueryRefused("not-allowed", reason, rules or relation)

    def _hold(self, query: _Query) -> None:
        slots = self._session().sparkContext.defaultParallelism if query.receives else 1
        with self._lock:
            now = monotonic()
            self._queries = {q: one for q, one in self._queries.items() if not one.is_left(now)}
            held = sum(each.memory for each in self._queries.values())
            free = self._own.memory_megabytes - held
            if query.memory > free:
                reason = f"{self._own.name} has {free:,.0f} MB free, {query.memory:,.0f} are wanted"
                raise QueryRefused("no-resources", reason, self._own.uri)
            # A task that waits for rows keeps its slot: one is left for tasks that wait for nobody.
            waiting = query.receives + sum(each.receives for each in self._queries.values())
            if query.receives and waiting >= slots > 1:
                reason = f"{waiting:,} tasks of {self._own.name} would wait for rows of elsewhere"
                raise QueryRefused("no-resources", reason, self._own.uri)
            self._queries[query.order.id] = query


class CycleServer(flight.FlightServerBase):  # type: ignore[misc]
    """The service on Arrow Flight."""

    def __init__(self, service: CycleService, location: str, **tls: Any) -> None:
        super().__init__(location, **tls)
        self._service = service

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        body = action.body.to_pybytes()
        match action.type:
            case "plug":
                yield msgspec.json.encode(self._plug(body, context.is_cancelled))
            case "holder":
                yield self._service.holder().encode()
            case "queries":
                with _refusals():
                    yield msgspec.json.encode(self._service.queries(body))
            case "measured" | "end" as name:
                found = getattr(self._service, name)(body.decode("ascii", "replace"))
                yield msgspec.json.encode(found)
            case other:
                raise flight.FlightServerError(f"no action {other}")

    def _plug(self, body: bytes, is_gone: Callable[[], bool]) -> Refused:
        try:
            self._service.plug(body, is_gone)
        except (QueryRefused, QueryStopped) as refused:
            return Refused(refused.fault, getattr(refused, "rule", ""))
        return Refused()

    def get_schema(self, context: Any, descriptor: Any) -> Any:
        with _refusals():
            return flight.SchemaResult(self._service.schema(descriptor.command))

    def do_get(self, context: Any, wanted: Any) -> Any:
        with _refusals():
            job = self._service.rows(wanted.ticket)
        return flight.GeneratorStream(job.schema, _told(job, context))


@contextmanager
def _refusals() -> Iterator[None]:
    """Refusals and errors of the block reach the other end by their marks."""
    try:
        yield
    except (QueryRefused, QueryStopped) as error:
        about = error.rule if isinstance(error, QueryRefused) else error.provider
        stopped = QueryStopped(error.code, error.reason, about)
        raise flight.FlightServerError(stopped.marked()) from None


def _told(job: Job, context: Any) -> Iterator[Any]:
    """The rows of a job, until who takes them is gone."""
    with _refusals():
        yield from job.batches(context.is_cancelled)


class Serving:
    """A server at work in threads of its own for the block, at ``host`` and ``port``."""

    def __init__(
        self, service: CycleService, host: str, port: int, credentials: Path | None = None
    ) -> None:
        """``credentials``: a file, for TLS; ``port`` 0: one that is free."""
        self._service, self._host, self.port = service, host, port
        self._file, self._text = credentials, ""

    def __enter__(self) -> Self:
        """UserError where the address cannot be had."""
        if self._file is not None:
            self._text = self._file.read_text(encoding="ascii")
        self._server = self._opened()
        self.port = self._server.port
        return self

    def __exit__(self, *raised: object) -> None:
        self._service.close()
        self._shut()

    def look_after(self) -> None:
        """Take a new file of credentials while no query is at work.  Flight reads a certificate at
        its start alone, so another server takes the place of this one at its port: connections are
        refused for about a millisecond.  UserError as at the start."""
        if self._file is None or not self._service.is_idle:
            return
        try:
            text = self._file.read_text(encoding="ascii")
            if text == self._text:
                return
            self._text = text
            self._service.take_identity(Identity.of(self._file))
        except (OSError, ValueError, NotAuthenticated) as error:
            log.error("%s; the former credentials stay in use", error)
            return
        self._shut()
        self._server = self._opened()
        log.info("new credentials are in use")

    def _opened(self) -> CycleServer:
        tls: dict[str, Any] = {}
        if text := self._text:
            key, _, rest = text[text.index("-----BEGIN") :].partition("-----BEGIN CERTIFICATE-----")
            tls["tls_certificates"] = [(f"-----BEGIN CERTIFICATE-----{rest}", key)]
        scheme = "grpc+tls" if tls else "grpc+tcp"
        where = f"{self._host}:{self.port}"
        try:  # it is at work from its making on; its method serve would take the process' signals
            return CycleServer(self._service, f"{scheme}://{where}", **tls)
        except (OSError, pa.ArrowException) as error:
            reason = str(error).splitlines()[0]
            raise UserError(f"{where} cannot be listened to: {reason}", EXIT_CONFIG) from None

    def _shut(self) -> None:
        with suppress(flight.FlightError):
            self._server.shutdown()
