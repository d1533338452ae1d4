"""Evaluates FLWOR expressions, tuple by tuple.

A tuple whose ``where`` does not hold yields nothing, and neither does one that raises an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cmp_to_key

from yfilter.language.atoms import comparable
from yfilter.language.evaluator import Evaluator
from yfilter.language.nodes import Atom, DynamicError, Focus, Item, Value, Variables
from yfilter.language.query_ast import (
    Expression,
    Flwor,
    ForClause,
    LetClause,
    OrderKey,
    WhereClause,
)


def flwor_items(
    evaluator: Evaluator, flwor: Flwor, focus: Focus, first: Value | None = None
) -> Iterator[Item]:
    """The items; ``first``: what the first clause binds, where that is known already."""
    tuples = _tuples(evaluator, flwor, 0, focus, first)
    where = flwor.where
    if where is not None:
        tuples = (inner for inner in tuples if evaluator.condition(where, inner))
    if flwor.order:
        tuples = iter(_ordered(evaluator, flwor.order, tuples))
    for inner in tuples:
        try:
            items = evaluator.value(flwor.result, inner)
        except DynamicError:
            if evaluator.strict:
                raise
            continue
        evaluator.charge(len(items))
        yield from items


def _tuples(
    evaluator: Evaluator, flwor: Flwor, index: int, focus: Focus, first: Value | None
) -> Iterator[Focus]:
    """The tuples that the clauses from ``index`` on make of one."""
    clauses = flwor.clauses
    while index < len(clauses):
        clause = clauses[index]
        if isinstance(clause, ForClause):
            break
        index += 1
        if isinstance(clause, LetClause):
            value = _clause_value(evaluator, clause.value, focus)
            if value is None:
                return
            focus = _with(focus, {**focus.variables, clause.variable: value})
        elif not evaluator.condition(clause.condition, focus):
            return
    else:
        yield focus
        return
    value = _clause_value(evaluator, clause.path, focus) if first is None else first
    if value is None:
        return
    is_last = index + 1 == len(clauses)
    items = None
    if first is None:
        items = evaluator.joined(clause, clause.variable, value, _behind(flwor, index), focus)
    for position, item in enumerate(value, 1) if items is None else items:
        evaluator.charge_tuple()
        scope = {**focus.variables, clause.variable: [item]}
        if clause.position:
            scope[clause.position] = [position]
        inner = _with(focus, scope)
        if is_last:
            yield inner
        else:
            yield from _tuples(evaluator, flwor, index + 1, inner, None)


def _clause_value(evaluator: Evaluator, source: Expression, focus: Focus) -> Value | None:
    """None for one that raises an error."""
    try:
        return evaluator.shared(source, focus)
    except DynamicError:
        if evaluator.strict:
            raise
        return None


def _with(focus: Focus, variables: Variables) -> Focus:
    return Focus(focus.item, focus.position, focus.size, variables, focus.functions)


def _behind(flwor: Flwor, index: int) -> Iterator[Expression]:
    """The conditions behind a clause."""
    for clause in flwor.clauses[index:]:
        if isinstance(clause, WhereClause):
            yield clause.condition
    if flwor.where is not None:
        yield flwor.where


def _ordered(
    evaluator: Evaluator, keys: tuple[OrderKey, ...], tuples: Iterable[Focus]
) -> list[Focus]:
    """The tuples sorted, equal ones as they came; one whose key raises an error is left out."""
    keyed: list[tuple[Focus, list[Atom | None]]] = []
    for inner in tuples:
        try:
            values = [evaluator.one_atom(evaluator.value(key.key, inner)) for key in keys]
        except DynamicError:
            if evaluator.strict:
                raise
            continue
        keyed.append((inner, values))

    def order(left: tuple[Focus, list[Atom | None]], right: tuple[Focus, list[Atom | None]]) -> int:
        evaluator.charge()
        for key, one, other in zip(keys, left[1], right[1], strict=True):
            sign = _sign(key, one, other)
            if sign:
                return -sign if key.descending else sign
        return 0

    return [inner for inner, _ in sorted(keyed, key=cmp_to_key(order))]


def _sign(key: OrderKey, one: Atom | None, other: Atom | None) -> int:
    """-1, 0 or 1; an empty key, and then NaN, is less than all others unless it is greatest."""
    ranks = (_rank(one), _rank(other))
    if ranks != (2, 2):
        sign = (ranks[0] > ranks[1]) - (ranks[0] < ranks[1])
        return -sign if key.empty_greatest else sign
    assert one is not None and other is not None
    left, right = comparable(one, other)
    return int(left > right) - int(left < right)


def _rank(atom: Atom | None) -> int:
    if atom is None:
        return 0
    return 1 if isinstance(atom, float) and atom != atom else 2  # noqa: PLR0124
