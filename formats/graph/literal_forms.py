"""The numbers of valid literals of numeric and temporal datatypes: every form, in plain Python.

The compiled reader of graphs has the forms that are frequent in C, and the same answers.

``number_of``: a numeric literal as the xs:double nearest to it, in the fewest digits that are this
double; of an xsd:float in the fewest that are this float.  A decimal that only rounding makes equal
to one of at most 15 digits has the double beside it, so that its order to such decimals is right.
``seconds_of``: an xsd:dateTime, xsd:dateTimeStamp or xsd:date as seconds since
1970-01-01T00:00:00Z, without a zone as of UTC.  A lexical form that its datatype does not have is
nothing (``b""``).
"""

from __future__ import annotations

import re
import struct
from decimal import Decimal
from math import inf, isinf, nextafter

from formats.graph.vocabulary import XSD

_XSD = XSD.encode()

# How a literal is read, by its datatype.  From DATE_TIME to DATE it has seconds; INTEGER and
# all numbers above it are integers, each with the range of its datatype.
NO_VALUE, DOUBLE, FLOAT, DECIMAL, DATE_TIME, DATE_TIME_STAMP, DATE, INTEGER = range(8)

# The derived integer types, with the least and the greatest of their values.
INTEGER_TYPES: tuple[tuple[bytes, int | None, int | None], ...] = (
    (b"integer", None, None),
    (b"long", -(2**63), 2**63 - 1),
    (b"int", -(2**31), 2**31 - 1),
    (b"short", -(2**15), 2**15 - 1),
    (b"byte", -128, 127),
    (b"nonNegativeInteger", 0, None),
    (b"positiveInteger", 1, None),
    (b"nonPositiveInteger", None, 0),
    (b"negativeInteger", None, -1),
    (b"unsignedLong", 0, 2**64 - 1),
    (b"unsignedInt", 0, 2**32 - 1),
    (b"unsignedShort", 0, 2**16 - 1),
    (b"unsignedByte", 0, 255),
)
_KINDS = {
    _XSD + b"double": DOUBLE,
    _XSD + b"float": FLOAT,
    _XSD + b"decimal": DECIMAL,
    _XSD + b"dateTime": DATE_TIME,
    _XSD + b"dateTimeStamp": DATE_TIME_STAMP,
    _XSD + b"date": DATE,
    **{_XSD + row[0]: INTEGER + at for at, row in enumerate(INTEGER_TYPES)},
}
_INTEGER_FORM = re.compile(rb"[+-]?[0-9]+")
_DECIMAL_FORM = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE_FORM = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPECIAL = {b"INF": b"INF", b"+INF": b"INF", b"-INF": b"-INF", b"NaN": b"NaN"}
_ZONE = rb"(Z|[+-](?:0[0-9]|1[0-3]):[0-5][0-9]|[+-]14:00)?"
_DATE = rb"(-?(?:[1-9][0-9]{3,17}|0[0-9]{3}))-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = rb"(?:([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])(\.[0-9]+)?|(24:00:00(?:\.0+)?))"
_DATE_FORM = re.compile(_DATE + _ZONE)
_DATE_TIME_FORM = re.compile(_DATE + b"T" + _TIME + _ZONE)
DIGITS_TOLD = 15  # no two decimals of so many digits are the same double, or next to it
_FRACTION_MAX = 1 + 18  # the point and more digits than a double can tell
_DAYS_BEFORE_1970 = 719_468 + 146_097  # from March of the year -400


def value_kind(datatype: bytes) -> int:
    """How literals of a datatype are read."""
    return _KINDS.get(datatype, NO_VALUE)


def is_seconds(kind: int) -> bool:
    """Whether what is derived from literals of a kind is seconds, not a number."""
    return DATE_TIME <= kind <= DATE


