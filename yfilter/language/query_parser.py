"""Text of a profile -> Profile.  Every refusal says where, and what was expected there.

::

    profile    := prolog sequence
    prolog     := (declare namespace p = "uri"; | declare default element namespace "uri";
                  | declare variable $v := …; | declare function local:f($a) { … };)*
    sequence   := expression (, expression)*
    expression := flwor | if | some | every | typeswitch | copy | operators

Paths and operators are read by the classes below; here, from the tightest part of the grammar to
the loosest: conditions, constructors, FLWOR expressions, declared functions, copies with changes,
whole profiles.  The parser is recursive, and bounded by ``ProfileLimits.depth_max``.
``docs/profiles.md`` documents the language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from difflib import get_close_matches
from functools import lru_cache, partial
from itertools import count, islice
from math import isinf
from typing import NamedTuple, TypeAlias

from formats.characters import NAME, is_comment, is_processing_instruction
from formats.name_faults import XMLNS_NAMESPACE
from formats.names import XML_NAMESPACE, QualifiedName
from yfilter.errors import ProfileRefused
from yfilter.graph import graph_query
from yfilter.graph.graph_query import is_graph_query
from yfilter.language import query_ast as ast
from yfilter.language.constants import constants_in, first_fault, may_be_fault
from yfilter.language.constructed_names import lexical_fault, namespace_fault
from yfilter.language.functions import (
    CONTEXT_FUNCTIONS,
    FUNCTIONS,
    LEFT_OUT,
    PATTERN_FUNCTIONS,
    ArgumentKind,
    Signature,
    signature_of,
    type_result,
)
from yfilter.language.higher_order import (
    ARGUMENTS,
    ARITIES,
    AS_ALL,
    AS_ONE,
    FOLD_LEFT,
    FOLDS,
    NESTING,
    OF_EACH,
    OF_PAIRS,
    SORT,
    Inline,
    Means,
    applied,
    bound,
    filtered,
    folded,
    for_each,
    for_each_pair,
    sorted_by,
)
from yfilter.language.item_kinds import (
    ANYTHING,
    ATOMS,
    NODES,
    NOTHING,
    PARENTS,
    TEMPORAL,
    ItemKind,
    Kinds,
)
from yfilter.language.namespaces import (
    CODEPOINT_COLLATION,
    FUNCTION_NAMESPACE,
    INITIAL_NAMESPACES,
    LOCAL_NAMESPACE,
    MATH_NAMESPACE,
    SCHEMA_NAMESPACE,
    SVRL_NAMESPACE,
    WRITTEN_OUT,
    braced,
)
from yfilter.language.operator_parser import OperatorParser, joined
from yfilter.language.path_parser import (
    KIND_TESTS,
    MESSAGE_VARIABLE,
    SCHEMA_TESTS,
    FunctionText,
    Scope,
)
from yfilter.language.pattern_syntax import PatternError
from yfilter.language.patterns import check_pattern, check_replacement
from yfilter.language.profile_limits import (
    DEFAULT_PROFILE_LIMITS,
    DERIVED_PATH_LIMITS,
    ProfileLimits,
    checked_text,
)
from yfilter.language.query_ast import function_key, kinds_of_case
from yfilter.language.query_lexer import NCNAME, WHITE_SPACE, expand_references, read_reference
from yfilter.language.query_text import unparse
from yfilter.language.shape_cache import ShapeCache
from yfilter.language.suggestions import function_suggestion, value_suggestion
from yfilter.language.tokens import Token, TokenKind
from yfilter.language.trees import flat

_UPDATES = frozenset(("copy", "delete", "insert", "rename", "replace"))
_OPENING_WORDS = frozenset(
    ("if", "some", "every", "for", "let", "switch", "try", "typeswitch", *_UPDATES)
)
_CLOSING = frozenset((",", ")", "]", "}"))
_NOT_CALLS = frozenset((*KIND_TESTS, "item", "schema-element", "schema-attribute"))
# How many arguments these have with a collation.
_COLLATED = {
    **dict.fromkeys(("min", "max", "distinct-values"), 2),
    **dict.fromkeys(("compare", "contains", "starts-with", "ends-with", "deep-equal"), 3),
    **dict.fromkeys(("substring-before", "substring-after", "index-of", "contains-token"), 3),
}
_ONE_VALUE = ast.SequenceType("xs:anyAtomicType", None, None, "?")
_NUMBER_LENGTH_MAX = 64
_OPERAND = "a path, a literal or a function call"
_WITH_PREFIX = {MATH_NAMESPACE: "math", SVRL_NAMESPACE: "svrl"}
_ACCEPTED = {
    ArgumentKind.STRING: NODES | ItemKind.STRING,
    ArgumentKind.PATTERN: NODES | ItemKind.STRING,
    ArgumentKind.FLAGS: NODES | ItemKind.STRING,
    ArgumentKind.STRINGS: ANYTHING,
    ArgumentKind.ATOM: ANYTHING,
    ArgumentKind.ATOMS: ANYTHING,
    ArgumentKind.ITEMS: ANYTHING,
    ArgumentKind.NUMBER: NODES | ItemKind.NUMBER,
    ArgumentKind.INTEGER: NODES | ItemKind.NUMBER,
    ArgumentKind.TEMPORAL: NODES | TEMPORAL,
    ArgumentKind.NODES: NODES,
    ArgumentKind.CONDITION: ANYTHING & ~(TEMPORAL | ItemKind.OTHER),
}
_TAG_NAME = re.compile(f"{NCNAME}(?::{NCNAME})?")
_CONTENT_MARKUP = re.compile(r"[<{}&]")
# PERF: most attributes; the others are taken apart.
_PLAIN_ATTRIBUTE = re.compile(rf"""[ \t\n]+({NCNAME}(?::{NCNAME})?) ?= ?"([^"{{}}]*+)"(?!")""")
_VALUE_MARKUP = re.compile(r"[<{}&\"'\t\n\r]")
_Namespaces: TypeAlias = tuple[tuple[str, str], ...]
_KINDS = {
    "element": ast.NodeKind.ELEMENT,
    "attribute": ast.NodeKind.ATTRIBUTE,
    "text": ast.NodeKind.TEXT,
    "comment": ast.NodeKind.COMMENT,
    "processing-instruction": ast.NodeKind.PROCESSING_INSTRUCTION,
}
_NODES = {
    ast.NodeKind.ELEMENT: "element",
    ast.NodeKind.ATTRIBUTE: "attribute",
    ast.NodeKind.PROCESSING_INSTRUCTION: "processing instruction",
}
_NAMED = frozenset(("element", "attribute", "processing-instruction"))
_AS_THEY_ARE = frozenset(("ordered", "unordered"))
_COMPUTED_LEFT_OUT = frozenset(("document", "validate"))
_WORDS = frozenset((*_KINDS, *_AS_THEY_ARE, *_COMPUTED_LEFT_OUT))
_LEFT_OUT = {"group": "a second group by is", "count": "a count clause is"}
_SHORT_STEPS_MAX = 64
# Names that no function without a prefix has.
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
        SVRL_NAMESPACE,
        f"{SCHEMA_NAMESPACE}-instance",
        XML_NAMESPACE,
    )
)
_REFERENCE = re.compile(r"[ \t\n]*#[ \t\n]*([0-9]{1,9})")
_PLACEHOLDER = re.compile(r"[(,][ \t\n]*\?[ \t\n]*[,)]")
_FUNCTION = 'function($a) {…} or a name, such as string#1, or a variable that "let" binds to one'
_PLACES = {
    "into": ast.UpdateKind.INSERT_INTO,
    "before": ast.UpdateKind.INSERT_BEFORE,
    "after": ast.UpdateKind.INSERT_AFTER,
}
# Declarations with one of these words behind them, and two that take a URI.
_SETTINGS = {
    "base-uri": (),
    "default collation": (),
    "boundary-space": ("strip", "preserve"),
    "construction": ("strip", "preserve"),
    "copy-namespaces": ("preserve", "no-preserve"),
    "default order": ("greatest", "least"),
    "ordering": ("ordered", "unordered"),
}
_ENCODING = re.compile("[A-Za-z][A-Za-z0-9._-]*")
_LENIENT_LIMITS = replace(DEFAULT_PROFILE_LIMITS, faults_refused=False)
_SHOWN_MAX = 80  # characters of what is an error
_CODE = r"""(?:"[^"&]*+"|'[^'&]*+')"""
# PERF: a code list, in what a parenthesis has opened; all profiles of a rule set have it.
_LISTED = re.compile(rf"""[ \t\n]*+((?:{_CODE}[ \t\n]*+,[ \t\n]*+){{8,}}+{_CODE})[ \t\n]*+\)""")
# Conditions that are remembered: how many, and of how many characters.
_CONDITIONS_MAX, _KNOWN_LEAST, _KNOWN_MOST = 512, 24, 4_096
_PROLOGS_MAX = 256
_SPACES = re.compile(
    rf"""(?:[ \t\n]*+declare[ ]namespace[ ]{NCNAME}[ ]=[ ]"[^"&{{}}]{{1,256}}+";)++"""
)
# A condition that may refer to declarations of its own profile, or be an update.
_IS_OWN = re.compile(rf"[$<{{#?]|\(:|\b(?:switch|nodes?|value)\b|(?<!\bxs):[{NAME}]+[ \t\n]*\(")
_BRACKET = re.compile(r"""[][]|"[^"]*+"|'[^']*+'""")
_PROFILE = "a path that starts with $msg, '/' or '//'; 'for'; or a constructor"
_CONDITIONS: dict[object, _Known] = {}
_PROLOGS: dict[str, dict[str, str]] = {}


