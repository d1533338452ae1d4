"""The common base of all operators of the network (sections 4.1 and 4.3.1).

An operator turns the elements that its inputs deliver into the elements that it delivers itself:
those elements *at its own step of the path* for which everything below, above and at that step
that was built into it so far holds.  The path tuple of the paper is one such element together
with its ancestors; since every join of a profile relates two steps on one chain of ancestors,
the rest of the tuple is found by walking the parent column and is never stored.

All operators are conjunctive: one whose inputs have not all delivered something has no result,
so it is never run.  Operators hold structure only; everything about a message is in Scratch.

A count for each priority class serves scheduling, kept up to date as targets come and go::

    leads_to[class]   targets of the class here + downstream operators with leads_to[class] > 0
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable

from yfilter.engine.scratch import Elements, Scratch
from yfilter.engine.targets import Priority, Target


class Operator(ABC):
    """One node of the network; compared by identity.

    ``inputs`` are the upstream operators, all different; ``downstream`` those that this one feeds
    (dicts for their order).
    """

    __slots__ = ("downstream", "inputs", "leads_to", "targets")

    def __init__(self, inputs: tuple[Operator, ...]) -> None:
        if len(set(inputs)) < len(inputs):
            raise ValueError("an operator takes each input once")
        self.inputs = inputs
        self.downstream: dict[Operator, None] = {}
        self.targets: dict[Target, None] = {}
        self.leads_to = [0] * len(Priority)

    @property
    @abstractmethod
    def key(self) -> Hashable:
        """Equal for two operators that always deliver the same; what sharing goes by."""

    @abstractmethod
    def execute(self, delivered: list[Elements], scratch: Scratch) -> Elements:
        """The result for one message, given what each input delivered (none of it empty)."""

    @abstractmethod
    def describe(self) -> str:
        """The operator without its inputs, in a few words."""

    @property
    def used(self) -> bool:
        return bool(self.downstream or self.targets)

    def connect(self) -> None:
        """Enter this operator at its inputs."""
        for upstream in self.inputs:
            upstream.downstream[self] = None

    def disconnect(self) -> None:
        for upstream in self.inputs:
            del upstream.downstream[self]

    def annotate(self, target: Target) -> None:
        self.targets[target] = None
        self._count(target.priority, 1)

    def forget(self, target: Target) -> None:
        del self.targets[target]
        self._count(target.priority, -1)

    def _count(self, priority: Priority, change: int) -> None:
        pending = [self]
        while pending:
            operator = pending.pop()
            leads_to = operator.leads_to
            before = leads_to[priority] > 0
            leads_to[priority] += change
            if before != (leads_to[priority] > 0):
                pending.extend(operator.inputs)
