"""Slice: how much of its work a core does at once, in processor time.

What is left then waits until others have had their turn: the next frames of a connection (ReadOn),
what nobody waits for as they wait for an answer (CallAgain).
"""

from __future__ import annotations

from collections.abc import Callable

SLICE_SECONDS = 0.005


class Slice:
    """Each event has another one, which is set up by ``until = 0.0``; it begins when somebody asks
    whether it ``is_over``."""

    # PERF: an event of which there is little to do asks for no time.
    __slots__ = ("caution", "clock", "until")

    def __init__(self, clock: Callable[[], float], caution: int = 0) -> None:
        """``clock``: seconds of processor time; of one that stands still no slice is ever over.
        ``caution``: the first so many are over as soon as anybody asks, so that one frame is
        handled at a time."""
        self.clock = clock
        self.until = 0.0
        self.caution = caution

    def is_over(self) -> bool:
        if self.caution:
            self.caution -= 1
            return True
        now = self.clock()
        if not self.until:
            self.until = now + SLICE_SECONDS
        return now >= self.until


def never() -> bool:
    """Of whom all is done at once."""
    return False
