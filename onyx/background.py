"""Background tasks for the length of a block, without their group showing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from overlay.link.lone_error import lone_errors

if TYPE_CHECKING:
    import trio
    from anyio.abc import TaskGroup

_Tasks = TypeVar("_Tasks", "trio.Nursery", "TaskGroup")


@asynccontextmanager
async def background_tasks(opened: AbstractAsyncContextManager[_Tasks]) -> AsyncIterator[_Tasks]:
    """A nursery of Trio, or a task group of AnyIO, that is cancelled when the block ends; whoever
    uses this started no tasks of their own, so a lone error comes out as it is."""
    with lone_errors():
        async with opened as tasks:
            yield tasks
            tasks.cancel_scope.cancel()
