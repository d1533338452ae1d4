"""Text of a graph profile -> GraphQuery.  Every refusal says where, and what was expected there.

The grammar is that of SPARQL 1.1 queries, without FROM and SERVICE.  What the tree can say it says
alone; of the rest it has a necessary part, and the whole text with all names in full.

FilterParser has what RDQL has as well: terms and filters.  The parser is recursive, and bounded by
``ProfileLimits``.  ``docs/graphs.md`` documents the language.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn, TypeAlias, cast

import pyoxigraph

from formats.characters import NAME_START, find_illegal_character
from formats.graph.iris import resolve
from formats.graph.vocabulary import RDF, RDF_TYPE, RDFS, XSD
from yfilter.errors import ProfileRefused
from yfilter.graph import query_ast as sparql
from yfilter.graph.filter_functions import FUNCTIONS
from yfilter.graph.group_variables import renamed, variables_of
from yfilter.graph.query_text import is_written_blank, quoted
from yfilter.language import query_ast as ast
from yfilter.language.patterns import PatternError, check_pattern
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.query_ast import GENERAL, Operator
from yfilter.language.tokens import Token, TokenKind, TokenLexer, TokenParser
from yfilter.language.trees import flat, nodes_of, split

# -------------------------------------------------------------------------------------------------
# Necessary parts: aggregates and other functions are calls in the tree as well, and where a pattern
# says less than the text it is Weakened.  ``necessary_part`` leaves all that out, with all that
# depends on it: each solution of the query is, for the variables left, a solution of the rest.
#
# A variable is *lost* where the query may give it a value and the rest does not.  FILTER, BIND,
# OPTIONAL and MINUS that mention a lost variable go, too.


_OF_UNKNOWN = frozenset(("bound", "if", "coalesce"))  # which are no functions of values
CASTS = frozenset(name for name in FUNCTIONS if ":" in name)


@dataclass(frozen=True, slots=True)
class Weakened:
    """``group`` is a necessary part of what was written; ``lost``: see above."""

    group: sparql.Group
    lost: tuple[sparql.Variable, ...] = ()


def weakened(group: sparql.Group, lost: Iterable[sparql.Variable] = ()) -> sparql.GroupElement:
    """A member of a draft; no tree that leaves the parser has one."""
    return cast(sparql.GroupElement, Weakened(group, tuple(lost)))


def is_said(call: ast.FunctionCall) -> bool:
    """Whether the tree has this function, for what it is called with."""
    if call.name in ("regex", "replace"):
        return all(isinstance(argument, sparql.LiteralTerm) for argument in call.arguments[1:])
    return call.name in FUNCTIONS or call.name in _OF_UNKNOWN or call.name == "not"


def necessary_part(draft: sparql.Group) -> sparql.Group:
    """The part of a draft that a tree can say."""
    return _necessary(draft)[0]


def _necessary(draft: sparql.Group) -> tuple[sparql.Group, set[sparql.Variable]]:
    """What is left of a group, and the variables that are lost in it."""
    kept: list[sparql.GroupElement] = []
    lost: set[sparql.Variable] = set()
    bound: set[sparql.Variable] = set()  # by a triple of the group itself
    for element in cast("tuple[sparql.GroupElement | Weakened, ...]", draft.elements):
        match element:
            case sparql.TriplePattern():
                kept.append(element)
                bound.update(variables_of(element))
            case Weakened(group, more):
                part, lost_there = _necessary(group)
                kept += part.elements
                lost |= lost_there | set(more)
            case sparql.Group():
                part, lost_there = _necessary(element)
                if part.elements:
                    kept.append(part)
                lost |= lost_there
            case sparql.Alternatives(groups):
                parts = [_necessary(group) for group in groups]
                kept.append(sparql.Alternatives(tuple(part for part, _ in parts)))
                lost |= {variable for _, lost_there in parts for variable in lost_there}
            case sparql.InGraph(graph, group):
                part, lost_there = _necessary(group)
                kept.append(sparql.InGraph(graph, part))
                lost |= lost_there
            case sparql.Values():
                kept.append(element)
            case sparql.Filter():
                pass
            case sparql.Optionally() | sparql.Bind() | sparql.Minus():
                if _is_all_said(element) and lost.isdisjoint(variables_of(element)):
                    kept.append(element)
                elif not isinstance(element, sparql.Minus):
                    lost.update(variables_of(element))
    lost -= bound
    for element in draft.elements:
        if isinstance(element, sparql.Filter):
            conditions = [
                part for part in split(element.condition, ast.And) if _is_kept(part, lost)
            ]
            if conditions:
                whole = conditions[0] if len(conditions) == 1 else ast.And(tuple(conditions))
                kept.append(sparql.Filter(whole))
    return sparql.Group(tuple(kept)), lost


def _is_kept(condition: ast.Expression, lost: set[sparql.Variable]) -> bool:
    return _is_all_said(condition) and lost.isdisjoint(variables_of(condition))


def _is_all_said(tree: object) -> bool:
    return not any(
        isinstance(node, Weakened) or (isinstance(node, ast.FunctionCall) and not is_said(node))
        for node in nodes_of(tree)
    )


# -------------------------------------------------------------------------------------------------
# Tokens (SPARQL 1.1, 19.8), as long as they can be: ``?a <?b&&?c> ?d`` has an IRI in it.


_START = NAME_START.replace("_", "")
_NAME = f"{_START}_0-9\u00b7\u0300-\u036f\u203f-\u2040\\-"  # in a class
_VARIABLE = f"[{_START}_0-9][{_START}_0-9\u00b7\u0300-\u036f\u203f-\u2040]*"
_PREFIX = f"(?:[{_START}](?:[{_NAME}.]*[{_NAME}])?)?"
_ESCAPED = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_LOCAL = f"(?:[{_START}_:0-9]|{_ESCAPED})(?:(?:[{_NAME}.:]|{_ESCAPED})*(?:[{_NAME}:]|{_ESCAPED}))?"
_UNICODE = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_STRING_ESCAPE = rf"\\[tbnrf\\\"']|{_UNICODE}"


class SparqlToken(Token):
    """``text``: of a variable, IRI, blank node or language without what marks them."""

    __slots__ = ()

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords, in capitals here and in any case in the text."""
        return self.kind is TokenKind.WORD and self.text.upper() in words

    def __str__(self) -> str:
        match self.kind:
            case TokenKind.VARIABLE:
                return f"'?{self.text}'"
            case TokenKind.BLANK:
                return f"'_:{self.text}'"
            case TokenKind.LANGUAGE:
                return f"'@{self.text}'"
            case TokenKind.IRI:
                return f"<{self.text}>"
            case _:
                return super().__str__()


