"""CompiledDeciders: the deciders of a profile's parts in the compiled engine, for explanations."""

from __future__ import annotations

from collections.abc import Sequence

from formats.element_stream import ElementStream
from yfilter.explain import Row
from yfilter.explanation import POSITIONS_MAX
from yfilter.graph.join import MessageGraph
from yfilter.graph.join_program import JoinProgram
from yfilter.graph.query_ast import GraphQuery, Group, Variable
from yfilter.graph.solutions import Solutions
from yfilter.graph_answers import GraphAnswers
from yfilter.index.derived_condition import condition_of, derived_of
from yfilter.language.budget import Budget
from yfilter.language.function_library import falls_back
from yfilter.language.profile_limits import DEFAULT_EVALUATION_LIMITS, EvaluationLimits
from yfilter.language.query_ast import Expression, Profile
from yfilter.operators.compiler import Compiler, returned
from yfilter.operators.evaluation import Evaluation
from yfilter.operators.operators import MessageColumns, OperatorTable
from yfilter.operators.returns import ResultWriter

# -------------------------------------------------------------------------------------------------
# Return template + bindings -> the results of one profile for one message.
#
# The engine has matched the profile's matching path and hands over the elements that it bound to
# the first variable.  What is left is done here: the other clauses, the whole ``where``, and the
# ``return``.
#
# =======================  ======================================================================
# the profile is           results
# =======================  ======================================================================
# a path                   the message, once, when the path selects anything
# a constructor            one document, when one of its decisive parts yields anything
#                          (``Constructor.decisive_parts``)
# anything else            one document for each item of its value, in order
# =======================  ======================================================================


def render(
    profile: Profile,
    stream: ElementStream,
    bindings: Sequence[int],
    limits: EvaluationLimits = DEFAULT_EVALUATION_LIMITS,
) -> list[bytes]:
    """The results of ``profile`` for the message, each a well-formed document in UTF-8.

    ``bindings`` are the elements of the profile's matching path (``matching_path.py``), in any
    order.  Empty means that the profile does not match after all.  Raises MatchLimitExceeded.
    """
    return Renderer(stream, limits).results(profile, sorted(set(bindings)))


class Renderer:
    """``results`` of profiles on the message shown last, which ``writer`` writes."""

    def __init__(
        self, stream: ElementStream, limits: EvaluationLimits = DEFAULT_EVALUATION_LIMITS
    ) -> None:
        self._columns = MessageColumns()
        self._operators = OperatorTable(self._columns, limits, Compiler)
        self.show(stream)

    def show(self, stream: ElementStream) -> None:
        """A message."""
        self._columns.bind_columns(stream)
        self._operators.begin(stream)
        self.writer = ResultWriter(stream, self._operators)

    def results(self, profile: Profile, bindings: Sequence[int]) -> list[bytes]:
        """The documents of one profile; ``bindings`` ascend.  Raises MatchLimitExceeded."""
        number = self._operators.acquire(returned(profile))
        found: list[bytes] = self.writer.results(self._operators.operator(number), bindings, True)
        return found


# -------------------------------------------------------------------------------------------------


class CompiledDeciders:
    """The index finds, operators verify."""

    finder = "index"

    def decider(self, condition: Expression) -> str:
        if condition_of(condition) or derived_of(condition):
            return self.finder
        return self.verifier(condition)

    def verifier(self, condition: Expression) -> str:
        return "elementpath" if falls_back(condition) else "operator"

    def results(
        self, profile: Profile, stream: ElementStream, elements: list[int], limits: EvaluationLimits
    ) -> int:
        return len(render(profile, stream, elements, limits))

    def evaluate_on(self, stream: ElementStream, limits: EvaluationLimits) -> Evaluation:
        return Evaluation(stream, limits)

    def look_at(self, stream: ElementStream, limits: EvaluationLimits) -> _Look:
        return _Look(stream, limits)


class _Look:
    """By joins."""

    def __init__(self, stream: ElementStream, limits: EvaluationLimits) -> None:
        self._stream = stream
        self._graph = MessageGraph(stream)
        self._limits = limits

    def solutions(self, group: Group, columns: Sequence[Variable]) -> tuple[int, Sequence[Row]]:
        run = JoinProgram(group, columns).solutions(self._graph, Budget(self._limits))
        found = Solutions(self._graph, tuple(columns), run.rows, run.extra)
        first = [
            [found.term(number) if number else None for number in row]
            for row in run.rows[:POSITIONS_MAX]
        ]
        return len(run.rows), first

    def count(self, query: GraphQuery) -> int:
        return len(GraphAnswers(self._limits).results(query, self._stream))
