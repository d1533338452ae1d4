"""Containment: does every message that satisfies one conjunction satisfy another?

Linear paths are compared as *chains* of anchors with gaps between them.  An anchor is a step that
asks for a name or has a condition; steps that ask for nothing only count levels, and one ``//``
among them leaves their number open, wherever it stands::

    /a/*//b[@x]/*       a at level 1;  b[@x] two or more below;  one or more levels below that
                        (exactly 1, a) (at least 2, b[@x]) trailing 1

``general`` covers ``special`` when its anchors can be laid onto anchors of ``special`` in order, so
that gaps fit, names are accepted and conditions implied (implication.py).  That is always right
when it says yes; for paths without conditions it is exact (Miklau and Suciu, JACM 2004, where the
paths of one chain are their linear fragment).

A conjunction covers another of its reading when each of its paths covers one of the other's; none
covers one of the other reading, whatever their paths say (readings.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from yfilter.engine.implication import implies
from yfilter.engine.linear_paths import Conjunction, LinearPath
from yfilter.language.query_ast import ANY, ANY_NAME, Expression, NameTest

EqualityKey: TypeAlias = str
"""An equality of a leaf with a text, as one text: only one that says the same implies it."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """One step of a chain and its distance from the anchor before it, or from the document.

    ``gap``   levels, at least 1: exactly so many, or at least so many if ``is_open``
    ``accepting``  the name tests that accept all that ``test`` accepts, itself first
    """

    gap: int
    is_open: bool
    test: NameTest
    conditions: tuple[Expression, ...]
    accepting: tuple[NameTest, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """A linear path made ready for comparisons.

    ``trailing``   levels that have to exist below the last anchor
    ``depths``     the least level of each anchor; the document is level 0
    ``opens``      how many open gaps stand above each anchor, its own included
    ``keys``       the equalities with a text that it asks for
    """

    anchors: tuple[Anchor, ...]
    trailing: int
    depths: tuple[int, ...]
    opens: tuple[int, ...]
    keys: tuple[EqualityKey, ...]

    def fits(self, gap: int, is_open: bool, upper: int, lower: int) -> bool:
        """Whether the anchors ``upper`` (-1: the document) and ``lower`` of this chain are apart
        by the gap, in every message."""
        depth, opened = (self.depths[upper], self.opens[upper]) if upper >= 0 else (0, 0)
        levels = self.depths[lower] - depth
        if is_open:
            return levels >= gap
        return levels == gap and self.opens[lower] == opened

    def levels_below(self, index: int) -> int:
        """How many levels there are at least below an anchor (-1: the document)."""
        end = self.depths[-1] + self.trailing if self.anchors else self.trailing
        return end - (self.depths[index] if index >= 0 else 0)


class Pattern:
    """A conjunction with its chains and all their keys; compared by identity.

    What covers a pattern has no key that it does not have.
    """

    __slots__ = ("__weakref__", "chains", "disjunct", "keys", "reading")

    def __init__(self, disjunct: Conjunction) -> None:
        self.disjunct = disjunct
        self.reading = disjunct.reading
        self.chains = tuple(chain_of(path) for path in disjunct.paths)
        self.keys = frozenset(key for chain in self.chains for key in chain.keys)


def covers(general: Pattern, special: Pattern) -> bool:
    """Whether every message that satisfies ``special`` satisfies ``general``; yes is always
    right."""
    return general.reading is special.reading and all(
        any(chain_covers(wanted, had) for had in special.chains) for wanted in general.chains
    )


def chain_covers(general: Chain, special: Chain) -> bool:
    """Whether every message with ``special`` in it has ``general`` in it."""
    positions = [-1]  # where the last anchor of ``general`` may lie on ``special``
    for anchor in general.anchors:
        positions = [
            lower
            for lower in range(positions[0] + 1, len(special.anchors))
            if _accepts(anchor, special.anchors[lower])
            and any(
                upper < lower and special.fits(anchor.gap, anchor.is_open, upper, lower)
                for upper in positions
            )
        ]
        if not positions:
            return False
    return special.levels_below(positions[0]) >= general.trailing


def chain_of(path: LinearPath) -> Chain:
    anchors: list[Anchor] = []
    depths: list[int] = []
    opens: list[int] = []
    keys: dict[EqualityKey, None] = {}
    gap, is_open, depth, opened = 0, False, 0, 0
    for step in path.steps:
        gap += 1
        depth += 1
        is_open = is_open or step.descendant
        if step.test == ANY_NAME and not step.selections:
            continue
        opened += is_open
        anchors.append(Anchor(gap, is_open, step.test, step.selections, _accepting(step.test)))
        depths.append(depth)
        opens.append(opened)
        keys.update(dict.fromkeys(_equalities(step.selections)))
        gap, is_open = 0, False
    return Chain(tuple(anchors), gap, tuple(depths), tuple(opens), tuple(keys))


def _accepts(anchor: Anchor, special: Anchor) -> bool:
    return anchor.test in special.accepting and all(
        any(implies(had, wanted) for had in special.conditions) for wanted in anchor.conditions
    )


@lru_cache(4_096)
def _accepting(test: NameTest) -> tuple[NameTest, ...]:
    wider = (test, NameTest(ANY, test.local), NameTest(test.namespace, ANY), ANY_NAME)
    return tuple(dict.fromkeys(wider))


def _equalities(conditions: tuple[Expression, ...]) -> list[EqualityKey]:
    """Of leaves with one name only: ``@* = "x"`` is implied by ``@a = "x"`` too."""
    found = []
    for condition in conditions:
        known = condition.leaf_condition()
        if known is not None and known.equals_text and known.is_full:
            name = "" if known.test is None else " ".join(known.test)
            found.append(f"{known.kind.value} {name}={known.value}")
    return found
