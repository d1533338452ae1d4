"""Generalisation: fewer, wider disjuncts when a routing query outgrows its budget (section 4.2.1).

A wider disjunct stands for several, and lets a few messages more pass, never one less.  What may
take the place of some disjuncts:

=====================  ==========================================================================
method                 ``/a/b[@x = "3"][@y]/c and /a/d[@z = "u"]`` becomes
=====================  ==========================================================================
drop one part          ``/a/b[@x = "3"]/c and /a/d[@z = "u"]``, ``/a/b[@x = "3"][@y]/c``, ...
a run of steps to //   ``//c``
keep one equality      ``/a/b[@x = "3"]``, ``//b[@x = "3"]``, ``//*[@x = "3"]``
a set of = to a range  ``/a/b[@x >= 3][@x <= 9][@y]/c and /a/d[@z = "u"]`` for 3, 5 and 9
=====================  ==========================================================================

Which ones: those that save most for what they let pass.  A message passes for nothing when the
wide disjunct holds and none of those that it stands for does; how often that is, is known where it
was measured (``measured_costs.py``), else estimated with conditions taken to be independent
(``_Shares``).  How many values there are is not known where only
some of them are asked for, so an equality is taken to hold rarely whichever it is, and between two
texts to lie many others; only whole numbers can be seen to lie close together.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf, prod
from typing import TypeAlias

from yfilter.engine.implication import Leaf, LeafCondition, leaf_condition
from yfilter.engine.linear_paths import (
    ANY_MESSAGE,
    Conjunction,
    LinearPath,
    LinearStep,
    without_implied,
)
from yfilter.language.numbers import parse_double
from yfilter.language.query_ast import (
    ANY,
    ANY_NAME,
    Comparison,
    Expression,
    Literal,
    LocationStep,
    NodeKind,
    Operator,
    Origin,
    PathExpression,
)
from yfilter.language.query_text import unparse

# What a disjunct costs in a table beside its text, its syntax tree and its places in forest and
# engine: measured, see docs/benchmarks.md.
DISJUNCT_BYTES = 5 * 1024


@dataclass(frozen=True, slots=True)
class Budget:
    """How large a routing query may become; ``bytes_max`` counts ``disjunct_bytes``."""

    disjuncts_max: int
    bytes_max: int

    def allows(self, disjuncts: int, size: int, share: float = 1.0) -> bool:
        return disjuncts <= share * self.disjuncts_max and size <= share * self.bytes_max

    def weight(self, disjunct: Conjunction) -> float:
        """The part of the budget that a disjunct takes."""
        return 1 / self.disjuncts_max + disjunct_bytes(disjunct) / self.bytes_max


UNBOUNDED = Budget(2**62, 2**62)


def disjunct_bytes(disjunct: Conjunction) -> int:
    """What a disjunct costs in a routing table, in bytes."""
    return DISJUNCT_BYTES + len(disjunct.text)


@dataclass(frozen=True, slots=True)
class Wider:
    """A disjunct in the place of several; ``cost``: the share of all messages that are thought to
    pass for nothing because of it."""

    disjunct: Conjunction
    cost: float


def generalise(
    disjuncts: Sequence[Conjunction],
    budget: Budget,
    excess: float,
    cost_of: Callable[[Conjunction, float], float] = lambda disjunct, cost: cost,
) -> Iterator[Wider | None]:
    """Wider disjuncts that take the place of some of ``disjuncts`` and make their weight in
    ``budget`` less by ``excess`` or more, if that can be done in one round; best first.

    Each covers at least two of them; none when nothing can be said about any two of them that is
    less than everything.  ``cost_of``: what is known of the cost of a disjunct, given what it is
    thought to be.  None between them after some work, so that the caller can do something else.
    """
    shares = _Shares(disjuncts)
    left = dict.fromkeys(range(len(disjuncts)))
    weights = [budget.weight(disjunct) for disjunct in disjuncts]

    def saving(group: _Group) -> float:
        return sum(weights[member] for member in group.members if member in left) - group.weight

    heap: list[tuple[float, int, _Group]] = []
    for group in _groups(disjuncts, shares):
        if group is not None:
            made = group.make()
            group.weight = budget.weight(made)
            group.cost = cost_of(made, group.cost)
            heap.append((-min(saving(group), excess) / group.cost, len(heap), group))
        if group is None or len(heap) % _GROUPS_A_BREATH == 0:
            yield None
    heapq.heapify(heap)
    while heap and excess > 0:
        score, order, group = heapq.heappop(heap)
        now = -min(saving(group), excess) / group.cost
        if now >= 0:
            continue
        if now > score and heap and now > heap[0][0]:  # others have taken some of its members
            heapq.heappush(heap, (now, order, group))
            continue
        excess -= saving(group)
        for member in group.members:
            left.pop(member, None)
        yield Wider(group.make(), group.cost)


_GROUPS_A_BREATH = 16


@dataclass(slots=True, eq=False)
class _Group:
    """Disjuncts (their numbers) that ``make`` covers; ``cost``: the messages that pass for
    nothing, as a share of all."""

    members: list[int]
    make: Callable[[], Conjunction]
    cost: float
    weight: float = 0.0


_MISSED_MIN = 1e-4  # so that of two that seem to cost nothing the narrower one is better
_Paths: TypeAlias = tuple[LinearPath, ...]


def _same(made: Conjunction) -> Conjunction:
    return made


class _Texts:
    """The texts of conjunctions that are not made yet; a step is written once."""

    def __init__(self) -> None:
        self._steps: dict[LinearStep, str] = {}

    def of(self, paths: _Paths) -> str:
        texts = {"".join(map(self._of_step, path.steps)) for path in paths}
        return " and ".join(sorted(texts))

    def _of_step(self, step: LinearStep) -> str:
        text = self._steps.get(step)
        if text is None:
            text = self._steps[step] = str(LinearPath((step,)))
        return text


def _groups(disjuncts: Sequence[Conjunction], shares: _Shares) -> Iterator[_Group | None]:
    """All groups of at least two; None for each disjunct that was looked at."""
    texts = _Texts()
    wider: dict[str, tuple[_Paths, list[int]]] = {}
    values: dict[tuple[str, Leaf], list[_Equality]] = defaultdict(list)
    for number, disjunct in enumerate(disjuncts):
        wider_paths = map(without_implied, _wider(disjunct.paths))
        candidates = {texts.of(paths): paths for paths in wider_paths}
        for text, paths in candidates.items():
            if text not in (disjunct.text, ANY_MESSAGE.text):
                wider.setdefault(text, (paths, []))[1].append(number)
        for equality in _equalities(number, disjunct):
            values[equality.pattern, equality.leaf].append(equality)
        yield None
    for paths, members in wider.values():
        if len(members) > 1:
            made = Conjunction(paths)
            share = shares.of(made)
            parts = [min(1.0, shares.of(disjuncts[member]) / share) for member in members]
            missed = prod(1 - part for part in parts)
            yield _Group(members, partial(_same, made), share * max(missed, _MISSED_MIN))
    for equalities in values.values():
        yield from _ranges(equalities, shares)


# --- structure and parts ----------------------------------------------------------------------


def _wider(paths: _Paths) -> Iterator[_Paths]:
    """What a disjunct may become, values as they are."""
    for at, path in enumerate(paths):
        if len(paths) > 1:
            yield paths[:at] + paths[at + 1 :]
        for narrower in _without_a_part(path):
            yield (*paths[:at], narrower, *paths[at + 1 :])
        yield from ((kept,) for kept in _essences(path))


def _without_a_part(path: LinearPath) -> Iterator[LinearPath]:
    """The path without one of its conditions, one of its names, or its last step."""
    for at, step in enumerate(path.steps):
        for condition in step.selections:
            others = tuple(other for other in step.selections if other != condition)
            yield _with_step(path, at, replace(step, selections=others))
        if step.test != ANY_NAME and at < len(path.steps) - 1:
            yield _with_step(path, at, replace(step, test=ANY_NAME))
    if len(path.steps) > 1:
        yield LinearPath(path.steps[:-1])


def _essences(path: LinearPath) -> Iterator[LinearPath]:
    """One equality with the way to it, with its element only, or alone; the last name alone."""
    for at, step in enumerate(path.steps):
        for condition in step.selections:
            if _is_equality(leaf_condition(condition)):
                bare = tuple(LinearStep(above.descendant, above.test) for above in path.steps[:at])
                yield LinearPath((*bare, replace(step, selections=(condition,))))
                yield LinearPath((LinearStep(True, step.test, (condition,)),))
                yield LinearPath((LinearStep(True, ANY_NAME, (condition,)),))
    named = [step.test for step in path.steps if step.test.local != ANY]
    if named:
        yield LinearPath((LinearStep(True, named[-1]),))


def _with_step(path: LinearPath, at: int, step: LinearStep) -> LinearPath:
    return LinearPath((*path.steps[:at], step, *path.steps[at + 1 :]))


# --- values -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Equality:
    """``leaf = value`` at a step of a path of disjunct ``number``; ``pattern``: all the rest."""

    number: int
    disjunct: Conjunction
    place: tuple[int, int, Expression]
    leaf: Leaf
    value: str
    pattern: str

    def as_range(self, low: str, high: str) -> Conjunction:
        """The disjunct with a range instead of the value."""
        path_at, step_at, condition = self.place
        path = self.disjunct.paths[path_at]
        step = path.steps[step_at]
        others = tuple(other for other in step.selections if other != condition)
        bounds = (_bound(self.leaf, Operator.GE, low), _bound(self.leaf, Operator.LE, high))
        ranged = _with_step(path, step_at, replace(step, selections=others + bounds))
        paths = self.disjunct.paths
        return Conjunction((*paths[:path_at], ranged, *paths[path_at + 1 :]))


def _equalities(number: int, disjunct: Conjunction) -> Iterator[_Equality]:
    for path_at, path in enumerate(disjunct.paths):
        for step_at, step in enumerate(path.steps):
            for condition in step.selections:
                known = leaf_condition(condition)
                if known is None or not _is_equality(known):
                    continue
                rest = disjunct.text.replace(unparse(condition), "=", 1)
                place = (path_at, step_at, condition)
                yield _Equality(number, disjunct, place, known.leaf, str(known.value), rest)


def _ranges(equalities: list[_Equality], shares: _Shares) -> Iterator[_Group]:
    """Disjuncts that are equal but for one value, halved again and again at the widest gap."""
    by_value: dict[str, list[int]] = defaultdict(list)
    for equality in equalities:
        by_value[equality.value].append(equality.number)
    if len(by_value) < _RANGE_VALUES_MIN:
        return
    one = equalities[0]
    share = shares.without_equality(one.disjunct, one.leaf)
    ordered = sorted(by_value, key=_order)
    pending = [(0, len(ordered))]
    while pending:
        start, end = pending.pop()
        if end - start < _RANGE_VALUES_MIN:
            continue
        low, high = ordered[start], ordered[end - 1]
        if _is_numeric(low) is _is_numeric(high):
            cost = share * shares.missed_between(one.leaf, low, high, end - start)
            members = [number for value in ordered[start:end] for number in by_value[value]]
            yield _Group(members, partial(one.as_range, low, high), cost)
        middle = max(
            range(start + max(1, (end - start) // 4), end - max(1, (end - start) // 4) + 1),
            key=lambda at: _distance(ordered[at - 1], ordered[at]),
        )
        pending += [(start, middle), (middle, end)]


def _distance(low: str, high: str) -> float:
    """How far two neighbouring values are apart; nothing is known of texts."""
    if _is_numeric(low) and _is_numeric(high):
        return float(high) - float(low)
    return 0.0 if _is_numeric(low) is _is_numeric(high) else inf


_RANGE_VALUES_MIN = 2


def _bound(leaf: Leaf, relation: Operator, value: str) -> Expression:
    """``leaf >= value``, as a number where the value is one."""
    steps = (LocationStep(False, leaf.kind, leaf.test),)
    path = PathExpression(Origin.CONTEXT, () if leaf.kind is NodeKind.SELF else steps)
    return Comparison(path, relation, Literal(_number(value) if _is_numeric(value) else value))


def _number(value: str) -> int | float:
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < _EXACT_BELOW else number


def _is_numeric(value: str) -> bool:
    number = parse_double(value)
    return number is not None and abs(number) < _NUMBERS_BELOW


_EXACT_BELOW = 2**53
_NUMBERS_BELOW = 1e300  # so that neither NaN nor an infinity is written


def _order(value: str) -> tuple[bool, float, str]:
    return (False, float(value), value) if _is_numeric(value) else (True, 0.0, value)


def _is_equality(known: LeafCondition | None) -> bool:
    return known is not None and known.operator is Operator.EQ and isinstance(known.value, str)


# --- how often a disjunct holds ---------------------------------------------------------------

# Of what a message says nothing is known, so what could hold of most is taken to do so: to think
# that too often costs a better choice, to think it too seldom lets every message pass.
_SHARE_OF_RANGE, _SHARE_OF_CONDITION = 0.95, 0.9
_SHARE_OF_NAME = 0.95  # so that of two paths the one that says more is the narrower
_VALUES_LEAST = 200  # of any leaf
_TEXTS_BETWEEN = 10  # values that exist for each that is asked for


class _Shares:
    """The share of messages that satisfy a disjunct, guessed from the disjuncts of a table."""

    def __init__(self, disjuncts: Iterable[Conjunction]) -> None:
        values: dict[Leaf, set[str]] = defaultdict(set)
        for number, disjunct in enumerate(disjuncts):
            for equality in _equalities(number, disjunct):
                values[equality.leaf].add(equality.value)
        self._values = {leaf: max(_VALUES_LEAST, len(found)) for leaf, found in values.items()}
        self._known: dict[Conjunction, float] = {}

    def of(self, disjunct: Conjunction) -> float:
        known = self._known.get(disjunct)
        if known is None:
            known = self._known[disjunct] = prod(map(self._of_path, disjunct.paths))
        return known

    def without_equality(self, disjunct: Conjunction, leaf: Leaf) -> float:
        """The disjunct, had it not one equality of this leaf."""
        return self.of(disjunct) * self._values_of(leaf)

    def missed_between(self, leaf: Leaf, low: str, high: str, asked: int) -> float:
        """The share of the values of a leaf that lie in a range without being asked for."""
        there = asked * float(_TEXTS_BETWEEN)
        if _is_numeric(low) and _is_numeric(high):
            width = float(high) - float(low) + 1
            whole = float(low).is_integer() and float(high).is_integer()
            there = width if whole else max(width, there)
        return max(min(1.0, (there - asked) / self._values_of(leaf)), _MISSED_MIN)

    def _values_of(self, leaf: Leaf) -> int:
        return self._values.get(leaf, _VALUES_LEAST)

    def _of_path(self, path: LinearPath) -> float:
        named = sum(step.test != ANY_NAME for step in path.steps)
        return _SHARE_OF_NAME**named * prod(
            self._of_condition(condition) for step in path.steps for condition in step.selections
        )

    def _of_condition(self, condition: Expression) -> float:
        known = leaf_condition(condition)
        if known is None or known.operator is None:
            return _SHARE_OF_CONDITION
        if known.operator is Operator.EQ:
            return 1 / self._values_of(known.leaf)
        return _SHARE_OF_RANGE
