# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""AcceptLists: the queries that states accept, one generation's.

A list is five sections behind their lengths: those that are sure, those with one equality of an
ancestor to look up, those with a residual to check, and what the message has to contain for it to
hold, those with one twig of an ancestor to look up, by the ancestor (see residual_rows.py), and
those that a second access divides, by the comparison (see second_access.py)::

    list    EPOCH SURE QUICK SLOW GROUPS SECONDS
            | query … | query residual … | query residual required … | group … | second …
    group   POSITION COUNT EPOCH ELEMENT | query twig …
    second  POSITION SYMBOL ATTRIBUTE OPERATOR COUNT BOUNDS ALIKE | query residual required …
    ranged  EPOCH RANGED BOUNDS - GROUPS SECONDS | query residual required …

SURE, QUICK, SLOW, RANGED and COUNT say how many; GROUPS is the length of all groups, SECONDS of all
seconds.  The numbers of a second, and of a ranged list, stand in ``bounds`` from BOUNDS on,
ascending; where it is ALIKE the residuals differ in nothing else.  EPOCH, and the ELEMENT of a
group, are those that it was last taken for.
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
    from cython.cimports.yfilter.index.second_access import SecondAccess
    from cython.cimports.yfilter.index.sorting import sort_by
    from cython.cimports.yfilter.index.trie import Trie
else:
    from yfilter.index.atoms import AtomTable
    from yfilter.index.record_pool import RecordPool
    from yfilter.index.residual_rows import CODE_POSITION, CODE_SHIFT, CODE_TWIG, RECORD_REQUIRED
    from yfilter.index.second_access import CROWD_MIN, SecondAccess
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

if not cython.compiled:
    LIST_EPOCH, LIST_SURE, LIST_QUICK, LIST_SLOW, LIST_GROUPS = range(5)
    LIST_SECONDS, LIST_QUERIES = 5, 6
    LIST_RANGED, LIST_BOUNDS, RANGED = 1, 2, -1

    GROUP_POSITION, GROUP_COUNT, GROUP_EPOCH, GROUP_ELEMENT, GROUP_QUERIES = range(5)

    SECOND_POSITION, SECOND_SYMBOL, SECOND_ATTRIBUTE, SECOND_OPERATOR = range(4)
    SECOND_COUNT, SECOND_BOUNDS, SECOND_ALIKE, SECOND_QUERIES = range(4, 8)

    LISTED_QUERY, LISTED_RESIDUAL, LISTED_REQUIRED = range(3)
    LISTED_TWIG = 1
    QUICK_WIDTH, SLOW_WIDTH, GROUPED_WIDTH = 2, 3, 2

    SECTION_SURE, SECTION_QUICK, SECTION_SLOW, SECTION_GROUPS = range(4)
    SECTION_SECONDS, SECTIONS = 67, 68


