"""Puts a path together step by step, in the shortest form that says the same."""

from __future__ import annotations

from dataclasses import replace

from yfilter.language.positions import is_positional
from yfilter.language.query_ast import (
    Axis,
    Computed,
    Constructor,
    Expression,
    LocationStep,
    Markup,
    NodeKind,
    Origin,
    PathExpression,
    Transform,
    UserCall,
)
from yfilter.language.subexpressions import all_within

ANY_DEPTH = LocationStep(False, NodeKind.NODE, None, (), Axis.DESCENDANT_OR_SELF)

# Kinds that descendant:: finds where ``//`` finds them.
_BELOW = frozenset(
    (NodeKind.ELEMENT, NodeKind.TEXT, NodeKind.COMMENT, NodeKind.PROCESSING_INSTRUCTION)
)


def normal(step: LocationStep) -> LocationStep:
    """The short form of a step that has one, as far as no position is asked for."""
    if step.axis is Axis.DESCENDANT and step.kind in _BELOW:
        return replace(step, descendant=True, axis=None)
    if step.kind is NodeKind.NODE and not step.descendant:
        if step.axis is Axis.SELF:
            return replace(step, kind=NodeKind.SELF, axis=None)
        if step.axis is Axis.PARENT:
            return replace(step, kind=NodeKind.PARENT, axis=None)
    return step


def with_step(path: Expression, step: LocationStep) -> Expression:
    """``path/step``; what can be said in fewer steps is."""
    if not isinstance(path, PathExpression):
        path = PathExpression(Origin.EXPRESSION, (), start=path)
    is_self = step.kind is NodeKind.SELF and step.axis is None
    is_short = step.axis is None and not is_self and step.kind is not NodeKind.PARENT
    if step.descendant and not is_short:
        path = replace(path, steps=(*path.steps, ANY_DEPTH))
        step = replace(step, descendant=False)
    last = path.steps[-1] if path.steps else None
    if last is not None and last.axis is not None and last == ANY_DEPTH and is_short:
        # A document or an element has the same children and attributes under either name.
        return replace(path, steps=(*path.steps[:-1], replace(step, descendant=True)))
    if is_self and last is not None:
        if any(map(is_positional, step.predicates)):
            return replace(path, steps=(*path.steps, step))
        merged = replace(last, predicates=last.predicates + step.predicates)
        return replace(path, steps=(*path.steps[:-1], merged))
    if is_self and not step.predicates:
        if path.origin in (Origin.MESSAGE, Origin.CONTEXT):
            return path
        # Of many nodes each once, in document order.
        step = LocationStep(False, NodeKind.NODE, None, (), Axis.SELF)
    return PathExpression(path.origin, (*path.steps, step), path.variable, path.start)


def with_filter(origin: Expression, step: LocationStep) -> Expression:
    """``origin[…]``, where positions count in the whole value of ``origin``."""
    if isinstance(origin, PathExpression) and origin.steps:
        if any(map(is_positional, step.predicates)):
            return PathExpression(Origin.EXPRESSION, (step,), start=origin)
        return with_step(origin, step)
    if not isinstance(origin, PathExpression):
        origin = PathExpression(Origin.EXPRESSION, (), start=origin)
    return replace(origin, steps=(step,))


def size_of(expression: Expression) -> int:
    """How many steps it has; whatever is no path counts as one."""
    parts = all_within(expression)
    return sum(len(one.steps) if isinstance(one, PathExpression) else 1 for one in parts)


def constructs(expression: Expression) -> bool:
    """Whether a node that is not of the message may be made anywhere in it."""
    kinds = Constructor | Computed | Markup | Transform | UserCall
    return any(isinstance(part, kinds) for part in all_within(expression))
