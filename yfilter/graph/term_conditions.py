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
from yfilter.graph import query_ast as sparql
from yfilter.graph.filter_functions import value_of
from yfilter.language import query_ast as ast
from yfilter.language.atoms import is_number, to_double
from yfilter.language.patterns import compile_pattern
from yfilter.language.trees import flat

NEVER = ast.FunctionCall("false", ())
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

    condition: ast.Expression | None
    is_exact: bool = False
    may_fail: bool = True


_NOTHING = Said(None)


def condition_of(expression: ast.Expression, place: Place) -> Said:
    """What a filter asks of its only variable, at a place of it that has a value."""
    match expression:
        case ast.And(parts) | ast.Or(parts):
            said = [condition_of(part, place) for part in parts]
            known = [one.condition for one in said if one.condition is not None]
            is_any = isinstance(expression, ast.Or)
            if is_any and len(known) < len(said):
                return _NOTHING
            exact = all(one.is_exact for one in said)
            joined = any_of(known) if is_any else all_of(known)
            return Said(joined, exact, any(one.may_fail for one in said))
        case ast.FunctionCall("not", (operand,)):
            inner = condition_of(operand, place)
            if inner.condition is None or not inner.is_exact:
                return _NOTHING
            return Said(sparql.negation(inner.condition), not inner.may_fail, inner.may_fail)
        case sparql.Membership(sparql.Variable(), choices, is_negated):
            return _membership(choices, place, is_negated=is_negated)
        case sparql.Membership(operand, choices, False):
            equal = [ast.Comparison(operand, ast.Operator.EQ, choice) for choice in choices]
            return condition_of(ast.Or(tuple(equal)), place)._replace(is_exact=False)
        case ast.Comparison(left, operator, right):
            if not isinstance(left, sparql.Iri | sparql.LiteralTerm):
                return _comparison(left, operator, right, place)
            return _comparison(right, ast.MIRRORED[operator], left, place)
        case ast.FunctionCall(name, arguments):
            return _call(name, arguments, place)
    return _NOTHING


def term_condition(term: sparql.Iri | sparql.LiteralTerm, place: Place) -> ast.Expression:
    """That just this term stands at a place."""
    if isinstance(term, sparql.Iri):
        return compared(place.iri, ast.Operator.EQ, term.value)
    if not place.is_object:
        return NEVER
    if term.language:
        return ast.And(
            (
                compared(striped.TEXT, ast.Operator.EQ, term.lexical),
                compared(striped.LANGUAGE, ast.Operator.EQ, term.language),
            )
        )
    if term.datatype == _STRING:
        return compared(striped.STRING, ast.Operator.EQ, term.lexical)
    return ast.And(
        (
            compared(striped.LEXICAL, ast.Operator.EQ, term.lexical),
            compared(striped.DATATYPE, ast.Operator.EQ, term.datatype),
        )
    )


def terms_condition(
    terms: Iterable[sparql.Iri | sparql.LiteralTerm], place: Place
) -> ast.Expression:
    """That one of some terms stands at a place."""
    iris: list[str] = []
    strings: list[str] = []
    others: list[ast.Expression] = []
    for term in dict.fromkeys(terms):
        if isinstance(term, sparql.Iri):
            iris.append(term.value)
        elif place.is_object and not term.language and term.datatype == _STRING:
            strings.append(term.lexical)
        else:
            others.append(term_condition(term, place))
    ways = [_among(place.iri, iris), _among(striped.STRING, strings), *others]
    return any_of([way for way in ways if way != NEVER])


@cache
def attribute(name: str, *predicates: ast.Expression) -> ast.Expression:
    """That there is this attribute."""
    return ast.relative(
        ast.LocationStep(False, ast.NodeKind.ATTRIBUTE, ast.NameTest("", name), predicates)
    )


def compared(
    name: str, operator: ast.Operator, value: str | int | Decimal | float
) -> ast.Expression:
    return ast.Comparison(attribute(name), operator, ast.Literal(value))


