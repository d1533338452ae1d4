"""Static types of the profile language: what kinds of items an expression can yield.

There is no schema, so the kinds follow from the text alone.  They let the parser refuse at
registration what XQuery would call a type error, and what can never select anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, reduce
from operator import or_
from typing import Final, TypeAlias

from yfilter.graph.query_ast import GraphQuery
from yfilter.language import query_ast as ast
from yfilter.language.functions import ResultKind, signature_of, type_result

# A set of ItemKinds, one bit each.  PERF: numbers, not an enum.Flag, whose operators are calls of
# Python (a third of the time of parsing a profile).
Kinds: TypeAlias = int


class ItemKind:
    """The kinds of items in a value; a union where several are possible."""

    DOCUMENT: Final = 1
    ELEMENT: Final = 2
    ATTRIBUTE: Final = 4
    TEXT: Final = 8
    COMMENT: Final = 16  # or a processing instruction
    STRING: Final = 32
    NUMBER: Final = 64
    BOOLEAN: Final = 128
    DATE: Final = 256
    DATE_TIME: Final = 512
    OTHER: Final = 1024  # durations, times and what else elementpath reckons with


NOTHING: Kinds = 0
PARENTS = ItemKind.DOCUMENT | ItemKind.ELEMENT
CHILDREN = ItemKind.ELEMENT | ItemKind.TEXT | ItemKind.COMMENT
NODES = PARENTS | ItemKind.ATTRIBUTE | CHILDREN
TEMPORAL = ItemKind.DATE | ItemKind.DATE_TIME
ATOMS = ItemKind.STRING | ItemKind.NUMBER | ItemKind.BOOLEAN | TEMPORAL | ItemKind.OTHER
ANYTHING = NODES | ATOMS

_RESULTS = {
    ResultKind.STRING: ItemKind.STRING,
    ResultKind.NUMBER: ItemKind.NUMBER,
    ResultKind.BOOLEAN: ItemKind.BOOLEAN,
    ResultKind.DATE: ItemKind.DATE,
    ResultKind.DATE_TIME: ItemKind.DATE_TIME,
    ResultKind.OTHER: ItemKind.OTHER,
    ResultKind.ANY: ANYTHING,
}
_OF_ITS_ARGUMENT = frozenset(
    (
        *("zero-or-one", "one-or-more", "exactly-one", "reverse", "subsequence", "remove"),
        *("head", "tail"),
    )
)
_OPERATIONS = {
    **dict.fromkeys(("+", "-", "*", "div", "idiv", "mod", "to", "negate"), ItemKind.NUMBER),
    **dict.fromkeys(("|", "intersect", "except"), NODES),
}
_SELECTED = {
    ast.NodeKind.ELEMENT: ItemKind.ELEMENT,
    ast.NodeKind.ATTRIBUTE: ItemKind.ATTRIBUTE,
    ast.NodeKind.TEXT: ItemKind.TEXT,
    ast.NodeKind.COMMENT: ItemKind.COMMENT,
    ast.NodeKind.PROCESSING_INSTRUCTION: ItemKind.COMMENT,
    ast.NodeKind.DOCUMENT: ItemKind.DOCUMENT,
    ast.NodeKind.NODE: NODES,
}


def kinds_of(expression: ast.Expression, variables: Mapping[str, Kinds], context: Kinds) -> Kinds:
    """The kinds of items that ``expression`` can yield.

    ``context`` is what ``.`` can be; ``variables`` what the bound variables can be.
    """
    match expression:
        case ast.PathExpression():
            kinds = origin_kinds(expression, variables, context)
            for step in expression.steps:
                kinds = kinds_after_step(kinds, step)
            return kinds
        case ast.Mapped(left, right):
            return kinds_of(right, variables, kinds_of(left, variables, context) & NODES)
        case ast.SimpleMap(left, right):
            return kinds_of(right, variables, kinds_of(left, variables, context))
        case ast.TryCatch(body, clauses):
            scope = {**variables, **dict.fromkeys(ast.ERROR_VARIABLES, ANYTHING)}
            handled = tuple(clause.result for clause in clauses)
            return kinds_of(body, variables, context) | _union(handled, scope, context)
        case ast.Literal(value):
            return ItemKind.STRING if isinstance(value, str) else ItemKind.NUMBER
        case ast.Comparison() | ast.And() | ast.Or() | ast.Quantified():
            return ItemKind.BOOLEAN
        case ast.Operation("|" | "intersect" | "except", operands):
            return _union(operands, variables, context)
        case ast.Operation("+" | "-" | "*" | "div", operands) if _union(
            operands, variables, context
        ) & (TEMPORAL | ItemKind.OTHER):
            return ATOMS
        case ast.Operation(name):
            return _OPERATIONS.get(name, ItemKind.BOOLEAN)
        case ast.Cast():
            result = type_result(expression.type)
            assert result is not None  # the parser looked it up
            return ItemKind.BOOLEAN if expression.castable else _RESULTS[result]
        case ast.Typed(operand):
            inner = kinds_of(operand, variables, context)
            let_through = inner & kinds_of_type(expression.type)
            return let_through if expression.treat else ItemKind.BOOLEAN
        case ast.Typeswitch(operand, cases):
            operand_kinds = kinds_of(operand, variables, context)
            found = NOTHING
            for case_ in cases:
                narrowed = kinds_of_case(case_.types, operand_kinds)
                scope = {**variables, case_.variable: narrowed}
                found |= kinds_of(case_.result, scope, context)
            return found
        case ast.UserCall(name, arguments, library):
            key = function_key(name, len(arguments))
            return _kinds_of_functions(library)[key] if library else variables.get(key, ANYTHING)
        case ast.FunctionCall(name, arguments) if name in _OF_ITS_ARGUMENT:
            return kinds_of(arguments[0], variables, context)
        case ast.FunctionCall("root"):
            return PARENTS
        case ast.FunctionCall("error"):
            return NOTHING
        case ast.FunctionCall("insert-before", (items, _, inserted)):
            return _union((items, inserted), variables, context)
        case ast.FunctionCall("min" | "max" | "distinct-values" | "data"):
            return ATOMS
        case ast.FunctionCall(name):
            signature = signature_of(name)
            assert signature is not None  # the parser looked it up
            return _RESULTS[signature.result]
        case ast.Sequence(parts):
            return _union(parts, variables, context)
        case ast.Conditional(_, consequence, alternative):
            return _union((consequence, alternative), variables, context)
        case ast.Part():
            return ANYTHING
        case ast.Constructor():
            return ItemKind.ELEMENT
        case ast.Markup():
            return ItemKind.COMMENT
        case ast.Computed(kind):
            return _SELECTED[kind]
        case ast.Flwor():
            return _kinds_of_flwor(expression, variables, context)
        case ast.Update() | GraphQuery():  # the latter stands alone
            return NOTHING
        case ast.Transform(copies, _, result):
            scope = dict(variables)
            for copy in copies:
                scope[copy.variable] = kinds_of(copy.value, scope, context) & NODES
            return kinds_of(result, scope, context)


def kinds_of_type(type_: ast.SequenceType | None) -> Kinds:
    """What a declared type lets through; anything if there is none."""
    if type_ is None or type_.name == "item":
        return ANYTHING
    if type_.kind is not None:
        return _SELECTED[type_.kind]
    if type_.name == "empty-sequence":
        return NOTHING
    result = None if type_.name == "xs:untypedAtomic" else type_result(type_.name)
    return ATOMS if result is None else _RESULTS[result]


def kinds_of_case(types: tuple[ast.SequenceType, ...], operand: Kinds) -> Kinds:
    """What is left of the kinds of an operand in a case of ``typeswitch``."""
    return operand & reduce(or_, map(kinds_of_type, types)) if types else operand


def function_key(name: str, arity: int) -> str:
    """What a declared function is found by among the variables of a scope."""
    return f"{name}#{arity}"


@lru_cache(maxsize=256)
def _kinds_of_functions(library: tuple[ast.FunctionDeclaration, ...]) -> Mapping[str, Kinds]:
    """What each function yields: the least that agrees with all their bodies."""
    known = {function_key(one.name, len(one.parameters)): NOTHING for one in library}
    while True:
        found = dict(known)
        for function in library:
            parameters = {name: kinds_of_type(type_) for name, type_ in function.parameters}
            inside = kinds_of(function.body, {**known, **parameters}, NOTHING)
            if function.result is not None:
                inside = kinds_of_type(function.result)
            key = function_key(function.name, len(parameters))
            found[key] = known[key] | inside
        if found == known:
            return known
        known = found


def origin_kinds(path: ast.PathExpression, variables: Mapping[str, Kinds], context: Kinds) -> Kinds:
    if path.origin is ast.Origin.MESSAGE:
        return ItemKind.DOCUMENT
    if path.origin is ast.Origin.VARIABLE:
        return variables[path.variable]
    if path.start is not None:
        return kinds_of(path.start, variables, context)
    return context


def kinds_after_step(kinds: Kinds, step: ast.LocationStep) -> Kinds:
    if step.axis is None:
        return kinds_after(kinds, step.kind, step.descendant)
    return _kinds_on(kinds, step.axis) & _SELECTED[step.kind]


def kinds_after(kinds: Kinds, step: ast.NodeKind, descendant: bool) -> Kinds:
    """What a step leads to from nodes of ``kinds``; NOTHING when it can lead nowhere."""
    if step is ast.NodeKind.ELEMENT:
        return ItemKind.ELEMENT if kinds & PARENTS else NOTHING
    if step is ast.NodeKind.SELF:
        return kinds
    if step is ast.NodeKind.PARENT:
        return _kinds_on(kinds, ast.Axis.PARENT)
    if step in (ast.NodeKind.ATTRIBUTE, ast.NodeKind.TEXT):
        leads_on = kinds & PARENTS if descendant else kinds & ItemKind.ELEMENT
        return _SELECTED[step] if leads_on else NOTHING
    return CHILDREN & _SELECTED[step] if kinds & PARENTS else NOTHING


def _kinds_on(kinds: Kinds, axis: ast.Axis) -> Kinds:
    """What kinds of nodes are on an axis."""
    below = CHILDREN if kinds & PARENTS else NOTHING
    above = NOTHING
    if kinds & CHILDREN:
        above |= PARENTS
    if kinds & ItemKind.ATTRIBUTE:
        above |= ItemKind.ELEMENT if axis is ast.Axis.PARENT else PARENTS
    match axis:
        case ast.Axis.SELF:
            return kinds & NODES
        case ast.Axis.PARENT | ast.Axis.ANCESTOR:
            return above
        case ast.Axis.ANCESTOR_OR_SELF:
            return above | kinds & NODES
        case ast.Axis.DESCENDANT:
            return below
        case ast.Axis.DESCENDANT_OR_SELF:
            return below | kinds & NODES
        case ast.Axis.FOLLOWING_SIBLING | ast.Axis.PRECEDING_SIBLING:
            return CHILDREN if kinds & CHILDREN else NOTHING
        case _:
            return CHILDREN if kinds & NODES else NOTHING


def _union(
    parts: tuple[ast.Expression, ...], variables: Mapping[str, Kinds], context: Kinds
) -> Kinds:
    return reduce(or_, (kinds_of(part, variables, context) for part in parts), NOTHING)


def _kinds_of_clauses(
    clauses: tuple[ast.Clause, ...], scope: dict[str, Kinds], context: Kinds
) -> None:
    """Adds what clauses bind to ``scope``."""
    for clause in clauses:
        match clause:
            case ast.ForClause(variable, source, position):
                scope[variable] = kinds_of(source, scope, context)
                if position:
                    scope[position] = ItemKind.NUMBER
            case ast.LetClause(variable, value):
                scope[variable] = kinds_of(value, scope, context)


def _kinds_of_flwor(flwor: ast.Flwor, variables: Mapping[str, Kinds], context: Kinds) -> Kinds:
    scope = dict(variables)
    _kinds_of_clauses(flwor.clauses, scope, context)
    if flwor.group is not None:
        scope.update(dict.fromkeys((name for name, _ in flwor.group.keys), ATOMS))
        _kinds_of_clauses(flwor.group.clauses, scope, context)
    return kinds_of(flwor.result, scope, context)
