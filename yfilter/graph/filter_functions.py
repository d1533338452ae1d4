"""The functions of filters: built-in ones and casts (SPARQL 1.1, sections 17.4 and 17.5).

A function takes the values of its arguments and gives a value; None is an error, for an argument
as for a result.  Those whose arguments may be errors or unbound (bound, if, coalesce) are no
functions of values; filter_evaluation.py has them.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from math import ceil, floor, isfinite, isnan
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
    read_boolean,
    read_date,
    read_date_time,
    read_decimal,
    read_double,
    read_float,
    read_integer,
    value_of,
)
from yfilter.graph.value_operators import (
    Number,
    as_double,
    decimal_text,
    effective_truth,
    number_in,
    of_number,
    of_truth,
)
from yfilter.language.budget import Budget
from yfilter.language.numbers import DECIMALS, number_text
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


def _string(values: Values, _budget: Budget) -> TermValue | None:
    term = values[0].term
    if isinstance(term, Iri):
        return of_text(term.value)
    return of_text(term.lexical) if isinstance(term, LiteralTerm) else None


def _lang(values: Values, _budget: Budget) -> TermValue | None:
    return of_text(_language(values[0])) if values[0].is_literal else None


def _lang_matches(values: Values, _budget: Budget) -> TermValue | None:
    if values[0].kind is not ValueKind.STRING or values[1].kind is not ValueKind.STRING:
        return None
    tag, wanted = str(values[0].value).lower(), str(values[1].value).lower()
    if wanted == "*":
        return of_truth(tag != "")
    return of_truth(tag == wanted or tag.startswith(f"{wanted}-"))


def _datatype(values: Values, _budget: Budget) -> TermValue | None:
    term = values[0].term
    if not isinstance(term, LiteralTerm):
        return None
    return value_of(Iri(RDF + "langString" if term.language else term.datatype))


def _is_kind(*kinds: ValueKind) -> Function:
    return lambda values, _budget: of_truth(values[0].kind in kinds)


def _is_literal(values: Values, _budget: Budget) -> TermValue | None:
    return of_truth(values[0].is_literal)


def _is_numeric(values: Values, _budget: Budget) -> TermValue | None:
    return of_truth(values[0].is_number)


def _same_term(values: Values, _budget: Budget) -> TermValue | None:
    return of_truth(values[0].term == values[1].term)


def _with_language(values: Values, _budget: Budget) -> TermValue | None:
    if values[0].kind is not ValueKind.STRING or values[1].kind is not ValueKind.STRING:
        return None
    language = str(values[1].value).lower()
    parts = language.split("-")
    if not (parts[0].isascii() and parts[0].isalpha()):
        return None
    if not all(part.isascii() and part.isalnum() for part in parts):
        return None
    return value_of(LiteralTerm(str(values[0].value), language=language))


def _with_datatype(values: Values, _budget: Budget) -> TermValue | None:
    datatype = values[1].term
    if values[0].kind is not ValueKind.STRING or not isinstance(datatype, Iri):
        return None
    if datatype.value == RDF + "langString":
        return None
    return value_of(LiteralTerm(str(values[0].value), datatype.value))


def _strlen(values: Values, _budget: Budget) -> TermValue | None:
    text = text_in(values[0])
    return None if text is None else of_number(len(text), ValueKind.INTEGER)


def _cased(change: Callable[[str], str]) -> Function:
    def changed(values: Values, budget: Budget) -> TermValue | None:
        text = text_in(values[0])
        if text is None:
            return None
        budget.charge_text(len(text))
        return of_text(change(text), values[0])

    return changed


def _substr(values: Values, budget: Budget) -> TermValue | None:
    text = text_in(values[0])
    if text is None or not all(one.is_number for one in values[1:]):
        return None
    budget.charge_text(len(text))
    start = _rounded_half_up(as_double(number_in(values[1])))
    end = (
        start + _rounded_half_up(as_double(number_in(values[2])))
        if len(values) == 3
        else float("inf")
    )
    if isnan(start) or isnan(end):
        return of_text("", values[0])
    first = int(max(min(start, len(text) + 1.0), 1.0))
    last = int(max(min(end, len(text) + 1.0), 1.0))
    return of_text(text[first - 1 : max(last, first) - 1], values[0])


def _compatible(values: Values) -> tuple[str, str] | None:
    """Two texts that a function may take together (17.4.3.1.2)."""
    one, other = text_in(values[0]), text_in(values[1])
    if one is None or other is None:
        return None
    return (one, other) if _language(values[1]) in ("", _language(values[0])) else None


def _text_test(test: Callable[[str, str], bool]) -> Function:
    def tested(values: Values, budget: Budget) -> TermValue | None:
        texts = _compatible(values)
        if texts is None:
            return None
        budget.charge_text(len(texts[0]))
        return of_truth(test(*texts))

    return tested


def _text_cut(cut: Callable[[str, str], str | None]) -> Function:
    def done(values: Values, budget: Budget) -> TermValue | None:
        texts = _compatible(values)
        if texts is None:
            return None
        budget.charge_text(len(texts[0]))
        found = cut(*texts)
        return of_text("") if found is None else of_text(found, values[0])

    return done


def _before(text: str, part: str) -> str | None:
    return text.partition(part)[0] if part in text and part else ("" if not part else None)


def _after(text: str, part: str) -> str | None:
    return text.partition(part)[2] if part in text and part else (text if not part else None)


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


def _encode_for_uri(values: Values, budget: Budget) -> TermValue | None:
    text = text_in(values[0])
    if text is None:
        return None
    budget.charge_text(len(text))
    return of_text(quote(text, safe="-_.~"))


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


def _rounded(change: Callable[[Number], Number]) -> Function:
    def rounded(values: Values, _budget: Budget) -> TermValue | None:
        if not values[0].is_number:
            return None
        return of_number(change(number_in(values[0])), values[0].kind)

    return rounded


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


def _part_of_date(part: Callable[[Moment], int]) -> Function:
    def taken(values: Values, _budget: Budget) -> TermValue | None:
        moment = values[0].value
        return of_number(part(moment), ValueKind.INTEGER) if isinstance(moment, Moment) else None

    return taken


def _seconds(values: Values, _budget: Budget) -> TermValue | None:
    moment = values[0].value
    return of_number(moment.second, ValueKind.DECIMAL) if isinstance(moment, Moment) else None


def _zone_text(values: Values, _budget: Budget) -> TermValue | None:
    moment = values[0].value
    return of_text(moment.zone) if isinstance(moment, Moment) else None


def _zone_duration(values: Values, _budget: Budget) -> TermValue | None:
    moment = values[0].value
    if not isinstance(moment, Moment) or moment.offset is None:
        return None
    hours, minutes = divmod(abs(moment.offset), 60)
    parts = f"{hours}H" * bool(hours) + f"{minutes}M" * bool(minutes)
    text = f"{'-' if moment.offset < 0 else ''}PT{parts or '0S'}"
    return value_of(LiteralTerm(text, XSD + "dayTimeDuration"))


def _cast_to_string(values: Values, budget: Budget) -> TermValue | None:
    value = values[0]
    if value.kind in (ValueKind.FLOAT, ValueKind.DOUBLE):
        return of_text(number_text(as_double(number_in(value))))
    if value.kind is ValueKind.DECIMAL:
        return of_text(decimal_text(Decimal(number_in(value))))
    if value.kind is ValueKind.INTEGER:
        return of_text(str(value.value))
    if value.kind is ValueKind.BOOLEAN:
        return of_text("true" if value.value else "false")
    return _string(values, budget)


def _cast_to_number(kind: ValueKind, read: Callable[[str], Number | None]) -> Function:
    def cast(values: Values, _budget: Budget) -> TermValue | None:
        value = values[0]
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

    return cast


def _cast_to_boolean(values: Values, _budget: Budget) -> TermValue | None:
    value = values[0]
    if value.kind is ValueKind.STRING:
        return of_truth(read_boolean(str(value.value).strip(" \t\n\r")))
    if value.kind is ValueKind.BOOLEAN or value.is_number:
        return of_truth(effective_truth(value))
    return None


def _cast_to_moment(
    kind: ValueKind, datatype: str, read: Callable[[str], Moment | None]
) -> Function:
    def cast(values: Values, _budget: Budget) -> TermValue | None:
        value = values[0]
        if value.kind is kind:
            return value
        if isinstance(value.value, Moment):  # one with a clock from one without, or the reverse
            day, zone = _lexical(value).partition("T")[0], value.value.zone
            day = day.removesuffix(zone)
            text = f"{day}{zone}" if kind is ValueKind.DATE else f"{day}T00:00:00{zone}"
            return value_of(LiteralTerm(text, datatype))
        if value.kind is not ValueKind.STRING:
            return None
        text = str(value.value).strip(" \t\n\r")
        return value_of(LiteralTerm(text, datatype)) if read(text) is not None else None

    return cast


def _lexical(value: TermValue) -> str:
    return value.term.lexical if isinstance(value.term, LiteralTerm) else ""


# name -> how many arguments at least and at most, and the function.
FUNCTIONS: dict[str, tuple[int, int, Function]] = {
    "str": (1, 1, _string),
    "lang": (1, 1, _lang),
    "langmatches": (2, 2, _lang_matches),
    "datatype": (1, 1, _datatype),
    "isiri": (1, 1, _is_kind(ValueKind.IRI)),
    "isblank": (1, 1, _is_kind(ValueKind.BLANK)),
    "isliteral": (1, 1, _is_literal),
    "isnumeric": (1, 1, _is_numeric),
    "sameterm": (2, 2, _same_term),
    "strlang": (2, 2, _with_language),
    "strdt": (2, 2, _with_datatype),
    "strlen": (1, 1, _strlen),
    "ucase": (1, 1, _cased(str.upper)),
    "lcase": (1, 1, _cased(str.lower)),
    "substr": (2, 3, _substr),
    "contains": (2, 2, _text_test(lambda text, part: part in text)),
    "strstarts": (2, 2, _text_test(str.startswith)),
    "strends": (2, 2, _text_test(str.endswith)),
    "strbefore": (2, 2, _text_cut(_before)),
    "strafter": (2, 2, _text_cut(_after)),
    "concat": (0, 64, _concat),
    "encode_for_uri": (1, 1, _encode_for_uri),
    "regex": (2, 3, _regex),
    "replace": (3, 4, _replace),
    "abs": (1, 1, _rounded(_absolute)),
    "ceil": (1, 1, _rounded(_to_integer(ROUND_CEILING, lambda real: float(ceil(real))))),
    "floor": (1, 1, _rounded(_to_integer(ROUND_FLOOR, lambda real: float(floor(real))))),
    "round": (1, 1, _rounded(_round)),
    "year": (1, 1, _part_of_date(lambda moment: moment.year)),
    "month": (1, 1, _part_of_date(lambda moment: moment.month)),
    "day": (1, 1, _part_of_date(lambda moment: moment.day)),
    "hours": (1, 1, _part_of_date(lambda moment: moment.hour)),
    "minutes": (1, 1, _part_of_date(lambda moment: moment.minute)),
    "seconds": (1, 1, _seconds),
    "tz": (1, 1, _zone_text),
    "timezone": (1, 1, _zone_duration),
    XSD_STRING: (1, 1, _cast_to_string),
    XSD_BOOLEAN: (1, 1, _cast_to_boolean),
    XSD_INTEGER: (1, 1, _cast_to_number(ValueKind.INTEGER, read_integer)),
    XSD_DECIMAL: (1, 1, _cast_to_number(ValueKind.DECIMAL, read_decimal)),
    XSD_FLOAT: (1, 1, _cast_to_number(ValueKind.FLOAT, read_float)),
    XSD_DOUBLE: (1, 1, _cast_to_number(ValueKind.DOUBLE, read_double)),
    XSD_DATE_TIME: (1, 1, _cast_to_moment(ValueKind.DATE_TIME, XSD_DATE_TIME, read_date_time)),
    XSD_DATE: (1, 1, _cast_to_moment(ValueKind.DATE, XSD_DATE, read_date)),
}
