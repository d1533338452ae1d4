"""Parses the expressions of FILTER, BIND, SELECT, HAVING, GROUP BY and ORDER BY."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from formats.graph.vocabulary import XSD
from yfilter.errors import ProfileRefused
from yfilter.graph.necessary_part import CASTS, is_said
from yfilter.graph.query_ast import (
    AllOf,
    AnyOf,
    Arithmetic,
    Exists,
    FilterCall,
    FilterComparison,
    FilterExpression,
    Group,
    Iri,
    LiteralTerm,
    Membership,
    Not,
    Variable,
)
from yfilter.graph.suggestions import function_suggestion
from yfilter.graph.term_parser import INTEGER, TermParser, number
from yfilter.language.comparison import GENERAL
from yfilter.language.pattern_syntax import PatternError
from yfilter.language.patterns import check_pattern
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.tokens import Token, TokenKind
from yfilter.language.trees import flat

MANY = 1 << 20
# All functions of SPARQL 1.1, in capitals: the fewest arguments, and the most.
_FUNCTIONS = {
    name: arity
    for arity, names in {
        (0, 0): "RAND NOW UUID STRUUID",
        (0, 1): "BNODE",
        (0, MANY): "CONCAT COALESCE",
        (1, 1): "STR LANG DATATYPE BOUND IRI URI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE"
        " ENCODE_FOR_URI YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384"
        " SHA512 ISIRI ISURI ISBLANK ISLITERAL ISNUMERIC",
        (2, 2): "LANGMATCHES CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER STRLANG STRDT SAMETERM",
        (2, 3): "REGEX SUBSTR",
        (3, 3): "IF",
        (3, 4): "REPLACE",
    }.items()
    for name in names.split()
}
_AGGREGATES = frozenset(("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"))
_SAME = {"ISURI": "isiri", "URI": "iri"}
_BUILT_IN = frozenset(_FUNCTIONS) | _AGGREGATES | {"EXISTS", "NOT"}
_VALUE = "a variable, an IRI, a literal, a function or '('"


class FilterParser(TermParser, ABC):
    """``is_whole``: something was read that the tree has no words for."""

    def __init__(self, text: str, limits: ProfileLimits) -> None:
        super().__init__(text, limits)
        self.is_whole = False
        self.aggregates = 0  # read so far
        self._may_aggregate = False
        self._in_aggregate = False
        self.outside: list[Token] = []  # variables of expressions that are in no aggregate
        self._pattern_ranges = 0

    @abstractmethod
    def group(self) -> Group:
        """A group in braces."""

    @abstractmethod
    def unseen_group(self) -> Group:
        """A group whose variables are not to be seen outside."""

    @contextmanager
    def aggregating(self) -> Iterator[None]:
        """Aggregates may stand in what is read meanwhile."""
        self._may_aggregate = True
        yield
        self._may_aggregate = False

    def expression(self) -> FilterExpression:
        parts = self._chain(self._conjunction, "||")
        return parts[0] if len(parts) == 1 else AnyOf(flat(parts, AnyOf))

    def constraint(self) -> FilterExpression:
        """What stands behind FILTER: an expression in parentheses, or a call."""
        token = self.peek()
        if token.is_symbol("("):
            return self._in_parentheses()
        if token.kind in (TokenKind.IRI, TokenKind.NAME):
            return self._call(token, self.iri())
        return self._built_in(token, "'(', or a function")

    def is_built_in(self, token: Token) -> bool:
        """Whether it is a function, an aggregate or EXISTS."""
        return token.kind is TokenKind.WORD and token.text.upper() in _BUILT_IN

    def _in_parentheses(self) -> FilterExpression:
        self.enter(self.expect("("))
        inner = self.expression()
        self.leave()
        self.expect(")", ", or an operator")
        return inner

    # -- operators, from the loosest to the tightest

    def _chain(
        self, operand: Callable[[], FilterExpression], symbol: str
    ) -> tuple[FilterExpression, ...]:
        parts = [operand()]
        while self.takes(symbol):
            parts.append(operand())
        if len(parts) > self.limits.steps_max:
            raise self.refusal("too-long", f"too many '{symbol}' in a row", self.peek().offset)
        return tuple(parts)

    def _conjunction(self) -> FilterExpression:
        parts = self._chain(self.relation, "&&")
        return parts[0] if len(parts) == 1 else AllOf(flat(parts, AllOf))

    def relation(self) -> FilterExpression:
        left = self.sum()
        token = self.peek()
        if token.kind is TokenKind.SYMBOL and token.text in GENERAL:
            self.take()
            return FilterComparison(left, GENERAL[token.text], self.sum())
        if token.is_word("IN"):
            self.take()
            return Membership(left, self._arguments())
        if token.is_word("NOT"):
            self.take()
            self.expect_word("IN")
            return Membership(left, self._arguments(), is_negated=True)
        return left

    def sum(self) -> FilterExpression:
        left = self._product(self._unary())
        for _ in range(self.limits.depth_max):
            token = self.peek()
            if token.is_symbol("+", "-"):
                self.take()
                left = Arithmetic(token.text, (left, self._product(self._unary())))
            elif token.kind is TokenKind.NUMBER and token.text[0] in "+-":
                self.take()  # ?x -1
                left = Arithmetic(token.text[0], (left, self._product(number(token.text[1:]))))
            else:
                return left
        raise self._too_many()

    def _product(self, left: FilterExpression) -> FilterExpression:
        for _ in range(self.limits.depth_max):
            token = self.peek()
            if not token.is_symbol("*", "/"):
                return left
            self.take()
            left = Arithmetic(token.text, (left, self._unary()))
        raise self._too_many()

    def _too_many(self) -> ProfileRefused:
        return self.refusal("too-deep", "too many operators in a row", self.peek().offset)

    def _unary(self) -> FilterExpression:
        token = self.peek()
        if token.is_symbol("!", "-", "+"):
            self.enter(self.take())
            operand = self._unary() if token.text == "!" else self._primary()
            self.leave()
            if token.text == "!":
                return Not(operand)
            if token.text == "-":
                return Arithmetic("negate", (operand,))
            return Arithmetic("+", (LiteralTerm("0", INTEGER), operand))
        return self._primary()

    def _primary(self) -> FilterExpression:
        token = self.peek()
        match token.kind:
            case TokenKind.VARIABLE:
                return self._asked_variable()
            case TokenKind.IRI | TokenKind.NAME:
                iri = self.iri()
                return self._call(token, iri) if self.peek().is_symbol("(") else iri
            case TokenKind.SYMBOL if token.text == "(":
                return self._in_parentheses()
        literal = self.literal()
        if literal is not None:
            return literal
        if token.kind is TokenKind.BLANK:
            raise self.refusal("syntax", "a blank node in a filter", token.offset, "a variable")
        return self._built_in(token, _VALUE)

    def _asked_variable(self) -> FilterExpression:
        token = self.peek()
        variable = self.variable()
        if not variable.is_blank:
            self.asked.setdefault(token.text, token)
            if not self._in_aggregate:
                self.outside.append(token)
        return variable

    # -- calls

    def _arguments(self, expected: str = ", or ','") -> tuple[FilterExpression, ...]:
        self.enter(self.expect("("))
        arguments: list[FilterExpression] = []
        if not self.peek().is_symbol(")"):
            arguments.extend(self._chain(self.expression, ","))
        self.leave()
        self.expect(")", expected)
        return tuple(arguments)

    def _call(self, token: Token, iri: Iri) -> FilterExpression:
        """A cast; ``token`` names it."""
        arguments = self._arguments()
        if iri.value not in CASTS:
            what = f"there is no function <{iri.value}>"
            wanted = "a cast: " + ", ".join(sorted(name.replace(XSD, "xsd:") for name in CASTS))
            raise self.refusal("unknown-function", what, token.offset, wanted)
        if len(arguments) != 1:
            raise self.refusal("arguments", "a cast takes one argument", token.offset)
        return FilterCall(iri.value, arguments)

    def _built_in(self, token: Token, expected: str) -> FilterExpression:
        """A call, which begins with ``token``; ``expected``: what else could stand there."""
        is_call = self.is_built_in(token) or (
            token.kind is TokenKind.WORD and self.lexer.peek_second().is_symbol("(")
        )
        if not is_call:
            raise self.unexpected(expected)
        name = token.text.upper()
        if name in ("EXISTS", "NOT"):
            return self._exists()
        if name in _AGGREGATES:
            return self._aggregate(token)
        if name not in _FUNCTIONS:
            what = f"there is no function {token.text}()"
            wanted = function_suggestion(token.text, (*_FUNCTIONS, *_AGGREGATES))
            raise self.refusal("unknown-function", what, token.offset, wanted)
        self.take()
        least, most = _FUNCTIONS[name]
        arguments = self._arguments()
        if not least <= len(arguments) <= most:
            wanted = str(least) if least == most else f"{least} to {most}"
            what = f"{token.text}() takes {wanted} arguments, not {len(arguments)}"
            raise self.refusal("arguments", what, token.offset)
        if name == "BOUND" and not isinstance(arguments[0], Variable):
            raise self.refusal("syntax", "bound() takes a variable", token.offset, "bound(?x)")
        call = FilterCall(_SAME.get(name, name.lower()), arguments)
        if name in ("REGEX", "REPLACE"):
            self.check_pattern(call, token)
        if not is_said(call):
            self.is_whole = True
        return call

    def _exists(self) -> FilterExpression:
        is_negated = self.takes_word("NOT")
        self.expect_word("EXISTS")
        return Exists(self.unseen_group(), is_negated)

    def check_pattern(self, call: FilterCall, token: Token) -> None:
        """Refuses a regular expression that nobody could search for."""
        constants = call.arguments[1:2] + call.arguments[len(call.arguments) - 1 :]
        flagged = len(call.arguments) == (3 if call.name == "regex" else 4)
        pattern, flags = constants[0], constants[1] if flagged else LiteralTerm("")
        if not isinstance(pattern, LiteralTerm) or not isinstance(flags, LiteralTerm):
            return
        try:
            self._pattern_ranges += check_pattern(
                pattern.lexical, flags.lexical, self.limits.pattern_max
            )
        except PatternError as error:
            raise self.refusal("pattern", str(error), token.offset) from None
        if self._pattern_ranges > self.limits.ranges_max:
            raise self.refusal("too-long", "too large regular expressions", token.offset)

    def _aggregate(self, token: Token) -> FilterExpression:
        if self._in_aggregate or not self._may_aggregate:
            what = f"{token.text}() cannot stand here"
            wanted = "an aggregate in SELECT, HAVING or ORDER BY, and in no other"
            raise self.refusal("syntax", what, token.offset, wanted)
        self.take()
        self.is_whole = self._in_aggregate = True
        self.aggregates += 1
        self.enter(self.expect("("))
        self.takes_word("DISTINCT")
        arguments: tuple[FilterExpression, ...] = ()
        if not (token.is_word("COUNT") and self.takes("*")):
            arguments = (self.expression(),)
        if token.is_word("GROUP_CONCAT") and self.takes(";"):
            self.expect_word("SEPARATOR")
            self.expect("=")
            if self.peek().kind is not TokenKind.STRING:
                raise self.unexpected("a string")
            self.take()
        self.leave()
        self.expect(")")
        self._in_aggregate = False
        return FilterCall(token.text.lower(), arguments)
