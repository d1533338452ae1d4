# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The content within an element as a range of its numbers, for compiled code.

What ``ElementStream.content_within`` says, of the columns themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

try:
    import cython
except ImportError:
    from formats import cython_stub as cython


def content_from(content_next: Sequence[int], element: cython.int) -> cython.int:
    """The first content within an element."""
    first: cython.int = 0
    last: cython.int = len(content_next)
    middle: cython.int
    while first < last:
        middle = (first + last) >> 1
        if content_next[middle] <= element:
            first = middle + 1
        else:
            last = middle
    return first


def content_to(
    content_next: Sequence[int],
    content_parent: Sequence[int],
    element: cython.int,
    end: cython.int,
) -> cython.int:
    """One past the last content within an element, behind which ``end`` is the next element."""
    last: cython.int = content_from(content_next, end - 1)
    while (
        last < len(content_next)
        and content_next[last] == end
        and element <= content_parent[last] < end
    ):
        last += 1
    return last
