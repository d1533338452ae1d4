"""TermValue: a term with what it means to a filter, by its datatype."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from enum import IntEnum

from formats.graph.vocabulary import XSD
from yfilter.graph.moments import Moment, parse_moment
from yfilter.graph.query_ast import BlankNode, GroundTerm, Iri
from yfilter.language.atoms import BOOLEANS
from yfilter.language.numbers import parse_decimal, parse_double, parse_integer

XSD_STRING = XSD + "string"
XSD_BOOLEAN = XSD + "boolean"
XSD_INTEGER = XSD + "integer"
XSD_DECIMAL = XSD + "decimal"
XSD_FLOAT = XSD + "float"
XSD_DOUBLE = XSD + "double"
XSD_DATE_TIME = XSD + "dateTime"
XSD_DATE = XSD + "date"

_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_WHITE = " \t\n\r"


class ValueKind(IntEnum):
    """What operators tell apart; the numbers in their order of promotion."""

    IRI = 0
    BLANK = 1
    STRING = 2
    TAGGED = 3
    BOOLEAN = 4
    INTEGER = 5
    DECIMAL = 6
    FLOAT = 7
    DOUBLE = 8
    DATE_TIME = 9
    DATE = 10
    OTHER = 11  # of a datatype that no operator knows
    INVALID = 12  # of one that it knows, but not a lexical form of it


class TermValue:
    """``value``: str of a string, with a language or not, bool, int, Decimal, float, Moment, or the
    bool that an invalid one counts as; else None.  ``number``: the term's in the message, or 0."""

    __slots__ = ("is_number", "kind", "number", "term", "value")

    def __init__(self, term: GroundTerm, kind: ValueKind, value: object = None) -> None:
        self.term = term
        self.kind = kind
        self.value = value
        self.number = 0
        self.is_number = ValueKind.INTEGER <= kind <= ValueKind.DOUBLE

    @property
    def is_text(self) -> bool:
        """A string, with a language or without."""
        return self.kind is ValueKind.STRING or self.kind is ValueKind.TAGGED

    @property
    def is_literal(self) -> bool:
        return self.kind >= ValueKind.STRING


def value_of(term: GroundTerm) -> TermValue:
    """The value of a term."""
    if isinstance(term, Iri):
        return TermValue(term, ValueKind.IRI)
    if isinstance(term, BlankNode):
        return TermValue(term, ValueKind.BLANK)
    if term.language:
        return TermValue(term, ValueKind.TAGGED, term.lexical)
    if term.datatype == XSD_STRING:
        return TermValue(term, ValueKind.STRING, term.lexical)
    known = _READERS.get(term.datatype)
    if known is None:
        return TermValue(term, ValueKind.OTHER)
    kind, read = known
    value = read(term.lexical.strip(_WHITE))
    if value is None:
        is_false = kind is ValueKind.BOOLEAN or ValueKind.INTEGER <= kind <= ValueKind.DOUBLE
        return TermValue(term, ValueKind.INVALID, False if is_false else None)
    return TermValue(term, kind, value)


def read_double(text: str) -> float | None:
    if _DOUBLE.fullmatch(text) is None:
        return None
    return parse_double(text.removeprefix("+") if text == "+INF" else text)


def read_float(text: str) -> float | None:
    value = read_double(text)
    return None if value is None else as_float(value)


def as_float(value: float) -> float:
    """The nearest xs:float."""
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return rounded


def read_date_time(text: str) -> Moment | None:
    return parse_moment(text, is_date=False)


def read_date(text: str) -> Moment | None:
    return parse_moment(text, is_date=True)


def _integers_within(least: int | None, most: int | None) -> Callable[[str], int | None]:
    def read(text: str) -> int | None:
        value = parse_integer(text)
        if value is None or (least is not None and value < least):
            return None
        return None if most is not None and value > most else value

    return read


_INTEGER_RANGES: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-128, 127),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 255),
}

_READERS: dict[str, tuple[ValueKind, Callable[[str], object]]] = {
    **{
        XSD + name: (ValueKind.INTEGER, _integers_within(*bounds))
        for name, bounds in _INTEGER_RANGES.items()
    },
    XSD_DECIMAL: (ValueKind.DECIMAL, parse_decimal),
    XSD_FLOAT: (ValueKind.FLOAT, read_float),
    XSD_DOUBLE: (ValueKind.DOUBLE, read_double),
    XSD_BOOLEAN: (ValueKind.BOOLEAN, BOOLEANS.get),
    XSD_DATE_TIME: (ValueKind.DATE_TIME, read_date_time),
    XSD_DATE: (ValueKind.DATE, read_date),
}
