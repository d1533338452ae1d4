# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""CheckAnswers: which atoms of a check hold on an element of a message.

A value is looked up as it stands in the columns; it becomes a number only for a check that
compares numbers.  What no look-up can say is asked of the interpreter; where that exceeds its
limits the answer is yes.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from typing import TypeAlias

from formats.element_stream import ElementStream
from yfilter.errors import MatchLimitExceeded
from yfilter.language.evaluation import MessageEvaluator
from yfilter.language.nodes import element_node
from yfilter.language.query_ast import Expression, Operator

if cython.compiled:
    from cython.cimports.formats.content_range import content_from, content_to
    from cython.cimports.yfilter.index.number_reader import number_in
    from cython.cimports.yfilter.projection.need_parts import Atom, Check
    from cython.cimports.yfilter.projection.need_states import NeedStates
else:
    from formats.content_range import content_from, content_to
    from yfilter.index.number_reader import number_in
    from yfilter.projection.need_parts import Atom, Check
    from yfilter.projection.need_states import NeedStates

_STRUCTURE, _ATTRIBUTE, _TEXT, _STRING_VALUE = range(4)  # subjects of need_table
_EVALUATION_VISITS = 200  # what the interpreter costs, in look-ups

_Atoms: TypeAlias = "list[Atom]"


class CheckAnswers:
    """``begin`` with a message, then ask; ``visits`` counts what that has cost."""

    def __init__(self, states: NeedStates) -> None:
        self._states = states
        self._evaluator: MessageEvaluator | None = None

    def begin(self, stream: ElementStream) -> None:
        self.visits = 0
        self._stream = stream
        self._evaluator = None
        self._element_end = stream.element_end
        self._attribute_start = stream.attribute_start
        self._attribute_name = stream.attribute_name
        self._attribute_offset = stream.attribute_offset
        self._attribute_values = stream.attribute_values
        self._content_kind = stream.content_kind
        self._content_parent = stream.content_parent
        self._content_next = stream.content_next
        self._content_offset = stream.content_offset
        self._content_values = stream.content_values

    def answers(self, check: Check, element: cython.int) -> _Atoms:
        """The atoms of a check that hold on an element."""
        found: _Atoms = []
        i: cython.int
        if check.subject == _STRUCTURE:
            if check.there is not None:
                found.append(check.there)
        elif check.subject == _ATTRIBUTE:
            if check.names_version != self._states.names_version:
                check.accepted = self._states.accepted(check.attribute)
                check.names_version = self._states.names_version
            accepted: bytes = check.accepted
            for i in range(self._attribute_start[element], self._attribute_start[element + 1]):
                if accepted[self._attribute_name[i]]:
                    value: bytes = self._attribute_values[
                        self._attribute_offset[i] : self._attribute_offset[i + 1]
                    ]
                    self._compare(found, check, value)
                    break
        elif check.subject == _TEXT:
            for i in range(
                content_from(self._content_next, element),
                content_to(
                    self._content_next, self._content_parent, element, self._element_end[element]
                ),
            ):
                if self._content_parent[i] == element and self._content_kind[i] == 0:
                    text: bytes = self._content_values[
                        self._content_offset[i] : self._content_offset[i + 1]
                    ]
                    self._compare(found, check, text)
        elif check.subject == _STRING_VALUE:
            self._compare(found, check, self._string_value(element))
        else:
            for condition, atom in check.others.items():
                if self._holds(condition, element):
                    found.append(atom)
        return found

    def _compare(self, found: _Atoms, check: Check, value: bytes) -> None:
        """The atoms that hold for a value."""
        if check.there is not None:
            found.append(check.there)
        if check.equal:
            equal = check.equal.get(value)
            if equal is not None:
                found.append(equal)
        if check.differs:
            found.extend([atom for other, atom in check.differs.items() if other != value])
        for length, beginnings in check.prefixes.items():
            self.visits += 1
            begun = beginnings.get(value[:length])
            if begun is not None:
                found.append(begun)
        if check.substrings:
            self.visits += len(check.substrings)
            for (function, literal), atom in check.substrings.items():
                if literal in value if function == "contains" else value.endswith(literal):
                    found.append(atom)
        if not check.equal_numbers and not check.numbers:
            return
        number: cython.double = number_in(value, 0, len(value))
        if number != number:  # noqa: PLR0124 - NaN
            return
        equal = check.equal_numbers.get(number)
        if equal is not None:
            found.append(equal)
        for operator, rows in check.numbers.items():
            for _, other, atom in rows:
                self.visits += 1
                if not _compares(number, operator, other):
                    break
                found.append(atom)

    def _holds(self, condition: Expression, element: cython.int) -> bool:
        self.visits += _EVALUATION_VISITS
        if self._evaluator is None:
            self._evaluator = MessageEvaluator(self._stream)
        try:
            return bool(self._evaluator.holds(condition, element_node(element), {}))
        except MatchLimitExceeded:
            return True

    def _string_value(self, element: cython.int) -> bytes:
        first: cython.int = content_from(self._content_next, element)
        last: cython.int = content_to(
            self._content_next, self._content_parent, element, self._element_end[element]
        )
        i: cython.int
        for i in range(first, last):
            if self._content_kind[i] != 0:
                return self._stream.string_value(element).encode()
        return self._content_values[self._content_offset[first] : self._content_offset[last]]


def _compares(number: cython.double, operator: Operator, other: cython.double) -> cython.bint:
    if operator is Operator.LT:
        return number < other
    if operator is Operator.LE:
        return number <= other
    if operator is Operator.GT:
        return number > other
    return number >= other
