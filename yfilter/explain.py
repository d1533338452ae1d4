"""Explain a profile: its parts, and on a message, each on the elements that are left for it.

Part by part is evaluated on the element stream; the tests say that the engine comes to the same.
An engine adds the decider of each part, its evaluation, and its way to look at a graph (Deciders).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeAlias

from formats.element_stream import ElementStream
from yfilter.engine.linear_paths import routing_query
from yfilter.engine.readings import Readings, reading_of
from yfilter.engine.tree_patterns import ConditionKind, main_steps, take_apart
from yfilter.explanation import POSITIONS_MAX, Explanation, Failure, Outcome, Part
from yfilter.graph.group_variables import variables_of
from yfilter.graph.query_ast import (
    Filter,
    GraphQuery,
    GroundTerm,
    Group,
    GroupElement,
    Iri,
    LiteralTerm,
    Minus,
    TriplePattern,
    Variable,
)
from yfilter.graph.query_text import element_text, group_text, term_text
from yfilter.language.matching_path import MatchingPart, matching_part
from yfilter.language.near_miss import near_miss
from yfilter.language.nodes import DOCUMENT, Node, NodeType, Variables
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_ast import Expression, LocationStep, Origin, Profile, absolute, relative
from yfilter.language.query_text import unparse

# -------------------------------------------------------------------------------------------------
# Explain a graph profile: its parts in their order, and how many bindings each leaves.
#
# ::
#
#     ?i <http://…/creator> "Ann"      1 found    (?i = <http://…/7>)
#     ?i <http://…/price> ?p           2 found    (?i = <http://…/7>, ?p = "9"), (?i = …
#     FILTER(?p < 5)                   0 of 2
#
# The filters of a group come behind its other parts, which is where SPARQL has them.  As of any
# profile the first part that leaves nothing is the failure; those behind it are not looked at.


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


# -------------------------------------------------------------------------------------------------


# How steps, as far as they are known to hold, are said from the message on.
_Whole: TypeAlias = Callable[[tuple[LocationStep, ...]], str]


class Evaluated(Protocol):
    """Expressions on one message, within one budget; both raise MatchLimitExceeded."""

    def select(self, path: Expression, context: Node, variables: Variables) -> list[Node]: ...
    def holds(self, condition: Expression, context: Node, variables: Variables) -> bool: ...


class Deciders(Protocol):
    """An engine's knowledge of the parts of a profile."""

    finder: str  # of steps and nested paths

    def decider(self, condition: Expression) -> str:
        """The decider of a condition at a step, as of ``Part.by``."""

    def verifier(self, condition: Expression) -> str:
        """The decider of a condition that no index looks up."""

    def results(
        self, profile: Profile, stream: ElementStream, elements: list[int], limits: EvaluationLimits
    ) -> int:
        """The number of results of a profile whose matching path leads to some elements."""

    def evaluate_on(self, stream: ElementStream, limits: EvaluationLimits) -> Evaluated:
        """An evaluation on a message."""

    def look_at(self, stream: ElementStream, limits: EvaluationLimits) -> GraphLook:
        """The graph of a message, to ask graph profiles on."""


def explain(
    profile: Profile,
    served_by: str,
    message: Readings | None,
    limits: EvaluationLimits,
    deciders: Deciders,
) -> Explanation:
    """What becomes of an accepted profile, and of a message by it.  Raises MatchLimitExceeded."""
    matching = matching_part(profile)
    stream = None if message is None else message.of(reading_of(matching.path.steps))
    linear_paths = tuple(dict.fromkeys(_linear_paths(main_steps(matching.path), "")))
    if isinstance(profile.body, GraphQuery):
        look = None if stream is None else deciders.look_at(stream, limits)
        found = explain_graph(profile, profile.body, served_by, linear_paths, look)
        return found if stream is not None or message is None else _without_reading(found)
    walk = _Walk(stream, limits, deciders)
    start = None if stream is None else [DOCUMENT]
    parts, selected = walk.steps(main_steps(matching.path), start, _from_message)
    static = Explanation(
        unparse(matching.path),
        served_by,
        linear_paths,
        parts,
        unparse(profile) if matching.has_remainder else "",
        tuple(tuple(map(str, disjunct.paths)) for disjunct in routing_query(profile)),
        remainder_by=_remainder_by(matching, profile.body, deciders),
    )
    if message is None:
        return static
    if stream is None:
        return _without_reading(static)
    if walk.failure is not None or selected is None:
        return replace(static, matched=False, results=0, failure=walk.failure)
    results = deciders.results(profile, stream, [node.number for node in selected], limits)
    failure = None
    if matching.has_remainder and not results:
        text = unparse(profile)
        failure = Failure(text, text, unparse(matching.path), walk.positions(selected))
    return replace(static, matched=failure is None, results=results, failure=failure)


