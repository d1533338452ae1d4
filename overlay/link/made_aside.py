"""A core is made of all that its store has, which may take minutes: in a thread, so that its
process answers meanwhile who asks how it is, and stops when it is told to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import trio

from overlay.link.stored_rows import Progress

C = TypeVar("C")


async def made_aside(make: Callable[[Progress], C], progress: Progress) -> C:
    """What ``make`` makes; where this is cancelled it leaves off when it has come further."""

    def came_further(what: str, done: int, total: int) -> None:
        trio.from_thread.check_cancelled()
        progress(what, done, total)

    return await trio.to_thread.run_sync(make, came_further)
