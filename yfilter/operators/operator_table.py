# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""OperatorTable: the conditions that index and results ask operators about, each once.

An entry is an expression that stands by itself, with its operator and a count of users: records of
the index, and other entries that share it.  It holds the symbols and attributes that its operators
name, and gives them up with its last user.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from collections.abc import Iterator

from formats.element_stream import ElementStream
from yfilter.errors import MatchLimitExceeded
from yfilter.language.budget import NOT_BEGUN, too_much_time
from yfilter.language.nodes import DynamicError
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_ast import Expression, NameTest
from yfilter.language.query_text import unparse
from yfilter.operators.compiler import Compiler

if cython.compiled:
    from cython.cimports.yfilter.operators.conditions import SomeValue
    from cython.cimports.yfilter.operators.message_columns import MessageColumns
    from cython.cimports.yfilter.operators.operator import Operator
    from cython.cimports.yfilter.operators.path import Path
    from cython.cimports.yfilter.operators.scratch import Scratch
    from cython.cimports.yfilter.operators.values import OncePerMessage
else:
    from yfilter.operators.conditions import SomeValue
    from yfilter.operators.message_columns import MessageColumns
    from yfilter.operators.operator import Operator
    from yfilter.operators.path import Path
    from yfilter.operators.scratch import KIND_ATTRIBUTE, KIND_SHIFT, KINDS, ROOT, Scratch
    from yfilter.operators.values import OncePerMessage


_NOT_BEGUN = NOT_BEGUN
_TIMED_FROM = 512  # visits of a condition on a message, for all its elements
_VISIT_NANOS, _INTERPRETED_NANOS = 20, 1_000
_FEW = 8  # elements that are asked one by one for a value


class _Entry:
    """``Holder`` of what is compiled for one expression."""

    __slots__ = (
        *("_table", "attributes", "expression", "interprets", "parts", "scratch", "symbols"),
        "users",
    )

    def __init__(self, table: OperatorTable, expression: Expression) -> None:
        self._table = table
        self.scratch = table.scratch
        self.expression = expression
        self.users = 1
        self.interprets = False
        self.symbols: list[int] = []
        self.attributes: list[int] = []
        self.parts: list[int] = []

    def symbol(self, test: NameTest) -> int:
        symbol = self._table.new_symbol(test)
        self.symbols.append(symbol)
        return symbol

    def attribute(self, test: NameTest) -> int:
        attribute = self._table.new_attribute(test)
        self.attributes.append(attribute)
        return attribute

    def shared(self, expression: Expression) -> Operator:
        number = self._table.acquire(expression)
        self.parts.append(number)
        self.interprets |= self._table.interprets(number)
        return self._table.operator(number)

    def interpret(self) -> None:
        self.interprets = True


