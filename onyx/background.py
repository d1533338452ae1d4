"""Background tasks for the length of a block, without the nursery showing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

import trio

from overlay.link.lone_error import lone_error

_T = TypeVar("_T")


@asynccontextmanager
async def background_tasks() -> AsyncIterator[trio.Nursery]:
    """A nursery that is cancelled when the block ends.

    A nursery wraps even a single error into a group.  Whoever uses this started no tasks of their
    own, so a lone error comes out as it is.
    """
    try:
        async with trio.open_nursery() as nursery:
            yield nursery
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        error = lone_error(group)
        if error is group:
            raise
        raise error from error.__cause__


async def hold(
    manager: AbstractAsyncContextManager[_T],
    use: Callable[[_T], Awaitable[object]],
    task_status: trio.TaskStatus[_T] = trio.TASK_STATUS_IGNORED,
) -> None:
    """A task that is in the block of a context manager as long as ``use`` of it takes."""
    async with manager as entered:
        task_status.started(entered)
        await use(entered)


async def forever(entered: object) -> None:
    await trio.sleep_forever()
