"""Parses the expressions of FILTER, BIND, SELECT, HAVING, GROUP BY and ORDER BY."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

import pyoxigraph

from formats.characters import find_illegal_character
from formats.graph.iris import resolve
from formats.graph.vocabulary import RDF, RDFS, XSD
from yfilter.errors import ProfileRefused
from yfilter.graph import query_ast as sparql
from yfilter.graph.necessary_part import CASTS, is_said
from yfilter.graph.query_text import is_written_blank, quoted
from yfilter.graph.sparql_lexer import SparqlLexer, unescaped, unquoted
from yfilter.language.comparison import GENERAL
from yfilter.language.pattern_syntax import PatternError
from yfilter.language.patterns import check_pattern
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.tokens import Token, TokenKind, TokenParser
from yfilter.language.trees import flat

# -------------------------------------------------------------------------------------------------
# What somebody probably meant who wrote something else in a graph profile.


# Prefixes that nobody has to look up.
KNOWN_PREFIXES = {
    "rdf": RDF,
    "rdfs": RDFS,
    "xsd": XSD,
    "owl": "http://www.w3.org/2002/07/owl#",
    "rss": "http://purl.org/rss/1.0/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "schema": "http://schema.org/",
    "dcat": "http://www.w3.org/ns/dcat#",
    "content": "http://purl.org/rss/1.0/modules/content/",
}
# Functions of XPath and SQL -> those of SPARQL.
_FOREIGN_FUNCTIONS = {
    **dict.fromkeys(("starts", "startswith"), "strstarts(…)"),
    **dict.fromkeys(("ends", "endswith"), "strends(…)"),
    **dict.fromkeys(("upper", "toupper"), "ucase(…)"),
    **dict.fromkeys(("lower", "tolower"), "lcase(…)"),
    **dict.fromkeys(("length", "len"), "strlen(…)"),
    "matches": "regex(…)",
    "like": "regex(…) or contains(…)",
    "string": "str(…), or strlen(…) for its length",
    "substring": "substr(…)",
    "not": "'!', or NOT EXISTS { … }",
    "exists": "EXISTS { … }",
    "ceiling": "ceil(…)",
    "isuri": "isURI(…)",
    "type": "datatype(…), or the pattern ?x a <class>",
    "number": "xsd:decimal(…)",
    "integer": "xsd:integer(…)",
    "date": "xsd:dateTime(…)",
}
# Words and symbols of other languages -> what stands there in SPARQL.
_FOREIGN = {
    "and": "'&&'",
    "or": "'||'",
    "not": "'!', or NOT EXISTS { … }",
    "eq": "'='",
    "ne": "'!='",
    "lt": "'<'",
    "le": "'<='",
    "gt": "'>'",
    "ge": "'>='",
    "==": "'='",
    "like": "regex(…) or contains(…)",
    "is": "'=', or bound(…)",
    "between": "two comparisons with '&&'",
    "suchthat": "FILTER(…)",
    "using": "PREFIX p: <…> in front of the query",
    "return": "SELECT ?x … WHERE { … }",
    "join": "a triple with the same variable",
    "null": "!bound(?x)",
}
_HYPHENATED = re.compile(r"[a-z]+(?:-[a-z]+)+(?=\s*\()")
_XPATH_FUNCTIONS = {
    "starts-with": "strstarts(…)",
    "ends-with": "strends(…)",
    "upper-case": "ucase(…)",
    "lower-case": "lcase(…)",
    "string-length": "strlen(…)",
    "substring-before": "strbefore(…)",
    "substring-after": "strafter(…)",
    "encode-for-uri": "encode_for_uri(…)",
}
_XPATH = "a pattern of triples, ?x <property> ?y; a path from '/' is a profile of its own"
_KEYWORDS = (
    *("SELECT", "CONSTRUCT", "ASK", "DESCRIBE", "WHERE", "PREFIX", "BASE", "FILTER", "OPTIONAL"),
    *("UNION", "MINUS", "GRAPH", "BIND", "VALUES", "DISTINCT", "REDUCED", "EXISTS", "NOT", "ORDER"),
    *("GROUP", "HAVING", "LIMIT", "OFFSET", "BY", "AS", "IN", "UNDEF", "SERVICE", "FROM"),
)


def prefix_suggestion(prefix: str, declared: Iterable[str]) -> str:
    """How an undeclared prefix may be declared, or which declared one was meant."""
    if prefix in KNOWN_PREFIXES:
        return f"PREFIX {prefix}: <{KNOWN_PREFIXES[prefix]}> in front of the query"
    if close := get_close_matches(prefix, list(declared), n=1, cutoff=0.5):
        return f"'{close[0]}:'"
    return f"PREFIX {prefix}: <…> in front of the query"


def function_suggestion(name: str, functions: Iterable[str]) -> str:
    """A function of the language in place of one that there is not."""
    if name.lower() in _FOREIGN_FUNCTIONS:
        return _FOREIGN_FUNCTIONS[name.lower()]
    close = get_close_matches(name.lower(), [known.lower() for known in functions], n=1)
    return f"{close[0]}(…)" if close else "a function of the table in docs/graphs.md"


def variable_suggestion(name: str, bound: Iterable[str]) -> str:
    """A variable that the patterns bind in place of one that they do not."""
    close = get_close_matches(name, list(bound), n=1, cutoff=0.5)
    return f"?{close[0]}" if close else f"a pattern with ?{name} in it"


def instead_of(text: str, offset: int, word: str, expected: str) -> str:
    """What the token ``word`` at ``offset`` may have been meant for, or ``expected``."""
    before = text[:offset].rstrip()
    if hyphenated := _HYPHENATED.match(text, offset):
        return _XPATH_FUNCTIONS.get(hyphenated[0], expected)
    if text.startswith("<>", offset):
        return "'!='"
    if text.startswith("<?", offset):
        return "white space behind '<'"
    if word.lower() in _FOREIGN:
        return _FOREIGN[word.lower()]
    if before.endswith("=") and word == "=":
        return "one '='"
    if before.endswith("<") and word == ">":
        return "'!='"
    if word == "/" and before.endswith(("{", ".", "}", "WHERE", "where")):
        return _XPATH
    if word.isalpha():
        if text[: offset + len(word)].endswith("$" + word):
            return f"?{word}"
        if before.upper().endswith(("SELECT", "DISTINCT", " AS")):
            return f"a variable: ?{word}"
        close = get_close_matches(word.upper(), _KEYWORDS, n=1, cutoff=0.7)
        if close and close[0] != word.upper():
            return close[0]
    return expected


# -------------------------------------------------------------------------------------------------


# -------------------------------------------------------------------------------------------------
# Parses the prologue and terms of a graph profile: IRIs, literals, variables, blank nodes.


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
        self.labels: dict[str, tuple[sparql.Variable, int]] = {}  # of blank nodes, with their block
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

    def iri(self) -> sparql.Iri:
        if self.peek().kind not in (TokenKind.IRI, TokenKind.NAME):
            raise self.unexpected("an IRI in < >, or a name with a prefix")
        return sparql.Iri(self.iri_of(self.take()))

    def variable(self) -> sparql.Variable:
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
        return sparql.Variable(name)

    def chosen_variable(self) -> sparql.Variable:
        """A variable that has to have a value, and a name of the user's own."""
        token = self.peek()
        variable = self.variable()
        if variable.is_blank:
            raise self.refusal(
                "reserved", f"names such as ?{token.text} stand for blank nodes", token.offset
            )
        self.asked.setdefault(variable.name, token)
        return variable

    def blank(self) -> sparql.Variable:
        """A blank node that nothing else is."""
        self.blanks += 1
        return sparql.Variable(f"{self.blank_mark}{self.blanks - 1}")

    def _labelled(self, token: Token, label: str) -> sparql.Variable:
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

    def term(self) -> sparql.Term:
        """A variable, IRI, literal or labelled blank node; brackets are the caller's."""
        token = self.peek()
        match token.kind:
            case TokenKind.VARIABLE:
                return self.variable()
            case TokenKind.IRI | TokenKind.NAME:
                return sparql.Iri(self.iri_of(self.take()))
            case TokenKind.BLANK:
                return self._labelled(self.take(), token.text)
        literal = self.literal()
        if literal is None:
            raise self.unexpected(_TERM)
        return literal

    def literal(self) -> sparql.LiteralTerm | None:
        """A literal, if one begins here."""
        token = self.peek()
        match token.kind:
            case TokenKind.STRING:
                return self._string(self.take())
            case TokenKind.NUMBER:
                return number(self.take().text)
            case TokenKind.WORD if token.is_word("TRUE", "FALSE"):
                return sparql.LiteralTerm(self.take().text.lower(), BOOLEAN)
        return None

    def _string(self, token: Token) -> sparql.LiteralTerm:
        text = self.string_value(token)
        following = self.peek()
        if following.kind is TokenKind.LANGUAGE:
            self.take()
            tag = language_tag(following.text)
            if tag is None:
                raise self.refusal(
                    "language", f"{following} is no language tag", following.offset, "@en, @en-GB"
                )
            return sparql.LiteralTerm(text, language=tag)
        if following.is_symbol("^^"):
            self.take()
            return sparql.LiteralTerm(text, self.iri().value)
        return sparql.LiteralTerm(text)

    def string_value(self, token: Token) -> str:
        value = unescaped(unquoted(token.text))
        if value is None:
            raise self.refusal("syntax", "an escape of no character", token.offset)
        illegal = find_illegal_character(value)
        if illegal >= 0:
            what = f"the character U+{ord(value[illegal]):04X} cannot stand in a message"
            raise self.refusal("character", what, token.offset)
        return value

    def unbound(self) -> Iterator[ProfileRefused]:
        """What asks for a variable that no pattern has: perhaps it is misspelt."""
        for name, token in self.asked.items():
            if name not in self.given:
                what = f"no pattern gives ?{name} a value"
                wanted = variable_suggestion(name, self.given)
                yield self.refusal("unbound-variable", what, token.offset, wanted)

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


