"""PEP as the paper describes it (section 4.4), to compare with.

The patterns by coverage, greedily until every query has one; each pattern's values, in order,
divided into K buckets of even load; each query in a random one of its matching buckets; partition
i is all buckets i.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from registration.planning.exclusiveness import Need, Pattern


class PaperPep:
    """``partition`` of each query, and ``bucket`` of each value of the chosen patterns.

    ``all_patterns``: use them all, as for the paper's Figure 9, instead of a cover.
    """

    def __init__(
        self,
        queries: Sequence[Sequence[Need]],
        partitions: int,
        seed: int,
        all_patterns: bool = False,
    ) -> None:
        random = Random(seed)
        chosen = _greedy(queries, all_patterns)
        counts: dict[Pattern, Counter[str]] = {pattern: Counter() for pattern in chosen}
        for needs in queries:
            for need in needs:
                if need.pattern in counts:
                    counts[need.pattern][need.values[0]] += 1
        self.bucket = {
            (pattern, value): bucket
            for pattern, values in counts.items()
            for value, bucket in _ranges(values, partitions).items()
        }
        self.partition = [self._place(needs, partitions, random) for needs in queries]

    def _place(self, needs: Sequence[Need], partitions: int, random: Random) -> int:
        buckets = [
            self.bucket[need.pattern, need.values[0]]
            for need in needs
            if (need.pattern, need.values[0]) in self.bucket
        ]
        # A query without a pattern is a "don't care": anywhere.
        return random.choice(buckets) if buckets else random.randrange(partitions)


def _greedy(queries: Sequence[Sequence[Need]], all_patterns: bool) -> list[Pattern]:
    signatures = Counter(tuple(sorted({need.pattern for need in needs})) for needs in queries)
    coverage: Counter[Pattern] = Counter()
    for signature, count in signatures.items():
        coverage.update(dict.fromkeys(signature, count))
    if all_patterns:
        return sorted(coverage)
    chosen: list[Pattern] = []
    uncovered = {signature for signature in signatures if signature}
    for pattern, _ in sorted(coverage.items(), key=lambda entry: (-entry[1], entry[0])):
        if not uncovered:
            break
        if any(pattern in signature for signature in uncovered):
            chosen.append(pattern)
            uncovered = {signature for signature in uncovered if pattern not in signature}
    return chosen


def _ranges(values: Counter[str], buckets: int) -> dict[str, int]:
    """Each value's bucket: ranges of the ordered values, of even load."""
    total = values.total()
    found: dict[str, int] = {}
    before = 0
    for value, count in sorted(values.items()):
        found[value] = min(buckets - 1, int((before + count / 2) * buckets / total))
        before += count
    return found
