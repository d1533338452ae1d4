"""Asking the network: requests that survive a lost connection, and the registration service.

A request has an id of its own; when the connection is lost before the answer came it is sent
again with the same id, and the registration service makes nothing twice.
"""

from __future__ import annotations

import dataclasses
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, cast

import anyio
import anyio.to_thread
from msgspec import UNSET, UnsetType, ValidationError, json
from msgspec.structs import replace

from formats.errors import SchemaRefused
from onyx.background import background_tasks
from onyx.errors import (
    NetworkUnreachable,
    NotAuthenticated,
    ProfileNotAccepted,
    RequestFailed,
    UnreadableInput,
    UserError,
    file_errors,
)
from onyx.identity.known_networks import credentials_for
from overlay import verbs
from overlay.answers import (
    Answer,
    AutoPlan,
    Drift,
    Location,
    PlanProgress,
    Processes,
    ProfileInfo,
    SourceInfo,
    TaxonomyInfo,
)
from overlay.backoff import Backoff
from overlay.delivery_policy import USUAL, DeliveryPolicy
from overlay.link.client_connection import (
    ClientConnection,
    ClientLimits,
    ConnectionFailed,
    RemoteError,
    open_client,
)
from overlay.link.client_stream import open_stream
from overlay.nodes import Address, Addresses

if TYPE_CHECKING:
    from overlay.statistics import NodeStatistics

_MAKING = threading.Lock()
Where: TypeAlias = str | tuple[str, int]
"""An address: "host:port" or (host, port); or those of a node and its standby,
"host:port,host:port"."""

Result: TypeAlias = Mapping[str, Any]
T = TypeVar("T")

N = TypeVar("N", bound="NodeStatistics")

NO_URL = "Onyx speaks a protocol of its own, and whether by TLS the credentials say"
OPEN_SECONDS = 3.0
PATIENCE_SECONDS = 30.0
ASK_AGAIN = Backoff(0.05, 2.0)
NOT_ASKED = frozenset({"source-away", "unknown-source"})
PERHAPS_ASKED = frozenset({"source-lost", "unreachable"})
"""What is said of a source that may be asked again: it was not asked, or may have been."""
CLIENT_LIMITS = ClientLimits(open_seconds=OPEN_SECONDS)
_patience: ContextVar[float] = ContextVar("patience", default=PATIENCE_SECONDS)


@contextmanager
def impatient(seconds: float) -> Iterator[None]:
    """A request that is asked in this block, or in a task that is started in it, goes on for so
    long when the connection is lost, in place of PATIENCE_SECONDS.  A process is pinged after half
    of that, and counts as gone after three times as much silence."""
    token = _patience.set(seconds)
    try:
        yield
    finally:
        _patience.reset(token)


