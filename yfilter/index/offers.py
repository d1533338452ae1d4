# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Offers: what a run meets, accept lists at elements, for whoever makes something of them.

``Candidates`` finds which queries hold, each once a message; ``Locations`` finds at which elements.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import doubles, grown, ints

if cython.compiled:
    from cython.cimports.yfilter.index.accept_lists import AcceptLists
    from cython.cimports.yfilter.index.message_view import MessageView
    from cython.cimports.yfilter.index.residuals import Residuals
else:
    from yfilter.index.accept_lists import (
        GROUP_COUNT,
        GROUP_POSITION,
        GROUP_QUERIES,
        GROUPED_WIDTH,
        LIST_BOUNDS,
        LIST_GROUPS,
        LIST_QUERIES,
        LIST_QUICK,
        LIST_RANGED,
        LIST_SECONDS,
        LIST_SLOW,
        LIST_SURE,
        LISTED_QUERY,
        LISTED_REQUIRED,
        LISTED_RESIDUAL,
        LISTED_TWIG,
        QUICK_WIDTH,
        SECOND_ALIKE,
        SECOND_ATTRIBUTE,
        SECOND_BOUNDS,
        SECOND_COUNT,
        SECOND_OPERATOR,
        SECOND_POSITION,
        SECOND_QUERIES,
        SECOND_SYMBOL,
        SLOW_WIDTH,
        AcceptLists,
    )
    from yfilter.index.atoms import AT_LEAST, AT_MOST, LESS
    from yfilter.index.message_view import MessageView
    from yfilter.index.residual_rows import CODE_SHIFT, CODE_TWIG, REQUIRED_ATOM, REQUIRED_SHIFT
    from yfilter.index.residuals import FURTHER_NONE, FURTHER_SOME, Residuals


