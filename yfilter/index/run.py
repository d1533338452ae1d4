# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Run: one message through the automaton.

Each element has *heads*, the states that its children start from::

    one          of the structure: all paths whose access predicate is not met yet
    one for each access predicate that holds on the element or an ancestor, as long as something
                 can follow; for a range it carries the number that the message has there

So what a profile asks for besides its access predicate is looked at only where that holds.  Heads
of an element in the same state do the same, so that each is kept once.

A run is about one priority class, whose root of the trie it starts from.  Whoever takes the lists
that are met (``taker``) can end it: where queries lead to links, that is when none of these is
wanted any more (see target_groups.py).

Elements are taken level by level and in groups, each step for a whole group before the next one,
because what costs is waiting for memory (see moves.py)::

    heads of the parents ─▶ states of the elements ─┬─▶ heads ─▶ the next level
                                 │                  └─▶ lists ─▶ taker
                                 └▶ attributes ─▶ atoms ─▶ heads and lists, too
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from collections.abc import Callable

from yfilter.index.columns import doubles, grown, ints

if cython.compiled:
    from cython.cimports.yfilter.index.edge_bits import edge_bit
    from cython.cimports.yfilter.index.lazy_states import LazyStates
    from cython.cimports.yfilter.index.message_view import MessageView
    from cython.cimports.yfilter.index.moves import Moves
    from cython.cimports.yfilter.index.offers import Offers
    from cython.cimports.yfilter.index.trie import Trie
else:
    from yfilter.index.atoms import RANGES
    from yfilter.index.edge_bits import edge_bit
    from yfilter.index.lazy_states import LazyStates
    from yfilter.index.message_view import MessageView
    from yfilter.index.moves import Moves
    from yfilter.index.offers import Offers
    from yfilter.index.state_table import (
        FLAG_ATTRIBUTES,
        FLAG_FOLLOWS,
        STATE_ACCEPTS,
        STATE_EDGES,
        STATE_ELSEWHERE,
        STATE_FLAGS,
        STATE_NAMES,
        STATE_ROW,
        STATE_WIDTH,
    )
    from yfilter.index.trie import EDGE_ATOM, EDGE_SHIFT, NODE_USES, NODE_WIDTH, Trie


if not cython.compiled:
    ITEM_OPERATOR, ITEM_SHIFT = 7, 3
    STRUCTURE = -1
    TOO_COSTLY = -1
    MORE = 1


