"""Relay: what a browser is sent by a gateway, counted on its way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import trio

PIECE_BYTES = 65_536


class Relay:
    """``url`` leads to the gateway; ``sent`` bytes have come from there so far."""

    def __init__(self) -> None:
        self.url = ""
        self.sent = 0

    async def carry(self, browser: trio.SocketStream, host: str, port: int) -> None:
        """One connection, until either end closes it."""

        async def forward() -> None:
            async for piece in browser:
                await gateway.send_all(piece)
            nursery.cancel_scope.cancel()

        async with browser, await trio.open_tcp_stream(host, port) as gateway:
            try:
                async with trio.open_nursery(strict_exception_groups=True) as nursery:
                    nursery.start_soon(forward)
                    while piece := await gateway.receive_some(PIECE_BYTES):
                        self.sent += len(piece)
                        await browser.send_all(piece)
                    nursery.cancel_scope.cancel()
            except* (trio.BrokenResourceError, trio.ClosedResourceError):
                pass  # who was left


@asynccontextmanager
async def relay(url: str) -> AsyncIterator[Relay]:
    """To the gateway at a URL, from the same host."""
    at = urlsplit(url)
    assert at.hostname is not None
    assert at.port is not None
    host, port, found = at.hostname, at.port, Relay()

    async def take(browser: trio.SocketStream) -> None:
        await found.carry(browser, host, port)

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host=host)
        found.url = f"{at.scheme}://{host}:{listener.socket.getsockname()[1]}/"
        nursery.start_soon(trio.serve_listeners, take, [listener])
        yield found
        nursery.cancel_scope.cancel()
