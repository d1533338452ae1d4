"""Parses declared functions, ``declare function local:f($a as type) as type { … };``, their calls,
and declared variables, which are functions without parameters that are called once.

What is declared may call functions that are declared behind it, so its calls are looked at when the
prolog has ended; all others are calls of the whole library.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches

from formats.names import XML_NAMESPACE
from yfilter.language.flwor_parser import FlworParser
from yfilter.language.item_kinds import NOTHING, function_key, kinds_of_type
from yfilter.language.namespaces import (
    FUNCTION_NAMESPACE,
    LOCAL_NAMESPACE,
    MATH_NAMESPACE,
    SCHEMA_NAMESPACE,
    braced,
)
from yfilter.language.path_assembly import constructs, size_of
from yfilter.language.path_parser import KIND_TESTS, SCHEMA_TESTS
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.query_ast import (
    Expression,
    FunctionCall,
    FunctionDeclaration,
    Literal,
    Origin,
    PathExpression,
    Sequence,
    SequenceType,
    Typed,
    UserCall,
)
from yfilter.language.subexpressions import all_within
from yfilter.language.tokens import Token, TokenKind

_SHORT_STEPS_MAX = 64

# What no function without a prefix is called.
_NO_FUNCTIONS = frozenset(
    (
        *(*KIND_TESTS, *SCHEMA_TESTS, "namespace-node", "item", "empty-sequence", "function"),
        *("if", "switch", "typeswitch"),
    )
)
# Nobody declares functions in these.
_RESERVED = frozenset(
    (
        "",
        FUNCTION_NAMESPACE,
        MATH_NAMESPACE,
        SCHEMA_NAMESPACE,
        f"{SCHEMA_NAMESPACE}-instance",
        XML_NAMESPACE,
    )
)


class FunctionParser(FlworParser):
    """Adds declared functions to FLWOR expressions."""

    def __init__(self, text: str, limits: ProfileLimits) -> None:
        super().__init__(text, limits)
        self._functions: dict[tuple[str, int], FunctionDeclaration] = {}
        self._library: tuple[FunctionDeclaration, ...] = ()
        self._in_prolog = True
        self._variables: list[tuple[Token, str]] = []
        self._early_calls: list[tuple[Token, str, int]] = []

    def user_call(self, given: tuple[Expression, ...] = ()) -> UserCall | None:
        name = self._name_of_user(self.lexer.peek())
        if name is None:
            return None
        token = self.lexer.take()
        self.enter(token)
        arguments = [*given, *(argument for _, argument in self.arguments())]
        self.leave()
        if self._in_prolog:
            self._early_calls.append((token, name, len(arguments)))
        else:
            self._check_call(token, name, len(arguments))
        return self.at(token, UserCall(name, tuple(arguments), self._library))

    def declare_function(self) -> None:
        """The declaration behind ``declare function``, up to its semicolon."""
        token = self.lexer.peek()
        name = self._name_of_user(token) if token.kind is TokenKind.NAME else None
        if token.kind is TokenKind.NAME and not self.lexer.peek_second().is_symbol("("):
            self.lexer.take()
            raise self.unexpected("'('")
        if token.kind is TokenKind.NAME and name is None:
            is_bare = ":" not in token.text and not self.function_namespace
            fault = "XQST0060" if is_bare else "XQST0045"
            what = f"a profile cannot declare a function {token.text}() ({fault})"
            wanted = f"a prefix of your own, such as local:{token.text.rpartition(':')[2]}"
            raise self.refusal("unsupported", what, token.offset, wanted)
        if name is None:
            raise self.unexpected("the name of a function")
        self.lexer.take()
        self.enter(token)
        outer = self.scope
        calls = {name: kinds for name, kinds in outer.variables.items() if name.startswith("$")}
        self.scope = replace(outer, variables=calls, context=NOTHING)
        parameters = self._parameters()
        result = self.declared_type()
        if self.lexer.peek().is_word("external"):
            raise self.unsupported("an external function is", self.lexer.peek(), "'{' and a body")
        body = self.enclosed()
        self.scope = outer
        self.leave()
        self._add(token, FunctionDeclaration(name, parameters, result, body))

    def variable_call(self, name: str) -> UserCall:
        return UserCall(_key(name), (), self._library)

    def declare_variable(self) -> None:
        """``$name as type := expression``; what is short stands where its name does, of the rest
        the value is found once."""
        token = self.lexer.peek()
        name = self.new_variable(self.declared)
        declared = self.declared_type()
        if self.lexer.peek().is_word("external"):
            raise self.unsupported("an external variable is", self.lexer.peek(), "':=' and a value")
        self.expect(":=")
        outer = self.scope
        self.scope = outer.with_context(NOTHING)
        value = self.typed_value(declared, each=False)
        self.scope = outer
        if _is_short(value):
            self.declared[name] = value, size_of(value)
            return
        self.declared[name] = None
        self._functions[_key(name), 0] = FunctionDeclaration(_key(name), (), None, value)
        self._variables.append((token, _key(name)))
        self.scope = outer.with_variable(function_key(_key(name), 0), self.kinds_of(value))

    @property
    def has_functions(self) -> bool:
        return bool(self._functions)

    def end_functions(self) -> None:
        """The prolog has ended: all functions are known."""
        for token, name, count in self._early_calls:
            self._check_call(token, name, count)
        for token, name in self._variables:
            if name in self._called_by(name):
                raise self.refusal(
                    "unbound-variable", f"the value of ${token.text} needs itself", token.offset
                )
        self._library = tuple(self._functions.values())
        self._in_prolog = False

    def _called_by(self, name: str) -> set[str]:
        """The declared functions and variables that a variable needs."""
        found: set[str] = set()
        reached = [self._functions[name, 0]]
        while reached:
            for call in all_within(reached.pop().body):
                if isinstance(call, UserCall) and call.name not in found:
                    found.add(call.name)
                    reached += (one for one in self._functions.values() if one.name == call.name)
        return found

    def _parameters(self) -> tuple[tuple[str, SequenceType | None], ...]:
        self.expect("(")
        parameters: list[tuple[str, SequenceType | None]] = []
        while not self.takes(")"):
            if parameters:
                self.expect(",", " or ')'")
            named = [self.renamed.get(one, one) for one, _ in parameters]
            name = self.new_variable(named)
            type_ = self.declared_type()
            parameters.append((name, type_))
            self.scope = self.scope.with_variable(name, kinds_of_type(type_))
        return tuple(parameters)

    def _add(self, token: Token, function: FunctionDeclaration) -> None:
        key = function.name, len(function.parameters)
        if key in self._functions:
            what = f"the function {token.text}() with {_count(key[1])} is declared twice"
            raise self.refusal("duplicate-declaration", what, token.offset)
        self._functions[key] = function

    def _name_of_user(self, token: Token) -> str | None:
        """The name of a function that is not of the language, as it stands in the tree."""
        if token.text in _NO_FUNCTIONS:
            what = f"{token.text}() is no function"
            raise self.refusal("syntax", what, token.offset, "the name of a function")
        namespace, local = self.resolved(token, self.function_namespace)
        if namespace in _RESERVED or local == "*":
            return None
        return f"local:{local}" if namespace == LOCAL_NAMESPACE else braced(namespace) + local

    def _check_call(self, token: Token, name: str, count: int) -> None:
        if (name, count) in self._functions:
            return
        takes = [_count(arity) for known, arity in self._functions if known == name]
        if takes:
            what = f"{token.text}() is called with {_count(count)}"
            raise self.refusal("arity", what, token.offset, " or ".join(takes))
        known_names = [known for known, _ in self._functions if not known.startswith("$")]
        names = {known.rpartition("}")[2]: known for known in known_names}
        close = get_close_matches(name.rpartition("}")[2], names, n=1)
        what = f"there is no function {token.text}()"
        wanted = f"{close[0]}()" if close else f"declare function {token.text}(…) {{ … }}; in front"
        raise self.refusal("unknown-function", what, token.offset, wanted)


def _key(variable: str) -> str:
    """What a declared variable is called in the library."""
    return f"${variable}" if variable.startswith("Q{") else f"$Q{{}}{variable}"


def _is_short(value: Expression) -> bool:
    """Whether it costs as little as a name: a literal, some of them, a path from the message."""
    match value:
        case Literal():
            return True
        case FunctionCall(name, (Literal(),)):
            return name.startswith("xs:")
        case Typed(operand):
            return value.treat and _is_short(operand)
        case Sequence(parts):
            literals = all(isinstance(part, Literal) for part in parts)
            return literals and len(parts) <= _SHORT_STEPS_MAX
        case PathExpression(Origin.MESSAGE):
            return size_of(value) <= _SHORT_STEPS_MAX and not constructs(value)
    return False


def _count(arguments: int) -> str:
    return f"{arguments or 'no'} argument{'' if arguments == 1 else 's'}"