class OperatorTable:
    """``acquire`` and ``release`` expressions; ``begin`` a message, then ask which of them hold.

    ``over_limit`` counts conditions that cost more than EvaluationLimits on a message, on all its
    elements together: from then on they hold, as far as anybody knows.  ``gave_up``: whether the
    last answer was such a one, and ``exceeded`` why; whoever asks takes it back.  ``visits`` is
    what the last answer cost, ``nanos`` what all have taken, about.
    """

    def __init__(self, columns: MessageColumns, limits: EvaluationLimits) -> None:
        self.scratch = Scratch(columns, limits)
        self._operators: list[Operator | None] = [None]
        self._entries: list[_Entry | None] = [None]
        self._numbers: dict[Expression, int] = {}
        self._free: list[int] = []
        self._stream: ElementStream | None = None
        self._is_new = False
        self._answers: dict[int, bool] = {}
        self._selected: dict[int, list[int]] = {}
        self._by_value: dict[tuple[int, int], dict[bytes, list[int]]] = {}
        self._spent: dict[int, int] = {}  # visits on this message, of costly conditions
        self._seconds: dict[int, float] = {}  # of those that have spent more than a little
        self._why: dict[int, MatchLimitExceeded] = {}  # of those that were given up
        self._late: dict[int, int] = {}  # messages for which they will be, untried
        self._limits = limits
        self.over_limit = 0
        self.gave_up = False
        self.exceeded = too_much_time(limits)
        self.visits = 0
        self.nanos = 0

    def acquire(self, expression: Expression) -> int:
        """The number of an expression, which has one user more."""
        number = self._numbers.get(expression)
        if number is not None:
            entry = self._entries[number]
            assert entry is not None
            entry.users += 1
            return number
        entry = _Entry(self, expression)
        operator = Compiler(entry).once(expression)
        if self._free:
            number = self._free.pop()
            self._operators[number], self._entries[number] = operator, entry
        else:
            number = len(self._operators)
            self._operators.append(operator)
            self._entries.append(entry)
        self._numbers[expression] = number
        self._is_new = True  # it may have names that nobody asked for before
        return number

    def release(self, number: int) -> None:
        """Take one use back."""
        entry = self._entries[number]
        assert entry is not None
        entry.users -= 1
        if entry.users:
            return
        self._late.pop(number, None)
        del self._numbers[entry.expression]
        self._operators[number] = self._entries[number] = None
        self._free.append(number)
        for symbol in entry.symbols:
            self.scratch.symbols.release(symbol)
        for attribute in entry.attributes:
            self.scratch.symbols.release_attribute(attribute)
        for part in entry.parts:
            self.release(part)

    def operator(self, number: int) -> Operator:
        found = self._operators[number]
        assert found is not None
        return found

    def expression(self, number: int) -> Expression:
        entry = self._entries[number]
        assert entry is not None
        return entry.expression

    def interprets(self, number: int) -> bool:
        """Whether the interpreter has to help with an expression."""
        entry = self._entries[number]
        assert entry is not None
        return entry.interprets

    def begin(self, stream: ElementStream) -> None:
        """A message that the columns are bound to; nothing is done before somebody asks."""
        self._stream = stream
        self._is_new = True

    def holds(self, number: cython.int, element: cython.int) -> cython.bint:
        """Whether a condition holds on an element; one that raises an error does not, one that
        costs too much does (``gave_up``)."""
        operator: Operator = self._operators[number]
        key: cython.longlong = number
        answer: cython.bint = False
        scratch: Scratch = self.scratch
        spent: cython.longlong = 0
        self._look()
        if operator.is_costly:
            key = key << 32 | element
            known = self._answers.get(key)
            if known is not None:
                self.visits = 1
                return known
            spent = self._spent.get(number, 0)
            if spent > scratch.visits_max:
                self.visits = 1
                self.gave_up = True
                self.exceeded = self._why[number]
                return True
        scratch.restart(spent)
        if spent > _TIMED_FROM:
            scratch.began = self._limits.clock() - self._seconds.get(number, 0.0)
        try:
            answer = operator.holds(KINDS * element)
        except DynamicError:
            pass
        except MatchLimitExceeded as error:
            self.exceeded = error.with_traceback(None)
            scratch.visits = scratch.visits_max + 1
        is_over: cython.bint = self._spend(operator, number, spent)
        if is_over:
            self.gave_up = answer = True
        self.visits = scratch.visits - spent
        if operator.is_costly:
            if not is_over:
                self._answers[key] = answer
            self._spent[number] = scratch.visits
        return answer

    def _spend(self, operator: Operator, number: cython.int, spent: cython.longlong) -> cython.bint:
        """Count what an answer has cost; whether that is too much."""
        scratch: Scratch = self.scratch
        if not scratch._is_spent and scratch._evaluator is not None:
            scratch.visits += scratch._evaluator.visits
            scratch.began = scratch._evaluator.began
            self.nanos += _INTERPRETED_NANOS * scratch._evaluator.visits
        if scratch.began == _NOT_BEGUN and scratch.visits <= scratch.visits_max:
            self.nanos += _VISIT_NANOS * (scratch.visits - spent)
        if operator.is_costly and scratch.began != _NOT_BEGUN:
            seconds = self._limits.clock() - scratch.began
            self.nanos += int((seconds - self._seconds.get(number, 0.0)) * 1e9)
            self._seconds[number] = seconds
            if seconds > self._limits.seconds_max and scratch.visits <= scratch.visits_max:
                self.exceeded = too_much_time(self._limits)
                scratch.visits = scratch.visits_max + 1
        if scratch.visits <= scratch.visits_max:
            return False
        scratch.visits = scratch.visits_max + 1  # what was asked for at once was not done
        self._why[number] = self.exceeded
        if self._limits.is_final(self.exceeded.code):
            self.over_limit += 1
        else:
            self._late[number] = self._limits.late_messages
        return True

    def elements(self, number: int, condition: cython.int = 0) -> list[int]:
        """The elements that a path from the message selects, in document order; with the number
        of a condition those on which that holds.  Raises MatchLimitExceeded."""
        element: cython.int
        self._look()
        found = self._selected.get(number)
        if found is None:
            found = self._selected[number] = self._select(number)
        if condition == 0:
            return found
        operator = self._operators[condition]
        if len(found) > _FEW and isinstance(operator, SomeValue):
            key = operator.key()
            if key is not None:
                attribute, value = key
                return self._with_value(number, found, attribute, value)
        kept = []
        for element in found:
            if self.holds(condition, element):
                kept.append(element)
            if self.gave_up:
                self.gave_up = False
                raise self.exceeded
        return kept

    def _select(self, number: cython.int) -> list[int]:
        """The elements of a path, which nobody has asked for on this message."""
        operator: Operator = self._operators[number]
        scratch: Scratch = self.scratch
        path: Path
        once: OncePerMessage
        base: cython.int
        i: cython.int
        found: list[int] = []
        scratch.restart()
        if isinstance(operator, OncePerMessage):
            once = operator
            operator = once.operand
        try:
            if not isinstance(operator, Path):
                for node in operator.value(ROOT):
                    found.append(node.number)
                return found
            path = operator
            base = path.collect(ROOT)
        except DynamicError:
            return found
        for i in range(base, scratch.top):
            found.append(scratch.nodes[i] >> KIND_SHIFT)
        scratch.top = base
        return found

    def _with_value(
        self, number: cython.int, elements: list[int], attribute: cython.int, value: bytes
    ) -> list[int]:
        """Those of a path's elements that have an attribute of this value, by a hash of all."""
        scratch: Scratch = self.scratch
        columns: MessageColumns = scratch.columns
        element: cython.int
        i: cython.int
        key = (number, attribute)
        by_value = self._by_value.get(key)
        if by_value is None:
            by_value = self._by_value[key] = {}
            for element in elements:
                for i in range(
                    columns.attribute_start[element], columns.attribute_start[element + 1]
                ):
                    if scratch.attribute[columns.attribute_name[i]] == attribute:
                        scratch.look_at(KINDS * i + KIND_ATTRIBUTE)
                        octets = scratch.octets[scratch.first : scratch.last]
                        by_value.setdefault(octets, []).append(element)
        found: list[int] = by_value.get(value, [])
        return found

    def answer(self, number: int, element: int) -> bool:
        """``holds``, for Python; one that costs too much does not."""
        holds = self.holds(number, element) and not self.gave_up
        self.gave_up = False
        return holds

    def _look(self) -> cython.int:
        """Begin the message, unless that was done."""
        if self._is_new and self._stream is not None:
            self.scratch.begin(self._stream)
            self._answers.clear()
            self._spent.clear()
            self._why.clear()
            self._seconds.clear()
            self._selected.clear()
            self._by_value.clear()
            self._is_new = False
            if self._late:
                self._pass_over_late()
        return 0

    def _pass_over_late(self) -> None:
        """The conditions that took too long lately count as given up."""
        for number, left in list(self._late.items()):
            if left > 1:
                self._late[number] = left - 1
            else:
                del self._late[number]
            self._spent[number] = self.scratch.visits_max + 1
            self._why[number] = too_much_time(self._limits)

    def statistics(self) -> dict[str, int]:
        entries = [entry for entry in self._entries if entry is not None]
        return {
            "operators": len(entries),
            "operators_interpreted": sum(entry.interprets for entry in entries),
        }

    def lines(self, operators_max: int) -> Iterator[str]:
        """For people: the oldest entries, and how many more there are."""
        entries = [entry for entry in self._entries if entry is not None]
        if entries:
            yield "operators (conditions that are verified, and what they share)"
        for entry in entries[:operators_max]:
            by = "  by the interpreter" if entry.interprets else ""
            yield f"  {unparse(entry.expression)}{by}"
        if len(entries) > operators_max:
            yield f"… and {len(entries) - operators_max} operators more"

    def new_symbol(self, test: NameTest) -> int:
        return self.scratch.symbols.acquire(test)

    def new_attribute(self, test: NameTest) -> int:
        return self.scratch.symbols.acquire_attribute(test)
