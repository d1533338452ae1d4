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
other.  A comparison stands at an element of known position, or somewhere in a path below one, or
in a path anywhere in the message, however deep in nested paths.

Those whose records differ in nothing but the bound are *alike* and have a group of their own: where
one of them holds, all hold whose bounds say less, so a few are verified and not each.
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
    from yfilter.index.record_pool import POOLED_LENGTH, POOLED_USERS, RecordPool
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
    ANY_ELEMENT = -1
    TRAIL_MAX = 12
    TEMPLATES_MIN = 1024


class SecondAccess:
    """``divide`` a list, then ``collect`` its groups.

    Of each group ``position``, ``symbol`` (0: the element there itself), ``attribute`` and
    ``operator`` of the comparison, and its ``size``: 0, or at least CROWD_MIN; ``position`` is
    POSITION_UNKNOWN for a path anywhere.  ``template``: what its queries have in common but for
    their bounds, 0 where they are not alike.  ``group_of`` a query is -1 where nothing divides it.
    """

    def __init__(self, records: RecordPool, atoms: AtomTable) -> None:
        self.groups = 0
        self.group_of = ints(CROWD_MIN)
        self.position = ints(8)
        self.symbol = ints(8)
        self.attribute = ints(8)
        self.operator = ints(8)
        self.template = ints(8)
        self.size = ints(8)
        self.members = ints(CROWD_MIN)
        self.numbers = doubles(CROWD_MIN)
        self._records = records
        self._atoms = atoms
        self._number_of = ints(CROWD_MIN)  # of each query the bound
        self._template_of = ints(CROWD_MIN)  # and what it has beside that
        self._in_order = ints(CROWD_MIN)  # the queries of groups, group by group
        self._end = ints(8)  # where those of a group end
        self._last = ints(8)  # the bound that a group met last, and how often it was another
        self._changes = ints(8)
        self._known: dict[tuple[int, int, int, int, int], int] = {}  # groups, by what they share
        self._group = 0  # of the comparison that was met last
        # The best comparison of a query so far.
        self._is_counting = False
        self._best = self._best_number = 0
        # The way to the comparison at hand, and to the best: records, and their words for the next.
        self._depth = self._best_depth = 0
        self._records_down = ints(TRAIL_MAX)
        self._places_down = ints(TRAIL_MAX)
        self._best_records = ints(TRAIL_MAX)
        self._best_places = ints(TRAIL_MAX)
        self._templates = RecordPool()
        self._last_template = 0
        self._made = self._different = 0  # how many templates
        self._key = ints(64)

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
                self._template_of[i] = self._made_template()
        self._part_alike(count)
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
        self._templates = RecordPool()  # it is large
        self._last_template = self._made = self._different = 0
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

    def _part_alike(self, count: cython.int) -> cython.int:
        """Give those that are alike, if there are enough, a group of their own."""
        i: cython.int
        group: cython.int
        template: cython.int
        for i in range(count):
            group = self.group_of[i]
            template = self._template_of[i]
            if (
                group < 0
                or template == 0
                or self._templates.words[template + POOLED_USERS] < CROWD_MIN
            ):
                continue
            self._find_group(
                self.position[group],
                self.symbol[group],
                self.attribute[group],
                self.operator[group],
                template,
            )
            self.group_of[i] = self._group
            self.size[self._group] += 1
            self.size[group] -= 1
        return 0

    def _made_template(self) -> cython.int:
        """What a query has beside its bound: the records down to it, without the bound and the
        numbers of records on the way; 0 where hardly any are equal."""
        words: cython.int[::1] = self._records.words
        first: cython.int
        count: cython.int
        level: cython.int
        i: cython.int
        length: cython.int = 0
        for level in range(self._best_depth + 1):
            first = self._best_records[level]
            count = words[first + POOLED_LENGTH]
            if length + count + 2 > len(self._key):
                self._key = grown(self._key, 2 * (length + count + 2))
            self._key[length] = count
            self._key[length + 1] = self._best_places[level] - first
            length += 2
            for i in range(count):
                self._key[length + i] = words[first + i]
            self._key[length + self._best_places[level] - first] = 0
            length += count
        # PERF: nearly always that of the query before.
        template: cython.int = self._last_template
        known: cython.int[::1] = self._templates.words
        if template and known[template + POOLED_LENGTH] == length:
            i = 0
            while i < length and known[template + i] == self._key[i]:
                i += 1
            if i == length:
                known[template + POOLED_USERS] += 1
                self._made += 1
                return template
        if self._different > TEMPLATES_MIN and 2 * self._different > self._made:
            return 0
        self._made += 1
        self._last_template = template = self._templates.acquire(self._key, length)
        self._different += self._templates.words[template + POOLED_USERS] == 1
        return template

    def _begin(self, count: cython.int) -> cython.int:
        """Room for so many queries, and no groups."""
        self.groups = 0
        self._known = {}
        if count > len(self.group_of):
            self.group_of = ints(2 * count)
            self.members = ints(2 * count)
            self.numbers = doubles(2 * count)
            self._number_of = ints(2 * count)
            self._template_of = ints(2 * count)
            self._in_order = ints(2 * count)
        return 0

    def _read(self, record: cython.int) -> cython.int:
        """Meet all comparisons of a record."""
        words: cython.int[::1] = self._records.words
        place: cython.int = record + RECORD_ROWS
        _i: cython.int
        self._depth = 0
        self._records_down[0] = record
        if words[record + RECORD_MODE] != MODE_FIXED:
            return self._read_way(record, 0, False)
        for _i in range(words[record + RECORD_COUNT]):
            self._read_check(place + FIXED_CHECK, words[place + FIXED_POSITION], 0)
            place += FIXED_WIDTH
        return 0

    def _read_way(
        self, record: cython.int, position: cython.int, is_below: cython.bint
    ) -> cython.int:
        """Meet the comparisons of a way down from an element, or of one down to it."""
        words: cython.int[::1] = self._records.words
        steps: cython.int = words[record + RECORD_COUNT]
        step: cython.int
        place: cython.int
        symbol: cython.int
        i: cython.int
        for step in range(steps):
            place = record + words[record + RECORD_ROWS + step]
            # Which ones elements of any name are is not looked up.
            symbol = words[place + WAY_SYMBOL] or ANY_ELEMENT
            if not is_below:
                position = POSITION_UNKNOWN
                if step == steps - 1:
                    position = symbol = 0  # it is the element
            for i in range(words[place + WAY_COUNT]):
                self._read_check(place + WAY_CHECKS + CHECK_WIDTH * i, position, symbol)
        return 0

    def _read_check(
        self, place: cython.int, position: cython.int, symbol: cython.int
    ) -> cython.int:
        """Meet the comparisons of a check."""
        words: cython.int[::1] = self._records.words
        kind: cython.int = words[place + CHECK_KIND]
        if LESS <= kind <= AT_LEAST and symbol != ANY_ELEMENT:
            return self._meet(place, position, symbol)
        if kind not in (CHECK_NESTED, CHECK_ANYWHERE) or self._depth + 1 == TRAIL_MAX:
            return 0
        self._places_down[self._depth] = place + CHECK_A
        self._depth += 1
        self._records_down[self._depth] = words[place + CHECK_A]
        if kind == CHECK_ANYWHERE:
            position = POSITION_UNKNOWN
        self._read_way(words[place + CHECK_A], position, True)
        self._depth -= 1
        return 0

    def _meet(self, place: cython.int, position: cython.int, symbol: cython.int) -> cython.int:
        """Count a comparison, or see whether it is the best of its query."""
        words: cython.int[::1] = self._records.words
        number: cython.int = words[place + CHECK_B]
        level: cython.int
        self._find_group(position, symbol, words[place + CHECK_A], words[place + CHECK_KIND], 0)
        group: cython.int = self._group
        if self._is_counting:
            self._changes[group] += self._last[group] != number
            self._last[group] = number
        elif self._changes[group] >= CROWD_MIN and (
            self._best < 0 or self._changes[group] > self._changes[self._best]
        ):
            self._best = group
            self._best_number = number
            self._places_down[self._depth] = place + CHECK_B
            self._best_depth = self._depth
            for level in range(self._depth + 1):
                self._best_records[level] = self._records_down[level]
                self._best_places[level] = self._places_down[level]
        return 0

    def _find_group(
        self,
        position: cython.int,
        symbol: cython.int,
        attribute: cython.int,
        operator: cython.int,
        template: cython.int,
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
                and self.template[group] == template
            ):
                self._group = group
                return 0
        key = (position, symbol, attribute, operator, template)
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
        self.template[group] = template
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
        self.template = grown(self.template, room)
        self.size = grown(self.size, room)
        self._end = grown(self._end, room)
        self._last = grown(self._last, room)
        self._changes = grown(self._changes, room)
        return 0
