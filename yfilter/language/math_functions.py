"""The functions of XPath's ``math:``, on doubles as IEEE 754 has them: never an exception.

Arguments arrive as function_library.py says; the empty sequence gives the empty sequence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from math import copysign, inf, isinf, isnan, nan
from typing import Any

from yfilter.language.atoms import to_double
from yfilter.language.number_functions import Number


def _of(function: Callable[..., float]) -> Callable[..., Any]:
    """A function of doubles; NaN where it has no value."""

    def applied(*numbers: Number | None) -> Any:
        doubles = [to_double(number) for number in numbers if number is not None]
        if len(doubles) < len(numbers):
            return []
        try:
            return function(*doubles)
        except ValueError:
            return nan

    return applied


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda number: -inf if number == 0 else function(number)


def _exp(number: float) -> float:
    try:
        return math.exp(number)
    except OverflowError:
        return inf


def _power(base: float, exponent: float) -> float:
    is_odd = not isinf(exponent) and exponent % 2 == 1
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -inf if base < 0 and is_odd else inf
    except ValueError:
        if base == 0 and not isnan(exponent):  # of a negative exponent
            return copysign(inf, base) if is_odd else inf
        return nan


MATH_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "math:pi": lambda: math.pi,
    "math:exp": _of(_exp),
    "math:exp10": _of(lambda number: _power(10.0, number)),
    "math:log": _of(_logarithm(math.log)),
    "math:log10": _of(_logarithm(math.log10)),
    "math:pow": _of(_power),
    "math:sqrt": _of(math.sqrt),
    "math:sin": _of(math.sin),
    "math:cos": _of(math.cos),
    "math:tan": _of(math.tan),
    "math:asin": _of(math.asin),
    "math:acos": _of(math.acos),
    "math:atan": _of(math.atan),
    "math:atan2": _of(math.atan2),
}
