"""Backoff: how long to wait before the next try of what failed."""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

_DOUBLINGS_MAX = 30  # a float has no end, a count of failures neither


@dataclass(frozen=True, slots=True)
class Backoff:
    """``first`` seconds after one failure, twice as long after each further one in a row, and
    ``longest`` at most."""

    first: float
    longest: float

    def after(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row, from 1."""
        return min(self.first * 2.0 ** min(failures - 1, _DOUBLINGS_MAX), self.longest)

    def spread(self, failures: int, who: str) -> float:
        """As ``after``, times a factor in [0.5, 1) that depends on ``who`` and the failures only:
        many who lost the same do not come back in step, and a test knows the time."""
        return self.after(failures) * (0.5 + crc32(f"{who}|{failures}".encode()) / 2**33)
