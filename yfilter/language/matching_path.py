"""The matching part of a profile as one path (section 4.2.1).

::

    for $n in $msg/nitf                        /nitf[head/@area = "SF"][.//series]
    where $n/head/@area = "SF" and     ->
          $n//series and $n/@id = $m/@id           (the last conjunct is left to the remainder)

The engine and the routing table see only this path.  It never says less than the profile needs:
a message that it does not match gives no result.  Where it says less than the whole profile,
``has_remainder`` is true, and ``result.render`` decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from yfilter.language.functions import FUNCTIONS, ResultKind
from yfilter.language.query_ast import (
    ANY,
    And,
    Comparison,
    Constructor,
    Expression,
    Flwor,
    ForClause,
    FunctionCall,
    LetClause,
    Literal,
    LocationStep,
    NameTest,
    NodeKind,
    Or,
    Origin,
    PathExpression,
    Profile,
)

# How long conditions may become by writing out variables; the conjuncts beyond are left to the
# remainder.
LIFTED_STEPS_MAX = 512


def matching_path(profile: Profile) -> PathExpression:
    """The path whose elements the profile's results are made of; all its steps are elements."""
    flwor = profile.flwor
    if flwor is None:
        assert isinstance(profile.body, PathExpression)
        return _ending_in_element(profile.body)
    lifted = _lift(flwor)
    path = _first_clause(flwor).path
    last = path.steps[-1]
    merged = replace(last, predicates=last.predicates + lifted.predicates)
    return replace(path, steps=(*path.steps[:-1], merged))


def has_remainder(profile: Profile) -> bool:
    """Whether the profile can have no result although its matching path matched."""
    flwor = profile.flwor
    if flwor is None:
        return False
    if any(isinstance(clause, ForClause) for clause in flwor.clauses[1:]):
        return True
    return not _lift(flwor).is_complete or _can_be_empty(flwor.result, _first_clause(flwor))


@dataclass(frozen=True, slots=True)
class _Lifted:
    """The conjuncts of a where clause as predicates on the first variable's elements."""

    predicates: tuple[Expression, ...]
    is_complete: bool


def _lift(flwor: Flwor) -> _Lifted:
    if flwor.where is None:
        return _Lifted((), True)
    bindings = _relative_bindings(flwor)
    conjuncts = flwor.where.parts if isinstance(flwor.where, And) else (flwor.where,)
    predicates: list[Expression] = []
    steps_left = LIFTED_STEPS_MAX
    for conjunct in conjuncts:
        predicate = _relative(conjunct, bindings)
        if predicate is not None:
            steps_left -= _step_count(predicate)
            if steps_left >= 0:
                predicates.append(_as_predicate(predicate))
    return _Lifted(tuple(predicates), len(predicates) == len(conjuncts))


def _as_predicate(condition: Expression) -> Expression:
    """A number in brackets would be a position; in a where clause it is true unless zero."""
    is_number = (
        FUNCTIONS[condition.name].result is ResultKind.NUMBER
        if isinstance(condition, FunctionCall)
        else isinstance(condition, Literal) and not isinstance(condition.value, str)
    )
    return FunctionCall("not", (FunctionCall("not", (condition,)),)) if is_number else condition


def _step_count(expression: Expression) -> int:
    match expression:
        case PathExpression(_, steps):
            return len(steps) + sum(
                _step_count(predicate) for step in steps for predicate in step.predicates
            )
        case Comparison(left, _, right):
            return _step_count(left) + _step_count(right)
        case And(parts) | Or(parts) | FunctionCall(_, parts):
            return sum(map(_step_count, parts))
        case _:
            return 0


