r"""Sets of characters, as regular expressions name them: ``[a-z]``, ``\w``, ``\p{L}``.

A set is its bounds: where it begins and where it ends, in turn, so that a character is in it if an
odd number of bounds is not above it.

::

    [b-d]  -> (0x62, 0x65)          [^b-d]  -> (0, 0x62, 0x65, 0x110000)

Categories and blocks are those of Unicode UNICODE_VERSION, whatever Python's and RE2's are; names
in ``\i`` and ``\c`` those of XML 1.0, fifth edition.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from formats.characters import NAME_START

if TYPE_CHECKING:
    from elementpath.regex.unicode_subsets import UnicodeData, UnicodeSubset

Characters: TypeAlias = tuple[int, ...]

UNICODE_VERSION = "15.1.0"
END = 0x110000
_CASED_END = 0x1E944  # no character from here on has another case

_NAME_PARTS = "--.0-9\xb7\u0300-\u036f\u203f-\u2040"


def has_character(characters: Characters, code: int) -> bool:
    return bool(bisect_right(characters, code) & 1)


def characters_of(ranges: Iterable[tuple[int, int]]) -> Characters:
    """The union of ranges, each from its first to behind its last code."""
    bounds: list[int] = []
    for start, end in sorted(ranges):
        if bounds and start <= bounds[-1]:
            bounds[-1] = max(bounds[-1], end)
        elif start < end:
            bounds += (start, end)
    return tuple(bounds)


def ranges_of(characters: Characters) -> list[tuple[int, int]]:
    return list(zip(characters[::2], characters[1::2], strict=True))


def union(sets: Iterable[Characters]) -> Characters:
    return characters_of(pair for characters in sets for pair in ranges_of(characters))


def complement(characters: Characters) -> Characters:
    bounds = characters[1:] if characters[:1] == (0,) else (0, *characters)
    return bounds[:-1] if bounds[-1:] == (END,) else (*bounds, END)


def difference(characters: Characters, without: Characters) -> Characters:
    return complement(union((complement(characters), without)))


@cache
def escaped_characters(letter: str) -> Characters:
    r"""What ``\s``, ``\d``, ``\w``, ``\i`` or ``\c`` stands for, or its capital; KeyError."""
    if letter.isupper():
        return complement(escaped_characters(letter.lower()))
    match letter:
        case "s":
            return _ranges("\t-\n\r-\r - ")
        case "d":
            return category("Nd")
        case "w":
            return complement(union(map(category, "PZC")))
        case "i":
            return _ranges(f":{NAME_START}")
        case "c":
            return union((escaped_characters("i"), _ranges(_NAME_PARTS)))
        case _:
            raise KeyError(letter)


def _ranges(written: str) -> Characters:
    codes = list(map(ord, written))
    found = []
    place = 0
    while place < len(codes):
        is_range = written[place + 1 : place + 2] == "-"
        found.append((codes[place], codes[place + 2 if is_range else place] + 1))
        place += 3 if is_range else 1
    return characters_of(found)


@cache
def category(name: str) -> Characters:
    r"""The characters of ``\p{name}``; KeyError if there is no such category."""
    return _taken(_unicode().category(name))


@cache
def block(name: str) -> Characters:
    r"""The characters of ``\p{Isname}``; KeyError if there is no such block."""
    if name == "NoBlock":  # elementpath's
        raise KeyError(name)
    return _taken(_unicode().block(name))


def _taken(subset: UnicodeSubset) -> Characters:
    return characters_of(
        (part, part + 1) if isinstance(part, int) else part for part in subset.codepoints
    )


@cache
def _unicode() -> UnicodeData:
    # Imported late: a process that sees no such expression starts faster without it.
    from elementpath.regex.unicode_subsets import UnicodeData  # noqa: PLC0415

    return UnicodeData(UNICODE_VERSION)


def with_case_variants(characters: Characters) -> Characters:
    """The characters and all others of which lower-case() or upper-case() is the same."""
    cased, variants = _case_variants()
    found = [
        (code, code + 1)
        for start, end in ranges_of(characters)
        for cased_code in cased[_first(cased, start) : _first(cased, end)]
        for code in variants[cased_code]
        if not start <= code < end
    ]
    return characters_of((*ranges_of(characters), *found))


def _first(codes: list[int], code: int) -> int:
    return bisect_right(codes, code - 1)


@cache
def _case_variants() -> tuple[list[int], dict[int, set[int]]]:
    """The characters that have others, in order; the others of each, itself included."""
    alike: dict[tuple[bool, str], set[int]] = defaultdict(set)
    for code in range(_CASED_END):
        character = chr(code)
        lower, upper = character.lower(), character.upper()
        if lower != character or upper != character:
            alike[False, lower].add(code)
            alike[True, upper].add(code)
    variants: dict[int, set[int]] = defaultdict(set)
    for codes in alike.values():
        for code in codes:
            variants[code] |= codes
    return sorted(variants), dict(variants)
