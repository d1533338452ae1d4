"""Evaluates operators, casts and quantified expressions."""

from __future__ import annotations

from collections.abc import Iterator

from yfilter.language.atoms import arithmetic, cast, compare, negate
from yfilter.language.budget import ELEMENTPATH_COST, ITEM_BYTES
from yfilter.language.evaluator import Evaluator
from yfilter.language.functions import TYPES
from yfilter.language.nodes import (
    Atom,
    DynamicError,
    Focus,
    Node,
    Opaque,
    Untyped,
    Value,
    Variables,
    document_order,
)
from yfilter.language.query_ast import VALUE_COMPARISONS, Cast, Operation, Quantified
from yfilter.language.temporal import Temporal


def operation(evaluator: Evaluator, operation: Operation, focus: Focus) -> Value:
    name = operation.name
    values = [evaluator.value(operand, focus) for operand in operation.operands]
    if name in ("|", "intersect", "except"):
        return _combined(name, *(set(evaluator.nodes(value)) for value in values))
    if name in ("is", "<<", ">>"):
        return _placed(name, *(evaluator.nodes(value) for value in values))
    operands = []
    for value in values:
        atom = evaluator.one_atom(value)
        if atom is None:
            return []
        operands.append(atom)
    if name == "negate":
        return [negate(operands[0])]
    if name in VALUE_COMPARISONS:
        return [compare(operands[0], VALUE_COMPARISONS[name], operands[1])]
    if name == "to":
        return _range(evaluator, *operands)
    if any(isinstance(operand, Temporal | Opaque) for operand in operands):
        evaluator.charge(ELEMENTPATH_COST)
    return [arithmetic(name, *operands)]


def _combined(name: str, one: set[Node], other: set[Node]) -> Value:
    found = {"|": one | other, "intersect": one & other, "except": one - other}[name]
    return sorted(found, key=document_order)


def _placed(name: str, one: list[Node], other: list[Node]) -> Value:
    if len(one) > 1 or len(other) > 1:
        raise DynamicError("XPTY0004", f"'{name}' compares one node with one")
    if not one or not other:
        return []
    left, right = document_order(one[0]), document_order(other[0])
    return [left == right if name == "is" else left < right if name == "<<" else left > right]


def _range(evaluator: Evaluator, first: Atom, last: Atom) -> Value:
    bounds = []
    for bound in (first, last):
        whole = cast(bound, "xs:integer") if isinstance(bound, Untyped) else bound
        if not isinstance(whole, int) or isinstance(whole, bool):
            raise DynamicError("XPTY0004", "'to' takes integers")
        bounds.append(whole)
    size = max(0, bounds[1] - bounds[0] + 1)
    evaluator.charge_memory(ITEM_BYTES * size)
    evaluator.charge(size)
    return list(range(bounds[0], bounds[1] + 1))


def cast_value(evaluator: Evaluator, expression: Cast, focus: Focus) -> Value:
    value = evaluator.value(expression.operand, focus)
    try:
        atom = evaluator.one_atom(value)
        if atom is None:
            if not expression.optional:
                raise DynamicError("XPTY0004", "a cast of the empty sequence")
            found: Value = []
        else:
            if expression.type not in TYPES:
                evaluator.charge(ELEMENTPATH_COST)
            found = [cast(atom, expression.type)]
    except DynamicError:
        if expression.castable:
            return [False]
        raise
    return [True] if expression.castable else found


def quantified(evaluator: Evaluator, expression: Quantified, focus: Focus) -> Value:
    wanted = not expression.every
    for variables in _assignments(evaluator, expression, 0, focus):
        inner = focus._replace(variables=variables)
        if evaluator.condition(expression.condition, inner) is wanted:
            return [wanted]
    return [not wanted]


def _assignments(
    evaluator: Evaluator, expression: Quantified, index: int, focus: Focus
) -> Iterator[Variables]:
    if index == len(expression.bindings):
        yield focus.variables
        return
    binding = expression.bindings[index]
    name, source = binding
    value = evaluator.shared(source, focus)
    conditions = () if expression.every else (expression.condition,)
    items = evaluator.joined(binding, name, value, conditions, focus)
    for _, item in enumerate(value) if items is None else items:
        evaluator.charge()
        inner = focus._replace(variables={**focus.variables, name: [item]})
        yield from _assignments(evaluator, expression, index + 1, inner)
