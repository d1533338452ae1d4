"""xs:double: how a number is read from a message and how it is written.

Python's ``float()`` is no help as it stands: it takes "1_000", "infinity" and "nan", and writes
"1e+16"; XML Schema writes "1.0E16", "INF" and "NaN".
"""

from __future__ import annotations

import re
from decimal import (
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)
from math import inf, isfinite, isinf, isnan, nextafter

DIGITS_MAX = 4_300  # of an integer, and of a decimal before its point and behind it
QUOTIENT_DIGITS = 40  # at least, of a quotient that has no end
# xs:decimal is exact: this holds the product of two of the largest.
DECIMALS = Context(
    prec=4 * DIGITS_MAX,
    rounding=ROUND_HALF_EVEN,
    Emin=-999_999,
    Emax=999_999,
    traps=[InvalidOperation, DivisionByZero, Overflow],
)

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(
    r"[ \t\n\r]*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[ \t\n\r]*"
)
_SPECIAL = {"INF": float("inf"), "-INF": float("-inf"), "NaN": float("nan")}


def parse_integer(text: str) -> int | None:
    """The xs:integer that ``text``, without white space around it, is a lexical form of."""
    is_one = len(text) <= DIGITS_MAX and _INTEGER.fullmatch(text) is not None
    return int(text) if is_one else None


def parse_decimal(text: str) -> Decimal | None:
    is_one = len(text) <= DIGITS_MAX and _DECIMAL.fullmatch(text) is not None
    return Decimal(text) if is_one else None


def parse_double(text: str) -> float | None:
    """The xs:double that ``text`` is the lexical form of, or None.

    White space around it does not count; what is too large is an infinity.
    """
    match = _DOUBLE.fullmatch(text)
    if match is not None:
        return float(match[1])
    return _SPECIAL.get(text.strip(" \t\n\r"))


def decimal_text(number: Decimal) -> str:
    """Plain digits; no point where there is no fraction."""
    plain = f"{number:f}"
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return "0" if plain in ("-0", "") else plain


def number_text(value: float | int) -> str:
    """A number as a string, as XPath 2.0 casts it.

    An ``int`` (from ``count`` or ``string-length``) is an xs:integer, a ``float`` an xs:double:
    plain digits from 0.000001 up to a million, else with an exponent.
    """
    if isinstance(value, int):
        return str(value)
    if type(value) is not float:  # an xs:float is what its shortest text says
        value = float(repr(value))
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "INF" if value > 0 else "-INF"
    if value == 0:
        return "-0" if str(value).startswith("-") else "0"
    shortest = Decimal(repr(value))
    if 1e-6 <= abs(value) < 1e6:
        plain = f"{shortest:f}"
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    sign, digits, _ = shortest.as_tuple()
    mantissa = "".join(map(str, digits)).rstrip("0")
    fraction = mantissa[1:] or "0"
    return f"{'-' if sign else ''}{mantissa[0]}.{fraction}E{shortest.adjusted()}"


# An exact number that is no double compares with constants as the next double on its side of the
# nearest one does: no constant is there, as these have so many digits at most.
DIGITS_EXACT = 15


def is_exact(number: int | Decimal | float) -> bool:
    """Whether a constant may be compared as a double with exact numbers, too."""
    if isinstance(number, int):
        return abs(number) < 10**DIGITS_EXACT
    return isinstance(number, float) or len(number.as_tuple().digits) <= DIGITS_EXACT


def as_double(number: int | Decimal | float) -> float:
    """A double that compares with every exact constant as the number does."""
    if isinstance(number, float) or (isinstance(number, int) and is_exact(number)):
        return float(number)
    try:
        nearest = float(number)
    except OverflowError:
        return inf if number > 0 else -inf
    if not isfinite(nearest):
        return nearest
    shortest = Decimal(f"{nearest:.{DIGITS_EXACT}g}")
    if shortest == number:
        return nearest
    return nextafter(nearest, inf if number > shortest else -inf)
