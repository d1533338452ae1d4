"""Columns of any size, small ones and those that are mappings."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import pytest

from yfilter.index.columns import doubles, grown, ints, longs, octets, touch


@pytest.mark.parametrize("make", [octets, ints, longs, doubles])
@pytest.mark.parametrize(("before", "after"), [(5, 9), (1_000, 300_000), (300_000, 600_000)])
def test_a_grown_column_keeps_its_numbers_and_ends_in_zeros(
    make: Callable[[int], array[float]], before: int, after: int
) -> None:
    column = make(before)
    assert len(column) == before
    assert not any(column[:])
    for i in range(before):
        column[i] = i % 251
    longer = grown(column, after)
    assert longer[:before].tolist() == column[:].tolist()
    assert len(longer) == after
    assert not any(longer[before:])


@pytest.mark.parametrize("count", [5, 300_000, 5_000_000])
def test_memory_asked_for_ahead_keeps_what_is_there(count: int) -> None:
    column = ints(count)
    column[0], column[3], column[count - 1] = 7, 8, 9
    touch(column, 4 * count + 1)
    assert (column[0], column[3], column[count - 1]) == (7, 8, 9)
    assert sum(column) == 24
