# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Sorting the beginning of a column where it stands."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython


def sort(column: cython.int[::1], count: cython.int) -> cython.int:
    """Order the first ``count`` numbers of a column, by Shell's method."""
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
