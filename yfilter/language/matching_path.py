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

from formats.graph.striped import GRAPH, GRAPH_NAMESPACE
from yfilter.graph.query_ast import GraphQuery, QueryForm, ResultSyntax
from yfilter.graph.stars import graph_part
from yfilter.language.query_ast import (
    ANY_NAME,
    DOT,
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
    Operation,
    Or,
    Origin,
    PathExpression,
    Profile,
    Quantified,
    UserCall,
    absolute,
    needed_by_one,
    relative,
)
from yfilter.language.trees import split

# -------------------------------------------------------------------------------------------------
# What a FLWOR expression asks of the elements of its first variable, as conditions on them.
#
# ``where`` is lifted: its conjuncts become predicates, with the first variable as the context item
# and lets written out.  What later ``for`` clauses need to bind anything is a condition, too.


# How long conditions may become by writing out variables; the conjuncts beyond are left to the
# remainder.
LIFTED_STEPS_MAX = 512


@dataclass(frozen=True, slots=True)
class Lifted:
    """The conjuncts of a where clause as predicates on the first variable's elements."""

    predicates: tuple[Expression, ...]
    is_complete: bool


def lift(flwor: Flwor, first: ForClause) -> Lifted:
    if flwor.where is None:
        return Lifted((), True)
    bindings = _relative_bindings(flwor, first)
    conjuncts = split(flwor.where.as_condition(), And)
    predicates: list[Expression] = []
    steps_left = LIFTED_STEPS_MAX
    for conjunct in conjuncts:
        predicate = _relative(conjunct, bindings) or _bound_in(conjunct, first.variable)
        if predicate is not None:
            steps_left -= predicate.size
            if steps_left >= 0:
                predicates.append(predicate.as_predicate())
    return Lifted(tuple(predicates), len(predicates) == len(conjuncts))


def _bound_in(condition: Expression, variable: str) -> Expression | None:
    """A condition on a variable alone as a predicate: ``some $v in . satisfies condition``."""
    if _variables(condition) != {variable}:
        return None
    return Quantified(False, ((variable, DOT),), condition)


def _variables(expression: Expression) -> set[str]:
    """All variables in an expression, those that it binds itself included."""
    parts = expression.within()
    return {part.refers() for part in parts} - {""}


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
            path = _relative(clause.path, bindings | ranging)
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
            steps_left -= condition.size
            if steps_left >= 0:
                kept.append(condition)
    return tuple(kept)


def _asked_elsewhere(flwor: Flwor, variable: str, path: PathExpression) -> list[PathExpression]:
    """A path from the message of a later clause, with what ``where`` asks of its items alone."""
    way = path.downward()
    path = way.path
    if not path.steps:
        return []
    if way.cut or path.steps[-1].kind is not NodeKind.ELEMENT or flwor.where is None:
        return [path]
    conjuncts = split(flwor.where, And)
    here = {variable: DOT}
    about = (_relative(part, here) for part in conjuncts if _variables(part) == {variable})
    asked = tuple(part.as_predicate() for part in about if part is not None)
    return [path.with_predicates(asked)]


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
    found = _relative(condition, bindings)
    return found if found is not None and _is_of_some(found) else None


def _is_of_some(condition: Expression) -> bool:
    if isinstance(condition, And | Or):
        return all(map(_is_of_some, condition.parts))
    sides = condition.same_focus() if isinstance(condition, Comparison) else [condition]
    return all(isinstance(side, Literal) or _is_served(side) for side in sides)


def _is_served(value: Expression) -> bool:
    """Whether it is a path that leads down from the context item, without positions."""
    if not isinstance(value, PathExpression) or value.origin is not Origin.CONTEXT:
        return False
    return bool(value.steps) and value.downward().exact


def _relative_bindings(flwor: Flwor, first: ForClause) -> dict[str, Expression]:
    """What each variable is, seen from an element of the first one, where that can be said.

    That is the first variable itself, and lets of a path from it or of a literal; not lets of
    function calls, as those could double in size with every let.
    """
    bindings: dict[str, Expression] = {first.variable: DOT}
    for clause in flwor.clauses[1:]:
        if isinstance(clause, LetClause) and isinstance(clause.value, PathExpression | Literal):
            value = _relative(clause.value, bindings)
            if value is not None:
                bindings[clause.variable] = value
    return bindings


def _relative(expression: Expression, bindings: Mapping[str, Expression]) -> Expression | None:
    """``expression`` with its variables replaced, or None where that cannot be done."""
    found = expression.replaced(bindings)
    return None if found is None or uses_variable(found) else found


