"""Parses sequence types: ``xs:integer?``, ``element(a)*``, ``empty-sequence()``."""

from __future__ import annotations

from yfilter.language.functions import TYPES
from yfilter.language.other_functions import OPAQUE_TYPES, type_result
from yfilter.language.path_parser import KIND_TESTS, SCHEMA_TESTS, PathParser
from yfilter.language.query_ast import SequenceType
from yfilter.language.tokens import TokenKind

_ATOMIC = frozenset((*TYPES, *OPAQUE_TYPES, "xs:anyURI", "xs:float", "xs:anyAtomicType"))


class TypeParser(PathParser):
    """Adds sequence types to names."""

    def sequence_type(self) -> SequenceType:
        token = self.lexer.peek()
        if token.kind is not TokenKind.NAME:
            raise self.unexpected("a type")
        if self.lexer.peek_second().is_symbol("("):
            if token.text in ("item", "empty-sequence"):
                self.lexer.take()
                self.lexer.take()
                self.expect(")")
                found = SequenceType(token.text, None, None)
                return found if token.text == "empty-sequence" else self._occurring(found)
            if token.text not in KIND_TESTS and token.text not in SCHEMA_TESTS:
                what = f"there is no type {token.text}()"
                raise self.refusal("syntax", what, token.offset, "node()")
            kind, test = self._kind_test(token)
            return self._occurring(SequenceType("node", kind, test))
        self.lexer.take()
        local = self.schema_type(token)
        if f"xs:{local}" not in _ATOMIC:
            is_known = type_result(f"xs:{local}") is not None
            what = f"the type {token.text} is not in the profile language"
            code = "" if is_known or local == "NOTATION" else " (XPST0051)"
            expected = ", ".join(sorted(_ATOMIC))
            raise self.refusal("unsupported", what + code, token.offset, expected)
        return self._occurring(SequenceType(f"xs:{local}", None, None))

    def _occurring(self, item: SequenceType) -> SequenceType:
        token = self.lexer.peek()
        if not token.is_symbol("?", "*", "+"):
            return item
        self.lexer.take()
        return SequenceType(item.name, item.kind, item.test, token.text)
