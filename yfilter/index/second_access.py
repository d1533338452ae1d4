# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Second access: a crowded accept list divided by another comparison of its queries (seed 003, 4).

Where very many queries share the equality that finds them, each would be looked at for the rest.
Those of a list that compare the same value with a number, each with a bound of its own, are put in
order of their bounds, so that a value finds exactly those that it satisfies::

    /a[@s = "A"]/b[@n > 1]      list of /a[@s = "A"]/b      second  @n > of the element
    /a[@s = "A"]/b[@n > 2]                                  bounds  1  2
    /a[@s = "A"]/b[c/@m < 5]                                second  @m < of a c below
                                                            bounds  5

That a comparison holds is necessary for its query and no more: what is taken is verified as any
other.  A comparison stands at an element of known position, or in the last step of a path below
one, or of a path anywhere in the message.
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
else:
    from yfilter.index.atoms import AT_LEAST, LESS, AtomTable
    from yfilter.index.record_pool import RecordPool
    from yfilter.index.residual_rows import (
        CHECK_A,
        CHECK_ANYWHERE,
        CHECK_B,
        CHECK_KIND,
        CHECK_NESTED,
        CHECK_WIDTH,
        FIXED_CHECK,
        FIXED_POSITION,
        FIXED_WIDTH,
        MODE_FIXED,
        POSITION_UNKNOWN,
        RECORD_COUNT,
        RECORD_MODE,
        RECORD_ROWS,
        WAY_CHECKS,
        WAY_COUNT,
        WAY_SYMBOL,
    )
    from yfilter.index.sorting import sort_by
    from yfilter.index.trie import QUERY_RESIDUAL, QUERY_WIDTH

if not cython.compiled:
    CROWD_MIN = 64


