"""The direct parts of an expression, by whether its context item is theirs, and all of them."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, get_args

from yfilter.graph.query_ast import GraphQuery
from yfilter.language import query_ast as ast
from yfilter.language.trees import parts_of

_EXPRESSIONS = frozenset(get_args(ast.Expression))
_CLAUSES = frozenset(
    (
        *(tuple, ast.LocationStep, ast.FunctionDeclaration, ast.TypeCase, ast.CatchClause),
        *(ast.ForClause, ast.LetClause, ast.WhereClause, ast.OrderKey, ast.Grouping),
    )
)
# What has expressions with another context item, or has them in another order than it is made.
_SAME_FOCUS: dict[type, Any] = {
    ast.PathExpression: lambda path: (path.start,),
    ast.Mapped: lambda mapped: (mapped.left,),
    ast.SimpleMap: lambda mapped: (mapped.left,),
    ast.UserCall: lambda call: call.arguments,
    ast.Constructor: attrgetter("attributes", "content"),
    ast.Computed: attrgetter("name", "content"),
    ast.Flwor: attrgetter("clauses", "where", "group", "order", "result"),
    GraphQuery: lambda _: (),
    ast.Literal: lambda _: (),
}
_NEW_FOCUS: dict[type, Any] = {
    ast.PathExpression: lambda path: path.steps,
    ast.Mapped: lambda mapped: (mapped.right,),
    ast.SimpleMap: lambda mapped: (mapped.right,),
    ast.UserCall: lambda call: call.library,
}


def same_focus(expression: ast.Expression) -> list[ast.Expression]:
    """The direct parts of an expression whose context item is that of the expression itself."""
    return _expressions(_SAME_FOCUS.get(type(expression), parts_of)(expression), [])


def new_focus(expression: ast.Expression) -> list[ast.Expression]:
    """The direct parts of an expression with another context item."""
    read = _NEW_FOCUS.get(type(expression))
    return [] if read is None else _expressions(read(expression), [])


def _expressions(parts: Any, found: list[ast.Expression]) -> list[ast.Expression]:
    """Those that are expressions, also in clauses and tuples."""
    for part in parts:
        kind = type(part)
        if kind in _EXPRESSIONS:
            found.append(part)
        elif kind in _CLAUSES:
            _expressions(part if kind is tuple else parts_of(part), found)
    return found


def all_within(expression: ast.Expression) -> Iterator[ast.Expression]:
    """An expression and all in it, each before its parts."""
    waiting = [expression]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += reversed((*same_focus(found), *new_focus(found)))