class Run:
    """Goes through the message that ``view`` is bound to; ``taker`` has what was met."""

    def __init__(
        self,
        view: MessageView,
        taker: Offers,
        trie: Trie,
        new_states: Callable[[LazyStates | None], LazyStates],
    ) -> None:
        self.view = view
        self._taker = taker
        self.trie = trie
        self._new_states = new_states
        self.states = new_states(None)
        self.heads = 0
        self.turns = 0
        self.elements_spared = 0
        self._down = Moves()  # item: the parent's head
        self._across = Moves()  # item: the first row of the own atoms of a value
        self._onto = Moves()  # item: see ITEM_SHIFT
        self._count = 0
        self._moved = 0  # heads that the present group came from, and was compared with
        self._state = ints(1024)
        self._operator = ints(1024)
        self._number = doubles(1024)
        self._first = ints(256)
        self._end = ints(256)

    def go(self, taker: Offers, root: cython.int, visits_max: cython.longlong) -> cython.int:
        """Offer a taker what is met behind a root of the trie, as long as it wants anything.

        TOO_COSTLY beyond so many heads and elements looked at, else 0.
        """
        self.begin(taker, root)
        return self.go_on(visits_max, 0)

    def begin(self, taker: Offers, root: cython.int) -> cython.int:
        """The same in pieces, of which ``go_on`` does one."""
        view: MessageView = self.view
        self._position = 0
        self._taker = taker
        if len(self._first) < view.elements + 2:
            self._first = ints(2 * view.elements + 2)
            self._end = ints(2 * view.elements + 2)
        # The document node has place 0, the elements the places from 1.
        self._state[0] = self.states.start(root)
        self._operator[0] = STRUCTURE
        self._first[0] = 0
        self._end[0] = 1
        self._count = 1
        return 0

    def go_on(self, visits_max: cython.longlong, piece: cython.longlong) -> cython.int:
        """Look at so many heads and elements of what is left, and at nodes for steps that were not
        made before, at all if ``piece`` is 0; MORE when there is something left, TOO_COSTLY beyond
        ``visits_max`` of all, else 0."""
        view: MessageView = self.view
        taker: Offers = self._taker
        position: cython.int = self._position
        until: cython.longlong = taker.residuals.visits + piece
        gone_through: cython.longlong
        count: cython.int
        while position < view.elements:
            count = self._count
            gone_through = self.states.gone_through
            position = self._move(position)
            until -= self.states.gone_through - gone_through
            self.heads += self._count - count
            taker.residuals.visits += self._moved
            taker.settle(self.states.accepts)
            if taker.residuals.visits > visits_max:
                return TOO_COSTLY
            if not taker.is_any_wanted():
                self.elements_spared += view.elements - position
                break
            if position < view.elements and self.states.is_full():
                self._turn(self._first[view.parent[view.order[position]] + 1])
            if piece and taker.residuals.visits >= until and position < view.elements:
                self._position = position
                return MORE
        return 0

    def is_empty(self, root: cython.int) -> cython.bint:
        """Whether there are no queries behind a root of the trie."""
        return self.trie.nodes[NODE_WIDTH * root + NODE_USES] == 1

    def forget_states(self) -> None:
        """Begin a generation that takes nothing over."""
        self.states = self._new_states(None)

    def _move(self, position: cython.int) -> cython.int:
        """Give a group of elements, from a position in the order on, its heads; what follows it."""
        end: cython.int = self._ask_down(position)
        self._down.resolve(self.states, self.trie.clock)
        self._ask_attributes()
        self._across.resolve(self.states, self.trie.clock)
        self._ask_atoms()
        self._onto.resolve(self.states, self.trie.clock)
        self._enter_all(position, end)
        return end

    def _ask_down(self, position: cython.int) -> cython.int:
        """From the heads of their parents to elements of one level; the position behind them."""
        view: MessageView = self.view
        down: Moves = self._down
        states: cython.int[::1] = self.states.states
        depth: cython.int = view.depth[view.order[position]]
        count: cython.int = 0
        moved: cython.longlong = 0
        element: cython.int
        parent: cython.int
        label: cython.int
        bits: cython.int
        edge: cython.longlong
        row: cython.longlong
        state: cython.int
        j: cython.int
        while position < view.elements:
            element = view.order[position]
            parent = view.parent[element] + 1
            if count + self._end[parent] - self._first[parent] > len(down.key):
                if count:
                    break
                down.cover(self._end[parent] - self._first[parent])
            if view.depth[element] != depth:
                break
            label = view.label[view.name[element]]
            bits = self.states.label_bits[label]
            edge = label << EDGE_SHIFT
            for j in range(self._first[parent], self._end[parent]):
                state = self._state[j]
                # PERF: two of three heads have no edge for the name, which their row tells.
                if states[STATE_WIDTH * state + STATE_NAMES] & bits:
                    row = states[STATE_WIDTH * state + STATE_ROW]
                    down.key[count] = (row << 32) | edge
                elif states[STATE_WIDTH * state + STATE_ELSEWHERE]:
                    down.key[count] = 0
                    down.target[count] = states[STATE_WIDTH * state + STATE_ELSEWHERE]
                else:
                    continue
                down.state[count] = state
                down.element[count] = element
                down.item[count] = j
                count += 1
            moved += self._end[parent] - self._first[parent]
            position += 1
        down.count = count
        self._moved = moved
        return position

    def _ask_attributes(self) -> cython.int:
        """From the structure's states of elements to the attributes of their own atoms."""
        view: MessageView = self.view
        down: Moves = self._down
        across: Moves = self._across
        states: cython.int[::1] = self.states.states
        own_asks: cython.int[::1] = view.own_asks
        count: cython.int = 0
        element: cython.int
        state: cython.int
        row: cython.longlong
        i: cython.int
        k: cython.int
        for i in range(down.count):
            if self._operator[down.item[i]] < 0:
                count += view.own_start[down.element[i] + 1] - view.own_start[down.element[i]]
        across.cover(count)
        self._onto.cover(RANGES * count)
        count = 0
        for i in range(down.count):
            state = down.target[i]
            if (
                self._operator[down.item[i]] >= 0
                or not states[STATE_WIDTH * state + STATE_FLAGS] & FLAG_ATTRIBUTES
            ):
                continue
            element = down.element[i]
            for k in range(view.own_start[element], view.own_start[element + 1]):
                if own_asks[k] and states[STATE_WIDTH * state + STATE_EDGES] & edge_bit(
                    own_asks[k]
                ):
                    row = states[STATE_WIDTH * state + STATE_ROW]
                    across.key[count] = (row << 32) | own_asks[k]
                    across.state[count] = state
                    across.element[count] = element
                    across.item[count] = k
                    count += 1
        across.count = count
        return 0

    def _ask_atoms(self) -> cython.int:
        """From attributes to the atoms themselves."""
        view: MessageView = self.view
        across: Moves = self._across
        onto: Moves = self._onto
        states: cython.int[::1] = self.states.states
        count: cython.int = 0
        state: cython.int
        edge: cython.int
        row: cython.longlong
        i: cython.int
        k: cython.int
        end: cython.int
        operator: cython.int
        for i in range(across.count):
            state = across.target[i]
            if not state:
                continue
            row = states[STATE_WIDTH * state + STATE_ROW]
            k = across.item[i]
            end = view.own_start[across.element[i] + 1]
            while True:
                operator = 1 if view.own_ranges[k] else 0
                while operator <= RANGES:
                    edge = view.own_atom[k]
                    if operator:
                        edge = view.atoms.ranges[RANGES * view.own_ranges[k] + operator - 1]
                    edge = (edge << EDGE_SHIFT) | EDGE_ATOM
                    if states[STATE_WIDTH * state + STATE_EDGES] & edge_bit(edge):
                        onto.key[count] = (row << 32) | edge
                        onto.state[count] = state
                        onto.element[count] = across.element[i]
                        onto.item[count] = k << ITEM_SHIFT | operator
                        count += 1
                    if operator == 0:
                        break
                    operator += 1
                k += 1
                if k == end or view.own_asks[k]:
                    break
        onto.count = count
        return 0

    def _enter_all(self, position: cython.int, end: cython.int) -> cython.int:
        """The heads of a group of elements, where its moves have led."""
        view: MessageView = self.view
        down: Moves = self._down
        onto: Moves = self._onto
        element: cython.int
        i: cython.int = 0
        k: cython.int = 0
        while position < end:
            element = view.order[position]
            self._first[element + 1] = self._count
            self._entered = 0
            while i < down.count and down.element[i] == element:
                if down.target[i]:
                    self._enter(
                        down.target[i],
                        self._operator[down.item[i]],
                        self._number[down.item[i]],
                        element,
                    )
                i += 1
            while k < onto.count and onto.element[k] == element:
                if onto.target[k]:
                    self._enter(
                        onto.target[k],
                        onto.item[k] & ITEM_OPERATOR,
                        view.own_number[onto.item[k] >> ITEM_SHIFT],
                        element,
                    )
                k += 1
            self._end[element + 1] = self._count
            position += 1
        return 0

    def _enter(
        self,
        state: cython.int,
        operator: cython.int,
        number: cython.double,
        element: cython.int,
    ) -> cython.int:
        """Add a head, unless the element has its equal, and offer what its state accepts."""
        j: cython.int
        place: cython.int
        bit: cython.ulonglong = 1
        bit = bit << (state & 63)
        if self._entered & bit:
            self._moved += (self._count - self._first[element + 1]) >> 4
            for j in range(self._first[element + 1], self._count):
                if (
                    self._state[j] == state
                    and self._operator[j] == operator
                    and self._number[j] == number
                ):
                    return 0
        self._entered |= bit
        place = self.states.states[STATE_WIDTH * state + STATE_ACCEPTS]
        if place < 0:
            place = self.states.accepted(state, operator > 0)
        if place > 0:
            self._taker.offer(place, element, operator, number)
        if not self.states.states[STATE_WIDTH * state + STATE_FLAGS] & FLAG_FOLLOWS:
            return 0
        if self._count + 1 >= len(self._state):
            self._state = grown(self._state, 2 * self._count)
            self._operator = grown(self._operator, 2 * self._count)
            self._number = grown(self._number, 2 * self._count)
        self._state[self._count] = state
        self._operator[self._count] = operator
        self._number[self._count] = number
        self._count += 1
        return 0

    def _turn(self, first: cython.int) -> cython.int:
        """Begin a new generation in the middle of a message; the heads from one on move to it."""
        older: LazyStates = self.states
        newer: LazyStates = self._new_states(older)
        j: cython.int
        older.forget_older()
        for j in range(first, self._count):
            self._state[j] = newer.carry(older, self._state[j])
        self.states = newer
        self.turns += 1
        return 0
