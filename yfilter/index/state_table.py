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
    8, 9 a bit for each name edge, and for each other edge, of the members (see trie.name_bit)
   10   its looping nodes (see loop_sets.py)
   11   a state that it leans on, or 0        14, 15 that one's row and time, by then
   12, 13  a bit for each name edge, and for each other edge, on which it may differ from that one

``members`` are in order; ``member_names`` and ``member_edges`` have the edge bits of each.

The trie's log says what changed since a state was last used; only what that concerns is forgotten.
Where a change made another set, that *leans on* the state whose place it takes: it has that one's
transitions, but on edges that only one of both has or that changed.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import grown, ints

if cython.compiled:
    from cython.cimports.yfilter.index.int_cache import IntCache
    from cython.cimports.yfilter.index.loop_sets import LoopSets
    from cython.cimports.yfilter.index.steps import asked_bit
    from cython.cimports.yfilter.index.symbols import SymbolTable
    from cython.cimports.yfilter.index.trie import Trie, edge_bit, name_bit
else:
    from yfilter.index.int_cache import IntCache
    from yfilter.index.loop_sets import LoopSets
    from yfilter.index.steps import asked_bit
    from yfilter.index.symbols import SymbolTable
    from yfilter.index.trie import Trie, edge_bit, name_bit


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

    def outdated(self, state: cython.int) -> cython.bint:
        """Whether the set itself may be wrong by now; what else changed is put right."""
        trie: Trie = self.trie
        row: cython.int = 16 * state
        time: cython.int = self.states[row + 3]
        end: cython.int = self.states[row + 4] + self.states[row + 5]
        i: cython.int
        if time == trie.clock:
            return False
        i = trie.next_changed(self.members, self.states[row + 4], end, time)
        while i < end:
            if self._put_right(state, self.members[i]):
                return True
            self.member_names[i] = trie.nodes[10 * self.members[i] + 8]
            self.member_edges[i] = trie.nodes[10 * self.members[i] + 9]
            i = trie.next_changed(self.members, i + 1, end, time)
        if self._put_loops_right(state):
            return True
        self.states[row + 3] = trie.clock
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
        i: cython.int = self.states[16 * other + 4]
        j: cython.int = self.states[16 * state + 4]
        end: cython.int = i + self.states[16 * other + 5]
        last: cython.int = j + self.states[16 * state + 5]
        wrong: cython.bint = False
        row: cython.int = 16 * state
        self.states[row + 14] = self.states[16 * other]
        self.states[row + 15] = self.states[16 * other + 3]
        self.states[row + 3] = self.states[16 * other + 3]  # what changed since then counts
        if self.states[16 * other + 10] != self.states[row + 10]:
            self.states[row + 12] = -1
        else:
            wrong = self._put_loops_right(state)
        while (i < end or j < last) and not wrong:
            if i < end and j < last and self.members[i] == self.members[j]:
                wrong = self._put_right(state, self.members[j])
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
        self.states[row + 3] = self.trie.clock
        self.states[row + 11] = 0 if wrong else other
        return 0

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
        """``_put_right`` for all loops."""
        loops: LoopSets = self.loops
        row: cython.int = 8 * self.states[16 * state + 10]
        time: cython.int = self.states[16 * state + 3]
        end: cython.int = loops.sets[row] + loops.sets[row + 1]
        i: cython.int = end
        if loops.last_change(self.states[16 * state + 10]) > time:
            i = self.trie.next_changed(loops.members, loops.sets[row], end, time)
        while i < end:
            if self._put_right(state, loops.members[i]):
                return True
            i = self.trie.next_changed(loops.members, i + 1, end, time)
        return False

    def _put_right(self, state: cython.int, node: cython.int) -> cython.bint:
        """Forget what a node's changes concern; whether the set itself may be wrong.

        That is if a change was too long ago, of another node of its number, or of its loop.
        """
        trie: Trie = self.trie
        row: cython.int = 16 * state
        change: cython.int = trie.nodes[10 * node + 5]
        edge: cython.int
        while change > self.states[row + 3]:
            edge = trie.log_edge[change & 4095]
            if trie.clock - change >= 4096 or trie.log_node[change & 4095] != node or edge == 1:
                return True
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
            change = trie.log_before[change & 4095]
        return False

    def _forget_name(self, state: cython.int, symbol: cython.int) -> None:
        """The transitions on labels that have a symbol, 0 for ``*``."""
        label: cython.int = self.only_label[symbol] if symbol else -1
        if symbol == 0:
            self.states[16 * state + 7] = -1
        if label > 0:
            self._forget(state, label << 2)
        elif label < 0:
            self.states[16 * state] = self.next_row
            self.next_row += 1

    def _forget(self, state: cython.int, edge: cython.int) -> None:
        # PERF: most states were never asked for most edges, and looking that up is a cache miss.
        if self.states[16 * state + 2] & asked_bit(edge):
            self.transitions.retire(self.key(state, edge))
