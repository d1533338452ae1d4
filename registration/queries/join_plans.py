"""Dynamic programming over joins and functions, with the site of the rows as interesting property.

A ``Problem`` has numbers alone.  Its *items* are bits: first the inputs that are joined, then the
steps (functions, unnests) that work on rows.  For each set of items ``Plans`` has the cheapest
known plan by site.  All searches (dynamic programming, iterative, greedy) are orders in which pairs
of sets are combined, so what one search finds serves the next.

Costs are one scalar, seconds and money by weights (``cost_model.py``), and add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain, combinations
from math import inf

HASH, NESTED = 1.0, 0.02
"""Work of a row that a hash join takes or gives, and of a pair of rows that a nested loop compares,
in the unit of ``Problem.work``."""
_ROWS_MAX = 1e60  # so that no cost is infinite


@dataclass(frozen=True, slots=True)
class Input:
    """``access``: cost by each site where the rows can be had; ``flow``: bits of the sites where
    they may be."""

    rows: float
    access: Mapping[int, float]
    flow: int


@dataclass(frozen=True, slots=True)
class Step:
    """A function or unnest.  ``need``: bits of the items whose columns it reads; ``at``: cost of a
    start and of a row, by each site where it can work."""

    need: int
    rows_per_row: float
    at: Mapping[int, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Condition:
    """A predicate over ``items`` (bits); ``equal``: a hash join can use it."""

    items: int
    selectivity: float
    equal: bool = False


@dataclass(frozen=True, slots=True)
class Width:
    """Bytes a row of a column that ``item`` (its number) makes.  It is dropped once a set has all
    items of ``until``; -1: it is part of the result."""

    item: int
    bytes: float
    until: int


@dataclass(frozen=True, slots=True)
class FixedJoin:
    """A join whose ``right`` items, complete, meet a set with all ``left`` ones; ``both``: no other
    item may have joined the left ones before (a full outer join); ``stays``: what it gives is not
    sent, as later operators ask for the right rows again."""

    left: int
    right: int
    both: bool = False
    stays: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """``work``: cost of one row at an operator, by site; ``per_byte`` and ``per_send``: cost of
    moving, by sending and receiving site."""

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    conditions: tuple[Condition, ...]
    widths: tuple[Width, ...]
    work: tuple[float, ...]
    per_byte: tuple[tuple[float, ...], ...]
    per_send: tuple[tuple[float, ...], ...]
    fixed: tuple[FixedJoin, ...] = ()

    @property
    def items(self) -> int:
        """How many there are."""
        return len(self.inputs) + len(self.steps)


@dataclass(slots=True)
class Choice:
    """The cheapest plans of one set.  ``made``: cost of the rows where an operator makes them, by
    site, inf where none does, and ``by`` its two input sets (None: an access).  ``cost``: with
    sends, and ``source`` the site that sends them (the site itself: none)."""

    made: list[float]
    by: list[tuple[int, int] | None]
    cost: list[float] = field(default_factory=list)
    source: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Chosen:
    """A node of a plan.  ``inputs``: none (an access), one that is sent from another site, one and
    ``step``, or two that are joined."""

    items: int
    site: int
    inputs: tuple[Chosen, ...] = ()
    step: int = -1


def bits(items: int) -> Iterator[int]:
    """The numbers of the bits, ascending."""
    while items:
        low = items & -items
        yield low.bit_length() - 1
        items ^= low


class Plans:
    """The cheapest known plans of a problem, by set of items."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.choices: dict[int, Choice] = {}
        self.full = (1 << problem.items) - 1
        self._sites = range(len(problem.work))
        self.adjacent = _adjacent(problem)
        self.near = cache(partial(next_to, self.adjacent))
        self._equal = [0] * problem.items
        self._shares: list[list[tuple[int, float]]] = [[] for _ in range(problem.items)]
        for condition in problem.conditions:
            self._shares[condition.items.bit_length() - 1].append(
                (condition.items, condition.selectivity)
            )
            if condition.equal:
                for item in bits(condition.items):
                    self._equal[item] |= condition.items
        self._widths: list[list[tuple[float, int]]] = [[] for _ in range(problem.items)]
        for column in problem.widths:
            self._widths[column.item].append((column.bytes, column.until))
        self.figures = cache(self._figures)
        for item, entry in enumerate(problem.inputs):
            made = [entry.access.get(site, inf) for site in self._sites]
            self._choose(1 << item, Choice(made, [None] * len(made)))

    def combine(self, items: int, pairs: Iterable[tuple[int, int]]) -> Choice | None:
        """The plans of a set by pairs of sets that make it up; None if there is none."""
        rows, _, flow = self.figures(items)
        if not flow:
            return None
        choice = self.choices.get(items)
        made = [inf] * len(self._sites) if choice is None else choice.made
        by: list[tuple[int, int] | None] = [None] * len(made) if choice is None else choice.by
        better = False
        sites = [site for site in self._sites if flow >> site & 1]
        work = self.problem.work
        choices = self.choices
        for pair in pairs:
            one, other = pair
            left, right = choices.get(one), choices.get(other)
            if left is not None and right is not None:
                own = self.join_rows(one, other, rows)
                costs, others = left.cost, right.cost
                for site in sites:
                    cost = costs[site] + others[site] + own * work[site]
                    if cost < made[site]:
                        made[site], by[site], better = cost, pair, True
            elif left is not None or right is not None:
                base, step = (one, other) if left is not None else (other, one)
                entry = self._step(step)
                if entry is None or entry.need & ~base:
                    continue
                costs, taken = choices[base].cost, self.figures(base)[0]
                for site, (start, per_row) in entry.at.items():
                    cost = costs[site] + start + per_row * taken
                    if cost < made[site] and flow >> site & 1:
                        made[site], by[site], better = cost, (base, step), True
        if better:
            choice = Choice(made, by)
            self._choose(items, choice)
        return choice

    def lowest(self, items: int) -> float:
        """Cost of the cheapest plan of a set, wherever its rows are; inf if there is none."""
        choice = self.choices.get(items)
        return inf if choice is None else min(choice.cost)

    def chosen(self, items: int, site: int) -> Chosen:
        """The cheapest known plan of a set at a site; KeyError if there is none."""
        choice = self.choices[items]
        if choice.cost[site] == inf:
            raise KeyError(items)
        source = choice.source[site]
        if source != site:
            return Chosen(items, site, (self.chosen(items, source),))
        pair = choice.by[site]
        if pair is None:
            return Chosen(items, site)
        one, other = pair
        if other in self.choices:
            return Chosen(items, site, (self.chosen(one, site), self.chosen(other, site)))
        return Chosen(items, site, (self.chosen(one, site),), other.bit_length() - 1)

    def _step(self, items: int) -> Step | None:
        number = items.bit_length() - 1 - len(self.problem.inputs)
        return self.problem.steps[number] if number >= 0 and not items & (items - 1) else None

    def join_rows(self, one: int, other: int, rows: float) -> float:
        """Work of a join: hashed if a condition of equality spans the two sets."""
        left, right = self.figures(one)[0], self.figures(other)[0]
        small, rest = (one, other) if one.bit_count() <= other.bit_count() else (other, one)
        equal = any(self._equal[item] & rest for item in bits(small))
        return join_work(left, right, rows, equal)

    def _figures(self, items: int) -> tuple[float, float, int]:
        """Rows of a set, bytes of one, and bits of the sites where they may be (0: the set is part
        of no plan)."""
        problem, count = self.problem, len(self.problem.inputs)
        rows, width, flow = 1.0, 8.0, (1 << len(self._sites)) - 1
        for item in bits(items):
            if item < count:
                entry = problem.inputs[item]
                rows *= entry.rows
                flow &= entry.flow
            else:
                step = problem.steps[item - count]
                rows *= step.rows_per_row
                if step.need & ~items:
                    return 1.0, 0.0, 0
            for condition, share in self._shares[item]:
                if not condition & ~items:
                    rows *= share
            for size, until in self._widths[item]:
                if until & ~items:
                    width += size
        if not all(_may_be(items, join) for join in problem.fixed):
            return 1.0, 0.0, 0
        if not self._can_end(items, flow):
            return 1.0, 0.0, 0
        return min(max(rows, 1.0), _ROWS_MAX), width, flow

    def _can_end(self, items: int, flow: int) -> bool:
        """Whether each step that reads a part of the set can still be had where the set may go."""
        inputs = self.problem.inputs
        count = len(inputs)
        for number, step in enumerate(self.problem.steps):
            if items >> (count + number) & 1 or not step.need & items:
                continue
            allowed = flow
            for item in bits(step.need & ~items & ((1 << count) - 1)):
                allowed &= inputs[item].flow
            if not any(allowed >> site & 1 for site in step.at):
                return False
        return True

    def _choose(self, items: int, choice: Choice) -> None:
        rows, width, flow = self.figures(items)
        if min(choice.made) < inf:
            if any(
                join.stays and items & ~join.right and items & join.right
                for join in self.problem.fixed
            ):
                choice.cost, choice.source = choice.made, list(self._sites)
            else:
                choice.cost, choice.source = sends(self.problem, choice.made, rows * width, flow)
            self.choices[items] = choice


