"""Parses the prologue and terms of a graph profile: IRIs, literals, variables, blank nodes."""

from __future__ import annotations

import pyoxigraph

from formats.characters import find_illegal_character
from formats.graph.iris import resolve
from formats.graph.vocabulary import XSD
from yfilter.graph.query_ast import (
    Iri,
    LiteralTerm,
    Term,
    Variable,
)
from yfilter.graph.query_text import is_written_blank, quoted
from yfilter.graph.sparql_lexer import SparqlLexer, unescaped, unquoted
from yfilter.graph.suggestions import instead_of, prefix_suggestion, variable_suggestion
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.tokens import Token, TokenKind, TokenParser

INTEGER, DECIMAL, DOUBLE, BOOLEAN = (
    XSD + name for name in ("integer", "decimal", "double", "boolean")
)
_TERM = "a variable, an IRI, a literal or a blank node"


def language_tag(text: str) -> str | None:
    """A language tag in lower case; None if it is none."""
    try:
        pyoxigraph.Literal("", language=text)
    except ValueError:
        return None
    return text.lower()


def is_absolute_iri(text: str) -> bool:
    """Whether it is an IRI with a scheme (RFC 3987)."""
    try:
        pyoxigraph.NamedNode(text)
    except ValueError:
        return False
    return True


