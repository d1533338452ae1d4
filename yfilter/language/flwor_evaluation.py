"""Evaluates FLWOR expressions, tuple by tuple.

A tuple whose ``where`` does not hold yields nothing, and neither does one that raises an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cmp_to_key

from yfilter.language.atoms import comparable
from yfilter.language.evaluator import Evaluator
from yfilter.language.nodes import Atom, DynamicError, Focus, Item, Value
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
    tuples: Iterator[Focus] = (
        inner
        for inner in _tuples(evaluator, flwor, 0, focus, first)
        if flwor.where is None or evaluator.condition(flwor.where, inner)
    )
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
    if index == len(flwor.clauses):
        yield focus
        return
    clause = flwor.clauses[index]
    if not isinstance(clause, ForClause | LetClause):
        if evaluator.condition(clause.condition, focus):
            yield from _tuples(evaluator, flwor, index + 1, focus, None)
        return
    source = clause.path if isinstance(clause, ForClause) else clause.value
    try:
        value = evaluator.shared(source, focus) if first is None else first
    except DynamicError:
        if evaluator.strict:
            raise
        return
    if isinstance(clause, LetClause):
        scope = {**focus.variables, clause.variable: list(value)}
        yield from _tuples(evaluator, flwor, index + 1, focus._replace(variables=scope), None)
        return
    items = evaluator.joined(clause, clause.variable, value, _behind(flwor, index), focus)
    for position, item in enumerate(value, 1) if items is None else items:
        evaluator.charge_tuple()
        scope = {**focus.variables, clause.variable: [item]}
        if clause.position:
            scope[clause.position] = [position]
        yield from _tuples(evaluator, flwor, index + 1, focus._replace(variables=scope), None)


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
