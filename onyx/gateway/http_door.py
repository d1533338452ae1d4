"""The gateway's door: HTTP by Hypercorn's Trio worker, for clients who owe it nothing for long.

A connection is the client's turn while the client owes something: a handshake, a request, the rest
of a body, room for an answer.  There is room for `connections_max` less all requests and streams of
such connections, and a newcomer takes the place of the one whose client has owed longest, as at the
doors of nodes (`overlay.link.door`).  So a crowd that connects and says nothing, sends bodies that
never end, or reads no answer keeps nobody out.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework, ConnectionState
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from onyx.errors import RequestFailed
from onyx.gateway.options import GatewayOptions
from onyx.gateway.traffic import Traffic
from overlay.link.door import Door, Doorkeeper, DoorLimits, counted_address

STALLED_MS = 60_000  # until a connection is given up whose other end takes nothing
KEEP_ALIVE_SECONDS = 20
BODY_SECONDS, BODY_BYTES_PER_SECOND = 30, 16 * 1024  # that a body may take, and has to bring
SMALL_BYTES = 64 * 1024  # of a body for which there is room always
H2_STREAMS_MAX = 32  # requests of a connection at a time
FAREWELL_SECONDS = 1.0

_Connection = trio.SSLStream[trio.SocketStream] | trio.SocketStream


class Turn:
    """Whose turn it is on one connection: the gateway's while a request of it is at work."""

    def __init__(self, door: HttpDoor, number: int) -> None:
        self._door, self._number = door, number
        self._at_work = 0

    def begin(self) -> None:
        """A request is at work."""
        self._at_work += 1
        self._door.keeper.recognise(self._number)

    def end(self) -> None:
        self._at_work -= 1
        if not self._at_work:
            self._door.owes(self._number)


class HttpRequest:
    """A request of a connection, from its head to its answer.  While it waits for more of its body,
    or for room for its answer, it is the client's turn, and the request not under way."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, options: GatewayOptions, traffic: Traffic
    ) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._options, self._traffic = options, traffic
        self._turn: Turn = scope["state"]["turn"]
        self._bytes, self._began = 0, trio.current_time()
        self._is_whole = False
        self._is_doubtful = False  # where it ends, and another begins

    @contextmanager
    def at_work(self) -> Iterator[None]:
        self._begin()
        try:
            yield
        finally:
            self._end()
            self._traffic.body_bytes -= self._bytes

    def check(self) -> None:
        """RequestFailed for one that cannot be taken, by its head and by how much is to do."""
        headers = Headers(scope=self._scope)
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers and "content-length" in headers:
            self._is_doubtful = True
            said = "Content-Length and Transfer-Encoding; expected one of them"
            raise RequestFailed("bad-request", said)
        if not length.isdigit() or int(length) > self._options.body_bytes_max:
            raise self._too_long()
        self._check_room()

    async def receive(self) -> Message:
        """RequestFailed for a body that is too long, takes too long, or for which there is no
        room."""
        if self._is_whole:  # the client can say only that it leaves
            return await self._receive()
        until = self._began + BODY_SECONDS + self._bytes / BODY_BYTES_PER_SECOND
        self._end()
        try:
            with trio.CancelScope(deadline=until) as patience:
                message = await self._receive()
        finally:
            self._begin()
        if patience.cancelled_caught:
            said = f"{self._bytes:,} bytes of the body in {until - self._began:.0f} seconds"
            expected = f"expected {BODY_BYTES_PER_SECOND:,} a second"
            raise RequestFailed("too-slow", f"{said}; {expected}")
        came = len(message.get("body", b""))
        self._bytes += came
        self._traffic.body_bytes += came
        if self._bytes > self._options.body_bytes_max:
            raise self._too_long()
        self._is_whole = not message.get("more_body", False)
        self._check_room()
        return message

    async def send(self, message: Message) -> None:
        if self._is_doubtful and message["type"] == "http.response.start":
            MutableHeaders(scope=message)["Connection"] = "close"
        self._end()
        try:
            await self._send(message)
        finally:
            self._begin()

    def _check_room(self) -> None:
        options, traffic = self._options, self._traffic
        if traffic.under_way > options.requests_max + options.streams_max:
            raise RequestFailed("busy", f"{options.requests_max} requests are under way")
        if self._bytes > SMALL_BYTES and traffic.body_bytes > options.bodies_bytes_max:
            raise RequestFailed("busy", f"bodies of {traffic.body_bytes:,} bytes are here already")

    def _too_long(self) -> RequestFailed:
        return RequestFailed("too-long", f"more than {self._options.body_bytes_max:,} bytes")

    def _begin(self) -> None:
        self._traffic.under_way += 1
        self._turn.begin()

    def _end(self) -> None:
        self._turn.end()
        self._traffic.under_way -= 1


class HttpDoor:
    """The connections that are open."""

    def __init__(self, options: GatewayOptions) -> None:
        busy_max = options.requests_max + options.streams_max
        limits = DoorLimits(
            options.connections_max,
            max(options.connections_max - busy_max, 1),
            options.address_max,
        )
        self.keeper = Doorkeeper(Door((), frozenset({"client"}), limits))
        self._open: dict[int, trio.SocketStream] = {}
        self._next = 0

    def enter(self, raw: trio.SocketStream) -> int | None:
        """Its number; None where it may not come in."""
        address = counted_address(raw)
        if self.keeper.refusal(address) is not None:
            return None
        self._next += 1
        self._open[self._next] = raw
        self._let_go(self.keeper.enter(self._next, address))
        return self._next

    def owes(self, number: int) -> None:
        """It is the client's turn again."""
        if number in self._open:
            self._let_go(self.keeper.forget(number))

    def leave(self, number: int) -> None:
        if self._open.pop(number, None) is not None:
            self.keeper.leave(number)

    def close(self) -> None:
        """A send that waits for its reader cannot be cancelled: its connection is closed."""
        for number in list(self._open):
            self._let_go(number)

    def _let_go(self, number: int | None) -> None:
        if number is None:
            return
        raw = self._open[number]
        self.leave(number)
        with suppress(OSError):
            raw.socket.shutdown(socket.SHUT_RDWR)


