"""Which conditions depend on the position of a node, and what is left of a path without them.

::

    [2]  [last()]  [position() < 3]  [@a + 1]     positional: order and place among others matter
    [@a = 2]  [b[1]]  [count(c)  > 1]             not: the node alone decides, whatever is beside it

The engine takes predicates apart and puts them together in any order, which only the second kind
allows.  A position among siblings is a number of siblings before or behind the node, which is a
condition on the node alone (``placed``)::

    a[2]            a[count(preceding-sibling::a) + 1 = 2]
    a[last()]       a[count(following-sibling::a) = 0]
    a[@b][2]        a[@b][count(preceding-sibling::a[@b]) + 1 = 2]

So is an axis that does not lead down, where nothing selective is asked in front of it
(``straight``)::

    //self::a[b]    //a[b]              c/following-sibling::a[b]    a[b][preceding-sibling::c]
    c/self::a[b]    c[self::a][b]       //c/following::a[b]          //a[b][preceding::c]

Where other positions are left the engine works on paths made ``downward``: never fewer nodes, the
exact ones where it says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from yfilter.language import query_ast as ast
from yfilter.language.comparison import MIRRORED
from yfilter.language.functions import ResultKind, signature_of
from yfilter.language.subexpressions import same_focus
from yfilter.language.trees import by_identity, flat

_ARITHMETIC = frozenset(("+", "-", "*", "div", "idiv", "mod", "to", "negate"))
_PLAIN_KINDS = frozenset(
    (
        ast.NodeKind.ELEMENT,
        ast.NodeKind.ATTRIBUTE,
        ast.NodeKind.TEXT,
        ast.NodeKind.SELF,
        ast.NodeKind.PARENT,
    )
)


@by_identity(2_048)
def is_positional(predicate: ast.Expression) -> bool:
    """Whether a predicate depends on more than its node, as far as its text tells."""
    return may_be_number(predicate) or uses_position(predicate)


def divided(path: ast.PathExpression) -> tuple[ast.PathExpression, ast.Expression | None]:
    """A path without the last conditions of its last step, and these."""
    last = path.steps[-1]
    kept = len(last.predicates)
    while kept and not is_positional(last.predicates[kept - 1]):
        kept -= 1
    conditions = last.predicates[kept:]
    base = replace(last, predicates=last.predicates[:kept])
    base_path = replace(path, steps=(*path.steps[:-1], base))
    if len(conditions) < 2:
        return base_path, conditions[0] if conditions else None
    return base_path, ast.And(flat(conditions, ast.And))


def may_be_number(expression: ast.Expression) -> bool:
    """Whether the value can be a number, which in brackets would be a position."""
    match expression:
        case ast.Literal(value):
            return not isinstance(value, str)
        case ast.FunctionCall(name):
            signature = signature_of(name)
            return signature is None or signature.result in (ResultKind.NUMBER, ResultKind.ANY)
        case ast.Operation(name):
            return name in _ARITHMETIC
        case ast.Conditional(_, consequence, alternative):
            return may_be_number(consequence) or may_be_number(alternative)
        case ast.Sequence(parts):
            return any(map(may_be_number, parts))
        case ast.PathExpression(ast.Origin.VARIABLE, steps) | ast.PathExpression(
            ast.Origin.EXPRESSION, steps
        ):
            return all(step.kind is ast.NodeKind.SELF for step in steps)
        case ast.Mapped(_, right) | ast.SimpleMap(_, right):
            return may_be_number(right)
        case ast.Flwor() | ast.Transform():
            return may_be_number(expression.result)
        case ast.Typeswitch(_, cases):
            return any(may_be_number(case.result) for case in cases)
        case ast.UserCall() | ast.TryCatch():
            return True
        case ast.Typed(operand):
            return expression.treat and may_be_number(operand)
        case ast.Cast():
            return not expression.castable
        case _:
            return False


def uses_position(expression: ast.Expression) -> bool:
    """Whether position() or last() of the expression's own focus occurs in it."""
    if isinstance(expression, ast.FunctionCall) and expression.name in ("position", "last"):
        return True
    return any(map(uses_position, same_focus(expression)))


def straight(path: ast.PathExpression) -> ast.PathExpression:
    """The same path from the message with other axes said as conditions, where that can be."""
    steps: list[ast.LocationStep] = []
    for step in path.steps:
        said = _said_downward(steps, step)
        if said is None:
            return path
        steps = said
    return path if len(steps) == len(path.steps) else replace(path, steps=tuple(steps))


