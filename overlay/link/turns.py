"""Turns: how long a process was busy with one thing, in processor time.

A *turn* is what goes on before anybody else in the process has theirs: handling some events, or
handing out what leaves.  Whoever speaks to a process waits for that, so the longest is kept: since
the start, and of the last minute, with what took most of it.
"""

from __future__ import annotations

from collections import deque

MINUTE = 60.0


class Turns:
    """``note`` each one; ``now`` in seconds of a clock that never goes back."""

    def __init__(self) -> None:
        self._count = 0
        self._seconds = 0.0
        self._longest = (0.0, "")
        # (time, seconds, kind): each longer than all behind it, one of a second at most.
        self._recent: deque[tuple[float, float, str]] = deque()
        self._now = 0.0

    def note(self, kind: str, seconds: float, now: float) -> None:
        """A turn has ended, of which ``kind`` took the most."""
        self._count += 1
        self._seconds += seconds
        self._now = now
        if seconds > self._longest[0]:
            self._longest = (seconds, kind)
        recent = self._recent
        while recent and recent[-1][1] <= seconds:
            recent.pop()
        if not recent or now - recent[-1][0] >= 1.0:
            recent.append((now, seconds, kind))
        while now - recent[0][0] >= MINUTE:
            recent.popleft()

    def statistics(self) -> dict[str, object]:
        """``longest_turn_ms`` since the start and ``longest_turn_minute_ms``, each with what took
        most of it; ``turns`` and the ``turns_s`` that all took."""
        lately = next((each for each in self._recent if self._now - each[0] < MINUTE), (0, 0.0, ""))
        return {
            "longest_turn_ms": round(self._longest[0] * 1e3, 3),
            "longest_turn_of": self._longest[1],
            "longest_turn_minute_ms": round(lately[1] * 1e3, 3),
            "longest_turn_minute_of": lately[2],
            "turns": self._count,
            "turns_s": round(self._seconds, 3),
        }
