"""The planner: sums over a population in, a plan out (PEP, section 4.4).

1. Choose patterns that cover the population (pattern_cover.py).
2. See how the profiles fall on values when each follows the order of the patterns.  Where a value
   has more profiles than a partition holds, let those that can go by another pattern.
3. Pack values into partitions of even load (planner.py).
4. Predict, on sampled messages, what share of the partitions a message visits.
5. Give the partitions to brokers (planner.py).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, inf, log2
from typing import TypeAlias

from overlay.routing.broadcast_tree import broadcast_trees
from overlay.topology import Topology
from registration.planning.choice import Choice, stable_hash
from registration.planning.exclusiveness import Pattern
from registration.planning.pattern_cover import PATTERNS_MAX, Signature, choose_patterns
from registration.planning.plan import Facts, Plan, Rule
from registration.planning.value_loads import Population, ValueAt, ValueLoads

# -------------------------------------------------------------------------------------------------
# Packing: the values of the patterns into partitions of even load.
#
# Each pattern has *items*: single values that many profiles have, and hash slots that hold all
# other values, seen or not.  A pattern gets as much room as its load needs, partition after
# partition, and its items are laid into that room, the largest first, each where the most room is
# left::
#
#     partition     0        1        2        3        4       5
#                   [ /a/@x          ][ /b/@y  ][/c][/d ][ ... ][ don't care ]
#
# So load is even whatever the values' skew; a pattern with many values in one message can make it
# visit only the partitions of that pattern; and a broker that hosts neighbouring partitions has few
# structures in its routing query.  A value with more profiles than a partition holds is split.


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


# -------------------------------------------------------------------------------------------------


# -------------------------------------------------------------------------------------------------
# Which broker hosts which partition: by capacity, and near to what matches together.
#
# A message that visits several partitions of one broker crosses the links to it once.  So each
# broker, in the order in which the network branches, takes the partition that most often matches
# together with those that it and its nearer neighbours have, until its share of the load is
# reached.  Shares are in proportion to capacity.  A partition stays with the broker that has most
# of its profiles already, as long as that is not more than the broker's share.


# What matching together with a neighbour's partition is worth, against one of the same broker.
_NEIGHBOUR = 0.3
# Partitions that were never seen together: neighbours in the plan have similar patterns.
_SIMILAR = 1e-3


def assign_brokers(
    topology: Topology,
    loads: Sequence[float],
    visits: Sequence[tuple[frozenset[int], float]],
    held: Sequence[tuple[str, float]] = (),
) -> tuple[str, ...]:
    """The broker of each partition.

    ``visits``: the partitions that each of some messages visits, and how often that counts;
    ``held``: for each partition, the broker that has the most of its load already, and how much.
    ValueError when no broker has capacity.
    """
    quotas = _quotas(topology, sum(loads))
    affinity = _affinity(len(loads), visits)
    brokers = _kept(quotas, loads, held)
    free = {partition for partition, broker in enumerate(brokers) if not broker}
    drawn = [0.0] * len(loads)  # to what the broker that is being filled has
    order = [broker for broker in _in_tree_order(topology) if quotas.get(broker, 0.0) > 0]
    carried = 0.0  # what earlier brokers took beyond their quota, or left
    for place, broker in enumerate(order):
        last = place == len(order) - 1
        kept = [partition for partition, by in enumerate(brokers) if by == broker]
        room = quotas[broker] - carried - sum(loads[partition] for partition in kept)
        drawn = [_NEIGHBOUR * pull for pull in drawn]
        for partition in kept:
            for other, together in affinity[partition].items():
                drawn[other] += together
        while free:
            partition = max(free, key=lambda p: (drawn[p], -p))
            # The partition that fits by half is still taken, so that errors do not add up.
            if not last and loads[partition] > 2 * max(room, 0.0):
                break
            if not last and room <= 0:
                break
            room -= loads[partition]
            free.discard(partition)
            brokers[partition] = broker
            for other, together in affinity[partition].items():
                drawn[other] += together
        carried = -room
    return tuple(brokers)


def _kept(
    quotas: Mapping[str, float], loads: Sequence[float], held: Sequence[tuple[str, float]]
) -> list[str]:
    """The broker of each partition that stays, else ""; where most would move, first."""
    brokers = [""] * len(loads)
    room = {
        broker: quota + sum(loads) / len(loads) / 2 for broker, quota in quotas.items() if quota
    }
    for partition in sorted(range(len(held)), key=lambda p: (-held[p][1], p)):
        broker, load = held[partition]
        if load > loads[partition] / 2 and loads[partition] <= room.get(broker, 0.0):
            room[broker] -= loads[partition]
            brokers[partition] = broker
    return brokers


def _quotas(topology: Topology, load: float) -> dict[str, float]:
    capacity = sum(broker.capacity for broker in topology.brokers)
    if capacity <= 0:
        raise ValueError(f"no broker of {topology.name} has room for profiles (capacity)")
    return {broker.id: load * broker.capacity / capacity for broker in topology.brokers}


def _affinity(
    partitions: int, visits: Sequence[tuple[frozenset[int], float]]
) -> list[dict[int, float]]:
    """partition -> other -> how often both were visited by one message."""
    affinity: list[dict[int, float]] = [{} for _ in range(partitions)]
    for partition in range(partitions - 1):
        affinity[partition][partition + 1] = affinity[partition + 1][partition] = _SIMILAR
    for visited, times in visits:
        for one in visited:
            row = affinity[one]
            for other in visited:
                if other != one:
                    row[other] = row.get(other, 0.0) + times
    return affinity


def _in_tree_order(topology: Topology) -> list[str]:
    """Depth first from the broker in the middle, near children first: neighbours follow."""

    trees = broadcast_trees(topology)
    tree = min(trees.values(), key=lambda t: (max(t.latency_by_broker_ms.values()), t.root))
    order: list[str] = []
    stack = [tree.root]
    while stack:
        broker = stack.pop()
        order.append(broker)
        children = sorted(tree.children[broker], key=lambda b: (tree.latency_ms(b), b))
        stack.extend(reversed(children))
    return order


# -------------------------------------------------------------------------------------------------
# What a new plan keeps of the one in force, so that few profiles move.
#
# A plan from scratch moves most profiles although hardly any are new: each item goes where the most
# room is left, so a few more change that for all behind them.  Here the partitions of the plan in
# force stand for those of the new one, and each item stays in its own, the largest first, unless
# that is too full.  What does not fit, and what is new, goes to another partition of the same
# broker, else to one that has its pattern already, else to the emptiest.


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


# -------------------------------------------------------------------------------------------------


# How fine the items of a partition are: an item holds at most this part of one.
ITEMS_A_PARTITION = 32
PARTITIONS_A_BROKER = 8
PARTITIONS = 64  # without brokers
PROFILES_A_PARTITION = 8
KEPT_WORSE_MAX = 1.1  # times the share that messages visit by a plan from scratch
REPEATED = 4.0  # how often a pattern is taken to occur that the schema does not bound

Values = Mapping[Pattern, Sequence[str]]  # of one message, see PatternReader


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of the messages.

    ``at_most``: pattern -> values in a message by the schemas of the sources that have it;
    ``messages``: the values of sampled messages, with the number of times each counts; where there
    are none, ``measured``: what brokers have counted, as ``measured_values`` has it.
    """

    at_most: Callable[[Pattern], float] = field(default=lambda _: inf)
    messages: Sequence[tuple[Values, float]] = ()
    measured: Mapping[Pattern, float] = field(default_factory=dict)

    def expected(self, patterns: Iterable[Pattern]) -> dict[Pattern, float]:
        """Different values at each pattern in a message, on average."""
        if not self.messages:
            return {pattern: self._without_messages(pattern) for pattern in patterns}
        weight = sum(times for _, times in self.messages)
        sums = dict.fromkeys(patterns, 0.0)
        for values, times in self.messages:
            for pattern in values.keys() & sums.keys():
                sums[pattern] += len(set(values[pattern])) * times
        return {pattern: total / weight for pattern, total in sums.items()}

    def _without_messages(self, pattern: Pattern) -> float:
        return min(self.at_most(pattern), self.measured.get(pattern, REPEATED))