class NetworkClient:
    """A connection to one process of the network, to ask it questions; a context manager."""

    def __init__(
        self, where: Where, *, patience_seconds: float | None = None, called: str = ""
    ) -> None:
        """``patience_seconds``: how long a request goes on when the connection is lost (default:
        as ``impatient`` says, or PATIENCE_SECONDS);
        ``called``: what it is to who uses it, in an error."""
        self._called = called or type(self).__name__
        self._where = addresses_of(where)
        self._patience_seconds = _patience.get() if patience_seconds is None else patience_seconds
        self._stack = AsyncExitStack()
        self._connection: ClientConnection | None = None

    async def __aenter__(self) -> Self:
        self._connection = await self._stack.enter_async_context(
            open_connection(self._where, "client", uuid.uuid4().hex)
        )
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        self._connection = None
        return await self._stack.__aexit__(*raised)

    @property
    def at(self) -> str:
        """Of the addresses, the one where the process is that answers; inside the block."""
        return str(self._open().at)

    async def call(
        self, verb: str, arguments: Mapping[str, object] | None = None, *, request: str = ""
    ) -> Result:
        """Ask, again after a lost connection, and return the answer; ``request`` is an id of the
        request by which it is known again (default: a new one).

        RequestFailed when the answer is no; NetworkUnreachable when there is none in time.
        """
        connection, arguments = self._open(), arguments or {}
        return await call(connection, verb, arguments, self._patience_seconds, request)

    async def ask(self, asked: verbs.Asks[T], *, request: str = "") -> T:
        """``call`` of a verb by the record of its arguments, for the record of its answer."""
        result = await self.call(asked.verb, asked.arguments(), request=request)
        return answer_of(asked, result)

    async def listed(self, asked: verbs.Asked) -> list[Any]:
        """All entries of a list, page by page."""
        found: list[Any] = []
        while True:
            page = await self.ask(asked)
            found += page.entries
            if not getattr(page, "more", False):
                return found
            key = page.entries[-1].__struct_fields__[0]
            asked = replace(asked, after=getattr(page.entries[-1], key))

    async def ask_source(
        self, source: str, body: bytes, writes: bool = False, *, timeout: float = verbs.ASK_SECONDS
    ) -> bytes:
        """Ask the process of a source, given by its id or its name, through its root broker, which
        the registration service at the other end knows; the answer.

        With ``writes``, which takes the right to publish as the source, the source may change
        something.  As long as the source is away it is asked again, for ``timeout`` seconds; also
        when a connection was lost before the answer, unless the question ``writes``: then
        "source-lost" or NetworkUnreachable says that it may have been carried out.  In the end the
        error is the last that was said, or "timeout".
        """
        failures = 0
        failure: UserError | None = None
        with anyio.move_on_after(timeout) as scope:
            while True:
                info = await self.ask(verbs.SourceShow(source=source))
                left = scope.deadline - anyio.current_time()
                until = min(max(0.0, left), verbs.TIMEOUT_SECONDS_MAX)
                asked = verbs.SourceAsk(source=info.id, body=body, writes=writes, timeout=until)
                again = NOT_ASKED | PERHAPS_ASKED
                try:
                    async with NetworkClient(info.address, patience_seconds=0.0) as root:
                        again = NOT_ASKED if writes else again
                        return (await root.ask(asked)).body
                except UserError as error:
                    if error.code not in again:
                        raise
                    failure = error
                failures += 1
                await anyio.sleep(ASK_AGAIN.after(failures))
        raise failure or RequestFailed("timeout", f"{source} has not answered in {timeout:g} s")

    async def statistics(self, kind: type[N]) -> N:
        """What the process at the other end counts, in short (docs/protocol.md); ``kind``: of a
        broker, of a registration service, or what both tell."""
        from onyx.network_view import decoded  # noqa: PLC0415 - only for those who look

        return decoded(await self.ask(verbs.Statistics()), kind)

    async def statistics_of(
        self, collection: str, *, match: str = "", first: int = 0
    ) -> tuple[list[tuple[str, object]], int | None]:
        """A page of what the statistics have many of ("links.connections"): (name, what is said of
        it) of those with ``match`` in it, and the ``first`` of the next page, None after the last.

        RequestFailed "unknown-statistics" where there is no such collection.
        """
        said = await self.ask(verbs.Statistics(of=collection, match=match, first=first))
        return [(name, entry) for name, entry in said["entries"]], said["next"]

    async def observe(
        self, wants: verbs.Observe, take: Callable[[Mapping[str, Any]], None]
    ) -> None:
        """``take`` what a broker does from now on, as far as it is wanted, until
        cancelled; asked for again when the connection was lost."""
        connection = self._open()
        while True:
            await self.ask(wants)
            with suppress(ConnectionFailed):
                async for event in connection.observed():
                    take(event)
            with refusals():
                await connection.wait_connected()

    def _open(self) -> ClientConnection:
        if self._connection is None:
            raise RuntimeError(
                f"this {self._called} has no connection outside of its block; write "
                f"async with {self._called}(...) as client: and use it inside"
            )
        return self._connection


