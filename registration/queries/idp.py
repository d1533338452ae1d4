"""Iterative dynamic programming (IDP; Kossmann and Stocker 2000): plans of queries of any size.

A query that is simple enough is searched whole.  Otherwise greedy searches give a first plan, whose
windows of some joins are planned anew by dynamic programming (their IDP2), and whose items are
moved to any other place, while that pays.
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
    """``pairs``, ``window_pairs``: of sets, up to which a query, a window is searched whole;
    ``rounds``: of windows and moves."""

    pairs: int = PAIRS
    window_pairs: int = 1_500
    rounds: int = 8


USUAL_EFFORT = Effort()
_WINDOWS = (12, 8, 5, 3)
"""Parts of a window that are tried, the most first."""


def search(plans: Plans, ends: Sequence[int], effort: Effort = USUAL_EFFORT) -> bool:
    """Finds plans of all items at the sites ``ends``; whether the search was a whole one."""
    items = [1 << item for item in range(plans.problem.items)]
    if exhaust(plans, items, effort.pairs):
        return True
    goal = _Goal(plans, ends)
    _greedy(plans, items, by_cost=True)
    _greedy(plans, items, by_cost=False)
    _improve(plans, goal, effort)
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

    def nodes(self) -> list[Chosen]:
        """The joins and steps of the best plan that is known, each behind those below it."""
        if self.cost() == inf:
            return []
        choice = self.plans.choices[self.plans.full]
        site = min(self.ends, key=choice.cost.__getitem__)
        return _nodes(self.plans.chosen(self.plans.full, site))


def exhaust(plans: Plans, units: Sequence[int], pairs: int) -> bool:
    """Plans each connected set of units; False, and nothing is done, if that takes more pairs."""
    adjacent = [
        sum(1 << n for n, other in enumerate(units) if plans.near(unit) & other) for unit in units
    ]
    found = list(islice(pairs_of(adjacent), pairs + 1))
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


def _improve(plans: Plans, goal: _Goal, effort: Effort) -> None:
    """Takes the plan apart below each of its nodes, into as many parts as ``window_pairs`` allows,
    and plans those anew; moves items where that does not pay any more."""
    seen: set[tuple[int, ...]] = set()
    for _ in range(effort.rounds):
        worth = goal.cost() * 0.999
        for node in goal.nodes():
            for count in _WINDOWS:
                parts = _parts(node, count)
                if tuple(parts) in seen or exhaust(plans, parts, effort.window_pairs):
                    seen.add(tuple(parts))
                    break
        for node in goal.nodes():
            plans.combine(node.items, [_pair(node)])
        if not goal.cost() < worth:
            for item in range(plans.problem.items):
                _move(plans, 1 << item, goal.nodes())
            if not goal.cost() < worth:
                return


def _move(plans: Plans, item: int, nodes: Sequence[Chosen]) -> None:
    """Plans with an item at any other place in a plan: each of its nodes is planned with the item,
    and without."""

    def combine(pairs: Sequence[tuple[int, int]]) -> None:
        some = [(one, other) for one, other in pairs if plans.near(one) & other]
        plans.combine(pairs[0][0] | pairs[0][1], some)

    for node in nodes:
        one, other = _pair(node)
        if not node.items & item:
            for part in (one, other):
                if part.bit_count() == 1:
                    combine([(part, item)])
            combine([(node.items, item), (one | item, other), (one, other | item)])
        elif item not in (one, other):
            left, right = one & ~item, other & ~item
            combine([(left, right)])
            combine([(left | right, item), (left | item, right), (left, right | item)])


def _pair(node: Chosen) -> tuple[int, int]:
    if node.step >= 0:
        return node.inputs[0].items, 1 << node.step
    return node.inputs[0].items, node.inputs[1].items


def _nodes(node: Chosen) -> list[Chosen]:
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
