"""The admin address of a process over HTTP: what is answered to whom."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trio.testing

from onyx.telemetry.admin_server import CONNECTIONS_MAX, REQUEST_SECONDS, AdminServer
from onyx.telemetry.metrics import Metrics
from overlay.link.vitals import Vitals

Connect = Callable[[], trio.abc.Stream]


@asynccontextmanager
async def served(vitals: Vitals) -> AsyncIterator[Connect]:
    """A function that connects to an admin server over memory."""
    server = AdminServer(Metrics("B1", vitals), lambda: vitals.hindrance)
    room = trio.CapacityLimiter(CONNECTIONS_MAX)
    async with trio.open_nursery() as nursery:

        def connect() -> trio.abc.Stream:
            ours, theirs = trio.testing.memory_stream_pair()
            nursery.start_soon(partial(server.serve, room), theirs)
            return ours

        yield connect
        nursery.cancel_scope.cancel()


async def said(stream: trio.abc.Stream, request: str) -> str:
    """What comes back, up to the end of its body."""
    await stream.send_all(request.replace("\n", "\r\n").encode())
    answer = b""
    while True:
        answer += await stream.receive_some()
        head, end, body = answer.partition(b"\r\n\r\n")
        length = head.partition(b"content-length: ")[2].split(b"\r\n")[0]
        if end and (request.startswith("HEAD") or len(body) >= int(length)):
            return answer.decode()


def get(path: str, method: str = "GET") -> str:
    return f"{method} {path} HTTP/1.1\nHost: b1\n\n"


async def test_a_process_is_alive_before_it_is_ready() -> None:
    vitals = Vitals()
    vitals.hindrance = "3 of 7 rows are restored"
    async with served(vitals) as connect:
        stream = connect()
        assert (await said(stream, get("/livez"))).startswith("HTTP/1.1 200 OK")
        answer = await said(stream, get("/readyz"))
        assert answer.startswith("HTTP/1.1 503 ")
        assert "not ready: 3 of 7 rows are restored" in answer
        vitals.hindrance = ""
        assert (await said(stream, get("/readyz?verbose"))).startswith("HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    ("request_text", "status", "says"),
    [
        (get("/"), "404 Not Found", 'there is no "/" here, but /metrics, /livez, /readyz'),
        (get("/livez", "POST"), "405 Method Not Allowed", "GET and HEAD"),
        ("nonsense\n\n", "400 Bad Request", "illegal request line"),
        (get("/" + "x" * 70_000), "431 ", ""),
    ],
)
async def test_what_is_not_there_is_said(request_text: str, status: str, says: str) -> None:
    async with served(Vitals()) as connect:
        answer = await said(connect(), request_text)
        assert answer.startswith(f"HTTP/1.1 {status}")
        assert says in answer


async def test_head_is_get_without_what_is_there() -> None:
    async with served(Vitals()) as connect:
        stream = connect()
        head = await said(stream, get("/metrics", "HEAD"))
        assert head.endswith("\r\n\r\n")
        assert (await said(stream, get("/livez"))).endswith("ok\n")


async def test_who_asks_nothing_is_let_go(autojump_clock: trio.testing.MockClock) -> None:
    async with served(Vitals()) as connect:
        began = trio.current_time()
        assert await connect().receive_some() == b""
        assert trio.current_time() - began == pytest.approx(REQUEST_SECONDS)


async def test_those_beyond_the_most_are_let_go_at_once() -> None:
    async with served(Vitals()) as connect:
        streams = [connect() for _ in range(CONNECTIONS_MAX)]
        for stream in streams:
            assert "200 OK" in await said(stream, get("/livez"))
        assert await connect().receive_some() == b""
        await streams[0].aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert "200 OK" in await said(connect(), get("/livez"))
