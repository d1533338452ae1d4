"""ValueReader: the values of a binary form, from their codes and their run of bytes.

A code is a number: a literal's size, the number of a value of the dictionary, or the number of a
literal that came before in the same run (docs/formats.md).  Where there are only literals, the run
is the column as it stands.
"""

from __future__ import annotations

from array import array

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

if cython.compiled:
    from cython.cimports.libc.string import memcpy

from formats.characters import is_utf_8
from formats.wire_bytes import WireBytes
from formats.wire_events import NUMBER_MAX
from formats.wire_model import WireModel

_ROWS_KEPT_MAX = 1 << 16  # scratch that is kept for the next message
_BYTES_KEPT_MAX = 1 << 20


class ValueReader:
    """``written`` is what counts against ``expansion_max``; ``run`` where the next run begins."""

    def __init__(self, source: WireBytes) -> None:
        self._source = source
        self._grow(256)
        self._buffer = bytearray(4096)
        self._copy = self._buffer

    def begin(
        self,
        model: WireModel,
        run: cython.Py_ssize_t,
        written: cython.longlong,
        expansion_max: cython.longlong,
    ) -> None:
        """A new message, whose names take ``written`` bytes."""
        self._model = model
        self.run = run
        self._written = written
        self._expansion_max = min(expansion_max, NUMBER_MAX // 2)

    def read(self, count: cython.int, offsets: cython.int[::1]) -> bytes:
        """``count`` values, their codes from the source's ``at`` to its ``stop``.

        Sets ``offsets[1:count + 1]`` to where each ends.
        """
        source: WireBytes = self._source
        data: cython.p_const_uchar = source.data
        i: cython.int
        code: cython.int
        size: cython.int
        literals: cython.int = 0
        copied: cython.bint = False
        total: cython.longlong = 0
        bound: cython.longlong = self._expansion_max - self._written
        end: cython.Py_ssize_t = self.run
        if count > self._rows or self._rows > _ROWS_KEPT_MAX >= count:
            self._grow(max(count, 256))
        for i in range(count):
            if source.at < source.stop and data[source.at] < 0x80:
                code = data[source.at]
                source.at += 1
            else:
                code = source.number()
            if not code & 1:
                size = code >> 1
                if size > source.size - end:
                    source.refuse("truncated", f"a value of {size} bytes ends behind the message")
                self._literal_at[literals] = end
                self._literal_size[literals] = size
                literals += 1
                self._value_at[i] = end
                end += size
            else:
                copied = True
                size = self._refer(i, code, literals)
            total += size
            if total > bound:
                break
            offsets[i + 1] = total
        if self._written + total > self._expansion_max:
            reason = f"names and values of more than {self._expansion_max} bytes"
            source.refuse("entity-expansion", reason)
        if source.at != source.stop:
            source.refuse("trailing-bytes", "codes behind that of the last value")
        run: bytes = source.data[self.run : end]
        self._check(run, literals)
        self._written += total
        self.run = end
        return self._copied(count, offsets) if copied else run

    def _refer(self, value: cython.int, code: cython.int, literals: cython.int) -> cython.int:
        """A value that is the dictionary's or was there before; its size."""
        model: WireModel = self._model
        number: cython.int = code >> 2
        if not code & 2:
            if number >= literals:
                self._source.refuse("bad-structure", f"no literal {number} before this value")
            self._value_at[value] = self._literal_at[number]
            return self._literal_size[number]
        if number >= model.value_count:
            self._source.refuse("bad-structure", f"the dictionary has no value {number}")
        self._value_at[value] = -1 - model.value_start[number]
        return model.value_start[number + 1] - model.value_start[number]

    def _check(self, run: bytes, literals: cython.int) -> None:
        """Literals are UTF-8, each by itself, and have only characters that XML can carry."""
        data: cython.p_const_uchar = run
        i: cython.Py_ssize_t
        byte: cython.uchar
        illegal: cython.uchar = 0
        high: cython.uchar = 0
        for i in range(len(run)):
            byte = data[i]
            high |= byte
            illegal |= (byte < 0x20) & (byte != 0x09) & (byte != 0x0A) & (byte != 0x0D)
        if illegal:
            self._source.refuse("bad-value", "a control character, which XML cannot carry")
        if high >= 0x80:
            self._check_characters(run, literals)

    def _check_characters(self, run: bytes, literals: cython.int) -> None:
        data: cython.p_const_uchar = run
        i: cython.int
        place: cython.Py_ssize_t
        if not is_utf_8(run):
            self._source.refuse("bad-value", "not UTF-8, or a character that XML cannot carry")
        for i in range(literals):
            place = self._literal_at[i] - self.run
            if place < len(run) and data[place] & 0xC0 == 0x80:
                self._source.refuse("bad-value", "a value ends inside a character")

    def _copied(self, count: cython.int, offsets: cython.int[::1]) -> bytes:
        """Literals and what stands for values, end to end."""
        model: WireModel = self._model
        i: cython.int
        at: cython.Py_ssize_t
        start: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t
        total: cython.Py_ssize_t = offsets[count]
        if total > len(self._buffer) or len(self._buffer) > _BYTES_KEPT_MAX >= total:
            self._buffer = bytearray(max(total, 4096))
            self._copy = self._buffer
        for i in range(count):
            end = offsets[i + 1]
            at = self._value_at[i]
            if at >= 0:
                self._copy_bytes(start, self._source.data, at, end - start)
            else:
                self._copy_bytes(start, model.value_data, -1 - at, end - start)
            start = end
        copied: cython.p_const_uchar = self._buffer
        return bytes(copied[:total])

    def _copy_bytes(
        self,
        place: cython.Py_ssize_t,
        source: cython.p_const_uchar,
        at: cython.Py_ssize_t,
        size: cython.Py_ssize_t,
    ) -> None:
        if size == 0:
            return
        if cython.compiled:  # PERF: a loop over bytes takes a quarter of the whole reading
            memcpy(cython.address(self._copy[place]), source + at, size)
        else:
            self._buffer[place : place + size] = source[at : at + size]

    def _grow(self, rows: cython.int) -> None:
        self._rows = rows
        self._literal_at = array("i", bytes(4 * rows))
        self._literal_size = array("i", bytes(4 * rows))
        self._value_at = array("i", bytes(4 * rows))
