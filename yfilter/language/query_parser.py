"""Text of a profile -> Profile.  Every refusal says where, and what was expected there.

::

    profile := prolog (path | flwor | constructor around one flwor)
    prolog  := (declare namespace p = "uri"; | declare default element namespace "uri";)*
    flwor   := for $v in path (, …)  (for … | let $x := condition)*  (where condition)?  return item
    item    := path | constructor | flwor | condition

The parser is one class in four layers, each in its file, from the tightest part of the grammar
to the loosest: paths, conditions, constructors, and here FLWOR expressions and whole profiles.
It is recursive, and bounded by ``ProfileLimits.depth_max``.  ``docs/profiles.md`` documents the
language.
"""

from __future__ import annotations

from collections.abc import Mapping

from formats.characters import find_illegal_character
from yfilter.errors import ProfileRefused
from yfilter.language.constructor_parser import ConstructorParser
from yfilter.language.item_kinds import NODES, PARENTS, ItemKind
from yfilter.language.path_parser import MESSAGE_VARIABLE, Scope
from yfilter.language.profile_limits import (
    DEFAULT_PROFILE_LIMITS,
    DERIVED_PATH_LIMITS,
    ProfileLimits,
)
from yfilter.language.query_ast import (
    Constructor,
    Expression,
    Flwor,
    ForClause,
    LetClause,
    LocationStep,
    NodeKind,
    Origin,
    PathExpression,
    Profile,
)
from yfilter.language.query_lexer import Token, TokenKind

_UNSUPPORTED_CLAUSES = {
    "order": "order by is",
    "stable": "order by is",
    "group": "group by is",
    "count": "a count clause is",
}


def parse_profile(text: str, limits: ProfileLimits = DEFAULT_PROFILE_LIMITS) -> Profile:
    """The profile that ``text`` says; raises ProfileRefused."""
    parser = QueryParser(_checked_text(text, limits), limits)
    return Profile(parser.profile(), text)


def parse_path(text: str, limits: ProfileLimits = DERIVED_PATH_LIMITS) -> PathExpression:
    """A path that starts at the message or at the context item, in the form of ``unparse``."""
    expression = parse_expression(text, limits)
    if not isinstance(expression, PathExpression):
        raise ProfileRefused("syntax", "this is not a path", text, 0, "a path")
    return expression


def parse_expression(
    text: str,
    limits: ProfileLimits = DERIVED_PATH_LIMITS,
    variables: Mapping[str, ItemKind] | None = None,
) -> Expression:
    """A condition whose context item is an element; ``variables`` are those bound around it."""
    parser = QueryParser(_checked_text(text, limits), limits)
    parser.scope = Scope(parser.scope.namespaces, dict(variables or {}), ItemKind.ELEMENT)
    expression = parser.condition()
    parser.expect_end("the end, or an operator")
    return expression


def _checked_text(text: str, limits: ProfileLimits) -> str:
    """The text with its line ends normalised, as XQuery wants it."""
    if len(text) > limits.length_max:
        raise ProfileRefused(
            "too-long", f"the profile is longer than {limits.length_max} characters", text
        )
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    illegal = find_illegal_character(text)
    if illegal >= 0:
        raise ProfileRefused(
            "syntax", f"the character U+{ord(text[illegal]):04X} cannot stand in XML", text, illegal
        )
    return text


