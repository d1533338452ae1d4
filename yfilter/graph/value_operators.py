"""Operators of filters on values: None is SPARQL's type error (SPARQL 1.1, section 17)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from math import isnan
from typing import TypeAlias

from yfilter.graph.moments import Moment
from yfilter.graph.query_ast import LiteralTerm
from yfilter.graph.term_values import (
    XSD_BOOLEAN,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_INTEGER,
    TermValue,
    ValueKind,
    as_float,
)
from yfilter.language.atoms import doubles
from yfilter.language.numbers import (
    DECIMALS,
    DIGITS_MAX,
    QUOTIENT_DIGITS,
    decimal_text,
    number_text,
    parse_decimal,
)

Number: TypeAlias = "int | Decimal | float"

_INTEGER_MAX: int = 10**DIGITS_MAX


def effective_truth(value: TermValue | None) -> bool | None:
    """The effective boolean value (17.2.2)."""
    if value is None:
        return None
    if value.kind in (ValueKind.BOOLEAN, ValueKind.INVALID):
        return value.value  # type: ignore[return-value]  # or None, of an invalid date
    if value.is_text:
        return bool(value.value)
    if value.is_number:
        number = number_in(value)
        return bool(number) and not isnan(number)
    return None


def equal(left: TermValue | None, right: TermValue | None) -> bool | None:
    """``=`` (17.4.1.7 and the operators for what has values)."""
    if left is None or right is None:
        return None
    if left.is_number and right.is_number:
        one, other = _promoted(left, right)
        return one == other
    if left.term == right.term:
        return True
    if not (left.is_literal and right.is_literal):
        return False
    kinds = (left.kind, right.kind)
    if ValueKind.TAGGED in kinds:
        return False
    if ValueKind.OTHER in kinds or ValueKind.INVALID in kinds:
        return None
    if left.kind is not right.kind:
        return False
    if isinstance(left.value, Moment) and isinstance(right.value, Moment):
        order = left.value.order(right.value)
        return None if order is None else order == 0
    return left.value == right.value


def less(left: TermValue | None, right: TermValue | None) -> bool | None:
    """``<``."""
    if left is None or right is None:
        return None
    if left.is_number and right.is_number:
        one, other = _promoted(left, right)
        return one < other
    if left.kind is not right.kind:
        return None
    if left.kind is ValueKind.STRING or left.kind is ValueKind.BOOLEAN:
        return left.value < right.value  # type: ignore[operator]
    if isinstance(left.value, Moment) and isinstance(right.value, Moment):
        order = left.value.order(right.value)
        return None if order is None else order < 0
    return None


def at_most(left: TermValue | None, right: TermValue | None) -> bool | None:
    """``<=``; not less-or-equal of the two, for NaN."""
    if left is None or right is None:
        return None
    if left.is_number and right.is_number:
        one, other = _promoted(left, right)
        return one <= other
    is_less = less(left, right)
    return True if is_less else (None if is_less is None else equal(left, right))


def negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def number_in(value: TermValue) -> Number:
    """The number that a numeric value is."""
    assert isinstance(value.value, (int, Decimal, float))
    return value.value


def arithmetic(operator: str, left: TermValue | None, right: TermValue | None) -> TermValue | None:
    """``+ - * /`` of two numbers."""
    if left is None or right is None or not (left.is_number and right.is_number):
        return None
    kind = max(left.kind, right.kind)
    one, other = _promoted(left, right)
    if kind >= ValueKind.FLOAT:
        return of_number(doubles(_OF_DOUBLES[operator], float(one), float(other)), kind)
    if operator == "/":
        return _quotient(Decimal(one), Decimal(other))
    if kind is ValueKind.INTEGER:
        return of_number(_ON_EXACT[operator](one, other), kind)
    return of_number(_ON_DECIMALS[operator](Decimal(one), Decimal(other)), kind)


def negative(value: TermValue | None) -> TermValue | None:
    """Unary minus."""
    if value is None or not value.is_number:
        return None
    number = number_in(value)
    return of_number(DECIMALS.minus(number) if isinstance(number, Decimal) else -number, value.kind)


def of_truth(truth: bool | None) -> TermValue | None:
    """An xsd:boolean."""
    if truth is None:
        return None
    return TRUE if truth else FALSE


def of_number(number: Number, kind: ValueKind) -> TermValue | None:
    """A number of a kind with its canonical form; None if it is too long to be written."""
    if kind is ValueKind.INTEGER:
        whole = int(number)
        if not -_INTEGER_MAX < whole < _INTEGER_MAX:
            return None
        return TermValue(LiteralTerm(str(whole), XSD_INTEGER), kind, whole)
    if kind is ValueKind.DECIMAL:
        text = bounded_text(Decimal(number))
        value = parse_decimal(text)
        if value is None:
            return None
        return TermValue(LiteralTerm(text, XSD_DECIMAL), kind, value)
    real = as_double(number)
    if kind is ValueKind.FLOAT:
        real = as_float(real)
        return TermValue(LiteralTerm(float_text(real), XSD_FLOAT), kind, real)
    return TermValue(LiteralTerm(number_text(real), XSD_DOUBLE), kind, real)


def float_text(real: float) -> str:
    """The shortest text that is read as this xs:float again."""
    for digits in range(1, 10):
        shorter = float(f"{real:.{digits}g}")
        if as_float(shorter) == real:
            return number_text(shorter)
    return number_text(real)


def bounded_text(number: Decimal) -> str:
    """Of a decimal; of one that is too long something that is none."""
    if abs(number.adjusted()) > DIGITS_MAX:
        return "0" if number == 0 else "beyond"
    return decimal_text(number)


def as_double(number: Number) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _promoted(left: TermValue, right: TermValue) -> tuple[Number, Number]:
    """Two numbers of the same type (17.3)."""
    one, other = number_in(left), number_in(right)
    if left.kind is right.kind:
        return one, other
    kind = max(left.kind, right.kind)
    if kind < ValueKind.FLOAT:
        return one, other
    one, other = as_double(one), as_double(other)
    return (as_float(one), as_float(other)) if kind is ValueKind.FLOAT else (one, other)


def _quotient(one: Decimal, other: Decimal) -> TermValue | None:
    if other == 0:
        return None
    digits = len(one.as_tuple().digits) + len(other.as_tuple().digits) + QUOTIENT_DIGITS
    quotient = Context(prec=digits, Emin=-999_999, Emax=999_999).divide(one, other)
    if -quotient.as_tuple().exponent > QUOTIENT_DIGITS + DIGITS_MAX // 2:  # type: ignore[operator]
        return None
    return of_number(quotient, ValueKind.DECIMAL)


_OF_DOUBLES = {"+": "+", "-": "-", "*": "*", "/": "div"}
_ON_EXACT: dict[str, Callable[[Number, Number], Number]] = {
    "+": lambda one, other: one + other,  # type: ignore[operator]
    "-": lambda one, other: one - other,  # type: ignore[operator]
    "*": lambda one, other: one * other,  # type: ignore[operator]
}
_ON_DECIMALS: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": DECIMALS.add,
    "-": DECIMALS.subtract,
    "*": DECIMALS.multiply,
}

TRUE = TermValue(LiteralTerm("true", XSD_BOOLEAN), ValueKind.BOOLEAN, True)
FALSE = TermValue(LiteralTerm("false", XSD_BOOLEAN), ValueKind.BOOLEAN, False)