def all_of(conditions: Iterable[ast.Expression]) -> ast.Expression | None:
    """None for none."""
    parts = flat(conditions, ast.And)
    if NEVER in parts:
        return NEVER
    if len(parts) > 1:
        parts = tuple(dict.fromkeys(parts))
    if len(parts) < 2:
        return parts[0] if parts else None
    return ast.And(parts)


def any_of(conditions: Iterable[ast.Expression]) -> ast.Expression:
    parts = flat(conditions, ast.Or)
    if len(parts) > 1:
        parts = tuple(dict.fromkeys(part for part in parts if part != NEVER))
    if len(parts) < 2:
        return parts[0] if parts else NEVER
    return ast.Or(parts)


def _among(name: str, values: list[str]) -> ast.Expression:
    if not values:
        return NEVER
    if len(values) == 1:
        return compared(name, ast.Operator.EQ, values[0])
    return ast.Comparison(
        attribute(name), ast.Operator.EQ, ast.Sequence(tuple(map(ast.Literal, values)))
    )


def _literal_at(place: Place) -> ast.Expression:
    """That a literal stands there."""
    if not place.is_object:
        return NEVER
    return ast.Or(tuple(map(attribute, (striped.STRING, striped.TEXT, striped.LEXICAL))))


# -- comparisons


def _comparison(
    left: ast.Expression,
    operator: ast.Operator,
    right: ast.Expression,
    place: Place,
) -> Said:
    if not isinstance(right, sparql.Iri | sparql.LiteralTerm):
        return _NOTHING
    match left:
        case sparql.Variable():
            if isinstance(right, sparql.Iri) or not _has_value(right):
                return _of_terms(operator, right, place)
            return _of_values(operator, right, place)
        case ast.FunctionCall("lang", (sparql.Variable(),)) if _is_string(right):
            return _of_language(operator, right.lexical, place)
        case ast.FunctionCall("datatype", (sparql.Variable(),)) if isinstance(right, sparql.Iri):
            return _of_datatype(operator, right.value, place)
    if not isinstance(right, sparql.LiteralTerm):
        return _NOTHING
    if _finite(right) is not None:
        return _of_number(left, operator, right, place)
    return _of_text(left, operator, right, place)


def _is_string(term: sparql.Iri | sparql.LiteralTerm) -> TypeGuard[sparql.LiteralTerm]:
    return isinstance(term, sparql.LiteralTerm) and not term.language and term.datatype == _STRING


def _has_value(term: sparql.LiteralTerm) -> bool:
    """Whether others may be equal to this literal, or ordered with it."""
    return not term.language and term.datatype.startswith(XSD) and term.datatype != _STRING


def _of_terms(operator: ast.Operator, term: sparql.Iri | sparql.LiteralTerm, place: Place) -> Said:
    """A comparison with what is equal to nothing but itself."""
    if operator is ast.Operator.EQ:
        return Said(term_condition(term, place), True, isinstance(term, sparql.LiteralTerm))
    if operator is ast.Operator.NE:
        same = term_condition(term, place)
        return Said(
            sparql.negation(same),
            isinstance(term, sparql.Iri),
            isinstance(term, sparql.LiteralTerm),
        )
    if _is_string(term) and place.is_object:
        return Said(compared(striped.STRING, operator, term.lexical), True)
    return _NOTHING


def _of_values(operator: ast.Operator, term: sparql.LiteralTerm, place: Place) -> Said:
    """A comparison with a number or a moment; with another value only literals compare."""
    if operator is ast.Operator.NE:
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


def _bounded(name: str, operator: ast.Operator, least: float, most: float) -> ast.Expression | None:
    """A comparison of an attribute with something between two numbers."""
    return _between(attribute(name), *_limits(operator, least, most))


def _limits(operator: ast.Operator, least: float, most: float) -> tuple[float, float]:
    """Between which numbers a number is that compares so with something between two numbers."""
    is_open_below = operator in (ast.Operator.LT, ast.Operator.LE)
    is_open_above = operator in (ast.Operator.GT, ast.Operator.GE)
    return -inf if is_open_below else least, inf if is_open_above else most


