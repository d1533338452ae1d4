"""The direct parts of an expression, by whether its context item is theirs, and all of them."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, get_args

from yfilter.graph.query_ast import GraphQuery
from yfilter.language.query_ast import (
    CatchClause,
    Computed,
    Constructor,
    Expression,
    Flwor,
    ForClause,
    FunctionDeclaration,
    Grouping,
    LetClause,
    Literal,
    LocationStep,
    Mapped,
    OrderKey,
    PathExpression,
    SimpleMap,
    TypeCase,
    UserCall,
    WhereClause,
)
from yfilter.language.trees import parts_of

_EXPRESSIONS = frozenset(get_args(Expression))
_CLAUSES = frozenset(
    (
        *(tuple, LocationStep, FunctionDeclaration, TypeCase, CatchClause),
        *(ForClause, LetClause, WhereClause, OrderKey, Grouping),
    )
)
# What has expressions with another context item, or has them in another order than it is made.
_SAME_FOCUS: dict[type, Any] = {
    PathExpression: lambda path: (path.start,),
    Mapped: lambda mapped: (mapped.left,),
    SimpleMap: lambda mapped: (mapped.left,),
    UserCall: lambda call: call.arguments,
    Constructor: attrgetter("attributes", "content"),
    Computed: attrgetter("name", "content"),
    Flwor: attrgetter("clauses", "where", "group", "order", "result"),
    GraphQuery: lambda _: (),
    Literal: lambda _: (),
}
_NEW_FOCUS: dict[type, Any] = {
    PathExpression: lambda path: path.steps,
    Mapped: lambda mapped: (mapped.right,),
    SimpleMap: lambda mapped: (mapped.right,),
    UserCall: lambda call: call.library,
}


def same_focus(expression: Expression) -> list[Expression]:
    """The direct parts of an expression whose context item is that of the expression itself."""
    return _expressions(_SAME_FOCUS.get(type(expression), parts_of)(expression), [])


def new_focus(expression: Expression) -> list[Expression]:
    """The direct parts of an expression with another context item."""
    read = _NEW_FOCUS.get(type(expression))
    return [] if read is None else _expressions(read(expression), [])


def _expressions(parts: Any, found: list[Expression]) -> list[Expression]:
    """Those that are expressions, also in clauses and tuples."""
    for part in parts:
        kind = type(part)
        if kind in _EXPRESSIONS:
            found.append(part)
        elif kind in _CLAUSES:
            _expressions(part if kind is tuple else parts_of(part), found)
    return found


def all_within(expression: Expression) -> Iterator[Expression]:
    """An expression and all in it, each before its parts."""
    waiting = [expression]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += reversed((*same_focus(found), *new_focus(found)))
