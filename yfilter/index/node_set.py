# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""NodeSet: a set of trie nodes under construction, closed under ε.

``clear``, ``push`` nodes, ``close``: then ``nodes`` has them in order, each once.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import grown, ints

if cython.compiled:
    from cython.cimports.yfilter.index.sorting import sort
    from cython.cimports.yfilter.index.trie import Trie
else:
    from yfilter.index.sorting import sort
    from yfilter.index.trie import Trie


class NodeSet:
    """``parents`` is room for nodes whose children are to be pushed."""

    def __init__(self, trie: Trie) -> None:
        self.trie = trie
        self.nodes = ints(256)
        self.parents = ints(256)
        self._children = ints(256)
        self._count = 0

    def clear(self) -> None:
        """Begin a new set."""
        self._count = 0

    def cover(self, count: cython.int) -> cython.int:
        """Room for so many nodes or parents; what is there is lost."""
        if count >= len(self.parents):
            self.nodes = ints(2 * count)
            self.parents = ints(2 * count)
            self._children = ints(2 * count)
        return 0

    def push(self, node: cython.int) -> cython.int:
        """Add a node, unless it is 0, and its loop."""
        if node:
            if self._count + 2 > len(self.nodes):
                self.nodes = grown(self.nodes, 2 * len(self.nodes))
            self.nodes[self._count] = node
            self._count += 1
            if self.trie.nodes[10 * node + 2]:
                self.nodes[self._count] = self.trie.nodes[10 * node + 2]
                self._count += 1
        return 0

    def push_children(self, count: cython.int, edge: cython.int) -> cython.int:
        """Add what is behind an edge of the first so many of ``parents``."""
        i: cython.int
        self.trie.child_of_all(self.parents, count, edge, self._children)
        for i in range(count):
            self.push(self._children[i])
        return 0

    def close(self) -> cython.int:
        """How many nodes there are, now in order; a loop may have come in twice."""
        i: cython.int
        kept: cython.int = 0
        if self._count == 0:
            return 0
        sort(self.nodes, self._count)
        for i in range(1, self._count):
            if self.nodes[i] != self.nodes[kept]:
                kept += 1
                self.nodes[kept] = self.nodes[i]
        return kept + 1
