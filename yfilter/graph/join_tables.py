"""Operators of a join program that go through rows: of VALUES, and of groups for themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

if cython.compiled:
    from cython.cimports.yfilter.graph.join import Operator, Run
else:
    from yfilter.graph.join import Operator, Run

Rows: TypeAlias = "list[tuple[int, ...]]"


class RowJoin(Operator):
    """Goes on for each of some rows that agrees with what is bound."""

    def __init__(self, slots: Sequence[int], following: Operator) -> None:
        self.following = following
        self._slots = tuple(slots)

    def each_of(self, rows: Rows, run: Run) -> cython.int:
        place: cython.int
        bound: cython.int
        number: cython.int
        stopped: cython.int = 0
        count: cython.int = len(self._slots)
        before: list[int] = [run.slots[place] for place in self._slots]
        for row in rows:
            run.visit()
            for place in range(count):
                number = row[place]
                bound = before[place]
                if number and bound and number != bound:
                    break
            else:
                for place in range(count):
                    number = row[place]
                    if number:
                        run.slots[self._slots[place]] = number
                stopped = self.following.each(run)
                for place in range(count):
                    run.slots[self._slots[place]] = before[place]
                if stopped:
                    break
        return stopped


class EachRow(RowJoin):
    """VALUES: rows of the slots of constants, 0 for UNDEF."""

    def __init__(
        self, slots: Sequence[int], rows: Sequence[tuple[int, ...]], following: Operator
    ) -> None:
        super().__init__(slots, following)
        self._rows = tuple(rows)

    def each(self, run: Run) -> cython.int:
        place: cython.int
        rows = []
        for row in self._rows:
            run.visit()
            numbers = []
            for place in row:
                numbers.append(run.slots[place])
            rows.append(tuple(numbers))
        return self.each_of(rows, run)


class Table:
    """The solutions of a group that is evaluated for itself: its own variables begin unbound.

    ``columns``: the slots of its variables; ``hidden``: those of them that are bound outside
    without being meant; ``depends``: whether it looks at others that are bound outside (within
    EXISTS), so that it has to be evaluated each time; else once for each graph.
    """

    def __init__(
        self,
        inner: Operator,
        columns: Sequence[int],
        hidden: Sequence[int],
        graph: int,
        depends: bool,
    ) -> None:
        self.columns = tuple(columns)
        self._inner = inner
        self._hidden = tuple(hidden)
        self._graph = graph
        self._depends = depends

    def rows(self, run: Run) -> Rows:
        slot: cython.int
        key = (self, run.slots[self._graph])
        kept = None if self._depends else run._tables.get(key)
        if kept is None:
            before = [run.slots[slot] for slot in self._hidden]
            outside = run._collected
            run._collected = []
            for slot in self._hidden:
                run.slots[slot] = 0
            self._inner.each(run)
            for slot, number in zip(self._hidden, before, strict=True):
                run.slots[slot] = number
            kept = run._collected
            run._collected = outside
            if not self._depends:
                run._tables[key] = kept
        return kept


class JoinTable(RowJoin):
    """The rows of a table that are compatible with what is bound."""

    def __init__(self, table: Table, following: Operator) -> None:
        super().__init__(table.columns, following)
        self._table = table

    def each(self, run: Run) -> cython.int:
        return self.each_of(self._table.rows(run), run)


class WithoutTable(Operator):
    """MINUS: goes on where no row is compatible that has a variable in common."""

    def __init__(self, table: Table, following: Operator) -> None:
        self.following = following
        self._table = table

    def each(self, run: Run) -> cython.int:
        place: cython.int
        bound: cython.int
        number: cython.int
        is_common: cython.bint
        columns: tuple[int, ...] = self._table.columns
        for row in self._table.rows(run):
            run.visit()
            is_common = False
            for place in range(len(columns)):
                number = row[place]
                bound = run.slots[columns[place]]
                if number and bound:
                    if number != bound:
                        break
                    is_common = True
            else:
                if is_common:
                    return 0
        return self.following.each(run)


class Collect(Operator):
    """The end of the chain of a table."""

    def __init__(self, columns: Sequence[int]) -> None:
        self._columns = tuple(columns)

    def each(self, run: Run) -> cython.int:
        run.count_row(len(self._columns))
        run._collected.append(tuple([run.slots[slot] for slot in self._columns]))
        return 0
