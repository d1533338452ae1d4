"""IndexedPart: what the index can say of a profile, found out once for each shape.

What a profile asks for is analysed on the tree of its shape, or of the shapes of its steps'
conditions, where words are blanks.  The way found, with blanks, gives a recipe for each step (see
draft.py); for each profile its words are put beside.
"""

from __future__ import annotations

from typing import NamedTuple

from yfilter.engine.readings import GRAPH_ROOT, Reading
from yfilter.graph.query_shapes import MadeOfWords
from yfilter.index.candidates import STEPS_MAX, FilledWay, Recipe
from yfilter.index.recipes import WayRecipe, recipe_of
from yfilter.index.ways import Verified, Ways, ways_of
from yfilter.language.matching_path import delivers_message, matching_part
from yfilter.language.query_ast import Expression, Profile
from yfilter.language.shapes import NeedsWords, PlainPath, Shaped, blanks_in, take_apart


class IndexedPart(NamedTuple):
    """``ways``: alternatives, each of ways that all have to be found.  ``has_remainder``: the
    profile can have no result although these are there.  ``is_message``: it is the message."""

    ways: list[list[FilledWay]]
    has_remainder: bool
    is_message: bool

    @property
    def reading(self) -> Reading:
        """That of the profile: of the graph if all alternatives begin there."""
        return min(_reading(ways[0]) for ways in self.ways)


def indexed_part(profile: Profile) -> IndexedPart:
    """What a profile asks of the index."""
    parts = profile.parts
    if isinstance(parts, PlainPath):
        way = _plain_way(parts)
        if way is not None:
            return IndexedPart([[way]], False, True)
        parts = take_apart(profile.body)
    elif isinstance(parts, MadeOfWords):
        parts = parts.shaped()
    if isinstance(parts, Shaped):
        shaped = parts.shape.derived(_shaped_recipe)
        if shaped is not None:
            ways = [[recipe.fill(parts.words) for recipe in recipes] for recipes in shaped.recipes]
            return IndexedPart(ways, shaped.has_remainder, shaped.is_message)
    part = _part(profile.body)
    ways = [[WayRecipe(way).fill(()) for way in ways] for ways in part.ways]
    return IndexedPart(ways, part.has_remainder, part.is_message)


def _reading(way: FilledWay) -> Reading:
    descendant, test, _ = way[0]
    return Reading.GRAPH if test == GRAPH_ROOT and not descendant else Reading.DOCUMENT


class _Part(NamedTuple):
    """``ways`` say what the matching part ``of`` does."""

    of: object
    ways: tuple[Ways, ...]
    has_remainder: bool
    is_message: bool


class _ShapedRecipe(NamedTuple):
    recipes: list[list[WayRecipe]]
    has_remainder: bool
    is_message: bool


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
    """For the one step of a path; None where that alone does not say what is asked."""
    try:
        part = _part(tree)
    except NeedsWords:
        return None
    if part.has_remainder or len(part.ways) != 1 or len(part.ways[0]) != 1:
        return None
    (way,) = part.ways[0]
    if len(way) != 1:
        return None
    (step,) = way
    if any(isinstance(condition, Verified) for condition in step.conditions):
        return None
    return _StepRecipe(recipe_of(step.conditions), len(blanks_in(step.conditions)))


def _shaped_recipe(tree: Expression) -> _ShapedRecipe | None:
    """None where that alone does not say what is asked, or a blank got lost on the way."""
    try:
        part = _part(tree)
    except NeedsWords:
        return None
    if not blanks_in(part.of) <= blanks_in(part.ways):
        return None
    recipes = [[WayRecipe(way) for way in ways] for ways in part.ways]
    return _ShapedRecipe(recipes, part.has_remainder, part.is_message)


def _part(body: Expression) -> _Part:
    part = matching_part(Profile(body))
    ways = tuple(way for path in part.paths for way in ways_of(path, part.verified))
    remains = part.has_remainder and not part.is_verified
    return _Part((part.paths, part.verified), ways, remains, delivers_message(body) and not remains)
