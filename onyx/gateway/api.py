"""The API: what can be asked of a gateway under /v1, each declared with what it takes and gives.

The routes and the OpenAPI document (api.py) are both made from ``OPERATIONS``.
"""

from __future__ import annotations

import re
import time
from base64 import b64decode
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from secrets import token_urlsafe
from typing import Any, Union, get_args

import msgspec
import trio
from msgspec import UNSET, to_builtins
from msgspec.structs import asdict, replace
from starlette.responses import JSONResponse, Response

from formats.errors import Fault
from formats.media_types import MESSAGE_TYPES, XML
from onyx.client_values import Delivery, Outcome
from onyx.clients import User, login_name
from onyx.errors import NetworkUnreachable, RequestFailed, UserError
from onyx.gateway.api_answers import (
    BacktestShown,
    BacktestsShown,
    Delivered,
    Ended,
    Explained,
    Gone,
    LetterAt,
    LettersFound,
    MessageWay,
    NetworkMap,
    NetworkStatus,
    NodeStatus,
    Opened,
    Published,
    QueriesAtWork,
    Replayed,
    SignedIn,
    Tick,
    TokenMade,
    WhyNot,
)
from onyx.gateway.backtests import Backtest
from onyx.gateway.call import COOKIE, JSON, Call, media_type_of, token_of
from onyx.gateway.event_stream import HEARTBEAT_SECONDS, EventStream, Write, event_text
from onyx.gateway.refusals import PROBLEM, Refusal, bad_argument, media_type_refused, problem
from onyx.gateway.sessions import Session
from onyx.identity.known_networks import ASKS_NOBODY
from onyx.message_way import way_of
from onyx.metadata.requests import ANY, Question, answer_of, named_type, shown
from onyx.network_view import read_statistics
from onyx.release import version
from onyx.results import Results
from overlay import verbs
from overlay.access import Token
from overlay.answers import (
    ArchivePage,
    Position,
    ProfileInfo,
    Profiles,
    Shown,
    SourceInfo,
    TraceStep,
    shown_type,
)
from overlay.archive_file import A_TIME, time_said
from overlay.delivery_policy import USUAL, DeliveryPolicy
from overlay.link.credentials import Credentials
from overlay.link.dead_letters import REFUSED
from overlay.settings import ProfileSettings, SourceSettings
from overlay.statistics import BrokerStatistics, NodeStatistics, RegistrationStatistics
from overlay.unfit import did_you_mean, in_words

# -------------------------------------------------------------------------------------------------
# Operation: one thing that can be asked of a gateway's API.


ANY_TYPE, ZIP = "*/*", "application/zip"


@dataclass(frozen=True, slots=True)
class Operation:
    """``route``: method and path; ``query``, ``headers`` and ``body`` (JSON) say of each name what
    it means, ``required`` which may not be left out; ``media_type`` of another body; ``answers``:
    by status, what it means; ``schemas``: of names that are no texts; ``gives``: the type of the
    answer; ``events``: of the data of each kind of event.  ``answer`` gives that, or a Response."""

    route: str
    summary: str
    answer: Callable[[Call], Awaitable[Any]]
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    media_type: str = ""
    answers: Mapping[int, str] = field(default_factory=dict)
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    gives: Any = None
    events: Mapping[str, type[Shown]] = field(default_factory=dict)

    async def answered(self, call: Call) -> Response:
        """RequestFailed for a name in the query or in the JSON body that the operation has not, and
        for a body of another media type."""
        check_names("the query", call.request.query_params, self.query)
        wanted, kind = self.media_type or JSON, media_type_of(call.request)
        if wanted not in (kind, ANY_TYPE) and await call.request.body():
            raise media_type_refused(kind, wanted)
        if wanted == JSON:
            await call.read_json()
            check_names("the body", call.said, self.body)
        found = await self.answer(call)
        return found if isinstance(found, Response) else as_json(found)


