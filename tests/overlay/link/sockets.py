"""Connections within the machine, that need no port."""

from __future__ import annotations

import socket
from collections.abc import Iterable

import trio

FEW_BYTES = 4096  # the least that a system keeps of what nobody reads, twice as much on Linux


def stream_pair() -> tuple[trio.SocketStream, trio.SocketStream]:
    """Both ends of one."""
    ours, theirs = socket.socketpair()
    return stream(ours), stream(theirs)


def stream(connected: socket.socket) -> trio.SocketStream:
    connected.setblocking(False)
    return trio.SocketStream(trio.socket.from_stdlib_socket(connected))


async def held(streams: Iterable[trio.SocketStream]) -> None:
    """Until cancelled; then they are closed."""
    try:
        await trio.sleep_forever()
    finally:
        for each in streams:
            await trio.aclose_forcefully(each)


def narrow_pair() -> tuple[socket.socket, trio.SocketStream]:
    """One end that takes few bytes at once, and the other."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, FEW_BYTES)
    return ours, stream(theirs)