def measured_values(
    plan: Plan, messages: float, matched: Iterable[tuple[int, float]]
) -> dict[Pattern, float]:
    """At how many partitions a message matches on account of each pattern of a plan that was in
    force, of ``messages`` that ``matched`` (partition, how many of them) under it.

    What matches in a partition is put down to the patterns in it by their loads there.
    """
    rates = {partition: count / messages for partition, count in matched}
    where = {rule.pattern: (rule.where, rule.load / max(rule.spread, 1)) for rule in plan.rules}
    loads = dict.fromkeys(range(plan.partitions), 0.0)
    for partition in plan.dont_care:
        loads[partition] += plan.facts.dont_care / len(plan.dont_care)
    for partitions, load in where.values():
        for partition in partitions:
            loads[partition] += load
    return {
        pattern: sum(rates.get(p, 0.0) * load / loads[p] for p in partitions if loads[p])
        for pattern, (partitions, load) in where.items()
    }


def _hosting(topology: Topology) -> frozenset[str]:
    return frozenset(broker.id for broker in topology.brokers if broker.capacity > 0)


def partitions_for(topology: Topology | None, profiles: float) -> int:
    """K for a network: several for each broker that may host profiles, if so many profiles fill
    them."""
    brokers = len(_hosting(topology)) if topology else 0
    most = PARTITIONS_A_BROKER * brokers if topology else PARTITIONS
    return max(min(int(profiles / PROFILES_A_PARTITION), most), brokers, 1)


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """``partitions``: K; None: as ``partitions_for`` has it.  ``topology`` None: partitions are not
    given to brokers.  ``before``: the plan in force, of which the new one keeps what it can."""

    partitions: int | None = None
    topology: Topology | None = None
    before: Plan | None = None
    patterns_max: int = PATTERNS_MAX
    refused: int = 0  # profiles that could not be read, for the record


