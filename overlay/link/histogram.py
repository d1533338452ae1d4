"""Histogram: how often something took how long."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

BOUNDS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025),
    *(0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
"""In seconds; a bucket ends with each, and one is behind the last."""


class Histogram(Struct):
    """``note`` each; 0.2 us.  ``counts`` of each bucket; ``seconds`` in all."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    seconds: float = 0.0

    def note(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds

    @property
    def count(self) -> int:
        return sum(self.counts)

    def buckets(self) -> Iterator[tuple[float, int]]:
        """(bound, how many took at most that), the last bound infinite."""
        below = 0
        for bound, count in zip((*BOUNDS, float("inf")), self.counts, strict=True):
            below += count
            yield bound, below
