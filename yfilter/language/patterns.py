r"""Regular expressions of ``matches``, ``replace`` and ``tokenize``, in bounded time.

Python's own engine backtracks: a pattern such as ``(a+)+`` can take time exponential in the
length of what it is matched with, and one message could stall a broker.  So RE2 searches, in
time linear in the text, for all that it can say.  The rest is run here, over the states of an NFA:

::

    a(b|c)+$    -> 0:a  1:split(2,3)  2:b>4  3:c>4  4:split(1,5)  5:end of text  6:match

- what is too large for RE2, and ``^`` with flag ``m`` in a text that ends with a newline: all ways
  at once, character by character, in time linear in the text and in the states;
- back-references: one way after the other, which can take exponential time; ``charge`` ends it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, cast

from formats.characters import NAME_START
from yfilter.language.budget import TEXT_VISIT

# -------------------------------------------------------------------------------------------------
# Sets of characters, as their bounds: ``[^b-d]`` is (0, 0x62, 0x65, 0x110000).
#
# Categories and blocks are those of Unicode UNICODE_VERSION, whatever Python's and RE2's are; names
# in ``\i`` and ``\c`` those of XML 1.0, fifth edition.


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


# -------------------------------------------------------------------------------------------------
# Regular expressions as F&O 3.1 (5.6) and XML Schema Part 2 (appendix F, of 1.1 appendix G) say:
#
#     a(b|\d)+\1$    -> sequence(char a, repeat(group 1(choice(char b, char 0-9...)), 1 or more),
#                                back 1, $)


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


# -------------------------------------------------------------------------------------------------
# Patterns for RE2, which searches in linear time: every class as its ranges, every character as a
# number, so that nothing depends on whose Unicode tables are newer.
#
#     ^a(b|\d)?   -> \A\x{61}((?:\x{62}|[\x{30}-\x{39}\x{660}-\x{669}...]))?


MEMORY_MAX = 4 << 20  # bytes of one pattern, and of what is remembered in searching for it
SET_MEMORY_MAX = 8 << 20  # of a set of SET_PATTERNS; of a larger one in proportion
SET_PATTERNS = 256
WRITTEN_MAX = 1 << 18  # characters; more than RE2's memory holds

_NOTHING = r"[^\x{0}-\x{10ffff}]"
_REPEATS_MAX = 1_000  # of RE2's own
_RE2_COUNTS = {(0, None): "*", (1, None): "+", (0, 1): "?"}


class Re2Match(Protocol):
    def span(self, group: int = 0) -> tuple[int, int]:
        """Where the match, or a group of it, begins and ends, in bytes; (-1, -1) for nothing."""


class Re2Pattern(Protocol):
    def search(self, text: bytes, start: int = 0) -> Re2Match | None:
        """The leftmost match in UTF-8 from a place on, or None."""

    def finditer(self, text: bytes) -> Iterator[Re2Match]:
        """The matches in UTF-8, from left to right."""


class Re2Set(Protocol):
    def Match(self, text: bytes) -> list[int] | None:  # noqa: N802
        """The patterns found in UTF-8, as compile_re2_set says."""


class _Unsaid(Exception):
    """RE2 cannot say that."""


def written_for_re2(parsed: ParsedPattern, flags: str) -> str | None:
    """As RE2 has it, which is right but for ``^`` behind a newline at the end of the text."""
    try:
        return _written(parsed.whole, is_multiline="m" in flags)
    except _Unsaid:
        return None


def is_there() -> bool:
    """Whether RE2 is installed."""
    return _library() is not None


def compile_re2(written: str) -> Re2Pattern | None:
    """A pattern for RE2, compiled; None if RE2 is not there or refuses it."""
    if (re2 := _library()) is None:
        return None
    try:
        # PERF: ``re2.compile`` takes five times as long, as it copies the options.
        return cast(Re2Pattern, re2._Regexp(written, _options()))
    except re2.error:
        return None


def compile_re2_set(written: Collection[str]) -> Re2Set | None:
    """Patterns of written_for_re2, to be searched for at once; None if together they are too large.

    Matching gives 0, which stands for nothing but that RE2's memory sufficed, and the places of the
    patterns found, from 1 on; None where memory did not suffice.
    """
    re2 = _library()
    memory_max = SET_MEMORY_MAX * -(-len(written) // SET_PATTERNS)
    compiled = re2.Set.SearchSet(_options(memory_max))
    compiled.Add(r"\z")  # in every text; else a failure would be taken for nothing found
    for pattern in written:
        compiled.Add(pattern)
    try:
        compiled.Compile()
    except re2.error:
        return None
    return cast(Re2Set, compiled)


@cache
def _library() -> Any:
    try:
        # Imported late: a process that sees no regular expression starts faster without it.
        import re2  # noqa: PLC0415
    except ImportError:
        return None
    return re2


@cache
def _options(memory_max: int = MEMORY_MAX) -> Any:
    options = _library().Options()
    options.log_errors = False
    options.max_mem = memory_max
    return options


def _written(fragment: Fragment, *, is_multiline: bool) -> str:
    parts = [_written(part, is_multiline=is_multiline) for part in fragment.parts]
    if sum(map(len, parts)) > WRITTEN_MAX:
        raise _Unsaid
    match fragment.kind:
        case "char":
            return _characters(fragment.characters)
        case "^":
            return "(?m:^)" if is_multiline else r"\A"
        case "$":
            return "(?m:$)" if is_multiline else r"\z"
        case "repeat":
            return _repeated(fragment, f"(?:{parts[0]})")
        case "choice":
            return f"(?:{'|'.join(parts)})"
        case "group":
            return f"({parts[0]})"
        case "sequence":
            return "".join(parts)
        case _:
            raise _Unsaid


def _repeated(fragment: Fragment, part: str) -> str:
    """RE2 repeats a part a thousand times at most: more often as several in a row."""
    least, most = fragment.least, fragment.most
    lazily = "" if fragment.greedy else "?"
    if max(least, most or 0) <= _REPEATS_MAX:
        count = _RE2_COUNTS.get((least, most)) or f"{{{least},{'' if most is None else most}}}"
        return f"{part}{count}{lazily}"
    if _has_groups(fragment):
        raise _Unsaid  # which would be numbered otherwise
    before = "".join(f"{part}{{{count}}}" for count in _thousands(least))
    if most is None:
        return f"(?:{before}{part}*{lazily})"
    rest = "".join(f"{part}{{0,{count}}}{lazily}" for count in _thousands(most - least))
    return f"(?:{before}{rest})"


def _thousands(count: int) -> list[int]:
    whole, rest = divmod(count, _REPEATS_MAX)
    return [_REPEATS_MAX] * whole + [rest] * bool(rest)


def _has_groups(fragment: Fragment) -> bool:
    return fragment.kind == "group" or any(map(_has_groups, fragment.parts))


def _characters(characters: Characters) -> str:
    """A class; one character without brackets."""
    ranges = ranges_of(characters)
    if len(ranges) == 1 and ranges[0][1] == ranges[0][0] + 1:
        return rf"\x{{{ranges[0][0]:x}}}"
    if not ranges:
        return _NOTHING
    return f"[{''.join(_range(start, end - 1) for start, end in ranges)}]"


def _range(first: int, last: int) -> str:
    return rf"\x{{{first:x}}}" if first == last else rf"\x{{{first:x}}}-\x{{{last:x}}}"


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

_SPECIAL = frozenset(r"\|.?*+(){}[]^$")
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
        self._text = "" if flags or _SPECIAL.intersection(pattern) else pattern
        self.groups = parsed.groups
        self.is_linear = not parsed.has_backs
        self.is_nullable = _is_nullable(parsed.whole)
        self.size = _written_out(parsed.whole, lambda one: int(one.kind != "sequence"))
        ranges = _written_out(parsed.whole, lambda one: len(one.characters) // 2)
        self.ranges = parsed.looked + ranges
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
        is_exact = self.is_linear and not self._at_last_newline and is_there()
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

    @property
    def whole(self) -> Fragment:
        return self._parsed.whole

    @cached_property
    def written(self) -> str | None:
        """The pattern of RE2 that is found in the same texts, but for those that end with a newline
        where ``^`` stands for the beginning of a line; None where RE2 cannot say it."""
        return written_for_re2(self._parsed, self._flags)

    def compiled_by_re2(self) -> Re2Pattern | None:
        if self.ranges > RE2_RANGES_MAX:
            return None
        return None if self.written is None else compile_re2(self.written)

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
        if self._text:
            return self._find_text(text, charge)
        re2 = None if self._repeats_nothing else self._found_by_re2(text)
        if re2 is None:
            return self._find_by_states(text, charge)
        found = self._find_by_re2(re2, text.encode(), charge)
        return found if text.isascii() else _in_characters(text, found)

    def _find_text(self, text: str, charge: Charge | None) -> Iterator[Found]:
        """The places of a pattern that is a text as it stands."""
        if charge is not None:
            charge(self.cost(len(text)))
        wanted, size = self._text, len(self._text)
        place = text.find(wanted)
        while place >= 0:
            yield place, place + size, ()
            place = text.find(wanted, place + size)

    def _find_by_re2(
        self, re2: Re2Pattern, octets: bytes, charge: Charge | None
    ) -> Iterator[Found]:
        place = 0
        for found in re2.finditer(octets):
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


def _size_of(characters: Characters) -> int:
    return sum(end - start for start, end in ranges_of(characters))


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
