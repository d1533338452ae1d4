"""⋈: the nested-path join, on the positions that the paths have in common (section 4.1).

It delivers the elements at one step j of a path: those that arrive *here*, have an ancestor among
the elements that arrive from *above*, and have a descendant among those from each path *below*::

    /a[x][y]//b/c[z]         above: a   ──(//b/c)──▶  here: c  ◀──(/z)── below: z

A relation is the steps between two positions.  It is checked by walking from the lower element to
its ancestors, all at once as a set, so that recursion and ``//`` cost depth times steps and never
one tuple for each way through.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

from yfilter.engine.nfa import StructuralStep
from yfilter.engine.operators.operator import Operator
from yfilter.engine.operators.path import format_structure
from yfilter.engine.scratch import Elements, Scratch

# The steps from the upper position (not included) to the lower one (included).
Relation: TypeAlias = tuple[StructuralStep, ...]


class Join(Operator):
    """``inputs`` is (here, above if there is one, *below)."""

    __slots__ = ("above", "below")

    def __init__(
        self,
        here: Operator,
        above: tuple[Operator, Relation] | None,
        below: tuple[tuple[Operator, Relation], ...],
    ) -> None:
        uppers = () if above is None else (above[0],)
        super().__init__((here, *uppers, *(lower for lower, _ in below)))
        self.above = None if above is None else above[1]
        self.below = tuple(relation for _, relation in below)

    @property
    def key(self) -> Hashable:
        offset = 1 if self.above is None else 2
        lowers = frozenset(zip(self.inputs[offset:], self.below, strict=True))
        return (Join, self.inputs[:offset], self.above, lowers)

    def execute(self, delivered: list[Elements], scratch: Scratch) -> Elements:
        kept = delivered[0]
        lowers = delivered[1:]
        if self.above is not None:
            kept = _below_some(kept, set(delivered[1]), self.above, scratch)
            lowers = delivered[2:]
        for relation, leaves in zip(self.below, lowers, strict=True):
            if not kept:
                break
            parents: set[int] = set()
            for leaf in leaves:
                parents.update(ancestors_by(relation, leaf, scratch))
            kept = [element for element in kept if element in parents]
        return kept

    def describe(self) -> str:
        above = "" if self.above is None else f"↑{format_structure(self.above)} "
        below = " ".join(f"↓{format_structure(relation)}" for relation in self.below)
        return f"⋈ {above}{below}".rstrip()


def ancestors_by(relation: Relation, leaf: int, scratch: Scratch) -> Elements:
    """The elements from which the steps of ``relation`` lead to ``leaf``, which passes the last
    test already; the upper element's own name is not looked at."""
    parents = scratch.stream.element_parent
    current = [leaf]
    for index in range(len(relation) - 1, -1, -1):
        descendant, test = relation[index]
        if index < len(relation) - 1:
            current = [element for element in current if scratch.accepts(test, element)]
        if not current:
            return current
        if descendant:
            # On one chain of ancestors the deepest has the greatest number, and whatever is above
            # another is above it.
            current = _proper_ancestors(max(current), scratch)
        else:
            current = [parents[element] for element in current if parents[element] >= 0]
        scratch.charge(len(current))
    return current


def _below_some(
    elements: Elements, uppers: set[int], relation: Relation, scratch: Scratch
) -> Elements:
    return [
        element
        for element in elements
        if not uppers.isdisjoint(ancestors_by(relation, element, scratch))
    ]


def _proper_ancestors(element: int, scratch: Scratch) -> Elements:
    parents = scratch.stream.element_parent
    ancestors = []
    parent = parents[element]
    while parent >= 0:
        ancestors.append(parent)
        parent = parents[parent]
    return ancestors