def uses_variable(expression: Expression) -> bool:
    """Also one that is declared, in the value of another."""
    return any(
        (isinstance(part, UserCall) and not part.library) or part.origin is Origin.VARIABLE
        for part in expression.within()
    )


# -------------------------------------------------------------------------------------------------


_EVERY_MESSAGE = absolute(LocationStep(False, NodeKind.ELEMENT, ANY_NAME))
_EVERY_GRAPH = absolute(LocationStep(False, NodeKind.ELEMENT, NameTest(GRAPH_NAMESPACE, GRAPH)))


@dataclass(frozen=True, slots=True)
class MatchingPart:
    """``path``: its steps are elements, and all that the routing table sees.

    ``binds``: the first for clause binds just the path's elements, as far as ``where`` lets them
    through.  ``has_remainder``: the profile can have no result although the path matched.
    ``paths``: the engine looks for one of these, which say together what ``path`` does, or more.
    ``bound``: paths that select together just the elements that a path does, or that the first for
    clause binds and ``where`` lets through; none where that is not known.  ``verified``: what has
    to hold besides; ``is_verified``: then the profile has results, whatever ``has_remainder`` says.
    ``where_holds``: ``where`` holds for all of ``bound``.
    """

    path: Expression
    binds: bool
    has_remainder: bool
    paths: tuple[Expression, ...]
    bound: tuple[PathExpression, ...] = ()
    verified: Expression | None = None
    is_verified: bool = False
    where_holds: bool = False


def matching_path(profile: Profile) -> Expression:
    """The path whose elements the profile's results are made of; all its steps are elements."""
    return matching_part(profile).path


def matching_part(profile: Profile) -> MatchingPart:
    """PERF: found once, as the index and the routing query begin with it."""
    if profile.matching is None:
        profile.matching = _matching_part(profile)
    return profile.matching


def _matching_part(profile: Profile) -> MatchingPart:
    body = profile.body
    flwor = profile.flwor
    if isinstance(body, GraphQuery):
        return _part_of_graph(body)
    if body.is_path():
        return _part_of_path(body)
    if flwor is not None and flwor.clauses and isinstance(flwor.clauses[0], ForClause):
        sources = alternatives(flwor.clauses[0].path)
        if sources is not None:
            plain = tuple([source.as_condition() for source in sources])
            return _part_of_flwor(flwor, flwor.clauses[0], plain)
    path = _one_path(_needed(body))
    return MatchingPart(path, False, True, (path,))


def delivers_message(body: Expression) -> bool:
    """Whether the result of a profile is the message as it came."""
    if isinstance(body, GraphQuery):
        return body.form is QueryForm.ASK and body.results is ResultSyntax.AS_PUBLISHED
    return body.is_path()


def alternatives(expression: Expression) -> tuple[PathExpression, ...] | None:
    """Paths from the message that select together what an expression does, if there are such:
    of ``(/a | /b)[c]/d`` ``/a[c]/d`` and ``/b[c]/d``."""
    match expression:
        case PathExpression(Origin.MESSAGE, steps) if steps:
            return (expression,)
        case Operation("|", (left, right)):
            one, other = alternatives(left), alternatives(right)
            return None if one is None or other is None else (*one, *other)
        case PathExpression(Origin.EXPRESSION, steps) if expression.start is not None:
            starts = alternatives(expression.start)
            if starts is None or not steps or steps[0].is_positional:
                return starts if not steps else None
            return tuple(start.joined(steps) for start in starts)
    return None


def _part_of_path(body: Expression) -> MatchingPart:
    """Of a profile that delivers the message when it selects anything."""
    found = alternatives(body)
    if found is None:
        needed = _one_path(_needed(body))
        verified = FunctionCall("exists", (body,))
        return MatchingPart(needed, False, True, (needed,), (), verified, True)
    found = tuple([path.as_condition() for path in found])
    ways = [_nodes_as_conditions(path).straight().placed().downward() for path in found]
    paths = tuple(_ending_in_element(way.path) for way in ways)
    bound = found if all(map(_selects_elements, found)) else ()
    if all(way.exact for way in ways):
        return MatchingPart(_one_path(paths), False, len(paths) > 1, paths, bound, None, True)
    exists = found[0] if len(found) == 1 else Or(found)
    return MatchingPart(_one_path(paths), False, True, paths, bound, exists, True)


def _part_of_graph(query: GraphQuery) -> MatchingPart:
    """Of a pattern its stars, one path for each alternative; a join decides about the rest."""
    part = graph_part(query)
    exact = part.is_exact and query.always_constructs
    path = _one_path(part.paths)
    return MatchingPart(path, False, not exact, part.paths, is_verified=exact)


