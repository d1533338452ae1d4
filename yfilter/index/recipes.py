"""Recipes of ways: a way with blanks, or without, as numbers that a draft reads; see draft.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeAlias, TypeVar

from yfilter.index.automaton import (
    AT_LEAST,
    AT_MOST,
    CHECK_ATOM,
    CHECK_DIFFERS,
    CHECK_EXISTS,
    CHECK_NESTED,
    CHECK_NOT,
    CHECK_VERIFIED,
    GREATER,
    INTEGER,
    LESS,
    STRING_VALUE,
    TEXT_NODE,
    TEXT_TEST,
)
from yfilter.index.candidates import COMPUTED, Constant, FilledWay, Recipe, moment_of
from yfilter.index.derived_condition import MOMENTS, Derived
from yfilter.index.number_tests import about_number
from yfilter.index.text_programs import is_about_text
from yfilter.index.ways import Conditions, Verified, Way
from yfilter.language.numbers import DECIMALS
from yfilter.language.query_ast import Expression, LeafCondition, NodeKind, Operator
from yfilter.language.shapes import Word, filling
from yfilter.language.temporal import parse_duration
from yfilter.language.trees import Blank
from yfilter.operators.operators import EACH_ITEM, FIRST_ITEM, ONLY_ITEM

Found = TypeVar("Found")
_Fill: TypeAlias = Callable[[Any], Callable[[tuple[Word, ...]], Any]]
_TEXTS = (EACH_ITEM, FIRST_ITEM, ONLY_ITEM)
_RANGES = {
    Operator.LT: LESS,
    Operator.LE: AT_MOST,
    Operator.GT: GREATER,
    Operator.GE: AT_LEAST,
}


class WayRecipe:
    """The steps of a way, each with its recipe; ``filled``: there are no blanks."""

    def __init__(self, way: Way, *, filled: bool = False) -> None:
        fill = _as_it_is if filled else filling
        self._steps = [
            (step.descendant, fill(step.test), recipe_of(step.conditions, fill)) for step in way
        ]

    def fill(self, words: tuple[Word, ...]) -> FilledWay:
        return [
            (descendant, test(words), None if recipe is None else (recipe, words))
            for descendant, test, recipe in self._steps
        ]


def _as_it_is(template: Found) -> Callable[[tuple[Word, ...]], Found]:
    """PERF: what ``filling`` gives, without going through the tree."""
    return lambda _: template


def recipe_of(conditions: Conditions, fill: _Fill = filling) -> Recipe | None:
    """The recipe of what is asked of an element; None for nothing."""
    if not conditions:
        return None
    codes: list[int] = []
    constants: list[Constant] = []
    _write_conditions(conditions, codes, constants, fill)
    return Recipe(codes, constants)


def _write_conditions(
    conditions: Conditions, codes: list[int], constants: list[Constant], fill: _Fill
) -> None:
    codes.append(len(conditions))
    for condition in conditions:
        if isinstance(condition, LeafCondition):
            _write_condition(condition, codes, constants)
            continue
        if isinstance(condition, Derived):
            codes += (COMPUTED, _kind_of(condition), condition.items, len(constants))
            computed = fill(condition.asked)
            if condition.test == "number":
                computed = _numbered(computed)
            elif isinstance(condition.constant, tuple) and condition.test in MOMENTS:
                computed = _moved(computed, condition.items)
            elif condition.items in _TEXTS and is_about_text(*condition.asked):
                computed = _of_text(computed, condition.operator)
            constants += (computed, fill(condition.condition))
            continue
        if isinstance(condition, Verified):
            codes += (CHECK_VERIFIED, len(constants))
            constants.append(fill(condition.condition))
            continue
        codes += (CHECK_NESTED, len(condition))
        for step in condition:
            codes.append(step.descendant)
            _write_words(step.test, codes, constants)
            _write_conditions(step.conditions, codes, constants, fill)


def _write_condition(condition: LeafCondition, codes: list[int], constants: list[Constant]) -> None:
    codes.append(_kind_of(condition))
    if condition.test is not None:
        codes.append(0)
        _write_words(condition.test, codes, constants)
    else:
        codes.append(TEXT_NODE if condition.kind is NodeKind.TEXT else STRING_VALUE)
    if condition.operator is not None:
        _write_words([condition.value], codes, constants)


def _numbered(computed: Callable[[tuple[Word, ...]], Any]) -> Callable[[tuple[Word, ...]], Any]:
    """A condition on a number as the kind of a comparison with it, and the constant of that."""

    def filled(words: tuple[Word, ...]) -> tuple[Expression, str, tuple[int, object]]:
        value, test, asked = computed(words)
        operator, said = about_number(asked)
        text = bytes((TEXT_TEST, INTEGER)) + said.encode() if isinstance(said, str) else said
        return value, test, (_RANGES.get(operator, CHECK_ATOM), text)

    return filled


def _moved(
    computed: Callable[[tuple[Word, ...]], Any], items: int
) -> Callable[[tuple[Word, ...]], Any]:
    """A moment as a number, from a constant of ``_of_difference``."""

    def filled(words: tuple[Word, ...]) -> tuple[Expression, str, Decimal | None]:
        value, test, (known, sign, text) = computed(words)
        moment, duration = moment_of(known, items), parse_duration(text, "xs:dayTimeDuration")
        if moment is None or duration is None:
            return value, test, None
        seconds = -duration[1] if sign else duration[1]
        return value, test, DECIMALS.add(moment, seconds)

    return filled


def _of_text(
    computed: Callable[[tuple[Word, ...]], Any], relation: Operator
) -> Callable[[tuple[Word, ...]], Any]:
    """A condition that the draft may say of a text in the value (text_programs.py)."""

    def filled(words: tuple[Word, ...]) -> tuple[Expression, str, tuple[str, Operator, object]]:
        value, test, constant = computed(words)
        return value, "text", (test, relation, constant)

    return filled


def _kind_of(condition: LeafCondition | Derived) -> int:
    if condition.operator is None:
        return CHECK_EXISTS
    if condition.operator is Operator.EQ:
        negated = isinstance(condition, Derived) and condition.negated
        return CHECK_ATOM | CHECK_NOT if negated else CHECK_ATOM
    return CHECK_DIFFERS if condition.operator is Operator.NE else _RANGES[condition.operator]


def _write_words(words: Sequence[Word], codes: list[int], constants: list[Constant]) -> None:
    for word in words:
        if isinstance(word, Blank):
            codes.append(word.number)
        else:
            codes.append(~len(constants))
            constants.append(word)
