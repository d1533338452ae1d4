# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Sorting the beginning of a column, or of two side by side, where it stands, by Shell's method."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython


def sort(column: cython.int[::1], count: cython.int) -> cython.int:
    """Order the first ``count`` numbers of a column."""
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
