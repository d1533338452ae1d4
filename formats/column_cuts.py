"""Column cuts: a piece of a room as a column of its own, and pieces copied from room to room.

Compiled, ``column_cuts.pxd`` has the same as C, within the modules that use it.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from array import array

if not cython.compiled:

    def ints_of(kind: array[int], room: array[int], first: int, last: int) -> array[int]:
        """A column of the same kind as an empty one, of the numbers from ``first`` on."""
        return kind + room[first:last]

    def octets_of(kind: array[int], room: array[int], first: int, last: int) -> array[int]:
        return kind + room[first:last]

    def bytes_of(room: array[int], first: int, last: int) -> bytes:
        return room[first:last].tobytes()

    def copy_octets(target: array[int], at: int, source: bytes, first: int, count: int) -> None:
        target[at : at + count] = array("B", source[first : first + count])
