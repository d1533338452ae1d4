"""Turns: how long a process was busy with one thing, in processor time.

A *turn* is what goes on before anybody else in the process has theirs: handling some events, or
handing out what leaves.  Whoever speaks to a process waits for that, so the longest is kept: since
the start, and of the last minute, with what took most of it.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from overlay.link.histogram import Histogram

MINUTE = 60.0


class _Turn(NamedTuple):
    """``kind``: what took the most of it."""

    ended: float
    seconds: float
    kind: str


_NONE = _Turn(0.0, 0.0, "")


class Turns:
    """``note`` each one; ``now`` in seconds of a clock that never goes back."""

    def __init__(self) -> None:
        self.histogram = Histogram()
        self._longest = _NONE
        self._recent: deque[_Turn] = deque()  # each longer than all behind it, one of a second
        self._now = 0.0

    def note(self, kind: str, seconds: float, now: float) -> None:
        """A turn has ended, of which ``kind`` took the most."""
        self.histogram.note(seconds)
        self._now = now
        turn = _Turn(now, seconds, kind)
        if seconds > self._longest.seconds:
            self._longest = turn
        recent = self._recent
        while recent and recent[-1].seconds <= seconds:
            recent.pop()
        if not recent or now - recent[-1].ended >= 1.0:
            recent.append(turn)
        while now - recent[0].ended >= MINUTE:
            recent.popleft()

    def statistics(self) -> dict[str, object]:
        """``longest_turn_ms`` since the start and ``longest_turn_minute_ms``, each with what took
        most of it; ``turns`` and the ``turns_s`` that all took."""
        lately = next((turn for turn in self._recent if self._now - turn.ended < MINUTE), _NONE)
        return {
            "longest_turn_ms": round(self._longest.seconds * 1e3, 3),
            "longest_turn_of": self._longest.kind,
            "longest_turn_minute_ms": round(lately.seconds * 1e3, 3),
            "longest_turn_minute_of": lately.kind,
            "turns": self.histogram.count,
            "turns_s": round(self.histogram.seconds, 3),
        }
