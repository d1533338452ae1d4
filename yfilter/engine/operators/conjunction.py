"""``and`` between the linear paths of a routing query (section 4.2.1).

Where a profile joins its paths on common elements, a routing query only asks that each of them is
found somewhere in the message.
"""

from __future__ import annotations

from collections.abc import Hashable

from yfilter.engine.operators.operator import Operator
from yfilter.engine.scratch import DOCUMENT, Elements, Scratch


class And(Operator):
    """Holds for the message as soon as every input has delivered."""

    __slots__ = ()

    @property
    def key(self) -> Hashable:
        return (And, frozenset(self.inputs))

    def execute(self, delivered: list[Elements], scratch: Scratch) -> Elements:
        return [DOCUMENT]

    def describe(self) -> str:
        return "and"
