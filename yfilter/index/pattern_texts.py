r"""Texts that a regular expression needs, by which the index finds those that a value may match.

One of them is in each text in which the pattern is found::

    ^\s*storm[- ](air|sea)\d+           {"storm-air", "storm-sea", "storm air", "storm sea"}
    (jpe?g|png)$                        {"jpeg", "jpg", "png"}
    storm.*, flag i                     {"storm"}, in the text without the case of its letters
    \d+\.\d                             none
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import NamedTuple, TypeAlias

from yfilter.language.patterns import (
    Characters,
    Fragment,
    Pattern,
    compile_pattern,
    ranges_of,
)
from yfilter.language.words import Spacing, plain_test, spaced

TEXTS_MAX = 16  # of a pattern
OCTETS_MIN = 3  # a shorter one is in too many values
OCTETS_MAX = 32
CHARACTERS_MAX = 4  # of a class that is taken one by one

Octets: TypeAlias = frozenset[bytes]
_NOTHING: Octets = frozenset((b"",))


def pattern_test(pattern: str, flags: str) -> tuple[str, str | None]:
    """The text test that ``matches`` is, and its text; None where it has to be verified."""
    plain = plain_test(pattern, flags)
    if plain is not None:
        return plain
    compiled = compile_pattern(pattern, flags)
    # A nullable one holds where there is no value, too.
    is_found = compiled.is_quick and not compiled.is_nullable and compiled.written is not None
    return "matches", key_of(pattern, flags) if is_found else None


class PatternTexts(NamedTuple):
    """``texts`` in UTF-8, none where the pattern needs none; ``folded``: of a value without the
    case of the letters of ASCII (Spacing.CASELESS)."""

    texts: Octets = frozenset()
    folded: bool = False


NO_TEXTS = PatternTexts()


def key_of(pattern: str, flags: str) -> str:
    """The text by which the index knows a pattern: flags, a slash, the pattern."""
    return f"{flags}/{pattern}"


def pattern_in(key: str) -> tuple[str, str]:
    """The pattern and the flags of a key."""
    flags, _, pattern = key.partition("/")
    return pattern, flags


def texts_of(pattern: Pattern, flags: str) -> PatternTexts:
    """The texts that a pattern needs."""
    needed = _found(pattern.whole, folded="i" in flags).needed
    if min(map(len, needed)) < OCTETS_MIN:
        return NO_TEXTS
    return PatternTexts(frozenset(text[:OCTETS_MAX] for text in needed), "i" in flags)


class _Found(NamedTuple):
    """``whole``: all that a fragment matches, where these are few; ``needed``: one of them is in
    each text that it matches, the empty one where nothing is known."""

    whole: Octets | None
    needed: Octets = _NOTHING


def _found(fragment: Fragment, folded: bool) -> _Found:
    match fragment.kind:
        case "char":
            return _of_whole(_each_of(fragment.characters, folded))
        case "sequence":
            return _of_sequence([_found(part, folded) for part in fragment.parts])
        case "choice":
            return _of_choice([_found(part, folded) for part in fragment.parts])
        case "group":
            return _found(fragment.parts[0], folded)
        case "repeat":
            part = _found(fragment.parts[0], folded)
            least, most = fragment.least, fragment.most
            if most == 1:
                return part if least else _of_choice([part, _Found(_NOTHING)])
            row = _of_sequence([part] * min(least, OCTETS_MAX))
            return row if most == least <= OCTETS_MAX else _Found(None, row.needed)
        case "^" | "$":
            return _Found(_NOTHING)
        case _:
            return _Found(None)


def _of_sequence(parts: list[_Found]) -> _Found:
    row, needed, is_whole = _NOTHING, _NOTHING, True
    for part in parts:
        if part.whole is not None and len(row) * len(part.whole) <= TEXTS_MAX:
            row = frozenset(one + other for one, other in product(row, part.whole))
            continue
        needed = max(needed, row, part.needed, key=_worth)
        row, is_whole = part.whole or _NOTHING, False
    return _Found(row if is_whole else None, max(needed, row, key=_worth))


def _of_choice(parts: list[_Found]) -> _Found:
    wholes = [part.whole for part in parts if part.whole is not None]
    if len(wholes) == len(parts):
        whole = frozenset[bytes]().union(*wholes)
        if len(whole) <= TEXTS_MAX:
            return _of_whole(whole)
    needed = frozenset[bytes]().union(*(part.needed for part in parts))
    return _Found(None, needed if len(needed) <= TEXTS_MAX else _NOTHING)


def _of_whole(whole: Octets | None) -> _Found:
    return _Found(None) if whole is None else _Found(whole, whole)


def _worth(texts: Octets) -> tuple[int, int]:
    """Longer texts are in fewer values, and fewer of them as well."""
    return min(OCTETS_MAX, *map(len, texts)), -len(texts)


@lru_cache(4_096)
def _each_of(characters: Characters, folded: bool) -> Octets | None:
    """The characters of a class one by one; None for too many."""
    ranges = ranges_of(characters)
    if not 0 < sum(end - start for start, end in ranges) <= CHARACTERS_MAX:
        return None
    texts = [chr(code).encode(errors="ignore") for pair in ranges for code in range(*pair)]
    if folded:
        texts = [spaced(text, Spacing.CASELESS)[1:-1] for text in texts]
    return frozenset(filter(None, texts)) or None  # no text has half a character
