"""WireBytes: a place in the bytes of a binary form, from which numbers are read.

``at`` is the next byte, ``stop`` the end of the run that is being read, ``size`` that of the whole
form.  A number is a varint: seven bits per byte, lowest first, in as few bytes as possible.
"""

from __future__ import annotations

from typing import NoReturn

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from formats.errors import DecodeError
from formats.wire_events import NUMBER_MAX


class WireBytes:
    """One form after the other (``begin``)."""

    def begin(self, form: bytes, at: cython.Py_ssize_t) -> None:
        self.form = form
        self.data = form
        self.at = at
        self.size = len(form)
        self.stop = self.size

    def number(self) -> cython.int:
        """The next number; DecodeError unless it ends before ``stop``."""
        byte: cython.uchar
        if self.at < self.stop:
            byte = self.data[self.at]
            if byte < 0x80:
                self.at += 1
                return byte
        return self._long_number()

    def _long_number(self) -> cython.int:
        value: cython.longlong = 0
        shift: cython.int = 0
        byte: cython.uchar
        while True:
            if self.at >= self.stop:
                self.refuse("truncated", "the bytes end inside a number or before it")
            byte = self.data[self.at]
            self.at += 1
            value |= cython.cast(cython.longlong, byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift >= 35:
                self.refuse("bad-number", "a number of more than five bytes")
        if value > NUMBER_MAX or (byte == 0 and shift > 7):
            self.refuse("bad-number", f"{value} is too large or not in its shortest form")
        return value

    def refuse(self, code: str, reason: str) -> NoReturn:
        """DecodeError, at the place that was read last."""
        raise DecodeError(code, reason, min(self.at, self.size))


def write_number(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
