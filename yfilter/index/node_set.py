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
    from cython.cimports.yfilter.index.sorting import Sorter
    from cython.cimports.yfilter.index.trie import Trie
else:
    from yfilter.index.sorting import Sorter
    from yfilter.index.trie import NODE_LOOP, NODE_WIDTH, Trie


class NodeSet:
    """``count`` nodes and ``loop_count`` loops."""

    def __init__(self, trie: Trie) -> None:
        self.trie = trie
        self.nodes = ints(256)
        self.loops = ints(256)
        self._parents = ints(256)
        self._children = ints(256)
        self._sorter = Sorter()
        self.count = 0
        self.loop_count = 0

    def clear(self) -> None:
        """Begin a new set."""
        self.count = 0
        self.loop_count = 0

    def push(self, node: cython.int) -> cython.int:
        """Add a node, unless it is 0, and its loop."""
        if node:
            if self.count >= len(self.nodes):
                self.nodes = grown(self.nodes, 2 * self.count)
                self.loops = grown(self.loops, 2 * self.count)
            self.nodes[self.count] = node
            self.count += 1
            self.loops[self.loop_count] = self.trie.nodes[NODE_WIDTH * node + NODE_LOOP]
            self.loop_count += self.loops[self.loop_count] != 0
        return 0

    def choose_parents(
        self,
        members: cython.int[::1],
        bits_of: cython.int[::1],
        first: cython.int,
        count: cython.int,
        bits: cython.int,
    ) -> cython.int:
        """How many of a range of nodes have one of some bits; ``push_children`` is about them."""
        i: cython.int
        found: cython.int = 0
        parents: cython.int[::1]
        if count >= len(self._parents):
            self._parents = ints(2 * count)
            self._children = ints(2 * count)
        parents = self._parents
        for i in range(first, first + count):
            parents[found] = members[i]
            found += (bits_of[i] & bits) != 0
        return found

    def push_children(self, count: cython.int, edge: cython.int) -> cython.int:
        """Add what is behind an edge of the parents, which are so many."""
        i: cython.int
        self.trie.child_of_all(self._parents, count, edge, self._children)
        for i in range(count):
            self.push(self._children[i])
        return 0

    def close(self) -> cython.int:
        """All is there."""
        self._sorter.sort(self.nodes, self.count)
        self._sorter.sort(self.loops, self.loop_count)
        return 0