class QueryParser(ConstructorParser):
    """The whole language; one parser reads one text."""

    def __init__(self, text: str, limits: ProfileLimits) -> None:
        super().__init__(text, limits)
        self._clauses: list[tuple[ForClause | LetClause, Token]] = []  # with where they stand

    def profile(self) -> PathExpression | Flwor | Constructor:
        self._prolog()
        start = self.lexer.peek()
        body: PathExpression | Flwor | Constructor
        if self._is_flwor(start):
            body = self._flwor()
            self._check_first_clause(body)
            self._check_results(body, start)
        elif start.is_symbol("<"):
            body = self._enclosing_constructor(start)
        else:
            body = self._path_profile(start)
        self.expect_end("the end of the profile")
        return body

    def item(self) -> Expression:
        token = self.lexer.peek()
        if self._is_flwor(token):
            return self._flwor()
        if token.is_symbol("<"):
            return self.constructor()
        return self.condition()

    def expect_end(self, expected: str) -> None:
        if self.lexer.peek().kind is not TokenKind.END:
            raise self.unexpected(expected)

    # -- prolog

    def _prolog(self) -> None:
        declared: set[str] = set()
        while self.lexer.peek().is_word("declare", "xquery", "import", "module"):
            token = self.lexer.peek()
            if token.text != "declare":
                raise self.unsupported(
                    f"'{token.text}' is", token, "'declare namespace', or a path"
                )
            self.lexer.take()
            what = self.lexer.peek()
            if what.is_word("namespace"):
                self.lexer.take()
                prefix = self._declared_prefix()
                self.expect("=")
            elif what.is_word("default") and self.lexer.peek_second().is_word("element"):
                self.lexer.take()
                self.lexer.take()
                self.expect_word("namespace")
                prefix = ""
            else:
                raise self.refusal(
                    "unsupported",
                    f"a declaration of {what} is not in the profile language",
                    what.offset,
                    "'namespace' or 'default element namespace'",
                )
            self._declare(prefix, what, declared)
            self.expect(";")

    def _declared_prefix(self) -> str:
        token = self.lexer.peek()
        if token.kind is not TokenKind.NAME or set(token.text) & set(":{*"):
            raise self.unexpected("a prefix")
        return self.lexer.take().text

    def _declare(self, prefix: str, what: Token, declared: set[str]) -> None:
        place = self.lexer.peek()
        uri = " ".join(self.expect_string("the URI of the namespace, in quotation marks").split())
        if prefix in declared:
            raise self.refusal(
                "duplicate-declaration",
                f"the prefix '{prefix}' is declared twice"
                if prefix
                else "the default element namespace is declared twice",
                what.offset,
            )
        declared.add(prefix)
        self.check_declaration(prefix, uri, place.offset)
        self.scope.namespaces[prefix] = uri

    # -- whole profiles

    def _path_profile(self, start: Token) -> PathExpression:
        if start.kind is TokenKind.VARIABLE and start.text == MESSAGE_VARIABLE:
            pass
        elif start.kind is TokenKind.NAME and start.text == "let":
            raise self.unexpected("'for': the first clause of a profile")
        elif not start.is_symbol("/", "//"):
            raise self.unexpected(
                "a path that starts with $msg, '/' or '//'; 'for'; or a constructor"
            )
        path = self.path()
        self._check_spine(path, start)
        return path

    def _enclosing_constructor(self, start: Token) -> Constructor:
        constructor = self.constructor()
        inner = [part for part in constructor.content if isinstance(part, Flwor)]
        if len(inner) != 1:
            raise self.refusal(
                "unsupported",
                f"the enclosing constructor holds {len(inner)} FLWOR expressions",
                start.offset,
                "exactly one { for … return … } directly in it",
            )
        self._check_first_clause(inner[0])
        return constructor

    def _check_results(self, flwor: Flwor, start: Token) -> None:
        """Each item becomes a message of its own, so it must be an element."""
        if self.kinds_of(flwor) & ~PARENTS:
            raise self.refusal(
                "type",
                "the result of this profile is not an element",
                start.offset,
                "a path to elements or a constructor after 'return'",
            )

    def _check_spine(self, path: PathExpression, start: Token) -> None:
        """The path that the engine matches leads straight down from the message."""
        if not path.steps:
            raise self.refusal(
                "type",
                "this is the whole message",
                start.offset,
                "a path to an element; $msg/* for every message",
            )
        for step in path.steps:
            self._check_spine_step(step, start)

    def _check_spine_step(self, step: LocationStep, start: Token) -> None:
        if step.kind is NodeKind.PARENT:
            raise self.unsupported("'..' outside a condition is", start, "p[x] instead of p/x/..")
        if step.kind is NodeKind.SELF:
            raise self.unsupported(
                "a condition on the whole message is",
                start,
                "$msg/*[condition on the root element]",
            )

    # -- FLWOR

    def _is_flwor(self, token: Token) -> bool:
        return token.is_word("for", "let") and self.lexer.peek_second().kind is TokenKind.VARIABLE

    def _flwor(self) -> Flwor:
        self.enter(self.lexer.peek())
        outer = self.scope
        clauses: list[ForClause | LetClause] = []
        while self._is_flwor(self.lexer.peek()):
            is_for = self.lexer.take().text == "for"
            clauses.append(self._clause(is_for))
            while self.lexer.peek().is_symbol(","):
                self.lexer.take()
                clauses.append(self._clause(is_for))
        where = None
        if self.lexer.peek().is_word("where"):
            self.lexer.take()
            where = self.condition()
        self._expect_return(has_where=where is not None)
        result = self.item()
        self.scope = outer
        self.leave()
        return Flwor(tuple(clauses), where, result)

    def _clause(self, is_for: bool) -> ForClause | LetClause:
        token = self.lexer.peek()
        if token.kind is not TokenKind.VARIABLE:
            raise self.unexpected("a variable")
        self._check_new_variable(self.lexer.take())
        clause: ForClause | LetClause
        if is_for:
            self._expect_in()
            place = self.lexer.peek()
            path = self._for_path()
            kinds = self.kinds_of(path)
            clause = ForClause(token.text, path)
        else:
            if self.lexer.peek().is_word("as"):
                raise self.unsupported("a type declaration is", self.lexer.peek())
            self.expect(":=")
            place = self.lexer.peek()
            value = self.condition()
            kinds = self.kinds_of(value)
            clause = LetClause(token.text, value)
        self._clauses.append((clause, place))
        if len(self._clauses) > self.limits.clauses_max:
            raise self.refusal(
                "too-many-clauses", f"more than {self.limits.clauses_max} clauses", token.offset
            )
        self.scope = self.scope.with_variable(token.text, kinds)
        return clause

    def _check_new_variable(self, token: Token) -> None:
        if ":" in token.text:
            raise self.unsupported("a variable with a prefix is", token, "a name without ':'")
        if token.text == MESSAGE_VARIABLE or token.text in self.scope.variables:
            raise self.refusal(
                "duplicate-variable",
                f"${token.text} is bound already",
                token.offset,
                "another name",
            )

    def _expect_in(self) -> None:
        token = self.lexer.peek()
        if token.is_word("at"):
            raise self.unsupported("a position is", token)
        if token.is_word("as"):
            raise self.unsupported("a type declaration is", token)
        self.expect_word("in")

    def _for_path(self) -> PathExpression:
        token = self.lexer.peek()
        if token.kind is not TokenKind.VARIABLE and not token.is_symbol("/", "//"):
            raise self.unexpected("a path that starts with a variable, '/' or '//'")
        path = self.path()
        if self.kinds_of(path) & ~NODES:
            raise self.refusal("type", f"{token} is a value, not nodes", token.offset, "a path")
        return path

    def _expect_return(self, *, has_where: bool) -> None:
        token = self.lexer.peek()
        if token.is_word("return"):
            self.lexer.take()
            return
        if token.kind is TokenKind.NAME and token.text in _UNSUPPORTED_CLAUSES:
            raise self.unsupported(_UNSUPPORTED_CLAUSES[token.text], token)
        if has_where:
            raise self.unexpected("'return' or an operator")
        raise self.unexpected("',', 'for', 'let', 'where' or 'return'")

    def _check_first_clause(self, flwor: Flwor) -> None:
        """The engine binds the first variable: to elements, on a path from the message."""
        first = flwor.clauses[0]
        place = next(place for clause, place in self._clauses if clause is first)
        if not isinstance(first, ForClause):
            raise self.refusal(
                "unsupported",
                "the first clause of a profile is not a 'for'",
                place.offset,
                "for $variable in $msg/…",
            )
        if first.path.origin is not Origin.MESSAGE:
            raise self.refusal(
                "unsupported",
                "the first variable does not range over the message",
                place.offset,
                "a path that starts with $msg, '/' or '//'",
            )
        self._check_spine(first.path, place)
        if self.kinds_of(first.path) != ItemKind.ELEMENT:
            raise self.refusal(
                "type",
                "the first variable is not bound to elements",
                place.offset,
                "a path to elements",
            )