class Offers:
    """``offer`` a list, then ``settle`` all that were offered."""

    def __init__(self, view: MessageView, residuals: Residuals) -> None:
        self.view = view
        self.residuals = residuals
        self._touched = 0
        self._offered = 0
        self._place = ints(256)
        self._element = ints(256)
        self._operator = ints(256)
        self._number = doubles(256)
        self._lists = self._place
        self._bounds = self._number
        self._low = self._high = 0  # of the rows that a number satisfies

    def offer(
        self,
        place: cython.int,
        element: cython.int,
        operator: cython.int,
        number: cython.double,
    ) -> cython.int:
        """A list that is accepted at an element; ``operator`` above 0: by a range."""
        i: cython.int = self._offered
        if i >= len(self._place):
            self._place = grown(self._place, 2 * i)
            self._element = grown(self._element, 2 * i)
            self._operator = grown(self._operator, 2 * i)
            self._number = grown(self._number, 2 * i)
        self._place[i] = place
        self._element[i] = element
        self._operator[i] = operator
        self._number[i] = number
        self._offered = i + 1
        return 0

    def settle(self, accepts: AcceptLists) -> cython.int:
        """Take all lists offered."""
        touched: cython.int = 0
        bound: cython.int
        i: cython.int
        self._lists = accepts.lists
        self._bounds = accepts.bounds
        # PERF: loads that nothing waits for, so that the lists are in the cache.
        for i in range(self._offered):
            touched ^= self._lists[self._place[i]]
        for i in range(self._offered):
            if self._operator[i] > 0:
                bound = (
                    self._lists[self._place[i] + LIST_BOUNDS]
                    + self._lists[self._place[i] + LIST_RANGED] // 2
                )
                touched ^= accepts.bounds[bound] > 0
        self._touched = touched
        for i in range(self._offered):
            if self._operator[i] > 0:
                self._take_range(self._place[i], i)
            else:
                self._take_list(self._place[i], self._element[i])
        self._offered = 0
        return 0

    def is_any_wanted(self) -> cython.bint:
        """Whether there is something left to look for."""
        return True

    def is_possible(self, required: cython.int) -> cython.bint:
        """Whether the message contains what a residual requires."""
        if required & REQUIRED_ATOM:
            return self.view.has_atom(required >> REQUIRED_SHIFT)
        return required == 0 or self.residuals.seen(required >> REQUIRED_SHIFT)

    def _take(self, query: cython.int, residual: cython.int, element: cython.int) -> cython.int:
        """A query that is met at an element, and what is left of it to verify."""
        raise NotImplementedError

    def _take_list(self, place: cython.int, element: cython.int) -> cython.int:
        """The queries of a list at an element."""
        self.residuals.visits += 1 + (self._lists[place + LIST_SURE] >> 3)
        self._take_sure(place, element)
        return self._take_unsure(place, element)

    def _take_sure(self, place: cython.int, element: cython.int) -> cython.int:
        """Those of a list that leave nothing to verify."""
        at: cython.int = place + LIST_QUERIES
        end: cython.int = at + self._lists[place + LIST_SURE]
        while at < end:
            self._take(self._lists[at + LISTED_QUERY], 0, element)
            at += 1
        return 0

    def _take_unsure(self, place: cython.int, element: cython.int) -> cython.int:
        """The others: with an equality of an ancestor, with a record, and those with a twig."""
        at: cython.int = place + LIST_QUERIES + self._lists[place + LIST_SURE]
        end: cython.int = at + QUICK_WIDTH * self._lists[place + LIST_QUICK]
        code: cython.int
        count: cython.int
        twig: cython.int
        _i: cython.int
        while at < end:
            self._take(self._lists[at + LISTED_QUERY], self._lists[at + LISTED_RESIDUAL], element)
            at += QUICK_WIDTH
        end = at + SLOW_WIDTH * self._lists[place + LIST_SLOW]
        self._take_rows(at, end, element)
        at = end
        end = at + self._lists[place + LIST_GROUPS]
        while at < end:
            code = CODE_TWIG | self._lists[at + GROUP_POSITION]
            count = self._lists[at + GROUP_COUNT]
            at += GROUP_QUERIES
            for _i in range(count):
                twig = self._lists[at + LISTED_TWIG]
                self._take(self._lists[at + LISTED_QUERY], twig << CODE_SHIFT | code, element)
                at += GROUPED_WIDTH
        return self._take_seconds(at, at + self._lists[place + LIST_SECONDS], element)

    def _take_seconds(self, at: cython.int, end: cython.int, element: cython.int) -> cython.int:
        """Those whose second access holds, too."""
        count: cython.int
        rows: cython.int
        answer: cython.int
        operator: cython.int
        while at < end:
            count = self._lists[at + SECOND_COUNT]
            operator = self._lists[at + SECOND_OPERATOR]
            answer = self.residuals.further(
                self._lists[at + SECOND_POSITION],
                self._lists[at + SECOND_SYMBOL],
                self._lists[at + SECOND_ATTRIBUTE],
                operator <= AT_MOST,
                element,
            )
            self._low, self._high = 0, count
            if answer == FURTHER_SOME:
                self._satisfy(
                    self._lists[at + SECOND_BOUNDS], count, self.residuals.number, operator
                )
            rows = at + SECOND_QUERIES
            if answer == FURTHER_NONE or self._low == self._high:
                pass
            elif self._lists[at + SECOND_ALIKE]:
                self._take_alike(
                    rows + SLOW_WIDTH * self._low,
                    rows + SLOW_WIDTH * self._high,
                    operator <= AT_MOST,
                    element,
                )
            else:
                self._take_rows(
                    rows + SLOW_WIDTH * self._low, rows + SLOW_WIDTH * self._high, element
                )
            at = rows + SLOW_WIDTH * count
        return 0

    def _take_alike(
        self, at: cython.int, end: cython.int, is_below: cython.bint, element: cython.int
    ) -> cython.int:
        """Of rows that differ in their bounds only those that hold: all up to one, or, where the
        value is to be below the bounds, all from one on."""
        row: cython.int
        holding: cython.int = 0  # so many at the end where the bounds say least
        possible: cython.int = (end - at) // SLOW_WIDTH
        tried: cython.int = possible - 1  # nearly always all of them
        if not self.is_possible(self._lists[at + LISTED_REQUIRED]):
            return 0
        while holding < possible:
            row = end - SLOW_WIDTH * (tried + 1) if is_below else at + SLOW_WIDTH * tried
            self.residuals.visits += 1
            if self._held(
                self._lists[row + LISTED_QUERY], -self._lists[row + LISTED_RESIDUAL], element
            ):
                holding = tried + 1
            else:
                possible = tried
            if self.residuals.operators.gave_up:
                self.residuals.operators.gave_up = False
                return self._take_rows(at, end, element)
            tried = (holding + possible) >> 1
        if is_below:
            return self._take_held(end - SLOW_WIDTH * holding, end, element)
        return self._take_held(at, at + SLOW_WIDTH * holding, element)

    def _held(self, _query: cython.int, record: cython.int, element: cython.int) -> cython.bint:
        """Whether the record of a query holds for an element; perhaps, where it was given up."""
        return self.residuals.hold(record, element)

    def _take_range(self, place: cython.int, offer: cython.int) -> cython.int:
        """Those of a ranged list whose number compares so with the message's."""
        at: cython.int = place + LIST_QUERIES
        self._satisfy(
            self._lists[place + LIST_BOUNDS],
            self._lists[place + LIST_RANGED],
            self._number[offer],
            self._operator[offer],
        )
        return self._take_rows(
            at + SLOW_WIDTH * self._low, at + SLOW_WIDTH * self._high, self._element[offer]
        )

    def _satisfy(
        self, bounds: cython.int, count: cython.int, number: cython.double, operator: cython.int
    ) -> cython.int:
        """Set ``_low`` and ``_high`` to where, of so many bounds in order, those are that a number
        satisfies."""
        bound: cython.int = _first_bound(
            self._bounds, bounds, count, number, operator in (LESS, AT_LEAST)
        )
        # Number < bound, number <= bound; else the other way round.
        self._low = bound if operator <= AT_MOST else 0
        self._high = count if operator <= AT_MOST else bound
        self.residuals.visits += 1
        return 0

    def _take_held(self, at: cython.int, end: cython.int, element: cython.int) -> cython.int:
        """Rows that leave nothing to verify."""
        self.residuals.visits += (end - at) // (8 * SLOW_WIDTH)
        while at < end:
            self._take(self._lists[at + LISTED_QUERY], 0, element)
            at += SLOW_WIDTH
        return 0

    def _take_rows(self, at: cython.int, end: cython.int, element: cython.int) -> cython.int:
        """The rows of a slow section, a second or a ranged list, from one up to before another."""
        self.residuals.visits += (end - at) // (8 * SLOW_WIDTH)
        while at < end:
            self._take(self._lists[at + LISTED_QUERY], self._lists[at + LISTED_RESIDUAL], element)
            at += SLOW_WIDTH
        return 0


@cython.cfunc
@cython.exceptval(check=False)
def _first_bound(
    column: cython.double[::1],
    start: cython.int,
    count: cython.int,
    number: cython.double,
    above: cython.bint,
) -> cython.int:
    """The first of ascending bounds that is above a number, or that is not below it."""
    low: cython.int = 0
    high: cython.int = count
    middle: cython.int
    while low < high:
        middle = (low + high) >> 1
        if column[start + middle] < number or (above and column[start + middle] == number):
            low = middle + 1
        else:
            high = middle
    return low
