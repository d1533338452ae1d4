"""Very many places, each with a condition on it and another place, asked for one place at once.

The box around each place is a square cell of a grid, or up to four; the grids have cells of 360
degrees, of 180, of 90 and so on, and a box stands in the finest one whose cells are as large as it
is.  So a point is looked up in one cell of each grid, and of the few tests that are there those
hold whose boxes and then whose places do.

::

    360 degrees    all of Asia
    90             Canada
    1.4            Berlin, Hamburg
"""

from __future__ import annotations

from collections.abc import Iterator
from math import floor
from typing import TypeAlias

from yfilter.language.places import (
    PAIRS_A_VISIT,
    Box,
    PlaceTest,
    read_place,
    read_test,
    work,
)

GRIDS_MAX = 24  # the cells of the last are some metres wide
FIND_MAX = 262_144  # visits of one search, each of which is for PAIRS_A_VISIT

_Cell: TypeAlias = tuple[int, int]


class PlaceIndex:
    """Tests by numbers; ``cost``: of the last ``find``, in visits; ``gave_up``: it has not looked
    at all of them, as they cost more than FIND_MAX."""

    def __init__(self) -> None:
        self.cost = 0
        self.gave_up = False
        self._tests: dict[int, tuple[Box, PlaceTest]] = {}
        self._grids: dict[int, dict[_Cell, set[int]]] = {}

    def __len__(self) -> int:
        return len(self._tests)

    def add(self, number: int, said: str) -> None:
        """``said``: as ``written_test`` has it."""
        test = read_test(said)
        box = test.box
        self._tests[number] = box, test
        grid = _grid_of(box)
        for cell in _cells(box, grid):
            self._grids.setdefault(grid, {}).setdefault(cell, set()).add(number)

    def remove(self, number: int) -> None:
        """KeyError if there is no test with this number."""
        box, _ = self._tests.pop(number)
        grid = _grid_of(box)
        cells = self._grids[grid]
        for cell in _cells(box, grid):
            cells[cell].discard(number)
            if not cells[cell]:
                del cells[cell]
        if not cells:
            del self._grids[grid]

    def find(self, text: str) -> list[int]:
        """The numbers of all tests that hold for the place that a text says, in no order."""
        place = read_place(text)
        self.cost = 1 + len(text) // 64
        self.gave_up = False
        if place is None:
            return []
        box = place.box()
        near: set[int] = set()
        for grid, cells in self._grids.items():
            near.update(*_filled(box, grid, cells))
        found = []
        for number in near:
            around, test = self._tests[number]
            if not around.meets(box):
                continue
            self.cost += 1 + work(test.name, place, test.known) // PAIRS_A_VISIT
            if self.cost > FIND_MAX:
                self.gave_up = True
                break
            if test.holds(place):
                found.append(number)
        self.cost += len(near) // 16
        return found


def _filled(box: Box, grid: int, cells: dict[_Cell, set[int]]) -> Iterator[set[int]]:
    """What stands in the cells that a box meets, or in all of them where they are fewer."""
    size = 360 / 2**grid
    if (box.width / size + 2) * ((box.north - box.south) / size + 2) > len(cells):
        yield from cells.values()
        return
    for cell in _cells(box, grid):
        if cell in cells:
            yield cells[cell]


def _grid_of(box: Box) -> int:
    size = max(box.width, box.north - box.south)
    grid = 0
    while grid < GRIDS_MAX and size <= 180 / 2**grid:
        grid += 1
    return grid


def _cells(box: Box, grid: int) -> Iterator[_Cell]:
    count = 2**grid
    size = 360 / count
    first, last = floor((box.west + 180) / size), floor((box.west + 180 + box.width) / size)
    for row in range(floor((box.south + 90) / size), floor((box.north + 90) / size) + 1):
        for column in range(first, min(last, first + count - 1) + 1):
            yield row, column % count
