"""Parses declared functions: ``declare function local:f($a as type) as type { … };`` and calls.

A body may call functions that are declared behind it, so calls in bodies are looked at when the
prolog has ended; all others are calls of the whole library.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches

from formats.names import XML_NAMESPACE
from yfilter.language.flwor_parser import FlworParser
from yfilter.language.item_kinds import NOTHING, kinds_of_type
from yfilter.language.namespaces import (
    FUNCTION_NAMESPACE,
    LOCAL_NAMESPACE,
    SCHEMA_NAMESPACE,
    braced,
)
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.query_ast import (
    Expression,
    FunctionDeclaration,
    SequenceType,
    UserCall,
)
from yfilter.language.query_lexer import Token, TokenKind

# Nobody declares functions in these.
_RESERVED = frozenset(
    ("", FUNCTION_NAMESPACE, SCHEMA_NAMESPACE, f"{SCHEMA_NAMESPACE}-instance", XML_NAMESPACE)
)


class FunctionParser(FlworParser):
    """Adds declared functions to FLWOR expressions."""

    def __init__(self, text: str, limits: ProfileLimits) -> None:
        super().__init__(text, limits)
        self._functions: dict[tuple[str, int], FunctionDeclaration] = {}
        self._library: tuple[FunctionDeclaration, ...] = ()
        self._in_function = False
        self._in_prolog = True
        self._early_calls: list[tuple[Token, str, int]] = []

    def user_call(self) -> UserCall | None:
        name = self._name_of_user(self.lexer.peek())
        if name is None:
            return None
        token = self.lexer.take()
        self.enter(token)
        self.lexer.take()
        arguments: list[Expression] = []
        while not self.lexer.peek().is_symbol(")"):
            if arguments:
                self.expect(",", " or ')'")
            arguments.append(self.expression())
        self.lexer.take()
        self.leave()
        if self._in_function:
            self._early_calls.append((token, name, len(arguments)))
        elif self._in_prolog:
            raise self.unsupported("a call in the value of a variable is", token, "'let'")
        else:
            self._check_call(token, name, len(arguments))
        return UserCall(name, tuple(arguments), self._library)

    def declare_function(self) -> None:
        """The declaration behind ``declare function``, up to its semicolon."""
        token = self.lexer.peek()
        name = self._name_of_user(token) if token.kind is TokenKind.NAME else None
        if token.kind is TokenKind.NAME and name is None:
            raise self.refusal(
                "unsupported",
                f"a profile cannot declare a function {token.text}()",
                token.offset,
                f"a prefix of your own, such as local:{token.text.rpartition(':')[2]}",
            )
        if name is None:
            raise self.unexpected("the name of a function")
        self.lexer.take()
        self.enter(token)
        outer = self.scope
        self.scope = replace(outer, variables={}, context=NOTHING)
        parameters = self._parameters()
        result = self.declared_type()
        if self.lexer.peek().is_word("external"):
            raise self.unsupported("an external function is", self.lexer.peek(), "'{' and a body")
        self.expect("{")
        self._in_function = True
        body = self.sequence()
        self._in_function = False
        self.expect("}", " or an operator")
        self.scope = outer
        self.leave()
        self._add(token, FunctionDeclaration(name, parameters, result, body))

    @property
    def has_functions(self) -> bool:
        return bool(self._functions)

    def end_functions(self) -> None:
        """The prolog has ended: all functions are known."""
        for token, name, count in self._early_calls:
            self._check_call(token, name, count)
        self._library = tuple(self._functions.values())
        self._in_prolog = False

    def _parameters(self) -> tuple[tuple[str, SequenceType | None], ...]:
        self.expect("(")
        parameters: list[tuple[str, SequenceType | None]] = []
        while not self.lexer.peek().is_symbol(")"):
            if parameters:
                self.expect(",", " or ')'")
            name = self.new_variable()
            type_ = self.declared_type()
            parameters.append((name, type_))
            self.scope = self.scope.with_variable(name, kinds_of_type(type_))
        self.lexer.take()
        return tuple(parameters)

    def _add(self, token: Token, function: FunctionDeclaration) -> None:
        key = function.name, len(function.parameters)
        if key in self._functions:
            raise self.refusal(
                "duplicate-declaration",
                f"the function {token.text}() with {_count(key[1])} is declared twice",
                token.offset,
            )
        self._functions[key] = function

    def _name_of_user(self, token: Token) -> str | None:
        """The name of a function that is not of the language, as it stands in the tree."""
        if token.text.startswith("Q{"):
            namespace, local = self.qualified_uri(token), token.text.rpartition("}")[2]
        else:
            prefix, colon, local = token.text.rpartition(":")
            namespace = self.namespace_of(prefix, token.offset) if colon else FUNCTION_NAMESPACE
        if namespace in _RESERVED or local == "*":
            return None
        return f"local:{local}" if namespace == LOCAL_NAMESPACE else braced(namespace) + local

    def _check_call(self, token: Token, name: str, count: int) -> None:
        if (name, count) in self._functions:
            return
        takes = [_count(arity) for known, arity in self._functions if known == name]
        if takes:
            raise self.refusal(
                "arity",
                f"{token.text}() is called with {_count(count)}",
                token.offset,
                " or ".join(takes),
            )
        names = {known.rpartition("}")[2]: known for known, _ in self._functions}
        close = get_close_matches(name.rpartition("}")[2], names, n=1)
        raise self.refusal(
            "unknown-function",
            f"there is no function {token.text}()",
            token.offset,
            f"{close[0]}()" if close else f"declare function {token.text}(…) {{ … }}; in front",
        )


def _count(arguments: int) -> str:
    return f"{arguments or 'no'} argument{'' if arguments == 1 else 's'}"
