r"""Parses regular expressions as XPath and XQuery Functions and Operators 3.1 (section 5.6) and XML
Schema Part 2 (appendix F, as of 1.1 appendix G) say, into fragments.

::

    a(b|\d)+\1$    -> sequence(char a, repeat(group 1(choice(char b, char 0-9...)), 1 or more),
                               back 1, $)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from yfilter.language.character_sets import (
    END,
    Characters,
    block,
    category,
    characters_of,
    complement,
    difference,
    escaped_characters,
    union,
    with_case_variants,
)

STATES_MAX = 16_384  # of one pattern, after {n,m} is written out
GROUPS_DEEP_MAX = 16  # also of a class in a class
FLAGS = "smixq"

_COUNT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_COUNTS = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_PROPERTY = re.compile(r"\{(?:Is([a-zA-Z0-9-]+)|([A-Z][a-z]?))\}")
_BACK = re.compile("[1-9][0-9]*")
_SINGLES = {"n": "\n", "r": "\r", "t": "\t", **{c: c for c in "\\|.?*+(){}-[]^$"}}
_CASE_LOOKS = 400  # at ranges, that take as long as finding the case variants of a class
_BLANKS = "\t\n\r "
_ANY = complement(characters_of([(10, 11), (13, 14)]))


class PatternError(ValueError):
    """A regular expression that is wrong, or too large.

    ``code``: of XPath; ``place``: of the character at which that shows, -1 for the whole.
    """

    def __init__(self, what: str, place: int = -1, code: str = "FORX0002") -> None:
        where = f" at character {place + 1} of the regular expression" if place >= 0 else ""
        super().__init__(f"{what}{where} ({code})")
        self.code = code
        self.place = place


class Fragment(NamedTuple):
    """A piece of pattern: char, ^, $, sequence, choice, repeat, group or back (a back-reference).

    ``characters`` are those that a char matches; ``least`` is the number of a group or of what a
    back-reference means; ``greedy``: a repeat prefers more.
    """

    kind: str
    parts: tuple[Fragment, ...] = ()
    characters: Characters = ()
    least: int = 0
    most: int | None = None
    greedy: bool = True


class ParsedPattern(NamedTuple):
    """A pattern as a fragment; how many groups it has; whether with back-references, and with ^;
    how many ranges of characters were looked at for it."""

    whole: Fragment
    groups: int
    looked: int
    has_backs: bool
    has_starts: bool


def check_flags(flags: str) -> None:
    """Raises PatternError for what is no flag."""
    for flag in flags:
        if flag not in FLAGS:
            raise PatternError(f"'{flag}' is not a flag of a regular expression", code="FORX0001")


def parse_pattern(pattern: str, flags: str) -> ParsedPattern:
    """What a regular expression is made of, or PatternError."""
    check_flags(flags)
    parser = _PatternParser(pattern, flags)
    whole = parser.quoted() if "q" in flags else parser.whole()
    return ParsedPattern(whole, parser.opened, parser.looked, parser.has_backs, parser.has_starts)


class _PatternParser:
    def __init__(self, pattern: str, flags: str) -> None:
        self._pattern = pattern
        self._places: Sequence[int] = range(len(pattern) + 1)
        self._any = (0, END) if "s" in flags else _ANY
        self._ignores_case = "i" in flags
        if "x" in flags and "q" not in flags:
            kept = _without_blanks(pattern)
            self._pattern = "".join(pattern[place] for place in kept)
            self._places = (*kept, len(pattern))
        self._at = 0
        self._depth = 0
        self._closed: set[int] = set()
        self.opened = 0
        self.looked = 0
        self.has_backs = False
        self.has_starts = False

    def quoted(self) -> Fragment:
        return Fragment("sequence", tuple(map(self._character, self._pattern)))

    def whole(self) -> Fragment:
        found = self._alternatives()
        if self._at < len(self._pattern):
            raise self._error("a ')' without its '('")
        return found

    def _error(self, what: str, at: int | None = None) -> PatternError:
        return PatternError(what, self._places[self._at if at is None else at])

    def _next(self, size: int = 1) -> str:
        return self._pattern[self._at : self._at + size]

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > GROUPS_DEEP_MAX:
            raise self._error(f"groups nested more than {GROUPS_DEEP_MAX} deep")

    def _alternatives(self) -> Fragment:
        branches = [self._sequence()]
        while self._next() == "|":
            self._at += 1
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else Fragment("choice", tuple(branches))

    def _sequence(self) -> Fragment:
        parts: list[Fragment] = []
        while self._next() not in ("", "|", ")"):
            parts.append(self._quantified(self._atom()))
        return Fragment("sequence", tuple(parts))

    def _atom(self) -> Fragment:
        character = self._next()
        match character:
            case "(":
                return self._group()
            case "[":
                return Fragment("char", characters=self._class())
            case "\\":
                return self._escape()
            case "^" | "$":
                self._at += 1
                self.has_starts |= character == "^"
                return Fragment(character)
            case "?" | "*" | "+" | "{":
                raise self._error(f"the quantifier '{character}' follows nothing to repeat")
            case "}" | "]":
                raise self._error(f"a '{character}' that is not written '\\{character}'")
            case ".":
                self._at += 1
                return Fragment("char", characters=self._any)
            case _:
                self._at += 1
                return self._character(character)

    def _character(self, character: str) -> Fragment:
        characters: Characters = (ord(character), ord(character) + 1)
        if self._ignores_case:
            characters = with_case_variants(characters)
        return Fragment("char", characters=characters)

    def _group(self) -> Fragment:
        start = self._at
        self._enter()
        is_captured = self._next(3) != "(?:"
        self._at += 1 if is_captured else 3
        self.opened += is_captured
        number = self.opened
        inside = self._alternatives()
        if self._next() != ")":
            raise self._error("a '(' without its ')'", start)
        self._at += 1
        self._depth -= 1
        if not is_captured:
            return inside
        self._closed.add(number)
        return Fragment("group", (inside,), least=number)

    def _escape(self) -> Fragment:
        back = _BACK.match(self._pattern, self._at + 1)
        if back is None:
            single = _SINGLES.get(self._next(2)[1:])
            if single is None:
                return Fragment("char", characters=self._several())
            self._at += 2
            return self._character(single)
        number, size = int(back[0][0]), 1
        while size < len(back[0]) and int(back[0][: size + 1]) <= self.opened:
            size += 1
            number = int(back[0][:size])
        if number not in self._closed:
            raise self._error(f"no group {number} that is closed before the back-reference")
        self._at += 1 + size
        self.has_backs = True
        return Fragment("back", least=number)

    def _several(self) -> Characters:
        r"""What ``\d``, ``\P{L}`` and the like stand for."""
        start, letter = self._at, self._next(2)[1:]
        if letter not in ("p", "P"):
            try:
                found = escaped_characters(letter)
            except KeyError:
                raise self._error(f"'\\{letter}' is not an escape") from None
            self._at += 2
            self.looked += len(found) // 2
            return found
        named = _PROPERTY.match(self._pattern, start + 2)
        if named is None:
            raise self._error(f"'\\{letter}' without a category or block, such as \\{letter}{{L}}")
        try:
            found = category(named[2]) if named[1] is None else block(named[1])
        except KeyError:
            raise self._error(f"there is no category or block {named[0]}") from None
        self._at = named.end()
        self.looked += len(found) // 2
        return found if letter == "p" else complement(found)

    def _class(self) -> Characters:
        """A class in brackets, from ``[`` on."""
        start = self._at
        self._enter()
        is_complement = self._next(2) == "[^"
        self._at += 2 if is_complement else 1
        sets: dict[str, Characters] = {}
        ranges: list[tuple[int, int]] = []
        first = self._at
        while self._next() != "]" and (self._next(2) != "-[" or self._at == first):
            self._class_part(start, sets, ranges)
        if self._at == first:
            raise self._error("an empty class", start)
        plain = characters_of(ranges)
        if self._ignores_case:
            plain = with_case_variants(plain)
            self.looked += _CASE_LOOKS
        found = union((plain, *sets.values()))
        if is_complement:
            found = complement(found)
        if self._next() == "-":
            self._at += 1
            found = difference(found, self._class())
            if self._next() != "]":
                raise self._error("a class goes on behind what is subtracted from it")
        self._at += 1
        self._depth -= 1
        return found

    def _class_part(
        self, start: int, sets: dict[str, Characters], ranges: list[tuple[int, int]]
    ) -> None:
        """One escape, character or range of characters in a class."""
        at = self._at
        if self._next() == "\\" and self._next(2)[1:] not in _SINGLES:
            found = self._several()
            sets[self._pattern[at : self._at]] = found
            return
        low = high = self._single(start)
        if (
            self._next() == "-"
            and self._next(2)[1:] not in ("", "[", "]")
            and (self._next(3) != "--[")
        ):
            self._at += 1
            high = self._single(start)
            if high < low:
                raise self._error("a range that ends before it begins", at)
        ranges.append((low, high + 1))

    def _single(self, start: int) -> int:
        character = self._next()
        if character == "":
            raise self._error("a '[' without its ']'", start)
        if character == "[":
            raise self._error("a '[' in a class that is not written '\\['")
        if character == "\\":
            found = _SINGLES.get(self._next(2)[1:])
            if found is None:
                raise self._error("a range that ends with more than one character")
            self._at += 2
            return ord(found)
        self._at += 1
        return ord(character)

    def _quantified(self, fragment: Fragment) -> Fragment:
        character = self._next()
        if character in _COUNTS:
            least, most = _COUNTS[character]
            self._at += 1
        elif character == "{":
            count = _COUNT.match(self._pattern, self._at)
            if count is None:
                raise self._error("a '{' without a quantifier, such as {2,3}")
            if max(len(count[1]), len(count[3] or "")) > len(str(STATES_MAX)):
                raise self._error(f"a repetition of more than {STATES_MAX:,}")
            least = int(count[1])
            most = int(count[3]) if count[3] else None if count[2] else least
            if max(least, most or 0) > STATES_MAX:
                raise self._error(f"a repetition of more than {STATES_MAX:,}")
            if most is not None and most < least:
                raise self._error("a quantifier whose second number is less than its first")
            self._at = count.end()
        else:
            return fragment
        greedy = self._next() != "?"
        if not greedy:
            self._at += 1
        if self._next() in ("*", "+", "?", "{"):
            raise self._error("a quantifier after a quantifier")
        return Fragment("repeat", (fragment,), least=least, most=most, greedy=greedy)


def _without_blanks(pattern: str) -> list[int]:
    """The places of what flag x leaves: all but the blanks outside classes."""
    kept = []
    depth = 0
    is_escaped = False
    for place, character in enumerate(pattern):
        if character in _BLANKS and depth == 0:
            continue
        kept.append(place)
        if is_escaped:
            is_escaped = False
        elif character == "\\":
            is_escaped = True
        elif character == "[":
            depth += 1
        elif character == "]":
            depth -= 1
    return kept
