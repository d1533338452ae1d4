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
        LISTED_RESIDUAL,
        LISTED_TWIG,
        QUICK_WIDTH,
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
    from yfilter.index.residuals import FURTHER_ANY, FURTHER_SOME, Residuals


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
            if answer == FURTHER_SOME:
                self._take_satisfied(
                    at + SECOND_QUERIES,
                    self._lists[at + SECOND_BOUNDS],
                    count,
                    self.residuals.number,
                    operator,
                    element,
                )
            elif answer == FURTHER_ANY:
                self._take_rows(
                    at + SECOND_QUERIES, at + SECOND_QUERIES + SLOW_WIDTH * count, element
                )
            at += SECOND_QUERIES + SLOW_WIDTH * count
        return 0

    def _take_range(self, place: cython.int, offer: cython.int) -> cython.int:
        """Those of a ranged list whose number compares so with the message's."""
        return self._take_satisfied(
            place + LIST_QUERIES,
            self._lists[place + LIST_BOUNDS],
            self._lists[place + LIST_RANGED],
            self._number[offer],
            self._operator[offer],
            self._element[offer],
        )

    def _take_satisfied(
        self,
        at: cython.int,
        bounds: cython.int,
        count: cython.int,
        number: cython.double,
        operator: cython.int,
        element: cython.int,
    ) -> cython.int:
        """Of so many rows in the order of their bounds those that a number satisfies."""
        bound: cython.int = _first_bound(
            self._bounds, bounds, count, number, operator in (LESS, AT_LEAST)
        )
        # Number < bound, number <= bound; else the other way round.
        low: cython.int = bound if operator <= AT_MOST else 0
        high: cython.int = count if operator <= AT_MOST else bound
        self.residuals.visits += 1
        return self._take_rows(at + SLOW_WIDTH * low, at + SLOW_WIDTH * high, element)

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
