"""Access paths: how the index gets at a profile's candidates, and what is left to verify.

A matching plan has one spine and branches; each branch may be the spine as well, with what stood
below its step as a branch.  Of all their conditions one becomes the *access predicate*: an equality
where there is one, the one with the most different constants among the profiles; else a range,
which is another comparison with a number; else none, on a spine that leaves no doubt which elements
the rest is asked of, if there is one::

    /nitf[@version = "1"][head/pubdata/@edition.area = "SF"]//p

        spine       /nitf/head/pubdata
        access      @edition.area = "SF" at step 2
        residual    at step 0: @version = "1", //p

A routing query's conjunction has its paths as spines to choose from; those not chosen are found
anywhere in the message.

What the index cannot say, ``indexable`` gives None for: see condition_of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isnan, nan
from typing import NamedTuple, TypeAlias

from yfilter.engine.linear_paths import LinearStep
from yfilter.engine.matching_plan import MatchingPlan
from yfilter.engine.step_conditions import MIRRORED
from yfilter.index.atoms import number_key
from yfilter.index.residuals import LEVELS_MAX, STEPS_MAX
from yfilter.language.query_ast import (
    ANY,
    Comparison,
    Expression,
    Literal,
    NameTest,
    NodeKind,
    Operator,
    Origin,
    PathExpression,
)

_RANGES = (Operator.LT, Operator.LE, Operator.GT, Operator.GE)


# PERF: tuples, since a profile has ten of these; they are made faster than frozen dataclasses.
class Condition(NamedTuple):
    """What is asked of one element.

    ``kind``: an attribute or a text node; the element's string value has SELF and no test.
    ``operator`` None: that there is one.
    """

    kind: NodeKind
    test: NameTest | None
    operator: Operator | None = None
    value: str | int | Decimal | float = ""

    @property
    def is_equality(self) -> bool:
        return self.operator is Operator.EQ

    @property
    def is_range(self) -> bool:
        return self.operator in _RANGES and not isinstance(self.value, str)

    @property
    def key(self) -> bytes:
        """The value of an equality: see ``AtomTable.acquire``."""
        return self.value.encode() if isinstance(self.value, str) else number_key(self.number)

    @property
    def number(self) -> float:
        """The value as a number: untyped values, which become xs:double, are compared with it."""
        return float(self.value)


class Step(NamedTuple):
    """One step of a way down, and what is asked of its element."""

    descendant: bool
    test: NameTest
    conditions: Conditions = ()


# A way down: the spine from the message, or a nested path from its element.
Way: TypeAlias = tuple[Step, ...]
Conditions: TypeAlias = "tuple[Condition | Way | Anywhere, ...]"


@dataclass(frozen=True, slots=True)
class Anywhere:
    """A way from the message that has to be found, too, on whatever elements."""

    way: Way


class AccessPath(NamedTuple):
    """``access`` is a condition of the spine's step ``at``, or None."""

    spine: Way
    at: int = -1
    access: Condition | None = None


def indexable(plan: MatchingPlan) -> Way | None:
    """The plan as a spine whose steps carry their branches, if the index can say all of it."""
    return _way(plan, 0)


def choose(spines: Sequence[Way], constants: Callable[[Condition], int]) -> AccessPath:
    """The best access path, with one of the spines in it and the others found anywhere.

    ``constants`` tells how many values a condition's node is asked for.
    """
    possible = [
        AccessPath(way, at, condition)
        for way in (spines if len(spines) > 1 else _spines(spines[0]))
        for at, step in enumerate(way)
        for condition in step.conditions
        if isinstance(condition, Condition) and (condition.is_equality or condition.is_range)
    ]
    if not possible and len(spines) > 1:
        best = AccessPath(max(spines, key=len))
    elif not possible:
        best = AccessPath(next(filter(_is_certain, _spines(spines[0])), spines[0]))
    elif len(possible) == 1:
        best = possible[0]
    else:
        best = max(possible, key=lambda path: _worth(path, constants))
    return _with_others(best, spines) if len(spines) > 1 else best


def fixed_depth(way: Way, at: int) -> tuple[int, bool] | None:
    """Where a step's element is, given the last one's: so far up, or at a depth (True)."""
    below = at + 1
    while below < len(way) and not way[below].descendant:
        below += 1
    if below == len(way):
        return below - 1 - at, False
    above = at
    while above >= 0 and not way[above].descendant:
        above -= 1
    return (at, True) if above < 0 else None


