"""NeedReader: text of a profile -> its needs, many thousand times a second.

Populations are large and their profiles alike, so needs are found out once for each shape (see
yfilter/language/shapes.py) and the words of a profile are put in::

    /nitf[head/pubdata/@edition.area = "SF"]     conditions of its step, as a shape
                                                 /*[▢0/▢1/@▢2 = ▢3]
                                                 need  /*/▢0/▢1/@▢2: ▢3

That is right where nothing but the comparison itself depends on a literal: where every literal of
the shape comes out as the constant of a selection of the routing query.  A profile of another
shape, say with ``count(a) > 1``, is analysed as it stands.  Where only constants differ, not even
the text is parsed (need_reader.py).

PERF: about 20 us a profile instead of a millisecond (``python -m benchmarks pep --scaling``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from registration.planning.exclusiveness import (
    VALUES_MAX,
    Need,
    Pattern,
    canonical_value,
    equalities,
    literal_value,
    needs_of,
    pattern_of,
)
from yfilter.engine.linear_paths import routing_query
from yfilter.errors import ProfileRefused
from yfilter.language.query_ast import (
    Comparison,
    Expression,
    Literal,
    Or,
    Origin,
    Profile,
)
from yfilter.language.query_parser import parse_accepted
from yfilter.language.shapes import PlainPath, Shaped, Word, parts_of
from yfilter.language.trees import MARK, Blank, NeedsWords

# -------------------------------------------------------------------------------------------------
# TextShapes: the needs of profiles that differ only in their constants, without parsing them.
#
# Large populations are made by few forms.  A text is split at its constants, and what is left of it
# is looked up::
#
#     /m[f0/@v = "17"][f1/@v = "4"]      left      /m[f0/@v = ▢][f1/@v = ▢]
#                                        constants "17", "4"
#                                        known     /m/f0/@v: ▢0    /m/f1/@v: ▢1
#
# The first time, the text is read with a marker for each constant, and where the markers come out
# is where the constants of other texts belong.  That is right where every constant comes out as a
# value of a need: then it was read as the constant of a selection, on which nothing else of the
# routing query depends (need_reader.py).  All other texts are left to the parser, as are those in
# which a quotation mark may not begin a constant: with constructors, comments or references.
#
# Bounded: at most SHAPES_MAX shapes; a text of another is left to the parser.
#
# PERF: about 3 us a profile instead of 19 (``python -m benchmarks pep --scaling``).


SHAPES_MAX = 10_000
LENGTH_MAX = 2_048  # characters; a longer text is left to the parser

Found: TypeAlias = tuple[tuple[Pattern, ...], tuple[tuple[str, ...], ...]]
"""The patterns that a profile needs, sorted, and the values at each, sorted."""

# A string of what may stand in XML, quotation marks included; a number behind an "=".
_CHARACTERS = "&<\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff"
_CONSTANT = re.compile(
    rf"""("[^"{_CHARACTERS}]*"|'[^'{_CHARACTERS}]*'|"""
    r"""(?:(?<=[^<>!:]=)|(?<=[^<>!:]=[ ]))[0-9]{1,15}(?:\.[0-9]{1,15})?(?![\w.:(-]))"""
)
_LEFT_TO_THE_PARSER = re.compile(r"[&<]|\([:#]")
_MARKER = "\ue000"
_NUMBERS_FROM = 900_000_000_000  # canonical as they are, and constants of nobody
_NUMBERS_MAX = 64


