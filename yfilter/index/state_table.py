# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""StateTable: the rows of deterministic states, and what changes of the trie make wrong in them.

A state is a row of STATE_WIDTH numbers in ``states``, a cache line::

    ROW               row of its transitions
    ACCEPTS           place of what it accepts (accept_lists.py), 0 for nothing, NOT_YET
    FLAGS             something follows, it has attribute edges, a bit for edges with a transition
    TIME              when it was last known to be right
    FIRST, COUNT      its members, without loops
    TWIN              the same set in the generation before, or 0
    ELSEWHERE         the state behind a name that no member has an edge for, or NOT_YET
    NAMES, EDGES      a bit for each name edge, for each other edge, of the members (edge_bits.py)
    LOOPS             its looping nodes (loop_sets.py)
    LEANS_ON          a state that it leans on, or 0
    DIFFERING_NAMES   a bit for each name edge on which it may differ from that one
    DIFFERING_EDGES   the same for other edges
    ROW_THEN          that one's row of transitions when it began to lean
    TIME_THEN         that one's time, by then

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
    from cython.cimports.yfilter.index.symbols import SymbolTable
    from cython.cimports.yfilter.index.trie import Trie
else:
    from yfilter.index.edge_bits import edge_bit, name_bit
    from yfilter.index.int_cache import IntCache
    from yfilter.index.loop_sets import LOOPS_COUNT, LOOPS_FIRST, LOOPS_NAMES, LOOPS_WIDTH, LoopSets
    from yfilter.index.sorting import place_of
    from yfilter.index.symbols import SEVERAL, SymbolTable
    from yfilter.index.trie import (
        EDGE_KIND,
        EDGE_LOOP,
        EDGE_SHIFT,
        LOG_MASK,
        LOG_QUERIES,
        LOG_REUSED,
        LOG_SIZE,
        NODE_CHANGED,
        NODE_EDGES,
        NODE_FIRST_QUERY,
        NODE_NAMES,
        NODE_USES,
        NODE_WIDTH,
        Trie,
    )

if not cython.compiled:
    STATE_ROW, STATE_ACCEPTS, STATE_FLAGS, STATE_TIME, STATE_FIRST, STATE_COUNT = range(6)
    STATE_TWIN, STATE_ELSEWHERE, STATE_NAMES, STATE_EDGES, STATE_LOOPS = range(6, 11)
    STATE_LEANS_ON, STATE_DIFFERING_NAMES, STATE_DIFFERING_EDGES = range(11, 14)
    STATE_ROW_THEN, STATE_TIME_THEN, STATE_WIDTH = range(14, 17)

    FLAG_FOLLOWS, FLAG_ATTRIBUTES, FLAG_ASKED = 1, 2, 4
    FLAGS_ASKED = 29

    NOT_YET = -1


