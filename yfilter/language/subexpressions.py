"""The direct parts of an expression, by whether its context item is theirs."""

from __future__ import annotations

from collections.abc import Iterator

from formats.names import QualifiedName
from yfilter.language.query_ast import (
    And,
    Cast,
    Clause,
    Comparison,
    Computed,
    Conditional,
    Constructor,
    Expression,
    Flwor,
    ForClause,
    FunctionCall,
    LetClause,
    Mapped,
    Operation,
    Or,
    Part,
    PathExpression,
    Quantified,
    Sequence,
    SimpleMap,
    Transform,
    TryCatch,
    Typed,
    Typeswitch,
    Update,
    UserCall,
    WhereClause,
)


def same_focus(expression: Expression) -> Iterator[Expression]:
    """The direct parts of an expression whose context item is that of the expression itself."""
    match expression:
        case PathExpression():
            if expression.start is not None:
                yield expression.start
        case Mapped(left) | SimpleMap(left):
            yield left
        case TryCatch(body, clauses):
            yield body
            yield from (clause.result for clause in clauses)
        case Comparison(left, _, right):
            yield from (left, right)
        case And(parts) | Or(parts) | Sequence(parts):
            yield from parts
        case Operation(_, operands) | FunctionCall(_, operands) | UserCall(_, operands):
            yield from operands
        case Conditional(condition, consequence, alternative):
            yield from (condition, consequence, alternative)
        case Quantified(_, bindings, condition):
            yield from (source for _, source in bindings)
            yield condition
        case Cast(operand) | Typed(operand):
            yield operand
        case Typeswitch(operand, cases):
            yield operand
            yield from (case.result for case in cases)
        case Update(_, target, source):
            yield target
            if not isinstance(source, QualifiedName):
                yield source
        case Transform(copies, changes, result):
            yield from (copy.value for copy in copies)
            yield from (changes, result)
        case Part():
            yield expression.expression
        case Constructor():
            for _, value in expression.attributes:
                yield from (part for part in value if not isinstance(part, str))
            yield from (part for part in expression.content if not isinstance(part, str))
        case Computed(_, name, content):
            if name is not None and not isinstance(name, QualifiedName):
                yield name
            yield content
        case Flwor():
            yield from _parts_of_flwor(expression)


def new_focus(expression: Expression) -> Iterator[Expression]:
    """The direct parts of an expression with another context item."""
    if isinstance(expression, PathExpression):
        for step in expression.steps:
            yield from step.predicates
    elif isinstance(expression, Mapped | SimpleMap):
        yield expression.right
    elif isinstance(expression, UserCall):
        yield from (function.body for function in expression.library)


def _parts_of_clauses(
    clauses: tuple[Clause, ...], where: Expression | None
) -> Iterator[Expression]:
    for clause in clauses:
        match clause:
            case ForClause(_, source) | LetClause(_, source) | WhereClause(source):
                yield source
    if where is not None:
        yield where


def user_calls(expression: Expression) -> Iterator[UserCall]:
    """All calls in it, and in what they call."""
    if isinstance(expression, UserCall):
        yield expression
    for part in (*same_focus(expression), *new_focus(expression)):
        yield from user_calls(part)


def _parts_of_flwor(flwor: Flwor) -> Iterator[Expression]:
    yield from _parts_of_clauses(flwor.clauses, flwor.where)
    if flwor.group is not None:
        yield from (value for _, value in flwor.group.keys if value is not None)
        yield from _parts_of_clauses(flwor.group.clauses, flwor.group.where)
    yield from (key.key for key in flwor.order)
    yield flwor.result
