r"""Regular expressions for RE2, which searches in linear time, in C++.

The fragments of pattern_syntax.py are written with every class as its ranges, every character as a
number: so nothing depends on whose Unicode tables are newer, or on what a dot or an escape means to
whom.  None for what RE2 cannot say (back-references) or what is too large for it.

::

    ^a(b|\d)?   -> \A\x{61}((?:\x{62}|[\x{30}-\x{39}\x{660}-\x{669}...]))?
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Protocol, cast

from yfilter.language.character_sets import Characters, ranges_of
from yfilter.language.pattern_syntax import Fragment, ParsedPattern, parse_pattern

MEMORY_MAX = 4 << 20  # bytes of one pattern, and of what is remembered in searching for it
SET_MEMORY_MAX = 8 << 20  # of a set
WRITTEN_MAX = 1 << 18  # characters; more than RE2's memory holds

_NOTHING = r"[^\x{0}-\x{10ffff}]"
_REPEATS_MAX = 1_000  # of RE2's own
_COUNTS = {(0, None): "*", (1, None): "+", (0, 1): "?"}


class Re2Match(Protocol):
    def span(self, group: int = 0) -> tuple[int, int]:
        """Where the match, or a group of it, begins and ends, in bytes; (-1, -1) for nothing."""


class Re2Pattern(Protocol):
    def search(self, text: bytes, start: int = 0) -> Re2Match | None:
        """The leftmost match in UTF-8 from a place on, or None."""


class Re2Set(Protocol):
    def Match(self, text: bytes) -> list[int] | None:  # noqa: N802
        """The patterns found in UTF-8, as compile_re2_set says."""


class _Unsaid(Exception):
    """RE2 cannot say that."""


def as_re2(pattern: str, flags: str = "") -> str | None:
    """The RE2 pattern that is found in the texts in which ``pattern`` is, or None.

    For patterns that compile_pattern takes; PatternError for others that do not even parse.
    """
    parsed = parse_pattern(pattern, flags)
    if parsed.has_starts and "m" in flags:
        return None  # to RE2 a line begins behind the last newline, too
    written = written_for_re2(parsed, flags)
    return None if written is None or compile_re2(written) is None else written


def written_for_re2(parsed: ParsedPattern, flags: str) -> str | None:
    """As RE2 has it, which is right but for ``^`` behind a newline at the end of the text."""
    try:
        return _written(parsed.whole, is_multiline="m" in flags)
    except _Unsaid:
        return None


def compile_re2(written: str) -> Re2Pattern | None:
    """A pattern for RE2, compiled; None if RE2 is not there or refuses it."""
    if (re2 := _library()) is None:
        return None
    try:
        return cast(Re2Pattern, re2.compile(written, _options()))
    except re2.error:
        return None


def compile_re2_set(written: Iterable[str]) -> Re2Set | None:
    """Patterns of as_re2, to be searched for at once; None if together they are too large.

    Matching gives 0, which stands for nothing but that RE2's memory sufficed, and the places of the
    patterns found, from 1 on; None where memory did not suffice.
    """
    re2 = _library()
    compiled = re2.Set.SearchSet(_options(SET_MEMORY_MAX))
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
        count = _COUNTS.get((least, most)) or f"{{{least},{'' if most is None else most}}}"
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
