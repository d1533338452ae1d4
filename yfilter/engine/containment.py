"""Containment: does every message that satisfies one conjunction satisfy another?

Linear paths are compared as *chains* of anchors with gaps between them.  An anchor is a step that
asks for a name or has a condition; steps that ask for nothing only count levels, and one ``//``
among them leaves their number open, wherever it stands::

    /a/*//b[@x]/*       a at level 1;  b[@x] two or more below;  one or more levels below that
                        (exactly 1, a) (at least 2, b[@x]) trailing 1

``general`` covers ``special`` when its anchors can be laid onto anchors of ``special`` in order, so
that gaps fit, names are accepted and conditions implied.  That is always right
when it says yes; for paths without conditions it is exact (Miklau and Suciu, JACM 2004, where the
paths of one chain are their linear fragment).

A conjunction covers another of its reading when each of its paths covers one of the other's; none
covers one of the other reading, whatever their paths say (readings.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from yfilter.engine.linear_paths import Conjunction, LinearPath
from yfilter.language import query_ast as ast
from yfilter.language.atoms import compare
from yfilter.language.numbers import parse_double

# -------------------------------------------------------------------------------------------------
# Implication: does an element that passes one selection always pass another?  On one leaf that is
# a question of intervals; no may be wrong where several conditions together imply what none does.
#
#     @n = 3      implies  @n > 2, @n <= 3, @n != 4, @n
#     @s = "abc"  implies  starts-with(@s, "ab"), contains(@s, "c"), @s != "x", @s = ("abc", "d")
#     @s contains text "storm warning"  implies  @s contains text "storm"


def implies(special: ast.Expression, general: ast.Expression) -> bool:
    """Whether every element that passes ``special`` passes ``general``; yes is always right."""
    if special == general:
        return True
    if isinstance(special, ast.Or):
        return all(implies(part, general) for part in special.parts)
    if isinstance(general, ast.And):
        return all(implies(special, part) for part in general.parts)
    if isinstance(general, ast.Or) and any(implies(special, part) for part in general.parts):
        return True
    if isinstance(special, ast.And):
        return any(implies(part, general) for part in special.parts)
    listed, choices = special.value_list(), general.value_list()
    if listed is not None and choices is not None and listed.leaf == choices.leaf:
        return listed.values <= choices.values
    if listed is not None:
        return all(implies(listed.equal_to(value), general) for value in listed.values)
    known = special.leaf_condition()
    if choices is not None:
        return (
            known is not None
            and known.operator is ast.Operator.EQ
            and choices.leaf.has_all_of(known.leaf)
            and known.value in choices.values
        )
    wanted = general.leaf_condition()
    if known is not None and wanted is not None:
        return wanted.has_all_of(known) and _passes(known, wanted)
    return _string_test_follows(special, known, general)


def _passes(known: ast.LeafCondition, wanted: ast.LeafCondition) -> bool:
    """Whether every value that passes ``known`` passes ``wanted``; their leaves are the same."""
    if wanted.operator is None:
        return True
    if known.operator is None:
        return False
    is_text = isinstance(known.value, str)
    had: Any = known.value if is_text else known.number
    asked: Any = wanted.value if isinstance(wanted.value, str) else wanted.number
    if is_text and asked is not wanted.value:
        had = parse_double(had) if known.operator is ast.Operator.EQ else None
    if had is None or isinstance(had, str) is not isinstance(asked, str):
        return False
    if known.operator is ast.Operator.EQ:
        return compare(had, wanted.operator, asked)
    bound = _INTERVALS.get((known.operator, wanted.operator))
    return bound is not None and bound(had, asked)


# (known, wanted) -> what has to hold between the two bounds.
_INTERVALS: Mapping[tuple[ast.Operator, ast.Operator], Callable[[Any, Any], bool]] = {
    (ast.Operator.NE, ast.Operator.NE): operator.eq,
    (ast.Operator.LT, ast.Operator.LT): operator.le,
    (ast.Operator.LT, ast.Operator.LE): operator.le,
    (ast.Operator.LT, ast.Operator.NE): operator.le,
    (ast.Operator.LE, ast.Operator.LT): operator.lt,
    (ast.Operator.LE, ast.Operator.LE): operator.le,
    (ast.Operator.LE, ast.Operator.NE): operator.lt,
    (ast.Operator.GT, ast.Operator.GT): operator.ge,
    (ast.Operator.GT, ast.Operator.GE): operator.ge,
    (ast.Operator.GT, ast.Operator.NE): operator.ge,
    (ast.Operator.GE, ast.Operator.GT): operator.gt,
    (ast.Operator.GE, ast.Operator.GE): operator.ge,
    (ast.Operator.GE, ast.Operator.NE): operator.gt,
}


# (special, general) -> what has to hold between their second arguments.
_STRING_TESTS: Mapping[tuple[str, str], Callable[[str, str], bool]] = {
    ("starts-with", "starts-with"): str.startswith,
    ("ends-with", "ends-with"): str.endswith,
    ("starts-with", "contains"): str.__contains__,
    ("ends-with", "contains"): str.__contains__,
    ("contains", "contains"): str.__contains__,
    ("=", "starts-with"): str.startswith,
    ("=", "ends-with"): str.endswith,
    ("=", "contains"): str.__contains__,
}


def _string_test_follows(
    special: ast.Expression, known: ast.LeafCondition | None, general: ast.Expression
) -> bool:
    """``contains(@s, "b")`` and its like; only where there is one value, for more are an error.
    ``contains text`` and its like hold for some value, and so of the same one."""
    words, fewer = special.word_condition(), general.word_condition()
    if words is not None and fewer is not None:
        is_alike = words[:2] == fewer[:2] and len(words.needles) == len(fewer.needles) == 1
        return is_alike and fewer.needles[0] in words.needles[0]
    wanted = _string_test(general)
    if wanted is None:
        return False
    if known is not None:
        had = ("=", known.leaf, str(known.value)) if known.equals_text else None
    else:
        had = _string_test(special)
    if had is None or had[1] != wanted[1] or not had[1].is_single:
        return False
    test = _STRING_TESTS.get((had[0], wanted[0]))
    return test is not None and test(had[2], wanted[2])


def _string_test(condition: ast.Expression) -> tuple[str, ast.LeafCondition, str] | None:
    match condition:
        case ast.FunctionCall(name, (path, ast.Literal(str(value)))):
            leaf = path.leaf()
            return None if leaf is None else (name, leaf, value)
        case _:
            return None


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
    test: ast.NameTest
    conditions: tuple[ast.Expression, ...]
    accepting: tuple[ast.NameTest, ...]


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
        if step.test == ast.ANY_NAME and not step.selections:
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
def _accepting(test: ast.NameTest) -> tuple[ast.NameTest, ...]:
    wider = (
        test,
        ast.NameTest(ast.ANY, test.local),
        ast.NameTest(test.namespace, ast.ANY),
        ast.ANY_NAME,
    )
    return tuple(dict.fromkeys(wider))


def _equalities(conditions: tuple[ast.Expression, ...]) -> list[EqualityKey]:
    """Of leaves with one name only: ``@* = "x"`` is implied by ``@a = "x"`` too."""
    found = []
    for condition in conditions:
        known = condition.leaf_condition()
        if known is not None and known.equals_text and known.is_full:
            name = "" if known.test is None else " ".join(known.test)
            found.append(f"{known.kind.value} {name}={known.value}")
    return found