class RegistrationClient(NetworkClient):
    """The registration service: what there is in the network, and what is to be added.

    ::

        async with RegistrationClient("127.0.0.1:7000") as registration:
            for source in await registration.sources():
                print(source.name, source.root)
    """

    async def processes(self) -> Processes:
        """All of the network, and which do not run."""
        return await self.ask(verbs.Network())

    async def brokers(self) -> dict[str, str]:
        """The address of every broker, by its id."""
        return (await self.ask(verbs.Network())).brokers

    async def register_source(
        self,
        *,
        name: str = "",
        schema: Path | None = None,
        validate: str = "off",
        compression: Mapping[str, Path] | None = None,
        base: str = "",
        key: str = "",
        ensure: bool = False,
        **settings: Any,
    ) -> SourceInfo:
        """Register a data source; returns when every broker knows it.

        ``settings``: ``location``, ``rate`` and others by the names of ``SourceSettings``;
        ``schema`` is the file of its DTD, XML Schema or RELAX NG, or where it consists of several a
        folder, zip file or OASIS catalog of them, and behind ``#`` the main one; ``validate`` says
        what the root broker does about a message against it: "off" (nothing), "report" or "reject";
        ``compression`` names files with zstd dictionaries, by the form of message that each is for
        ("text", "binary", "dictionary"); ``base`` is the IRI that relative ones in its graphs are
        relative to.  The source that an earlier call with the same ``key``
        made is the one that is returned; RequestFailed "other-content" where its name, schema,
        ``validate``, ``compression`` or ``base`` were others.

        ``ensure``: one's own source with this ``name`` is the one, if there is one; what it has
        otherwise becomes as it is said here (``SourceInfo.changed``), but for ``compression`` and
        ``base``: RequestFailed "other-content".
        """
        schema_name, data = (UNSET, b"") if schema is None else await _read_schema(schema)
        asked = verbs.SourceRegister(
            name=name or UNSET,
            schema_name=schema_name,
            schema=data,
            validate=validate,
            compression={
                form: await _read_file(path) for form, path in (compression or {}).items()
            },
            base=base,
            key=key,
            ensure=ensure,
            **settings,
        )
        return await self.ask(asked)

    async def source(self, source: str) -> SourceInfo:
        """By its id, or its name; RequestFailed "unknown-source" when there is none, and
        "ambiguous-name", with their ids, where several have the name."""
        return await self.ask(verbs.SourceShow(source=source))

    async def update_source(
        self,
        source: str,
        *,
        schema: Path | None = None,
        without_schema: bool = False,
        validate: str | None = None,
        **settings: Any,
    ) -> SourceInfo:
        """Change what is said of a source, given by its id or its name; returns when every broker
        has that, and all profiles have been held against another schema (``SourceInfo.warnings``).

        Messages that were accepted before are what they were.  Without a schema they are not
        validated any more.  It keeps its root broker, wherever it says that it is.  RequestFailed
        "not-authorised" unless it is one's own, or one operates the network.
        """
        schema_name, data = ("" if without_schema else UNSET), b""
        if schema is not None:
            schema_name, data = await _read_schema(schema)
        elif without_schema and validate is None:
            validate = "off"
        asked = verbs.SourceUpdate(
            source=source,
            schema_name=schema_name,
            schema=data,
            validate=verbs.given(validate),
            **{name: value for name, value in settings.items() if value is not None},
        )
        return await self.ask(asked)

    async def remove_source(self, source: str) -> str:
        """Remove a source, given by its id or its name; its id.  Returns when its root broker has
        let go of it: what was accepted is still delivered, nothing more is.

        RequestFailed "unknown-source" when there is none, "not-authorised" unless it is one's own,
        or one operates the network.
        """
        return (await self.ask(verbs.SourceRemove(source=source))).id

    async def sources(self) -> list[SourceInfo]:
        """All data sources in the order in which they were registered."""
        return (await self.ask(verbs.SourceList())).sources

    async def add_profile(
        self,
        text: str,
        *,
        user: str = "",
        location: Location | None = None,
        wait: bool = True,
        timeout_seconds: float | None = None,
        key: str = "",
        policy: DeliveryPolicy = USUAL,
        **settings: Any,
    ) -> ProfileInfo:
        """Register a profile; returns when its host broker has it, with ``wait`` when it is live,
        or ``timeout_seconds`` later.

        ``settings``: ``near`` and others by the names of ``ProfileSettings``.  The profile
        of this user that an earlier call with the same ``key`` made is the one that is returned,
        as it is by now; RequestFailed "other-content" where its text was another.
        ProfileNotAccepted when its text is refused.
        """
        asked = verbs.ProfileAdd(
            text=text,
            user=user,
            location=location,
            wait=wait,
            timeout=verbs.given(timeout_seconds),
            key=key,
            policy=policy,
            **settings,
        )
        return await self.ask(asked)

    async def profile(self, profile_id: str) -> ProfileInfo:
        """With its text; RequestFailed "unknown-profile" when there is none."""
        return await self.ask(verbs.ProfileShow(profile=profile_id))

    async def put_taxonomy(self, name: str, text: bytes, media_type: str) -> TaxonomyInfo:
        """Register a taxonomy, a graph, or another in place of the one of that name.

        RequestFailed says why not: ``taxonomy-cycle`` where it has one, by itself or with others.
        """
        asked = verbs.TaxonomyPut(name=name, text=text, syntax=media_type)
        return await self.ask(asked)

    async def taxonomies(self) -> list[TaxonomyInfo]:
        """All that are registered, by name."""
        return (await self.ask(verbs.TaxonomyList())).taxonomies

    async def taxonomy(self, name: str) -> bytes:
        """One as it was put; RequestFailed ``unknown-taxonomy`` when there is none."""
        return (await self.ask(verbs.TaxonomyShow(name=name))).text

    async def remove_taxonomy(self, name: str) -> None:
        """RequestFailed ``unknown-taxonomy`` when there is none."""
        await self.ask(verbs.TaxonomyRemove(name=name))

    async def use_plan(self, text: bytes) -> str:
        """Place all profiles to come by this plan (a plan.json; b"": by location); its id.

        RequestFailed "plan-refused" when it is no plan for this network.
        """
        return (await self.ask(verbs.PlanUse(plan=text))).plan

    async def plan(self) -> bytes:
        """The plan in force, as it was given; b"" when there is none."""
        return (await self.ask(verbs.PlanShow())).text

    async def matched_share(self) -> tuple[float, float | None]:
        """How many messages the brokers have counted under the plan in force (recent ones count
        more), and the share of its partitions that a message has matched (None: no messages)."""
        measured = (await self.ask(verbs.PlanShow())).measured
        return measured.messages, measured.matched_share

    async def census(self, text: bytes = b"") -> Drift:
        """How the profiles of the network are placed, in sums, compared with a plan (b"": the one
        in force); ``moves``: by ``apply_plan``.  RequestFailed "plan-refused", "no-plan"."""
        return await self.ask(verbs.PlanCensus(plan=text))

    async def apply_plan(
        self, *, rate: float | None = None, at_once: int | None = None
    ) -> PlanProgress:
        """Move the profiles that there are to where the plan in force has them, live: at most
        ``rate`` moves begin in a second and ``at_once`` are under way (None: as the service
        thinks fit).  Returns at once; RequestFailed "no-plan"."""
        asked = verbs.PlanApply(
            rate=verbs.PLAN_RATE if rate is None else rate,
            at_once=verbs.PLAN_AT_ONCE if at_once is None else at_once,
        )
        return await self.ask(asked)

    async def plan_progress(self) -> PlanProgress:
        """How far that is."""
        return await self.ask(verbs.PlanProgress())

    async def auto_plan(self, *, on: bool | None = None) -> AutoPlan:
        """Whether and why the service plans by itself; from now on it shall (``on``), or not."""
        return await self.ask(verbs.PlanAuto(on=verbs.given(on)))

    async def pause_plan(self) -> PlanProgress:
        """Begin no more moves until ``resume_plan``; those under way go on."""
        return await self.ask(verbs.PlanPause())

    async def resume_plan(self) -> PlanProgress:
        return await self.ask(verbs.PlanResume())

    async def abort_plan(self) -> PlanProgress:
        """Begin no more moves, and give up those whose profiles are still at their old host."""
        return await self.ask(verbs.PlanAbort())

    async def profiles(self, user: str = "", texts: bool = False) -> list[ProfileInfo]:
        """The profiles of a user ("": of all), in order of registration; ``texts``: with them."""
        return await self.listed(verbs.ProfileList(user=user, texts=texts))


