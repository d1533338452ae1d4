"""Twigs: what a matching path asks for, as alternatives without ``or`` (Map, section 4.2.1).

A twig is a path with branches whose every condition is either a selection or another branch.  A
condition becomes a list of alternative twigs, of which one is satisfied wherever the condition
holds; the converse need not be true.  That is the one rule here: **never a false negative**.  So
a condition that twigs cannot say becomes the twig that asks for nothing, and alternatives that
grow beyond a bound are replaced by what they have in common.

::

    [a/@x = 1 or b][@y]      @y, branch a[@x = 1]        @y, branch b
    [not(a)]                 nothing
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import TypeAlias

from yfilter.engine.step_conditions import (
    divided,
    element_test,
    main_steps,
    rest_condition,
)
from yfilter.language import query_ast as ast


@dataclass(frozen=True, slots=True)
class Twig:
    """What is asked at one element.

    ``selections`` the element decides, ``branches`` start at it, ``absolute`` at the message.
    """

    selections: tuple[ast.Expression, ...] = ()
    branches: tuple[Branch, ...] = ()
    absolute: tuple[Branch, ...] = ()


def _merged(twigs: Sequence[Twig]) -> Twig:
    """One that asks for what all do."""
    return Twig(
        tuple(dict.fromkeys(part for twig in twigs for part in twig.selections)),
        tuple(dict.fromkeys(part for twig in twigs for part in twig.branches)),
        tuple(dict.fromkeys(part for twig in twigs for part in twig.absolute)),
    )


@dataclass(frozen=True, slots=True)
class TwigStep:
    descendant: bool
    test: ast.NameTest
    twig: Twig


Branch: TypeAlias = tuple[TwigStep, ...]

ANYTHING = Twig()
_EVERY = (ANYTHING,)


def main_alternatives(path: ast.Expression, alternatives_max: int) -> tuple[Branch, ...]:
    """The alternatives of a profile's whole path; at most ``alternatives_max``, at least one."""
    if alternatives_max < 1:
        raise ValueError("alternatives_max is at least 1")
    return _Alternatives(alternatives_max).of_steps(main_steps(path))


def all_alternatives(path: ast.Expression, alternatives_max: int) -> tuple[Branch, ...] | None:
    """The same, each as it stands; None if there are more."""
    alternatives = _Alternatives(alternatives_max)
    found = alternatives.of_steps(main_steps(path))
    return None if alternatives.is_generalised else found


class _Alternatives:
    """The alternatives of conditions and steps, never more than ``limit`` of anything."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.is_generalised = False

    def of_steps(self, steps: Sequence[ast.LocationStep]) -> tuple[Branch, ...]:
        choices = self._bounded([self.of_all(step.predicates) for step in steps])
        return tuple(
            tuple(
                TwigStep(step.descendant, element_test(step), twig)
                for step, twig in zip(steps, choice, strict=True)
            )
            for choice in product(*choices)
        )

    def of_all(self, conditions: Sequence[ast.Expression]) -> tuple[Twig, ...]:
        """Alternatives of conditions that all have to hold."""
        return self._all([self.of(condition) for condition in conditions])

    def of(self, condition: ast.Expression) -> tuple[Twig, ...]:
        parts = condition.conjuncts()
        if parts != (condition,):
            return self.of_all(parts)
        return self._all([self._of_itself(condition), *map(self.of, condition.implied())])

    def _of_itself(self, condition: ast.Expression) -> tuple[Twig, ...]:
        if condition.is_local:
            return (Twig(selections=(condition,)),)
        if isinstance(condition, ast.Or):
            return self._some(tuple(twig for part in condition.parts for twig in self.of(part)))
        path = condition.as_existence()
        if path is None or path.origin is ast.Origin.VARIABLE:
            return _EVERY
        steps = path.folded()
        if path.origin is ast.Origin.MESSAGE:
            return self._of_absolute_path(path.with_steps(steps))
        own, elements, rest = divided(steps)
        if not elements:
            return self.of_all(own + _at_any_depth(rest))
        nested = tuple(Twig(branches=(branch,)) for branch in self.of_steps(elements))
        return self._all([self.of_all(own), nested])

    def _of_absolute_path(self, path: ast.Expression) -> tuple[Twig, ...]:
        if not path.steps or any(
            step.kind in (ast.NodeKind.SELF, ast.NodeKind.PARENT) for step in path.steps
        ):
            return _EVERY
        return tuple(Twig(absolute=(branch,)) for branch in self.of_steps(main_steps(path)))

    def _all(self, choices: list[tuple[Twig, ...]]) -> tuple[Twig, ...]:
        return tuple(dict.fromkeys(map(_merged, product(*self._bounded(choices)))))

    def _some(self, alternatives: tuple[Twig, ...]) -> tuple[Twig, ...]:
        distinct = tuple(dict.fromkeys(alternatives))
        if ANYTHING in distinct:
            return _EVERY
        return distinct if len(distinct) <= self._limit else (self._common(distinct),)

    def _bounded(self, choices: list[tuple[Twig, ...]]) -> list[tuple[Twig, ...]]:
        """The choices, the largest ones generalised until their product is within the limit."""
        size = prod(map(len, choices))
        for largest in sorted(range(len(choices)), key=lambda index: -len(choices[index])):
            if size <= self._limit:
                break
            size //= len(choices[largest])
            choices[largest] = (self._common(choices[largest]),)
        return choices

    def _common(self, alternatives: tuple[Twig, ...]) -> Twig:
        """What all alternatives ask for: a twig that is satisfied wherever one of them is."""
        self.is_generalised = True
        first, *others = alternatives
        for other in others:
            kept = {*other.selections, *other.branches, *other.absolute}
            first = Twig(
                tuple(part for part in first.selections if part in kept),
                tuple(part for part in first.branches if part in kept),
                tuple(part for part in first.absolute if part in kept),
            )
        return first


def _at_any_depth(rest: tuple[ast.LocationStep, ...]) -> tuple[ast.Expression, ...]:
    """What steps that lead to no element ask of the element where they start.

    ``.//@id`` is ``@id or .//*/@id``; anything that is not local then is left out.
    """
    if not rest:
        return ()
    conditions = rest_condition(rest)
    if rest[0].descendant and rest[0].kind in (ast.NodeKind.ATTRIBUTE, ast.NodeKind.TEXT):
        own = (replace(rest[0], descendant=False), *rest[1:])
        any_element = ast.LocationStep(True, ast.NodeKind.ELEMENT, ast.ANY_NAME)
        return (ast.Or((*rest_condition(own), ast.relative(any_element, *own))),)
    return tuple(condition for condition in conditions if condition.is_local)
