"""Parses ``copy … modify … return …`` and the updating expressions of XQuery Update.

An updating expression may stand where the value of ``modify`` is made: alone, in ``( , )``, in the
branches of ``if`` and ``typeswitch``, behind ``return``.  Where each one stands is known when the
text has been read, so what was not found in such a place then is refused.
"""

from __future__ import annotations

from formats.names import QualifiedName
from yfilter.language.function_parser import FunctionParser
from yfilter.language.item_kinds import NODES, ItemKind
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.query_ast import (
    Conditional,
    Expression,
    Flwor,
    FunctionCall,
    LetClause,
    Literal,
    NodeKind,
    Sequence,
    Transform,
    Typeswitch,
    Update,
)
from yfilter.language.tokens import Token, TokenKind
from yfilter.language.update_kind import UpdateKind

_PLACES = {
    "into": UpdateKind.INSERT_INTO,
    "before": UpdateKind.INSERT_BEFORE,
    "after": UpdateKind.INSERT_AFTER,
}


class UpdateParser(FunctionParser):
    """Adds copies with changes to declared functions."""

    def __init__(self, text: str, limits: ProfileLimits) -> None:
        super().__init__(text, limits)
        self._misplaced: dict[int, tuple[Update, Token]] = {}

    def updating(self) -> Transform | Update | None:
        token, following = self.lexer.peek(), self.lexer.peek_second()
        if token.is_word("copy"):
            return self._transform() if following.kind is TokenKind.VARIABLE else None
        is_value = token.text == "replace" and following.is_word("value")
        if not is_value and not following.is_word("node", "nodes"):
            return None
        self.enter(token)
        self.lexer.take()
        update = self._update(token)
        self.leave()
        self._misplaced[id(update)] = update, token
        return update

    def check_updates(self) -> None:
        """Refuses the updating expressions that stand in no ``modify``."""
        for _, token in self._misplaced.values():
            what = f"'{token.text}' changes a node outside 'modify'"
            wanted = "copy $c := … modify … return $c, with the change behind 'modify'"
            raise self.refusal("syntax", what, token.offset, wanted)

    def _transform(self) -> Transform:
        self.enter(self.lexer.take())
        outer = self.scope
        copies: list[LetClause] = []
        while not copies or self.takes(","):
            name = self.new_variable()
            self.expect(":=")
            place = self.lexer.peek()
            value = self.expression()
            kinds = self.kinds_of(value)
            if kinds and not kinds & NODES:
                raise self.refusal("type", "a value is no node to copy", place.offset, "a path")
            copies.append(LetClause(name, value))
            self.scope = self.scope.with_variable(name, kinds & NODES)
        self.expect_word("modify")
        place = self.lexer.peek()
        changes = self.expression()
        self._place(changes, place)
        self.expect_word("return")
        result = self.expression()
        self.scope = outer
        self.leave()
        return Transform(tuple(copies), changes, result)

    def _place(self, changes: Expression, place: Token) -> None:
        """Goes to where updating expressions may stand, and refuses all others there."""
        match changes:
            case Update():
                del self._misplaced[id(changes)]
            case Sequence(parts):
                for part in parts:
                    self._place(part, place)
            case Conditional(_, consequence, alternative):
                self._place(consequence, place)
                self._place(alternative, place)
            case Typeswitch(_, cases):
                for case_ in cases:
                    self._place(case_.result, place)
            case Flwor():
                self._place(changes.result, place)
            case _:
                raise self.refusal(
                    "syntax",
                    "this changes nothing",
                    place.offset,
                    "'delete node', 'insert node', 'replace node', 'replace value of node' or "
                    "'rename node'",
                )

    def _update(self, token: Token) -> Update:
        """The rest of an updating expression whose first word is taken."""
        if self.lexer.take().text == "value":
            self.expect_word("of")
            self.expect_word("node")
            target = self._target()
            self.expect_word("with")
            return Update(UpdateKind.REPLACE_VALUE, target, self.expression())
        if token.text == "delete":
            return Update(UpdateKind.DELETE, self._target(), Sequence(()))
        if token.text == "insert":
            source = self.expression()
            return Update(self._insertion(), self._target(), source)
        target = self._target()
        if token.text == "rename":
            self.expect_word("as")
            return Update(UpdateKind.RENAME, target, self._new_name(target))
        self.expect_word("with")
        return Update(UpdateKind.REPLACE, target, self.expression())

    def _target(self) -> Expression:
        place = self.lexer.peek()
        target = self.expression()
        kinds = self.kinds_of(target)
        if kinds and not kinds & NODES:
            raise self.refusal("type", "a value cannot be changed", place.offset, "a path")
        return target

    def _insertion(self) -> UpdateKind:
        token = self.lexer.peek()
        if token.is_word("as"):
            self.lexer.take()
            where = self.lexer.peek()
            if not where.is_word("first", "last"):
                raise self.unexpected("'first' or 'last'")
            self.lexer.take()
            self.expect_word("into")
            is_first = where.text == "first"
            return UpdateKind.INSERT_FIRST if is_first else UpdateKind.INSERT_LAST
        if not token.is_word(*_PLACES):
            raise self.unexpected("'into', 'as first into', 'as last into', 'before' or 'after'")
        return _PLACES[self.lexer.take().text]

    def _new_name(self, target: Expression) -> Expression | QualifiedName:
        """A name that is written down means what its prefix means here."""
        place = self.lexer.peek()
        name = self.expression()
        default = self.scope.namespaces[""]
        kinds = self.kinds_of(target)
        if kinds & ~ItemKind.ELEMENT:
            default = ""  # which is for the names of elements
        kind = NodeKind.ATTRIBUTE if kinds == ItemKind.ATTRIBUTE else NodeKind.ELEMENT
        match name:
            case FunctionCall("QName", (Literal(str(uri)), Literal(str(text)))):
                self._check_qname(kind, name, place)
                return QualifiedName(text.rpartition(":")[0], uri, text.rpartition(":")[2])
        if isinstance(name, Literal):
            named = self._literal_name(kind, name, place)
            return named if named.prefix else named._replace(namespace=default)
        if default:
            return FunctionCall("QName", (Literal(default), FunctionCall("string", (name,))))
        return name