class AcceptLists:
    """Lists are made once and never change."""

    def __init__(self, trie: Trie, atoms: AtomTable, records: RecordPool, bytes_max: int) -> None:
        self.trie = trie
        self.atoms = atoms
        self.records = records
        self.lists = ints(max(bytes_max // 4, 64))
        self.bounds = doubles(max(bytes_max // 8, 64))
        self._second = SecondAccess(records, atoms)
        self._lists_used = 1
        self._bounds_used = 0
        self._numbers = doubles(64)
        self._queries = ints(64)
        self._next = ints(SECTIONS)  # of each section, how many or where the next one goes

    def make(self, members: cython.int[::1], first: cython.int, count: cython.int) -> cython.int:
        """The list of a state with these members; its place, or 0 if it accepts nothing."""
        queries: cython.int[::1] = self.trie.queries
        i: cython.int
        query: cython.int
        place: cython.int
        found: cython.int = self._gather(members, first, count)
        if found == 0:
            return 0
        for i in range(SECTIONS):
            self._next[i] = 0
        for i in range(found):
            self._next[_section(queries[QUERY_WIDTH * self._queries[i] + QUERY_RESIDUAL])] += 1
        self._divide(found)
        divided: cython.bint = self._next[SECTION_SECONDS] != 0
        place = self._lay_out()
        for i in range(found):
            query = self._queries[i]
            if not divided or self._second.group_of[i] < 0:
                self._write(query, queries[QUERY_WIDTH * query + QUERY_RESIDUAL])
        if divided:
            self._write_seconds()
        return place

    def make_range(
        self, members: cython.int[::1], first: cython.int, count: cython.int
    ) -> cython.int:
        """The list of a state that is reached by a range; its place, or 0 for nothing."""
        i: cython.int
        place: cython.int
        count = self._gather(members, first, count)
        if count == 0:
            return 0
        for i in range(count):
            self._numbers[i] = self.atoms.numbers[
                self.trie.queries[QUERY_WIDTH * self._queries[i] + QUERY_NUMBER]
            ]
        sort_by(self._numbers, self._queries, count)
        place = self._reserve(LIST_QUERIES + SLOW_WIDTH * count)
        self.lists[place + LIST_EPOCH] = 0
        self.lists[place + LIST_RANGED] = count
        self.lists[place + LIST_BOUNDS] = self._keep_bounds(self._numbers, 0, count)
        self.lists[place + LIST_SLOW] = RANGED
        self.lists[place + LIST_GROUPS] = 0
        self.lists[place + LIST_SECONDS] = 0
        for i in range(count):
            self._write_row(place + LIST_QUERIES + SLOW_WIDTH * i, self._queries[i])
        return place

    def copy(self, older: AcceptLists, source: cython.int) -> cython.int:
        """Take a list over from the generation before."""
        i: cython.int
        place: cython.int
        at: cython.int
        ranged: cython.bint = older.lists[source + LIST_SLOW] == RANGED
        count: cython.int = older.lists[source + LIST_SURE]  # or LIST_RANGED
        seconds: cython.int = older.lists[source + LIST_SECONDS]
        length: cython.int = LIST_QUERIES + count + older.lists[source + LIST_GROUPS] + seconds
        if ranged:
            length += (SLOW_WIDTH - 1) * count
        else:
            length += (
                QUICK_WIDTH * older.lists[source + LIST_QUICK]
                + SLOW_WIDTH * older.lists[source + LIST_SLOW]
            )
        place = self._reserve(length)
        for i in range(length):
            self.lists[place + i] = older.lists[source + i]
        if ranged:
            self.lists[place + LIST_BOUNDS] = self._keep_bounds(
                older.bounds, older.lists[source + LIST_BOUNDS], count
            )
        at = place + length - seconds
        while at < place + length:
            count = self.lists[at + SECOND_COUNT]
            self.lists[at + SECOND_BOUNDS] = self._keep_bounds(
                older.bounds, self.lists[at + SECOND_BOUNDS], count
            )
            at += SECOND_QUERIES + SLOW_WIDTH * count
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

    def _divide(self, found: cython.int) -> cython.int:
        """Take those that a second access finds out of the slow ones of so many queries."""
        group: cython.int
        if self._next[SECTION_SLOW] < CROWD_MIN:
            return 0
        self._second.divide(self._queries, found, self.trie.queries)
        for group in range(self._second.groups):
            if self._second.size[group]:
                self._next[SECTION_SECONDS] += (
                    SECOND_QUERIES + SLOW_WIDTH * self._second.size[group]
                )
                self._next[SECTION_SLOW] -= self._second.size[group]
        return 0

    def _write_seconds(self) -> cython.int:
        """The section of what was divided."""
        second: SecondAccess = self._second
        at: cython.int = self._next[SECTION_SECONDS]
        group: cython.int
        count: cython.int
        i: cython.int
        for group in range(second.groups):
            count = second.collect(group)
            if count == 0:
                continue
            self.lists[at + SECOND_POSITION] = second.position[group]
            self.lists[at + SECOND_SYMBOL] = second.symbol[group]
            self.lists[at + SECOND_ATTRIBUTE] = second.attribute[group]
            self.lists[at + SECOND_OPERATOR] = second.operator[group]
            self.lists[at + SECOND_COUNT] = count
            self.lists[at + SECOND_BOUNDS] = self._keep_bounds(second.numbers, 0, count)
            self.lists[at + SECOND_ALIKE] = second.template[group] != 0
            at += SECOND_QUERIES
            for i in range(count):
                self._write_row(at, self._queries[second.members[i]])
                at += SLOW_WIDTH
        return 0

    def _write_row(self, at: cython.int, query: cython.int) -> cython.int:
        """A query with its residual, and what that requires."""
        residual: cython.int = self.trie.queries[QUERY_WIDTH * query + QUERY_RESIDUAL]
        self.lists[at + LISTED_QUERY] = self.trie.answers(query)
        self.lists[at + LISTED_RESIDUAL] = residual
        self.lists[at + LISTED_REQUIRED] = (
            self.records.words[RECORD_REQUIRED - residual] if residual < 0 else 0
        )
        return 0

    def _keep_bounds(
        self, numbers: cython.double[::1], first: cython.int, count: cython.int
    ) -> cython.int:
        """Where so many numbers stand in ``bounds`` from now on."""
        i: cython.int
        place: cython.int = self._bounds_used
        if place + count > len(self.bounds):
            self.bounds = grown(self.bounds, 2 * (place + count))
        for i in range(count):
            self.bounds[place + i] = numbers[first + i]
        self._bounds_used = place + count
        return place

    def _lay_out(self) -> cython.int:
        """Room for as many of each section as ``next`` says, that of seconds by its length; then
        it says where they begin."""
        following: cython.int[::1] = self._next
        sure: cython.int = following[SECTION_SURE]
        quick: cython.int = following[SECTION_QUICK]
        slow: cython.int = following[SECTION_SLOW]
        seconds: cython.int = following[SECTION_SECONDS]
        groups: cython.int = 0
        section: cython.int
        at: cython.int
        for section in range(SECTION_GROUPS, SECTION_SECONDS):
            if following[section]:
                groups += GROUP_QUERIES + GROUPED_WIDTH * following[section]
        at = self._reserve(
            LIST_QUERIES + sure + QUICK_WIDTH * quick + SLOW_WIDTH * slow + groups + seconds
        )
        place: cython.int = at
        self.lists[at + LIST_EPOCH] = 0
        self.lists[at + LIST_SURE] = sure
        self.lists[at + LIST_QUICK] = quick
        self.lists[at + LIST_SLOW] = slow
        self.lists[at + LIST_GROUPS] = groups
        self.lists[at + LIST_SECONDS] = seconds
        following[SECTION_SURE] = at + LIST_QUERIES
        following[SECTION_QUICK] = following[SECTION_SURE] + sure
        following[SECTION_SLOW] = following[SECTION_QUICK] + QUICK_WIDTH * quick
        at = following[SECTION_SLOW] + SLOW_WIDTH * slow
        for section in range(SECTION_GROUPS, SECTION_SECONDS):
            if following[section]:
                groups = following[section]
                self.lists[at + GROUP_POSITION] = section - SECTION_GROUPS
                self.lists[at + GROUP_COUNT] = groups
                self.lists[at + GROUP_EPOCH] = 0
                following[section] = at + GROUP_QUERIES
                at += GROUP_QUERIES + GROUPED_WIDTH * groups
        following[SECTION_SECONDS] = at
        return place

    def _write(self, query: cython.int, residual: cython.int) -> cython.int:
        """Put a query into its section."""
        section: cython.int = _section(residual)
        at: cython.int = self._next[section]
        if section == SECTION_SLOW:
            self._write_row(at, query)
            self._next[section] = at + SLOW_WIDTH
            return 0
        self.lists[at + LISTED_QUERY] = self.trie.answers(query)
        if section == SECTION_SURE:
            self._next[section] = at + 1
        elif section == SECTION_QUICK:
            self.lists[at + LISTED_RESIDUAL] = residual
            self._next[section] = at + QUICK_WIDTH
        else:
            self.lists[at + LISTED_TWIG] = residual >> CODE_SHIFT
            self._next[section] = at + GROUPED_WIDTH
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
    """The section of a query, by what is left to verify."""
    if residual == 0:
        return SECTION_SURE
    if residual < 0:
        return SECTION_SLOW
    if residual & CODE_TWIG:
        return SECTION_GROUPS + (residual & CODE_POSITION)
    return SECTION_QUICK