def sends(
    problem: Problem, made: Sequence[float], size: float, flow: int
) -> tuple[list[float], list[int]]:
    """The cost at each site of so many bytes that are ``made`` at some, and the site that sends
    them: from the cheapest site on, as shortest paths over the sites of ``flow``."""
    cost, source = list(made), list(range(len(made)))
    left = [site for site in source if flow >> site & 1]
    for site in source:
        if not flow >> site & 1:
            cost[site] = inf
    while left:
        nearest = min(left, key=cost.__getitem__)
        left.remove(nearest)
        base = cost[nearest]
        per_byte, per_send = problem.per_byte[nearest], problem.per_send[nearest]
        for site in left:
            there = base + size * per_byte[site] + per_send[site]
            if there < cost[site]:
                cost[site], source[site] = there, nearest
    return cost, source


def join_work(left: float, right: float, rows: float, equal: bool) -> float:
    """Of a join, in the unit of ``Problem.work``, by rows taken and given."""
    return HASH * (left + right + rows) + (0.0 if equal else NESTED * left * right)


def _may_be(items: int, join: FixedJoin) -> bool:
    whole = join.left | join.right
    if not whole & ~items:
        return True
    if items & join.right:
        return not items & ~join.right
    return not join.both or not items & join.left or not items & ~join.left


