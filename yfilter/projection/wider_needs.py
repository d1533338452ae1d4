"""Wider needs: what else a need could be told as, in fewer bytes, and what that would let through.

A need is made wider in its condition: a path less, comparisons less, or none at all::

    /feed/entry  if /*[@k = "a"] and /*/c[. > 5]  keep title
      if /*[@k = "a"]                      without the second path
      if /*[@k] and /*/c[. > 5]            without what its first path compares
      always

    /feed/entry  if /*[@k = "harbour"]     keep title
      if /*[starts-with(@k, "harbou")]     without an end of what it compares with, as others
      if /*[starts-with(@k, "har")]
      if /*[@k]

Whatever meets the condition meets the weaker ones; so wider needs keep all that it keeps.

How much a need lets through is a guess from the form of its condition, as query optimisers make
it where nothing is known of the data; it only says what is widened first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from yfilter.engine.linear_paths import Conjunction, LinearPath
from yfilter.index.element_condition import condition_of
from yfilter.language.query_ast import (
    ANY_NAME,
    Comparison,
    Expression,
    FunctionCall,
    Literal,
    NodeKind,
    Operator,
    Origin,
    PathExpression,
)
from yfilter.projection.needs import Kind, Need

PATHS_MAX = 8  # of a condition, that are looked at, the longest ones

_EQUAL, _COMPARED, _THERE, _BELOW = 0.01, 0.3, 0.5, 0.8  # shares of elements, guessed
_WEIGHTS = {Kind.NODE: 1, Kind.ATTRIBUTE: 1, Kind.VALUE: 4, Kind.SUBTREE: 16, Kind.PART: 8}


def weaker(condition: Conjunction, *, few: bool = False) -> Iterator[Conjunction | None]:
    """Conditions that hold wherever it does, and in more places; None, which always holds, last.

    ``few``: only those of them that say much less."""
    if len(condition.paths) == 1:
        (path,) = condition.paths
        for halved in (True,) if few else (False, True):
            beginning = _with_beginnings(path, halved)
            if beginning != path:
                yield Conjunction((beginning,))
    if few:
        yield None
        return
    for path in sorted(condition.paths, key=lambda path: -len(str(path)))[:PATHS_MAX]:
        others = tuple(other for other in condition.paths if other is not path)
        if others:
            yield Conjunction(others)
            bare = _without_comparisons(path)
            if bare != path and not _is_trivial(bare):
                yield Conjunction((*others, bare))
    bare_paths = tuple(map(_without_comparisons, condition.paths))
    bare_paths = tuple(path for path in bare_paths if not _is_trivial(path))
    if bare_paths and bare_paths != condition.paths:
        yield Conjunction(bare_paths)
    yield None


def share_of(condition: Conjunction | None) -> float:
    """Of bound elements those that meet a condition, guessed."""
    share = 1.0
    for path in condition.paths if condition is not None else ():
        share *= _BELOW ** (len(path.steps) - 1)
        for step in path.steps:
            for selection in step.selections:
                share *= _share_of_selection(selection)
    return share


def weight_of(need: Need) -> int:
    """Of what is kept of a bound element, guessed."""
    return sum(_WEIGHTS[kept.kind] for kept in need.kept)


def _with_beginnings(path: LinearPath, halved: bool) -> LinearPath:
    """With the beginnings of the strings that it compares for equality, or the beginnings of these:
    the first half, or all but the last character."""
    steps = []
    for step in path.steps:
        selections = tuple(_with_beginning(one, halved) for one in step.selections)
        steps.append(replace(step, selections=selections))
    return LinearPath(tuple(steps))


def _with_beginning(selection: Expression, halved: bool) -> Expression:
    path: Expression
    match selection:
        case FunctionCall("starts-with", (PathExpression() as path, Literal(str(text)))):
            pass
        case Comparison(PathExpression() as path, Operator.EQ, Literal(str(text))) | Comparison(
            Literal(str(text)), Operator.EQ, PathExpression() as path
        ):
            known = condition_of(selection)
            if known is None or known.kind is NodeKind.TEXT:
                return selection  # of several text nodes there is no beginning
        case _:
            return selection
    if len(text) < 2:
        return selection
    return FunctionCall("starts-with", (path, Literal(text[: len(text) // 2 if halved else -1])))


def _without_comparisons(path: LinearPath) -> LinearPath:
    """Of its conditions, that attributes are there."""
    steps = []
    for step in path.steps:
        left = tuple(there for one in step.selections if (there := _attribute_of(one)) is not None)
        steps.append(replace(step, selections=left))
    return LinearPath(tuple(steps))


def _attribute_of(selection: Expression) -> PathExpression | None:
    if isinstance(selection, Comparison):
        sides = selection.left, selection.right
        paths = [side for side in sides if isinstance(side, PathExpression)]
        return _attribute_of(paths[0]) if len(paths) == 1 else None
    if isinstance(selection, PathExpression) and selection.origin is Origin.CONTEXT:
        is_one = len(selection.steps) == 1 and selection.steps[0].kind is NodeKind.ATTRIBUTE
        return selection if is_one else None
    return None


def _is_trivial(path: LinearPath) -> bool:
    """Whether it is just the bound element, or any root element."""
    return len(path.steps) == 1 and not path.steps[0].selections and path.steps[0].test == ANY_NAME


def _share_of_selection(selection: Expression) -> float:
    match selection:
        case FunctionCall("starts-with", (_, Literal(str(prefix)))):
            return max(2 * _EQUAL, 0.5 ** (1 + len(prefix)))
    if isinstance(selection, Comparison):
        return _EQUAL if selection.operator is Operator.EQ else _COMPARED
    return _THERE if isinstance(selection, PathExpression) else _COMPARED
