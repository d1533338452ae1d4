"""TextShapes: the needs of profiles that differ only in their constants, without parsing them.

Large populations are made by few forms.  A text is split at its constants, and what is left of it
is looked up::

    /m[f0/@v = "17"][f1/@v = "4"]      left      /m[f0/@v = ▢][f1/@v = ▢]
                                       constants "17", "4"
                                       known     /m/f0/@v: ▢0    /m/f1/@v: ▢1

The first time, the text is read with a marker for each constant, and where the markers come out is
where the constants of other texts belong.  That is right where every constant comes out as a value
of a need: then it was read as the constant of a selection, on which nothing else of the routing
query depends (need_reader.py).  All other texts are left to the parser, as are those in which a
quotation mark may not begin a constant: with constructors, comments or references.

Bounded: at most SHAPES_MAX shapes; a text of another is left to the parser.

PERF: about 3 us a profile instead of 19 (``python -m benchmarks pep --scaling``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from registration.planning.exclusiveness import Need, Pattern, canonical_value
from yfilter.errors import ProfileRefused

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
        self._known = 0

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
        self._known += 1
        return shape.patterns, shape.values(pieces[1::2])

    def statistics(self) -> dict[str, int]:
        return {"text_shapes": len(self._shapes), "known_by_shape": self._known}

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
