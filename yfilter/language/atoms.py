"""Atomic values: casts, comparisons and arithmetic, with the rules of XPath 2.0.

==============================  ==========================================
XPath                           here
==============================  ==========================================
xs:untypedAtomic                Untyped
xs:string                       str
xs:integer                      int (never bool)
xs:decimal                      Decimal
xs:double                       float
xs:boolean                      bool
xs:date, xs:dateTime, xs:time   Temporal
durations, xs:QName             Opaque, whose key is months and seconds, or namespace and local name
others                          Opaque; elementpath reckons with them
==============================  ==========================================

What elementpath takes for a lexical form and XML Schema does not (``1_000`` and digits of other
scripts as numbers, white space that is none of XML's) is refused here, in front of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import ROUND_FLOOR, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from functools import lru_cache
from math import copysign, fmod, inf, isfinite, isinf, isnan, nan, trunc
from typing import Any, TypeGuard

from formats.characters import is_colonless_name
from formats.graph.literal_forms import INTEGER_TYPES
from yfilter.language.functions import NEWER_FUNCTIONS
from yfilter.language.namespaces import CODEPOINT_COLLATION
from yfilter.language.nodes import AnyUri, Atom, DynamicError, Float, Opaque, Untyped
from yfilter.language.numbers import (
    DECIMALS,
    DIGITS_MAX,
    QUOTIENT_DIGITS,
    decimal_text,
    number_text,
    parse_decimal,
    parse_double,
    parse_integer,
)
from yfilter.language.query_ast import Operator
from yfilter.language.temporal import (
    DURATIONS,
    MOMENTS,
    Temporal,
    duration_text,
    parse_duration,
    parse_temporal,
)

# -------------------------------------------------------------------------------------------------
# Small expressions of XPath 2.0 by elementpath, parsed once: ``$a0 + $a1``, ``xs:time($a0)``.  Of
# types that the language has not itself (binary data, parts of dates) values are ``Opaque``.


_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_EXPRESSIONS_MAX = 1_024


def evaluate(expression: str, *arguments: Any) -> list[Atom]:
    """The atomic values of an expression of ``$a0``, ``$a1``, …; DynamicError where it has none.

    An argument is an atomic value, None for the empty sequence, or a list of values.
    """
    from elementpath import ElementPathError, XPathContext  # noqa: PLC0415

    try:
        variables = {f"a{number}": _given(value) for number, value in enumerate(arguments)}
        context = XPathContext(None, item=1, variables=variables, timezone="Z")
        found = _parsed(expression).get_results(context)
        return [_taken(value) for value in (found if isinstance(found, list) else [found])]
    except ElementPathError as error:
        code = (error.code or "FOER0000").removeprefix("err:")
        raise DynamicError(code, error.message[:200]) from None
    except _ERRORS as error:
        is_moment = any(isinstance(argument, Temporal) for argument in arguments)
        is_beyond = is_moment and isinstance(error, OverflowError | ValueError)
        code = "FODT0001" if is_beyond else "FOER0000"
        raise DynamicError(code, str(error)[:200]) from None


@lru_cache(_EXPRESSIONS_MAX)
def _parsed(expression: str) -> Any:
    from elementpath import XPath2Parser  # noqa: PLC0415

    if expression.partition("(")[0] in NEWER_FUNCTIONS:
        from elementpath.xpath31 import XPath31Parser  # noqa: PLC0415

        return XPath31Parser(default_collation=CODEPOINT_COLLATION).parse(expression)
    return XPath2Parser(default_collation=CODEPOINT_COLLATION).parse(expression)


def _given(value: Any) -> Any:
    from elementpath import datatypes  # noqa: PLC0415

    match value:
        case None:
            return []
        case list():
            return [_given(atom) for atom in value]
        case Untyped():
            return datatypes.UntypedAtomic(str(value))
        case Temporal():
            kinds = {"xs:date": datatypes.Date10, "xs:time": datatypes.Time}
            text = str(replace(value, fraction=Decimal(0)))
            return kinds.get(value.type, datatypes.DateTime10).fromstring(text)  # type: ignore[attr-defined]
        case Opaque():
            return copy(value.value)  # elementpath gives times that have none a time zone in place
        case AnyUri():
            return datatypes.AnyURI(str(value))
        case Float():
            return datatypes.Float(value)
        case _:
            return value


def _taken(value: Any) -> Atom:
    from elementpath import datatypes  # noqa: PLC0415

    match value:
        case bool():
            return value
        case int():
            return int(value)
        case datatypes.Float():
            return Float(value)
        case float():
            return float(value)
        case Decimal():
            return value
        case datatypes.UntypedAtomic():
            return Untyped(value.value)
        case datatypes.AnyURI():
            return AnyUri(str(value))
        case str():
            return str(value)
        case _:
            return Opaque(f"xs:{value.name}", str(value), _key(value), value)


def _key(value: Any) -> tuple[Any, ...]:
    """Equal, and for durations of one type and times in order, as the values are."""
    from elementpath import datatypes  # noqa: PLC0415

    match value:
        case datatypes.HexBinary() | datatypes.Base64Binary():
            return (value.decode(),)
        case datatypes.GregorianDay() | datatypes.GregorianMonthDay():
            # As XPath has it: by when that day began in the last month of 1972, or in that year.
            month = 12 if isinstance(value, datatypes.GregorianDay) else value.month
            offset = (value.tzinfo and value.tzinfo.utcoffset(None)) or timedelta()
            return (datetime(1972, month, value.day) - offset,)
        case _:
            return (str(value).removesuffix("Z"),)


BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
# Types derived from xs:string: what a text whose white space is collapsed has to be.
_SHORT = 256  # characters of a text whose cast is remembered
_TEXTS: dict[str, Callable[[str], object]] = {
    "xs:normalizedString": lambda text: True,
    "xs:token": lambda text: True,
    "xs:language": re.compile("[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8})*").fullmatch,
    "xs:Name": lambda text: is_colonless_name(text.replace(":", "_")),
    "xs:NMTOKEN": lambda text: text and is_colonless_name(f"_{text.replace(':', '_')}"),
    **dict.fromkeys(("xs:NCName", "xs:ID", "xs:IDREF", "xs:ENTITY"), is_colonless_name),
}
_LEAST = Decimal(1).scaleb(-DIGITS_MAX)
_SPACE = " \t\n\r"
_WHITE = re.compile(f"[{_SPACE}]")
DURATIONS_ORDERED = frozenset(("xs:dayTimeDuration", "xs:yearMonthDuration"))
ORDERED = DURATIONS_ORDERED | {"xs:hexBinary", "xs:base64Binary"}
_MONTHS_MAX, _SECONDS_MAX = 1 << 31, 1 << 63
INTEGERS = {f"xs:{name.decode()}": bounds for name, *bounds in INTEGER_TYPES}
"""xs:integer and the types derived from it, with the least and the greatest of their values."""
_OWN = MOMENTS | INTEGERS.keys() | {"xs:boolean", "xs:decimal", "xs:double", "xs:float"}
_ASCII = frozenset(
    f"xs:{name}"
    for name in (
        *("gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay"),
        *("hexBinary", "base64Binary"),
    )
)


def is_number(atom: Atom) -> bool:
    return isinstance(atom, int | float | Decimal) and not isinstance(atom, bool)


def atom_text(atom: Atom) -> str:
    """An atomic value cast to xs:string."""
    if isinstance(atom, str):
        return str(atom)
    if isinstance(atom, bool):
        return "true" if atom else "false"
    if isinstance(atom, Decimal):
        return decimal_text(atom)
    if isinstance(atom, Temporal | Opaque):
        return str(atom)
    return number_text(atom)


def cast(atom: Atom, type_name: str) -> Atom:
    """``atom cast as type_name``; DynamicError FORG0001, or XPTY0004 where no cast exists."""
    if type_name == "xs:string":
        return atom_text(atom)
    if type_name == "xs:untypedAtomic":
        return Untyped(atom_text(atom))
    if isinstance(atom, Opaque) and atom.type == type_name == "xs:QName":
        return atom
    if type_name == "xs:QName" and isinstance(atom, Untyped):
        name = atom.strip(_SPACE)
        if ":" in name:
            raise DynamicError("FONS0004", "a prefix in a message's text is declared nowhere")
        if not is_colonless_name(name):
            raise _no_value(atom, type_name)
        return qname("", name)
    if type_name in _TEXTS:
        text = _WHITE.sub(" ", atom_text(atom))
        if type_name != "xs:normalizedString":
            text = " ".join(filter(None, text.split(" ")))
        if not _TEXTS[type_name](text):
            raise _no_value(text, type_name)
        return text
    if isinstance(atom, AnyUri) and type_name != "xs:anyURI":
        raise DynamicError("XPTY0004", f"an xs:anyURI cannot be cast to {type_name}")
    if type_name in DURATIONS and (isinstance(atom, str) or is_duration(atom)):
        return _to_duration(atom, type_name)
    if type_name not in _OWN or isinstance(atom, Opaque):
        if isinstance(atom, str) and type_name in _ASCII and not atom.isascii():
            raise _no_value(atom, type_name)
        try:
            is_short = isinstance(atom, str) and len(atom) <= _SHORT
            cast_by_elementpath = _cast_before if is_short else _cast
            return cast_by_elementpath(type(atom), atom, type_name)
        except DynamicError as error:
            if error.code != "FORG0001":
                raise
            raise _no_value(atom, type_name) from None
    if isinstance(atom, str):
        found = from_text(atom.strip(_SPACE), type_name)
        if found is None:
            raise _no_value(atom, type_name)
        if isinstance(found, Temporal) and found.cycles:
            raise DynamicError("FODT0001", "a year that is not from 1 to 9999")
        return found
    if isinstance(atom, Temporal):
        moment = atom.as_type(type_name)
        if moment is None:
            raise DynamicError("XPTY0004", f"a {atom.type} cannot be cast to {type_name}")
        return moment
    if type_name in MOMENTS:
        raise DynamicError("XPTY0004", f"a number or boolean cannot be cast to {type_name}")
    if type_name == "xs:boolean":
        return bool(atom) and atom == atom  # noqa: PLR0124  NaN is false
    if type_name in ("xs:double", "xs:float"):
        number = to_double(atom)
        return Float(number) if type_name == "xs:float" else number
    if isinstance(atom, float) and (isnan(atom) or isinf(atom)):
        raise DynamicError("FOCA0002", f"{number_text(atom)} is no {type_name}")
    if type_name == "xs:decimal":
        return Decimal(atom)
    whole = trunc(atom)
    if not _is_within(whole, type_name):
        raise _no_value(atom, type_name)
    return whole


def _cast(_: type, atom: Atom, type_name: str) -> Atom:
    return _one(f"$a0 cast as {type_name}", atom)


# Few names of namespaces and the like stand in many places.
_cast_before = lru_cache(1_024)(_cast)


def _no_value(atom: Atom, type_name: str) -> DynamicError:
    return DynamicError("FORG0001", f"{atom_text(atom)[:80]!r} is no {type_name}")


def _one(expression: str, *atoms: Atom) -> Atom:
    found = evaluate(expression, *atoms)
    if len(found) != 1:
        raise DynamicError("XPTY0004", f"no value of {expression}")
    return found[0]


def to_double(atom: Atom) -> float:
    if isinstance(atom, Temporal | Opaque):
        raise DynamicError("XPTY0004", f"{type_name(atom)} is no number")
    if isinstance(atom, str):
        number = parse_double(atom)
        if number is None:
            raise DynamicError("FORG0001", f"{str(atom)[:80]!r} is no number")
        return number
    try:
        # Python's Decimal has a negative zero, xs:decimal has none.
        return float(atom) if isinstance(atom, float) or atom else 0.0
    except OverflowError:
        return inf if atom > 0 else -inf


def from_text(text: str, type_name: str) -> Atom | None:
    """The value of a lexical form without white space around it, or None."""
    match type_name:
        case "xs:boolean":
            return BOOLEANS.get(text)
        case "xs:decimal":
            return parse_decimal(text)
        case "xs:double":
            return parse_double(text)
        case "xs:float":
            double = parse_double(text)
            return None if double is None else Float(double)
        case "xs:date" | "xs:dateTime" | "xs:time":
            return parse_temporal(text, type_name)
    whole = parse_integer(text)
    return whole if whole is not None and _is_within(whole, type_name) else None


def _is_within(number: int, type_name: str) -> bool:
    """Whether an integer is a value of a type derived from xs:integer."""
    least, most = INTEGERS[type_name]
    return (least is None or least <= number) and (most is None or number <= most)


def qname(namespace: str, lexical: str) -> Opaque:
    """``QName(namespace, lexical)``; FOCA0002 for what is none."""
    prefix, colon, local = lexical.rpartition(":")
    if not is_colonless_name(local) or (colon and not (namespace and is_colonless_name(prefix))):
        what = f"{lexical[:80]!r} is no name, or its prefix has no namespace"
        raise DynamicError("FOCA0002", what)
    return Opaque("xs:QName", lexical, (namespace, local), None)


# -- durations


def is_duration(atom: Atom | None) -> TypeGuard[Opaque]:
    return isinstance(atom, Opaque) and atom.type in DURATIONS


def duration(type_name: str, months: int, seconds: Decimal) -> Opaque:
    """FODT0002 for one that is too long."""
    if abs(months) >= _MONTHS_MAX or abs(seconds) >= _SECONDS_MAX:
        raise DynamicError("FODT0002", "a duration that is too long")
    seconds = abs(seconds) if seconds == 0 else seconds
    text = duration_text(type_name, months, seconds)
    return Opaque(type_name, text, (months, seconds), None)


def _to_duration(atom: str | Opaque, type_name: str) -> Opaque:
    found = parse_duration(atom, type_name) if isinstance(atom, str) else atom.key
    if found is None:
        raise _no_value(atom, type_name)
    months = 0 if type_name == "xs:dayTimeDuration" else found[0]
    seconds = Decimal(0) if type_name == "xs:yearMonthDuration" else found[1]
    return duration(type_name, months, seconds)


# -- comparisons


def compare(left: Atom, relation: Operator, right: Atom) -> bool:
    """Two atomic values as a value comparison does; XPTY0004 if they cannot be compared."""
    one, other = comparable(left, right)
    check_order(left, relation, right)
    return relation.holds(one, other)


def comparable(left: Atom, right: Atom) -> tuple[Any, Any]:
    """The two as Python values of one type; an untyped one counts as a string."""
    if isinstance(left, str) and isinstance(right, str):
        return left, right
    if is_number(left) and is_number(right):
        if isinstance(left, float) or isinstance(right, float):
            one, other = to_double(left), to_double(right)
            if isinstance(left, Float) != isinstance(right, Float) and not (
                type(left) is float or type(right) is float
            ):  # of an xs:float and an exact number the latter is made one
                return Float(one), Float(other)
            return one, other
        return left, right
    if isinstance(left, bool) and isinstance(right, bool):
        return left, right
    if isinstance(left, Temporal) and isinstance(right, Temporal) and left.type == right.type:
        return left.instant, right.instant
    if isinstance(left, Opaque) and isinstance(right, Opaque) and left.primitive == right.primitive:
        return left.key, right.key
    raise DynamicError("XPTY0004", f"{type_name(left)} cannot be compared with {type_name(right)}")


def general_pair(left: Atom, right: Atom) -> tuple[Any, Any]:
    """As ``comparable``, where an untyped value is cast to the type of the other one."""
    if isinstance(left, Untyped) and not isinstance(right, str):
        left = cast(left, "xs:double" if is_number(right) else type_name(right))
    elif isinstance(right, Untyped) and not isinstance(left, str):
        right = cast(right, "xs:double" if is_number(left) else type_name(left))
    return comparable(left, right)


def holds_pair(left: Atom, relation: Operator, right: Atom) -> bool:
    one, other = general_pair(left, right)
    check_order(left, relation, right)
    return relation.holds(one, other)


def check_order(left: Atom, relation: Operator, right: Atom) -> None:
    """XPTY0004 for less and greater among values that are only equal or not."""
    if isinstance(left, Opaque) or isinstance(right, Opaque):
        types = {atom.type for atom in (left, right) if isinstance(atom, Opaque)}
        is_of_order = relation not in (Operator.EQ, Operator.NE)
        if is_of_order and (len(types) > 1 or types - ORDERED):
            raise DynamicError("XPTY0004", f"{' and '.join(sorted(types))} have no order")


def order_sign(one: Atom | None, other: Atom | None, empty_greatest: bool) -> int:
    """Of two keys of ``order by``: -1, 0 or 1.  An empty one, and then NaN, is less than all others
    unless it is greatest.  XPTY0004 for values that have no order."""
    ranks = (_rank(one), _rank(other))
    if one is None or other is None or ranks != (2, 2):
        sign = (ranks[0] > ranks[1]) - (ranks[0] < ranks[1])
        return -sign if empty_greatest else sign
    check_order(one, Operator.GT, other)
    left, right = comparable(one, other)
    return int(left > right) - int(left < right)


def _rank(atom: Atom | None) -> int:
    if atom is None:
        return 0
    return 1 if isinstance(atom, float) and atom != atom else 2  # noqa: PLR0124


def type_name(atom: Atom) -> str:
    match atom:
        case Untyped():
            return "xs:untypedAtomic"
        case AnyUri():
            return "xs:anyURI"
        case str():
            return "xs:string"
        case bool():
            return "xs:boolean"
        case int():
            return "xs:integer"
        case Decimal():
            return "xs:decimal"
        case Float():
            return "xs:float"
        case float():
            return "xs:double"
        case _:
            return atom.type


# -- arithmetic


def negate(operand: Atom) -> Atom:
    number = _number(operand)
    if isinstance(number, Float):
        return Float(-number)
    if isinstance(number, Decimal):
        return number.copy_negate() if number else number.copy_abs()
    return -number


def arithmetic(name: str, left: Atom, right: Atom) -> Atom:
    """``left name right``; DynamicError FOAR0001, FOAR0002 or XPTY0004."""
    if isinstance(left, Temporal | Opaque) or isinstance(right, Temporal | Opaque):
        return _of_times(name, left, right)
    one, other = _number(left), _number(right)
    if isinstance(one, float) or isinstance(other, float):
        kind = float if type(one) is float or type(other) is float else Float
        return doubles(name, kind(to_double(one)), kind(to_double(other)), kind)
    if name in ("div", "idiv", "mod") and other == 0:
        raise DynamicError("FOAR0001", "division by zero")
    if isinstance(one, int) and isinstance(other, int) and name != "div":
        return _integers(name, one, other)
    return _decimals(name, Decimal(one), Decimal(other))


def _of_times(name: str, left: Atom, right: Atom) -> Atom:
    """Arithmetic of F&O on dates, times and durations."""
    left, right = (to_double(a) if isinstance(a, Untyped) else a for a in (left, right))
    if name in "+*" and isinstance(right, Temporal | Opaque) and not is_duration(left):
        left, right = (left, right) if isinstance(left, Temporal) else (right, left)
    elif name == "+" and isinstance(right, Temporal):
        left, right = right, left
    sign = -1 if name == "-" else 1
    is_sum = name in "+-" and len(name) == 1
    if isinstance(left, Temporal) and is_duration(right) and is_sum:
        is_of_time = right.type == "xs:dayTimeDuration"
        if is_of_time or (right.type in DURATIONS_ORDERED and left.type != "xs:time"):
            months, seconds = right.key
            try:
                return left.moved(sign * months, DECIMALS.multiply(sign, seconds))
            except OverflowError:
                raise DynamicError("FODT0001", "a date beyond the years 1 to 9999") from None
    elif isinstance(left, Temporal) and isinstance(right, Temporal):
        if name == "-" and left.type == right.type:
            return duration("xs:dayTimeDuration", 0, left.since(right))
    elif is_duration(left) and left.type in DURATIONS_ORDERED:
        which = left.type == "xs:dayTimeDuration"
        amount = Decimal(left.key[which])
        if is_duration(right) and right.type == left.type:
            if is_sum:
                other = DECIMALS.multiply(sign, Decimal(right.key[which]))
                return _amount(left.type, DECIMALS.add(amount, other))
            if name == "div":
                if not right.key[which]:
                    raise DynamicError("FOAR0001", "division by a duration of no length")
                return _decimals("div", amount, Decimal(right.key[which]))
        elif name in ("*", "div") and is_number(right):
            return _scaled(name, left.type, amount, right)
    types = f"{type_name(left)} and {type_name(right)}"
    raise DynamicError("XPTY0004", f"there is no {types} with {name} between them")


def _scaled(name: str, type_name: str, amount: Decimal, number: Any) -> Opaque:
    if isinstance(number, float) and isnan(number):
        raise DynamicError("FOCA0005", "a duration times NaN")
    if isinstance(number, float) and isinf(number):
        if name == "div":
            return _amount(type_name, Decimal(0))
        raise DynamicError("FODT0002", "a duration that is too long")
    if name == "div" and number == 0:
        raise DynamicError("FODT0002", "a duration divided by zero")
    exact = Decimal(repr(float(number))) if isinstance(number, float) else Decimal(number)
    found = _decimals(name, amount, exact)
    assert isinstance(found, Decimal)
    return _amount(type_name, found)


def _amount(type_name: str, amount: Decimal) -> Opaque:
    """A duration of so many seconds, or months, which are whole: halves go up."""
    if type_name == "xs:dayTimeDuration":
        return duration(type_name, 0, amount)
    months = DECIMALS.add(amount, Decimal("0.5")).to_integral_value(ROUND_FLOOR)
    return duration(type_name, int(months), Decimal(0))


def _number(atom: Atom) -> int | float | Decimal:
    if isinstance(atom, Untyped):
        return to_double(atom)
    if isinstance(atom, bool) or not isinstance(atom, int | float | Decimal):
        raise DynamicError("XPTY0004", f"{type_name(atom)} is no number")
    return atom


def _integers(name: str, one: int, other: int) -> int:
    match name:
        case "+":
            result = one + other
        case "-":
            result = one - other
        case "*":
            result = one * other
        case _:
            quotient = abs(one) // abs(other)
            quotient = quotient if (one < 0) == (other < 0) else -quotient
            result = quotient if name == "idiv" else one - other * quotient
    if result.bit_length() > 3 * DIGITS_MAX:
        raise DynamicError("FOAR0002", "an integer of too many digits")
    return result


def _decimals(name: str, one: Decimal, other: Decimal) -> Atom:
    """Exact, up to DIGITS_MAX digits on either side of the point; FOAR0002 beyond."""
    try:
        match name:
            case "+":
                found = DECIMALS.add(one, other)
            case "-":
                found = DECIMALS.subtract(one, other)
            case "*":
                found = DECIMALS.multiply(one, other)
            case "div":
                digits = max(QUOTIENT_DIGITS, one.adjusted() - other.adjusted() + QUOTIENT_DIGITS)
                found = Context(prec=digits).divide(one, other)
            case "idiv":
                found = DECIMALS.divide_int(one, other)
            case _:
                found = DECIMALS.remainder(one, other)
    except (InvalidOperation, Overflow, DivisionByZero) as error:
        raise DynamicError("FOAR0002", f"{name} is beyond xs:decimal") from error
    if found.adjusted() >= DIGITS_MAX:
        raise DynamicError("FOAR0002", "a decimal of too many digits")
    if found.as_tuple().exponent < -DIGITS_MAX:  # type: ignore[operator]
        found = DECIMALS.quantize(found, _LEAST)
    return int(found) if name == "idiv" else found


def doubles(name: str, one: float, other: float, kind: type[float] = float) -> int | float:
    """Two numbers of one ``kind``, xs:double or xs:float, which the result is of as well."""
    match name:
        case "+":
            return kind(one + other)
        case "-":
            return kind(one - other)
        case "*":
            return kind(one * other)
        case "div":
            return kind(_quotient(one, other))
        case "idiv":
            if other == 0:
                raise DynamicError("FOAR0001", "division by zero")
            quotient = kind(one / other)
            if not isfinite(quotient):
                raise DynamicError("FOAR0002", "no integer")
            return trunc(quotient)
        case _:
            if isnan(one) or isnan(other) or isinf(one) or other == 0:
                return kind(nan)
            return one if isinf(other) else kind(fmod(one, other))


def _quotient(one: float, other: float) -> float:
    if other != 0:
        return one / other
    if isnan(one) or one == 0:
        return nan
    return copysign(inf, one) * copysign(1.0, other)