def derived_value(lexical: bytes, kind: int) -> bytes:
    """The number or the seconds of a literal in ASCII, or nothing."""
    if kind >= INTEGER:
        return _integer(lexical, kind - INTEGER)
    if is_seconds(kind):
        return _seconds(lexical, kind)
    if kind == DECIMAL:
        return _digits(_tellable(lexical)) if _DECIMAL_FORM.fullmatch(lexical) else b""
    special = _SPECIAL.get(lexical)
    if special is not None:
        return special
    if not _DOUBLE_FORM.fullmatch(lexical):
        return b""
    return _digits(float(lexical) if kind == DOUBLE else _single(float(lexical)))


def _integer(lexical: bytes, row: int) -> bytes:
    if not _INTEGER_FORM.fullmatch(lexical):
        return b""
    number = _tellable(lexical)
    _, least, greatest = INTEGER_TYPES[row]
    if least is not None or greatest is not None:
        digits = lexical.lstrip(b"+-").lstrip(b"0") or b"0"
        # Beyond twenty digits only the sign decides.
        exact = int(digits[:21]) * (-1 if lexical.startswith(b"-") else 1)
        if (least is not None and exact < least) or (greatest is not None and exact > greatest):
            return b""
    return _digits(number)


def _tellable(lexical: bytes) -> float:
    """The double nearest to a decimal, or the one beside it; see above."""
    number = float(lexical)
    if len(lexical) <= DIGITS_TOLD or isinf(number):
        return number
    short = Decimal(f"{number:.{DIGITS_TOLD}g}")
    exact = Decimal(lexical.decode())
    if float(short) != number or exact == short:
        return number
    return nextafter(number, inf if exact > short else -inf)


def _digits(number: float) -> bytes:
    """The fewest digits of a double, as xs:double has them."""
    text = repr(number)
    if text in {"inf", "-inf"}:
        return text.upper().encode()
    if text == "-0.0":
        return b"0"  # equal to it
    return text.removesuffix(".0").encode()


def _single(number: float) -> float:
    """The double with the fewest digits that are the same xs:float as this one's."""
    try:
        packed = struct.pack("<f", number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
    (exact,) = struct.unpack("<f", packed)
    for precision in range(6, 9):
        shorter = float(f"{exact:.{precision}g}")
        if struct.pack("<f", shorter) == packed:
            return shorter
    return float(f"{exact:.9g}")


def _seconds(lexical: bytes, kind: int) -> bytes:
    form = _DATE_FORM if kind == DATE else _DATE_TIME_FORM
    found = form.fullmatch(lexical)
    if found is None or (kind == DATE_TIME_STAMP and found[found.re.groups] is None):
        return b""
    year, month, day = int(found[1]), int(found[2]), int(found[3])
    # Years beyond those of C are as many cycles of 400 years away.
    cycles, of_cycle = divmod(year, 400)
    if day > _days_of(of_cycle, month):
        return b""
    seconds = 86_400 * (_days_since_1970(of_cycle, month, day) + 146_097 * cycles)
    seconds -= _offset(found[found.re.groups])
    fraction = b""
    if kind != DATE:
        if found[8] is not None:
            seconds += 86_400
        else:
            seconds += 3_600 * int(found[4]) + 60 * int(found[5]) + int(found[6])
            fraction = (found[7] or b"")[:_FRACTION_MAX].rstrip(b"0").rstrip(b".")
    if not fraction:
        return b"%d" % seconds
    if seconds >= 0:
        return b"%d%s" % (seconds, fraction)
    return _digits(float(seconds) + float(b"0" + fraction))


def _days_of(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in {4, 6, 9, 11} else 31


def _days_since_1970(year: int, month: int, day: int) -> int:
    """Of a year from 0, in the Gregorian calendar, before it was there too."""
    # Years begin in March, 400 of them are added so that none is negative.
    of_year: int = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    since: int = year + 399 if month <= 2 else year + 400
    return 365 * since + since // 4 - since // 100 + since // 400 + of_year - _DAYS_BEFORE_1970


def _offset(zone: bytes | None) -> int:
    if zone is None or zone == b"Z":
        return 0
    seconds = 3_600 * int(zone[1:3]) + 60 * int(zone[4:6])
    return -seconds if zone.startswith(b"-") else seconds
