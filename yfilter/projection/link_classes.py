# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""LinkClasses: of up to 64 links those that keep the same of a message, and what that is.

A mask on an element or attribute is a set of links that keep it.  Links that no mask tells apart
are one class; the lowest of its bits stands for it.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from array import array

from yfilter.index.columns import grown, ints

LINKS_AT_ONCE = 64  # bits of a word


class LinkClasses:
    """``begin`` with links, ``split`` by each mask there is, then ``take`` what each class keeps.

    Of a class by its place: ``links``, and a list from ``heads`` on by ``following``: ``element``
    and ``kind`` as a StreamSelection takes them.
    """

    def __init__(self) -> None:
        self.links = array("Q", bytes(8 * LINKS_AT_ONCE))
        self.heads = ints(LINKS_AT_ONCE)
        self._tails = ints(LINKS_AT_ONCE)
        self.element = ints(256)
        self.kind = ints(256)
        self.following = ints(256)

    def begin(self, links: cython.ulonglong) -> cython.int:
        """All links are one class."""
        place: cython.Py_ssize_t
        self._all = links
        self.links[0] = links
        self.count = 1
        self._taken = 0
        for place in range(64):
            self.heads[place] = -1
        return 0

    def split(self, links: cython.ulonglong) -> cython.int:
        """Links that keep something are of other classes than those that do not."""
        place: cython.Py_ssize_t
        both: cython.ulonglong
        if not links or links == self._all:
            return 0
        for place in range(self.count):
            both = self.links[place] & links
            if both and both != self.links[place]:
                self.links[self.count] = self.links[place] & ~links
                self.links[place] = both
                self.count += 1
        return 0

    def taker(self, place: cython.Py_ssize_t) -> cython.ulonglong:
        """The bit that stands for a class."""
        return self.links[place] & (~self.links[place] + 1)

    def take(
        self,
        element: cython.int,
        kept: cython.ulonglong,
        values: cython.ulonglong,
        wholes: cython.ulonglong,
    ) -> cython.int:
        """An element, behind all others: by the links that keep it, with all below it but for
        attributes, or with all below it."""
        place: cython.Py_ssize_t
        taker: cython.ulonglong
        for place in range(self.count):
            taker = self.taker(place)
            if kept & taker:
                self._append(place, element, 2 if wholes & taker else 1 if values & taker else 0)
        return 0

    def _append(
        self, place: cython.Py_ssize_t, element: cython.int, kind: cython.int
    ) -> cython.int:
        at: cython.int = self._taken
        if at == len(self.element):
            self.element = grown(self.element, 2 * at)
            self.kind = grown(self.kind, 2 * at)
            self.following = grown(self.following, 2 * at)
        self.element[at] = element
        self.kind[at] = kind
        self.following[at] = -1
        if self.heads[place] < 0:
            self.heads[place] = at
        else:
            self.following[self._tails[place]] = at
        self._tails[place] = at
        self._taken += 1
        return 0