def addresses_of(where: Where) -> Addresses:
    """All forms of Where; ValueError when it is none."""
    if not isinstance(where, str):
        return (Address(*where),)
    return tuple(Address(*host_and_port(text)) for text in where.split(","))


def host_and_port(where: str) -> tuple[str, int]:
    """Of one "host:port"; ValueError when it is none."""
    if "://" in where:
        raise ValueError(f"{where!r} is a URL; write {url_as_address(where)!r}: {NO_URL}")
    host, colon, digits = where.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not colon or not host or not digits.isascii() or not digits.isdigit():
        raise ValueError(f"{where!r} is no address, expected 'host:port'")
    return host, int(digits)


def url_as_address(url: str) -> str:
    """What of a URL an address has."""
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2] or "host:port"


@asynccontextmanager
async def open_connection(
    addresses: Addresses,
    role: str,
    identity: str,
    patience_seconds: float | None = None,
    publisher: str = "",
) -> AsyncIterator[ClientConnection]:
    """``open_client`` of a node, at one of its addresses, with the errors of this package.

    Without a connection for ``patience_seconds`` (None: however long) the block is cancelled and
    ends with NetworkUnreachable.  NotAuthenticated, before anything is said, without credentials.
    """
    (host, port), *others = addresses
    where = " or ".join(map(str, addresses))
    stack = AsyncExitStack()
    try:
        credentials = credentials_for(host, port)
    except NotAuthenticated:
        for address in addresses:
            stream = await open_stream(*address, OPEN_SECONDS)
            if stream is not None:
                await stream.aclose()
                raise
        raise _unreachable(where) from None
    if credentials is not None:
        identity = credentials.principal.id_for(role, identity)
    link = replace(CLIENT_LIMITS.link, keepalive_seconds=_patience.get() / 2)
    opened = open_client(
        *(host, port),
        role=role,
        identity=identity,
        limits=dataclasses.replace(CLIENT_LIMITS, link=link),
        credentials=credentials,
        others=tuple(others),
        publisher=publisher,
    )
    try:
        with refusals():
            connection = await stack.enter_async_context(opened)
    except ConnectionFailed as error:
        raise _unreachable(where, error.why) from error
    async with stack, background_tasks(anyio.create_task_group()) as tasks:
        if patience_seconds is not None:
            tasks.start_soon(_give_up, connection, where, patience_seconds)
        yield connection


