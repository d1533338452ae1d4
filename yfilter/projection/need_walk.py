# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""NeedWalk: from where needs are found on a message to bound elements and what these want.

The index says at which elements the queries of needs are found (``Index.locate``); they are taken
in document order.  Conditions are decided for all links that are asked for together; what is only
for others is passed over.  Where all links keep an element whole, and nothing around it is
undecided, the walk goes on behind its end.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from typing import TypeAlias

from formats.element_stream import ElementStream
from yfilter.errors import MatchLimitExceeded
from yfilter.index.columns import grown, ints
from yfilter.index.index import Index
from yfilter.projection.need_table import NeedTable

if cython.compiled:
    from cython.cimports.yfilter.index.locations import Locations
    from cython.cimports.yfilter.projection.need_parts import Atom, Binding, Disjunct, Place
else:
    from yfilter.index.locations import Locations
    from yfilter.projection.need_parts import Atom, Binding, Disjunct, Place

VISITS_MAX = 200_000  # elements, hits and conditions looked at, a message

_Mask = int  # of groups or links, any number of bits
_Bits: TypeAlias = "dict[Disjunct, int]"


class OpenBinding:
    """A bound element: ``wanted`` are the groups it wants as far as is known, ``pending`` those
    that it may yet want.  ``outer`` is one around it of the same binding path."""

    binding: Binding
    element: int
    end: int
    outer: OpenBinding | None
    wanted: int
    pending: int
    found: dict[Disjunct, int] | None


def _opened(binding: Binding, element: cython.int, end: cython.int, groups: _Mask) -> OpenBinding:
    # PERF: a message may bind hundreds; a call of the class would cost as much as all the rest.
    opened: OpenBinding = OpenBinding.__new__(OpenBinding)
    opened.binding = binding
    opened.element = element
    opened.end = end
    opened.outer = binding.innermost
    opened.wanted = binding.always & groups
    opened.pending = binding.sometimes & groups
    opened.found = None
    binding.innermost = opened
    return opened


class NeedWalk:
    """``walk`` a message; then ``document`` and ``bound`` are the bound elements, and ``places``
    (those at ``place_element``) where something may be kept, in document order."""

    def __init__(self, table: NeedTable, index: Index) -> None:
        self._table = table
        self._index = index
        self.place_element = ints(256)

    def walk(self, stream: ElementStream, asked: _Mask) -> cython.bint:
        """Which groups bound elements want, for links of a mask; False where that would cost too
        much."""
        elements: cython.int = len(stream)
        self._asked = asked
        self._groups = self._table.asked_of(asked)
        self._visits = 0
        self._pending = 0
        self.bound: list[OpenBinding] = []
        self.places: list[Place] = []
        self._stack: list[OpenBinding] = []
        self._element_end = stream.element_end
        try:
            self._hits = self._index.locate(stream, VISITS_MAX)
        except MatchLimitExceeded:
            self._visits = VISITS_MAX + 1
            return False
        self.document = _opened(self._table.document, -1, elements, self._groups)
        self._enter(self.document)
        self._walk(elements)
        while self._stack:
            self._leave(self._stack.pop())
        self._leave(self.document)
        return self.visits <= VISITS_MAX

    @property
    def visits(self) -> int:
        """What the last walk has cost, as VISITS_MAX counts it."""
        visits: int = self._visits + self._index.locations.visits()
        return visits

    def _walk(self, elements: cython.int) -> cython.int:
        hits: Locations = self._hits
        found: dict[int, Place | Atom] = self._table.found
        hit: cython.int
        element: cython.int
        close: cython.int = elements  # where the innermost bound element ends
        following: cython.int = 0  # the first element that is looked at
        for hit in range(hits.count):
            element = hits.element[hit]
            if element < following:
                continue
            while element >= close:
                self._leave(self._stack.pop())
                close = self._closing(elements)
            what = found[hits.query[hit]]
            if isinstance(what, Place):
                following = max(following, self._look(element, what))
                close = self._closing(elements)
            else:
                following = max(following, self._ask(what, element, hit))
            if self._visits > VISITS_MAX:
                break
        return 0

    def _closing(self, elements: cython.int) -> cython.int:
        if not self._stack:
            return elements
        innermost: OpenBinding = self._stack[len(self._stack) - 1]
        return innermost.end

    def _look(self, element: cython.int, place: Place) -> cython.int:
        """Binds an element; the one before which nothing has to be looked at."""
        binding: Binding | None = place.binding
        following: cython.int = 0
        self._visits += 1
        if place.kept or place.touched:
            if len(self.places) == len(self.place_element):
                self.place_element = grown(self.place_element, 2 * len(self.places))
            self.place_element[len(self.places)] = element
            self.places.append(place)
        if binding is not None and (binding.always | binding.sometimes) & self._groups:
            opened: OpenBinding = _opened(
                binding, element, self._element_end[element], self._groups
            )
            self._stack.append(opened)
            self.bound.append(opened)
            if self._enter(opened):
                return opened.end
        if place.there is not None:
            following = self._ask(place.there, element, -1)
        return following

    def _enter(self, opened: OpenBinding) -> cython.bint:
        """Whether all of it is kept, so that nothing inside has to be looked at."""
        if self._is_whole(opened):
            opened.pending = 0
            return self._pending == 0
        if opened.pending:
            self._pending += 1
        return False

    def _leave(self, opened: OpenBinding) -> None:
        if opened.pending:
            self._pending -= 1
        opened.binding.innermost = opened.outer

    def _ask(self, atom: Atom, element: cython.int, hit: cython.int) -> cython.int:
        """An atom is found, and holds if its hit does; as ``_look``."""
        around: OpenBinding | None
        binding: Binding
        following: cython.int = 0
        is_known: cython.bint = hit < 0
        self._visits += 1
        for binding, disjuncts in atom.asked.items():
            around = binding.innermost
            while around is not None:
                if around.pending:
                    if not is_known:
                        is_known = self._hits.holds(hit)
                        if not is_known:
                            return following
                    if self._hold(disjuncts, around):
                        following = max(following, around.end)
                around = around.outer
        return following

    def _hold(self, disjuncts: _Bits, opened: OpenBinding) -> cython.bint:
        """An atom holds below a bound element; whether nothing inside has to be looked at now."""
        disjunct: Disjunct
        bits: dict[Disjunct, int] = disjuncts
        for disjunct, bit in bits.items():
            self._visits += 1
            group = disjunct.bit
            if not group & opened.pending:
                continue
            if bit != disjunct.whole:
                if opened.found is None:
                    opened.found = {}
                together = opened.found.get(disjunct, 0) | bit
                opened.found[disjunct] = together
                if together != disjunct.whole:
                    continue
            opened.wanted |= group
            opened.pending &= ~group
            is_whole: cython.bint = self._is_whole(opened)
            if is_whole:
                opened.pending = 0
            if not opened.pending:
                self._pending -= 1
                return is_whole and self._pending == 0
        return False

    def _is_whole(self, opened: OpenBinding) -> cython.bint:
        """Whether all links that are asked for keep the whole element."""
        full = opened.wanted & opened.binding.full
        return bool(full) and not self._asked & ~self._table.links_of(full)
