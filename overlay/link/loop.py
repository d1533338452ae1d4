"""Loop: the few things that a connection needs of Trio, or of AnyIO where a client runs on another
loop.  A broker loads no AnyIO."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, cast

import trio


class Stream(Protocol):
    """Bytes both ways, for a handshake."""

    async def send_all(self, data: bytes | memoryview) -> None: ...
    async def receive_some(self, max_bytes: int | None = None, /) -> bytes | bytearray: ...
    async def aclose(self) -> None: ...


class Latch(Protocol):
    def set(self) -> None: ...
    async def wait(self) -> object: ...


class Scope(AbstractContextManager["Scope", bool | None], Protocol):
    """A block that is cancelled at its time."""

    @property
    def cancelled_caught(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Loop:
    """Functions by their names in Trio, ``move_on_after`` with seconds."""

    event: Callable[[], Latch]
    move_on_after: Callable[[float], Scope]
    current_time: Callable[[], float]
    checkpoint: Callable[[], Awaitable[None]]
    close: Callable[[Stream], Awaitable[None]]


async def _close(stream: Stream) -> None:
    with trio.CancelScope(shield=True):
        await trio.aclose_forcefully(cast(trio.abc.AsyncResource, stream))


TRIO = Loop(
    event=trio.Event,
    move_on_after=trio.move_on_after,
    current_time=trio.current_time,
    checkpoint=trio.lowlevel.checkpoint,
    close=_close,
)
