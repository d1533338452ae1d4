"""ShapeCache: texts of profiles that differ only in their words are parsed once.

A text is taken apart by one regular expression, and what is left of it is looked up::

    for $n in /nitf where $n/@id = "x" return $n     key    for $n in /▢ where $n/@▢ = "▢" return $n
                                                     words  nitf, id, x

The first time (of long texts, whose keys seldom come again, the second time) the text is parsed
with a placeholder for each word; where the placeholders are in the tree, the words of other texts
will be.  This is right as the parser treats all names alike that are not RESERVED, and all literals
of one kind, as long as it reads them as names and literals.
What it reads as something else, say a word in the text of a constructor, has no place in the tree:
such a word belongs to the key.  A text that is refused with placeholders is parsed as it stands, so
every refusal is about what the user wrote.

A plain path from the message is taken apart into its steps before: there are many more sequences of
steps than steps.

Bounded: at most ``keys_max`` keys of at most LENGTH_MAX characters, the oldest are forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from formats.characters import NAME, find_illegal_character
from yfilter.errors import ProfileRefused
from yfilter.language import query_ast as ast
from yfilter.language.constants import Constant, constants_in, first_fault
from yfilter.language.patterns import PatternError, check_pattern
from yfilter.language.profile_limits import DEFAULT_PROFILE_LIMITS as _LIMITS
from yfilter.language.shapes import (
    Partial,
    PlainPath,
    PlainStep,
    Shape,
    Shaped,
    TextShapes,
    Word,
    is_pattern,
    patterns_in,
    take_apart,
)
from yfilter.language.tokens import NCNAME
from yfilter.language.trees import MARK, Blank

LENGTH_MAX = 2_048
LEARNT_AT_ONCE_MAX = 256
PLAIN_LENGTH_MAX = 512  # and so within ProfileLimits.steps_max
KEYS_MAX = 8_192
STEPS_MAX = 4_096  # remembered that have no predicates
CONSTANTS_MAX = 4_096  # of profiles, remembered whether one is an error

# Words of the language: the parser looks for them.
_RESERVED = """
    after all ancestor ancestor-or-self and any as ascending at attribute base-uri before
    boundary-space by case cast castable catch child construction contains copy-namespaces
    collation comment context copy count declare default delete descendant descendant-or-self
    diacritics different distance entire ftand ftnot ftor insensitive no not occurs phrase same
    sensitive stemming stop thesaurus using weight wildcards window without word words
    descending div document document-node element else empty empty-sequence encoding eq every
    except external false first following following-sibling for function ge greatest group gt idiv
    if import in inherit insert instance intersect into is item last lax le least let lt mod modify
    module namespace ne node nodes of option or order ordered ordering parent preceding
    preceding-sibling preserve processing-instruction rename replace return satisfies schema
    schema-attribute schema-element self some stable strict strip switch text then to treat true try
    typeswitch union unordered updating validate value variable version where with xquery
