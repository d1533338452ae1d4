"""Functions that take functions, as the expressions of the language that they are short for.

A function is no value of the language.  One that stands where a function is asked for is written
out there::

    for-each($s, function($x) { e })     $s ! (let $x := . return e)
    filter($s, function($x) { e })       $s ! (let $x := . return if (e) then $x else ())
    sort($s, (), function($x) { e })     for $x in $s order by e return $x
    fold-left($s, $z, f)                 a declared function, which folds one half after the other,
    for-each-pair($s, $t, f)             as this one goes through both

where ``let`` is a ``typeswitch``, as an error of a function is one of the whole call and a clause
would only leave out its tuple.  An expression that is no error has the form that an index serves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from yfilter.language import query_ast as ast
from yfilter.language.comparison import Operator
from yfilter.language.functions import FUNCTIONS, TYPES, ResultKind
from yfilter.language.namespaces import WRITTEN_OUT, braced

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
