"""Room for what declared functions nest: Python's own bound is for mistakes, ours are limits."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from yfilter.errors import MatchLimitExceeded

# Calls of Python within each other; far below what a thread's stack can take.
FRAMES_MAX = 8_000

_Made = TypeVar("_Made")


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Evaluates what may nest deeply.  Raises MatchLimitExceeded where FRAMES_MAX is not enough."""
    before = sys.getrecursionlimit()
    if before >= FRAMES_MAX:  # within another one
        yield
        return
    sys.setrecursionlimit(FRAMES_MAX)
    try:
        yield
    except RecursionError:
        raise MatchLimitExceeded(
            "too-many-calls", "a profile's functions call each other too deeply on this message"
        ) from None
    finally:
        sys.setrecursionlimit(before)


def deeply(work: Callable[[], _Made]) -> _Made:
    """What ``work`` makes, which is asked once more, with room, if it nests deeply."""
    try:
        return work()
    except RecursionError:
        if sys.getrecursionlimit() >= FRAMES_MAX:
            raise
        with deep_recursion():
            return work()