def _without_reading(static: Explanation) -> Explanation:
    """Of a message that does not have the reading that the profile is of."""
    text = static.parts[0].text if static.parts else static.matching_path
    return replace(static, matched=False, results=0, failure=Failure(text, text, "", ()))


class _Walk:
    """Through the parts in their order; nodes are None where nothing is to be looked at."""

    def __init__(
        self, stream: ElementStream | None, limits: EvaluationLimits, deciders: Deciders
    ) -> None:
        self.failure: Failure | None = None
        self._deciders = deciders
        self._stream = stream
        self._evaluation = None if stream is None else deciders.evaluate_on(stream, limits)

    def steps(
        self, steps: tuple[LocationStep, ...], nodes: list[Node] | None, whole: _Whole
    ) -> tuple[tuple[Part, ...], list[Node] | None]:
        """The parts of steps from some nodes, and the nodes that all of them lead to."""
        parts: list[Part] = []
        held: tuple[LocationStep, ...] = ()
        for step in steps:
            bare = replace(step, predicates=())
            text = unparse(absolute(bare))
            following = self._follow(bare, nodes)
            outcome = self._outcome(nodes, following)
            hint = partial(self._near_miss, bare, nodes)
            self._check(outcome, text, nodes, whole, held, (*held, bare), hint)
            nodes = self._unless_failed(following)
            held = (*held, bare)
            conditions: list[Part] = []
            for predicate in step.predicates:
                for kind, condition in take_apart(predicate):
                    part, nodes = self._condition(kind, condition, nodes, held, whole)
                    conditions.append(part)
                    held = _with_condition(held, condition)
            parts.append(Part("step", text, self._deciders.finder, outcome, tuple(conditions)))
        return tuple(parts), nodes

    def positions(self, nodes: list[Node]) -> tuple[str, ...]:
        assert self._stream is not None
        found = [node.number for node in nodes if node.type is NodeType.ELEMENT]
        return tuple(_position(self._stream, element) for element in found[:POSITIONS_MAX])

    def _condition(
        self,
        kind: ConditionKind,
        condition: Expression,
        nodes: list[Node] | None,
        held: tuple[LocationStep, ...],
        whole: _Whole,
    ) -> tuple[Part, list[Node] | None]:
        """The part of one condition, and the nodes that it leaves."""
        text = f"[{unparse(condition)}]"
        inner: tuple[Part, ...] = ()
        by = self._deciders.finder
        if kind is not ConditionKind.BRANCH:
            by = self._deciders.decider(condition)
        if kind is ConditionKind.BRANCH:

            def nested(steps: tuple[LocationStep, ...]) -> str:
                path = relative(*steps)
                return whole(_with_condition(held, path) if steps else held)

            inner, _ = self.steps(condition.steps, nodes, nested)
        kept = self._kept(condition, nodes)
        outcome = self._outcome(nodes, kept)
        after = _with_condition(held, condition)
        hint = partial(self._near_miss_within, condition, nodes)
        self._check(outcome, text, nodes, whole, held, after, hint)
        return Part(kind.value, text, by, outcome, inner), self._unless_failed(kept)

    def _follow(self, step: LocationStep, nodes: list[Node] | None) -> list[Node] | None:
        if self._evaluation is None or nodes is None:
            return None
        path = relative(step)
        found: dict[Node, None] = {}
        for node in nodes:
            found.update(dict.fromkeys(self._evaluation.select(path, node, {})))
        return sorted(found)

    def _kept(self, condition: Expression, nodes: list[Node] | None) -> list[Node] | None:
        evaluation = self._evaluation
        if evaluation is None or nodes is None:
            return None
        return [node for node in nodes if evaluation.holds(condition, node, {})]

    def _outcome(self, asked: list[Node] | None, kept: list[Node] | None) -> Outcome | None:
        if asked is None or kept is None:
            return None
        return Outcome(len(asked), len(kept), self.positions(kept))

    def _check(
        self,
        outcome: Outcome | None,
        text: str,
        nodes: list[Node] | None,
        whole: _Whole,
        before: tuple[LocationStep, ...],
        after: tuple[LocationStep, ...],
        hint: Callable[[], str],
    ) -> None:
        """Note the first part that leaves nothing; the innermost comes first."""
        if self.failure is None and outcome is not None and nodes and not outcome.kept:
            positions = self.positions(nodes)
            self.failure = Failure(text, whole(after), whole(before), positions, hint())

    def _near_miss(self, step: LocationStep, nodes: list[Node] | None) -> str:
        def names(wider: LocationStep) -> set[tuple[str, str]]:
            return set(filter(None, map(self._name, self._follow(wider, nodes) or ())))

        return near_miss(step, names)

    def _near_miss_within(self, condition: Expression, nodes: list[Node] | None) -> str:
        """Of the first path in a condition that selects nothing anywhere."""
        if condition.origin is Origin.CONTEXT:
            for step in condition.steps:
                bare = replace(step, predicates=())
                following = self._follow(bare, nodes)
                if not following:
                    return self._near_miss(bare, nodes)
                nodes = following
        found = (self._near_miss_within(part, nodes) for part in condition.same_focus())
        return next(filter(None, found), "")

    def _name(self, node: Node) -> tuple[str, str] | None:
        assert self._stream is not None
        stream = self._stream
        if node.type is NodeType.ELEMENT:
            name = stream.names[stream.element_name[node.number]]
        elif node.type is NodeType.ATTRIBUTE:
            name = stream.names[stream.attribute_name[node.number]]
        else:
            return None
        return name.namespace, name.local

    def _unless_failed(self, nodes: list[Node] | None) -> list[Node] | None:
        return None if self.failure is not None else nodes


