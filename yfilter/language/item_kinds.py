"""Static types of the profile language: what kinds of items an expression can yield.

There is no schema, so the kinds follow from the text alone.  They let the parser refuse at
registration what XQuery would call a type error, and what can never select anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, auto

from yfilter.language.functions import FUNCTIONS, ResultKind
from yfilter.language.query_ast import (
    And,
    Comparison,
    Constructor,
    Expression,
    Flwor,
    FunctionCall,
    Literal,
    NodeKind,
    Or,
    Origin,
    PathExpression,
)


class ItemKind(Flag):
    """The kinds of items in a value; a union where several are possible."""

    DOCUMENT = auto()
    ELEMENT = auto()
    ATTRIBUTE = auto()
    TEXT = auto()
    STRING = auto()
    NUMBER = auto()
    BOOLEAN = auto()


NOTHING = ItemKind(0)
PARENTS = ItemKind.DOCUMENT | ItemKind.ELEMENT
NODES = PARENTS | ItemKind.ATTRIBUTE | ItemKind.TEXT
ATOMS = ItemKind.STRING | ItemKind.NUMBER | ItemKind.BOOLEAN

_RESULTS = {
    ResultKind.STRING: ItemKind.STRING,
    ResultKind.NUMBER: ItemKind.NUMBER,
    ResultKind.BOOLEAN: ItemKind.BOOLEAN,
}


def kinds_of(
    expression: Expression, variables: Mapping[str, ItemKind], context: ItemKind
) -> ItemKind:
    """The kinds of items that ``expression`` can yield.

    ``context`` is what ``.`` can be; ``variables`` what the bound variables can be.
    """
    match expression:
        case PathExpression():
            kinds = origin_kinds(expression, variables, context)
            for step in expression.steps:
                kinds = kinds_after(kinds, step.kind, step.descendant)
            return kinds
        case Literal(value):
            return ItemKind.STRING if isinstance(value, str) else ItemKind.NUMBER
        case Comparison() | And() | Or():
            return ItemKind.BOOLEAN
        case FunctionCall(name):
            return _RESULTS[FUNCTIONS[name].result]
        case Constructor():
            return ItemKind.ELEMENT
        case Flwor():
            return _kinds_of_flwor(expression, variables, context)


def origin_kinds(
    path: PathExpression, variables: Mapping[str, ItemKind], context: ItemKind
) -> ItemKind:
    if path.origin is Origin.MESSAGE:
        return ItemKind.DOCUMENT
    if path.origin is Origin.VARIABLE:
        return variables[path.variable]
    return context


def kinds_after(kinds: ItemKind, step: NodeKind, descendant: bool) -> ItemKind:
    """What a step leads to from nodes of ``kinds``; NOTHING when it can lead nowhere."""
    match step:
        case NodeKind.SELF:
            return kinds
        case NodeKind.PARENT:
            parents = NOTHING
            if kinds & ItemKind.ELEMENT:
                parents |= PARENTS
            if kinds & (ItemKind.ATTRIBUTE | ItemKind.TEXT):
                parents |= ItemKind.ELEMENT
            return parents
        case NodeKind.ELEMENT:
            return ItemKind.ELEMENT if kinds & PARENTS else NOTHING
        case NodeKind.ATTRIBUTE | NodeKind.TEXT:
            leads_on = kinds & PARENTS if descendant else kinds & ItemKind.ELEMENT
            found = ItemKind.ATTRIBUTE if step is NodeKind.ATTRIBUTE else ItemKind.TEXT
            return found if leads_on else NOTHING


def _kinds_of_flwor(flwor: Flwor, variables: Mapping[str, ItemKind], context: ItemKind) -> ItemKind:
    scope = dict(variables)
    for clause in flwor.clauses:
        source = clause.value if hasattr(clause, "value") else clause.path
        scope[clause.variable] = kinds_of(source, scope, context)
    return kinds_of(flwor.result, scope, context)
