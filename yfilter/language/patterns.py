"""Regular expressions of ``matches``, in time linear in the length of the text.

Python's own engine backtracks: a pattern such as ``(a+)+`` can take time exponential in the
length of what it is matched with, and one message could stall a broker.  Here a pattern becomes
an NFA that is run as a set of states, and each step from a set of states with a character is
remembered (a lazy DFA, bounded).  XPath 2.0's syntax is checked, and single characters and classes
are decided, by elementpath's translation to Python's.

::

    a(b|c)+$    -> 0:a  1:split(2,3)  2:b>4  3:c>4  4:split(1,5)  5:end of text  6:match

Back-references are refused: they are what cannot be matched so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from elementpath.regex import RegexError, translate_pattern

STATES_MAX = 2_000  # of one pattern, after {n,m} is written out (code "pattern")
GROUPS_DEEP_MAX = 16
MEMO_MAX = 10_000  # remembered steps of one pattern; when full, forgotten and begun anew

_FLAGS = {"s": re.DOTALL, "m": re.MULTILINE, "i": re.IGNORECASE, "x": re.VERBOSE}
_COUNT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")


class PatternError(ValueError):
    """A regular expression that is wrong, or too large."""


def check_pattern(pattern: str, flags: str, length_max: int) -> None:
    """Raises PatternError for what is wrong or too large."""
    for flag in flags:
        if flag not in _FLAGS:
            raise PatternError(f"'{flag}' is not a flag of a regular expression")
    if len(pattern) > length_max:
        raise PatternError(f"a regular expression of more than {length_max} characters")
    compile_pattern(pattern, flags)


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str, flags: str = "") -> Pattern:
    """The compiled form of an XPath 2.0 regular expression, or PatternError."""
    if "x" in flags:
        pattern = re.sub(r"[ \t\n\r]", "", pattern)
    combined = 0
    for flag in flags.replace("x", ""):
        combined |= _FLAGS[flag]
    _checked(pattern, combined)  # the syntax as a whole; piece by piece below
    return Pattern(_PatternParser(pattern, combined).parse(), bool(combined & re.MULTILINE))


def _checked(pattern: str, flags: int) -> re.Pattern[str]:
    try:
        return re.compile(translate_pattern(pattern, flags), flags)
    except (RegexError, re.error, OverflowError, RecursionError) as error:
        raise PatternError(str(error)) from None


class _State(NamedTuple):
    """A state of the NFA: exactly one of the ways on.

    test: go to ``then`` over a character that it matches; "^" or "$": go to ``then`` where the
    assertion holds; "": go to ``then`` and ``otherwise``; None: the pattern has matched.
    """

    test: re.Pattern[str] | str | None
    then: int = -1
    otherwise: int = -1


class Pattern:
    """A compiled pattern.  ``search`` is linear; what it remembers is bounded by MEMO_MAX."""

    def __init__(self, states: list[_State], multiline: bool) -> None:
        self._states = states
        self._multiline = multiline
        self._closures: dict[tuple[frozenset[int], bool, bool], frozenset[int] | None] = {}
        self._steps: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def statistics(self) -> dict[str, int]:
        return {
            "states": len(self._states),
            "remembered": len(self._closures) + len(self._steps),
        }

    def search(self, text: str) -> bool:
        """Whether the pattern matches anywhere in ``text``."""
        kernel: frozenset[int] = frozenset()
        for place in range(len(text) + 1):
            closed = self._closure(kernel, *self._edges(text, place))
            if closed is None:
                return True
            if place < len(text):
                kernel = self._step(closed, text[place])
        return False

    def _edges(self, text: str, place: int) -> tuple[bool, bool]:
        """Whether ``^`` and whether ``$`` hold between two characters."""
        last = len(text)
        if not self._multiline:
            return place == 0, place == last
        return (
            place == 0 or (text[place - 1] == "\n" and place < last),
            place == last or text[place] == "\n",
        )

    def _closure(
        self, kernel: frozenset[int], at_start: bool, at_end: bool
    ) -> frozenset[int] | None:
        """All states reached without a character, the first one included; None for a match."""
        key = (kernel, at_start, at_end)
        if key not in self._closures:
            if len(self._closures) + len(self._steps) >= MEMO_MAX:
                self._closures.clear()
                self._steps.clear()
            self._closures[key] = self._new_closure((0, *kernel), at_start, at_end)
        return self._closures[key]

    def _new_closure(
        self, start: Iterable[int], at_start: bool, at_end: bool
    ) -> frozenset[int] | None:
        waiting = list(start)
        seen: set[int] = set()
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            state = self._states[number]
            if state.test is None:
                return None
            if state.test == "":
                waiting += (state.then, state.otherwise)
            elif (state.test == "^" and at_start) or (state.test == "$" and at_end):
                waiting.append(state.then)
        return frozenset(
            number for number in seen if isinstance(self._states[number].test, re.Pattern)
        )

    def _step(self, closed: frozenset[int], character: str) -> frozenset[int]:
        key = (closed, character)
        found = self._steps.get(key)
        if found is None:
            found = frozenset(
                state.then
                for state in map(self._states.__getitem__, closed)
                if isinstance(state.test, re.Pattern) and state.test.match(character)
            )
            self._steps[key] = found
        return found


class _Fragment(NamedTuple):
    """A piece of pattern to be built: ``kind`` is char, ^, $, sequence, choice or repeat."""

    kind: str
    parts: tuple[_Fragment, ...] = ()
    test: re.Pattern[str] | None = None
    least: int = 0
    most: int | None = None


class _PatternParser:
    """Parses a pattern that is known to be right, and builds its states from the back."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._pattern = pattern
        self._flags = flags
        self._at = 0
        self._depth = 0
        self._states: list[_State] = []
        self._built = 0

    def parse(self) -> list[_State]:
        fragment = self._choice()
        self._states = [_State("")]  # state 0 is the beginning, set when the rest is there
        match = self._new(_State(None))
        first = self._build(fragment, match)
        self._states[0] = _State("", first, first)
        return self._states

    def _choice(self) -> _Fragment:
        self._depth += 1
        if self._depth > GROUPS_DEEP_MAX:
            raise PatternError(f"groups nested more than {GROUPS_DEEP_MAX} deep")
        branches = [self._sequence()]
        while self._pattern.startswith("|", self._at):
            self._at += 1
            branches.append(self._sequence())
        self._depth -= 1
        return branches[0] if len(branches) == 1 else _Fragment("choice", tuple(branches))

    def _sequence(self) -> _Fragment:
        parts: list[_Fragment] = []
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            parts.append(self._quantified(self._atom()))
        return _Fragment("sequence", tuple(parts))

    def _atom(self) -> _Fragment:
        start = self._at
        character = self._pattern[start]
        if character == "(":
            self._at += 3 if self._pattern.startswith("(?:", start) else 1
            inside = self._choice()
            self._at += 1
            return inside
        if character in "^$":
            self._at += 1
            return _Fragment(character)
        if character == "[":
            self._at = self._end_of_class(start)
        elif character == "\\":
            self._at = self._end_of_escape(start)
        else:
            self._at += 1
        return _Fragment("char", test=_checked(self._pattern[start : self._at], self._flags))

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

    def _quantified(self, fragment: _Fragment) -> _Fragment:
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
        if self._pattern.startswith("?", self._at):
            self._at += 1  # reluctant: the same for whether there is a match
        if max(least, most or 0) > STATES_MAX:
            raise PatternError(f"a repetition of more than {STATES_MAX}")
        return _Fragment("repeat", (fragment,), least=least, most=most)

    # -- states, each built in front of the state that follows it

    def _new(self, state: _State) -> int:
        if len(self._states) >= STATES_MAX:
            raise PatternError(f"a regular expression of more than {STATES_MAX} states")
        self._states.append(state)
        return len(self._states) - 1

    def _build(self, fragment: _Fragment, following: int) -> int:
        """The number of the first state of ``fragment``, after which comes ``following``."""
        self._built += 1
        if self._built > 2 * STATES_MAX:  # repetitions of nothing add no states
            raise PatternError("a regular expression with too many repetitions")
        match fragment.kind:
            case "char":
                return self._new(_State(fragment.test, following))
            case "^" | "$":
                return self._new(_State(fragment.kind, following))
            case "sequence":
                for part in reversed(fragment.parts):
                    following = self._build(part, following)
                return following
            case "choice":
                first = self._build(fragment.parts[-1], following)
                for part in reversed(fragment.parts[:-1]):
                    first = self._new(_State("", self._build(part, following), first))
                return first
            case _:
                return self._build_repeat(fragment, following)

    def _build_repeat(self, fragment: _Fragment, following: int) -> int:
        (part,) = fragment.parts
        if fragment.most is None:
            loop = self._new(_State(""))
            self._states[loop] = _State("", self._build(part, loop), following)
            first = loop
        else:
            first = following
            for _ in range(fragment.most - fragment.least):
                first = self._new(_State("", self._build(part, first), following))
        for _ in range(fragment.least):
            first = self._build(part, first)
        return first
