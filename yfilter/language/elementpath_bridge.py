"""Evaluates small expressions of XPath 2.0 by elementpath: ``$a0 + $a1``, ``xs:time($a0)``.

What the language has no values of its own for (binary data, parts of dates) comes back as
an ``Opaque``: its type, its text, a key that compares as the value does, and
elementpath's value for the next call.  An expression is parsed once.  elementpath is loaded when a
profile first needs it.

==================================  ==================================================
elementpath                         here
==================================  ==================================================
types derived from xs:integer       int
types derived from xs:string        str
xs:anyURI, xs:float                 AnyUri, a str; Float, a float
all others                          Opaque
==================================  ==================================================
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

from yfilter.language.functions import NEWER_FUNCTIONS
from yfilter.language.namespaces import CODEPOINT_COLLATION
from yfilter.language.nodes import AnyUri, Atom, DynamicError, Float, Opaque, Untyped
from yfilter.language.temporal import Temporal

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
