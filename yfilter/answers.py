"""Answers: how the results of a query are made, found out when it first matches.

A query of the index is answered by its *plan* (yfilter/language/result_plan.py), given the
elements that its first ``for`` clause binds and ``where`` lets through.  These the operators find:
the elements that a path leads to, once a message for all queries with that path, and of these the
ones on which a condition holds::

    for $e in /feed/item where $e/@id = "x" return …      /feed/item     [@id = "x"]
"""

from __future__ import annotations

from dataclasses import replace

from formats.element_stream import ElementStream
from yfilter.engine.readings import Reading, Readings
from yfilter.graph.query_ast import GraphQuery
from yfilter.graph_answers import GraphAnswers
from yfilter.language.matching_path import delivers_message, matching_part
from yfilter.language.positions import is_positional
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_ast import And, Expression, PathExpression, Profile
from yfilter.language.result_planner import plan_of_bindings, plan_of_bound
from yfilter.language.results import NO_PLAN, ResultWriter, result_writer
from yfilter.language.trees import flat
from yfilter.operators.operators import OperatorTable
from yfilter.projection.parts import with_parts

ANSWERS_MAX = 16_384

_ANY_BINDING = [0]  # of a plan that asks for none


class Answer:
    """``is_message``: the result is the message.  ``graph``: of a graph profile, and then there is
    no plan.  ``paths``: what is bound, where that is known;
    ``bound``: paths and conditions as numbers in the operator table, while it holds them."""

    __slots__ = ("bound", "graph", "is_message", "paths", "plan")

    def __init__(self, profile: Profile) -> None:
        part = matching_part(profile)
        self.graph = profile.body if isinstance(profile.body, GraphQuery) else None
        self.plan = NO_PLAN if self.graph is not None else plan_of_bound(profile)
        self.is_message = delivers_message(profile.body) and part.is_verified
        self.paths = part.bound
        self.bound: tuple[tuple[int, int], ...] = ()


class Answers:
    """By the number of a query; those made last are kept, up to ANSWERS_MAX."""

    def __init__(self, operators: OperatorTable, limits: EvaluationLimits) -> None:
        self.known: dict[int, Answer] = {}
        self._operators = operators
        self._limits = limits
        self._graphs = GraphAnswers(limits)

    def learn(self, number: int, profile: Profile) -> Answer:
        """The answer of a query that is not among those known; it is from now on."""
        if len(self.known) >= ANSWERS_MAX:
            self.forget(next(iter(self.known)))
        answer = self.known[number] = Answer(profile)
        self._acquire(answer)
        return answer

    def forget(self, number: int) -> None:
        """A query is gone, or asks for nothing lately."""
        answer = self.known.pop(number, None)
        if answer is not None:
            self._release(answer)

    def bindings(self, answer: Answer) -> list[int]:
        """The elements that an answer is made of, on the message that the index was shown last.

        Raises MatchLimitExceeded.
        """
        if not answer.paths:
            return _ANY_BINDING
        if answer.bound:
            return self._elements(answer)
        self._acquire(answer)  # its query is gone
        try:
            return self._elements(answer)
        finally:
            self._release(answer)

    def whole_message(self, message: Readings) -> bytes:
        """The result of all profiles that deliver the message."""
        if message.document is None:
            return self._graphs.text(message.carried)
        return result_writer(message.document, self._limits).whole_message()

    def syntax(self, message: Readings) -> str:
        """The media type of that: "" for XML."""
        return self._graphs.syntax(message.carried) if message.document is None else ""

    def media_type(self, answer: Answer, message: Readings) -> str:
        """Of the results of an answer, "" for XML."""
        if answer.graph is not None and not delivers_message(answer.graph):
            return answer.graph.results.value
        return self.syntax(message)

    def results(self, answer: Answer, message: Readings, reading: Reading) -> list[bytes]:
        """The results on that message, which has the reading.  Raises MatchLimitExceeded."""
        if answer.is_message:
            return [self.whole_message(message)]
        stream = message.in_(reading)
        if answer.graph is None:
            return self.results_by(self.writer(stream), answer)
        if not delivers_message(answer.graph):
            return self._graphs.results(answer.graph, stream)
        return [self.whole_message(message)] if self.has_results(answer, message, reading) else []

    def has_results(self, answer: Answer, message: Readings, reading: Reading) -> bool:
        """Whether there are results on that message.  Raises MatchLimitExceeded."""
        if answer.graph is None:
            return bool(self.results(answer, message, reading))
        return self._graphs.has_results(answer.graph, message.in_(reading))

    def results_by(self, writer: ResultWriter, answer: Answer) -> list[bytes]:
        """The same, by the writer of a message, of an answer that is not the message."""
        plan = answer.plan
        if writer.stream.pieces and plan.binds:
            put_in, parts = with_parts(plan.profile)
            if parts:
                plan = plan_of_bindings(put_in)
        return writer.results(plan, self.bindings(answer))

    def writer(self, stream: ElementStream) -> ResultWriter:
        """That of a message."""
        return result_writer(stream, self._limits)

    def _elements(self, answer: Answer) -> list[int]:
        elements = self._operators.elements
        if len(answer.bound) == 1:
            return elements(*answer.bound[0])
        found: set[int] = set()
        for path, condition in answer.bound:
            found.update(elements(path, condition))
        return sorted(found)

    def _acquire(self, answer: Answer) -> None:
        acquire = self._operators.acquire
        bound = []
        for path in answer.paths:
            base, condition = _divided(path)
            bound.append((acquire(base), 0 if condition is None else acquire(condition)))
        answer.bound = tuple(bound)

    def _release(self, answer: Answer) -> None:
        for path, condition in answer.bound:
            self._operators.release(path)
            if condition:
                self._operators.release(condition)
        answer.bound = ()


def _divided(path: PathExpression) -> tuple[PathExpression, Expression | None]:
    """A path without the last conditions of its last step, and these."""
    last = path.steps[-1]
    kept = len(last.predicates)
    while kept and not is_positional(last.predicates[kept - 1]):
        kept -= 1
    conditions = last.predicates[kept:]
    base = replace(last, predicates=last.predicates[:kept])
    divided = replace(path, steps=(*path.steps[:-1], base))
    if len(conditions) < 2:
        return divided, conditions[0] if conditions else None
    return divided, And(flat(conditions, And))