class TermParser(TokenParser):
    """Recursive descent over a SparqlLexer.

    ``asked`` has the variables that are to have a value, with the first place that says so;
    ``given`` those that some pattern gives one; ``names`` are of all that are written.
    """

    lexer: SparqlLexer
    word_form = "{}"

    def __init__(self, text: str, limits: ProfileLimits) -> None:
        super().__init__(limits)
        self.lexer = SparqlLexer(text)
        self.base = ""
        self.prefixes: dict[str, str] = {}
        self.asked: dict[str, Token] = {}
        self.given: set[str] = set()
        self.names: set[str] = set()
        self.blanks = 0  # made so far
        self.block = 0  # the basic graph pattern that is being read
        self.labels: dict[str, tuple[Variable, int]] = {}  # of blank nodes, with their block
        self.blank_mark = "_:"  # what their names begin with

    def meant(self, token: Token, expected: str) -> str:
        return instead_of(self.lexer.text, token.offset, token.text, expected)

    def peek(self) -> Token:
        return self.lexer.peek()

    def take(self) -> Token:
        return self.lexer.take()

    # -- prologue

    def prologue(self) -> None:
        while (token := self.peek()).is_word("BASE", "PREFIX"):
            self.take()
            prefix = self._declared_prefix() if token.is_word("PREFIX") else None
            place = self.peek()
            if place.kind is not TokenKind.IRI:
                raise self.unexpected("an IRI in < >")
            iri = self.iri_of(self.take())
            if prefix is None:
                self.base = iri.partition("#")[0]
            else:
                self.prefixes[prefix] = iri

    def _declared_prefix(self) -> str:
        token = self.peek()
        if token.kind is TokenKind.WORD:
            raise self.refusal(
                "syntax", f"a prefix without a colon: {token}", token.offset, f"{token.text}: <…>"
            )
        if token.kind is not TokenKind.NAME or token.text.find(":") != len(token.text) - 1:
            raise self.unexpected("a prefix with its colon")
        return self.take().text[:-1]

    # -- terms

    def iri_of(self, token: Token) -> str:
        """The IRI that a token of kind IRI or NAME stands for."""
        if token.kind is TokenKind.NAME:
            prefix, _, local = token.text.partition(":")
            namespace = self.prefixes.get(prefix)
            if namespace is None:
                what = f"the prefix '{prefix}:' is not declared"
                wanted = prefix_suggestion(prefix, self.prefixes)
                raise self.refusal("undeclared-prefix", what, token.offset, wanted)
            if "\\" in local:
                local = unescaped(local) or ""
            iri = namespace + local
        else:
            written = unescaped(token.text) or ""
            iri = written
            if self.base:
                iri = resolve(self.base.encode(), written.encode()).decode()
        if len(iri) > self.limits.uri_max:
            raise self.refusal(
                "too-long", f"an IRI of more than {self.limits.uri_max} characters", token.offset
            )
        if not is_absolute_iri(iri):
            expected = "" if ":" in iri else "BASE <…> in front of the query, or the whole IRI"
            raise self.refusal("iri", f"'{iri}' is no absolute IRI", token.offset, expected)
        return iri

    def iri(self) -> Iri:
        if self.peek().kind not in (TokenKind.IRI, TokenKind.NAME):
            raise self.unexpected("an IRI in < >, or a name with a prefix")
        return Iri(self.iri_of(self.take()))

    def variable(self) -> Variable:
        """The next token, which is a variable."""
        token = self.peek()
        if token.kind is not TokenKind.VARIABLE:
            raise self.unexpected("a variable: ?x")
        self.take()
        name = token.text
        if is_written_blank(name):
            return self._labelled(token, name)
        self.names.add(name)
        if len(self.names) > self.limits.clauses_max:
            what = f"more than {self.limits.clauses_max} variables"
            raise self.refusal("too-many-variables", what, token.offset)
        return Variable(name)

    def chosen_variable(self) -> Variable:
        """A variable that has to have a value, and a name of the user's own."""
        token = self.peek()
        variable = self.variable()
        if variable.is_blank:
            raise self.refusal(
                "reserved", f"names such as ?{token.text} stand for blank nodes", token.offset
            )
        self.asked.setdefault(variable.name, token)
        return variable

    def blank(self) -> Variable:
        """A blank node that nothing else is."""
        self.blanks += 1
        return Variable(f"{self.blank_mark}{self.blanks - 1}")

    def _labelled(self, token: Token, label: str) -> Variable:
        """The blank node with a label; one with ``_:`` is of one basic graph pattern only."""
        known = self.labels.get(label)
        if known is None:
            known = self.labels[label] = (self.blank(), self.block)
        elif known[1] != self.block and token.kind is TokenKind.BLANK:
            what = f"the blank node _:{label} stands in two groups"
            raise self.refusal("blank-node", what, token.offset, f"a variable in both: ?{label}")
        return known[0]

    def begins_term(self, token: Token) -> bool:
        return token.kind in _TERM_KINDS or token.is_word("TRUE", "FALSE")

    def term(self) -> Term:
        """A variable, IRI, literal or labelled blank node; brackets are the caller's."""
        token = self.peek()
        match token.kind:
            case TokenKind.VARIABLE:
                return self.variable()
            case TokenKind.IRI | TokenKind.NAME:
                return Iri(self.iri_of(self.take()))
            case TokenKind.BLANK:
                return self._labelled(self.take(), token.text)
        literal = self.literal()
        if literal is None:
            raise self.unexpected(_TERM)
        return literal

    def literal(self) -> LiteralTerm | None:
        """A literal, if one begins here."""
        token = self.peek()
        match token.kind:
            case TokenKind.STRING:
                return self._string(self.take())
            case TokenKind.NUMBER:
                return number(self.take().text)
            case TokenKind.WORD if token.is_word("TRUE", "FALSE"):
                return LiteralTerm(self.take().text.lower(), BOOLEAN)
        return None

    def _string(self, token: Token) -> LiteralTerm:
        text = self.string_value(token)
        following = self.peek()
        if following.kind is TokenKind.LANGUAGE:
            self.take()
            tag = language_tag(following.text)
            if tag is None:
                raise self.refusal(
                    "language", f"{following} is no language tag", following.offset, "@en, @en-GB"
                )
            return LiteralTerm(text, language=tag)
        if following.is_symbol("^^"):
            self.take()
            return LiteralTerm(text, self.iri().value)
        return LiteralTerm(text)

    def string_value(self, token: Token) -> str:
        value = unescaped(unquoted(token.text))
        if value is None:
            raise self.refusal("syntax", "an escape of no character", token.offset)
        illegal = find_illegal_character(value)
        if illegal >= 0:
            what = f"the character U+{ord(value[illegal]):04X} cannot stand in a message"
            raise self.refusal("character", what, token.offset)
        return value

    def check_bound(self) -> None:
        """Refuses what asks for a variable that no pattern has: it is misspelt."""
        for name, token in self.asked.items():
            if name not in self.given:
                what = f"no pattern gives ?{name} a value"
                wanted = variable_suggestion(name, self.given)
                raise self.refusal("unbound-variable", what, token.offset, wanted)

    # -- the text of tokens, in full

    def canonical(self, token: Token) -> str:
        match token.kind:
            case TokenKind.IRI | TokenKind.NAME:
                return f"<{self.iri_of(token)}>"
            case TokenKind.STRING:
                return quoted(self.string_value(token))
            case TokenKind.VARIABLE:
                return f"?{token.text}"
            case TokenKind.BLANK:
                return f"_:{token.text}"
            case TokenKind.LANGUAGE:
                return f"@{token.text.lower()}"
            case TokenKind.WORD if token.text != "a":
                upper = token.text.upper()
                return upper.lower() if upper in ("TRUE", "FALSE") else upper
        return token.text


_TERM_KINDS = frozenset(
    (
        TokenKind.VARIABLE,
        TokenKind.IRI,
        TokenKind.NAME,
        TokenKind.BLANK,
        TokenKind.STRING,
        TokenKind.NUMBER,
    )
)


def number(text: str) -> LiteralTerm:
    """A number as written in a query, sign included."""
    if "e" in text or "E" in text:
        return LiteralTerm(text, DOUBLE)
    return LiteralTerm(text, DECIMAL if "." in text else INTEGER)