def plain_number(value: float) -> int | Decimal | float:
    """As a literal of XPath that is this double."""
    if value.is_integer() and abs(value) < 1e15:
        return int(value)
    return Decimal(repr(value)) if 1e-6 < abs(value) < 1e15 else value


def _of_language(operator: ast.Operator, tag: str, place: Place) -> Said:
    has = (
        attribute(striped.LANGUAGE) if not tag else compared(striped.LANGUAGE, ast.Operator.EQ, tag)
    )
    return _of_literal(operator, has, place, is_equal=bool(tag))


def _of_datatype(operator: ast.Operator, datatype: str, place: Place) -> Said:
    if datatype == _STRING:
        has: ast.Expression = attribute(striped.STRING)
    elif datatype == _LANGUAGE_STRING:
        has = attribute(striped.TEXT)
    else:
        has = compared(striped.DATATYPE, ast.Operator.EQ, datatype)
    return _of_literal(operator, has, place)


def _of_literal(
    operator: ast.Operator, has: ast.Expression, place: Place, *, is_equal: bool = True
) -> Said:
    """Whether a literal has something; ``is_equal``: that is so where the two sides are equal."""
    if not place.is_object:
        return Said(NEVER)
    if operator not in (ast.Operator.EQ, ast.Operator.NE):
        return Said(_literal_at(place))
    if (operator is ast.Operator.EQ) == is_equal:
        return Said(has, True)
    return Said(all_of((_literal_at(place), sparql.negation(has))), True)


def _of_number(
    left: ast.Expression, operator: ast.Operator, right: sparql.LiteralTerm, place: Place
) -> Said:
    """A comparison of a computed number with a number."""
    number = _finite(right)
    if number is None or operator is ast.Operator.NE:
        return _NOTHING
    return Said(_with_bounds(left, *_limits(operator, number, number), place))


def _with_bounds(
    expression: ast.Expression, least: float, most: float, place: Place
) -> ast.Expression | None:
    """That the number of an expression is between two numbers: bounds of the number, the length or
    the year that it is computed of.

    An operation rounds by the datatype of its operands, so that these have a bit more room than
    the inverse operation gives them.
    """
    constant = 0.0
    match expression:
        case sparql.Variable():
            return _between(attribute(striped.NUMBER), least, most) if place.is_object else NEVER
        case ast.FunctionCall("strlen", (part,)):
            text = _text_of(part, place)
            return text and text.bounded("string-length", least, most)
        case ast.FunctionCall("year", (sparql.Variable(),)):
            return _year_between(least, most) if place.is_object else NEVER
        case ast.FunctionCall(name, (part,)) if name in _EXACT_CASTS:
            least, most = least - 1, most + 1
            text = _text_of(part, place)
            if text is not None:
                ways = [text.bounded("number", *_with_room(least, most))]
                if isinstance(part, sparql.Variable):
                    ways.append(_with_bounds(part, *_with_room(least, most), place))
                    ways.append(compared(striped.DATATYPE, ast.Operator.EQ, XSD + "boolean"))
                return None if None in ways else any_of(filter(None, ways))
        case ast.FunctionCall("floor" | "ceil" | "round", (part,)):
            least, most = least - 1, most + 1
        case ast.FunctionCall("abs", (part,)):
            least = -most
        case ast.FunctionCall("-", (part,)):
            least, most = -most, -least
        case ast.FunctionCall(
            "+" | "-" | "*" | "/" as operator, (part, sparql.LiteralTerm() as term)
        ):
            constant = _finite(term) or 0.0
            if operator in "*/" and not _FACTOR_MIN <= abs(constant) <= 1 / _FACTOR_MIN:
                return None
            undone = _UNDO[operator](least, constant), _UNDO[operator](most, constant)
            least, most = min(undone), max(undone)
        case ast.FunctionCall("+" | "*" as operator, (sparql.LiteralTerm() as term, part)):
            return _with_bounds(ast.FunctionCall(operator, (part, term)), least, most, place)
        case ast.FunctionCall("-", (sparql.LiteralTerm() as term, part)):
            return _with_bounds(ast.FunctionCall("-", (part, term)), -most, -least, place)
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


