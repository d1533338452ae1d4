"""OneThread: a connection to SQLite has one user at a time, and none in the loop's thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import anyio.to_thread

T = TypeVar("T")


class OneThread:
    """Calls functions in threads, one after the other."""

    def __init__(self) -> None:
        self._one = anyio.CapacityLimiter(1)

    async def __call__(self, function: Callable[..., T], *arguments: Any) -> T:
        return await anyio.to_thread.run_sync(function, *arguments, limiter=self._one)
