# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Residuals: what is left to verify of a candidate, a query whose access predicate holds.

See residual_rows.py for what a residual is.

A way down is looked for in one pass, whatever the number of ``//``: a bit for each step that can
be at an element, given those above it.  So the elements below are visited once for each nested
path, and not once for each of the ways; and once for each element, where nested paths stand in
nested paths.  Every visit is counted.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from array import array

from yfilter.index.columns import ints

if cython.compiled:
    from cython.cimports.yfilter.index.message_view import NAN, MessageView, further
    from cython.cimports.yfilter.index.record_pool import RecordPool
    from cython.cimports.yfilter.index.symbols import SymbolTable
    from cython.cimports.yfilter.index.twigs import Twigs
    from cython.cimports.yfilter.operators.operator_table import OperatorTable
else:
    from yfilter.index.message_view import NAN, MessageView, further
    from yfilter.index.names_below import ANSWER_PERHAPS
    from yfilter.index.record_pool import RecordPool
    from yfilter.index.residual_rows import (
        CHECK_A,
        CHECK_ANYWHERE,
        CHECK_ATOM,
        CHECK_B,
        CHECK_DIFFERS,
        CHECK_EXISTS,
        CHECK_KIND,
        CHECK_NESTED,
        CHECK_TWIG,
        CHECK_VERIFIED,
        CHECK_WIDTH,
        CODE_ABSOLUTE,
        CODE_DEPTH,
        CODE_SHIFT,
        CODE_TWIG,
        FIXED_CHECK,
        FIXED_POSITION,
        FIXED_WIDTH,
        MODE_BELOW,
        MODE_FIXED,
        POSITION_ABSOLUTE,
        POSITION_SHIFT,
        POSITION_UNKNOWN,
        RECORD_COUNT,
        RECORD_MODE,
        RECORD_ROWS,
        WAY_CHECKS,
        WAY_COUNT,
        WAY_DESCENDANT,
        WAY_SYMBOL,
    )
    from yfilter.index.symbols import SymbolTable
    from yfilter.index.twigs import Twigs
    from yfilter.operators.operator_table import OperatorTable

if not cython.compiled:
    FURTHER_NONE, FURTHER_SOME, FURTHER_ANY = range(3)

STEPS_MAX = 62  # of a way, one bit each
LEVELS_MAX = 8  # of nested paths in nested paths


