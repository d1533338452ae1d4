"""What a filter of one variable asks of the attributes of a striped graph.

::

    FILTER(?x = "Ann")                      @v = "Ann"                                   exact
    FILTER(?x < 10)                         @n <= 10                                     necessary
    FILTER(?x * 2 < 10)                     @n <= 5.00001                                necessary
    FILTER(contains(?x, "a"))               contains(@v, "a") or contains(@u, "a")       exact
    FILTER(strlen(?x) > 9)                  @v/string-length() > 9 or @u/ …              necessary
    FILTER(lang(?x) = "en")                 @l = "en"                                    exact
    FILTER(?x != <http://example.org/a>)    not(@r = "http://example.org/a")             exact

A condition never says more than the filter.  Numbers and moments are compared as doubles there, as
what they are by SPARQL, so that only a bound can be said of them: two numbers that differ in their
seventeenth digit are one double, and an xsd:float stands with the fewest digits that are it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cache
from math import ceil, floor, inf, isfinite, nextafter
from operator import add, mul, sub, truediv
from typing import NamedTuple, TypeGuard

from formats.graph import striped
from formats.graph.literal_forms import derived_value, is_seconds, value_kind
from formats.graph.vocabulary import RDF, XSD
from yfilter.graph.query_ast import (
    AllOf,
    AnyOf,
    FilterCall,
    FilterComparison,
    FilterExpression,
    Iri,
    LiteralTerm,
    Membership,
    Not,
    Variable,
)
from yfilter.graph.term_values import value_of
from yfilter.language.atoms import is_number, to_double
from yfilter.language.comparison import MIRRORED
from yfilter.language.patterns import compile_pattern
from yfilter.language.query_ast import (
    DOT,
    And,
    Comparison,
    Expression,
    FunctionCall,
    Literal,
    LocationStep,
    Mapped,
    NameTest,
    NodeKind,
    Operator,
    Or,
    Sequence,
    relative,
)
from yfilter.language.trees import flat

NEVER = FunctionCall("false", ())
_STRING = XSD + "string"
_LANGUAGE_STRING = RDF + "langString"
_FLOAT, _DOUBLE = XSD + "float", XSD + "double"
_FLOAT_DIGITS = 6  # of a decimal, which then is the shortest form of the xsd:float nearest to it
_FLOAT_ERROR = 2.0**-22  # more than twice what an xsd:float may be off, as a share of it
_FOURTEEN_HOURS = 14 * 3600


class Place(NamedTuple):
    """Where a variable stands: the attributes there, "" for one that there is not."""

    iri: str
    blank: str
    is_object: bool = False


OBJECT = Place(striped.IRI_OBJECT, striped.BLANK, True)
SUBJECT = Place(striped.IRI_SUBJECT, striped.BLANK)
GRAPH_NAME = Place(striped.GRAPH_IRI, striped.GRAPH_BLANK)


class Said(NamedTuple):
    """``condition``: None where nothing can be said.  ``is_exact``: it holds just where the filter
    is true; ``may_fail``: where it does not hold the filter may be an error, and not false."""

    condition: Expression | None
    is_exact: bool = False
    may_fail: bool = True


_NOTHING = Said(None)


def condition_of(expression: FilterExpression, place: Place) -> Said:
    """What a filter asks of its only variable, at a place of it that has a value."""
    match expression:
        case AllOf(parts) | AnyOf(parts):
            said = [condition_of(part, place) for part in parts]
            known = [one.condition for one in said if one.condition is not None]
            is_any = isinstance(expression, AnyOf)
            if is_any and len(known) < len(said):
                return _NOTHING
            exact = all(one.is_exact for one in said)
            joined = any_of(known) if is_any else all_of(known)
            return Said(joined, exact, any(one.may_fail for one in said))
        case Not(operand):
            inner = condition_of(operand, place)
            if inner.condition is None or not inner.is_exact:
                return _NOTHING
            return Said(_not(inner.condition), not inner.may_fail, inner.may_fail)
        case Membership(Variable(), choices, is_negated):
            return _membership(choices, place, is_negated=is_negated)
        case Membership(operand, choices, False):
            equal = [FilterComparison(operand, Operator.EQ, choice) for choice in choices]
            return condition_of(AnyOf(tuple(equal)), place)._replace(is_exact=False)
        case FilterComparison(left, operator, right):
            if not isinstance(left, Iri | LiteralTerm):
                return _comparison(left, operator, right, place)
            return _comparison(right, MIRRORED[operator], left, place)
        case FilterCall(name, arguments):
            return _call(name, arguments, place)
    return _NOTHING


def term_condition(term: Iri | LiteralTerm, place: Place) -> Expression:
    """That just this term stands at a place."""
    if isinstance(term, Iri):
        return compared(place.iri, Operator.EQ, term.value)
    if not place.is_object:
        return NEVER
    if term.language:
        return And(
            (
                compared(striped.TEXT, Operator.EQ, term.lexical),
                compared(striped.LANGUAGE, Operator.EQ, term.language),
            )
        )
    if term.datatype == _STRING:
        return compared(striped.STRING, Operator.EQ, term.lexical)
    return And(
        (
            compared(striped.LEXICAL, Operator.EQ, term.lexical),
            compared(striped.DATATYPE, Operator.EQ, term.datatype),
        )
    )


def terms_condition(terms: Iterable[Iri | LiteralTerm], place: Place) -> Expression:
    """That one of some terms stands at a place."""
    iris: list[str] = []
    strings: list[str] = []
    others: list[Expression] = []
    for term in dict.fromkeys(terms):
        if isinstance(term, Iri):
            iris.append(term.value)
        elif place.is_object and not term.language and term.datatype == _STRING:
            strings.append(term.lexical)
        else:
            others.append(term_condition(term, place))
    ways = [_among(place.iri, iris), _among(striped.STRING, strings), *others]
    return any_of([way for way in ways if way != NEVER])


@cache
def attribute(name: str, *predicates: Expression) -> Expression:
    """That there is this attribute."""
    return relative(LocationStep(False, NodeKind.ATTRIBUTE, NameTest("", name), predicates))


def compared(name: str, operator: Operator, value: str | int | Decimal | float) -> Expression:
    return Comparison(attribute(name), operator, Literal(value))


def all_of(conditions: Iterable[Expression]) -> Expression | None:
    """None for none."""
    parts = flat(conditions, And)
    if NEVER in parts:
        return NEVER
    if len(parts) > 1:
        parts = tuple(dict.fromkeys(parts))
    if len(parts) < 2:
        return parts[0] if parts else None
    return And(parts)


def any_of(conditions: Iterable[Expression]) -> Expression:
    parts = flat(conditions, Or)
    if len(parts) > 1:
        parts = tuple(dict.fromkeys(part for part in parts if part != NEVER))
    if len(parts) < 2:
        return parts[0] if parts else NEVER
    return Or(parts)


def _among(name: str, values: list[str]) -> Expression:
    if not values:
        return NEVER
    if len(values) == 1:
        return compared(name, Operator.EQ, values[0])
    return Comparison(attribute(name), Operator.EQ, Sequence(tuple(map(Literal, values))))


def _not(condition: Expression) -> Expression:
    return FunctionCall("not", (condition,))


def _literal_at(place: Place) -> Expression:
    """That a literal stands there."""
    if not place.is_object:
        return NEVER
    return Or(tuple(map(attribute, (striped.STRING, striped.TEXT, striped.LEXICAL))))


# -- comparisons


def _comparison(
    left: FilterExpression, operator: Operator, right: FilterExpression, place: Place
) -> Said:
    if not isinstance(right, Iri | LiteralTerm):
        return _NOTHING
    match left:
        case Variable():
            if isinstance(right, Iri) or not _has_value(right):
                return _of_terms(operator, right, place)
            return _of_values(operator, right, place)
        case FilterCall("lang", (Variable(),)) if _is_string(right):
            return _of_language(operator, right.lexical, place)
        case FilterCall("datatype", (Variable(),)) if isinstance(right, Iri):
            return _of_datatype(operator, right.value, place)
    if not isinstance(right, LiteralTerm):
        return _NOTHING
    if _finite(right) is not None:
        return _of_number(left, operator, right, place)
    return _of_text(left, operator, right, place)


def _is_string(term: Iri | LiteralTerm) -> TypeGuard[LiteralTerm]:
    return isinstance(term, LiteralTerm) and not term.language and term.datatype == _STRING


def _has_value(term: LiteralTerm) -> bool:
    """Whether others may be equal to this literal, or ordered with it."""
    return not term.language and term.datatype.startswith(XSD) and term.datatype != _STRING


def _of_terms(operator: Operator, term: Iri | LiteralTerm, place: Place) -> Said:
    """A comparison with what is equal to nothing but itself."""
    if operator is Operator.EQ:
        return Said(term_condition(term, place), True, isinstance(term, LiteralTerm))
    if operator is Operator.NE:
        same = term_condition(term, place)
        return Said(_not(same), isinstance(term, Iri), isinstance(term, LiteralTerm))
    if _is_string(term) and place.is_object:
        return Said(compared(striped.STRING, operator, term.lexical), True)
    return _NOTHING


def _of_values(operator: Operator, term: LiteralTerm, place: Place) -> Said:
    """A comparison with a number or a moment; with another value only literals compare."""
    if operator is Operator.NE:
        return _NOTHING
    if not place.is_object:
        return Said(NEVER)
    kind = value_kind(term.datatype.encode())
    derived = derived_value(term.lexical.encode(), kind) if kind else b""
    if not derived or derived in (b"NaN", b"INF", b"-INF"):
        return Said(attribute(striped.LEXICAL))
    number = float(derived)
    if is_seconds(kind):
        return Said(_bounded(striped.SECONDS, operator, number, number))
    if not _is_short(number) or term.datatype == _FLOAT:
        error = abs(number) * _FLOAT_ERROR
        return Said(_bounded(striped.NUMBER, operator, number - error, number + error))
    if term.datatype == _DOUBLE:  # which decimals beside it are rounded to
        least, most = nextafter(number, -inf), nextafter(number, inf)
        return Said(_bounded(striped.NUMBER, operator, least, most))
    return Said(compared(striped.NUMBER, operator, plain_number(number)), True)


def _is_short(number: float) -> bool:
    """Whether an xsd:float cannot be mistaken for it."""
    is_whole = number.is_integer() and abs(number) < 2**24
    return is_whole or float(f"{number:.{_FLOAT_DIGITS}g}") == number


def _bounded(name: str, operator: Operator, least: float, most: float) -> Expression | None:
    """A comparison of an attribute with something between two numbers."""
    return _between(attribute(name), *_limits(operator, least, most))


def _limits(operator: Operator, least: float, most: float) -> tuple[float, float]:
    """Between which numbers a number is that compares so with something between two numbers."""
    is_open_below = operator in (Operator.LT, Operator.LE)
    is_open_above = operator in (Operator.GT, Operator.GE)
    return -inf if is_open_below else least, inf if is_open_above else most


def plain_number(value: float) -> int | Decimal | float:
    """As a literal of XPath that is this double."""
    if value.is_integer() and abs(value) < 1e15:
        return int(value)
    return Decimal(repr(value)) if 1e-6 < abs(value) < 1e15 else value


def _of_language(operator: Operator, tag: str, place: Place) -> Said:
    has = attribute(striped.LANGUAGE) if not tag else compared(striped.LANGUAGE, Operator.EQ, tag)
    return _of_literal(operator, has, place, is_equal=bool(tag))


def _of_datatype(operator: Operator, datatype: str, place: Place) -> Said:
    if datatype == _STRING:
        has: Expression = attribute(striped.STRING)
    elif datatype == _LANGUAGE_STRING:
        has = attribute(striped.TEXT)
    else:
        has = compared(striped.DATATYPE, Operator.EQ, datatype)
    return _of_literal(operator, has, place)


def _of_literal(
    operator: Operator, has: Expression, place: Place, *, is_equal: bool = True
) -> Said:
    """Whether a literal has something; ``is_equal``: that is so where the two sides are equal."""
    if not place.is_object:
        return Said(NEVER)
    if operator not in (Operator.EQ, Operator.NE):
        return Said(_literal_at(place))
    if (operator is Operator.EQ) == is_equal:
        return Said(has, True)
    return Said(all_of((_literal_at(place), _not(has))), True)


def _of_number(
    left: FilterExpression, operator: Operator, right: LiteralTerm, place: Place
) -> Said:
    """A comparison of a computed number with a number."""
    number = _finite(right)
    if number is None or operator is Operator.NE:
        return _NOTHING
    return Said(_with_bounds(left, *_limits(operator, number, number), place))


def _with_bounds(
    expression: FilterExpression, least: float, most: float, place: Place
) -> Expression | None:
    """That the number of an expression is between two numbers: bounds of the number, the length or
    the year that it is computed of.

    An operation rounds by the datatype of its operands, so that these have a bit more room than
    the inverse operation gives them.
    """
    constant = 0.0
    match expression:
        case Variable():
            return _between(attribute(striped.NUMBER), least, most) if place.is_object else NEVER
        case FilterCall("strlen", (part,)):
            text = _text_of(part, place)
            return text and text.bounded("string-length", least, most)
        case FilterCall("year", (Variable(),)):
            return _year_between(least, most) if place.is_object else NEVER
        case FilterCall(name, (part,)) if name in _EXACT_CASTS:
            least, most = least - 1, most + 1
            text = _text_of(part, place)
            if text is not None:
                ways = [text.bounded("number", *_with_room(least, most))]
                if isinstance(part, Variable):
                    ways.append(_with_bounds(part, *_with_room(least, most), place))
                    ways.append(compared(striped.DATATYPE, Operator.EQ, XSD + "boolean"))
                return None if None in ways else any_of(filter(None, ways))
        case FilterCall("floor" | "ceil" | "round", (part,)):
            least, most = least - 1, most + 1
        case FilterCall("abs", (part,)):
            least = -most
        case FilterCall("-", (part,)):
            least, most = -most, -least
        case FilterCall("+" | "-" | "*" | "/" as operator, (part, LiteralTerm() as term)):
            constant = _finite(term) or 0.0
            if operator in "*/" and not _FACTOR_MIN <= abs(constant) <= 1 / _FACTOR_MIN:
                return None
            undone = _UNDO[operator](least, constant), _UNDO[operator](most, constant)
            least, most = min(undone), max(undone)
        case FilterCall("+" | "*" as operator, (LiteralTerm() as term, part)):
            return _with_bounds(FilterCall(operator, (part, term)), least, most, place)
        case FilterCall("-", (LiteralTerm() as term, part)):
            return _with_bounds(FilterCall("-", (part, term)), -most, -least, place)
        case _:
            return None
    return _with_bounds(part, *_with_room(least, most, constant), place)


_EXACT_CASTS = (XSD + "integer", XSD + "decimal")
_FACTOR_MIN = 1e-6  # of a constant; a product with less might be nothing as an xsd:float
_ROOM = 2.0**-20  # more than an operation on two xsd:float may be off, as a share of them
_ROOM_MIN = 1e-30  # more than the least xsd:float by the least factor
_UNDO: dict[str, Callable[[float, float], float]] = {"+": sub, "-": add, "*": truediv, "/": mul}


def _with_room(least: float, most: float, constant: float = 0.0) -> tuple[float, float]:
    below, above = (_ROOM * (abs(one) + abs(constant)) + _ROOM_MIN for one in (least, most))
    # Of few digits, so that the index may compare exact numbers with them, too.
    return float(f"{least - below:.12g}"), float(f"{most + above:.12g}")


def _between(value: Expression, least: float, most: float) -> Expression | None:
    """That a number is between two others; None for no bounds."""
    if least == most:
        return Comparison(value, Operator.EQ, Literal(plain_number(least)))
    bounds = ((Operator.GE, least), (Operator.LE, most))
    return all_of(
        Comparison(value, operator, Literal(plain_number(bound)))
        for operator, bound in bounds
        if isfinite(bound)
    )


def _finite(term: LiteralTerm) -> float | None:
    """The number of a literal; None of any other, and of NaN and the infinities."""
    atom = value_of(term).atom
    number = to_double(atom) if atom is not None and is_number(atom) else inf
    return number if isfinite(number) else None


def _year_between(least: float, most: float) -> Expression | None:
    """A year begins anywhere within fourteen hours of where it does in Greenwich."""
    begin = _beginning(ceil(least)) - _FOURTEEN_HOURS if 1 <= least <= 9998 else -inf
    end = _beginning(floor(most) + 1) + _FOURTEEN_HOURS if 1 <= most <= 9998 else inf
    return _between(attribute(striped.SECONDS), begin, end)


def _beginning(year: int) -> float:
    """The first second of a year."""
    return float(derived_value(b"%04d-01-01" % year, value_kind(XSD.encode() + b"date")))


def _membership(choices: tuple[FilterExpression, ...], place: Place, *, is_negated: bool) -> Said:
    terms = [choice for choice in choices if isinstance(choice, Iri | LiteralTerm)]
    if len(terms) < len(choices):
        return _NOTHING
    if is_negated:
        parts = [_comparison(Variable(""), Operator.NE, term, place) for term in terms]
        known = [part.condition for part in parts if part.condition is not None]
        return Said(all_of(known), all(part.is_exact for part in parts))
    valued = [term for term in terms if isinstance(term, LiteralTerm) and _has_value(term)]
    same = terms_condition([term for term in terms if term not in valued], place)
    equal = [_of_values(Operator.EQ, term, place).condition or NEVER for term in valued]
    return Said(any_of([same, *equal]), not valued)


# -- functions


def _call(name: str, arguments: tuple[FilterExpression, ...], place: Place) -> Said:
    match name, arguments:
        case "bound", _:
            return Said(None, True, False)
        case "isiri", (Variable(),):
            return Said(attribute(place.iri), True, False)
        case "isblank", (Variable(),):
            return Said(attribute(place.blank), True, False)
        case "isliteral", (Variable(),):
            return Said(_literal_at(place), True, False)
        case "isnumeric", (Variable(),):
            return Said(attribute(striped.NUMBER) if place.is_object else NEVER)
        case "sameterm", ((Variable(), (Iri() | LiteralTerm()) as term) | (term, Variable())):
            if isinstance(term, Iri | LiteralTerm):
                return Said(term_condition(term, place), True, False)
        case ("contains" | "strstarts" | "strends") as test, (text, LiteralTerm() as needle):
            return _text_test(_TESTS[test], text, needle, place)
        case "regex", (text, LiteralTerm(), *_):
            return _search(arguments, place)
        case "langmatches", (FilterCall("lang", (Variable(),)), LiteralTerm() as wanted):
            if _is_string(wanted):
                return _language_range(wanted.lexical.lower(), place)
    return _NOTHING


_TESTS = {"contains": "contains", "strstarts": "starts-with", "strends": "ends-with"}


def _texts(place: Place, *, of_any: bool) -> tuple[str, ...]:
    """The attributes with the text of a string, or of ``str()`` of any term."""
    if not place.is_object:
        return (place.iri,) if of_any else ()
    strings = (striped.STRING, striped.TEXT)
    return (*strings, striped.LEXICAL, place.iri) if of_any else strings


def _either(names: tuple[str, ...], test: Callable[[str], Expression]) -> Said:
    return Said(any_of([test(name) for name in names]), True)


class _Text(NamedTuple):
    """A text of a variable: in which attributes it stands, and its function ``of`` such a one."""

    names: tuple[str, ...]
    of: Expression = DOT

    def at(self, name: str) -> Expression:
        """The text of an attribute, nothing where the attribute is not there."""
        return attribute(name) if self.of == DOT else Mapped(attribute(name), self.of)

    def bounded(self, function: str, least: float, most: float) -> Expression | None:
        """That a number which a function gives of this text is between two others."""
        made = self.within(function)
        ways = [_between(made.at(name), least, most) for name in self.names]
        return None if None in ways else any_of(filter(None, ways))

    def within(self, function: str, *arguments: Expression) -> _Text:
        """A function of this text."""
        return self._replace(of=FunctionCall(function, (self.of, *arguments)))


def _text_of(expression: FilterExpression, place: Place) -> _Text | None:
    match expression:
        case Variable():
            return _Text(_texts(place, of_any=False))
        case FilterCall("str", (Variable(),)):
            return _Text(_texts(place, of_any=True))
        case FilterCall("concat", (LiteralTerm(before), inner)):
            text = _text_of(inner, place)
            return text and text._replace(of=FunctionCall("concat", (Literal(before), text.of)))
        case FilterCall(name, (inner, *constants)) if name in _OF_TEXTS:
            text = _text_of(inner, place)
            literals = [_constant(one) for one in constants]
            if text is None or None in literals:
                return None
            return text.within(_OF_TEXTS[name], *filter(None, literals))
    return None


_OF_TEXTS = {
    "str": "string",
    "lcase": "lower-case",
    "ucase": "upper-case",
    "substr": "substring",
    "strbefore": "substring-before",
    "strafter": "substring-after",
    "concat": "concat",
}


def _constant(term: FilterExpression) -> Literal | None:
    """A string or an integer as a literal of XPath."""
    value = value_of(term) if isinstance(term, LiteralTerm) else None
    if value is None or not isinstance(value.atom, str | int) or isinstance(value.atom, bool):
        return None
    return Literal(value.atom)


def _text_test(
    function: str, expression: FilterExpression, needle: LiteralTerm, place: Place
) -> Said:
    text = _text_of(expression, place)
    if text is None:
        return _NOTHING

    def test(name: str) -> Expression:
        if not needle.lexical:
            return attribute(name)
        return FunctionCall(function, (text.at(name), Literal(needle.lexical)))

    return _either(text.names, test)._replace(is_exact=text.of == DOT and not needle.language)


def _search(arguments: tuple[FilterExpression, ...], place: Place) -> Said:
    text = _text_of(arguments[0], place)
    constants = [one.lexical for one in arguments[1:] if isinstance(one, LiteralTerm)]
    if text is None or len(constants) < len(arguments) - 1:
        return _NOTHING
    literals = tuple(map(Literal, constants))
    if not compile_pattern(*constants).is_nullable:
        found = _either(
            text.names, lambda name: FunctionCall("matches", (text.at(name), *literals))
        )
    else:  # matches() takes what is not there for an empty text
        own = FunctionCall("matches", (text.of, *literals))
        found = _either(text.names, lambda name: attribute(name, own))
    return found._replace(is_exact=text.of == DOT)


def _of_text(left: FilterExpression, operator: Operator, right: LiteralTerm, place: Place) -> Said:
    """A comparison of a computed text with a string, or with one that has a language."""
    text = _text_of(left, place)
    if text is None or (text.of != DOT and operator is not Operator.EQ):
        return _NOTHING
    wanted = Literal(right.lexical)
    found = _either(text.names, lambda name: Comparison(text.at(name), operator, wanted))
    return found._replace(is_exact=text.of == DOT and _is_string(right))


def _language_range(wanted: str, place: Place) -> Said:
    if not place.is_object or not wanted:
        return Said(NEVER if not place.is_object else _literal_at(place))
    if wanted == "*":
        return Said(attribute(striped.LANGUAGE), True)
    tag = attribute(striped.LANGUAGE)
    below = FunctionCall("starts-with", (tag, Literal(f"{wanted}-")))
    return Said(Or((compared(striped.LANGUAGE, Operator.EQ, wanted), below)), True)
