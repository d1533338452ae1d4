# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""PlanValues: the strings and conditions of a ResultPlan on one message, and what it asks the
interpreter."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.language.atoms import atom_text
from yfilter.language.evaluation import MessageEvaluator
from yfilter.language.nodes import DOCUMENT, Focus, Node, NodeType, element_node
from yfilter.language.numbers import parse_double
from yfilter.language.plan_paths import PlanPaths
from yfilter.language.result_plan import Foreign

if not cython.compiled:
    from yfilter.language.result_plan import (
        IS_EQ,
        IS_GT,
        IS_LE,
        IS_LT,
        IS_NE,
        NODE_ATTRIBUTE,
        NODE_ELEMENT,
        NODE_TEXT,
        PATH_KIND,
        PATH_WIDTH,
        ROW_A,
        ROW_AND,
        ROW_ATOM,
        ROW_B,
        ROW_C,
        ROW_CALL,
        ROW_COMPARED,
        ROW_CONCAT,
        ROW_CONSTANT,
        ROW_CONTAINS,
        ROW_COUNT,
        ROW_COUNTED,
        ROW_EXISTS,
        ROW_FOREIGN_TRUTH,
        ROW_KIND,
        ROW_NEXT,
        ROW_NOT,
        ROW_NUMBERS,
        ROW_OR,
        ROW_STARTS,
        ROW_STRING,
        ROW_STRINGS,
        ROW_TRUTH,
        ROW_WIDTH,
    )

_RAW = 0  # neither _IN_VALUES nor _IN_TEXT, as subtree_writer calls it


