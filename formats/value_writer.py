"""ValueWriter: the codes and the run of a column of values (the reader's side is ValueReader).

Short values are looked up: among the dictionary's, then among the literals written so far in the
same column, in a hash table that a generation number empties.
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

if cython.compiled:
    from cython.cimports.formats.columns import numbers_of
else:
    from formats.columns import numbers_of

from formats.wire_events import PROBES_MAX
from formats.wire_model import WireModel, value_hash

_LITERAL_BYTES_MAX = 64  # longer literals are not looked up: they hardly ever come again
_ROWS_KEPT_MAX = 1 << 16


class ValueWriter:
    """One column after the other."""

    def __init__(self) -> None:
        self._generation = 0
        self._run_buffer = bytearray(4096)
        self._run = self._run_buffer
        self._grow(256)

    def write(self, model: WireModel, ends: array[int], values: bytes) -> tuple[bytes, bytes]:
        """Codes and run; ``ends`` is an offset column."""
        offsets: cython.p_int = numbers_of(ends)
        data: cython.p_const_uchar = values
        i: cython.int
        at: cython.Py_ssize_t
        size: cython.Py_ssize_t
        k: cython.Py_ssize_t
        found: cython.int
        literals: cython.int = 0
        count: cython.int = len(ends) - 1
        copied: cython.Py_ssize_t = 0
        if count > self._rows or self._rows > _ROWS_KEPT_MAX >= count:
            self._grow(max(count, 256))
        if len(values) > len(self._run_buffer) or len(self._run_buffer) > 16 * _ROWS_KEPT_MAX:
            self._run_buffer = bytearray(max(len(values), 4096))
            self._run = self._run_buffer
        self._generation += 1
        self._code = 0
        for i in range(count):
            at = offsets[i]
            size = offsets[i + 1] - at
            found = model.find_value(data, at, size)
            if found >= 0:
                self._put(4 * found + 3)
                continue
            if 0 < size <= _LITERAL_BYTES_MAX:
                found = self._find_literal(data, at, size, literals)
                if found >= 0:
                    self._put(4 * found + 1)
                    continue
            self._literal_at[literals] = at
            self._literal_size[literals] = size
            literals += 1
            self._put(2 * size)
            for k in range(size):
                self._run[copied + k] = data[at + k]
            copied += size
        run = values if copied == len(values) else bytes(self._run_buffer[:copied])
        codes: cython.p_const_uchar = self._code_buffer
        return bytes(codes[: self._code]), run

    def _find_literal(
        self,
        data: cython.p_const_uchar,
        at: cython.Py_ssize_t,
        size: cython.Py_ssize_t,
        next_literal: cython.int,
    ) -> cython.int:
        """The number of an equal literal, or -1; then the value is entered as ``next_literal``."""
        _probe: cython.int
        k: cython.Py_ssize_t
        literal: cython.int
        slot: cython.uint = value_hash(data, at, size) & self._mask
        for _probe in range(PROBES_MAX):
            if self._slot_generation[slot] != self._generation:
                self._slot_generation[slot] = self._generation
                self._slot_literal[slot] = next_literal
                return -1
            literal = self._slot_literal[slot]
            if self._literal_size[literal] == size:
                for k in range(size):
                    if data[self._literal_at[literal] + k] != data[at + k]:
                        break
                else:
                    return literal
            slot = (slot + 1) & self._mask
        return -1

    def _put(self, number: cython.longlong) -> None:
        while number >= 0x80:
            self._codes[self._code] = number & 0x7F | 0x80
            self._code += 1
            number >>= 7
        self._codes[self._code] = number
        self._code += 1

    def _grow(self, rows: cython.Py_ssize_t) -> None:
        slots: cython.Py_ssize_t = 512
        while slots < 2 * rows:
            slots *= 2
        self._rows = rows
        self._mask = slots - 1
        self._literal_at = array("i", bytes(4 * rows))
        self._literal_size = array("i", bytes(4 * rows))
        self._slot_literal = array("i", bytes(4 * slots))
        self._slot_generation = array("q", bytes(8 * slots))
        self._code_buffer = bytearray(5 * rows)
        self._codes = self._code_buffer
