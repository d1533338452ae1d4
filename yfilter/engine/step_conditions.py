"""What kind of condition stands at a step: the rules by which predicates are taken apart.

::

    [@id = "x" and not(text() = "y")]   local: decided by the element alone       -> selection
    [a/b]  [.//c/@id = 3]  ["x" = a]    a nested path, found anywhere below        -> branch
    [$msg/a = 1]                        a path from the message, the same for all elements
    [not(a)] [count(a) > 1] [a = b]     sees more than the element, and is no path -> residual

    [a[2]] [a/ancestor::b] [@n + 1]    positions, other axes, other operators      -> residual

What is taken apart here has no positions, so predicates may be put together in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum

from yfilter.language import query_ast as ast


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
