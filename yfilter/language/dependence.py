"""What the value of an expression depends on: variables bound around it, its context item."""

from __future__ import annotations

from collections.abc import Iterator

from yfilter.language.function_library import CONTEXT_FUNCTIONS, signature_of
from yfilter.language.query_ast import (
    ERROR_VARIABLES,
    Expression,
    Flwor,
    ForClause,
    FunctionCall,
    LetClause,
    Origin,
    Part,
    PathExpression,
    Quantified,
    Transform,
    TryCatch,
    Typeswitch,
    UserCall,
)
from yfilter.language.subexpressions import new_focus, same_focus


def free_variables(expression: Expression) -> frozenset[str]:
    """The variables that it uses and does not bind; no name is bound twice in a profile."""
    used: set[str] = set()
    bound: set[str] = set()
    _collect(expression, used, bound)
    return frozenset(used - bound)


def bound_by(expression: Expression) -> Iterator[str]:
    """The variables that it binds itself."""
    match expression:
        case Quantified(_, bindings):
            yield from (name for name, _ in bindings)
        case Flwor(clauses) | Transform(clauses):
            if isinstance(expression, Flwor) and expression.group is not None:
                yield from (name for name, value in expression.group.keys if value is not None)
                clauses = (*clauses, *expression.group.clauses)
            for clause in clauses:
                if isinstance(clause, ForClause):
                    yield from (clause.variable, clause.position)
                elif isinstance(clause, LetClause):
                    yield clause.variable
        case TryCatch():
            yield from ERROR_VARIABLES
        case Typeswitch(_, cases):
            yield from (case.variable for case in cases)


def uses_context(expression: Expression) -> bool:
    """Whether the context item, its position or their number comes into it."""
    match expression:
        case PathExpression(Origin.CONTEXT) | Part():
            return True
        case FunctionCall(name, ()):
            signature = signature_of(name)
            if name in ("position", "last") or signature is None or signature.context:
                return True
        case FunctionCall(name) if name in CONTEXT_FUNCTIONS:
            return True
    return any(map(uses_context, same_focus(expression)))


def _collect(expression: Expression, used: set[str], bound: set[str]) -> None:
    match expression:
        case PathExpression(Origin.VARIABLE):
            used.add(expression.variable)
        case Part():
            used.add(expression.variable)
            return
    bound.update(bound_by(expression))
    inner = () if isinstance(expression, UserCall) else new_focus(expression)
    for part in (*same_focus(expression), *inner):
        _collect(part, used, bound)
