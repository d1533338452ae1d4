"""General comparisons: whether some pair of a value on the left and one on the right compares so.

Where one side is all numbers, or no side has any typed value, no pairs need to be looked at.
"""

from __future__ import annotations

from math import isnan
from typing import TypeVar

from yfilter.language.atoms import holds_pair, is_number, to_double
from yfilter.language.budget import ELEMENTPATH_COST, MUCH
from yfilter.language.evaluator import Evaluator
from yfilter.language.nodes import Atom, DynamicError, Opaque, Untyped, Value
from yfilter.language.query_ast import Operator

FEW_ATOMS = 8  # which cost less than a visit
_TEXTS = (str, Untyped)
_EXACT_MAX = 1 << 53
_Comparable = TypeVar("_Comparable", str, float)


def some_pair(evaluator: Evaluator, left: Value, relation: Operator, right: Value) -> bool:
    """Pairs that cannot be compared do not hold; if ``evaluator.strict`` they raise."""
    if not left or not right:
        return False
    if len(left) == 1 and len(right) == 1 and _is_plain(left[0], right[0]):
        return relation.holds(left[0], right[0])
    if len(left) + len(right) > FEW_ATOMS:
        count = len(left) + len(right)
        evaluator.charge(count if count > MUCH else count // FEW_ATOMS)
    one, other = evaluator.atoms(left), evaluator.atoms(right)
    if not evaluator.strict:
        if _all_text(one) and _all_text(other):
            return _some(list(map(str, one)), relation, list(map(str, other)))
        if (_all_inexact(one) and _all_double_or_untyped(other)) or (
            _all_inexact(other) and _all_double_or_untyped(one)
        ):
            return _some_numbers(_numbers(one), relation, _numbers(other))
    is_cast = any(isinstance(atom, Opaque) for atom in (*one, *other))
    cost = len(other) * (ELEMENTPATH_COST if is_cast else 1)
    for a in one:
        evaluator.charge(cost)
        if any(_holds(evaluator, a, relation, b) for b in other):
            return True
    return False


def _is_plain(left: object, right: object) -> bool:
    """Whether two values are texts, or numbers that lose nothing as doubles."""
    # PERF: most comparisons are of these; a member of an Enum costs more than the comparison.
    if type(left) in _TEXTS:
        return type(right) in _TEXTS
    return all(
        type(value) is float or (type(value) is int and -_EXACT_MAX < value < _EXACT_MAX)
        for value in (left, right)
    )


def _holds(evaluator: Evaluator, left: Atom, relation: Operator, right: Atom) -> bool:
    try:
        return holds_pair(left, relation, right)
    except DynamicError:
        if evaluator.strict:
            raise
        return False


def _all_text(atoms: list[Atom]) -> bool:
    return all(isinstance(atom, str) for atom in atoms)


def _all_inexact(atoms: list[Atom]) -> bool:
    """Numbers that lose nothing as doubles."""
    return all(
        isinstance(atom, float)
        or (isinstance(atom, int) and not isinstance(atom, bool) and abs(atom) < _EXACT_MAX)
        for atom in atoms
    )


def _all_double_or_untyped(atoms: list[Atom]) -> bool:
    return _all_inexact([atom for atom in atoms if not isinstance(atom, Untyped)])


def _numbers(atoms: list[Atom]) -> list[float]:
    """The atoms as xs:double, without those that are none."""
    numbers = []
    for atom in atoms:
        if is_number(atom):
            numbers.append(to_double(atom))
            continue
        try:
            numbers.append(to_double(atom))
        except DynamicError:
            continue
    return numbers


def _some_numbers(left: list[float], relation: Operator, right: list[float]) -> bool:
    """As _some, where NaN differs from every number, itself included, and has no order."""
    proper_left = [number for number in left if not isnan(number)]
    proper_right = [number for number in right if not isnan(number)]
    has_nan = len(proper_left) < len(left) or len(proper_right) < len(right)
    if relation is Operator.NE and has_nan:
        return bool(left and right)
    return _some(proper_left, relation, proper_right)


def _some(left: list[_Comparable], relation: Operator, right: list[_Comparable]) -> bool:
    """Whether some pair compares so, without looking at every pair."""
    if not left or not right:
        return False
    if relation is Operator.EQ:
        return not set(left).isdisjoint(right)
    if relation is Operator.NE:
        return len({*left, *right}) > 1
    if relation.value[0] == "<":
        return relation.holds(min(left), max(right))
    return relation.holds(max(left), min(right))