def _is_certain(way: Way) -> bool:
    """Whether the elements are known that its conditions are asked of, given the last one."""
    return all(fixed_depth(way, at) is not None for at, step in enumerate(way) if step.conditions)


def _worth(path: AccessPath, constants: Callable[[Condition], int]) -> tuple[bool, float, int]:
    condition = path.access
    assert condition is not None
    # A condition with // on both sides has to be verified again on each way.
    certainty = 1.0 if fixed_depth(path.spine, path.at) is not None else 0.3
    return condition.is_equality, constants(condition) * certainty, path.at - len(path.spine)


def _with_others(path: AccessPath, spines: Sequence[Way]) -> AccessPath:
    first, *rest = path.spine
    others = tuple(Anywhere(way) for way in spines if way is not path.spine)
    first = first._replace(conditions=first.conditions + others)
    return path._replace(spine=(first, *rest))


def _spines(spine: Way) -> Iterator[Way]:
    """The spine, and each of its nested paths in its place."""
    yield spine
    for at, step in enumerate(spine):
        for condition in step.conditions:
            if isinstance(condition, (Condition, Anywhere)):
                continue
            others = tuple(other for other in step.conditions if other is not condition)
            below = (spine[at + 1 :],) if spine[at + 1 :] else ()
            upper = step._replace(conditions=others + below)
            if len(spine[:at]) + 1 + len(condition) <= STEPS_MAX:
                yield (*spine[:at], upper, *condition)


def _way(plan: MatchingPlan, level: int) -> Way | None:
    if level >= LEVELS_MAX or len(plan.spine.steps) > STEPS_MAX or plan.residuals:
        return None
    steps = []
    for at, step in enumerate(plan.spine.steps):
        conditions = _conditions(step)
        if conditions is None:
            return None
        nested: list[Condition | Way | Anywhere] = list(conditions)
        for branch in plan.branches_at(at):
            way = _way(branch, level + 1)
            if way is None:
                return None
            nested.append(way)
        steps.append(Step(step.descendant, step.test, tuple(nested)))
    return tuple(steps)


def _conditions(step: LinearStep) -> list[Condition] | None:
    found = []
    for selection in step.selections:
        condition = condition_of(selection)
        if condition is None:
            return None
        found.append(condition)
    return found


def condition_of(selection: Expression) -> Condition | None:
    """An attribute by its full name, a text node, or the string value of the element.

    Compared with a literal, in any order; ``!=`` with a string only.  None for anything else.
    """
    match selection:
        case PathExpression():
            leaf = _leaf(selection)
            return None if leaf is None or leaf.kind is NodeKind.SELF else leaf
        case Comparison(PathExpression() as path, operator, Literal(value)):
            return _comparison(path, operator, value)
        case Comparison(Literal(value), operator, PathExpression() as path):
            return _comparison(path, MIRRORED.get(operator, operator), value)
        case _:
            return None


def _comparison(
    path: PathExpression, operator: Operator, value: str | int | Decimal | float
) -> Condition | None:
    leaf = _leaf(path)
    if leaf is None:
        return None
    if isinstance(value, str):
        if operator not in (Operator.EQ, Operator.NE):
            return None
        return leaf._replace(operator=operator, value=value)
    if operator not in (Operator.EQ, *_RANGES) or isnan(_double(value)):
        return None
    return leaf._replace(operator=operator, value=value)


def _double(value: int | Decimal | float) -> float:
    """The number that an untyped value, which becomes an xs:double, is compared with."""
    try:
        return float(value)
    except OverflowError:
        return nan


def _leaf(path: PathExpression) -> Condition | None:
    if path.origin is not Origin.CONTEXT or len(path.steps) > 1:
        return None
    if not path.steps:
        return Condition(NodeKind.SELF, None)
    (step,) = path.steps
    if step.descendant or step.predicates or step.axis is not None:
        return None
    if step.kind is NodeKind.TEXT:
        return Condition(NodeKind.TEXT, None)
    if step.kind is NodeKind.ATTRIBUTE and step.test is not None:
        if ANY in (step.test.namespace, step.test.local):
            return None
        return Condition(NodeKind.ATTRIBUTE, step.test)
    return None
