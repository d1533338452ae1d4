"""StateTable: a protocol as a table, what is done in each state at each event.

A StateMachine runs the table, the picture in the documents is drawn from it
(``tests/test_state_pictures.py``), and a test takes every step of it
(``tests/test_state_steps.py``).  What the table does not list does not happen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T")
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


class StateMachine(Generic[T, S, E]):
    """Whoever follows a table with many things, each of which is in a state of its own."""

    steps: StateTable[S, E]

    def state(self, thing: T) -> S:
        """As it follows from what there is of a thing."""
        raise NotImplementedError

    def enter(self, thing: T, state: S) -> None:
        """A thing is in a state from now on, and the action is to come; nothing needs to be done
        where the action makes it so."""

    def happen(self, thing: T, event: E, *told: object) -> bool:
        """Whether the table has it; else nothing is done.  ``told`` is for the action."""
        step = self.steps.step(self.state(thing), event)
        if step is None:
            return False
        self.enter(thing, step.then)
        step.action(self, thing, *told)
        return True
