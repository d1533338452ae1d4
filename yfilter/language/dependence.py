"""What the value of an expression depends on: variables bound around it, its context item."""

from __future__ import annotations

from collections.abc import Iterator

from yfilter.language import query_ast as ast
from yfilter.language.functions import CONTEXT_FUNCTIONS, signature_of
from yfilter.language.subexpressions import new_focus, same_focus


def free_variables(expression: ast.Expression) -> frozenset[str]:
    """The variables that it uses and does not bind; no name is bound twice in a profile."""
    used: set[str] = set()
    bound: set[str] = set()
    _collect(expression, used, bound)
    return frozenset(used - bound)


def bound_by(expression: ast.Expression) -> Iterator[str]:
    """The variables that it binds itself."""
    match expression:
        case ast.Quantified(_, bindings):
            yield from (name for name, _ in bindings)
        case ast.Flwor(clauses) | ast.Transform(clauses):
            if isinstance(expression, ast.Flwor) and expression.group is not None:
                yield from (name for name, value in expression.group.keys if value is not None)
                clauses = (*clauses, *expression.group.clauses)
            for clause in clauses:
                if isinstance(clause, ast.ForClause):
                    yield from (clause.variable, clause.position)
                elif isinstance(clause, ast.LetClause):
                    yield clause.variable
        case ast.TryCatch():
            yield from ast.ERROR_VARIABLES
        case ast.Typeswitch(_, cases):
            yield from (case.variable for case in cases)


def uses_context(expression: ast.Expression) -> bool:
    """Whether the context item, its position or their number comes into it."""
    match expression:
        case ast.PathExpression(ast.Origin.CONTEXT) | ast.Part():
            return True
        case ast.FunctionCall(name, ()):
            signature = signature_of(name)
            if name in ("position", "last") or signature is None or signature.context:
                return True
        case ast.FunctionCall(name) if name in CONTEXT_FUNCTIONS:
            return True
    return any(map(uses_context, same_focus(expression)))


def _collect(expression: ast.Expression, used: set[str], bound: set[str]) -> None:
    match expression:
        case ast.PathExpression(ast.Origin.VARIABLE):
            used.add(expression.variable)
        case ast.Part():
            used.add(expression.variable)
            return
    bound.update(bound_by(expression))
    inner = () if isinstance(expression, ast.UserCall) else new_focus(expression)
    for part in (*same_focus(expression), *inner):
        _collect(part, used, bound)