def _between(value: ast.Expression, least: float, most: float) -> ast.Expression | None:
    """That a number is between two others; None for no bounds."""
    if least == most:
        return ast.Comparison(value, ast.Operator.EQ, ast.Literal(plain_number(least)))
    bounds = ((ast.Operator.GE, least), (ast.Operator.LE, most))
    return all_of(
        ast.Comparison(value, operator, ast.Literal(plain_number(bound)))
        for operator, bound in bounds
        if isfinite(bound)
    )


def _finite(term: sparql.LiteralTerm) -> float | None:
    """The number of a literal; None of any other, and of NaN and the infinities."""
    atom = value_of(term).atom
    number = to_double(atom) if atom is not None and is_number(atom) else inf
    return number if isfinite(number) else None


def _year_between(least: float, most: float) -> ast.Expression | None:
    """A year begins anywhere within fourteen hours of where it does in Greenwich."""
    begin = _beginning(ceil(least)) - _FOURTEEN_HOURS if 1 <= least <= 9998 else -inf
    end = _beginning(floor(most) + 1) + _FOURTEEN_HOURS if 1 <= most <= 9998 else inf
    return _between(attribute(striped.SECONDS), begin, end)


def _beginning(year: int) -> float:
    """The first second of a year."""
    return float(derived_value(b"%04d-01-01" % year, value_kind(XSD.encode() + b"date")))


def _membership(choices: tuple[ast.Expression, ...], place: Place, *, is_negated: bool) -> Said:
    terms = [choice for choice in choices if isinstance(choice, sparql.Iri | sparql.LiteralTerm)]
    if len(terms) < len(choices):
        return _NOTHING
    if is_negated:
        parts = [_comparison(sparql.Variable(""), ast.Operator.NE, term, place) for term in terms]
        known = [part.condition for part in parts if part.condition is not None]
        return Said(all_of(known), all(part.is_exact for part in parts))
    valued = [term for term in terms if isinstance(term, sparql.LiteralTerm) and _has_value(term)]
    same = terms_condition([term for term in terms if term not in valued], place)
    equal = [_of_values(ast.Operator.EQ, term, place).condition or NEVER for term in valued]
    return Said(any_of([same, *equal]), not valued)


# -- functions


def _call(name: str, arguments: tuple[ast.Expression, ...], place: Place) -> Said:
    match name, arguments:
        case "bound", _:
            return Said(None, True, False)
        case "isiri", (sparql.Variable(),):
            return Said(attribute(place.iri), True, False)
        case "isblank", (sparql.Variable(),):
            return Said(attribute(place.blank), True, False)
        case "isliteral", (sparql.Variable(),):
            return Said(_literal_at(place), True, False)
        case "isnumeric", (sparql.Variable(),):
            return Said(attribute(striped.NUMBER) if place.is_object else NEVER)
        case "sameterm", (
            (sparql.Variable(), (sparql.Iri() | sparql.LiteralTerm()) as term)
            | (term, sparql.Variable())
        ):
            if isinstance(term, sparql.Iri | sparql.LiteralTerm):
                return Said(term_condition(term, place), True, False)
        case ("contains" | "strstarts" | "strends") as test, (text, sparql.LiteralTerm() as needle):
            return _text_test(_TESTS[test], text, needle, place)
        case "regex", (text, sparql.LiteralTerm(), *_):
            return _search(arguments, place)
        case "langmatches", (
            ast.FunctionCall("lang", (sparql.Variable(),)),
            sparql.LiteralTerm() as wanted,
        ):
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


def _either(names: tuple[str, ...], test: Callable[[str], ast.Expression]) -> Said:
    return Said(any_of([test(name) for name in names]), True)


