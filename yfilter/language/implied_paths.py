"""What a condition implies that the routing query can say: paths that have to select something.

=====================================  ============================================
a condition                            implies
=====================================  ============================================
``count(a/b) > 1``                     ``a/b``
``a eq "x"``                           ``a = "x"``
``a = b``, ``a is b``, ``a << b``      ``a`` and ``b``
``string(a) = "x"``, ``number(a) > 5`` ``a``
``exists(a)``                          ``a``
``some $v in a satisfies …``           ``a``
=====================================  ============================================

Nothing is implied by what is not understood, so a message that holds a condition always holds what
is implied; positions and axes that do not lead down are left out of the paths.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from yfilter.language.comparison import HOLDS
from yfilter.language.positions import downward
from yfilter.language.query_ast import (
    VALUE_COMPARISONS,
    And,
    Comparison,
    Expression,
    FunctionCall,
    Literal,
    Operation,
    Operator,
    Or,
    Origin,
    PathExpression,
    Quantified,
)
from yfilter.language.shapes import Blank, NeedsWords

_NODE_COMPARISONS = frozenset(("is", "<<", ">>"))
_STRINGS = frozenset(("string", "normalize-space", "lower-case", "upper-case"))
_LOOKED_AT = _STRINGS | {"count", "number"}


def with_implied(path: PathExpression) -> PathExpression:
    """The path, with what its conditions imply beside each of them, at any depth."""
    steps = []
    for step in path.steps:
        if step.predicates:
            predicates: dict[Expression, None] = {}
            for predicate in step.predicates:
                predicates[_deeper(predicate)] = None
                predicates.update(dict.fromkeys(implied(predicate)))
            step = replace(step, predicates=tuple(predicates))  # noqa: PLW2901
        steps.append(step)
    return replace(path, steps=tuple(steps))


def _deeper(condition: Expression) -> Expression:
    match condition:
        case PathExpression():
            return with_implied(condition)
        case And(parts):
            return And(tuple(map(_deeper, parts)))
        case Or(parts):
            return Or(tuple(map(_with_own, parts)))
        case Comparison(PathExpression() as path, comparison, Literal() as literal):
            return Comparison(with_implied(path), comparison, literal)
        case _:
            return condition


def _with_own(alternative: Expression) -> Expression:
    """An alternative together with what it implies; the others need not hold."""
    parts = tuple(dict.fromkeys((_deeper(alternative), *implied(alternative))))
    return parts[0] if len(parts) == 1 else And(parts)


def implied(condition: Expression) -> Iterator[Expression]:
    """Conditions of paths from the context item, or the message, that hold when this one does."""
    match condition:
        case And(parts):
            for part in parts:
                yield from implied(part)
        case Operation(name, (left, right)) if name in VALUE_COMPARISONS:
            yield from _of_pair(left, right, VALUE_COMPARISONS[name])
        case Operation(name, (left, right)) if name in _NODE_COMPARISONS:
            yield from (*_path(left), *_path(right))
        case Comparison(PathExpression() as left, _, PathExpression() as right):
            yield from (*_path(left), *_path(right))
        case Comparison(FunctionCall() as call, comparison, Literal(value)):
            yield from _of_call(call, comparison, value)
        case FunctionCall("boolean" | "exists", (PathExpression() as path,)):
            yield from _path(path)
        case Quantified(False, ((_, PathExpression() as path), *_)):
            yield from _path(path)


def _of_pair(left: Expression, right: Expression, comparison: Operator) -> Iterator[Expression]:
    """A value comparison: with a string it is the general one of a single value."""
    if isinstance(right, Literal) and isinstance(right.value, str):
        for path in _path(left):
            yield Comparison(path, comparison, right)
    else:
        yield from (*_path(left), *_path(right))
    if isinstance(left, FunctionCall) and isinstance(right, Literal):
        yield from _of_call(left, comparison, right.value)


def _of_call(
    call: FunctionCall, comparison: Operator, value: str | int | Decimal | float
) -> Iterator[Expression]:
    """A function of one path compared with a literal, where that does not hold for no nodes."""
    if len(call.arguments) != 1:
        return
    if call.name in _LOOKED_AT and isinstance(value, Blank):
        raise NeedsWords  # whether it holds for nothing depends on the value
    of_nothing: float | str
    if call.name == "count" and not isinstance(value, str):
        of_nothing = 0
    elif call.name == "number" and not isinstance(value, str):
        of_nothing = float("nan")
    elif call.name in _STRINGS and isinstance(value, str):
        if comparison is Operator.EQ and value:
            yield from _path(call.arguments[0])
        return
    else:
        return
    if not HOLDS[comparison](of_nothing, float(value)):
        yield from _path(call.arguments[0])


def _path(expression: Expression) -> Iterator[PathExpression]:
    """The part of a path that leads down from the context item, or from the message."""
    if not isinstance(expression, PathExpression) or expression.origin not in (
        Origin.CONTEXT,
        Origin.MESSAGE,
    ):
        return
    path = downward(expression).path
    if path.steps:
        yield path