class SecondAccess:
    """``divide`` a list, then ``collect`` its groups.

    Of each group ``position``, ``symbol`` (0: the element there itself), ``attribute`` and
    ``operator`` of the comparison, and its ``size``: 0, or at least CROWD_MIN; ``position`` is
    POSITION_UNKNOWN for a path anywhere.  ``group_of`` a query is -1 where nothing divides it.
    """

    def __init__(self, records: RecordPool, atoms: AtomTable) -> None:
        self.groups = 0
        self.group_of = ints(CROWD_MIN)
        self.position = ints(8)
        self.symbol = ints(8)
        self.attribute = ints(8)
        self.operator = ints(8)
        self.size = ints(8)
        self.members = ints(CROWD_MIN)
        self.numbers = doubles(CROWD_MIN)
        self._records = records
        self._atoms = atoms
        self._number_of = ints(CROWD_MIN)  # of each query the bound
        self._in_order = ints(CROWD_MIN)  # the queries of groups, group by group
        self._end = ints(8)  # where those of a group end
        self._last = ints(8)  # the bound that a group met last, and how often it was another
        self._changes = ints(8)
        self._known: dict[tuple[int, int, int, int], int] = {}  # groups, by their comparisons
        self._group = 0  # of the comparison that was met last
        # The best comparison of a query so far.
        self._is_counting = False
        self._best = self._best_number = 0

    def divide(
        self, queries: cython.int[::1], count: cython.int, rows: cython.int[::1]
    ) -> cython.int:
        """Find the groups of so many queries; ``rows`` are those of the trie.

        Of several comparisons of a query the one counts whose bounds differ most in the list.
        """
        i: cython.int
        residual: cython.int
        group: cython.int
        following: cython.int = 0
        self._begin(count)
        self._is_counting = True
        for i in range(count):
            residual = rows[QUERY_WIDTH * queries[i] + QUERY_RESIDUAL]
            if residual < 0:
                self._read(-residual)
        self._is_counting = False
        for i in range(count):
            self._best = -1
            residual = rows[QUERY_WIDTH * queries[i] + QUERY_RESIDUAL]
            if residual < 0:
                self._read(-residual)
            self.group_of[i] = self._best
            if self._best >= 0:
                self.size[self._best] += 1
                self._number_of[i] = self._best_number
        for group in range(self.groups):
            if self.size[group] < CROWD_MIN:
                self.size[group] = 0
            self._end[group] = following
            following += self.size[group]
        for i in range(count):
            group = self.group_of[i]
            if group >= 0 and self.size[group] == 0:
                self.group_of[i] = -1
            elif group >= 0:
                self._in_order[self._end[group]] = i
                self._end[group] += 1
        return 0

    def collect(self, group: cython.int) -> cython.int:
        """Set ``members`` and ``numbers`` to the places of a group's queries and their bounds, in
        order of the bounds; how many there are."""
        i: cython.int
        count: cython.int = self.size[group]
        for i in range(count):
            self.members[i] = self._in_order[self._end[group] - count + i]
            self.numbers[i] = self._atoms.numbers[self._number_of[self.members[i]]]
        sort_by(self.numbers, self.members, count)
        return count

    def _begin(self, count: cython.int) -> cython.int:
        """Room for so many queries, and no groups."""
        self.groups = 0
        self._known = {}
        if count > len(self.group_of):
            self.group_of = ints(2 * count)
            self.members = ints(2 * count)
            self.numbers = doubles(2 * count)
            self._number_of = ints(2 * count)
            self._in_order = ints(2 * count)
        return 0

    def _read(self, record: cython.int) -> cython.int:
        """Meet all comparisons of a record."""
        words: cython.int[::1] = self._records.words
        place: cython.int = record + RECORD_ROWS
        position: cython.int
        nested: cython.int
        kind: cython.int
        _i: cython.int
        if words[record + RECORD_MODE] != MODE_FIXED:
            return self._read_last_step(record, 0, False)  # it is the element
        for _i in range(words[record + RECORD_COUNT]):
            kind = words[place + FIXED_CHECK + CHECK_KIND]
            position = words[place + FIXED_POSITION]
            if kind in (CHECK_NESTED, CHECK_ANYWHERE):
                nested = words[place + FIXED_CHECK + CHECK_A]
                if kind == CHECK_ANYWHERE:
                    position = POSITION_UNKNOWN
                self._read_last_step(nested, position, True)
            else:
                self._meet(place + FIXED_CHECK, position, 0)
            place += FIXED_WIDTH
        return 0

    def _read_last_step(
        self, record: cython.int, position: cython.int, is_below: cython.bint
    ) -> cython.int:
        """Meet the comparisons of the last step of a way."""
        words: cython.int[::1] = self._records.words
        last: cython.int = record + RECORD_ROWS + words[record + RECORD_COUNT] - 1
        place: cython.int = record + words[last]
        symbol: cython.int = words[place + WAY_SYMBOL]
        i: cython.int
        if is_below and symbol == 0:
            return 0  # an element of any name: which ones they are is not looked up
        for i in range(words[place + WAY_COUNT]):
            self._meet(place + WAY_CHECKS + CHECK_WIDTH * i, position, symbol if is_below else 0)
        return 0

    def _meet(self, place: cython.int, position: cython.int, symbol: cython.int) -> cython.int:
        """Count a check, if it is a comparison, or see whether it is the best of its query."""
        words: cython.int[::1] = self._records.words
        number: cython.int = words[place + CHECK_B]
        if not LESS <= words[place + CHECK_KIND] <= AT_LEAST:
            return 0
        self._find_group(position, symbol, words[place + CHECK_A], words[place + CHECK_KIND])
        group: cython.int = self._group
        if self._is_counting:
            self._changes[group] += self._last[group] != number
            self._last[group] = number
        elif self._changes[group] >= CROWD_MIN and (
            self._best < 0 or self._changes[group] > self._changes[self._best]
        ):
            self._best = group
            self._best_number = number
        return 0

    def _find_group(
        self,
        position: cython.int,
        symbol: cython.int,
        attribute: cython.int,
        operator: cython.int,
    ) -> cython.int:
        """Set ``_group`` to that of a comparison, made if there is none."""
        group: cython.int
        # PERF: nearly always one of the first, which a tuple for the key would cost more than.
        for group in range(min(self.groups, 4)):
            if (
                self.position[group] == position
                and self.symbol[group] == symbol
                and self.attribute[group] == attribute
                and self.operator[group] == operator
            ):
                self._group = group
                return 0
        key = (position, symbol, attribute, operator)
        group = self._known.setdefault(key, self.groups)
        self._group = group
        if group < self.groups:
            return 0
        if group == len(self.size):
            self._grow(2 * group)
        self.position[group] = position
        self.symbol[group] = symbol
        self.attribute[group] = attribute
        self.operator[group] = operator
        self.size[group] = 0
        self._last[group] = -1
        self._changes[group] = 0
        self.groups = group + 1
        return 0

    def _grow(self, room: cython.int) -> cython.int:
        self.position = grown(self.position, room)
        self.symbol = grown(self.symbol, room)
        self.attribute = grown(self.attribute, room)
        self.operator = grown(self.operator, room)
        self.size = grown(self.size, room)
        self._end = grown(self._end, room)
        self._last = grown(self._last, room)
        self._changes = grown(self._changes, room)
        return 0
