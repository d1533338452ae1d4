"""ClientThread: a client of the network in a thread with Trio, for programs that have none.

All clients of a process share one thread, AnyIO's portal, which is there as long as one of them is
in its block.  ``onyx.blocking`` waits for what the futures give, ``onyx.aio`` awaits it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar

import trio
from anyio.from_thread import BlockingPortal, BlockingPortalProvider

_T = TypeVar("_T")
_Client = TypeVar("_Client", bound=AbstractAsyncContextManager[Any])

PORTALS = BlockingPortalProvider(backend="trio")


class ClientThread(Generic[_Client]):
    """``start``, ``call`` as often as wanted, ``stop``; then it may start again."""

    def __init__(self, client: _Client) -> None:
        self.client = client
        self._portal: BlockingPortal | None = None
        self._stop: trio.Event | None = None
        self._left: Future[None] | None = None

    def start(self) -> Future[None]:
        """Enter the client's block; done when it is entered, with what it raises if it does."""
        self._portal = PORTALS.__enter__()
        entered: Future[None] = Future()
        self._left = self._portal.start_task_soon(self._live, entered)
        return entered

    def call(self, function: Callable[[_Client], Awaitable[_T]]) -> Future[_T]:
        """Run an asynchronous function in the thread; who cancels the future cancels it.

        RuntimeError outside of the block.
        """
        return self._open().start_task_soon(function, self.client)

    def call_now(self, function: Callable[[], _T]) -> Future[_T]:
        """The same of a function that does not wait."""
        return self._open().start_task_soon(function)

    def leave(self) -> Future[None]:
        """Leave the client's block; done when it is left, with what it ended with."""
        portal = self._open()
        assert self._left is not None and self._stop is not None
        portal.start_task_soon(self._stop.set)
        return self._left

    def stop(self) -> None:
        """Behind ``leave``, or a ``start`` that failed: the thread ends with its last client."""
        if self._left is not None:
            self._left.cancel()  # where it is still under way
        self._portal = self._left = self._stop = None
        PORTALS.__exit__(None, None, None)

    def _open(self) -> BlockingPortal:
        if self._portal is None:
            raise RuntimeError(
                "this has no connection outside of its block; write with ...: (or async with, of "
                "onyx.aio) and use it inside"
            )
        return self._portal

    async def _live(self, entered: Future[None]) -> None:
        try:
            async with self.client:
                self._stop = trio.Event()
                entered.set_result(None)
                await self._stop.wait()
        except BaseException as error:
            if not entered.done():
                entered.set_exception(error)  # to whoever waits for the start
                return
            raise


def wait_for(future: Future[_T]) -> _T:
    """What it gives; cancelled where the wait for it is interrupted."""
    try:
        return future.result()
    finally:
        future.cancel()