def _relative_bindings(flwor: Flwor) -> dict[str, Expression]:
    """What each variable is, seen from an element of the first one, where that can be said.

    That is the first variable itself, and lets of a path from it or of a literal; not lets of
    function calls, as those could double in size with every let.
    """
    bindings: dict[str, Expression] = {
        _first_clause(flwor).variable: PathExpression(Origin.CONTEXT, ())
    }
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
        case Comparison(left, operator, right):
            new_left, new_right = _relative(left, bindings), _relative(right, bindings)
            if new_left is None or new_right is None:
                return None
            return Comparison(new_left, operator, new_right)
        case And(parts):
            new_parts = _relative_all(parts, bindings)
            return None if new_parts is None else And(_flat(And, new_parts))
        case Or(parts):
            new_parts = _relative_all(parts, bindings)
            return None if new_parts is None else Or(_flat(Or, new_parts))
        case FunctionCall(name, arguments):
            new_arguments = _relative_all(arguments, bindings)
            return None if new_arguments is None else FunctionCall(name, new_arguments)
        case Constructor() | Flwor():
            return None


def _relative_all(
    expressions: tuple[Expression, ...], bindings: Mapping[str, Expression]
) -> tuple[Expression, ...] | None:
    replaced = [_relative(expression, bindings) for expression in expressions]
    complete = tuple(expression for expression in replaced if expression is not None)
    return complete if len(complete) == len(replaced) else None


def _relative_path(path: PathExpression, bindings: Mapping[str, Expression]) -> Expression | None:
    """A variable inside a predicate stays out of reach: the context is another one there."""
    if any(_uses_variable(predicate) for step in path.steps for predicate in step.predicates):
        return None
    if path.origin is not Origin.VARIABLE:
        return path
    bound = bindings.get(path.variable)
    if not path.steps or bound is None:
        return bound
    assert isinstance(bound, PathExpression)  # the parser lets steps follow nodes only
    return _joined(bound, path.steps)


def _joined(path: PathExpression, steps: tuple[LocationStep, ...]) -> PathExpression:
    """``path/steps``; a leading ``.[a]`` gives its predicates to the step before it."""
    first, *rest = steps
    if first.kind is NodeKind.SELF and path.steps:
        last = path.steps[-1]
        merged = replace(last, predicates=last.predicates + first.predicates)
        return replace(path, steps=(*path.steps[:-1], merged, *rest))
    return replace(path, steps=path.steps + steps)


def _flat(kind: type[And] | type[Or], parts: tuple[Expression, ...]) -> tuple[Expression, ...]:
    flat: list[Expression] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, kind) else (part,))
    return tuple(flat)


def _uses_variable(expression: Expression) -> bool:
    match expression:
        case PathExpression(origin, steps):
            return origin is Origin.VARIABLE or any(
                _uses_variable(predicate) for step in steps for predicate in step.predicates
            )
        case Comparison(left, _, right):
            return _uses_variable(left) or _uses_variable(right)
        case And(parts) | Or(parts) | FunctionCall(_, parts):
            return any(map(_uses_variable, parts))
        case Literal():
            return False
        case Constructor() | Flwor():
            return True


def _can_be_empty(result: Expression, first: ForClause) -> bool:
    """Whether a FLWOR's result can be nothing for an element of the first variable."""
    match result:
        case PathExpression(Origin.VARIABLE, (), variable):
            return variable != first.variable
        case PathExpression() | Flwor():
            return True
        case _:
            return False


def _first_clause(flwor: Flwor) -> ForClause:
    first = flwor.clauses[0]
    assert isinstance(first, ForClause)  # the parser sees to it
    return first


def _ending_in_element(path: PathExpression) -> PathExpression:
    """The path with a last step to attributes or text made a predicate of the step before it."""
    last = path.steps[-1]
    if last.kind is NodeKind.ELEMENT:
        return path
    before = path.steps[:-1]
    if not before:
        # "//@x": the document itself has no attributes, so this is about its elements.
        before = (LocationStep(True, NodeKind.ELEMENT, NameTest(ANY, ANY)),)
        last = replace(last, descendant=False)
    predicate = PathExpression(Origin.CONTEXT, (last,))
    ending = replace(before[-1], predicates=(*before[-1].predicates, predicate))
    return replace(path, steps=(*before[:-1], ending))
