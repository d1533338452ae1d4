r"""Regular expressions of ``matches``, ``replace`` and ``tokenize``, in bounded time.

Python's own engine backtracks: a pattern such as ``(a+)+`` can take time exponential in the
length of what it is matched with, and one message could stall a broker.  So RE2 searches
(re2_patterns.py), in time linear in the text, for all that it can say.  The rest is run here, over
the states of an NFA:

::

    a(b|c)+$    -> 0:a  1:split(2,3)  2:b>4  3:c>4  4:split(1,5)  5:end of text  6:match

- what is too large for RE2, and ``^`` with flag ``m`` in a text that ends with a newline: all ways
  at once, character by character, in time linear in the text and in the states;
- back-references: one way after the other, which can take exponential time; ``charge`` ends it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

from yfilter.language.budget import TEXT_VISIT
from yfilter.language.character_sets import (
    Characters,
    has_character,
    ranges_of,
    with_case_variants,
)
from yfilter.language.pattern_syntax import (
    STATES_MAX,
    Fragment,
    PatternError,
    check_flags,
    parse_pattern,
)
from yfilter.language.re2_patterns import Re2Pattern, compile_re2, written_for_re2

MANY_STATES = 2_000  # beyond, what is made of a pattern is kept for the last few only
LARGE_KEPT = 32
FEW_STATES = 64  # RE2 keeps most sets of these at hand; else a character may take each of them
# So many states for several characters have some thousand sets at most.  RE2 runs out of memory for
# more and goes on state by state: 1.8 s for ``a.{50}c`` in 1 MB, and 6 ms for ``a.{12}c``.
FEW_WIDE = 12
CASES_MAX = 3  # of a letter
# RE2 compiles some thousand ranges of characters a millisecond.
RE2_RANGES_MAX = 65_536
FEW_RANGES = 16_384
RE2_STATES_MAX = 200
# States by characters: with more states than that, a longer search by RE2, which cannot be
# interrupted, may take too long (8 ns for each, see below).
RE2_STEPS_MAX = 4_000_000
# Of RE2, a character and a state each, at the price of a visit.  It takes few of them, or 8 ns for
# each where the sets of states do not come again (``a.{50}c`` in 1 MB of a and b: 0.4 s).
STEPS = 32
MANY_STEPS = 16  # if there are many states
REST = 4_096  # characters to be read still, where reading them in vain costs a visit
WAYS_CHARGED = 32  # steps of a back-tracking search, in one go
STATES_CHARGED = 2  # states in which a search by states is at a place, for a visit

Charge: TypeAlias = "Callable[[int], None]"
"""Is told how many visits a search has cost, piece by piece; may raise."""

_REPLACEMENT = re.compile(r"(?:[^\\$]|\\[\\$]|\$[0-9])*", re.DOTALL)

Span: TypeAlias = tuple[int, int]
Slots: TypeAlias = tuple[int | None, ...]  # start and end of the match, then of each group
Found: TypeAlias = tuple[int, int, tuple[Span | None, ...]]


def check_pattern(pattern: str, flags: str, length_max: int, *, for_matches: bool = True) -> int:
    """How many ranges of characters it has; PatternError for what is wrong or too large.

    ``for_matches`` False: it may not match the empty text either.
    """
    check_flags(flags)
    if len(pattern) > length_max:
        raise PatternError(f"a regular expression of more than {length_max:,} characters")
    compiled = compile_pattern(pattern, flags)
    if compiled.is_nullable and not for_matches:
        raise PatternError("a regular expression that matches the empty string", code="FORX0003")
    return compiled.ranges


def check_replacement(text: str, flags: str) -> None:
    """Raises PatternError for what cannot replace a match."""
    if "q" not in flags and _REPLACEMENT.fullmatch(text) is None:
        raise PatternError(
            r"in a replacement \ stands before \ or $, and $ before a digit", code="FORX0004"
        )


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str, flags: str = "") -> Pattern:
    """The compiled form of a regular expression of XPath 3.1, or PatternError."""
    return Pattern(pattern, flags)


class _State(NamedTuple):
    """A state of the NFA: exactly one of the ways on.

    kind "char": go to ``then`` over one of ``characters``; "back": over what group ``slot`` has
    matched; "^" or "$": go to ``then`` where the assertion holds; "": go to ``then``, or else to
    ``otherwise``, remembering the place in ``slot`` if there is one; "end": the pattern has
    matched.  ``leave``: where a loop goes on that has repeated nothing.
    """

    kind: str
    then: int = -1
    otherwise: int = -1
    slot: int = -1
    characters: Characters = ()
    leave: int = -1


class Pattern:
    """A compiled pattern.

    ``is_linear``: a search takes time linear in the text; else ``charge`` must be given.
    ``size``, ``wide``, ``ranges``: how many states, states for several characters, and ranges of
    characters, it has written out, about.
    ``is_nullable``: it matches the empty text.
    ``is_quick``: and not much more than reading it, so that nothing need be charged.
    """

    def __init__(self, pattern: str, flags: str) -> None:
        parsed = parse_pattern(pattern, flags)
        self._parsed = parsed
        self._flags = flags
        self.groups = parsed.groups
        self.is_linear = not parsed.has_backs
        self.is_nullable = _is_nullable(parsed.whole)
        self.size = _written_out(parsed.whole, _states_of)
        self.ranges = parsed.looked + _written_out(parsed.whole, _ranges_of)
        # A letter with its other cases is as narrow as one without.
        narrow = CASES_MAX if "i" in flags else 1
        self.wide = _written_out(parsed.whole, lambda one: int(_size_of(one.characters) > narrow))
        if self.size > STATES_MAX:
            raise PatternError(f"a regular expression of more than {STATES_MAX:,} states")
        self._multiline = "m" in flags
        # RE2 does not leave a loop that has repeated nothing where a backtracking engine does.
        self._repeats_nothing = _repeats_nothing(parsed.whole)
        self._at_last_newline = self._multiline and parsed.has_starts

    @property
    def is_quick(self) -> bool:
        is_exact = self._re2 is not None and not self._at_last_newline
        is_small = self.size <= FEW_STATES and self.wide <= FEW_WIDE
        return is_small and self.ranges <= FEW_RANGES and is_exact

    @property
    def _states(self) -> list[_State]:
        return self._small_states if self.size <= MANY_STATES else _large_states(self)

    @cached_property
    def _small_states(self) -> list[_State]:
        return self.built()

    @property
    def _re2(self) -> Re2Pattern | None:
        return self._small_re2 if self.size <= RE2_STATES_MAX else _large_re2(self)

    @cached_property
    def _small_re2(self) -> Re2Pattern | None:
        return self.compiled_by_re2()

    def built(self) -> list[_State]:
        return _StateBuilder().build(self._parsed.whole)

    def compiled_by_re2(self) -> Re2Pattern | None:
        if self.ranges > RE2_RANGES_MAX:
            return None
        written = written_for_re2(self._parsed, self._flags)
        return None if written is None else compile_re2(written)

    def _found_by_re2(self, text: str) -> Re2Pattern | None:
        """RE2's pattern, None where it would take too long or find something else."""
        is_long = self.size > RE2_STATES_MAX and self.size * len(text) > RE2_STEPS_MAX
        if is_long or (self._at_last_newline and text.endswith("\n")):
            return None
        return self._re2

    def search(self, text: str, charge: Charge | None = None) -> bool:
        """Whether the pattern matches anywhere in ``text``; ``charge`` is told what it costs."""
        re2 = self._found_by_re2(text)
        if re2 is None:
            return self._first(text, 0, charge) is not None
        if charge is not None:
            charge(self.cost(len(text)))
        return re2.search(text.encode()) is not None

    def search_states(self, text: str, charge: Charge | None = None) -> bool:
        """As ``search``, but always by the NFA."""
        return self._first(text, 0, charge) is not None

    def finditer(self, text: str, charge: Charge | None = None) -> Iterator[Found]:
        """Matches from left to right: start, end and what each group matched, None if nothing.

        Of several matches at one place the one that a backtracking engine would find.  For
        patterns that do not match the empty text.
        """
        re2 = None if self._repeats_nothing else self._found_by_re2(text)
        if re2 is None:
            return self._find_by_states(text, charge)
        found = self._find_by_re2(re2, text.encode(), charge)
        return found if text.isascii() else _in_characters(text, found)

    def _find_by_re2(
        self, re2: Re2Pattern, octets: bytes, charge: Charge | None
    ) -> Iterator[Found]:
        place = 0
        while (found := re2.search(octets, place)) is not None:
            start, end = found.span()
            if charge is not None:
                charge(self.cost(end - place) + (len(octets) - end) // REST)
            spans = [found.span(number) for number in range(1, self.groups + 1)]
            yield start, end, tuple(None if span[0] < 0 else span for span in spans)
            place = end
        if charge is not None:
            charge(self.cost(len(octets) - place))

    def cost(self, size: int) -> int:
        """Of a search by RE2 in so many characters, in visits."""
        return size * self.size // (MANY_STEPS if self.size > FEW_STATES else STEPS)

    def _find_by_states(self, text: str, charge: Charge | None) -> Iterator[Found]:
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
        """The slots of the leftmost match."""
        if self.is_linear:
            return self._all_ways(text, start, charge)
        assert charge is not None, "a search that may take exponential time"
        for place in range(start, len(text) + 1):
            slots = self._one_way_after_another(text, place, charge)
            if slots is not None:
                return slots
        return None

    def _all_ways(self, text: str, start: int, charge: Charge | None) -> Slots | None:
        """Threads in order of preference, one a state, go over the text together."""
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
            if charge is not None and len(seen) > FEW_STATES:
                charge(len(seen) // STATES_CHARGED)
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
        waiting = [thread]
        while waiting:
            number, slots = waiting.pop()
            number = self._unseen(number, seen)
            if number < 0:
                continue
            seen.add(number)
            state = self._states[number]
            if state.kind == "end":
                return slots
            if state.kind == "char":
                if place < len(text) and has_character(state.characters, ord(text[place])):
                    following.append((state.then, slots))
            else:
                waiting += self._ways_on(state, text, place, slots)
        return None

    def _one_way_after_another(self, text: str, start: int, charge: Charge) -> Slots | None:
        """The slots of the match at a place; ``seen`` are the states since the last character."""
        empty: Slots = (start, *(None,) * (1 + 2 * self.groups))
        waiting: list[tuple[int, int, Slots, frozenset[int]]] = [(0, start, empty, frozenset())]
        steps = 0
        while waiting:
            steps += 1
            if steps % WAYS_CHARGED == 0:
                charge(WAYS_CHARGED)
            number, place, slots, seen = waiting.pop()
            number = self._unseen(number, seen)
            if number < 0:
                continue
            state = self._states[number]
            if state.kind == "end":
                return (slots[0], place, *slots[2:])
            if state.kind == "char":
                if place < len(text) and has_character(state.characters, ord(text[place])):
                    waiting.append((state.then, place + 1, slots, frozenset()))
            elif state.kind == "back":
                after = self._behind_repeated(state, text, place, slots, charge)
                if after is not None:
                    waiting.append(
                        (state.then, after, slots, frozenset() if after > place else seen)
                    )
            else:
                seen |= {number}
                waiting += (
                    (then, place, its_slots, seen)
                    for then, its_slots in self._ways_on(state, text, place, slots)
                )
        charge(steps % WAYS_CHARGED)
        return None

    def _unseen(self, number: int, seen: AbstractSet[int]) -> int:
        """The state, or where its loop leads on if it was there already, or -1."""
        while number in seen:
            number = self._states[number].leave
        return number

    def _ways_on(
        self, state: _State, text: str, place: int, slots: Slots
    ) -> list[tuple[int, Slots]]:
        """Where a state leads without a character, the way that is preferred last."""
        if state.kind == "":
            if state.slot >= 0:
                slots = (*slots[: state.slot], place, *slots[state.slot + 1 :])
            elif state.otherwise != state.then:
                return [(state.otherwise, slots), (state.then, slots)]
        elif not (self._starts if state.kind == "^" else self._ends)(text, place):
            return []
        return [(state.then, slots)]

    def _behind_repeated(
        self, state: _State, text: str, place: int, slots: Slots, charge: Charge
    ) -> int | None:
        """The place behind what a group has matched, where that comes again at ``place``."""
        start, end = slots[state.slot], slots[state.slot + 1]
        if start is None or end is None:
            return place
        wanted, there = text[start:end], text[place : place + end - start]
        charge(len(wanted) // TEXT_VISIT)
        if wanted == there:
            return place + len(there)
        if "i" not in self._flags or len(wanted) != len(there):
            return None
        is_same = all(map(_same_but_case, wanted, there))
        return place + len(there) if is_same else None

    def _starts(self, text: str, place: int) -> bool:
        return place == 0 or (self._multiline and text[place - 1] == "\n" and place < len(text))

    def _ends(self, text: str, place: int) -> bool:
        return place == len(text) or (self._multiline and text[place] == "\n")


@lru_cache(LARGE_KEPT)
def _large_states(pattern: Pattern) -> list[_State]:
    return pattern.built()


@lru_cache(LARGE_KEPT)
def _large_re2(pattern: Pattern) -> Re2Pattern | None:
    return pattern.compiled_by_re2()


def _span(start: int | None, end: int | None) -> Span | None:
    return None if start is None or end is None else (start, end)


@lru_cache(maxsize=4096)
def _same_but_case(one: str, other: str) -> bool:
    return has_character(with_case_variants((ord(one), ord(one) + 1)), ord(other))


def _in_characters(text: str, found: Iterator[Found]) -> Iterator[Found]:
    """Matches in UTF-8, which come in order, as matches in the text."""
    octets = text.encode()
    at = passed = 0  # the place up to which characters are counted, and how many they are

    def count(place: int) -> int:
        return passed + len(octets[at:place].decode())

    for start, end, groups in found:
        passed, at = count(start), start
        yield (
            passed,
            count(end),
            tuple(span and (count(span[0]), count(span[1])) for span in groups),
        )


def _written_out(fragment: Fragment, own: Callable[[Fragment], int]) -> int:
    """What the parts of a fragment come to when its repetitions are written out, about."""
    inside = sum(_written_out(part, own) for part in fragment.parts)
    if fragment.kind == "repeat":
        return max(inside, 1) * max(fragment.least, fragment.most or 0, 1)
    return inside + own(fragment)


def _states_of(fragment: Fragment) -> int:
    return 0 if fragment.kind == "sequence" else 1


def _size_of(characters: Characters) -> int:
    return sum(end - start for start, end in ranges_of(characters))


def _ranges_of(fragment: Fragment) -> int:
    return len(fragment.characters) // 2


def _is_nullable(fragment: Fragment) -> bool:
    match fragment.kind:
        case "char":
            return False
        case "repeat" if fragment.least == 0:
            return True
        case "choice":
            return any(map(_is_nullable, fragment.parts))
        case _:  # in the empty text both assertions hold, and groups have matched nothing
            return all(map(_is_nullable, fragment.parts))


def _repeats_nothing(fragment: Fragment) -> bool:
    is_loop = fragment.kind == "repeat" and fragment.most is None
    return (is_loop and _is_nullable(fragment.parts[0])) or any(
        map(_repeats_nothing, fragment.parts)
    )


class _StateBuilder:
    """Builds the states of a fragment from the back: each in front of the state that follows it."""

    def __init__(self) -> None:
        self._states = [_State("")]  # state 0 is the beginning, set when the rest is there

    def build(self, whole: Fragment) -> list[_State]:
        first = self._build(whole, self._new(_State("end")))
        self._states[0] = _State("", first, first)
        return self._states

    def _new(self, state: _State) -> int:
        self._states.append(state)
        return len(self._states) - 1

    def _build(self, fragment: Fragment, following: int) -> int:
        """The number of the first state of ``fragment``, after which comes ``following``."""
        match fragment.kind:
            case "char":
                return self._new(_State("char", following, characters=fragment.characters))
            case "back":
                return self._new(_State("back", following, slot=2 * fragment.least))
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
            split = _split(fragment, self._build(part, loop), following)
            self._states[loop] = split._replace(leave=following)
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
