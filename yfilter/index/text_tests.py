# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""TextTests: ``contains`` and its like of all profiles, in one pass over a value.

A test of an attribute is an atom as an equality is (see atoms.py), with a key of its own::

    0xfe   kind   the text

The texts stand in a byte trie, below the number of their attribute.  From each place of a value one
goes down as far as there is a way; the tests at the nodes passed hold there, as far as the place is
the right one.  So a value costs its length, and the ways that begin in it, whatever the number of
tests.  Regular expressions stand in sets that are searched for at once (pattern_set.py).
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import grown, ints
from yfilter.index.pattern_set import PatternSet

if cython.compiled:
    from cython.cimports.yfilter.index.edge_bits import name_bit
    from cython.cimports.yfilter.index.trie import Trie
else:
    from yfilter.index.atoms import CONTAINS, ENDS_WITH, MATCHES, STARTS_WITH
    from yfilter.index.edge_bits import name_bit
    from yfilter.index.trie import (
        EDGE_SHIFT,
        NODE_FIRST_QUERY,
        NODE_NAMES,
        NODE_WIDTH,
        QUERY_NEXT,
        QUERY_NUMBER,
        QUERY_RESIDUAL,
        QUERY_WIDTH,
        Trie,
    )


class TextTests:
    """``add`` and ``remove`` tests; ``found`` has the atoms of those that ``find`` found last."""

    def __init__(self, trie: Trie) -> None:
        self._trie = trie
        self._queries: dict[tuple[int, bytes], int] = {}
        self._patterns: dict[int, PatternSet] = {}  # by attribute
        self.found = ints(64)
        self._count = 0

    def add(self, attribute: cython.int, key: bytes, atom: cython.int) -> cython.int:
        """A test that is not there yet."""
        trie: Trie = self._trie
        octets: cython.p_const_uchar = key
        node: cython.int
        i: cython.int
        if key[1] == MATCHES:
            if attribute not in self._patterns:
                self._patterns[attribute] = PatternSet()
            self._patterns[attribute].add(atom, key[2:].decode())
            self._queries[attribute, key] = atom
            return 0
        node = trie.extend(1, attribute << EDGE_SHIFT)
        for i in range(2, len(key)):
            node = trie.extend(node, octets[i] << EDGE_SHIFT)
        self._queries[attribute, key] = trie.add_query(node, key[1], atom)
        return 0

    def remove(self, attribute: cython.int, key: bytes) -> cython.int:
        query = self._queries.pop((attribute, key))
        if key[1] != MATCHES:
            self._trie.remove_query(query)
            return 0
        self._patterns[attribute].remove(query)
        if not len(self._patterns[attribute]):
            del self._patterns[attribute]
        return 0

    def find(
        self,
        attribute: cython.int,
        values: bytes,
        first: cython.int,
        last: cython.int,
    ) -> cython.int:
        """How many tests hold for ``values[first:last]``."""
        octets: cython.p_const_uchar = values
        trie: Trie = self._trie
        root: cython.int = trie.child(1, attribute << EDGE_SHIFT)
        start: cython.int
        at: cython.int
        node: cython.int
        query: cython.int
        kind: cython.int
        self._count = 0
        if self._patterns and attribute in self._patterns:
            for atom in self._patterns[attribute].find(values[first:last]):
                self._emit(atom)
        if root == 0:
            return self._count
        for start in range(first, last):
            node = root
            at = start
            # PERF: the bits of a node's edges spare nearly all look-ups.
            while at < last and trie.nodes[NODE_WIDTH * node + NODE_NAMES] & name_bit(
                octets[at] << EDGE_SHIFT
            ):
                node = trie.child(node, octets[at] << EDGE_SHIFT)
                if node == 0:
                    break
                at += 1
                query = trie.nodes[NODE_WIDTH * node + NODE_FIRST_QUERY]
                while query:
                    kind = trie.queries[QUERY_WIDTH * query + QUERY_RESIDUAL]
                    if (
                        kind == CONTAINS
                        or (kind == STARTS_WITH and start == first)
                        or (kind == ENDS_WITH and at == last)
                    ):
                        self._emit(trie.queries[QUERY_WIDTH * query + QUERY_NUMBER])
                    query = trie.queries[QUERY_WIDTH * query + QUERY_NEXT]
        return self._count

    def _emit(self, atom: cython.int) -> cython.int:
        i: cython.int
        for i in range(self._count):
            if self.found[i] == atom:
                return 0
        if self._count == len(self.found):
            self.found = grown(self.found, 2 * self._count)
        self.found[self._count] = atom
        self._count += 1
        return 0
