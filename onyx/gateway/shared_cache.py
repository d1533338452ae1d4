"""A repository's cache over HTTP, for people of a LAN, who need no broker to ask it.

::

    GET /query?text=…, POST /query {"text": …}      rows, complete, rules, revision, age
    GET /explain?text=…, POST /explain              sql
    GET /resource?uri=…                             all that is said of it, in N-Triples
    GET /status                                     what the cache has

It lets in as a gateway does: on loopback everybody of this machine, elsewhere over TLS holders of a
token of the network that may see the provider.  The network is asked about a token once, and then
again in the background, so that a cache goes on answering those it knows while the network is away.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any

import trio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from formats.errors import Refusal
from onyx.background import background_tasks
from onyx.errors import RequestFailed, UserError
from onyx.gateway.call import json_of, token_of
from onyx.gateway.gateway_process import Guard
from onyx.gateway.http_door import serve
from onyx.gateway.options import GatewayOptions
from onyx.gateway.refusals import bad_argument, problem
from onyx.gateway.sessions import Sessions
from onyx.gateway.traffic import Traffic
from onyx.metadata import MetadataRepository

QUERY_SECONDS = 10.0  # for which one asker may keep all others, and the provider, waiting
LET_OUT = {"not-authenticated", "not-authorised", "unknown-source"}
AGAIN_SECONDS = 5.0  # from when the network is asked again about a token that it knew


async def share(
    repository: MetadataRepository,
    registration: str,
    options: GatewayOptions,
    listener: socket.socket,
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Until cancelled; ``listener`` listens, and the repository is open."""
    async with background_tasks(trio.open_nursery()) as nursery:
        sessions = Sessions(registration, options.sessions_max)
        await nursery.start(sessions.run)
        shared = SharedCache(repository, sessions, options, nursery)
        await nursery.start(serve, shared.application(), options, listener)
        ready()
        await trio.sleep_forever()


class SharedCache:
    """Of an open ``repository``; ``nursery``: in which the network is asked again."""

    def __init__(
        self,
        repository: MetadataRepository,
        sessions: Sessions,
        options: GatewayOptions,
        nursery: trio.Nursery,
    ) -> None:
        self._repository, self._sessions = repository, sessions
        self._options, self._nursery = options, nursery
        self._let_in: dict[bytes, float] = {}  # by digest of a token, when it was asked about

    def application(self) -> Guard:
        routes = [
            Route("/query", self._answer(self._query), methods=["GET", "POST"]),
            Route("/explain", self._answer(self._explain), methods=["GET", "POST"]),
            Route("/resource", self._answer(self._resource)),
            Route("/status", self._answer(self._status)),
        ]
        return Guard(Starlette(routes=routes), self._options, Traffic())

    def _answer(
        self, give: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                if token := token_of(request, self._options):
                    await self.check(token)
                return await give(request)
            except Refusal as refusal:
                return problem(RequestFailed(*refusal.said(), refusal.fault))
            except UserError as error:
                return problem(error)

        return endpoint

    # --- who may ask ----------------------------------------------------------------------

    async def check(self, token: str) -> None:
        """UserError where the holder may not ask."""
        key, now = sha256(token.encode()).digest(), trio.current_time()
        if key not in self._let_in:
            await self._ask_network(key, token)
        elif now > self._let_in[key] + AGAIN_SECONDS:
            self._let_in[key] = now
            self._nursery.start_soon(self._ask_again, key, token)

    async def _ask_network(self, key: bytes, token: str) -> None:
        async with self._sessions.session(token) as session:
            await session.client.source(self._repository.provider)
        self._let_in[key] = trio.current_time()

    async def _ask_again(self, key: bytes, token: str) -> None:
        try:
            await self._ask_network(key, token)
        except UserError as error:
            if error.code in LET_OUT:
                self._let_in.pop(key, None)

    # --- what is asked --------------------------------------------------------------------

    async def _query(self, request: Request) -> Response:
        answer = await self._repository.query(await _argument(request, "text"), QUERY_SECONDS)
        age = max(0.0, time.time() - answer.time) if answer.time else None
        said = answer._asdict()
        del said["time"]
        return JSONResponse({**said, "age": age})

    async def _explain(self, request: Request) -> Response:
        sql = await self._repository.explain(await _argument(request, "text"))
        return JSONResponse({"sql": sql})

    async def _resource(self, request: Request) -> Response:
        uri = await _argument(request, "uri")
        if not (said := await self._repository.resource(uri)):
            raise RequestFailed("not-found", f"nothing is said of {uri} here")
        return Response(said, media_type="application/n-triples")

    async def _status(self, _: Request) -> Response:
        repository = self._repository
        age = repository.age()
        return JSONResponse(
            {
                "repository": repository.name,
                "revision": await repository.revision(),
                "age": None if age == float("inf") else age,
                "resources": await repository.count(),
                "rules": [each._asdict() for each in await repository.rules()],
            }
        )


async def _argument(request: Request, name: str) -> str:
    """Of the query, or of a body in JSON."""
    value: Any = request.query_params.get(name) or (await json_of(request)).get(name)
    if not isinstance(value, str) or not value:
        raise bad_argument(name, "a text")
    return value
