"""Very many conditions on an integer, such as a count or a position: ``position() mod 7 = 2``.

Which of them hold is found out once for each integer, and remembered, as the integers of messages
are small and recur.
"""

from __future__ import annotations

from array import array

from yfilter.language.query_parser import reread
from yfilter.operators.operators import OperatorTable

_INTEGERS_MAX = 4_096  # of a column that are remembered
_ATOMS_MAX = 1 << 20  # that hold of them, all columns together


class IntegerTests:
    """Tests are atoms of a column; in their text ``position()`` stands for the integer."""

    def __init__(self, operators: OperatorTable) -> None:
        self._operators = operators
        self._tests: dict[int, dict[int, int]] = {}  # by column: operator by atom
        self._known: dict[int, dict[int, array[int]]] = {}  # by column: the atoms that hold
        self._atoms = 0  # in these

    def add(self, column: int, text: str, atom: int) -> None:
        number = self._operators.acquire(reread(text).body)
        self._tests.setdefault(column, {})[atom] = number
        for integer, atoms in self._known.get(column, {}).items():
            if self._operators.holds_at(number, integer):
                atoms.append(atom)

    def remove(self, column: int, atom: int) -> None:
        self._operators.release(self._tests[column].pop(atom))
        for atoms in self._known.get(column, {}).values():
            if atom in atoms:
                atoms.remove(atom)
        if not self._tests[column]:
            del self._tests[column]
            self._known.pop(column, None)

    def find(self, column: int, integer: int) -> array[int]:
        """The atoms of the tests that hold of an integer.  ``operators.visits`` grows by the tests
        that are looked at."""
        known = self._known.setdefault(column, {})
        atoms = known.get(integer)
        if atoms is None:
            tests = self._tests.get(column, {})
            holds_at = self._operators.holds_at
            atoms = array("i", [atom for atom, one in tests.items() if holds_at(one, integer)])
            self._atoms += len(atoms)
            if self._atoms > _ATOMS_MAX or len(known) >= _INTEGERS_MAX:
                self._known.clear()
                self._atoms = len(atoms)
                known = self._known.setdefault(column, {})
            known[integer] = atoms
        return atoms
