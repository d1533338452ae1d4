"""The source of the network: the elements that reach an accepting state of the NFA."""

from __future__ import annotations

from collections.abc import Hashable

from yfilter.engine.nfa import State, StructuralStep, format_test
from yfilter.engine.operators.operator import Operator
from yfilter.engine.scratch import Elements, Scratch


class Path(Operator):
    """Delivers what the NFA found for ``state``; the scheduler hands it over."""

    __slots__ = ("state", "steps")

    def __init__(self, state: State, steps: tuple[StructuralStep, ...]) -> None:
        super().__init__(())
        self.state = state
        self.steps = steps

    @property
    def key(self) -> Hashable:
        return (Path, self.steps)

    def execute(self, delivered: list[Elements], scratch: Scratch) -> Elements:
        raise TypeError("a path operator has no inputs: the NFA delivers its elements")

    def describe(self) -> str:
        return f"path {format_structure(self.steps)}"


def format_structure(steps: tuple[StructuralStep, ...]) -> str:
    """``/Q{}a//*`` for steps without conditions."""
    return "".join(
        f"{'//' if descendant else '/'}{format_test(test)}" for descendant, test in steps
    )
