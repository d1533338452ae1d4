"""TermValue: a term with its value, an atomic value of XPath; the operators of filters on values.

None is SPARQL's type error, of an operand as of a result (SPARQL 1.1, section 17).
"""

from __future__ import annotations

from collections.abc import Callable

from formats.graph.vocabulary import XSD
from yfilter.graph.query_ast import GroundTerm, LiteralTerm
from yfilter.language import atoms
from yfilter.language.atoms import atom_text, from_text, type_name
from yfilter.language.comparison import Operator
from yfilter.language.nodes import Atom, DynamicError
from yfilter.language.temporal import Temporal

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
