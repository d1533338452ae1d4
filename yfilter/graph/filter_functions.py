"""The functions of filters: built-in ones and casts (SPARQL 1.1, sections 17.4 and 17.5).

A function takes the values of its arguments and gives a value; None is an error, for an argument
as for a result.  Functions that XPath defines are those of its library; the functions of terms are
here.  Functions whose arguments may be errors or unbound (bound, if, coalesce) are no functions of
values; join_program.py has them.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from math import isfinite
from typing import Any, TypeAlias
from urllib.parse import quote

from formats.graph.vocabulary import RDF, XSD
from yfilter.graph.query_ast import BlankNode, GroundTerm, Iri, LiteralTerm
from yfilter.language import atoms
from yfilter.language.atoms import (
    arithmetic,
    atom_text,
    cast,
    from_text,
    is_number,
    negate,
    type_name,
)
from yfilter.language.budget import Budget
from yfilter.language.function_library import CHARGED, NUMBER_FUNCTIONS, STRING_FUNCTIONS
from yfilter.language.nodes import Atom, DynamicError
from yfilter.language.query_ast import Operator
from yfilter.language.temporal import Temporal, duration_text

# -------------------------------------------------------------------------------------------------
# Terms with their values, and operators on them; None is SPARQL's type error (SPARQL 1.1, 17).


WHITE = " \t\n\r"
_COUNTED = frozenset(f"{XSD}{name}" for name in ("boolean", "decimal", "float", "double"))
_READ = frozenset(f"{XSD}{name}" for name in ("string", "dateTime", "date")) | _COUNTED
_TEXT_MAX = 1 << 20  # characters of a string that a function makes


class TermValue:
    """``atom``: None of an IRI, a blank node, and a literal that is no value of a known datatype;
    a text with a language is a str.  ``number``: the term's in the message, or 0."""

    __slots__ = ("_term", "atom", "language", "number")

    def __init__(self, term: GroundTerm | None, atom: Atom | None, language: str = "") -> None:
        self._term = term
        self.atom = atom
        self.language = language
        self.number = 0

    @property
    def term(self) -> GroundTerm:
        """The term, in the canonical form where the value was computed."""
        if self._term is None:
            assert self.atom is not None
            text = atom_text(self.atom)
            if self.language:
                self._term = LiteralTerm(text, language=self.language)
            else:
                self._term = LiteralTerm(text, XSD + type_name(self.atom).removeprefix("xs:"))
        return self._term

    @property
    def is_literal(self) -> bool:
        return self._term is None or isinstance(self._term, LiteralTerm)

    @property
    def text(self) -> str | None:
        """The characters of a string without a language; None of anything else."""
        return self.atom if isinstance(self.atom, str) and not self.language else None


def value_of(term: GroundTerm) -> TermValue:
    """The value of a term."""
    if not isinstance(term, LiteralTerm):
        return TermValue(term, None)
    if term.language:
        return TermValue(term, term.lexical, term.language)
    return TermValue(term, read(term.lexical, term.datatype))


def read(lexical: str, datatype: str) -> Atom | None:
    """The value of a lexical form; None if it is none, and for unknown datatypes."""
    if datatype == XSD + "string":
        return lexical
    if not _is_integer(datatype) and datatype not in _READ:
        return None
    text = lexical.strip(WHITE)
    return from_text("INF" if text == "+INF" else text, f"xs:{datatype.removeprefix(XSD)}")


def _is_integer(datatype: str) -> bool:
    return datatype.startswith(XSD) and f"xs:{datatype.removeprefix(XSD)}" in atoms.INTEGERS


def computed(
    function: Callable[..., Atom], *arguments: object, language: str = ""
) -> TermValue | None:
    """The result of a function of XPath; None for its errors and for a text that is too long."""
    try:
        atom = function(*arguments)
    except DynamicError:
        return None
    if isinstance(atom, str) and len(atom) > _TEXT_MAX:
        return None
    return TermValue(None, atom, language)


def effective_truth(value: TermValue | None) -> bool | None:
    """The effective boolean value (17.2.2); false of no lexical form of a number or boolean."""
    if value is None or isinstance(value.atom, Temporal):
        return None
    if value.atom is None:
        datatype = value.term.datatype if isinstance(value.term, LiteralTerm) else ""
        return False if datatype in _COUNTED or _is_integer(datatype) else None
    return bool(value.atom) and value.atom == value.atom


