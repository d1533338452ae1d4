"""Call: one request to a gateway, with what it takes to answer it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from onyx.errors import RequestFailed
from onyx.gateway.history import History
from onyx.gateway.map_feed import MapFeed
from onyx.gateway.options import GatewayOptions
from onyx.gateway.refusals import bad_argument
from onyx.gateway.sessions import Session, Sessions
from onyx.gateway.traffic import Traffic
from onyx.gateway.trials import Trials
from onyx.metadata.requests import Question, asked, read_answer
from overlay.link.request_server import RequestRefused, read
from overlay.verbs import Asked

COOKIE = "onyx-token"
JSON = "application/json"
A = TypeVar("A", bound=Asked)
Q = TypeVar("Q")


@dataclass(slots=True)
class Gateway:
    """What all requests share."""

    options: GatewayOptions
    sessions: Sessions
    trials: Trials
    feed: MapFeed
    traffic: Traffic
    history: History = field(default_factory=History)

    @asynccontextmanager
    async def session_of(self, request: Request) -> AsyncIterator[Session]:
        """Of whoever asks; RequestFailed "not-authenticated" where they have to show a token."""
        async with self.sessions.session(token_of(request, self.options)) as session:
            yield session


def token_of(request: Request, options: GatewayOptions) -> str:
    """That a request shows, or ""; RequestFailed "not-authenticated"."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        token = request.cookies.get(COOKIE, "")
    if not token and options.is_open:
        raise RequestFailed("not-authenticated", "show a token: Authorization: Bearer ...")
    if token and not (20 <= len(token) <= 4096 and token.isascii() and token.isprintable()):
        raise RequestFailed("not-authenticated", "that is no token")
    return token


@dataclass(slots=True)
class Call:
    """``said`` are the fields of a JSON body, once it is read."""

    gateway: Gateway
    request: Request
    session: Session
    said: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Mapping[str, str]:
        return self.request.path_params

    async def read_json(self) -> None:
        self.said = await json_of(self.request)

    def text(self, name: str, default: str | None = None) -> str:
        """Of the body; RequestFailed where it is no text, or missing without a ``default``."""
        value = self.said.get(name, default)
        if not isinstance(value, str):
            raise bad_argument(name, "a text")
        return value

    def message(self, default: str | None = None) -> tuple[bytes, str]:
        """The message in the body, with its media type; it is a text, and so in no encoding that
        its own declaration names."""
        kind = self.text("media_type", default).partition(";")[0]
        return self.text("message").encode(), f"{kind};charset=utf-8"

    def flag(self, name: str, default: bool) -> bool:
        value = self.said.get(name, default)
        if not isinstance(value, bool):
            raise bad_argument(name, "true or false")
        return value

    def asked(self, kind: type[A], said: Mapping[str, object], *, strict: bool = True) -> A:
        """A request with what is ``said``; RequestFailed where that is not as its record has it."""
        try:
            return read(kind, {**said, **self.path}, strict=strict)
        except RequestRefused as refusal:
            raise RequestFailed(refusal.code, str(refusal), refusal.fault) from None

    async def ask_provider(self, provider: str, question: Question[Q]) -> Q:
        """A provider of metadata, as whoever asks here."""
        body = await self.session.ask_source(provider, asked(question), question.writes)
        return read_answer(question, body)

    def check_operates(self) -> None:
        """RequestFailed unless they may see what everybody does."""
        if not self.session.operates:
            who = self.session.principal
            raise RequestFailed("not-authorised", f"{who} may not operate this network")


def media_type_of(request: Request) -> str:
    """Of its body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def json_of(request: Request) -> Mapping[str, Any]:
    """The fields of its body; RequestFailed for another."""
    body = await request.body()
    if not body or media_type_of(request) != JSON:
        return {}
    try:
        said = msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:
        raise RequestFailed("bad-json", f"the body is no JSON: {error}") from None
    if not isinstance(said, dict):
        raise RequestFailed("bad-json", "the body: expected a JSON object")
    return said
