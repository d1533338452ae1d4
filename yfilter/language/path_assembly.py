"""Puts a path together step by step, in the shortest form that says the same."""

from __future__ import annotations

from dataclasses import replace

from yfilter.language import query_ast as ast
from yfilter.language.positions import is_positional
from yfilter.language.subexpressions import all_within

ANY_DEPTH = ast.LocationStep(False, ast.NodeKind.NODE, None, (), ast.Axis.DESCENDANT_OR_SELF)

# Kinds that descendant:: finds where ``//`` finds them.
_BELOW = frozenset(
    (
        ast.NodeKind.ELEMENT,
        ast.NodeKind.TEXT,
        ast.NodeKind.COMMENT,
        ast.NodeKind.PROCESSING_INSTRUCTION,
    )
)


def normal(step: ast.LocationStep) -> ast.LocationStep:
    """The short form of a step that has one, as far as no position is asked for."""
    if step.axis is ast.Axis.DESCENDANT and step.kind in _BELOW:
        return replace(step, descendant=True, axis=None)
    if step.kind is ast.NodeKind.NODE and not step.descendant:
        if step.axis is ast.Axis.SELF:
            return replace(step, kind=ast.NodeKind.SELF, axis=None)
        if step.axis is ast.Axis.PARENT:
            return replace(step, kind=ast.NodeKind.PARENT, axis=None)
    return step


def with_step(path: ast.Expression, step: ast.LocationStep) -> ast.Expression:
    """``path/step``; what can be said in fewer steps is."""
    if not isinstance(path, ast.PathExpression):
        path = ast.PathExpression(ast.Origin.EXPRESSION, (), start=path)
    is_self = step.kind is ast.NodeKind.SELF and step.axis is None
    is_short = step.axis is None and not is_self and step.kind is not ast.NodeKind.PARENT
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
        if path.origin in (ast.Origin.MESSAGE, ast.Origin.CONTEXT):
            return path
        # Of many nodes each once, in document order.
        step = ast.LocationStep(False, ast.NodeKind.NODE, None, (), ast.Axis.SELF)
    return ast.PathExpression(path.origin, (*path.steps, step), path.variable, path.start)


def with_filter(origin: ast.Expression, step: ast.LocationStep) -> ast.Expression:
    """``origin[…]``, where positions count in the whole value of ``origin``."""
    if isinstance(origin, ast.PathExpression) and origin.steps:
        if any(map(is_positional, step.predicates)):
            return ast.PathExpression(ast.Origin.EXPRESSION, (step,), start=origin)
        return with_step(origin, step)
    if not isinstance(origin, ast.PathExpression):
        origin = ast.PathExpression(ast.Origin.EXPRESSION, (), start=origin)
    return replace(origin, steps=(step,))


def size_of(expression: ast.Expression) -> int:
    """How many steps it has; whatever is no path counts as one."""
    parts = all_within(expression)
    return sum(len(one.steps) if isinstance(one, ast.PathExpression) else 1 for one in parts)


def constructs(expression: ast.Expression) -> bool:
    """Whether a node that is not of the message may be made anywhere in it."""
    kinds = ast.Constructor | ast.Computed | ast.Markup | ast.Transform | ast.UserCall
    return any(isinstance(part, kinds) for part in all_within(expression))
