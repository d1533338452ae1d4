"""Ways of profiles: what the index needs to know of a profile, found out once for each shape.

What a profile asks for is analysed on the tree of its shape, or of the shapes of its steps'
conditions; the result is a way with blanks, and for each profile its words are put in.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from yfilter.engine.matching_plan import decompose
from yfilter.index.access_path import Conditions, Step, Way, indexable
from yfilter.index.residuals import STEPS_MAX
from yfilter.language.matching_path import matching_part
from yfilter.language.query_ast import ANY, Expression, NameTest, Profile
from yfilter.language.shapes import PlainPath, Shaped, Word, blanks_in, filling, take_apart

NAMES_MAX = 4_096  # remembered

_ANY_ELEMENT = NameTest(ANY, ANY)


class IndexedPart(NamedTuple):
    """``has_remainder``: the profile can have no result although the way is there."""

    way: Way
    has_remainder: bool


def indexed_part(profile: Profile) -> IndexedPart | None:
    """What the index can say of a profile if it can say all of its matching path."""
    parts = profile.parts
    if isinstance(parts, PlainPath):
        way = _way(parts)
        if way is not None:
            return IndexedPart(way, False)
        parts = take_apart(profile.body)
    if isinstance(parts, Shaped):
        template = parts.shape.derived(_template)
        if template is not None:
            return IndexedPart(template.fill(parts.words), template.has_remainder)
    return _part(profile.body)


class _Template(NamedTuple):
    fill: Callable[[tuple[Word, ...]], Way]
    has_remainder: bool


def _way(path: PlainPath) -> Way | None:
    steps = []
    for descendant, name, shaped in path.steps:
        conditions: Conditions = ()
        if shaped is not None:
            fill = shaped.shape.derived(_step_filling)
            if fill is None:
                return None
            conditions = fill(shaped.words)
        steps.append(Step(descendant, _name_test(name), conditions))
    return tuple(steps) if len(steps) <= STEPS_MAX else None


@lru_cache(maxsize=NAMES_MAX)
def _name_test(name: str) -> NameTest:
    return _ANY_ELEMENT if name == ANY else NameTest("", name)


def _step_filling(tree: Expression) -> Callable[[tuple[Word, ...]], Conditions] | None:
    """For the conditions of the one step of a path; None if the index cannot say all of them."""
    part = _part_with_all_blanks(tree)
    if part is None or part.has_remainder or len(part.way) != 1:
        return None
    return filling(part.way[0].conditions)


def _template(tree: Expression) -> _Template | None:
    part = _part_with_all_blanks(tree)
    return None if part is None else _Template(filling(part.way), part.has_remainder)


def _part_with_all_blanks(tree: Expression) -> IndexedPart | None:
    """None also where the matching path has a blank that got lost on the way."""
    part = _part(tree)
    if part is None:
        return None
    path = matching_part(Profile(tree)).path
    return part if blanks_in(path) <= blanks_in(part.way) else None


def _part(body: Expression) -> IndexedPart | None:
    part = matching_part(Profile(body))
    way = indexable(decompose(part.path))
    return None if way is None else IndexedPart(way, part.has_remainder)