INVERSE = {
    ast.Axis.FOLLOWING_SIBLING: ast.Axis.PRECEDING_SIBLING,
    ast.Axis.PRECEDING_SIBLING: ast.Axis.FOLLOWING_SIBLING,
    ast.Axis.FOLLOWING: ast.Axis.PRECEDING,
    ast.Axis.PRECEDING: ast.Axis.FOLLOWING,
}
_ALL_NODES = ast.LocationStep(False, ast.NodeKind.NODE, None, (), ast.Axis.DESCENDANT_OR_SELF)


def _said_downward(
    steps: list[ast.LocationStep], step: ast.LocationStep
) -> list[ast.LocationStep] | None:
    """Steps from the message and one more, without its axis; None where that cannot be said."""
    if step.axis is None or (step == _ALL_NODES and not steps):
        return [*steps, step]
    if step.kind is not ast.NodeKind.ELEMENT or any(map(is_positional, step.predicates)):
        return None
    plain = replace(step, axis=None)
    if steps in ([], [_ALL_NODES]):
        is_anywhere = step.axis is ast.Axis.DESCENDANT_OR_SELF or (
            step.axis is ast.Axis.SELF and bool(steps)
        )
        return [replace(plain, descendant=True)] if is_anywhere else None
    last = steps[-1]
    if last.kind is not ast.NodeKind.ELEMENT or any(map(is_positional, last.predicates)):
        return None
    if step.axis is ast.Axis.SELF:
        is_same = step.test == last.test
        kept = () if is_same else (ast.PathExpression(ast.Origin.CONTEXT, (_bare(step),)),)
        predicates = (*last.predicates, *kept, *step.predicates)
        return [*steps[:-1], replace(last, predicates=predicates)]
    is_near = step.axis in (ast.Axis.FOLLOWING_SIBLING, ast.Axis.PRECEDING_SIBLING)
    if step.axis not in INVERSE or not (is_near or (len(steps) == 1 and last.descendant)):
        return None
    if any(each.predicates for each in steps):
        return None
    before = replace(last, descendant=False, axis=INVERSE[step.axis])
    predicates = (*step.predicates, ast.PathExpression(ast.Origin.CONTEXT, (before,)))
    return [
        *steps[:-1],
        replace(plain, descendant=last.descendant, predicates=predicates),
    ]


def _bare(step: ast.LocationStep) -> ast.LocationStep:
    return replace(step, predicates=())


def is_plain_step(step: ast.LocationStep) -> bool:
    """Whether the engine may take the step apart."""
    return (
        step.axis is None
        and step.kind in _PLAIN_KINDS
        and not any(map(is_positional, step.predicates))
    )


def placed(path: ast.PathExpression) -> ast.PathExpression:
    """The same path with positions among siblings as conditions on each node, where that can be
    said."""
    steps = tuple(map(_placed_step, path.steps))
    return path if steps == path.steps else replace(path, steps=steps)


def _placed_step(step: ast.LocationStep) -> ast.LocationStep:
    if (
        step.axis is not None
        or step.kind is not ast.NodeKind.ELEMENT
        or not any(map(is_positional, step.predicates))
    ):
        return step
    kept: tuple[ast.Expression, ...] = ()
    for predicate in step.predicates:
        if not is_positional(predicate):
            kept = (*kept, predicate)
            continue
        before = _siblings(step, kept, ast.Axis.PRECEDING_SIBLING)
        behind = _siblings(step, kept, ast.Axis.FOLLOWING_SIBLING)
        condition = _as_condition(predicate, before, behind)
        if condition is None:
            return step
        kept = (*kept, condition)
    return replace(step, predicates=kept)


def _siblings(
    step: ast.LocationStep, predicates: tuple[ast.Expression, ...], axis: ast.Axis
) -> ast.Expression:
    """How many siblings on one side the step selects, too, as far as these predicates say."""
    others = ast.LocationStep(False, step.kind, step.test, predicates, axis)
    return ast.FunctionCall("count", (ast.PathExpression(ast.Origin.CONTEXT, (others,)),))


def _as_condition(
    predicate: ast.Expression, before: ast.Expression, behind: ast.Expression
) -> ast.Expression | None:
    """A predicate on the position as one on the siblings ``before`` and ``behind``; None where its
    text does not tell whether it is a number, or where the position stands elsewhere."""
    place = ast.Operation("+", (before, ast.Literal(1)))
    match predicate:
        case ast.FunctionCall("last", ()):
            return ast.Comparison(behind, ast.Operator.EQ, ast.Literal(0))
        case ast.Operation("-", (ast.FunctionCall("last", ()), ast.Literal() as fewer)):
            return ast.Comparison(behind, ast.Operator.EQ, fewer)
        case ast.Comparison(
            ast.FunctionCall("position", ()),
            operator,
            ast.Operation("-", (ast.FunctionCall("last", ()), ast.Literal() as fewer)),
        ):
            return ast.Comparison(behind, MIRRORED[operator], fewer)
        case ast.Literal() | ast.Operation() | ast.FunctionCall() if may_be_number(predicate):
            if _surely_number(predicate):
                predicate = ast.Comparison(_POSITION, ast.Operator.EQ, predicate)
            else:
                return None
        case _ if may_be_number(predicate):
            return None
    places = {"position": place, "last": ast.Operation("+", (place, behind))}
    return _replaced(predicate, places)


