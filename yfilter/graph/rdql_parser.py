"""RDQL, in which the papers on filtering graphs write their subscriptions -> GraphQuery.

::

    SELECT ?x, ?y FROM Publications
    WHERE  (?x, dc:creator, "Ann"), (?x, dc:date, ?y) AND ((?x, p:about, ?z) SUCHTHAT ?z isa p:C)
    AND    ?y > 2003 && ?y != 2007
    USING  dc FOR <http://purl.org/dc/elements/1.1/>, p FOR <http://example.org/>

    query      ::= SELECT ( '*' | variables ) ( FROM sources )?
                   WHERE part ( ( ',' | AND | SUCHTHAT ) part )*
                   ( USING prefix FOR iri ( ',' prefix FOR iri )* )?
    part       ::= pattern | '(' pattern SUCHTHAT condition ')' | condition
    pattern    ::= '(' node ',' node ',' node ')'

FROM is read over: a profile asks each message.  Conditions are those of SPARQL, and ``==``, ``eq``,
``ne``, ``=~ /pattern/`` and ``!~``.  With the IRI of a class behind it, an operator asks the
taxonomies (G-ToPSS, 3.2): ``?x <= C`` or ``?x isa C`` for what is of C or of a class below it,
``?x = C`` for what is of C itself, ``?x >= C`` for what is of C or of a class above it.
"""

from __future__ import annotations

import re

from formats.graph.vocabulary import RDF_TYPE
from yfilter.graph import query_ast as sparql
from yfilter.graph.sparql_parser import FilterParser, SparqlLexer, SparqlToken
from yfilter.language import query_ast as ast
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.query_ast import GENERAL, Operator
from yfilter.language.tokens import Token, TokenKind
from yfilter.language.trees import split

_RDQL = re.compile(r"SELECT\b[^{#]*?(?<![?$:])\bWHERE\s*\(", re.IGNORECASE)
_OWN_TOKEN = re.compile(
    r"""(?:\s+|\#[^\n]*|//[^\n]*)*+
      (?:([=!]~)[ ]*/((?:[^/\\\n]|\\.)*+)/([a-z]*)
      | ([A-Za-z][A-Za-z0-9+.-]*://[^\s,()<>"{}|^`\\]+)
      | (==))
    """,
    re.VERBOSE,
)
_NODES = (TokenKind.VARIABLE, TokenKind.IRI, TokenKind.NAME)
_WORDS = {"EQ": Operator.EQ, "NE": Operator.NE}
_IS_A = {
    "<=": sparql.Closure.INSTANCE,
    "=": sparql.Closure.NONE,
    ">=": sparql.Closure.INSTANCE_ABOVE,
}
_TYPE = sparql.Iri(RDF_TYPE)


def is_rdql(text: str, start: int) -> bool:
    """Whether a query that begins at ``start`` is one of RDQL: WHERE has parentheses there."""
    return _RDQL.match(text, start) is not None


class _RdqlLexer(SparqlLexer):
    """SPARQL's tokens, ``==``, IRIs without brackets, and ``=~ /pattern/flags`` as one symbol."""

    __slots__ = ()

    def _scan(self, offset: int) -> Token:
        match = _OWN_TOKEN.match(self.text, offset)
        if match is None:
            return super()._scan(offset)
        if match[4] is not None:
            return SparqlToken(TokenKind.IRI, match[4], match.start(4), match.end())
        symbol = 1 if match[5] is None else 5
        return SparqlToken(TokenKind.SYMBOL, match[symbol], match.start(symbol), match.end())


