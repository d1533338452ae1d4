"""Explain a graph profile: its parts in their order, and how many bindings each leaves.

::

    ?i <http://…/creator> "Ann"      1 found    (?i = <http://…/7>)
    ?i <http://…/price> ?p           2 found    (?i = <http://…/7>, ?p = "9"), (?i = …
    FILTER(?p < 5)                   0 of 2

The filters of a group come behind its other parts, which is where SPARQL has them.  As of any
profile the first part that leaves nothing is the failure; those behind it are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

from yfilter.engine.linear_paths import routing_query
from yfilter.explanation import POSITIONS_MAX, Explanation, Failure, Outcome, Part
from yfilter.graph.query_ast import (
    Filter,
    GraphQuery,
    Group,
    GroupElement,
    Iri,
    LiteralTerm,
    Minus,
    TriplePattern,
    Variable,
)
from yfilter.graph.query_text import element_text, group_text, term_text
from yfilter.graph.terms import GroundTerm
from yfilter.graph.tree_walk import variables_of
from yfilter.language.matching_path import matching_part
from yfilter.language.query_ast import Profile
from yfilter.language.query_text import unparse

_KINDS: dict[type, str] = {TriplePattern: "triple pattern", Filter: "filter", Minus: "minus"}

Row: TypeAlias = "Sequence[GroundTerm | None]"


class GraphLook(Protocol):
    """The graph of a message, as graph profiles are asked on it; both raise MatchLimitExceeded."""

    def solutions(self, group: Group, columns: Sequence[Variable]) -> tuple[int, Sequence[Row]]:
        """The number of solutions of a group, and the first POSITIONS_MAX of them, or more."""

    def count(self, query: GraphQuery) -> int:
        """The number of results of a profile."""


def explain_graph(
    profile: Profile,
    query: GraphQuery,
    served_by: str,
    linear_paths: tuple[str, ...],
    look: GraphLook | None,
) -> Explanation:
    """What becomes of a graph profile, and of a graph by it.  Raises MatchLimitExceeded."""
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
    if look is None:
        return explanation
    parts, failure = _walk(elements, look)
    results = 0 if failure else look.count(query)
    if not failure and not results:
        text = unparse(profile)
        failure = Failure(text, text, group_text(query.where), ())
    matched = failure is None
    return replace(explanation, parts=parts, matched=matched, results=results, failure=failure)


def _walk(elements: list[GroupElement], look: GraphLook) -> tuple[tuple[Part, ...], Failure | None]:
    """Each part with what it leaves of the bindings before it, until one leaves nothing."""
    parts: list[Part] = []
    asked = 1
    positions: tuple[str, ...] = ()
    for number, element in enumerate(elements):
        before, held = Group(tuple(elements[:number])), Group(tuple(elements[: number + 1]))
        columns = tuple(sorted(set(variables_of(held)), key=lambda variable: variable.name))
        count, rows = look.solutions(held, columns)
        found = tuple(_first(columns, rows))
        parts.append(_part(element, Outcome(asked, count, found)))
        if not count:
            parts += [_part(other, None) for other in elements[number + 1 :]]
            there = group_text(before) if number else ""
            return tuple(parts), Failure(element_text(element), group_text(held), there, positions)
        asked, positions = count, found
    return tuple(parts), None


def _first(columns: Sequence[Variable], rows: Sequence[Row]) -> Iterator[str]:
    """What the first solutions bind, as text; blank nodes of the pattern are nobody's variables."""
    for row in rows[:POSITIONS_MAX]:
        bound = [
            f"{term_text(variable)} = {_written(term)}"
            for variable, term in zip(columns, row, strict=True)
            if term is not None and not variable.is_blank
        ]
        yield f"({', '.join(bound)})"


def _written(term: GroundTerm) -> str:
    return term_text(term) if isinstance(term, Iri | LiteralTerm) else f"_:{term.label}"


def _part(element: GroupElement, outcome: Outcome | None) -> Part:
    by = "index" if isinstance(element, TriplePattern) else "join"
    return Part(_KINDS.get(type(element), "group"), element_text(element), by, outcome)
