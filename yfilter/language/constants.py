"""Constants: what is the same in every message, and so an error of every message if it is one.

::

    /order[@day > xs:date("2026-02-30")]                the cast raises FORG0001
    for $i in //item return <i>{10 idiv (1 - 1)}</i>    the operation raises FOAR0001
    local:f("x") where $a as xs:integer is declared     the conversion raises XPTY0004
    if ($i/@a) then $i else error()                     guarded: perhaps it is never evaluated
    false() and 1 idiv 0 = 1                            no error, as a side decides
    $i contains text "a.b" using wildcards              the words raise FTDY0020, whatever $i is

A constant is made of literals by operators, casts and functions that are not about the context
item, and of variables that are constants by ``let``.  *Guarded* is what stands in ``try`` or in a
branch of ``if``, ``switch`` or ``typeswitch``, and in what is declared and called from there only.
Constants are looked for in a finished tree, or in that of a shape, whose blanks are filled with the
words of each profile.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from formats.kernel import AVAILABLE
from formats.text import parse_text
from yfilter.errors import MatchLimitExceeded
from yfilter.language import query_ast as ast
from yfilter.language.functions import CURRENT, OF_PLACES
from yfilter.language.nodes import DynamicError, Variables
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.words import WORD_TESTS

if TYPE_CHECKING or AVAILABLE:  # else nobody evaluates here, and a broker finds the faults
    from yfilter.operators.evaluation import Evaluation

# Of all constants of a profile together.  What costs more is left to the messages.
LIMITS = EvaluationLimits(visits_max=4_096, bytes_max=65_536, memory_max=262_144, calls_max=1)
_SAFE = frozenset(("true", "false"))
_EXACT = frozenset(("+", "-", "*"))  # of two numbers that can be written down


class Constant(NamedTuple):
    """``value``, to be evaluated, is of the expression ``of`` in the tree: the same, or of a call
    the conversion of one argument; with ``let`` around it for its variables."""

    value: ast.Expression
    of: ast.Expression


class FaultyConstant(NamedTuple):
    """A constant that raises an error, and what is in it, down to the part that does."""

    parts: tuple[ast.Expression, ...]
    code: str
    reason: str


def constants_in(body: ast.Expression) -> tuple[Constant, ...]:
    """The largest constants of a tree that can be errors and are not guarded."""
    finder = _Finder()
    finder.look_into(body)
    return tuple(finder.found)


def may_be_fault(expression: ast.Expression, lets: Container[str]) -> bool:
    """Whether an expression may be a constant that can only be an error; ``lets``: the variables
    that ``let`` binds.  A tree without such an expression has no fault.

    PERF: a quick look, as most parts of a profile are about the message."""

    def may_be_constant(part: ast.Expression) -> bool:
        match part:
            case ast.UserCall():
                return True
            case ast.FunctionCall(name, (_, words)) if name in WORD_TESTS:
                return WORD_TESTS[name].wildcards and may_be_constant(words)
            case ast.FunctionCall(name, parts) if name in OF_PLACES:
                return any(map(may_be_constant, parts))
            case ast.FunctionCall(_, parts) | ast.Operation(_, parts):
                pass
            case _ if _is_calculated(part):
                parts = tuple(part.same_focus())
            case _:
                return part.bare_variable in lets
        return all(map(may_be_constant, parts)) if parts else not part.uses_context()

    return _is_fallible(expression) and may_be_constant(expression)


def first_fault(constants: Iterable[Constant]) -> FaultyConstant | None:
    """Of the first one that raises an error, as far as LIMITS go."""
    constants = tuple(constants)
    if not constants or not AVAILABLE:
        return None
    evaluation = _without_message()
    evaluation.renew()
    try:
        for value, of in constants:
            bare, variables = _bound(evaluation, value)
            try:
                evaluation.value(bare, None, variables)
            except DynamicError as error:
                return _innermost(evaluation, bare, variables, (of,), error)
    except (DynamicError, MatchLimitExceeded, RecursionError):
        pass  # of a variable, which is said where it is bound; too dear, or too deep
    return None


def _bound(evaluation: Evaluation, value: ast.Expression) -> tuple[ast.Expression, Variables]:
    """A constant without its variables, and what these are."""
    if not isinstance(value, ast.Flwor):
        return value, {}
    variables = {}
    for clause in value.clauses:
        assert isinstance(clause, ast.LetClause)
        bare, outer = _bound(evaluation, clause.value)
        variables[clause.variable] = evaluation.value(bare, None, outer)
    return value.result, variables


def _innermost(
    evaluation: Evaluation,
    value: ast.Expression,
    variables: Variables,
    parts: tuple[ast.Expression, ...],
    error: DynamicError,
) -> FaultyConstant:
    for part in value.same_focus():
        try:
            evaluation.value(part, None, variables)
        except DynamicError as inner:
            if str(inner) == str(error):
                return _innermost(evaluation, part, variables, (*parts, part), error)
    return FaultyConstant(parts, error.code, error.reason)


@cache
def _without_message() -> Evaluation:
    return Evaluation(parse_text(b"<none/>"), LIMITS)


class _Finder:
    """Goes through a tree once, and through what it calls."""

    def __init__(self) -> None:
        self.found: list[Constant] = []
        self._library: tuple[ast.FunctionDeclaration, ...] = ()
        self._entered: set[tuple[str, int]] = set()
        self._values: dict[str, ast.Expression] = {}  # of variables that are constants here

    def look_into(self, expression: ast.Expression) -> None:
        if self._is_constant(expression):
            self._add(expression, expression)

    def _is_constant(self, expression: ast.Expression) -> bool:
        """Whether it is; the constants in one that is not are found."""
        match expression:
            case ast.TryCatch():
                return False
            case ast.FunctionCall(name) if name in CURRENT:
                return False
            case ast.Conditional(asked) | ast.Typeswitch(asked):
                self.look_into(asked)
                return False
            case ast.UserCall():
                self._look_into_call(expression)
                return False
            case ast.Sequence(parts) if parts and all(type(part) is ast.Literal for part in parts):
                return True
            case ast.FunctionCall(name, (source, words)) if name in WORD_TESTS:
                if self._is_constant(words):
                    self._add(ast.FunctionCall(name, (ast.EMPTY, words)), expression)
                self.look_into(source)
                return False
            case ast.FunctionCall(name, parts) if name in OF_PLACES:
                for part in parts:
                    if self._is_constant(part):
                        self._add(ast.FunctionCall("place:known", (part,)), expression)
                return False
            case _ if expression.bare_variable:
                return expression.bare_variable in self._values
        lets = self._lets(expression)
        parts = tuple(expression.same_focus())
        are_constant = []
        for part in parts:
            are_constant.append(self._is_constant(part))
            if are_constant[-1] and id(part) in lets:
                self._values[lets[id(part)]] = self._closed(part)
        if _is_calculated(expression) and all(are_constant):
            return bool(parts) or not expression.uses_context()
        for part, is_constant in zip(parts, are_constant, strict=True):
            if is_constant:
                self._add(part, part)
        for part in expression.new_focus():
            self.look_into(part)
        return False

    def _lets(self, expression: ast.Expression) -> dict[int, str]:
        """Variables by the identity of their values.  What is bound here has another value than
        where the same name was bound before."""
        for name in expression.binds():
            self._values.pop(name, None)
        if not isinstance(expression, ast.Flwor) or expression.group is not None:
            return {}
        lets = [clause for clause in expression.clauses if isinstance(clause, ast.LetClause)]
        return {id(let.value): let.variable for let in lets}

    def _look_into_call(self, call: ast.UserCall) -> None:
        """Its arguments, and what it calls, once."""
        library = call.library or self._library
        key = call.name, len(call.arguments)
        called = next(one for one in library if (one.name, len(one.parameters)) == key)
        for argument, (name, type_) in zip(call.arguments, called.parameters, strict=True):
            if self._is_constant(argument):
                self._add(argument, argument)
                if type_ is not None:
                    takes = ast.FunctionDeclaration(
                        call.name, ((name, type_),), None, ast.Sequence(())
                    )
                    self._add(ast.UserCall(call.name, (argument,), (takes,)), call)
        if key in self._entered:
            return
        self._entered.add(key)
        outer, self._library = self._library, library
        values, self._values = self._values, {}
        if self._is_constant(called.body):
            self._add(called.body, called.body)
            if called.result is not None:
                gives = ast.FunctionDeclaration(call.name, (), called.result, called.body)
                self._add(ast.UserCall(call.name, (), (gives,)), call)
        self._library, self._values = outer, values

    def _add(self, value: ast.Expression, of: ast.Expression) -> None:
        if _is_fallible(value):
            self.found.append(Constant(self._closed(value), of))

    def _closed(self, value: ast.Expression) -> ast.Expression:
        """With the values of its variables."""
        if not self._values:
            return value
        names = value.free_variables()
        lets = [ast.LetClause(name, one) for name, one in self._values.items() if name in names]
        return ast.Flwor(tuple(lets), None, value) if lets else value


def _is_calculated(expression: ast.Expression) -> bool:
    return expression.is_of_its_parts or isinstance(expression, ast.Typed | ast.FunctionCall)


def _is_fallible(constant: ast.Expression) -> bool:
    match constant:
        case ast.FunctionCall(name):
            return name not in _SAFE
        case ast.Operation(name, (ast.Literal(one), ast.Literal(other))) if name in _EXACT:
            return isinstance(one, str) or isinstance(other, str)
        case ast.And(parts) | ast.Or(parts):  # a list has no effective boolean value
            return any(isinstance(part, ast.Sequence) or _is_fallible(part) for part in parts)
        case ast.Operation() | ast.Cast() | ast.Typed() | ast.UserCall():
            return True
    return any(map(_is_fallible, constant.same_focus()))