class Residuals:
    """Verifies candidates of the message that the view is bound to.

    ``visits`` counts the elements looked at, beyond ``visits_max`` every answer is no.
    """

    def __init__(
        self,
        view: MessageView,
        records: RecordPool,
        symbols: SymbolTable,
        twigs: Twigs,
        operators: OperatorTable,
    ) -> None:
        self.view = view
        self.operators = operators
        self.twigs = twigs
        self.records = records
        self.visits = 0
        self.visits_max = 0
        self.number = 0.0
        self.symbols = symbols
        self.exact = self.in_namespace = self.any_namespace = self.symbol_seen = symbols.exact
        self._anywhere: dict[int, bool] = {}  # what is known of CHECK_ANYWHERE, by record
        self._nested: dict[int, bool] = {}  # of CHECK_NESTED in CHECK_NESTED, by record and element
        self.words = records.words
        self._cover(64)

    def begin(self, visits_max: int) -> None:
        """For a new message."""
        self.words = self.records.words
        self.exact = self.symbols.exact
        self.in_namespace = self.symbols.in_namespace
        self.any_namespace = self.symbols.any_namespace
        self.symbol_seen = self.symbols.seen
        self.visits = 0
        self.visits_max = visits_max
        if self._anywhere or self._nested:
            self._anywhere, self._nested = {}, {}
        if self.view.deepest + 3 > self._width:
            self._cover(2 * self.view.deepest)

    def hold(self, record: cython.int, element: cython.int) -> cython.bint:
        """Whether a record holds for an element; ``gave_up`` of the operators: perhaps."""
        if self.words[record + RECORD_MODE] == MODE_FIXED:
            return self._fixed(record, element)
        if self.words[record + RECORD_MODE] == MODE_BELOW:
            return self._found_below(record, element, 0)
        return self._on_path(record, element)

    def ancestor_holds(self, code: cython.int, element: cython.int) -> cython.bint:
        """Whether the one condition of a residual above 0 holds for an element."""
        element = self.ancestor(element, code & CODE_DEPTH, code & CODE_ABSOLUTE)
        if code & CODE_TWIG:
            return self.has_twig(self.twig_row(element, 1), code >> CODE_SHIFT, element, 0)
        return self.view.holds(element, code >> CODE_SHIFT)

    def ancestor(self, element: cython.int, steps: cython.int, absolute: cython.bint) -> cython.int:
        """The ancestor so many steps up, or so many down from the root."""
        if absolute:
            steps = self.view.depth[element] - steps
        for _ in range(steps):
            element = self.view.parent[element]
        return element

    def further(
        self,
        position: cython.int,
        symbol: cython.int,
        attribute: cython.int,
        smallest: cython.bint,
        element: cython.int,
    ) -> cython.int:
        """Set ``number`` to the smallest or the largest number that a second access compares with
        at an element: FURTHER_SOME; FURTHER_NONE where there is none, FURTHER_ANY where that is
        not known."""
        first: cython.int = 0
        end: cython.int = self.view.elements
        found: cython.double
        name: cython.int
        stop: cython.int
        i: cython.int
        if position != POSITION_UNKNOWN:
            element = self.ancestor(
                element, position >> POSITION_SHIFT, position & POSITION_ABSOLUTE
            )
            if symbol == 0:
                self.number = self.view.number(element, attribute, smallest)
                return FURTHER_SOME if self.number == self.number else FURTHER_NONE
            first = element + 1
            end = self.view.end[element]
        name = self._only_name(symbol)
        if name < 0:
            return FURTHER_ANY if self.seen(symbol) else FURTHER_NONE
        self.number = NAN
        i = self._first_of(name, first)
        stop = self.view.position_start[name + 1]
        while i < stop and self.view.positions[i] < end:
            self.visits += 1
            found = self.view.number(self.view.positions[i], attribute, smallest)
            self.number = further(self.number, found, smallest)
            i += 1
        return FURTHER_SOME if self.number == self.number else FURTHER_NONE

    def twig_row(self, element: cython.int, count: cython.int) -> cython.int:
        """Where the bits of an element's twigs begin; -1 if each is to be looked for."""
        walked: cython.longlong = self.twigs.walked
        row: cython.int = self.twigs.row(element, count, self.visits_max - self.visits)
        self.visits += self.twigs.walked - walked
        return row

    def has_twig(
        self, row: cython.int, twig: cython.int, element: cython.int, level: cython.int
    ) -> cython.bint:
        """Whether a twig is found below an element that has this row."""
        known: cython.int
        if row < 0:
            known = self.twigs.answer(twig, element)
            if known != ANSWER_PERHAPS:
                return known
            return self._found_below(self.twigs.record(twig), element, level)
        return (self.twigs.rows[row + (twig >> 6)] >> (twig & 63)) & 1

    def _cover(self, depth: int) -> None:
        self._width = depth + 3
        self._path = ints(self._width)  # to the element at hand
        # One row more for each level of nested paths.
        self._way = ints(self._width * (LEVELS_MAX + 1))
        self._reached = array("Q", bytes(8 * self._width * (LEVELS_MAX + 1)))
        self._passed = array("Q", bytes(8 * self._width * (LEVELS_MAX + 1)))

    def _fixed(self, record: cython.int, element: cython.int) -> cython.bint:
        at: cython.int
        place: cython.int = record + RECORD_ROWS
        for _ in range(self.words[record + RECORD_COUNT]):
            at = self.ancestor(
                element,
                self.words[place + FIXED_POSITION] >> POSITION_SHIFT,
                self.words[place + FIXED_POSITION] & POSITION_ABSOLUTE,
            )
            if not self._check(place + FIXED_CHECK, at, 0):
                return False
            place += FIXED_WIDTH
        return True

    def _on_path(self, record: cython.int, element: cython.int) -> cython.bint:
        depth: cython.int = self.view.depth[element]
        steps: cython.int = self.words[record + RECORD_COUNT]
        descendant: cython.ulonglong = self._descendants(record)
        reached: cython.ulonglong = 0
        passed: cython.ulonglong = 0
        possible: cython.ulonglong
        one: cython.ulonglong = 1
        level: cython.int
        step: cython.int
        self.visits += depth
        for level in range(depth, -1, -1):
            self._path[level] = element
            element = self.view.parent[element]
        for level in range(depth + 1):
            possible = ((reached << 1) & ~descendant) | ((passed << 1) & descendant)
            if level == 0 or descendant & 1:
                possible |= 1
            reached = 0
            for step in range(steps):
                if (possible >> step) & 1 and self._step_holds(record, step, self._path[level], 0):
                    reached |= one << step
            passed |= reached
        return (reached >> (steps - 1)) & 1

    def _found_anywhere(self, record: cython.int) -> cython.bint:
        known = self._anywhere.get(record)
        if known is None:
            known = self._within(record, 0, self.view.elements, 1)
            if not self.operators.gave_up:
                self._anywhere[record] = known
        return known

    def _found_below(
        self, record: cython.int, element: cython.int, level: cython.int
    ) -> cython.bint:
        """Whether a nested path is found below an element."""
        key: cython.longlong = record
        if level == 0:
            return self._within(record, element + 1, self.view.end[element], 1)
        # One that is nested itself is asked for from every element above; once is enough.
        key = key << 32 | element
        known = self._nested.get(key)
        if known is None:
            known = self._within(record, element + 1, self.view.end[element], level + 1)
            if not self.operators.gave_up:
                self._nested[key] = known
        return known

    def _within(
        self, record: cython.int, first: cython.int, end: cython.int, level: cython.int
    ) -> cython.bint:
        """Whether a nested path is found in a run of elements, from the outermost of them on."""
        # PERF: from the elements of the last step's name up; they are few, and most fail at once.
        last: cython.int = self.words[record + RECORD_COUNT] - 1
        place: cython.int = record + self.words[record + RECORD_ROWS + last]
        symbol: cython.int = self.words[place + WAY_SYMBOL]
        name: cython.int
        i: cython.int
        stop: cython.int
        if first >= end:
            return False
        if symbol == 0:
            return self._scanned(record, first, end, level)
        name = self._only_name(symbol)
        if name < 0:
            return self.seen(symbol) and self._scanned(record, first, end, level)
        i = self._first_of(name, first)
        stop = self.view.position_start[name + 1]
        while i < stop and self.view.positions[i] < end:
            self.visits += 1
            if self.visits > self.visits_max:
                return False
            if self._leads_to(record, self.view.depth[first], self.view.positions[i], level):
                return True
            i += 1
        return False

    def _only_name(self, symbol: cython.int) -> cython.int:
        """The name of the message that a symbol accepts, if it is of one name and that is there;
        else -1."""
        name: cython.int = self.symbol_seen[symbol]
        if name >= self.view.names or self.exact[self.view.label[name]] != symbol:
            return -1
        return name

    def _first_of(self, name: cython.int, first: cython.int) -> cython.int:
        """Where among the positions of a name the elements from one on begin."""
        low: cython.int = self.view.position_start[name]
        high: cython.int = self.view.position_start[name + 1]
        middle: cython.int
        while low < high:
            middle = (low + high) >> 1
            if self.view.positions[middle] < first:
                low = middle + 1
            else:
                high = middle
        return low

    def _leads_to(
        self,
        record: cython.int,
        top: cython.int,
        target: cython.int,
        level: cython.int,
    ) -> cython.bint:
        """Whether a nested path that begins at the depth ``top`` leads to an element."""
        last: cython.int = self.words[record + RECORD_COUNT] - 1
        descendant: cython.ulonglong
        reached: cython.ulonglong = 0
        passed: cython.ulonglong = 0
        possible: cython.ulonglong
        one: cython.ulonglong = 1
        depth: cython.int = self.view.depth[target]
        row: cython.int = level * self._width
        at: cython.int
        step: cython.int
        if last == 0:
            if (
                depth > top
                and not self.words[record + self.words[record + RECORD_ROWS] + WAY_DESCENDANT]
            ):
                return False
            return self._step_holds(record, 0, target, level)
        if depth - top < last or not self._step_holds(record, last, target, level):
            return False
        descendant = self._descendants(record)
        at = target
        for step in range(depth - top + 1):
            self._way[row + depth - step] = at
            at = self.view.parent[at]
        self.visits += depth - top
        for at in range(top, depth):
            possible = ((reached << 1) & ~descendant) | ((passed << 1) & descendant)
            if at == top or descendant & 1:
                possible |= 1
            reached = 0
            for step in range(last):
                if (possible >> step) & 1 and self._step_holds(
                    record, step, self._way[row + at], level
                ):
                    reached |= one << step
            passed |= reached
        if (descendant >> last) & 1:
            return (passed >> (last - 1)) & 1
        return (reached >> (last - 1)) & 1

    def seen(self, symbol: cython.int) -> cython.bint:
        """Whether the message has an element or attribute name that a symbol accepts."""
        label: cython.int
        name: cython.int = self.symbol_seen[symbol]
        if name >= self.view.names:
            return False
        label = self.view.label[name]
        return (
            self.exact[label] == symbol
            or self.in_namespace[label] == symbol
            or self.any_namespace[label] == symbol
        )

    def _scanned(
        self, record: cython.int, first: cython.int, end: cython.int, level: cython.int
    ) -> cython.bint:
        steps: cython.int = self.words[record + RECORD_COUNT]
        descendant: cython.ulonglong = self._descendants(record)
        possible: cython.ulonglong
        reached: cython.ulonglong
        passed: cython.ulonglong
        one: cython.ulonglong = 1
        child: cython.int = first
        top: cython.int = self.view.depth[first]
        row: cython.int = level * self._width
        at: cython.int
        step: cython.int
        self._reached[row + top] = 0
        self._passed[row + top] = 0
        while child < end:
            self.visits += 1
            if self.visits > self.visits_max:
                return False
            at = row + self.view.depth[child]  # what is known above the child
            possible = ((self._reached[at] << 1) & ~descendant) | (
                (self._passed[at] << 1) & descendant
            )
            if at == row + top or descendant & 1:
                possible |= 1
            reached = 0
            for step in range(steps):
                if (possible >> step) & 1 and self._step_holds(record, step, child, level):
                    reached |= one << step
            if (reached >> (steps - 1)) & 1:
                return True
            passed = self._passed[at] | reached
            self._reached[at + 1] = reached
            self._passed[at + 1] = passed
            possible = ((reached << 1) & ~descendant) | ((passed << 1) & descendant)
            if possible or descendant & 1:
                child += 1
            else:
                child = self.view.end[child]
        return False

    def _descendants(self, record: cython.int) -> cython.ulonglong:
        """A bit for each step that is a descendant."""
        one: cython.ulonglong = 1
        found: cython.ulonglong = 0
        step: cython.int
        for step in range(self.words[record + RECORD_COUNT]):
            if self.words[record + self.words[record + RECORD_ROWS + step] + WAY_DESCENDANT]:
                found |= one << step
        return found

    def _step_holds(
        self, record: cython.int, step: cython.int, element: cython.int, level: cython.int
    ) -> cython.bint:
        place: cython.int = record + self.words[record + RECORD_ROWS + step]
        i: cython.int
        if not self._accepts(self.words[place + WAY_SYMBOL], element):
            return False
        for i in range(self.words[place + WAY_COUNT]):
            if not self._check(place + WAY_CHECKS + CHECK_WIDTH * i, element, level):
                return False
        return True

    def _check(self, place: cython.int, element: cython.int, level: cython.int) -> cython.bint:
        kind: cython.int = self.words[place + CHECK_KIND]
        first: cython.int = self.words[place + CHECK_A]
        second: cython.int = self.words[place + CHECK_B]
        self.visits += 1
        if kind == CHECK_ATOM:
            return self.view.holds(element, first)
        if kind == CHECK_TWIG:
            return self.has_twig(self.twig_row(element, 1), first, element, level)
        if kind == CHECK_NESTED:
            return self._found_below(first, element, level)
        if kind == CHECK_ANYWHERE:
            return self._found_anywhere(first)
        if kind == CHECK_VERIFIED:
            return self._verified(first, element)
        if kind == CHECK_EXISTS:
            return self.view.exists(element, first)
        if kind == CHECK_DIFFERS:
            return self.view.differs(element, first, second)
        return self.view.compares(element, first, kind, self.view.atoms.numbers[second])

    def _verified(self, operator: cython.int, element: cython.int) -> cython.bint:
        answer: cython.bint = self.operators.holds(operator, element)
        self.visits += self.operators.visits
        return answer

    def _accepts(self, symbol: cython.int, element: cython.int) -> cython.bint:
        label: cython.int
        if symbol == 0:
            return True
        label = self.view.label[self.view.name[element]]
        return (
            self.exact[label] == symbol
            or self.in_namespace[label] == symbol
            or self.any_namespace[label] == symbol
        )
