"""Iterative dynamic programming (IDP; Kossmann and Stocker 2000): plans of queries of any size.

A query that is simple enough is searched whole.  Otherwise a greedy search gives a first plan,
blocks of a few items are planned by dynamic programming and become one unit, until few units are
left, and then windows of the plan that was found are planned anew while that pays.
Pairs of sets are counted, no seconds are measured, so the same query always has the same plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from math import inf

from registration.queries.join_plans import Chosen, Plans, pairs_of

PAIRS = 30_000
"""Pairs of sets that are searched whole: about 0.5 s of processor time with six sites."""


@dataclass(frozen=True, slots=True)
class Effort:
    """``pairs``: up to which a query is searched whole.  ``block_pairs`` and ``window_pairs``: of a
    block and of a window.  ``tried``: blocks that are judged by a greedy search each.
    ``blocks_max``: items up to which blocks are looked for, windows alone beyond."""

    pairs: int = PAIRS
    block_pairs: int = 1_000
    window_pairs: int = 500
    tried: int = 6
    blocks_max: int = 40
    rounds: int = 2


USUAL_EFFORT = Effort()
_BLOCKS, _WINDOWS = (6, 4, 3), (12, 8, 5, 3)
"""Sizes that are tried, the largest first."""


def search(plans: Plans, ends: Sequence[int], effort: Effort = USUAL_EFFORT) -> bool:
    """Finds plans of all items at the sites ``ends``; whether the search was a whole one."""
    items = [1 << item for item in range(plans.problem.items)]
    if exhaust(plans, items, effort.pairs):
        return True
    goal = _Goal(plans, ends)
    _greedy(plans, items, by_cost=True)
    _greedy(plans, items, by_cost=False)
    if len(items) <= effort.blocks_max:
        _blocks(plans, items, effort)
    _windows(plans, goal, effort)
    if goal.cost() == inf:  # a step came too late in each of them
        exhaust(plans, items, 64 * effort.pairs)
    return False


@dataclass(frozen=True, slots=True)
class _Goal:
    plans: Plans
    ends: Sequence[int]

    def cost(self) -> float:
        choice = self.plans.choices.get(self.plans.full)
        return inf if choice is None else min(choice.cost[site] for site in self.ends)

    def best(self) -> Chosen | None:
        """The best plan that is known."""
        if self.cost() == inf:
            return None
        choice = self.plans.choices[self.plans.full]
        return self.plans.chosen(self.plans.full, min(self.ends, key=choice.cost.__getitem__))


def exhaust(plans: Plans, units: Sequence[int], pairs: int, most: int | None = None) -> bool:
    """Plans each connected set of up to ``most`` units (None: of all); False, and nothing is done,
    if that takes more than so many pairs."""
    adjacent = _between(plans, units)
    found = list(islice(pairs_of(adjacent, most or len(units)), pairs + 1))
    if len(found) > pairs:
        return False
    whole: dict[int, int] = {1 << number: unit for number, unit in enumerate(units)}

    def items(numbers: int) -> int:
        known = whole.get(numbers)
        if known is None:
            low = numbers & -numbers
            known = whole[numbers] = whole[low] | items(numbers ^ low)
        return known

    by_set: dict[int, list[tuple[int, int]]] = {}
    for one, other in found:
        by_set.setdefault(one | other, []).append((items(one), items(other)))
    for numbers in sorted(by_set, key=int.bit_count):
        plans.combine(items(numbers), by_set[numbers])
    return True


def _between(plans: Plans, units: Sequence[int]) -> list[int]:
    """For each unit the numbers of the units next to it."""
    return [
        sum(1 << n for n, other in enumerate(units) if plans.near(unit) & other) for unit in units
    ]


def _greedy(plans: Plans, units: Sequence[int], by_cost: bool) -> None:
    """Combines, again and again, the two units whose combination costs least more than they do, or
    has the fewest bytes."""

    def price(one: int, other: int) -> float:
        rows, width, flow = plans.figures(one | other)
        low = [each for each in (plans.lowest(one), plans.lowest(other)) if each < inf]
        if not flow or not low:
            return inf
        if not by_cost:
            return rows * width
        plans.combine(one | other, [(one, other)])
        return plans.lowest(one | other) - sum(low)

    left = list(units)
    pairs = [
        (price(one, other), one, other)
        for one, other in combinations(left, 2)
        if plans.near(one) & other
    ]
    while len(left) > 1:
        cost, one, other = min(pairs, default=(inf, 0, 0))
        if cost == inf:
            return
        whole = one | other
        plans.combine(whole, [(one, other)])
        left = [unit for unit in left if not unit & whole]
        pairs = [pair for pair in pairs if not (pair[1] | pair[2]) & whole]
        near = plans.near(whole)
        pairs += [(price(whole, unit), whole, unit) for unit in left if near & unit]
        left.append(whole)


def _blocks(plans: Plans, items: Sequence[int], effort: Effort) -> None:
    """Plans blocks of units; the block with which a greedy search ends cheapest becomes a unit."""
    units = list(items)
    while len(units) > 1:
        if exhaust(plans, units, effort.block_pairs):
            return
        fits = (most for most in _BLOCKS if exhaust(plans, units, effort.block_pairs, most))
        most = next(fits, 2)
        if most == 2:
            exhaust(plans, units, len(units) ** 2, most)
        known = set(units)
        sets = [
            sum(units[number] for number in range(len(units)) if one >> number & 1)
            for one in _sets_of(_between(plans, units), most)
        ]
        sets = [each for each in sets if each in plans.choices and each not in known]
        if not sets:
            return
        chosen = _chosen_block(plans, units, sets, effort)
        units = [unit for unit in units if unit & ~chosen] + [chosen]


def _sets_of(adjacent: Sequence[int], most: int) -> set[int]:
    return {
        one | other for one, other in pairs_of(adjacent, most) if (one | other).bit_count() == most
    }


def _chosen_block(plans: Plans, units: list[int], sets: list[int], effort: Effort) -> int:
    def size(items: int) -> float:
        rows, width, _ = plans.figures(items)
        return rows * width

    def more(items: int) -> float:
        low = [plans.lowest(unit) for unit in units if not unit & ~items]
        return plans.lowest(items) - sum(each for each in low if each < inf)

    half = effort.tried // 2
    tried = dict.fromkeys(sorted(sets, key=size)[:half] + sorted(sets, key=more)[:half])
    best, best_cost = next(iter(tried)), inf
    for each in tried:
        rest = [unit for unit in units if unit & ~each] + [each]
        cost = _completed(plans, rest)
        if cost < best_cost:
            best, best_cost = each, cost
    return best


def _completed(plans: Plans, units: list[int]) -> float:
    _greedy(plans, units, by_cost=False)
    return plans.lowest(plans.full)


def _windows(plans: Plans, goal: _Goal, effort: Effort) -> None:
    """Takes the plan apart below each of its nodes, into as many parts as ``window_pairs`` allows,
    and plans those anew."""
    before = inf
    seen: set[tuple[int, ...]] = set()
    for _ in range(effort.rounds):
        if not goal.cost() < before * 0.999:
            return
        before = goal.cost()
        best = goal.best()
        for node in _nodes(best) if best is not None else ():
            for count in _WINDOWS:
                parts = _parts(node, count)
                if tuple(parts) in seen or exhaust(plans, parts, effort.window_pairs):
                    seen.add(tuple(parts))
                    break
        best = goal.best()
        for node in _nodes(best) if best is not None else ():
            plans.combine(node.items, [_pair(node)])


def _pair(node: Chosen) -> tuple[int, int]:
    if node.step >= 0:
        return node.inputs[0].items, 1 << node.step
    return node.inputs[0].items, node.inputs[1].items


def _nodes(node: Chosen) -> list[Chosen]:
    """The joins and steps of a plan, each behind those below it."""
    found = [each for below in node.inputs for each in _nodes(below)]
    if len(node.inputs) == 2 or node.step >= 0:
        found.append(node)
    return found


def _parts(node: Chosen, count: int) -> list[int]:
    """Up to ``count`` disjoint sets of items that make up a node, the largest taken apart first."""
    parts: list[tuple[int, Chosen | None]] = [(node.items, node)]
    while len(parts) < count:
        inner = [(n, each) for n, (_, each) in enumerate(parts) if each is not None]
        if not inner:
            break
        n, largest = max(inner, key=lambda each: each[1].items.bit_count())
        while len(largest.inputs) == 1 and largest.step < 0:
            largest = largest.inputs[0]
        if not largest.inputs:
            parts[n] = (largest.items, None)
            continue
        below: list[tuple[int, Chosen | None]] = [(each.items, each) for each in largest.inputs]
        if largest.step >= 0:
            below.append((1 << largest.step, None))
        parts[n : n + 1] = below
    return [items for items, _ in parts]
