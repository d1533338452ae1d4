# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Numbers as they stand in messages: from bytes to xs:double."""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import doubles
from yfilter.language.numbers import parse_double

_NAN: cython.double = float("nan")
_POWERS = doubles(23)
for _power in range(23):
    _POWERS[_power] = 10.0**_power
_powers: cython.double[::1] = _POWERS


def number_in(values: cython.p_const_uchar, first: cython.int, last: cython.int) -> cython.double:
    """The number that ``values[first:last]`` is, NaN if it is none."""
    # PERF: up to 15 digits and 22 behind the point the quotient is exact as it stands.
    octet: cython.int = 0
    digits: cython.int = 0
    behind: cython.int = -1
    place: cython.int = first
    mantissa: cython.longlong = 0
    negative: cython.bint = False
    value: cython.double
    while place < last and _is_space(values[place]):
        place += 1
    if place < last and values[place] in (43, 45):
        negative = values[place] == 45
        place += 1
    while place < last:
        octet = values[place]
        if 48 <= octet <= 57:
            mantissa = 10 * mantissa + (octet - 48)
            digits += 1
            if behind >= 0:
                behind += 1
            if digits > 15:
                return _any_number(bytes(values[first:last]))
        elif octet == 46 and behind < 0:
            behind = 0
        else:
            break
        place += 1
    while place < last and _is_space(values[place]):
        place += 1
    if place < last:
        # An exponent, INF, or no number: most words are none.
        if octet in (69, 101) if digits else octet == 73:
            return _any_number(bytes(values[first:last]))
        return _NAN
    if digits == 0:
        return _NAN
    value = mantissa
    if behind > 0:
        value = value / _powers[behind]
    return -value if negative else value


def _any_number(value: bytes) -> float:
    number = parse_double(value.decode())
    return _NAN if number is None else number


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_space(octet: cython.int) -> cython.bint:
    return octet in (9, 10, 13, 32)