def _from_message(steps: tuple[LocationStep, ...]) -> str:
    return unparse(absolute(*steps)) if steps else ""


def _with_condition(
    steps: tuple[LocationStep, ...], condition: Expression
) -> tuple[LocationStep, ...]:
    last = steps[-1]
    return (*steps[:-1], replace(last, predicates=(*last.predicates, condition)))


def _remainder_by(matching: MatchingPart, body: Expression, deciders: Deciders) -> str:
    """Who decides what the matching path does not say, "" if there is nothing."""
    if not matching.has_remainder:
        return ""
    if not matching.is_verified:
        return deciders.verifier(body)
    if matching.verified is None:
        return deciders.finder
    return deciders.verifier(matching.verified)


def _linear_paths(steps: tuple[LocationStep, ...], above: str) -> Iterator[str]:
    """The path of some steps, and of the nested paths on it, without their conditions."""
    text = above
    nested: list[str] = []
    for step in steps:
        text += unparse(absolute(replace(step, predicates=())))
        for predicate in step.predicates:
            for kind, condition in take_apart(predicate):
                if kind is ConditionKind.BRANCH:
                    nested += _linear_paths(condition.steps, text)
    yield text
    yield from nested


def _position(stream: ElementStream, element: int) -> str:
    """``/order/item[2]``: the way to an element, with its number among siblings of its name."""
    parts = []
    while element >= 0:
        parent = stream.element_parent[element]
        name = stream.element_name[element]
        before = after = 0
        sibling = parent + 1
        end = stream.element_end[parent] if parent >= 0 else len(stream)
        while sibling < end:
            if stream.element_name[sibling] == name:
                before += sibling < element
                after += sibling > element
            sibling = stream.element_end[sibling]
        number = f"[{before + 1}]" if before or after else ""
        parts.append(f"/{stream.names[name]}{number}")
        element = parent
    return "".join(reversed(parts))