def number(text: str) -> sparql.LiteralTerm:
    """A number as written in a query, sign included."""
    if "e" in text or "E" in text:
        return sparql.LiteralTerm(text, DOUBLE)
    return sparql.LiteralTerm(text, DECIMAL if "." in text else INTEGER)


# -------------------------------------------------------------------------------------------------


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
    def group(self) -> sparql.Group:
        """A group in braces."""

    @abstractmethod
    def unseen_group(self) -> sparql.Group:
        """A group whose variables are not to be seen outside."""

    @contextmanager
    def aggregating(self) -> Iterator[None]:
        """Aggregates may stand in what is read meanwhile."""
        self._may_aggregate = True
        yield
        self._may_aggregate = False

    def expression(self) -> sparql.FilterExpression:
        parts = self._chain(self._conjunction, "||")
        return parts[0] if len(parts) == 1 else sparql.AnyOf(flat(parts, sparql.AnyOf))

    def constraint(self) -> sparql.FilterExpression:
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

    def _in_parentheses(self) -> sparql.FilterExpression:
        self.enter(self.expect("("))
        inner = self.expression()
        self.leave()
        self.expect(")", ", or an operator")
        return inner

    # -- operators, from the loosest to the tightest

    def _chain(
        self, operand: Callable[[], sparql.FilterExpression], symbol: str
    ) -> tuple[sparql.FilterExpression, ...]:
        parts = [operand()]
        while self.takes(symbol):
            parts.append(operand())
        if len(parts) > self.limits.steps_max:
            raise self.refusal("too-long", f"too many '{symbol}' in a row", self.peek().offset)
        return tuple(parts)

    def _conjunction(self) -> sparql.FilterExpression:
        parts = self._chain(self.relation, "&&")
        return parts[0] if len(parts) == 1 else sparql.AllOf(flat(parts, sparql.AllOf))

    def relation(self) -> sparql.FilterExpression:
        left = self.sum()
        token = self.peek()
        if token.kind is TokenKind.SYMBOL and token.text in GENERAL:
            self.take()
            return sparql.FilterComparison(left, GENERAL[token.text], self.sum())
        if token.is_word("IN"):
            self.take()
            return sparql.Membership(left, self._arguments())
        if token.is_word("NOT"):
            self.take()
            self.expect_word("IN")
            return sparql.Membership(left, self._arguments(), is_negated=True)
        return left

    def sum(self) -> sparql.FilterExpression:
        left = self._product(self._unary())
        for _ in range(self.limits.depth_max):
            token = self.peek()
            if token.is_symbol("+", "-"):
                self.take()
                left = sparql.FilterCall(token.text, (left, self._product(self._unary())))
            elif token.kind is TokenKind.NUMBER and token.text[0] in "+-":
                self.take()  # ?x -1
                left = sparql.FilterCall(
                    token.text[0], (left, self._product(number(token.text[1:])))
                )
            else:
                return left
        raise self._too_many()

    def _product(self, left: sparql.FilterExpression) -> sparql.FilterExpression:
        for _ in range(self.limits.depth_max):
            token = self.peek()
            if not token.is_symbol("*", "/"):
                return left
            self.take()
            left = sparql.FilterCall(token.text, (left, self._unary()))
        raise self._too_many()

    def _too_many(self) -> ProfileRefused:
        return self.refusal("too-deep", "too many operators in a row", self.peek().offset)

    def _unary(self) -> sparql.FilterExpression:
        token = self.peek()
        if token.is_symbol("!", "-", "+"):
            self.enter(self.take())
            operand = self._unary() if token.text == "!" else self._primary()
            self.leave()
            if token.text == "!":
                return sparql.Not(operand)
            if token.text == "-":
                return sparql.FilterCall("-", (operand,))
            return sparql.FilterCall("+", (sparql.LiteralTerm("0", INTEGER), operand))
        return self._primary()

    def _primary(self) -> sparql.FilterExpression:
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

    def _asked_variable(self) -> sparql.FilterExpression:
        token = self.peek()
        variable = self.variable()
        if not variable.is_blank:
            self.asked.setdefault(token.text, token)
            if not self._in_aggregate:
                self.outside.append(token)
        return variable

    # -- calls

    def _arguments(self, expected: str = ", or ','") -> tuple[sparql.FilterExpression, ...]:
        self.enter(self.expect("("))
        arguments: list[sparql.FilterExpression] = []
        if not self.peek().is_symbol(")"):
            arguments.extend(self._chain(self.expression, ","))
        self.leave()
        self.expect(")", expected)
        return tuple(arguments)

    def _call(self, token: Token, iri: sparql.Iri) -> sparql.FilterExpression:
        """A cast; ``token`` names it."""
        arguments = self._arguments()
        if iri.value not in CASTS:
            what = f"there is no function <{iri.value}>"
            wanted = "a cast: " + ", ".join(sorted(name.replace(XSD, "xsd:") for name in CASTS))
            raise self.refusal("unknown-function", what, token.offset, wanted)
        if len(arguments) != 1:
            raise self.refusal("arguments", "a cast takes one argument", token.offset)
        return sparql.FilterCall(iri.value, arguments)

    def _built_in(self, token: Token, expected: str) -> sparql.FilterExpression:
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
        if name == "BOUND" and not isinstance(arguments[0], sparql.Variable):
            raise self.refusal("syntax", "bound() takes a variable", token.offset, "bound(?x)")
        call = sparql.FilterCall(_SAME.get(name, name.lower()), arguments)
        if name in ("REGEX", "REPLACE"):
            self.check_pattern(call, token)
        if not is_said(call):
            self.is_whole = True
        return call

    def _exists(self) -> sparql.FilterExpression:
        is_negated = self.takes_word("NOT")
        self.expect_word("EXISTS")
        return sparql.Exists(self.unseen_group(), is_negated)

    def check_pattern(self, call: sparql.FilterCall, token: Token) -> None:
        """Refuses a regular expression that nobody could search for."""
        constants = call.arguments[1:2] + call.arguments[len(call.arguments) - 1 :]
        flagged = len(call.arguments) == (3 if call.name == "regex" else 4)
        pattern, flags = constants[0], constants[1] if flagged else sparql.LiteralTerm("")
        if not isinstance(pattern, sparql.LiteralTerm) or not isinstance(flags, sparql.LiteralTerm):
            return
        try:
            self._pattern_ranges += check_pattern(
                pattern.lexical, flags.lexical, self.limits.pattern_max
            )
        except PatternError as error:
            raise self.refusal("pattern", str(error), token.offset) from None
        if self._pattern_ranges > self.limits.ranges_max:
            raise self.refusal("too-long", "too large regular expressions", token.offset)

    def _aggregate(self, token: Token) -> sparql.FilterExpression:
        if self._in_aggregate or not self._may_aggregate:
            what = f"{token.text}() cannot stand here"
            wanted = "an aggregate in SELECT, HAVING or ORDER BY, and in no other"
            raise self.refusal("syntax", what, token.offset, wanted)
        self.take()
        self.is_whole = self._in_aggregate = True
        self.aggregates += 1
        self.enter(self.expect("("))
        self.takes_word("DISTINCT")
        arguments: tuple[sparql.FilterExpression, ...] = ()
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
        return sparql.FilterCall(token.text.lower(), arguments)