@dataclass(frozen=True, slots=True)
class _Shape:
    """``places``: for each pattern the numbers of its constants, and its values that are no
    constants of the text."""

    patterns: tuple[Pattern, ...]
    places: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...]

    def values(self, constants: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        found: list[tuple[str, ...]] = []
        for numbers, fixed in self.places:
            if len(numbers) == 1 and not fixed:
                found.append((_value(constants[numbers[0]]),))
            else:
                values = {*fixed, *(_value(constants[number]) for number in numbers)}
                found.append(tuple(sorted(values)))
        return tuple(found)


class TextShapes:
    """What is known of shapes; ``read`` gives the needs of a text that is parsed."""

    def __init__(self, read: Callable[[str], tuple[Need, ...]]) -> None:
        self._read = read
        self._shapes: dict[str, _Shape | None] = {}

    def find(self, text: str) -> Found | None:
        """What the text needs; None: it has to be parsed."""
        if _LEFT_TO_THE_PARSER.search(text) or len(text) > LENGTH_MAX:
            return None
        pieces = _CONSTANT.split(text)
        key = _MARKER.join(pieces[::2])
        try:
            shape = self._shapes[key]
        except KeyError:
            shape = self._learn(key, pieces)
        if shape is None:
            return None
        return shape.patterns, shape.values(pieces[1::2])

    def _learn(self, key: str, pieces: list[str]) -> _Shape | None:
        if len(self._shapes) >= SHAPES_MAX or _MARKER in "".join(pieces):
            return None
        markers: dict[str, int] = {}
        marked = list(pieces)
        for number in range(len(pieces) // 2):
            quote = pieces[2 * number + 1][0]
            if quote in "\"'":
                marker = f"{_MARKER}{number}"
                marked[2 * number + 1] = f"{quote}{marker}{quote}"
            else:
                marker = marked[2 * number + 1] = str(_NUMBERS_FROM + number)
            markers[marker] = number
        shape = self._shapes[key] = self._shape("".join(marked), markers)
        return shape

    def _shape(self, marked: str, markers: dict[str, int]) -> _Shape | None:
        if len(markers) > _NUMBERS_MAX:
            return None
        try:
            needs = self._read(marked)
        except ProfileRefused:
            return None
        places = tuple(
            (
                tuple(markers[value] for value in need.values if value in markers),
                tuple(value for value in need.values if value not in markers),
            )
            for need in needs
        )
        met = {number for numbers, _ in places for number in numbers}
        if len(met) < len(markers):
            return None
        return _Shape(tuple(need.pattern for need in needs), places)


def _value(constant: str) -> str:
    """A constant as it is written in a profile, as it is in a need."""
    return canonical_value(constant[1:-1] if constant[0] in "\"'" else constant)


# -------------------------------------------------------------------------------------------------


_BLANK = re.compile(rf"{MARK}([0-9]+)\.?{MARK}")
_ANY_STEP = "/*"

_Found: TypeAlias = dict[Pattern, set[str]]


class _Target(NamedTuple):
    """A pattern with blanks (``pieces`` around the words ``numbers``), and what it is compared
    with: the number of a word, or a value."""

    pieces: tuple[str, ...]
    numbers: tuple[int, ...]
    values: tuple[int | str, ...]

    def pattern(self, words: Sequence[Word]) -> Pattern:
        parts = [self.pieces[0]]
        for number, piece in zip(self.numbers, self.pieces[1:], strict=True):
            parts += (str(words[number]), piece)
        return "".join(parts)

    def constants(self, words: Sequence[Word]) -> Iterator[str]:
        for value in self.values:
            word = value if isinstance(value, str) else words[value]
            yield canonical_value(word) if isinstance(word, str) else literal_value(Literal(word))


# A selection is one target, or several by ``or``; a disjunct is its selections.
_Disjuncts: TypeAlias = tuple[tuple[tuple[_Target, ...], ...], ...]


class NeedReader:
    """Reads profiles; what it remembers of shapes is kept with them."""

    def __init__(self) -> None:
        self._read = 0
        self._analysed = 0
        self._texts = TextShapes(self._parsed)

    def read(self, text: str) -> tuple[Need, ...]:
        """The needs of the profile; ProfileRefused as the parser would."""
        return tuple(map(Need, *self.find(text)))

    def find(self, text: str) -> Found:
        """The same as the patterns, and the values at each.

        PERF: for a population; making the Needs would take a third of the time.
        """
        self._read += 1
        found = self._texts.find(text)
        if found is None:
            needs = self._parsed(text)
            found = tuple(need.pattern for need in needs), tuple(need.values for need in needs)
        return found

    def _parsed(self, text: str) -> tuple[Need, ...]:
        profile = parse_accepted(text)
        parts = parts_of(profile)
        found = _of_path(parts) if isinstance(parts, PlainPath) else _of_shaped(parts)
        if found is None:
            self._analysed += 1
            return needs_of(profile)
        return tuple(
            Need(pattern, tuple(sorted(found[pattern])))
            for pattern in sorted(found)
            if len(found[pattern]) <= VALUES_MAX
        )


def _of_path(path: PlainPath) -> _Found | None:
    """Every step has to be there, so the needs of all steps are needed."""
    found: _Found = {}
    way = ""
    for descendant, (_, name), conditions in path.steps:
        way += ("//" if descendant else "/") + name
        if conditions is None:
            continue
        of_step = _of_shaped(conditions) if conditions.shape.derived(_is_relative) else None
        if of_step is None:
            return None
        for pattern, values in of_step.items():
            found.setdefault(way + pattern.removeprefix(_ANY_STEP), set()).update(values)
    return found


def _of_shaped(shaped: Shaped) -> _Found | None:
    disjuncts = shaped.shape.derived(_disjuncts)
    if disjuncts is None:
        return None
    found = [_of_disjunct(disjunct, shaped.words) for disjunct in disjuncts]
    first, *others = found
    if not others:
        return first
    shared = set(first).intersection(*others)
    return {pattern: set().union(*(each[pattern] for each in found)) for pattern in shared}


def _of_disjunct(disjunct: tuple[tuple[_Target, ...], ...], words: Sequence[Word]) -> _Found:
    found: _Found = {}
    for targets in disjunct:
        pattern, *others = [target.pattern(words) for target in targets]
        if all(other == pattern for other in others):
            values = found.setdefault(pattern, set())
            for target in targets:
                values.update(target.constants(words))
    return found


def _disjuncts(tree: Expression) -> _Disjuncts | None:
    """For a shape: the equalities in each disjunct of its routing query; None where something
    depends on a literal, or the needs cannot be said by words."""
    try:
        conjunctions = routing_query(Profile(tree))
    except NeedsWords:
        return None
    constants: set[int] = set()
    disjuncts = []
    for conjunction in conjunctions:
        selections = []
        for path in conjunction.paths:
            for index, step in enumerate(path.steps):
                for selection in step.selections:
                    constants.update(_constants(selection))
                    targets = tuple(
                        _target(pattern_of(path.steps[: index + 1], target), literals)
                        for target, literals in equalities(selection)
                    )
                    if targets:
                        selections.append(targets)
        disjuncts.append(tuple(selections))
    return tuple(disjuncts) if _literals(tree) <= constants else None


def _target(pattern: str, literals: Sequence[Literal]) -> _Target:
    pieces = _BLANK.split(pattern)
    values = tuple(
        literal.value.number if isinstance(literal.value, Blank) else literal_value(literal)
        for literal in literals
    )
    return _Target(tuple(pieces[::2]), tuple(map(int, pieces[1::2])), values)


def _is_relative(tree: Expression) -> bool:
    """Whether the conditions of ``/*[…]`` have no path that starts at the message."""
    return not any(part.origin is Origin.MESSAGE for part in tree.within() if part is not tree)


def _constants(selection: Expression) -> Iterator[int]:
    """The blanks that a selection compares with, directly or in one of its alternatives."""
    match selection:
        case Or(parts):
            for part in parts:
                yield from _constants(part)
        case Comparison(left, _, right):
            for side in (left, right):
                if isinstance(side, Literal) and isinstance(side.value, Blank):
                    yield side.value.number


def _literals(expression: Expression) -> set[int]:
    """All blanks that are literals."""
    literals = (part.value for part in expression.within() if isinstance(part, Literal))
    return {value.number for value in literals if isinstance(value, Blank)}