def _part_of_flwor(
    flwor: Flwor, first: ForClause, sources: tuple[PathExpression, ...]
) -> MatchingPart:
    lifted = lift(flwor, first)
    later = needed_later(flwor, first)
    ways = [source.straight().placed().downward() for source in sources]
    paths = []
    for way in ways:
        if way.cut or way.path.steps[-1].kind is not NodeKind.ELEMENT:
            paths.append(_ending_in_element(way.path))
        else:
            paths.append(way.path.with_predicates(lifted.predicates + later))
    path = _one_path(tuple(paths))
    bound: tuple[PathExpression, ...] = ()
    if not first.position and all(_selects_elements(source) for source in sources):
        bound = tuple(source.with_predicates(lifted.predicates) for source in sources)
    remains = (
        not bound
        or not lifted.is_complete
        or any(not isinstance(clause, LetClause) for clause in flwor.clauses[1:])
        or _can_be_empty(flwor, first)
    )
    exact = all(way.exact for way in ways)
    binds = bool(bound) and exact and len(paths) == 1
    verified = None if exact or not bound else bound[0] if len(bound) == 1 else Or(bound)
    return MatchingPart(
        path,
        binds,
        remains or not binds,
        tuple(paths),
        bound,
        verified,
        is_verified=not remains,
        where_holds=lifted.is_complete,
    )


def _nodes_as_conditions(path: PathExpression) -> PathExpression:
    """A path to children of an element that are no elements as one to the elements that have
    any: ``a/comment()[2]`` as ``a[comment()[2]]``."""
    *before, last = path.steps
    is_child = last.axis is None and not last.descendant
    kinds = (NodeKind.NODE, NodeKind.COMMENT, NodeKind.PROCESSING_INSTRUCTION)
    if not before or not is_child or last.kind not in kinds:
        return path
    if before[-1].kind is not NodeKind.ELEMENT:
        return path
    return _ending_in_element(path)


def _selects_elements(path: PathExpression) -> bool:
    return path.steps[-1].kind is NodeKind.ELEMENT


def _without_variables(path: PathExpression) -> PathExpression:
    """The path without the predicates that variables bound around it occur in."""
    steps = tuple(
        replace(step, predicates=tuple(part for part in step.predicates if not uses_variable(part)))
        for step in path.steps
    )
    return replace(path, steps=steps)


def _needed(body: Expression) -> tuple[PathExpression, ...] | None:
    """Paths to elements of which one selects something wherever a profile has results."""
    parts = body.decisive_parts() if isinstance(body, Constructor) else (body,)
    found = needed_by_one(parts)
    return found and tuple([_ending_in_element(_without_variables(path)) for path in found])


def _one_path(needed: tuple[Expression, ...] | None) -> Expression:
    if not needed:
        return _EVERY_MESSAGE
    if len(needed) == 1:
        return needed[0]
    anything = _EVERY_GRAPH if all(map(_is_of_graph, needed)) else _EVERY_MESSAGE
    step = replace(anything.steps[0], predicates=(Or(needed),))
    return replace(anything, steps=(step,))


def _is_of_graph(path: Expression) -> bool:
    """Whether a path is of the graph reading."""
    first = path.steps[0]
    return first.test == _EVERY_GRAPH.steps[0].test and not first.descendant


def _can_be_empty(flwor: Flwor, first: ForClause) -> bool:
    """Whether a FLWOR's result can be nothing for an element of the first variable."""
    nodes = flwor.nodes()
    values = [clause.value for clause in flwor.clauses if isinstance(clause, LetClause)]
    are_sure = all(value.is_sure(nodes) for value in values)
    if flwor.order or flwor.group is not None or not are_sure:
        return True
    match flwor.result:
        case PathExpression(Origin.VARIABLE, (), variable):
            return variable != first.variable
        case Constructor() | FunctionCall() | Comparison() | And() | Or() | Literal():
            return not flwor.result.is_sure(nodes)
        case _:
            return True


def _ending_in_element(path: PathExpression) -> PathExpression:
    """The path with a last step to attributes or text made a predicate of the step before it."""
    if not path.steps:
        return _EVERY_MESSAGE
    last = path.steps[-1]
    if last.kind is NodeKind.ELEMENT:
        return path
    before = path.steps[:-1]
    if not before:
        # "//@x": the document itself has no attributes, so this is about its elements.
        before = (LocationStep(True, NodeKind.ELEMENT, ANY_NAME),)
        last = replace(last, descendant=False)
    predicate = relative(last)
    ending = replace(before[-1], predicates=(*before[-1].predicates, predicate))
    return replace(path, steps=(*before[:-1], ending))