# One token with the white space and comments before it; its groups are in the order of _KINDS.
_TOKEN = re.compile(
    rf"""(?:[ \t\r\n]+|\#[^\r\n]*)*+
      (?:[?$]({_VARIABLE})
      | <((?:[^\x00-\x20<>"{{}}|^`\\]|{_UNICODE})*+)>
      | _:([{_START}_0-9](?:[{_NAME}.]*[{_NAME}])?)
      | ({_PREFIX}:(?:{_LOCAL})?)
      | ([{_START}_][{_START}_0-9]*)
      | (\"\"\"(?:"{{0,2}}(?:[^"\\]|{_STRING_ESCAPE}))*+\"\"\"
         |'''(?:'{{0,2}}(?:[^'\\]|{_STRING_ESCAPE}))*+'''
         |"(?:[^"\\\r\n]|{_STRING_ESCAPE})*+"|'(?:[^'\\\r\n]|{_STRING_ESCAPE})*+')
      | @([A-Za-z]+(?:-[A-Za-z0-9]+)*)
      | ([+-]?(?:[0-9]+\.[0-9]*[eE][+-]?[0-9]+|\.?[0-9]+[eE][+-]?[0-9]+|[0-9]*\.[0-9]+|[0-9]+))
      | (\^\^|&&|\|\||!=|<=|>=|<<|>>|[][(){{}}.,;=<>!+*/|^?-])
      | (\Z))
    """,
    re.VERBOSE,
)
_KINDS = (
    TokenKind.END,
    TokenKind.VARIABLE,
    TokenKind.IRI,
    TokenKind.BLANK,
    TokenKind.NAME,
    TokenKind.WORD,
    TokenKind.STRING,
    TokenKind.LANGUAGE,
    TokenKind.NUMBER,
    TokenKind.SYMBOL,
    TokenKind.END,
)
_MARKS = {TokenKind.VARIABLE: 1, TokenKind.IRI: 1, TokenKind.BLANK: 2, TokenKind.LANGUAGE: 1}
_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*+")
_ESCAPE = re.compile(rf"{_UNICODE}|\\(.)", re.DOTALL)
_SINGLE = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_MEANT = {"&": "'&&'", "~": "regex(…)", "@": "a language tag: @en"}


class SparqlLexer(TokenLexer):
    """``taken`` are the tokens taken so far."""

    __slots__ = ("taken",)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.taken: list[Token] = []

    def take(self) -> Token:
        token = self.peek()
        self._offset = token.end
        self._ahead = None
        self.taken.append(token)
        return token

    def _scan(self, offset: int) -> Token:
        match = _TOKEN.match(self.text, offset)
        if match is None:
            self._refuse(offset)
        group = match.lastindex or 0
        kind = _KINDS[group]
        start = match.start(group) - _MARKS.get(kind, 0)
        token = self._scanned[offset] = SparqlToken(kind, match[group], start, match.end())
        return token

    def _refuse(self, before: int) -> NoReturn:
        space = _SPACE.match(self.text, before)
        assert space is not None
        offset = space.end()
        character = self.text[offset]
        open_string = (
            "this string is not closed, or has an escape that there is not",
            f"a closing {character} on the same line; a backslash doubled",
        )
        self._refuse_character(offset, open_string, _MEANT.get(character, ""))


def unescaped(text: str) -> str | None:
    """What the escapes of a string, an IRI or a local name mean; None for no character."""
    if "\\" not in text:
        return text
    try:
        plain = _ESCAPE.sub(_character, text)
    except ValueError:
        return None
    return None if any("\ud800" <= character <= "\udfff" for character in plain) else plain


def _character(match: re.Match[str]) -> str:
    if match[1] is not None:
        return _SINGLE.get(match[1], match[1])
    return chr(int(match[0][2:], 16))


def unquoted(text: str) -> str:
    """What stands between the quotation marks of a string, its escapes as written."""
    return text[3:-3] if text.startswith(('"""', "'''")) else text[1:-1]


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


