"""StateTable: a protocol as a table, what is done in each state at each event.

The code runs the table, and the picture in the documents is drawn from it
(``tests/test_state_pictures.py``).  What the table does not list does not happen: ``step`` is None,
and whoever asks passes the event over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Step(Generic[S]):
    """What is done, and the state that it leads to."""

    action: Callable[..., None]
    then: S


class StateTable(Generic[S, E]):
    """(state, event) -> (action, next state)."""

    def __init__(
        self, outside: S, steps: Mapping[tuple[S, E], tuple[Callable[..., None], S]]
    ) -> None:
        """``outside`` is the state of what has not begun, or is over."""
        self.outside = outside
        self.steps = {at: Step(action, then) for at, (action, then) in steps.items()}

    def step(self, state: S, event: E) -> Step[S] | None:
        """None: nothing is done."""
        return self.steps.get((state, event))

    def picture(self) -> str:
        """A state diagram (Mermaid): ``event / action`` at every arrow."""
        lines = ["stateDiagram-v2"]
        for (state, event), step in self.steps.items():
            said = step.action.__name__.strip("_").replace("_", " ")
            lines.append(f"    {self._node(state)} --> {self._node(step.then)}: {event} / {said}")
        return "\n".join(lines)

    def _node(self, state: S) -> str:
        return "[*]" if state is self.outside else state.value.replace(" ", "_")
