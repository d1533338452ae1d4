"""Which exclusiveness patterns partition the population: a greedy cover (section 4.4, step 1).

Every profile that has a pattern at all shall have a chosen one.  The paper sorts by coverage, and
perturbs the choice afterwards in favour of patterns that occur at most once in a message.  Here
that preference is part of the choice: a pattern's *cost* is the number of different values that a
message has at it, thus the number of partitions that it makes a message visit; what is chosen next
covers the most profiles per cost.  A chosen pattern that the later ones made unnecessary is
dropped, the costliest first.

The gain of a pattern only shrinks as others are chosen, so a heap with outdated gains suffices:
what comes up is looked at again before it is taken (a *lazy* heap).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from registration.planning.exclusiveness import Pattern

PATTERNS_MAX = 16_384
_COST_MIN = 0.05  # so that a pattern that hardly ever occurs is no bargain without bounds
_KNOWN = 0.8  # of its cost is that of a pattern by which profiles are placed already


@dataclass(frozen=True, slots=True)
class Signature:
    """The patterns that ``load`` profiles (weighted) have, sorted."""

    patterns: tuple[Pattern, ...]
    load: float


def choose_patterns(
    signatures: Iterable[Signature],
    cost: Callable[[Pattern], float],
    patterns_max: int = PATTERNS_MAX,
    before: Sequence[Pattern] = (),
) -> tuple[Pattern, ...]:
    """The chosen patterns, in the order in which a profile that has several prefers them.

    First those that occur at most once, in the order of the greedy choice, then the others by
    cost.  Ties go to the smaller text.  Those of a plan ``before``, in its order, are taken first
    and stand first where others are hardly better.
    """
    distinct = [signature for signature in signatures if signature.patterns]
    costs = {
        pattern: max(_COST_MIN, cost(pattern))
        for signature in distinct
        for pattern in signature.patterns
    }
    known = {pattern: place for place, pattern in enumerate(before)}
    counted = {p: cost * _KNOWN if p in known else cost for p, cost in costs.items()}
    chosen = _without_redundant(_greedy(distinct, counted, patterns_max), distinct, counted)
    places = {pattern: len(known) + place for place, pattern in enumerate(chosen)}
    places.update(known)
    return tuple(sorted(chosen, key=lambda p: (max(1.0, round(costs[p], 1)), places[p])))


def _greedy(
    signatures: list[Signature], costs: dict[Pattern, float], patterns_max: int
) -> list[Pattern]:
    having: dict[Pattern, list[int]] = {}
    for number, signature in enumerate(signatures):
        for pattern in signature.patterns:
            having.setdefault(pattern, []).append(number)
    covered = bytearray(len(signatures))

    def score(pattern: Pattern) -> float:
        gain = sum(signatures[number].load for number in having[pattern] if not covered[number])
        return gain / costs[pattern]

    heap = [(-score(pattern), pattern) for pattern in having]
    heapq.heapify(heap)
    chosen: list[Pattern] = []
    while heap and len(chosen) < patterns_max:
        _, pattern = heapq.heappop(heap)
        now = score(pattern)
        if heap and (-now, pattern) > heap[0]:
            if now > 0:
                heapq.heappush(heap, (-now, pattern))
            continue
        if now <= 0:
            break
        chosen.append(pattern)
        for number in having[pattern]:
            covered[number] = 1
    return chosen


def _without_redundant(
    chosen: list[Pattern], signatures: list[Signature], costs: dict[Pattern, float]
) -> list[Pattern]:
    """Drop what covers nothing that the others do not cover; the costliest first."""
    kept = set(chosen)
    having: dict[Pattern, list[int]] = {pattern: [] for pattern in chosen}
    times = [0] * len(signatures)  # how often each signature is covered
    for number, signature in enumerate(signatures):
        for pattern in signature.patterns:
            if pattern in kept:
                having[pattern].append(number)
                times[number] += 1
    for pattern in sorted(chosen, key=lambda p: (-costs[p], -chosen.index(p))):
        if all(times[number] > 1 for number in having[pattern]):
            kept.discard(pattern)
            for number in having[pattern]:
                times[number] -= 1
    return [pattern for pattern in chosen if pattern in kept]
