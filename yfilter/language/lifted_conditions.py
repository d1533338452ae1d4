"""What a FLWOR expression asks of the elements of its first variable, as conditions on them.

``where`` is lifted: its conjuncts become predicates, with the first variable as the context item
and lets written out.  What later ``for`` clauses need to bind anything is a condition, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from yfilter.language.path_assembly import size_of
from yfilter.language.positions import downward, is_positional, may_be_number
from yfilter.language.query_ast import (
    And,
    Comparison,
    Expression,
    Flwor,
    ForClause,
    FunctionCall,
    LetClause,
    Literal,
    LocationStep,
    NodeKind,
    Operation,
    Or,
    Origin,
    PathExpression,
    Quantified,
    UserCall,
)
from yfilter.language.subexpressions import all_within, same_focus
from yfilter.language.trees import flat, split

# How long conditions may become by writing out variables; the conjuncts beyond are left to the
# remainder.
LIFTED_STEPS_MAX = 512


def with_predicates(path: PathExpression, predicates: tuple[Expression, ...]) -> PathExpression:
    last = path.steps[-1]
    merged = replace(last, predicates=last.predicates + predicates)
    return replace(path, steps=(*path.steps[:-1], merged))


@dataclass(frozen=True, slots=True)
class Lifted:
    """The conjuncts of a where clause as predicates on the first variable's elements."""

    predicates: tuple[Expression, ...]
    is_complete: bool


def lift(flwor: Flwor, first: ForClause) -> Lifted:
    if flwor.where is None:
        return Lifted((), True)
    bindings = _relative_bindings(flwor, first)
    conjuncts = split(flwor.where, And)
    predicates: list[Expression] = []
    steps_left = LIFTED_STEPS_MAX
    for conjunct in conjuncts:
        predicate = _relative(conjunct, bindings) or _bound_in(conjunct, first.variable)
        if predicate is not None:
            steps_left -= size_of(predicate)
            if steps_left >= 0:
                predicates.append(_as_predicate(predicate))
    return Lifted(tuple(predicates), len(predicates) == len(conjuncts))


def _bound_in(condition: Expression, variable: str) -> Expression | None:
    """A condition on a variable alone as a predicate: ``some $v in . satisfies condition``."""
    if _variables(condition) != {variable}:
        return None
    return Quantified(False, ((variable, PathExpression(Origin.CONTEXT, ())),), condition)


def _variables(expression: Expression) -> set[str]:
    """All variables in an expression, those that it binds itself included."""
    parts = all_within(expression)
    return {part.variable for part in parts if isinstance(part, PathExpression)} - {""}


def needed_later(flwor: Flwor, first: ForClause) -> tuple[Expression, ...]:
    """What an element of the first variable needs so that later ``for`` clauses bind anything.

    That their paths select something; and as a general comparison of ``$m`` holds for one of the
    elements that ``$m`` ranges over only if it holds for all of them taken together, what ``where``
    asks of them, with ``$m`` replaced by its path.
    """
    bindings = _relative_bindings(flwor, first)
    ranging: dict[str, Expression] = {}
    elsewhere: list[Expression] = []
    for clause in flwor.clauses[1:]:
        if isinstance(clause, ForClause) and isinstance(clause.path, PathExpression):
            path = _relative_path(clause.path, bindings | ranging)
            if isinstance(path, PathExpression) and _is_served(path):
                ranging[clause.variable] = path
            elif clause.path.origin is Origin.MESSAGE and not uses_variable(clause.path):
                elsewhere += _asked_elsewhere(flwor, clause.variable, clause.path)
    conditions = [*ranging.values(), *elsewhere]
    if flwor.where is not None and ranging:
        for conjunct in split(flwor.where, And):
            needed = _for_some(conjunct, bindings | ranging)
            if needed is not None and not ranging.keys().isdisjoint(_variables(conjunct)):
                conditions.append(needed)
    steps_left = LIFTED_STEPS_MAX
    kept = []
    for condition in dict.fromkeys(conditions):
        if not any(_goes_on(other, condition) for other in conditions):
            steps_left -= size_of(condition)
            if steps_left >= 0:
                kept.append(condition)
    return tuple(kept)


def _asked_elsewhere(flwor: Flwor, variable: str, path: PathExpression) -> list[PathExpression]:
    """A path from the message of a later clause, with what ``where`` asks of its items alone."""
    way = downward(path)
    path = way.path
    if not path.steps:
        return []
    if way.cut or path.steps[-1].kind is not NodeKind.ELEMENT or flwor.where is None:
        return [path]
    conjuncts = split(flwor.where, And)
    here = {variable: PathExpression(Origin.CONTEXT, ())}
    about = (_relative(part, here) for part in conjuncts if _variables(part) == {variable})
    asked = tuple(_as_predicate(part) for part in about if part is not None)
    return [with_predicates(path, asked)]


