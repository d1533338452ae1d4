"""``format-number()`` of F&O 3.1 in its default format: ``#,##0.00``, ``0%``, ``0.0##e00``; and
``format-integer()``: ``#,##0``, ``001``, ``1;o``, ``i``, ``A``, ``Ww``.

A double is the shortest decimal that is read as the same double; halves go to the even digit.
Words and ordinals are English, whatever language is asked for.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from math import copysign, isinf, isnan
from typing import NamedTuple

from yfilter.language.elementpath_bridge import evaluate
from yfilter.language.nodes import DynamicError
from yfilter.language.numbers import DECIMALS

_PARTS = re.compile(
    r"(?P<prefix>[^0-9#.,]*)(?P<whole>[0-9#,]*)(?P<point>\.?)(?P<part>[0-9#,]*)"
    r"(?:e(?P<exponent>[0-9]+))?(?P<suffix>[^0-9#.,]*)"
)
_FAULTS = re.compile(r",,|,\.|\.,|^[^.]*[0-9][^.]*#|\..*#.*[0-9]|^[^.]*,$")
_PICTURE_MAX = 1_024
_PICTURES_MAX = 256


class _Picture(NamedTuple):
    """``wholes``, ``parts``: digits between the point and each comma; ``every``: between all commas
    before the point, 0 where they are irregular; ``least``, ``most``: digits behind the point;
    ``scale``: digits before the point of a number with an exponent."""

    prefix: str
    suffix: str
    wholes: frozenset[int]
    every: int
    parts: frozenset[int]
    size: int
    scale: int
    least: int
    most: int
    exponent: int


def format_number(number: int | float | Decimal | None, picture: str) -> str:
    """DynamicError FODF1310 for a picture that is none."""
    positive, negative = _pictures(picture)
    if number is None or (isinstance(number, float) and isnan(number)):
        return "NaN"
    is_negative = copysign(1, number) < 0 if isinstance(number, float) else number < 0
    shape = negative if is_negative else positive
    if isinstance(number, float) and isinf(number):
        return f"{shape.prefix}Infinity{shape.suffix}"
    exact = Decimal(repr(number)) if isinstance(number, float) else Decimal(number)
    exact = exact.copy_abs()
    for sign, places in (("%", 2), ("‰", 3)):
        if sign in shape.prefix + shape.suffix:
            if isinstance(number, float):
                scaled = type(number)(abs(number) * 10.0**places)
                if isinf(scaled):
                    return f"{shape.prefix}Infinity{shape.suffix}"
                exact = Decimal(repr(scaled))
            else:
                exact = DECIMALS.scaleb(exact, places)
    power = 0
    if shape.exponent and exact:
        power = exact.adjusted() + 1 - shape.scale
        exact = DECIMALS.scaleb(exact, -power)
    rounded = exact.quantize(Decimal(1).scaleb(-shape.most), ROUND_HALF_EVEN, DECIMALS)
    whole, _, part = f"{rounded:f}".partition(".")
    whole = _with_commas(whole.lstrip("0").rjust(shape.size, "0"), shape)
    part = part.rstrip("0").ljust(shape.least, "0")
    part = "".join(f",{digit}" if at in shape.parts else digit for at, digit in enumerate(part))
    text = f"{whole}.{part}" if part else whole
    if shape.exponent:
        text += f"e{'-' * (power < 0)}{abs(power):0{shape.exponent}}"
    return f"{shape.prefix}{text}{shape.suffix}"


def _with_commas(whole: str, shape: _Picture) -> str:
    written = ""
    for at, digit in enumerate(reversed(whole)):
        is_after = at % shape.every == 0 if shape.every else at in shape.wholes
        written = f"{digit},{written}" if at and is_after else digit + written
    return written


@lru_cache(_PICTURES_MAX)
def _pictures(picture: str) -> tuple[_Picture, _Picture]:
    """Those of positive and negative numbers."""
    read = [_read(each, picture) for each in picture.split(";")]
    if len(read) > 2 or len(picture) > _PICTURE_MAX:
        raise _fault(picture)
    return read[0], read[1] if len(read) == 2 else read[0]._replace(prefix=f"-{read[0].prefix}")


def _read(text: str, picture: str) -> _Picture:
    found = _PARTS.fullmatch(text)
    if found is None or _FAULTS.search(found["whole"] + found["point"] + found["part"]):
        raise _fault(picture)
    digits = (found["whole"] + found["part"]).strip(",")
    around = found["prefix"] + found["suffix"]
    signs = around.count("%") + around.count("‰")
    exponent = len(found["exponent"] or "")
    if not digits or signs > 1 or (signs and exponent):
        raise _fault(picture)
    size = sum(each.isdigit() for each in found["whole"])
    least = sum(each.isdigit() for each in found["part"])
    most = len(found["part"].replace(",", ""))
    scale = size
    if not size and not most:
        if exponent:
            least = most = 1
        else:
            size = 1
    if exponent and not size and "#" in found["whole"]:
        size = 1
    if not size and not least:
        least = 1
    wholes = _commas(found["whole"][::-1])
    step = min(wholes, default=0)
    length = len(found["whole"].replace(",", ""))
    is_regular = step and wholes.issuperset(range(step, length, step))
    every = step if is_regular and not any(each % step for each in wholes) else 0
    parts = _commas(found["part"])
    prefix, suffix = found["prefix"], found["suffix"]
    return _Picture(prefix, suffix, wholes, every, parts, size, scale, least, most, exponent)


def _commas(digits: str) -> frozenset[int]:
    """How many digits stand before each comma."""
    places = [at for at, each in enumerate(digits) if each == ","]
    return frozenset(place - number for number, place in enumerate(places))


def _fault(picture: str) -> DynamicError:
    return DynamicError("FODF1310", f"{picture[:80]!r} is no picture of a number")


_INTEGER = re.compile(r"(?P<token>.+?)(?:;(?P<ordinal>(?:[co](?:\(.+\))?)?)[at]?)?", re.DOTALL)
_ALPHABETS = {first: "".join(map(chr, range(ord(first), ord(last) + 1))) for first, last in
              ("az", "AZ", "αω")} | {"Α": "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ"}  # fmt: skip
_ROMANS = (("M", 1000), ("CM", 900), ("D", 500), ("CD", 400), ("C", 100), ("XC", 90), ("L", 50),
           ("XL", 40), ("X", 10), ("IX", 9), ("V", 5), ("IV", 4), ("I", 1))  # fmt: skip
_ROMANS_MAX, _WORDS_MAX = 10_000, 10**18
_WORDS = {"w": str.lower, "W": str.upper, "Ww": str.title}


def format_integer(number: int | None, picture: str) -> str:
    """DynamicError FODF1310 for a picture that is none; plain digits for an unknown sequence."""
    found = _INTEGER.fullmatch(picture)
    if found is None or (";" in found["token"] and found["ordinal"] is None):
        raise _fault(picture)
    token = found["token"]
    is_pattern = any(each.isdecimal() for each in token)
    pattern = _digit_pattern(token if is_pattern else "1", picture)
    if number is None:
        return ""
    sign, amount = "-" * (number < 0), abs(number)
    is_ordinal = (found["ordinal"] or "").startswith("o")
    if token in _WORDS and amount < _WORDS_MAX:
        (words,) = evaluate("format-integer($a0, $a1)", amount, "w;o" if is_ordinal else "w")
        return sign + _WORDS[token](str(words)).replace(" And ", " and ")
    if token in ("i", "I") and 0 < amount < _ROMANS_MAX:
        roman = _roman(amount)
        return sign + (roman if token == "I" else roman.lower())
    if token in _ALPHABETS and amount:
        return sign + _letters(amount, _ALPHABETS[token])
    zero, least, separators, every = pattern
    text = "".join(chr(zero + int(digit)) for digit in str(amount).rjust(least, "0"))
    written = ""
    for at, digit in enumerate(reversed(text)):
        separator = every[1] if every and at % every[0] == 0 else separators.get(at, "")
        written = digit + (separator if at else "") + written
    if is_ordinal and zero == ord("0"):
        is_teen = amount // 10 % 10 == 1
        written += "th" if is_teen else {1: "st", 2: "nd", 3: "rd"}.get(amount % 10, "th")
    return sign + written


@lru_cache(_PICTURES_MAX)
def _digit_pattern(
    token: str, picture: str
) -> tuple[int, int, dict[int, str], tuple[int, str] | None]:
    """The code of its zero, how many digits there are at least, the separators by the number of
    digits behind them, and the step of regular ones with the separator."""
    digits = [each for each in token if each.isdecimal()]
    zeros = {ord(each) - unicodedata.decimal(each) for each in digits}
    shape = "".join("0" if each.isdecimal() else "#" if each == "#" else "," for each in token)
    is_word = any(each != "#" and not each.isdecimal() and unicodedata.category(each)[0] in "LN"
                  for each in token)  # fmt: skip
    is_faulty = re.search("^,|,,|,$|0,*#", shape) is not None
    if len(zeros) != 1 or is_word or is_faulty or len(token) > _PICTURE_MAX:
        raise _fault(picture)
    separators: dict[int, str] = {}
    for at, each in enumerate(token):
        if shape[at] == ",":
            separators[len(shape[at:].replace(",", ""))] = each
    step = min(separators, default=0)
    is_regular = len(set(separators.values())) == 1 and set(separators) == set(
        range(step, len(shape.replace(",", "")), step)
    )
    every = (step, separators[step]) if is_regular else None
    return zeros.pop(), len(digits), separators, every


def _roman(number: int) -> str:
    written = ""
    for letters, amount in _ROMANS:
        written += letters * (number // amount)
        number %= amount
    return written


def _letters(number: int, alphabet: str) -> str:
    """a, b … z, aa, ab …"""
    written = ""
    while number:
        number, at = divmod(number - 1, len(alphabet))
        written = alphabet[at] + written
    return written
