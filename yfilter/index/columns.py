"""Columns: flat arrays of numbers, which compiled code reads without touching an object.

``ints`` and its sisters are ordinary arrays.  ``reserved_ints`` is for tables with a bound: an
anonymous mapping of that size, of which only what is written takes memory, and which goes back to
the system as a whole when it is dropped.
"""

from __future__ import annotations

import mmap
from array import array
from typing import TypeVar, cast

_Number = TypeVar("_Number", int, float)

# Below this a mapping is not worth its system calls.
_MAPPING_BYTES_MIN = 1 << 18


def ints(count: int) -> array[int]:
    """``count`` zeros of 32 bits."""
    return array("i", bytes(4 * count))


def longs(count: int) -> array[int]:
    """``count`` zeros of 64 bits."""
    return array("q", bytes(8 * count))


def doubles(count: int) -> array[float]:
    return array("d", bytes(8 * count))


def octets(count: int) -> array[int]:
    """``count`` zeros of 8 bits, unsigned."""
    return array("B", bytes(count))


def reserved_ints(count: int) -> array[int]:
    """As ``ints``, for large tables that are filled little by little."""
    return cast("array[int]", _reserved("i", 4 * count))


def reserved_longs(count: int) -> array[int]:
    return cast("array[int]", _reserved("q", 8 * count))


def reserved_doubles(count: int) -> array[float]:
    return cast("array[float]", _reserved("d", 8 * count))


def grown(column: array[_Number], count: int) -> array[_Number]:
    """A copy of a column of 32 or 64 bit numbers or octets, with zeros up to ``count`` entries.

    By replacement, for an array that compiled code looks into cannot be resized.
    """
    old = memoryview(column)
    new = bytearray(old.itemsize * count)
    new[: old.nbytes] = old.cast("B")
    column = array(old.format)
    column.frombytes(new)
    return column


def _reserved(code: str, size: int) -> object:
    if size < _MAPPING_BYTES_MIN or not hasattr(mmap, "MAP_PRIVATE"):
        return array(code, bytes(size))
    mapping = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):  # PERF: a page of 4 KB is one more miss a look-up
        mapping.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(mapping).cast("B").cast(code)  # type: ignore[call-overload]