class StateTable:
    """``outdated`` puts a state right, unless its very set may be wrong: then it is left."""

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
        row: cython.int = STATE_WIDTH * state
        first: cython.int = self._members_used
        if row + STATE_WIDTH > len(self.states):
            self.states = grown(self.states, 2 * len(self.states))
        if first + count > len(self.members):
            self.members = grown(self.members, 2 * (first + count))
            self.member_names = grown(self.member_names, 2 * (first + count))
            self.member_edges = grown(self.member_edges, 2 * (first + count))
        self.bound = state + 1
        for i in range(count):
            self.members[first + i] = nodes[i]
        self._members_used = first + count
        self.states[row + STATE_FIRST] = first
        self.states[row + STATE_COUNT] = count
        self.states[row + STATE_LOOPS] = loops
        self.states[row + STATE_ROW] = self.next_row
        self.next_row += 1
        self.states[row + STATE_TWIN] = 0
        self.states[row + STATE_ELSEWHERE] = NOT_YET
        self.states[row + STATE_TIME] = self.trie.clock
        self.states[row + STATE_LEANS_ON] = 0
        self.states[row + STATE_DIFFERING_NAMES] = 0
        self.states[row + STATE_DIFFERING_EDGES] = 0
        self._derive(state)
        return state

    def touch(self, states: cython.int[::1], count: cython.int) -> cython.int:
        """Of so many states some are going to be put right."""
        # PERF: loads that nothing waits for, so that what follows is in the cache.
        i: cython.int
        row: cython.int
        touched: cython.int = 0
        for i in range(count):
            row = STATE_WIDTH * states[i]
            if self.states[row + STATE_TIME] != self.trie.clock:
                touched ^= self.members[self.states[row + STATE_FIRST]]
                touched ^= self.members[
                    self.states[row + STATE_FIRST] + (self.states[row + STATE_COUNT] >> 1)
                ]
                touched ^= self.loops.sets[
                    LOOPS_WIDTH * self.states[row + STATE_LOOPS] + LOOPS_FIRST
                ]
        self._touched = touched
        return 0

    def outdated(self, state: cython.int) -> cython.bint:
        """Whether the set itself may be wrong by now; what else changed is put right."""
        row: cython.int = STATE_WIDTH * state
        if self.states[row + STATE_TIME] == self.trie.clock:
            return False
        if self._put_right(
            state,
            self.members,
            self.states[row + STATE_FIRST],
            self.states[row + STATE_COUNT],
            True,
        ):
            return True
        if self._put_loops_right(state):
            return True
        self.states[row + STATE_TIME] = self.trie.clock
        return False

    def lean(self, state: cython.int, other: cython.int) -> cython.int:
        """A new state leans on the one whose place it takes; on which edges may they differ?"""
        row: cython.int = STATE_WIDTH * state
        wrong: cython.bint
        common: cython.int = self._compare(state, other)
        self.states[row + STATE_ROW_THEN] = self.states[STATE_WIDTH * other + STATE_ROW]
        self.states[row + STATE_TIME_THEN] = self.states[STATE_WIDTH * other + STATE_TIME]
        # What changed since then counts.
        self.states[row + STATE_TIME] = self.states[STATE_WIDTH * other + STATE_TIME]
        wrong = self._put_right(state, self._common, 0, common, False)
        if self.states[STATE_WIDTH * other + STATE_LOOPS] == self.states[row + STATE_LOOPS]:
            wrong |= self._put_loops_right(state)
        else:
            common = self._compare_loops(state, other)
            wrong |= self._put_right(state, self._common, 0, common, False)
        self.states[row + STATE_TIME] = self.trie.clock
        self.states[row + STATE_LEANS_ON] = 0 if wrong else other
        return 0

    def _compare(self, state: cython.int, other: cython.int) -> cython.int:
        """How many members both have, in ``_common``; on what the others have, they may differ."""
        i: cython.int = self.states[STATE_WIDTH * other + STATE_FIRST]
        j: cython.int = self.states[STATE_WIDTH * state + STATE_FIRST]
        end: cython.int = i + self.states[STATE_WIDTH * other + STATE_COUNT]
        last: cython.int = j + self.states[STATE_WIDTH * state + STATE_COUNT]
        common: cython.int = 0
        row: cython.int = STATE_WIDTH * state
        if last - j > len(self._common):
            self._common = ints(2 * (last - j))
        while i < end or j < last:
            if i < end and j < last and self.members[i] == self.members[j]:
                self._common[common] = self.members[j]
                common += 1
                i += 1
                j += 1
            elif j == last or (i < end and self.members[i] < self.members[j]):
                self.states[row + STATE_DIFFERING_NAMES] |= self.member_names[i]
                self.states[row + STATE_DIFFERING_EDGES] |= self.member_edges[i]
                i += 1
            else:
                self.states[row + STATE_DIFFERING_NAMES] |= self.member_names[j]
                self.states[row + STATE_DIFFERING_EDGES] |= self.member_edges[j]
                j += 1
        return common

    def _compare_loops(self, state: cython.int, other: cython.int) -> cython.int:
        """``_compare`` of the loops; the state may have more, not less of them in use."""
        loops: LoopSets = self.loops
        row: cython.int = STATE_WIDTH * state
        at: cython.int = LOOPS_WIDTH * self.states[STATE_WIDTH * other + STATE_LOOPS]
        i: cython.int = loops.sets[at + LOOPS_FIRST]
        end: cython.int = i + loops.sets[at + LOOPS_COUNT]
        at = LOOPS_WIDTH * self.states[row + STATE_LOOPS]
        j: cython.int = loops.sets[at + LOOPS_FIRST]
        last: cython.int = j + loops.sets[at + LOOPS_COUNT]
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
                if self.trie.nodes[NODE_WIDTH * loops.members[i] + NODE_USES]:
                    self.states[row + STATE_DIFFERING_NAMES] = -1
                i += 1
            else:
                self.states[row + STATE_DIFFERING_NAMES] |= loops.names[j]
                j += 1
        return common

    def leans(self, state: cython.int) -> cython.bint:
        """Whether it leans on a state whose transitions are still those of then."""
        other: cython.int = self.states[STATE_WIDTH * state + STATE_LEANS_ON]
        if other == state:
            return True  # on its own transitions before it lost them
        return (
            other != 0
            and self.states[STATE_WIDTH * other + STATE_ROW]
            == self.states[STATE_WIDTH * state + STATE_ROW_THEN]
        )

    def may_differ(self, state: cython.int, edge: cython.int) -> cython.bint:
        """Whether the state that this one leans on may lead elsewhere by an edge."""
        if edge & EDGE_KIND:
            return self.states[STATE_WIDTH * state + STATE_DIFFERING_EDGES] & edge_bit(edge) != 0
        return (
            self.states[STATE_WIDTH * state + STATE_DIFFERING_NAMES]
            & (self.label_bits[edge >> EDGE_SHIFT] | name_bit(0))
            != 0
        )

    def key(self, state: cython.int, edge: cython.int) -> cython.longlong:
        row: cython.longlong = self.states[STATE_WIDTH * state + STATE_ROW]
        return (row << 32) | edge

    def table_bytes(self) -> cython.longlong:
        total: cython.longlong = self._members_used
        total = 12 * total + 64 * self.bound
        return total + self.loops.used_bytes() + self.transitions.size_bytes()

    def _derive(self, state: cython.int) -> cython.int:
        i: cython.int
        row: cython.int
        first: cython.int = self.states[STATE_WIDTH * state + STATE_FIRST]
        loops: cython.int = self.states[STATE_WIDTH * state + STATE_LOOPS]
        accepting: cython.int = 0
        names: cython.int = self.loops.sets[LOOPS_WIDTH * loops + LOOPS_NAMES]
        edges: cython.int = 0
        for i in range(first, first + self.states[STATE_WIDTH * state + STATE_COUNT]):
            row = NODE_WIDTH * self.members[i]
            names |= self.trie.nodes[row + NODE_NAMES]
            edges |= self.trie.nodes[row + NODE_EDGES]
            self.member_names[i] = self.trie.nodes[row + NODE_NAMES]
            self.member_edges[i] = self.trie.nodes[row + NODE_EDGES]
            if self.trie.nodes[row + NODE_FIRST_QUERY]:
                accepting = NOT_YET
        row = STATE_WIDTH * state
        self.states[row + STATE_ACCEPTS] = accepting
        self.states[row + STATE_FLAGS] = (names != 0 or loops != 0) | (edges != 0) * FLAG_ATTRIBUTES
        self.states[row + STATE_NAMES] = names
        self.states[row + STATE_EDGES] = edges
        return 0

    def _put_loops_right(self, state: cython.int) -> cython.bint:
        """``_put_right`` of the loops."""
        loops: LoopSets = self.loops
        number: cython.int = self.states[STATE_WIDTH * state + STATE_LOOPS]
        row: cython.int = LOOPS_WIDTH * number
        if (
            number == 0
            or loops.last_change(number) <= self.states[STATE_WIDTH * state + STATE_TIME]
        ):
            return False
        return self._put_right(
            state,
            loops.members,
            loops.sets[row + LOOPS_FIRST],
            loops.sets[row + LOOPS_COUNT],
            False,
        )

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
        change: cython.int = self.states[STATE_WIDTH * state + STATE_TIME] + 1
        if trie.clock - change >= 8:
            return self._put_right_of_many(state, members, first, count, own)
        while change <= trie.clock:
            place = place_of(members, first, count, trie.log_node[change & LOG_MASK])
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
        time: cython.int = self.states[STATE_WIDTH * state + STATE_TIME]
        end: cython.int = first + count
        change: cython.int
        place: cython.int = trie.next_changed(members, first, end, time)
        while place < end:
            change = trie.nodes[NODE_WIDTH * members[place] + NODE_CHANGED]
            while change > time:
                if trie.clock - change >= LOG_SIZE or self._heed(state, change, own):
                    return True
                change = trie.log_before[change & LOG_MASK]
            if own:
                self._note_bits(place)
            place = trie.next_changed(members, place + 1, end, time)
        return False

    def _note_bits(self, place: cython.int) -> cython.int:
        row: cython.int = NODE_WIDTH * self.members[place]
        self.member_names[place] = self.trie.nodes[row + NODE_NAMES]
        self.member_edges[place] = self.trie.nodes[row + NODE_EDGES]
        return 0

    def _heed(self, state: cython.int, change: cython.int, own: cython.bint) -> cython.bint:
        """Forget what one change of a member concerns; whether the set itself may be wrong."""
        row: cython.int = STATE_WIDTH * state
        edge: cython.int = self.trie.log_edge[change & LOG_MASK]
        if edge in (EDGE_LOOP, LOG_REUSED):  # a loop more, or another node of this number
            return own or edge == LOG_REUSED
        if edge == LOG_QUERIES:
            self.states[row + STATE_ACCEPTS] = NOT_YET
        elif edge & EDGE_KIND:
            self.states[row + STATE_FLAGS] |= FLAG_ATTRIBUTES
            self.states[row + STATE_EDGES] |= edge_bit(edge)
            self.states[row + STATE_DIFFERING_EDGES] |= edge_bit(edge)
            self._forget(state, edge)
        else:
            self.states[row + STATE_FLAGS] |= FLAG_FOLLOWS
            self.states[row + STATE_NAMES] |= name_bit(edge)
            self.states[row + STATE_DIFFERING_NAMES] |= name_bit(edge)
            self._forget_name(state, edge >> EDGE_SHIFT)
        return False

    def _forget_name(self, state: cython.int, symbol: cython.int) -> None:
        """The transitions on labels that have a symbol, 0 for ``*``."""
        label: cython.int = self.only_label[symbol] if symbol else SEVERAL
        if symbol == 0:
            self.states[STATE_WIDTH * state + STATE_ELSEWHERE] = NOT_YET
        if label > 0:
            self._forget(state, label << EDGE_SHIFT)
        elif label < 0:  # it begins anew, and leans on what it was
            self.states[STATE_WIDTH * state + STATE_LEANS_ON] = state
            self.states[STATE_WIDTH * state + STATE_DIFFERING_NAMES] = -1
            self.states[STATE_WIDTH * state + STATE_ROW_THEN] = self.states[
                STATE_WIDTH * state + STATE_ROW
            ]
            self.states[STATE_WIDTH * state + STATE_ROW] = self.next_row
            self.next_row += 1

    def _forget(self, state: cython.int, edge: cython.int) -> None:
        # PERF: most states were never asked for most edges, and looking that up is a cache miss.
        if self.states[STATE_WIDTH * state + STATE_FLAGS] & asked_bit(edge):
            self.transitions.retire(self.key(state, edge))


def asked_bit(edge: cython.int) -> cython.int:
    """The flag of an edge."""
    return FLAG_ASKED << (edge % FLAGS_ASKED)
