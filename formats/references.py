"""References to characters and to the five predefined entities: those that need no declaration."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

NONE = -1


def read_reference(data: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.int:
    """The reference at ``data[at]``, an ampersand: its code point times 16 plus its length.

    NONE if it is not of these, is malformed, stands for a character that XML does not allow, or
    has more digits than it needs (7 decimal, 6 hexadecimal).
    """
    start: cython.Py_ssize_t
    i: cython.Py_ssize_t
    code: cython.int = 0
    if data[at + 1] != ord("#"):
        return _predefined(data, at)
    if data[at + 2] == ord("x"):
        start = i = at + 3
        while i < start + 6 and _hexadecimal(data[i]) >= 0:
            code = 16 * code + _hexadecimal(data[i])
            i += 1
    else:
        start = i = at + 2
        while i < start + 7 and ord("0") <= data[i] <= ord("9"):
            code = 10 * code + data[i] - ord("0")
            i += 1
    if i == start or data[i] != ord(";") or not _is_character(code):
        return NONE
    return 16 * code + i + 1 - at


def _predefined(data: cython.p_const_uchar, at: cython.Py_ssize_t) -> cython.int:
    first: cython.uchar = data[at + 1]
    if first == ord("l") or first == ord("g"):
        if data[at + 2] == ord("t") and data[at + 3] == ord(";"):
            return 16 * (ord("<") if first == ord("l") else ord(">")) + 4
    elif first == ord("a"):
        if data[at + 2] == ord("m"):
            if data[at + 3] == ord("p") and data[at + 4] == ord(";"):
                return 16 * ord("&") + 5
        elif data[at + 2] == ord("p") and data[at + 3] == ord("o"):
            if data[at + 4] == ord("s") and data[at + 5] == ord(";"):
                return 16 * ord("'") + 6
    elif first == ord("q") and data[at + 2] == ord("u") and data[at + 3] == ord("o"):
        if data[at + 4] == ord("t") and data[at + 5] == ord(";"):
            return 16 * ord('"') + 6
    return NONE


def _hexadecimal(digit: cython.uchar) -> cython.int:
    if ord("0") <= digit <= ord("9"):
        return digit - ord("0")
    digit |= 0x20  # lower case
    return digit - ord("a") + 10 if ord("a") <= digit <= ord("f") else -1


def _is_character(code: cython.int) -> cython.bint:
    if code < 0x20:
        return code == 0x9 or code == 0xA or code == 0xD
    return code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF
