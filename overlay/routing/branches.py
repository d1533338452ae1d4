"""Branches: what several broadcast trees have in common, so that it is told and kept once.

A *branch* is a broker with all below it on a tree, and the link to its parent.  What is wanted in
a branch is the same on every tree that has it, whichever root broker is above::

    tree of B1        tree of B2           B4 is one branch on both trees: it tells its parent B3
    B1                B2                   once what is wanted there, B3 keeps it once, and a
    ├── B2            └── B3               message of either root is looked up in the same entries
    └── B3                ├── B1
        └── B4            └── B4           B3 is not: below it is B1 on one of them

In a network without cycles a broker has as many branches as it has neighbours, however many root
brokers there are.  Trees that change while the network runs have branches in common with those
that began with the same version of its shape (``network_shape.py``), so that a branch is the same
as long as there is any of its trees.  A branch is called by its first tree; every broker computes
the same from the same trees, without exchanging a word.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from overlay.routing.broadcast_tree import BroadcastTree
from overlay.tree_name import root_of


@dataclass(frozen=True, slots=True)
class Branch:
    """``name``     the first of ``roots``, the names of all trees that have the branch
    ``brokers``  how many there are in it, ``broker`` counted
    """

    name: str
    parent: str
    broker: str
    roots: frozenset[str]
    brokers: int


_Shape: TypeAlias = tuple[str, str, tuple[int, ...]]  # broker, parent, the shapes of its children


class Branches:
    """The branches of the trees that are named ``roots``; computed when first asked for."""

    def __init__(self, tree: Callable[[str], BroadcastTree], roots: Iterable[str]) -> None:
        self._tree = tree
        self._roots = tuple(sorted(roots))
        self._by_place: dict[tuple[str, str], Branch] = {}

    def of(self, root: str, broker: str) -> Branch | None:
        """The branch of ``broker`` on the tree of ``root``; None at the root itself, KeyError if
        one of them is unknown."""
        if not self._by_place:
            self._find()
        if root_of(root) == broker and root in self._roots:
            return None
        return self._by_place[root, broker]

    def _find(self) -> None:
        numbers: dict[_Shape, int] = {}
        places: dict[int, list[tuple[str, str]]] = defaultdict(list)
        sizes: dict[int, int] = {}
        parents: dict[int, str] = {}
        for root in self._roots:
            tree = self._tree(root)
            shape_of: dict[str, int] = {}
            for broker in reversed(tree.breadth_first()):
                parent = tree.parent[broker]
                if parent is None:
                    continue
                below = tuple(shape_of[child] for child in tree.children[broker])
                number = numbers.setdefault((broker, parent, below), len(numbers))
                shape_of[broker] = number
                places[number].append((root, broker))
                sizes[number] = 1 + sum(sizes[child] for child in below)
                parents[number] = parent
        for number, found in places.items():
            name, broker = found[0]
            roots = frozenset(root for root, _ in found)
            branch = Branch(name, parents[number], broker, roots, sizes[number])
            self._by_place.update(dict.fromkeys(found, branch))
