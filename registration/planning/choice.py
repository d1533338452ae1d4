"""Choice: by which of its needs a profile is placed (section 4.4, step 2).

The paper takes one of the matching buckets at random.  Here the choice is a rule, so that a new
profile is placed like its equals: the first pattern in the plan's order, except where its value is
so popular that its profiles would not fit in one partition (*crowded*).  Such a value is avoided
as long as the profile has another, which evens out skew without splitting values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from registration.planning.exclusiveness import Need, Pattern


@dataclass(frozen=True, slots=True)
class Choice:
    """``rank``: chosen pattern -> place in the order; ``crowded``: pattern -> value -> load."""

    rank: Mapping[Pattern, int]
    crowded: Mapping[Pattern, Mapping[str, float]] = field(default_factory=dict)

    def need(self, needs: Sequence[Need]) -> Need | None:
        """The need that decides; its first value counts.  None: the plan has no such pattern."""
        found = self.place([need.pattern for need in needs], [need.values for need in needs])
        return None if found is None else needs[found]

    def place(self, patterns: Sequence[Pattern], values: Sequence[tuple[str, ...]]) -> int | None:
        """The same for needs as columns: which of them decides."""
        best: int | None = None
        best_key = (0.0, 0, 0)
        for place, pattern in enumerate(patterns):
            rank = self.rank.get(pattern)
            if rank is None:
                continue
            crowd = self.crowded.get(pattern)
            load = crowd.get(values[place][0], 0.0) if crowd else 0.0
            key = (load, len(values[place]), rank)
            if best is None or key < best_key:
                best, best_key = place, key
        return best


def stable_hash(text: str) -> int:
    """32 bits that are the same in every process."""
    return crc32(text.encode("utf-8", "surrogatepass"))


def slot_of(value: str, slots: int) -> int:
    """The hash slot of a value; ``slots`` is a power of two."""
    return stable_hash(value) & (slots - 1)
