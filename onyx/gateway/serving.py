"""Serving an application over HTTP: Hypercorn's Trio worker, with a bound on its connections."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework, ConnectionState
from starlette.types import ASGIApp

from onyx.gateway.options import GatewayOptions

STALLED_MS = 60_000  # until a connection is given up whose other end takes nothing
KEEP_ALIVE_SECONDS = 20
FAREWELL_SECONDS = 1.0

_Connection = trio.SSLStream[trio.SocketStream] | trio.SocketStream


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
    config.h11_max_incomplete_size = 64 * 1024
    config.certfile, config.keyfile = (
        None if file is None else str(file) for file in (options.certificate, options.key)
    )
    wrapped, context = ASGIWrapper(cast("ASGIFramework", app)), WorkerContext(None)
    open_now: set[trio.SocketStream] = set()

    async def handle(stream: _Connection) -> None:
        raw = stream if isinstance(stream, trio.SocketStream) else stream.transport_stream
        if len(open_now) >= options.connections_max:
            await trio.aclose_forcefully(stream)
            return
        open_now.add(raw)
        try:
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALLED_MS)
            await TCPServer(wrapped, config, context, ConnectionState({}), stream)  # type: ignore[arg-type]
        finally:
            open_now.discard(raw)
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
            # What waits for readers cannot be cancelled: their connections are closed.
            handlers.cancel_scope.deadline = trio.current_time() + FAREWELL_SECONDS
            for stream in list(open_now):
                with suppress(OSError):
                    stream.socket.shutdown(socket.SHUT_RDWR)
