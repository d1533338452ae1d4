"""Samples: many timings of the same thing, and what is said of them.

Times are in microseconds.  A percentile is the smallest sample that so many percent of the samples
do not exceed (nearest rank), so that it is always one that was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil


def mean(samples: Sequence[float]) -> float:
    return sum(samples) / len(samples)


def median(samples: Sequence[float]) -> float:
    return percentile(samples, 50)


def percentile(samples: Sequence[float], percent: float) -> float:
    """The value at ``percent`` (above 0, at most 100) of the samples in order."""
    if not samples:
        raise ValueError("there are no samples")
    if not 0 < percent <= 100:
        raise ValueError(f"{percent} is not a percentage")
    return sorted(samples)[ceil(len(samples) * percent / 100) - 1]
