"""Implication of conditions: does an element that passes one selection always pass another?

A condition on one leaf of an element (an attribute, a text, its string value) compared with a
literal holds when it does for some node of the leaf.  So one condition implies another on the same
leaf when every single value that passes the one passes the other, which is a question of intervals
on a line::

    @n = 3      implies  @n > 2, @n <= 3, @n != 4, @n
    @n < 3      implies  @n < 5, @n <= 3, @n != 3, @n
    @s = "abc"  implies  starts-with(@s, "ab"), contains(@s, "c"), @s != "x", @s < "b",
                         @s = ("abc", "d")
    @s contains text "storm warning"  implies  @s contains text "storm"

The answer yes is always right.  No can be wrong: for functions it does not know, and where several
conditions together imply what none does alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from math import isnan
from typing import Any, NamedTuple, TypeAlias

from yfilter.language import query_ast as ast
from yfilter.language.atoms import compare, to_double
from yfilter.language.comparison import MIRRORED
from yfilter.language.numbers import parse_double

Value: TypeAlias = str | float


@dataclass(frozen=True, slots=True)
class Leaf:
    """Where the values of an element are; SELF, its string value, has no test."""

    kind: ast.NodeKind
    test: ast.NameTest | None

    @property
    def is_single(self) -> bool:
        """Whether there is never more than one value."""
        return self.kind is ast.NodeKind.SELF or (
            self.kind is ast.NodeKind.ATTRIBUTE and self.test is not None and self.test.is_full
        )

    def accepts(self, other: Leaf) -> bool:
        """Whether every value of ``other`` is one here: ``@*`` has those of ``@x``."""
        if self == other:
            return True
        if self.kind is not other.kind or self.test is None or other.test is None:
            return False
        return self.test.accepts(other.test.namespace, other.test.local)


@dataclass(frozen=True, slots=True)
class LeafCondition:
    """``operator`` None: that there is a value.  Numbers are compared as xs:double."""

    leaf: Leaf
    operator: ast.Operator | None
    value: Value = ""


class ValueList(NamedTuple):
    """``path = (values)``: an equality with one of several texts."""

    path: ast.Expression
    leaf: Leaf
    values: frozenset[str]


def equal_to(listed: ValueList, value: str) -> ast.Comparison:
    """The equality with one of them."""
    return ast.Comparison(listed.path, ast.Operator.EQ, ast.Literal(value))


def value_list(condition: ast.Expression) -> ValueList | None:
    """The condition as a comparison of one leaf with a list of texts, if it is one."""
    if isinstance(condition, ast.Comparison) and isinstance(condition.right, ast.Sequence):
        return _value_list(condition)
    return None


@lru_cache(maxsize=4_096)
def _value_list(condition: ast.Comparison) -> ValueList | None:
    match condition:
        case ast.Comparison(path, ast.Operator.EQ, ast.Sequence(parts)):
            leaf = _leaf(path)
            texts = [one.value for one in parts if isinstance(one, ast.Literal)]
            values = frozenset(text for text in texts if isinstance(text, str))
            if leaf is not None and values and len(values) == len(parts):
                return ValueList(path, leaf, values)
    return None


def leaf_condition(condition: ast.Expression) -> LeafCondition | None:
    """The condition as a comparison of one leaf with a literal, if it is one."""
    match condition:
        case ast.Comparison(path, relation, ast.Literal(value)):
            return _comparison(path, relation, value)
        case ast.Comparison(ast.Literal(value), relation, path):
            return _comparison(path, MIRRORED[relation], value)
    leaf = _leaf(condition)
    return None if leaf is None else LeafCondition(leaf, None)


def implies(special: ast.Expression, general: ast.Expression) -> bool:
    """Whether every element that passes ``special`` passes ``general``; yes is always right."""
    if special == general:
        return True
    if isinstance(special, ast.Or):
        return all(implies(part, general) for part in special.parts)
    if isinstance(general, ast.And):
        return all(implies(special, part) for part in general.parts)
    if isinstance(general, ast.Or) and any(implies(special, part) for part in general.parts):
        return True
    if isinstance(special, ast.And):
        return any(implies(part, general) for part in special.parts)
    listed, choices = value_list(special), value_list(general)
    if listed is not None and choices is not None and listed.leaf == choices.leaf:
        return listed.values <= choices.values
    if listed is not None:
        return all(implies(equal_to(listed, value), general) for value in listed.values)
    known = leaf_condition(special)
    if choices is not None:
        return (
            known is not None
            and known.operator is ast.Operator.EQ
            and choices.leaf.accepts(known.leaf)
            and known.value in choices.values
        )
    wanted = leaf_condition(general)
    if known is not None and wanted is not None:
        return wanted.leaf.accepts(known.leaf) and _passes(known, wanted)
    return _string_test_follows(special, known, general)


def _comparison(
    path: ast.Expression, relation: ast.Operator, value: str | int | Decimal | float
) -> LeafCondition | None:
    leaf = _leaf(path)
    if leaf is None:
        return None
    if isinstance(value, str):
        return LeafCondition(leaf, relation, value)
    number = to_double(value)
    return None if isnan(number) else LeafCondition(leaf, relation, number)


def _leaf(path: ast.Expression) -> Leaf | None:
    if path.origin is not ast.Origin.CONTEXT:
        return None
    if not path.steps:
        return Leaf(ast.NodeKind.SELF, None)
    (step, *more) = path.steps
    if more or step.predicates or step.descendant or step.axis is not None:
        return None
    if step.kind in (ast.NodeKind.ATTRIBUTE, ast.NodeKind.TEXT):
        return Leaf(step.kind, step.test)
    return None


def _passes(known: LeafCondition, wanted: LeafCondition) -> bool:
    """Whether every value that passes ``known`` passes ``wanted``; their leaves are the same."""
    if wanted.operator is None:
        return True
    if known.operator is None:
        return False
    value: Value = known.value
    if isinstance(value, str) and not isinstance(wanted.value, str):
        number = parse_double(value)
        if known.operator is not ast.Operator.EQ or number is None:
            return False
        value = number
    if isinstance(value, str) is not isinstance(wanted.value, str):
        return False
    if known.operator is ast.Operator.EQ:
        return compare(value, wanted.operator, wanted.value)
    bound = _INTERVALS.get((known.operator, wanted.operator))
    return bound is not None and bound(value, wanted.value)


# (known, wanted) -> what has to hold between the two bounds.
_INTERVALS: Mapping[tuple[ast.Operator, ast.Operator], Callable[[Any, Any], bool]] = {
    (ast.Operator.NE, ast.Operator.NE): operator.eq,
    (ast.Operator.LT, ast.Operator.LT): operator.le,
    (ast.Operator.LT, ast.Operator.LE): operator.le,
    (ast.Operator.LT, ast.Operator.NE): operator.le,
    (ast.Operator.LE, ast.Operator.LT): operator.lt,
    (ast.Operator.LE, ast.Operator.LE): operator.le,
    (ast.Operator.LE, ast.Operator.NE): operator.lt,
    (ast.Operator.GT, ast.Operator.GT): operator.ge,
    (ast.Operator.GT, ast.Operator.GE): operator.ge,
    (ast.Operator.GT, ast.Operator.NE): operator.ge,
    (ast.Operator.GE, ast.Operator.GT): operator.gt,
    (ast.Operator.GE, ast.Operator.GE): operator.ge,
    (ast.Operator.GE, ast.Operator.NE): operator.gt,
}


# (special, general) -> what has to hold between their second arguments.
_STRING_TESTS: Mapping[tuple[str, str], Callable[[str, str], bool]] = {
    ("starts-with", "starts-with"): str.startswith,
    ("ends-with", "ends-with"): str.endswith,
    ("starts-with", "contains"): str.__contains__,
    ("ends-with", "contains"): str.__contains__,
    ("contains", "contains"): str.__contains__,
    ("=", "starts-with"): str.startswith,
    ("=", "ends-with"): str.endswith,
    ("=", "contains"): str.__contains__,
}


def _string_test_follows(
    special: ast.Expression, known: LeafCondition | None, general: ast.Expression
) -> bool:
    """``contains(@s, "b")`` and its like; only where there is one value, for more are an error.
    ``contains text`` and its like hold for some value, and so of the same one."""
    words, fewer = special.word_condition(), general.word_condition()
    if words is not None and fewer is not None:
        is_alike = words[:2] == fewer[:2] and len(words.needles) == len(fewer.needles) == 1
        return is_alike and fewer.needles[0] in words.needles[0]
    wanted = _string_test(general)
    if wanted is None:
        return False
    if known is not None:
        is_text = known.operator is ast.Operator.EQ and isinstance(known.value, str)
        had = ("=", known.leaf, str(known.value)) if is_text else None
    else:
        had = _string_test(special)
    if had is None or had[1] != wanted[1] or not had[1].is_single:
        return False
    test = _STRING_TESTS.get((had[0], wanted[0]))
    return test is not None and test(had[2], wanted[2])


def _string_test(condition: ast.Expression) -> tuple[str, Leaf, str] | None:
    match condition:
        case ast.FunctionCall(name, (path, ast.Literal(str(value)))):
            leaf = _leaf(path)
            return None if leaf is None else (name, leaf, value)
        case _:
            return None
