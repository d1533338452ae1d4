"""Explain a graph profile: its parts in their order, and how many bindings each leaves.

::

    ?i <http://…/creator> "Ann"      1 found    (?i = <http://…/7>)
    ?i <http://…/price> ?p           2 found    (?i = <http://…/7>, ?p = "9"), (?i = …
    FILTER(?p < 5)                   0 of 2

The filters of a group come behind its other parts, which is where SPARQL has them.  As of any
profile the first part that leaves nothing is the failure; those behind it are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from formats.element_stream import ElementStream
from yfilter.engine.linear_paths import routing_query
from yfilter.explanation import POSITIONS_MAX, Explanation, Failure, Outcome, Part
from yfilter.graph.join import MessageGraph
from yfilter.graph.join_program import JoinProgram
from yfilter.graph.query_ast import (
    Filter,
    GraphQuery,
    Group,
    GroupElement,
    Iri,
    LiteralTerm,
    Minus,
    TriplePattern,
)
from yfilter.graph.query_text import element_text, group_text, term_text
from yfilter.graph.solutions import Solutions
from yfilter.graph.tree_walk import variables_of
from yfilter.graph_answers import GraphAnswers
from yfilter.language.budget import Budget
from yfilter.language.matching_path import matching_part
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_ast import Profile
from yfilter.language.query_text import unparse

_KINDS: dict[type, str] = {TriplePattern: "triple pattern", Filter: "filter", Minus: "minus"}


def explain_graph(
    profile: Profile,
    query: GraphQuery,
    served_by: str,
    linear_paths: tuple[str, ...],
    stream: ElementStream | None,
    limits: EvaluationLimits,
) -> Explanation:
    """What becomes of a graph profile, and of a striped graph by it.  Raises MatchLimitExceeded."""
    part = matching_part(profile)
    elements = sorted(query.where.elements, key=lambda element: isinstance(element, Filter))
    explanation = Explanation(
        unparse(part.path),
        served_by,
        linear_paths,
        tuple(_part(element, None) for element in elements),
        unparse(profile) if part.has_remainder else "",
        tuple(tuple(map(str, disjunct.paths)) for disjunct in routing_query(profile)),
        remainder_by="join" if part.has_remainder else "",
    )
    if stream is None:
        return explanation
    graph = MessageGraph(stream)
    parts, failure = _walk(elements, graph, limits)
    results = 0 if failure else len(GraphAnswers(limits).results(query, stream))
    if not failure and not results:
        text = unparse(profile)
        failure = Failure(text, text, group_text(query.where), ())
    matched = failure is None
    return replace(explanation, parts=parts, matched=matched, results=results, failure=failure)


def _walk(
    elements: list[GroupElement], graph: MessageGraph, limits: EvaluationLimits
) -> tuple[tuple[Part, ...], Failure | None]:
    """Each part with what it leaves of the bindings before it, until one leaves nothing."""
    parts: list[Part] = []
    asked = 1
    positions: tuple[str, ...] = ()
    for number, element in enumerate(elements):
        before, held = Group(tuple(elements[:number])), Group(tuple(elements[: number + 1]))
        columns = tuple(sorted(set(variables_of(held)), key=lambda variable: variable.name))
        program = JoinProgram(held, columns)
        run = program.solutions(graph, Budget(limits))
        solutions = Solutions(graph, columns, run.rows, run.extra)
        found = tuple(_first(solutions))
        parts.append(_part(element, Outcome(asked, len(run.rows), found)))
        if not run.rows:
            parts += [_part(other, None) for other in elements[number + 1 :]]
            there = group_text(before) if number else ""
            return tuple(parts), Failure(element_text(element), group_text(held), there, positions)
        asked, positions = len(run.rows), found
    return tuple(parts), None


def _first(solutions: Solutions) -> Iterator[str]:
    """What the first solutions bind, as text; blank nodes of the pattern are nobody's variables."""
    for row in solutions.rows[:POSITIONS_MAX]:
        bound = [
            f"{term_text(variable)} = {_written(solutions, number)}"
            for variable, number in zip(solutions.columns, row, strict=True)
            if number and not variable.is_blank
        ]
        yield f"({', '.join(bound)})"


def _written(solutions: Solutions, number: int) -> str:
    term = solutions.term(number)
    return term_text(term) if isinstance(term, Iri | LiteralTerm) else f"_:{term.label}"


def _part(element: GroupElement, outcome: Outcome | None) -> Part:
    by = "index" if isinstance(element, TriplePattern) else "join"
    return Part(_KINDS.get(type(element), "group"), element_text(element), by, outcome)
