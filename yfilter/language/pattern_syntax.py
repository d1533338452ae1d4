"""Parses the regular expressions of XPath 2.0 into fragments.

Their syntax is checked, and single characters and classes are decided, by elementpath's translation
to Python's.  Back-references are refused: they cannot be matched in linear time.

::

    a(b|c)+$    -> sequence(char a, repeat(group(choice(char b, char c)), 1 or more), $)
"""

from __future__ import annotations

import re
from typing import NamedTuple

REPEATS_MAX = 2_000  # n and m of {n,m}
GROUPS_DEEP_MAX = 16

FLAGS = {"s": re.DOTALL, "m": re.MULTILINE, "i": re.IGNORECASE, "x": re.VERBOSE}
_COUNT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")


class PatternError(ValueError):
    """A regular expression that is wrong, or too large."""


class Fragment(NamedTuple):
    """A piece of pattern: char, ^, $, sequence, choice, repeat or group.

    ``test`` matches the characters of a char; ``least`` is a group's number; ``greedy``: a repeat
    prefers more.
    """

    kind: str
    parts: tuple[Fragment, ...] = ()
    test: re.Pattern[str] | None = None
    least: int = 0
    most: int | None = None
    greedy: bool = True


class ParsedPattern(NamedTuple):
    """A pattern as a fragment; how many groups it has; its flags, of module ``re``."""

    whole: Fragment
    groups: int
    flags: int


def parse_pattern(pattern: str, flags: str) -> ParsedPattern:
    """What a regular expression is made of, or PatternError; ``flags`` are among FLAGS."""
    if "x" in flags:
        pattern = re.sub(r"[ \t\n\r]", "", pattern)
    combined = 0
    for flag in flags.replace("x", ""):
        combined |= FLAGS[flag]
    _checked(pattern, combined)  # the syntax as a whole; piece by piece below
    parser = _PatternParser(pattern, combined)
    return ParsedPattern(parser.parse(), parser.groups, combined)


def _checked(pattern: str, flags: int) -> re.Pattern[str]:
    # Imported late: a process that sees no regular expression starts faster without it.
    from elementpath.regex import RegexError, translate_pattern  # noqa: PLC0415

    try:
        return re.compile(translate_pattern(pattern, flags), flags)
    except (RegexError, re.error, OverflowError, RecursionError) as error:
        raise PatternError(str(error)) from None


class _PatternParser:
    """Parses a pattern that is known to be right."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._pattern = pattern
        self._flags = flags
        self._at = 0
        self._depth = 0
        self.groups = 0

    def parse(self) -> Fragment:
        self._depth += 1
        if self._depth > GROUPS_DEEP_MAX:
            raise PatternError(f"groups nested more than {GROUPS_DEEP_MAX} deep")
        branches = [self._sequence()]
        while self._pattern.startswith("|", self._at):
            self._at += 1
            branches.append(self._sequence())
        self._depth -= 1
        return branches[0] if len(branches) == 1 else Fragment("choice", tuple(branches))

    def _sequence(self) -> Fragment:
        parts: list[Fragment] = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            parts.append(self._quantified(self._atom()))
        return Fragment("sequence", tuple(parts))

    def _atom(self) -> Fragment:
        start = self._at
        character = self._pattern[start]
        if character == "(":
            is_group = not self._pattern.startswith("(?:", start)
            self._at += 1 if is_group else 3
            self.groups += is_group
            number = self.groups
            inside = self.parse()
            self._at += 1
            return Fragment("group", (inside,), least=number) if is_group else inside
        if character in "^$":
            self._at += 1
            return Fragment(character)
        if character == "[":
            self._at = self._end_of_class(start)
        elif character == "\\":
            self._at = self._end_of_escape(start)
        else:
            self._at += 1
        return Fragment("char", test=_checked(self._pattern[start : self._at], self._flags))

    def _end_of_class(self, start: int) -> int:
        depth, place = 0, start
        while True:
            character = self._pattern[place]
            if character == "\\":
                place += 1
            depth += {"[": 1, "]": -1}.get(character, 0)
            place += 1
            if depth == 0:
                return place

    def _end_of_escape(self, start: int) -> int:
        escaped = self._pattern[start + 1 : start + 2]
        if escaped.isdigit():
            raise PatternError("a back-reference is not in the profile language")
        if escaped in ("p", "P"):
            return self._pattern.index("}", start) + 1
        return start + 2

    def _quantified(self, fragment: Fragment) -> Fragment:
        counts = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        character = self._pattern[self._at : self._at + 1]
        if character == "{":
            match = _COUNT.match(self._pattern, self._at)
            assert match is not None
            least = int(match[1])
            most = int(match[3]) if match[3] else None if match[2] else least
            self._at = match.end()
        elif character in counts and character:
            least, most = counts[character]
            self._at += 1
        else:
            return fragment
        greedy = not self._pattern.startswith("?", self._at)
        if not greedy:
            self._at += 1
        if max(least, most or 0) > REPEATS_MAX:
            raise PatternError(f"a repetition of more than {REPEATS_MAX}")
        return Fragment("repeat", (fragment,), least=least, most=most, greedy=greedy)