def _adjacent(problem: Problem) -> list[int]:
    """For each item the items that are combined with it: by a condition, a need, a fixed join; and
    parts of the query that nothing connects, each with each."""
    adjacent = [0] * problem.items
    count = len(problem.inputs)
    groups = [condition.items for condition in problem.conditions]
    groups += [step.need | 1 << (count + number) for number, step in enumerate(problem.steps)]
    groups += [join.left | join.right for join in problem.fixed]
    for group in groups:
        for item in bits(group):
            adjacent[item] |= group & ~(1 << item)
    parts: list[int] = []
    for item in range(problem.items):
        if not any(part >> item & 1 for part in parts):
            part = 1 << item
            while new := next_to(adjacent, part):
                part |= new
            parts.append(part)
    for part in parts:
        for other in parts:
            if part != other:
                for item in bits(part):
                    adjacent[item] |= other
    return adjacent


def next_to(adjacent: Sequence[int], items: int) -> int:
    """The items next to a set, without its own."""
    near = 0
    for item in bits(items):
        near |= adjacent[item]
    return near & ~items


def pairs_of(adjacent: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Each pair of connected sets without common items and with an edge between them, once
    (Moerkotte and Neumann, DPccp)."""
    near = cache(partial(next_to, adjacent))

    def grown(items: int, excluded: int) -> Iterator[int]:
        """Connected sets of ``items`` and more."""
        border = near(items) & ~excluded
        excluded |= border
        singles = [1 << item for item in bits(border)]
        for size in range(1, len(singles) + 1):
            for some in combinations(singles, size):
                more = items | sum(some)
                yield more
                yield from grown(more, excluded)

    for first in range(len(adjacent) - 1, -1, -1):
        lower = (1 << (first + 1)) - 1
        start = 1 << first
        for one in chain((start,), grown(start, lower)):
            excluded = (one & -one) * 2 - 1 | one
            border = near(one) & ~excluded
            for item in bits(border):
                other = 1 << item
                below = border & (other * 2 - 1)
                yield one, other
                for more in grown(other, excluded | below):
                    yield one, more
