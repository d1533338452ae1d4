"""Parses conditions: comparisons, ``and``, ``or``, function calls."""

from __future__ import annotations

from difflib import get_close_matches
from math import isinf
from typing import NoReturn

from yfilter.language.functions import FUNCTIONS, ArgumentKind, Signature
from yfilter.language.item_kinds import ATOMS, NODES, ItemKind
from yfilter.language.numbers import number_text
from yfilter.language.path_parser import FUNCTION_NAMESPACE, KIND_TESTS, PathParser
from yfilter.language.patterns import PatternError, check_pattern
from yfilter.language.query_ast import (
    And,
    Comparison,
    Expression,
    FunctionCall,
    Literal,
    Operator,
    Or,
)
from yfilter.language.query_lexer import Token, TokenKind

_OPERATORS = {operator.value: operator for operator in Operator}
_VALUE_COMPARISONS = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_MISSPELT = {
    "=>": "'>='",
    "=<": "'<='",
    "==": "'='",
    "<>": "'!='",
    "&&": "'and'",
    "||": "'or', or concat() for strings",
    "!": "not()",
}
_ARITHMETIC = frozenset(("+", "-", "*"))
_WORD_OPERATORS = {
    "div": "arithmetic is",
    "idiv": "arithmetic is",
    "mod": "arithmetic is",
    "union": "a union of paths is",
    "intersect": "intersect is",
    "except": "except is",
    "is": "comparing the identity of nodes is",
    "to": "a range is",
    "instance": "instance of is",
    "treat": "treat as is",
    "cast": "a cast is",
    "castable": "castable as is",
}
_CONSTRUCTS = {
    "if": "if … then … else is",
    "some": "some … satisfies is",
    "every": "every … satisfies is",
    "typeswitch": "typeswitch is",
    "switch": "switch is",
}
_COMPUTED = frozenset(("element", "attribute", "text", "document", "comment"))
_NUMBER_LENGTH_MAX = 64