def as_json(
    found: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Of a record as it is shown, or of anything that JSON takes."""
    said = found.shown() if isinstance(found, Shown) else to_builtins(found)
    return JSONResponse(said, status, headers)


def check_names(place: str, said: Collection[str], known: Collection[str]) -> None:
    """RequestFailed with the first name that is not ``known``."""
    for name in sorted(set(said) - set(known)):
        there = ", ".join(known) or "none"
        reason = f"{place} has {name!r}{did_you_mean(name, known)}; it may have: {there}"
        fault = Fault("bad-argument", reason, there, where=name)
        raise RequestFailed(fault.code, reason, fault)


# -------------------------------------------------------------------------------------------------
# Verbs with a route, out of their table (overlay/verbs.py).


def operation_of(kind: type[verbs.Asked]) -> Operation:
    """The arguments that stand not in the path are in the query, or in a JSON body; an answer of
    DELETE is empty."""
    method, path = kind.route.split()
    in_path = set(re.findall(r"\{(\w+)\}", path))
    others = [each for each in msgspec.structs.fields(kind) if each.name not in in_path]
    schemas = {each.name: argument_schema(each.type) for each in others}
    takes_body = method != "GET" and bool(others)

    async def answer(call: Call) -> Any:
        said = call.said if takes_body else dict(call.request.query_params)
        asked, node = call.asked(kind, said, strict=takes_body), call.path.get("node")
        ask = call.session.client.ask if node is None else partial(call.session.ask_node, node)
        found = await ask(asked)
        return Response(status_code=204) if method == "DELETE" else found

    answer.__name__ = kind.verb.replace(".", "_")
    gives = " ".join((kind.answer.__doc__ or "the answer").split()).split(". ")[0]
    return Operation(
        *(kind.route, kind.summary(), answer),
        query={} if takes_body else {name: _said(schema) for name, schema in schemas.items()},
        body={name: _said(schema) for name, schema in schemas.items()} if takes_body else {},
        schemas=schemas,
        required=tuple(each.name for each in others if each.required),
        answers={204: "it is done"} if method == "DELETE" else {200: gives},
        gives=None if method == "DELETE" else kind.answer,
    )


def argument_schema(hint: Any) -> dict[str, Any]:
    """The JSON Schema of an argument that may be left out."""
    parts = [each for each in get_args(hint) if each is not msgspec.UnsetType]
    is_optional = msgspec.UnsetType in get_args(hint)
    return _schemas([Union[tuple(parts)] if is_optional else hint])[0][0]  # noqa: UP007


def _schemas(types: Collection[Any]) -> tuple[Sequence[dict[str, Any]], dict[str, Any]]:
    """Of each type, and of the records in them by name."""
    return msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")


def argument_schemas(kind: type[msgspec.Struct]) -> dict[str, dict[str, Any]]:
    return {each.name: argument_schema(each.type) for each in msgspec.structs.fields(kind)}


def _said(schema: Mapping[str, Any]) -> str:
    return str(schema.get("description", ""))


# -------------------------------------------------------------------------------------------------
# Questions to a provider of metadata, out of their table (onyx/metadata/requests.py).


def question_operation(kind: type[Question[Any]]) -> Operation:
    """The tag is in the path; the fields are in the query, or in a JSON body where the question can
    change something."""
    tag = str(kind.__struct_config__.tag)
    fields, schemas = msgspec.structs.fields(kind), argument_schemas(kind)
    documents = {name for name in schemas if "contentEncoding" in repr(schemas[name])}
    schemas |= {name: _of_texts(schemas[name]) for name in documents}
    changes = kind.writes or "dry_run" in schemas

    async def answer(call: Call) -> Any:
        given = dict(call.said if changes else call.request.query_params)
        given |= {name: _encoded(given[name]) for name in documents & given.keys()}
        try:
            question = msgspec.convert(given, kind, strict=changes, builtin_types=(bytes,))
        except msgspec.ValidationError as error:
            fault = in_words(kind, error, given)
            raise RequestFailed(fault.code, fault.reason, fault) from None
        return shown(await call.ask_provider(call.path["provider"], question))

    answer.__name__ = f"metadata_{tag.replace('.', '_')}"
    said = dict.fromkeys(schemas, "")
    return Operation(
        f"{'POST' if changes else 'GET'} /v1/metadata/{{provider}}/{tag.replace('.', '/')}",
        f"Ask a provider of metadata: {tag}",
        answer,
        query={} if changes else said,
        body=said if changes else {},
        schemas=schemas,
        required=tuple(each.name for each in fields if each.required),
        answers={200: "the answer", 404: "there is none", 422: "refused, with its place"},
        gives=named_type(answer_of(kind)),
    )


def _of_texts(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of documents, which come as texts."""
    return {
        name: _of_texts(said) if isinstance(said, dict) else said
        for name, said in schema.items()
        if name != "contentEncoding"
    }


def _encoded(value: object) -> object:
    if isinstance(value, dict):
        return {name: _encoded(each) for name, each in value.items()}
    return value.encode() if isinstance(value, str) else value


# -------------------------------------------------------------------------------------------------
# What can be asked of a gateway about backtests: to begin, follow and end them.


async def begin_backtest(call: Call) -> Response:
    """The first page is read before it is answered, so that what is refused is said at once."""
    session, trials = call.session, call.gateway.trials
    profile, now = call.text("profile"), time.time()
    since, until = _time(call, "since", 0.0), min(_time(call, "until", now), now)
    await trials.ask({"profile": profile})  # RequestFailed, with its place
    source = await session.client.source(call.text("source"))

    async def read(after: str) -> ArchivePage:
        asked = verbs.ArchiveRead(source=source.id, since=since, until=until, after=after)
        return await session.ask(source.address, asked)

    page = await read("")
    backtest = session.backtests.add(profile, source.id, since, until)

    async def run() -> None:
        await backtest.run(page, read, trials.ask)

    session.start(run)
    return as_json(backtest.shown, 201, {"Location": f"/v1/backtests/{backtest.id}"})


async def list_backtests(call: Call) -> BacktestsShown:
    return BacktestsShown([each.shown for each in call.session.backtests.all()])


async def show_backtest(call: Call) -> BacktestShown:
    return _asked(call).shown


async def end_backtest(call: Call) -> Response:
    call.session.backtests.end(call.path["backtest"])
    return Response(status_code=204)


def _asked(call: Call) -> Backtest:
    return call.session.backtests.one(call.path["backtest"])


def _time(call: Call, name: str, default: float) -> float:
    """Seconds of the epoch; UTC, where it does not say."""
    if name not in call.said:
        return default
    try:
        return time_said(call.text(name))
    except ValueError:
        raise bad_argument(name, A_TIME) from None


_NONE = {404: "there is none"}
_MEDIA_TYPE = {"media_type": "of the message (default: application/xml)"}
BACKTEST_OPERATIONS = (
    Operation(
        "POST /v1/backtests",
        "Try a profile on the archive of a source, in the background",
        begin_backtest,
        body={
            "profile": "a text in XQuery or SPARQL",
            "source": "whose messages, by its id or its name",
            "since": "published then or later, as 2026-11-21T17:30Z (default: all)",
            "until": "published before (default: now)",
        },
        required=("profile", "source"),
        answers={
            201: "it runs: its id, state, share, figures, samples",
            403: "they may not read that archive",
            404: "there is no such source",
            422: "refused: the profile with its place; no-archive",
            503: "too many are running",
        },
        gives=BacktestShown,
    ),
    Operation(
        "GET /v1/backtests",
        "List one's backtests, the latest first; they go with one's session",
        list_backtests,
        answers={200: "backtests"},
        gives=BacktestsShown,
    ),
    Operation(
        "GET /v1/backtests/{backtest}",
        "Show how far a backtest is, and what came out",
        show_backtest,
        answers={200: "state is running, done or failed; share from 0 to 1", **_NONE},
        gives=BacktestShown,
    ),
    Operation(
        "DELETE /v1/backtests/{backtest}",
        "End a backtest, and forget it",
        end_backtest,
        answers={204: "it is gone", **_NONE},
    ),
)


# -------------------------------------------------------------------------------------------------
# The OpenAPI document of the API, made from its operations.


def openapi(operations: Collection[Operation]) -> dict[str, Any]:
    """OpenAPI 3.1.  Answers of a later release may have more fields."""
    given = [kind for each in operations for kind in (each.gives, *each.events.values()) if kind]
    types = list(dict.fromkeys([Refusal, *given]))
    said, schemas = _schemas([shown_type(kind) for kind in types])
    for schema in schemas.values():
        schema.pop("additionalProperties", None)
        for field_of in schema["properties"].values():
            field_of.pop("default", None)  # an answer has all its fields
    of = dict(zip(types, said, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        method, path = operation.route.split()
        paths.setdefault(path, {})[method.lower()] = _described(operation, of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Onyx gateway", "version": version()},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _described(operation: Operation, of: Mapping[Any, dict[str, Any]]) -> dict[str, Any]:
    """``of``: the schemas of answers by type."""
    content: dict[str, Any] = {}
    if operation.gives is not None:
        content = {JSON: {"schema": of[operation.gives]}}
    elif operation.events:
        events = {name: of[kind] for name, kind in operation.events.items()}
        content = {EventStream.media_type: {"schema": {"type": "string"}, "x-events": events}}
    refused = {PROBLEM: {"schema": of[Refusal]}}
    answers: dict[str, dict[str, Any]] = {
        str(status): {"description": said, "content": refused if status >= 400 else content}
        for status, said in operation.answers.items()
    }
    described: dict[str, Any] = {
        "operationId": operation.answer.__name__,
        "tags": [operation.route.split("/")[2]],
        "summary": operation.summary,
        "parameters": list(_parameters(operation)),
        "responses": {**answers, "default": {"description": "code, reason", "content": refused}},
    }
    media_type = operation.media_type or (JSON if operation.body else "")
    if media_type:
        schema: dict[str, Any] = {"type": "string"}
        if media_type == ZIP:
            schema["format"] = "binary"
        elif media_type == JSON:
            schema = {
                "type": "object",
                "properties": {
                    name: {**operation.schemas.get(name, {"type": "string"}), "description": said}
                    for name, said in operation.body.items()
                },
                "required": list(operation.required),
                "additionalProperties": False,
            }
        described["requestBody"] = {
            "required": bool(operation.required) or media_type != JSON,
            "content": {
                kind: {"schema": schema}
                for kind in (MESSAGE_TYPES if media_type == ANY_TYPE else (media_type,))
            },
        }
    return described


def _parameters(operation: Operation) -> Iterator[dict[str, Any]]:
    text = {"type": "string"}
    for name in re.findall(r"\{(\w+)\}", operation.route):
        yield {"name": name, "in": "path", "required": True, "schema": text}
    for name, said in operation.query.items():
        schema = operation.schemas.get(name, text)
        required = name in operation.required
        about = {"description": said, "required": required, "schema": schema}
        yield {"name": name, "in": "query", **about}
    for name, said in operation.headers.items():
        if name != "Authorization":  # is a scheme of security
            yield {"name": name, "in": "header", "description": said, "schema": text}


# -------------------------------------------------------------------------------------------------
# ResultStream: the results of profiles as events, each known by how far the reader is.
#
# ::
#
#     id: p1-k3v9q2mx:7,p2-8ch2r0ws:2        of each profile the last delivery that was given
#     event: delivery
#     data: {"profile": "p2-8ch2r0ws", "results": ["<a/>"], ...}
#
# A delivery is acknowledged when a reader comes back and says by Last-Event-ID that they have it,
# so what was on its way when a connection broke comes again, and what they had does not.  Until
# then it waits in its mailbox: a stream ends after so many deliveries, or a while after the last
# one, and a browser's EventSource then comes back by itself.
#
# A stream that only looks asks the host brokers now and again for what waits behind what it has
# given; it attaches to nothing, so whoever takes the profile goes on to.


PROFILES_MAX = 50  # of one stream
AGAIN_MS = 200  # until a reader comes back
SETTLE_SECONDS = 10.0  # a stream ends so long after the last delivery that is not acknowledged
ACKNOWLEDGE = ("read", "sent", "never")
LOOK_SECONDS = 0.5  # from one time that a stream looks to the next

_EVENT_ID = re.compile(r"([^:,]{1,256}):(\d{1,18})")


def positions_in(event_id: str) -> dict[str, int]:
    """By profile; RequestFailed for another text."""
    found = {}
    for part in event_id.split(",") if event_id else ():
        match = _EVENT_ID.fullmatch(part)
        if match is None:
            what = "expected PROFILE:NUMBER, with commas between several"
            raise RequestFailed("bad-event-id", f"Last-Event-ID {event_id[:100]!r}: {what}")
        found[match[1]] = int(match[2])
    return found


class ResultStream:
    """``run`` it as an EventStream."""

    def __init__(
        self,
        session: Session,
        profiles: list[str],
        positions: dict[str, int],
        unacknowledged_max: int,
        acknowledge: str,
    ) -> None:
        """``positions``: through which the reader has them; ``acknowledge``: when a delivery is
        acknowledged, one of ACKNOWLEDGE."""
        self._session, self._profiles = session, profiles
        self._positions = {name: at for name, at in positions.items() if name in profiles}
        self._acknowledges = acknowledge == "sent"
        self._left = inf if self._acknowledges else unacknowledged_max
        self._follow = self._look if acknowledge == "never" else self._take

    async def run(self, write: Write) -> None:
        """Until the reader has to say how far they are, is gone, or a profile has ended."""
        await write(f"retry: {AGAIN_MS}\n\n")
        async with self._session.own_user() as user:
            try:
                ended = await self._follow(user, write)
            except UserError as error:
                ended = error
            if ended is not None:
                await write(event_text("ended", Ended(ended.code, ended.reason)))

    async def _look(self, user: User, write: Write) -> None:
        """Give what waits and what comes; it is neither acknowledged nor taken from anybody."""
        await write(event_text("open", Opened(self._profiles)))
        while True:
            with suppress(NetworkUnreachable):  # a broker may come back
                for at in (await user.positions(*self._profiles)).values():
                    await self._look_through(user, write, at)
            await write(": \n\n")
            await trio.sleep(LOOK_SECONDS)

    async def _look_through(self, user: User, write: Write, at: Position) -> None:
        name = at.profile
        self._positions[name] = min(self._positions.get(name, at.gone), at.last)
        while (after := self._positions[name]) < at.last:
            page = await user.waiting(name, after, at.last)
            if page.lost:
                await write(event_text("gone", Gone(name, page.lost)))
            for delivery in page.deliveries:
                await write(self._event(delivery))
            self._positions[name] = page.through

    async def _take(self, user: User, write: Write) -> UserError | None:
        """Why nothing comes any more; None: the reader has to say how far they are."""
        before = dict(self._positions)
        results = user.results(
            *self._profiles,
            positions=None if self._acknowledges else lambda name: before.get(name, 0),
            held=not self._acknowledges,
        )
        await user.positions(released={} if self._acknowledges else before)
        await results.connect()
        await write(event_text("open", Opened(self._profiles)))
        return await self._give(results, write)

    async def _give(self, results: Results, write: Write) -> UserError | None:
        """See ``_take``."""
        ended: UserError | None = None
        put, take = trio.open_memory_channel[Delivery | UserError](0)

        async def read() -> None:
            try:
                async for delivery in results:
                    await put.send(delivery)
            except RequestFailed as failed:
                await put.send(failed)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            given = 0
            while given < self._left:
                with trio.move_on_after(self._patience(given)) as patience:
                    found = await take.receive()
                if patience.cancelled_caught:
                    if given and not self._acknowledges:
                        break
                    await write(": \n\n")
                    continue
                if isinstance(found, UserError):
                    ended = found
                    break
                given += 1
                await write(self._event(found))
            nursery.cancel_scope.cancel()
        if self._acknowledges and ended is None:
            await results.flush()
        return ended

    def _patience(self, given: int) -> float:
        return SETTLE_SECONDS if given and not self._acknowledges else HEARTBEAT_SECONDS

    def _event(self, delivery: Delivery) -> str:
        self._positions[delivery.profile] = delivery.position
        said = Delivered(
            profile=delivery.profile,
            source=delivery.source,
            number=delivery.number,
            position=delivery.position,
            media_type=delivery.media_type,
            results=[result.decode("utf-8", "replace") for result in delivery.results],
            limit=delivery.limit or UNSET,
        )
        at = ",".join(f"{name}:{number}" for name, number in self._positions.items())
        return event_text("delivery", said, at)


# -------------------------------------------------------------------------------------------------
# What can be asked of a gateway about sources, as the command line has it, with the same codes.


_OF_SOURCE, _OF_PROFILE = argument_schemas(SourceSettings), argument_schemas(ProfileSettings)
_CHANGES = {
    **{name: _said(schema) for name, schema in _OF_SOURCE.items()},
    "validate": "off, report or reject: messages against its schema",
    "schema": "the text of its schema from now on, in one document; null: it has none",
    "schema_name": "of that document: .xsd, .rng or .dtd",
}


_OF_NEW_SOURCE = {
    "name": "by which it is known beside its id",
    **_CHANGES,
    "base": "the IRI that relative ones in its graphs are relative to",
    "key": "the same again finds the one that there is",
    "ensure": "true: one's own source of that name is the one, and becomes as it is said here",
}


async def add_source(call: Call) -> Response:
    asked = call.asked(verbs.SourceRegister, _source_said(call))
    info: SourceInfo = await call.session.client.ask(asked)
    return as_json(info, 201, {"Location": f"/v1/sources/{info.id}"})


async def update_source(call: Call) -> SourceInfo:
    if not call.said:
        reason = f"nothing to change: expected some of {', '.join(_CHANGES)}"
        raise RequestFailed("bad-argument", reason)
    found: SourceInfo = await call.session.client.ask(
        call.asked(verbs.SourceUpdate, _source_said(call))
    )
    return found


def _source_said(call: Call) -> dict[str, object]:
    """Arguments of a verb, with the schema as bytes."""
    said = call.said
    if "schema_name" in said and "schema" not in said:
        raise bad_argument("schema", "as well, with schema_name")
    wanted = {name: said[name] for name in said if name not in ("schema", "schema_name")}
    if said.get("schema") is not None:
        wanted |= {"schema_name": call.text("schema_name"), "schema": call.text("schema").encode()}
    elif "schema" in said:
        wanted["schema_name"] = ""
    return wanted


async def trace(call: Call) -> MessageWay:
    source, found = await traced(call, call.path["source"])
    return MessageWay(source.id, list(found.values()))


async def traced(call: Call, name: str) -> tuple[SourceInfo, dict[str, TraceStep]]:
    """The way that the message in the body would take from a source, for operators."""
    call.check_operates()
    addresses = await call.session.client.brokers()
    source = await call.session.client.source(name)

    async def ask(broker: str, asked: verbs.Asked) -> Any:
        return await call.session.ask(addresses[broker], asked)

    return source, await way_of(ask, source.root, source.id, *call.message(XML))


async def put_schema(call: Call) -> SourceInfo:
    """It is read here in a process with limits, as only what the main document reaches goes on.

    A schema of one document goes by PATCH.
    """
    data = await call.request.body()
    main = call.request.query_params.get("main", "")
    question = {"schema_zip": data, "main": main}
    read = await call.gateway.trials.ask(question)
    asked = verbs.SourceUpdate(
        source=call.path["source"],
        schema_name=read["schema_name"],
        schema=b64decode(read["schema"]),
    )
    found: SourceInfo = await call.session.client.ask(asked)
    return found


_WHOSE = {404: "there is none", 409: "several have the name", 403: "it is another's"}
SOURCE_OPERATIONS = (
    Operation(
        "POST /v1/sources",
        "Register a source, or find it; by its key, or by its name with ensure",
        add_source,
        body=_OF_NEW_SOURCE,
        schemas={**_OF_SOURCE, "ensure": {"type": "boolean"}},
        answers={201: "the source", 422: "refused: a schema with its place"},
        gives=SourceInfo,
    ),
    Operation(
        "POST /v1/sources/{source}/trace",
        "Show the way that a message would take, broker by broker; nothing is published",
        trace,
        body={"message": "a document or a graph", **_MEDIA_TYPE},
        required=("message",),
        answers={200: "the brokers on the way, each before those that it sends to", **_WHOSE},
        gives=MessageWay,
    ),
    Operation(
        "PATCH /v1/sources/{source}",
        "Change what is said of a source; what is not named stays",
        update_source,
        body=_CHANGES,
        schemas={**_OF_SOURCE, "schema": {"type": ["string", "null"]}},
        answers={
            200: "the source, with what has changed, and which profiles can match nothing any more",
            **_WHOSE,
            422: "refused: a schema with its place, a schema that what it is validated by takes",
        },
        gives=SourceInfo,
    ),
    Operation(
        "PUT /v1/sources/{source}/schema",
        "Give a source a schema of several documents, as a zip file of them",
        put_schema,
        query={"main": "the path of the main document, where others refer to none of several"},
        media_type=ZIP,
        answers={
            200: "the source, schema_unread with what the documents refer to and is not there",
            **_WHOSE,
            415: "no application/zip",
            422: "refused: no zip file, or a document that cannot be read, with its place",
        },
        gives=SourceInfo,
    ),
)


PAGE_MAX = 1_000  # profiles in one answer
TOKEN_SECONDS = 30 * 86_400.0  # that a token holds unless it is said
TRACEPARENT = "traceparent"


# --- dead letters and tokens ------------------------------------------------------------------


async def list_letters(call: Call) -> LettersFound:
    return await letters_found(call, call.request.query_params.get("user", call.session.user_name))


async def letters_found(call: Call, user: str) -> LettersFound:
    """Of a user, or of all, at all processes."""
    found = await call.session.ask_all(verbs.DeadList(user=user))
    letters = [
        LetterAt(node=node, **asdict(letter))
        for node, answer in found.items()
        for letter in ([] if answer is None else answer.letters)
    ]
    letters.sort(key=lambda letter: -letter.at)
    return LettersFound(letters, [node for node, answer in found.items() if answer is None])


async def replay_letter(call: Call) -> Replayed | Response:
    session, node, name = call.session, call.path["node"], call.path["id"]
    letter = await session.ask_node(node, verbs.DeadReplay(id=name))
    replayed = Replayed(name, letter.kind)
    if letter.kind == REFUSED:
        source = (await session.ask_node(node, verbs.DeadShow(id=name))).source
        outcome = await session.publish(source, letter.data, letter.media_type, "", None)
        if not outcome.accepted:
            return _refused(outcome)
        await session.ask_node(node, verbs.DeadDrop(id=name))
        replayed = Replayed(name, letter.kind, source, outcome.number)
    return replayed


async def issue_token(call: Call) -> Response:
    """The network keeps a digest of the secret alone."""
    if not isinstance(call.session.credentials, Credentials):
        raise RequestFailed("no-tokens", ASKS_NOBODY)
    secret = token_urlsafe(32)
    said = {"seconds": TOKEN_SECONDS, **call.said, "digest": Token.digest_of(secret)}
    asked = call.asked(verbs.TokenIssue, said)
    found = await call.session.client.ask(asked)
    made = TokenMade(**asdict(found), principal=asked.principal, secret=secret)
    return as_json(made, 201)


_OF_TOKEN = argument_schemas(verbs.TokenIssue)
LETTER_AND_TOKEN_OPERATIONS = (
    Operation(
        "GET /v1/dead",
        "List dead letters of all processes, the latest first",
        list_letters,
        query={"user": "only those of this user's profiles (default: one's own; of others, all)"},
        answers={200: "letters, each with its node; the processes that do not answer"},
        gives=LettersFound,
    ),
    Operation(
        "POST /v1/dead/{node}/{id}/replay",
        "Handle a dead letter once more; a message that was refused is published again",
        replay_letter,
        answers={200: "it is done", **_NONE, 422: "refused again; or not-kept"},
        gives=Replayed,
    ),
    Operation(
        "POST /v1/tokens",
        "Make a token; its secret is in the answer, and nowhere else",
        issue_token,
        body={
            "principal": "whose it is, as user/ann",
            "seconds": "how long it holds (default: 30 days)",
            "only": "[role, scope] of each to which it is bound (default: to none)",
        },
        schemas=_OF_TOKEN,
        required=("principal",),
        answers={201: "the token, with its secret", 403: "they do not administer the network"},
        gives=TokenMade,
    ),
)


# --- messages and results ---------------------------------------------------------------------


async def publish(call: Call) -> Response:
    source, key = call.path["source"], call.request.headers.get("publish-key", "")
    media_type = call.request.headers.get("content-type", "")
    traced = call.request.headers.get(TRACEPARENT)
    headers = None if traced is None else {TRACEPARENT: traced}
    data = await call.request.body()
    outcome = await call.session.publish(source, data, media_type, key, headers)
    if not outcome.accepted:
        return _refused(outcome)
    said = Published(source, outcome.number, outcome.is_known)
    return as_json(said, 200 if outcome.is_known else 201)


def _refused(outcome: Outcome) -> Response:
    failed = RequestFailed(outcome.code, outcome.reason, outcome.fault)
    return problem(failed, number=outcome.number)


async def results(call: Call) -> Response:
    profiles = list(dict.fromkeys(call.request.query_params.getlist("profile")))
    if not 1 <= len(profiles) <= PROFILES_MAX:
        raise bad_argument("profile", f"1 to {PROFILES_MAX} of them")
    positions = positions_in(call.request.headers.get("last-event-id", ""))
    how = call.request.query_params.get("acknowledge", "read")
    if how not in ACKNOWLEDGE:
        raise bad_argument("acknowledge", f"one of {', '.join(ACKNOWLEDGE)}")
    for profile in profiles:
        await call.session.client.profile(profile)  # which there must be, and be theirs
    unacknowledged = call.gateway.options.unacknowledged_max
    stream = ResultStream(call.session, profiles, positions, unacknowledged, how)
    return _streamed(call, stream.run)


async def overlay_map(call: Call) -> Response:
    call.check_operates()
    return _streamed(call, call.gateway.feed.show, packs=True)


def _streamed(call: Call, run: Callable[[Write], Awaitable[None]], packs: bool = False) -> Response:
    """In the session of whoever asks, which stays open."""
    gateway, session = call.gateway, call.session
    if gateway.traffic.streams >= gateway.options.streams_max:
        raise RequestFailed("busy", f"{gateway.traffic.streams} streams are followed already")
    if token_of(call.request, gateway.options) and session.streams >= (
        maximum := gateway.options.token_streams_max
    ):
        raise RequestFailed("busy", f"{maximum} streams are followed with this token already")
    gateway.traffic.streams += 1
    session.streams += 1
    session.users += 1

    async def follow(write: Write) -> None:
        try:
            await session.until_ended(run, write)
        finally:
            session.users -= 1
            session.streams -= 1
            gateway.traffic.streams -= 1

    return EventStream(follow, packs)


# --- profiles ---------------------------------------------------------------------------------


async def list_profiles(call: Call) -> Profiles:
    query = call.request.query_params
    user = query.get("user", call.session.user_name)
    page = await call.session.client.ask(verbs.ProfileList(user=user, after=query.get("after", "")))
    found = page.profiles[:PAGE_MAX]
    return Profiles(found, page.more or len(page.profiles) > PAGE_MAX)


async def add_profile(call: Call) -> Response:
    usual = {"user": call.session.user_name or login_name(), "wait": True}
    info = await call.session.client.ask(call.asked(verbs.ProfileAdd, usual | {**call.said}))
    return as_json(info, 201, {"Location": f"/v1/profiles/{info.id}"})


async def update_profile(call: Call) -> ProfileInfo:
    text, profile = call.text("text"), call.path["profile"]
    return await call.session.user.update_profile(profile, text, wait=call.flag("wait", True))


async def remove_profile(call: Call) -> Response:
    await call.session.user.remove_profile(call.path["profile"])
    return Response(status_code=204)


async def show_policy(call: Call) -> DeliveryPolicy:
    return await call.session.user.policy(call.path["profile"])


async def put_policy(call: Call) -> DeliveryPolicy:
    return await _set_policy(call, USUAL)


async def change_policy(call: Call) -> DeliveryPolicy:
    return await _set_policy(call, await call.session.user.policy(call.path["profile"]))


async def _set_policy(call: Call, base: DeliveryPolicy) -> DeliveryPolicy:
    policy = _policy(call.said, base)
    await call.session.user.set_policy(call.path["profile"], policy)
    return policy


def _policy(said: object, base: DeliveryPolicy = USUAL) -> DeliveryPolicy:
    try:
        if not isinstance(said, Mapping):
            raise ValueError("expected its fields by name")
        return base.changed(said)
    except ValueError as error:
        raise RequestFailed("bad-argument", f"no policy: {error}") from None


# --- explaining -------------------------------------------------------------------------------


async def explain(call: Call) -> dict[str, Any]:
    question: dict[str, object] = {"profile": call.text("profile")}
    if "message" in call.said:
        question["message"], question["media_type"] = call.message(XML)
        question["base"] = call.text("base", "")
    return await call.gateway.trials.ask(question)


async def why_not(call: Call) -> WhyNot:
    info = await call.session.client.profile(call.text("profile"))
    message, media_type = call.message(XML)
    question = {"profile": info.text, "message": message, "media_type": media_type}
    found = await call.gateway.trials.ask(question)
    return WhyNot(info.id, found["matched"], found["failure"], found["results"])


# --- the network ------------------------------------------------------------------------------


async def show_status(call: Call) -> NetworkStatus:
    call.check_operates()
    found = await call.session.ask_all(verbs.Statistics())
    return NetworkStatus({node: status_of(read_statistics(said)) for node, said in found.items()})


def status_of(told: NodeStatistics | RequestFailed | None) -> NodeStatus:
    """Of a process, in a few figures."""
    if told is None:
        return NodeStatus(state="away")
    if isinstance(told, RequestFailed):
        return NodeStatus(state="unreadable", why=told.reason)
    status = NodeStatus(
        state="up",
        waiting_bytes=told.links.backlog_bytes,
        longest_turn_ms=told.node.longest_turn_ms,
        dead_letters=told.dead.kept,
    )
    if isinstance(told, RegistrationStatistics):
        return replace(status, profiles=told.catalog.profiles)
    assert isinstance(told, BrokerStatistics)
    data = told.data
    return replace(
        status,
        waiting_bytes=told.waiting_bytes,
        published=data.published,
        received=data.received,
        delivered=data.delivered,
        refused=data.refused,
        profiles=told.query.profiles,
        crossings=data.crossings,
    )


async def list_queries(call: Call) -> QueriesAtWork:
    from onyx.gateway.queries import queries_shown  # noqa: PLC0415 - of gateways with a catalog

    files = call.gateway.options.catalog
    return await trio.to_thread.run_sync(queries_shown, files, call.session)


async def cancel_query(call: Call) -> Response:
    from onyx.gateway.queries import query_ended  # noqa: PLC0415 - of gateways with a catalog

    files, query = call.gateway.options.catalog, call.path["query"]
    await trio.to_thread.run_sync(query_ended, files, call.session, query)
    return Response(status_code=204)


async def sign_in(call: Call) -> Response:
    """The token is the one that this very request has shown."""
    token = call.request.headers.get("authorization", "").partition(" ")[2]
    if not token:
        raise RequestFailed("not-authenticated", "expected a token: Authorization: Bearer ...")
    said = as_json(SignedIn(call.session.principal))
    is_secure = call.gateway.options.tls_certificate is not None
    said.set_cookie(COOKIE, token, httponly=True, secure=is_secure, samesite="strict")
    return said


async def sign_out(call: Call) -> Response:
    """The token stays one, for those who have it; a browser forgets it."""
    said = Response(status_code=204)
    said.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return said


async def document(call: Call) -> dict[str, Any]:
    return openapi(OPERATIONS)


_TEXTS = {"profile": "a text in XQuery or SPARQL", "message": "a document or a graph"}
_REFUSED = {422: "refused: code, reason, line, column and, of a profile, what was expected"}
_POLICY = {
    field.name: msgspec.json.schema(field.type)["description"]
    for field in msgspec.structs.fields(DeliveryPolicy)
}

OPERATIONS = (
    Operation(
        "POST /v1/sources/{source}/messages",
        "Publish a message",
        publish,
        headers={
            "Publish-Key": "the same again publishes nothing, and gives the number that it has",
            "traceparent": "of W3C Trace Context: the message is traced",
        },
        media_type=ANY_TYPE,
        answers={201: "accepted, with its number", 200: "known before by its key", **_REFUSED},
        gives=Published,
    ),
    Operation(
        "GET /v1/results",
        "Follow the results of profiles, as Server-Sent Events",
        results,
        query={
            "profile": f"an id; 1 to {PROFILES_MAX} times",
            "acknowledge": "read (the default): by Last-Event-ID; sent: when it is written; never: "
            "the stream only looks, and who takes the profile goes on to",
        },
        headers={"Last-Event-ID": "all through there are acknowledged, and it goes on behind it"},
        answers={200: "events open, delivery, gone and ended", **_NONE},
        events={"open": Opened, "delivery": Delivered, "gone": Gone, "ended": Ended},
    ),
    Operation(
        "GET /v1/profiles",
        "List profiles",
        list_profiles,
        query={"user": "whose (default: one's own)", "after": "the id of the last one known"},
        answers={200: "profiles, and whether there are more"},
        gives=Profiles,
    ),
    Operation(
        "POST /v1/profiles",
        "Add a profile",
        add_profile,
        body={
            "text": _TEXTS["profile"],
            "user": "whose it is (default: one's own)",
            "location": "[latitude, longitude], for a host broker nearby",
            **{name: _said(schema) for name, schema in _OF_PROFILE.items()},
            "key": "the same again finds the one that there is",
            "wait": "true (the default): until it is live",
            "timeout": "seconds that it waits (default: until it is live)",
            "policy": "how what waits is kept, as /v1/profiles/{profile}/policy has it",
        },
        schemas=argument_schemas(verbs.ProfileAdd),
        required=("text",),
        answers={201: "the profile", **_REFUSED},
        gives=ProfileInfo,
    ),
    Operation(
        "PUT /v1/profiles/{profile}",
        "Replace the text of a profile",
        update_profile,
        body={"text": _TEXTS["profile"], "wait": "true (the default): until it is live"},
        schemas=argument_schemas(verbs.ProfileUpdate),
        required=("text",),
        answers={200: "the profile", **_NONE, **_REFUSED},
        gives=ProfileInfo,
    ),
    Operation(
        "DELETE /v1/profiles/{profile}",
        "Remove a profile, with what was not delivered",
        remove_profile,
        answers={204: "it is gone", **_NONE},
    ),
    *(
        Operation(
            f"{method} /v1/profiles/{{profile}}/policy",
            summary,
            answer,
            body=body,
            schemas=argument_schemas(DeliveryPolicy),
            answers={200: "the policy", **_NONE},
            gives=DeliveryPolicy,
        )
        for method, summary, answer, body in (
            ("GET", "Show how what waits for a profile is kept", show_policy, {}),
            ("PUT", "Set it; what is not named is as usual", put_policy, _POLICY),
            ("PATCH", "Change it; what is not named stays", change_policy, _POLICY),
        )
    ),
    Operation(
        "POST /v1/explain",
        "Explain a profile, and try it on a message; nothing is registered or published",
        explain,
        body={**_TEXTS, **_MEDIA_TYPE, "base": "the IRI that relative ones are relative to"},
        required=("profile",),
        answers={200: "how it is matched; with a message, what held and the results", **_REFUSED},
        gives=Explained,
    ),
    Operation(
        "POST /v1/why-not",
        "Say why a registered profile does not match a message",
        why_not,
        body={"profile": "an id", "message": _TEXTS["message"], **_MEDIA_TYPE},
        required=("profile", "message"),
        answers={
            200: "whether it matches, and the first part that does not hold",
            **_NONE,
            **_REFUSED,
        },
        gives=WhyNot,
    ),
    *map(operation_of, (kind for kind in verbs.TABLE if kind.route)),
    *SOURCE_OPERATIONS,
    *LETTER_AND_TOKEN_OPERATIONS,
    *map(question_operation, get_args(ANY)),
    *BACKTEST_OPERATIONS,
    Operation(
        "GET /v1/status",
        "Show what the processes of the network do",
        show_status,
        answers={200: "by node a few figures"},
        gives=NetworkStatus,
    ),
    Operation(
        "GET /v1/map",
        "Follow the network, as Server-Sent Events",
        overlay_map,
        answers={200: "events map (its shape) and tick (what has changed)"},
        events={"map": NetworkMap, "tick": Tick},
    ),
    Operation(
        "GET /v1/queries",
        "List the queries at work at the cycle providers of the catalog: one's own; all, for "
        "operators",
        list_queries,
        answers={200: "queries, each with how far it is at its providers; those that are away"},
        gives=QueriesAtWork,
    ),
    Operation(
        "DELETE /v1/queries/{query}",
        "Cancel a query at work",
        cancel_query,
        answers={204: "it is cancelled", **_NONE},
    ),
    Operation(
        "POST /v1/sign-in",
        "Keep the token of this request in a cookie, for the pages",
        sign_in,
        headers={"Authorization": "Bearer, and a token of the network"},
        media_type=JSON,
        answers={200: "whose it is"},
        gives=SignedIn,
    ),
    Operation(
        "DELETE /v1/sign-in",
        "Forget the token that sign-in has kept in a cookie",
        sign_out,
        answers={204: "it is forgotten"},
    ),
    Operation(
        "GET /v1/openapi.json", "This document", document, answers={200: "OpenAPI 3.1"}, gives=dict
    ),
)
