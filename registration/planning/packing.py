"""Packing: the values of the patterns into partitions of even load.

Each pattern has *items*: single values that many profiles have, and hash slots that hold all other
values, seen or not.  A pattern gets as much room as its load needs, partition after partition, and
its items are laid into that room, the largest first, each where the most room is left::

    partition     0        1        2        3        4       5
                  [ /a/@x          ][ /b/@y  ][/c][/d ][ ... ][ don't care ]

So load is even whatever the values' skew; a pattern with many values in one message can make it
visit only the partitions of that pattern; and a broker that hosts neighbouring partitions has few
structures in its routing query.  A value with more profiles than a partition holds is split.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TypeAlias

from registration.planning.exclusiveness import Pattern
from registration.planning.value_loads import ValueLoads

# A single value, or the number of a hash slot.
Item: TypeAlias = str | int

SLIVER = 0.03  # room below this share of a partition counts as none
LARGE = 0.06  # an item of more than this share of a partition is not easily placed
_EMPTY = 0.01  # what an item counts in addition, as a share of the mean


@dataclass(slots=True)
class Packing:
    """Where everything went, and ``loads`` of all partitions."""

    values: dict[Pattern, dict[str, tuple[int, ...]]] = field(default_factory=dict)
    slots: dict[Pattern, list[int]] = field(default_factory=dict)
    dont_care: tuple[int, ...] = ()
    loads: list[float] = field(default_factory=list)

    def put(self, pattern: Pattern, placed: Mapping[Item, tuple[int, ...]], slots: int) -> None:
        """The items of a pattern that has so many hash slots."""
        self.slots[pattern] = [placed[slot][0] for slot in range(slots)]
        self.values[pattern] = {
            item: placed[item] for item in sorted(placed, key=str) if isinstance(item, str)
        }


def pack(
    patterns: Sequence[Pattern], loads: ValueLoads, slots: Mapping[Pattern, int], partitions: int
) -> Packing:
    """Lay out all items; ``slots``: the number of hash slots of each pattern.

    "Don't care" profiles get the last partitions for themselves, as many as their load fills; if
    there are none, the last partition is kept for those to come.
    """
    packing, ordinary = begin_packing(loads, partitions)
    room = _Room(packing.loads, ordinary, loads.total - loads.dont_care)
    for pattern, items in _in_order(patterns, loads, slots, loads.total / partitions):
        packing.put(pattern, room.lay(items), slots[pattern])
    return packing


def begin_packing(loads: ValueLoads, partitions: int) -> tuple[Packing, int]:
    """With "don't care" profiles only; and how many partitions there are for others."""
    own = _dont_care_partitions(loads.dont_care, loads.total, partitions)
    packing = Packing(loads=[0.0] * partitions)
    packing.dont_care = tuple(range(partitions - max(own, 1), partitions))
    for partition in packing.dont_care[:own]:
        packing.loads[partition] = loads.dont_care / own
    return packing, partitions - own


def items_of(
    patterns: Sequence[Pattern], loads: ValueLoads, slots: Mapping[Pattern, int]
) -> dict[Pattern, dict[Item, float]]:
    """The load of each single value and of each hash slot."""
    items: dict[Pattern, dict[Item, float]] = {
        pattern: dict.fromkeys(range(slots[pattern]), 0.0) for pattern in sorted(patterns)
    }
    for pattern, slot_loads in loads.slots.items():
        items[pattern].update(slot_loads.items())
    for (pattern, value), load in loads.heavy.items():
        items[pattern][value] = load
    return items


def pieces_of(item: Item, load: float, target: float, partitions: int) -> int:
    """Into how many partitions an item goes: a value that is too large for one is split, but
    single profiles are not."""
    if not isinstance(item, str) or load <= target:
        return 1
    return max(1, min(ceil(load / target), int(load), partitions))


def _in_order(
    patterns: Sequence[Pattern],
    loads: ValueLoads,
    slots: Mapping[Pattern, int],
    partition_load: float,
) -> list[tuple[Pattern, dict[Item, float]]]:
    """The patterns with their items.

    Those with large items first, while there is room for them anywhere; else patterns of the same
    structure, thus of the same messages, stand next to each other.
    """
    large = LARGE * partition_load
    items = items_of(patterns, loads, slots)
    return sorted(items.items(), key=lambda entry: max(entry[1].values()) <= large)


def _dont_care_partitions(dont_care: float, total: float, partitions: int) -> int:
    if dont_care <= 0 or partitions == 1:
        return 0
    share = round(partitions * dont_care / total)
    return min(partitions - 1, max(1, min(share, int(dont_care))))


class _Room:
    """The partitions that are filled one after another."""

    def __init__(self, loads: list[float], partitions: int, total: float) -> None:
        self._loads = loads
        self._partitions = partitions
        self._target = total / partitions
        self._first = 0

    def lay(self, items: Mapping[Item, float]) -> dict[Item, tuple[int, ...]]:
        """The partitions of each item; several for one that was split."""
        # Largest remaining room first; equal ones in order.
        room = [(-quota, partition) for partition, quota in self._window(sum(items.values()))]
        heapq.heapify(room)
        placed: dict[Item, tuple[int, ...]] = {}
        # Slots that are empty today are spread like the others: values to come hash into them.
        share = _EMPTY * sum(items.values()) / max(len(items), 1)
        for item, load in sorted(items.items(), key=lambda entry: (-entry[1], str(entry[0]))):
            pieces = pieces_of(item, load, self._target, self._partitions)
            placed[item] = self._lay_pieces(load, pieces, share, room)
        return placed

    def _lay_pieces(
        self, load: float, pieces: int, share: float, room: list[tuple[float, int]]
    ) -> tuple[int, ...]:
        """Each piece into another partition; what is too large for the window goes elsewhere."""
        taken = []
        where = set()
        for _ in range(pieces):
            if room and load / pieces <= SLIVER * self._target - room[0][0]:
                quota, partition = heapq.heappop(room)
                taken.append((quota + load / pieces + share, partition))
            else:
                partition = self._emptiest()
            self._loads[partition] += load / pieces
            where.add(partition)
        for entry in taken:
            heapq.heappush(room, entry)
        return tuple(sorted(where))

    def _window(self, load: float) -> list[tuple[int, float]]:
        """The next partitions with room for so much, and how much each shall take."""
        window: list[tuple[int, float]] = []
        remaining = load
        partition = self._first
        while partition < self._partitions:
            free = self._target - self._loads[partition]
            if free > SLIVER * self._target:
                quota = min(free, remaining)
                window.append((partition, quota))
                remaining -= quota
                if remaining <= 0:
                    break
            if not window:
                self._first = partition + 1
            partition += 1
        return window

    def _emptiest(self) -> int:
        return min(
            range(self._partitions), key=lambda partition: (self._loads[partition], partition)
        )
