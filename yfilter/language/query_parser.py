"""Text of a profile -> Profile.  Every refusal says where, and what was expected there.

::

    profile    := prolog sequence
    prolog     := (declare namespace p = "uri"; | declare default element namespace "uri";
                  | declare variable $v := …; | declare function local:f($a) { … };)*
    sequence   := expression (, expression)*
    expression := flwor | if | some | every | typeswitch | copy | operators

The parser is one class in layers, each in its file, from the tightest part of the grammar to the
loosest: paths, operators, conditions, constructors, FLWOR expressions, declared functions, copies
with changes, and here whole profiles.
It is recursive, and bounded by ``ProfileLimits.depth_max``.  ``docs/profiles.md`` documents the
language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from yfilter.errors import ProfileRefused
from yfilter.graph import graph_query
from yfilter.graph.graph_query import is_graph_query
from yfilter.language.checked_text import checked_text
from yfilter.language.constants import constants_in, first_fault
from yfilter.language.item_kinds import PARENTS, ItemKind, Kinds
from yfilter.language.matching_path import decisive_parts, is_path
from yfilter.language.namespaces import CODEPOINT_COLLATION
from yfilter.language.path_parser import Scope
from yfilter.language.profile_limits import (
    DEFAULT_PROFILE_LIMITS,
    DERIVED_PATH_LIMITS,
    ProfileLimits,
)
from yfilter.language.query_ast import (
    Conditional,
    Constructor,
    Expression,
    Flwor,
    Origin,
    PathExpression,
    Profile,
    Sequence,
    Transform,
    TryCatch,
    Typeswitch,
    UserCall,
)
from yfilter.language.query_text import unparse
from yfilter.language.shape_cache import ShapeCache
from yfilter.language.suggestions import value_suggestion
from yfilter.language.tokens import Token, TokenKind
from yfilter.language.update_parser import UpdateParser

# Declarations with one of these words behind them, and two that take a URI.
_SETTINGS = {
    "base-uri": (),
    "default collation": (),
    "boundary-space": ("strip", "preserve"),
    "construction": ("strip", "preserve"),
    "copy-namespaces": ("preserve", "no-preserve"),
    "default order": ("greatest", "least"),
    "ordering": ("ordered", "unordered"),
}
_ENCODING = re.compile("[A-Za-z][A-Za-z0-9._-]*")
_LENIENT_LIMITS = replace(DEFAULT_PROFILE_LIMITS, faults_refused=False)
_SHOWN_MAX = 80  # characters of what is an error
_PROFILE = "a path that starts with $msg, '/' or '//'; 'for'; or a constructor"


def parse_profile(text: str, limits: ProfileLimits = DEFAULT_PROFILE_LIMITS) -> Profile:
    """The profile that ``text`` says, of graphs if its first word is one of SPARQL's; raises
    ProfileRefused."""
    if is_graph_query(text):
        made = graph_query.made_of_words(text) if limits is DEFAULT_PROFILE_LIMITS else None
        if made is not None:
            return Profile.of_parts(made, text)
        return Profile(graph_query.parse_anew(text, limits), text)
    if limits is DEFAULT_PROFILE_LIMITS:
        return _CACHE.read(text)
    return Profile(parse_anew(text, limits), text)


def parse_accepted(text: str) -> Profile:
    """The same of a text that was accepted once, by this release or one before, which may have
    refused less: a constant that can only be an error is an error of each message."""
    try:
        return parse_profile(text)
    except ProfileRefused:
        if is_graph_query(text):
            raise
        return Profile(parse_anew(text, _LENIENT_LIMITS), text)


def parse_path(text: str, limits: ProfileLimits = DERIVED_PATH_LIMITS) -> PathExpression:
    """A path that starts at the message or at the context item, in the form of ``unparse``."""
    expression = parse_expression(text, limits)
    if not isinstance(expression, PathExpression):
        raise ProfileRefused("syntax", "this is not a path", text, 0, "a path")
    return expression


def parse_expression(
    text: str,
    limits: ProfileLimits = DERIVED_PATH_LIMITS,
    variables: Mapping[str, Kinds] | None = None,
    context: Kinds = ItemKind.ELEMENT,
) -> Expression:
    """An expression; ``variables`` are those bound around it, ``context`` its context item."""
    parser = QueryParser(checked_text(text, limits), limits)
    parser.scope = Scope(parser.scope.namespaces, dict(variables or {}), context)
    return parser.whole_expression()


def parse_anew(text: str, limits: ProfileLimits = DEFAULT_PROFILE_LIMITS) -> Expression:
    """The tree of a profile, whether its shape is known or not."""
    try:
        return QueryParser(checked_text(text, limits), limits).profile()
    except RecursionError:
        raise too_deep(text) from None


def parse_template(text: str) -> Expression:
    """The tree of a profile, whatever errors the constants in it are."""
    return parse_anew(text, _LENIENT_LIMITS)


def too_deep(text: str) -> ProfileRefused:
    """For what is within the limits on nesting and is too deep a tree all the same: ``1+1+1+…``."""
    return ProfileRefused("too-deep", "too many operators in a row", text)


def reread(text: str) -> Profile:
    """The profile that ``unparse`` wrote as ``text``, in which all names are in full."""
    if is_graph_query(text):
        return Profile(graph_query.parse_anew(text, DERIVED_PATH_LIMITS), text)
    return _WRITTEN.read(text)


_CACHE = ShapeCache(parse_anew, parse_template)
_WRITTEN = ShapeCache(lambda text: parse_expression(text, DERIVED_PATH_LIMITS))


class QueryParser(UpdateParser):
    """The whole language; one parser reads one text."""

    def profile(self) -> Expression:
        self._prolog()
        start = self.lexer.peek()
        if start.kind is TokenKind.NAME and not self._begins_profile(start):
            raise self.unexpected(_PROFILE)
        body = self.sequence()
        self.expect_end("the end of the profile")
        self.check_updates()
        self._check_deliverable(body, start)
        self._check_constants(body)
        return body

    def whole_expression(self) -> Expression:
        """Prolog and expression, whatever it yields."""
        self._prolog()
        expression = self.sequence()
        self.expect_end("the end, or an operator")
        self.check_updates()
        self._check_constants(expression)
        return expression

    def _check_constants(self, body: Expression) -> None:
        """Refuses a constant that can only be an error."""
        if not self.limits.faults_refused or not self.has_fallible:
            return
        fault = first_fault(constants_in(body))
        if fault is not None:
            wrong = fault.parts[-1]
            shown = unparse(replace(wrong, library=()) if isinstance(wrong, UserCall) else wrong)
            what = f"{shown[:_SHOWN_MAX]} can only be an error: {fault.reason} ({fault.code})"
            raise self.refusal("error", what, self.place_of(fault.parts), value_suggestion(wrong))

    def _begins_profile(self, token: Token) -> bool:
        """Whether a name is more than the first step of a relative path."""
        following = self.lexer.peek_second()
        return following.kind in (TokenKind.VARIABLE, TokenKind.NAME) or following.is_symbol(
            "(", "{"
        )

    def expect_end(self, expected: str) -> None:
        if self.lexer.peek().kind is not TokenKind.END:
            raise self.unexpected(expected)

    # -- prolog

    def _prolog(self) -> None:
        self._version()
        declared: set[str] = set()
        while self.lexer.peek().is_word("declare", "import", "module"):
            token = self.lexer.peek()
            if token.text != "declare":
                raise self.unsupported(
                    f"'{token.text}' is", token, "'declare namespace', or a path"
                )
            self.lexer.take()
            what = self.lexer.peek()
            if self.takes_word("variable"):
                self.declare_variable()
            elif self.takes_word("function"):
                self.declare_function()
            elif self.takes_word("namespace"):
                prefix = self._declared_prefix()
                self.expect("=")
                self._declare(prefix, what, declared)
            elif what.is_word("default") and self.lexer.peek_second().is_word("element"):
                self.lexer.take()
                self.lexer.take()
                self.expect_word("namespace")
                self._declare("", what, declared)
            elif what.is_word("default") and self.lexer.peek_second().is_word("function"):
                self.lexer.take()
                self.lexer.take()
                self.expect_word("namespace")
                reason = "the default function namespace is declared twice (XQST0066)"
                self.function_namespace = self._declared_uri("function", reason, what, declared)
            else:
                self._setting(what, declared)
            self.expect(";")
        self.end_functions()

    def _version(self) -> None:
        """``xquery version "1.0" encoding "utf-8";``, where the text begins so."""
        begins = self.lexer.peek().is_word("xquery")
        if not begins or not self.lexer.peek_second().is_word("version"):
            return
        self.lexer.take()
        self.lexer.take()
        place = self.lexer.peek()
        if self.expect_string("a version") not in ("1.0", "3.0", "3.1"):
            raise self.unsupported("another version is", place, "'\"1.0\"', '\"3.0\"' or '\"3.1\"'")
        if self.takes_word("encoding"):
            place = self.lexer.peek()
            encoding = self.expect_string("the name of an encoding")
            if not _ENCODING.fullmatch(encoding):
                what = f"{encoding!r} is no name of an encoding (XQST0087)"
                raise self.refusal("syntax", what, place.offset, '"utf-8"')
        self.expect(";")

    def _setting(self, what: Token, declared: set[str]) -> None:
        """A declaration of what a profile does; it may say what is so anyway."""
        words = [self.lexer.take().text]
        if what.text == "default":
            if not self.lexer.peek().is_word("collation", "order"):
                self.expect_word("element")
            words.append(self.lexer.take().text)
        name = " ".join(words)
        if name in declared and name in _SETTINGS:
            raise self.refusal("duplicate-declaration", f"{name} is declared twice", what.offset)
        declared.add(name)
        place = self.lexer.peek()
        if name == "base-uri":
            self.base_uri = self.expect_string("a URI, in quotation marks")
            return
        if name == "default collation":
            uri = self.expect_string("a URI, in quotation marks")
            if uri != CODEPOINT_COLLATION:
                raise self.unsupported("a collation is", place, f'"{CODEPOINT_COLLATION}"')
            return
        choices = _SETTINGS.get(name)
        if choices is None:
            reason = f"a declaration of '{name}' is not in the profile language"
            wanted = "'namespace', 'default element namespace', 'variable' or 'function'"
            raise self.refusal("unsupported", reason, what.offset, wanted)
        if name == "default order":
            self.expect_word("empty")
        chosen = self.lexer.peek()
        if not chosen.is_word(*choices):
            raise self.unexpected(" or ".join(f"'{choice}'" for choice in choices))
        self.lexer.take()
        if name == "copy-namespaces":
            self.expect(",")
            if chosen.text != "preserve" or self.lexer.take().text != "inherit":
                raise self.unsupported("copying without namespaces is", place, "preserve, inherit")
        elif name == "boundary-space":
            self.strips_space = chosen.text == "strip"
        elif name == "default order":
            self.empty_greatest = chosen.text == "greatest"

    def _declared_prefix(self) -> str:
        token = self.lexer.peek()
        if token.kind is not TokenKind.NAME or set(token.text) & set(":{*"):
            raise self.unexpected("a prefix")
        return self.lexer.take().text

    def _declare(self, prefix: str, what: Token, declared: set[str]) -> None:
        name = f"the prefix '{prefix}'" if prefix else "the default element namespace"
        uri = self._declared_uri(prefix, f"{name} is declared twice", what, declared)
        if prefix and not uri:
            self.scope.namespaces.pop(prefix, None)
        else:
            self.scope.namespaces[prefix] = uri

    def _declared_uri(self, key: str, reason: str, what: Token, declared: set[str]) -> str:
        """The URI of a declaration; ``reason``: why not, where ``key`` is declared already."""
        place = self.lexer.peek()
        uri = " ".join(self.expect_string("the URI of the namespace, in quotation marks").split())
        if key in declared:
            raise self.refusal("duplicate-declaration", reason, what.offset)
        if self.has_functions or self.declared:
            reason = "a namespace is declared behind a function or a variable"
            raise self.refusal("syntax", reason, what.offset, "it in front")
        declared.add(key)
        self.check_declaration("" if key == "function" else key, uri, place.offset)
        return uri

    # -- whole profiles

    def _check_deliverable(self, body: Expression, start: Token) -> None:
        """A path delivers the message; of anything else, each item becomes a document."""
        if is_path(body):
            if body == PathExpression(Origin.MESSAGE, ()):
                what = "this is the whole message"
                wanted = "a path to an element; $msg/* for every message"
                raise self.refusal("type", what, start.offset, wanted)
            return
        if isinstance(body, Constructor) and not decisive_parts(body):
            what = "the enclosing constructor holds nothing of the message"
            wanted = "{ for … return … }, or a path in { }, directly in it"
            raise self.refusal("unsupported", what, start.offset, wanted)
        kinds = self.kinds_of(body)
        if kinds == ItemKind.BOOLEAN:
            what = "this profile is a condition"
            wanted = "a path with the condition in brackets: /*[…]"
            raise self.refusal("type", what, start.offset, wanted)
        if kinds & ~PARENTS and not (kinds & PARENTS and _ends_in_call(body)):
            raise self.refusal(
                "type",
                "the result of this profile is not an element",
                start.offset if self.result_offset < 0 else self.result_offset,
                "a path to elements, or a constructor: <result>{ … }</result>",
            )


def _ends_in_call(body: Expression) -> bool:
    """Whether a declared function makes some of the result: what is no element is left out then."""
    match body:
        case UserCall():
            return True
        case Flwor() | Transform():
            return _ends_in_call(body.result)
        case TryCatch(handled, clauses):
            return _ends_in_call(handled) or any(_ends_in_call(one.result) for one in clauses)
        case Conditional(_, consequence, alternative):
            return _ends_in_call(consequence) or _ends_in_call(alternative)
        case Sequence(parts):
            return any(map(_ends_in_call, parts))
        case Typeswitch(_, cases):
            return any(_ends_in_call(case_.result) for case_ in cases)
    return False
