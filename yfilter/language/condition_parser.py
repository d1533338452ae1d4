"""Parses conditions and values: literals, calls, parentheses, ``if`` and ``some``."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Container
from decimal import Decimal
from itertools import count
from math import isinf

from yfilter.language.functions import (
    FUNCTIONS,
    LEFT_OUT,
    PATTERN_FUNCTIONS,
    ArgumentKind,
    Signature,
)
from yfilter.language.item_kinds import (
    ANYTHING,
    ATOMS,
    NODES,
    TEMPORAL,
    ItemKind,
    Kinds,
    kinds_of_case,
)
from yfilter.language.namespaces import (
    CODEPOINT_COLLATION,
    FUNCTION_NAMESPACE,
    MATH_NAMESPACE,
    SCHEMA_NAMESPACE,
)
from yfilter.language.operator_parser import OperatorParser
from yfilter.language.other_functions import CONTEXT_FUNCTIONS, signature_of, type_result
from yfilter.language.path_parser import KIND_TESTS
from yfilter.language.pattern_syntax import PatternError
from yfilter.language.patterns import check_pattern, check_replacement
from yfilter.language.query_ast import (
    ERROR_VARIABLES,
    CatchClause,
    Conditional,
    Expression,
    FunctionCall,
    Literal,
    Or,
    Origin,
    PathExpression,
    Quantified,
    Sequence,
    SequenceType,
    TryCatch,
    TypeCase,
    Typed,
    Typeswitch,
    UserCall,
)
from yfilter.language.query_lexer import NCNAME
from yfilter.language.suggestions import function_suggestion
from yfilter.language.tokens import Token, TokenKind
from yfilter.language.trees import flat

_UPDATES = frozenset(("copy", "delete", "insert", "rename", "replace"))
_OPENING_WORDS = frozenset(
    ("if", "some", "every", "for", "let", "switch", "try", "typeswitch", *_UPDATES)
)
_NOT_CALLS = frozenset((*KIND_TESTS, "item", "schema-element", "schema-attribute"))
# How many arguments these have with a collation.
_COLLATED = {
    **dict.fromkeys(("min", "max", "distinct-values"), 2),
    **dict.fromkeys(("compare", "contains", "starts-with", "ends-with", "deep-equal"), 3),
    **dict.fromkeys(("substring-before", "substring-after", "index-of"), 3),
}
_ONE_VALUE = SequenceType("xs:anyAtomicType", None, None, "?")
_NUMBER_LENGTH_MAX = 64
_OPERAND = "a path, a literal or a function call"


class ConditionParser(OperatorParser):
    """Adds values and conditions to operators."""

    @abstractmethod
    def construction(self) -> Expression | None:
        """A constructor or a FLWOR expression, if the next token begins one."""

    @abstractmethod
    def direct_constructor(self) -> Expression:
        """A constructor in the form of XML; the next token is its ``<``."""

    @abstractmethod
    def updating(self) -> Expression | None:
        """``copy … modify … return …``, or an updating expression, if the next token begins one."""

    @abstractmethod
    def user_call(self, given: tuple[Expression, ...] = ()) -> UserCall | None:
        """A call of a declared function, if the next token is the name of one."""

    # Of the whole profile, with their flags, and what they come to; see ProfileLimits.
    _patterns: frozenset[tuple[str, ...]] = frozenset()
    _ranges = 0
    base_uri: str | None = None  # as the prolog declares it

    def condition(self) -> Expression:
        return self.sequence()

    def sequence(self) -> Expression:
        """One expression, or several with commas between them."""
        parts = self.listed(self.expression)
        return parts[0] if len(parts) == 1 else Sequence(flat(parts, Sequence))

    def enclosed(self, opening: str = "{", *, may_be_empty: bool = False) -> Expression:
        """A sequence in braces, or in parentheses."""
        self.expect(opening)
        closing = "}" if opening == "{" else ")"
        is_empty = may_be_empty and self.lexer.peek().is_symbol(closing)
        inside = Sequence(()) if is_empty else self.sequence()
        self.expect(closing, " or an operator")
        return inside

    def expression(self) -> Expression:
        token = self.lexer.peek()
        if token.text in _OPENING_WORDS and token.kind is TokenKind.NAME:
            following = self.lexer.peek_second()
            if token.text == "if" and following.is_symbol("("):
                return self._conditional()
            if token.text in ("some", "every") and following.kind is TokenKind.VARIABLE:
                return self._quantified()
            if token.text == "switch" and following.is_symbol("("):
                return self._switch()
            if token.text == "try" and following.is_symbol("{"):
                return self._try()
            if token.text == "typeswitch" and following.is_symbol("("):
                return self._typeswitch()
            if token.text in _UPDATES and (found := self.updating()) is not None:
                return found
            if token.text in ("for", "let") and following.kind is TokenKind.VARIABLE:
                flwor = self.construction()
                assert flwor is not None
                return flwor
        found = self.binary(0)
        self.refuse_operator()
        return found

    def primary(self) -> Expression | None:
        """What a path may start with that is neither a variable nor a step; None if none."""
        token = self.lexer.peek()
        if token.kind is TokenKind.STRING:
            return Literal(self.string_value(self.lexer.take()))
        if token.kind is TokenKind.NUMBER:
            return self._number(self.lexer.take())
        if token.kind is TokenKind.NAME:
            if self._is_call(token):
                return self.user_call() or self._call()
            return self.construction()
        if token.text == "(":
            return self._parenthesised()
        if token.text == "<":
            return self.direct_constructor()
        if token.is_symbol(".") and not self.scope.context:
            raise self.refusal(
                "no-context", "there is no context item here", token.offset, "a variable, or '/'"
            )
        if not token.is_symbol("/", "//", "..", "@", "*", *((".",) if self.scope.context else ())):
            self.refuse_misspelt(token)
            raise self.unexpected(_OPERAND)
        return None

    # -- constructs of words

    def _conditional(self) -> Conditional:
        self.enter(self.lexer.take())
        condition = self.enclosed("(")
        self.expect_word("then")
        consequence = self.expression()
        self.expect_word("else")
        alternative = self.expression()
        self.leave()
        return Conditional(condition, consequence, alternative)

    def _typeswitch(self) -> Typeswitch:
        self.enter(self.lexer.take())
        operand = self.enclosed("(")
        kinds = self.kinds_of(operand)
        cases: list[TypeCase] = []
        while not cases or self.lexer.peek().is_word("case"):
            self.expect_word("case")
            name = ""
            if self.lexer.peek().kind is TokenKind.VARIABLE:
                name = self.new_variable()
                self.expect_word("as")
            types = self.listed(self.sequence_type, "|")
            cases.append(self._case(name, tuple(types), kinds))
        self.expect_word("default")
        name = self.new_variable() if self.lexer.peek().kind is TokenKind.VARIABLE else ""
        cases.append(self._case(name, (), kinds))
        self.leave()
        return Typeswitch(operand, tuple(cases))

    def _switch(self) -> Typeswitch:
        """``switch (a) case b return c default return d`` as what it is short for: ``typeswitch
        (data(a)) case $s as xs:anyAtomicType? return if (deep-equal($s, b)) then c else d …``."""
        self.enter(self.lexer.take())
        operand = FunctionCall("data", (self.enclosed("("),))
        outer = self.scope
        name = next(
            name
            for number in count(1)
            if (name := f"switch-{number}") not in (*outer.variables, *self.declared)
        )
        self.scope = outer.with_variable(name, ATOMS)
        chosen = PathExpression(Origin.VARIABLE, (), name)
        cases: list[tuple[Expression, Expression]] = []
        while not cases or self.lexer.peek().is_word("case"):
            values: list[Expression] = []
            while not values or self.lexer.peek().is_word("case"):
                self.expect_word("case")
                value = FunctionCall("data", (self.expression(),))
                equal = (chosen, Typed(value, _ONE_VALUE, True))
                values.append(FunctionCall("deep-equal", equal))
            condition = values[0] if len(values) == 1 else Or(tuple(values))
            self.expect_word("return")
            cases.append((condition, self.expression()))
        self.expect_word("default")
        self.expect_word("return")
        result = self.expression()
        for condition, consequence in reversed(cases):
            result = Conditional(condition, consequence, result)
        self.scope = outer
        self.leave()
        wrong = TypeCase(name, (), Typed(chosen, SequenceType("empty-sequence", None, None), True))
        return Typeswitch(operand, (TypeCase(name, (_ONE_VALUE,), result), wrong))

    def _try(self) -> TryCatch:
        self.enter(self.lexer.take())
        body = self.enclosed(may_be_empty=True)
        clauses: list[CatchClause] = []
        outer = self.scope
        while not clauses or self.lexer.peek().is_word("catch"):
            self.expect_word("catch")
            tests = self.listed(lambda: self._name_test(attribute=True), "|")
            for name in ERROR_VARIABLES:
                self.scope = self.scope.with_variable(name, ANYTHING)
            clauses.append(CatchClause(tuple(tests), self.enclosed(may_be_empty=True)))
            self.scope = outer
        self.leave()
        return TryCatch(body, tuple(clauses))

    def _case(self, name: str, types: tuple[SequenceType, ...], operand: Kinds) -> TypeCase:
        """The case whose types have been read."""
        self.expect_word("return")
        outer = self.scope
        if name:
            self.scope = outer.with_variable(name, kinds_of_case(types, operand))
        result = self.expression()
        self.scope = outer
        return TypeCase(name, types, result)

    def _quantified(self) -> Quantified:
        token = self.lexer.take()
        self.enter(token)
        outer = self.scope
        bindings: list[tuple[str, Expression]] = []
        while not bindings or self.takes(","):
            name = self.new_variable()
            declared = self.declared_type()
            self.expect_word("in")
            source = self.typed_value(declared, each=True)
            bindings.append((name, source))
            self.scope = self.scope.with_variable(name, self.kinds_of(source))
        self.expect_word("satisfies")
        condition = self.expression()
        self.scope = outer
        self.leave()
        return Quantified(token.text == "every", tuple(bindings), condition)

    @abstractmethod
    def new_variable(self, beside: Container[str] = ()) -> str:
        """The name in the tree of a variable about to be bound; none of ``beside``."""

    @abstractmethod
    def declared_type(self) -> SequenceType | None:
        """A type behind ``as``, if there is one."""

    @abstractmethod
    def typed_value(self, declared: SequenceType | None, *, each: bool) -> Expression:
        """An expression, with the type that is declared for it."""

    # -- literals and parentheses

    def _pragmas(self) -> Expression:
        """``(# p:name content #) { a }``: here no pragma says anything, so it is ``a``."""
        text = self.lexer.text
        while text.startswith("(#", place := self.lexer.peek().offset):
            end = text.find("#)", place)
            name = re.match(rf"\s*({NCNAME}):{NCNAME}(?=\s|#)", text[place + 2 : end + 1])
            if end < 0 or name is None:
                wanted = "the name of a pragma, with a prefix, and '#)'"
                raise self.refusal("syntax", "this is no pragma", place, wanted)
            self.namespace_of(name[1], place)
            self.lexer.offset = end + 2
        self.enter(self.lexer.peek())
        if (empty := self.lexer.peek_second()).is_symbol("}"):
            what = "a pragma, which says nothing here, around nothing (XQST0079)"
            raise self.refusal("syntax", what, empty.offset, "an expression")
        inside = self.enclosed()
        self.leave()
        return inside

    def _parenthesised(self) -> Expression:
        if self.lexer.text.startswith("(#", self.lexer.peek().offset):
            return self._pragmas()
        self.enter(self.lexer.peek())
        inside = self.enclosed("(", may_be_empty=True)
        self.leave()
        return inside

    def _number(self, token: Token) -> Literal:
        text = token.text
        is_double = "e" in text.lower()
        if len(text) > _NUMBER_LENGTH_MAX or (is_double and isinf(float(text))):
            what = "this number is too large"
            wanted = f"a number of at most {_NUMBER_LENGTH_MAX} characters"
            raise self.refusal("number", what, token.offset, wanted)
        if is_double:
            return Literal(float(text))
        return Literal(Decimal(text)) if "." in text else Literal(int(text))

    # -- function calls

    def _is_call(self, token: Token) -> bool:
        return self.lexer.peek_second().is_symbol("(") and token.text not in _NOT_CALLS

    def arrow_call(self, first: Expression) -> Expression:
        return self.user_call((first,)) or self._call((first,))

    def arguments(self) -> list[tuple[Token, Expression]]:
        """Those in the parentheses that are next, each with the token that it begins with."""
        self.lexer.take()
        found: list[tuple[Token, Expression]] = []
        while not self.takes(")"):
            if found:
                self.expect(",", " or ')'")
            found.append((self.lexer.peek(), self.expression()))
        return found

    def _call(self, given: tuple[Expression, ...] = ()) -> FunctionCall:
        token = self.lexer.take()
        name = self._function_name(token)
        signature = signature_of(name)
        assert signature is not None
        self.enter(token)
        own = self.arguments()
        places = [token] * len(given) + [place for place, _ in own]
        arguments = [*given, *(argument for _, argument in own)]
        if len(arguments) == _COLLATED.get(name):
            self._check_collation(places[-1], arguments.pop())
        self._check_arity(token, name, signature, len(arguments))
        for index, argument in enumerate(arguments):
            self._check_argument(places[index], argument, name, signature, index)
        if name in PATTERN_FUNCTIONS and len(arguments) > 1:
            self._check_pattern(name, places[1], arguments)
        self.leave()
        if name == "xs:QName":
            known = self.as_qname(arguments[0], places[0])
            if isinstance(known, FunctionCall) and known.name == "QName":
                return known
            return self.at(token, FunctionCall(name, (known,)))
        if name == "tokenize" and len(arguments) == 1:  # at white space
            arguments = [FunctionCall("normalize-space", tuple(arguments)), Literal(" ")]
        if name in CONTEXT_FUNCTIONS and len(arguments) < len(signature.arguments):
            self._check_context(token, name)
            arguments.append(PathExpression(Origin.CONTEXT, ()))
        if name == "resolve-uri" and len(arguments) == 1 and self.base_uri is not None:
            arguments.append(Literal(self.base_uri))
        return self.at(token, FunctionCall(name, tuple(arguments)))

    def _check_collation(self, place: Token, collation: Expression) -> None:
        if not isinstance(collation, Literal) or collation.value != CODEPOINT_COLLATION:
            raise self.unsupported("a collation is", place, f'"{CODEPOINT_COLLATION}"')

    def _check_arity(self, token: Token, name: str, signature: Signature, count: int) -> None:
        if not signature.takes(count):
            given = f"{count} argument{'' if count == 1 else 's'}"
            raise self.refusal(
                "arity", f"{name}() is called with {given}", token.offset, signature.arity
            )
        if count == 0 and (signature.context or name in ("position", "last")):
            self._check_context(token, name)

    def _check_context(self, token: Token, name: str) -> None:
        if not self.scope.context:
            what = f"{name}() has nothing here that it could be about"
            raise self.refusal("no-context", what, token.offset, f"{name}($variable)")

    def _check_argument(
        self, token: Token, argument: Expression, name: str, signature: Signature, index: int
    ) -> None:
        expected = signature.argument(index)
        is_right = (
            isinstance(argument, Literal) and isinstance(argument.value, str)
            if expected in (ArgumentKind.PATTERN, ArgumentKind.FLAGS)
            else self._is_accepted(self.kinds_of(argument), _ACCEPTED[expected])
        )
        if not is_right:
            what = f"argument {index + 1} of {name}() is of the wrong type"
            raise self.refusal("type", what, token.offset, expected.value)

    def _is_accepted(self, kinds: Kinds, accepted: Kinds) -> bool:
        """Whether a value can be of the right kind; the empty sequence always is."""
        return not kinds or bool(kinds & accepted)

    def _check_pattern(self, name: str, place: Token, arguments: list[Expression]) -> None:
        flags_at = 3 if name == "replace" else 2
        pattern, *flags = [
            str(argument.value)
            for argument in (arguments[1], *arguments[flags_at:])
            if isinstance(argument, Literal)
        ]
        try:
            ranges = check_pattern(
                pattern,
                "".join(flags),
                self.limits.pattern_max,
                for_matches=name == "matches",
            )
            if (pattern, *flags) not in self._patterns:
                self._patterns |= {(pattern, *flags)}
                self._ranges += ranges
            if self._ranges > self.limits.ranges_max:
                raise PatternError("the regular expressions are too large together")
            if name == "replace" and isinstance(arguments[2], Literal):
                check_replacement(str(arguments[2].value), "".join(flags))
        except PatternError as error:
            raise self.refusal(
                "pattern", str(error), place.offset, "a regular expression of XPath 3.1"
            ) from None

    def _function_name(self, token: Token) -> str:
        text = token.text
        namespace, local = self.resolved(token, self.function_namespace)
        if namespace == FUNCTION_NAMESPACE:
            if ":" not in local and signature_of(local):
                return local
            if local in LEFT_OUT:
                why, instead = LEFT_OUT[local]
                what = f"{text}() is not in the profile language: {why}"
                raise self.refusal("unsupported", what, token.offset, instead)
        if namespace == MATH_NAMESPACE and f"math:{local}" in FUNCTIONS:
            return f"math:{local}"
        if namespace == SCHEMA_NAMESPACE and type_result(f"xs:{local}"):
            return f"xs:{local}"
        wanted = f"{'xs:' * (namespace == SCHEMA_NAMESPACE)}{local}"
        what = f"there is no function {text}()"
        raise self.refusal("unknown-function", what, token.offset, function_suggestion(wanted))


_ACCEPTED = {
    ArgumentKind.STRING: NODES | ItemKind.STRING,
    ArgumentKind.STRINGS: NODES | ItemKind.STRING,
    ArgumentKind.ATOM: ANYTHING,
    ArgumentKind.ATOMS: ANYTHING,
    ArgumentKind.ITEMS: ANYTHING,
    ArgumentKind.NUMBER: NODES | ItemKind.NUMBER,
    ArgumentKind.INTEGER: NODES | ItemKind.NUMBER,
    ArgumentKind.TEMPORAL: NODES | TEMPORAL,
    ArgumentKind.NODES: NODES,
    ArgumentKind.CONDITION: ANYTHING & ~(TEMPORAL | ItemKind.OTHER),
}
