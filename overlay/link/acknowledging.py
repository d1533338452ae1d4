"""Acknowledging: when a client says what it has taken, many deliveries at once."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

ACKNOWLEDGE_SECONDS = 0.5
"""What is taken is said together with what is taken in so long after it: with the next that comes
then, or the next tick, or when it is ACKNOWLEDGE_AT_ONCE or so many bytes.  PERF: with a timer for
that a process with 1,000 connections took a quarter longer for each delivery."""
ACKNOWLEDGE_AT_ONCE = 64
ACKNOWLEDGE_BYTES_AT_ONCE = 256 * 1024


class Acknowledging:
    """``is_any``: something was taken that was not said; it is to be said ``at`` some time."""

    __slots__ = ("_bytes", "_clock", "_count", "at")

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` gives seconds, of which ``at`` is one."""
        self._clock = clock
        self.said()

    def said(self) -> None:
        self._count = self._bytes = 0
        self.at = inf

    @property
    def is_any(self) -> bool:
        return bool(self._count)

    def take(self, size: int) -> bool:
        """One delivery of so many bytes; whether it is to be said at once."""
        self._count += 1
        self._bytes += size
        if self._count == 1:
            self.at = self._clock() + ACKNOWLEDGE_SECONDS
        return self._count >= ACKNOWLEDGE_AT_ONCE or self._bytes >= ACKNOWLEDGE_BYTES_AT_ONCE
