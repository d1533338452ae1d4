"""Parses names, steps and paths: the part of the profile language that is XPath's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import NoReturn

from formats.names import XML_NAMESPACE
from yfilter.errors import ProfileRefused
from yfilter.language.item_kinds import NOTHING, ItemKind, kinds_after, kinds_of, origin_kinds
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.query_ast import (
    ANY,
    Expression,
    LocationStep,
    NameTest,
    NodeKind,
    Origin,
    PathExpression,
)
from yfilter.language.query_lexer import Lexer, Token, TokenKind
from yfilter.language.references import expand_references

MESSAGE_VARIABLE = "msg"
FUNCTION_NAMESPACE = "http://www.w3.org/2005/xpath-functions"
SCHEMA_NAMESPACE = "http://www.w3.org/2001/XMLSchema"

KIND_TESTS = frozenset(
    (
        "node",
        "comment",
        "element",
        "attribute",
        "document-node",
        "processing-instruction",
        "item",
        "schema-element",
        "schema-attribute",
    )
)
_AXES = {
    "child": "name without an axis",
    "attribute": "@name",
    "descendant": ".//name",
    "descendant-or-self": ".//name",
    "self": ".[condition]",
    "parent": "'..'",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean at a place of the text.

    ``namespaces`` maps prefixes, "" being the default for element names; ``context`` is what
    ``.`` can be, NOTHING where there is no context item.  ``constructed`` holds what the
    constructors around the place declare, as prefix and namespace.
    """

    namespaces: dict[str, str]
    variables: dict[str, ItemKind]
    context: ItemKind = NOTHING
    constructed: dict[str, str] = field(default_factory=dict)

    def with_variable(self, name: str, kinds: ItemKind) -> Scope:
        return replace(self, variables={**self.variables, name: kinds})


INITIAL_NAMESPACES = {
    "": "",
    "xml": XML_NAMESPACE,
    "xs": SCHEMA_NAMESPACE,
    "fn": FUNCTION_NAMESPACE,
}


