"""Parses computed constructors: ``element n { … }``, ``attribute``, ``text``, ``comment``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from formats.characters import is_comment, is_processing_instruction
from formats.names import QualifiedName
from yfilter.language.constructed_names import lexical_fault, namespace_fault
from yfilter.language.constructor_parser import ConstructorParser
from yfilter.language.namespaces import INITIAL_NAMESPACES
from yfilter.language.query_ast import (
    Computed,
    Constructor,
    Expression,
    FunctionCall,
    Literal,
    NodeKind,
    Sequence,
)
from yfilter.language.tokens import Token, TokenKind

_Namespaces: TypeAlias = tuple[tuple[str, str], ...]

_KINDS = {
    "element": NodeKind.ELEMENT,
    "attribute": NodeKind.ATTRIBUTE,
    "text": NodeKind.TEXT,
    "comment": NodeKind.COMMENT,
    "processing-instruction": NodeKind.PROCESSING_INSTRUCTION,
}
_NODES = {
    NodeKind.ELEMENT: "element",
    NodeKind.ATTRIBUTE: "attribute",
    NodeKind.PROCESSING_INSTRUCTION: "processing instruction",
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
        inside = self.lexer.after(self.lexer.peek())
        if isinstance(name, QualifiedName) and kind is NodeKind.ELEMENT:
            self._declare_names(declarations, [name])
        content = self.enclosed(may_be_empty=True)
        self.scope = outer
        self.leave()
        if isinstance(content, Literal):
            self._check_markup(kind, content, inside)
        if isinstance(name, QualifiedName) and kind is NodeKind.ELEMENT:
            parts = () if content == Sequence(()) else (content,)
            return Constructor(name, (), tuple(declarations.items()), parts)
        return Computed(kind, name, content, namespaces)

    def _in_braces(self) -> Expression:
        """``ordered { … }``: nothing here may have another order."""
        self.enter(self.lexer.take())
        inside = self.enclosed()
        self.leave()
        return inside

    def _written_prefixes(self) -> Iterator[tuple[str, str]]:
        while self.takes(","):
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
            place = self.lexer.peek()
            name = self.expression()
            self._check_name(token)
            written = tuple(self._written_prefixes())
            self.expect("}", " or an operator")
            if isinstance(name, Literal):
                outer = self.scope
                known = {**outer.namespaces, **dict(written)}
                self.scope = replace(outer, namespaces=known)
                named = self._literal_name(kind, name, place)
                self.scope = outer
                return named, ()
            self._check_qname(kind, name, place)
            return name, written or self._prefixes()
        self.lexer.take()
        if "*" in token.text or "{" in token.text:
            raise self.refusal("syntax", f"{token} is not a name", token.offset, "a name")
        if kind is NodeKind.PROCESSING_INSTRUCTION:
            if ":" in token.text:
                what = f"{token} is not the name of a processing instruction"
                raise self.refusal("syntax", what, token.offset, "a name without a prefix")
            self._check_fault(lexical_fault(token.text, kind), token.text, kind, token)
            return QualifiedName("", "", token.text), ()
        return self._node_name(kind, token.text, token), ()

    def _literal_name(self, kind: NodeKind, literal: Literal, place: Token) -> QualifiedName:
        """A name in quotation marks is what it is without them."""
        if not isinstance(literal.value, str):
            what = "a name is a string or an xs:QName (XPTY0004)"
            raise self.refusal("name", what, place.offset, "a name in quotation marks")
        text = literal.value.strip()
        self._check_fault(lexical_fault(text, kind), text, kind, place)
        if kind is NodeKind.PROCESSING_INSTRUCTION:
            return QualifiedName("", "", text)
        prefix, colon, _ = text.rpartition(":")
        if colon and prefix not in self.scope.namespaces:
            what = f"the prefix '{prefix}' is not declared (XQDY0074)"
            wanted = f'declare namespace {prefix} = "…"; at the start of the profile'
            raise self.refusal("name", what, place.offset, wanted)
        return self._node_name(kind, text, place)

    def _node_name(self, kind: NodeKind, text: str, place: Token) -> QualifiedName:
        is_attribute = kind is NodeKind.ATTRIBUTE
        name = self._constructed_name(text, place.offset, attribute=is_attribute)
        self._check_fault(namespace_fault(name, kind), text, kind, place)
        return name

    def _check_qname(self, kind: NodeKind, name: Expression, place: Token) -> None:
        """``QName("uri", "name")`` is known as well as a name that is written down."""
        match name:
            case FunctionCall("QName", (Literal(str(uri)), Literal(str(text)))):
                prefix, colon, local = text.rpartition(":")
                is_wrong = lexical_fault(text, NodeKind.ELEMENT) or (colon and not uri)
                named = QualifiedName(prefix, uri, local)
                fault = "FOCA0002" if is_wrong else namespace_fault(named, kind)
                self._check_fault(fault, text, kind, place)

    def _check_fault(self, fault: str, text: str, kind: NodeKind, place: Token) -> None:
        if fault:
            what = f"{text[:80]!r} can never be the name of this {_NODES[kind]} ({fault})"
            raise self.refusal("name", what, place.offset, "another name")

    def _check_markup(self, kind: NodeKind, literal: Literal, place: Token) -> None:
        """Refuses what no comment or processing instruction can say."""
        text = str(literal.value)
        if kind is NodeKind.COMMENT and not is_comment(text):
            what = "this is no comment of XML (XQDY0072)"
            raise self.refusal(
                "name", what, place.offset, "a text without '--', and no '-' at its end"
            )
        is_target = kind is NodeKind.PROCESSING_INSTRUCTION
        if is_target and not is_processing_instruction("x", text.lstrip(" \t\n\r")):
            what = "this is no processing instruction of XML (XQDY0026)"
            raise self.refusal("name", what, place.offset, "a text without '?>'")
