"""ClientStream: TCP of a client on asyncio or Trio, and the loop on which its connection runs."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any

import anyio
import anyio.lowlevel
import trio

from overlay.link.loop import TRIO, Loop, Stream

NEXT_ADDRESS_SECONDS = 0.25  # for one address of a name before the next is tried beside it
_UNSENT_BYTES = 16 * 1024  # that the kernel takes beyond what is on its way, as in Trio


async def _close(stream: Stream) -> None:
    await stream.aclose()


def _asyncio_time() -> float:
    """Outside of a task, too."""
    return asyncio.get_running_loop().time()


ANYIO = Loop(
    event=asyncio.Event,
    move_on_after=anyio.move_on_after,
    current_time=_asyncio_time,
    checkpoint=anyio.lowlevel.checkpoint,
    close=_close,
)


def loop_here() -> Loop:
    """PERF: on Trio its own; a delivery took 6 % longer through AnyIO."""
    return TRIO if anyio.get_cancelled_exc_class() is trio.Cancelled else ANYIO


class ClientStream:
    """A socket that is connected; what goes wrong is an OSError."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected

    async def receive_some(self, max_bytes: int | None = None, /) -> bytes:
        while True:
            await anyio.wait_readable(self.socket)
            with suppress(BlockingIOError):
                return self.socket.recv(max_bytes or _UNSENT_BYTES)

    async def send_all(self, data: bytes | memoryview) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self.socket.send(rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self.socket)

    async def aclose(self) -> None:
        self.socket.close()


async def open_stream(host: str, port: int, seconds: float) -> ClientStream | None:
    """A TCP connection, or None if there is none within so many seconds."""
    first: list[socket.socket] = []
    with anyio.move_on_after(seconds), suppress(OSError):
        addresses = await _addresses(host, port)
        try:
            async with anyio.create_task_group() as tasks:
                for family, _, _, _, address in addresses:
                    failed = anyio.Event()
                    tasks.start_soon(_attempt, family, address, first, tasks.cancel_scope, failed)
                    with anyio.move_on_after(NEXT_ADDRESS_SECONDS):
                        await failed.wait()
        except BaseException:
            for connected in first:
                connected.close()
            raise
    return ClientStream(first[0]) if first else None


async def _addresses(host: str, port: int) -> list[tuple[Any, ...]]:
    """A name is looked up in a thread."""
    kind = socket.SOCK_STREAM
    with suppress(socket.gaierror):
        return [*socket.getaddrinfo(host, port, type=kind, flags=socket.AI_NUMERICHOST)]
    return [*await anyio.getaddrinfo(host, port, type=kind)]


async def _attempt(
    family: int,
    address: Any,
    first: list[socket.socket],
    others: anyio.CancelScope,
    failed: anyio.Event,
) -> None:
    """Connect to one address; the first that succeeds ends the others."""
    attempted = socket.socket(family, socket.SOCK_STREAM)
    try:
        attempted.setblocking(False)
        attempted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(AttributeError, OSError):  # not on every system
            attempted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
        with suppress(BlockingIOError):
            attempted.connect(address)
        await anyio.wait_writable(attempted)
        if not attempted.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) and not first:
            first.append(attempted)
            others.cancel()
    except OSError:
        pass
    finally:
        if attempted not in first:
            attempted.close()
        failed.set()
