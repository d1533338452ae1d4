"""Columns: flat arrays of numbers, which compiled code reads without touching an object.

Small ones are ordinary arrays.  A large one is an anonymous mapping, on huge pages where the system
has them: what reads here and there in a table of many megabytes would miss the page table as often
as the cache.  Of a mapping only what is written takes memory, so that room for growth costs none,
nor does a table that is reserved up to its bound; and it goes back to the system as a whole when it
is dropped.

What is written for the first time waits for the system, up to some milliseconds for a huge page.
So a very large mapping begins with small pages, which are all that a small engine needs of its lazy
states, and ``touch`` asks for more ahead of use.
"""

from __future__ import annotations

import mmap
from array import array
from typing import TypeVar, cast

_Number = TypeVar("_Number", int, float)

# Below this a mapping is not worth its system calls.
_MAPPING_BYTES_MIN = 1 << 18
# From here on a mapping begins with so much in small pages.
_VERY_LARGE_BYTES = 1 << 24
_SMALL_PAGES_BYTES = 1 << 21
_PAGE = 4096


def ints(count: int) -> array[int]:
    """``count`` zeros of 32 bits."""
    return cast("array[int]", _zeros("i", 4 * count))


def longs(count: int) -> array[int]:
    """``count`` zeros of 64 bits."""
    return cast("array[int]", _zeros("q", 8 * count))


def doubles(count: int) -> array[float]:
    return cast("array[float]", _zeros("d", 8 * count))


def octets(count: int) -> array[int]:
    """``count`` zeros of 8 bits, unsigned."""
    return cast("array[int]", _zeros("B", count))


def grown(column: array[_Number], count: int) -> array[_Number]:
    """A copy of a column of 32 or 64 bit numbers or octets, with zeros up to ``count`` entries.

    By replacement, for an array that compiled code looks into cannot be resized.
    """
    old = memoryview(column)
    new = _zeros(old.format, old.itemsize * count)
    memoryview(new).cast("B")[: old.nbytes] = old.cast("B")
    return cast("array[_Number]", new)


def touch(column: array[int], size: int) -> None:
    """Have the system give the first ``size`` bytes of a column now."""
    octets = memoryview(column).cast("B")
    for at in range(0, min(size, len(octets)), _PAGE):
        octets[at] = octets[at]


def _zeros(code: str, size: int) -> array[int] | memoryview:
    if size < _MAPPING_BYTES_MIN or not hasattr(mmap, "MAP_PRIVATE"):
        return array(code, bytes(size))
    mapping = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):  # PERF: a page of 4 KB is one more miss a look-up
        mapping.madvise(mmap.MADV_HUGEPAGE, _SMALL_PAGES_BYTES if size >= _VERY_LARGE_BYTES else 0)
    return memoryview(mapping).cast("B").cast(code)  # type: ignore[call-overload]