"""
RESERVED = frozenset(_RESERVED.split())

# A string without references, quotation marks included; a number, behind a minus too; a name that
# nothing belongs to.
_WORD = re.compile(
    rf"""( "[^"&]*"(?!") | '[^'&]*'(?!')
         | (?<![{NAME}$:<])(?<!</)
           (?: [0-9]{{1,18}}+ (?:\.[0-9]{{1,18}}+)? (?![{NAME}])
             | (?>{NCNAME}) (?![ \t\n]*[({{]|[ \t\n]*::|:) )
         | (?<=[ (,=<>]-) [0-9]{{1,18}}+ (?:\.[0-9]{{1,18}}+)? (?![{NAME}]) )""",
    re.VERBOSE,
)
# A step to elements with its predicates, in which strings and brackets are balanced.
_BALANCED = r"(?:[^]['\"]++|\"[^\"]*\"|'[^']*')"
for _ in range(3):
    _BALANCED = rf"(?:[^]['\"]++|\"[^\"]*\"|'[^']*'|\[{_BALANCED}*+\])"
_STEP = re.compile(rf"(//?)(\*|{NCNAME})((?:\[{_BALANCED}*+\])*+)(?=[/]|\Z)")
# Without comments and constructors, in which brackets need not be balanced.
_IS_READ_ONE_WAY = re.compile(r"(?:[^(<]++|\((?!:)|<(?=[ =0-9]))*+\Z").match
_PLACEHOLDER = re.compile(rf"{MARK} ?([0-9]+)")
_NUMBERS_FROM = 900_000_000_000_000_000
_NUMBERS_LIKE = "90000000000000"

# What stands for a word in a key; none can stand in a text.
_NAME, _QUOTED, _IN_APOSTROPHES, _INTEGER, _DECIMAL = "\x01", "\x02", "\x03", "\x04", "\x05"


class _Recipe(NamedTuple):
    """How the words of a profile are made of those of a text.

    ``order``: for each word the number of the one in the text, or, counted from the end of
    those, of one in ``constants``; ``conversions``: what makes a number of the word at a place;
    ``checked``: the constants of the profile that can be errors, as the shape of a sequence, and
    which of its words are theirs; None if there are none.  ``patterns``: see ``patterns_in``.
    """

    shape: Shape
    order: tuple[int, ...]
    constants: tuple[Word, ...]
    conversions: tuple[tuple[int, Callable[[str], Word]], ...]
    checked: tuple[Shape, tuple[int, ...]] | None
    patterns: tuple[tuple[int, str, int], ...]


class ShapeCache:
    """``read`` gives what ``parse`` gives, and refuses what it refuses.

    ``parse_template`` does not refuse a constant that is an error with placeholders in it; those
    are looked at with the words of each text.
    """

    def __init__(
        self,
        parse: Callable[[str], ast.Expression],
        parse_template: Callable[[str], ast.Expression] | None = None,
        keys_max: int = KEYS_MAX,
    ) -> None:
        self._parse = parse
        self._parse_template = parse_template
        self.texts = TextShapes(self._learn, keys_max)

    def read(self, text: str) -> ast.Profile:
        """The profile that a text says; its tree is made when it is asked for."""
        if _can_be_taken_apart(text):
            parts = self._plain_path(text) or self._shaped(text)
            if parts is not None:
                return ast.Profile.of_parts(parts, text)
        return ast.Profile(self._parse(text), text)

    def _plain_path(self, text: str) -> PlainPath | None:
        """A path from the message of nothing but elements and predicates, step by step."""
        if text[0] != "/" or len(text) > PLAIN_LENGTH_MAX or not _IS_READ_ONE_WAY(text):
            return None
        pieces = _STEP.split(text)
        if any(pieces[::4]):
            return None
        steps: list[PlainStep] = []
        for slash, name, predicates in zip(pieces[1::4], pieces[2::4], pieces[3::4], strict=True):
            step = bare_step(slash, name)
            if not predicates:
                steps.append(step)
                continue
            conditions = self._shaped(f"/*{predicates}")
            if conditions is None or not conditions.shape.derived(_is_one_step):
                return None
            steps.append((step[0], step[1], conditions))
        return PlainPath(tuple(steps))

    def _shaped(self, text: str) -> Shaped | None:
        """Shape and words of a text; None for one that has to be parsed on its own."""
        pieces, words = _taken_apart(text)
        entry = self.texts.known(pieces, words, at_once=len(text) <= LEARNT_AT_ONCE_MAX)
        if entry is None:
            return None
        made: list[Word] = [*words, *entry.constants]
        made = [made[number] for number in entry.order]
        for place, convert in entry.conversions:
            made[place] = convert(str(made[place]))
        if entry.checked is not None:
            shape, numbers = entry.checked
            if _has_fault(Shaped(shape, tuple([made[number] for number in numbers]))):
                return None
        if entry.patterns and not _are_patterns(
            tuple([(str(made[number]), flags, size) for number, flags, size in entry.patterns])
        ):
            return None
        return Shaped(entry.shape, tuple(made))

    def key(self, text: str) -> str:
        """Equal for texts that differ in their words only."""
        return "".join(_taken_apart(text)[0])

    def _learn(
        self, pieces: list[str], words: list[str], fixed: tuple[int, ...]
    ) -> _Recipe | Partial | None:
        try:
            body = (self._parse_template or self._parse)(_with_placeholders(pieces, words, fixed))
            if _holds_nested_constructor(body):
                return None
            shape, found = take_apart(body)
        except (ProfileRefused, RecursionError):
            return None
        numbers = [_number_of(word, len(words)) for word in found]
        missing = set(range(len(words))) - set(numbers) - set(fixed)
        if missing:
            return None if fixed else Partial(tuple(sorted(missing)))
        constants: list[Word] = []
        order: list[int] = []
        for word, number in zip(found, numbers, strict=True):
            order.append(len(words) + len(constants) if number is None else number)
            if number is None:
                constants.append(word)
        conversions = tuple(
            (place, _conversion_to(word))
            for place, (word, number) in enumerate(zip(found, numbers, strict=True))
            if number is not None and not isinstance(word, str)
        )
        fallible = shape.derived(constants_in) if self._parse_template else ()
        checked = _own_shape(fallible) if fallible else None
        patterns = shape.derived(patterns_in)
        return _Recipe(shape, tuple(order), tuple(constants), conversions, checked, patterns)


@lru_cache(maxsize=CONSTANTS_MAX)
def _has_fault(constants: Shaped) -> bool:
    """Whether one is an error; PERF: there are fewer dates than profiles with one."""
    whole = constants.fill()
    assert isinstance(whole, ast.Sequence)
    return first_fault(Constant(part, part) for part in whole.parts) is not None


def _are_patterns(asked: tuple[tuple[str, str, int], ...]) -> bool:
    """Whether they are regular expressions within the limits; else the parser says the reason."""
    try:
        ranges = [
            check_pattern(one, flags, _LIMITS.pattern_max)
            for one, flags in {(one, flags) for one, flags, _ in asked}
        ]
    except PatternError:
        return False
    is_each = all(is_pattern(one, size) for one, _, size in asked)
    return is_each and sum(ranges) <= _LIMITS.ranges_max


@lru_cache(maxsize=STEPS_MAX)
def bare_step(slash: str, name: str) -> PlainStep:
    """A step without predicates; there are few, so all paths share them."""
    return slash == "//", ast.NameTest(ast.ANY if name == ast.ANY else "", name), None


def _own_shape(constants: tuple[Constant, ...]) -> tuple[Shape, tuple[int, ...]]:
    """The shape of constants in a shape, and which of its words are theirs."""
    shape, blanks = take_apart(ast.Sequence(tuple(constant.value for constant in constants)))
    return shape, tuple(blank.number for blank in blanks if isinstance(blank, Blank))


def _is_one_step(tree: ast.Expression) -> bool:
    return len(tree.steps) == 1


def _can_be_taken_apart(text: str) -> bool:
    return (
        0 < len(text) <= LENGTH_MAX
        and MARK not in text
        and "\r" not in text
        and _NUMBERS_LIKE not in text
        and find_illegal_character(text) < 0
    )


def _taken_apart(text: str) -> tuple[list[str], list[str]]:
    """The pieces of a key, every second of which stands for a word or is RESERVED; the words."""
    pieces = _WORD.split(text)
    words = []
    for place in range(1, len(pieces), 2):
        piece = pieces[place]
        first = piece[0]
        if first in "\"'":
            words.append(piece[1:-1])
            pieces[place] = _QUOTED if first == '"' else _IN_APOSTROPHES
        elif first in "0123456789":
            words.append(piece)
            pieces[place] = _DECIMAL if "." in piece else _INTEGER
        elif piece not in RESERVED:
            words.append(piece)
            pieces[place] = _NAME
    return pieces, words


def _with_placeholders(pieces: list[str], words: list[str], fixed: tuple[int, ...]) -> str:
    """A text with the same key and words that are known again, except for the fixed ones."""
    numbered = enumerate(words)
    written = []
    for piece in pieces:
        if piece not in _PLACEHOLDERS:
            written.append(piece)
            continue
        number, word = next(numbered)
        before, placeholder, after = _PLACEHOLDERS[piece]
        shown = word if number in fixed else placeholder(number)
        written.append(f"{before}{shown}{after}")
    return "".join(written)


# A placeholder for a string has a space in it, so that it is nowhere taken for a name.
_PLACEHOLDERS: dict[str, tuple[str, Callable[[int], str], str]] = {
    _NAME: ("", lambda number: f"{MARK}{number}", ""),
    _QUOTED: ('"', lambda number: f"{MARK} {number}", '"'),
    _IN_APOSTROPHES: ("'", lambda number: f"{MARK} {number}", "'"),
    _INTEGER: ("", lambda number: f"{_NUMBERS_FROM + number}", ""),
    _DECIMAL: ("", lambda number: f"{_NUMBERS_FROM + number}.5", ""),
}


def _number_of(word: Word, count: int) -> int | None:
    """The number of the word that a placeholder stands for, of so many."""
    if isinstance(word, str):
        match = _PLACEHOLDER.fullmatch(word)
        return int(match[1]) if match else None
    number = -1 if isinstance(word, float) else abs(int(word)) - _NUMBERS_FROM
    return number if 0 <= number < count else None


def _conversion_to(placeholder: int | Decimal | float) -> Callable[[str], Word]:
    """What makes a number of a word like the one that stands for it: ``-5`` is the word 5."""
    kind: type[int] | type[Decimal] = int if isinstance(placeholder, int) else Decimal
    return kind if placeholder > 0 else lambda word: -kind(word)


def _holds_nested_constructor(expression: ast.Expression) -> bool:
    """Whether a constructor stands in the value of an attribute.

    Its text is passed over as if it were an expression while the end of the value is looked for, so
    that the same characters are read in two ways.
    """
    return any(
        isinstance(inner, ast.Constructor)
        for one in expression.within()
        if isinstance(one, ast.Constructor)
        for _, value in one.attributes
        for part in value
        if not isinstance(part, str)
        for inner in part.within()
    )
