# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Locations: at which elements of a message queries are found (the paper's path tuples).

A query whose access path is met at an element is one *hit*, a row of ``element``, ``query`` and
``residual``, in document order; of one element those without a residual first.  What a residual
leaves to verify is asked by whoever needs it (``holds``).
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import grown, ints

if cython.compiled:
    from cython.cimports.yfilter.index.message_view import MessageView
    from cython.cimports.yfilter.index.offers import Offers
    from cython.cimports.yfilter.index.residuals import Residuals
else:
    from yfilter.index.message_view import MessageView
    from yfilter.index.offers import Offers
    from yfilter.index.residuals import Residuals


class Locations(Offers):
    """``begin`` a message, run, ``end``; then there are ``count`` hits."""

    def __init__(self, view: MessageView, residuals: Residuals) -> None:
        super().__init__(view, residuals)
        self.count = 0
        self.element = ints(256)
        self.query = ints(256)
        self.residual = ints(256)
        self._met_element = ints(256)
        self._met_query = ints(256)
        self._met_residual = ints(256)
        self._start = ints(256)

    def begin(self, visits_max: cython.longlong) -> cython.int:
        """A new run."""
        self.count = 0
        self._offered = 0
        self.residuals.begin(visits_max)
        return 0

    def end(self) -> cython.int:
        """In document order."""
        i: cython.int
        place: cython.int
        elements: cython.int = self.view.elements
        if elements + 2 > len(self._start):
            self._start = ints(2 * elements + 2)
        if self.count > len(self.element):
            self.element = ints(2 * self.count)
            self.query = ints(2 * self.count)
            self.residual = ints(2 * self.count)
        for i in range(elements + 1):
            self._start[i] = 0
        for i in range(self.count):
            self._start[self._met_element[i] + 1] += 1
        for i in range(elements):
            self._start[i + 1] += self._start[i]
        for i in range(self.count):
            place = self._start[self._met_element[i]]
            self._start[self._met_element[i]] = place + 1
            self.element[place] = self._met_element[i]
            self.query[place] = self._met_query[i]
            self.residual[place] = self._met_residual[i]
        return self.count

    def visits(self) -> int:
        """What run and residuals have cost so far."""
        visits: int = self.residuals.visits
        return visits

    def holds(self, hit: cython.int) -> cython.bint:
        """Whether the residual of a hit holds, too; yes where that would cost too much."""
        residual: cython.int = self.residual[hit]
        element: cython.int = self.element[hit]
        if residual == 0:
            return True
        if residual > 0:
            return self.residuals.ancestor_holds(residual, element)
        holds: cython.bint = self.residuals.hold(-residual, element)
        self.residuals.operators.gave_up = False
        return holds

    def _take(self, query: cython.int, residual: cython.int, element: cython.int) -> cython.int:
        i: cython.int = self.count
        if i >= len(self._met_element):
            self._met_element = grown(self._met_element, 2 * i)
            self._met_query = grown(self._met_query, 2 * i)
            self._met_residual = grown(self._met_residual, 2 * i)
        self._met_element[i] = element
        self._met_query[i] = query
        self._met_residual[i] = residual
        self.count = i + 1
        return 0
