# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""AcceptLists: the queries that states accept, one generation's.

A list is four sections behind their lengths: those that are sure, those with one equality of an
ancestor to look up, those with a residual to check, and what the message has to contain for it to
hold, and those with one twig of an ancestor to look up, by the ancestor (see residual_rows.py)::

    lists   epoch n1 n2 n3 w4 | query … | query residual … | query residual required … | group …
    group   position n epoch element | query twig …
    ranged  epoch n place -1 0 | query residual required …
                                                    with their numbers, ascending, in ``bounds``

``epoch``, and the element of a group, are those that it was last taken for; ``w4`` is the length of
all groups.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import doubles, grown, ints

if cython.compiled:
    from cython.cimports.yfilter.index.atoms import AtomTable
    from cython.cimports.yfilter.index.record_pool import RecordPool
    from cython.cimports.yfilter.index.sorting import sort_by
    from cython.cimports.yfilter.index.trie import Trie
else:
    from yfilter.index.atoms import AtomTable
    from yfilter.index.record_pool import RecordPool
    from yfilter.index.residual_rows import CODE_POSITION, CODE_SHIFT, CODE_TWIG, RECORD_REQUIRED
    from yfilter.index.sorting import sort_by
    from yfilter.index.trie import (
        NODE_FIRST_QUERY,
        NODE_WIDTH,
        QUERY_NEXT,
        QUERY_NUMBER,
        QUERY_RESIDUAL,
        QUERY_WIDTH,
        Trie,
    )


