# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Sorting the beginning of a column, or of two side by side, where it stands; finding in one.

Numbers by their digits of eight bits, the lowest first, which takes as long whatever their order;
a few of them, and the pairs of ``sort_by``, by Shell's method.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import ints

FEW = 40


class Sorter:
    """``sort`` with memory of its own."""

    def __init__(self) -> None:
        self._places = ints(256)
        self._spare = ints(256)

    def sort(self, column: cython.int[::1], count: cython.int) -> cython.int:
        """Order the first ``count`` numbers of a column, none below 0."""
        i: cython.int
        every: cython.int = 0
        shift: cython.int = 0
        if count <= FEW:
            return _sort_few(column, count)
        if count > len(self._spare):
            self._spare = ints(2 * count)
        for i in range(count):
            every |= column[i]
        while shift < 32 and every >> shift:
            self._pass(column, self._spare, count, shift)
            if every >> shift <= 255:
                for i in range(count):
                    column[i] = self._spare[i]
                return 0
            self._pass(self._spare, column, count, shift + 8)
            shift += 16
        return 0

    def _pass(
        self, source: cython.int[::1], into: cython.int[::1], count: cython.int, shift: cython.int
    ) -> cython.int:
        """Order by one digit; numbers with the same stay as they are to each other."""
        places: cython.int[::1] = self._places
        i: cython.int
        digit: cython.int
        before: cython.int = 0
        for i in range(256):
            places[i] = 0
        for i in range(count):
            places[(source[i] >> shift) & 255] += 1
        for i in range(256):
            digit = places[i]
            places[i] = before
            before += digit
        for i in range(count):
            digit = (source[i] >> shift) & 255
            into[places[digit]] = source[i]
            places[digit] += 1
        return 0


@cython.cfunc
@cython.exceptval(check=False)
def _sort_few(column: cython.int[::1], count: cython.int) -> cython.int:
    gap: cython.int = 1
    i: cython.int
    j: cython.int
    value: cython.int
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap >= 1:
        for i in range(gap, count):
            value = column[i]
            j = i
            while j >= gap and column[j - gap] > value:
                column[j] = column[j - gap]
                j -= gap
            column[j] = value
        gap = gap // 3
    return 0


def sort_by(keys: cython.double[::1], values: cython.int[::1], count: cython.int) -> cython.int:
    """Order the first ``count`` keys, and the values with them."""
    gap: cython.int = 1
    i: cython.int
    j: cython.int
    key: cython.double
    value: cython.int
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap >= 1:
        for i in range(gap, count):
            key = keys[i]
            value = values[i]
            j = i
            while j >= gap and keys[j - gap] > key:
                keys[j] = keys[j - gap]
                values[j] = values[j - gap]
                j -= gap
            keys[j] = key
            values[j] = value
        gap = gap // 3
    return 0


def place_of(
    column: cython.int[::1], first: cython.int, count: cython.int, value: cython.int
) -> cython.int:
    """Where a number stands among some in order, from ``first`` on; or -1."""
    # PERF: no branch depends on what is there.
    half: cython.int
    if count == 0:
        return -1
    while count > 1:
        half = count >> 1
        first += half * (column[first + half] <= value)
        count -= half
    return first if column[first] == value else -1
