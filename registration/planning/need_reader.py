"""NeedReader: text of a profile -> its needs, many thousand times a second.

Populations are large and their profiles alike, so needs are found out once for each shape (see
yfilter/language/shapes.py) and the words of a profile are put in::

    /nitf[head/pubdata/@edition.area = "SF"]     conditions of its step, as a shape
                                                 /*[▢0/▢1/@▢2 = ▢3]
                                                 need  /*/▢0/▢1/@▢2: ▢3

That is right where nothing but the comparison itself depends on a literal: where every literal of
the shape comes out as the constant of a selection of the routing query.  A profile of another
shape, say with ``count(a) > 1``, is analysed as it stands.  Where only constants differ, not even
the text is parsed (text_shapes.py).

PERF: about 20 us a profile instead of a millisecond (``python -m benchmarks pep --scaling``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
from registration.planning.text_shapes import Found, TextShapes
from yfilter.engine.linear_paths import routing_query
from yfilter.language.query_ast import (
    Comparison,
    Expression,
    Literal,
    Or,
    Origin,
    PathExpression,
    Profile,
)
from yfilter.language.query_parser import parse_accepted
from yfilter.language.shapes import MARK, Blank, NeedsWords, PlainPath, Shaped, Word, parts_of
from yfilter.language.subexpressions import all_within

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

    def statistics(self) -> dict[str, int]:
        """``analysed``: those that were read without a shape."""
        counts = {"read": self._read, "analysed": self._analysed}
        return {**counts, **self._texts.statistics()}

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
    return not any(
        isinstance(part, PathExpression) and part.origin is Origin.MESSAGE
        for part in all_within(tree)
        if part is not tree
    )


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
    literals = (part.value for part in all_within(expression) if isinstance(part, Literal))
    return {value.number for value in literals if isinstance(value, Blank)}