class PathParser(ABC):
    """Recursive descent over a Lexer; ``scope`` is replaced and restored on the way down."""

    def __init__(self, text: str, limits: ProfileLimits) -> None:
        self.lexer = Lexer(text)
        self.limits = limits
        self.scope = Scope(dict(INITIAL_NAMESPACES), {})
        self._depth = 0
        self._steps = 0

    @abstractmethod
    def condition(self) -> Expression:
        """A whole condition, as it may stand in a predicate."""

    def path(self) -> PathExpression:
        """A path with any origin; the next token begins it."""
        start = self.lexer.peek()
        path = self._origin()
        kinds = origin_kinds(path, self.scope.variables, self.scope.context)
        steps: list[LocationStep] = []
        token = self.lexer.peek()
        implicit = path.origin is Origin.CONTEXT and not start.is_symbol(".")
        explicit = path.origin is Origin.MESSAGE and start.is_symbol("/", "//")
        if token.is_symbol("["):
            self._check_navigable(kinds, token)
            steps.append(LocationStep(False, NodeKind.SELF, None, self._predicates(kinds)))
        while implicit or explicit or self.lexer.peek().is_symbol("/", "//"):
            slash = self.lexer.peek()
            if not implicit:
                self.lexer.take()
            self._check_navigable(kinds, slash)
            step, kinds = self._step(kinds, not implicit and slash.text == "//")
            _append(steps, step)
            implicit = explicit = False
        return PathExpression(path.origin, tuple(steps), path.variable)

    def kinds_of(self, expression: Expression) -> ItemKind:
        return kinds_of(expression, self.scope.variables, self.scope.context)

    def enter(self, token: Token) -> None:
        """One level of nesting begins at ``token``; ``leave`` ends it."""
        self._depth += 1
        if self._depth > self.limits.depth_max:
            raise self.refusal(
                "too-deep", f"nested more than {self.limits.depth_max} deep", token.offset
            )

    def leave(self) -> None:
        self._depth -= 1

    def expect(self, symbol: str, why: str = "") -> Token:
        token = self.lexer.peek()
        if not token.is_symbol(symbol):
            raise self.unexpected(f"'{symbol}'{why}")
        return self.lexer.take()

    def expect_word(self, word: str) -> Token:
        token = self.lexer.peek()
        if not token.is_word(word):
            raise self.unexpected(f"'{word}'")
        return self.lexer.take()

    def expect_string(self, what: str) -> str:
        token = self.lexer.peek()
        if token.kind is not TokenKind.STRING:
            raise self.unexpected(what)
        return self.string_value(self.lexer.take())

    def string_value(self, token: Token) -> str:
        """What a string literal says: doubled quotation marks and references resolved."""
        quote = token.text[0]
        return expand_references(self.lexer.text, token.offset + 1, token.end - 1, doubled=quote)

    def unexpected(self, expected: str) -> ProfileRefused:
        token = self.lexer.peek()
        return self.refusal("syntax", f"unexpected {token}", token.offset, expected)

    def unsupported(self, what: str, token: Token, instead: str = "") -> ProfileRefused:
        return self.unsupported_at(what, token.offset, instead)

    def unsupported_at(self, what: str, offset: int, instead: str = "") -> ProfileRefused:
        return self.refusal("unsupported", f"{what} not in the profile language", offset, instead)

    def refusal(self, code: str, reason: str, offset: int, expected: str = "") -> ProfileRefused:
        return self.lexer.refusal(code, reason, offset, expected)

    def namespace_of(self, prefix: str, offset: int) -> str:
        namespace = self.scope.namespaces.get(prefix)
        if namespace is None:
            raise self.refusal(
                "undeclared-prefix",
                f"the prefix '{prefix}' is not declared",
                offset,
                f'declare namespace {prefix} = "…"; at the start of the profile',
            )
        return namespace

    def qualified_uri(self, token: Token) -> str:
        """The namespace of a token ``Q{uri}name``."""
        end = token.offset + token.text.index("}")
        uri = expand_references(self.lexer.text, token.offset + 2, end)
        return self.checked_uri(" ".join(uri.split()), token.offset)

    def checked_uri(self, uri: str, offset: int) -> str:
        if uri == ANY:
            raise self.refusal("syntax", "'*' is not a namespace", offset, "the URI of a namespace")
        if len(uri) > self.limits.uri_max:
            raise self.refusal(
                "too-long", f"a namespace of more than {self.limits.uri_max} characters", offset
            )
        return uri

    # -- origins and steps

    def _origin(self) -> PathExpression:
        """Where the path starts, consumed unless a relative path starts with its first step."""
        token = self.lexer.peek()
        if token.kind is TokenKind.VARIABLE:
            self.lexer.take()
            if token.text == MESSAGE_VARIABLE:
                return PathExpression(Origin.MESSAGE, ())
            if token.text not in self.scope.variables:
                self._refuse_variable(token)
            return PathExpression(Origin.VARIABLE, (), token.text)
        if token.is_symbol("/", "//"):
            return PathExpression(Origin.MESSAGE, ())
        if not self.scope.context:
            raise self.refusal(
                "no-context",
                f"{token} is a relative path and nothing is there that it could start from",
                token.offset,
                "a path that starts with a variable or with '/'",
            )
        if token.is_symbol("."):
            self.lexer.take()
        return PathExpression(Origin.CONTEXT, ())

    def _refuse_variable(self, token: Token) -> NoReturn:
        known = ", ".join(f"${name}" for name in (MESSAGE_VARIABLE, *self.scope.variables))
        raise self.refusal(
            "unbound-variable", f"the variable ${token.text} is not bound", token.offset, known
        )

    def _check_navigable(self, kinds: ItemKind, token: Token) -> None:
        atoms = kinds & (ItemKind.STRING | ItemKind.NUMBER | ItemKind.BOOLEAN)
        if atoms:
            raise self.refusal("type", f"{token} needs nodes, this is a value", token.offset)

    def _step(self, kinds: ItemKind, descendant: bool) -> tuple[LocationStep, ItemKind]:
        token = self.lexer.peek()
        self._steps += 1
        if self._steps > self.limits.steps_max:
            raise self.refusal(
                "too-many-steps", f"more than {self.limits.steps_max} steps", token.offset
            )
        kind, test = self._node_test()
        if descendant and kind in (NodeKind.SELF, NodeKind.PARENT):
            raise self.unsupported(f"'//' before '{kind.value}' is", token, "'//*', or a name")
        selected = kinds_after(kinds, kind, descendant)
        if not selected:
            raise self.refusal("type", f"{token} can never select anything here", token.offset)
        return LocationStep(descendant, kind, test, self._predicates(selected)), selected

    def _node_test(self) -> tuple[NodeKind, NameTest | None]:
        token = self.lexer.peek()
        if token.is_symbol("."):
            self.lexer.take()
            return NodeKind.SELF, None
        if token.is_symbol(".."):
            self.lexer.take()
            return NodeKind.PARENT, None
        if token.is_symbol("@"):
            self.lexer.take()
            return NodeKind.ATTRIBUTE, self._name_test(attribute=True)
        if token.kind is TokenKind.NAME:
            following = self.lexer.peek_second()
            if following.is_symbol("(") and token.text == "text":
                self.lexer.take()
                self.lexer.take()
                self.expect(")")
                return NodeKind.TEXT, None
            if following.is_symbol("("):
                self._refuse_call_as_step(token)
            if following.is_symbol("::"):
                instead = _AXES.get(token.text, "child, '//', '@' or '..'")
                raise self.unsupported(f"the axis {token.text}:: is", token, instead)
        return NodeKind.ELEMENT, self._name_test(attribute=False)

    def _refuse_call_as_step(self, token: Token) -> NoReturn:
        if token.text in KIND_TESTS:
            raise self.unsupported(f"{token.text}() is", token, "'*', '@*' or 'text()'")
        raise self.unsupported(
            f"a function call as a step ({token.text}) is", token, f"{token.text}(path)"
        )

    def _name_test(self, *, attribute: bool) -> NameTest:
        token = self.lexer.peek()
        if token.is_symbol("*"):
            self.lexer.take()
            return NameTest(ANY, ANY)
        if token.kind is not TokenKind.NAME:
            what = "the name of an attribute" if attribute else "a step"
            raise self.unexpected(
                f"{what}: a name or '*'"
                if attribute
                else "a step: a name, '*', '@name', 'text()', '.' or '..'"
            )
        self.lexer.take()
        if token.text.startswith("Q{"):
            return NameTest(self.qualified_uri(token), token.text[token.text.index("}") + 1 :])
        prefix, colon, local = token.text.rpartition(":")
        if not colon:
            return NameTest("" if attribute else self.scope.namespaces[""], local)
        if prefix == ANY:
            if local == ANY:
                raise self.refusal("syntax", "'*:*' is not a name test", token.offset, "'*'")
            return NameTest(ANY, local)
        return NameTest(self.namespace_of(prefix, token.offset), local)

    def _predicates(self, context: ItemKind) -> tuple[Expression, ...]:
        predicates: list[Expression] = []
        outer = self.scope
        while self.lexer.peek().is_symbol("["):
            self.enter(self.lexer.take())
            self.scope = replace(outer, context=context)
            start = self.lexer.peek()
            if start.is_symbol("]"):
                raise self.unexpected("a condition")
            predicate = self.condition()
            if self.kinds_of(predicate) & ItemKind.NUMBER:
                raise self.unsupported(
                    "a position is", start, "a condition, for instance a comparison"
                )
            predicates.append(predicate)
            self.scope = outer
            self.expect("]", " or an operator")
            self.leave()
        return tuple(predicates)


def _append(steps: list[LocationStep], step: LocationStep) -> None:
    """Adds a step; ``.`` after another step adds nothing but its predicates to that step."""
    if step.kind is not NodeKind.SELF:
        steps.append(step)
    elif steps:
        steps[-1] = replace(steps[-1], predicates=steps[-1].predicates + step.predicates)
    elif step.predicates:
        steps.append(step)
