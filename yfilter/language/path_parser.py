"""Parses names, steps and paths: the part of the profile language that is XPath's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import NoReturn, TypeVar

from formats.characters import is_colonless_name
from yfilter.errors import ProfileRefused
from yfilter.language import query_ast as ast
from yfilter.language.functions import LEFT_OUT, type_result
from yfilter.language.item_kinds import ANYTHING, NODES, NOTHING, Kinds
from yfilter.language.namespaces import (
    FUNCTION_NAMESPACE,
    INITIAL_NAMESPACES,
    SCHEMA_NAMESPACE,
    braced,
)
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.query_lexer import (
    FUNCTIONS_PLACE,
    NO_FUNCTION_VALUE,
    Lexer,
    expand_references,
)
from yfilter.language.suggestions import instead_of
from yfilter.language.tokens import Token, TokenKind, TokenParser

MESSAGE_VARIABLE = "msg"

KIND_TESTS = {
    "text": ast.NodeKind.TEXT,
    "node": ast.NodeKind.NODE,
    "comment": ast.NodeKind.COMMENT,
    "element": ast.NodeKind.ELEMENT,
    "attribute": ast.NodeKind.ATTRIBUTE,
    "processing-instruction": ast.NodeKind.PROCESSING_INSTRUCTION,
    "document-node": ast.NodeKind.DOCUMENT,
}
# Types that all nodes of messages have.
_UNTYPED = {
    ast.NodeKind.ELEMENT: ("untyped", "anyType"),
    ast.NodeKind.ATTRIBUTE: ("untypedAtomic", "anyAtomicType", "anySimpleType", "anyType"),
}
_TYPES = frozenset(name for names in _UNTYPED.values() for name in names)
SCHEMA_TESTS = frozenset(("schema-element", "schema-attribute"))
_AXES = {axis.value: axis for axis in ast.Axis}
_STEP = "a step: a name, '*', '@name', 'text()', '.' or '..'"
Placed = TypeVar("Placed", bound=ast.Expression)


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean at a place of the text.

    ``namespaces`` maps prefixes, "" being the default for element names; ``context`` is what
    ``.`` can be, NOTHING where there is no context item.  ``constructed`` holds what the
    constructors around the place declare, as prefix and namespace.
    """

    namespaces: dict[str, str]
    variables: dict[str, Kinds]
    context: Kinds = NOTHING
    constructed: dict[str, str] = field(default_factory=dict)

    def with_variable(self, name: str, kinds: Kinds) -> Scope:
        variables = {**self.variables, name: kinds}
        return Scope(self.namespaces, variables, self.context, self.constructed)

    def with_context(self, context: Kinds) -> Scope:
        return Scope(self.namespaces, self.variables, context, self.constructed)


@dataclass(frozen=True, slots=True)
class FunctionText:
    """A function that a variable stands for: where its text is, and what names mean there."""

    start: int
    end: int
    scope: Scope


class _Nested:
    """One level of nesting of a parser; its scope is what it was when the level ends."""

    __slots__ = ("_outer", "_parser")

    def __init__(self, parser: PathParser) -> None:
        self._parser = parser
        self._outer = parser.scope

    def __enter__(self) -> Scope:
        return self._outer

    def __exit__(self, *_: object) -> None:
        self._parser.scope = self._outer
        self._parser.leave()


