"""The functions of filters: built-in ones and casts (SPARQL 1.1, sections 17.4 and 17.5).

A function takes the values of its arguments and gives a value; None is an error, for an argument
as for a result.  Those whose arguments may be errors or unbound (bound, if, coalesce) are no
functions of values; join_program.py has them.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from math import ceil, floor, isfinite
from typing import TypeAlias
from urllib.parse import quote

from formats.graph.vocabulary import RDF, XSD
from yfilter.graph.moments import Moment
from yfilter.graph.query_ast import Iri, LiteralTerm
from yfilter.graph.term_values import (
    XSD_BOOLEAN,
    XSD_DATE,
    XSD_DATE_TIME,
    XSD_DECIMAL,
    XSD_DOUBLE,
    XSD_FLOAT,
    XSD_INTEGER,
    XSD_STRING,
    TermValue,
    ValueKind,
    read_date,
    read_date_time,
    read_double,
    read_float,
    value_of,
)
from yfilter.graph.value_operators import (
    Number,
    as_double,
    bounded_text,
    effective_truth,
    float_text,
    number_in,
    of_number,
    of_truth,
)
from yfilter.language.atoms import BOOLEANS
from yfilter.language.budget import Budget
from yfilter.language.numbers import (
    DECIMALS,
    decimal_text,
    number_text,
    parse_decimal,
    parse_integer,
)
from yfilter.language.pattern_syntax import PatternError
from yfilter.language.patterns import Pattern, compile_pattern

Values: TypeAlias = "list[TermValue]"
Function: TypeAlias = "Callable[[Values, Budget], TermValue | None]"

_TEXT_MAX = 1 << 20  # characters of a string that a function makes


def of_text(text: str, like: TermValue | None = None) -> TermValue | None:
    """A string, with the language of another."""
    if len(text) > _TEXT_MAX:
        return None
    if like is not None and isinstance(like.term, LiteralTerm) and like.term.language:
        return TermValue(LiteralTerm(text, language=like.term.language), ValueKind.TAGGED, text)
    return TermValue(LiteralTerm(text), ValueKind.STRING, text)


def text_in(value: TermValue) -> str | None:
    """The characters of a string, with a language or without; None of anything else."""
    return str(value.value) if value.is_text else None


def _language(value: TermValue) -> str:
    return value.term.language if isinstance(value.term, LiteralTerm) else ""


# -- what functions are given


def _of_terms(function: Callable[..., TermValue | None]) -> Function:
    """The values one by one."""
    return lambda values, _budget: function(*values)


def _of_kinds(*kinds: ValueKind) -> Function:
    return lambda values, _budget: of_truth(values[0].kind in kinds)


def _of_text(function: Callable[..., TermValue | None]) -> Function:
    """The text of the first value, and the values; an error if that is no string."""

    def called(values: Values, budget: Budget) -> TermValue | None:
        text = text_in(values[0])
        if text is None:
            return None
        budget.charge_text(len(text))
        return function(text, *values)

    return called


def _of_texts(function: Callable[[str, str, TermValue], TermValue | None]) -> Function:
    """Two texts that a function may take together (17.4.3.1.2), and the value of the first."""

    def called(values: Values, budget: Budget) -> TermValue | None:
        one, other = text_in(values[0]), text_in(values[1])
        if one is None or other is None:
            return None
        if _language(values[1]) not in ("", _language(values[0])):
            return None
        budget.charge_text(len(one))
        return function(one, other, values[0])

    return called


def _of_number(change: Callable[[Number], Number]) -> Function:
    """A number, which becomes another of its kind."""

    def called(values: Values, _budget: Budget) -> TermValue | None:
        if not values[0].is_number:
            return None
        return of_number(change(number_in(values[0])), values[0].kind)

    return called


def _of_moment(
    function: Callable[[Moment], TermValue | None], *, has_clock: bool = False
) -> Function:
    """Of a date too, unless the function is about the time of day."""

    def called(values: Values, _budget: Budget) -> TermValue | None:
        moment = values[0].value
        if not isinstance(moment, Moment) or (has_clock and values[0].kind is ValueKind.DATE):
            return None
        return function(moment)

    return called


# -- functions of terms and texts


def _string(value: TermValue) -> TermValue | None:
    if isinstance(value.term, Iri):
        return of_text(value.term.value)
    return of_text(value.term.lexical) if isinstance(value.term, LiteralTerm) else None


def _lang_matches(tag: TermValue, wanted: TermValue) -> TermValue | None:
    if tag.kind is not ValueKind.STRING or wanted.kind is not ValueKind.STRING:
        return None
    own, asked = str(tag.value).lower(), str(wanted.value).lower()
    if asked == "*":
        return of_truth(own != "")
    return of_truth(own == asked or own.startswith(f"{asked}-"))


def _datatype(value: TermValue) -> TermValue | None:
    term = value.term
    if not isinstance(term, LiteralTerm):
        return None
    return value_of(Iri(RDF + "langString" if term.language else term.datatype))


def _with_language(text: TermValue, tag: TermValue) -> TermValue | None:
    if text.kind is not ValueKind.STRING or tag.kind is not ValueKind.STRING:
        return None
    language = str(tag.value).lower()
    parts = language.split("-")
    if not (parts[0].isascii() and parts[0].isalpha()):
        return None
    if not all(part.isascii() and part.isalnum() for part in parts):
        return None
    return value_of(LiteralTerm(str(text.value), language=language))


def _with_datatype(text: TermValue, datatype: TermValue) -> TermValue | None:
    if text.kind is not ValueKind.STRING or not isinstance(datatype.term, Iri):
        return None
    if datatype.term.value == RDF + "langString":
        return None
    return value_of(LiteralTerm(str(text.value), datatype.term.value))


def _substr(text: str, value: TermValue, *bounds: TermValue) -> TermValue | None:
    if not all(one.kind is ValueKind.INTEGER for one in bounds):
        return None
    start, *sizes = (int(number_in(one)) for one in bounds)
    end = start + sizes[0] if sizes else len(text) + 1
    first = max(start, 1)
    return of_text(text[first - 1 : max(end, first) - 1], value)


def _before(text: str, part: str, value: TermValue) -> TermValue | None:
    if part not in text:
        return of_text("")
    return of_text(text.partition(part)[0] if part else "", value)


def _after(text: str, part: str, value: TermValue) -> TermValue | None:
    if part not in text:
        return of_text("")
    return of_text(text.partition(part)[2] if part else text, value)


def _concat(values: Values, budget: Budget) -> TermValue | None:
    texts = [text_in(one) for one in values]
    if None in texts:
        return None
    size = sum(len(text) for text in texts if text)
    budget.charge_text(size)
    if size > _TEXT_MAX:
        return None
    languages = {_language(one) for one in values}
    return of_text("".join(filter(None, texts)), values[0] if len(languages) == 1 else None)


def _regex(values: Values, budget: Budget) -> TermValue | None:
    text, pattern = text_in(values[0]), _pattern_in(values, 2)
    if text is None or pattern is None:
        return None
    budget.charge_text(len(text))
    return of_truth(pattern.search(text, budget.charge))


def _replace(values: Values, budget: Budget) -> TermValue | None:
    text, pattern = text_in(values[0]), _pattern_in(values, 3)
    if text is None or pattern is None or pattern.is_nullable:
        return None
    budget.charge_text(len(text))
    parts, place, size = [], 0, 0
    for start, end, groups in pattern.finditer(text, budget.charge):
        parts += [text[place:start], _filled(str(values[2].value), text, (start, end), groups)]
        size += len(parts[-1])
        budget.charge()
        if size > _TEXT_MAX:
            return None
        place = end
    return of_text("".join([*parts, text[place:]]), values[0])


def _pattern_in(values: Values, flags_at: int) -> Pattern | None:
    """The second value as a pattern; None where it is none, or one behind the first no string."""
    if any(one.kind is not ValueKind.STRING for one in values[1:]):
        return None
    flags = str(values[flags_at].value) if len(values) > flags_at else ""
    try:
        return compile_pattern(str(values[1].value), flags)
    except PatternError:
        return None


def _filled(
    replacement: str,
    text: str,
    whole: tuple[int, int],
    groups: tuple[tuple[int, int] | None, ...],
) -> str:
    """A replacement with what its groups have matched: ``$1``; ``\\$`` is the sign itself."""
    written, place = [], 0
    while place < len(replacement):
        character = replacement[place]
        following = replacement[place + 1 : place + 2]
        if character == "\\" and following:
            written.append(following)
            place += 2
        elif character == "$" and following.isdigit():
            number = int(following)
            span = whole if number == 0 else (groups[number - 1] if number <= len(groups) else None)
            written.append(text[span[0] : span[1]] if span else "")
            place += 2
        else:
            written.append(character)
            place += 1
    return "".join(written)


# -- functions of numbers and moments


def _to_integer(rounding: str, on_double: Callable[[float], float]) -> Callable[[Number], Number]:
    def change(number: Number) -> Number:
        if isinstance(number, int):
            return number
        if isinstance(number, Decimal):
            return number.to_integral_value(rounding=rounding, context=DECIMALS)
        return on_double(number) if isfinite(number) else number

    return change


def _absolute(number: Number) -> Number:
    return DECIMALS.abs(number) if isinstance(number, Decimal) else abs(number)


def _rounded_half_up(number: float) -> float:
    return float(floor(number + 0.5)) if isfinite(number) else number


def _round(number: Number) -> Number:
    if isinstance(number, Decimal) and number < 0:  # halves go up, not away from zero
        return -(-number).to_integral_value(rounding="ROUND_HALF_DOWN", context=DECIMALS)
    return _to_integer(ROUND_HALF_UP, _rounded_half_up)(number)


def _zone_duration(moment: Moment) -> TermValue | None:
    if moment.offset is None:
        return None
    hours, minutes = divmod(abs(moment.offset), 60)
    parts = f"{hours}H" * bool(hours) + f"{minutes}M" * bool(minutes)
    text = f"{'-' if moment.offset < 0 else ''}PT{parts or '0S'}"
    return value_of(LiteralTerm(text, XSD + "dayTimeDuration"))


# -- casts


def _cast_to_string(value: TermValue) -> TermValue | None:
    if value.kind in (ValueKind.FLOAT, ValueKind.DOUBLE):
        text_of = float_text if value.kind is ValueKind.FLOAT else number_text
        return of_text(text_of(as_double(number_in(value))))
    if value.kind is ValueKind.DECIMAL:
        return of_text(bounded_text(Decimal(number_in(value))))
    if value.kind is ValueKind.INTEGER:
        return of_text(str(value.value))
    if value.kind is ValueKind.BOOLEAN:
        return of_text("true" if value.value else "false")
    if isinstance(value.value, Moment):
        moment = value.value
        fraction = decimal_text(DECIMALS.remainder(moment.second, Decimal(1)))[1:]
        clock = f"T{moment.hour:02}:{moment.minute:02}:{int(moment.second):02}{fraction}"
        zone = "Z" if moment.offset == 0 else moment.zone
        return of_text(f"{moment.day_text}{'' if value.kind is ValueKind.DATE else clock}{zone}")
    return _string(value)


def _cast_to_number(kind: ValueKind, read: Callable[[str], Number | None]) -> Function:
    def cast(value: TermValue) -> TermValue | None:
        if value.kind is ValueKind.STRING:
            number = read(str(value.value).strip(" \t\n\r"))
        elif value.kind is ValueKind.BOOLEAN:
            number = int(bool(value.value))
        elif value.is_number:
            number = number_in(value)
            if kind < ValueKind.FLOAT and isinstance(number, float) and not isfinite(number):
                return None
            if kind is ValueKind.DECIMAL and isinstance(number, float):
                number = Decimal(repr(number))
        else:
            return None
        return None if number is None else of_number(number, kind)

    return _of_terms(cast)


def _cast_to_boolean(value: TermValue) -> TermValue | None:
    if value.kind is ValueKind.STRING:
        return of_truth(BOOLEANS.get(str(value.value).strip(" \t\n\r")))
    if value.kind is ValueKind.BOOLEAN or value.is_number:
        return of_truth(effective_truth(value))
    return None


def _cast_to_moment(
    kind: ValueKind, datatype: str, read: Callable[[str], Moment | None]
) -> Function:
    def cast(value: TermValue) -> TermValue | None:
        if value.kind is kind:
            return value
        if isinstance(value.value, Moment):  # one with a clock from one without, or the reverse
            clock = "" if kind is ValueKind.DATE else "T00:00:00"
            text = f"{value.value.day_text}{clock}{value.value.zone}"
            return value_of(LiteralTerm(text, datatype))
        if value.kind is not ValueKind.STRING:
            return None
        text = str(value.value).strip(" \t\n\r")
        return value_of(LiteralTerm(text, datatype)) if read(text) is not None else None

    return _of_terms(cast)


FUNCTIONS: dict[str, Function] = {
    "str": _of_terms(_string),
    "lang": _of_terms(lambda one: of_text(_language(one)) if one.is_literal else None),
    "langmatches": _of_terms(_lang_matches),
    "datatype": _of_terms(_datatype),
    "isiri": _of_kinds(ValueKind.IRI),
    "isblank": _of_kinds(ValueKind.BLANK),
    "isliteral": _of_terms(lambda value: of_truth(value.is_literal)),
    "isnumeric": _of_terms(lambda value: of_truth(value.is_number)),
    "sameterm": _of_terms(lambda one, other: of_truth(one.term == other.term)),
    "strlang": _of_terms(_with_language),
    "strdt": _of_terms(_with_datatype),
    "strlen": _of_text(lambda text, _: of_number(len(text), ValueKind.INTEGER)),
    "ucase": _of_text(lambda text, value: of_text(text.upper(), value)),
    "lcase": _of_text(lambda text, value: of_text(text.lower(), value)),
    "substr": _of_text(_substr),
    "contains": _of_texts(lambda text, part, _: of_truth(part in text)),
    "strstarts": _of_texts(lambda text, part, _: of_truth(text.startswith(part))),
    "strends": _of_texts(lambda text, part, _: of_truth(text.endswith(part))),
    "strbefore": _of_texts(_before),
    "strafter": _of_texts(_after),
    "concat": _concat,
    "encode_for_uri": _of_text(lambda text, _: of_text(quote(text, safe="-_.~"))),
    "regex": _regex,
    "replace": _replace,
    "abs": _of_number(_absolute),
    "ceil": _of_number(_to_integer(ROUND_CEILING, lambda real: float(ceil(real)))),
    "floor": _of_number(_to_integer(ROUND_FLOOR, lambda real: float(floor(real)))),
    "round": _of_number(_round),
    "year": _of_moment(lambda moment: of_number(moment.year, ValueKind.INTEGER)),
    "month": _of_moment(lambda moment: of_number(moment.month, ValueKind.INTEGER)),
    "day": _of_moment(lambda moment: of_number(moment.day, ValueKind.INTEGER)),
    "hours": _of_moment(lambda at: of_number(at.hour, ValueKind.INTEGER), has_clock=True),
    "minutes": _of_moment(lambda at: of_number(at.minute, ValueKind.INTEGER), has_clock=True),
    "seconds": _of_moment(lambda at: of_number(at.second, ValueKind.DECIMAL), has_clock=True),
    "tz": _of_moment(lambda moment: of_text(moment.zone)),
    "timezone": _of_moment(_zone_duration),
    XSD_STRING: _of_terms(_cast_to_string),
    XSD_BOOLEAN: _of_terms(_cast_to_boolean),
    XSD_INTEGER: _cast_to_number(ValueKind.INTEGER, parse_integer),
    XSD_DECIMAL: _cast_to_number(ValueKind.DECIMAL, parse_decimal),
    XSD_FLOAT: _cast_to_number(ValueKind.FLOAT, read_float),
    XSD_DOUBLE: _cast_to_number(ValueKind.DOUBLE, read_double),
    XSD_DATE_TIME: _cast_to_moment(ValueKind.DATE_TIME, XSD_DATE_TIME, read_date_time),
    XSD_DATE: _cast_to_moment(ValueKind.DATE, XSD_DATE, read_date),
}
"""By their names as FilterCall has them; how many arguments they take is the parser's."""
