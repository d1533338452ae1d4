"""A condition that neither the automaton nor a join can serve, evaluated on the bound element.

Disjunctions and negations of nested paths, counts, paths compared with paths, parent steps: they
see more of the message than the element itself, so they run after everything cheaper has passed,
and may look at EvaluationLimits.visits_max nodes of a message, no more.
"""

from __future__ import annotations

from collections.abc import Hashable

from yfilter.engine.operators.operator import Operator
from yfilter.engine.scratch import Elements, Scratch
from yfilter.language.evaluation import MessageEvaluator
from yfilter.language.nodes import element_node
from yfilter.language.query_ast import Expression
from yfilter.language.query_text import unparse


class Residual(Operator):
    """Keeps the elements for which the condition holds."""

    __slots__ = ("condition",)

    def __init__(self, source: Operator, condition: Expression) -> None:
        super().__init__((source,))
        self.condition = condition

    @property
    def key(self) -> Hashable:
        return (Residual, self.inputs[0], self.condition)

    def execute(self, delivered: list[Elements], scratch: Scratch) -> Elements:
        # One evaluator: its bound on visited nodes is for the operator, not for each element.
        evaluator = MessageEvaluator(scratch.stream, scratch.limits.evaluation)
        return [
            element
            for element in delivered[0]
            if evaluator.holds(self.condition, element_node(element), {})
        ]

    def describe(self) -> str:
        return f"residual {unparse(self.condition)}"
