"""Room for what declared functions nest: Python's own bound is for mistakes, ours are limits."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from yfilter.errors import MatchLimitExceeded

# Calls of Python within each other; far below what a thread's stack can take.
FRAMES_MAX = 8_000


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Evaluates what may nest deeply.  Raises MatchLimitExceeded where FRAMES_MAX is not enough."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, FRAMES_MAX))
    try:
        yield
    except RecursionError:
        raise MatchLimitExceeded(
            "too-many-calls", "a profile's functions call each other too deeply on this message"
        ) from None
    finally:
        sys.setrecursionlimit(before)
