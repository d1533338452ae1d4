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

from yfilter.language import query_ast as ast
from yfilter.language.shapes import Blank, NeedsWords

_NODE_COMPARISONS = frozenset(("is", "<<", ">>"))
_STRINGS = frozenset(("string", "normalize-space", "lower-case", "upper-case"))
_LOOKED_AT = _STRINGS | {"count", "number"}


def with_implied(path: ast.PathExpression) -> ast.PathExpression:
    """The path, with what its conditions imply beside each of them, at any depth."""
    steps = []
    for step in path.steps:
        if step.predicates:
            predicates: dict[ast.Expression, None] = {}
            for predicate in step.predicates:
                predicates[_deeper(predicate)] = None
                predicates.update(dict.fromkeys(implied(predicate)))
            step = replace(step, predicates=tuple(predicates))  # noqa: PLW2901
        steps.append(step)
    return replace(path, steps=tuple(steps))


def _deeper(condition: ast.Expression) -> ast.Expression:
    match condition:
        case ast.PathExpression():
            return with_implied(condition)
        case ast.And(parts):
            return ast.And(tuple(map(_deeper, parts)))
        case ast.Or(parts):
            return ast.Or(tuple(map(_with_own, parts)))
        case ast.Comparison(ast.PathExpression() as path, comparison, ast.Literal() as literal):
            return ast.Comparison(with_implied(path), comparison, literal)
        case _:
            return condition


def _with_own(alternative: ast.Expression) -> ast.Expression:
    """An alternative together with what it implies; the others need not hold."""
    parts = tuple(dict.fromkeys((_deeper(alternative), *implied(alternative))))
    return parts[0] if len(parts) == 1 else ast.And(parts)


def implied(condition: ast.Expression) -> Iterator[ast.Expression]:
    """Conditions of paths from the context item, or the message, that hold when this one does."""
    match condition:
        case ast.And(parts):
            for part in parts:
                yield from implied(part)
        case ast.Operation(name, (left, right)) if name in ast.VALUE_COMPARISONS:
            yield from _of_pair(left, right, ast.VALUE_COMPARISONS[name])
        case ast.Operation(name, (left, right)) if name in _NODE_COMPARISONS:
            yield from (*_path(left), *_path(right))
        case ast.Comparison(ast.PathExpression() as left, _, ast.PathExpression() as right):
            yield from (*_path(left), *_path(right))
        case ast.Comparison(ast.FunctionCall() as call, comparison, ast.Literal(value)):
            yield from _of_call(call, comparison, value)
        case ast.FunctionCall("boolean" | "exists", (ast.PathExpression() as path,)):
            yield from _path(path)
        case ast.Quantified(False, ((_, ast.PathExpression() as path), *_)):
            yield from _path(path)


def _of_pair(
    left: ast.Expression, right: ast.Expression, comparison: ast.Operator
) -> Iterator[ast.Expression]:
    """A value comparison: with a string it is the general one of a single value."""
    if isinstance(right, ast.Literal) and isinstance(right.value, str):
        for path in _path(left):
            yield ast.Comparison(path, comparison, right)
    else:
        yield from (*_path(left), *_path(right))
    if isinstance(left, ast.FunctionCall) and isinstance(right, ast.Literal):
        yield from _of_call(left, comparison, right.value)


def _of_call(
    call: ast.FunctionCall, comparison: ast.Operator, value: str | int | Decimal | float
) -> Iterator[ast.Expression]:
    """A function of one path compared with a literal, where that does not hold for no nodes."""
    if len(call.arguments) != 1 or not list(_path(call.arguments[0])):
        return
    if call.name in _LOOKED_AT and isinstance(value, Blank):
        raise NeedsWords  # whether it holds for nothing depends on the value
    of_nothing: float | str
    if call.name == "count" and not isinstance(value, str):
        of_nothing = 0
    elif call.name == "number" and not isinstance(value, str):
        of_nothing = float("nan")
    elif call.name in _STRINGS and isinstance(value, str):
        if comparison is ast.Operator.EQ and value:
            yield from _path(call.arguments[0])
        return
    else:
        return
    if not comparison.holds(of_nothing, float(value)):
        yield from _path(call.arguments[0])


def _path(expression: ast.Expression) -> Iterator[ast.PathExpression]:
    """The part of a path that leads down from the context item, or from the message."""
    if not isinstance(expression, ast.PathExpression) or expression.origin not in (
        ast.Origin.CONTEXT,
        ast.Origin.MESSAGE,
    ):
        return
    path = expression.downward().path
    if path.steps:
        yield path
