"""ObservedEvents: what a client asked to observe, as it comes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Self


class ObservedEvents:
    """An iterator as a class: it may be left in the middle, which an async generator may not
    without being closed explicitly."""

    def __init__(self, take: Callable[[], Awaitable[Mapping[str, object]]]) -> None:
        self._take = take

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Mapping[str, object]:
        return await self._take()