class ConditionParser(PathParser):
    """Adds conditions to paths; from the loosest operator to the tightest."""

    def condition(self) -> Expression:
        parts = [self._conjunction()]
        while self.lexer.peek().is_word("or"):
            self.lexer.take()
            parts.append(self._conjunction())
        self._refuse_operator()
        return _joined(Or, parts)

    def operand(self) -> Expression:
        """What may stand beside a comparison operator, or alone."""
        token = self.lexer.peek()
        if token.kind is TokenKind.STRING:
            return Literal(self.string_value(self.lexer.take()))
        if token.kind is TokenKind.NUMBER:
            return self._number(self.lexer.take())
        if token.is_symbol("("):
            return self._parenthesised()
        if token.is_symbol("-", "+"):
            return self._signed_number()
        if token.is_symbol("<"):
            raise self.refusal(
                "syntax",
                "a constructor stands only after return and in { }",
                token.offset,
                "a path, a literal or a function call",
            )
        if token.kind is TokenKind.NAME:
            self._refuse_construct(token)
            if self._is_call(token):
                return self._call()
        elif token.kind is not TokenKind.VARIABLE and not token.is_symbol(
            "/", "//", ".", "..", "@", "*"
        ):
            self._refuse_operand(token)
        return self.path()

    # -- operators

    def _conjunction(self) -> Expression:
        parts = [self._comparison()]
        while self.lexer.peek().is_word("and"):
            self.lexer.take()
            parts.append(self._comparison())
        return _joined(And, parts)

    def _comparison(self) -> Expression:
        start = self.lexer.peek()
        left = self.operand()
        token = self.lexer.peek()
        if token.kind is TokenKind.SYMBOL and token.text in _OPERATORS:
            self._refuse_end_tag(token)
            self.lexer.take()
            right = self.operand()
            self._check_comparable(start, left, token, right)
            following = self.lexer.peek()
            if following.kind is TokenKind.SYMBOL and following.text in _OPERATORS:
                raise self.refusal(
                    "syntax",
                    "a comparison of a comparison",
                    following.offset,
                    "'and' between two comparisons",
                )
            return Comparison(left, _OPERATORS[token.text], right)
        return left

    def _refuse_end_tag(self, token: Token) -> None:
        if self.lexer.text.startswith("</", token.offset):
            raise self.refusal(
                "syntax",
                "an end tag in an expression",
                token.offset,
                "'}' before it; for a comparison, white space after '<'",
            )

    def _check_comparable(
        self, start: Token, left: Expression, operator: Token, right: Expression
    ) -> None:
        kinds = self.kinds_of(left) | self.kinds_of(right)
        if kinds & ItemKind.BOOLEAN:
            raise self.refusal(
                "type",
                f"'{operator.text}' cannot compare a condition",
                operator.offset,
                "the condition alone, or not(condition)",
            )
        if ItemKind.STRING in kinds and ItemKind.NUMBER in kinds:
            raise self.refusal(
                "type",
                "a string is compared with a number",
                start.offset,
                "number(…) around the string, or quotation marks around the number",
            )

    def _refuse_operator(self) -> None:
        """Refuses what follows a complete condition and is an operator elsewhere."""
        token = self.lexer.peek()
        if token.kind is TokenKind.NAME:
            if token.text in _VALUE_COMPARISONS:
                raise self.unsupported(
                    f"'{token.text}' is", token, f"'{_VALUE_COMPARISONS[token.text]}'"
                )
            if token.text in _WORD_OPERATORS:
                raise self.unsupported(_WORD_OPERATORS[token.text], token)
        elif token.kind is TokenKind.SYMBOL:
            if token.text in _MISSPELT:
                raise self.refusal(
                    "syntax",
                    f"'{token.text}' is not an operator",
                    token.offset,
                    _MISSPELT[token.text],
                )
            if token.text in _ARITHMETIC:
                raise self.unsupported("arithmetic is", token)
            if token.text == "|":
                raise self.unsupported("a union of paths is", token, "'or' between two conditions")
            if token.text in ("<<", ">>"):
                raise self.unsupported("comparing document order is", token)

    # -- operands

    def _parenthesised(self) -> Expression:
        token = self.lexer.take()
        self.enter(token)
        if self.lexer.peek().is_symbol(")"):
            raise self.unsupported("the empty sequence is", token)
        inside = self.condition()
        if self.lexer.peek().is_symbol(","):
            raise self.unsupported(
                "a sequence of values is", self.lexer.peek(), "comparisons joined by 'or'"
            )
        self.expect(")", " or an operator")
        following = self.lexer.peek()
        if following.is_symbol("/", "//", "["):
            raise self.unsupported("a path that starts with parentheses is", following)
        self.leave()
        return inside

    def _number(self, token: Token) -> Literal:
        value = float(token.text) if len(token.text) <= _NUMBER_LENGTH_MAX else float("inf")
        if isinf(value):
            raise self.refusal(
                "number",
                "this number is too large",
                token.offset,
                f"a number of at most {_NUMBER_LENGTH_MAX} characters",
            )
        return Literal(value, _written(token.text, value))

    def _signed_number(self) -> Literal:
        sign = self.lexer.take()
        token = self.lexer.peek()
        if token.kind is not TokenKind.NUMBER:
            raise self.unsupported("arithmetic is", sign)
        literal = self._number(self.lexer.take())
        assert isinstance(literal.value, float)
        if sign.text == "+":
            return literal
        # An integer or a decimal has no negative zero.
        is_zero_exactly = literal.value == 0 and "e" not in token.text.lower()
        value = 0.0 if is_zero_exactly else -literal.value
        return Literal(value, f"-{literal.written}" if literal.written else "")

    def _is_call(self, token: Token) -> bool:
        if not self.lexer.peek_second().is_symbol("("):
            return False
        return token.text != "text" and token.text not in KIND_TESTS

    def _call(self) -> FunctionCall:
        token = self.lexer.take()
        name = self._function_name(token)
        signature = FUNCTIONS[name]
        self.enter(token)
        self.lexer.take()
        arguments: list[Expression] = []
        places: list[Token] = []
        while not self.lexer.peek().is_symbol(")"):
            if arguments:
                self.expect(",", " or ')'")
            places.append(self.lexer.peek())
            arguments.append(self._argument(name, signature, len(arguments)))
        self.lexer.take()
        self._check_arity(token, name, signature, len(arguments))
        if name == "matches":
            self._check_pattern(places[1], arguments)
        following = self.lexer.peek()
        if following.is_symbol("/", "//", "["):
            raise self.unsupported("a path that starts with a function is", following)
        self.leave()
        return FunctionCall(name, tuple(arguments))

    def _check_arity(self, token: Token, name: str, signature: Signature, count: int) -> None:
        if not signature.takes(count):
            given = f"{count} argument{'' if count == 1 else 's'}"
            raise self.refusal(
                "arity", f"{name}() is called with {given}", token.offset, signature.arity
            )
        if count == 0 and not self.scope.context:
            raise self.refusal(
                "no-context",
                f"{name}() has nothing here that it could be about",
                token.offset,
                f"{name}($variable)",
            )

    def _argument(self, name: str, signature: Signature, index: int) -> Expression:
        token = self.lexer.peek()
        argument = self.condition()
        expected = signature.argument(index)
        is_right = (
            isinstance(argument, Literal) and isinstance(argument.value, str)
            if expected in (ArgumentKind.PATTERN, ArgumentKind.FLAGS)
            else not self.kinds_of(argument) & ~_ACCEPTED[expected]
        )
        if not is_right:
            raise self.refusal(
                "type",
                f"argument {index + 1} of {name}() is of the wrong type",
                token.offset,
                expected.value,
            )
        return argument

    def _check_pattern(self, place: Token, arguments: list[Expression]) -> None:
        pattern, *flags = [
            str(argument.value) for argument in arguments[1:] if isinstance(argument, Literal)
        ]
        try:
            check_pattern(pattern, "".join(flags), self.limits.pattern_max)
        except PatternError as error:
            raise self.refusal(
                "pattern", str(error), place.offset, "a regular expression of XPath 2.0"
            ) from None

    def _function_name(self, token: Token) -> str:
        text = token.text
        if text.startswith("Q{"):
            namespace, local = self.qualified_uri(token), text[text.index("}") + 1 :]
        else:
            prefix, colon, local = text.rpartition(":")
            namespace = self.namespace_of(prefix, token.offset) if colon else FUNCTION_NAMESPACE
        if namespace == FUNCTION_NAMESPACE:
            if local in FUNCTIONS:
                return local
            if local in ("position", "last"):
                raise self.unsupported("a position is", token, "a condition on names and values")
        close = get_close_matches(local, FUNCTIONS, n=1)
        raise self.refusal(
            "unknown-function",
            f"there is no function {text}()",
            token.offset,
            f"{close[0]}()" if close else "one of " + ", ".join(FUNCTIONS),
        )

    def _refuse_construct(self, token: Token) -> None:
        following = self.lexer.peek_second()
        if token.text in _CONSTRUCTS and (
            following.is_symbol("(") or following.kind is TokenKind.VARIABLE
        ):
            raise self.unsupported(_CONSTRUCTS[token.text], token)
        if token.text in ("for", "let") and following.kind is TokenKind.VARIABLE:
            raise self.refusal(
                "syntax",
                f"'{token.text}' cannot stand in a condition",
                token.offset,
                "a path, a literal or a function call",
            )
        is_named = following.kind is TokenKind.NAME and self.lexer.after(following).is_symbol("{")
        if token.text in _COMPUTED and (is_named or following.is_symbol("{")):
            raise self.unsupported(
                f"a computed constructor ({token.text} {{ }}) is",
                token,
                "a direct constructor, <name>…</name>",
            )

    def _refuse_operand(self, token: Token) -> NoReturn:
        if token.kind is TokenKind.SYMBOL and token.text in _MISSPELT:
            raise self.refusal(
                "syntax", f"'{token.text}' is not an operator", token.offset, _MISSPELT[token.text]
            )
        raise self.unexpected("a path, a literal or a function call")


_ACCEPTED = {
    ArgumentKind.STRING: NODES | ItemKind.STRING,
    ArgumentKind.STRINGS: NODES | ItemKind.STRING,
    ArgumentKind.ATOM: NODES | ATOMS,
    ArgumentKind.NODES: NODES,
    ArgumentKind.CONDITION: NODES | ATOMS,
}


def _joined(kind: type[And] | type[Or], parts: list[Expression]) -> Expression:
    """One And or Or of all parts; parts of the same kind become parts of the whole."""
    if len(parts) == 1:
        return parts[0]
    flat: list[Expression] = []
    for part in parts:
        if isinstance(part, kind):
            flat.extend(part.parts)
        else:
            flat.append(part)
    return kind(tuple(flat))


def _written(text: str, value: float) -> str:
    """How an integer or decimal literal is written, where xs:double would be written otherwise."""
    if "e" in text.lower():
        return ""
    whole, _, fraction = text.partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    canonical = f"{whole}.{fraction}" if fraction else whole
    return "" if canonical == number_text(value) else canonical
