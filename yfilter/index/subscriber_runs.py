# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""SubscriberRuns: the registrations of each query as a run of numbers.

What is read for every match of every message, so that it is no object::

    first of a query    0: nobody   n > 0: registration n alone   -p: the run at place p
    runs at p           room count | n0 n1 n2 …                   room is a power of two

A run that is given up is used again for one of its room.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from array import array

from yfilter.index.columns import grown, ints

_ROOM_MIN = 2


class SubscriberRuns:
    """``add`` and ``remove`` registrations; ``collect`` those of many queries.  All are above 0."""

    def __init__(self) -> None:
        self._first = ints(64)
        self._runs = ints(64)
        self._used = 1
        self._free: dict[int, list[int]] = {}

    def add(self, query: cython.int, registration: cython.int) -> cython.int:
        """One more registration of a query."""
        first: cython.int
        place: cython.int
        if query >= len(self._first):
            self._first = grown(self._first, query + query // 2 + 8)
        first = self._first[query]
        if first == 0:
            self._first[query] = registration
            return 0
        if first > 0:
            place = self._take(_ROOM_MIN)
            self._runs[place + 1] = 1
            self._runs[place + 2] = first
        elif self._runs[1 - first] == self._runs[-first]:
            place = self._moved(-first)
        else:
            place = -first
        self._runs[place + 2 + self._runs[place + 1]] = registration
        self._runs[place + 1] += 1
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
        i = place + 2
        last = place + 1 + self._runs[place + 1]
        while self._runs[i] != registration:
            i += 1
        self._runs[i] = self._runs[last]
        self._runs[place + 1] -= 1
        if self._runs[place + 1] == 1:
            self._first[query] = self._runs[place + 2]
            self._give_up(place)
        return 1

    def of(self, query: cython.int) -> list[int]:
        """The registrations of one query."""
        if query >= len(self._first) or self._first[query] == 0:
            return []
        first: cython.int = self._first[query]
        if first > 0:
            return [first]
        return [self._runs[i] for i in range(2 - first, 2 - first + self._runs[1 - first])]

    def collect(self, queries: cython.int[::1], count: cython.int) -> array[int]:
        """The registrations of the first ``count`` queries of a column, as a new column."""
        i: cython.int
        j: cython.int
        first: cython.int
        total: cython.int = 0
        place: cython.int
        out: cython.int[::1]
        for i in range(count):
            first = self._first[queries[i]]
            total += 1 if first > 0 else self._runs[1 - first] if first else 0
        column = ints(total)
        out = column
        total = 0
        for i in range(count):
            first = self._first[queries[i]]
            if first > 0:
                out[total] = first
                total += 1
            elif first:
                place = 2 - first
                for j in range(self._runs[1 - first]):
                    out[total + j] = self._runs[place + j]
                total += self._runs[1 - first]
        return column

    def size_bytes(self) -> int:
        return 4 * (len(self._first) + len(self._runs))

    def _moved(self, place: cython.int) -> cython.int:
        """The run with twice the room."""
        i: cython.int
        count: cython.int = self._runs[place + 1]
        to: cython.int = self._take(2 * self._runs[place])
        self._runs[to + 1] = count
        for i in range(2, count + 2):
            self._runs[to + i] = self._runs[place + i]
        self._give_up(place)
        return to

    def _take(self, room: cython.int) -> cython.int:
        place: cython.int
        free = self._free.get(room)
        if free:
            return free.pop()
        place = self._used
        self._used = place + room + 2
        if self._used > len(self._runs):
            self._runs = grown(self._runs, self._used + self._used // 2)
        self._runs[place] = room
        return place

    def _give_up(self, place: cython.int) -> cython.int:
        self._free.setdefault(self._runs[place], []).append(place)
        return 0
