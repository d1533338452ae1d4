r"""Regular expressions for RE2, which searches in linear time, in C++.

The fragments of pattern_syntax.py are written with every character as a number and every class as
its ranges: so nothing depends on whose Unicode tables are newer, or on what a dot or an escape
means to whom.  Only where both engines find the same for certain; None elsewhere: with flag ``i``,
with ``^`` and flag ``m``, for what is too large for RE2, and where RE2 is not installed.

::

    ^a(b|\d)?   -> \A\x{61}(?:(?:\x{62}|[\x{30}-\x{39}\x{660}-\x{669}...]))?
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Protocol, cast

from yfilter.language.pattern_syntax import Fragment, parse_pattern

_COUNTS = {(0, None): "*", (1, None): "+", (0, 1): "?"}
_ESCAPES = {r"\n": "\n", r"\r": "\r", r"\t": "\t"}
_CATEGORIES = ("d", "s", "w")  # each with its complement in capitals
_CLASS = re.compile(r"\[(\^?)((?:\\.|[^\\\]])+)\]", re.DOTALL)
_RANGE = re.compile(r"(\\?.)(?:-(\\?.))?", re.DOTALL)


class Re2Pattern(Protocol):
    def search(self, text: bytes) -> object | None:
        """The leftmost match in UTF-8, or None."""


class Re2Set(Protocol):
    def Match(self, text: bytes) -> list[int] | None:  # noqa: N802
        """The patterns found in UTF-8, as compile_re2_set says."""


class _Uncertain(Exception):
    """That RE2 matches what our own engine does."""


def as_re2(pattern: str, flags: str = "") -> str | None:
    """The RE2 pattern that is found in the texts in which ``pattern`` is, or None.

    For patterns that compile_pattern takes; PatternError for others that do not even parse.
    """
    parsed = parse_pattern(pattern, flags)
    try:
        written = _written(parsed.whole, parsed.flags)
    except _Uncertain:
        return None
    return None if compile_re2(written) is None else written


def compile_re2(written: str) -> Re2Pattern | None:
    """A pattern of as_re2, compiled; None if RE2 is not there or refuses it."""
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
    compiled = re2.Set.SearchSet(_options())
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
def _options() -> Any:
    options = _library().Options()
    options.log_errors = False
    return options


def _written(fragment: Fragment, flags: int) -> str:
    parts = [_written(part, flags) for part in fragment.parts]
    match fragment.kind:
        case "char":
            assert fragment.test is not None
            return _characters(fragment.test.pattern, flags)
        case "^":
            if flags & re.MULTILINE:  # to RE2 a line begins behind the last newline, too
                raise _Uncertain
            return r"\A"
        case "$":
            return "(?m:$)" if flags & re.MULTILINE else r"\z"
        case "repeat":
            least, most = fragment.least, fragment.most
            count = _COUNTS.get((least, most)) or f"{{{least},{'' if most is None else most}}}"
            return f"(?:{parts[0]}){count}"
        case "choice":
            return f"(?:{'|'.join(parts)})"
        case _:
            return "".join(parts)


def _characters(translated: str, flags: int) -> str:
    """One character or class, as elementpath has translated it."""
    if flags & re.IGNORECASE:
        raise _Uncertain
    if translated == ".":  # with flag s: elsewhere it is translated
        return "(?s:.)"
    if translated[0] == "\\" and translated[1:].lower() in _CATEGORIES:
        return f"[{'^' * translated[1].isupper()}{_category(translated[1].lower())}]"
    if translated[0] != "[":
        return _number(translated)
    whole = _CLASS.fullmatch(translated)
    if whole is None:
        raise _Uncertain
    ranges = "".join(
        _number(first) if not last else f"{_number(first)}-{_number(last)}"
        for first, last in _RANGE.findall(whole[2])
    )
    return f"[{whole[1]}{ranges}]"


def _number(character: str) -> str:
    r"""A character or its escape as \x{...}."""
    plain = _ESCAPES.get(character, character[-1])
    if len(character) > 1 and plain == character[-1] and plain.isalnum():
        raise _Uncertain  # such as \a, which is not in XPath
    return rf"\x{{{ord(plain):x}}}"


@cache
def _category(letter: str) -> str:
    r"""The ranges of Python's \d, \s or \w: RE2's are those of another version of Unicode."""
    everything = "".join(map(chr, range(0x110000)))
    return "".join(
        f"{_number(run[0][0])}-{_number(run[0][-1])}"
        for run in re.finditer(rf"\{letter}+", everything)
    )
