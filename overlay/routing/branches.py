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
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from hashlib import blake2b

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


class Branches:
    """The branches of some brokers on the trees that are named ``roots``; computed when first asked
    for.

    Two are equal if the sums of their links are, of which each is a random number of 128 bits.
    """

    def __init__(
        self,
        tree: Callable[[str], BroadcastTree],
        roots: Iterable[str],
        brokers: Iterable[str] | None = None,
    ) -> None:
        """``tree`` is asked for each once for all ``brokers`` (None: of the network), and again
        for any other that is asked about."""
        self._tree = tree
        self._roots = tuple(sorted(roots))
        self._brokers = None if brokers is None else set(brokers)
        self._by_place: dict[tuple[str, str], Branch] = {}

    def of(self, root: str, broker: str) -> Branch | None:
        """The branch of ``broker`` on the tree of ``root``; None at the root itself, KeyError if
        one of them is unknown."""
        if not self._by_place:
            self._find(self._brokers)
        if root_of(root) == broker and root in self._roots:
            return None
        if self._brokers is not None and broker not in self._brokers:
            self._find({broker})
            self._brokers.add(broker)
        return self._by_place[root, broker]

    def _find(self, brokers: Container[str] | None) -> None:
        tokens: dict[tuple[str, str], int] = {}
        alike: dict[tuple[str, int], list[str]] = defaultdict(list)
        about: dict[tuple[str, int], tuple[str, int]] = {}
        for root in self._roots:
            tree = self._tree(root)
            sums = dict.fromkeys(tree.parent, 0)
            sizes = dict.fromkeys(tree.parent, 1)
            for broker, parent in reversed(list(tree.parent.items())):
                if parent is None:
                    continue
                token = tokens.get((parent, broker))
                if token is None:
                    token = tokens[parent, broker] = _token(parent, broker)
                total = sums[broker] + token
                sums[parent] += total
                sizes[parent] += sizes[broker]
                if brokers is None or broker in brokers:
                    alike[broker, total].append(root)
                    about[broker, total] = parent, sizes[broker]
        for place, roots in alike.items():
            broker, (parent, size) = place[0], about[place]
            branch = Branch(roots[0], parent, broker, frozenset(roots), size)
            self._by_place.update(dict.fromkeys(((root, broker) for root in roots), branch))


def _token(parent: str, broker: str) -> int:
    named = f"{len(parent)} {parent} {broker}".encode()
    return int.from_bytes(blake2b(named, digest_size=16).digest(), "big")
