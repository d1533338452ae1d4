"""Histogram: how often something took how long."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any, Final

BOUNDS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025),
    *(0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
"""In seconds; a bucket ends with each, and one is behind the last."""


class Histogram:
    """``note`` each; 0.2 us."""

    __slots__ = ("_counts", "seconds")

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    def note(self, seconds: float) -> None:
        self._counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds

    @property
    def count(self) -> int:
        return sum(self._counts)

    def statistics(self) -> dict[str, object]:
        """As ``of`` takes it."""
        return {"counts": list(self._counts), "seconds": self.seconds}

    @classmethod
    def of(cls, statistics: Mapping[str, Any]) -> Histogram:
        """One as it was said."""
        made = cls()
        made._counts[:] = statistics["counts"]
        made.seconds = statistics["seconds"]
        return made

    def buckets(self) -> Iterator[tuple[float, int]]:
        """(bound, how many took at most that), the last bound infinite."""
        below = 0
        for bound, count in zip((*BOUNDS, float("inf")), self._counts, strict=True):
            below += count
            yield bound, below