class AcceptLists:
    """Lists are made once and never change."""

    def __init__(self, trie: Trie, atoms: AtomTable, records: RecordPool, bytes_max: int) -> None:
        self.trie = trie
        self.atoms = atoms
        self.records = records
        self.lists = ints(max(bytes_max // 4, 64))
        self.bounds = doubles(max(bytes_max // 8, 64))
        self._lists_used = 1
        self._bounds_used = 0
        self._numbers = doubles(64)
        self._queries = ints(64)
        self._next = ints(67)  # of each section, how many or where the next one goes

    def make(self, members: cython.int[::1], first: cython.int, count: cython.int) -> cython.int:
        """The list of a state with these members; its place, or 0 if it accepts nothing."""
        queries: cython.int[::1] = self.trie.queries
        i: cython.int
        place: cython.int
        found: cython.int = self._gather(members, first, count)
        if found == 0:
            return 0
        for i in range(67):
            self._next[i] = 0
        for i in range(found):
            self._next[_section(queries[QUERY_WIDTH * self._queries[i] + QUERY_RESIDUAL])] += 1
        place = self._lay_out()
        for i in range(found):
            self._write(self._queries[i], queries[QUERY_WIDTH * self._queries[i] + QUERY_RESIDUAL])
        return place

    def make_range(
        self, members: cython.int[::1], first: cython.int, count: cython.int
    ) -> cython.int:
        """The list of a state that is reached by a range; its place, or 0 for nothing."""
        i: cython.int
        query: cython.int
        residual: cython.int
        place: cython.int
        count = self._gather(members, first, count)
        if count == 0:
            return 0
        for i in range(count):
            self._numbers[i] = self.atoms.numbers[
                self.trie.queries[QUERY_WIDTH * self._queries[i] + QUERY_NUMBER]
            ]
        sort_by(self._numbers, self._queries, count)
        place = self._reserve(5 + 3 * count)
        if self._bounds_used + count > len(self.bounds):
            self.bounds = grown(self.bounds, 2 * (self._bounds_used + count))
        self.lists[place] = 0
        self.lists[place + 1] = count
        self.lists[place + 2] = self._bounds_used
        self.lists[place + 3] = -1
        self.lists[place + 4] = 0
        for i in range(count):
            self.bounds[self._bounds_used + i] = self._numbers[i]
            query = self._queries[i]
            residual = self.trie.queries[QUERY_WIDTH * query + QUERY_RESIDUAL]
            self.lists[place + 5 + 3 * i] = self.trie.answers(query)
            self.lists[place + 6 + 3 * i] = residual
            self.lists[place + 7 + 3 * i] = (
                self.records.words[RECORD_REQUIRED - residual] if residual < 0 else 0
            )
        self._bounds_used += count
        return place

    def copy(self, older: AcceptLists, source: cython.int) -> cython.int:
        """Take a list over from the generation before."""
        i: cython.int
        place: cython.int
        ranged: cython.bint = older.lists[source + 3] < 0
        count: cython.int = older.lists[source + 1]
        length: cython.int = 5 + count + older.lists[source + 4]
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

    def _gather(self, members: cython.int[::1], first: cython.int, count: cython.int) -> cython.int:
        """Put the queries that some nodes accept into ``_queries``; how many they are."""
        # PERF: the first of all nodes, then the second of all, and so on: hardly any load waits
        # for the one before.
        i: cython.int
        query: cython.int
        at: cython.int = 0
        found: cython.int = 0
        if count > len(self._queries):
            self._cover(2 * count)
        for i in range(first, first + count):
            query = self.trie.nodes[NODE_WIDTH * members[i] + NODE_FIRST_QUERY]
            self._queries[found] = query
            found += query != 0
        while at < found:
            query = self.trie.queries[QUERY_WIDTH * self._queries[at] + QUERY_NEXT]
            if query:
                if found == len(self._queries):
                    self._cover(2 * found)
                self._queries[found] = query
                found += 1
            at += 1
        return found

    def _cover(self, room: cython.int) -> cython.int:
        """Make room for so many queries."""
        self._queries = grown(self._queries, room)
        self._numbers = grown(self._numbers, room)
        return 0

    def _lay_out(self) -> cython.int:
        """Room for as many of each section as ``next`` says; then it says where they begin."""
        following: cython.int[::1] = self._next
        sure: cython.int = following[0]
        quick: cython.int = following[1]
        slow: cython.int = following[2]
        groups: cython.int = 0
        section: cython.int
        at: cython.int
        for section in range(3, 67):
            if following[section]:
                groups += 4 + 2 * following[section]
        at = self._reserve(5 + sure + 2 * quick + 3 * slow + groups)
        place: cython.int = at
        self.lists[at] = 0
        self.lists[at + 1] = sure
        self.lists[at + 2] = quick
        self.lists[at + 3] = slow
        self.lists[at + 4] = groups
        following[0] = at + 5
        following[1] = following[0] + sure
        following[2] = following[1] + 2 * quick
        at = following[2] + 3 * slow
        for section in range(3, 67):
            if following[section]:
                groups = following[section]
                self.lists[at] = section - 3
                self.lists[at + 1] = groups
                self.lists[at + 2] = 0
                following[section] = at + 4
                at += 4 + 2 * groups
        return place

    def _write(self, query: cython.int, residual: cython.int) -> cython.int:
        """Put a query into its section."""
        section: cython.int = _section(residual)
        at: cython.int = self._next[section]
        self.lists[at] = self.trie.answers(query)
        if section == 0:
            self._next[section] = at + 1
        elif section == 1:
            self.lists[at + 1] = residual
            self._next[section] = at + 2
        elif section == 2:
            self.lists[at + 1] = residual
            self.lists[at + 2] = self.records.words[RECORD_REQUIRED - residual]
            self._next[section] = at + 3
        else:
            self.lists[at + 1] = residual >> CODE_SHIFT
            self._next[section] = at + 2
        return 0

    def _reserve(self, count: cython.int) -> cython.int:
        place: cython.int = self._lists_used
        if place + count > len(self.lists):
            self.lists = grown(self.lists, 2 * (place + count))
        self._lists_used = place + count
        return place


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _section(residual: cython.int) -> cython.int:
    """0 sure, 1 quick, 2 slow, and from 3 on the groups by the position of the ancestor."""
    if residual == 0:
        return 0
    if residual < 0:
        return 2
    return 3 + (residual & CODE_POSITION) if residual & CODE_TWIG else 1
