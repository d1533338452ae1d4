"""Very many conditions on one number, such as a count or a position: ``position() mod 7 = 2``.

Conditions whose left sides are equal share one function of the number, and their constants are
looked up.  The conditions that hold are remembered for each number, as counts and the like recur.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from math import fmod, isfinite, isnan

from yfilter.language import query_ast as ast
from yfilter.language.atoms import arithmetic, compare, negate, to_double
from yfilter.language.nodes import Atom, DynamicError
from yfilter.language.query_parser import reread
from yfilter.operators.operators import OperatorTable

NUMBER = ast.FunctionCall("position", ())  # stands for an integer in the text of a test
DOUBLE = ast.FunctionCall("number", (NUMBER,))  # stands for a double there

_NUMBERS_MAX = 4_096  # of a column that are remembered
_ATOMS_MAX = 1 << 20  # that hold of them, all columns together
_NAN = float("nan")


class _Group:
    """The tests with one left side: their relations, constants and atoms, those of an equality by
    the constant.  ``divisor``: of a left side that is the number ``mod`` a literal, else 0."""

    def __init__(self, left: ast.Expression) -> None:
        self.divisor = 0.0
        match left:
            case ast.Operation("mod", (ast.FunctionCall(), ast.Literal(int(value)))) if value:
                self.divisor = to_double(value)
        self.equal: dict[float, dict[int, ast.Number]] = {}
        self.others: dict[int, tuple[ast.Operator, ast.Number]] = {}
        self._function = _function_of(left)

    def add(self, relation: ast.Operator, constant: ast.Number, atom: int) -> None:
        if relation is ast.Operator.EQ:
            self.equal.setdefault(to_double(constant), {})[atom] = constant
        else:
            self.others[atom] = relation, constant

    def remove(self, relation: ast.Operator, constant: ast.Number, atom: int) -> None:
        if relation is ast.Operator.EQ:
            key = to_double(constant)
            del self.equal[key][atom]
            if not self.equal[key]:
                del self.equal[key]
        else:
            del self.others[atom]

    def find(self, number: ast.Number) -> list[int]:
        """The atoms of the tests that hold of a number."""
        try:
            found = self._function(number)
        except DynamicError:
            return []
        equal = self.equal.get(to_double(found), {})
        tests = [(atom, ast.Operator.EQ, constant) for atom, constant in equal.items()]
        tests += [(atom, *test) for atom, test in self.others.items()]
        return [atom for atom, relation, constant in tests if compare(found, relation, constant)]


def _function_of(expression: ast.Expression) -> Callable[[Atom], Atom]:
    """Arithmetic as a function of the number in it; DynamicError where it has no value."""
    match expression:
        case ast.Literal(value):
            return lambda _: value
        case ast.Operation("negate", (operand,)):
            inner = _function_of(operand)
            return lambda number: negate(inner(number))
        case ast.Operation(name, (left, right)):
            one, other = _function_of(left), _function_of(right)
            return lambda number: arithmetic(name, one(number), other(number))
        case _:
            return to_double if expression == DOUBLE else lambda number: number


class _Column:
    """The tests of one column."""

    def __init__(self) -> None:
        self.tests: dict[int, tuple[ast.Expression, ast.Operator, ast.Number]] = {}  # by atom
        self.groups: dict[ast.Expression, _Group] = {}  # by left side
        self.known: dict[float, array[int]] = {}  # by number: the atoms that hold
        self._moduli: list[tuple[float, dict[float, dict[int, ast.Number]]]] = []
        self._others: list[_Group] = []
        self._is_changed = False

    def add(self, text: str, atom: int) -> None:
        test = reread(text).body
        assert isinstance(test, ast.Comparison) and isinstance(test.right, ast.Literal)
        left, constant = test.left, test.right.value
        assert not isinstance(constant, str)
        self.tests[atom] = left, test.operator, constant
        if left not in self.groups:
            self.groups[left] = _Group(left)
        self.groups[left].add(test.operator, constant, atom)
        self._change()

    def remove(self, atom: int) -> None:
        left, relation, constant = self.tests.pop(atom)
        group = self.groups[left]
        group.remove(relation, constant, atom)
        if not group.equal and not group.others:
            del self.groups[left]
        self._change()

    def _change(self) -> None:
        self.known.clear()
        self._is_changed = True

    def find(self, number: float) -> list[int]:
        """The atoms of the tests that hold of a number."""
        if self._is_changed:
            self._is_changed = False
            groups = self.groups.values()
            self._moduli = [(one.divisor, one.equal) for one in groups if _is_modulus(one)]
            self._others = [one for one in groups if not _is_modulus(one)]
        atoms: list[int] = []
        if isfinite(number):
            # PERF: each profile may have a divisor of its own.
            for divisor, equal in self._moduli:
                found = fmod(number, divisor)
                if found in equal:
                    atoms += equal[found]
        exact = int(number) if number.is_integer() else number
        for group in self._others:
            atoms += group.find(exact)
        return atoms


def _is_modulus(group: _Group) -> bool:
    return group.divisor != 0 and not group.others


class NumberTests:
    """Tests are atoms of a column; in their text NUMBER or DOUBLE stands for its number."""

    def __init__(self, operators: OperatorTable) -> None:
        self._operators = operators
        self._columns: dict[int, _Column] = {}
        self._atoms = 0  # that are known to hold

    def add(self, column: int, text: str, atom: int) -> None:
        self._columns.setdefault(column, _Column()).add(text, atom)

    def remove(self, column: int, atom: int) -> None:
        self._columns[column].remove(atom)
        if not self._columns[column].tests:
            del self._columns[column]

    def find(self, column: int, number: float) -> array[int]:
        """The atoms of the tests that hold of a number, which is an integer wherever the column is
        a count.  ``operators.visits`` grows by the functions that are asked."""
        tests = self._columns[column]
        number = _NAN if isnan(number) else number
        atoms = tests.known.get(number)
        if atoms is None:
            self._operators.visits += len(tests.groups)
            atoms = array("i", tests.find(number))
            self._atoms += len(atoms)
            if self._atoms > _ATOMS_MAX or len(tests.known) >= _NUMBERS_MAX:
                for each in self._columns.values():
                    each.known.clear()
                self._atoms = len(atoms)
            tests.known[number] = atoms
        return atoms
