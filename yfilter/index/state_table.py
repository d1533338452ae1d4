# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""StateTable: the rows of deterministic states, and what changes of the trie make wrong in them.

A state is a row of 16 numbers in ``states``, a cache line::

    0 row of its transitions
    1 place of what it accepts (see accept_lists.py): NOT_YET, 0 for nothing accepted
    2 something follows | has attribute edges << 1 | a bit for each edge with a transition << 2
    3 time when it was last known to be right
    4 first of its members     5 their number; without loops
    6 the same set in the generation before, or 0
    7 the state behind a name that no member has an edge for, or -1
    8, 9 a bit for each name edge, and for each other edge, of the members (see edge_bits.py)
   10   its looping nodes (see loop_sets.py)
   11   a state that it leans on, or 0        14, 15 that one's row of transitions and time, by then
   12, 13  a bit for each name edge, and for each other edge, on which it may differ from that one

``members`` are in order; ``member_names`` and ``member_edges`` have the edge bits of each.

The trie's log says what changed since a state was last used; only what that concerns is forgotten.
Where a change made another set, that *leans on* the state whose place it takes: it has that one's
transitions, but on edges that only one of both has or that changed, and with the loops that it has
more.  A state that a change made begin anew leans on what it was itself, whose row nobody writes.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import grown, ints

if cython.compiled:
    from cython.cimports.yfilter.index.edge_bits import edge_bit, name_bit
    from cython.cimports.yfilter.index.int_cache import IntCache
    from cython.cimports.yfilter.index.loop_sets import LoopSets
    from cython.cimports.yfilter.index.sorting import place_of
    from cython.cimports.yfilter.index.steps import asked_bit
    from cython.cimports.yfilter.index.symbols import SymbolTable
    from cython.cimports.yfilter.index.trie import Trie
else:
    from yfilter.index.edge_bits import edge_bit, name_bit
    from yfilter.index.int_cache import IntCache
    from yfilter.index.loop_sets import LoopSets
    from yfilter.index.sorting import place_of
    from yfilter.index.steps import asked_bit
    from yfilter.index.symbols import SymbolTable
    from yfilter.index.trie import Trie


NOT_YET = -1


