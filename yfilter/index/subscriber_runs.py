# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""SubscriberRuns: the registrations of each query as a run of numbers.

What is read for every match of every message, so that it is no object::

    first of a query    0: nobody   n > 0: registration n alone   -p: the run at place p
    run at p            count << RUN_SHIFT | b, n0 n1 n2 …                in a block of 2^b numbers

A short run is one cache miss: its length stands before it, and a block of up to 16 numbers begins
at a multiple of its size, so that it lies in one line.  A block that is given up is used again for
a run of its size.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from array import array

from yfilter.index.columns import grown, ints

if not cython.compiled:
    RUN_BITS, RUN_SHIFT = 31, 5

_BITS_MIN = 2
_LINE = 16  # numbers in a cache line

_ZERO = array("i", [0])


class SubscriberRuns:
    """``add`` and ``remove`` registrations; ``collect`` those of many queries.  All are above 0."""

    def __init__(self) -> None:
        self._first = ints(64)
        self._runs = ints(64)
        self._used = _LINE
        self._free: dict[int, list[int]] = {}  # blocks by their bits
        self._places = ints(1024)

    def add(self, query: cython.int, registration: cython.int) -> cython.int:
        """One more registration of a query."""
        first: cython.int
        place: cython.int
        count: cython.int
        if query >= len(self._first):
            self._first = grown(self._first, query + query // 2 + 8)
        first = self._first[query]
        if first == 0:
            self._first[query] = registration
            return 0
        if first > 0:
            place = self._take(_BITS_MIN)
            self._runs[place] += 1 << RUN_SHIFT
            self._runs[place + 1] = first
        else:
            place = -first
        count = self._runs[place] >> RUN_SHIFT
        if count + 1 == 1 << (self._runs[place] & RUN_BITS):
            place = self._moved(place)
        self._runs[place] += 1 << RUN_SHIFT
        self._runs[place + 1 + count] = registration
        self._first[query] = -place
        return 0

    def remove(self, query: cython.int, registration: cython.int) -> cython.int:
        """Take out one that was added; how many of the query are left, at least."""
        i: cython.int
        place: cython.int = -self._first[query]
        last: cython.int
        if place < 0:
            self._first[query] = 0
            return 0  # the only one
        i = place + 1
        last = place + (self._runs[place] >> RUN_SHIFT)
        while self._runs[i] != registration:
            i += 1
        self._runs[i] = self._runs[last]
        self._runs[place] -= 1 << RUN_SHIFT
        if self._runs[place] >> RUN_SHIFT == 1:
            self._first[query] = self._runs[place + 1]
            self._give_up(place, self._runs[place] & RUN_BITS)
        return 1

    def of(self, query: cython.int) -> list[int]:
        """The registrations of one query."""
        if query >= len(self._first) or self._first[query] == 0:
            return []
        first: cython.int = self._first[query]
        if first > 0:
            return [first]
        return [
            self._runs[i] for i in range(1 - first, 1 - first + (self._runs[-first] >> RUN_SHIFT))
        ]

    def collect(self, queries: cython.int[::1], count: cython.int) -> array[int]:
        """The registrations of the first ``count`` queries of a column, as a new column."""
        # PERF: first the misses of all queries, then those of all runs; none waits for another.
        first: cython.int[::1] = self._first
        runs: cython.int[::1] = self._runs
        places: cython.int[::1]
        out: cython.int[::1]
        total: cython.int = 0
        place: cython.int
        length: cython.int
        i: cython.int
        j: cython.int
        if count > len(self._places):
            self._places = ints(2 * count)
        places = self._places
        for i in range(count):
            places[i] = first[queries[i]]
        for i in range(count):
            total += (places[i] > 0) + (runs[-min(places[i], 0)] >> RUN_SHIFT)  # no run at 0
        column = _ZERO * total
        out = column
        total = 0
        for i in range(count):
            place = places[i]
            if place > 0:
                out[total] = place
                total += 1
            elif place:
                length = runs[-place] >> RUN_SHIFT
                place = 1 - place
                for j in range(length):
                    out[total + j] = runs[place + j]
                total += length
        return column

    def size_bytes(self) -> int:
        return 4 * (len(self._first) + len(self._runs))

    def _moved(self, place: cython.int) -> cython.int:
        """The run in a block of twice the size."""
        i: cython.int
        bits: cython.int = self._runs[place] & RUN_BITS
        to: cython.int = self._take(bits + 1)
        for i in range(1, 1 << bits):
            self._runs[to + i] = self._runs[place + i]
        self._runs[to] = self._runs[place] + 1
        self._give_up(place, bits)
        return to

    def _take(self, bits: cython.int) -> cython.int:
        """A block of 2^bits numbers, at a multiple of its size or of a line; its run is empty."""
        place: cython.int
        size: cython.int = 1 << bits
        free = self._free.get(bits)
        if free:
            place = free.pop()
        else:
            while self._used & (min(size, _LINE) - 1):  # the blocks up to there are for others
                self._give_up(self._used, _BITS_MIN)
                self._used += 1 << _BITS_MIN
            place = self._used
            self._used = place + size
            if self._used > len(self._runs):
                self._runs = grown(self._runs, self._used + self._used // 2)
        self._runs[place] = bits
        return place

    def _give_up(self, place: cython.int, bits: cython.int) -> cython.int:
        self._free.setdefault(bits, []).append(place)
        return 0
