"""Very many conditions on one number, such as a count or a position: ``e * 3 > 7``.

Arithmetic of a number and literals is asked of the number itself (``about_number``)::

    e * 3 > 7                   e >= 2.3333333333333335     a bound, as any other
    position() = 3              count(…) = 2
    e idiv 7 = 2                within 14 20.999999999999996
    abs(e - 5) > 1              within -inf 3.9999999999999996 6.000000000000001 inf
    (e + 1) mod 7 = 2           mod 1 7 2
    e mod 7 > 2                 if (number(position()) mod 7) > 2

The last three are tests, all of which are looked through at once (``NumberTests``).  The bounds are
exact: they are searched for among all numbers, by the function of the number, which rises or falls.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from math import inf, isfinite, isnan
from operator import add, ge, gt, le, lt, mul, sub
from struct import pack, unpack
from typing import Any, NamedTuple

from yfilter.index.candidates import add_congruent, add_within
from yfilter.language import query_ast as ast
from yfilter.language.atoms import arithmetic, compare, doubles, negate, to_double
from yfilter.language.function_library import NUMBER_FUNCTIONS
from yfilter.language.nodes import Atom, DynamicError
from yfilter.language.query_parser import reread
from yfilter.language.query_text import unparse
from yfilter.operators.operators import OperatorTable

NUMBER = ast.FunctionCall("position", ())  # stands for an integer in the text of a test
DOUBLE = ast.FunctionCall("number", (NUMBER,))  # stands for a double there

PAIRS_SLACK = 1e-6  # of a difference that stands for a comparison of its numbers
_NUMBERS_MAX = 4_096  # of a column that are remembered
_ATOMS_MAX = 1 << 20  # that hold of them, all columns together
_NAN = float("nan")
_WITHIN, _MOD, _IF = "within", "mod", "if"
_DIVISIONS = frozenset(("div", "idiv", "mod"))
# Functions of whole numbers, and how far before one they reach it.
WHOLE = {"floor": 0.0, "ceiling": 1.0, "round": 0.5}
_IN_STEPS = WHOLE.keys() | {"idiv"}  # which jump by 1


# -------------------------------------------------------------------------------------------------
# The numbers that a search goes through, by their places in order.


class _Numbers(NamedTuple):
    low: int
    high: int
    at: Callable[[int], Any]
    place_of: Callable[[float], int]


def _double_at(place: int) -> float:
    number: float = unpack("<d", pack("<q", abs(place)))[0]
    return -number if place < 0 else number


def _place_of(number: float) -> int:
    place: int = unpack("<q", pack("<d", abs(number)))[0]
    return -place if number < 0 else place


_INFINITY = _place_of(inf)
_DOUBLES = _Numbers(-_INFINITY, _INFINITY, _double_at, _place_of)
_FINITE = _Numbers(1 - _INFINITY, _INFINITY - 1, _double_at, _place_of)
_COUNTS = _Numbers(0, 1 << 53, int, lambda number: int(min(max(number, 0.0), 2.0**53)))


def _least(numbers: _Numbers, holds: Callable[[Any], bool], guess: int) -> int:
    """The place of the first number of which something holds, as it does of all behind; the place
    behind the last if there is none."""
    low, high = numbers.low - 1, numbers.high + 1
    at, stride = guess, 1
    while high - low > 1:
        at = min(max(at, low + 1), high - 1)
        if holds(numbers.at(at)):
            high = at
        else:
            low = at
        if low < numbers.low or high > numbers.high:  # PERF: the guess is nearly always beside it
            at = high - stride if low < numbers.low else low + stride
            stride *= 2
        else:
            at = (low + high) // 2
    return high


# -------------------------------------------------------------------------------------------------
# A condition, said of its number.


def about_number(test: ast.Comparison) -> tuple[ast.Operator, float | str | None]:
    """A comparison of arithmetic on NUMBER or DOUBLE with a literal as one of the number: with a
    bound or an equal, or EQ and the text of a test; None where it may be an error."""
    assert isinstance(test.right, ast.Literal) and not isinstance(test.right.value, str)
    if isinstance(test.left, ast.FunctionCall) and test.left.name == "near":
        number = to_double(test.right.value)
        near = number - PAIRS_SLACK, number + PAIRS_SLACK, inf, inf
        return ast.Operator.EQ, " ".join((_WITHIN, *map(repr, near)))
    placed = _placed(test)
    if placed is not None:
        return placed
    literals = [part.value for part in test.within() if isinstance(part, ast.Literal)]
    divisors = [
        part.operands[1]
        for part in test.left.within()
        if isinstance(part, ast.Operation) and part.name in _DIVISIONS
    ]
    if any(not isinstance(one, ast.Literal) or not one.value for one in divisors):
        return ast.Operator.EQ, None
    if any(abs(to_double(value)) >= 1 << 53 for value in literals):
        return ast.Operator.EQ, None
    found = _remainder(test)
    if found is not None:
        return ast.Operator.EQ, " ".join((_MOD, *map(repr, found)))
    try:
        ranges = _ranges(test.left, test.operator, test.right.value)
    except DynamicError:
        ranges = None
    if ranges is None:
        return ast.Operator.EQ, f"{_IF} {unparse(test)}"
    if len(ranges) == 1:
        ((low, high),) = ranges
        if low == high:
            return ast.Operator.EQ, low
        if high == inf and isfinite(low):
            return ast.Operator.GE, low
        if low == -inf and isfinite(high):
            return ast.Operator.LE, high
    bounds = chain.from_iterable(ranges or [(inf, -inf)])
    return ast.Operator.EQ, " ".join((_WITHIN, *map(repr, bounds)))


def _placed(test: ast.Comparison) -> tuple[ast.Operator, float] | None:
    """``NUMBER + 1 < 7``, of integers, as ``NUMBER <= 5``; the same as ``_ranges`` finds."""
    # PERF: profiles of positions are many.
    match test:
        case ast.Comparison(ast.Operation("+", (number, ast.Literal(int(before)))), operator) if (
            number == NUMBER and isinstance(test.right, ast.Literal)
        ):
            place = test.right.value
            if not isinstance(place, int) or not before < place < 1 << 53:
                return None
            place -= before
            match operator:
                case ast.Operator.EQ | ast.Operator.GE | ast.Operator.LE:
                    return operator, float(place)
                case ast.Operator.GT:
                    return ast.Operator.GE, float(place + 1)
                case ast.Operator.LT:
                    return ast.Operator.LE, float(place - 1)
    return None


def _remainder(test: ast.Comparison) -> tuple[float, float, float] | None:
    """Offset, divisor and remainder of ``(NUMBER + 1) mod 7 = 2``."""
    match test:
        case ast.Comparison(
            ast.Operation("mod", (number, ast.Literal(divisor))),
            ast.Operator.EQ,
            ast.Literal(remainder),
        ):
            offset: Any = 0
            match number:
                case ast.Operation("+", (inner, ast.Literal(value))):
                    number, offset = inner, value
                case ast.Operation("-", (inner, ast.Literal(value))):
                    number, offset = inner, negate(value)
            if number == DOUBLE or (
                number == NUMBER and all(isinstance(one, int) for one in (divisor, offset))
            ):
                return to_double(offset), to_double(divisor), to_double(remainder)
    return None


def _ranges(
    left: ast.Expression, relation: ast.Operator, constant: Any
) -> list[tuple[float, float]] | None:
    """The first and last numbers of each range in which a comparison holds; None if the function
    is not known to rise or to fall."""
    if isinstance(left, ast.FunctionCall) and left.name == "abs":
        return _ranges_of_amount(left.arguments[0], relation, constant)
    slope = _slope(left)
    parts = list(left.within())
    names = {part.name for part in parts if isinstance(part, ast.Operation | ast.FunctionCall)}
    if not slope or (relation is ast.Operator.NE and DOUBLE in parts):  # which holds of NaN
        return None
    if DOUBLE not in parts:
        numbers = _COUNTS
        function = _function_of(left)
        values = [part.value for part in parts if isinstance(part, ast.Literal)]
        if any(isinstance(one, float) for one in (*values, constant)):
            function, constant = partial(_as_double, function), to_double(constant)
    else:
        numbers = _FINITE if "idiv" in names else _DOUBLES
        constant = to_double(constant)
        is_whole = "idiv" in names
        function = _function_of(left, of_doubles=not is_whole)
        function = partial(_as_double, function) if is_whole else function
    if slope < 0:
        relation = ast.MIRRORED[relation]

    def first(compared: Callable[[Any, Any], bool]) -> int:
        width = 1.0 if names & _IN_STEPS and compared in (gt, lt) else 0.0
        guess = numbers.place_of(_inverse(left, to_double(constant) + width * slope))
        return _least(numbers, lambda number: compared(function(number), constant), guess)

    reach, beyond = (ge, gt) if slope > 0 else (le, lt)
    low, high = numbers.low, numbers.high
    match relation:
        case ast.Operator.GE:
            places = [(first(reach), high)]
        case ast.Operator.GT:
            places = [(first(beyond), high)]
        case ast.Operator.LT:
            places = [(low, first(reach) - 1)]
        case ast.Operator.LE:
            places = [(low, first(beyond) - 1)]
        case ast.Operator.EQ:
            places = [(first(reach), first(beyond) - 1)]
        case _:
            places = [(low, first(reach) - 1), (first(beyond), high)]
    if numbers is not _COUNTS:
        return [(_double_at(one), _double_at(other)) for one, other in places if one <= other]
    return [
        (-inf if one == low else float(one), inf if other == high else float(other))
        for one, other in places
        if one <= other
    ]


def _ranges_of_amount(
    left: ast.Expression, relation: ast.Operator, constant: Any
) -> list[tuple[float, float]] | None:
    """The same of ``abs(left)``."""
    above = _ranges(left, relation, constant)
    below = _ranges(left, ast.MIRRORED[relation], negate(constant))
    if above is None or below is None or relation is ast.Operator.NE:
        return None
    if relation in (ast.Operator.LT, ast.Operator.LE):
        return [
            (max(one[0], other[0]), min(one[1], other[1]))
            for one in above
            for other in below
            if max(one[0], other[0]) <= min(one[1], other[1])
        ]
    if constant < 0:
        return [] if relation is ast.Operator.EQ else [(-inf, inf)]
    return list(dict.fromkeys((*below, *above)))


def _slope(expression: ast.Expression) -> int | None:
    """1 for a function that never falls as its number rises, -1 for one that never rises; 0 for a
    constant, None where that is not known."""
    match expression:
        case ast.Literal():
            return 0
        case ast.FunctionCall(name, (operand,)) if name in WHOLE:
            return _slope(operand)
        case ast.Operation("negate", (operand,)):
            slope = _slope(operand)
            return None if slope is None else -slope
        case ast.Operation("+" | "-" as name, (left, right)):
            one, other = _slope(left), _slope(right)
            if one is None or other is None or (one and other):
                return None
            return one or (other if name == "+" else -other)
        case ast.Operation("*" | "div" | "idiv" as name, (left, right)):
            if name == "*" and isinstance(left, ast.Literal):
                left, right = right, left
            slope = _slope(left)
            if slope is None or not isinstance(right, ast.Literal):
                return None
            factor = to_double(right.value)
            if name == "idiv" and abs(factor) < 1:
                return None  # a quotient may be beyond all numbers
            return slope * ((factor > 0) - (factor < 0))
        case ast.Operation():
            return None
        case _:
            return 1


def _inverse(expression: ast.Expression, result: float) -> float:
    """About the number of which a function has a result."""
    match expression:
        case ast.FunctionCall(name, (operand,)) if name in WHOLE:
            return _inverse(operand, result - WHOLE[name])
        case ast.Operation("negate", (operand,)):
            return _inverse(operand, -result)
        case ast.Operation(name, (left, ast.Literal(value))) if not isinstance(value, str):
            other = to_double(value)
            match name:
                case "+":
                    result -= other
                case "-":
                    result += other
                case "*":
                    result = result / other if other else 0.0
                case _:
                    result *= other
            return _inverse(left, result)
        case ast.Operation(name, (ast.Literal(value), right)) if not isinstance(value, str):
            other = to_double(value)
            if name == "*":
                return _inverse(right, result / other if other else 0.0)
            return _inverse(right, result - other if name == "+" else other - result)
        case _:
            return result


def _as_double(function: Callable[[Any], Atom], number: Any) -> float:
    return to_double(function(number))


_OF_DOUBLES: dict[str, Callable[[Any, Any], Any]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "div": partial(doubles, "div"),
}


def _function_of(expression: ast.Expression, of_doubles: bool = False) -> Callable[[Any], Any]:
    """Arithmetic as a function of the number in it; DynamicError where it has no value.
    ``of_doubles``: without a look at the types of operands."""
    match expression:
        case ast.Literal(value):
            constant = to_double(value) if of_doubles else value
            return lambda _: constant
        case ast.Operation("negate", (operand,)):
            inner = _function_of(operand, of_doubles)
            return lambda number: negate(inner(number))
        case ast.FunctionCall("abs", (operand,)):
            inner = _function_of(operand)
            return lambda number: abs(inner(number))
        case ast.FunctionCall(name, (operand,)) if name in WHOLE:
            inner, whole = _function_of(operand, of_doubles), NUMBER_FUNCTIONS[name]
            return lambda number: whole(inner(number))
        case ast.Operation(name, (left, right)):
            one, other = _function_of(left, of_doubles), _function_of(right, of_doubles)
            combined = _OF_DOUBLES[name] if of_doubles else partial(arithmetic, name)
            return lambda number: combined(one(number), other(number))
        case _:
            return to_double if expression == DOUBLE else lambda number: number


# -------------------------------------------------------------------------------------------------
# Tests of a number, which are atoms of its column.


class _Column:
    """The tests of one column."""

    def __init__(self) -> None:
        self.known: dict[float, array[int]] = {}  # by number: the atoms that hold
        # By atom: two bounds for each range; offset, divisor and remainder; any other condition.
        self._within: dict[int, tuple[float, ...]] = {}
        self._congruent: dict[int, tuple[float, ...]] = {}
        self._others: dict[int, ast.Comparison] = {}
        self._functions: dict[ast.Expression, Callable[[Any], Any]] = {}
        self._rows: tuple[tuple[array[float], array[int]], ...] | None = None

    @property
    def cost(self) -> int:
        """Of a number that is not known, in visits."""
        return 1 + (len(self._within) + len(self._congruent)) // 16 + len(self._others)

    def is_empty(self) -> bool:
        return not (self._within or self._congruent or self._others)

    def add(self, text: str, atom: int) -> None:
        kind, _, said = text.partition(" ")
        if kind == _IF:
            test = reread(said).body
            assert isinstance(test, ast.Comparison)
            self._others[atom] = test
        else:
            asked = self._within if kind == _WITHIN else self._congruent
            asked[atom] = tuple(map(float, said.split()))
        self._change()

    def remove(self, atom: int) -> None:
        for asked in (self._within, self._congruent, self._others):
            asked.pop(atom, None)
        self._change()

    def _change(self) -> None:
        self.known.clear()
        self._rows = None

    def find(self, number: float) -> list[int]:
        """The atoms of the tests that hold of a number."""
        if self._rows is None:
            self._rows = tuple(
                (
                    array("d", chain.from_iterable(asked.values())),
                    array("i", [atom for atom in asked for _ in range(len(asked[atom]) // width)]),
                )
                for asked, width in ((self._within, 2), (self._congruent, 3))
            )
            lefts = {test.left for test in self._others.values()}
            self._functions = {left: _function_of(left) for left in lefts}
        atoms: list[int] = []
        for search, (numbers, rows) in zip((add_within, add_congruent), self._rows, strict=True):
            if rows:
                search(number, numbers, rows, atoms)
        atoms += self._found(int(number) if number.is_integer() else number)
        return atoms

    def _found(self, number: ast.Number) -> Iterator[int]:
        values: dict[ast.Expression, Atom | None] = {}
        for left, function in self._functions.items():
            try:
                values[left] = function(number)
            except DynamicError:
                values[left] = None
        for atom, test in self._others.items():
            value = values[test.left]
            assert isinstance(test.right, ast.Literal)
            if value is not None and compare(value, test.operator, test.right.value):
                yield atom


class NumberTests:
    """Tests are atoms of a column, by the texts that ``about_number`` gives."""

    def __init__(self, operators: OperatorTable) -> None:
        self._operators = operators
        self._columns: dict[int, _Column] = {}
        self._atoms = 0  # that are known to hold

    def add(self, column: int, text: str, atom: int) -> None:
        self._columns.setdefault(column, _Column()).add(text, atom)

    def remove(self, column: int, atom: int) -> None:
        self._columns[column].remove(atom)
        if self._columns[column].is_empty():
            del self._columns[column]

    def find(self, column: int, number: float) -> array[int]:
        """The atoms of the tests that hold of a number, which is an integer wherever the column is
        a count.  ``operators.visits`` grows by the tests that are asked."""
        tests = self._columns[column]
        number = _NAN if isnan(number) else number
        atoms = tests.known.get(number)
        if atoms is None:
            self._operators.visits += tests.cost
            atoms = array("i", tests.find(number))
            self._atoms += len(atoms)
            if self._atoms > _ATOMS_MAX or len(tests.known) >= _NUMBERS_MAX:
                for each in self._columns.values():
                    each.known.clear()
                self._atoms = len(atoms)
            tests.known[number] = atoms
        return atoms
