# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Twigs: nested paths of nothing but names, found below many elements at once.

``[head//title]`` asks for no value, so nothing selects among the queries that have it; but such
paths are few, and queries share them.  Each is kept once, in a trie of their own, and which of them
are found below an element is a row of bits::

    [head//title]     twig 1         below the element    /nitf        110…
    [body/p]          twig 2                              /nitf/body   001…
    [p]               twig 3

A row is made by one walk over what is below the element, through states made lazily like those of
the index (lazy_states.py), so that it costs no more for many twigs than for one.  After that a
query costs one bit.  Where few queries ask, the walk is no gain: until so much was asked of an
element that each alone has cost as much, each is looked for alone, first by the names that it needs
(names_below.py), then as it is (residuals.py).

Rows take ROW_BYTES_MAX; when these are full they are forgotten and made again as needed.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from array import array
from collections.abc import Callable

from yfilter.index.columns import grown, ints

if cython.compiled:
    from cython.cimports.yfilter.index.lazy_states import LazyStates
    from cython.cimports.yfilter.index.message_view import MessageView
    from cython.cimports.yfilter.index.names_below import NamesBelow, needs_of
    from cython.cimports.yfilter.index.record_pool import RecordPool
    from cython.cimports.yfilter.index.symbols import SymbolTable
    from cython.cimports.yfilter.index.trie import Trie
else:
    from yfilter.index.accept_lists import LIST_EPOCH, LIST_QUERIES, LIST_SURE
    from yfilter.index.lazy_states import LazyStates
    from yfilter.index.message_view import MessageView
    from yfilter.index.names_below import NamesBelow, needs_of
    from yfilter.index.record_pool import RecordPool
    from yfilter.index.residual_rows import RECORD_COUNT, RECORD_ROWS, WAY_DESCENDANT, WAY_SYMBOL
    from yfilter.index.state_table import (
        FLAG_FOLLOWS,
        STATE_ACCEPTS,
        STATE_ELSEWHERE,
        STATE_FLAGS,
        STATE_NAMES,
        STATE_ROW,
        STATE_TIME,
        STATE_WIDTH,
    )
    from yfilter.index.symbols import SymbolTable
    from yfilter.index.trie import (
        EDGE_SHIFT,
        NODE_FIRST_QUERY,
        NODE_WIDTH,
        QUERY_NUMBER,
        QUERY_WIDTH,
        Trie,
    )

ROW_BYTES_MAX = 16 * 1024 * 1024
QUESTIONS_MIN = 6  # for each element below, for a row to be made


class Twigs:
    """``acquire`` and ``release`` twigs; ``row`` tells which are found below an element.

    A twig is the same path as its record, which says how to look for it alone.  ``rows`` has the
    bits, ``walked`` counts the elements looked at.  No answer depends on the two bounds.
    """

    def __init__(
        self,
        view: MessageView,
        symbols: SymbolTable,
        records: RecordPool,
        trie: Trie,
        new_states: Callable[[LazyStates | None], LazyStates],
    ) -> None:
        self.view = view
        self.symbols = symbols
        self.records = records
        self.trie = trie
        self._new_states = new_states
        self.states = new_states(None)
        self.names = NamesBelow(view, symbols)
        self.needs = ints(64)  # of each twig
        self.rows = array("Q", bytes(64))
        self.row_bytes_max = ROW_BYTES_MAX
        self.questions_min = QUESTIONS_MIN
        self.walked = 0
        self.stamp = 0
        self._words = 1
        self._row_count = 0
        self._owners = 0
        self._row_of = ints(64)  # from 1, in words; minus how often one was asked for that is not
        self._owner = ints(64)  # elements with a row or asked for
        self._path = ints(64)  # states by depth

    def acquire(self, record: cython.int) -> cython.int:
        """The twig of a record for a way down without conditions, which stays as long as it."""
        words: cython.int[::1] = self.records.words
        node: cython.int = 1  # the root
        step: cython.int
        place: cython.int
        twig: cython.int
        for step in range(words[record + RECORD_COUNT]):
            place = record + words[record + RECORD_ROWS + step]
            if words[place + WAY_DESCENDANT]:
                node = self.trie.loop_of(node)
            node = self.trie.extend(node, words[place + WAY_SYMBOL] << EDGE_SHIFT)
        twig = self.trie.nodes[NODE_WIDTH * node + NODE_FIRST_QUERY]
        return twig or self._added(node, record)

    def record(self, twig: cython.int) -> cython.int:
        """The record of a twig, which is its number as a query of the trie."""
        return self.trie.queries[QUERY_WIDTH * twig + QUERY_NUMBER]

    def answer(self, twig: cython.int, element: cython.int) -> cython.int:
        """Whether a twig is found below an element, by names alone: see NamesBelow."""
        return self.names.answer(self.needs[twig], element)

    def remove(self, twig: cython.int) -> cython.int:
        return self.trie.remove_query(twig)

    def begin(self) -> cython.int:
        """For a message that the view was bound to."""
        self._forget_rows()
        self.names.begin()
        self._words = self.trie.query_bound // 64 + 1
        if self.view.elements > len(self._row_of):
            self._row_of = ints(2 * self.view.elements)
            self._owner = ints(2 * self.view.elements)
        if self.view.deepest + 1 > len(self._path):
            self._path = ints(2 * self.view.deepest + 2)
        self.states.begin(self.symbols)
        return 0

    def row(
        self, element: cython.int, count: cython.int, visits_max: cython.longlong
    ) -> cython.int:
        """Where an element's bits begin in ``rows``, or -1: not worth it for ``count`` questions.

        Elements beyond ``visits_max`` are not looked at.
        """
        row: cython.int = self._row_of[element]
        if row > 0:
            return row - 1
        if row == 0:
            self._owner[self._owners] = element
            self._owners += 1
        self._row_of[element] = row - count
        if count - row < self.questions_min * (self.view.end[element] - element):
            return -1
        return self._made(element, visits_max)

    def start(self) -> cython.int:
        """The state that a walk begins in."""
        return self.states.start(1)

    def restart(self) -> None:
        """Begin to count times and stamps again."""
        self.stamp = 0
        self.trie.restart_clock()
        self.states = self._new_states(None)

    def statistics(self) -> dict[str, int]:
        states = self.states.statistics()
        return {
            "index_twigs": self.trie.statistics()["index_queries"],
            "index_twig_nodes": self.trie.statistics()["index_nodes"],
            "index_twig_states": states["index_lazy_states"],
            "index_twig_lazy_bytes": states["index_lazy_bytes"],
            "index_twig_visits": self.walked,
        }

    def _added(self, node: cython.int, record: cython.int) -> cython.int:
        """A new twig."""
        words: cython.int[::1] = self.records.words
        twig: cython.int = self.trie.add_query(node, 0, record)
        steps: cython.int = words[record + RECORD_COUNT]
        first: cython.int = record + words[record + RECORD_ROWS]
        last: cython.int = record + words[record + RECORD_ROWS + steps - 1]
        if twig >= len(self.needs):
            self.needs = grown(self.needs, 2 * twig)
        self.needs[twig] = needs_of(
            words[first + WAY_SYMBOL],
            words[first + WAY_DESCENDANT],
            words[last + WAY_SYMBOL],
            steps,
        )
        return twig

    def _made(self, element: cython.int, visits_max: cython.longlong) -> cython.int:
        i: cython.int
        words: cython.int = self._words
        row: cython.int = self._row_count * words
        walked: cython.longlong = self.walked
        if row + words > len(self.rows):
            if row and 8 * (row + words) > self.row_bytes_max:
                self._forget_rows()
                row = 0
            if row + words > len(self.rows):
                self.rows = grown(self.rows, 2 * (row + words))
        for i in range(row, row + words):
            self.rows[i] = 0
        self._walk(element, row, visits_max)
        if self.walked - walked < visits_max:  # else it may lack something
            self._row_count += 1
            self._row_of[element] = row + 1
        return row

    def _walk(
        self, element: cython.int, row: cython.int, visits_max: cython.longlong
    ) -> cython.int:
        """Set the bits of what is found below an element."""
        view: MessageView = self.view
        top: cython.int = view.depth[element]
        child: cython.int = element + 1
        end: cython.int = view.end[element]
        depth: cython.int
        state: cython.int
        place: cython.int
        visits_end: cython.longlong = self.walked + visits_max
        self.stamp += 1
        self._path[top] = self.start()
        while child < end and self.walked < visits_end:
            self.walked += 1
            depth = view.depth[child]
            state = self._moved(top, depth - 1, view.label[view.name[child]])
            if state:
                place = self.states.states[STATE_WIDTH * state + STATE_ACCEPTS]
                if place < 0:
                    place = self.states.accepted(state, False)
                if place:
                    self._take(place, row)
            if state and self.states.states[STATE_WIDTH * state + STATE_FLAGS] & FLAG_FOLLOWS:
                self._path[depth] = state
                child += 1
            else:
                child = view.end[child]
        return 0

    def _moved(self, top: cython.int, depth: cython.int, label: cython.int) -> cython.int:
        """The state behind a name, from the one that the path has at a depth."""
        states: LazyStates = self.states
        state: cython.int = self._path[depth]
        edge: cython.longlong = 0
        row: cython.longlong = states.states[STATE_WIDTH * state + STATE_ROW]
        target: cython.int
        if states.states[STATE_WIDTH * state + STATE_NAMES] & states.label_bits[label]:
            edge = label << EDGE_SHIFT
            target = states.transitions.get((row << 32) | edge)
        else:
            target = states.states[STATE_WIDTH * state + STATE_ELSEWHERE]
        if target >= 0 and (
            target == 0 or states.states[STATE_WIDTH * target + STATE_TIME] == self.trie.clock
        ):
            return target
        if states.is_full():
            self._turn(top, depth)
            states = self.states
            state = self._path[depth]
            target = -1
        if target < 0:
            target = states.follow(state, edge) if edge else states.elsewhere(state)
        if target and states.states[STATE_WIDTH * target + STATE_TIME] != self.trie.clock:
            target = states.fresh(target, state, edge)
        return target

    def _turn(self, top: cython.int, depth: cython.int) -> cython.int:
        """Begin a new generation of states; those of the path move to it."""
        older: LazyStates = self.states
        newer: LazyStates = self._new_states(older)
        i: cython.int
        older.forget_older()
        for i in range(top, depth + 1):
            self._path[i] = newer.carry(older, self._path[i])
        self.states = newer
        return 0

    def _take(self, place: cython.int, row: cython.int) -> cython.int:
        """Set the bits of a state's twigs, once in a walk."""
        lists: cython.int[::1] = self.states.accepts.lists
        i: cython.int
        bit: cython.ulonglong = 1
        if lists[place + LIST_EPOCH] == self.stamp:
            return 0
        lists[place + LIST_EPOCH] = self.stamp
        for i in range(place + LIST_QUERIES, place + LIST_QUERIES + lists[place + LIST_SURE]):
            self.rows[row + (lists[i] >> 6)] |= bit << (lists[i] & 63)
        return 0

    def _forget_rows(self) -> cython.int:
        i: cython.int
        for i in range(self._owners):
            self._row_of[self._owner[i]] = 0
        self._owners = 0
        self._row_count = 0
        return 0
