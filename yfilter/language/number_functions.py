"""The functions on numbers; arguments arrive as function_library.py says."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from functools import reduce
from math import ceil, copysign, floor, isfinite, isinf, isnan, nan
from typing import Any, TypeAlias

from yfilter.language.atoms import (
    ORDERED_TYPES,
    arithmetic,
    cast,
    comparable,
    is_number,
    to_double,
)
from yfilter.language.nodes import AnyUri, Atom, DynamicError, Float, Opaque, Untyped
from yfilter.language.numbers import DECIMALS, DIGITS_MAX, parse_double

_HALF = Decimal("0.5")
Number: TypeAlias = int | float | Decimal


def _number(atom: Atom | None) -> float:
    if isinstance(atom, str):
        number = None if isinstance(atom, AnyUri) else parse_double(atom)
        return nan if number is None else number
    if atom is None:
        return nan
    try:
        return to_double(atom)
    except DynamicError:
        return nan


def rounded(number: Number) -> Number:
    """``fn:round``: halves go up."""
    if isinstance(number, int):
        return number
    if isinstance(number, Decimal):
        return DECIMALS.add(number, _HALF).to_integral_value(ROUND_FLOOR)
    if isnan(number) or isinf(number) or abs(number) >= 1 << 52:
        return number
    whole = floor(number)
    whole += number - whole >= 0.5
    return copysign(float(whole), number) if whole == 0 else float(whole)


def _half_to_even(number: Number | None, precision: Number | None = 0) -> Number | list[Any]:
    if number is None or precision is None:
        return []
    places = int(precision)
    if isinstance(number, float) and (isnan(number) or isinf(number)):
        return number
    if abs(places) > DIGITS_MAX:
        return number if places > 0 else type(number)(0)
    exact = Decimal(number)
    if places > -exact.as_tuple().exponent:  # type: ignore[operator]
        return number
    result = exact.quantize(Decimal(1).scaleb(-places), ROUND_HALF_EVEN, DECIMALS)
    if isinstance(number, float):
        return copysign(float(result), number)
    return int(result) if isinstance(number, int) else result


def _toward(
    of_float: Callable[[float], int], rounding: str
) -> Callable[[Number | None], Number | list[Any]]:
    def toward(number: Number | None) -> Number | list[Any]:
        if number is None:
            return []
        if isinstance(number, int):
            return number
        if isinstance(number, Decimal):
            return number.to_integral_value(rounding=rounding)
        if isnan(number) or isinf(number):
            return number
        whole = float(of_float(number))
        return whole if whole else copysign(0.0, number)

    return toward


def _abs(number: Number | None) -> Number | list[Any]:
    if number is None:
        return []
    return number.copy_abs() if isinstance(number, Decimal) else abs(number)


def _round(number: Number | None, digits: Number | None = None) -> Number | list[Any]:
    if number is None:
        return []
    if not digits or (isinstance(number, float) and not isfinite(number)):
        return rounded(number)
    places = int(digits)
    if abs(places) > DIGITS_MAX:
        return number if places > 0 else type(number)(0)
    exact = rounded(DECIMALS.scaleb(Decimal(str(number)), places))
    return type(number)(DECIMALS.scaleb(Decimal(exact), -places))


def _added(atoms: list[Atom]) -> Atom:
    numbers = [to_double(atom) if isinstance(atom, Untyped) else atom for atom in atoms]
    types = {number.type if isinstance(number, Opaque) else "" for number in numbers}
    if types not in _ADDED or not (types != {""} or all(map(is_number, numbers))):
        raise DynamicError("FORG0006", "sum() and avg() take numbers, or durations of one type")
    return reduce(lambda one, other: arithmetic("+", one, other), numbers)


_ADDED = ({""}, {"xs:dayTimeDuration"}, {"xs:yearMonthDuration"})
_DEFAULT = object()


def _sum(atoms: list[Atom], zero: Any = _DEFAULT) -> Any:
    if atoms:
        return _added(atoms)
    if zero is _DEFAULT:
        return 0
    return [] if zero is None else zero


def _avg(atoms: list[Atom]) -> Any:
    return arithmetic("div", _added(atoms), len(atoms)) if atoms else []


def _check_ordered(values: list[Atom]) -> None:
    """FORG0006 for values of which none is the least: of types without order, or of several."""
    types = {value.type for value in values if isinstance(value, Opaque)}
    are_mixed = any(map(is_number, values)) and not all(map(is_number, values))
    if are_mixed or types - ORDERED_TYPES or len(types) > 1:
        raise DynamicError("FORG0006", "values that have no order")


def _extreme(sign: int) -> Callable[[list[Atom]], Any]:
    def extreme(atoms: list[Atom]) -> Any:
        if not atoms:
            return []
        values = [cast(atom, "xs:double") if isinstance(atom, Untyped) else atom for atom in atoms]
        floats = [value for value in values if isinstance(value, float)]
        if floats and all(map(is_number, values)):
            is_single = all(isinstance(value, Float) for value in floats)
            values = [Float(v) if is_single else to_double(v) for v in values]  # type: ignore[arg-type]
        if any(type(value) is str for value in values):
            values = [str(value) if isinstance(value, AnyUri) else value for value in values]
        best = values[0]
        comparable_or_error(best, best)
        _check_ordered(values)
        for value in values:
            if isinstance(value, float) and isnan(value):
                return value
            one, other = comparable_or_error(value, best)
            if (one > other) if sign > 0 else (one < other):
                best = value
        return best

    return extreme


def comparable_or_error(one: Atom, other: Atom) -> tuple[Any, Any]:
    try:
        return comparable(one, other)
    except DynamicError as error:
        raise DynamicError("FORG0006", str(error)) from None


def _of_its_type(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives an xs:float for one."""

    def typed(number: Number | None, *more: Any) -> Any:
        found = function(number, *more)
        return Float(found) if isinstance(number, Float) else found

    return typed


NUMBER_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "number": _number,
    "abs": _of_its_type(_abs),
    "round": _of_its_type(_round),
    "round-half-to-even": _of_its_type(_half_to_even),
    "floor": _of_its_type(_toward(floor, ROUND_FLOOR)),
    "ceiling": _of_its_type(_toward(ceil, ROUND_CEILING)),
    "sum": _sum,
    "avg": _avg,
    "min": _extreme(-1),
    "max": _extreme(1),
}
