"""Which variables a group of a graph profile binds, and whether it may see what others bind.

SPARQL's algebra works from the inside out: a group is evaluated for itself, then joined.  A join
program works from left to right: a group begins with what is bound already.  Both find the same
solutions as long as no filter, OPTIONAL, MINUS or BIND in the group looks at a variable that is
bound outside and not, in any case, inside before it is looked at (``is_inlinable``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TypeAlias

from yfilter.graph import query_ast as sparql
from yfilter.language import query_ast as ast
from yfilter.language.trees import Tree, changed, flat, nodes_of

Variables: TypeAlias = "frozenset[sparql.Variable]"

NONE: Variables = frozenset()
_KEPT = 4096


def pattern_variables(pattern: sparql.TriplePattern) -> Variables:
    places = (pattern.subject, pattern.property, pattern.object)
    return frozenset(each for each in places if isinstance(each, sparql.Variable))


def certain(element: sparql.GroupElement) -> Variables:
    """The variables that every solution of an element binds."""
    return _bound(element, True)


def possible(element: sparql.GroupElement) -> Variables:
    """The variables that some solution of an element may bind."""
    return _bound(element, False)


@lru_cache(_KEPT)
def _bound(element: sparql.GroupElement, always: bool) -> Variables:
    match element:
        case sparql.TriplePattern():
            return pattern_variables(element)
        case sparql.Group(elements):
            return union(_bound(each, always) for each in elements)
        case sparql.Alternatives(groups):
            ways = [_bound(group, always) for group in groups]
            return frozenset.intersection(*ways) if always else union(ways)
        case sparql.InGraph(graph, group):
            return _bound(group, always) | ({graph} if isinstance(graph, sparql.Variable) else NONE)
        case sparql.Values(variables, rows):
            columns = zip(*rows, strict=True) if rows else [()] * len(variables)
            return frozenset(
                variable
                for variable, column in zip(variables, columns, strict=True)
                if not always or None not in column
            )
        case sparql.Optionally(group) if not always:
            return _bound(group, always)
        case sparql.Bind(_, variable) if not always:
            return frozenset({variable})
        case _:
            return NONE


@lru_cache(_KEPT)
def mentioned(expression: ast.Expression) -> Variables:
    """All variables of an expression, those within EXISTS included."""
    return frozenset(variables_of(expression))


def has_exists(expression: ast.Expression) -> bool:
    """Whether EXISTS stands anywhere in an expression."""
    return any(isinstance(node, sparql.Exists) for node in nodes_of(expression))


def filters_of(group: sparql.Group) -> list[ast.Expression]:
    """The conditions of a group, each part of an ``&&`` for itself."""
    filters = (each.condition for each in group.elements if isinstance(each, sparql.Filter))
    return list(flat(filters, ast.And))


def without_filters(group: sparql.Group) -> sparql.Group:
    return sparql.Group(
        tuple(each for each in group.elements if not isinstance(each, sparql.Filter))
    )


def is_inlinable(group: sparql.Group, outside: Variables) -> bool:
    """Whether the group may begin with these variables bound, which its filters may not see."""
    if any(mentioned(each) & outside - certain(group) for each in filters_of(group)):
        return False
    left: Variables = NONE
    for element in group.elements:
        match element:
            case sparql.Optionally(inner):
                own = possible(inner) | union(map(mentioned, filters_of(inner)))
                if own & outside - left:
                    return False
            case sparql.Minus(inner):
                if possible(inner) & outside - left:
                    return False
            case sparql.Bind(value, _):
                if mentioned(value) & outside - left:
                    return False
            case _:
                pass
        left |= certain(element)
    return True


def union(sets: Iterable[Variables]) -> Variables:
    return NONE.union(*sets)


def variables_of(tree: object) -> Iterator[sparql.Variable]:
    """All variables, blank nodes among them, in the order of the text."""
    return (node for node in nodes_of(tree) if isinstance(node, sparql.Variable))


def renamed(tree: Tree, names: Mapping[sparql.Variable, sparql.Variable]) -> Tree:
    """The tree with other names for some variables."""
    return changed(
        tree, lambda node: names.get(node, node) if type(node) is sparql.Variable else node
    )
