"""The gateway's door: crowds that say nothing, send no body or read no answer keep nobody out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import pytest
import trio
import trio.testing
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from onyx.errors import UserError
from onyx.gateway.gateway_process import Guard
from onyx.gateway.http_door import BODY_SECONDS, serve
from onyx.gateway.options import GatewayOptions
from onyx.gateway.refusals import problem
from onyx.gateway.traffic import Traffic
from onyx.listening import bind
from overlay.nodes import Address

WEBSOCKET = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
ROOM = 16
CROWD = 3 * ROOM
OPTIONS = GatewayOptions(
    Address("127.0.0.1", 0), connections_max=ROOM, requests_max=4, streams_max=4
)
HEAD = b"%s %s HTTP/1.1\r\nHost: localhost\r\n"
GET = HEAD % (b"GET", b"/echo") + b"\r\n"
NO_BODY = HEAD % (b"POST", b"/echo") + b"Content-Type: text/xml\r\nContent-Length: 9\r\n\r\nabc"
LARGE = HEAD % (b"GET", b"/large") + b"\r\n"

SAYS = ["nothing", "half a head", "half a body", "takes no answer"]


class Here:
    """A gateway's door in front of an application of this test."""

    def __init__(self) -> None:
        self.traffic = Traffic()
        self.goes_on = trio.Event()
        self.port = 0

    async def echo(self, request: Request) -> Response:
        return PlainTextResponse(b"had " + await request.body())

    async def wait(self, request: Request) -> Response:
        await self.goes_on.wait()
        return PlainTextResponse("waited")

    async def large(self, request: Request) -> Response:
        return Response(bytes(20_000_000))

    async def connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", self.port)

    async def says(self, said: bytes) -> bytes:
        """The answer to bytes on a connection of their own, up to the end of its head and a little
        body."""
        async with await self.connect() as stream:
            await stream.send_all(said)
            return await heard(stream)

    async def at_work(self, number: int, body_bytes: int = 0) -> None:
        while (self.traffic.under_way, self.traffic.body_bytes) != (number, body_bytes):
            await trio.lowlevel.checkpoint()


async def heard(stream: trio.SocketStream) -> bytes:
    found = b""
    while b"\r\n\r\n" not in found and (data := await stream.receive_some()):
        found += data
    return found


async def refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, UserError)
    return problem(error)


@asynccontextmanager
async def open_door(options: GatewayOptions = OPTIONS) -> AsyncIterator[Here]:
    here = Here()
    routes = [
        Route("/echo", here.echo, methods=["GET", "POST"]),
        Route("/wait", here.wait),
        Route("/large", here.large),
    ]
    app = Starlette(routes=routes, exception_handlers={UserError: refused})
    guarded = Guard(app, options, here.traffic)
    listener = bind(options.listen)
    here.port = listener.getsockname()[1]
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(serve, guarded, options, listener))
        yield here
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("said", [b"", b"GET /ec", NO_BODY, LARGE], ids=SAYS)
async def test_a_crowd_keeps_nobody_out(said: bytes) -> None:
    async with open_door() as here, AsyncExitStack() as crowd:
        for _ in range(CROWD):
            stream = await crowd.enter_async_context(await here.connect())
            await stream.send_all(said)
            assert (await here.says(GET)).startswith(b"HTTP/1.1 200")


async def test_whoever_is_worked_for_stays() -> None:
    async with open_door() as here, AsyncExitStack() as crowd, await here.connect() as stream:
        await stream.send_all(HEAD % (b"GET", b"/wait") + b"\r\n")
        await here.at_work(1)
        for _ in range(CROWD):
            await crowd.enter_async_context(await here.connect())
        assert (await here.says(GET)).startswith(b"HTTP/1.1 200")
        here.goes_on.set()
        assert b"200" in await heard(stream)


async def test_who_has_owed_longest_goes() -> None:
    async with open_door() as here, AsyncExitStack() as crowd:
        streams = [await crowd.enter_async_context(await here.connect()) for _ in range(ROOM)]
        places = ROOM - OPTIONS.requests_max - OPTIONS.streams_max
        for stream in streams[:-places]:
            assert await stream.receive_some() == b""
        for stream in streams[-places:]:
            await stream.send_all(GET)
            assert b"200" in await heard(stream)


async def test_bodies_that_never_come_are_no_requests_under_way() -> None:
    async with open_door() as here, AsyncExitStack() as crowd:
        for _ in range(8):
            stream = await crowd.enter_async_context(await here.connect())
            await stream.send_all(NO_BODY)
        await here.at_work(0, 8 * 3)
        assert (await here.says(GET)).startswith(b"HTTP/1.1 200")


async def test_a_body_that_takes_too_long_is_refused(mock_clock: trio.testing.MockClock) -> None:
    async with open_door() as here, await here.connect() as stream:
        await stream.send_all(NO_BODY)
        await here.at_work(0, 3)
        mock_clock.jump(BODY_SECONDS + 1)
        assert (await heard(stream)).startswith(b"HTTP/1.1 408")
        while await stream.receive_some():
            pass
        await here.at_work(0)


async def test_all_bodies_together_have_a_bound() -> None:
    options = GatewayOptions(Address("127.0.0.1", 0), bodies_bytes_max=150_000)
    head = HEAD % (b"POST", b"/echo") + b"Content-Type: text/xml\r\nContent-Length: 100001\r\n\r\n"
    async with open_door(options) as here, await here.connect() as first:
        await first.send_all(head + bytes(100_000))
        await here.at_work(0, 100_000)
        assert (await here.says(head + bytes(100_001))).startswith(b"HTTP/1.1 503")
        small = head.replace(b"100001", b"30000")
        assert (await here.says(small + bytes(30_000))).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", b"400"),
        (
            b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \r\n\r\n",
            b"200",
        ),
        (
            WEBSOCKET,
            b"403",
        ),
    ],
    ids=["two lengths", "h2c", "websocket"],
)
async def test_nothing_but_plain_requests(lines: bytes, status: bytes) -> None:
    async with open_door() as here:
        answer = await here.says(HEAD % (b"GET", b"/echo") + lines)
        assert answer.startswith(b"HTTP/1.1 " + status)
        assert (b"connection: close" in answer.lower()) == (status != b"200")
