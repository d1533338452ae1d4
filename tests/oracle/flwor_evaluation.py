"""Evaluates FLWOR expressions, tuple by tuple.

A tuple whose ``where`` does not hold yields nothing, and neither does one that raises an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cmp_to_key
from typing import Any

from yfilter.language import query_ast as ast
from yfilter.language.atoms import order_sign
from yfilter.language.budget import POINTER_BYTES
from yfilter.language.function_library import identity_of
from yfilter.language.nodes import (
    Atom,
    DynamicError,
    Focus,
    Item,
    Untyped,
    Value,
    Variables,
)


def flwor_items(
    evaluator: Any, flwor: ast.Flwor, focus: Focus, first: Value | None = None
) -> Iterator[Item]:
    """The items; ``first``: what the first clause binds, where that is known already."""
    tuples = _kept(evaluator, flwor.clauses, flwor.where, focus, first)
    group = flwor.group
    if group is not None:
        groups = _groups(evaluator, flwor.clauses, group, tuples)
        tuples = (
            inner
            for outer in groups
            for inner in _kept(evaluator, group.clauses, group.where, outer, None)
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


def _kept(
    evaluator: Any,
    clauses: tuple[ast.Clause, ...],
    where: ast.Expression | None,
    focus: Focus,
    first: Value | None,
) -> Iterator[Focus]:
    """The tuples that clauses make of one, and ``where`` lets through."""
    tuples = _tuples(evaluator, clauses, where, 0, focus, first)
    if where is None:
        return tuples
    return (inner for inner in tuples if evaluator.condition(where, inner))


def _groups(
    evaluator: Any,
    clauses: tuple[ast.Clause, ...],
    group: ast.Grouping,
    tuples: Iterable[Focus],
) -> Iterator[Focus]:
    """A tuple for each group: keys are what they are, other variables all their items."""
    found: dict[tuple[object, ...], tuple[Focus, dict[str, list[Item]]]] = {}
    names = {clause.variable for clause in clauses if not isinstance(clause, ast.WhereClause)}
    names |= {clause.position for clause in clauses if isinstance(clause, ast.ForClause)} - {""}
    for inner in tuples:
        try:
            keys = _keys(evaluator, group, inner)
        except DynamicError:
            if evaluator.strict:
                raise
            continue
        identity = tuple(None if atom is None else identity_of(atom) for atom in keys.values())
        if identity not in found:
            bound = {name: [] if atom is None else [atom] for name, atom in keys.items()}
            found[identity] = (
                _with(inner, {**inner.variables, **bound}),
                {name: [] for name in names - keys.keys()},
            )
        for name, items in found[identity][1].items():
            evaluator.charge_memory(POINTER_BYTES * len(inner.variables[name]))
            items.extend(inner.variables[name])
    for outer, values in found.values():
        yield _with(outer, {**outer.variables, **values})


def _keys(evaluator: Any, group: ast.Grouping, focus: Focus) -> dict[str, Atom | None]:
    """The grouping keys of a tuple; those bound first can be used in the others."""
    keys: dict[str, Atom | None] = {}
    for name, value in group.keys:
        items = focus.variables[name] if value is None else evaluator.value(value, focus)
        atom = evaluator.one_atom(items)
        keys[name] = str(atom) if isinstance(atom, Untyped) else atom
        focus = _with(focus, {**focus.variables, name: [] if atom is None else [atom]})
    return keys


def _tuples(
    evaluator: Any,
    clauses: tuple[ast.Clause, ...],
    where: ast.Expression | None,
    index: int,
    focus: Focus,
    first: Value | None,
) -> Iterator[Focus]:
    """The tuples that the clauses from ``index`` on make of one."""
    while index < len(clauses):
        clause = clauses[index]
        if isinstance(clause, ast.ForClause):
            break
        index += 1
        if isinstance(clause, ast.LetClause):
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
        items = evaluator.joined(
            clause, clause.variable, value, _behind(clauses, where, index), focus
        )
    for position, item in enumerate(value, 1) if items is None else items:
        evaluator.charge_tuple()
        scope = {**focus.variables, clause.variable: [item]}
        if clause.position:
            scope[clause.position] = [position]
        inner = _with(focus, scope)
        if is_last:
            yield inner
        else:
            yield from _tuples(evaluator, clauses, where, index + 1, inner, None)


def _clause_value(evaluator: Any, source: ast.Expression, focus: Focus) -> Value | None:
    """None for one that raises an error."""
    try:
        return evaluator.shared(source, focus)
    except DynamicError:
        if evaluator.strict:
            raise
        return None


def _with(focus: Focus, variables: Variables) -> Focus:
    return Focus(focus.item, focus.position, focus.size, variables, focus.functions)


def _behind(
    clauses: tuple[ast.Clause, ...], where: ast.Expression | None, index: int
) -> Iterator[ast.Expression]:
    """The conditions behind a clause."""
    for clause in clauses[index:]:
        if isinstance(clause, ast.WhereClause):
            yield clause.condition
    if where is not None:
        yield where


def _ordered(
    evaluator: Any, keys: tuple[ast.OrderKey, ...], tuples: Iterable[Focus]
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
            sign = order_sign(one, other, key.empty_greatest)
            if sign:
                return -sign if key.descending else sign
        return 0

    return [inner for inner, _ in sorted(keyed, key=cmp_to_key(order))]
