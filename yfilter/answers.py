"""Answers: how the results of a query are made, found out when it first matches.

A query of the index is answered by its *plan* (yfilter/language/result_plan.py), given the
elements that its first ``for`` clause binds and ``where`` lets through.  These the operators find;
where a path says them, that path is an entry of the operator table.
"""

from __future__ import annotations

from formats.element_stream import ElementStream
from yfilter.language.matching_path import is_path, matching_part
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_ast import Profile
from yfilter.language.result import result_writer
from yfilter.language.result_plan import ResultPlan
from yfilter.language.result_planner import plan_of_bindings, plan_of_bound
from yfilter.local_queries import tree_of
from yfilter.operators.operator_table import OperatorTable
from yfilter.projection.parts import with_parts

ANSWERS_MAX = 16_384

_ANY_BINDING = (0,)  # of a plan that asks for none


class Answer:
    """``is_message``: the result is the message.  ``paths``: what is bound, where that is known;
    ``bound``: their numbers in the operator table, from when they are asked for."""

    __slots__ = ("bound", "is_message", "paths", "plan")

    def __init__(self, profile: Profile) -> None:
        part = matching_part(profile)
        self.plan = plan_of_bound(profile)
        self.is_message = is_path(profile.body) and part.is_verified
        self.paths = part.bound
        self.bound: tuple[int, ...] = ()


class Answers:
    """By the text of a query; those made last are kept, up to ANSWERS_MAX."""

    def __init__(self, operators: OperatorTable, limits: EvaluationLimits) -> None:
        self._operators = operators
        self._limits = limits
        self._known: dict[bytes, Answer] = {}

    def of(self, text: bytes) -> Answer:
        """The answer of a query of the index."""
        answer = self._known.get(text)
        if answer is None:
            if len(self._known) >= ANSWERS_MAX:
                self._forget(next(iter(self._known)))
            answer = self._known[text] = Answer(tree_of(text))
        return answer

    def bindings(self, answer: Answer) -> list[int]:
        """The elements that an answer is made of, on the message that the index was shown last.

        Raises MatchLimitExceeded.
        """
        if not answer.bound:
            if not answer.paths:
                return list(_ANY_BINDING)
            answer.bound = tuple(map(self._operators.acquire, answer.paths))
        if len(answer.bound) == 1:
            return self._operators.elements(answer.bound[0])
        found: set[int] = set()
        for number in answer.bound:
            found.update(self._operators.elements(number))
        return sorted(found)

    def results(self, answer: Answer, stream: ElementStream) -> list[bytes]:
        """The results on that message.  Raises MatchLimitExceeded."""
        writer = result_writer(stream, self._limits)
        if answer.is_message:
            return [writer.whole_message()]
        plan = answer.plan
        if stream.pieces and plan.binds:
            put_in, parts = with_parts(plan.profile)
            if parts:
                plan = plan_of_bindings(put_in)
        return writer.results(plan, self.bindings(answer))

    def _forget(self, text: bytes) -> None:
        for number in self._known.pop(text).bound:
            self._operators.release(number)
