"""Text of a profile -> Profile.  Every refusal says where, and what was expected there.

::

    profile    := prolog sequence
    prolog     := (declare namespace p = "uri"; | declare default element namespace "uri";
                  | declare variable $v := …; | declare function local:f($a) { … };)*
    sequence   := expression (, expression)*
    expression := flwor | if | some | every | typeswitch | copy | operators

The parser is recursive, and bounded by ``ProfileLimits.depth_max``.  It stands in the order of the
grammar, from the tightest part to the loosest: paths, types, operators, conditions, constructors,
FLWOR expressions, declared functions, copies with changes, whole profiles.
``docs/profiles.md`` documents the language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from difflib import get_close_matches
from functools import lru_cache, partial
from itertools import count, islice
from math import isinf
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar

from formats.characters import NAME, is_colonless_name, is_comment, is_processing_instruction
from formats.name_faults import XMLNS_NAMESPACE
from formats.names import XML_NAMESPACE, QualifiedName
from yfilter.errors import ProfileRefused
from yfilter.graph import graph_query
from yfilter.graph.graph_query import is_graph_query
from yfilter.language import query_ast as ast
from yfilter.language.constants import constants_in, first_fault, may_be_fault
from yfilter.language.evaluator import lexical_fault, namespace_fault
from yfilter.language.functions import (
    ANYTHING,
    ATOMS,
    CONTEXT_FUNCTIONS,
    FUNCTIONS,
    LEFT_OUT,
    NODES,
    NOTHING,
    OF_PLACES,
    OPAQUE_TYPES,
    PARENTS,
    PATTERN_FUNCTIONS,
    TEMPORAL,
    TYPES,
    ArgumentKind,
    ItemKind,
    Kinds,
    ResultKind,
    Signature,
    other_functions,
    signature_of,
    type_result,
)
from yfilter.language.namespaces import (
    CODEPOINT_COLLATION,
    FUNCTION_NAMESPACE,
    INITIAL_NAMESPACES,
    LOCAL_NAMESPACE,
    MATH_NAMESPACE,
    PLACE_NAMESPACE,
    SCHEMA_NAMESPACE,
    SVRL_NAMESPACE,
    WRITTEN_OUT,
    ShortNames,
    braced,
)
from yfilter.language.patterns import PatternError, check_pattern, check_replacement
from yfilter.language.profile_limits import (
    DEFAULT_PROFILE_LIMITS,
    DERIVED_PATH_LIMITS,
    ProfileLimits,
    checked_text,
)
from yfilter.language.query_ast import (
    COMPARISON_LEVEL,
    GENERAL,
    LEVEL_OF,
    RANGE_LEVEL,
    WORDS_LEVEL,
    Cast,
    Expression,
    FunctionCall,
    Operator,
    function_key,
    kinds_of_case,
)
from yfilter.language.query_text import unparse
from yfilter.language.shape_cache import ShapeCache
from yfilter.language.tokens import (
    FUNCTIONS_PLACE,
    NCNAME,
    NO_FUNCTION_VALUE,
    WHITE_SPACE,
    Lexer,
    Token,
    TokenKind,
    TokenParser,
    expand_references,
    read_reference,
)
from yfilter.language.trees import flat, split
from yfilter.language.words import WORD_TESTS, Spacing, WordTest

# -------------------------------------------------------------------------------------------------
# What somebody probably meant who wrote something else: for the "expected" of a refusal.


# Names that other languages have for what is a function here.
_FOREIGN = {
    **dict.fromkeys(("toupper", "toUpper", "toUpperCase", "upper"), "upper-case()"),
    **dict.fromkeys(("tolower", "toLower", "toLowerCase", "lower"), "lower-case()"),
    **dict.fromkeys(("len", "length"), "count() or string-length()"),
    **dict.fromkeys(("regexp", "match"), "matches()"),
    **{name: f"xs:{name}()" for name in ("date", "dateTime", "integer", "decimal")},
    "trim": "normalize-space()",
    "size": "count()",
    "split": "tokenize()",
    "join": "string-join()",
    "substr": "substring()",
    "replaceAll": "replace()",
    "isEmpty": "empty()",
    "has": "exists()",
    "mean": "avg()",
    "like": "matches() or contains()",
    "int": "xs:integer()",
    "now": "current-dateTime()",
    "today": "current-date()",
}
# Words of other languages where an operator is expected.
_FOREIGN_WORDS = {
    "like": "contains(…), starts-with(…) or matches(…)",
    "in": "'=', which holds for any of several: @a = ('x', 'y')",
    "between": "two comparisons with 'and'",
    "equals": "'='",
    "AND": "'and'",
    "OR": "'or'",
    "IS": "'=', or empty(…)",
    "when": "'where'",
    "having": "'where'",
    "select": "'return'",
    "yield": "'return'",
}
# What is a value of a type.
_VALUES_OF_TYPES = {
    "xs:boolean": "true",
    "xs:integer": "12",
    "xs:decimal": "1.5",
    "xs:double": "1.5e3",
    "xs:date": "2026-03-02",
    "xs:dateTime": "2026-03-02T12:30:00",
    "xs:time": "12:30:00",
    "xs:dayTimeDuration": "P1DT12H",
    "xs:yearMonthDuration": "P1Y6M",
    "xs:duration": "P1Y6M2DT12H",
}
_KEYWORDS = ("return", "where", "order", "satisfies", "then", "else", "for", "let")


def function_suggestion(name: str) -> str:
    """A function of the language in place of one that there is not; ``name`` with ``xs:`` alone."""
    if name in _FOREIGN:
        return _FOREIGN[name]
    close = get_close_matches(name, (*FUNCTIONS, *other_functions()), n=1)
    return f"{close[0]}()" if close else "a function of the table in docs/profiles.md"


def type_suggestion(name: str) -> str:
    """A type to cast to in place of one that there is not."""
    close = get_close_matches(
        name, (*TYPES, *[other for other in other_functions() if ":" in other]), n=1
    )
    return close[0] if close else ", ".join(TYPES)


def value_suggestion(wrong: Expression) -> str:
    """What could stand in place of a constant that is an error."""
    match wrong:
        case FunctionCall(name, _) if name in WORD_TESTS:
            return "words, of which the last may end in .*"
        case FunctionCall(name, _) if name in OF_PLACES:
            return 'a place, such as "52.5,13.4" or "circle 52.5,13.4 30"'
        case FunctionCall(type_, _) | Cast(_, type_) if type_.startswith("xs:"):
            such = (
                f', such as {type_}("{_VALUES_OF_TYPES[type_]}")'
                if type_ in _VALUES_OF_TYPES
                else ""
            )
            return f"a value of the type{such}"
    return "a value; 'try { … } catch * { … }' around it where the error is meant"


def instead_of(text: str, offset: int, word: str) -> str:
    """What the token ``word`` at ``offset`` may have been meant for; "" if that cannot be told."""
    before = text[:offset]
    if before.endswith(("'", '"')) and word[:1].isalpha():
        return "the quotation mark doubled inside the string: '' or \"\""
    called = re.search(r"\b(not|exists|empty|count|contains|string|number)\s*$", before)
    if called and word[:1] in "@$/.*":
        return f"{called[1]}(…), with parentheses"
    if re.search(r"\b(for|let|some|every)\s+$", before) and word[:1].isalpha():
        return f"a variable: ${word}"
    if word in _FOREIGN_WORDS:
        return _FOREIGN_WORDS[word]
    close = get_close_matches(word, _KEYWORDS, n=1, cutoff=0.7) if word.isalpha() else []
    return f"'{close[0]}'" if close and close[0] != word else ""


MESSAGE_VARIABLE = "msg"

KIND_TESTS = {
    "text": ast.NodeKind.TEXT,
    "node": ast.NodeKind.NODE,
    "comment": ast.NodeKind.COMMENT,
    "element": ast.NodeKind.ELEMENT,
    "attribute": ast.NodeKind.ATTRIBUTE,
    "processing-instruction": ast.NodeKind.PROCESSING_INSTRUCTION,
    "document-node": ast.NodeKind.DOCUMENT,
}
# Types that all nodes of messages have.
_UNTYPED = {
    ast.NodeKind.ELEMENT: ("untyped", "anyType"),
    ast.NodeKind.ATTRIBUTE: ("untypedAtomic", "anyAtomicType", "anySimpleType", "anyType"),
}
_TYPES = frozenset(name for names in _UNTYPED.values() for name in names)
SCHEMA_TESTS = frozenset(("schema-element", "schema-attribute"))
_AXES = {axis.value: axis for axis in ast.Axis}
_STEP = "a step: a name, '*', '@name', 'text()', '.' or '..'"
Placed = TypeVar("Placed", bound=ast.Expression)


@dataclass(frozen=True, slots=True)
class Scope:
    """What names mean at a place of the text.

    ``namespaces`` maps prefixes, "" being the default for element names; ``context`` is what
    ``.`` can be, NOTHING where there is no context item.  ``constructed`` holds what the
    constructors around the place declare, as prefix and namespace.
    """

    namespaces: dict[str, str]
    variables: dict[str, Kinds]
    context: Kinds = NOTHING
    constructed: dict[str, str] = field(default_factory=dict)

    def with_variable(self, name: str, kinds: Kinds) -> Scope:
        variables = {**self.variables, name: kinds}
        return Scope(self.namespaces, variables, self.context, self.constructed)

    def with_context(self, context: Kinds) -> Scope:
        return Scope(self.namespaces, self.variables, context, self.constructed)


@dataclass(frozen=True, slots=True)
class FunctionText:
    """A function that a variable stands for: where its text is, and what names mean there."""

    start: int
    end: int
    scope: Scope


class _Nested:
    """One level of nesting of a parser; its scope is what it was when the level ends."""

    __slots__ = ("_outer", "_parser")

    def __init__(self, parser: QueryParser) -> None:
        self._parser = parser
        self._outer = parser.scope

    def __enter__(self) -> Scope:
        return self._outer

    def __exit__(self, *_: object) -> None:
        self._parser.scope = self._outer
        self._parser.leave()


_SLASHES = frozenset(("/", "//"))


_ATOMIC = frozenset((*TYPES, *OPAQUE_TYPES, "xs:anyURI", "xs:float", "xs:anyAtomicType"))


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
_OPERATORS_LEFT_OUT = (
    *("occurs", "weight", "ordered", "window", "distance", "same", "different", "at", "entire"),
    *("not", "without", "using"),  # the last behind parentheses
)
_WORDS_WANTED = "'ftand', 'ftor', or 'using …' behind a string"


_SURE = NODES | ItemKind.BOOLEAN  # of other values alone some have no effective boolean value
_NO_NUMBERS = (ItemKind.STRING, ItemKind.BOOLEAN)
_BESIDE_MOMENTS = TEMPORAL | ItemKind.OTHER  # a duration goes with a date, a date less a date


_OPERATOR_WORDS = {
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


# -------------------------------------------------------------------------------------------------
# Functions that take functions, written out where they stand, as a function is no value:
#
#     for-each($s, function($x) { e })     $s ! (let $x := . return e)
#     filter($s, function($x) { e })       $s ! (let $x := . return if (e) then $x else ())
#     sort($s, (), function($x) { e })     for $x in $s order by e return $x
#     fold-left($s, $z, f)                 a declared function, which folds one half after the other
#
# where ``let`` is a ``typeswitch``, as an error of a function is one of the whole call and a clause
# would only leave out its tuple.


# How many arguments the function takes that each of them takes, as its last argument.
ARITIES = {
    **dict.fromkeys(("for-each", "filter", "sort"), 1),
    **dict.fromkeys(("for-each-pair", "fold-left", "fold-right"), 2),
}
SORT, FOLD_LEFT, FOLDS = "sort", "fold-left", ("fold-left", "fold-right")
OF_EACH, OF_PAIRS = "for-each", "for-each-pair"
ARGUMENTS = {**dict.fromkeys(ARITIES, 3), OF_EACH: 2, "filter": 2}
KEYS_MAX = 8  # values of a key of sort() whose number the text does not tell
NESTING = 6  # the most levels of nesting that a written out call has around a function's body

# An expression, and the type that its value is converted to as an argument is.
Convert: TypeAlias = Callable[[ast.Expression, ast.SequenceType], ast.Expression]
# A call of a function that is declared so, made of its name: the parameters, the body, and
# the arguments.
Declare: TypeAlias = Callable[
    [
        tuple[str, ...],
        Callable[[Callable[..., ast.Expression]], ast.Expression],
        tuple[ast.Expression, ...],
    ],
    ast.Expression,
]


class Means(NamedTuple):
    """How a call is written out: names of variables that no text has, conversions, declarations."""

    fresh: Callable[[str], str]
    convert: Convert
    declare: Declare


_TRUTH = ast.SequenceType("xs:boolean", None, None)
_SEVERAL = frozenset(("tokenize", "string-to-codepoints", "index-of"))
# Functions that convert to a type are called so, to one of one item AS_ONE.
AS_ONE, AS_ALL = f"{braced(WRITTEN_OUT)}one-", f"{braced(WRITTEN_OUT)}all-"
_ONE = (ResultKind.STRING, ResultKind.NUMBER, ResultKind.BOOLEAN)


@dataclass(frozen=True, slots=True)
class Inline:
    """A function that is written down: its parameters' names in the tree, and its body, which is
    what it yields by its declared type already."""

    parameters: tuple[str, ...]
    types: tuple[ast.SequenceType | None, ...]
    body: ast.Expression
    takes_nodes: bool = False

    @property
    def captured(self) -> tuple[str, ...]:
        """The variables around it that it is about."""
        return tuple(sorted(self.body.free_variables() - {*self.parameters}))

    @property
    def is_sure(self) -> bool:
        """Whether no call of it is an error."""
        nodes = self.parameters if self.takes_nodes else ()
        return not any(self.types) and self.body.is_sure(nodes)


def bound(name: str, value: ast.Expression, body: ast.Expression) -> ast.Expression:
    """``body`` with a variable; an error of the value is one of the whole."""
    case = ast.TypeCase(name, (ast.ANY_ITEMS,), body)
    return ast.Typeswitch(value, (case, ast.TypeCase("", (), ast.EMPTY)))


def applied(function: Inline, values: Iterable[ast.Expression], convert: Convert) -> ast.Expression:
    """A call of it."""
    arguments = zip(function.parameters, function.types, values, strict=True)
    body = function.body
    for name, type_, value in reversed(tuple(arguments)):
        body = bound(name, value if type_ is None else convert(value, type_), body)
    return body


def for_each(items: ast.Expression, function: Inline, means: Means) -> ast.Expression:
    if function.is_sure and items.is_sure():
        return ast.Flwor((ast.ForClause(function.parameters[0], items),), None, function.body)
    return ast.SimpleMap(items, applied(function, (ast.DOT,), means.convert))


def filtered(items: ast.Expression, function: Inline, means: Means) -> ast.Expression:
    condition = function.body
    is_condition = condition.is_boolean()
    if is_condition and function.is_sure and items.is_sure():
        (name,) = function.parameters
        return ast.Flwor((ast.ForClause(name, items),), condition, ast.variable(name))
    is_bare = not any(function.types)
    item = function.parameters[0] if is_bare else means.fresh("item")
    truth = condition if is_bare else applied(function, (ast.variable(item),), means.convert)
    if not is_condition:
        truth = means.convert(truth, _TRUTH)
    chosen = ast.Conditional(truth, ast.variable(item), ast.EMPTY)
    return ast.SimpleMap(items, bound(item, ast.DOT, chosen))


def sorted_by(items: ast.Expression, function: Inline | None, means: Means) -> ast.Expression:
    """In the order of keys, which are sequences: the first values that differ decide."""
    if function is None:
        name = means.fresh("item")
        function = Inline((name,), (None,), ast.variable(name))
    name = function.parameters[0]
    key = function.body
    parts = key.parts if isinstance(key, ast.Sequence) else (key,)
    are_single = all(_is_single(part, name) for part in parts)
    count = len(parts) if are_single else KEYS_MAX
    name_of_items = "" if items.is_sure() else means.fresh("items")
    source = ast.variable(name_of_items) if name_of_items else items
    is_bare = not any(function.types)
    each = name if is_bare else means.fresh("item")
    value = key if is_bare else applied(function, (ast.variable(each),), means.convert)
    clauses: tuple[ast.ForClause | ast.LetClause, ...] = (ast.ForClause(each, source),)
    order = tuple(ast.OrderKey(value) for _ in range(1) if count == 1)
    if count != 1:
        known = means.fresh("key")
        clauses += (ast.LetClause(known, ast.FunctionCall("data", (value,))),)
        parts = tuple(
            ast.FunctionCall(
                "subsequence", (ast.variable(known), ast.Literal(place), ast.Literal(1))
            )
            for place in range(1, count + 1)
        )
        order = tuple(map(ast.OrderKey, parts))
    found: ast.Expression = ast.Flwor(clauses, None, ast.variable(each), order)
    if not (function.is_sure and are_single):
        asked = value
        if not are_single:
            many = ast.FunctionCall("count", (ast.FunctionCall("data", (value,)),))
            error = ast.FunctionCall("error", ())
            asked = ast.Conditional(
                ast.Comparison(many, Operator.GT, ast.Literal(KEYS_MAX)), error, value
            )
        keys = ast.SimpleMap(source, bound(each, ast.DOT, ast.FunctionCall("data", (asked,))))
        found = bound("", keys, found)
    return bound(name_of_items, items, found) if name_of_items else found


def for_each_pair(
    one: ast.Expression, other: ast.Expression, function: Inline, means: Means
) -> ast.Expression:
    """The pairs of the first halves, then those of the second ones."""
    names = means.fresh("left"), means.fresh("right")
    left, right = map(ast.variable, names)
    captured = function.captured
    outer = tuple(map(ast.variable, captured))

    def body(called: Callable[..., ast.Expression]) -> ast.Expression:
        counts = tuple(ast.FunctionCall("count", (each,)) for each in (left, right))
        middle = ast.Operation(
            "idiv", (ast.FunctionCall("min", (ast.Sequence(counts),)), ast.Literal(2))
        )
        halves = (_halves(each, middle) for each in (left, right))
        pairs = ast.Sequence(tuple(called(*half, *outer) for half in zip(*halves, strict=True)))
        heads = tuple(ast.FunctionCall("head", (each,)) for each in (left, right))
        is_there = ast.And(tuple(ast.FunctionCall("exists", (each,)) for each in (left, right)))
        last = ast.Conditional(is_there, applied(function, heads, means.convert), ast.EMPTY)
        are_many = ast.And(
            tuple(ast.Comparison(each, Operator.GT, ast.Literal(1)) for each in counts)
        )
        return ast.Conditional(are_many, pairs, last)

    return means.declare((*names, *captured), body, (one, other, *outer))


def folded(
    items: ast.Expression,
    zero: ast.Expression,
    is_left: bool,
    function: Inline,
    means: Means,
) -> ast.Expression:
    """The second half of what the first half comes to, or the other way round: so calls in
    each other are as few as the halves are."""
    names = means.fresh("items"), means.fresh("start")
    whole, start = map(ast.variable, names)
    captured = function.captured
    outer = tuple(map(ast.variable, captured))

    def body(called: Callable[..., ast.Expression]) -> ast.Expression:
        count = ast.FunctionCall("count", (whole,))
        halves = _halves(whole, ast.Operation("idiv", (count, ast.Literal(2))))
        first, second = halves if is_left else halves[::-1]
        both = called(second, called(first, start, *outer), *outer)
        values = (start, whole) if is_left else (whole, start)
        one = applied(function, values, means.convert)
        last = ast.Conditional(ast.FunctionCall("exists", (whole,)), one, start)
        return ast.Conditional(ast.Comparison(count, Operator.GT, ast.Literal(1)), both, last)

    return means.declare((*names, *captured), body, (items, zero, *outer))


def _halves(items: ast.Expression, middle: ast.Expression) -> tuple[ast.Expression, ast.Expression]:
    behind = ast.Operation("+", (middle, ast.Literal(1)))
    first = ast.FunctionCall("subsequence", (items, ast.Literal(1), middle))
    return first, ast.FunctionCall("subsequence", (items, behind))


def _is_single(expression: ast.Expression, item: str) -> bool:
    """Whether its value is one item at most; ``item`` is a variable of which that is known."""
    if expression.is_location:
        are_single = all(step.is_single for step in expression.steps)
        return expression.refers() == item and are_single
    match expression:
        case ast.FunctionCall(name):
            is_known = name in FUNCTIONS and FUNCTIONS[name].result in _ONE
            return (is_known or name in TYPES) and name not in _SEVERAL
        case ast.Operation(name):
            return name not in ("|", "intersect", "except", "to")
        case ast.UserCall(name):
            return name.startswith(AS_ONE)
    return isinstance(expression, ast.Literal | ast.Cast) or expression.is_boolean()


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
_WITH_PREFIX = {MATH_NAMESPACE: "math", PLACE_NAMESPACE: "place", SVRL_NAMESPACE: "svrl"}
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
        PLACE_NAMESPACE,
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


class QueryParser(TokenParser):
    """Recursive descent over one text; ``scope`` is replaced and restored on the way down."""

    word_form = "'{}'"

    def __init__(self, text: str, limits: ProfileLimits) -> None:
        super().__init__(limits)
        self.lexer = Lexer(text)
        self.scope = Scope(dict(INITIAL_NAMESPACES), {})
        self.function_namespace = FUNCTION_NAMESPACE  # of a call without a prefix
        # Declared variables: with its size what stands where the name does, None for a call.
        self.declared: dict[str, tuple[ast.Expression, int] | None] = {}
        self.renamed: dict[str, str] = {}  # variables in the tree: what the text calls them
        # Variables that are in no tree: what stands where the name does.
        self.stands_for: dict[str, ast.Expression | FunctionText] = {}
        self.hidden: frozenset[str] = frozenset()  # variables around that the text cannot name
        self.strips_space = True  # of constructors, where it is alone between tags and braces
        self.empty_greatest = False  # in order by, where nothing is said
        self._steps = 0
        self._places: dict[int, tuple[ast.Expression, int]] = {}  # by the identity of what is there
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

    def path(self) -> ast.Expression:
        """A path with any origin, or a primary expression alone; the next token begins it."""
        start = self.lexer.peek()
        if start.text in _SLASHES:
            current: ast.Expression = ast.MESSAGE
            if start.text == "/":
                following = self.lexer.peek_second()
                if not self._begins_step(following):
                    self.lexer.take()
                    return current
        else:
            current = self._first_step(start)
        if self.lexer.peek().text in _SLASHES:
            kinds = self.kinds_of(current)
            while (slash := self.lexer.peek()).text in _SLASHES:
                self.lexer.take()
                if kinds and not kinds & NODES:
                    what = f"{slash} needs nodes, this is a value"
                    raise self.refusal("type", what, slash.offset)
                current, kinds = self._next_step(current, kinds, slash.text == "//")
        return current

    def nested(self, token: Token) -> _Nested:
        """The level of nesting that begins at a token."""
        self.enter(token)
        return _Nested(self)

    def kinds_of(self, expression: ast.Expression) -> Kinds:
        return expression.kinds(self.scope.variables, self.scope.context)

    def at(self, place: Token, expression: Placed) -> Placed:
        """An expression that may be an error, with its place."""
        self._places[id(expression)] = expression, place.offset
        return expression

    def place_of(self, parts: Iterable[ast.Expression]) -> int:
        """The place of the innermost of expressions in each other that has one."""
        places = [self._places[id(part)][1] for part in parts if id(part) in self._places]
        return places[-1] if places else 0

    @property
    def is_outermost(self) -> bool:
        """Whether one level of nesting has begun, and none in it."""
        return self._depth == 1

    def expect_string(self, what: str) -> str:
        token = self.lexer.peek()
        if token.kind is not TokenKind.STRING:
            raise self.unexpected(what)
        return self.string_value(self.lexer.take())

    def string_value(self, token: Token) -> str:
        """What a string literal says: doubled quotation marks and references resolved."""
        quote = token.text[0]
        return expand_references(self.lexer.text, token.offset + 1, token.end - 1, doubled=quote)

    def meant(self, token: Token, expected: str) -> str:
        return instead_of(self.lexer.text, token.offset, token.text) or expected

    def namespace_of(self, prefix: str, offset: int) -> str:
        namespace = self.scope.namespaces.get(prefix)
        if namespace is None:
            what = f"the prefix '{prefix}' is not declared"
            wanted = f'declare namespace {prefix} = "…"; at the start of the profile'
            raise self.refusal("undeclared-prefix", what, offset, wanted)
        return namespace

    def resolved(self, token: Token, default: str = "") -> tuple[str, str]:
        """Namespace and local name of a name; ``default``: without a prefix."""
        if token.text.startswith("Q{"):
            return self.qualified_uri(token), token.text[token.text.index("}") + 1 :]
        prefix, colon, local = token.text.rpartition(":")
        return self.namespace_of(prefix, token.offset) if colon else default, local

    def schema_type(self, token: Token) -> str:
        """The local name of a type of XML Schema; "" for another name."""
        prefix, _, local = token.text.rpartition(":")
        is_prefixed = token.kind is TokenKind.NAME and bool(prefix)
        is_one = is_prefixed and self.namespace_of(prefix, token.offset) == SCHEMA_NAMESPACE
        return local if is_one else ""

    def qualified_uri(self, token: Token) -> str:
        """The namespace of a token ``Q{uri}name`` or ``$Q{uri}name``."""
        start = token.end - len(token.text)
        end = start + token.text.index("}")
        uri = expand_references(self.lexer.text, start + 2, end)
        return self.checked_uri(" ".join(uri.split()), token.offset)

    def checked_uri(self, uri: str, offset: int) -> str:
        if uri == ast.ANY:
            raise self.refusal("syntax", "'*' is not a namespace", offset, "the URI of a namespace")
        if len(uri) > self.limits.uri_max:
            raise self.refusal(
                "too-long", f"a namespace of more than {self.limits.uri_max} characters", offset
            )
        return uri

    def no_value(self, token: Token) -> ProfileRefused:
        """For a function where a value stands."""
        return self.refusal("unsupported", NO_FUNCTION_VALUE, token.offset, FUNCTIONS_PLACE)

    # -- origins and steps

    def _begins_step(self, token: Token) -> bool:
        if token.kind is TokenKind.SYMBOL:
            return token.text in ("*", "@", ".", "..", "(", "<")
        return token.kind is not TokenKind.END

    def _first_step(self, start: Token) -> ast.Expression:
        origin = self._origin() or self.primary()
        if origin is not None:
            return self._filtered(origin)
        if not self.scope.context:
            second = self.lexer.peek_second()
            if start.is_word("for", "let") and second.kind is TokenKind.NAME:
                raise self.refusal(
                    "syntax", f"unexpected {second}", second.offset, f"a variable: ${second.text}"
                )
            what = f"{start} is a relative path and nothing is there that it could start from"
            wanted = "a path that starts with a variable or with '/'"
            raise self.refusal("no-context", what, start.offset, wanted)
        return ast.DOT.with_step(self._step(self.scope.context, descendant=False))

    def _next_step(
        self, current: ast.Expression, kinds: Kinds, descendant: bool
    ) -> tuple[ast.Expression, Kinds]:
        """``current``, which is of ``kinds``, with the step behind ``/`` or ``//``; its kinds."""
        if not self._is_plain_step():
            outer = self.scope
            deep = current.with_step(ast.ANY_DEPTH) if descendant else current
            self.scope = outer.with_context(self.kinds_of(deep) or ANYTHING)
            right = self._inner_primary()
            self.scope = outer
            if right is not None:
                mapped = ast.Mapped(deep, right)
                return mapped, self.kinds_of(mapped)
        token = self.lexer.peek()
        step = self._step(kinds, descendant)
        current = current.with_step(step)
        self._count_steps(0, token, len(current.steps))
        if step.axis is None and step.kind is ast.NodeKind.ELEMENT:
            return current, step.kinds_from(kinds)
        return current, self.kinds_of(current)

    def _is_plain_step(self) -> bool:
        """Whether the next tokens can only be a step of an axis."""
        token = self.lexer.peek()
        if token.kind is TokenKind.NAME:
            following = self.lexer.peek_second()
            return following.kind is TokenKind.END or (
                following.kind is TokenKind.SYMBOL and following.text not in ("(", "{")
            )
        return token.kind is TokenKind.END or (
            token.kind is TokenKind.SYMBOL and token.text not in ("(", "<")
        )

    def _inner_primary(self) -> ast.Expression | None:
        """A step that is an expression, with its filters."""
        is_variable = self.lexer.peek().kind is TokenKind.VARIABLE
        primary = self._origin() if is_variable else self.primary()
        return None if primary is None else self._filtered(primary)

    def _filtered(self, origin: ast.Expression) -> ast.Expression:
        """With the predicates behind it."""
        if self.lexer.peek().text != "[":
            return origin
        predicates = self._predicates(self.kinds_of(origin))
        return origin.with_filter(ast.LocationStep(False, ast.NodeKind.SELF, None, predicates))

    def _origin(self) -> ast.Expression | None:
        """A variable or ``.``, where a path can start; what a declared variable stands for."""
        token = self.lexer.peek()
        if token.kind is TokenKind.VARIABLE:
            self.lexer.take()
            if token.text == MESSAGE_VARIABLE:
                return ast.MESSAGE
            name = self.bound_name(self.variable_name(token))
            if name in self.stands_for:
                return self.meaning(name, token)
            if name not in self.scope.variables:
                if name in self.declared:
                    return self._declared_value(name, token)
                self._refuse_variable(token)
            return ast.variable(name)
        if token.text == "." and self.scope.context:
            self.lexer.take()
            return ast.DOT
        return None

    def variable_name(self, token: Token) -> str:
        """The name of a variable as it stands in the tree: ``name`` or ``Q{uri}name``."""
        namespace, local = self.resolved(token)
        return braced(namespace) + local if namespace else local

    def bound_name(self, name: str) -> str:
        """What the variable that a name means here is called in the tree: the innermost one."""
        if self.renamed or self.hidden:
            for bound in reversed(self.scope.variables):
                if self.renamed.get(bound, bound) == name and bound not in self.hidden:
                    return bound
        return "" if name in self.hidden else name

    def _declared_value(self, name: str, token: Token) -> ast.Expression:
        """In its place; what that makes of the text counts as if it were written there."""
        declared = self.declared[name]
        if declared is None:
            return self.variable_call(name)
        value, steps = declared
        self._count_steps(steps, token)
        return value

    def _count_steps(self, steps: int, token: Token, of_path: int = 0) -> None:
        """So many more in the profile; ``of_path``: that one path has now."""
        self._steps += steps
        limits = self.limits
        if self._steps > limits.all_steps_max or of_path > limits.steps_max:
            most = limits.steps_max if of_path > limits.steps_max else limits.all_steps_max
            raise self.refusal("too-many-steps", f"more than {most} steps", token.offset)

    def _refuse_variable(self, token: Token) -> NoReturn:
        known = ", ".join(
            f"${name}" for name in (MESSAGE_VARIABLE, *self.declared, *self.scope.variables)
        )
        raise self.refusal(
            "unbound-variable", f"the variable ${token.text} is not bound", token.offset, known
        )

    def _step(self, kinds: Kinds, descendant: bool) -> ast.LocationStep:
        token = self.lexer.peek()
        self._count_steps(1, token)
        is_child = token.text == "child" and self.lexer.peek_second().text == "::"
        axis = self._axis()
        kind, test = self._node_test(axis)
        if is_child and kind in (ast.NodeKind.ATTRIBUTE, ast.NodeKind.SELF, ast.NodeKind.PARENT):
            raise self.refusal("type", "no child is selected by this", token.offset, "a name")
        step = ast.LocationStep(descendant, kind, test, (), axis)
        if axis is not None:
            step = step.normal()
        if descendant and (step.axis or kind in (ast.NodeKind.SELF, ast.NodeKind.PARENT)):
            kinds = ast.ANY_DEPTH.kinds_from(kinds)
        selected = step.kinds_from(kinds)
        if kinds and not selected and self.limits.idle_paths_refused:
            raise self.refusal("idle-path", f"{token} can never select anything here", token.offset)
        predicates = self._predicates(selected)
        if not predicates:
            return step
        if step.axis is not axis and any(one.is_positional() for one in predicates):
            return ast.LocationStep(descendant, kind, test, predicates, axis)
        return ast.LocationStep(step.descendant, step.kind, step.test, predicates, step.axis)

    def _axis(self) -> ast.Axis | None:
        """An axis written out, taken; child and attribute are the kinds of their steps."""
        token = self.lexer.peek()
        if token.kind is not TokenKind.NAME or self.lexer.peek_second().text != "::":
            return None
        if token.text in ("child", "attribute"):
            self.lexer.take()
            if token.text == "child":
                self.lexer.take()
            return None
        axis = _AXES.get(token.text)
        if axis is None:
            close = get_close_matches(token.text, (*_AXES, "child", "attribute"), n=1)
            if token.text == "namespace":
                reason = LEFT_OUT["in-scope-prefixes"]
                what = f"the axis namespace:: is not in the profile language: {reason[0]}"
                raise self.refusal("unsupported", what, token.offset, reason[1])
            raise self.refusal(
                "syntax",
                f"the axis {token.text}:: is not in the profile language",
                token.offset,
                f"{close[0]}::" if close else "child::, descendant::, parent:: and the like",
            )
        self.lexer.take()
        self.lexer.take()
        return axis

    def _node_test(self, axis: ast.Axis | None) -> tuple[ast.NodeKind, ast.NameTest | None]:
        token = self.lexer.peek()
        if axis is None:
            if token.text == ".":
                self.lexer.take()
                return ast.NodeKind.SELF, None
            if token.text == "..":
                self.lexer.take()
                return ast.NodeKind.PARENT, None
            if token.text in ("@", "::"):
                self.lexer.take()
                return self._attribute_test()
        if token.kind is TokenKind.NAME and self.lexer.peek_second().text == "(":
            return self._kind_test(token)
        return ast.NodeKind.ELEMENT, self._name_test(attribute=False)

    def _attribute_test(self) -> tuple[ast.NodeKind, ast.NameTest | None]:
        token = self.lexer.peek()
        if token.kind is TokenKind.NAME and self.lexer.peek_second().is_symbol("("):
            kind, test = self._kind_test(token, attribute=True)
            if kind not in (ast.NodeKind.ATTRIBUTE, ast.NodeKind.NODE):
                raise self.refusal(
                    "type", f"{token} can never select an attribute", token.offset, "a name or '*'"
                )
            return ast.NodeKind.ATTRIBUTE, test or ast.ANY_NAME
        return ast.NodeKind.ATTRIBUTE, self._name_test(attribute=True)

    def _kind_test(
        self, token: Token, *, attribute: bool = False
    ) -> tuple[ast.NodeKind, ast.NameTest | None]:
        kind = KIND_TESTS.get(token.text)
        if token.text in SCHEMA_TESTS:
            self._refuse_schema_test()
        if token.text == "item":
            raise self.unsupported(f"{token.text}() is", token, "node(), element() or '*'")
        if kind is None:
            raise self.unexpected(_STEP)
        self.lexer.take()
        self.lexer.take()
        inside = self.lexer.peek()
        test = ast.ANY_NAME if kind in (ast.NodeKind.ELEMENT, ast.NodeKind.ATTRIBUTE) else None
        if kind is ast.NodeKind.PROCESSING_INSTRUCTION and not inside.is_symbol(")"):
            target = self.lexer.take()
            is_string = target.kind is TokenKind.STRING
            if not is_string and (target.kind is not TokenKind.NAME or ":" in target.text):
                raise self.refusal("syntax", f"unexpected {target}", target.offset, "a target")
            name = " ".join(self.string_value(target).split()) if is_string else target.text
            if not is_colonless_name(name):
                raise self.refusal("type", "this is no target", target.offset, "a name without ':'")
            test = ast.NameTest("", name)
        elif test is not None and not inside.is_symbol(")"):
            test = self._name_test(attribute=attribute or kind is ast.NodeKind.ATTRIBUTE)
            if self.lexer.peek().is_symbol(","):
                self._type_of_test(self.lexer.take(), kind)
        if kind is ast.NodeKind.DOCUMENT and inside.is_word("element", "schema-element"):
            self._kind_test(inside)
            raise self.unsupported("a test in document-node() is", inside, "')'")
        self.expect(")")
        return kind, test

    def _refuse_schema_test(self) -> NoReturn:
        """``schema-element(name)``: there is no schema that could declare one."""
        word = self.lexer.take()
        self.expect("(")
        token = self.lexer.peek()
        if token.kind is not TokenKind.NAME or "*" in token.text:
            raise self.unexpected("a name")
        self._name_test(attribute=word.text == "schema-attribute")
        what = f"{word.text}({token.text}) is declared by no schema (XPST0008)"
        raise self.refusal("unsupported", what, word.offset, "element() or attribute()")

    def _type_of_test(self, place: Token, kind: ast.NodeKind) -> None:
        """``element(a, xs:untyped)``: what every element, or attribute, of a message is."""
        token = self.lexer.take()
        local = self.schema_type(token)
        if local not in _UNTYPED[kind]:
            if local in _TYPES or type_result(f"xs:{local}"):
                raise self.unsupported("a type in a test is", place, "the name alone")
            what = f"there is no type {token.text} (XPST0008)"
            raise self.refusal("unsupported", what, place.offset, "the name alone")
        if kind is ast.NodeKind.ELEMENT:
            self.takes("?")

    def _name_test(self, *, attribute: bool) -> ast.NameTest:
        token = self.lexer.peek()
        if token.text == "*":
            self.lexer.take()
            return ast.ANY_NAME
        if token.kind is not TokenKind.NAME:
            what = "the name of an attribute" if attribute else "a step"
            raise self.unexpected(f"{what}: a name or '*'" if attribute else _STEP)
        self.lexer.take()
        if token.text.startswith("*:"):
            if token.text == "*:*":
                raise self.refusal("syntax", "'*:*' is not a name test", token.offset, "'*'")
            return ast.NameTest(ast.ANY, token.text[2:])
        return ast.NameTest(*self.resolved(token, "" if attribute else self.scope.namespaces[""]))

    def _predicates(self, context: Kinds) -> tuple[ast.Expression, ...]:
        if self.lexer.peek().text != "[":
            return ()
        predicates: list[ast.Expression] = []
        outer = self.scope
        while self.lexer.peek().text == "[":
            self.enter(self.lexer.take())
            self.scope = outer.with_context(context or ANYTHING)  # of nothing there is none
            if self.lexer.peek().text == "]":
                raise self.unexpected("a condition")
            predicates.append(self.condition())
            self.scope = outer
            self.expect("]", " or an operator")
            self.leave()
        return tuple(predicates)

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

    def binary(self, least: int) -> ast.Expression:
        """Operators of the level ``least`` and tighter ones (precedence climbing: one call for
        each operand, not one for each level, since profiles may be nested deeply)."""
        start = self.lexer.peek()
        left = self._unary() if start.text in ("-", "+") else self._mapped()
        while (
            self.lexer.peek().is_symbol("=>")
            and (name := self.lexer.peek_second()).kind is TokenKind.NAME
            and self.lexer.after(name).is_symbol("(")
        ):
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
        if token.is_word(*_OPERATORS_LEFT_OUT):
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
                    what = f"'{text}' cannot reckon with a {_OPERATOR_WORDS[kinds]}"
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
            what = f"a {_OPERATOR_WORDS[one]} is compared with a {_OPERATOR_WORDS[other]}"
            wanted = "a conversion, such as xs:date(…), around one of them"
            raise self.refusal("type", what, start.offset, wanted)

    def refuse_misspelt(self, token: Token) -> None:
        """Refuses an operator of other languages."""
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
        self.refuse_misspelt(self.lexer.peek())
        return found

    def primary(self) -> ast.Expression | None:
        """What a path may start with that is neither a variable nor a step; None if none."""
        token = self.lexer.peek()
        if token.kind is TokenKind.STRING:
            return ast.Literal(self.string_value(self.lexer.take()))
        if token.kind is TokenKind.NUMBER:
            return self._number(self.lexer.take())
        if token.kind is TokenKind.NAME:
            if self.lexer.peek_second().is_symbol("(") and token.text not in _NOT_CALLS:
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
        kinds = self.kinds_of(argument)  # none of the empty sequence, which is accepted always
        if kinds and not kinds & _ACCEPTED[expected]:
            what = f"argument {index + 1} of {name}() is of the wrong type"
            raise self.refusal("type", what, token.offset, expected.value)

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
                self.lexer.offset = position
                parts.expression(self.direct_constructor())
                position = self.lexer.offset
            else:
                count = len(parts.parts)
                position = self._reference_or_brace(parts, position, len(text))
                if len(parts.parts) > count and not isinstance(parts.parts[-1], str):
                    self._check_attribute_place(parts, match.start())
        raise self.refusal("syntax", f"<{tag}> is not closed", opened, f"</{tag}>")

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
        is_attribute = not isinstance(last, str) and self.kinds_of(last) == ItemKind.ATTRIBUTE
        if is_attribute and parts.is_filled:
            what = "an attribute after other content of the element"
            raise self.refusal("type", what, offset, "the attribute first, or string(…) around it")

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
        if token.text in _AS_THEY_ARE:  # ``ordered { … }``: nothing here may have another order
            with self.nested(self.lexer.take()):
                return self.enclosed()
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
            written: _Namespaces = ()
            while self.takes(","):
                prefix = self.expect_string("a prefix")
                self.expect(",")
                written = (*written, (prefix, self.expect_string("a namespace")))
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
            short = ShortNames(self.scope.namespaces).short
            what = (
                f"{short(shown)[:_SHOWN_MAX]} can only be an error: {fault.reason} ({fault.code})"
            )
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


def prefixes_of(text: str) -> Mapping[str, str]:
    """The namespaces that an accepted profile knows by prefixes, "" the default for element names;
    without that where the text says ``Q{}``, which is how it names elements of no namespace."""
    if is_graph_query(text):
        return {}
    parser = QueryParser(checked_text(text, _LENIENT_LIMITS), _LENIENT_LIMITS)
    parser.profile()
    return parser.scope.namespaces | ({"": ""} if "Q{}" in text else {})


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
