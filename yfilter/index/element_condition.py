"""Condition: the comparisons of one element that the index can find as they stand in a message.

They stand apart from ``ways.py``, since needs of links are weakened by them, too.
"""

from __future__ import annotations

from decimal import Decimal
from math import isnan, nan
from typing import NamedTuple, TypeAlias

from yfilter.language import query_ast as ast
from yfilter.language.comparison import MIRRORED

Number: TypeAlias = int | Decimal | float
RANGES = (ast.Operator.LT, ast.Operator.LE, ast.Operator.GT, ast.Operator.GE)


class Condition(NamedTuple):
    """What is asked of one element.

    ``kind``: an attribute or a text node; the element's string value has SELF and no test.
    ``operator`` None: that there is one.  A ``value`` that is bytes is the key of a text test.
    """

    kind: ast.NodeKind
    test: ast.NameTest | None
    operator: ast.Operator | None = None
    value: str | Number | bytes = ""

    @property
    def number(self) -> float:
        """The value as a number: untyped values, which become xs:double, are compared with it."""
        return float(self.value)


def condition_of(selection: ast.Expression) -> Condition | None:
    """An attribute by its full name, a text node, or the string value of the element.

    Compared with a literal, in any order; ``!=`` with a string only.  None for anything else.
    """
    match selection:
        case ast.PathExpression():
            leaf = leaf_of(selection)
            return None if leaf is None or leaf.kind is ast.NodeKind.SELF else leaf
        case ast.Comparison(ast.PathExpression() as path, operator, ast.Literal(value)):
            return _comparison(path, operator, value)
        case ast.Comparison(ast.Literal(value), operator, ast.PathExpression() as path):
            return _comparison(path, MIRRORED[operator], value)
        case _:
            return None


def _comparison(
    path: ast.PathExpression, operator: ast.Operator, value: str | Number
) -> Condition | None:
    leaf = leaf_of(path)
    if leaf is None:
        return None
    if isinstance(value, str):
        if operator not in (ast.Operator.EQ, ast.Operator.NE):
            return None
        return leaf._replace(operator=operator, value=value)
    if operator not in (ast.Operator.EQ, *RANGES) or isnan(_double(value)):
        return None
    return leaf._replace(operator=operator, value=value)


def _double(value: Number) -> float:
    """The number that an untyped value, which becomes an xs:double, is compared with."""
    try:
        return float(value)
    except OverflowError:
        return nan


def leaf_of(path: ast.Expression) -> Condition | None:
    """An attribute by its full name, a text node or the element itself, without a comparison."""
    if not isinstance(path, ast.PathExpression) or len(path.steps) > 1:
        return None
    if path.origin is not ast.Origin.CONTEXT:
        return None
    if not path.steps:
        return Condition(ast.NodeKind.SELF, None)
    (step,) = path.steps
    if step.descendant or step.predicates or step.axis is not None:
        return None
    if step.kind is ast.NodeKind.TEXT:
        return Condition(ast.NodeKind.TEXT, None)
    if step.kind is ast.NodeKind.ATTRIBUTE and step.test is not None:
        if ast.ANY in (step.test.namespace, step.test.local):
            return None
        return Condition(ast.NodeKind.ATTRIBUTE, step.test)
    return None
