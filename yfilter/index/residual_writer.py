"""ResidualWriter: what is left to verify of an access path, as numbers (see residuals.py).

What a residual names, symbols, attributes, atoms, numbers and other records, is held by its
record, once, however many queries have that record; a residual of one equality has no record and
holds it for its query.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

from yfilter.index.access_path import AccessPath, Anywhere, Condition, Step, Way, fixed_depth
from yfilter.index.atoms import (
    AT_LEAST,
    AT_MOST,
    ATOM_BITS,
    ATTRIBUTE,
    GREATER,
    LESS,
    AtomTable,
)
from yfilter.index.record_pool import RecordPool
from yfilter.index.residuals import (
    ANYWHERE,
    ATOM,
    BELOW,
    DIFFERS,
    EXISTS,
    FIXED,
    NESTED,
    ON_PATH,
    QUICK_DEPTH_MAX,
    TWIG,
)
from yfilter.index.symbols import STRING_VALUE, TEXT_NODE, SymbolTable
from yfilter.index.twigs import Twigs
from yfilter.language.query_ast import NodeKind, Operator

OPERATORS = {
    Operator.LT: LESS,
    Operator.LE: AT_MOST,
    Operator.GT: GREATER,
    Operator.GE: AT_LEAST,
}
# The cheapest first.
_ORDER = {ATOM: 0, EXISTS: 1, DIFFERS: 3, TWIG: 4, NESTED: 5, ANYWHERE: 6}


class ResidualWriter:
    """``acquire`` and ``release`` residuals and what stands in them."""

    def __init__(
        self, symbols: SymbolTable, atoms: AtomTable, records: RecordPool, twigs: Twigs
    ) -> None:
        self._symbols = symbols
        self._twigs = twigs
        self._atoms = atoms
        self._records = records

    def acquire(self, path: AccessPath) -> int:
        """The residual of an access path; ``release`` undoes it."""
        left = [
            (at, condition)
            for at, step in enumerate(path.spine)
            if step.conditions
            for condition in step.conditions
            if not (at == path.at and condition == path.access)
        ]
        if not left:
            return 0
        depths = [
            (0, True) if isinstance(condition, Anywhere) else fixed_depth(path.spine, at)
            for at, condition in left
        ]
        if len(left) == 1 and depths[0] is not None:
            quick = self._quick(left[0][1], *depths[0])
            if quick:
                return quick
        if None in depths:
            return -self._record(self._on_path(path.spine, [one for _, one in left]))
        return -self._record(
            self._fixed(
                [(depth, one) for depth, (_, one) in zip(depths, left, strict=True) if depth]
            )
        )

    def release(self, residual: int) -> None:
        if residual > 0:
            self._release_check(TWIG if residual & 64 else ATOM, residual >> 7, 0)
        elif residual < 0:
            self._release_record(-residual)

    def acquire_atom(self, condition: Condition) -> int:
        """The equality or range of a condition; it holds its attribute for each use."""
        attribute = self.acquire_attribute(condition)
        if condition.is_equality:
            return self._atoms.acquire(attribute, condition.key)
        assert condition.operator is not None
        return self._atoms.acquire_range(attribute, OPERATORS[condition.operator])

    def release_atom(self, atom: int) -> None:
        attribute = self._atoms.atoms[8 * atom + ATTRIBUTE]
        self._atoms.release(atom)
        self._symbols.release_attribute(attribute)

    def acquire_attribute(self, condition: Condition) -> int:
        if condition.kind is NodeKind.TEXT:
            return TEXT_NODE
        if condition.kind is NodeKind.SELF:
            return STRING_VALUE
        assert condition.test is not None
        return self._symbols.acquire_attribute(condition.test)

    def _quick(self, condition: Condition | Way | Anywhere, depth: int, absolute: bool) -> int:
        """A residual of one condition without a record, 0 if there is none."""
        is_twig = _is_twig(condition)
        if depth > QUICK_DEPTH_MAX or not (
            is_twig or (isinstance(condition, Condition) and condition.is_equality)
        ):
            return 0
        check = self._check(condition)
        if check[1] < 1 << ATOM_BITS:
            return check[1] << 7 | is_twig << 6 | absolute << 5 | depth
        self._release_check(*check)
        return 0

    def _record(self, numbers: list[int]) -> int:
        record = self._records.acquire(numbers)
        if self._records.words[record - 1] > 1:
            self._release_parts(numbers)  # the record has them already
        return record

    def _release_record(self, record: int) -> None:
        numbers = self._records.numbers(record)
        if self._records.release(record):
            self._release_parts(numbers)

    def _fixed(self, left: list[tuple[tuple[int, bool], Condition | Way | Anywhere]]) -> list[int]:
        checks = [
            ((up << 1) | absolute, self._check(condition)) for (up, absolute), condition in left
        ]
        checks.sort(key=lambda check: (_ORDER.get(check[1][0], 2), check))
        for place in range(len(checks) - 1, 0, -1):
            if checks[place] == checks[place - 1]:
                self._release_check(*checks.pop(place)[1])
        numbers = [FIXED, self._required([condition for _, condition in left]), len(checks)]
        for position, check in checks:
            numbers += (position, *check)
        return numbers

    def _on_path(self, spine: Way, left: list[Condition | Way | Anywhere]) -> list[int]:
        return self._way(ON_PATH, spine, self._required(left))

    def _way(self, mode: int, way: Way, required: int) -> list[int]:
        steps = [self._step(step) for step in way]
        numbers = [mode, required, len(steps)]
        offset = len(numbers) + len(steps)
        for step in steps:
            numbers.append(offset)
            offset += len(step)
        return numbers + [number for step in steps for number in step]

    def _step(self, step: Step) -> list[int]:
        checks = [self._check(condition) for condition in step.conditions]
        checks.sort(key=lambda check: (_ORDER.get(check[0], 2), check))
        for place in range(len(checks) - 1, 0, -1):
            if checks[place] == checks[place - 1]:
                self._release_check(*checks.pop(place))
        numbers = [int(step.descendant), self._symbols.acquire(step.test), len(checks)]
        for check in checks:
            numbers += check
        return numbers

    def _check(self, condition: Condition | Way | Anywhere) -> tuple[int, int, int]:
        if isinstance(condition, Anywhere):
            return ANYWHERE, self._record(self._way(BELOW, condition.way, 0)), 0
        if not isinstance(condition, Condition):
            record = self._record(self._way(BELOW, condition, 0))
            if _is_twig(condition):
                return TWIG, self._twigs.acquire(record), 0
            return NESTED, record, 0
        if condition.is_equality:
            return ATOM, self.acquire_atom(condition), 0
        attribute = self.acquire_attribute(condition)
        if condition.operator is None:
            return EXISTS, attribute, 0
        if isinstance(condition.value, str):
            # The constant is kept as an equality of its attribute, which is held for it as well.
            return (
                DIFFERS,
                attribute,
                self.acquire_atom(
                    Condition(condition.kind, condition.test, Operator.EQ, condition.value)
                ),
            )
        self._atoms.cover(attribute)
        number = self._atoms.acquire_number(condition.number)
        return OPERATORS[condition.operator], attribute, number

    def _required(self, conditions: Iterable[Condition | Way | Anywhere]) -> int:
        """Something that the message has to contain for all these to hold: see residuals.py.

        The same in whatever order they come: the newest comparison, else the newest name.
        """
        found = 0
        for condition in conditions:
            if isinstance(condition, Condition):
                if condition.is_equality:
                    atom = self.acquire_atom(condition)
                    self.release_atom(atom)  # the check of the same record holds it
                    found = _rarer(found, atom << 1 | 1)
                continue
            for step in condition.way if isinstance(condition, Anywhere) else condition:
                symbol = self._symbols.acquire(step.test)
                self._symbols.release(symbol)
                found = _rarer(_rarer(found, symbol << 1), self._required(step.conditions))
        return found

    def _release_parts(self, numbers: list[int]) -> None:
        if numbers[0] == FIXED:
            for place in range(3, len(numbers), 4):
                self._release_check(*numbers[place + 1 : place + 4])
            return
        for offset in numbers[3 : 3 + numbers[2]]:
            _, symbol, checks = numbers[offset : offset + 3]
            self._symbols.release(symbol)
            for place in range(offset + 3, offset + 3 + 3 * checks, 3):
                self._release_check(*numbers[place : place + 3])

    def _release_twig(self, twig: int) -> None:
        record = self._twigs.record(twig)
        if self._records.words[record - 1] == 1:
            self._twigs.remove(twig)
        self._release_record(record)

    def _release_check(self, kind: int, first: int, second: int) -> None:
        if kind in (NESTED, ANYWHERE):
            self._release_record(first)
        elif kind == ATOM:
            self.release_atom(first)
        elif kind == TWIG:
            self._release_twig(first)
        else:
            if kind == DIFFERS:
                self.release_atom(second)
            elif kind != EXISTS:
                self._atoms.release_number(second)
            self._symbols.release_attribute(first)


def _is_twig(condition: Condition | Way | Anywhere) -> TypeGuard[Way]:
    """Whether it is a nested path of nothing but names."""
    return not isinstance(condition, Condition | Anywhere) and not any(
        step.conditions for step in condition
    )


def _rarer(one: int, other: int) -> int:
    """Of two things required the better one: a comparison rather than a name."""
    return max(one, other, key=lambda required: (required & 1, required))
