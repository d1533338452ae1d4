"""Loop: the few things that a connection needs of Trio, or of AnyIO where a client runs on another
loop.  A broker loads no AnyIO."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, cast

import trio


class Stream(Protocol):
    """Bytes both ways; one with a ``socket`` is read and written there, as far as it goes at once.
    ``send_eof`` is there where one way ends alone."""

    async def send_all(self, data: bytes | memoryview) -> None: ...
    async def receive_some(self, max_bytes: int | None = None, /) -> bytes | bytearray: ...
    async def aclose(self) -> None: ...


class Latch(Protocol):
    def set(self) -> None: ...
    async def wait(self) -> None: ...


class Scope(AbstractContextManager["Scope", bool | None], Protocol):
    """A block that may be cancelled, at a ``deadline`` too."""

    deadline: float

    @property
    def cancelled_caught(self) -> bool: ...
    def cancel(self) -> None: ...


class Tasks(Protocol):
    def start_soon(
        self, function: Callable[..., Coroutine[Any, Any, Any]], /, *arguments: Any
    ) -> object: ...


@dataclass(frozen=True, slots=True)
class Loop:
    """Functions by their names in Trio, ``move_on_after`` with seconds."""

    event: Callable[[], Latch]
    scope: Callable[[], Scope]
    move_on_after: Callable[[float], Scope]
    tasks: Callable[[], AbstractAsyncContextManager[Tasks]]
    current_time: Callable[[], float]
    checkpoint: Callable[[], Awaitable[None]]
    wait_readable: Callable[[int], Awaitable[None]]
    close: Callable[[Stream], Awaitable[None]]


async def _close(stream: Stream) -> None:
    with trio.CancelScope(shield=True):
        await trio.aclose_forcefully(cast(trio.abc.AsyncResource, stream))


TRIO = Loop(
    event=trio.Event,
    scope=trio.CancelScope,
    move_on_after=trio.move_on_after,
    tasks=trio.open_nursery,
    current_time=trio.current_time,
    checkpoint=trio.lowlevel.checkpoint,
    wait_readable=trio.lowlevel.wait_readable,
    close=_close,
)