class PathParser(TokenParser):
    """Recursive descent over a Lexer; ``scope`` is replaced and restored on the way down."""

    word_form = "'{}'"

    def __init__(self, text: str, limits: ProfileLimits) -> None:
        super().__init__(limits)
        self.lexer = Lexer(text)
        self.scope = Scope(dict(INITIAL_NAMESPACES), {})
        self.function_namespace = FUNCTION_NAMESPACE  # of a call without a prefix
        # Declared variables: with its size what stands where the name does, None for a call.
        self.declared: dict[str, tuple[ast.Expression, int] | None] = {}
        self.renamed: dict[str, str] = {}  # variables in the tree: what the text calls them
        # Variables that are in no tree: what stands where the name does.
        self.stands_for: dict[str, ast.Expression | FunctionText] = {}
        self.hidden: frozenset[str] = frozenset()  # variables around that the text cannot name
        self.strips_space = True  # of constructors, where it is alone between tags and braces
        self.empty_greatest = False  # in order by, where nothing is said
        self._steps = 0
        self._places: dict[int, tuple[ast.Expression, int]] = {}  # by the identity of what is there

    @abstractmethod
    def condition(self) -> ast.Expression:
        """A whole condition, as it may stand in a predicate."""

    @abstractmethod
    def primary(self) -> ast.Expression | None:
        """What is no axis step: a literal, a call, parentheses, a constructor; None if none."""

    def path(self) -> ast.Expression:
        """A path with any origin, or a primary expression alone; the next token begins it."""
        start = self.lexer.peek()
        if start.text in _SLASHES:
            current: ast.Expression = ast.MESSAGE
            if start.text == "/":
                following = self.lexer.peek_second()
                if not self._begins_step(following):
                    self.lexer.take()
                    return current
        else:
            current = self._first_step(start)
        if self.lexer.peek().text in _SLASHES:
            kinds = self.kinds_of(current)
            while (slash := self.lexer.peek()).text in _SLASHES:
                self.lexer.take()
                self._check_navigable(kinds, slash)
                current, kinds = self._next_step(current, kinds, slash.text == "//")
        return current

    def nested(self, token: Token) -> _Nested:
        """The level of nesting that begins at a token."""
        self.enter(token)
        return _Nested(self)

    def kinds_of(self, expression: ast.Expression) -> Kinds:
        return expression.kinds(self.scope.variables, self.scope.context)

    def at(self, place: Token, expression: Placed) -> Placed:
        """An expression that may be an error, with its place."""
        self._places[id(expression)] = expression, place.offset
        return expression

    def place_of(self, parts: Iterable[ast.Expression]) -> int:
        """The place of the innermost of expressions in each other that has one."""
        places = [self._places[id(part)][1] for part in parts if id(part) in self._places]
        return places[-1] if places else 0

    @property
    def is_outermost(self) -> bool:
        """Whether one level of nesting has begun, and none in it."""
        return self._depth == 1

    def expect_string(self, what: str) -> str:
        token = self.lexer.peek()
        if token.kind is not TokenKind.STRING:
            raise self.unexpected(what)
        return self.string_value(self.lexer.take())

    def string_value(self, token: Token) -> str:
        """What a string literal says: doubled quotation marks and references resolved."""
        quote = token.text[0]
        return expand_references(self.lexer.text, token.offset + 1, token.end - 1, doubled=quote)

    def meant(self, token: Token, expected: str) -> str:
        return instead_of(self.lexer.text, token.offset, token.text) or expected

    def namespace_of(self, prefix: str, offset: int) -> str:
        namespace = self.scope.namespaces.get(prefix)
        if namespace is None:
            what = f"the prefix '{prefix}' is not declared"
            wanted = f'declare namespace {prefix} = "…"; at the start of the profile'
            raise self.refusal("undeclared-prefix", what, offset, wanted)
        return namespace

    def resolved(self, token: Token, default: str = "") -> tuple[str, str]:
        """Namespace and local name of a name; ``default``: without a prefix."""
        if token.text.startswith("Q{"):
            return self.qualified_uri(token), token.text[token.text.index("}") + 1 :]
        prefix, colon, local = token.text.rpartition(":")
        return self.namespace_of(prefix, token.offset) if colon else default, local

    def schema_type(self, token: Token) -> str:
        """The local name of a type of XML Schema; "" for another name."""
        prefix, _, local = token.text.rpartition(":")
        is_prefixed = token.kind is TokenKind.NAME and bool(prefix)
        is_one = is_prefixed and self.namespace_of(prefix, token.offset) == SCHEMA_NAMESPACE
        return local if is_one else ""

    def qualified_uri(self, token: Token) -> str:
        """The namespace of a token ``Q{uri}name`` or ``$Q{uri}name``."""
        start = token.end - len(token.text)
        end = start + token.text.index("}")
        uri = expand_references(self.lexer.text, start + 2, end)
        return self.checked_uri(" ".join(uri.split()), token.offset)

    def checked_uri(self, uri: str, offset: int) -> str:
        if uri == ast.ANY:
            raise self.refusal("syntax", "'*' is not a namespace", offset, "the URI of a namespace")
        if len(uri) > self.limits.uri_max:
            raise self.refusal(
                "too-long", f"a namespace of more than {self.limits.uri_max} characters", offset
            )
        return uri

    def no_value(self, token: Token) -> ProfileRefused:
        """For a function where a value stands."""
        return self.refusal("unsupported", NO_FUNCTION_VALUE, token.offset, FUNCTIONS_PLACE)

    # -- origins and steps

    def _begins_step(self, token: Token) -> bool:
        if token.kind is TokenKind.SYMBOL:
            return token.text in ("*", "@", ".", "..", "(", "<")
        return token.kind is not TokenKind.END

    def _first_step(self, start: Token) -> ast.Expression:
        origin = self._origin() or self.primary()
        if origin is not None:
            return self._filtered(origin)
        if not self.scope.context:
            second = self.lexer.peek_second()
            if start.is_word("for", "let") and second.kind is TokenKind.NAME:
                raise self.refusal(
                    "syntax", f"unexpected {second}", second.offset, f"a variable: ${second.text}"
                )
            what = f"{start} is a relative path and nothing is there that it could start from"
            wanted = "a path that starts with a variable or with '/'"
            raise self.refusal("no-context", what, start.offset, wanted)
        return ast.DOT.with_step(self._step(self.scope.context, descendant=False))

    def _next_step(
        self, current: ast.Expression, kinds: Kinds, descendant: bool
    ) -> tuple[ast.Expression, Kinds]:
        """``current``, which is of ``kinds``, with the step behind ``/`` or ``//``; its kinds."""
        if not self._is_plain_step():
            outer = self.scope
            deep = current.with_step(ast.ANY_DEPTH) if descendant else current
            self.scope = outer.with_context(self.kinds_of(deep) or ANYTHING)
            right = self._inner_primary()
            self.scope = outer
            if right is not None:
                mapped = ast.Mapped(deep, right)
                return mapped, self.kinds_of(mapped)
        token = self.lexer.peek()
        step = self._step(kinds, descendant)
        current = current.with_step(step)
        self._count_steps(0, token, len(current.steps))
        if step.axis is None and step.kind is ast.NodeKind.ELEMENT:
            return current, step.kinds_from(kinds)
        return current, self.kinds_of(current)

    def _is_plain_step(self) -> bool:
        """Whether the next tokens can only be a step of an axis."""
        token = self.lexer.peek()
        if token.kind is TokenKind.NAME:
            following = self.lexer.peek_second()
            return following.kind is TokenKind.END or (
                following.kind is TokenKind.SYMBOL and following.text not in ("(", "{")
            )
        return token.kind is TokenKind.END or (
            token.kind is TokenKind.SYMBOL and token.text not in ("(", "<")
        )

    def _inner_primary(self) -> ast.Expression | None:
        """A step that is an expression, with its filters."""
        is_variable = self.lexer.peek().kind is TokenKind.VARIABLE
        primary = self._origin() if is_variable else self.primary()
        return None if primary is None else self._filtered(primary)

    def _filtered(self, origin: ast.Expression) -> ast.Expression:
        """With the predicates behind it."""
        if self.lexer.peek().text != "[":
            return origin
        predicates = self._predicates(self.kinds_of(origin))
        return origin.with_filter(ast.LocationStep(False, ast.NodeKind.SELF, None, predicates))

    def _origin(self) -> ast.Expression | None:
        """A variable or ``.``, where a path can start; what a declared variable stands for."""
        token = self.lexer.peek()
        if token.kind is TokenKind.VARIABLE:
            self.lexer.take()
            if token.text == MESSAGE_VARIABLE:
                return ast.MESSAGE
            name = self.bound_name(self.variable_name(token))
            if name in self.stands_for:
                return self.meaning(name, token)
            if name not in self.scope.variables:
                if name in self.declared:
                    return self._declared_value(name, token)
                self._refuse_variable(token)
            return ast.variable(name)
        if token.text == "." and self.scope.context:
            self.lexer.take()
            return ast.DOT
        return None

    def variable_name(self, token: Token) -> str:
        """The name of a variable as it stands in the tree: ``name`` or ``Q{uri}name``."""
        namespace, local = self.resolved(token)
        return braced(namespace) + local if namespace else local

    def bound_name(self, name: str) -> str:
        """What the variable that a name means here is called in the tree: the innermost one."""
        if self.renamed or self.hidden:
            for bound in reversed(self.scope.variables):
                if self.renamed.get(bound, bound) == name and bound not in self.hidden:
                    return bound
        return "" if name in self.hidden else name

    @abstractmethod
    def meaning(self, name: str, token: Token) -> ast.Expression:
        """What a name of ``stands_for`` means; the name has been taken."""

    @abstractmethod
    def variable_call(self, name: str) -> ast.UserCall:
        """A declared variable that is evaluated once."""

    def _declared_value(self, name: str, token: Token) -> ast.Expression:
        """In its place; what that makes of the text counts as if it were written there."""
        declared = self.declared[name]
        if declared is None:
            return self.variable_call(name)
        value, steps = declared
        self._count_steps(steps, token)
        return value

    def _count_steps(self, steps: int, token: Token, of_path: int = 0) -> None:
        """So many more in the profile; ``of_path``: that one path has now."""
        self._steps += steps
        limits = self.limits
        if self._steps > limits.all_steps_max or of_path > limits.steps_max:
            most = limits.steps_max if of_path > limits.steps_max else limits.all_steps_max
            raise self.refusal("too-many-steps", f"more than {most} steps", token.offset)

    def _refuse_variable(self, token: Token) -> NoReturn:
        known = ", ".join(
            f"${name}" for name in (MESSAGE_VARIABLE, *self.declared, *self.scope.variables)
        )
        raise self.refusal(
            "unbound-variable", f"the variable ${token.text} is not bound", token.offset, known
        )

    def _check_navigable(self, kinds: Kinds, token: Token) -> None:
        if kinds and not kinds & NODES:
            raise self.refusal("type", f"{token} needs nodes, this is a value", token.offset)

    def _step(self, kinds: Kinds, descendant: bool) -> ast.LocationStep:
        token = self.lexer.peek()
        self._count_steps(1, token)
        is_child = token.text == "child" and self.lexer.peek_second().text == "::"
        axis = self._axis()
        kind, test = self._node_test(axis)
        if is_child and kind in (ast.NodeKind.ATTRIBUTE, ast.NodeKind.SELF, ast.NodeKind.PARENT):
            raise self.refusal("type", "no child is selected by this", token.offset, "a name")
        step = ast.LocationStep(descendant, kind, test, (), axis)
        if axis is not None:
            step = step.normal()
        if descendant and (step.axis or kind in (ast.NodeKind.SELF, ast.NodeKind.PARENT)):
            kinds = ast.ANY_DEPTH.kinds_from(kinds)
        selected = step.kinds_from(kinds)
        if kinds and not selected and self.limits.idle_paths_refused:
            raise self.refusal("idle-path", f"{token} can never select anything here", token.offset)
        predicates = self._predicates(selected)
        if not predicates:
            return step
        if step.axis is not axis and any(one.is_positional() for one in predicates):
            return ast.LocationStep(descendant, kind, test, predicates, axis)
        return ast.LocationStep(step.descendant, step.kind, step.test, predicates, step.axis)

    def _axis(self) -> ast.Axis | None:
        """An axis written out, taken; child and attribute are the kinds of their steps."""
        token = self.lexer.peek()
        if token.kind is not TokenKind.NAME or self.lexer.peek_second().text != "::":
            return None
        if token.text in ("child", "attribute"):
            self.lexer.take()
            if token.text == "child":
                self.lexer.take()
            return None
        axis = _AXES.get(token.text)
        if axis is None:
            close = get_close_matches(token.text, (*_AXES, "child", "attribute"), n=1)
            if token.text == "namespace":
                reason = LEFT_OUT["in-scope-prefixes"]
                what = f"the axis namespace:: is not in the profile language: {reason[0]}"
                raise self.refusal("unsupported", what, token.offset, reason[1])
            raise self.refusal(
                "syntax",
                f"the axis {token.text}:: is not in the profile language",
                token.offset,
                f"{close[0]}::" if close else "child::, descendant::, parent:: and the like",
            )
        self.lexer.take()
        self.lexer.take()
        return axis

    def _node_test(self, axis: ast.Axis | None) -> tuple[ast.NodeKind, ast.NameTest | None]:
        token = self.lexer.peek()
        if axis is None:
            if token.text == ".":
                self.lexer.take()
                return ast.NodeKind.SELF, None
            if token.text == "..":
                self.lexer.take()
                return ast.NodeKind.PARENT, None
            if token.text in ("@", "::"):
                self.lexer.take()
                return self._attribute_test()
        if token.kind is TokenKind.NAME and self.lexer.peek_second().text == "(":
            return self._kind_test(token)
        return ast.NodeKind.ELEMENT, self._name_test(attribute=False)

    def _attribute_test(self) -> tuple[ast.NodeKind, ast.NameTest | None]:
        token = self.lexer.peek()
        if token.kind is TokenKind.NAME and self.lexer.peek_second().is_symbol("("):
            kind, test = self._kind_test(token, attribute=True)
            if kind not in (ast.NodeKind.ATTRIBUTE, ast.NodeKind.NODE):
                raise self.refusal(
                    "type", f"{token} can never select an attribute", token.offset, "a name or '*'"
                )
            return ast.NodeKind.ATTRIBUTE, test or ast.ANY_NAME
        return ast.NodeKind.ATTRIBUTE, self._name_test(attribute=True)

    def _kind_test(
        self, token: Token, *, attribute: bool = False
    ) -> tuple[ast.NodeKind, ast.NameTest | None]:
        kind = KIND_TESTS.get(token.text)
        if token.text in SCHEMA_TESTS:
            self._refuse_schema_test()
        if token.text == "item":
            raise self.unsupported(f"{token.text}() is", token, "node(), element() or '*'")
        if kind is None:
            raise self.unexpected(_STEP)
        self.lexer.take()
        self.lexer.take()
        inside = self.lexer.peek()
        test = ast.ANY_NAME if kind in (ast.NodeKind.ELEMENT, ast.NodeKind.ATTRIBUTE) else None
        if kind is ast.NodeKind.PROCESSING_INSTRUCTION and not inside.is_symbol(")"):
            target = self.lexer.take()
            is_string = target.kind is TokenKind.STRING
            if not is_string and (target.kind is not TokenKind.NAME or ":" in target.text):
                raise self.refusal("syntax", f"unexpected {target}", target.offset, "a target")
            name = " ".join(self.string_value(target).split()) if is_string else target.text
            if not is_colonless_name(name):
                raise self.refusal("type", "this is no target", target.offset, "a name without ':'")
            test = ast.NameTest("", name)
        elif test is not None and not inside.is_symbol(")"):
            test = self._name_test(attribute=attribute or kind is ast.NodeKind.ATTRIBUTE)
            if self.lexer.peek().is_symbol(","):
                self._type_of_test(self.lexer.take(), kind)
        if kind is ast.NodeKind.DOCUMENT and inside.is_word("element", "schema-element"):
            self._kind_test(inside)
            raise self.unsupported("a test in document-node() is", inside, "')'")
        self.expect(")")
        return kind, test

    def _refuse_schema_test(self) -> NoReturn:
        """``schema-element(name)``: there is no schema that could declare one."""
        word = self.lexer.take()
        self.expect("(")
        token = self.lexer.peek()
        if token.kind is not TokenKind.NAME or "*" in token.text:
            raise self.unexpected("a name")
        self._name_test(attribute=word.text == "schema-attribute")
        what = f"{word.text}({token.text}) is declared by no schema (XPST0008)"
        raise self.refusal("unsupported", what, word.offset, "element() or attribute()")

    def _type_of_test(self, place: Token, kind: ast.NodeKind) -> None:
        """``element(a, xs:untyped)``: what every element, or attribute, of a message is."""
        token = self.lexer.take()
        local = self.schema_type(token)
        if local not in _UNTYPED[kind]:
            if local in _TYPES or type_result(f"xs:{local}"):
                raise self.unsupported("a type in a test is", place, "the name alone")
            what = f"there is no type {token.text} (XPST0008)"
            raise self.refusal("unsupported", what, place.offset, "the name alone")
        if kind is ast.NodeKind.ELEMENT:
            self.takes("?")

    def _name_test(self, *, attribute: bool) -> ast.NameTest:
        token = self.lexer.peek()
        if token.text == "*":
            self.lexer.take()
            return ast.ANY_NAME
        if token.kind is not TokenKind.NAME:
            what = "the name of an attribute" if attribute else "a step"
            raise self.unexpected(f"{what}: a name or '*'" if attribute else _STEP)
        self.lexer.take()
        if token.text.startswith("*:"):
            if token.text == "*:*":
                raise self.refusal("syntax", "'*:*' is not a name test", token.offset, "'*'")
            return ast.NameTest(ast.ANY, token.text[2:])
        return ast.NameTest(*self.resolved(token, "" if attribute else self.scope.namespaces[""]))

    def _predicates(self, context: Kinds) -> tuple[ast.Expression, ...]:
        if self.lexer.peek().text != "[":
            return ()
        predicates: list[ast.Expression] = []
        outer = self.scope
        while self.lexer.peek().text == "[":
            self.enter(self.lexer.take())
            self.scope = outer.with_context(context or ANYTHING)  # of nothing there is none
            if self.lexer.peek().text == "]":
                raise self.unexpected("a condition")
            predicates.append(self.condition())
            self.scope = outer
            self.expect("]", " or an operator")
            self.leave()
        return tuple(predicates)


_SLASHES = frozenset(("/", "//"))
