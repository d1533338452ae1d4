"""What a new plan keeps of the one in force, so that few profiles move.

A plan from scratch moves most profiles although hardly any are new: each item goes where the most
room is left, so a few more change that for all behind them.  Here the partitions of the plan in
force stand for those of the new one, and each item stays in its own, the largest first, unless
that is too full.  What does not fit, and what is new, goes to another partition of the same broker,
else to one that has its pattern already, else to the emptiest.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence

from registration.planning.choice import stable_hash
from registration.planning.exclusiveness import Pattern
from registration.planning.packing import (
    LARGE,
    SLIVER,
    Item,
    Packing,
    begin_packing,
    items_of,
    pieces_of,
)
from registration.planning.plan import Plan
from registration.planning.value_loads import ValueLoads

_SLOTS_KEPT = 4  # times as many hash slots as a pattern would get from scratch, at most


def kept_slots(slots: Mapping[Pattern, int], before: Plan) -> dict[Pattern, int]:
    """The hash slots of each pattern: as many as it had, where these are fine enough."""
    had = {rule.pattern: len(rule.slots) for rule in before.rules}
    kept = dict(slots)
    for pattern, wanted in slots.items():
        if wanted <= had.get(pattern, 0) <= _SLOTS_KEPT * wanted:
            kept[pattern] = had[pattern]
    return kept


def pack_kept(
    patterns: Sequence[Pattern],
    loads: ValueLoads,
    slots: Mapping[Pattern, int],
    partitions: int,
    before: Plan,
    brokers: Collection[str],
    most: float,
) -> Packing:
    """As ``pack``, but for what stays; ``brokers``: that may host profiles now; ``most``: how
    full a partition may be of what stays."""
    packing, ordinary = begin_packing(loads, partitions)
    room = _KeptRoom(before, _numbers(before, brokers, partitions, ordinary), packing, ordinary)
    items = items_of(patterns, loads, slots)
    target = (loads.total - loads.dont_care) / ordinary
    placed: dict[Pattern, dict[Item, tuple[int, ...]]] = {pattern: {} for pattern in items}
    homeless: list[tuple[Pattern, Item, float, int]] = []
    entries = ((load, pattern, item) for pattern in items for item, load in items[pattern].items())
    for load, pattern, item in sorted(entries, key=lambda e: (-e[0], e[1], str(e[2]))):
        pieces = pieces_of(item, load, target, ordinary)
        # Of what is coarse, as much as fits by half.
        enough = max((1 + SLIVER) * target, min(most, target + load / pieces / 2))
        where = room.keep(pattern, item, load, pieces, enough)
        if where:
            placed[pattern][item] = where
        else:
            homeless.append((pattern, item, load, pieces))
    order = list(items)
    place = {pattern: number for number, pattern in enumerate(order)}
    homeless.sort(key=lambda e: (e[2] <= LARGE * target, place[e[0]]))
    for pattern, item, load, pieces in homeless:
        beside = order[max(0, place[pattern] - 1) : place[pattern] + 2]
        placed[pattern][item] = room.lay(pattern, item, load, pieces, (1 + SLIVER) * target, beside)
    for pattern, where_of in placed.items():
        packing.put(pattern, where_of, slots[pattern])
    return packing


def hosts_before(
    before: Plan, packing: Packing, loads: ValueLoads
) -> tuple[tuple[str, float], ...]:
    """For each partition of a new plan, the broker where the plan in force has the most of its
    load, and how much."""
    held: list[dict[str, float]] = [{} for _ in packing.loads]

    def count(pattern: Pattern, item: Item, load: float, where: Sequence[int]) -> None:
        old = _places(before, pattern, item)
        for partition in where:
            for other in old:
                broker, row = before.brokers[other], held[partition]
                row[broker] = row.get(broker, 0.0) + load / len(where) / len(old)

    for (pattern, value), load in loads.heavy.items():
        count(pattern, value, load, packing.values[pattern][value])
    for pattern, slot_loads in loads.slots.items():
        for slot, load in slot_loads.items():
            count(pattern, slot, load, packing.slots[pattern][slot : slot + 1])
    for place, partition in enumerate(packing.dont_care):
        if place < len(before.dont_care):
            broker = before.brokers[before.dont_care[-1 - place]]
            held[packing.dont_care[-1 - place]][broker] = packing.loads[partition]
    return tuple(max(row.items(), key=lambda e: (e[1], e[0]), default=("", 0.0)) for row in held)


def _places(before: Plan, pattern: Pattern, item: Item) -> tuple[int, ...]:
    """Where the plan in force has an item; none if it does not know the pattern."""
    rule = before.rule_of.get(pattern)
    if rule is None:
        return ()
    # A slot was part of one if these were fewer; of several if these were more: take the first.
    return (
        rule.partitions_of(item) if isinstance(item, str) else (rule.slots[item % len(rule.slots)],)
    )


def _numbers(
    before: Plan, brokers: Collection[str], partitions: int, ordinary: int
) -> dict[int, int]:
    """Old partition -> new, in order.  Those of "don't care" profiles stay the last; where there
    are too many, those go whose broker has gone, and then the last."""
    own = partitions - ordinary
    old_own = list(before.dont_care) if before.facts.dont_care else []
    old = [p for p in range(before.partitions) if p not in set(old_own)]
    lost = [p for p in old if before.brokers and before.brokers[p] not in brokers]
    surplus = len(old) - ordinary
    if surplus > 0:
        stay = [p for p in old if p not in set(lost)]
        gone = set((stay + lost)[-surplus:])
        old = [p for p in old if p not in gone]
    numbers = {p: number for number, p in enumerate(old)}
    for place, p in enumerate(reversed(old_own)):
        if place < own:
            numbers[p] = partitions - 1 - place
    return numbers


class _KeptRoom:
    """The partitions as they fill, and which of them belong together."""

    def __init__(
        self, before: Plan, numbers: Mapping[int, int], packing: Packing, ordinary: int
    ) -> None:
        self._before = before
        self._numbers = {old: new for old, new in numbers.items() if new < ordinary}
        self._loads = packing.loads
        of_broker: dict[str, list[int]] = {}
        for old, new in self._numbers.items():
            if before.brokers:
                of_broker.setdefault(before.brokers[old], []).append(new)
        self._of_broker = {broker: _Emptiest(self._loads, of) for broker, of in of_broker.items()}
        self._of_pattern: dict[Pattern, _Emptiest] = {}
        self._all = _Emptiest(self._loads, range(ordinary))

    def keep(
        self, pattern: Pattern, item: Item, load: float, pieces: int, most: float
    ) -> tuple[int, ...]:
        """Where it is, if it can stay there; else ()."""
        old = _places(self._before, pattern, item)
        where = tuple(self._numbers.get(p, -1) for p in old)
        if not where or -1 in where or len(where) > pieces + 1:
            return ()
        share = load / len(where)
        if any(self._loads[p] and self._loads[p] + share > most for p in where):
            return ()
        self._put(pattern, where, share)
        return where

    def lay(
        self,
        pattern: Pattern,
        item: Item,
        load: float,
        pieces: int,
        full: float,
        beside: Sequence[Pattern],
    ) -> tuple[int, ...]:
        """Each piece goes to another partition.  Slots that are empty today are spread: values to
        come hash into them."""
        there = self._of_pattern.get(pattern)
        if not load and there is not None:
            return (there.members[stable_hash(str(item)) % len(there.members)],)
        old = _places(self._before, pattern, item)
        broker = self._before.brokers[old[0]] if old and self._before.brokers else ""
        where: set[int] = set()
        for _ in range(pieces):
            nearer = self._of_broker.get(broker), there, *map(self._of_pattern.get, beside)
            found = [heap.least() for heap in nearer if heap is not None]
            fitting = [
                p for p in found if p not in where and self._loads[p] + load / pieces <= full
            ]
            partition = fitting[0] if fitting else self._all.least()
            self._put(pattern, (partition,), load / pieces)
            where.add(partition)
        return tuple(sorted(where))

    def _put(self, pattern: Pattern, where: Iterable[int], share: float) -> None:
        for partition in where:
            self._loads[partition] += share
            heap = self._of_pattern.get(pattern)
            if heap is None:
                heap = self._of_pattern[pattern] = _Emptiest(self._loads, ())
            heap.add(partition)


class _Emptiest:
    """The emptiest of some partitions, as these fill: a heap of what their loads were at least."""

    def __init__(self, loads: Sequence[float], partitions: Iterable[int]) -> None:
        self._loads = loads
        self.members = list(partitions)
        self._heap = [(loads[partition], partition) for partition in self.members]
        self._there = set(self.members)
        heapq.heapify(self._heap)

    def add(self, partition: int) -> None:
        if partition not in self._there:
            self._there.add(partition)
            self.members.append(partition)
            heapq.heappush(self._heap, (self._loads[partition], partition))

    def least(self) -> int:
        while True:
            load, partition = self._heap[0]
            if load == self._loads[partition]:
                return partition
            heapq.heapreplace(self._heap, (self._loads[partition], partition))
