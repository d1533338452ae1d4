"""The variables of a graph profile, wherever in its tree they stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from yfilter.graph.query_ast import Variable
from yfilter.language.trees import Tree, changed, nodes_of


def variables_of(tree: object) -> Iterator[Variable]:
    """All variables, blank nodes among them, in the order of the text."""
    return (node for node in nodes_of(tree) if isinstance(node, Variable))


def renamed(tree: Tree, names: Mapping[Variable, Variable]) -> Tree:
    """The tree with other names for some variables."""
    return changed(tree, lambda node: names.get(node, node) if type(node) is Variable else node)