class _Server(TCPServer):
    """Of one connection, which goes with its client: Hypercorn keeps it until its idle time is
    over, as one of those that a gateway may have open."""

    async def _read_data(self) -> None:
        if isinstance(protocol := self.protocol.protocol, H11Protocol):
            protocol._check_protocol = _stay  # type: ignore[assignment, method-assign]
        await super()._read_data()
        await self.idle_task.stop()


async def _stay(request: object) -> None:
    """In HTTP/1.1: without TLS there is no HTTP/2, to which a request might upgrade."""


async def serve(
    app: ASGIApp,
    options: GatewayOptions,
    listener: socket.socket,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Until cancelled; ``listener`` listens, and is closed at the end."""
    config = Config()
    config.include_server_header = False
    config.keep_alive_timeout = KEEP_ALIVE_SECONDS
    config.ssl_handshake_timeout = KEEP_ALIVE_SECONDS
    config.h11_max_incomplete_size = 64 * 1024
    config.h2_max_concurrent_streams = H2_STREAMS_MAX
    config.certfile, config.keyfile = (
        None if file is None else str(file) for file in (options.tls_certificate, options.tls_key)
    )
    wrapped, context = ASGIWrapper(cast("ASGIFramework", app)), WorkerContext(None)
    door = HttpDoor(options)

    async def handle(stream: _Connection) -> None:
        raw = stream if isinstance(stream, trio.SocketStream) else stream.transport_stream
        number = door.enter(raw)
        if number is None:
            await trio.aclose_forcefully(stream)
            return
        try:
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALLED_MS)
            state = ConnectionState({"turn": Turn(door, number)})
            await _Server(wrapped, config, context, state, stream)  # type: ignore[arg-type]
        finally:
            door.leave(number)
            await trio.aclose_forcefully(raw)

    listener.setblocking(False)
    plain = trio.SocketListener(trio.socket.from_stdlib_socket(listener))
    secure = config.create_ssl_context()
    own: Any = plain if secure is None else trio.SSLListener(plain, secure, https_compatible=True)
    async with trio.open_nursery() as handlers:
        task_status.started()
        try:
            await trio.serve_listeners(handle, [own], handler_nursery=handlers)
        finally:
            handlers.cancel_scope.deadline = trio.current_time() + FAREWELL_SECONDS
            door.close()