class RdqlParser(FilterParser):
    """One parser reads one text."""

    def __init__(self, text: str, limits: ProfileLimits) -> None:
        super().__init__(text, limits)
        self._elements: list[sparql.GroupElement] = []
        self._visible: dict[sparql.Variable, None] = {}

    def query(self) -> sparql.GraphQuery:
        self._declarations()
        self.expect_word("SELECT")
        chosen = self._chosen()
        if self.takes_word("FROM"):
            self._sources()
        self.expect_word("WHERE")
        self._part()
        while self.takes(",") or self.takes_word("AND") or self.takes_word("SUCHTHAT"):
            self._part()
        if self.peek().kind is not TokenKind.END and not self.peek().is_word("USING"):
            raise self.unexpected("',', AND, USING, or the end of the profile")
        for refusal in self.unbound():
            raise refusal
        where = sparql.Group(tuple(self._elements))
        return sparql.GraphQuery(sparql.QueryForm.SELECT, where, chosen or tuple(self._visible))

    def group(self) -> sparql.Group:
        raise self.unsupported("a group is", self.peek(), "SPARQL: SELECT … WHERE { … }")

    def unseen_group(self) -> sparql.Group:
        return self.group()

    # -- around the patterns

    def _declarations(self) -> None:
        """Reads what stands behind USING, and starts again at the front."""
        self.lexer = _RdqlLexer(self.lexer.text)
        while self.peek().kind is not TokenKind.END and not self.peek().is_word("USING"):
            self.take()
        if self.takes_word("USING"):
            self._declaration()
            while self.takes(",") or self.peek().kind in (TokenKind.WORD, TokenKind.NAME):
                self._declaration()
            if self.peek().kind is not TokenKind.END:
                raise self.unexpected("',', or the end of the profile")
        self.lexer = _RdqlLexer(self.lexer.text)

    def _declaration(self) -> None:
        """``prefix FOR iri``; the prefix with a colon or without."""
        token = self.peek()
        if token.kind not in (TokenKind.WORD, TokenKind.NAME):
            raise self.unexpected("a prefix")
        prefix = self.take().text.removesuffix(":")
        self.expect_word("FOR")
        self.prefixes[prefix] = self.iri().value

    def _chosen(self) -> tuple[sparql.Variable, ...]:
        if self.takes("*"):
            return ()
        chosen = [self.chosen_variable()]
        while self.takes(",") or self.peek().kind is TokenKind.VARIABLE:
            token = self.peek()
            chosen.append(self.chosen_variable())
            if chosen[-1] in chosen[:-1]:
                raise self.refusal("duplicate-variable", f"{token} is there twice", token.offset)
        return tuple(chosen)

    def _sources(self) -> None:
        while self.peek().kind in (TokenKind.IRI, TokenKind.NAME, TokenKind.WORD):
            if self.peek().is_word("WHERE"):
                return
            self.take()
            self.takes(",")

    # -- patterns and conditions

    def _part(self) -> None:
        start = self.peek()
        if not start.is_symbol("("):
            self._condition()
        elif self._begins_pattern(start):
            self._pattern()
        elif self._begins_pattern(self.lexer.after(start)):
            self.take()
            self._pattern()
            self.expect_word("SUCHTHAT")
            self._condition()
            self.expect(")", ", or an operator")
        else:
            self._condition()

    def _begins_pattern(self, start: Token) -> bool:
        """Whether two nodes follow on ``(``, perhaps with a comma."""
        if not start.is_symbol("("):
            return False
        first = self.lexer.after(start)
        second = self.lexer.after(first)
        return first.kind in _NODES and (second.is_symbol(",") or second.kind in _NODES)

    def _pattern(self) -> None:
        token = self.expect("(")
        subject = self._node()
        self.takes(",")
        place = self.peek()
        verb = self._node()
        if not isinstance(verb, sparql.Iri | sparql.Variable):
            raise self.refusal("syntax", f"{place} is no property", place.offset, "an IRI")
        self.takes(",")
        value = self._node()
        self.expect(")")
        self._elements.append(sparql.TriplePattern(subject, verb, value))
        if len(self._elements) > self.limits.steps_max:
            raise self.refusal(
                "too-long", f"more than {self.limits.steps_max} patterns", token.offset
            )

    def _node(self) -> sparql.Term:
        token = self.peek()
        if token.kind is TokenKind.IRI:
            prefix, _, local = token.text.partition(":")
            if prefix in self.prefixes and not local.startswith("//"):
                self.take()
                return sparql.Iri(self.prefixes[prefix] + local)  # <dc:title>
        if token.kind in (TokenKind.WORD, TokenKind.BLANK):
            raise self.unexpected("a variable, an IRI in < >, a name with a prefix, or a literal")
        term = self.term()
        if isinstance(term, sparql.Variable):
            self._visible.setdefault(term)
            self.given.add(term.name)
        return term

    def _condition(self) -> None:
        """What is asked of the taxonomies is a triple where it is a condition by itself."""
        condition = self.expression()
        for part in split(condition, ast.And):
            match part:
                case sparql.Exists(sparql.Group((sparql.TriplePattern() as triple,))):
                    self._elements.append(triple)
                case _:
                    self._elements.append(sparql.Filter(part))

    def relation(self) -> ast.Expression:
        left = self.sum()
        token = self.peek()
        if token.kind is TokenKind.SYMBOL and token.text in ("=~", "!~"):
            return self._search(left, self.take())
        if token.is_word("ISA"):
            self.take()
            if not isinstance(left, sparql.Variable):
                raise self.refusal("syntax", "isa behind no variable", token.offset, "?x isa C")
            return _is_a(left, sparql.Closure.INSTANCE, self._class())
        if token.is_word(*_WORDS):
            self.take()
            return ast.Comparison(left, _WORDS[token.text.upper()], self.sum())
        if token.is_symbol("=="):
            self.take()
            return ast.Comparison(left, Operator.EQ, self.sum())
        if token.kind is not TokenKind.SYMBOL or token.text not in GENERAL:
            return left
        self.take()
        right = self.sum()
        if (
            isinstance(left, sparql.Variable)
            and isinstance(right, sparql.Iri)
            and token.text in _IS_A
        ):
            return _is_a(left, _IS_A[token.text], right)
        return ast.Comparison(left, GENERAL[token.text], right)

    def _class(self) -> sparql.Iri:
        node = self._node()
        if not isinstance(node, sparql.Iri):
            raise self.unexpected("the IRI of a class")
        return node

    def _search(self, left: ast.Expression, token: Token) -> ast.Expression:
        """``?x =~ /pattern/i``."""
        found = _OWN_TOKEN.match(self.lexer.text, token.offset)
        assert found is not None
        arguments: list[ast.Expression] = [
            ast.FunctionCall("str", (left,)),
            sparql.LiteralTerm(found[2].replace("\\/", "/")),
        ]
        if found[3]:
            arguments.append(sparql.LiteralTerm(found[3]))
        call = ast.FunctionCall("regex", tuple(arguments))
        self.check_pattern(call, token)
        return call if token.text == "=~" else sparql.negation(call)


def _is_a(left: sparql.Variable, closure: sparql.Closure, right: sparql.Iri) -> ast.Expression:
    return sparql.Exists(sparql.Group((sparql.TriplePattern(left, _TYPE, right, closure),)))
