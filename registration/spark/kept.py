"""Engines that a worker process keeps from task to task, and from micro-batch to micro-batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

KEPT_MAX = 4
"""Engines in a worker; the one that was used the longest time ago goes first."""

_kept: dict[str, Any] = {}


def kept(digest: str, make: Callable[[], T]) -> T:
    """The engine of ``digest``, made where it is not kept.

    PERF: building an engine takes longer than most tasks.
    """
    found: T | None = _kept.pop(digest, None)
    if found is None:
        while len(_kept) >= KEPT_MAX:
            del _kept[next(iter(_kept))]
        found = make()
    _kept[digest] = found
    return found
