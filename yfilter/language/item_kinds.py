"""Static types of the profile language: what kinds of items an expression can yield.

There is no schema, so the kinds follow from the text alone.  They let the parser refuse at
registration what XQuery would call a type error, and what can never select anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, auto
from functools import reduce
from operator import or_

from yfilter.language.functions import FUNCTIONS, TYPES, ResultKind
from yfilter.language.query_ast import (
    And,
    Axis,
    Cast,
    Comparison,
    Computed,
    Conditional,
    Constructor,
    Expression,
    Flwor,
    ForClause,
    FunctionCall,
    LetClause,
    Literal,
    LocationStep,
    Mapped,
    Markup,
    NodeKind,
    Operation,
    Or,
    Origin,
    PathExpression,
    Quantified,
    Sequence,
    Typed,
)


class ItemKind(Flag):
    """The kinds of items in a value; a union where several are possible."""

    DOCUMENT = auto()
    ELEMENT = auto()
    ATTRIBUTE = auto()
    TEXT = auto()
    COMMENT = auto()  # or a processing instruction
    STRING = auto()
    NUMBER = auto()
    BOOLEAN = auto()
    DATE = auto()
    DATE_TIME = auto()


NOTHING = ItemKind(0)
PARENTS = ItemKind.DOCUMENT | ItemKind.ELEMENT
CHILDREN = ItemKind.ELEMENT | ItemKind.TEXT | ItemKind.COMMENT
NODES = PARENTS | ItemKind.ATTRIBUTE | CHILDREN
TEMPORAL = ItemKind.DATE | ItemKind.DATE_TIME
ATOMS = ItemKind.STRING | ItemKind.NUMBER | ItemKind.BOOLEAN | TEMPORAL
ANYTHING = NODES | ATOMS

_RESULTS = {
    ResultKind.STRING: ItemKind.STRING,
    ResultKind.NUMBER: ItemKind.NUMBER,
    ResultKind.BOOLEAN: ItemKind.BOOLEAN,
    ResultKind.DATE: ItemKind.DATE,
    ResultKind.DATE_TIME: ItemKind.DATE_TIME,
    ResultKind.ANY: ANYTHING,
}
_OF_ITS_ARGUMENT = frozenset(
    ("zero-or-one", "one-or-more", "exactly-one", "reverse", "subsequence", "remove")
)
_OPERATIONS = {
    **dict.fromkeys(("+", "-", "*", "div", "idiv", "mod", "to", "negate"), ItemKind.NUMBER),
    **dict.fromkeys(("|", "intersect", "except"), NODES),
}
_SELECTED = {
    NodeKind.ELEMENT: ItemKind.ELEMENT,
    NodeKind.ATTRIBUTE: ItemKind.ATTRIBUTE,
    NodeKind.TEXT: ItemKind.TEXT,
    NodeKind.COMMENT: ItemKind.COMMENT,
    NodeKind.PROCESSING_INSTRUCTION: ItemKind.COMMENT,
    NodeKind.DOCUMENT: ItemKind.DOCUMENT,
    NodeKind.NODE: NODES,
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
                kinds = kinds_after_step(kinds, step)
            return kinds
        case Mapped(left, right):
            return kinds_of(right, variables, kinds_of(left, variables, context) & NODES)
        case Literal(value):
            return ItemKind.STRING if isinstance(value, str) else ItemKind.NUMBER
        case Comparison() | And() | Or() | Quantified():
            return ItemKind.BOOLEAN
        case Operation("|" | "intersect" | "except", operands):
            return _union(operands, variables, context)
        case Operation(name):
            return _OPERATIONS.get(name, ItemKind.BOOLEAN)
        case Cast():
            return ItemKind.BOOLEAN if expression.castable else _RESULTS[TYPES[expression.type]]
        case Typed(operand):
            inner = kinds_of(operand, variables, context)
            return inner if expression.treat else ItemKind.BOOLEAN
        case FunctionCall(name, arguments) if name in _OF_ITS_ARGUMENT:
            return kinds_of(arguments[0], variables, context)
        case FunctionCall("root"):
            return PARENTS
        case FunctionCall("insert-before", (items, _, inserted)):
            return _union((items, inserted), variables, context)
        case FunctionCall("min" | "max" | "distinct-values" | "data"):
            return ATOMS
        case FunctionCall(name):
            return _RESULTS[FUNCTIONS[name].result]
        case Sequence(parts):
            return _union(parts, variables, context)
        case Conditional(_, consequence, alternative):
            return _union((consequence, alternative), variables, context)
        case Constructor():
            return ItemKind.ELEMENT
        case Markup():
            return ItemKind.COMMENT
        case Computed(kind):
            return _SELECTED[kind]
        case Flwor():
            return _kinds_of_flwor(expression, variables, context)


def origin_kinds(
    path: PathExpression, variables: Mapping[str, ItemKind], context: ItemKind
) -> ItemKind:
    if path.origin is Origin.MESSAGE:
        return ItemKind.DOCUMENT
    if path.origin is Origin.VARIABLE:
        return variables[path.variable]
    if path.start is not None:
        return kinds_of(path.start, variables, context)
    return context


def kinds_after_step(kinds: ItemKind, step: LocationStep) -> ItemKind:
    if step.axis is None:
        return kinds_after(kinds, step.kind, step.descendant)
    return _kinds_on(kinds, step.axis) & _SELECTED[step.kind]


def kinds_after(kinds: ItemKind, step: NodeKind, descendant: bool) -> ItemKind:
    """What a step leads to from nodes of ``kinds``; NOTHING when it can lead nowhere."""
    match step:
        case NodeKind.SELF:
            return kinds
        case NodeKind.PARENT:
            return _kinds_on(kinds, Axis.PARENT)
        case NodeKind.ATTRIBUTE:
            leads_on = kinds & PARENTS if descendant else kinds & ItemKind.ELEMENT
            return ItemKind.ATTRIBUTE if leads_on else NOTHING
        case NodeKind.TEXT:
            leads_on = kinds & PARENTS if descendant else kinds & ItemKind.ELEMENT
            return ItemKind.TEXT if leads_on else NOTHING
        case _:
            return CHILDREN & _SELECTED[step] if kinds & PARENTS else NOTHING


def _kinds_on(kinds: ItemKind, axis: Axis) -> ItemKind:
    """What kinds of nodes are on an axis."""
    below = CHILDREN if kinds & PARENTS else NOTHING
    above = NOTHING
    if kinds & CHILDREN:
        above |= PARENTS
    if kinds & ItemKind.ATTRIBUTE:
        above |= ItemKind.ELEMENT if axis is Axis.PARENT else PARENTS
    match axis:
        case Axis.SELF:
            return kinds & NODES
        case Axis.PARENT | Axis.ANCESTOR:
            return above
        case Axis.ANCESTOR_OR_SELF:
            return above | kinds & NODES
        case Axis.DESCENDANT:
            return below
        case Axis.DESCENDANT_OR_SELF:
            return below | kinds & NODES
        case Axis.FOLLOWING_SIBLING | Axis.PRECEDING_SIBLING:
            return CHILDREN if kinds & CHILDREN else NOTHING
        case _:
            return CHILDREN if kinds & NODES else NOTHING


def _union(
    parts: tuple[Expression, ...], variables: Mapping[str, ItemKind], context: ItemKind
) -> ItemKind:
    return reduce(or_, (kinds_of(part, variables, context) for part in parts), NOTHING)


def _kinds_of_flwor(flwor: Flwor, variables: Mapping[str, ItemKind], context: ItemKind) -> ItemKind:
    scope = dict(variables)
    for clause in flwor.clauses:
        match clause:
            case ForClause(variable, source, position):
                scope[variable] = kinds_of(source, scope, context)
                if position:
                    scope[position] = ItemKind.NUMBER
            case LetClause(variable, value):
                scope[variable] = kinds_of(value, scope, context)
    return kinds_of(flwor.result, scope, context)