def _goes_on(condition: Expression, path: Expression) -> bool:
    """Whether a condition is about a path that begins with another one, and so implies it."""
    if isinstance(condition, Comparison):
        sides = (condition.left, condition.right)
        return path in sides or any(_goes_on(side, path) for side in sides)
    return (
        isinstance(condition, PathExpression)
        and isinstance(path, PathExpression)
        and len(condition.steps) > len(path.steps)
        and condition.steps[: len(path.steps)] == path.steps
    )


def _for_some(condition: Expression, bindings: Mapping[str, Expression]) -> Expression | None:
    """What holds with ranges in the place of variables, if the condition does for one binding."""
    match condition:
        case Literal():
            return condition
        case PathExpression():
            path = _relative_path(condition, bindings)
            is_path = isinstance(path, PathExpression) and _is_served(path)
            return path if is_path or isinstance(path, Literal) else None
        case Comparison(PathExpression() | Literal() as left, operator, right) if isinstance(
            right, PathExpression | Literal
        ):
            sides = _for_some(left, bindings), _for_some(right, bindings)
            if sides[0] is None or sides[1] is None:
                return None
            return Comparison(sides[0], operator, sides[1])
        case And(parts) | Or(parts):
            found = [_for_some(part, bindings) for part in parts]
            if None in found:
                return None
            return type(condition)(tuple(part for part in found if part is not None))
        case _:
            return None


def _is_served(path: PathExpression) -> bool:
    """Whether the path leads down from the context item, without positions."""
    return path.origin is Origin.CONTEXT and bool(path.steps) and downward(path).exact


def _as_predicate(condition: Expression) -> Expression:
    """A number in brackets would be a position; in a where clause it is true unless zero."""
    return FunctionCall("boolean", (condition,)) if may_be_number(condition) else condition


def _relative_bindings(flwor: Flwor, first: ForClause) -> dict[str, Expression]:
    """What each variable is, seen from an element of the first one, where that can be said.

    That is the first variable itself, and lets of a path from it or of a literal; not lets of
    function calls, as those could double in size with every let.
    """
    bindings: dict[str, Expression] = {first.variable: PathExpression(Origin.CONTEXT, ())}
    for clause in flwor.clauses[1:]:
        if isinstance(clause, LetClause) and isinstance(clause.value, PathExpression | Literal):
            value = _relative(clause.value, bindings)
            if value is not None:
                bindings[clause.variable] = value
    return bindings


def _relative(expression: Expression, bindings: Mapping[str, Expression]) -> Expression | None:
    """``expression`` with its variables replaced, or None where that cannot be done."""
    match expression:
        case Literal():
            return expression
        case PathExpression():
            return _relative_path(expression, bindings)
        case Comparison() | And() | Or() | FunctionCall() | Operation():
            parts = [_relative(part, bindings) for part in same_focus(expression)]
            known = tuple(part for part in parts if part is not None)
            return _with_parts(expression, known) if len(known) == len(parts) else None
        case _:
            return None if uses_variable(expression) else expression


def _with_parts(
    expression: Comparison | And | Or | FunctionCall | Operation, parts: tuple[Expression, ...]
) -> Expression:
    match expression:
        case Comparison():
            return Comparison(parts[0], expression.operator, parts[1])
        case And() | Or():
            return type(expression)(flat(parts, type(expression)))
        case _:
            return type(expression)(expression.name, parts)


def _relative_path(path: PathExpression, bindings: Mapping[str, Expression]) -> Expression | None:
    """A variable inside a predicate stays out of reach: the context is another one there."""
    if any(uses_variable(predicate) for step in path.steps for predicate in step.predicates):
        return None
    if path.start is not None:
        start = _relative(path.start, bindings)
        return None if start is None else replace(path, start=start)
    if path.origin is not Origin.VARIABLE:
        return path
    bound = bindings.get(path.variable)
    if not path.steps or bound is None:
        return bound
    is_filter = path.steps[0].kind is NodeKind.SELF and path.steps[0].axis is None
    if is_filter and any(map(is_positional, path.steps[0].predicates)):
        return PathExpression(Origin.EXPRESSION, path.steps, start=bound)
    assert isinstance(bound, PathExpression)  # the parser lets steps follow nodes only
    return joined(bound, path.steps)


def joined(path: PathExpression, steps: tuple[LocationStep, ...]) -> PathExpression:
    """``path/steps``; a leading ``.[a]`` gives its predicates to the step before it."""
    first, *rest = steps
    if first.kind is NodeKind.SELF and path.steps:
        last = path.steps[-1]
        merged = replace(last, predicates=last.predicates + first.predicates)
        return replace(path, steps=(*path.steps[:-1], merged, *rest))
    return replace(path, steps=path.steps + steps)


def uses_variable(expression: Expression) -> bool:
    """Also one that is declared, in the value of another."""
    return any(
        (isinstance(part, UserCall) and not part.library)
        or (isinstance(part, PathExpression) and part.origin is Origin.VARIABLE)
        for part in all_within(expression)
    )