class QueryParser(OperatorParser):
    """The whole language, on top of paths and operators; one parser reads one text."""

    def __init__(self, text: str, limits: ProfileLimits) -> None:
        super().__init__(text, limits)
        # Of the whole profile, with their flags, and what they come to; see ProfileLimits.
        self._patterns: frozenset[tuple[str, ...]] = frozenset()
        self._ranges = 0
        self.base_uri: str | None = None  # as the prolog declares it
        self._clause_count = 0
        self.lets: set[str] = set()
        # Where the 'return' of a FLWOR expression that is the whole yields its result; -1: nowhere.
        self.result_offset = -1
        self.written_out: dict[tuple[str, int], ast.FunctionDeclaration] = {}
        self._functions: dict[tuple[str, int], ast.FunctionDeclaration] = {}
        self._library: tuple[ast.FunctionDeclaration, ...] = ()
        self._in_prolog = True
        self._variables: list[tuple[Token, str]] = []
        self._early_calls: list[tuple[Token, str, int]] = []
        self._made = 0  # names
        self._declared_for = 0
        self._conversions: dict[ast.SequenceType, str] = {}
        self._in_declared = 0
        self._copied = 0  # characters of functions that variables stand for
        self._given: list[tuple[str, ast.Expression]] = []  # arguments of functions applied in part
        self._misplaced: dict[int, tuple[ast.Update, Token]] = {}
        self._ends: dict[int, int] | None = None  # of brackets, by where what is in them begins
        self._spaces: tuple[dict[str, str], frozenset[tuple[str, str]]] = {}, frozenset()

    # ---------------------------------------------------------------------------------------------
    # conditions and values: literals, calls, parentheses, ``if`` and ``some``

    def sequence(self) -> ast.Expression:
        """One expression, or several with commas between them."""
        parts = self.listed(self.expression)
        return parts[0] if len(parts) == 1 else ast.Sequence(flat(parts, ast.Sequence))

    def enclosed(self, opening: str = "{", *, may_be_empty: bool = False) -> ast.Expression:
        """A sequence in braces, or in parentheses."""
        self.expect(opening)
        if opening == "(" and (found := _LISTED.match(self.lexer.text, self.lexer.offset)):
            self.lexer.offset = found.end()
            return _listed(found[1])
        closing = "}" if opening == "{" else ")"
        is_empty = may_be_empty and self.lexer.peek().is_symbol(closing)
        inside = ast.EMPTY if is_empty else self.sequence()
        self.expect(closing, " or an operator")
        return inside

    def expression(self) -> ast.Expression:
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
            if token.text in _UPDATES and (update := self.updating()) is not None:
                return update
            if token.text in ("for", "let") and following.kind is TokenKind.VARIABLE:
                return self._flwor()
        if token.kind is not TokenKind.SYMBOL and self.lexer.peek_second().text in _CLOSING:
            return self._first_step(token)  # PERF: an operand alone, as most arguments are
        found = self.binary(0)
        self.refuse_operator()
        return found

    def primary(self) -> ast.Expression | None:
        """What a path may start with that is neither a variable nor a step; None if none."""
        token = self.lexer.peek()
        if token.kind is TokenKind.STRING:
            return ast.Literal(self.string_value(self.lexer.take()))
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

    def _conditional(self) -> ast.Conditional:
        with self.nested(self.lexer.take()):
            condition = self.enclosed("(")
            self.expect_word("then")
            consequence = self.expression()
            self.expect_word("else")
            alternative = self.expression()
        return ast.Conditional(condition, consequence, alternative)

    def _typeswitch(self) -> ast.Typeswitch:
        with self.nested(self.lexer.take()):
            operand = self.enclosed("(")
            kinds = self.kinds_of(operand)
            cases: list[ast.TypeCase] = []
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
        return ast.Typeswitch(operand, tuple(cases))

    def _switch(self) -> ast.Typeswitch:
        """``switch (a) case b return c default return d`` as what it is short for: ``typeswitch
        (data(a)) case $s as xs:anyAtomicType? return if (deep-equal($s, b)) then c else d …``."""
        with self.nested(self.lexer.take()) as outer:
            operand = ast.FunctionCall("data", (self.enclosed("("),))
            name = next(
                name
                for number in count(1)
                if (name := f"switch-{number}") not in (*outer.variables, *self.declared)
            )
            self.scope = outer.with_variable(name, ATOMS)
            chosen = ast.variable(name)
            cases: list[tuple[ast.Expression, ast.Expression]] = []
            while not cases or self.lexer.peek().is_word("case"):
                values: list[ast.Expression] = []
                while not values or self.lexer.peek().is_word("case"):
                    self.expect_word("case")
                    value = ast.FunctionCall("data", (self.expression(),))
                    equal = (chosen, ast.Typed(value, _ONE_VALUE, True))
                    values.append(ast.FunctionCall("deep-equal", equal))
                condition = values[0] if len(values) == 1 else ast.Or(tuple(values))
                self.expect_word("return")
                cases.append((condition, self.expression()))
            self.expect_word("default")
            self.expect_word("return")
            result = self.expression()
            for condition, consequence in reversed(cases):
                result = ast.Conditional(condition, consequence, result)
        wrong = ast.TypeCase(
            name, (), ast.Typed(chosen, ast.SequenceType("empty-sequence", None, None), True)
        )
        return ast.Typeswitch(operand, (ast.TypeCase(name, (_ONE_VALUE,), result), wrong))

    def _try(self) -> ast.TryCatch:
        self.enter(self.lexer.take())
        body = self.enclosed(may_be_empty=True)
        clauses: list[ast.CatchClause] = []
        outer = self.scope
        while not clauses or self.lexer.peek().is_word("catch"):
            self.expect_word("catch")
            tests = self.listed(lambda: self._name_test(attribute=True), "|")
            for name in ast.ERROR_VARIABLES:
                self.scope = self.scope.with_variable(name, ANYTHING)
            clauses.append(ast.CatchClause(tuple(tests), self.enclosed(may_be_empty=True)))
            self.scope = outer
        self.leave()
        return ast.TryCatch(body, tuple(clauses))

    def _case(self, name: str, types: tuple[ast.SequenceType, ...], operand: Kinds) -> ast.TypeCase:
        """The case whose types have been read."""
        self.expect_word("return")
        outer = self.scope
        if name:
            self.scope = outer.with_variable(name, kinds_of_case(types, operand))
        result = self.expression()
        self.scope = outer
        return ast.TypeCase(name, types, result)

    def _quantified(self) -> ast.Quantified:
        token = self.lexer.take()
        with self.nested(token):
            bindings: list[tuple[str, ast.Expression]] = []
            while not bindings or self.takes(","):
                name = self.new_variable()
                declared = self.declared_type()
                self.expect_word("in")
                source = self.typed_value(declared, each=True)
                bindings.append((name, source))
                self.scope = self.scope.with_variable(name, self.kinds_of(source))
            self.expect_word("satisfies")
            condition = self.expression()
        return ast.Quantified(token.text == "every", tuple(bindings), condition)

    # -- literals and parentheses

    def _pragmas(self) -> ast.Expression:
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
        with self.nested(self.lexer.peek()):
            if (empty := self.lexer.peek_second()).is_symbol("}"):
                what = "a pragma, which says nothing here, around nothing (XQST0079)"
                raise self.refusal("syntax", what, empty.offset, "an expression")
            return self.enclosed()

    def _parenthesised(self) -> ast.Expression:
        if self.lexer.text.startswith("(#", self.lexer.peek().offset):
            return self._pragmas()
        with self.nested(self.lexer.peek()):
            return self.enclosed("(", may_be_empty=True)

    def _number(self, token: Token) -> ast.Literal:
        text = token.text
        is_double = "e" in text.lower()
        if len(text) > _NUMBER_LENGTH_MAX or (is_double and isinf(float(text))):
            what = "this number is too large"
            wanted = f"a number of at most {_NUMBER_LENGTH_MAX} characters"
            raise self.refusal("number", what, token.offset, wanted)
        if is_double:
            return ast.Literal(float(text))
        return ast.Literal(Decimal(text)) if "." in text else ast.Literal(int(text))

    # -- function calls

    def _is_call(self, token: Token) -> bool:
        return self.lexer.peek_second().is_symbol("(") and token.text not in _NOT_CALLS

    def arrow_call(self, first: ast.Expression) -> ast.Expression:
        return self.user_call((first,)) or self._call((first,))

    def _items(self) -> Iterator[Token]:
        """Goes through a list in parentheses, by the tokens that its items begin with."""
        self.expect("(")
        if self.takes(")"):
            return
        yield self.lexer.peek()
        while not self.takes(")"):
            self.expect(",", " or ')'")
            yield self.lexer.peek()

    def arguments(self) -> list[tuple[Token, ast.Expression]]:
        """Those in the parentheses that are next, each with the token that it begins with."""
        return [(place, self.expression()) for place in self._items()]

    def _plain_call(self, given: tuple[ast.Expression, ...] = ()) -> ast.Expression:
        token = self.lexer.take()
        name = self._function_name(token)
        with self.nested(token):
            own = self.arguments()
            places = [token] * len(given) + [place for place, _ in own]
            return self._call_of(token, name, [*given, *(argument for _, argument in own)], places)

    def _call_of(
        self, token: Token, name: str, arguments: list[ast.Expression], places: list[Token]
    ) -> ast.FunctionCall:
        """A call by the language's name of the function; each argument has a place."""
        signature = signature_of(name)
        assert signature is not None
        if len(arguments) == _COLLATED.get(name):
            self._check_collation(places[-1], arguments.pop())
        self._check_arity(token, name, signature, len(arguments))
        for index, argument in enumerate(arguments):
            self._check_argument(places[index], argument, name, signature, index)
        if name in PATTERN_FUNCTIONS and len(arguments) > 1:
            self._check_pattern(name, places[1], arguments)
        if name == "xs:QName":
            known = self.as_qname(arguments[0], places[0])
            if isinstance(known, ast.FunctionCall) and known.name == "QName":
                return known
            return self.at(token, ast.FunctionCall(name, (known,)))
        if name == "tokenize" and len(arguments) == 1:  # at white space
            arguments = [ast.FunctionCall("normalize-space", tuple(arguments)), ast.Literal(" ")]
        if name in CONTEXT_FUNCTIONS and len(arguments) < len(signature.arguments):
            self._check_context(token, name)
            arguments.append(ast.DOT)
        if name == "resolve-uri" and len(arguments) == 1 and self.base_uri is not None:
            arguments.append(ast.Literal(self.base_uri))
        return self.at(token, ast.FunctionCall(name, tuple(arguments)))

    def _check_collation(self, place: Token, collation: ast.Expression) -> None:
        if not isinstance(collation, ast.Literal) or collation.value != CODEPOINT_COLLATION:
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
        self, token: Token, argument: ast.Expression, name: str, signature: Signature, index: int
    ) -> None:
        expected = signature.argument(index)
        if not self._is_accepted(self.kinds_of(argument), _ACCEPTED[expected]):
            what = f"argument {index + 1} of {name}() is of the wrong type"
            raise self.refusal("type", what, token.offset, expected.value)

    def _is_accepted(self, kinds: Kinds, accepted: Kinds) -> bool:
        """Whether a value can be of the right kind; the empty sequence always is."""
        return not kinds or bool(kinds & accepted)

    def _check_pattern(self, name: str, place: Token, arguments: list[ast.Expression]) -> None:
        """What is a literal is looked at here, all else where its value is known."""
        flags_at = 3 if name == "replace" else 2
        asked = (arguments[1], *arguments[flags_at:])
        known = [str(argument.value) for argument in asked if isinstance(argument, ast.Literal)]
        if len(known) < len(asked):
            return
        pattern, *flags = known
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
            if name == "replace" and isinstance(arguments[2], ast.Literal):
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
        prefix = _WITH_PREFIX.get(namespace)
        if prefix is not None and f"{prefix}:{local}" in FUNCTIONS:
            return f"{prefix}:{local}"
        if namespace == SCHEMA_NAMESPACE and type_result(f"xs:{local}"):
            return f"xs:{local}"
        wanted = f"{'xs:' * (namespace == SCHEMA_NAMESPACE)}{local}"
        what = f"there is no function {text}()"
        raise self.refusal("unknown-function", what, token.offset, function_suggestion(wanted))

    # ---------------------------------------------------------------------------------------------
    # direct constructors, where every character counts
    #
    # A start tag is read twice: its namespace declarations hold for the whole element, so they must
    # be known before the names and expressions in it can be resolved.

    def constructor(self) -> ast.Constructor:
        """A constructor; the next token is its ``<``."""
        token = self.lexer.peek()
        with self.nested(token) as outer:
            tag, position = self._tag_name(token.offset + 1, "the name of an element")
            raw, position, is_empty = self._raw_attributes(position)
            declarations = self._declarations(raw)
            if declarations:
                self.scope = replace(
                    outer,
                    namespaces={**outer.namespaces, **declarations},
                    constructed={**outer.constructed, **declarations},
                )
            name = self._constructed_name(tag, token.offset + 1, attribute=False)
            attributes = self._attributes(raw)
            # An attribute without a prefix is in no namespace, whatever the default is.
            prefixed = [attribute for attribute, _ in attributes if attribute.prefix]
            self._declare_names(declarations, [name, *prefixed])
            content: tuple[str | ast.Expression, ...] = ()
            if not is_empty:
                content, position = self._content(tag, token.offset, position)
            self.lexer.offset = position
        return ast.Constructor(name, tuple(attributes), tuple(declarations.items()), content)

    # -- the start tag

    def _tag_name(self, offset: int, what: str) -> tuple[str, int]:
        match = _TAG_NAME.match(self.lexer.text, offset)
        if match is None:
            raise self.refusal("syntax", "this is not a name", offset, what)
        return match[0], match.end()

    def _raw_attributes(self, position: int) -> tuple[list[_RawAttribute], int, bool]:
        """The attributes, where the content begins, and whether there is none."""
        text = self.lexer.text
        raw: list[_RawAttribute] = []
        while True:
            while plain := _PLAIN_ATTRIBUTE.match(text, position):
                raw.append(_RawAttribute(plain[1], plain.start(1), *plain.span(2)))
                position = plain.end()
            after_space = self._after_space(position)
            if text.startswith("/>", after_space):
                return raw, after_space + 2, True
            if text.startswith(">", after_space):
                return raw, after_space + 1, False
            if after_space == position or after_space == len(text):
                what = "this start tag does not go on"
                wanted = "an attribute after white space, '>' or '/>'"
                raise self.refusal("syntax", what, after_space, wanted)
            name, end = self._tag_name(after_space, "the name of an attribute, '>' or '/>'")
            start = self._after_space(end)
            if not text.startswith("=", start):
                raise self.refusal("syntax", f"the attribute {name} has no value", start, "'='")
            start = self._after_space(start + 1)
            if text[start : start + 1] not in ("'", '"') or start == len(text):
                what = f"the value of {name} is not quoted"
                raise self.refusal("syntax", what, start, "a quotation mark, \" or '")
            position = self._end_of_value(start)
            raw.append(_RawAttribute(name, after_space, start + 1, position - 1))

    def _end_of_value(self, start: int) -> int:
        """The offset after the closing quotation mark; expressions in ``{ }`` are passed over."""
        text = self.lexer.text
        quote = text[start]
        position = start + 1
        edge = re.compile(f"[{{{quote}]")
        while match := edge.search(text, position):
            position = match.end()
            if text.startswith(match[0], position):
                position += 1
            elif match[0] == quote:
                return position
            else:
                position = self._after_enclosed(position)
        raise self.refusal("syntax", "this value is not closed", start, f"a closing {quote}")

    def _after_enclosed(self, position: int) -> int:
        """The offset after the ``}`` that closes the ``{`` before ``position``."""
        depth = 1
        self.lexer.offset = position
        while depth:
            token = self.lexer.take()
            if token.is_symbol("{"):
                depth += 1
            elif token.is_symbol("}"):
                depth -= 1
            elif token.text == "":
                raise self.refusal("syntax", "this '{' is not closed", position - 1, "'}'")
        return self.lexer.offset

    def _declarations(self, raw: list[_RawAttribute]) -> dict[str, str]:
        declarations: dict[str, str] = {}
        for attribute in raw:
            prefix, colon, local = attribute.name.rpartition(":")
            if attribute.name == "xmlns":
                declared = ""
            elif colon and prefix == "xmlns":
                declared = local
            else:
                continue
            if declared in declarations:
                raise self.refusal(
                    "duplicate-declaration", f"{attribute.name} is given twice", attribute.offset
                )
            value = self.lexer.text[attribute.start : attribute.end]
            if set("{}") & {*value.replace("{{", "").replace("}}", "")}:
                what = "the namespace of a declaration is fixed"
                raise self.refusal("syntax", what, attribute.offset, "a URI without { }")
            quote = self.lexer.text[attribute.end]
            uri = expand_references(self.lexer.text, attribute.start, attribute.end, quote)
            uri = " ".join(uri.replace("{{", "{").replace("}}", "}").split())
            if (declared, uri) != ("xml", XML_NAMESPACE):
                self.check_declaration(declared, uri, attribute.offset)
            if declared and not uri:
                what = f"the prefix '{declared}' needs a namespace"
                raise self.refusal("syntax", what, attribute.offset, "a URI")
            declarations[declared] = uri
        declarations.pop("xml", None)  # so it is anyway
        return declarations

    def check_declaration(self, prefix: str, uri: str, offset: int) -> None:
        """Refuses what no declaration may say."""
        self.checked_uri(uri, offset)
        if prefix in ("xml", "xmlns") or uri in (XML_NAMESPACE, XMLNS_NAMESPACE):
            what = f"'{prefix or uri}' cannot be declared"
            raise self.refusal("syntax", what, offset, "another prefix and namespace")

    def _constructed_name(self, text: str, offset: int, *, attribute: bool) -> QualifiedName:
        prefix, colon, local = text.rpartition(":")
        if colon:
            return QualifiedName(prefix, self.namespace_of(prefix, offset), local)
        return QualifiedName("", "" if attribute else self.scope.namespaces[""], local)

    def _declare_names(self, declarations: dict[str, str], names: list[QualifiedName]) -> None:
        """Adds the declarations that ``names`` need and that nothing around them makes."""
        for name in names:
            constructed = self.scope.constructed
            if name.prefix == "xml" or constructed.get(name.prefix, "") == name.namespace:
                continue
            declarations[name.prefix] = name.namespace
            constructed = {**constructed, name.prefix: name.namespace}
            self.scope = replace(self.scope, constructed=constructed)

    def _attributes(
        self, raw: list[_RawAttribute]
    ) -> list[tuple[QualifiedName, tuple[str | ast.Expression, ...]]]:
        attributes: list[tuple[QualifiedName, tuple[str | ast.Expression, ...]]] = []
        seen: set[tuple[str, str]] = set()
        for attribute in raw:
            if attribute.name == "xmlns" or attribute.name.startswith("xmlns:"):
                continue
            name = self._constructed_name(attribute.name, attribute.offset, attribute=True)
            if (name.namespace, name.local) in seen:
                raise self.refusal(
                    "duplicate-attribute", f"the attribute {name} is given twice", attribute.offset
                )
            seen.add((name.namespace, name.local))
            attributes.append((name, self._value(attribute)))
        return attributes

    def _value(self, attribute: _RawAttribute) -> tuple[str | ast.Expression, ...]:
        text = self.lexer.text
        if not _VALUE_MARKUP.search(text, attribute.start, attribute.end):
            value = text[attribute.start : attribute.end]
            return (value,) if value else ()
        quote = text[attribute.end]
        parts = _Parts()
        position = attribute.start
        while position < attribute.end:
            match = _VALUE_MARKUP.search(text, position, attribute.end)
            stop = match.start() if match else attribute.end
            parts.text(text[position:stop])
            position = stop
            if match is None:
                break
            if match[0] in "\t\n\r":
                parts.text(" ")
                position += 1
            elif match[0] == quote:
                parts.text(quote)
                position += 2
            elif match[0] in "\"'":
                parts.text(match[0])
                position += 1
            elif match[0] == "<":
                raise self.refusal("syntax", "'<' in the value of an attribute", position, "'&lt;'")
            else:
                position = self._reference_or_brace(parts, position, attribute.end)
        return parts.finish()

    # -- content

    def _content(
        self, tag: str, opened: int, position: int
    ) -> tuple[tuple[str | ast.Expression, ...], int]:
        """The content up to the end tag, and the offset after that."""
        text = self.lexer.text
        parts = _Parts(boundary_space_stripped=self.strips_space)
        while match := _CONTENT_MARKUP.search(text, position):
            parts.text(text[position : match.start()])
            position = match.start()
            if text.startswith("</", position):
                return parts.finish(), self._after_end_tag(tag, position)
            if text.startswith("<![CDATA[", position):
                end = text.find("]]>", position)
                if end < 0:
                    raise self.refusal(
                        "syntax", "this CDATA section is not closed", position, "']]>'"
                    )
                parts.text(text[position + 9 : end], verbatim=True)
                position = end + 3
            elif match[0] == "<":
                parts.expression(self._nested_constructor(position))
                position = self.lexer.offset
            else:
                count = len(parts.parts)
                position = self._reference_or_brace(parts, position, len(text))
                if len(parts.parts) > count and not isinstance(parts.parts[-1], str):
                    self._check_attribute_place(parts, match.start())
        raise self.refusal("syntax", f"<{tag}> is not closed", opened, f"</{tag}>")

    def _nested_constructor(self, position: int) -> ast.Constructor | ast.Markup:
        self.lexer.offset = position
        return self.direct_constructor()

    def direct_constructor(self) -> ast.Constructor | ast.Markup:
        """An element, a comment or a processing instruction; the next token is its ``<``."""
        start = self.lexer.peek().offset
        text = self.lexer.text
        if text.startswith("<!--", start):
            return self._markup_up_to("-->", start, 4)
        if text.startswith("<?", start):
            return self._markup_up_to("?>", start, 2)
        return self.constructor()

    def _markup_up_to(self, end: str, start: int, skipped: int) -> ast.Markup:
        text = self.lexer.text
        stop = text.find(end, start + skipped)
        if stop < 0:
            raise self.refusal("syntax", "this is not closed", start, f"'{end}'")
        value = text[start + skipped : stop]
        target = ""
        is_right = is_comment(value)
        if end == "?>":
            match = re.match(f"({NCNAME})(?:[ \t\n]+(.*))?\\Z", value, re.DOTALL)
            is_right = match is not None
            if match is not None:
                target, value = match[1], match[2] or ""
                is_right = is_processing_instruction(target, value)
        if not is_right:
            what = "processing instruction" if end == "?>" else "comment"
            raise self.refusal("syntax", f"this is no {what} of XML", start)
        self.lexer.offset = stop + len(end)
        kind = ast.NodeKind.PROCESSING_INSTRUCTION if end == "?>" else ast.NodeKind.COMMENT
        return ast.Markup(kind, target, value)

    def _reference_or_brace(self, parts: _Parts, position: int, end: int) -> int:
        """Takes a reference, a doubled brace or ``{ expression }``; the offset after it."""
        text = self.lexer.text
        if text[position] == "&":
            character, position = read_reference(text, position, end)
            parts.text(character, verbatim=True)
            return position
        if text.startswith(text[position] * 2, position):
            parts.text(text[position])
            return position + 2
        if text[position] == "}":
            raise self.refusal("syntax", "'}' without '{'", position, "'}}' for the character }")
        self.lexer.offset = position + 1
        if self.lexer.peek().is_symbol("}"):
            raise self.unexpected("an expression between { and }")
        parts.expression(self.sequence())
        self.expect("}", " or an operator")
        return self.lexer.offset

    def _check_attribute_place(self, parts: _Parts, offset: int) -> None:
        """Attributes of a message become attributes, so they come before all other content."""
        last = parts.parts[-1]
        if not isinstance(last, str) and self._is_attribute(last):
            if not parts.is_filled:
                return
            what = "an attribute after other content of the element"
            raise self.refusal("type", what, offset, "the attribute first, or string(…) around it")

    def _is_attribute(self, part: str | ast.Expression) -> bool:
        return not isinstance(part, str) and self.kinds_of(part) == ItemKind.ATTRIBUTE

    def _after_end_tag(self, tag: str, position: int) -> int:
        name, end = self._tag_name(position + 2, f"</{tag}>")
        if name != tag:
            raise self.refusal("syntax", f"</{name}> closes <{tag}>", position, f"</{tag}>")
        end = self._after_space(end)
        if not self.lexer.text.startswith(">", end):
            raise self.refusal("syntax", "this end tag does not end", end, "'>'")
        return end + 1

    def _after_space(self, position: int) -> int:
        match = WHITE_SPACE.match(self.lexer.text, position)
        return match.end() if match else position

    # ---------------------------------------------------------------------------------------------
    # computed constructors: ``element n { … }``, ``attribute``, ``text``, ``comment``

    def computed(self) -> ast.Expression | None:
        """A computed constructor, if the next token begins one."""
        token = self.lexer.peek()
        if not self._begins(token):
            return None
        if token.text in _AS_THEY_ARE:
            return self._in_braces()
        if token.text in _COMPUTED_LEFT_OUT:
            raise self.unsupported(f"{token.text} {{ }} is", token, "the expression alone")
        with self.nested(self.lexer.take()):
            kind = _KINDS[token.text]
            declarations: dict[str, str] = {}
            name, namespaces = self._name(kind) if token.text in _NAMED else (None, ())
            inside = self.lexer.after(self.lexer.peek())
            if isinstance(name, QualifiedName) and kind is ast.NodeKind.ELEMENT:
                self._declare_names(declarations, [name])
            content = self.enclosed(may_be_empty=True)
        if isinstance(content, ast.Literal):
            self._check_markup(kind, content, inside)
        if isinstance(name, QualifiedName) and kind is ast.NodeKind.ELEMENT:
            parts = () if content == ast.EMPTY else (content,)
            return ast.Constructor(name, (), tuple(declarations.items()), parts)
        return ast.Computed(kind, name, content, namespaces)

    def _in_braces(self) -> ast.Expression:
        """``ordered { … }``: nothing here may have another order."""
        with self.nested(self.lexer.take()):
            return self.enclosed()

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

    def _name(self, kind: ast.NodeKind) -> tuple[QualifiedName | ast.Expression, _Namespaces]:
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
            if isinstance(name, ast.Literal):
                outer = self.scope
                known = {**outer.namespaces, **dict(written)}
                self.scope = replace(outer, namespaces=known)
                named = self._literal_name(kind, name, place)
                self.scope = outer
                return named, ()
            self._check_qname(kind, name, place)
            prefixes = written or self._prefixes()
            self._count_steps(len(prefixes) // 4, token)
            return name, prefixes
        self.lexer.take()
        if "*" in token.text or "{" in token.text:
            raise self.refusal("syntax", f"{token} is not a name", token.offset, "a name")
        if kind is ast.NodeKind.PROCESSING_INSTRUCTION:
            if ":" in token.text:
                what = f"{token} is not the name of a processing instruction"
                raise self.refusal("syntax", what, token.offset, "a name without a prefix")
            self._check_fault(lexical_fault(token.text, kind), token.text, kind, token)
            return QualifiedName("", "", token.text), ()
        return self._node_name(kind, token.text, token), ()

    def _literal_name(
        self, kind: ast.NodeKind, literal: ast.Literal, place: Token
    ) -> QualifiedName:
        """A name in quotation marks is what it is without them."""
        if not isinstance(literal.value, str):
            what = "a name is a string or an xs:QName (XPTY0004)"
            raise self.refusal("name", what, place.offset, "a name in quotation marks")
        text = literal.value.strip()
        self._check_fault(lexical_fault(text, kind), text, kind, place)
        if kind is ast.NodeKind.PROCESSING_INSTRUCTION:
            return QualifiedName("", "", text)
        prefix, colon, _ = text.rpartition(":")
        if colon and prefix not in self.scope.namespaces:
            what = f"the prefix '{prefix}' is not declared (XQDY0074)"
            wanted = f'declare namespace {prefix} = "…"; at the start of the profile'
            raise self.refusal("name", what, place.offset, wanted)
        return self._node_name(kind, text, place)

    def _node_name(self, kind: ast.NodeKind, text: str, place: Token) -> QualifiedName:
        is_attribute = kind is ast.NodeKind.ATTRIBUTE
        name = self._constructed_name(text, place.offset, attribute=is_attribute)
        self._check_fault(namespace_fault(name, kind), text, kind, place)
        return name

    def _check_qname(self, kind: ast.NodeKind, name: ast.Expression, place: Token) -> None:
        """``QName("uri", "name")`` is known as well as a name that is written down."""
        match name:
            case ast.FunctionCall("QName", (ast.Literal(str(uri)), ast.Literal(str(text)))):
                prefix, colon, local = text.rpartition(":")
                is_wrong = lexical_fault(text, ast.NodeKind.ELEMENT) or (colon and not uri)
                named = QualifiedName(prefix, uri, local)
                fault = "FOCA0002" if is_wrong else namespace_fault(named, kind)
                self._check_fault(fault, text, kind, place)

    def _check_fault(self, fault: str, text: str, kind: ast.NodeKind, place: Token) -> None:
        if fault:
            what = f"{text[:80]!r} can never be the name of this {_NODES[kind]} ({fault})"
            raise self.refusal("name", what, place.offset, "another name")

    def _check_markup(self, kind: ast.NodeKind, literal: ast.Literal, place: Token) -> None:
        """Refuses what no comment or processing instruction can say."""
        text = str(literal.value)
        if kind is ast.NodeKind.COMMENT and not is_comment(text):
            what = "this is no comment of XML (XQDY0072)"
            raise self.refusal(
                "name", what, place.offset, "a text without '--', and no '-' at its end"
            )
        is_target = kind is ast.NodeKind.PROCESSING_INSTRUCTION
        if is_target and not is_processing_instruction("x", text.lstrip(" \t\n\r")):
            what = "this is no processing instruction of XML (XQDY0026)"
            raise self.refusal("name", what, place.offset, "a text without '?>'")

    # ---------------------------------------------------------------------------------------------
    # FLWOR expressions: for, let and where in any order, then order by, then return

    def construction(self) -> ast.Expression | None:
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
        return self._named(name, token)

    def _named(self, written: str, token: Token) -> str:
        """The name in the tree of a variable that is bound at ``token``."""
        name = written
        if name in self.scope.variables or name in self.declared or name in self.hidden:
            for number in count(2):
                name = f"{written}.{number}"
                taken = name in self.scope.variables or name in self.renamed
                if not taken and name not in self.hidden:
                    break
            self.renamed[name] = written
        self.stands_for.pop(name, None)
        self._clause_count += 1
        if self._clause_count > self.limits.clauses_max:
            raise self.refusal(
                "too-many-clauses", f"more than {self.limits.clauses_max} clauses", token.offset
            )
        return name

    def _is_flwor(self, token: Token) -> bool:
        return token.is_word("for", "let") and self.lexer.peek_second().kind is TokenKind.VARIABLE

    def _flwor(self) -> ast.Expression:
        with self.nested(self.lexer.peek()):
            clauses: list[ast.Clause] = []
            ungrouped: tuple[tuple[ast.Clause, ...], ast.Expression | None] | None = None
            keys: tuple[tuple[str, ast.Expression | None], ...] = ()
            while True:
                token = self.lexer.peek()
                if self._is_flwor(token):
                    self.lexer.take()
                    clauses += self.listed(partial(self._clause, token.text == "for"))
                elif self.takes_word("where"):
                    clauses.append(ast.WhereClause(self.expression()))
                elif token.is_word("group") and ungrouped is None:
                    ungrouped = _with_where(clauses)
                    clauses = []
                    keys = self._grouping_keys()
                else:
                    break
            values = [one for one in clauses if getattr(one, "variable", "") not in self.stands_for]
            is_bare = len(values) < len(clauses) and ungrouped is None
            is_bare = is_bare and all(isinstance(one, ast.WhereClause) for one in values)
            if not is_bare:  # else one stays that binds nothing
                clauses = values
            behind, where = _with_where(clauses)
            order = self._order()
            self._expect_return(has_where=where is not None)
            if self.is_outermost:
                self.result_offset = self.lexer.peek().offset
            is_braced = self.lexer.peek().is_symbol("{")  # as the paper's queries have it
            result = self.enclosed() if is_braced else self.expression()
        if is_bare and where is None and not order:
            return result
        if ungrouped is None:
            return ast.Flwor(behind, where, result, order)
        return ast.Flwor(*ungrouped, result, order, ast.Grouping(keys, behind, where))

    def _grouping_keys(self) -> tuple[tuple[str, ast.Expression | None], ...]:
        self.lexer.take()
        self.expect_word("by")
        return tuple(self.listed(self._grouping_key))

    def _grouping_key(self) -> tuple[str, ast.Expression | None]:
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
                data = ast.FunctionCall("data", (value,))
                value = self.at(place, ast.Typed(data, declared, True, declared=True))
        if self.lexer.peek().is_word("collation"):
            raise self.unsupported("a collation is", self.lexer.peek(), "groups by code point")
        self.scope = self.scope.with_variable(name, ATOMS)
        return name, value

    def _clause(self, is_for: bool) -> ast.Clause:
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
            if declared is None and self.begins_function():
                self.name_function(name)
                self.scope = outer.with_variable(name, NOTHING)
                return ast.LetClause(name, ast.EMPTY)
        value = self.typed_value(declared, each=is_for)
        self.scope = outer.with_variable(name, self.kinds_of(value))
        if position:
            self.scope = self.scope.with_variable(position, ItemKind.NUMBER)
        if is_for:
            return ast.ForClause(name, value, position)
        self.lets.add(name)
        return ast.LetClause(name, value)

    def declared_type(self) -> ast.SequenceType | None:
        return self.sequence_type() if self.takes_word("as") else None

    def typed_value(self, declared: ast.SequenceType | None, *, each: bool) -> ast.Expression:
        """An expression with its declared type, that of ``each`` item if a clause is over them."""
        place = self.lexer.peek()
        value = self.expression()
        if declared is None:
            return value
        if each and declared.name != "empty-sequence":
            declared = replace(declared, occurrence="*")
        return self.at(place, ast.Typed(value, declared, True, declared=True))

    # -- order by

    def _order(self) -> tuple[ast.OrderKey, ...]:
        if not self.takes_word("stable") and not self.lexer.peek().is_word("order"):
            return ()
        self.expect_word("order")
        self.expect_word("by")
        return tuple(self.listed(self._order_key))

    def _order_key(self) -> ast.OrderKey:
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
        return ast.OrderKey(key, descending, greatest)

    def _expect_return(self, *, has_where: bool) -> None:
        if self.takes_word("return"):
            return
        token = self.lexer.peek()
        if token.kind is TokenKind.NAME and token.text in _LEFT_OUT:
            raise self.unsupported(_LEFT_OUT[token.text], token)
        if has_where:
            raise self.unexpected("'return' or an operator")
        raise self.unexpected("',', 'for', 'let', 'where', 'order by' or 'return'")

    # ---------------------------------------------------------------------------------------------
    # declared functions, ``declare function local:f($a as type) as type { … };``, their calls, and
    # declared variables, which are functions without parameters that are called once
    #
    # A declared function may call functions that are declared behind it, so its calls are checked
    # when the prolog has ended; all others are calls of the whole library.

    def user_call(self, given: tuple[ast.Expression, ...] = ()) -> ast.UserCall | None:
        name = self._name_of_user(self.lexer.peek())
        if name is None:
            return None
        token = self.lexer.take()
        with self.nested(token):
            arguments = [*given, *(argument for _, argument in self.arguments())]
        return self._user_call_of(token, name, tuple(arguments))

    def _user_call_of(
        self, token: Token, name: str, arguments: tuple[ast.Expression, ...]
    ) -> ast.UserCall:
        if self._in_prolog:
            self._early_calls.append((token, name, len(arguments)))
        else:
            self._check_call(token, name, len(arguments))
        return self.at(token, ast.UserCall(name, arguments, self._library))

    def know(self, written_out: Mapping[tuple[str, int], ast.FunctionDeclaration]) -> None:
        """Take over the declarations that another parser of the same text has made."""
        self.written_out = {**written_out}
        self._functions = {**written_out}

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
        with self.nested(token) as outer:
            calls = {name: kinds for name, kinds in outer.variables.items() if name.startswith("$")}
            self.scope = replace(outer, variables=calls, context=NOTHING)
            parameters = self._parameters()
            result = self.declared_type()
            if self.lexer.peek().is_word("external"):
                raise self.unsupported(
                    "an external function is", self.lexer.peek(), "'{' and a body"
                )
            body = self.enclosed()
        self._add(token, ast.FunctionDeclaration(name, parameters, result, body))

    def variable_call(self, name: str) -> ast.UserCall:
        return ast.UserCall(_key(name), (), self._library)

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
        if declared is None and self.begins_function():
            self.declared[name] = None
            self.name_function(name)
            self.scope = outer
            return
        value = self.typed_value(declared, each=False)
        self.scope = outer
        if _is_short(value):
            self.declared[name] = value, value.size
            return
        self.declared[name] = None
        self._functions[_key(name), 0] = ast.FunctionDeclaration(_key(name), (), None, value)
        self._variables.append((token, _key(name)))
        self.scope = outer.with_variable(function_key(_key(name), 0), self.kinds_of(value))

    @property
    def has_functions(self) -> bool:
        return bool(self._functions)

    def end_functions(self) -> None:
        """The prolog has ended: all functions are known."""
        for token, name, arity in self._early_calls:
            self._check_call(token, name, arity)
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
            for call in reached.pop().body.within():
                if isinstance(call, ast.UserCall) and call.name not in found:
                    found.add(call.name)
                    reached += (one for one in self._functions.values() if one.name == call.name)
        return found

    def _parameters(self) -> tuple[tuple[str, ast.SequenceType | None], ...]:
        parameters: list[tuple[str, ast.SequenceType | None]] = []
        for _ in self._items():
            named = [self.renamed.get(one, one) for one, _ in parameters]
            name = self.new_variable(named)
            type_ = self.declared_type()
            parameters.append((name, type_))
            self.scope = self.scope.with_variable(name, ast.declared_kinds(type_))
        return tuple(parameters)

    def _add(self, token: Token, function: ast.FunctionDeclaration) -> None:
        key = function.name, len(function.parameters)
        if key in self._functions:
            what = f"the function {token.text}() with {_count(key[1])} is declared twice"
            raise self.refusal("duplicate-declaration", what, token.offset)
        self._functions[key] = function

    def _name_of_user(self, token: Token) -> str | None:
        """The name of a function that is not of the language, as it stands in the tree."""
        if token.text == "function":
            raise self.no_value(token)
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

    # ---------------------------------------------------------------------------------------------
    # functions as arguments, which are written out where they stand
    #
    # The expression that stands for a call may call functions declared for it, in the namespace
    # WRITTEN_OUT.  All calls of a profile have one library, so a text with such functions is parsed
    # once more, with them known (``written_out``).

    def _call(self, given: tuple[ast.Expression, ...] = ()) -> ast.Expression:
        token = self.lexer.peek()
        namespace, name = self.resolved(token, self.function_namespace)
        arity = ARITIES.get(name) if namespace == FUNCTION_NAMESPACE else None
        if arity is None:
            return self._plain_call(given)
        self.lexer.take()
        with self.nested(token):
            return self._with_given(partial(self._written_call, token, name, arity, given))

    def _with_given(self, make: Callable[[], ast.Expression]) -> ast.Expression:
        """The expression for a call, with arguments of functions applied in part around it."""
        outer, self._given = self._given, []
        found = make()
        for name, value in reversed(self._given):
            found = bound(name, value, found)
        self._given = outer
        return found

    def _written_call(
        self, token: Token, name: str, arity: int, given: tuple[ast.Expression, ...]
    ) -> ast.Expression:
        items, function = self._arguments(token, name, arity, given)
        means = Means(
            self._fresh, partial(self._converted, token), partial(self._declare_for, token)
        )
        if function is None or name == SORT:
            return sorted_by(items[0], function, means)
        if name == OF_EACH:
            return for_each(items[0], function, means)
        if arity == 1:
            return filtered(items[0], function, means)
        if name == OF_PAIRS:
            return for_each_pair(items[0], items[-1], function, means)
        return folded(items[0], items[-1], name == FOLD_LEFT, function, means)

    def _arguments(
        self, token: Token, name: str, arity: int, given: tuple[ast.Expression, ...]
    ) -> tuple[list[ast.Expression], Inline | None]:
        """Those that are no function, and the one that is."""
        is_declared = arity == 2
        most = ARGUMENTS[name]
        items = [*given]
        function = None
        for place in self._items():
            if function is not None:
                raise self.refusal("arity", f"{name}() has more arguments", place.offset)
            if len(items) < most - 1:
                items.append(self.expression())
                if name == SORT and len(items) == 2 and items[1] != ast.EMPTY:
                    self._check_collation(place, items[1])
                continue
            kinds = [self.kinds_of(one) or ANYTHING for one in items[:2]]
            library = self._library
            if name in FOLDS:
                kinds = [ANYTHING, kinds[0]] if name == FOLD_LEFT else [kinds[0], ANYTHING]
            if is_declared:
                self._library = ()
            self._in_declared += is_declared
            function = self._function(kinds[:arity])
            self._in_declared -= is_declared
            self._library = library
        if not items or (function is None and name != SORT):
            count = f"{len(items)} argument{'' if len(items) == 1 else 's'}"
            wanted = "1 to 3 arguments" if name == SORT else f"{most} arguments, a function last"
            raise self.refusal("arity", f"{name}() is called with {count}", token.offset, wanted)
        return items, function

    # -- functions

    def begins_function(self) -> bool:
        token = self.lexer.peek()
        if token.kind is TokenKind.VARIABLE:
            name = self.bound_name(self.variable_name(token))
            is_one = isinstance(self.stands_for.get(name), FunctionText)
            return is_one and not self.lexer.peek_second().is_symbol("(")
        if token.kind is not TokenKind.NAME:
            return False
        if _REFERENCE.match(self.lexer.text, token.end):
            return True
        is_call = self.lexer.peek_second().is_symbol("(")
        return is_call and (token.text == "function" or self._is_in_part(token))

    def _is_in_part(self, token: Token) -> bool:
        """Whether a call has a ``?`` for an argument."""
        if not _PLACEHOLDER.search(self.lexer.text, token.end):
            return False
        depth, before = 0, token
        try:
            while (token := self.lexer.after(before)).kind is not TokenKind.END:
                depth += token.is_symbol("(") - token.is_symbol(")")
                is_argument = depth == 1 and before.is_symbol("(", ",")
                if is_argument and token.is_symbol("?"):
                    return True
                if depth == 0:
                    return False
                before = token
        except ProfileRefused:  # of a text that is no sequence of tokens
            pass
        return False

    def name_function(self, name: str) -> None:
        """What it says is read where the variable is called, and once here for its mistakes."""
        start, scope = self.lexer.peek().offset, self.scope.with_context(NOTHING)
        before = self._functions, self._conversions, self._declared_for
        self._functions, self._conversions = {**self._functions}, {**self._conversions}
        given, self._given = self._given, []
        self._function(None)
        self._given = given
        self._functions, self._conversions, self._declared_for = before
        self.stands_for[name] = FunctionText(start, self.lexer.offset, scope)

    def meaning(self, name: str, token: Token) -> ast.Expression:
        """The expression for the name of a parameter, or for a call of a function by a variable."""
        meant = self.stands_for[name]
        if not isinstance(meant, FunctionText):
            self._count_steps(meant.size, token)
            return meant
        if not self.lexer.peek().is_symbol("("):
            raise self.no_value(token)
        with self.nested(token):
            arguments = [argument for _, argument in self.arguments()]
            return self._with_given(partial(self._call_of_meant, meant, token, arguments))

    def _call_of_meant(
        self, meant: FunctionText, token: Token, arguments: list[ast.Expression]
    ) -> ast.Expression:
        kinds = [self.kinds_of(argument) or ANYTHING for argument in arguments]
        function = self._copy(meant, token, kinds, arguments)
        return applied(function, arguments, partial(self._converted, token))

    def _function(
        self, kinds: list[Kinds] | None, arguments: list[ast.Expression] | None = None
    ) -> Inline:
        """A function of so many arguments, of any number if ``kinds`` is None.  Those of the
        ``arguments`` that its parameters can stand for are taken out."""
        token = self.lexer.peek()
        arguments = [] if arguments is None else arguments
        for _ in range(NESTING):
            self.enter(token)
        reference = _REFERENCE.match(self.lexer.text, token.end)
        if token.kind is TokenKind.VARIABLE:
            name = self.bound_name(self.variable_name(token))
            meant = self.stands_for.get(name)
            if not isinstance(meant, FunctionText):
                raise self.no_value(token)
            self.lexer.take()
            found = self._copy(meant, token, kinds, arguments)
        elif token.kind is not TokenKind.NAME:
            raise self.unexpected(f"a function: {_FUNCTION}")
        elif reference is not None:
            self.lexer.take()
            self.lexer.offset = reference.end()
            found = self._reference(token, kinds, int(reference[1]))
        elif token.text == "function" and self.lexer.peek_second().is_symbol("("):
            found = self._inline(token, kinds, arguments)
        elif self.lexer.peek_second().is_symbol("("):
            found = self._applied_in_part(token, kinds)
        else:
            raise self.unexpected(f"a function: {_FUNCTION}")
        for _ in range(NESTING):
            self.leave()
        return found

    def _inline(
        self, token: Token, kinds: list[Kinds] | None, arguments: list[ast.Expression]
    ) -> Inline:
        self.lexer.take()
        outer = self.scope
        self.scope = outer.with_context(NOTHING)
        parameters = self._parameters()
        self._check_arity_of(token, len(parameters), kinds)
        rest = []
        kept = []
        for index, (name, type_) in enumerate(parameters):
            value = arguments[index] if arguments else None
            if value is not None and type_ is None and _is_named(value):
                self.stands_for[name] = value
            else:
                rest.append((name, type_))
                kept += [] if value is None else [value]
            if kinds is not None and type_ is None:
                self.scope.variables[name] = kinds[index]
        arguments[:] = kept
        result = self.declared_type()
        body = self.enclosed(may_be_empty=True)
        self.scope = outer
        if result is not None:
            body = self._converted(token, body, result)
        nodes = bool(kinds) and not any(one & ATOMS for one in kinds or ())
        return Inline(tuple(n for n, _ in rest), tuple(t for _, t in rest), body, nodes)

    def _reference(self, token: Token, kinds: list[Kinds] | None, arity: int) -> Inline:
        """``name#1``."""
        self._check_arity_of(token, arity, kinds)
        if arity > self.limits.clauses_max:
            raise self.refusal("arity", f"a function of {arity} arguments", token.offset)
        names = tuple(self._fresh("argument") for _ in range(arity))
        outer = self.scope
        known = dict(zip(names, kinds or [ANYTHING] * arity, strict=True))
        self.scope = replace(outer, variables={**outer.variables, **known}, context=NOTHING)
        body = self._call_by_name(token, list(map(ast.variable, names)), [token] * arity)
        self.scope = outer
        return Inline(names, (None,) * arity, body)

    def _applied_in_part(self, token: Token, kinds: list[Kinds] | None) -> Inline:
        """``name(?, a)``: what is given is found once, for all calls."""
        self.lexer.take()
        names: list[str] = []
        arguments: list[ast.Expression] = []
        places: list[Token] = []
        for place in self._items():
            places.append(place)
            if place.is_symbol("?") and self.lexer.peek_second().is_symbol(",", ")"):
                self.lexer.take()
                names.append(self._fresh("argument"))
                known = kinds[len(names) - 1] if kinds and len(names) <= len(kinds) else ANYTHING
                self.scope = self.scope.with_variable(names[-1], known)
                arguments.append(ast.variable(names[-1]))
                continue
            value = self.expression()
            if not isinstance(value, ast.Literal):
                name = self._fresh("given")
                self.scope = self.scope.with_variable(name, self.kinds_of(value))
                self._given.append((name, value))
                value = ast.variable(name)
            arguments.append(value)
        if not names:
            raise self.no_value(token)
        self._check_arity_of(token, len(names), kinds)
        return Inline(
            tuple(names), (None,) * len(names), self._call_by_name(token, arguments, places)
        )

    def _call_by_name(
        self, token: Token, arguments: list[ast.Expression], places: list[Token]
    ) -> ast.Expression:
        name = self._name_of_user(token)
        if name is not None:
            return self._user_call_of(token, name, tuple(arguments))
        namespace, local = self.resolved(token, self.function_namespace)
        if namespace == FUNCTION_NAMESPACE and local in ARITIES:
            raise self.no_value(token)
        return self._call_of(token, self._function_name(token), arguments, places)

    def _copy(
        self,
        meant: FunctionText,
        token: Token,
        kinds: list[Kinds] | None,
        arguments: list[ast.Expression],
    ) -> Inline:
        """The function that a variable stands for, read once more where it is called."""
        self._copied += meant.end - meant.start
        self._clause_count += 1
        if self._copied > self.limits.length_max or self._clause_count > self.limits.clauses_max:
            what = "functions that variables stand for are too large, written out"
            raise self.refusal("too-long", what, token.offset)
        place, scope, hidden = self.lexer.offset, self.scope, self.hidden
        known = meant.scope.variables
        unnamed = {one: kind for one, kind in scope.variables.items() if one not in known}
        self.hidden = (hidden | unnamed.keys()) - known.keys()
        self.scope = replace(meant.scope, variables={**unnamed, **known})
        self.lexer.offset = meant.start
        found = self._function(kinds, arguments)
        self.hidden = hidden
        self.scope, self.lexer.offset = scope, place
        return found

    def _check_arity_of(self, token: Token, arity: int, kinds: list[Kinds] | None) -> None:
        if kinds is not None and arity != len(kinds):
            what = f"this function takes {_count(arity)}"
            wanted = f"a function of {_count(len(kinds))}"
            raise self.refusal("arity", what, token.offset, wanted)

    # -- what calls are written out as

    def _fresh(self, kind: str) -> str:
        """The name of a variable that no text can have bound."""
        while True:
            self._made += 1
            name = f"{kind}-.{self._made}"
            known = (*self.scope.variables, *self.declared)
            if name not in known and name not in self.hidden and name not in self.renamed:
                return name

    def _converted(
        self, token: Token, value: ast.Expression, type_: ast.SequenceType
    ) -> ast.Expression:
        """``value`` as an argument that is declared so."""
        if not type_.name.startswith("xs:"):
            return self.at(token, ast.Typed(value, type_, True, declared=True))
        name = self._conversions.get(type_)
        if name is None:
            kind = AS_ALL if type_.occurrence in ("*", "+") else AS_ONE
            name = self._conversions[type_] = self._free_name(kind, 1)
            made = ast.FunctionDeclaration(name, (("value", type_),), None, ast.variable("value"))
            self._functions[name, 1] = made
            self.written_out[name, 1] = made
        return self.at(token, ast.UserCall(name, (value,), self._known_library()))

    def _declare_for(
        self,
        token: Token,
        parameters: tuple[str, ...],
        body: Callable[[Callable[..., ast.Expression]], ast.Expression],
        arguments: tuple[ast.Expression, ...],
    ) -> ast.Expression:
        name = self._free_name(f"{braced(WRITTEN_OUT)}fold-", len(parameters))
        inside = body(lambda *values: ast.UserCall(name, values))
        declared = tuple((one, None) for one in parameters)
        key = name, len(parameters)
        self._functions[key] = ast.FunctionDeclaration(name, declared, None, inside)
        self.written_out[key] = self._functions[key]
        return self.at(token, ast.UserCall(name, arguments, self._known_library()))

    def _free_name(self, kind: str, arity: int) -> str:
        while True:
            self._declared_for += 1
            name = f"{kind}{self._declared_for}"
            if (name, arity) not in self._functions or (name, arity) in self.written_out:
                return name

    def _known_library(self) -> tuple[ast.FunctionDeclaration, ...]:
        inside = self._in_prolog or self._in_declared
        return () if inside else tuple(self._functions.values())

    # ---------------------------------------------------------------------------------------------
    # ``copy … modify … return …`` and the updating expressions of XQuery Update
    #
    # An updating expression may stand where the value of ``modify`` is made: alone, in ``( , )``,
    # in the branches of ``if`` and ``typeswitch``, behind ``return``.  Where each one stands is
    # known when the text has been read, so all others are refused then.

    def updating(self) -> ast.Transform | ast.Update | None:
        token, following = self.lexer.peek(), self.lexer.peek_second()
        if token.is_word("copy"):
            return self._transform() if following.kind is TokenKind.VARIABLE else None
        is_value = token.text == "replace" and following.is_word("value")
        if not is_value and not following.is_word("node", "nodes"):
            return None
        with self.nested(token):
            self.lexer.take()
            update = self._update(token)
        self._misplaced[id(update)] = update, token
        return update

    def check_updates(self) -> None:
        """Refuses the updating expressions that stand in no ``modify``."""
        for _, token in self._misplaced.values():
            what = f"'{token.text}' changes a node outside 'modify'"
            wanted = "copy $c := … modify … return $c, with the change behind 'modify'"
            raise self.refusal("syntax", what, token.offset, wanted)

    def _transform(self) -> ast.Transform:
        with self.nested(self.lexer.take()):
            copies: list[ast.LetClause] = []
            while not copies or self.takes(","):
                name = self.new_variable()
                self.expect(":=")
                place = self.lexer.peek()
                value = self.expression()
                kinds = self.kinds_of(value)
                if kinds and not kinds & NODES:
                    raise self.refusal("type", "a value is no node to copy", place.offset, "a path")
                copies.append(ast.LetClause(name, value))
                self.scope = self.scope.with_variable(name, kinds & NODES)
            self.expect_word("modify")
            place = self.lexer.peek()
            changes = self.expression()
            self._place(changes, place)
            self.expect_word("return")
            result = self.expression()
        return ast.Transform(tuple(copies), changes, result)

    def _place(self, changes: ast.Expression, place: Token) -> None:
        """Goes to where updating expressions may stand, and refuses all others there."""
        match changes:
            case ast.Update():
                del self._misplaced[id(changes)]
            case ast.Sequence() | ast.Conditional() | ast.Typeswitch() | ast.Flwor():
                for part in changes.outcomes():
                    self._place(part, place)
            case _:
                raise self.refusal(
                    "syntax",
                    "this changes nothing",
                    place.offset,
                    "'delete node', 'insert node', 'replace node', 'replace value of node' or "
                    "'rename node'",
                )

    def _update(self, token: Token) -> ast.Update:
        """The rest of an updating expression whose first word is taken."""
        if self.lexer.take().text == "value":
            self.expect_word("of")
            self.expect_word("node")
            target = self._target()
            self.expect_word("with")
            return ast.Update(ast.UpdateKind.REPLACE_VALUE, target, self.expression())
        if token.text == "delete":
            return ast.Update(ast.UpdateKind.DELETE, self._target(), ast.EMPTY)
        if token.text == "insert":
            source = self.expression()
            return ast.Update(self._insertion(), self._target(), source)
        target = self._target()
        if token.text == "rename":
            self.expect_word("as")
            return ast.Update(ast.UpdateKind.RENAME, target, self._new_name(target))
        self.expect_word("with")
        return ast.Update(ast.UpdateKind.REPLACE, target, self.expression())

    def _target(self) -> ast.Expression:
        place = self.lexer.peek()
        target = self.expression()
        kinds = self.kinds_of(target)
        if kinds and not kinds & NODES:
            raise self.refusal("type", "a value cannot be changed", place.offset, "a path")
        return target

    def _insertion(self) -> ast.UpdateKind:
        token = self.lexer.peek()
        if token.is_word("as"):
            self.lexer.take()
            where = self.lexer.peek()
            if not where.is_word("first", "last"):
                raise self.unexpected("'first' or 'last'")
            self.lexer.take()
            self.expect_word("into")
            is_first = where.text == "first"
            return ast.UpdateKind.INSERT_FIRST if is_first else ast.UpdateKind.INSERT_LAST
        if not token.is_word(*_PLACES):
            raise self.unexpected("'into', 'as first into', 'as last into', 'before' or 'after'")
        return _PLACES[self.lexer.take().text]

    def _new_name(self, target: ast.Expression) -> ast.Expression | QualifiedName:
        """A name that is written down means what its prefix means here."""
        place = self.lexer.peek()
        name = self.expression()
        default = self.scope.namespaces[""]
        kinds = self.kinds_of(target)
        if kinds & ~ItemKind.ELEMENT:
            default = ""  # which is for the names of elements
        kind = ast.NodeKind.ATTRIBUTE if kinds == ItemKind.ATTRIBUTE else ast.NodeKind.ELEMENT
        match name:
            case ast.FunctionCall("QName", (ast.Literal(str(uri)), ast.Literal(str(text)))):
                self._check_qname(kind, name, place)
                return QualifiedName(text.rpartition(":")[0], uri, text.rpartition(":")[2])
        if isinstance(name, ast.Literal):
            named = self._literal_name(kind, name, place)
            return named if named.prefix else named._replace(namespace=default)
        if default:
            return ast.FunctionCall(
                "QName", (ast.Literal(default), ast.FunctionCall("string", (name,)))
            )
        return name

    # ---------------------------------------------------------------------------------------------
    # whole profiles

    def condition(self) -> ast.Expression:
        """PERF: a condition that an earlier profile had in the same scope is taken from there, if
        it refers to no declaration of its profile; rules of a set repeat their contexts'."""
        text, start = self.lexer.text, self.lexer.offset
        if self._ends is None:
            self._ends = _ends_of_brackets(text)
        end = self._ends.get(start, start)
        if not _KNOWN_LEAST <= end - start <= _KNOWN_MOST:
            return self.sequence()
        if self._spaces[0] is not self.scope.namespaces:
            self._spaces = self.scope.namespaces, frozenset(self.scope.namespaces.items())
        settings = self.function_namespace, self.base_uri, self.limits
        key = text[start:end], self._depth, self.scope.context, self._spaces[1], settings
        known = _CONDITIONS.get(key)
        if known is None and _IS_OWN.search(text, start, end):
            return self.sequence()
        if known is None:
            first, steps, patterns = len(self._places), self._steps, self._patterns
            condition = self.sequence()
            if self.lexer.peek().offset == end and self._patterns is patterns:
                places = islice(self._places.values(), first, None)
                relative = tuple((one, offset - start) for one, offset in places)
                if len(_CONDITIONS) >= _CONDITIONS_MAX:
                    del _CONDITIONS[next(iter(_CONDITIONS))]
                _CONDITIONS[key] = _Known(condition, self._steps - steps, relative)
            return condition
        if any(id(one) in self._places for one, _ in known.places):
            return self.sequence()  # which is in this profile already, at another place
        self._count_steps(known.steps, self.lexer.peek())
        self._places.update((id(one), (one, start + offset)) for one, offset in known.places)
        self.lexer.offset = end
        return known.condition

    def profile(self) -> ast.Expression:
        self._prolog()
        start = self.lexer.peek()
        if start.kind is TokenKind.NAME and not self._begins_profile(start):
            raise self.unexpected(_PROFILE)
        body = self.sequence()
        self.expect_end("the end of the profile")
        self.check_updates()
        self._check_deliverable(body, start)
        self._check_constants(body)
        return body

    def whole_expression(self) -> ast.Expression:
        """Prolog and expression, whatever it yields."""
        self._prolog()
        expression = self.sequence()
        self.expect_end("the end, or an operator")
        self.check_updates()
        self._check_constants(expression)
        return expression

    def _check_constants(self, body: ast.Expression) -> None:
        """Refuses a constant that can only be an error."""
        if not self.limits.faults_refused:
            return
        if not any(may_be_fault(one, self.lets) for one, _ in self._places.values()):
            return
        fault = first_fault(constants_in(body))
        if fault is not None:
            wrong = fault.parts[-1]
            shown = unparse(
                replace(wrong, library=()) if isinstance(wrong, ast.UserCall) else wrong
            )
            what = f"{shown[:_SHOWN_MAX]} can only be an error: {fault.reason} ({fault.code})"
            raise self.refusal("error", what, self.place_of(fault.parts), value_suggestion(wrong))

    def _begins_profile(self, token: Token) -> bool:
        """Whether a name is more than the first step of a relative path."""
        following = self.lexer.peek_second()
        return following.kind in (TokenKind.VARIABLE, TokenKind.NAME) or following.is_symbol(
            "(", "{"
        )

    def expect_end(self, expected: str) -> None:
        if self.lexer.peek().kind is not TokenKind.END:
            raise self.unexpected(expected)

    # -- prolog

    def _prolog(self) -> None:
        self._version()
        declared: set[str] = set()
        # PERF: all profiles of a rule set begin so.
        spaces = _SPACES.match(self.lexer.text, self.lexer.peek().offset)
        if spaces is not None and (known := _PROLOGS.get(spaces[0])) is not None:
            self.scope.namespaces.update(known)
            declared.update(known)
            self.lexer.offset = spaces.end()
        while self.lexer.peek().is_word("declare", "import", "module"):
            token = self.lexer.peek()
            if token.text != "declare":
                raise self.unsupported(
                    f"'{token.text}' is", token, "'declare namespace', or a path"
                )
            self.lexer.take()
            what = self.lexer.peek()
            if self.takes_word("variable"):
                self.declare_variable()
            elif self.takes_word("function"):
                self.declare_function()
            elif what.is_word("option") and self.lexer.peek_second().text == "svrl:idle-paths":
                self._idle_paths()
            elif self.takes_word("namespace"):
                prefix = self._declared_prefix()
                self.expect("=")
                self._declare(prefix, what, declared)
            elif what.is_word("default") and self.lexer.peek_second().is_word("element"):
                self.lexer.take()
                self.lexer.take()
                self.expect_word("namespace")
                self._declare("", what, declared)
            elif what.is_word("default") and self.lexer.peek_second().is_word("function"):
                self.lexer.take()
                self.lexer.take()
                self.expect_word("namespace")
                reason = "the default function namespace is declared twice (XQST0066)"
                self.function_namespace = self._declared_uri("function", reason, what, declared)
            else:
                self._setting(what, declared)
            self.expect(";")
            if spaces is not None and self.lexer.offset == spaces.end():
                if len(_PROLOGS) >= _PROLOGS_MAX:
                    _PROLOGS.clear()
                named = self.scope.namespaces
                _PROLOGS[spaces[0]] = {prefix: named[prefix] for prefix in declared}
        self.end_functions()

    def _idle_paths(self) -> None:
        """``declare option svrl:idle-paths "empty"``: a path that can never select anything is
        empty, as in rule sets, and no mistake."""
        self.lexer.take()
        self.lexer.take()
        self.expect_string('"empty"')
        self.limits = replace(self.limits, idle_paths_refused=False)

    def _version(self) -> None:
        """``xquery version "1.0" encoding "utf-8";``, where the text begins so."""
        begins = self.lexer.peek().is_word("xquery")
        if not begins or not self.lexer.peek_second().is_word("version"):
            return
        self.lexer.take()
        self.lexer.take()
        place = self.lexer.peek()
        if self.expect_string("a version") not in ("1.0", "3.0", "3.1"):
            raise self.unsupported("another version is", place, "'\"1.0\"', '\"3.0\"' or '\"3.1\"'")
        if self.takes_word("encoding"):
            place = self.lexer.peek()
            encoding = self.expect_string("the name of an encoding")
            if not _ENCODING.fullmatch(encoding):
                what = f"{encoding!r} is no name of an encoding (XQST0087)"
                raise self.refusal("syntax", what, place.offset, '"utf-8"')
        self.expect(";")

    def _setting(self, what: Token, declared: set[str]) -> None:
        """A declaration of what a profile does; it may say what is so anyway."""
        words = [self.lexer.take().text]
        if what.text == "default":
            if not self.lexer.peek().is_word("collation", "order"):
                self.expect_word("element")
            words.append(self.lexer.take().text)
        name = " ".join(words)
        if name in declared and name in _SETTINGS:
            raise self.refusal("duplicate-declaration", f"{name} is declared twice", what.offset)
        declared.add(name)
        place = self.lexer.peek()
        if name == "base-uri":
            self.base_uri = self.expect_string("a URI, in quotation marks")
            return
        if name == "default collation":
            uri = self.expect_string("a URI, in quotation marks")
            if uri != CODEPOINT_COLLATION:
                raise self.unsupported("a collation is", place, f'"{CODEPOINT_COLLATION}"')
            return
        choices = _SETTINGS.get(name)
        if choices is None:
            reason = f"a declaration of '{name}' is not in the profile language"
            wanted = "'namespace', 'default element namespace', 'variable' or 'function'"
            raise self.refusal("unsupported", reason, what.offset, wanted)
        if name == "default order":
            self.expect_word("empty")
        chosen = self.lexer.peek()
        if not chosen.is_word(*choices):
            raise self.unexpected(" or ".join(f"'{choice}'" for choice in choices))
        self.lexer.take()
        if name == "copy-namespaces":
            self.expect(",")
            if chosen.text != "preserve" or self.lexer.take().text != "inherit":
                raise self.unsupported("copying without namespaces is", place, "preserve, inherit")
        elif name == "boundary-space":
            self.strips_space = chosen.text == "strip"
        elif name == "default order":
            self.empty_greatest = chosen.text == "greatest"

    def _declared_prefix(self) -> str:
        token = self.lexer.peek()
        if token.kind is not TokenKind.NAME or set(token.text) & set(":{*"):
            raise self.unexpected("a prefix")
        return self.lexer.take().text

    def _declare(self, prefix: str, what: Token, declared: set[str]) -> None:
        name = f"the prefix '{prefix}'" if prefix else "the default element namespace"
        uri = self._declared_uri(prefix, f"{name} is declared twice", what, declared)
        if prefix and not uri:
            self.scope.namespaces.pop(prefix, None)
        else:
            self.scope.namespaces[prefix] = uri

    def _declared_uri(self, key: str, reason: str, what: Token, declared: set[str]) -> str:
        """The URI of a declaration; ``reason``: why not, where ``key`` is declared already."""
        place = self.lexer.peek()
        uri = " ".join(self.expect_string("the URI of the namespace, in quotation marks").split())
        if key in declared:
            raise self.refusal("duplicate-declaration", reason, what.offset)
        if self.has_functions or self.declared:
            reason = "a namespace is declared behind a function or a variable"
            raise self.refusal("syntax", reason, what.offset, "it in front")
        declared.add(key)
        self.check_declaration("" if key == "function" else key, uri, place.offset)
        return uri

    # -- whole profiles

    def _check_deliverable(self, body: ast.Expression, start: Token) -> None:
        """A path delivers the message; of anything else, each item becomes a document."""
        if body.is_path():
            if body == ast.MESSAGE:
                what = "this is the whole message"
                wanted = "a path to an element; $msg/* for every message"
                raise self.refusal("type", what, start.offset, wanted)
            return
        if isinstance(body, ast.Constructor) and not body.decisive_parts():
            what = "the enclosing constructor holds nothing of the message"
            wanted = "{ for … return … }, or a path in { }, directly in it"
            raise self.refusal("unsupported", what, start.offset, wanted)
        kinds = self.kinds_of(body)
        if kinds == ItemKind.BOOLEAN:
            what = "this profile is a condition"
            wanted = "a path with the condition in brackets: /*[…]"
            raise self.refusal("type", what, start.offset, wanted)
        if kinds & ~PARENTS and not (kinds & PARENTS and _ends_in_call(body)):
            raise self.refusal(
                "type",
                "the result of this profile is not an element",
                start.offset if self.result_offset < 0 else self.result_offset,
                "a path to elements, or a constructor: <result>{ … }</result>",
            )


class _RawAttribute(NamedTuple):
    """An attribute before its value is parsed: the value is ``text[start:end]``."""

    name: str
    offset: int
    start: int
    end: int


class _Parts:
    """Collects literal text and expressions, adjacent text joined.

    With ``boundary_space_stripped``, text that is nothing but white space between two pieces of
    markup is dropped, unless a reference or a CDATA section is in it.
    """

    def __init__(self, *, boundary_space_stripped: bool = False) -> None:
        self.parts: list[str | ast.Expression] = []
        self._strip = boundary_space_stripped
        self._text: list[str] = []
        self._verbatim = False
        self.is_filled = False  # with text or nodes that are written down

    def text(self, value: str, *, verbatim: bool = False) -> None:
        self._text.append(value)
        self._verbatim = self._verbatim or verbatim

    def expression(self, value: ast.Expression) -> None:
        self._end_text()
        self.parts.append(value)
        self.is_filled |= isinstance(value, ast.Constructor | ast.Markup)

    def finish(self) -> tuple[str | ast.Expression, ...]:
        self._end_text()
        return tuple(self.parts)

    def _end_text(self) -> None:
        value = "".join(self._text)
        is_boundary_space = self._strip and not self._verbatim and not value.strip(" \t\n\r")
        if value and not is_boundary_space:
            self.parts.append(value)
            self.is_filled = True
        self._text.clear()
        self._verbatim = False


def _with_where(clauses: list[ast.Clause]) -> tuple[tuple[ast.Clause, ...], ast.Expression | None]:
    """The clauses without the conditions at their end, and these as one."""
    where = None
    end = len(clauses)
    while end and isinstance(last := clauses[end - 1], ast.WhereClause):
        parts = [last.condition] if where is None else [last.condition, where]
        where = joined(ast.And, parts)
        end -= 1
    return tuple(clauses[:end]), where


def _key(variable: str) -> str:
    """The name of a declared variable in the library."""
    return f"${variable}" if variable.startswith("Q{") else f"$Q{{}}{variable}"


def _is_short(value: ast.Expression) -> bool:
    """Whether it costs as little as a name: a literal, some of them, a path from the message."""
    match value:
        case ast.Literal():
            return True
        case ast.FunctionCall(name, (ast.Literal(),)):
            return name.startswith("xs:")
        case ast.Typed(operand):
            return value.treat and _is_short(operand)
        case ast.Sequence(parts):
            literals = all(isinstance(part, ast.Literal) for part in parts)
            return literals and len(parts) <= _SHORT_STEPS_MAX
    is_path = value.origin is ast.Origin.MESSAGE
    return is_path and value.size <= _SHORT_STEPS_MAX and not value.constructs


def _count(arguments: int) -> str:
    return f"{arguments or 'no'} argument{'' if arguments == 1 else 's'}"


def _is_named(value: ast.Expression) -> bool:
    """Whether it costs as little as the name of a parameter, wherever that stands."""
    is_free = value.origin is ast.Origin.VARIABLE
    return (is_free and not value.new_focus()) or isinstance(value, ast.Literal)


def parse_profile(text: str, limits: ProfileLimits = DEFAULT_PROFILE_LIMITS) -> ast.Profile:
    """The profile that ``text`` says, of graphs if its first word is one of SPARQL's; raises
    ProfileRefused."""
    text = text.removeprefix("\ufeff")
    if is_graph_query(text):
        made = graph_query.made_of_words(text) if limits is DEFAULT_PROFILE_LIMITS else None
        if made is not None:
            return ast.Profile.of_parts(made, text)
        return ast.Profile(graph_query.parse_anew(text, limits), text)
    if limits is DEFAULT_PROFILE_LIMITS:
        return _CACHE.read(text)
    return ast.Profile(parse_anew(text, limits), text)


@lru_cache(maxsize=64)
def _listed(text: str) -> ast.Sequence:
    """Strings without references and quotation marks, with commas between them."""
    return ast.Sequence(tuple(ast.Literal(found[1:-1]) for found in re.findall(_CODE, text)))


def parse_accepted(text: str) -> ast.Profile:
    """The same of a text that was accepted once, by this release or one before, which may have
    refused less: a constant that can only be an error is an error of each message."""
    try:
        return parse_profile(text)
    except ProfileRefused:
        if is_graph_query(text):
            raise
        return ast.Profile(parse_anew(text, _LENIENT_LIMITS), text)


def parse_path(text: str, limits: ProfileLimits = DERIVED_PATH_LIMITS) -> ast.PathExpression:
    """A path that starts at the message or at the context item, in the form of ``unparse``."""
    expression = parse_expression(text, limits)
    if not isinstance(expression, ast.PathExpression):
        raise ProfileRefused("syntax", "this is not a path", text, 0, "a path")
    return expression


def parse_expression(
    text: str,
    limits: ProfileLimits = DERIVED_PATH_LIMITS,
    variables: Mapping[str, Kinds] | None = None,
    context: Kinds = ItemKind.ELEMENT,
) -> ast.Expression:
    """An expression; ``variables`` are those bound around it, ``context`` its context item."""

    def read(parser: QueryParser) -> ast.Expression:
        parser.scope = Scope(parser.scope.namespaces, dict(variables or {}), context)
        return parser.whole_expression()

    return _parsed(text, limits, read)


def _parsed(
    text: str, limits: ProfileLimits, read: Callable[[QueryParser], ast.Expression]
) -> ast.Expression:
    """Read once more where functions were declared for what it says."""
    text = checked_text(text, limits)
    parser = QueryParser(text, limits)
    found = read(parser)
    if not parser.written_out:
        return found
    again = QueryParser(text, limits)
    again.know(parser.written_out)
    return read(again)


def parse_anew(text: str, limits: ProfileLimits = DEFAULT_PROFILE_LIMITS) -> ast.Expression:
    """The tree of a profile, whether its shape is known or not."""
    try:
        return _parsed(text, limits, QueryParser.profile)
    except RecursionError:
        raise too_deep(text) from None


def parse_template(text: str) -> ast.Expression:
    """The tree of a profile, whatever errors the constants in it are."""
    return parse_anew(text, _LENIENT_LIMITS)


def too_deep(text: str) -> ProfileRefused:
    """For what is within the limits on nesting and is too deep a tree all the same: ``1+1+1+…``."""
    return ProfileRefused("too-deep", "too many operators in a row", text)


def reread(text: str) -> ast.Profile:
    """The profile that ``unparse`` wrote as ``text``, in which all names are in full."""
    if is_graph_query(text):
        return ast.Profile(graph_query.parse_anew(text, DERIVED_PATH_LIMITS), text)
    return _WRITTEN.read(text)


def _ends_of_brackets(text: str) -> dict[int, int]:
    """Where brackets end, by where what is in them begins, wherever they are as they seem."""
    ends: dict[int, int] = {}
    open_ones: list[int] = []
    for found in _BRACKET.finditer(text):
        if found[0] == "[":
            open_ones.append(found.end())
        elif found[0] == "]" and open_ones:
            ends[open_ones.pop()] = found.start()
    return ends


_CACHE = ShapeCache(parse_anew, parse_template)


_WRITTEN = ShapeCache(lambda text: parse_expression(text, DERIVED_PATH_LIMITS))


class _Known(NamedTuple):
    """A condition as it was read: its steps, and its places, counted from its own."""

    condition: ast.Expression
    steps: int
    places: tuple[tuple[ast.Expression, int], ...]


def _ends_in_call(body: ast.Expression) -> bool:
    """Whether a declared function makes some of the result: what is no element is left out then."""
    return isinstance(body, ast.UserCall) or any(map(_ends_in_call, body.outcomes()))
