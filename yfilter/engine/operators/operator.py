"""The common base of all operators of the network (sections 4.1 and 4.3.1).

An operator turns the elements that its inputs deliver into the elements that it delivers itself:
those elements *at its own step of the path* for which everything below, above and at that step
that was built into it so far holds.  The path tuple of the paper is one such element together
with its ancestors; since every join of a profile relates two steps on one chain of ancestors,
the rest of the tuple is found by walking the parent column and is never stored.

All operators are conjunctive: one whose inputs have not all delivered something has no result,
so it is never run.  Operators hold structure only; everything about a message is in Scratch.

Counts for scheduling, kept up to date as annotations come and go::

    routes     links annotated here + downstream operators with routes > 0
    profiles   queries annotated here + downstream operators with profiles > 0
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable

from yfilter.engine.scratch import Elements, Scratch
from yfilter.engine.targets import LinkTarget, Query


class Operator(ABC):
    """One node of the network; compared by identity.

    ``inputs`` are the upstream operators, all different; ``downstream`` those that this one feeds
    (a dict for its order).
    """

    __slots__ = ("downstream", "inputs", "links", "profiles", "queries", "routes")

    def __init__(self, inputs: tuple[Operator, ...]) -> None:
        if len(set(inputs)) < len(inputs):
            raise ValueError("an operator takes each input once")
        self.inputs = inputs
        self.downstream: dict[Operator, None] = {}
        self.links: dict[LinkTarget, None] = {}
        self.queries: dict[Query, None] = {}
        self.routes = 0
        self.profiles = 0

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
        return bool(self.downstream or self.links or self.queries)

    def connect(self) -> None:
        """Enter this operator at its inputs."""
        for upstream in self.inputs:
            upstream.downstream[self] = None

    def disconnect(self) -> None:
        for upstream in self.inputs:
            del upstream.downstream[self]

    def annotate_link(self, target: LinkTarget) -> None:
        self.links[target] = None
        self._count_routes(1)

    def forget_link(self, target: LinkTarget) -> None:
        del self.links[target]
        self._count_routes(-1)

    def annotate_query(self, query: Query) -> None:
        self.queries[query] = None
        self._count_profiles(1)

    def forget_query(self, query: Query) -> None:
        del self.queries[query]
        self._count_profiles(-1)

    def _count_routes(self, change: int) -> None:
        pending = [self]
        while pending:
            operator = pending.pop()
            before = operator.routes > 0
            operator.routes += change
            if before != (operator.routes > 0):
                pending.extend(operator.inputs)

    def _count_profiles(self, change: int) -> None:
        pending = [self]
        while pending:
            operator = pending.pop()
            before = operator.profiles > 0
            operator.profiles += change
            if before != (operator.profiles > 0):
                pending.extend(operator.inputs)
