"""Routing queries by shape: made once for each shape, with the words of a profile put in.

``routing_query`` takes a profile apart, puts together what its paths are and writes their texts.
All profiles of a shape have the same paths but for the words::

    /nitf[head/@id = "x"][.//series]       step  /▢[▢0/@▢1 = ▢2][.//▢3]
                                           template  here/▢0[@▢1 = ▢2] and here//▢3

A path from the message of plain steps is put together of templates of its steps, since there are
many more sequences of steps than steps; any other profile has one template.  Of such a profile it
matters which words are equal, for what is said twice is left out: templates are told apart by that.

What depends on the words in another way is found out profile by profile: where a number is looked
at (``NeedsWords``), decimals and doubles, which are equal in several texts, what is empty, and what
is too long.

PERF: about 15 us a profile instead of 200 (docs/notes/registering.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from yfilter.engine.linear_paths import (
    CONJUNCTION_BYTES_MAX,
    DISJUNCTS_MAX,
    Conjunction,
    LinearPath,
    LinearStep,
    linear_paths_of,
    routing_query,
)
from yfilter.engine.tree_patterns import all_alternatives
from yfilter.errors import ProfileRefused
from yfilter.graph.graph_query import MadeOfWords
from yfilter.language.matching_path import matching_path
from yfilter.language.query_ast import Expression, Literal, NameTest, Profile
from yfilter.language.query_parser import parse_profile
from yfilter.language.shape_cache import STEPS_MAX
from yfilter.language.shapes import (
    PlainPath,
    PlainStep,
    Shaped,
    Word,
    blank_like,
    blanks_in,
    filling,
    text_pieces,
)
from yfilter.language.trees import NeedsWords

TEMPLATES_MAX = 16  # of a shape: profiles whose words are equal in yet another way have none
_CHARACTERS_MAX = CONJUNCTION_BYTES_MAX // 4
_HERE = LinearStep(False, NameTest("", "here"))  # stands for the step that a template is of


def routing_query_of(profile: Profile) -> tuple[Conjunction, ...]:
    """What ``routing_query`` gives."""
    found = made_by_shape(profile)
    return routing_query(profile) if found is None else found


def made_by_shape(profile: Profile) -> tuple[Conjunction, ...] | None:
    """The same; None where that is not known of the profile's shape."""
    match profile.parts:
        case PlainPath(steps):
            return _of_plain_path(steps)
        case Shaped() as shaped:
            return _of_shaped(shaped)
        case MadeOfWords() as made:
            return _of_shaped(made.shaped())
        case _:
            return None


def read_conjunction(text: str) -> Conjunction:
    """What ``Conjunction.parse`` gives, and refuses what that refuses."""
    paths: list[LinearPath] = []
    # A string that is cut here has an odd number of quotation marks, and what is cut is refused.
    for number, piece in enumerate(text.split(" and /")):
        path = _read_path(f"/{piece}" if number else piece)
        if path is None:
            return Conjunction.parse(text)
        paths.append(path)
    conjunction = Conjunction(tuple(paths))
    return conjunction if conjunction.text == text else Conjunction.parse(text)


def _read_path(text: str) -> LinearPath | None:
    """The linear path that this is the text of; None where that takes a closer look."""
    try:
        parts = parse_profile(text).parts
    except ProfileRefused:
        return None
    found = _of_plain_path(parts.steps) if isinstance(parts, PlainPath) else None
    if found is None or found[0].text != text or len(found[0].paths) > 1:
        return None
    return found[0].paths[0]


# --- templates ----------------------------------------------------------------------------


class _Selection(NamedTuple):
    """``pieces``: its text, around the words ``numbers``."""

    pieces: list[str]
    numbers: list[int]
    fill: Callable[[tuple[Word, ...]], Expression]

    def text(self, words: tuple[Word, ...]) -> str:
        parts = self.pieces.copy()
        for place, number in enumerate(self.numbers):
            word = words[number]
            if not isinstance(word, str):
                word = str(word)
            elif "&" in word or '"' in word or "\r" in word:
                word = Literal(word).word
            parts[2 * place + 1] = word
        return "".join(parts)


class _Step(NamedTuple):
    descendant: bool
    test: Callable[[tuple[Word, ...]], NameTest]
    selections: tuple[_Selection, ...]

    def fill(self, words: tuple[Word, ...]) -> LinearStep:
        return _with_selections(self.descendant, self.test(words), self.selections, words)


class _StepTemplate(NamedTuple):
    """What the conditions of a step ask of its element, and the other paths that they ask for,
    each with whether it goes on from the step."""

    selections: tuple[_Selection, ...]
    others: tuple[tuple[bool, tuple[_Step, ...]], ...]


class _Template(NamedTuple):
    """Of a profile: the paths of each conjunction, and the numbers of the words in them."""

    conjunctions: tuple[tuple[tuple[_Step, ...], ...], ...]
    numbers: tuple[int, ...]


