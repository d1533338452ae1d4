"""Parses what operators join: from ``or``, the loosest, down to the unary minus.

The table LEVELS says how tightly each operator binds; parentheses are written by the same one.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from decimal import Decimal
from typing import Any, NoReturn

from yfilter.language import query_ast as ast
from yfilter.language.comparison import GENERAL
from yfilter.language.constructed_names import lexical_fault
from yfilter.language.functions import OPAQUE_TYPES, TYPES, type_result
from yfilter.language.item_kinds import ANYTHING, ATOMS, NODES, TEMPORAL, ItemKind, Kinds
from yfilter.language.path_parser import KIND_TESTS, SCHEMA_TESTS, PathParser
from yfilter.language.query_ast import COMPARISON_LEVEL, LEVEL_OF, RANGE_LEVEL, WORDS_LEVEL
from yfilter.language.suggestions import type_suggestion
from yfilter.language.tokens import Token, TokenKind
from yfilter.language.trees import flat, split
from yfilter.language.words import WORD_TESTS, Spacing, WordTest

# -------------------------------------------------------------------------------------------------
# Parses sequence types: ``xs:integer?``, ``element(a)*``, ``empty-sequence()``.


_ATOMIC = frozenset((*TYPES, *OPAQUE_TYPES, "xs:anyURI", "xs:float", "xs:anyAtomicType"))


class TypeParser(PathParser):
    """Adds sequence types to names."""

    def sequence_type(self) -> ast.SequenceType:
        token = self.lexer.peek()
        if token.kind is not TokenKind.NAME:
            raise self.unexpected("a type")
        if self.lexer.peek_second().is_symbol("("):
            if token.text in ("item", "empty-sequence"):
                self.lexer.take()
                self.lexer.take()
                self.expect(")")
                found = ast.SequenceType(token.text, None, None)
                return found if token.text == "empty-sequence" else self._occurring(found)
            if token.text == "function":
                raise self.no_value(token)
            if token.text not in KIND_TESTS and token.text not in SCHEMA_TESTS:
                what = f"there is no type {token.text}()"
                raise self.refusal("syntax", what, token.offset, "node()")
            kind, test = self._kind_test(token)
            return self._occurring(ast.SequenceType("node", kind, test))
        self.lexer.take()
        local = self.schema_type(token)
        if f"xs:{local}" not in _ATOMIC:
            is_known = type_result(f"xs:{local}") is not None
            what = f"the type {token.text} is not in the profile language"
            code = "" if is_known or local == "NOTATION" else " (XPST0051)"
            expected = ", ".join(sorted(_ATOMIC))
            raise self.refusal("unsupported", what + code, token.offset, expected)
        return self._occurring(ast.SequenceType(f"xs:{local}", None, None))

    def _occurring(self, item: ast.SequenceType) -> ast.SequenceType:
        token = self.lexer.peek()
        if not token.is_symbol("?", "*", "+"):
            return item
        self.lexer.take()
        return ast.SequenceType(item.name, item.kind, item.test, token.text)


# -------------------------------------------------------------------------------------------------


_MISSPELT = {
    "=>": "'>='",
    "=<": "'<='",
    "==": "'='",
    "<>": "'!='",
    "&&": "'and'",
    "!": "not()",
}
_TYPE_OPERATORS = ("cast", "castable", "instance", "treat")
_SET_OPERATORS = frozenset(("|", "union", "intersect", "except", "is", "<<", ">>"))
_ARITHMETIC = frozenset(("+", "-", "*", "div", "idiv", "mod", "to"))


class OperatorParser(TypeParser):
    """Adds operators to paths and types."""

    @abstractmethod
    def expression(self) -> ast.Expression:
        """What may stand where one value is wanted: a condition, FLWOR, ``if``, ``some``."""

    @abstractmethod
    def arrow_call(self, first: ast.Expression) -> ast.Expression:
        """The call behind ``=>``, with its first argument."""

    def binary(self, least: int) -> ast.Expression:
        """Operators of the level ``least`` and tighter ones (precedence climbing: one call for
        each operand, not one for each level, since profiles may be nested deeply)."""
        start = self.lexer.peek()
        left = self._unary() if start.text in ("-", "+") else self._mapped()
        while self.lexer.peek().is_symbol("=>") and self._calls(self.lexer.peek_second()):
            self.lexer.take()
            left = self.arrow_call(left)
        if self.lexer.peek().text in _TYPE_OPERATORS:
            left = self._cast(left)
        while (level := self._next_level()) >= least:
            token = self._take_operator()
            if level == WORDS_LEVEL:
                left = self._contains_text(start, left)
                continue
            right = self.binary(level + 1)
            if level < COMPARISON_LEVEL:
                parts = [left, right]
                while self._next_level() == level:
                    self._take_operator()
                    parts.append(self.binary(level + 1))
                left = joined(ast.And if level else ast.Or, parts)
                if not all(self.kinds_of(part) & _SURE for part in parts):
                    left = self.at(start, left)
                continue
            left = self._joined(start, left, token, right)
            if level in (COMPARISON_LEVEL, RANGE_LEVEL):
                self._refuse_another(level)
        return left

    def _calls(self, token: Token) -> bool:
        return token.kind is TokenKind.NAME and self.lexer.after(token).is_symbol("(")

    def _mapped(self) -> ast.Expression:
        """A path, or several with ``!`` between them."""
        left = self.path()
        while self.takes("!"):
            outer = self.scope
            self.scope = outer.with_context(self.kinds_of(left) or ANYTHING)
            left = ast.SimpleMap(left, self.path())
            self.scope = outer
        return left

    def _next_level(self) -> int:
        """The level of the operator that follows, -1 if none does."""
        token = self.lexer.peek()
        level = LEVEL_OF.get(token.text, -1)
        return -1 if token.kind is TokenKind.VARIABLE else level

    def _take_operator(self) -> Token:
        self._refuse_end_tag(self.lexer.peek())
        return self.lexer.take()

    def _joined(
        self, start: Token, left: ast.Expression, token: Token, right: ast.Expression
    ) -> ast.Expression:
        if token.text == "||":
            return self.at(token, ast.FunctionCall("concat", (left, right)))
        self._check_operands(start, left, token, right)
        if token.text in GENERAL:
            return ast.Comparison(left, GENERAL[token.text], right)
        name = "|" if token.text == "union" else token.text
        return self.at(token, ast.Operation(name, (left, right)))

    def _refuse_another(self, level: int) -> None:
        following = self.lexer.peek()
        if self._next_level() == level:
            raise self.refusal(
                "syntax",
                "a comparison of a comparison"
                if level == COMPARISON_LEVEL
                else "a range of ranges",
                following.offset,
                "'and' between two comparisons" if level == COMPARISON_LEVEL else "one 'to'",
            )

    def _refuse_end_tag(self, token: Token) -> None:
        if token.text == "<" and self.lexer.text.startswith("</", token.offset):
            what = "an end tag in an expression"
            wanted = "'}' before it; for a comparison, white space after '<'"
            raise self.refusal("syntax", what, token.offset, wanted)

    # -- words: a subset of XQuery Full Text

    @abstractmethod
    def enclosed(self, opening: str = "{", *, may_be_empty: bool = False) -> ast.Expression:
        """A sequence in braces, or in parentheses."""

    def _contains_text(self, start: Token, source: ast.Expression) -> ast.Expression:
        """The words behind ``contains``, which one item of ``source`` has to have: without
        ``ftand`` and its like a call, else ``source[…]`` of calls about the context item, or
        these calls about ``source`` where that is one item at most."""
        self.expect_word("text")
        self._check_words(start, source)
        at_most_one = source.is_at_most_one()
        words = self.lexer.peek()
        found = self._any_words(source if at_most_one else ast.DOT)
        calls = [one for one in found.within() if isinstance(one, ast.FunctionCall)]
        if at_most_one:
            # Where there is no item, there is none that lacks a word.
            is_negated = any(call.name == "not" for call in calls)
            may_be_none = bool(source.steps)
            return joined(ast.And, [source, found]) if is_negated and may_be_none else found
        alternatives: list[ast.Expression] = [
            self.at(words, replace(one, arguments=(source, one.arguments[1])))
            for one in split(found, ast.Or)
            if isinstance(one, ast.FunctionCall) and one.name in WORD_TESTS
        ]
        if len(alternatives) == len(split(found, ast.Or)):
            return joined(ast.Or, alternatives)
        if any(call.name in WORD_TESTS and call.arguments[1].uses_context() for call in calls):
            what = "words that depend on the context item, beside ftand, ftor or ftnot, are"
            raise self.unsupported(what, words, "strings, or variables")
        step = ast.LocationStep(False, ast.NodeKind.SELF, None, (found,))
        return ast.FunctionCall("exists", (source.with_filter(step),))

    def _check_words(self, place: Token, operand: ast.Expression) -> None:
        kinds = self.kinds_of(operand)
        if kinds and not kinds & (NODES | ItemKind.STRING):
            what = "'contains text' takes strings"
            raise self.refusal("type", what, place.offset, "a path or a string")

    def _any_words(self, source: ast.Expression) -> ast.Expression:
        parts = [self._all_words(source)]
        while self.takes_word("ftor"):
            parts.append(self._all_words(source))
        return joined(ast.Or, parts)

    def _all_words(self, source: ast.Expression) -> ast.Expression:
        parts = [self._words(source)]
        while self.takes_word("ftand"):
            parts.append(self._words(source))
        return joined(ast.And, parts)

    def _words(self, source: ast.Expression) -> ast.Expression:
        token = self.lexer.peek()
        found: ast.Expression
        self.enter(token)
        if self.takes_word("ftnot"):
            found = ast.FunctionCall("not", (self._words(source),))
        elif self.takes("("):
            found = self._any_words(source)
            self.expect(")", ", 'ftand' or 'ftor'")
        else:
            if token.kind is TokenKind.STRING:
                words: ast.Expression = ast.Literal(self.string_value(self.lexer.take()))
            elif token.is_symbol("{"):
                words = self.enclosed()
                self._check_words(token, words)
            else:
                raise self.unexpected("words: a string, '{', '(' or 'ftnot'")
            mode = self.lexer.take().text if self.lexer.peek().is_word(*_MODES) else "any"
            if mode in _MODES and self.lexer.peek().is_word(_MODES[mode]):
                mode = f"{mode} {self.lexer.take().text}"
            test = self._match_options(WordTest(mode))
            each = split(words, ast.Sequence) if mode in ("any", "all") else ()
            if not each or not all(isinstance(one, ast.Literal) for one in each):
                each = (words,)
            calls: list[ast.Expression] = [
                self.at(token, ast.FunctionCall(test.name, (source, one))) for one in each
            ]
            found = joined(ast.And if test.every else ast.Or, calls)
        self.leave()
        token = self.lexer.peek()
        if token.is_word(*_LEFT_OUT):
            raise self.unsupported(f"'{token.text}' of XQuery Full Text is", token, _WORDS_WANTED)
        return found

    def _match_options(self, test: WordTest) -> WordTest:
        while self.takes_word("using"):
            option: tuple[str, ...] = ()
            while option not in _MATCH_OPTIONS:
                token = self.lexer.peek()
                option = (*option, token.text)
                if not any(known[: len(option)] == option for known in _MATCH_OPTIONS):
                    what = f"'using {' '.join(option)}' is"
                    raise self.unsupported(what, token, ", ".join(map(" ".join, _MATCH_OPTIONS)))
                self.lexer.take()
            test = test._replace(**_MATCH_OPTIONS[option])
        return test

    # -- what operators can join

    def _check_operands(
        self, start: Token, left: ast.Expression, operator: Token, right: ast.Expression
    ) -> None:
        one, other = self.kinds_of(left), self.kinds_of(right)
        text = operator.text
        if text in _SET_OPERATORS:
            if (one | other) & ATOMS and not (one | other) & ~ATOMS:
                raise self.refusal(
                    "type", f"'{text}' joins nodes, these are values", operator.offset, "paths"
                )
        elif text in _ARITHMETIC:
            for kinds, beside in ((one, other), (other, one)):
                is_moment = bool(kinds & TEMPORAL) and not kinds & ~TEMPORAL
                if kinds in _NO_NUMBERS or (is_moment and not beside & _BESIDE_MOMENTS):
                    what = f"'{text}' cannot reckon with a {_word(kinds)}"
                    wanted = "a number, or number(…) around the string"
                    raise self.refusal("type", what, operator.offset, wanted)
        elif one and other:
            self._check_comparable(start, one, operator, other)

    def _check_comparable(self, start: Token, one: Kinds, operator: Token, other: Kinds) -> None:
        """Two kinds of values that no schema can make comparable."""
        if ItemKind.BOOLEAN in (one, other) and one != other and not (one | other) & ~ATOMS:
            what = f"'{operator.text}' cannot compare a condition"
            wanted = "the condition alone, or not(condition)"
            raise self.refusal("type", what, operator.offset, wanted)
        kinds = one | other
        if {one, other} == {ItemKind.STRING, ItemKind.NUMBER}:
            what = "a string is compared with a number"
            wanted = "number(…) around the string, or quotation marks around the number"
            raise self.refusal("type", what, start.offset, wanted)
        if not one & other and not kinds & ~ATOMS and kinds in _PAIRS_OF_KINDS:
            what = f"a {_word(one)} is compared with a {_word(other)}"
            wanted = "a conversion, such as xs:date(…), around one of them"
            raise self.refusal("type", what, start.offset, wanted)

    def refuse_operator(self) -> None:
        """Refuses what follows a complete condition and is an operator elsewhere."""
        token = self.lexer.peek()
        self.refuse_misspelt(token)

    def refuse_misspelt(self, token: Token) -> None:
        if token.kind is TokenKind.SYMBOL and token.text in _MISSPELT:
            raise self.refusal(
                "syntax", f"'{token.text}' is not an operator", token.offset, _MISSPELT[token.text]
            )

    # -- casts and signs

    def _cast(self, operand: ast.Expression) -> ast.Expression:
        while self.lexer.peek().is_word(*_TYPE_OPERATORS):
            place = self.lexer.take()
            word = place.text
            if word in ("instance", "treat"):
                self.expect_word("as" if word == "treat" else "of")
                operand = self.at(place, ast.Typed(operand, self.sequence_type(), word == "treat"))
                continue
            castable = word == "castable"
            self.expect_word("as")
            token = self.lexer.take()
            local = self.schema_type(token)
            if type_result(f"xs:{local}") is None:
                self._refuse_type(token, local)
            optional = self.takes("?")
            if local == "QName":
                is_known = isinstance(operand, ast.Literal) and isinstance(operand.value, str)
                operand = self.as_qname(operand, token, castable=castable)
                if castable and is_known:
                    continue
            operand = self.at(place, ast.Cast(operand, f"xs:{local}", optional, castable))
        return operand

    def _refuse_type(self, token: Token, local: str) -> NoReturn:
        """``local``: its name if it is in the namespace of the types of XML Schema."""
        if self.lexer.peek().is_symbol("("):
            raise self.refusal("syntax", f"{token}() is no type of values", token.offset, "xs:date")
        code = " (XPST0080)" if local in ("NOTATION", "anyAtomicType") else ""
        what = f"{token} is no type that can be cast to{code}"
        raise self.refusal("unsupported", what, token.offset, type_suggestion(token.text))

    def as_qname(
        self, operand: ast.Expression, place: Token, *, castable: bool = False
    ) -> ast.Expression:
        """The operand of a cast to xs:QName: what the prefix of a name means is known here, so one
        that is written down is ``QName("uri", "name")``; ``castable``: whether it is one."""
        if isinstance(operand, ast.Literal) and isinstance(operand.value, str):
            text = operand.value.strip(" \t\n\r")
            prefix, _, _ = text.rpartition(":")
            is_name = not lexical_fault(text, ast.NodeKind.ELEMENT)
            namespace = self.scope.namespaces.get(prefix) if is_name else None
            if castable:
                return ast.FunctionCall("false" if namespace is None else "true", ())
            if not is_name:
                what = f"{text[:80]!r} is no name (FORG0001)"
                raise self.refusal("name", what, place.offset, "a name")
            if namespace is None:
                what = f"the prefix '{prefix}' is not declared (FONS0004)"
                wanted = f'declare namespace {prefix} = "…"; at the start of the profile'
                raise self.refusal("name", what, place.offset, wanted)
            return ast.FunctionCall("QName", (ast.Literal(namespace), ast.Literal(text)))
        if self.kinds_of(operand) & (NODES | ItemKind.STRING):
            raise self.unsupported(
                "a name that is not written down, as an xs:QName, is", place, "QName(uri, name)"
            )
        return operand

    def _unary(self) -> ast.Expression:
        first = self.lexer.peek()
        negative = False
        signs = 0
        while (token := self.lexer.peek()).is_symbol("-", "+"):
            negative ^= self.lexer.take().text == "-"
            signs += 1
            if signs > self.limits.depth_max:
                raise self.refusal("too-deep", "too many signs in a row", token.offset)
        operand = self._mapped()
        if signs and self.kinds_of(operand) in (ItemKind.STRING, ItemKind.BOOLEAN):
            raise self.refusal("type", "a sign before what is no number", first.offset, "a number")
        if not negative:
            # An untyped value becomes a number, what is none an error.
            is_number = not signs or self.kinds_of(operand) == ItemKind.NUMBER
            if is_number:
                return operand
            negated = self.at(first, ast.Operation("negate", (operand,)))
            return self.at(first, ast.Operation("negate", (negated,)))
        if isinstance(operand, ast.Literal) and not isinstance(operand.value, str):
            # An integer or a decimal has no negative zero.
            value = operand.value
            if value == 0 and not isinstance(value, float):
                return operand
            return ast.Literal(value.copy_negate() if isinstance(value, Decimal) else -value)
        return self.at(first, ast.Operation("negate", (operand,)))


_MODES = {"any": "word", "all": "words", "phrase": ""}
_MATCH_OPTIONS: dict[tuple[str, ...], dict[str, Any]] = {
    ("case", "insensitive"): {"spacing": Spacing.FOLDED},
    ("case", "sensitive"): {"spacing": Spacing.WORDS},
    ("diacritics", "sensitive"): {},
    ("wildcards",): {"wildcards": True},
    ("no", "wildcards"): {"wildcards": False},
    ("no", "stemming"): {},
    ("no", "thesaurus"): {},
    ("no", "stop", "words"): {},
}
_LEFT_OUT = (
    *("occurs", "weight", "ordered", "window", "distance", "same", "different", "at", "entire"),
    *("not", "without", "using"),  # the last behind parentheses
)
_WORDS_WANTED = "'ftand', 'ftor', or 'using …' behind a string"


_SURE = NODES | ItemKind.BOOLEAN  # of other values alone some have no effective boolean value
_NO_NUMBERS = (ItemKind.STRING, ItemKind.BOOLEAN)
_BESIDE_MOMENTS = TEMPORAL | ItemKind.OTHER  # a duration goes with a date, a date less a date


def _word(kinds: Kinds) -> str:
    return _WORDS[kinds]


_WORDS = {
    ItemKind.STRING: "string",
    ItemKind.NUMBER: "number",
    ItemKind.BOOLEAN: "condition",
    ItemKind.DATE: "date",
    ItemKind.DATE_TIME: "dateTime",
}
_SINGLE = (ItemKind.STRING, ItemKind.NUMBER, ItemKind.DATE, ItemKind.DATE_TIME)
_PAIRS_OF_KINDS = frozenset(one | other for one in _SINGLE for other in _SINGLE if one is not other)


def joined(kind: type[ast.And] | type[ast.Or], parts: list[ast.Expression]) -> ast.Expression:
    """One And or Or of all parts; parts of the same kind become parts of the whole."""
    return parts[0] if len(parts) == 1 else kind(flat(parts, kind))