class FilterParser(TokenParser):
    """Recursive descent over a SparqlLexer.

    ``asked`` has the variables that are to have a value, with the first place that says so;
    ``given`` those that some pattern gives one; ``names`` are of all that are written;
    ``is_whole``: something was read that the tree has no words for.
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
        self.is_whole = False
        self.aggregates = 0  # read so far
        self._may_aggregate = False
        self._in_aggregate = False
        self.outside: list[Token] = []  # variables of expressions that are in no aggregate
        self._pattern_ranges = 0

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

    def expression(self) -> ast.Expression:
        parts = self._chain(self._conjunction, "||")
        return parts[0] if len(parts) == 1 else ast.Or(flat(parts, ast.Or))

    def constraint(self) -> ast.Expression:
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

    def _in_parentheses(self) -> ast.Expression:
        self.enter(self.expect("("))
        inner = self.expression()
        self.leave()
        self.expect(")", ", or an operator")
        return inner

    # -- operators, from the loosest to the tightest

    def _chain(
        self, operand: Callable[[], ast.Expression], symbol: str
    ) -> tuple[ast.Expression, ...]:
        parts = [operand()]
        while self.takes(symbol):
            parts.append(operand())
        if len(parts) > self.limits.steps_max:
            raise self.refusal("too-long", f"too many '{symbol}' in a row", self.peek().offset)
        return tuple(parts)

    def _conjunction(self) -> ast.Expression:
        parts = self._chain(self.relation, "&&")
        return parts[0] if len(parts) == 1 else ast.And(flat(parts, ast.And))

    def relation(self) -> ast.Expression:
        left = self.sum()
        token = self.peek()
        if token.kind is TokenKind.SYMBOL and token.text in GENERAL:
            self.take()
            return ast.Comparison(left, GENERAL[token.text], self.sum())
        if token.is_word("IN"):
            self.take()
            return sparql.Membership(left, self._arguments())
        if token.is_word("NOT"):
            self.take()
            self.expect_word("IN")
            return sparql.Membership(left, self._arguments(), is_negated=True)
        return left

    def sum(self) -> ast.Expression:
        left = self._product(self._unary())
        for _ in range(self.limits.depth_max):
            token = self.peek()
            if token.is_symbol("+", "-"):
                self.take()
                left = ast.FunctionCall(token.text, (left, self._product(self._unary())))
            elif token.kind is TokenKind.NUMBER and token.text[0] in "+-":
                self.take()  # ?x -1
                left = ast.FunctionCall(
                    token.text[0], (left, self._product(number(token.text[1:])))
                )
            else:
                return left
        raise self._too_many()

    def _product(self, left: ast.Expression) -> ast.Expression:
        for _ in range(self.limits.depth_max):
            token = self.peek()
            if not token.is_symbol("*", "/"):
                return left
            self.take()
            left = ast.FunctionCall(token.text, (left, self._unary()))
        raise self._too_many()

    def _too_many(self) -> ProfileRefused:
        return self.refusal("too-deep", "too many operators in a row", self.peek().offset)

    def _unary(self) -> ast.Expression:
        token = self.peek()
        if token.is_symbol("!", "-", "+"):
            self.enter(self.take())
            operand = self._unary() if token.text == "!" else self._primary()
            self.leave()
            if token.text == "!":
                return sparql.negation(operand)
            if token.text == "-":
                return ast.FunctionCall("-", (operand,))
            return ast.FunctionCall("+", (sparql.LiteralTerm("0", INTEGER), operand))
        return self._primary()

    def _primary(self) -> ast.Expression:
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

    def _asked_variable(self) -> ast.Expression:
        token = self.peek()
        variable = self.variable()
        if not variable.is_blank:
            self.asked.setdefault(token.text, token)
            if not self._in_aggregate:
                self.outside.append(token)
        return variable

    # -- calls

    def _arguments(self, expected: str = ", or ','") -> tuple[ast.Expression, ...]:
        self.enter(self.expect("("))
        arguments: list[ast.Expression] = []
        if not self.peek().is_symbol(")"):
            arguments.extend(self._chain(self.expression, ","))
        self.leave()
        self.expect(")", expected)
        return tuple(arguments)

    def _call(self, token: Token, iri: sparql.Iri) -> ast.Expression:
        """A cast; ``token`` names it."""
        arguments = self._arguments()
        if iri.value not in CASTS:
            what = f"there is no function <{iri.value}>"
            wanted = "a cast: " + ", ".join(sorted(name.replace(XSD, "xsd:") for name in CASTS))
            raise self.refusal("unknown-function", what, token.offset, wanted)
        if len(arguments) != 1:
            raise self.refusal("arguments", "a cast takes one argument", token.offset)
        return ast.FunctionCall(iri.value, arguments)

    def _built_in(self, token: Token, expected: str) -> ast.Expression:
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
        call = ast.FunctionCall(_SAME.get(name, name.lower()), arguments)
        if name in ("REGEX", "REPLACE"):
            self.check_pattern(call, token)
        if not is_said(call):
            self.is_whole = True
        return call

    def _exists(self) -> ast.Expression:
        is_negated = self.takes_word("NOT")
        self.expect_word("EXISTS")
        return sparql.Exists(self.unseen_group(), is_negated)

    def check_pattern(self, call: ast.FunctionCall, token: Token) -> None:
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

    def _aggregate(self, token: Token) -> ast.Expression:
        if self._in_aggregate or not self._may_aggregate:
            what = f"{token.text}() cannot stand here"
            wanted = "an aggregate in SELECT, HAVING or ORDER BY, and in no other"
            raise self.refusal("syntax", what, token.offset, wanted)
        self.take()
        self.is_whole = self._in_aggregate = True
        self.aggregates += 1
        self.enter(self.expect("("))
        self.takes_word("DISTINCT")
        arguments: tuple[ast.Expression, ...] = ()
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
        return ast.FunctionCall(token.text.lower(), arguments)


# -------------------------------------------------------------------------------------------------
# Property paths of SPARQL as triples: ``?x a/b ?y`` is ``?x a _:0 . _:0 b ?y``.
#
# ``a/rdfs:subClassOf*`` and ``a/^rdfs:subClassOf*`` ask the taxonomies.  What has no fixed number
# of triples (``*``, ``+``, ``?``) or is what a triple is not (``!p``) is Weakened.


SUB_CLASS = sparql.Iri(RDFS + "subClassOf")
SUB_PROPERTY = sparql.Iri(RDFS + "subPropertyOf")
TYPE = sparql.Iri(RDF_TYPE)


class PropertyPath(NamedTuple):
    """``kind``: ``^``, ``*``, ``+`` or ``?`` of one path; ``/`` or ``|`` of two or more; ``a`` of a
    Closure, ``a/rdfs:subClassOf*`` or the like; ``!`` of two tuples of properties: any but the
    first, or any but the second the other way."""

    kind: str
    parts: tuple[Any, ...]


Path: TypeAlias = sparql.Iri | sparql.Variable | PropertyPath
_ABOVE = PropertyPath("a", (sparql.Closure.INSTANCE_ABOVE,))
_TYPED = {
    PropertyPath("*", (SUB_CLASS,)): PropertyPath("a", (sparql.Closure.INSTANCE,)),
    PropertyPath("^", (PropertyPath("*", (SUB_CLASS,)),)): _ABOVE,
    PropertyPath("*", (PropertyPath("^", (SUB_CLASS,)),)): _ABOVE,
}


def elements_of(
    subject: sparql.Term, path: Path, value: sparql.Term, blank: Callable[[], sparql.Variable]
) -> list[sparql.GroupElement]:
    """The triples of ``subject path value``; ``blank`` makes the nodes in between."""
    match path:
        case sparql.Iri() | sparql.Variable():
            return [sparql.TriplePattern(subject, path, value)]
        case PropertyPath("a", (closure,)):
            return [sparql.TriplePattern(subject, TYPE, value, closure)]
        case PropertyPath("^", (inner,)):
            return elements_of(value, inner, subject, blank)
        case PropertyPath("/", parts):
            elements: list[sparql.GroupElement] = []
            for part in parts[:-1]:
                between = blank()
                elements += elements_of(subject, part, between, blank)
                subject = between
            return elements + elements_of(subject, parts[-1], value, blank)
        case PropertyPath("|", parts):
            ways = (sparql.Group(tuple(elements_of(subject, part, value, blank))) for part in parts)
            return [sparql.Alternatives(tuple(ways))]
        case PropertyPath("+", (inner,)):
            first = elements_of(subject, inner, blank(), blank)
            last = elements_of(blank(), inner, value, blank)
            return [weakened(sparql.Group((*first, *last)))]
        case PropertyPath("!", (forward, backward)):
            ways_of = [
                sparql.Group((sparql.TriplePattern(start, blank(), end),))
                for start, properties, end in (
                    (subject, forward, value),
                    (value, backward, subject),
                )
                if properties
            ]
            whole = (
                ways_of[0]
                if len(ways_of) == 1
                else sparql.Group((sparql.Alternatives(tuple(ways_of)),))
            )
            return [weakened(whole)]
        case _:  # * and ?
            lost = (term for term in (subject, value) if isinstance(term, sparql.Variable))
            return [weakened(sparql.Group(()), lost)]


FIRST, REST, NIL = (sparql.Iri(RDF + name) for name in ("first", "rest", "nil"))
_VERB = "a property: an IRI, a variable or 'a'"
_INSTANCE = {sparql.Iri(sparql.INSTANCE_PROPERTY): _TYPED[PropertyPath("*", (SUB_CLASS,))]}


class Above(NamedTuple):
    """``subject rdfs:subClassOf* value``, or subPropertyOf; what it asks its group tells."""

    subject: sparql.Term
    property: sparql.Iri
    value: sparql.Term
    stands_as: sparql.GroupElement  # in its group, as long as that is not known
    token: Token


def _asks_alone(path: Path) -> bool:
    """Whether a path, by itself, may ask the taxonomies."""
    return path in (PropertyPath("*", (SUB_CLASS,)), PropertyPath("*", (SUB_PROPERTY,)))


_IN_GROUP = "a triple, FILTER, OPTIONAL, UNION, or '}'"


_FORMS = "SELECT, CONSTRUCT or ASK"
_UPDATES = (
    *("INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH"),
)


class _Column(NamedTuple):
    """One of SELECT; ``outside``: the variables of its expression that are in no aggregate."""

    token: Token
    variable: sparql.Variable
    outside: tuple[Token, ...]
    value: ast.Expression | None = None

    @property
    def is_computed(self) -> bool:
        return self.value is not None


class SparqlParser(FilterParser):
    """``elements`` are those of the group that is read; ``visible`` the variables it has so far;
    ``classes``: variables that are in the tree no more, as the taxonomies have their values.  One
    parser reads one text."""

    def __init__(self, text: str, limits: ProfileLimits) -> None:
        super().__init__(text, limits)
        self.elements: list[sparql.GroupElement] = []
        self.above: list[Above] = []
        self.visible: dict[sparql.Variable, None] = {}
        self.has_paths = True  # and not in a template
        self.replaced: list[tuple[int, int, str]] = []  # of the tokens taken: from, to, by what
        self.repeats = 0  # of self.above, as long as it is not known what they ask
        self.unsaid_closures: list[Token] = []  # where a whole query cannot ask them
        self._triples = 0
        self._counted = 0  # ``*``, ``+`` and ``?`` of a path, but those that ask the taxonomies
        self.classes: dict[sparql.Variable, Token] = {}
        self._blocks = 0  # so far

    def triples(self) -> None:
        """Triples, with dots between them and perhaps behind the last."""
        while True:
            self._same_subject()
            if not self.takes(".") or not self.begins_triples():
                return

    def begins_triples(self) -> bool:
        token = self.peek()
        return self.begins_term(token) or token.is_symbol("(", "[", "<<")

    def _same_subject(self) -> None:
        token = self.peek()
        if token.is_symbol("<<"):
            raise self.unsupported("a triple as a term is", token)
        is_node = token.is_symbol("(", "[")
        subject = self._node()
        stands_alone = is_node and self.lexer.taken[-2].text not in "(["
        if not stands_alone or self._begins_verb():
            self._properties(subject)

    def _begins_verb(self) -> bool:
        token = self.peek()
        if token.kind in (TokenKind.VARIABLE, TokenKind.IRI, TokenKind.NAME):
            return True
        if token.kind is TokenKind.WORD:
            return token.text == "a"
        return self.has_paths and token.is_symbol("(", "^", "!")

    def _properties(self, subject: sparql.Term) -> None:
        """``p o, o; q o``; the last semicolons may have nothing behind them."""
        while True:
            if not self._begins_verb():
                raise self.unexpected(_VERB)
            verb = self._path() if self.has_paths else self._verb()
            while True:
                self._object(subject, verb)
                if not self.takes(","):
                    break
            if not self.takes(";"):
                return
            while self.takes(";"):
                pass
            if not self._begins_verb():
                return

    def _verb(self) -> sparql.Iri | sparql.Variable:
        token = self.peek()
        if token.kind is TokenKind.VARIABLE:
            return self.seen(self.variable())
        if token.text == "a" and token.kind is TokenKind.WORD:
            self.take()
            return TYPE
        if token.kind not in (TokenKind.IRI, TokenKind.NAME):
            raise self.unexpected(_VERB)
        return self.iri()

    def _object(self, subject: sparql.Term, verb: Path) -> None:
        """The triple goes before those of the object's own brackets."""
        place = len(self.elements)
        token = self.peek()
        if token.is_symbol("<<"):
            raise self.unsupported("a triple as a term is", token)
        value = self._node()
        made: list[sparql.GroupElement]
        match verb:
            case sparql.Iri() | sparql.Variable():
                made = [sparql.TriplePattern(subject, verb, value)]
            case PropertyPath("*", (sparql.Iri() as property,)) if _asks_alone(verb):
                made = elements_of(subject, verb, value, self.blank)
                self.above.append(Above(subject, property, value, made[0], token))
                self.repeats += 1
            case _:
                made = elements_of(subject, verb, value, self.blank)
                self._check_above(made, token)
        self.elements[place:place] = made
        self._count(max(1, len(made)))

    def _check_above(self, made: list[sparql.GroupElement], token: Token) -> None:
        """Of classes above one that is not named, nobody knows which are meant."""
        for node in nodes_of(tuple(made)):
            if (
                isinstance(node, sparql.TriplePattern)
                and node.closure is sparql.Closure.INSTANCE_ABOVE
                and not isinstance(node.object, sparql.Iri)
            ):
                raise self.unsupported(
                    "a/^rdfs:subClassOf* of what is not named is", token, "the IRI of a class"
                )

    def _count(self, triples: int) -> None:
        self._triples += triples
        if self._triples > self.limits.steps_max:
            raise self.refusal(
                "too-long", f"more than {self.limits.steps_max} triples", self.peek().offset
            )

    # -- nodes

    def _node(self) -> sparql.Term:
        """A term, ``[ … ]`` or ``( … )``."""
        token = self.peek()
        if token.is_symbol("["):
            return self._bracket()
        if token.is_symbol("("):
            return self._collection()
        term = self.term()
        return self.seen(term) if isinstance(term, sparql.Variable) else term

    def seen(self, variable: sparql.Variable) -> sparql.Variable:
        if not variable.is_blank:
            self.visible.setdefault(variable)
            self.given.add(variable.name)
        return variable

    def _bracket(self) -> sparql.Variable:
        self.enter(self.expect("["))
        node = self.blank()
        if not self.peek().is_symbol("]"):
            self._properties(node)
        self.leave()
        self.expect("]", ", ';' or ','")
        return node

    def _collection(self) -> sparql.Term:
        self.enter(self.expect("("))
        nodes: list[sparql.Variable] = []
        while not self.takes(")"):
            node = self.blank()
            if nodes:
                self.elements.append(sparql.TriplePattern(nodes[-1], REST, node))
            nodes.append(node)
            self._object(node, FIRST)
            self._count(1)
        self.leave()
        if not nodes:
            return NIL
        self.elements.append(sparql.TriplePattern(nodes[-1], REST, NIL))
        return nodes[0]

    # -- property paths

    def _path(self) -> Path:
        token = self.peek()
        if token.kind is TokenKind.VARIABLE:
            return self._verb()
        self._counted = 0
        path = self._choice()
        if self._counted and not _asks_alone(path):
            self.is_whole = True
        return path

    def _choice(self) -> Path:
        parts = [self._chain_of_steps()]
        while self.takes("|"):
            parts.append(self._chain_of_steps())
        self._count(len(parts) - 1)
        return parts[0] if len(parts) == 1 else PropertyPath("|", tuple(parts))

    def _chain_of_steps(self) -> Path:
        parts: list[Path] = []
        starts: list[int] = []
        while True:
            start = len(self.lexer.taken)
            part = self._step()
            asked = None
            if parts and parts[-1] == TYPE and isinstance(part, PropertyPath):
                asked = _TYPED.get(part)
            if asked is None:
                parts.append(part)
                starts.append(start)
            else:
                parts[-1] = asked
                self._counted -= 1
                self._replace(starts[-1], asked)
            if not self.takes("/"):
                break
        self._count(len(parts) - 1)
        return parts[0] if len(parts) == 1 else PropertyPath("/", tuple(parts))

    def _replace(self, start: int, asked: PropertyPath) -> None:
        """Has ``a/rdfs:subClassOf*``, from a token on, stand for itself in the whole query."""
        if asked.parts[0] is sparql.Closure.INSTANCE:
            self.replaced.append((start, len(self.lexer.taken), f"<{sparql.INSTANCE_PROPERTY}>"))
        else:
            self.unsaid_closures.append(self.lexer.taken[start])

    def _step(self) -> Path:
        if self.takes("^"):
            inner = self._repeated()
            match inner:
                case PropertyPath("^", (path,)):
                    return path
            return PropertyPath("^", (inner,))
        return self._repeated()

    def _repeated(self) -> Path:
        path = self._path_primary()
        token = self.peek()
        if not token.is_symbol("*", "+", "?"):
            return path
        self.take()
        self._counted += 1
        return PropertyPath(token.text, (path,))

    def _path_primary(self) -> Path:
        token = self.peek()
        if token.is_symbol("("):
            self.enter(self.take())
            inner = self._choice()
            self.leave()
            self.expect(")", ", '/' or '|'")
            return inner
        if token.is_symbol("!"):
            self.take()
            return self._excluded()
        verb = self._path_iri()
        return _INSTANCE.get(verb) or verb

    def _path_iri(self) -> sparql.Iri:
        token = self.peek()
        if token.kind is TokenKind.VARIABLE:
            raise self.refusal("syntax", "a variable in a path", token.offset, "an IRI")
        verb = self._verb()
        assert isinstance(verb, sparql.Iri)
        return verb

    def _excluded(self) -> Path:
        self.is_whole = True
        forward: list[sparql.Iri] = []
        backward: list[sparql.Iri] = []
        in_parentheses = self.takes("(")
        while True:
            is_backward = self.takes("^")
            (backward if is_backward else forward).append(self._path_iri())
            if not in_parentheses or not self.takes("|"):
                break
        if in_parentheses:
            self.expect(")", " or '|'")
        return PropertyPath("!", (tuple(forward), tuple(backward)))

    def group(self) -> sparql.Group:
        self.enter(self.expect("{"))
        outer = self.elements, self.above, self.visible, self.block
        self.elements, self.above, self.visible = [], [], {}
        self._end_block()
        if self.peek().is_word("SELECT"):
            self.subquery()
        else:
            while self._takes_element():
                pass
        group = sparql.Group(tuple(self._with_closures()))
        seen = self.visible
        self.elements, self.above, self.visible, self.block = outer
        self.visible.update(seen)
        self.leave()
        if not self.peek().is_symbol("}"):
            raise self.unexpected(_IN_GROUP)
        self.take()
        return group

    def unseen_group(self) -> sparql.Group:
        seen = dict(self.visible)
        group = self.group()
        self.visible = seen
        return group

    def _end_block(self) -> None:
        """A basic graph pattern ends, and another may begin."""
        self._blocks += 1
        self.block = self._blocks

    def _takes_element(self) -> bool:
        """Reads the next element of a group, if there is one; it may be several triples."""
        token = self.peek()
        if self.begins_triples():
            self.triples()
            if self.begins_triples():
                raise self.unexpected("'.' between triples, or ';' for the same subject")
            return True
        if token.is_symbol("{"):
            made: sparql.GroupElement = self._alternatives()
        elif token.is_word("FILTER"):
            self.take()
            made = sparql.Filter(self.constraint())
        elif token.is_word("OPTIONAL"):
            self.take()
            made = sparql.Optionally(self.group())
        elif token.is_word("MINUS"):
            self.take()
            made = sparql.Minus(self.unseen_group())
        elif token.is_word("GRAPH"):
            self.take()
            made = self._in_graph()
        elif token.is_word("BIND"):
            self.take()
            made = self._bind()
        elif token.is_word("VALUES"):
            made = self.values()
        elif token.is_word("SERVICE"):
            raise self.unsupported("SERVICE is", token, "a pattern of the message itself")
        else:
            return False
        self.elements.append(made)
        if not isinstance(made, sparql.Filter):
            self._end_block()
        self.takes(".")
        return True

    def _alternatives(self) -> sparql.GroupElement:
        groups = [self.group()]
        while self.takes_word("UNION"):
            groups.append(self.group())
        return groups[0] if len(groups) == 1 else sparql.Alternatives(tuple(groups))

    def _in_graph(self) -> sparql.InGraph:
        token = self.peek()
        if token.kind is TokenKind.VARIABLE:
            graph: sparql.Iri | sparql.Variable = self.seen(self.variable())
        else:
            graph = self.iri()
        return sparql.InGraph(graph, self.group())

    def _bind(self) -> sparql.Bind:
        self.expect("(")
        value = self.expression()
        self.expect_word("AS")
        token = self.peek()
        variable = self.made_variable()
        if variable in self.visible:
            what = f"{token} has a value already"
            raise self.refusal("duplicate-variable", what, token.offset, "a name of its own")
        self.visible[variable] = None
        self.expect(")")
        return sparql.Bind(value, variable)

    def made_variable(self) -> sparql.Variable:
        """The variable behind AS."""
        variable = self.chosen_variable()
        self.given.add(variable.name)
        return variable

    def values(self) -> sparql.Values:
        self.take()
        variables: list[sparql.Variable] = []
        is_single = self.peek().kind is TokenKind.VARIABLE
        if is_single:
            variables.append(self.seen(self.variable()))
        else:
            self.expect("(")
            while not self.takes(")"):
                token = self.peek()
                variables.append(self.seen(self.variable()))
                if variables[-1] in variables[:-1]:
                    raise self.refusal("duplicate-variable", f"{token} twice", token.offset)
        self.expect("{")
        rows: list[tuple[sparql.Iri | sparql.LiteralTerm | None, ...]] = []
        while not self.takes("}"):
            token = self.peek()
            if is_single:
                row = [self._value()]
            else:
                self.expect("(", " or '}'")
                row = []
                while not self.takes(")"):
                    row.append(self._value())
            if len(row) != len(variables):
                what = f"{len(row)} values for {len(variables)} variables"
                raise self.refusal("values", what, token.offset, "a value for each, or UNDEF")
            rows.append(tuple(row))
            if len(rows) * max(1, len(variables)) > self.limits.steps_max:
                raise self.refusal(
                    "too-long", f"more than {self.limits.steps_max} values", token.offset
                )
        return sparql.Values(tuple(variables), tuple(rows))

    def _value(self) -> sparql.Iri | sparql.LiteralTerm | None:
        if self.takes_word("UNDEF"):
            return None
        if self.peek().kind in (TokenKind.IRI, TokenKind.NAME):
            return self.iri()
        literal = self.literal()
        if literal is None:
            raise self.unexpected("an IRI, a literal, UNDEF or the end of the values")
        return literal

    # -- taxonomies

    def _with_closures(self) -> list[sparql.GroupElement]:
        """The elements of the group that was read, with what they ask of the taxonomies.

        ``?p rdfs:subPropertyOf* P`` is of the triples with ``?p`` as their property;
        ``?c rdfs:subClassOf* C`` and ``C rdfs:subClassOf* ?c`` of the triple ``?x a ?c``.
        """
        for above in self.above:
            if above.property == SUB_PROPERTY:
                self._close_property(above)
            else:
                self._close_class(above)
        return self.elements

    def _close_property(self, above: Above) -> None:
        if not isinstance(above.value, sparql.Iri) or not isinstance(
            above.subject, sparql.Variable
        ):
            return
        made: list[sparql.GroupElement] = []
        is_asked = False
        for element in self.elements:
            if not isinstance(element, sparql.TriplePattern) or element.property != above.subject:
                made.append(element)
                continue
            is_asked = True
            closed = replace(element, closure=sparql.Closure.PROPERTY, above=above.value.value)
            others = (element,) if element.closure is sparql.Closure.PROPERTY else ()
            made.extend(one for one in (*others, closed) if one not in made)
        if is_asked:
            self._close(above, made)

    def _close_class(self, above: Above) -> None:
        match above.subject, above.value:
            case sparql.Variable() as variable, sparql.Iri() as constant:
                closure = sparql.Closure.INSTANCE
            case sparql.Iri() as constant, sparql.Variable() as variable:
                closure = sparql.Closure.INSTANCE_ABOVE
            case _:
                return
        of_class = [
            element
            for element in self.elements
            if isinstance(element, sparql.TriplePattern)
            and (element.property, element.object) == (TYPE, variable)
        ]
        if len(of_class) == 1:
            closed = sparql.TriplePattern(of_class[0].subject, TYPE, constant, closure)
            made = [closed if element is of_class[0] else element for element in self.elements]
            self._close(above, made)
            self.visible.pop(variable, None)
            self.classes[variable] = above.token

    def _close(self, above: Above, made: list[sparql.GroupElement]) -> None:
        self.elements = [element for element in made if element is not above.stands_as]
        self.repeats -= 1
        self.unsaid_closures.append(above.token)

    def query(self) -> sparql.GraphQuery:
        """The query; its ``results`` are left to the caller."""
        self.prologue()
        start = len(self.lexer.taken)
        token = self.peek()
        if token.is_word("SELECT"):
            query, _ = self._select_query()
        elif token.is_word("CONSTRUCT"):
            query = self._construct_query()
        elif token.is_word("ASK"):
            self.take()
            query = sparql.GraphQuery(sparql.QueryForm.ASK, self._solutions()[0])
        elif token.is_word("DESCRIBE"):
            query = self._describe_query()
        elif token.is_word(*_UPDATES):
            raise self.refusal(
                "unsupported", f"{token} changes data: a profile asks", token.offset, _FORMS
            )
        else:
            raise self.unexpected(_FORMS)
        if self.peek().kind is not TokenKind.END:
            raise self.unexpected("the end of the profile")
        return self._finished(query, start)

    def _finished(self, query: sparql.GraphQuery, start: int) -> sparql.GraphQuery:
        """With the whole text where that is needed, and blank nodes in the order of the tree."""
        where = query.where
        whole = ""
        self._check_classes(query)
        if self.is_whole or self.repeats:
            if self.unsaid_closures:
                raise self.unsupported(
                    "a question to the taxonomies, but a/rdfs:subClassOf*, beside what else this"
                    " query has is",
                    self.unsaid_closures[0],
                )
            whole = self._text_from(start)
            where = necessary_part(where)
        if self.blanks:
            found = dict.fromkeys(variable for variable in variables_of(where) if variable.is_blank)
            names = {
                variable: sparql.Variable(f"_:{place}") for place, variable in enumerate(found)
            }
            if any(old != new for old, new in names.items()):
                where = renamed(where, names)
        return sparql.GraphQuery(
            query.form, where, query.variables, query.is_distinct, query.template, whole=whole
        )

    def _text_from(self, start: int) -> str:
        taken = self.lexer.taken
        texts = [self.canonical(token) for token in taken]
        for first, end, text in self.replaced:
            texts[first:end] = [text, *[""] * (end - first - 1)]
        for place, token in enumerate(taken):  # some readers want a function's name and "(" as one
            if token.kind is TokenKind.WORD and taken[place + 1].is_symbol("("):
                texts[place : place + 2] = [f"{texts[place]}(", ""]
        return " ".join(filter(None, texts[start:]))

    def _check_classes(self, query: sparql.GraphQuery) -> None:
        """Refuses to tell which class it was that the taxonomies were asked of."""
        if self.classes:
            used = set(variables_of((query.where, query.variables, query.template)))
            for variable, token in self.classes.items():
                if variable in used:
                    raise self.unsupported(
                        f"?{variable.name}, a class that only the taxonomies tell, elsewhere is",
                        token,
                        "?x a/rdfs:subClassOf* <class>",
                    )

    # -- forms

    def _select_query(self) -> tuple[sparql.GraphQuery, tuple[sparql.Variable, ...]]:
        """SELECT up to VALUES, at the top or in a group; and the variables that are computed.

        ``where`` of a query that has a solution whatever there is, as ``count(*)`` has, is empty.
        """
        self.take()
        is_distinct = self.takes_word("DISTINCT")
        if not is_distinct:
            self.takes_word("REDUCED")
        aggregates = self.aggregates
        columns = self._columns()
        where, keys, is_grouped = self._solutions(aggregates)
        if not columns:
            if is_grouped and keys is not None:
                raise self.refusal("syntax", "SELECT * with GROUP BY", self.peek().offset)
            return sparql.GraphQuery(
                sparql.QueryForm.SELECT, where, tuple(self.visible), is_distinct
            ), ()
        self._check_columns(columns, keys or frozenset(), is_grouped)
        variables = tuple(column.variable for column in columns)
        computed = tuple(column.variable for column in columns if column.is_computed)
        if not is_grouped:
            where = _with_computed(where, columns)
        return sparql.GraphQuery(sparql.QueryForm.SELECT, where, variables, is_distinct), computed

    def _columns(self) -> list[_Column]:
        """What is selected; nothing for ``*``."""
        if self.takes("*"):
            return []
        columns: list[_Column] = []
        while True:
            token = self.peek()
            if token.kind is TokenKind.VARIABLE:
                columns.append(_Column(token, self.chosen_variable(), ()))
            elif token.is_symbol("("):
                self.take()
                seen = len(self.outside)
                with self.aggregating():
                    value = self.expression()
                self.expect_word("AS")
                token = self.peek()
                variable = self.made_variable()
                columns.append(_Column(token, variable, tuple(self.outside[seen:]), value))
                self.expect(")")
            elif columns:
                return columns
            else:
                raise self.unexpected("'*', or variables: ?x ?y")

    def _check_columns(
        self, columns: list[_Column], keys: frozenset[sparql.Variable], is_grouped: bool
    ) -> None:
        known = set(keys)
        names: set[sparql.Variable] = set()
        for column in columns:
            variable, token = column.variable, column.token
            if variable in names or (column.is_computed and variable in self.visible):
                raise self.refusal("duplicate-variable", f"{token} is there twice", token.offset)
            names.add(variable)
            of_groups = column.outside if column.is_computed else (token,)
            for used in of_groups if is_grouped else ():
                if sparql.Variable(used.text) not in known:
                    what = f"{used} may have several values in a group"
                    wanted = f"{used} in GROUP BY, or an aggregate: sample(?{used.text})"
                    raise self.refusal("grouping", what, used.offset, wanted)
            known.add(variable)

    def _construct_query(self) -> sparql.GraphQuery:
        self.take()
        template: tuple[sparql.TriplePattern, ...]
        if self.peek().is_symbol("{"):
            template = self._template()
            where, _, _ = self._solutions()
            return sparql.GraphQuery(sparql.QueryForm.CONSTRUCT, where, template=template)
        self._no_dataset()
        self.expect_word("WHERE")
        where = sparql.Group(self._plain_triples())
        blanks = dict.fromkeys(one for one in variables_of(where) if one.is_blank)
        names = {blank: sparql.Variable(f"_:t{place}") for place, blank in enumerate(blanks)}
        self._modifiers()
        where = self._with_values(where)
        template = tuple(one for one in where.elements if isinstance(one, sparql.TriplePattern))
        return sparql.GraphQuery(
            sparql.QueryForm.CONSTRUCT, where, template=renamed(template, names)
        )

    def _template(self) -> tuple[sparql.TriplePattern, ...]:
        outer = self.labels, self.blanks, self.visible, self.given
        self.labels, self.blanks, self.visible, self.given = {}, 0, {}, set()
        self.blank_mark = "_:t"
        triples = self._plain_triples()
        for token in self.lexer.taken:
            if token.kind is TokenKind.VARIABLE:
                self.asked.setdefault(token.text, token)
        self.labels, self.blanks, self.visible, self.given = outer
        self.blank_mark = "_:"
        return triples

    def _plain_triples(self) -> tuple[sparql.TriplePattern, ...]:
        """Triples in braces, without paths."""
        self.expect("{")
        self.has_paths = False
        if self.begins_triples():
            self.triples()
        self.expect("}", ", or '.' between triples")
        self.has_paths = True
        made, self.elements = self.elements, []
        return tuple(triple for triple in made if isinstance(triple, sparql.TriplePattern))

    def _describe_query(self) -> sparql.GraphQuery:
        """DESCRIBE: a graph, as of CONSTRUCT."""
        self.take()
        self.is_whole = True
        if not self.takes("*"):
            self._described()
            while self.peek().kind in (TokenKind.VARIABLE, TokenKind.IRI, TokenKind.NAME):
                self._described()
        if self.peek().is_word("WHERE", "FROM") or self.peek().is_symbol("{"):
            where, _, _ = self._solutions()
            return sparql.GraphQuery(sparql.QueryForm.CONSTRUCT, where)
        self._modifiers()
        return sparql.GraphQuery(sparql.QueryForm.CONSTRUCT, self._with_values(sparql.Group(())))

    def _described(self) -> None:
        if self.peek().kind is TokenKind.VARIABLE:
            self.chosen_variable()
        else:
            self.iri()

    # -- behind the form

    def _solutions(
        self, aggregates: int | None = None
    ) -> tuple[sparql.Group, frozenset[sparql.Variable] | None, bool]:
        """WHERE and all behind it: the pattern, the keys of GROUP BY, whether there are groups.

        ``aggregates``: how many were read before SELECT, None for another form.
        """
        where = self._where()
        keys, is_filtered = self._modifiers(may_group=aggregates is not None)
        is_grouped = keys is not None or is_filtered or self.aggregates > (aggregates or 0)
        if not is_grouped:
            return self._with_values(where), keys, is_grouped
        self._with_values(where)  # of groups
        return (where if keys else sparql.Group(())), keys, is_grouped

    def _no_dataset(self) -> None:
        if self.peek().is_word("FROM"):
            raise self.unsupported(
                "FROM is", self.peek(), "GRAPH; a profile asks each message, and nothing else"
            )

    def _where(self) -> sparql.Group:
        self._no_dataset()
        self.takes_word("WHERE")
        return self.group()

    def _modifiers(
        self, *, may_group: bool = False
    ) -> tuple[frozenset[sparql.Variable] | None, bool]:
        """GROUP BY … OFFSET: the keys of groups, None without them; whether there is HAVING."""
        start = len(self.lexer.taken)
        keys = None
        if (token := self.peek()).is_word("GROUP", "HAVING") and not may_group:
            raise self.unsupported(f"{token} but in SELECT is", token)
        if self.takes_word("GROUP"):
            self.expect_word("BY")
            keys = frozenset(self._keys())
        is_filtered = self.takes_word("HAVING")
        if is_filtered:
            with self.aggregating():
                self.constraint()
                while self._begins_constraint():
                    self.constraint()
        if self.takes_word("ORDER"):
            self.expect_word("BY")
            with self.aggregating():
                self._order_key()
                while self._begins_constraint() or self._begins_order_key():
                    self._order_key()
        given: set[str] = set()
        while (token := self.peek()).is_word("LIMIT", "OFFSET"):
            if token.text.upper() in given:
                raise self.refusal("syntax", f"{token} is there twice", token.offset)
            given.add(token.text.upper())
            self.take()
            if not self.peek().text.isdecimal():
                raise self.unexpected("a number")
            self.take()
        if len(self.lexer.taken) > start:
            self.is_whole = True
        return keys, is_filtered

    def _keys(self) -> Iterator[sparql.Variable]:
        while True:
            token = self.peek()
            if token.kind is TokenKind.VARIABLE:
                yield self.chosen_variable()
            elif token.is_symbol("("):
                self.take()
                self.expression()
                if self.takes_word("AS"):
                    yield self.made_variable()
                self.expect(")")
            else:
                self.constraint()
            if self.peek().kind is not TokenKind.VARIABLE and not self._begins_constraint():
                return

    def _begins_constraint(self) -> bool:
        token = self.peek()
        if token.kind in (TokenKind.IRI, TokenKind.NAME):
            return True
        return token.is_symbol("(") or self.is_built_in(token)

    def _begins_order_key(self) -> bool:
        return self.peek().kind is TokenKind.VARIABLE or self.peek().is_word("ASC", "DESC")

    def _order_key(self) -> None:
        token = self.peek()
        if token.is_word("ASC", "DESC"):
            self.take()
            if not self.peek().is_symbol("("):
                raise self.unexpected("'('")
        if self.peek().kind is TokenKind.VARIABLE:
            self.chosen_variable()
        else:
            self.constraint()

    def _with_values(self, where: sparql.Group) -> sparql.Group:
        """With VALUES behind all else."""
        if not self.peek().is_word("VALUES"):
            return where
        return sparql.Group((where, self.values()))

    def subquery(self) -> None:
        """``{ SELECT … }``: its pattern is necessary; what it does not select is its own."""
        self.is_whole = True
        aggregates = self.aggregates
        query, computed = self._select_query()
        self.aggregates = aggregates
        own = dict.fromkeys(variables_of(query.where))
        names = {one: self.blank() for one in own if one not in query.variables}
        where = renamed(query.where, names)
        lost = computed if where.elements else query.variables
        self.elements.append(weakened(where, lost))
        self.visible = dict.fromkeys(query.variables)


