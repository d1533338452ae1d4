"""Iterative dynamic programming (IDP; Kossmann and Stocker 2000): plans of queries of any size.

A query that is simple enough is searched whole.  Otherwise greedy searches give a first plan, whose
windows of some joins are planned anew by dynamic programming while that pays (their IDP2).
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
    ``rounds``: of windows."""

    pairs: int = PAIRS
    window_pairs: int = 1_500
    rounds: int = 4


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
