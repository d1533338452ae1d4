"""What must hold of a message for a query that the tree has no words for all of.

The parser makes one tree of any query: aggregates and other functions are calls as well, and where
a pattern says less than the text it is Weakened.  ``necessary_part`` leaves out all that, and what
depends on it, such that each solution of the query is, for the variables that are left, a solution
of what is left.

A variable is *lost* where the query may give it a value and what is left does not.  FILTER, BIND,
OPTIONAL and MINUS that mention a lost variable go, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from yfilter.graph import query_ast as sparql
from yfilter.graph.filter_functions import FUNCTIONS
from yfilter.graph.group_variables import variables_of
from yfilter.language import query_ast as ast
from yfilter.language.trees import nodes_of, split

_OF_UNKNOWN = frozenset(("bound", "if", "coalesce"))  # which are no functions of values
CASTS = frozenset(name for name in FUNCTIONS if ":" in name)


@dataclass(frozen=True, slots=True)
class Weakened:
    """``group`` is a necessary part of what was written; ``lost``: see above."""

    group: sparql.Group
    lost: tuple[sparql.Variable, ...] = ()


def weakened(group: sparql.Group, lost: Iterable[sparql.Variable] = ()) -> sparql.GroupElement:
    """A member of a draft; no tree that leaves the parser has one."""
    return cast(sparql.GroupElement, Weakened(group, tuple(lost)))


def is_said(call: ast.FunctionCall) -> bool:
    """Whether the tree has this function, for what it is called with."""
    if call.name in ("regex", "replace"):
        return all(isinstance(argument, sparql.LiteralTerm) for argument in call.arguments[1:])
    return call.name in FUNCTIONS or call.name in _OF_UNKNOWN or call.name == "not"


def necessary_part(draft: sparql.Group) -> sparql.Group:
    """The part of a draft that a tree can say."""
    return _necessary(draft)[0]


def _necessary(draft: sparql.Group) -> tuple[sparql.Group, set[sparql.Variable]]:
    """What is left of a group, and the variables that are lost in it."""
    kept: list[sparql.GroupElement] = []
    lost: set[sparql.Variable] = set()
    bound: set[sparql.Variable] = set()  # by a triple of the group itself
    for element in cast("tuple[sparql.GroupElement | Weakened, ...]", draft.elements):
        match element:
            case sparql.TriplePattern():
                kept.append(element)
                bound.update(variables_of(element))
            case Weakened(group, more):
                part, lost_there = _necessary(group)
                kept += part.elements
                lost |= lost_there | set(more)
            case sparql.Group():
                part, lost_there = _necessary(element)
                if part.elements:
                    kept.append(part)
                lost |= lost_there
            case sparql.Alternatives(groups):
                parts = [_necessary(group) for group in groups]
                kept.append(sparql.Alternatives(tuple(part for part, _ in parts)))
                lost |= {variable for _, lost_there in parts for variable in lost_there}
            case sparql.InGraph(graph, group):
                part, lost_there = _necessary(group)
                kept.append(sparql.InGraph(graph, part))
                lost |= lost_there
            case sparql.Values():
                kept.append(element)
            case sparql.Filter():
                pass
            case sparql.Optionally() | sparql.Bind() | sparql.Minus():
                if _is_all_said(element) and lost.isdisjoint(variables_of(element)):
                    kept.append(element)
                elif not isinstance(element, sparql.Minus):
                    lost.update(variables_of(element))
    lost -= bound
    for element in draft.elements:
        if isinstance(element, sparql.Filter):
            conditions = [
                part for part in split(element.condition, ast.And) if _is_kept(part, lost)
            ]
            if conditions:
                whole = conditions[0] if len(conditions) == 1 else ast.And(tuple(conditions))
                kept.append(sparql.Filter(whole))
    return sparql.Group(tuple(kept)), lost


def _is_kept(condition: ast.Expression, lost: set[sparql.Variable]) -> bool:
    return _is_all_said(condition) and lost.isdisjoint(variables_of(condition))


def _is_all_said(tree: object) -> bool:
    return not any(
        isinstance(node, Weakened) or (isinstance(node, ast.FunctionCall) and not is_said(node))
        for node in nodes_of(tree)
    )