class StateTable:
    """``outdated`` puts a state right, unless its very set may be wrong; ``renew`` it then."""

    def __init__(self, trie: Trie, loops: LoopSets, bytes_max: int) -> None:
        bits_max = max(6, (bytes_max // 64).bit_length() - 1)
        self.trie = trie
        self.loops = loops
        self.states = ints(max(bytes_max // 4, 1024))
        self.members = ints(max(bytes_max // 4, 64))
        self.member_names = ints(max(bytes_max // 4, 64))
        self.member_edges = ints(max(bytes_max // 4, 64))
        self.transitions = IntCache(min(10, bits_max), bits_max)
        self.bound = self.next_row = 1
        self._members_used = 0
        self._touched = 0
        self._common = ints(64)

    def look_at(self, symbols: SymbolTable) -> None:
        """For a new message, whose names and labels these are."""
        self.only_label = symbols.only_label
        self.label_bits = symbols.label_bits

    def append(self, loops: cython.int, nodes: cython.int[::1], count: cython.int) -> cython.int:
        """A new state, of a set of loops and so many other nodes; it is right."""
        i: cython.int
        state: cython.int = self.bound
        row: cython.int = 16 * state
        first: cython.int = self._members_used
        if row + 16 > len(self.states):
            self.states = grown(self.states, 2 * len(self.states))
        if first + count > len(self.members):
            self.members = grown(self.members, 2 * (first + count))
            self.member_names = grown(self.member_names, 2 * (first + count))
            self.member_edges = grown(self.member_edges, 2 * (first + count))
        self.bound = state + 1
        for i in range(count):
            self.members[first + i] = nodes[i]
        self._members_used = first + count
        self.states[row + 4] = first
        self.states[row + 5] = count
        self.states[row + 10] = loops
        self.renew(state)
        return state

    def touch(self, states: cython.int[::1], count: cython.int) -> cython.int:
        """Of so many states some are going to be put right."""
        # PERF: loads that nothing waits for, so that what follows is in the cache.
        i: cython.int
        row: cython.int
        touched: cython.int = 0
        for i in range(count):
            row = 16 * states[i]
            if self.states[row + 3] != self.trie.clock:
                touched ^= self.members[self.states[row + 4]]
                touched ^= self.members[self.states[row + 4] + (self.states[row + 5] >> 1)]
                touched ^= self.loops.sets[8 * self.states[row + 10]]
        self._touched = touched
        return 0

    def outdated(self, state: cython.int) -> cython.bint:
        """Whether the set itself may be wrong by now; what else changed is put right."""
        row: cython.int = 16 * state
        if self.states[row + 3] == self.trie.clock:
            return False
        if self._put_right(state, self.members, self.states[row + 4], self.states[row + 5], True):
            return True
        if self._put_loops_right(state):
            return True
        self.states[row + 3] = self.trie.clock
        return False

    def renew(self, state: cython.int) -> cython.int:
        """The set is right; all that was computed from it is not, or not there."""
        self.states[16 * state] = self.next_row
        self.next_row += 1
        self.states[16 * state + 6] = 0
        self.states[16 * state + 7] = -1
        self.states[16 * state + 3] = self.trie.clock
        self.states[16 * state + 11] = 0
        self.states[16 * state + 12] = 0
        self.states[16 * state + 13] = 0
        return self._derive(state)

    def lean(self, state: cython.int, other: cython.int) -> cython.int:
        """A new state leans on the one whose place it takes; on which edges may they differ?"""
        row: cython.int = 16 * state
        wrong: cython.bint
        common: cython.int = self._compare(state, other)
        self.states[row + 14] = self.states[16 * other]
        self.states[row + 15] = self.states[16 * other + 3]
        self.states[row + 3] = self.states[16 * other + 3]  # what changed since then counts
        wrong = self._put_right(state, self._common, 0, common, False)
        if self.states[16 * other + 10] == self.states[row + 10]:
            wrong |= self._put_loops_right(state)
        else:
            common = self._compare_loops(state, other)
            wrong |= self._put_right(state, self._common, 0, common, False)
        self.states[row + 3] = self.trie.clock
        self.states[row + 11] = 0 if wrong else other
        return 0

    def _compare(self, state: cython.int, other: cython.int) -> cython.int:
        """How many members both have, in ``_common``; on what the others have, they may differ."""
        i: cython.int = self.states[16 * other + 4]
        j: cython.int = self.states[16 * state + 4]
        end: cython.int = i + self.states[16 * other + 5]
        last: cython.int = j + self.states[16 * state + 5]
        common: cython.int = 0
        row: cython.int = 16 * state
        if last - j > len(self._common):
            self._common = ints(2 * (last - j))
        while i < end or j < last:
            if i < end and j < last and self.members[i] == self.members[j]:
                self._common[common] = self.members[j]
                common += 1
                i += 1
                j += 1
            elif j == last or (i < end and self.members[i] < self.members[j]):
                self.states[row + 12] |= self.member_names[i]
                self.states[row + 13] |= self.member_edges[i]
                i += 1
            else:
                self.states[row + 12] |= self.member_names[j]
                self.states[row + 13] |= self.member_edges[j]
                j += 1
        return common

    def _compare_loops(self, state: cython.int, other: cython.int) -> cython.int:
        """``_compare`` of the loops; the state may have more, not less of them in use."""
        loops: LoopSets = self.loops
        row: cython.int = 16 * state
        at: cython.int = 8 * self.states[16 * other + 10]
        i: cython.int = loops.sets[at]
        end: cython.int = i + loops.sets[at + 1]
        at = 8 * self.states[row + 10]
        j: cython.int = loops.sets[at]
        last: cython.int = j + loops.sets[at + 1]
        common: cython.int = 0
        if last - j > len(self._common):
            self._common = ints(2 * (last - j))
        while i < end or j < last:
            if i < end and j < last and loops.members[i] == loops.members[j]:
                self._common[common] = loops.members[j]
                common += 1
                i += 1
                j += 1
            elif j == last or (i < end and loops.members[i] < loops.members[j]):
                if self.trie.nodes[10 * loops.members[i] + 4]:
                    self.states[row + 12] = -1
                i += 1
            else:
                self.states[row + 12] |= loops.names[j]
                j += 1
        return common

    def leans(self, state: cython.int) -> cython.bint:
        """Whether it leans on a state whose transitions are still those of then."""
        other: cython.int = self.states[16 * state + 11]
        if other == state:
            return True  # on its own transitions before it lost them
        return other != 0 and self.states[16 * other] == self.states[16 * state + 14]

    def may_differ(self, state: cython.int, edge: cython.int) -> cython.bint:
        """Whether the state that this one leans on may lead elsewhere by an edge."""
        if edge & 3:
            return self.states[16 * state + 13] & edge_bit(edge) != 0
        return self.states[16 * state + 12] & (self.label_bits[edge >> 2] | name_bit(0)) != 0

    def key(self, state: cython.int, edge: cython.int) -> cython.longlong:
        row: cython.longlong = self.states[16 * state]
        return (row << 32) | edge

    def table_bytes(self) -> cython.longlong:
        total: cython.longlong = self._members_used
        total = 12 * total + 64 * self.bound
        return total + self.loops.used_bytes() + self.transitions.size_bytes()

    def _derive(self, state: cython.int) -> cython.int:
        i: cython.int
        row: cython.int
        first: cython.int = self.states[16 * state + 4]
        loops: cython.int = self.states[16 * state + 10]
        accepting: cython.int = 0
        names: cython.int = self.loops.sets[8 * loops + 2]
        edges: cython.int = 0
        for i in range(first, first + self.states[16 * state + 5]):
            row = 10 * self.members[i]
            names |= self.trie.nodes[row + 8]
            edges |= self.trie.nodes[row + 9]
            self.member_names[i] = self.trie.nodes[row + 8]
            self.member_edges[i] = self.trie.nodes[row + 9]
            if self.trie.nodes[row + 3]:
                accepting = -1
        row = 16 * state
        self.states[row + 1] = accepting
        self.states[row + 2] = (names != 0 or loops != 0) | (edges != 0) << 1
        self.states[row + 8] = names
        self.states[row + 9] = edges
        return 0

    def _put_loops_right(self, state: cython.int) -> cython.bint:
        """``_put_right`` of the loops."""
        loops: LoopSets = self.loops
        number: cython.int = self.states[16 * state + 10]
        row: cython.int = 8 * number
        if number == 0 or loops.last_change(number) <= self.states[16 * state + 3]:
            return False
        return self._put_right(state, loops.members, loops.sets[row], loops.sets[row + 1], False)

    def _put_right(
        self,
        state: cython.int,
        members: cython.int[::1],
        first: cython.int,
        count: cython.int,
        own: cython.bint,
    ) -> cython.bint:
        """Forget what changes of some nodes concern; whether the set itself may be wrong.

        ``own`` says that these are the members of the state, and that it should have their loops.
        """
        # PERF: few changes are looked for among the nodes, else the nodes among the changes.
        trie: Trie = self.trie
        place: cython.int
        change: cython.int = self.states[16 * state + 3] + 1
        if trie.clock - change >= 8:
            return self._put_right_of_many(state, members, first, count, own)
        while change <= trie.clock:
            place = place_of(members, first, count, trie.log_node[change & 4095])
            if place >= 0:
                if self._heed(state, change, own):
                    return True
                if own:
                    self._note_bits(place)
            change += 1
        return False

    def _put_right_of_many(
        self,
        state: cython.int,
        members: cython.int[::1],
        first: cython.int,
        count: cython.int,
        own: cython.bint,
    ) -> cython.bint:
        trie: Trie = self.trie
        time: cython.int = self.states[16 * state + 3]
        end: cython.int = first + count
        change: cython.int
        place: cython.int = trie.next_changed(members, first, end, time)
        while place < end:
            change = trie.nodes[10 * members[place] + 5]
            while change > time:
                if trie.clock - change >= 4096 or self._heed(state, change, own):
                    return True
                change = trie.log_before[change & 4095]
            if own:
                self._note_bits(place)
            place = trie.next_changed(members, place + 1, end, time)
        return False

    def _note_bits(self, place: cython.int) -> cython.int:
        row: cython.int = 10 * self.members[place]
        self.member_names[place] = self.trie.nodes[row + 8]
        self.member_edges[place] = self.trie.nodes[row + 9]
        return 0

    def _heed(self, state: cython.int, change: cython.int, own: cython.bint) -> cython.bint:
        """Forget what one change of a member concerns; whether the set itself may be wrong."""
        row: cython.int = 16 * state
        edge: cython.int = self.trie.log_edge[change & 4095]
        if edge in (1, -2):  # a loop more, or another node of this number
            return own or edge == -2
        if edge == -1:
            self.states[row + 1] = -1
        elif edge & 3:
            self.states[row + 2] |= 2
            self.states[row + 9] |= edge_bit(edge)
            self.states[row + 13] |= edge_bit(edge)
            self._forget(state, edge)
        else:
            self.states[row + 2] |= 1
            self.states[row + 8] |= name_bit(edge)
            self.states[row + 12] |= name_bit(edge)
            self._forget_name(state, edge >> 2)
        return False

    def _forget_name(self, state: cython.int, symbol: cython.int) -> None:
        """The transitions on labels that have a symbol, 0 for ``*``."""
        label: cython.int = self.only_label[symbol] if symbol else -1
        if symbol == 0:
            self.states[16 * state + 7] = -1
        if label > 0:
            self._forget(state, label << 2)
        elif label < 0:  # it begins anew, and leans on what it was
            self.states[16 * state + 11] = state
            self.states[16 * state + 12] = -1
            self.states[16 * state + 14] = self.states[16 * state]
            self.states[16 * state] = self.next_row
            self.next_row += 1

    def _forget(self, state: cython.int, edge: cython.int) -> None:
        # PERF: most states were never asked for most edges, and looking that up is a cache miss.
        if self.states[16 * state + 2] & asked_bit(edge):
            self.transitions.retire(self.key(state, edge))