_POSITION = ast.FunctionCall("position", ())


def _surely_number(expression: ast.Expression) -> bool:
    match expression:
        case ast.Operation(name):
            return name in _ARITHMETIC and name != "to"
        case ast.FunctionCall(name):
            signature = signature_of(name)
            return signature is not None and signature.result is ResultKind.NUMBER
        case _:
            return isinstance(expression, ast.Literal)


def _replaced(
    expression: ast.Expression, places: Mapping[str, ast.Expression]
) -> ast.Expression | None:
    """An expression with position() and last() of its own focus replaced."""
    if not uses_position(expression):
        return expression
    if isinstance(expression, ast.FunctionCall) and expression.name in places:
        return places[expression.name]
    if not isinstance(
        expression, ast.Comparison | ast.And | ast.Or | ast.Operation | ast.FunctionCall
    ):
        return None
    parts = [_replaced(part, places) for part in same_focus(expression)]
    known = tuple(part for part in parts if part is not None)
    return with_parts(expression, known) if len(known) == len(parts) else None


def with_parts(
    expression: ast.Comparison | ast.And | ast.Or | ast.FunctionCall | ast.Operation,
    parts: tuple[ast.Expression, ...],
) -> ast.Expression:
    """An expression of the same kind of other parts."""
    match expression:
        case ast.Comparison():
            return ast.Comparison(parts[0], expression.operator, parts[1])
        case ast.And() | ast.Or():
            return type(expression)(flat(parts, type(expression)))
        case _:
            return type(expression)(expression.name, parts)


class Downward(NamedTuple):
    """A path of plain steps that selects at least what another does.

    ``exact``: just that.  ``cut``: it ends before the other one does, at other nodes.
    """

    path: ast.PathExpression
    exact: bool
    cut: bool


def downward(path: ast.PathExpression) -> Downward:
    """What is left of a path without positions, without axes that do not lead down, and without
    ``..``, which is said as a condition where it can be."""
    steps: list[ast.LocationStep] = []
    exact, cut = True, False
    for step in path.steps:
        is_filter = step.kind is ast.NodeKind.SELF and step.axis is None
        if step.axis is not None or step.kind not in _PLAIN_KINDS or (is_filter and not steps):
            cut = not is_filter
            exact = False
            if cut:
                break
            continue
        kept = tuple(predicate for predicate in step.predicates if not is_positional(predicate))
        if len(kept) < len(step.predicates):
            step = replace(step, predicates=kept)  # noqa: PLW2901
            exact = False
        steps.append(step)
    folded = fold_parents(tuple(steps))
    for index, step in enumerate(folded):
        if step.kind in (ast.NodeKind.PARENT, ast.NodeKind.SELF):
            folded, exact, cut = folded[:index], False, True
            break
    left = path if folded == path.steps else replace(path, steps=folded)
    return Downward(left, exact, cut or not folded)


def fold_parents(steps: tuple[ast.LocationStep, ...]) -> tuple[ast.LocationStep, ...]:
    """The same path with ``..`` after a child step said as a predicate: ``a/b/..`` is ``a[b]``.

    Only the first step of the result can be ``.[…]``; ``..`` stays where it leads above the
    origin, or after ``//``, whose steps have more than one way up.
    """
    folded: list[ast.LocationStep] = []
    for step in steps:
        last = folded[-1] if folded else None
        if step.kind is ast.NodeKind.SELF and last is not None:
            folded[-1] = replace(last, predicates=last.predicates + step.predicates)
        elif (
            step.kind is ast.NodeKind.PARENT
            and last is not None
            and not last.descendant
            and last.kind not in (ast.NodeKind.PARENT, ast.NodeKind.SELF)
        ):
            folded.pop()
            predicates = (ast.PathExpression(ast.Origin.CONTEXT, (last,)), *step.predicates)
            if folded:
                upper = folded[-1]
                folded[-1] = replace(upper, predicates=upper.predicates + predicates)
            else:
                folded.append(ast.LocationStep(False, ast.NodeKind.SELF, None, predicates))
        else:
            folded.append(step)
    return tuple(folded)