class PlanValues(PlanPaths):
    """Of one plan after the other, for one profile after the other."""

    # -- what the interpreter is asked

    def _asked(self, foreign: Foreign) -> tuple[MessageEvaluator, Focus]:
        """The interpreter, with what is left to this profile."""
        evaluator = self._evaluator
        if evaluator is None:
            evaluator = self._evaluator = MessageEvaluator(self.stream, self.limits)
        evaluator.visits_left = self._visits
        evaluator.tuples_left = self._tuples
        evaluator.began = self._began
        evaluator.bytes_left = self._bytes - (self._xml.used - self._settled)
        variables: dict[str, Any] = {
            name: [self._node(slot, kind)] for name, slot, kind in foreign.slots
        }
        for name, value in foreign.values:
            focus = Focus(DOCUMENT, 1, 1, dict(variables))
            variables[name] = list(evaluator.value(value, focus))
        return evaluator, Focus(DOCUMENT, 1, 1, variables)

    def _node(self, slot: cython.int, kind: cython.int) -> Node:
        number: cython.int = self._slots[slot]
        if kind == NODE_ELEMENT:
            return element_node(number)
        if kind == NODE_ATTRIBUTE:
            owner = bisect_right(self.stream.attribute_start, number) - 1
            return Node(owner, NodeType.ATTRIBUTE, number)
        return Node(self.stream.content_next[number], NodeType.CONTENT, number)

    def _foreign_truth(self, row: cython.int) -> bool:
        foreign: Foreign = self._plan.foreign[self._plan.rows[ROW_WIDTH * row + ROW_A]]
        evaluator, focus = self._asked(foreign)
        if self._plan.rows[ROW_WIDTH * row + ROW_B]:
            holds = evaluator.condition(foreign.expression, focus)
        else:
            holds = evaluator.truth(foreign.expression, focus)
        self._began = evaluator.began
        self._visits = evaluator.visits_left
        self._tuples = evaluator.tuples_left
        self._spend()
        return holds

    # -- strings

    def _put_atom(self, row: cython.int, where: cython.int) -> cython.int:
        kind: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_KIND]
        a: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_A]
        part: cython.int
        first: cython.int
        if kind == ROW_ATOM:
            return self._xml.put_escaped(self._plan.texts[a], where)
        if kind == ROW_TRUTH:
            return self._xml.put(b"true" if self._holds(row + 1) else b"false")
        if kind == ROW_CONCAT:
            part = row + 1
            while part < self._plan.rows[ROW_WIDTH * row + ROW_NEXT]:
                self._put_atom(part, where)
                self._visits -= 1
                self._spend()
                part = self._plan.rows[ROW_WIDTH * part + ROW_NEXT]
            return 0
        if kind == ROW_CALL:
            arguments = []
            part = row + 1
            while part < self._plan.rows[ROW_WIDTH * row + ROW_NEXT]:
                arguments.append(self._string(part).decode())
                part = self._plan.rows[ROW_WIDTH * part + ROW_NEXT]
            for argument in arguments:
                self._visits -= 1 + (len(argument) >> 6)
            self._spend()
            made: str = atom_text(self._plan.constants[a](*arguments))
            return self._xml.put_escaped(made.encode(), where)
        first = self._path(a)
        if kind == ROW_COUNT:
            self._xml.put(str(self._top - first).encode())
        elif self._top > first:
            self._put_first(row, a, first, where)
        self._top = first
        return 0

    def _put_first(
        self, row: cython.int, path: cython.int, first: cython.int, where: cython.int
    ) -> None:
        node: cython.int = self._nodes[first]
        kind: cython.int = self._plan.paths[PATH_WIDTH * path + PATH_KIND]
        if self._plan.rows[ROW_WIDTH * row + ROW_KIND] == ROW_STRING:
            self._put_string_of(kind, node, where)
        elif kind != NODE_TEXT:
            if kind == NODE_ELEMENT:
                name = self._xml.element_name[node]
            else:
                name = self._xml.attribute_name[node]
            self._xml.put_name(name, self._plan.rows[ROW_WIDTH * row + ROW_B])

    def _put_string_of(self, kind: cython.int, node: cython.int, where: cython.int) -> cython.int:
        if kind == NODE_ELEMENT:
            return self._xml.put_string(node, where)
        if kind == NODE_ATTRIBUTE:
            return self._xml.put_value(node, where)
        return self._xml.put_text(node, where)

    def _string_of(self, kind: cython.int, node: cython.int) -> bytes:
        start: cython.Py_ssize_t = self._xml.used
        self._put_string_of(kind, node, _RAW)
        return self._xml.taken(start)

    def _string(self, row: cython.int) -> bytes:
        start: cython.Py_ssize_t = self._xml.used
        self._put_atom(row, _RAW)
        return self._xml.taken(start)

    # -- conditions

    def _holds(self, row: cython.int) -> cython.bint:
        kind: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_KIND]
        a: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_A]
        part: cython.int = row + 1
        found: cython.int
        if kind == ROW_CONSTANT:
            return a != 0
        if kind == ROW_EXISTS:
            found = self._path(a)
            a = self._top - found
            self._top = found
            self._spend()
            return a > 0
        if kind == ROW_NOT:
            return not self._holds(part)
        if kind in (ROW_AND, ROW_OR):
            while part < self._plan.rows[ROW_WIDTH * row + ROW_NEXT]:
                if self._holds(part) == (kind == ROW_OR):
                    return kind == ROW_OR
                part = self._plan.rows[ROW_WIDTH * part + ROW_NEXT]
            return kind == ROW_AND
        if kind in (ROW_STRINGS, ROW_NUMBERS):
            return self._some_node(row)
        if kind == ROW_COUNTED:
            found = self._path(a)
            number = self._top - found
            self._top = found
            return _compares(
                number,
                self._plan.rows[ROW_WIDTH * row + ROW_B],
                self._plan.constants[self._plan.rows[ROW_WIDTH * row + ROW_C]],
            )
        if kind == ROW_COMPARED:
            constant = self._plan.constants[self._plan.rows[ROW_WIDTH * row + ROW_C]]
            operator = self._plan.rows[ROW_WIDTH * row + ROW_B]
            return _compares(self._string(part), operator, constant)
        if kind == ROW_FOREIGN_TRUTH:
            return self._foreign_truth(row)
        text = self._string(part)
        other = self._string(self._plan.rows[ROW_WIDTH * part + ROW_NEXT])
        if kind == ROW_CONTAINS:
            return other in text
        return text.startswith(other) if kind == ROW_STARTS else text.endswith(other)

    def _some_node(self, row: cython.int) -> cython.bint:
        """Whether some node of a path compares so with a constant."""
        path: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_A]
        kind: cython.int = self._plan.paths[PATH_WIDTH * path + PATH_KIND]
        is_number: cython.bint = self._plan.rows[ROW_WIDTH * row + ROW_KIND] == ROW_NUMBERS
        operator: cython.int = self._plan.rows[ROW_WIDTH * row + ROW_B]
        constant: Any = self._plan.constants[self._plan.rows[ROW_WIDTH * row + ROW_C]]
        first: cython.int = self._path(path)
        at: cython.int
        holds: cython.bint = False
        for at in range(first, self._top):
            value: Any = self._string_of(kind, self._nodes[at])
            if is_number:
                value = parse_double(value.decode())
            if value is not None and _compares(value, operator, constant):
                holds = True
                break
        self._top = first
        self._spend()
        return holds


def _compares(value: Any, operator: cython.int, constant: Any) -> cython.bint:
    if operator == IS_EQ:
        return value == constant
    if operator == IS_NE:
        return value != constant
    if operator == IS_LT:
        return value < constant
    if operator == IS_LE:
        return value <= constant
    return value > constant if operator == IS_GT else value >= constant
