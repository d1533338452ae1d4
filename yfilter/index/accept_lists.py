# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""AcceptLists: the queries that states accept, one generation's.

A list is three sections behind their lengths: those that are sure, those
with one equality of an ancestor to look up, those with a residual to check, and what the message
has to contain for it to hold::

    lists   epoch n1 n2 n3 | query … | query residual … | query residual required …
    ranged  epoch n  place -1 | query residual required …
                                                    with their numbers, ascending, in ``bounds``
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import grown, reserved_doubles, reserved_ints

if cython.compiled:
    from cython.cimports.yfilter.index.atoms import AtomTable
    from cython.cimports.yfilter.index.record_pool import RecordPool
    from cython.cimports.yfilter.index.trie import Trie
else:
    from yfilter.index.atoms import AtomTable
    from yfilter.index.record_pool import RecordPool
    from yfilter.index.trie import Trie


class AcceptLists:
    """Lists are made once and never change."""

    def __init__(self, trie: Trie, atoms: AtomTable, records: RecordPool, bytes_max: int) -> None:
        self.trie = trie
        self.atoms = atoms
        self.records = records
        self.lists = reserved_ints(max(bytes_max // 4, 64))
        self.bounds = reserved_doubles(max(bytes_max // 8, 64))
        self._lists_used = 1
        self._bounds_used = 0
        self._touched = 0

    def make(self, members: cython.int[::1], first: cython.int, count: cython.int) -> cython.int:
        """The list of a state with these members; its place, or 0 if it accepts nothing."""
        nodes: cython.int[::1] = self.trie.nodes
        queries: cython.int[::1] = self.trie.queries
        end: cython.int = first + count
        words: cython.int[::1] = self.records.words
        sure: cython.int = 0
        quick: cython.int = 0
        slow: cython.int = 0
        touched: cython.int = 0
        i: cython.int
        query: cython.int
        residual: cython.int
        place: cython.int
        # PERF: loads that nothing waits for, so that what follows is in the cache.
        for i in range(first, end):
            touched ^= queries[5 * nodes[10 * members[i] + 3]]
        self._touched = touched
        for i in range(first, end):
            query = nodes[10 * members[i] + 3]
            while query:
                residual = queries[5 * query + 3]
                if residual == 0:
                    sure += 1
                elif residual > 0:
                    quick += 1
                else:
                    slow += 1
                query = queries[5 * query + 1]
        if sure + quick + slow == 0:
            return 0
        place = self._reserve(4 + sure + 2 * quick + 3 * slow)
        self.lists[place] = 0
        self.lists[place + 1] = sure
        self.lists[place + 2] = quick
        self.lists[place + 3] = slow
        slow = place + 4 + sure + 2 * quick
        quick = place + 4 + sure
        sure = place + 4
        for i in range(first, end):
            query = nodes[10 * members[i] + 3]
            while query:
                residual = queries[5 * query + 3]
                if residual == 0:
                    self.lists[sure] = query
                    sure += 1
                elif residual > 0:
                    self.lists[quick] = query
                    self.lists[quick + 1] = residual
                    quick += 2
                else:
                    self.lists[slow] = query
                    self.lists[slow + 1] = residual
                    self.lists[slow + 2] = words[1 - residual]
                    slow += 3
                query = queries[5 * query + 1]
        return place

    def make_range(
        self, members: cython.int[::1], first: cython.int, count: cython.int
    ) -> cython.int:
        """The list of a state that is reached by a range; its place, or 0 for nothing."""
        i: cython.int
        query: cython.int
        residual: cython.int
        place: cython.int
        found = []
        for i in range(first, first + count):
            query = self.trie.nodes[10 * members[i] + 3]
            while query:
                found.append((self.atoms.numbers[self.trie.queries[5 * query + 4]], query))
                query = self.trie.queries[5 * query + 1]
        found.sort()
        count = len(found)
        if count == 0:
            return 0
        place = self._reserve(4 + 3 * count)
        if self._bounds_used + count > len(self.bounds):
            self.bounds = grown(self.bounds, 2 * (self._bounds_used + count))
        self.lists[place] = 0
        self.lists[place + 1] = count
        self.lists[place + 2] = self._bounds_used
        self.lists[place + 3] = -1
        for i in range(count):
            self.bounds[self._bounds_used + i] = found[i][0]
            query = found[i][1]
            residual = self.trie.queries[5 * query + 3]
            self.lists[place + 4 + 3 * i] = query
            self.lists[place + 5 + 3 * i] = residual
            self.lists[place + 6 + 3 * i] = self.records.words[1 - residual] if residual < 0 else 0
        self._bounds_used += count
        return place

    def copy(self, older: AcceptLists, source: cython.int) -> cython.int:
        """Take a list over from the generation before."""
        i: cython.int
        place: cython.int
        ranged: cython.bint = older.lists[source + 3] < 0
        count: cython.int = older.lists[source + 1]
        length: cython.int = 4 + count
        if ranged:
            length += 2 * count
        else:
            length += 2 * older.lists[source + 2] + 3 * older.lists[source + 3]
        place = self._reserve(length)
        for i in range(length):
            self.lists[place + i] = older.lists[source + i]
        if ranged:
            if self._bounds_used + count > len(self.bounds):
                self.bounds = grown(self.bounds, 2 * (self._bounds_used + count))
            self.lists[place + 2] = self._bounds_used
            for i in range(count):
                self.bounds[self._bounds_used + i] = older.bounds[older.lists[source + 2] + i]
            self._bounds_used += count
        return place

    def used_bytes(self) -> cython.longlong:
        total: cython.longlong = self._lists_used
        return 4 * total + 8 * self._bounds_used

    def _reserve(self, count: cython.int) -> cython.int:
        place: cython.int = self._lists_used
        if place + count > len(self.lists):
            self.lists = grown(self.lists, 2 * (place + count))
        self._lists_used = place + count
        return place
