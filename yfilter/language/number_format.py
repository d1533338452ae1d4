"""``format-number()`` of F&O 3.1 in its default format: ``#,##0.00``, ``0%``, ``0.0##e00``.

A double is the shortest decimal that is read as the same double; halves go to the even digit.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from math import copysign, isinf, isnan
from typing import NamedTuple

from yfilter.language.nodes import DynamicError, Float
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
                scaled = abs(number) * 10.0**places
                if isinf(scaled):
                    return f"{shape.prefix}Infinity{shape.suffix}"
                exact = Decimal(repr(Float(scaled) if isinstance(number, Float) else scaled))
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
