"""Parses FLWOR expressions: for, let and where in any order, then order by, then return."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from functools import partial
from itertools import count

from yfilter.language.computed_parser import ComputedParser
from yfilter.language.item_kinds import ATOMS, ItemKind
from yfilter.language.operator_parser import joined
from yfilter.language.path_parser import MESSAGE_VARIABLE
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.query_ast import (
    And,
    Clause,
    Expression,
    Flwor,
    ForClause,
    FunctionCall,
    Grouping,
    LetClause,
    OrderKey,
    SequenceType,
    Typed,
    WhereClause,
)
from yfilter.language.tokens import Token, TokenKind

_LEFT_OUT = {"group": "a second group by is", "count": "a count clause is"}


def _with_where(clauses: list[Clause]) -> tuple[tuple[Clause, ...], Expression | None]:
    """The clauses without the conditions at their end, and these as one."""
    where = None
    end = len(clauses)
    while end and isinstance(last := clauses[end - 1], WhereClause):
        parts = [last.condition] if where is None else [last.condition, where]
        where = joined(And, parts)
        end -= 1
    return tuple(clauses[:end]), where


class FlworParser(ComputedParser):
    """Adds FLWOR expressions to constructors."""

    def __init__(self, text: str, limits: ProfileLimits) -> None:
        super().__init__(text, limits)
        self._clause_count = 0
        # Where the 'return' of a FLWOR expression that is the whole yields its result; -1: nowhere.
        self.result_offset = -1

    def construction(self) -> Expression | None:
        token = self.lexer.peek()
        if self._is_flwor(token):
            return self._flwor()
        return self.computed()

    def new_variable(self, beside: Container[str] = ()) -> str:
        """Its name in the tree, another one for each of those in each other; ``beside`` must not
        have the name."""
        token = self.lexer.peek()
        if token.kind is not TokenKind.VARIABLE:
            raise self.unexpected("a variable")
        self.lexer.take()
        name = self.variable_name(token)
        if name in beside or name == MESSAGE_VARIABLE:
            what = f"${token.text} is bound already"
            raise self.refusal("duplicate-variable", what, token.offset, "another name")
        if name in self.scope.variables or name in self.declared:
            written = name
            for number in count(2):
                name = f"{written}.{number}"
                if not (name in self.scope.variables or name in self.renamed):
                    break
            self.renamed[name] = written
        self._clause_count += 1
        if self._clause_count > self.limits.clauses_max:
            raise self.refusal(
                "too-many-clauses", f"more than {self.limits.clauses_max} clauses", token.offset
            )
        return name

    def _is_flwor(self, token: Token) -> bool:
        return token.is_word("for", "let") and self.lexer.peek_second().kind is TokenKind.VARIABLE

    def _flwor(self) -> Flwor:
        self.enter(self.lexer.peek())
        outer = self.scope
        clauses: list[Clause] = []
        ungrouped: tuple[tuple[Clause, ...], Expression | None] | None = None
        keys: tuple[tuple[str, Expression | None], ...] = ()
        while True:
            token = self.lexer.peek()
            if self._is_flwor(token):
                self.lexer.take()
                clauses += self.listed(partial(self._clause, token.text == "for"))
            elif self.takes_word("where"):
                clauses.append(WhereClause(self.expression()))
            elif token.is_word("group") and ungrouped is None:
                ungrouped = _with_where(clauses)
                clauses = []
                keys = self._grouping_keys()
            else:
                break
        behind, where = _with_where(clauses)
        order = self._order()
        self._expect_return(has_where=where is not None)
        if self.is_outermost:
            self.result_offset = self.lexer.peek().offset
        is_braced = self.lexer.peek().is_symbol("{")  # as the paper's queries have it
        result = self.enclosed() if is_braced else self.expression()
        self.scope = outer
        self.leave()
        if ungrouped is None:
            return Flwor(behind, where, result, order)
        return Flwor(*ungrouped, result, order, Grouping(keys, behind, where))

    def _grouping_keys(self) -> tuple[tuple[str, Expression | None], ...]:
        self.lexer.take()
        self.expect_word("by")
        return tuple(self.listed(self._grouping_key))

    def _grouping_key(self) -> tuple[str, Expression | None]:
        token = self.lexer.peek()
        following = self.lexer.after(token)
        if token.kind is TokenKind.VARIABLE and not (
            following.is_symbol(":=") or following.is_word("as")
        ):
            self.lexer.take()
            name, value = self.bound_name(self.variable_name(token)), None
            if name not in self.scope.variables:
                raise self.refusal(
                    "unbound-variable", f"the variable ${token.text} is not bound", token.offset
                )
        else:
            name = self.new_variable()
            declared = self.declared_type()
            self.expect(":=")
            place = self.lexer.peek()
            value = self.expression()
            if declared is not None:
                data = FunctionCall("data", (value,))
                value = self.at(place, Typed(data, declared, True, declared=True))
        if self.lexer.peek().is_word("collation"):
            raise self.unsupported("a collation is", self.lexer.peek(), "groups by code point")
        self.scope = self.scope.with_variable(name, ATOMS)
        return name, value

    def _clause(self, is_for: bool) -> Clause:
        name = self.new_variable()
        declared = self.declared_type()
        outer = self.scope
        position = ""
        if is_for:
            if self.takes_word("at"):
                self.scope = outer.with_variable(name, ItemKind.NUMBER)
                position = self.new_variable((self.renamed.get(name, name),))
                self.scope = outer
            self.expect_word("in")
        else:
            self.expect(":=")
        value = self.typed_value(declared, each=is_for)
        self.scope = outer.with_variable(name, self.kinds_of(value))
        if position:
            self.scope = self.scope.with_variable(position, ItemKind.NUMBER)
        return ForClause(name, value, position) if is_for else LetClause(name, value)

    def declared_type(self) -> SequenceType | None:
        return self.sequence_type() if self.takes_word("as") else None

    def typed_value(self, declared: SequenceType | None, *, each: bool) -> Expression:
        """An expression with its declared type, that of ``each`` item if a clause is over them."""
        place = self.lexer.peek()
        value = self.expression()
        if declared is None:
            return value
        if each:
            declared = replace(declared, occurrence="*")
        return self.at(place, Typed(value, declared, True, declared=True))

    # -- order by

    def _order(self) -> tuple[OrderKey, ...]:
        if not self.takes_word("stable") and not self.lexer.peek().is_word("order"):
            return ()
        self.expect_word("order")
        self.expect_word("by")
        return tuple(self.listed(self._order_key))

    def _order_key(self) -> OrderKey:
        key = self.expression()
        descending, greatest = False, self.empty_greatest
        if self.lexer.peek().is_word("ascending", "descending"):
            descending = self.lexer.take().text == "descending"
        if self.takes_word("empty"):
            token = self.lexer.peek()
            if not token.is_word("greatest", "least"):
                raise self.unexpected("'greatest' or 'least'")
            greatest = self.lexer.take().text == "greatest"
        if self.lexer.peek().is_word("collation"):
            raise self.unsupported("a collation is", self.lexer.peek(), "order by code point")
        return OrderKey(key, descending, greatest)

    def _expect_return(self, *, has_where: bool) -> None:
        if self.takes_word("return"):
            return
        token = self.lexer.peek()
        if token.kind is TokenKind.NAME and token.text in _LEFT_OUT:
            raise self.unsupported(_LEFT_OUT[token.text], token)
        if has_where:
            raise self.unexpected("'return' or an operator")
        raise self.unexpected("',', 'for', 'let', 'where', 'order by' or 'return'")
