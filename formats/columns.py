"""The rows of an ElementStream's column, for hot modules that read them while the stream is there.

Compiled, ``columns.pxd`` has the same as C: where the rows lie, with no bounds and without the view
object that a memoryview takes for each column of each message.
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

if not cython.compiled:

    def numbers_of(column: array[int]) -> array[int]:
        """The rows of an ``array('i')``."""
        return column

    def bytes_of(column: array[int]) -> array[int]:
        """The rows of an ``array('B')``."""
        return column