async def call(
    connection: ClientConnection,
    verb: str,
    arguments: Mapping[str, object],
    patience_seconds: float = PATIENCE_SECONDS,
    request: str = "",
) -> Result:
    """One request, asked until it is answered; the errors are those of ``NetworkClient.call``."""
    request = request or uuid.uuid4().hex
    give_up_at = anyio.current_time() + patience_seconds
    while True:
        with refusals():  # also while the connection is away, for good
            try:
                return await connection.call(verb, arguments, request=request)
            except ConnectionFailed as error:
                if anyio.current_time() >= give_up_at:
                    late = f"no answer in {patience_seconds:g} s: {error}"
                    raise NetworkUnreachable(late) from None
            with anyio.CancelScope(deadline=give_up_at):
                await connection.wait_connected()


async def _give_up(connection: ClientConnection, where: str, patience_seconds: float) -> None:
    """NetworkUnreachable after so long without a connection."""
    try:
        while True:
            with anyio.move_on_after(patience_seconds) as scope:
                await connection.wait_connected()
            if scope.cancelled_caught:
                raise NetworkUnreachable(
                    f"the connection to {where} was lost, and nobody has answered there for "
                    f"{patience_seconds:g} s"
                    + (f": {connection.hindrance}" * bool(connection.hindrance))
                )
            await connection.wait_lost()
    except RemoteError:
        return  # it ended for good: whoever uses the connection is told


def _unreachable(where: str, why: str = "") -> NetworkUnreachable:
    """``why``: what is wrong with who answers there."""
    return NetworkUnreachable(
        f"no connection with {where}: {why}"
        if why
        else f"nobody answers at {where}; is the network running, and is this its address?"
    )


def answer_of(asked: verbs.Asks[T], result: Result) -> T:
    """The record of an answer; RequestFailed "bad-answer"."""
    kind = asked.answer
    if not issubclass(kind, Answer):
        return cast("T", result)
    _make_decoder(kind)
    with bad_answers(asked.verb):
        return kind.of(result)


@cache
def _make_decoder(kind: type[Answer]) -> None:
    """Of two threads that make msgspec look at one type first, one would read what the other has
    half written, which ends the process."""
    with _MAKING:
        json.Decoder(kind)


@contextmanager
def bad_answers(verb: str) -> Iterator[None]:
    """RequestFailed "bad-answer" where an answer that is read in here is not as it should be."""
    try:
        yield
    except (ValidationError, KeyError, TypeError, ValueError) as error:
        raise RequestFailed("bad-answer", f"{verb}: {error}") from None


@contextmanager
def refusals() -> Iterator[None]:
    """RequestFailed where the other side refuses what is asked in here."""
    try:
        yield
    except RemoteError as error:
        raise request_failed(error) from None


def request_failed(error: RemoteError) -> RequestFailed:
    """A refusal of the other side as an error of this package."""
    if error.code == "not-authenticated":
        return NotAuthenticated(error.message)
    kind = ProfileNotAccepted if error.code == "profile-refused" else RequestFailed
    return kind(error.code, error.message, error.fault)


async def _read_schema(path: Path) -> tuple[str | UnsetType, bytes]:
    """Its name, and its documents."""
    from onyx.schema_path import read_schema_path  # noqa: PLC0415 - lxml

    try:
        return await anyio.to_thread.run_sync(read_schema_path, path)
    except SchemaRefused as refusal:
        raise UnreadableInput(f"{path}: {refusal}") from None


async def _read_file(path: Path) -> bytes:
    with file_errors(path, "read"):
        return await anyio.Path(path).read_bytes()
