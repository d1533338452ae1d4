# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""NodeSet: a set of trie nodes under construction, closed under ε.

``clear``, ``push`` nodes that are not there yet, ``close``: then ``nodes`` and ``loops``, the
looping nodes behind them, are in order.
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
    """``count`` nodes and ``loop_count`` loops; ``parents`` is room for ``push_children``."""

    def __init__(self, trie: Trie) -> None:
        self.trie = trie
        self.nodes = ints(256)
        self.loops = ints(256)
        self.parents = ints(256)
        self._children = ints(256)
        self.count = 0
        self.loop_count = 0

    def clear(self) -> None:
        """Begin a new set."""
        self.count = 0
        self.loop_count = 0

    def cover(self, count: cython.int) -> cython.int:
        """Room for so many parents."""
        if count >= len(self.parents):
            self.parents = ints(2 * count)
            self._children = ints(2 * count)
        return 0

    def push(self, node: cython.int) -> cython.int:
        """Add a node, unless it is 0, and its loop."""
        if node:
            if self.count >= len(self.nodes):
                self.nodes = grown(self.nodes, 2 * self.count)
                self.loops = grown(self.loops, 2 * self.count)
            self.nodes[self.count] = node
            self.count += 1
            self.loops[self.loop_count] = self.trie.nodes[10 * node + 2]
            self.loop_count += self.loops[self.loop_count] != 0
        return 0

    def push_children(self, count: cython.int, edge: cython.int) -> cython.int:
        """Add what is behind an edge of the first so many of ``parents``."""
        i: cython.int
        self.trie.child_of_all(self.parents, count, edge, self._children)
        for i in range(count):
            self.push(self._children[i])
        return 0

    def close(self) -> None:
        """All is there."""
        sort(self.nodes, self.count)
        sort(self.loops, self.loop_count)
