"""The operators of a join program, and a Run of one on the graph of one message.

Operators hang in a chain.  ``each`` goes on to the ``following`` one once for each way in which
its own part of the pattern can be satisfied with what is bound so far, and takes back what it has
bound before it returns: a nested loop over hash chains (G-ToPSS, section 4.3: the joins of binding
tables).  It returns 1 as soon as what follows has enough, else 0::

    MatchTriple ?c rss:items ?s -> MatchTriple ?s ?li ?i -> Test ?n < 5 -> Emit ?c ?i

What is bound is in slots, one a variable and one a constant: a term's number in the message, 0 if
nothing.  Terms that an expression makes and the message does not have are numbered from -2 down,
for the run; -1 is a constant that the message does not have.

Everything met is a visit, charged to the budget that a profile has for a message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.graph.query_ast import Iri, LiteralTerm
from yfilter.graph.term_values import TermValue, value_of
from yfilter.graph.terms import GroundTerm
from yfilter.index.columns import ints
from yfilter.language.budget import Budget

if cython.compiled:
    from cython.cimports.yfilter.graph.message_graph import MessageGraph
    from cython.cimports.yfilter.graph.triple_table import TripleTable
else:
    from yfilter.graph.message_graph import MessageGraph
    from yfilter.graph.triple_table import (
        BY_OBJECT,
        BY_PROPERTY,
        BY_SUBJECT,
        TRIPLE_BELOW,
        TRIPLE_GRAPH,
        TRIPLE_OBJECT,
        TRIPLE_PROPERTY,
        TRIPLE_SUBJECT,
        TRIPLE_WIDTH,
        TripleTable,
    )

if not cython.compiled:
    SLOT_UNBOUND, SLOT_ANY, SLOTS_FIRST = range(3)
    SOURCE_STATED, SOURCE_CLASSES, SOURCE_ABOVE = range(3)
    VISITS_CHARGED = 256

_EXTRA_FIRST = -2

Condition: TypeAlias = "Callable[[Run], bool | None]"
Rows: TypeAlias = "list[tuple[int, ...]]"
Expression: TypeAlias = "Callable[[Run], TermValue | None]"


class Run:
    """One evaluation of a program.

    ``rows``: the solutions; ``extra``: the terms that the message does not have.
    """

    def __init__(
        self,
        graph: MessageGraph,
        budget: Budget,
        slot_count: int,
        sources: int,
        first_only: bool,
    ) -> None:
        self.graph = graph
        self.budget = budget
        self.rows: list[tuple[int, ...]] = []
        self.extra: list[GroundTerm] = []
        self._extra_numbers: dict[GroundTerm, int] = {}
        self._extra_values: dict[int, TermValue] = {}
        self._tables: dict[object, list[tuple[int, ...]]] = {}
        self._collected: list[tuple[int, ...]] = []
        self._first_only = first_only
        self._visits = VISITS_CHARGED
        # Before any term is made, so that those of the message stay as they are.
        self._classes = graph.classes() if sources & (1 << SOURCE_CLASSES) else None
        self._above = graph.above() if sources & (1 << SOURCE_ABOVE) else None
        self.slots = ints(slot_count)

    def set_slot(self, slot: cython.int, number: cython.int) -> cython.int:
        """Bind a constant before the run."""
        self.slots[slot] = number
        return 0

    def visit(self) -> cython.int:
        """Counts something met; MatchLimitExceeded when the budget is used up."""
        self._visits -= 1
        if self._visits < 0:
            self._charge()
        return 0

    def _charge(self) -> cython.int:
        self._visits = VISITS_CHARGED - 1
        self.budget.charge(VISITS_CHARGED)
        return 0

    def finish(self) -> cython.int:
        """Charges what was not charged yet."""
        self.budget.charge(VISITS_CHARGED - self._visits)
        self._visits = VISITS_CHARGED
        return 0

    def value(self, slot: cython.int) -> TermValue | None:
        """What a slot has, or None."""
        number: cython.int = self.slots[slot]
        if number == 0:
            return None
        kept = self.graph.values_kept if number > 0 else self._extra_values
        found = kept.get(number)
        if found is None:
            found = kept[number] = value_of(self.term(number))
            if number > 0:
                found.number = number
        return found

    def is_bound(self, slot: cython.int) -> cython.bint:
        return self.slots[slot] != 0

    def term(self, number: cython.int) -> GroundTerm:
        """The term of a number."""
        if number > 0:
            return self.graph.term(number)
        return self.extra[_EXTRA_FIRST - number]

    def number_of(self, term: GroundTerm) -> cython.int:
        """The number of a term, a new one if need be."""
        number: cython.int
        if isinstance(term, (Iri, LiteralTerm)):
            number = self.graph.find(term)
            if number > 0:
                return number
        found = self._extra_numbers.get(term)
        if found is None:
            found = self._extra_numbers[term] = _EXTRA_FIRST - len(self.extra)
            self.extra.append(term)
        return found

    def table(self, source: cython.int) -> TripleTable:
        if source == SOURCE_STATED:
            return self.graph.stated
        return self._classes if source == SOURCE_CLASSES else self._above

    def exists(self, head: Operator) -> cython.bint:
        """Whether the chain is satisfied with what is bound."""
        return head.each(self) == 1

    def run(self, head: Operator) -> cython.bint:
        """All of a program; whether it stopped because it has enough."""
        stopped = head.each(self) == 1
        self.finish()
        return stopped


class Operator:
    """One of a chain; nothing follows the last."""

    def __init__(self, following: Operator | None = None) -> None:
        self.following: Operator = following  # type: ignore[assignment]

    def each(self, run: Run) -> cython.int:
        """1 if what follows has enough."""
        raise NotImplementedError


class MatchTriple(Operator):
    """A triple pattern: a slot for each place, ``below`` for the property stated (or 0)."""

    def __init__(
        self, source: int, graph: int, places: tuple[int, int, int], below: int, following: Operator
    ) -> None:
        self.following = following
        self._source = source
        self._graph = graph
        self._subject, self._property, self._object = places
        self._below = below
        self._repeats = len({*places, below}) < 4

    def each(self, run: Run) -> cython.int:
        table: TripleTable = run.table(self._source)
        graph: cython.int = run.slots[self._graph]
        subject: cython.int = run.slots[self._subject]
        prop: cython.int = run.slots[self._property]
        thing: cython.int = run.slots[self._object]
        below: cython.int = run.slots[self._below]
        kind: cython.int = 0
        stopped: cython.int = 0
        row: cython.int
        at: cython.Py_ssize_t
        if subject:
            kind += BY_SUBJECT
        if prop:
            kind += BY_PROPERTY
        if thing:
            kind += BY_OBJECT
        row = table.first(kind, graph, subject, prop, thing)
        while row >= 0:
            run.visit()
            at = TRIPLE_WIDTH * cython.cast(cython.Py_ssize_t, row)
            if (
                table.rows[at + TRIPLE_GRAPH] == graph
                and (subject == 0 or table.rows[at + TRIPLE_SUBJECT] == subject)
                and (prop == 0 or table.rows[at + TRIPLE_PROPERTY] == prop)
                and (thing == 0 or table.rows[at + TRIPLE_OBJECT] == thing)
                and (below == 0 or table.rows[at + TRIPLE_BELOW] == below)
                and (not self._repeats or self._agrees(table, at))
            ):
                run.slots[self._subject] = table.rows[at + TRIPLE_SUBJECT]
                run.slots[self._property] = table.rows[at + TRIPLE_PROPERTY]
                run.slots[self._object] = table.rows[at + TRIPLE_OBJECT]
                if self._below:
                    run.slots[self._below] = table.rows[at + TRIPLE_BELOW]
                stopped = self.following.each(run)
                if stopped:
                    break
            row = table.after(kind, row)
        run.slots[self._subject] = subject
        run.slots[self._property] = prop
        run.slots[self._object] = thing
        run.slots[self._below] = below
        return stopped

    def _agrees(self, table: TripleTable, at: cython.Py_ssize_t) -> cython.bint:
        """Whether places with the same variable have the same term."""
        subject: cython.int = table.rows[at + TRIPLE_SUBJECT]
        prop: cython.int = table.rows[at + TRIPLE_PROPERTY]
        thing: cython.int = table.rows[at + TRIPLE_OBJECT]
        below: cython.int = table.rows[at + TRIPLE_BELOW]
        return (
            (self._subject != self._property or subject == prop)
            and (self._subject != self._object or subject == thing)
            and (self._property != self._object or prop == thing)
            and (self._below != self._subject or below == subject)
            and (self._below != self._object or below == thing)
        )


class Test(Operator):
    """FILTER: goes on where the condition is true, neither false nor an error."""

    def __init__(self, condition: Condition, following: Operator) -> None:
        self.following = following
        self._condition = condition

    def each(self, run: Run) -> cython.int:
        run.visit()
        if self._condition(run) is True:
            return self.following.each(run)
        return 0


class Assign(Operator):
    """BIND: a variable whose expression is an error stays as it is."""

    def __init__(self, value: Expression, slot: int, following: Operator) -> None:
        self.following = following
        self._value = value
        self._slot = slot

    def each(self, run: Run) -> cython.int:
        before: cython.int = run.slots[self._slot]
        number: cython.int
        stopped: cython.int
        run.visit()
        value = self._value(run)
        if value is None:
            return self.following.each(run)
        number = value.number or run.number_of(value.term)
        if before and before != number:
            return 0
        run.slots[self._slot] = number
        stopped = self.following.each(run)
        run.slots[self._slot] = before
        return stopped


class Branches(Operator):
    """UNION: each of the chains, which all go on in the same place."""

    def __init__(self, heads: Sequence[Operator]) -> None:
        self._heads = list(heads)

    def each(self, run: Run) -> cython.int:
        for head in self._heads:
            operator: Operator = head
            if operator.each(run):
                return 1
        return 0


class Optionally(Operator):
    """OPTIONAL: the inner chain, which goes on behind a Raise; without it where it never does."""

    def __init__(self, inner: Operator, flag: int, following: Operator) -> None:
        self.following = following
        self._inner = inner
        self._flag = flag

    def each(self, run: Run) -> cython.int:
        run.slots[self._flag] = 0
        if self._inner.each(run):
            return 1
        if run.slots[self._flag]:
            return 0
        return self.following.each(run)


class Raise(Operator):
    """The end of an optional chain."""

    def __init__(self, flag: int, following: Operator) -> None:
        self.following = following
        self._flag = flag

    def each(self, run: Run) -> cython.int:
        run.slots[self._flag] = 1
        return self.following.each(run)


class Without(Operator):
    """MINUS: goes on where the inner chain, which ends with Found, is not satisfied."""

    def __init__(self, inner: Operator, following: Operator) -> None:
        self.following = following
        self._inner = inner

    def each(self, run: Run) -> cython.int:
        if self._inner.each(run):
            return 0
        return self.following.each(run)


class Found(Operator):
    """The end of a chain of which one solution is enough."""

    def each(self, run: Run) -> cython.int:
        return 1


class EachGraph(Operator):
    """GRAPH with a variable: each named graph in turn, for the slot ``graph``."""

    def __init__(self, graph: int, variable: int, following: Operator) -> None:
        self.following = following
        self._graph = graph
        self._variable = variable

    def each(self, run: Run) -> cython.int:
        before: cython.int = run.slots[self._variable]
        number: cython.int
        stopped: cython.int = 0
        for number in run.graph.graphs:
            run.visit()
            if before and before != number:
                continue
            run.slots[self._graph] = number
            run.slots[self._variable] = number
            stopped = self.following.each(run)
            if stopped:
                break
        run.slots[self._graph] = 0
        run.slots[self._variable] = before
        return stopped


class IsGraph(Operator):
    """GRAPH with an IRI: goes on if the message has such a graph."""

    def __init__(self, graph: int, following: Operator) -> None:
        self.following = following
        self._graph = graph

    def each(self, run: Run) -> cython.int:
        if run.slots[self._graph] in run.graph.graphs:
            return self.following.each(run)
        return 0


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
        run.budget.charge_tuple()
        run._collected.append(tuple([run.slots[slot] for slot in self._columns]))
        return 0


class Emit(Operator):
    """The end of a program."""

    def __init__(self, columns: Sequence[int]) -> None:
        self._columns = tuple(columns)

    def each(self, run: Run) -> cython.int:
        if run._first_only:
            return 1
        run.budget.charge_tuple()
        run.rows.append(tuple([run.slots[slot] for slot in self._columns]))
        return 0