def _with_computed(where: sparql.Group, columns: list[_Column]) -> sparql.Group:
    """The pattern with what is computed of each of its solutions: SELECT (?x + 1 AS ?y)."""
    made = [
        sparql.Bind(column.value, column.variable) for column in columns if column.value is not None
    ]
    if not made:
        return where
    # What stands in the pattern does not see it.
    is_seen = not {each.variable for each in made}.isdisjoint(variables_of(where))
    return sparql.Group(((where,) if is_seen else where.elements) + tuple(made))


# -------------------------------------------------------------------------------------------------
# RDQL, in which the papers on filtering graphs write their subscriptions:
#
#     SELECT ?x, ?y FROM Publications
#     WHERE  (?x, dc:creator, "Ann"), (?x, dc:date, ?y) AND ((?x, p:about, ?z) SUCHTHAT ?z isa p:C)
#     AND    ?y > 2003 && ?y != 2007
#     USING  dc FOR <http://purl.org/dc/elements/1.1/>, p FOR <http://example.org/>
#
#     query      ::= SELECT ( '*' | variables ) ( FROM sources )?
#                    WHERE part ( ( ',' | AND | SUCHTHAT ) part )*
#                    ( USING prefix FOR iri ( ',' prefix FOR iri )* )?
#     part       ::= pattern | '(' pattern SUCHTHAT condition ')' | condition
#     pattern    ::= '(' node ',' node ',' node ')'
#
# FROM is read over.  Conditions are those of SPARQL, and ``==``, ``eq``, ``ne``, ``=~ /pattern/``
# and ``!~``.  With the IRI of a class behind it, an operator asks the taxonomies (G-ToPSS, 3.2):
# ``?x <= C`` or ``?x isa C`` for what is of C or of a class below it, ``?x = C`` of C itself, ``?x
# >= C`` of C or of a class above it.


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