class _Templates:
    """Of a shape, by which words are equal; None for no template."""

    def __init__(self, tree: Expression) -> None:
        self._tree = tree
        self._by_equal: dict[tuple[int, ...], _Template | None] = {}

    def of(self, words: tuple[Word, ...]) -> _Template | None:
        firsts: dict[tuple[type, Word], int] = {}
        equal = tuple(
            [firsts.setdefault((type(word), word), number) for number, word in enumerate(words)]
        )
        if equal not in self._by_equal and len(self._by_equal) < TEMPLATES_MAX:
            blanks = tuple([blank_like(words[first], first) for first in equal])
            self._by_equal[equal] = _template(filling(self._tree)(blanks))
        return self._by_equal.get(equal)


@lru_cache(maxsize=STEPS_MAX)
def _bare(descendant: bool, test: NameTest) -> LinearStep:
    return LinearStep(descendant, test)


def _of_plain_path(steps: Iterable[PlainStep]) -> tuple[Conjunction] | None:
    way: tuple[LinearStep, ...] = ()
    found: dict[str, LinearPath] = {}
    for descendant, test, asked in steps:
        if asked is None:
            way += (_bare(descendant, test),)
            continue
        template = asked.shape.derived(_step_template)
        words = asked.words
        if template is None or not _are_put_in(words):
            return None
        way += (_with_selections(descendant, test, template.selections, words),)
        for goes_on, others in template.others:
            filled = tuple([step.fill(words) for step in others])
            path = LinearPath(way + filled if goes_on else filled)
            found[str(path)] = path
    path = LinearPath(way)
    found[str(path)] = path
    kept = tuple(found.values())
    if len(kept) > 1:
        kept = tuple(
            path
            for path in kept
            if not any(other is not path and other.implies(path) for other in kept)
        )
    conjunction = Conjunction(kept)
    return (conjunction,) if len(conjunction.text) <= _CHARACTERS_MAX else None


def _of_shaped(shaped: Shaped) -> tuple[Conjunction, ...] | None:
    words = shaped.words
    template = None if "" in words else shaped.shape.derived(_Templates).of(words)
    if template is None or not _are_put_in([words[number] for number in template.numbers]):
        return None
    found = [
        Conjunction(
            tuple([LinearPath(tuple([step.fill(words) for step in path])) for path in paths])
        )
        for paths in template.conjunctions
    ]
    if any(len(conjunction.text) > _CHARACTERS_MAX for conjunction in found):
        return None
    return tuple(sorted(found, key=lambda conjunction: conjunction.text))


def _are_put_in(words: Sequence[Word]) -> bool:
    """Whether the words are as any other, wherever they stand."""
    return all(
        word != "" if type(word) is str else type(word) is int and word >= 0 for word in words
    )


def _with_selections(
    descendant: bool, test: NameTest, asked: tuple[_Selection, ...], words: tuple[Word, ...]
) -> LinearStep:
    bare = _bare(descendant, test)
    if not asked:
        return bare
    by_text = {selection.text(words): selection for selection in asked}
    texts = sorted(by_text)
    return LinearStep.of_text(
        descendant,
        test,
        tuple([by_text[text].fill(words) for text in texts]),
        f"{bare.text}[{']['.join(texts)}]",
    )


def _step_template(tree: Expression) -> _StepTemplate | None:
    """For a path of one step; None where it takes the words to say what its conditions ask."""
    try:
        alternatives = all_alternatives(matching_path(Profile(tree)), 1)
    except NeedsWords:
        return None
    if alternatives is None:
        return None
    ((step,),) = alternatives
    paths = [path for nested in step.pattern.branches for path in linear_paths_of((_HERE,), nested)]
    paths += [path for other in step.pattern.absolute for path in linear_paths_of((), other)]
    others = []
    for path in paths:
        goes_on = path.steps[0] is _HERE
        others.append((goes_on, tuple(map(_step, path.steps[1:] if goes_on else path.steps))))
    return _StepTemplate(tuple(map(_selection, step.pattern.selections)), tuple(others))


def _template(tree: Expression) -> _Template | None:
    """For a profile in which equal words are equal blanks."""
    try:
        found = routing_query(Profile(tree), DISJUNCTS_MAX)
    except NeedsWords:
        return None
    if any(len(conjunction.text) > _CHARACTERS_MAX for conjunction in found):
        return None
    paths = tuple([each.paths for each in found])
    conjunctions = tuple(
        [tuple([tuple(map(_step, path.steps)) for path in each]) for each in paths]
    )
    return _Template(conjunctions, tuple(blanks_in(paths)))


def _step(step: LinearStep) -> _Step:
    return _Step(step.descendant, filling(step.test), tuple(map(_selection, step.selections)))


def _selection(condition: Expression) -> _Selection:
    pieces, numbers = text_pieces(condition)
    return _Selection(pieces, numbers, filling(condition))
