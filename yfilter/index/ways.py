"""Ways: what a matching plan asks for, step by step, in the form that the index works with.

A plan's spine becomes a way down from the message; its branches become ways down from the elements
of their steps, beside what is asked of these themselves::

    /nitf[@version = "1"][head/pubdata/@edition.area = "SF"]//p

    /nitf     @version = "1", the way  /head  /pubdata with @edition.area = "SF"
    //p

What the index cannot say, ``indexable`` gives None for: see condition_of.
"""

from __future__ import annotations

from decimal import Decimal
from math import isnan, nan
from typing import NamedTuple, TypeAlias

from yfilter.engine.linear_paths import LinearStep
from yfilter.engine.matching_plan import MatchingPlan
from yfilter.engine.step_conditions import MIRRORED
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
Conditions: TypeAlias = "tuple[Condition | Way, ...]"


def indexable(plan: MatchingPlan) -> Way | None:
    """The plan as a spine whose steps carry their branches, if the index can say all of it."""
    return _way(plan, 0)


def _way(plan: MatchingPlan, level: int) -> Way | None:
    if level >= LEVELS_MAX or len(plan.spine.steps) > STEPS_MAX or plan.residuals:
        return None
    steps = []
    for at, step in enumerate(plan.spine.steps):
        conditions = _conditions(step)
        if conditions is None:
            return None
        nested: list[Condition | Way] = list(conditions)
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
