# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Conditions: the operators whose value is true or false, and are asked for nothing else.

``or`` and ``and`` ask their parts in order up to the first that decides; an error in a part is one
of the whole where no other part decides, as in the interpreter.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from collections.abc import Sequence
from math import nan

from yfilter.language.atoms import is_number, to_double
from yfilter.language.evaluator import effective_boolean
from yfilter.language.nodes import Atom, DynamicError, Value
from yfilter.language.query_ast import Operator as Relation

if cython.compiled:
    from cython.cimports.yfilter.operators.operator import Operator
    from cython.cimports.yfilter.operators.path import Path, Variable
    from cython.cimports.yfilter.operators.scratch import Scratch
    from cython.cimports.yfilter.operators.value_tests import EqualTo, Matches, ValueTest, compares
else:
    from yfilter.operators.operator import Operator
    from yfilter.operators.path import Path, Variable
    from yfilter.operators.scratch import Scratch
    from yfilter.operators.value_tests import EqualTo, Matches, ValueTest, compares
from yfilter.operators.value_tests import RELATIONS


class Condition(Operator):
    """An operator that is true or false."""

    def value(self, node: cython.longlong) -> Value:
        return [self.holds(node)]


class Constant(Operator):
    """Literals."""

    def __init__(self, items: Sequence[Atom]) -> None:
        super().__init__()
        self._items = list(items)
        self._truth = effective_boolean(self._items)

    def value(self, node: cython.longlong) -> Value:
        return self._items

    def items(self, node: cython.longlong) -> list[Atom]:
        return self._items

    def holds(self, node: cython.longlong) -> cython.bint:
        return self._truth

    def number(self) -> float:
        """The value of a single number as an xs:double; NaN for anything else."""
        if len(self._items) != 1 or not is_number(self._items[0]):
            return nan
        return to_double(self._items[0])


class Not(Condition):
    def __init__(self, operand: Operator) -> None:
        super().__init__((operand,))
        self._operand = operand

    def holds(self, node: cython.longlong) -> cython.bint:
        return not self._operand.holds(node)


class Both(Condition):
    """``and``; with ``some``, ``or``."""

    def __init__(self, parts: Sequence[Operator], some: bool = False) -> None:
        super().__init__(parts)
        self._parts = list(parts)
        self._wanted = some

    def holds(self, node: cython.longlong) -> cython.bint:
        part: Operator
        error: DynamicError | None = None
        for part in self._parts:
            try:
                if part.holds(node) == self._wanted:
                    return self._wanted
            except DynamicError as raised:
                error = raised
        if error is not None:
            raise error
        return not self._wanted


class ValueCondition(Condition):
    """A path, and a test that is asked of values of its nodes."""

    def __init__(self, path: Path, test: ValueTest) -> None:
        super().__init__((path,))
        self._scratch = path.scratch
        self._path = path
        self._test = test


class SomeValue(ValueCondition):
    """A test accepts the value of some node: a general comparison with literals."""

    def holds(self, node: cython.longlong) -> cython.bint:
        return self._path.some(node, self._test)

    def key(self) -> tuple[int, bytes] | None:
        """The attribute of the context node and the text that it is to be equal to, if that is
        what is asked."""
        attribute = self._path.own_attribute()
        text = self._test.text() if isinstance(self._test, EqualTo) else None
        return None if attribute == 0 or text is None else (attribute, text)


class FirstValue(ValueCondition):
    """A test accepts the value of the first node, or the empty text where there is none."""

    def __init__(self, path: Path, test: ValueTest) -> None:
        super().__init__(path, test)
        self.is_costly |= isinstance(test, Matches)

    def holds(self, node: cython.longlong) -> cython.bint:
        scratch: Scratch = self._scratch
        found: cython.longlong = self._path.first_node(node)
        if found == -1:
            scratch.octets = b""
            scratch.first = scratch.last = 0
        else:
            scratch.look_at(found)
        return self._test.accepts(scratch)


class OnlyValue(ValueCondition):
    """A value comparison with a text: there is at most one node; DynamicError for several."""

    def holds(self, node: cython.longlong) -> cython.bint:
        scratch: Scratch = self._scratch
        base: cython.int = self._path.collect(node)
        count: cython.int = scratch.top - base
        scratch.top = base
        if count > 1:
            raise DynamicError("XPTY0004", "several items where one is wanted")
        if count == 0:
            return False
        scratch.look_at(scratch.nodes[base])
        return self._test.accepts(scratch)

    def value(self, node: cython.longlong) -> Value:
        if not self._path.some(node, None):
            return []
        return [self.holds(node)]


class Exists(Condition):
    """There is any item."""

    def __init__(self, operand: Operator) -> None:
        super().__init__((operand,))
        self._operand = operand

    def holds(self, node: cython.longlong) -> cython.bint:
        return len(self._operand.value(node)) > 0


class CountIs(Condition):
    """The number of nodes compares so with a number."""

    def __init__(self, path: Path, relation: Relation, number: float) -> None:
        super().__init__((path,))
        self._path = path
        self._relation = RELATIONS[relation]
        self._number = number

    def holds(self, node: cython.longlong) -> cython.bint:
        return compares(self._path.count(node), self._relation, self._number)


class PathJoin(Condition):
    """Some value of one path compares so with some value of another; both are untyped."""

    def __init__(self, left: Path, relation: Relation, right: Path) -> None:
        super().__init__((left, right))
        self._left = left
        self._right = right
        self._relation = RELATIONS[relation]

    def holds(self, node: cython.longlong) -> cython.bint:
        left = self._left.value_set(node)
        if not left:
            return False
        right = self._right.value_set(node)
        if not right:
            return False
        if self._relation == 0:
            return not left.isdisjoint(right)
        if self._relation == 1:
            return len(left) > 1 or len(right) > 1 or left != right
        if self._relation == 2:
            return min(left) < max(right)
        if self._relation == 3:
            return min(left) <= max(right)
        if self._relation == 4:
            return max(left) > min(right)
        return max(left) >= min(right)


class Ranging(Condition):
    """``some`` or ``every`` node of a path satisfies a condition about the variable."""

    def __init__(self, every: bool, variable: Variable, path: Path, condition: Operator) -> None:
        super().__init__()
        self._scratch = path.scratch
        self._every = every
        self._variable = variable
        self._path = path
        self._condition = condition
        self.free = path.free | (condition.free - {variable})
        self.uses_context = path.uses_context or condition.uses_context
        self.is_costly = True

    def holds(self, node: cython.longlong) -> cython.bint:
        scratch: Scratch = self._scratch
        base: cython.int = self._path.collect(node)
        before: cython.longlong = self._variable.node
        answer: cython.bint = self._every
        holds: cython.bint
        i: cython.int
        for i in range(base, scratch.top):
            scratch.visit(1)
            self._variable.node = scratch.nodes[i]
            try:
                holds = self._condition.holds(node)
            except DynamicError:
                holds = False
            if holds != self._every:
                answer = not self._every
                break
        self._variable.node = before
        scratch.top = base
        return answer
