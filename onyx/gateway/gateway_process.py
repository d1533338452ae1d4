"""The gateway as a process: its parts together, from start to stop.

``onyx gateway`` runs it in the foreground.  ``onyx up`` starts it as a child, which is kept alive
as a node's process is: ``python -m onyx.gateway.gateway_process ...``, not for people.
"""

from __future__ import annotations

import argparse
import logging
import re
import socket
import sys
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

import jinja2
import trio
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from onyx.background import background_tasks
from onyx.beside import heed, tell_ready
from onyx.errors import EXIT_OK, RequestFailed, UserError, ending, exit_code_of, leaves
from onyx.gateway.api import OPERATIONS, Operation, letters_found, status_of, traced
from onyx.gateway.call import Call, Gateway
from onyx.gateway.history import History
from onyx.gateway.http_door import HttpRequest, serve
from onyx.gateway.listing import ROWS, Column, Listing
from onyx.gateway.map_feed import MapFeed
from onyx.gateway.options import GatewayOptions
from onyx.gateway.refusals import bad_argument, media_type_refused, problem
from onyx.gateway.sessions import Sessions
from onyx.gateway.traffic import Traffic
from onyx.gateway.trials import Trials
from onyx.identity.known_networks import credentials_for, use_credentials
from onyx.logs import configure_logging
from onyx.metadata import requests
from onyx.metadata.serving import PROVIDER_BASE
from onyx.network_view import decoded, read_statistics
from onyx.registration_client import RegistrationClient, addresses_of, impatient
from onyx.release import who
from onyx.renewal import keep_shown_renewed
from overlay import verbs
from overlay.access import ROLES, Right
from overlay.answers import AuditEntry, Shape, SourceInfo, TraceLink, TraceStep
from overlay.delivery_policy import WHEN_FULL
from overlay.link import validity
from overlay.link.open_files import allow_all_files
from overlay.log_options import LogOptions
from overlay.nodes import Address
from overlay.statistics import BrokerStatistics, RegistrationStatistics, Sent
from overlay.topology import Topology, TopologyError, load_topology, parse_topology
from registration.metadata.provider_reader import ProviderStatus
from yfilter.graph.said_paths import said_disjunct
from yfilter.language.namespaces import ShortNames

# -------------------------------------------------------------------------------------------------
# The application: routes of the API and of the pages, in front of one network.


# -------------------------------------------------------------------------------------------------
# Guard: what every request passes first, and every answer last.
#
# A page of somebody else may make a browser send requests here, so what such a page can send
# without asking is refused: by the Host header (a name that was made to point here), by Origin and
# Sec-Fetch-Site, and by media types that a form can have.  Pages of the origins that the options
# allow may use the API (CORS), never by a cookie; of any origin ("*") only by a token.


SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
FORM_TYPES = frozenset({"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})
"""What a form, or a request that is not asked about first, may say that its body is."""

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


ALLOWED_ORIGIN = "Access-Control-Allow-Origin"
SHARED = {"Access-Control-Expose-Headers": "Location", "Vary": "Origin"}
PREFLIGHT = {
    "Access-Control-Allow-Methods": ", ".join(sorted({x.route.split()[0] for x in OPERATIONS})),
    "Access-Control-Allow-Headers": ", ".join(
        sorted({"Authorization", "Content-Type", *(name for x in OPERATIONS for name in x.headers)})
    ),
    "Access-Control-Max-Age": "600",
}


CODINGS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
"""Content codings that are read, with what zlib knows them by."""
CODINGS_MAX = 2  # of one body, one within the other
MEMBERS_MAX = 64  # of gzip in one body


def in_no_coding(body: bytes, said: str, bytes_max: int) -> bytes:
    """A body as it was before the codings that Content-Encoding names, of which the last was done
    last; RequestFailed for another coding, for what is not in it, and beyond ``bytes_max``."""
    codings = [coding for part in said.lower().split(",") if (coding := part.strip())]
    codings = [coding for coding in codings if coding != "identity"]
    for coding in codings:
        if coding not in CODINGS or len(codings) > CODINGS_MAX:
            expected = f"expected {', '.join(CODINGS)}, at most {CODINGS_MAX} of them"
            raise RequestFailed("content-encoding", f"Content-Encoding {said[:40]!r}; {expected}")
    for coding in reversed(codings):
        body = _inflated(body, coding, bytes_max)
    return body


def _inflated(body: bytes, coding: str, bytes_max: int) -> bytes:
    """Of gzip all members, which are a body together."""
    bits, found = CODINGS[coding], b""
    if coding == "deflate" and int.from_bytes(body[:2]) % 31:
        bits = -bits  # without the header of zlib, as some send it
    for _ in range(MEMBERS_MAX):
        reader = zlib.decompressobj(bits)
        try:
            found += reader.decompress(body, bytes_max + 1 - len(found))
        except zlib.error as error:
            raise RequestFailed("undecodable", f"the body is no {coding}: {error}") from None
        if len(found) > bytes_max:
            raise RequestFailed("too-long", f"more than {bytes_max:,} bytes in {coding}")
        if not reader.eof:
            raise RequestFailed("undecodable", f"the body is no {coding}: it ends too early")
        body = reader.unused_data
        if not body:
            return found
    raise RequestFailed("undecodable", f"the body has more than {MEMBERS_MAX} parts in {coding}")


class Guard:
    """In front of ``app``."""

    def __init__(self, app: ASGIApp, options: GatewayOptions, traffic: Traffic) -> None:
        self._app, self._options, self._traffic = app, options, traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
        if scope["type"] != "http":
            return None
        origin = self._allowed_origin(scope)
        if origin:
            named = [each for each in scope["headers"] if each[0] != b"cookie"]
            scope = {**scope, "headers": named}
        request = HttpRequest(scope, receive, send, self._options, self._traffic)
        began = trio.current_time()

        async def receive_decoded() -> Message:
            """The whole body at once, in no coding."""
            body, message = bytearray(), await request.receive()
            while message["type"] == "http.request":
                body += message.get("body", b"")
                if not message.get("more_body", False):
                    said = Headers(scope=scope)["content-encoding"]
                    maximum = self._options.body_bytes_max
                    return {**message, "body": in_no_coding(bytes(body), said, maximum)}
                message = await request.receive()
            return message

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._traffic.answers[message["status"]] += 1
                self._traffic.seconds.note(trio.current_time() - began)
                MutableHeaders(scope=message).update(HEADERS)
                MutableHeaders(scope=message).setdefault("Cache-Control", "no-store")
                if origin:
                    MutableHeaders(scope=message).update(SHARED | {ALLOWED_ORIGIN: origin})
            await request.send(message)

        with request.at_work():
            try:
                self._check(scope, origin)
                request.check()
                if origin and scope["method"] == "OPTIONS":
                    asked = Response(status_code=204, headers=PREFLIGHT)
                    return await asked(scope, receive, send_with_headers)
                is_coded = "content-encoding" in Headers(scope=scope)
                received = receive_decoded if is_coded else request.receive
                await self._app(scope, received, send_with_headers)
            except UserError as error:
                await problem(error)(scope, receive, send_with_headers)

    def _allowed_origin(self, scope: Scope) -> str:
        """That of a page of another site which may use the API, "" of any other request."""
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        own = f"{scope['scheme']}://{headers.get('host', '')}"
        is_asked = scope["path"].startswith("/v1/") and origin != own
        return origin if is_asked and self._options.allows(origin) else ""

    def _check(self, scope: Scope, allowed: str) -> None:
        headers, options = Headers(scope=scope), self._options
        host = headers.get("host", "")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if options.hosts and name.lower() not in options.hosts:
            said = f"this gateway is not {host!r}; --host makes it known by a name"
            raise RequestFailed("wrong-host", said)
        if allowed:
            is_token = "authorization" in headers or scope["method"] == "OPTIONS"
            if allowed not in options.origins and not is_token:
                raise RequestFailed("not-authenticated", "pages of any site show a token")
            self._check_form(headers)
            return
        site, mode = headers.get("sec-fetch-site"), headers.get("sec-fetch-mode")
        is_from_elsewhere = site not in (None, "same-origin", "none")
        if is_from_elsewhere and not (scope["method"] == "GET" and mode == "navigate"):
            raise RequestFailed("cross-site", "pages of other sites may not ask this")
        if scope["path"].startswith("/v1/") and is_from_elsewhere:
            raise RequestFailed("cross-site", "pages of other sites may not ask this")
        if scope["method"] not in SAFE:
            self._check_change(scope, headers, host)

    def _check_change(self, scope: Scope, headers: Headers, host: str) -> None:
        origin = headers.get("origin")
        if origin is not None and origin != f"{scope['scheme']}://{host}":
            raise RequestFailed("cross-site", f"pages of {origin} may change nothing here")
        self._check_form(headers)

    def _check_form(self, headers: Headers) -> None:
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind in FORM_TYPES:
            raise media_type_refused(kind, "application/json, or the media type of the message")


# -------------------------------------------------------------------------------------------------
# The pages: what each of them shows, gathered for its template.
#
# A page is made when somebody opens it; what is live on it comes by events (static/*.js).


# -------------------------------------------------------------------------------------------------
# TracePicture: the way of a message as a tree, with a place for every broker and link of it.


COLUMN, ROW = 250, 76
CARD_WIDTH, CARD_HEIGHT = 132, 46
MARGIN = 12


@dataclass(slots=True)
class TracePicture:
    """From left to right; ``brokers`` with ``id``, ``x``, ``y``, ``profiles`` that match there,
    whether it is ``reached``; ``links`` with a ``path``, a ``note``, whether it is ``taken``,
    and why."""

    brokers: list[dict[str, Any]] = field(default_factory=list)
    links: list[dict[str, Any]] = field(default_factory=list)
    width: int = 0
    height: int = 0

    @staticmethod
    def of(answers: Mapping[str, TraceStep]) -> TracePicture:
        picture = TracePicture()
        root = next(iter(answers))
        picture._place(answers, root, 0)
        picture.width = max(b["x"] for b in picture.brokers) + CARD_WIDTH + MARGIN
        picture.height += MARGIN
        return picture

    def _place(self, answers: Mapping[str, TraceStep], broker: str, depth: int) -> dict[str, Any]:
        """A broker in the middle of those below it."""
        answer = answers.get(broker)
        links = [] if answer is None else answer.links
        placed = [(link, self._place(answers, link.link, depth + 1)) for link in links]
        if placed:
            y = (placed[0][1]["y"] + placed[-1][1]["y"]) // 2
        else:
            y = self.height + MARGIN
            self.height = y + ROW - MARGIN
        own = {
            "id": broker,
            "x": MARGIN + depth * COLUMN,
            "y": y,
            "reached": answer is not None,
            "matched": 0 if answer is None else answer.profiles_matched,
            "profiles": [] if answer is None else answer.profiles[:20],
        }
        self.brokers.append(own)
        self.links += [_link(own, link, child) for link, child in placed]
        return own


def _link(parent: dict[str, Any], link: TraceLink, child: dict[str, Any]) -> dict[str, Any]:
    x1, y1 = parent["x"] + CARD_WIDTH, parent["y"] + CARD_HEIGHT // 2
    x2, y2 = child["x"], child["y"] + CARD_HEIGHT // 2
    middle = (x1 + x2) // 2
    found = {
        "path": f"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}",
        "x": middle,
        "y": (y1 + y2) // 2,
        "ends": f"{parent['id']} → {child['id']}",
        "taken": link.taken,
        "disjuncts": link.disjuncts,
    }
    if link.taken:
        note = f"{link.bytes:,} bytes as {link.format}"
        cut = f", cut from {link.bytes_whole:,}" if link.bytes != link.bytes_whole else ""
        why = [said_disjunct(held) for held in (link.held or [])[:1]]
        return {**found, "note": f"{note}{cut}", "why": why}
    failed = [
        f"{said_disjunct(each.disjunct)} fails at {said_disjunct(each.part)}"
        for each in (link.failed or [])[:3]
    ]
    note = "not taken" if link.disjuncts else "nobody asks"
    return {**found, "note": note, "why": failed}


SHOWN_BYTES = 4_000  # of a dead letter
EXAMPLE_PROFILE = """\
for $n in $msg/nitf
where $n/head/pubdata/@edition.area = "SF"
return <stock_news>{$n/body/body.head/hedline}</stock_news>"""
EXAMPLE_MESSAGE = """\
<nitf>
  <head><pubdata edition.area="SF"/></head>
  <body><body.head><hedline>Markets calm</hedline></body.head></body>
</nitf>"""

WAITING_SECONDS = 10.0  # until a delivery that is evaluated late is there


def _column(label: str, name: str, *, is_number: bool = False) -> Column:
    return Column(label, attrgetter(name), is_number)


def _figure(label: str, name: str) -> Column:
    """Of a row of brokers, whose status may not have it."""
    return Column(label, lambda row: row[2].get(name), is_number=True)


BROKER_COLUMNS = {
    "node": Column("Node", lambda row: f"{row[0]} {row[1] or ''}"),
    "state": Column("State", lambda row: said_state(row[2]["state"])),
    "profiles": _figure("Profiles", "profiles"),
    "published": _figure("Published", "published"),
    "received": _figure("Received", "received"),
    "delivered": _figure("Delivered", "delivered"),
    "refused": _figure("Refused", "refused"),
    "waiting": _figure("Waiting", "waiting_bytes"),
    "turn": _figure("Longest turn", "longest_turn_ms"),
}
SOURCE_COLUMNS = {
    "source": _column("Source", "id"),
    "name": _column("Name", "name"),
    "root": _column("Root broker", "root"),
    "schema": _column("Schema", "schema_name"),
    "validation": _column("Validation", "validation"),
    "rate": _column("Messages a second, declared", "rate", is_number=True),
    "place": Column("Place"),
}
PROFILE_COLUMNS = {
    "profile": Column("Profile", is_sorted=True),
    "user": Column("User", is_sorted=True),
    "host": Column("Host broker", is_sorted=True),
    "version": Column("Version", is_number=True, is_sorted=True),
    "state": Column("State"),
    "text": Column("Text"),
}
LETTER_COLUMNS = {
    "at": _column("At", "at"),
    "node": _column("Node", "node"),
    "kind": _column("Kind", "kind"),
    "what": _column("What", "what"),
    "size": _column("Bytes", "size", is_number=True),
    "error": _column("Why", "error"),
}
RULE_COLUMNS = {
    "principal": _column("Principal", "principal"),
    "role": _column("Role", "role"),
    "scope": _column("Scope", "scope"),
    "from": Column("Given by", lambda rule: "topology" if rule.from_topology else "grant"),
}
OWN_RULE_COLUMNS = {name: each for name, each in RULE_COLUMNS.items() if name != "from"}
TOKEN_COLUMNS = {
    "token": _column("Token", "token"),
    "principal": _column("Principal", "principal"),
    "expires": _column("Over at", "expires"),
    "only": Column("Bound to", lambda token: " ".join(map(" ".join, token.only))),
}
AUDIT_COLUMNS = {
    "number": _column("Number", "number", is_number=True),
    "at": Column("At", lambda entry: time_text(entry.at)),
    "who": _column("Who", "who"),
    "what": _column("What", "what"),
    "kind": Column("Kind", lambda entry: "refusal" if entry.refused else "change"),
    "detail": _column("Detail", "detail"),
}

Context: TypeAlias = Mapping[str, Any]
Page: TypeAlias = tuple[str, Callable[[Call], Awaitable[Context]]]
"""A template, and what it is given."""


async def show_map(call: Call) -> Context:
    topology, _ = await _topology(call)
    return {"topology": topology, "charts": call.gateway.history.charts("network")}


async def show_brokers(call: Call) -> Context:
    topology, _ = await _topology(call)
    found = await call.session.ask_all(verbs.Statistics())
    told = {node: read_statistics(said) for node, said in found.items()}
    archives = {
        node: each.archive
        for node, each in told.items()
        if isinstance(each, BrokerStatistics) and each.archive.directory is not None
    }
    labels = {broker.id: broker.label for broker in topology.brokers}
    rows = [(node, labels.get(node), status_of(each).shown()) for node, each in told.items()]
    return {"list": Listing.asked(call.request, BROKER_COLUMNS).of(rows), "archives": archives}


async def show_broker(call: Call) -> Context:
    topology, _ = await _topology(call)
    name = _broker(topology, call.path["broker"])
    said = await call.session.ask(topology.where(name), verbs.Statistics())
    told = decoded(said, BrokerStatistics)
    cuts, formats = told.query.transformation.links, told.data.formats
    links = []
    for other in topology.neighbours(name):
        link, sent, choice = topology.link(name, other), cuts.get(other, Sent()), formats.get(other)
        links.append(
            {
                "other": other,
                "format": choice.format if choice else link.format,
                "why": choice.why if choice else "as the topology says",
                "latency_ms": link.latency_ms,
                "crossings": told.data.crossings.get(other, 0),
                "cut": sent.cut,
                "saved": sent.bytes_saved,
            }
        )
    node = topology.broker(name)
    charts = call.gateway.history.charts("broker", name)
    status = status_of(told).shown()
    return {"broker": node, "status": status, "links": links, "said": told, "charts": charts}


async def show_link(call: Call) -> Context:
    topology, _ = await _topology(call)
    a, b = (_broker(topology, call.path[end]) for end in ("broker", "other"))
    if b not in topology.neighbours(a):
        raise RequestFailed("unknown-link", f"there is no link {a} - {b}")
    directions: list[Context] = []
    for here, there in ((a, b), (b, a)):
        try:
            routing = await call.session.ask(topology.where(here), verbs.RoutingShow(link=there))
            cut = await call.session.ask(topology.where(here), verbs.TransformShow(link=there))
        except RequestFailed as failed:
            directions.append({"here": here, "there": there, "failed": failed.reason})
            continue
        directions.append({"here": here, "there": there, "routing": routing, "cut": cut})
    return {"a": a, "b": b, "link": topology.link(a, b), "directions": directions}


async def show_sources(call: Call) -> Context:
    sources = await call.session.client.sources()
    return {"list": Listing.asked(call.request, SOURCE_COLUMNS).of(sources)}


async def show_source(call: Call) -> Context:
    source = await call.session.client.source(call.path["source"])
    seen = call.session.operates or source.owner == call.session.principal
    history = call.gateway.history
    return {
        "source": source,
        "charts": history.charts("source", source.id, source.rate) if seen else None,
    }


async def show_profiles(call: Call) -> Context:
    user = call.request.query_params.get("user", call.session.user_name)
    found = Listing.asked(call.request, PROFILE_COLUMNS)
    said = {"user": user, "search": found.search, "sort": found.sort, "texts": True}
    more = {"descending": found.is_descending, "skip": found.skip}
    page = await call.session.client.ask(call.asked(verbs.ProfileList, said | more))
    return {"list": found.filled(page.profiles), "user": user}


async def show_profile(call: Call) -> Context:
    profile = await call.session.client.profile(call.path["profile"])
    history = call.gateway.history
    if (host := (await call.session.client.brokers()).get(profile.host)) is not None:
        history.look_at(profile.id, host)
    charts = history.charts("profile", profile.id)
    return {"profile": profile, "when_full": WHEN_FULL, "charts": charts}


async def show_waiting(call: Call) -> Context:
    """Deliveries of a profile that wait, from the oldest on; they stay."""
    name, user = call.path["profile"], call.session.user
    place, said = (await user.positions(name))[name], call.request.query_params.get("after", "0")
    if not re.fullmatch("[0-9]{1,15}", said):
        raise bad_argument("after", "a position")
    after = max(place.gone, int(said))
    context = {"profile": name, "waiting": place.last - place.gone, "lost": place.lost}
    if after >= place.last:
        return {**context, "deliveries": (), "after": 0}
    page = await user.waiting(name, after, place.last, WAITING_SECONDS)
    after = page.through if page.through < place.last else 0
    return {**context, "deliveries": page.deliveries, "after": after}


async def show_playground(call: Call) -> Context:
    text, profile = EXAMPLE_PROFILE, call.request.query_params.get("profile", "")
    if profile:
        text = (await call.session.client.profile(profile)).text or ""
    sources = await call.session.client.sources()
    return {"text": text, "message": EXAMPLE_MESSAGE, "profile": profile, "sources": sources}


async def show_trace(call: Call) -> Context:
    call.check_operates()
    sources = await call.session.client.sources()
    return {"sources": sources, "message": EXAMPLE_MESSAGE}


async def draw_trace(call: Call) -> Context:
    """A part of a page: the way of the message of a JSON body."""
    await call.read_json()
    source, answers = await traced(call, call.text("source"))
    size = len(call.text("message").encode())
    return {"source": source, "picture": TracePicture.of(answers), "size": size}


async def show_changes(call: Call) -> Context:
    session = call.session
    _, shape = await _topology(call)
    progress = await session.client.plan_progress()
    told = await session.client.statistics(RegistrationStatistics)
    return {
        "shape": shape,
        "progress": progress,
        "auto": await session.client.auto_plan(),
        "drains": told.drains,
        "placement": told.placement,
    }


async def show_dead(call: Call) -> Context:
    found = await letters_found(call, call.session.user_name)
    letters = Listing.asked(call.request, LETTER_COLUMNS).of(found.letters)
    return {"list": letters, "silent": found.silent}


async def show_letter(call: Call) -> Context:
    node = call.path["node"]
    letter = await call.session.ask_node(node, verbs.DeadShow(id=call.path["letter"]))
    data = letter.data[:SHOWN_BYTES].decode("utf-8", "backslashreplace")
    return {"node": node, "letter": letter, "data": data}


async def show_me(call: Call) -> Context:
    return {"list": Listing.asked(call.request, OWN_RULE_COLUMNS).of(call.session.who.rules)}


async def show_access(call: Call) -> Context:
    found = await call.session.client.ask(verbs.AccessList())
    rules = Listing.asked(call.request, RULE_COLUMNS).of(found.rules)
    return {"list": rules, "roles": tuple(ROLES)}


async def show_tokens(call: Call) -> Context:
    found = await call.session.client.ask(verbs.TokenList())
    return {"list": Listing.asked(call.request, TOKEN_COLUMNS).of(found.tokens)}


async def show_audit(call: Call) -> Context:
    """The latest first."""
    entries: list[AuditEntry] = await call.session.client.listed(verbs.AuditList())
    entries.reverse()
    return {"list": Listing.asked(call.request, AUDIT_COLUMNS).of(entries)}


async def show_metadata(call: Call) -> Context:
    providers: list[tuple[SourceInfo, ProviderStatus | UserError]] = []
    for source in await call.session.client.sources():
        if source.base != PROVIDER_BASE:
            continue
        try:
            status = await call.ask_provider(source.id, requests.Status())
            providers.append((source, status))
        except UserError as error:
            providers.append((source, error))
    return {"providers": providers}


async def show_provider(call: Call) -> Context:
    """All of it, or a class, a resource, or a repository that the query names."""
    query, provider = call.request.query_params, call.path["provider"]
    name, repository = query.get("of", ""), query.get("repository", "")
    context: dict[str, Any] = {"provider": provider, "repository": repository}
    if repository:
        asked = requests.Rules(repository=repository, after=query.get("after", ""))
        rules = (await call.ask_provider(provider, asked))[:ROWS]
        if rules:
            asked = requests.Rules(repository=repository, after=rules[-1].id)
            context["more"] = await call.ask_provider(provider, asked)
        return {**context, "name": repository, "rules": rules}
    browse = requests.Browse(name=name, after=query.get("after", ""))
    context |= {"name": name, "seen": await call.ask_provider(provider, browse)}
    if not name:
        context["status"] = await call.ask_provider(provider, requests.Status())
        context["repositories"] = await call.ask_provider(provider, requests.Repositories())
    return context


async def show_queries(call: Call) -> Context:
    """The catalog as the user may use it, queries at work, and the plan of a query.  Operators may
    look at it as another ``user``."""
    files, query, session = call.gateway.options.catalog, call.request.query_params, call.session
    user = query.get("user", session.user_name)
    if user != session.user_name:
        call.check_operates()
    if not files:
        return {"files": ()}
    from onyx.gateway.queries import page_shown  # noqa: PLC0415 - of gateways with a catalog

    sql = query.get("sql", "")
    return await trio.to_thread.run_sync(page_shown, files, session, user, sql)


PAGES: Mapping[str, Page] = {
    "/": ("map.html", show_map),
    "/brokers": ("brokers.html", show_brokers),
    "/brokers/{broker}": ("broker.html", show_broker),
    "/links/{broker}/{other}": ("link.html", show_link),
    "/sources": ("sources.html", show_sources),
    "/sources/{source}": ("source.html", show_source),
    "/metadata": ("metadata.html", show_metadata),
    "/metadata/{provider}": ("provider.html", show_provider),
    "/profiles": ("profiles.html", show_profiles),
    "/profiles/{profile}": ("profile.html", show_profile),
    "/profiles/{profile}/waiting": ("waiting.html", show_waiting),
    "/queries": ("queries.html", show_queries),
    "/playground": ("playground.html", show_playground),
    "/trace": ("trace.html", show_trace),
    "/changes": ("changes.html", show_changes),
    "/dead": ("dead.html", show_dead),
    "/dead/{node}/{letter}": ("letter.html", show_letter),
    "/access": ("access.html", show_access),
    "/tokens": ("tokens.html", show_tokens),
    "/audit": ("audit.html", show_audit),
    "/me": ("me.html", show_me),
}
NAVIGATION = (
    ("/", "Map", Right.OPERATE),
    ("/brokers", "Brokers", Right.OPERATE),
    ("/sources", "Sources", Right.KNOWN),
    ("/profiles", "Profiles", Right.KNOWN),
    ("/metadata", "Metadata", Right.KNOWN),
    ("/queries", "Queries", Right.KNOWN),
    ("/playground", "Playground", Right.KNOWN),
    ("/trace", "Trace", Right.OPERATE),
    ("/changes", "Plans", Right.OPERATE),
    ("/dead", "Dead letters", Right.KNOWN),
    ("/access", "Rights", Right.ADMIN),
    ("/tokens", "Tokens", Right.ADMIN),
    ("/audit", "Audit", Right.ADMIN),
    ("/me", "Who I am", Right.KNOWN),
)
"""Pages of the menu, each with the right that it takes."""


def navigation(call: Call | None) -> list[tuple[str, str]]:
    """The pages that are not refused to the asker; none to nobody."""
    if call is None:
        return []
    who = call.session.who
    has = {Right.KNOWN: True, Right.OPERATE: who.operates, Right.ADMIN: who.administers}
    return [(target, name) for target, name, right in NAVIGATION if has[right]]


async def _topology(call: Call) -> tuple[Topology, Shape]:
    """As the network has it now, and how far a change of it is; RequestFailed for who may not see
    what everybody does."""
    call.check_operates()
    shape = await call.session.client.ask(verbs.TopologyShow())
    return parse_topology(shape.text, "the running network"), shape


def _broker(topology: Topology, name: str) -> str:
    if name not in topology.broker_ids:
        raise RequestFailed("unknown-broker", f"there is no broker {name}")
    return name


# --- what templates write ---------------------------------------------------------------------


def bytes_text(number: float) -> str:
    """12 B, 3.4 kB, 5.6 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            break
        number /= 1000
    return f"{number:.3g} {unit}" if unit != "B" else f"{number:g} B"


def count_text(number: float) -> str:
    return f"{number:,}"


def time_text(second: float) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%S Z")


def said_state(state: str) -> str:
    """Of a process, as people say it."""
    return "up" if state == "here" else state


FOLDER = Path(__file__).parent


def application(gateway: Gateway) -> ASGIApp:
    """All of it, behind its guard."""
    templates = _templates()

    def page(path: str, of: Page) -> Route:
        template, gather = of

        async def endpoint(request: Request) -> Response:
            async def show(call: Call) -> Response:
                if path == "/" and not call.session.operates:
                    return RedirectResponse("/profiles", 303)
                try:
                    context = await gather(call)
                except UserError as error:
                    if error.code == "not-authenticated":
                        raise
                    return _refused(templates, request, error, call)
                return _render(templates, request, template, 200, call=call, **context)

            try:
                return await _answered(gateway, request, show)
            except UserError as error:
                if error.code == "not-authenticated" and gateway.options.is_open:
                    return RedirectResponse("/sign-in", 303)
                return _refused(templates, request, error)

        return Route(path, endpoint)

    async def trace(request: Request) -> Response:
        async def show(call: Call) -> Response:
            context = await draw_trace(call)
            return _render(templates, request, "trace_picture.html", 200, **context)

        return await _answered(gateway, request, show)

    async def show_sign_in(request: Request) -> Response:
        return _render(templates, request, "sign_in.html", 200)

    routes = [
        *(_api_route(gateway, each) for each in OPERATIONS),
        *(page(path, of) for path, of in PAGES.items()),
        Route("/parts/trace", trace, methods=["POST"]),
        Route("/sign-in", show_sign_in),
        Mount("/static", StaticFiles(directory=FOLDER / "static")),
    ]  # fmt: skip

    async def unrouted(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        code = "not-found" if error.status_code == 404 else "method-not-allowed"
        failed = RequestFailed(code, error.detail)
        is_asked = request.url.path.startswith("/v1/")
        return problem(failed) if is_asked else _refused(templates, request, failed)

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, UserError)
        return problem(error)

    async def left(request: Request, error: Exception) -> Response:
        return Response(status_code=400)  # that nobody hears

    handlers = {HTTPException: unrouted, UserError: refused, ClientDisconnect: left}
    return Guard(
        Starlette(routes=routes, exception_handlers=handlers), gateway.options, gateway.traffic
    )


def _api_route(gateway: Gateway, operation: Operation) -> Route:
    async def endpoint(request: Request) -> Response:
        return await _answered(gateway, request, operation.answered)

    method, path = operation.route.split()
    return Route(path, endpoint, methods=[method])


async def _answered(
    gateway: Gateway, request: Request, answer: Callable[[Call], Awaitable[Response]]
) -> Response:
    """In the session of whoever asks; UserError for what is refused."""
    try:
        async with gateway.session_of(request) as session:
            return await answer(Call(gateway, request, session))
    except (UserError, BaseExceptionGroup) as error:
        found = leaves(error)
        known = [each for each in found if isinstance(each, UserError)]
        if len(known) < len(found):
            raise
        raise known[0] from None


def _refused(
    templates: jinja2.Environment, request: Request, error: UserError, call: Call | None = None
) -> Response:
    _, status = ending(error.code)
    said = {"refused": error, "call": call}
    return _render(templates, request, "refused.html", status, status=status, **said)


def _templates() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(FOLDER / "templates")
    templates = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters.update(bytes=bytes_text, count=count_text, time=time_text)
    templates.filters.update(in_short=lambda text: ShortNames().whole(text))
    templates.filters.update(state=said_state)
    templates.globals["navigation"] = navigation
    return templates


def _render(
    templates: jinja2.Environment,
    request: Request,
    template: str,
    status: int,
    /,
    **context: object,
) -> Response:
    text = templates.get_template(template).render(path=request.url.path, **context)
    return HTMLResponse(text, status)


# -------------------------------------------------------------------------------------------------
# The process.


WATCH_SECONDS = 5.0
ANSWER_SECONDS = 3.0  # for which a process may be silent that is asked

log = logging.getLogger("onyx.gateway")


async def run_gateway(
    registration: str,
    options: GatewayOptions,
    listener: socket.socket,
    ready: Callable[[], None] = lambda: None,
    lifeline: int | None = None,
    read_logs: Callable[[], LogOptions | None] = LogOptions,
    admin: Address | None = None,
    admin_listener: socket.socket | None = None,
) -> None:
    """Until a signal, or the end of the lifeline, stops it; ``listener`` listens.  ``admin``: where
    it says how it is, if anywhere; ``admin_listener`` is bound there, where that is done.

    At SIGHUP it logs as ``read_logs`` says, which may raise TopologyError, or stops where that says
    None.  NetworkUnreachable, NotAuthenticated before it is ``ready``."""
    allow_all_files()
    trials = Trials()
    try:
        async with AsyncExitStack() as stack:
            stack.enter_context(impatient(ANSWER_SECONDS))
            nursery = await stack.enter_async_context(background_tasks(trio.open_nursery()))
            heed(nursery, read_logs, lifeline)
            sessions = Sessions(registration, options.sessions_max)
            feed = MapFeed(registration)
            await nursery.start(sessions.run)
            async with sessions.session(""):
                pass  # the network is there, and lets this gateway in
            await nursery.start(feed.run)
            traffic = Traffic()
            if admin is not None:
                _open_admin(nursery, admin, traffic, sessions, admin_listener)
                nursery.start_soon(_watch, registration, options.tls_certificate, traffic)
            nursery.start_soon(keep_shown_renewed, registration)
            log.info("starts", extra=who())
            history = History()
            nursery.start_soon(history.watch, registration)
            app = application(Gateway(options, sessions, trials, feed, traffic, history))
            await nursery.start(serve, app, options, listener)
            ready()
            await trio.sleep_forever()
    finally:
        trials.close()


def _open_admin(
    nursery: trio.Nursery,
    wanted: Address,
    traffic: Traffic,
    sessions: Sessions,
    listener: socket.socket | None,
) -> None:
    # What a gateway without an admin address need not load.
    from onyx.gateway.gateway_metrics import GatewayMetrics  # noqa: PLC0415
    from onyx.telemetry.admin_server import open_admin  # noqa: PLC0415

    metrics = GatewayMetrics(traffic, lambda: sessions.count)
    at = open_admin(nursery, wanted, metrics, lambda: traffic.hindrance, listener)
    log.info("metrics at http://%s/metrics", at)


def certificate_ends(registration: str, https: Path | None) -> dict[str, float]:
    """When the certificates of a gateway end, in seconds of the epoch."""
    shown = credentials_for(*addresses_of(registration)[0])
    found = {} if shown is None else shown.ends()
    if https is not None:
        # It takes long to load.
        from cryptography.x509 import load_pem_x509_certificate  # noqa: PLC0415

        until = load_pem_x509_certificate(https.read_bytes()).not_valid_after_utc
        found["https"] = until.timestamp()
    return found


async def _watch(registration: str, https: Path | None, traffic: Traffic) -> None:
    """Whether the network answers, and when certificates end, of which the log warns once a day."""
    told_on = -1.0
    async with RegistrationClient(registration) as client:
        while True:
            with trio.move_on_after(WATCH_SECONDS) as patience:
                try:
                    await client.ask(verbs.Whoami())
                    traffic.hindrance = ""
                    traffic.certificates = certificate_ends(registration, https)
                except UserError as error:
                    traffic.hindrance = str(error)
            if patience.cancelled_caught:
                traffic.hindrance = "the registration service does not answer"
            if (day := time.time() // validity.DAY) != told_on:
                told_on = day
                said = validity.ending(traffic.certificates.get("https", inf), time.time())
                if said:
                    log.warning("the certificate that browsers see %s", said)
            await trio.sleep(WATCH_SECONDS)


def _logs(file: Path | None) -> LogOptions:
    return LogOptions() if file is None else load_topology(file).log


def admin_address(file: Path | None, listen: Address) -> Address | None:
    """Of the gateway that listens there, if the topology file says that there are such."""
    options = None if file is None else load_topology(file).admin
    return None if options is None else options.address(listen)


def main(argv: Sequence[str] | None = None) -> int:
    """The child that ``onyx up`` starts."""
    parser = argparse.ArgumentParser(prog="python -m onyx.gateway.gateway_process")
    parser.add_argument("registration")
    parser.add_argument("host")
    parser.add_argument("--certificate", type=Path)
    parser.add_argument("--key", type=Path)
    parser.add_argument("--name", action="append", default=[])
    parser.add_argument("--origin", action="append", default=[])
    parser.add_argument("--listen-fds", type=int, nargs="+", required=True)
    parser.add_argument("--ready-fd", type=int, required=True)
    parser.add_argument("--lifeline-fd", type=int, required=True)
    parser.add_argument("--credentials", type=Path)
    parser.add_argument("--topology-file", type=Path)
    said = parser.parse_args(argv)
    read_logs = partial(_logs, said.topology_file)
    listener, *admin_listeners = (socket.socket(fileno=fd) for fd in said.listen_fds)
    listen = Address(said.host, listener.getsockname()[1])
    names, origins = tuple(said.name), tuple(said.origin)
    options = GatewayOptions(listen, said.certificate, said.key, names, origins)

    try:
        configure_logging("gateway", read_logs())
        admin = admin_address(said.topology_file, listen)
        with use_credentials(said.credentials):
            trio.run(
                run_gateway,
                *(said.registration, options, listener, partial(tell_ready, said.ready_fd)),
                *(said.lifeline_fd, read_logs, admin, *admin_listeners),
            )
    except (UserError, TopologyError) as error:
        print(f"onyx: gateway: {error}", file=sys.stderr)
        return exit_code_of(error)
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
