"""IndexedPart: what the index can say of a profile, found out once for each shape.

What a profile asks for is analysed on the tree of its shape, or of the shapes of its steps'
conditions, where words are blanks.  The way found, with blanks, gives a recipe for each step (see
draft.py); for each profile its words are put beside.
"""

from __future__ import annotations

from typing import NamedTuple

from yfilter.engine.matching_plan import decompose
from yfilter.index.draft import FilledWay, Recipe
from yfilter.index.recipes import WayRecipe, recipe_of
from yfilter.index.residuals import STEPS_MAX
from yfilter.index.ways import Way, indexable
from yfilter.language.matching_path import matching_part
from yfilter.language.query_ast import Expression, PathExpression, Profile
from yfilter.language.shapes import PlainPath, Shaped, blanks_in, take_apart


class IndexedPart(NamedTuple):
    """``has_remainder``: the profile can have no result although the way is there."""

    way: FilledWay
    has_remainder: bool


def indexed_part(profile: Profile) -> IndexedPart | None:
    """What the index can say of a profile if it can say all of its matching path."""
    parts = profile.parts
    if isinstance(parts, PlainPath):
        way = _plain_way(parts)
        if way is not None:
            return IndexedPart(way, False)
        parts = take_apart(profile.body)
    if isinstance(parts, Shaped):
        shaped = parts.shape.derived(_shaped_recipe)
        if shaped is not None:
            return IndexedPart(shaped.recipe.fill(parts.words), shaped.has_remainder)
    part = _part(profile.body)
    return None if part is None else IndexedPart(WayRecipe(part.way).fill(()), part.has_remainder)


class _Part(NamedTuple):
    """``way`` says what the matching ``path`` does."""

    path: PathExpression
    way: Way
    has_remainder: bool


class _ShapedRecipe(NamedTuple):
    recipe: WayRecipe
    has_remainder: bool


class _StepRecipe(NamedTuple):
    """``recipe`` None: nothing is asked.  ``word_count``: how many words it puts somewhere."""

    recipe: Recipe | None
    word_count: int


def _plain_way(path: PlainPath) -> FilledWay | None:
    way: FilledWay = []
    for descendant, test, shaped in path.steps:
        if shaped is None:
            way.append((descendant, test, None))
            continue
        found = shaped.shape.derived(_step_recipe)
        if found is None or found.word_count < len(shaped.words):
            return None
        asked = None if found.recipe is None else (found.recipe, shaped.words)
        way.append((descendant, test, asked))
    return way if len(way) <= STEPS_MAX else None


def _step_recipe(tree: Expression) -> _StepRecipe | None:
    """For the one step of a path; None if the index cannot say all that is asked of it."""
    part = _part(tree)
    if part is None or part.has_remainder or len(part.way) != 1:
        return None
    conditions = part.way[0].conditions
    return _StepRecipe(recipe_of(conditions), len(blanks_in(conditions)))


def _shaped_recipe(tree: Expression) -> _ShapedRecipe | None:
    """None also where the matching path has a blank that got lost on the way."""
    part = _part(tree)
    if part is None or not blanks_in(part.path) <= blanks_in(part.way):
        return None
    return _ShapedRecipe(WayRecipe(part.way), part.has_remainder)


def _part(body: Expression) -> _Part | None:
    part = matching_part(Profile(body))
    way = indexable(decompose(part.path))
    return None if way is None else _Part(part.path, way, part.has_remainder)
