"""ProfileRecipes: profiles as the numbers of their shapes and their words, read without a parse.

::

    /nitf//series[@id = "x"][. > 5]      shape 7  /*[@▢0 = ▢1][. > ▢2]
                                         recipe   ["/nitf", ["//series", 7, "id", "x", 5]]

    for $i in //item where $i/@id = "x" return $i/name
                                         recipe   [8, "item", "id", "x", "name"]

    ASK { ?i dc:creator "Ann" }          recipe   [9, "Ann"]

Whoever stores recipes stores the shapes beside them, each as the text of the first profile that had
it, and ``language_digest``: recipes are of use only to the very parser that made them; to another
one, the texts of the profiles are.

PERF: a profile is read in a fifth of the time that its text takes (``benchmarks network``,
registering).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

from yfilter.graph.graph_query import GraphShape, MadeOfWords, is_graph_query, made_of_words
from yfilter.language.profile_limits import DERIVED_PATH_LIMITS
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_expression
from yfilter.language.shape_cache import STEPS_MAX, bare_step
from yfilter.language.shapes import PlainPath, PlainStep, Shape, Shaped, Word, take_apart

SHAPES_MAX = 4_096
"""Of one store; a profile with yet another one has no recipe."""

_INTEGER_MAX = 2**63 - 1
_WRITTEN_AS_THEY_ARE = {str, float}

_AnyShape: TypeAlias = Shape | GraphShape
Recipe: TypeAlias = list[Any]
"""Lists, strings, numbers, and maps for decimals, as above."""


class ProfileRecipes:
    """``new`` are shapes, by number, that are to be stored before the next recipe."""

    def __init__(self) -> None:
        self.new: dict[int, str] = {}
        self._shapes: dict[int, Shape] = {}
        self._graph_shapes: dict[int, GraphShape] = {}
        self._numbers: dict[_AnyShape, int] = {}

    def restore(self, number: int, text: str) -> None:
        """A shape that was stored."""
        self._add(number, _shape_of(text))

    def write(self, profile: Profile) -> Recipe | None:
        """None for a profile that has none; that has to be parsed."""
        match profile.parts:
            case Shaped() as shaped:
                return self._write_shaped(shaped)
            case MadeOfWords(shape, words):
                number = self._number_of(shape, lambda: profile.text)
                return None if number is None else [number, *words]
            case PlainPath(steps):
                recipe: Recipe = []
                for descendant, (_, name), conditions in steps:
                    step = f"//{name}" if descendant else f"/{name}"
                    if conditions is None:
                        recipe.append(step)
                        continue
                    asked = self._write_shaped(conditions)
                    if asked is None:
                        return None
                    recipe.append([step, *asked])
                return recipe
            case _:
                return None

    def read(self, recipe: Recipe, text: str) -> Profile:
        """The profile whose text is ``text``."""
        shapes = self._shapes
        if type(recipe[0]) is int:
            of_graphs = self._graph_shapes.get(recipe[0])
            if of_graphs is not None:
                return Profile.of_parts(MadeOfWords(of_graphs, tuple(recipe[1:])), text)
            return Profile.of_parts(Shaped(shapes[recipe[0]], _words(recipe[1:])), text)
        steps: list[PlainStep] = []
        for step in recipe:
            if type(step) is str:
                steps.append(_bare(step))
            else:
                descendant, test, _ = _bare(step[0])
                steps.append((descendant, test, Shaped(shapes[step[1]], _words(step[2:]))))
        return Profile.of_parts(PlainPath(tuple(steps)), text)

    def _write_shaped(self, shaped: Shaped) -> Recipe | None:
        number = self._number_of(shaped.shape, shaped.text)
        if number is None:
            return None
        words: Recipe = [number, *shaped.words]
        if set(map(type, shaped.words)) <= _WRITTEN_AS_THEY_ARE:
            return words
        if any(type(word) is int and abs(word) > _INTEGER_MAX for word in words):
            return None
        return [{"decimal": str(w)} if isinstance(w, Decimal) else w for w in words]

    def _number_of(self, shape: _AnyShape, text: Callable[[], str]) -> int | None:
        """Of a shape that a text has; None for one that is not to be stored."""
        number = self._numbers.get(shape)
        if number is not None or len(self._numbers) >= SHAPES_MAX:
            return number
        first = text()
        if _shape_of(first) is not shape:
            return None
        number = len(self._numbers)
        self._add(number, shape)
        self.new[number] = first
        return number

    def _add(self, number: int, shape: _AnyShape) -> None:
        if isinstance(shape, Shape):
            self._shapes[number] = shape
        else:
            self._graph_shapes[number] = shape
        self._numbers[shape] = number


@cache
def language_digest() -> str:
    """Of the sources that say what a text means."""
    digest = sha256()
    language = Path(__file__).parent
    graph = language.parent / "graph"
    for source in (*sorted(language.glob("*.py")), *sorted(graph.glob("*.py"))):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()


def _shape_of(text: str) -> _AnyShape:
    if is_graph_query(text):
        made = made_of_words(text, learns_at_once=True)
        if made is None:
            raise ValueError(f"{text!r} was the text of a shape")
        return made.shape
    return take_apart(parse_expression(text, DERIVED_PATH_LIMITS)).shape


def _words(stored: Recipe) -> tuple[Word, ...]:
    if dict in map(type, stored):
        return tuple([Decimal(w["decimal"]) if type(w) is dict else w for w in stored])
    return tuple(stored)


@lru_cache(maxsize=STEPS_MAX)
def _bare(step: str) -> PlainStep:
    slashes = 2 if step.startswith("//") else 1
    return bare_step(step[:slashes], step[slashes:])
