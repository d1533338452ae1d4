"""σ: keeps the elements for which a condition holds that the element alone decides."""

from __future__ import annotations

from collections.abc import Hashable

from yfilter.engine.operators.operator import Operator
from yfilter.engine.scratch import Elements, Scratch
from yfilter.language.evaluation import holds
from yfilter.language.query_ast import Expression
from yfilter.language.query_text import unparse


class Selection(Operator):
    """One condition at one step; several at the same step form a chain in canonical order."""

    __slots__ = ("condition",)

    def __init__(self, source: Operator, condition: Expression) -> None:
        super().__init__((source,))
        self.condition = condition

    @property
    def key(self) -> Hashable:
        return (Selection, self.inputs[0], self.condition)

    def execute(self, delivered: list[Elements], scratch: Scratch) -> Elements:
        return [
            element for element in delivered[0] if holds(self.condition, scratch.stream, element)
        ]

    def describe(self) -> str:
        return f"σ {unparse(self.condition)}"