def compared(left: TermValue | None, relation: Operator, right: TermValue | None) -> bool | None:
    """A comparison (17.3 and 17.4.1.7)."""
    if left is None or right is None:
        return None
    is_equality = relation is Operator.EQ or relation is Operator.NE
    one, other = left.atom, right.atom
    if one is None or other is None or left.language or right.language:
        is_same = is_equality and left.term == right.term
        is_unknown = left.is_literal and right.is_literal and not (left.language or right.language)
        if not is_equality or (is_unknown and not is_same):
            return None
        return is_same is (relation is Operator.EQ)
    if type(one) is type(other) and not isinstance(one, Temporal):
        return relation.holds(one, other)  # PERF: most comparisons are of one type
    if isinstance(one, Temporal) and isinstance(other, Temporal) and one.type == other.type:
        order = one.order(other)
        return None if order is None else relation.holds(order, 0)
    try:
        return atoms.compare(one, relation, other)
    except DynamicError:  # of values of two kinds
        return relation is Operator.NE if is_equality else None


def negated(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def of_truth(truth: bool | None) -> TermValue | None:
    """An xsd:boolean."""
    if truth is None:
        return None
    return TRUE if truth else FALSE


TRUE = TermValue(LiteralTerm("true", XSD + "boolean"), True)
FALSE = TermValue(LiteralTerm("false", XSD + "boolean"), False)


Values: TypeAlias = "list[TermValue]"
Function: TypeAlias = "Callable[[Values, Budget], TermValue | None]"


# -- functions of XPath


def _of_text(function: Callable[..., Any], *, keeps: bool = False) -> Function:
    """A function of a text, with a language or without, and of integers; ``keeps``: the result has
    the language of the text."""

    def called(values: Values, budget: Budget) -> TermValue | None:
        text, *places = [value.atom for value in values]
        if not isinstance(text, str) or any(type(place) is not int for place in places):
            return None
        budget.charge_text(len(text))
        return computed(function, text, *places, language=values[0].language if keeps else "")

    return called


def _of_texts(function: Callable[[str, str], Any], *, keeps: bool = False) -> Function:
    """A function of two texts that may stand together (17.4.3.1.2); ``keeps``: the result has the
    language of the first text where the second one is found in it."""

    def called(values: Values, budget: Budget) -> TermValue | None:
        text, part = values[0].atom, values[1].atom
        if not isinstance(text, str) or not isinstance(part, str):
            return None
        if values[1].language not in ("", values[0].language):
            return None
        budget.charge_text(len(text))
        if keeps and part not in text:
            return computed(str)
        return computed(function, text, part, language=values[0].language if keeps else "")

    return called


def _of_pattern(name: str, *, keeps: bool = False) -> Function:
    """A function of a text and a regular expression, with its other arguments without languages."""
    function = CHARGED[name]

    def called(values: Values, budget: Budget) -> TermValue | None:
        text, others = values[0].atom, [value.text for value in values[1:]]
        if not isinstance(text, str) or None in others:
            return None
        language = values[0].language if keeps else ""
        return computed(function, budget, text, *others, language=language)

    return called


def _of_numbers(function: Callable[..., Any]) -> Function:
    def called(values: Values, _budget: Budget) -> TermValue | None:
        numbers = [value.atom for value in values]
        if any(number is None or not is_number(number) for number in numbers):
            return None
        return computed(function, *numbers)

    return called


def _of_moment(function: Callable[[Temporal], Any], *, has_clock: bool = False) -> Function:
    """A function of a dateTime, and unless it is about the time of day, of a date."""

    def called(values: Values, _budget: Budget) -> TermValue | None:
        moment = values[0].atom
        if not isinstance(moment, Temporal) or (has_clock and moment.type == "xs:date"):
            return None
        return computed(function, moment)

    return called


def _of_terms(function: Callable[..., TermValue | None]) -> Function:
    """The values one by one."""
    return lambda values, _budget: function(*values)


# -- functions of terms and texts


def _is_of(kind: type) -> Function:
    return lambda values, _budget: of_truth(
        not values[0].is_literal and isinstance(values[0].term, kind)
    )


def _string(value: TermValue) -> TermValue | None:
    match value.term:
        case Iri(text) | LiteralTerm(text):
            return computed(str, text)
    return None


def _lang_matches(tag: TermValue, wanted: TermValue) -> TermValue | None:
    if tag.text is None or wanted.text is None:
        return None
    own, asked = tag.text.lower(), wanted.text.lower()
    if asked == "*":
        return of_truth(own != "")
    return of_truth(own == asked or own.startswith(f"{asked}-"))


def _datatype(value: TermValue) -> TermValue | None:
    if value.language:
        return value_of(Iri(RDF + "langString"))
    return value_of(Iri(value.term.datatype)) if isinstance(value.term, LiteralTerm) else None


def _with_language(text: TermValue, tag: TermValue) -> TermValue | None:
    if text.text is None or tag.text is None:
        return None
    language = tag.text.lower()
    parts = language.split("-")
    if not (parts[0].isascii() and parts[0].isalpha()):
        return None
    if not all(part.isascii() and part.isalnum() for part in parts):
        return None
    return value_of(LiteralTerm(text.text, language=language))


def _with_datatype(text: TermValue, datatype: TermValue) -> TermValue | None:
    if text.text is None or not isinstance(datatype.term, Iri):
        return None
    if datatype.term.value == RDF + "langString":
        return None
    return value_of(LiteralTerm(text.text, datatype.term.value))


def _concat(values: Values, budget: Budget) -> TermValue | None:
    texts = [value.atom for value in values]
    if not all(isinstance(text, str) for text in texts):
        return None
    languages = {value.language for value in values}
    language = languages.pop() if len(languages) == 1 else ""
    return computed(CHARGED["concat"], budget, *texts, language=language)


def _timezone(value: TermValue) -> TermValue | None:
    if not isinstance(value.atom, Temporal) or value.atom.offset is None:
        return None
    text = duration_text("xs:dayTimeDuration", 0, Decimal(60 * value.atom.offset))
    return value_of(LiteralTerm(text, XSD + "dayTimeDuration"))


# -- casts


def _cast_to_string(value: TermValue) -> TermValue | None:
    if value.atom is None or isinstance(value.atom, str):
        return _string(value)
    return computed(atom_text, value.atom)


def _cast(name: str) -> Function:
    def called(value: TermValue) -> TermValue | None:
        if value.text is not None:
            atom = read(value.text.strip(WHITE), XSD + name)
            return None if atom is None else TermValue(None, atom)
        if value.atom is None or value.language:
            return None
        is_float = isinstance(value.atom, float) and isfinite(value.atom)
        # The digits that are written, as other processors of SPARQL have it; XPath has all digits.
        atom = Decimal(repr(value.atom)) if is_float and name == "decimal" else value.atom
        return computed(cast, atom, f"xs:{name}")

    return _of_terms(called)


FUNCTIONS: dict[str, Function] = {
    "str": _of_terms(_string),
    "lang": _of_terms(lambda one: computed(str, one.language) if one.is_literal else None),
    "langmatches": _of_terms(_lang_matches),
    "datatype": _of_terms(_datatype),
    "isiri": _is_of(Iri),
    "isblank": _is_of(BlankNode),
    "isliteral": _of_terms(lambda value: of_truth(value.is_literal)),
    "isnumeric": lambda values, _budget: of_truth(
        values[0].atom is not None and is_number(values[0].atom)
    ),
    "sameterm": _of_terms(lambda one, other: of_truth(one.term == other.term)),
    "strlang": _of_terms(_with_language),
    "strdt": _of_terms(_with_datatype),
    "strlen": _of_text(STRING_FUNCTIONS["string-length"]),
    "ucase": _of_text(STRING_FUNCTIONS["upper-case"], keeps=True),
    "lcase": _of_text(STRING_FUNCTIONS["lower-case"], keeps=True),
    "substr": _of_text(STRING_FUNCTIONS["substring"], keeps=True),
    "contains": _of_texts(STRING_FUNCTIONS["contains"]),
    "strstarts": _of_texts(STRING_FUNCTIONS["starts-with"]),
    "strends": _of_texts(STRING_FUNCTIONS["ends-with"]),
    "strbefore": _of_texts(STRING_FUNCTIONS["substring-before"], keeps=True),
    "strafter": _of_texts(STRING_FUNCTIONS["substring-after"], keeps=True),
    "concat": _concat,
    "encode_for_uri": _of_text(lambda text: quote(text, safe="-_.~")),
    "regex": _of_pattern("matches"),
    "replace": _of_pattern("replace", keeps=True),
    "+": _of_numbers(partial(arithmetic, "+")),
    "-": _of_numbers(lambda *of: negate(*of) if len(of) == 1 else arithmetic("-", *of)),
    "*": _of_numbers(partial(arithmetic, "*")),
    "/": _of_numbers(partial(arithmetic, "div")),
    "abs": _of_numbers(NUMBER_FUNCTIONS["abs"]),
    "ceil": _of_numbers(NUMBER_FUNCTIONS["ceiling"]),
    "floor": _of_numbers(NUMBER_FUNCTIONS["floor"]),
    "round": _of_numbers(NUMBER_FUNCTIONS["round"]),
    "year": _of_moment(lambda moment: moment.year),
    "month": _of_moment(lambda moment: moment.local.month),
    "day": _of_moment(lambda moment: moment.local.day),
    "hours": _of_moment(lambda moment: moment.local.hour, has_clock=True),
    "minutes": _of_moment(lambda moment: moment.local.minute, has_clock=True),
    "seconds": _of_moment(lambda moment: moment.seconds, has_clock=True),
    "tz": _of_moment(lambda moment: moment.zone),
    "timezone": _of_terms(_timezone),
    f"{XSD}string": _of_terms(_cast_to_string),
    **{
        XSD + name: _cast(name)
        for name in ("boolean", "integer", "decimal", "float", "double", "dateTime", "date")
    },
}
"""By their names as FunctionCall has them; how many arguments they take is the parser's."""