def make_plan(
    population: Population,
    options: PlanOptions,
    evidence: Evidence | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> Plan:
    """The plan of a population; ValueError for one without profiles or without partitions."""
    evidence = evidence or Evidence()
    report("which patterns there are")
    signatures = list(population.signatures())
    total = sum(signature.load for signature in signatures)
    if total <= 0:
        raise ValueError("there are no profiles to plan for")
    partitions = options.partitions
    if partitions is None:
        partitions = partitions_for(options.topology, total)
    if partitions < 1:
        raise ValueError(f"a plan needs at least one partition, not {partitions}")
    expected = evidence.expected({p for signature in signatures for p in signature.patterns})
    report(f"choosing among {len(expected):,} patterns")
    before = options.before
    known = [rule.pattern for rule in before.rules] if before else []
    order = choose_patterns(signatures, expected.__getitem__, options.patterns_max, known)
    slots = _slots(order, signatures, partitions)
    if before is not None:
        slots = kept_slots(slots, before)
    asked = {
        (pattern, value)
        for values, _ in evidence.messages
        for pattern in values.keys() & slots.keys()
        for value in values[pattern]
    }
    report(f"how profiles fall on the values of {len(order):,} patterns")
    choice, loads = _value_loads(population, order, slots, total / partitions, asked)
    report(f"packing {partitions:,} partitions")
    draft = _Draft(options, evidence, order, expected, choice, loads)
    packing = pack(order, loads, slots, partitions)
    fresh = draft.plan(packing)
    if before is None:
        return fresh
    brokers = _hosting(options.topology) if options.topology else before.brokers
    most = max(packing.loads)
    kept = pack_kept(order, loads, slots, partitions, before, brokers, most)
    for plan in (draft.plan(kept, before), draft.plan(packing, before)):
        if _is_as_good(plan, fresh, before):
            return plan
    return fresh


@dataclass(frozen=True, slots=True)
class _Draft:
    """A plan but for its packing."""

    options: PlanOptions
    evidence: Evidence
    order: Sequence[Pattern]
    expected: Mapping[Pattern, float]
    choice: Choice
    loads: ValueLoads

    def plan(self, packing: Packing, before: Plan | None = None) -> Plan:
        """``before``: partitions stay with its brokers, where these have most of them."""
        options, loads = self.options, self.loads
        plan = Plan(
            partitions=len(packing.loads),
            rules=_rules(self.order, self.choice, loads, packing, self.expected, self.evidence),
            dont_care=packing.dont_care,
            facts=Facts(
                load=round(loads.total, 3),
                refused=options.refused,
                dont_care=round(loads.dont_care, 3),
                loads=tuple(round(load, 3) for load in packing.loads),
                matched_share=0.0,
                samples=len(self.evidence.messages),
            ),
        )
        visits = [
            (visited_partitions(plan, values, loads.present), times)
            for values, times in self.evidence.messages
        ]
        share = round(_matched_share(plan, visits), 6)
        plan = replace(plan, facts=replace(plan.facts, matched_share=share))
        if (topology := options.topology) is None:
            return plan
        held = hosts_before(before, packing, loads) if before and before.brokers else ()
        brokers = assign_brokers(topology, plan.facts.loads, visits, held)
        share = round(_brokers_share(brokers, len(topology.brokers), visits), 6)
        facts = replace(plan.facts, brokers_share=share)
        return replace(plan, brokers=brokers, topology=topology.name, facts=facts)


def _is_as_good(plan: Plan, fresh: Plan, before: Plan) -> bool:
    """Whether messages visit hardly more by a plan than by one from scratch, and it is as even as
    that or the one before."""
    facts, best = plan.facts, fresh.facts
    return (
        facts.imbalance <= max(best.imbalance + SLIVER, before.facts.imbalance)
        and facts.matched_share <= best.matched_share * KEPT_WORSE_MAX
        and facts.brokers_share <= best.brokers_share * KEPT_WORSE_MAX
    )


def visited_partitions(
    plan: Plan, values: Values, present: Mapping[ValueAt, Collection[str]]
) -> frozenset[int]:
    """The partitions that a message visits; ``present``: see ``ValueLoads``."""
    visited = {
        partition
        for pattern, value in plan.placing(values)
        for first in present.get((pattern, value), ())
        for partition in plan.rule_of[pattern].partitions_of(first)
    }
    if plan.facts.dont_care:
        visited.update(plan.dont_care)
    return frozenset(visited)


def _slots(
    order: Sequence[Pattern], signatures: Iterable[Signature], partitions: int
) -> dict[Pattern, int]:
    """The number of hash slots of each pattern: a power of two, by its share of the load."""
    rank = {pattern: place for place, pattern in enumerate(order)}
    loads = dict.fromkeys(order, 0.0)
    total = 0.0
    for signature in signatures:
        total += signature.load
        chosen = [pattern for pattern in signature.patterns if pattern in rank]
        if chosen:
            loads[min(chosen, key=rank.__getitem__)] += signature.load
    items = ITEMS_A_PARTITION * partitions
    return {
        pattern: 2 ** max(0, ceil(log2(items * load / total)) if load else 0)
        for pattern, load in loads.items()
    }


def _value_loads(
    population: Population,
    order: Sequence[Pattern],
    slots: Mapping[Pattern, int],
    partition_load: float,
    asked: Collection[ValueAt],
) -> tuple[Choice, ValueLoads]:
    """The choice that avoids crowded values, and the loads under it."""
    choice = Choice({pattern: rank for rank, pattern in enumerate(order)})
    limit = partition_load / ITEMS_A_PARTITION
    loads = population.value_loads(choice, slots, limit, asked)
    crowded: dict[Pattern, dict[str, float]] = {}
    for (pattern, value), load in sorted(loads.heavy.items()):
        if load > partition_load:
            crowded.setdefault(pattern, {})[value] = round(load, 3)
    if crowded:
        choice = replace(choice, crowded=crowded)
        loads = population.value_loads(choice, slots, limit, asked)
    return choice, loads


def _rules(
    order: Sequence[Pattern],
    choice: Choice,
    loads: ValueLoads,
    packing: Packing,
    expected: Mapping[Pattern, float],
    evidence: Evidence,
) -> tuple[Rule, ...]:
    own = dict.fromkeys(order, 0.0)
    for (pattern, _), load in loads.heavy.items():
        own[pattern] += load
    for pattern, slot_loads in loads.slots.items():
        own[pattern] += sum(slot_loads.values())
    return tuple(
        Rule(
            pattern=pattern,
            at_most=evidence.at_most(pattern),
            expected=round(expected[pattern], 4),
            load=round(own[pattern], 3),
            values=packing.values[pattern],
            slots=tuple(packing.slots[pattern]),
            crowded=choice.crowded.get(pattern, {}),
        )
        for pattern in order
    )


def _matched_share(plan: Plan, visits: Sequence[tuple[frozenset[int], float]]) -> float:
    """The mean over the samples; without any, the most that the schemas allow."""
    if visits:
        weight = sum(times for _, times in visits)
        return sum(len(visited) * times for visited, times in visits) / weight / plan.partitions
    most = sum(min(rule.expected, rule.spread) for rule in plan.rules)
    if plan.facts.dont_care:
        most += len(plan.dont_care)
    return min(1.0, most / plan.partitions)


def _brokers_share(
    brokers: Sequence[str], number: int, visits: Sequence[tuple[frozenset[int], float]]
) -> float:
    """The mean share of all brokers that a sampled message visits; 1 if there are no samples."""
    weight = sum(times for _, times in visits)
    if not weight:
        return 1.0
    visited = sum(len({brokers[p] for p in found}) * times for found, times in visits)
    return visited / weight / number
