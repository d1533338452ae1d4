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
from yfilter.language.comparison import MIRRORED
from yfilter.language.node_functions import NODE_FUNCTIONS

CONTEXT_ITEM = ast.PathExpression(ast.Origin.CONTEXT, ())


class ConditionKind(Enum):
    """What serves a condition: see above."""

    SELECTION = "selection"
    BRANCH = "nested path"
    RESIDUAL = "residual"


def take_apart(condition: ast.Expression) -> Iterator[tuple[ConditionKind, ast.Expression]]:
    """The conditions that have to hold, by kind; a branch is a path of element steps."""
    for part in conjuncts(condition):
        if is_local(part):
            yield ConditionKind.SELECTION, part
            continue
        path = as_existence(part)
        if path is None or path.origin is not ast.Origin.CONTEXT:
            yield ConditionKind.RESIDUAL, part
        else:
            yield from _take_path_apart(path)


def _take_path_apart(path: ast.PathExpression) -> Iterator[tuple[ConditionKind, ast.Expression]]:
    own, steps = take_self(path.folded())
    for condition in own:
        yield from take_apart(condition)
    elements, rest = split_steps(steps)
    if elements:
        yield ConditionKind.BRANCH, replace(path, steps=_with_rest(elements, rest))
        return
    for condition in rest_condition(rest):
        local = is_local(condition)
        yield ConditionKind.SELECTION if local else ConditionKind.RESIDUAL, condition


def conjuncts(condition: ast.Expression) -> tuple[ast.Expression, ...]:
    """The parts of a condition that all have to hold; none for ``.`` and ``/``, which always do."""
    match condition:
        case ast.And(parts):
            return tuple(part for nested in parts for part in conjuncts(nested))
        case ast.PathExpression(ast.Origin.CONTEXT | ast.Origin.MESSAGE, ()):
            return ()
        case ast.PathExpression(
            ast.Origin.CONTEXT, (ast.LocationStep(kind=ast.NodeKind.SELF) as step,)
        ) if step.is_plain:
            return tuple(part for nested in step.predicates for part in conjuncts(nested))
        case _:
            return (condition,)


def is_local(condition: ast.Expression) -> bool:
    """Whether an element decides the condition by its name, attributes, text and string value."""
    match condition:
        case ast.Literal():
            return True
        case ast.Comparison(left, _, right):
            return is_local(left) and is_local(right)
        case ast.And(parts) | ast.Or(parts):
            return all(is_local(part) for part in parts)
        case ast.FunctionCall(name) if name in NODE_FUNCTIONS or name == "svrl:location":
            return False
        case ast.Operation(_, operands) | ast.FunctionCall(_, operands) | ast.Sequence(operands):
            return all(is_local(operand) for operand in operands)
        case ast.Cast(operand):
            return is_local(operand)
        case ast.PathExpression(ast.Origin.CONTEXT, steps):
            return _is_local_path(steps)
        case _:
            return False


def as_existence(condition: ast.Expression) -> ast.PathExpression | None:
    """The path that selects something exactly when the condition holds, if there is one.

    A comparison of a path with a literal holds when it does for some node of the path, so it
    becomes a predicate of the last step: ``a/@id = "x"`` is ``a/@id[. = "x"]``.
    """
    match condition:
        case ast.PathExpression() if is_plain_path(condition):
            return condition
        case ast.Comparison(ast.PathExpression() as path, operator, ast.Literal() as literal) if (
            is_plain_path(path)
        ):
            return _with_predicate(path, ast.Comparison(CONTEXT_ITEM, operator, literal))
        case ast.Comparison(ast.Literal() as literal, operator, ast.PathExpression() as path) if (
            is_plain_path(path)
        ):
            mirrored = MIRRORED[operator]
            return _with_predicate(path, ast.Comparison(CONTEXT_ITEM, mirrored, literal))
        case _:
            return None


def is_plain_path(path: ast.PathExpression) -> bool:
    """Whether every step of the path may be taken apart."""
    return path.start is None and all(step.is_plain for step in path.steps)


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
    last = elements[-1]
    return (*elements[:-1], replace(last, predicates=last.predicates + rest_condition(rest)))


def take_self(
    steps: tuple[ast.LocationStep, ...],
) -> tuple[tuple[ast.Expression, ...], tuple[ast.LocationStep, ...]]:
    """The predicates of a leading ``.[…]``, and the steps after it."""
    if steps and steps[0].kind is ast.NodeKind.SELF:
        return steps[0].predicates, steps[1:]
    return (), steps


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
        case (ast.Comparison(left, operator, ast.Literal() as literal),) if left == CONTEXT_ITEM:
            plain = (*rest[:-1], replace(last, predicates=()))
            return (
                ast.Comparison(ast.PathExpression(ast.Origin.CONTEXT, plain), operator, literal),
            )
        case _:
            return (ast.PathExpression(ast.Origin.CONTEXT, rest),)


def main_steps(path: ast.PathExpression) -> tuple[ast.LocationStep, ...]:
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


def _is_local_path(steps: tuple[ast.LocationStep, ...]) -> bool:
    """``.``, ``@name`` or ``text()``; with predicates only if these stay where they are."""
    for index, step in enumerate(steps):
        leaf = step.kind in (ast.NodeKind.ATTRIBUTE, ast.NodeKind.TEXT)
        if step.axis is not None or step.descendant or not (leaf or step.kind is ast.NodeKind.SELF):
            return False
        if leaf and index < len(steps) - 1:
            return False
        if not all(is_local(predicate) for predicate in step.predicates):
            return False
    return True


def _with_predicate(path: ast.PathExpression, predicate: ast.Expression) -> ast.PathExpression:
    if not path.steps:
        step = ast.LocationStep(False, ast.NodeKind.SELF, None, (predicate,))
        return replace(path, steps=(step,))
    last = path.steps[-1]
    return replace(
        path, steps=(*path.steps[:-1], replace(last, predicates=(*last.predicates, predicate)))
    )
