"""Words of texts, as ``contains text`` (XQuery Full Text) and ``contains-token`` look for them.

A text is *spaced*: one space stands before and behind each of its tokens or words, so that words
are found in it as parts of a string::

    contains-token("news  sports", "news")              " news " in " news sports "
    "Storm-warning!" contains text "storm warning"      " storm warning " in " storm warning "
    "Warned" contains text "warn.*" using wildcards     " warn" in " warned "

A word is a longest run of letters, marks and numbers (the categories L, M and N of Unicode, see
patterns.py), so every other character separates words.  Without regard to case, texts are
compared by the full case folding of Unicode.  A token is a longest run without white space.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import IntEnum
from functools import cache
from string import ascii_lowercase
from typing import NamedTuple

from yfilter.language.patterns import (
    category,
    characters_of,
    ranges_of,
    union,
    with_case_variants,
)

OPERATOR = "contains text"
WILDCARD = ".*"


class Spacing(IntEnum):
    """The parts of a text that spaces stand around: tokens, words, and words in folded case.

    CASELESS is the whole text, without the case of the letters of ASCII and between START and END:
    a pattern with the flag ``i`` that is just a text is found in it."""

    TOKENS = 1
    WORDS = 2
    FOLDED = 3
    CASELESS = 4


class WordTest(NamedTuple):
    """How ``contains text`` looks for its words: ``mode`` is any, all, phrase, any word or all
    words; with ``wildcards`` a word that ends in ``.*`` stands for all that begin so."""

    mode: str = "any"
    spacing: Spacing = Spacing.FOLDED
    wildcards: bool = False

    @property
    def every(self) -> bool:
        """Whether all the needles have to be found, not just one."""
        return self.mode.startswith("all")

    @property
    def is_one(self) -> bool:
        """Whether it has one needle for each text."""
        return not self.mode.endswith("word") and not self.mode.endswith("words")

    @property
    def name(self) -> str:
        """The operator as it is written, without its operands."""
        mode = f" {self.mode}" * (self.mode != "any")
        case = " using case sensitive" * (self.spacing is Spacing.WORDS)
        return f"{OPERATOR}{mode}{case}{' using wildcards' * self.wildcards}"

    def needles(self, texts: Iterable[str]) -> list[bytes]:
        """The parts of a spaced text to look for; ValueError for a wildcard elsewhere."""
        found: list[bytes] = []
        for text in texts if self.mode != "phrase" else (" ".join(texts),):
            for piece in (text,) if self.is_one else text.split():
                end = b" "
                if self.wildcards and piece.endswith(WILDCARD):
                    piece, end = piece[: -len(WILDCARD)], b""  # noqa: PLW2901
                if self.wildcards and (
                    not {".", "\\"}.isdisjoint(piece) or (not end and not is_word(piece[-1:]))
                ):
                    raise ValueError("of wildcards there is only .* at the end of a word")
                words = spaced(piece.encode(), self.spacing).split()
                if not words:
                    found += [NOWHERE] * self.is_one
                elif self.is_one:
                    found.append(b" %b%b" % (b" ".join(words), end))
                else:
                    found += [b" %b " % word for word in words[:-1]]
                    found.append(b" %b%b" % (words[-1], end))
        return list(dict.fromkeys(found)) or [NOWHERE]


CASELESS = "matches i"
START, END = "\x02", "\x03"  # in no message
_PLAIN_PATTERN = re.compile(r"(\^?)([^\x00-\x1f\x7f-\U0010ffff\\.^$|?*+(){}\[\]]+)(\$?)")
NOWHERE = b"\xff"  # in no text, as no words are in none

_MODES = ("any", "all", "phrase", "any word", "all words")
_TESTS = [
    WordTest(mode, spacing, wildcards)
    for mode in _MODES
    for spacing in (Spacing.FOLDED, Spacing.WORDS)
    for wildcards in (False, True)
]
WORD_TESTS = {test.name: test for test in _TESTS}
"""The forms of ``contains text`` by their names, by which the syntax tree calls them."""


def needles_of(name: str, texts: Iterable[str]) -> list[bytes]:
    """The needles of ``contains-token`` or a form of ``contains text``; none where its words are an
    error."""
    if name == CASELESS:
        return [text.encode() for text in texts]
    if name == "contains-token":
        (tokens,) = (text.encode().split() for text in texts)
        return [b" %b " % tokens[0] if len(tokens) == 1 else NOWHERE]
    try:
        return WORD_TESTS[name].needles(texts)
    except ValueError:
        return []


def described(spacing: int, needle: bytes) -> str:
    """For people: the operator and what it looks for."""
    text = needle.decode().strip()
    if spacing == Spacing.TOKENS:
        return f'contains-token "{text}"'
    if spacing == Spacing.CASELESS:
        return f'matches "{text.replace(START, "^").replace(END, "$")}" i'
    test = WordTest("any", Spacing(spacing), wildcards=not needle.endswith(b" "))
    words = f'"{text}{WILDCARD * test.wildcards}"'
    return f"{OPERATOR} {words}{test.name.removeprefix(OPERATOR)}"


EACH_WORD = {name: test for name, test in WORD_TESTS.items() if not test.is_one}
WORD_FUNCTIONS = {
    "contains-token": Spacing.TOKENS,
    CASELESS: Spacing.CASELESS,
    **{name: test.spacing for name, test in WORD_TESTS.items()},
}
"""The functions that look for tokens or words, and how each has a text spaced."""


def holds(spaced_text: bytes, needles: list[bytes], every: bool) -> bool:
    return (all if every else any)(needle in spaced_text for needle in needles)


_ALNUM = bytes(code if chr(code).isalnum() else 32 for code in range(128)) + b"\xff" * 128
SPACED_OCTETS = {
    Spacing.TOKENS: bytes.maketrans(b"\t\n\r", b"   "),
    Spacing.WORDS: _ALNUM,
    Spacing.FOLDED: _ALNUM.lower(),
}
"""What octets of a text become, of which spaces are put together; 0xff for those that are not of
ASCII, if these have to be looked at as characters."""


def spaced(octets: bytes, spacing: int) -> bytes:
    """A text in UTF-8 with one space around each of its tokens or words; one alone if it has
    none."""
    # PERF: most texts are of ASCII, in which all this is done octet by octet.
    if spacing == Spacing.TOKENS:
        parts = octets.split()  # of the white space of Python, messages have that of XML only
    elif spacing == Spacing.CASELESS:
        if not octets.isascii():
            octets = octets.decode().translate(_variants_of_ascii()).encode()
        return b"%b%b%b" % (START.encode(), octets.lower(), END.encode())
    elif octets.isascii():
        parts = octets.translate(SPACED_OCTETS[Spacing(spacing)]).split()
    else:
        text = octets.decode()
        found = _words().findall(text if spacing == Spacing.WORDS else text.casefold())
        return f" {' '.join(found)} ".encode() if found else b" "
    return b" %b " % b" ".join(parts) if parts else b" "


@cache
def _variants_of_ascii() -> dict[int, str]:
    """The letters beyond ASCII that ``i`` takes for one of ASCII."""
    return {
        code: letter
        for letter in ascii_lowercase
        for first, end in ranges_of(
            with_case_variants(characters_of([(ord(letter), ord(letter) + 1)]))
        )
        for code in range(max(first, 128), end)
    }


def plain_test(pattern: str, flags: str) -> tuple[str, str] | None:
    """The text test, and its text, that a pattern of characters of ASCII alone is, perhaps at the
    start or at the end of a text; None for another one."""
    found = _PLAIN_PATTERN.fullmatch(pattern)
    if found is None or flags not in ("", "i"):
        return None
    start, text, end = found.groups()
    if flags:
        return CASELESS, START * bool(start) + text.lower() + END * bool(end)
    if start and end:
        return None
    return "starts-with" if start else "ends-with" if end else "contains", text


def is_word(text: str) -> bool:
    return _words().fullmatch(text) is not None


@cache
def _words() -> re.Pattern[str]:
    ranges = ranges_of(union(map(category, "LMN")))
    return re.compile(f"[{''.join(f'{chr(first)}-{chr(end - 1)}' for first, end in ranges)}]+")
