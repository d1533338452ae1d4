"""Tree patterns: what a matching path asks for, in alternatives without ``or`` (Map, 4.2.1).

A tree pattern is a path with branches whose every condition is a selection or another branch.  A
condition becomes a list of alternative patterns, of which one is satisfied wherever the condition
holds; the converse need not be true: **never a false negative**.  A condition that patterns cannot
say becomes the pattern that asks for nothing, and alternatives that grow beyond a bound are
replaced by what they have in common.

::

    [a/@x = 1 or b][@y]      @y, branch a[@x = 1]        @y, branch b
    [not(a)]                 nothing
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product
from math import prod
from typing import TypeAlias

from yfilter.language import query_ast as ast

# -------------------------------------------------------------------------------------------------
# Conditions of a step without positions, which may be put together in any order:
#
#     [@id = "x" and not(text() = "y")]   local: decided by the element alone       -> selection
#     [a/b]  [.//c/@id = 3]  ["x" = a]    a nested path, found anywhere below        -> branch
#     [$msg/a = 1]                        a path from the message, the same for all elements
#     [not(a)] [count(a) > 1] [a = b] [a/ancestor::b]    all others                  -> residual


class ConditionKind(Enum):
    """What serves a condition: see above."""

    SELECTION = "selection"
    BRANCH = "nested path"
    RESIDUAL = "residual"


def take_apart(condition: ast.Expression) -> Iterator[tuple[ConditionKind, ast.Expression]]:
    """The conditions that have to hold, by kind; a branch is a path of element steps."""
    for part in condition.conjuncts():
        if part.is_local:
            yield ConditionKind.SELECTION, part
            continue
        path = part.as_existence()
        if path is None or path.origin is not ast.Origin.CONTEXT:
            yield ConditionKind.RESIDUAL, part
        else:
            yield from _take_steps_apart(path.folded())


def _take_steps_apart(
    steps: tuple[ast.LocationStep, ...],
) -> Iterator[tuple[ConditionKind, ast.Expression]]:
    own, elements, rest = divided(steps)
    for condition in own:
        yield from take_apart(condition)
    if elements:
        yield ConditionKind.BRANCH, ast.relative(*elements)
        return
    for condition in rest_condition(rest):
        local = condition.is_local
        yield ConditionKind.SELECTION if local else ConditionKind.RESIDUAL, condition


def divided(
    steps: tuple[ast.LocationStep, ...],
) -> tuple[tuple[ast.Expression, ...], tuple[ast.LocationStep, ...], tuple[ast.LocationStep, ...]]:
    """The predicates of a leading ``.[…]``; the element steps, of the last of which the rest is
    asked; and the rest where there are none."""
    own: tuple[ast.Expression, ...] = ()
    if steps and steps[0].kind is ast.NodeKind.SELF:
        own, steps = steps[0].predicates, steps[1:]
    elements, rest = split_steps(steps)
    return own, _with_rest(elements, rest) if elements else (), () if elements else rest


def split_steps(
    steps: tuple[ast.LocationStep, ...],
) -> tuple[tuple[ast.LocationStep, ...], tuple[ast.LocationStep, ...]]:
    """The leading element steps of a path, and the rest."""
    for index, step in enumerate(steps):
        if step.kind is not ast.NodeKind.ELEMENT:
            return steps[:index], steps[index:]
    return steps, ()


def _with_rest(
    elements: tuple[ast.LocationStep, ...], rest: tuple[ast.LocationStep, ...]
) -> tuple[ast.LocationStep, ...]:
    """Element steps, of the last of which the rest of the path is asked."""
    if not rest:
        return elements
    return (*elements[:-1], elements[-1].with_predicates(rest_condition(rest)))


def rest_condition(rest: tuple[ast.LocationStep, ...]) -> tuple[ast.Expression, ...]:
    """What the steps after the last element step ask of that element, in the plainest form.

    ``@id[. = "x"]`` is put back to ``@id = "x"``, and a bare ``.[condition]`` to its conditions,
    so that equal conditions look equal however they were written.
    """
    if not rest:
        return ()
    if rest[0].kind is ast.NodeKind.SELF:
        return rest[0].predicates + rest_condition(rest[1:])
    last = rest[-1]
    match last.predicates:
        case (ast.Comparison(left, operator, ast.Literal() as literal),) if left == ast.DOT:
            plain = (*rest[:-1], replace(last, predicates=()))
            return (ast.Comparison(ast.relative(*plain), operator, literal),)
        case _:
            return (ast.relative(*rest),)


def main_steps(path: ast.Expression) -> tuple[ast.LocationStep, ...]:
    """The element steps of a profile's path; what stands after them becomes a predicate.

    ``/a/b/@id`` is ``/a/b[@id]`` and ``//text()`` is ``//*[text()]``: the path selects something
    exactly when these steps do.
    """
    if path.origin is not ast.Origin.MESSAGE or not path.steps:
        raise ValueError("a profile's path leads down from the message")
    elements, rest = split_steps(path.steps)
    if any(step.kind in (ast.NodeKind.SELF, ast.NodeKind.PARENT) for step in rest):
        raise ValueError("a profile's path has neither '.' nor '..' outside conditions")
    if not elements:
        elements = (ast.LocationStep(True, ast.NodeKind.ELEMENT, ast.ANY_NAME),)
        rest = (replace(rest[0], descendant=False), *rest[1:])
    return _with_rest(elements, rest)


def element_test(step: ast.LocationStep) -> ast.NameTest:
    """The name test of an element step."""
    if step.kind is not ast.NodeKind.ELEMENT or step.test is None:
        raise ValueError(f"not an element step: {step}")
    return step.test


@dataclass(frozen=True, slots=True)
class TreePattern:
    """What is asked at one element.

    ``selections`` the element decides, ``branches`` start at it, ``absolute`` at the message.
    """

    selections: tuple[ast.Expression, ...] = ()
    branches: tuple[Branch, ...] = ()
    absolute: tuple[Branch, ...] = ()


def _merged(patterns: Sequence[TreePattern]) -> TreePattern:
    """One that asks for what all do."""
    return TreePattern(
        tuple(dict.fromkeys(part for pattern in patterns for part in pattern.selections)),
        tuple(dict.fromkeys(part for pattern in patterns for part in pattern.branches)),
        tuple(dict.fromkeys(part for pattern in patterns for part in pattern.absolute)),
    )


@dataclass(frozen=True, slots=True)
class PatternStep:
    descendant: bool
    test: ast.NameTest
    pattern: TreePattern


Branch: TypeAlias = tuple[PatternStep, ...]

ANYTHING = TreePattern()
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
                PatternStep(step.descendant, element_test(step), pattern)
                for step, pattern in zip(steps, choice, strict=True)
            )
            for choice in product(*choices)
        )

    def of_all(self, conditions: Sequence[ast.Expression]) -> tuple[TreePattern, ...]:
        """Alternatives of conditions that all have to hold."""
        return self._all([self.of(condition) for condition in conditions])

    def of(self, condition: ast.Expression) -> tuple[TreePattern, ...]:
        parts = condition.conjuncts()
        if parts != (condition,):
            return self.of_all(parts)
        return self._all([self._of_itself(condition), *map(self.of, condition.implied())])

    def _of_itself(self, condition: ast.Expression) -> tuple[TreePattern, ...]:
        if condition.is_local:
            return (TreePattern(selections=(condition,)),)
        if isinstance(condition, ast.Or):
            return self._some(
                tuple(pattern for part in condition.parts for pattern in self.of(part))
            )
        path = condition.as_existence()
        if path is None or path.origin is ast.Origin.VARIABLE:
            return _EVERY
        steps = path.folded()
        if path.origin is ast.Origin.MESSAGE:
            return self._of_absolute_path(path.with_steps(steps))
        own, elements, rest = divided(steps)
        if not elements:
            return self.of_all(own + _at_any_depth(rest))
        nested = tuple(TreePattern(branches=(branch,)) for branch in self.of_steps(elements))
        return self._all([self.of_all(own), nested])

    def _of_absolute_path(self, path: ast.Expression) -> tuple[TreePattern, ...]:
        if not path.steps or any(
            step.kind in (ast.NodeKind.SELF, ast.NodeKind.PARENT) for step in path.steps
        ):
            return _EVERY
        return tuple(TreePattern(absolute=(branch,)) for branch in self.of_steps(main_steps(path)))

    def _all(self, choices: list[tuple[TreePattern, ...]]) -> tuple[TreePattern, ...]:
        return tuple(dict.fromkeys(map(_merged, product(*self._bounded(choices)))))

    def _some(self, alternatives: tuple[TreePattern, ...]) -> tuple[TreePattern, ...]:
        distinct = tuple(dict.fromkeys(alternatives))
        if ANYTHING in distinct:
            return _EVERY
        return distinct if len(distinct) <= self._limit else (self._common(distinct),)

    def _bounded(self, choices: list[tuple[TreePattern, ...]]) -> list[tuple[TreePattern, ...]]:
        """The choices, the largest ones generalised until their product is within the limit."""
        size = prod(map(len, choices))
        for largest in sorted(range(len(choices)), key=lambda index: -len(choices[index])):
            if size <= self._limit:
                break
            size //= len(choices[largest])
            choices[largest] = (self._common(choices[largest]),)
        return choices

    def _common(self, alternatives: tuple[TreePattern, ...]) -> TreePattern:
        """A pattern that is satisfied wherever one of the alternatives is."""
        self.is_generalised = True
        first, *others = alternatives
        for other in others:
            kept = {*other.selections, *other.branches, *other.absolute}
            first = TreePattern(
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