class _Text(NamedTuple):
    """A text of a variable: in which attributes it stands, and its function ``of`` such a one."""

    names: tuple[str, ...]
    of: ast.Expression = ast.DOT

    def at(self, name: str) -> ast.Expression:
        """The text of an attribute, nothing where the attribute is not there."""
        return attribute(name) if self.of == ast.DOT else ast.Mapped(attribute(name), self.of)

    def bounded(self, function: str, least: float, most: float) -> ast.Expression | None:
        """That a number which a function gives of this text is between two others."""
        made = self.within(function)
        ways = [_between(made.at(name), least, most) for name in self.names]
        return None if None in ways else any_of(filter(None, ways))

    def within(self, function: str, *arguments: ast.Expression) -> _Text:
        """A function of this text."""
        return self._replace(of=ast.FunctionCall(function, (self.of, *arguments)))


def _text_of(expression: ast.Expression, place: Place) -> _Text | None:
    match expression:
        case sparql.Variable():
            return _Text(_texts(place, of_any=False))
        case ast.FunctionCall("str", (sparql.Variable(),)):
            return _Text(_texts(place, of_any=True))
        case ast.FunctionCall("concat", (sparql.LiteralTerm(before), inner)):
            text = _text_of(inner, place)
            return text and text._replace(
                of=ast.FunctionCall("concat", (ast.Literal(before), text.of))
            )
        case ast.FunctionCall(name, (inner, *constants)) if name in _OF_TEXTS:
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


def _constant(term: ast.Expression) -> ast.Literal | None:
    """A string or an integer as a literal of XPath."""
    value = value_of(term) if isinstance(term, sparql.LiteralTerm) else None
    if value is None or not isinstance(value.atom, str | int) or isinstance(value.atom, bool):
        return None
    return ast.Literal(value.atom)


def _text_test(
    function: str, expression: ast.Expression, needle: sparql.LiteralTerm, place: Place
) -> Said:
    text = _text_of(expression, place)
    if text is None:
        return _NOTHING

    def test(name: str) -> ast.Expression:
        if not needle.lexical:
            return attribute(name)
        return ast.FunctionCall(function, (text.at(name), ast.Literal(needle.lexical)))

    return _either(text.names, test)._replace(is_exact=text.of == ast.DOT and not needle.language)


def _search(arguments: tuple[ast.Expression, ...], place: Place) -> Said:
    text = _text_of(arguments[0], place)
    constants = [one.lexical for one in arguments[1:] if isinstance(one, sparql.LiteralTerm)]
    if text is None or len(constants) < len(arguments) - 1:
        return _NOTHING
    literals = tuple(map(ast.Literal, constants))
    if not compile_pattern(*constants).is_nullable:
        found = _either(
            text.names, lambda name: ast.FunctionCall("matches", (text.at(name), *literals))
        )
    else:  # matches() takes what is not there for an empty text
        own = ast.FunctionCall("matches", (text.of, *literals))
        found = _either(text.names, lambda name: attribute(name, own))
    return found._replace(is_exact=text.of == ast.DOT)


def _of_text(
    left: ast.Expression, operator: ast.Operator, right: sparql.LiteralTerm, place: Place
) -> Said:
    """A comparison of a computed text with a string, or with one that has a language."""
    text = _text_of(left, place)
    if text is None or (text.of != ast.DOT and operator is not ast.Operator.EQ):
        return _NOTHING
    wanted = ast.Literal(right.lexical)
    found = _either(text.names, lambda name: ast.Comparison(text.at(name), operator, wanted))
    return found._replace(is_exact=text.of == ast.DOT and _is_string(right))


def _language_range(wanted: str, place: Place) -> Said:
    if not place.is_object or not wanted:
        return Said(NEVER if not place.is_object else _literal_at(place))
    if wanted == "*":
        return Said(attribute(striped.LANGUAGE), True)
    tag = attribute(striped.LANGUAGE)
    below = ast.FunctionCall("starts-with", (tag, ast.Literal(f"{wanted}-")))
    return Said(ast.Or((compared(striped.LANGUAGE, ast.Operator.EQ, wanted), below)), True)
