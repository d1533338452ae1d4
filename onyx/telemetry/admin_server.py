"""AdminServer: ``/metrics``, ``/livez`` and ``/readyz`` of a process, over HTTP.

It answers between two turns of the broker, from what is there: nobody else waits for who asks, and
who does not read their answer is let go.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus

import h11
import trio

from onyx.listening import BACKLOG, bind, bound_address
from onyx.telemetry.metrics import ProcessMetrics
from overlay.nodes import Address

CONNECTIONS_MAX = 16
REQUEST_SECONDS = 10.0  # from a connection's beginning, or its last answer, to the next
RECEIVE_BYTES = 8 * 1024

Answer = tuple[HTTPStatus, str, bytes]  # with its media type

_BOTH_DONE = {h11.SERVER: h11.DONE, h11.CLIENT: h11.DONE}
TEXT = "text/plain; charset=utf-8"
PATHS = "/metrics, /livez, /readyz"


def open_admin(
    nursery: trio.Nursery,
    wanted: Address,
    metrics: ProcessMetrics,
    hindrance: Callable[[], str],
    listener: socket.socket | None = None,
) -> Address:
    """Has an AdminServer answer there until the nursery is cancelled; where that is.  ``listener``
    is bound there already.  TopologyError when the address cannot be had."""
    listener = listener or bind(wanted, key="admin")
    listener.listen(BACKLOG)
    opened = trio.SocketListener(trio.socket.from_stdlib_socket(listener))
    nursery.start_soon(AdminServer(metrics, hindrance).run, opened)
    return Address(*bound_address(listener, wanted))


class AdminServer:
    """``run`` until cancelled."""

    def __init__(self, metrics: ProcessMetrics, hindrance: Callable[[], str]) -> None:
        """``hindrance``: why the process does not take part; "" when it does."""
        self._metrics = metrics
        self._hindrance = hindrance

    async def run(self, listener: trio.SocketListener) -> None:
        """Serve all who come, CONNECTIONS_MAX at a time; the listener is closed at the end."""
        room = trio.CapacityLimiter(CONNECTIONS_MAX)
        async with trio.open_nursery() as nursery:
            serve = partial(self.serve, room)
            await trio.serve_listeners(serve, [listener], handler_nursery=nursery)

    def answer(self, method: str, path: str, accept: str = "") -> Answer:
        """To one request."""
        if method not in ("GET", "HEAD"):
            return HTTPStatus.METHOD_NOT_ALLOWED, TEXT, b"GET and HEAD are served here\n"
        if path == "/livez":
            return HTTPStatus.OK, TEXT, b"ok\n"
        if path == "/readyz":
            why = self._hindrance()
            if why:
                return HTTPStatus.SERVICE_UNAVAILABLE, TEXT, f"not ready: {why}\n".encode()
            return HTTPStatus.OK, TEXT, b"ok\n"
        if path == "/metrics":
            body, media_type = self._metrics.text(accept)
            return HTTPStatus.OK, media_type, body
        shown = json.dumps(path[:200])
        return HTTPStatus.NOT_FOUND, TEXT, f"there is no {shown} here, but {PATHS}\n".encode()

    async def serve(self, room: trio.CapacityLimiter, stream: trio.abc.Stream) -> None:
        """One connection, if there is ``room`` for it, until it is closed."""
        async with stream:
            with suppress(trio.WouldBlock, trio.BrokenResourceError):  # full, or they have gone
                room.acquire_on_behalf_of_nowait(stream)
                try:
                    await self._converse(stream)
                finally:
                    room.release_on_behalf_of(stream)

    async def _converse(self, stream: trio.abc.Stream) -> None:
        connection = h11.Connection(h11.SERVER)
        while True:
            with trio.move_on_after(REQUEST_SECONDS) as patience:
                try:
                    request = await _request(connection, stream)
                except h11.RemoteProtocolError as error:
                    status = HTTPStatus(error.error_status_hint)
                    answer = (status, TEXT, f"{error}\n".encode())
                    await _send(connection, stream, answer, is_last=True)
                    return
                if request is None:
                    return
                target = request.target.decode("ascii").partition("?")[0]
                accept = b",".join(v for k, v in request.headers if k == b"accept")
                method = request.method.decode("ascii")
                answer = self.answer(method, target, accept.decode("latin-1"))
                await _send(connection, stream, answer, has_body=method != "HEAD")
            if patience.cancelled_caught or connection.states != _BOTH_DONE:
                return
            connection.start_next_cycle()


async def _request(connection: h11.Connection, stream: trio.abc.Stream) -> h11.Request | None:
    """The whole of the next one, whose body nobody reads; None: there is none."""
    request = None
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(bytes(await stream.receive_some(RECEIVE_BYTES)))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.EndOfMessage):
            return request
        elif isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
            return None


async def _send(
    connection: h11.Connection,
    stream: trio.abc.Stream,
    answer: Answer,
    *,
    has_body: bool = True,
    is_last: bool = False,
) -> None:
    status, media_type, body = answer
    headers = [
        ("content-type", media_type),
        ("content-length", str(len(body))),
        *([("connection", "close")] if is_last else []),
    ]
    reason = status.phrase.encode()
    data = connection.send(h11.Response(status_code=status, headers=headers, reason=reason))
    if has_body:
        data = (data or b"") + (connection.send(h11.Data(data=body)) or b"")
    data = (data or b"") + (connection.send(h11.EndOfMessage()) or b"")
    await stream.send_all(data)
