"""Going through the tree of a graph profile, whatever its nodes are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from yfilter.graph.query_ast import Variable

T = TypeVar("T")


def nodes_of(tree: object) -> Iterator[object]:
    """All nodes, each before what is in it, in the order of the text."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting.extend(reversed(node))
        elif names := _part_names(type(node)):
            yield node
            waiting.extend([getattr(node, name) for name in names])


def _part_names(kind: type) -> tuple[str, ...]:
    """The fields of a kind of node, the last one first; none of what is no node."""
    names = _PARTS.get(kind)
    if names is None:
        of_kind = fields(kind) if is_dataclass(kind) else ()
        names = _PARTS[kind] = tuple(one.name for one in reversed(of_kind))
    return names


_PARTS: dict[type, tuple[str, ...]] = {}


def variables_of(tree: object) -> Iterator[Variable]:
    """All variables, blank nodes among them, wherever they stand."""
    return (node for node in nodes_of(tree) if isinstance(node, Variable))


def renamed(tree: T, names: Mapping[Variable, Variable]) -> T:
    """The tree with other names for some variables."""
    return cast(T, _renamed(tree, names))


def _renamed(node: Any, names: Mapping[Variable, Variable]) -> Any:
    if isinstance(node, Variable):
        return names.get(node, node)
    if isinstance(node, tuple):
        return tuple(_renamed(part, names) for part in node)
    if is_dataclass(node) and not isinstance(node, type):
        parts = {field.name: getattr(node, field.name) for field in fields(node)}
        return replace(node, **{name: _renamed(part, names) for name, part in parts.items()})
    return node
