"""Parses computed constructors: ``element n { … }``, ``attribute``, ``text``, ``comment``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from formats.names import QualifiedName
from yfilter.language.constructor_parser import ConstructorParser
from yfilter.language.namespaces import INITIAL_NAMESPACES
from yfilter.language.query_ast import Computed, Constructor, Expression, NodeKind, Sequence
from yfilter.language.query_lexer import Token, TokenKind

_Namespaces: TypeAlias = tuple[tuple[str, str], ...]

_KINDS = {
    "element": NodeKind.ELEMENT,
    "attribute": NodeKind.ATTRIBUTE,
    "text": NodeKind.TEXT,
    "comment": NodeKind.COMMENT,
    "processing-instruction": NodeKind.PROCESSING_INSTRUCTION,
}
_NAMED = frozenset(("element", "attribute", "processing-instruction"))
_AS_THEY_ARE = frozenset(("ordered", "unordered"))
_LEFT_OUT = frozenset(("document", "validate"))
_WORDS = frozenset((*_KINDS, *_AS_THEY_ARE, *_LEFT_OUT))


class ComputedParser(ConstructorParser):
    """Adds computed constructors to direct ones."""

    def computed(self) -> Expression | None:
        """A computed constructor, if the next token begins one."""
        token = self.lexer.peek()
        if not self._begins(token):
            return None
        if token.text in _AS_THEY_ARE:
            return self._in_braces()
        if token.text in _LEFT_OUT:
            raise self.unsupported(f"{token.text} {{ }} is", token, "the expression alone")
        self.enter(self.lexer.take())
        kind = _KINDS[token.text]
        outer = self.scope
        declarations: dict[str, str] = {}
        name, namespaces = self._name(kind) if token.text in _NAMED else (None, ())
        if isinstance(name, QualifiedName) and kind is NodeKind.ELEMENT:
            self._declare_names(declarations, [name])
        self.expect("{")
        content: Expression = Sequence(())
        if not self.lexer.peek().is_symbol("}"):
            content = self.sequence()
        self.expect("}", " or an operator")
        self.scope = outer
        self.leave()
        if isinstance(name, QualifiedName) and kind is NodeKind.ELEMENT:
            parts = () if content == Sequence(()) else (content,)
            return Constructor(name, (), tuple(declarations.items()), parts)
        return Computed(kind, name, content, namespaces)

    def _in_braces(self) -> Expression:
        """``ordered { … }``: nothing here may have another order."""
        self.enter(self.lexer.take())
        self.lexer.take()
        inside = self.sequence()
        self.expect("}", " or an operator")
        self.leave()
        return inside

    def _written_prefixes(self) -> Iterator[tuple[str, str]]:
        while self.lexer.peek().is_symbol(","):
            self.lexer.take()
            prefix = self.expect_string("a prefix")
            self.expect(",")
            yield prefix, self.expect_string("a namespace")

    def _check_name(self, token: Token) -> None:
        """Refuses several values, unless they say what prefixes mean."""
        if self.lexer.peek().is_symbol(","):
            second = self.lexer.peek_second()
            if second.kind is not TokenKind.STRING or not self.lexer.after(second).is_symbol(","):
                raise self.refusal("type", "a name of several values", token.offset, "one value")

    def _prefixes(self) -> _Namespaces:
        """The namespaces that were declared around here."""
        declared = self.scope.namespaces.items()
        return tuple(sorted(one for one in declared if one not in INITIAL_NAMESPACES.items()))

    def _begins(self, token: Token) -> bool:
        if token.kind is not TokenKind.NAME or token.text not in _WORDS:
            return False
        following = self.lexer.peek_second()
        if following.is_symbol("{"):
            return True
        is_name = following.kind is TokenKind.NAME and (
            token.text in _NAMED
            or (token.text == "validate" and following.is_word("lax", "strict"))
        )
        return is_name and self.lexer.after(following).is_symbol("{")

    def _name(self, kind: NodeKind) -> tuple[QualifiedName | Expression, _Namespaces]:
        """The name, and what prefixes mean in it when it is computed.

        ``unparse`` writes those behind the name, ``element {name, "prefix", "uri"} {…}``, so that
        its text needs no prolog.
        """
        token = self.lexer.peek()
        if token.is_symbol("{"):
            self.lexer.take()
            name = self.expression()
            self._check_name(token)
            namespaces = tuple(self._written_prefixes()) or self._prefixes()
            self.expect("}", " or an operator")
            return name, namespaces
        self.lexer.take()
        if "*" in token.text or "{" in token.text:
            raise self.refusal("syntax", f"{token} is not a name", token.offset, "a name")
        if kind is NodeKind.PROCESSING_INSTRUCTION:
            if ":" in token.text:
                what = f"{token} is not the name of a processing instruction"
                raise self.refusal("syntax", what, token.offset, "a name without a prefix")
            return QualifiedName("", "", token.text), ()
        is_attribute = kind is NodeKind.ATTRIBUTE
        return self._constructed_name(token.text, token.offset, attribute=is_attribute), ()
