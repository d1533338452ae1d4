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

from yfilter.errors import MatchLimitExceeded
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
    SOURCE_STATED, SOURCE_CLASSES, SOURCE_ABOVE, SOURCE_OWN_CLASSES = range(4)
    VISITS_CHARGED = 256
    ROW_BYTES, POINTER_BYTES, ROW_BYTES_CHARGED = 56, 8, 1048576

_EXTRA_FIRST = -2

Condition: TypeAlias = "Callable[[Run], bool | None]"
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
        self._row_bytes = 0
        # Before any term is made, so that those of the message stay as they are.
        self._classes = graph.classes() if sources & (1 << SOURCE_CLASSES) else None
        self._own_classes = graph.own_classes() if sources & (1 << SOURCE_OWN_CLASSES) else None
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

    def count_row(self, columns: cython.int) -> cython.int:
        """Counts a row that is about to be kept: a tuple, and its memory."""
        self.budget.charge_tuple()
        self._row_bytes += ROW_BYTES + POINTER_BYTES * columns
        if self._row_bytes > ROW_BYTES_CHARGED:
            self.budget.charge_memory(self._row_bytes)
            self._row_bytes = 0
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
        try:
            stopped = head.each(self) == 1
        except RecursionError:  # uncompiled only, where a profile has very many patterns
            raise MatchLimitExceeded("too-many-visits", "a profile has too many patterns") from None
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


class MatchClass(Operator):
    """A subject that is stated or listed to be of one of some classes, each subject once."""

    def __init__(
        self, graph: int, subject: int, classes: Sequence[int], following: Operator
    ) -> None:
        """Slots; those of ``classes`` are of constants."""
        self.following = following
        self._graph = graph
        self._subject = subject
        self._classes = list(classes)

    def each(self, run: Run) -> cython.int:
        table: TripleTable = run._own_classes
        graph: cython.int = run.slots[self._graph]
        subject: cython.int = run.slots[self._subject]
        thing: cython.int
        found: cython.int
        slot: cython.int
        row: cython.int
        at: cython.Py_ssize_t
        stopped: cython.int = 0
        kind: cython.int = BY_OBJECT
        seen: set[int] = set()
        if subject:
            kind += BY_SUBJECT
        for slot in self._classes:
            if stopped or (subject and seen):
                break
            run.visit()
            thing = run.slots[slot]
            row = table.first(kind, graph, subject, 0, thing)
            while row >= 0 and not stopped:
                run.visit()
                at = TRIPLE_WIDTH * cython.cast(cython.Py_ssize_t, row)
                found = table.rows[at + TRIPLE_SUBJECT]
                if (
                    table.rows[at + TRIPLE_GRAPH] == graph
                    and table.rows[at + TRIPLE_OBJECT] == thing
                    and subject in (0, found)
                    and found not in seen
                ):
                    seen.add(found)
                    run.slots[self._subject] = found
                    stopped = self.following.each(run)
                    run.slots[self._subject] = subject
                row = table.after(kind, row)
        return stopped


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


class Emit(Operator):
    """The end of a program."""

    def __init__(self, columns: Sequence[int]) -> None:
        self._columns = tuple(columns)

    def each(self, run: Run) -> cython.int:
        if run._first_only:
            return 1
        run.count_row(len(self._columns))
        run.rows.append(tuple([run.slots[slot] for slot in self._columns]))
        return 0
