"""Regular expressions of ``matches``, in time linear in the length of the text, and of ``replace``
and ``tokenize``, where each match is found in time linear in the text still to be read.

Python's own engine backtracks: a pattern such as ``(a+)+`` can take time exponential in the
length of what it is matched with, and one message could stall a broker.  Here a pattern becomes
an NFA that is run as a set of states, and each step from a set of states with a character is
remembered (a lazy DFA, bounded).

::

    a(b|c)+$    -> 0:a  1:split(2,3)  2:b>4  3:c>4  4:split(1,5)  5:end of text  6:match

Whether a pattern matches at all is asked of RE2 where it certainly finds the same
(re2_patterns.py), which is several times as fast.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

from yfilter.language.pattern_syntax import (
    FLAGS,
    REPEATS_MAX,
    Fragment,
    PatternError,
    parse_pattern,
)
from yfilter.language.re2_patterns import Re2Pattern, as_re2, compile_re2

STATES_MAX = REPEATS_MAX  # of one pattern, after {n,m} is written out (code "pattern")
MEMO_MAX = 10_000  # remembered steps of one pattern; when full, forgotten and begun anew

Charge: TypeAlias = "Callable[[int], None]"
"""Is told how many visits a search has cost, piece by piece; may raise."""
CHARGED_PLACES = 64  # of a text, in one go
FEW_STATES = 64  # RE2 keeps all sets of these at hand; else a character may take each of them
STATES_VISIT = 16  # that may be taken, at the price of a visit

Span: TypeAlias = tuple[int, int]
Slots: TypeAlias = tuple[int | None, ...]  # start and end of the match, then of each group


def check_pattern(pattern: str, flags: str, length_max: int) -> None:
    """Raises PatternError for what is wrong or too large."""
    for flag in flags:
        if flag not in FLAGS:
            raise PatternError(f"'{flag}' is not a flag of a regular expression")
    if len(pattern) > length_max:
        raise PatternError(f"a regular expression of more than {length_max} characters")
    compile_pattern(pattern, flags)


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str, flags: str = "") -> Pattern:
    """The compiled form of an XPath 2.0 regular expression, or PatternError."""
    return Pattern(pattern, flags)


class _State(NamedTuple):
    """A state of the NFA: exactly one of the ways on.

    test: go to ``then`` over a character that it matches; "^" or "$": go to ``then`` where the
    assertion holds; "": go to ``then``, or else to ``otherwise``, remembering the place in ``slot``
    if there is one; None: the pattern has matched.
    """

    test: re.Pattern[str] | str | None
    then: int = -1
    otherwise: int = -1
    slot: int = -1


class Pattern:
    """A compiled pattern.  ``search`` is linear; what it remembers is bounded by MEMO_MAX."""

    def __init__(self, pattern: str, flags: str) -> None:
        parsed = parse_pattern(pattern, flags)
        self.groups = parsed.groups
        self._source = (pattern, flags)
        self._states = _StateBuilder().build(parsed.whole)
        self._multiline = "m" in flags
        self._closures: dict[tuple[frozenset[int], bool, bool], frozenset[int] | None] = {}
        self._steps: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def statistics(self) -> dict[str, int]:
        return {
            "states": len(self._states),
            "remembered": len(self._closures) + len(self._steps),
        }

    @cached_property
    def _re2(self) -> Re2Pattern | None:
        written = as_re2(*self._source)
        return None if written is None else compile_re2(written)

    def search(self, text: str, charge: Charge | None = None) -> bool:
        """Whether the pattern matches anywhere in ``text``; ``charge`` is told what it costs."""
        if self._re2 is None:
            return self.search_states(text, charge)
        if charge is not None and len(self._states) > FEW_STATES:
            charge(len(text) * len(self._states) // STATES_VISIT)
        return self._re2.search(text.encode()) is not None

    def search_states(self, text: str, charge: Charge | None = None) -> bool:
        """As ``search``, but always by the NFA."""
        kernel: frozenset[int] = frozenset()
        for place in range(len(text) + 1):
            if charge is not None and place % CHARGED_PLACES == CHARGED_PLACES - 1:
                charge(CHARGED_PLACES // 4 + len(kernel))
            closed = self._closure(kernel, *self._edges(text, place))
            if closed is None:
                return True
            if place < len(text):
                kernel = self._step(closed, text[place])
        return False

    def finditer(
        self, text: str, charge: Charge | None = None
    ) -> Iterator[tuple[int, int, tuple[Span | None, ...]]]:
        """Matches from left to right: start, end and what each group matched, None if nothing.

        Of several matches at one place the one that a backtracking engine would find.
        """
        place = 0
        while place <= len(text):
            slots = self._first(text, place, charge)
            if slots is None:
                return
            start, end = slots[0], slots[1]
            assert start is not None and end is not None
            yield start, end, tuple(map(_span, slots[2::2], slots[3::2]))
            place = end if end > start else end + 1

    def _first(self, text: str, start: int, charge: Charge | None) -> Slots | None:
        """The slots of the leftmost match: threads in order of preference, one a state."""
        empty: Slots = (None,) * (2 + 2 * self.groups)
        threads: list[tuple[int, Slots]] = []
        best: Slots | None = None
        for place in range(start, len(text) + 1):
            if best is None:
                threads.append((0, (place, *empty[1:])))
            elif not threads:
                break
            if charge is not None:
                charge(len(threads))
            seen: set[int] = set()
            following: list[tuple[int, Slots]] = []
            for thread in threads:
                matched = self._advance(thread, text, place, seen, following)
                if matched is not None:
                    best = (matched[0], place, *matched[2:])
                    break
            threads = following
        return best

    def _advance(
        self,
        thread: tuple[int, Slots],
        text: str,
        place: int,
        seen: set[int],
        following: list[tuple[int, Slots]],
    ) -> Slots | None:
        """Takes a thread over the next character; its slots if it has matched before that."""
        at_start, at_end = self._edges(text, place)
        waiting = [thread]
        while waiting:
            number, slots = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            state = self._states[number]
            if state.test is None:
                return slots
            if isinstance(state.test, re.Pattern):
                if place < len(text) and state.test.match(text[place]):
                    following.append((state.then, slots))
            elif state.test == "":
                if state.slot >= 0:
                    slots = (*slots[: state.slot], place, *slots[state.slot + 1 :])
                elif state.otherwise != state.then:
                    waiting.append((state.otherwise, slots))
                waiting.append((state.then, slots))
            elif (state.test == "^" and at_start) or (state.test == "$" and at_end):
                waiting.append((state.then, slots))
        return None

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


def _span(start: int | None, end: int | None) -> Span | None:
    return None if start is None or end is None else (start, end)


class _StateBuilder:
    """Builds the states of a fragment from the back: each in front of the state that follows it."""

    def __init__(self) -> None:
        self._states = [_State("")]  # state 0 is the beginning, set when the rest is there
        self._built = 0

    def build(self, whole: Fragment) -> list[_State]:
        first = self._build(whole, self._new(_State(None)))
        self._states[0] = _State("", first, first)
        return self._states

    def _new(self, state: _State) -> int:
        if len(self._states) >= STATES_MAX:
            raise PatternError(f"a regular expression of more than {STATES_MAX} states")
        self._states.append(state)
        return len(self._states) - 1

    def _build(self, fragment: Fragment, following: int) -> int:
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
            case "group":
                slot = 2 * fragment.least
                after = self._new(_State("", following, following, slot + 1))
                inside = self._build(fragment.parts[0], after)
                return self._new(_State("", inside, inside, slot))
            case "choice":
                first = self._build(fragment.parts[-1], following)
                for part in reversed(fragment.parts[:-1]):
                    first = self._new(_State("", self._build(part, following), first))
                return first
            case _:
                return self._build_repeat(fragment, following)

    def _build_repeat(self, fragment: Fragment, following: int) -> int:
        (part,) = fragment.parts
        if fragment.most is None:
            loop = self._new(_State(""))
            self._states[loop] = _split(fragment, self._build(part, loop), following)
            first = loop
        else:
            first = following
            for _ in range(fragment.most - fragment.least):
                first = self._new(_split(fragment, self._build(part, first), following))
        for _ in range(fragment.least):
            first = self._build(part, first)
        return first


def _split(fragment: Fragment, again: int, on: int) -> _State:
    return _State("", again, on) if fragment.greedy else _State("", on, again)
