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
from typing import Any

from yfilter.language import query_ast as ast
from yfilter.language.atoms import compare
from yfilter.language.numbers import parse_double


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
    listed, choices = special.value_list(), general.value_list()
    if listed is not None and choices is not None and listed.leaf == choices.leaf:
        return listed.values <= choices.values
    if listed is not None:
        return all(implies(listed.equal_to(value), general) for value in listed.values)
    known = special.leaf_condition()
    if choices is not None:
        return (
            known is not None
            and known.operator is ast.Operator.EQ
            and choices.leaf.has_all_of(known.leaf)
            and known.value in choices.values
        )
    wanted = general.leaf_condition()
    if known is not None and wanted is not None:
        return wanted.has_all_of(known) and _passes(known, wanted)
    return _string_test_follows(special, known, general)


def _passes(known: ast.LeafCondition, wanted: ast.LeafCondition) -> bool:
    """Whether every value that passes ``known`` passes ``wanted``; their leaves are the same."""
    if wanted.operator is None:
        return True
    if known.operator is None:
        return False
    is_text = isinstance(known.value, str)
    had: Any = known.value if is_text else known.number
    asked: Any = wanted.value if isinstance(wanted.value, str) else wanted.number
    if is_text and asked is not wanted.value:
        had = parse_double(had) if known.operator is ast.Operator.EQ else None
    if had is None or isinstance(had, str) is not isinstance(asked, str):
        return False
    if known.operator is ast.Operator.EQ:
        return compare(had, wanted.operator, asked)
    bound = _INTERVALS.get((known.operator, wanted.operator))
    return bound is not None and bound(had, asked)


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
    special: ast.Expression, known: ast.LeafCondition | None, general: ast.Expression
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
        had = ("=", known.leaf, str(known.value)) if known.equals_text else None
    else:
        had = _string_test(special)
    if had is None or had[1] != wanted[1] or not had[1].is_single:
        return False
    test = _STRING_TESTS.get((had[0], wanted[0]))
    return test is not None and test(had[2], wanted[2])


def _string_test(condition: ast.Expression) -> tuple[str, ast.LeafCondition, str] | None:
    match condition:
        case ast.FunctionCall(name, (path, ast.Literal(str(value)))):
            leaf = path.leaf()
            return None if leaf is None else (name, leaf, value)
        case _:
            return None
