"""Shapes: profiles without their words.

The *words* of a profile are the local names in its name tests and its literals; its *shape* is all
the rest: a syntax tree with a numbered blank in the place of each word::

    /nitf//series[@id = "x"][. > 5]        shape  /▢0//▢1[@▢2 = ▢3][. > ▢4]
                                           words  nitf, series, id, "x", 5

Profiles are many and shapes are few, so whatever does not depend on the words is found out once for
each shape.  The tree of a shape is an ordinary one: a blank is a string or a number like the word
it stands for, of a type of its own by which it is known again.  Equal trees are one Shape, so two
profiles are equal when their shapes are the same object and their words are equal.

A pattern and its flags are no words, nor is the text of a computed comment or processing
instruction: what they say is checked when they are parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, cast
from weakref import WeakValueDictionary

from formats.names import QualifiedName
from yfilter.language import query_ast as ast
from yfilter.language import trees
from yfilter.language.functions import PATTERN_FUNCTIONS
from yfilter.language.query_text import unparse
from yfilter.language.trees import (
    MARK,
    Blank,
    BlankDecimal,
    BlankDouble,
    BlankInteger,
    BlankString,
)

Word: TypeAlias = str | int | Decimal | float

Found = TypeVar("Found")
Template = TypeVar("Template")
_CHECKED = (ast.NodeKind.COMMENT, ast.NodeKind.PROCESSING_INSTRUCTION)
_PLAIN = re.compile(r"[^\\$^.*+?()\[\]{}|]+")
_BLANK_TEXT = re.compile(rf"{MARK}([0-9]+)\.?{MARK}")
_Filler: TypeAlias = Callable[[tuple[Word, ...]], object]


class Shape:
    """Compared by identity; made by ``take_apart`` only."""

    __slots__ = ("__weakref__", "_derived", "tree")

    def __init__(self, tree: ast.Expression) -> None:
        self.tree = tree
        self._derived: dict[object, object] = {}

    def derived(self, find: Callable[[ast.Expression], Found]) -> Found:
        """``find(tree)``, found out once; ``find`` is a function of a module."""
        found = self._derived.get(find, self)
        if found is self:
            found = self._derived[find] = find(self.tree)
        return cast(Found, found)


class Shaped(NamedTuple):
    """A profile as its shape and its words."""

    shape: Shape
    words: tuple[Word, ...]

    def fill(self) -> ast.Expression:
        return self.shape.derived(filling)(self.words)

    def shapes(self) -> tuple[Shape, ...]:
        return (self.shape,)

    def text(self) -> str:
        """What ``unparse`` makes of the tree."""
        # PERF: most words are written as they are; this is done for each of a million profiles.
        pieces, numbers = self.shape.derived(text_pieces)
        words = self.words
        if len(numbers) != len(words):  # an xs:double is not seen in the text
            return unparse(self.fill())
        pieces = pieces.copy()
        place = 1
        for number in numbers:
            word = words[number]
            if not isinstance(word, str):
                if word < 0:  # its text depends on where it stands
                    return unparse(self.fill())
                word = str(word) if isinstance(word, int) else ast.Literal(word).word
            elif "&" in word or '"' in word or "\r" in word:
                word = ast.Literal(word).word
            pieces[place] = word
            place += 2
        return "".join(pieces)


class Partial(NamedTuple):
    """The numbers of the words that belong to a key."""

    fixed: tuple[int, ...]


class TextShapes(Generic[Found]):
    """What was learnt of texts, by what is left of them without their words.

    ``learn`` is given a text as pieces, every second of which stands for a word, its words, and the
    numbers of those that belong to the key.  It gives a Partial where there are more of these, and
    None for a text that is read by itself.  At most ``keys_max`` keys; the oldest are forgotten.
    """

    def __init__(
        self,
        learn: Callable[[list[str], list[str], tuple[int, ...]], Found | Partial | None],
        keys_max: int,
    ) -> None:
        self.entries: dict[object, Found | Partial | None] = {}
        self._learn = learn
        self._keys_max = keys_max
        self._met: dict[object, None] = {}  # once, and not learnt

    def known(self, pieces: list[str], words: list[str], *, at_once: bool) -> Found | None:
        """None for a text that is read by itself; so is the first of its key if not ``at_once``."""
        key: object = "".join(pieces)
        fixed: tuple[int, ...] = ()
        while True:  # PERF: of most texts the key is there
            entries = self.entries
            is_there = key in entries
            entry = entries[key] if is_there else self._new(key, pieces, words, fixed, at_once)
            if not isinstance(entry, Partial):
                return entry
            fixed = entry.fixed
            key = (key, *[words[number] for number in fixed])

    def _new(
        self,
        key: object,
        pieces: list[str],
        words: list[str],
        fixed: tuple[int, ...],
        at_once: bool,
    ) -> Found | Partial | None:
        is_learnt = at_once or key in self._met
        kept: dict[object, Any] = self.entries if is_learnt else self._met
        if len(kept) >= self._keys_max:
            del kept[next(iter(kept))]
        self._met.pop(key, None)
        kept[key] = self._learn(pieces, words, fixed) if is_learnt else None
        return kept[key]


# PERF: a tuple without names, for these are most of what is made of a million profiles.
# A step to elements, descendant or child, by a name in no namespace or ``*``, and what is asked of
# them, the path ``/*[…]`` with the predicates of the step.
PlainStep: TypeAlias = "tuple[bool, ast.NameTest, Shaped | None]"


class PlainPath(NamedTuple):
    """A path from the message whose steps are taken apart one by one."""

    steps: tuple[PlainStep, ...]

    def fill(self) -> ast.Expression:
        return ast.absolute(*map(_location_step, self.steps))

    def shapes(self) -> tuple[Shape, ...]:
        return tuple([asked.shape for _, _, asked in self.steps if asked is not None])

    def shaped(self) -> Shaped:
        """The same as one shape and its words.

        PERF: the shape is known by those of the steps; a tree is made for the first such path.
        """
        shapes: list[object] = []
        words: list[Word] = []
        for descendant, test, asked in self.steps:
            is_any = test.local == ast.ANY
            shapes += (descendant, is_any, asked and asked.shape)
            words += () if is_any else (test.local,)
            words += () if asked is None else asked.words
        key = tuple(shapes)
        shape = _PLAIN_SHAPES.get(key)
        if shape is None:
            if len(_PLAIN_SHAPES) >= _PLAIN_SHAPES_MAX:
                _PLAIN_SHAPES.clear()
            shape = _PLAIN_SHAPES[key] = take_apart(self.fill()).shape
        return Shaped(shape, tuple(words))

    def text(self) -> str:
        parts: list[str] = []
        for descendant, test, conditions in self.steps:
            parts.append("//" if descendant else "/")
            parts.append(test[1])
            if conditions is not None:
                parts.append(conditions.text()[2:])  # without /*
        return "".join(parts)


def parts_of(profile: ast.Profile) -> Shaped | PlainPath:
    """A profile taken apart, once."""
    if profile.parts is None:
        profile.parts = take_apart(profile.body)
    parts = profile.parts
    return parts if isinstance(parts, Shaped | PlainPath) else take_apart(profile.body)


def blanks_in(template: object) -> set[int]:
    """The numbers of the blanks in a tree, or in anything made of dataclasses and tuples."""
    found: set[int] = set()
    waiting = [template]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Blank):
            found.add(node.number)
        else:
            waiting += trees.parts_of(node) or ()
    return found


def filling(template: Template) -> Callable[[tuple[Word, ...]], Template]:
    """What puts words into the blanks of a tree, or of anything made of dataclasses and tuples."""
    filler = _filler(template) or (lambda _: template)
    return cast("Callable[[tuple[Word, ...]], Template]", filler)


def take_apart(body: ast.Expression) -> Shaped:
    """The shape and the words of a tree; words are numbered in the order of the tree."""
    words: list[Word] = []

    def blank(word: Word) -> Word:
        words.append(word)
        return blank_like(word, len(words) - 1)

    tree = cast(ast.Expression, _replaced(body, blank))
    shape = _SHAPES.get(tree)
    if shape is None:
        shape = _SHAPES[tree] = Shape(tree)
    return Shaped(shape, tuple(words))


_PLAIN_SHAPES: dict[tuple[object, ...], Shape] = {}
_PLAIN_SHAPES_MAX = 4_096
# Other shapes live as long as somebody uses them.
_SHAPES: WeakValueDictionary[ast.Expression, Shape] = WeakValueDictionary()


def blank_like(word: Word, number: int) -> Blank:
    blank: Blank
    if isinstance(word, str):
        blank = BlankString(f"{MARK}{number}{MARK}")
    elif isinstance(word, int):
        blank = BlankInteger(number)
    elif isinstance(word, Decimal):
        blank = BlankDecimal(number)
    else:
        blank = BlankDouble(number)
    blank.number = number
    return blank


def _replaced(node: object, blank: Callable[[Word], Word]) -> object:
    """A node with every word replaced."""
    kind = type(node)
    if isinstance(node, ast.NameTest):
        if node.local == ast.ANY:
            return node
        return ast.NameTest(node.namespace, cast(str, blank(node.local)))
    if isinstance(node, ast.Literal):
        return ast.Literal(blank(node.value))
    parts = trees.parts_of(node)
    if parts is None:
        return node
    if kind is tuple:
        return tuple([_replaced(part, blank) for part in parts])
    if (
        isinstance(node, ast.Computed)
        and node.kind in _CHECKED
        and isinstance(node.content, ast.Literal)
    ):
        name = cast("ast.Expression | QualifiedName | None", _replaced(node.name, blank))
        return ast.Computed(node.kind, name, node.content, node.namespaces)
    if isinstance(node, ast.FunctionCall) and node.name in PATTERN_FUNCTIONS:
        # Its pattern is a word, which is looked at in each profile (patterns_in).
        word = -1 if pattern_of(node) is None else 1
        return ast.FunctionCall(
            node.name,
            tuple(
                part
                if place != word and isinstance(part, ast.Literal)
                else cast(ast.Expression, _replaced(part, blank))
                for place, part in enumerate(node.arguments)
            ),
        )
    return kind(*[_replaced(part, blank) for part in parts])


def pattern_of(call: ast.Expression) -> tuple[str, str] | None:
    """The pattern of ``matches``, and its flags, where they are literals; of ``replace`` and
    ``tokenize`` one that is a text."""
    match call:
        case ast.FunctionCall("replace" | "tokenize", (_, ast.Literal(str(pattern)), *_)):
            return (pattern, "") if plain_size(call) else None
        case ast.FunctionCall("matches", (_, ast.Literal(str(pattern)), *flags)):
            known = [flag.value for flag in flags if isinstance(flag, ast.Literal)]
            return (pattern, "".join(map(str, known))) if len(known) == len(flags) else None
    return None


def plain_size(call: ast.Expression) -> int:
    """Of ``replace`` or ``tokenize`` with a text as a pattern, and with one that is not longer in
    its place, how long the pattern is at least; 0 for any other."""
    match call:
        case ast.FunctionCall("replace", (_, ast.Literal(str(pattern)), ast.Literal(str(other)))):
            is_plain = _PLAIN.fullmatch(pattern) and _PLAIN.fullmatch(other or pattern)
            is_long = isinstance(pattern, Blank) or len(pattern) >= len(other)
            return max(len(other), 1) if is_plain and is_long else 0
        case ast.FunctionCall("tokenize", (_, ast.Literal(str(pattern)))):
            return int(_PLAIN.fullmatch(pattern) is not None)
    return 0


def patterns_in(tree: ast.Expression) -> tuple[tuple[int, str, int], ...]:
    """The words of a shape that are patterns, by their numbers, the flags of each, and how long it
    is at least, if it is to be a text; else 0."""
    found = [(asked, plain_size(call)) for call in tree.within() if (asked := pattern_of(call))]
    return tuple(
        (one.number, flags, size) for (one, flags), size in found if isinstance(one, BlankString)
    )


def is_pattern(text: str, size: int) -> bool:
    """Whether a text may be a pattern of a shape, by the size that ``patterns_in`` says."""
    return not size or (len(text) >= size and _PLAIN.fullmatch(text) is not None)


def _filler(node: object) -> _Filler | None:
    """What makes a node of the words; None for one without blanks."""
    if isinstance(node, Blank):
        number = node.number
        return lambda words: words[number]
    parts = trees.parts_of(node)
    if parts is None:
        return None
    kind = type(node)
    fillers = [_filler(part) for part in parts]
    if not any(fillers):
        return None
    pairs = list(zip(fillers, parts, strict=True))
    if kind is tuple:
        return lambda words: tuple([fill(words) if fill else part for fill, part in pairs])
    return lambda words: kind(*[fill(words) if fill else part for fill, part in pairs])


def _location_step(step: PlainStep) -> ast.LocationStep:
    descendant, test, conditions = step
    predicates: tuple[ast.Expression, ...] = ()
    if conditions is not None:
        predicates = conditions.fill().steps[0].predicates
    return ast.LocationStep(descendant, ast.NodeKind.ELEMENT, test, predicates)


def text_pieces(tree: ast.Expression) -> tuple[list[str], list[int]]:
    """The text of a tree, every second piece for a blank, and the numbers of these blanks."""
    pieces = _BLANK_TEXT.split(unparse(tree))
    numbers = list(map(int, pieces[1::2]))
    return pieces, numbers
