# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""LazyStates: one generation of the automaton's deterministic states, made as messages need them.

A state is a set of trie nodes, closed under ε.  Its transitions, on labels, attributes and atoms,
and the lists of what it accepts are computed at the first use and kept.  States, transitions and
lists are a cache with a bound: when a generation is full, a new one begins, and what messages
still use is carried over, so that no message pays for all.  With the one before, which is then
dropped, there are two generations at most.

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

The trie's log says what changed since a state was last used; only what that concerns is computed
anew.  Where a change made another set, that *leans on* the state whose place it takes: it has that
one's transitions, but on edges that only one of both has or that changed, and so on behind it.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import grown, reserved_ints

if cython.compiled:
    from cython.cimports.yfilter.index.accept_lists import AcceptLists
    from cython.cimports.yfilter.index.atoms import AtomTable
    from cython.cimports.yfilter.index.int_cache import IntCache, former
    from cython.cimports.yfilter.index.loop_sets import LoopSets, hash_of
    from cython.cimports.yfilter.index.node_set import NodeSet
    from cython.cimports.yfilter.index.record_pool import RecordPool
    from cython.cimports.yfilter.index.steps import Steps, asked_bit
    from cython.cimports.yfilter.index.symbols import SymbolTable
    from cython.cimports.yfilter.index.trie import Trie, edge_bit, name_bit
else:
    from yfilter.index.accept_lists import AcceptLists
    from yfilter.index.atoms import AtomTable
    from yfilter.index.int_cache import IntCache, former
    from yfilter.index.loop_sets import LoopSets, hash_of
    from yfilter.index.node_set import NodeSet
    from yfilter.index.record_pool import RecordPool
    from yfilter.index.steps import Steps, asked_bit
    from yfilter.index.symbols import SymbolTable
    from yfilter.index.trie import Trie, edge_bit, name_bit

NOT_YET = -1


class LazyStates:
    """``follow`` moves on, ``accepted`` tells what is accepted; state 0 is the empty set."""

    def __init__(
        self,
        trie: Trie,
        atoms: AtomTable,
        records: RecordPool,
        symbols: SymbolTable,
        bytes_max: int,
        older: LazyStates | None,
    ) -> None:
        bits_max = max(6, (bytes_max // 64).bit_length() - 1)
        self.trie = trie
        self.atoms = atoms
        self.older = older
        self.states = reserved_ints(max(bytes_max // 4, 1024))
        self.members = reserved_ints(max(bytes_max // 4, 64))
        self.member_names = reserved_ints(max(bytes_max // 4, 64))
        self.member_edges = reserved_ints(max(bytes_max // 4, 64))
        self.loops: LoopSets = LoopSets(trie, bytes_max, older.loops if older else None)
        self.accepts = AcceptLists(trie, atoms, records, bytes_max)
        self.transitions = IntCache(min(10, bits_max), bits_max)
        self._sets = IntCache(min(8, bits_max), bits_max)
        self._steps = Steps(trie, atoms)
        self._set = self._steps.found
        self._leaning_on = 0
        self._bound = self._next_row = 1
        self._members_used = 0
        self.bytes_max = bytes_max
        self.computed = 0
        self.carried = 0
        self.begin(symbols)

    def start(self, root: cython.int) -> cython.int:
        """The state of the document node, for the queries behind a root of the trie."""
        self._set.clear()
        self._set.push(root)
        return self._intern(0)

    def follow(self, state: cython.int, edge: cython.int) -> cython.int:
        """The state behind an edge, for when ``transitions`` does not have it: it may be stale."""
        target: cython.int = self.transitions.recall(self._key(state, edge))
        if target >= 0:
            return target
        return self._step(state, edge, former(target))

    def elsewhere(self, state: cython.int) -> cython.int:
        """The state behind a name that no member has an edge for; it may be stale."""
        target: cython.int = self.states[16 * state + 7]
        if target < 0:
            target = self._step(state, 0, 0)
            self.states[16 * state + 7] = target
        return target

    def fresh(self, target: cython.int, state: cython.int, edge: cython.int) -> cython.int:
        """The state behind an edge, given what it was some time ago."""
        if self._outdated(target):
            target = self._step(state, edge, target)
            if edge == 0:
                self.states[16 * state + 7] = target
        return target

    def carry(self, older: LazyStates, state: cython.int) -> cython.int:
        """The state with the same members as one of the generation before."""
        i: cython.int
        first: cython.int = older.states[16 * state + 4]
        self._set.clear()
        for i in range(first, first + older.states[16 * state + 5]):
            self._set.push(older.members[i])
        self._set.loop_count = 0
        return self._intern(self.loops.carry(older.loops, older.states[16 * state + 10]))

    def accepted(self, state: cython.int, ranged: cython.bint) -> cython.int:
        """The place of a state's list, made if it is NOT_YET there; 0 for nothing."""
        place: cython.int = 0
        older: LazyStates | None = self.older
        twin: cython.int = self.states[16 * state + 6]
        first: cython.int = self.states[16 * state + 4]
        count: cython.int = self.states[16 * state + 5]
        if older is not None and twin and not older._outdated(twin):
            place = older.states[16 * twin + 1]
        if older is not None and place > 0:
            place = self.accepts.copy(older.accepts, place)
        elif ranged:
            place = self.accepts.make_range(self.members, first, count)
        else:
            place = self.accepts.make(self.members, first, count)
        self.states[16 * state + 1] = place
        return place

    def is_full(self) -> cython.bint:
        return self.used_bytes() > self.bytes_max or self._next_row > 2_000_000_000

    def used_bytes(self) -> cython.longlong:
        total: cython.longlong = self._members_used
        total = 12 * total + 64 * self._bound + self.loops.used_bytes() + self.accepts.used_bytes()
        return total + self.transitions.size_bytes() + self._sets.size_bytes()

    def begin(self, symbols: SymbolTable) -> None:
        """For a new message, whose names were translated."""
        self.only_label = symbols.only_label
        self.label_bits = symbols.label_bits
        self._steps.begin(symbols)

    def forget_older(self) -> None:
        """Let the generation before go."""
        self.older = None
        self.loops.older = None

    def statistics(self) -> dict[str, int]:
        return {
            "index_lazy_states": self._bound - 1,
            "index_lazy_bytes": self.used_bytes(),
            "index_lazy_steps_computed": self.computed,
            "index_lazy_steps_carried": self.carried,
        }

    def _key(self, state: cython.int, edge: cython.int) -> cython.longlong:
        row: cython.longlong = self.states[16 * state]
        return (row << 32) | edge

    def _step(self, state: cython.int, edge: cython.int, before: cython.int) -> cython.int:
        """The state behind an edge, which was another one before, or 0."""
        target: cython.int = -1
        known: cython.int
        if self.older is not None and self.states[16 * state + 6] > 0:
            target = self._carried_step(state, edge)
        if target < 0 and self.states[16 * state + 11]:
            known = self._other_step(state, edge)
            if known >= 0 and not self._may_differ(state, edge):
                target = known
            elif known > 0:
                before = known
        if target < 0:
            self.computed += 1
            self._leaning_on = before
            target = self._computed_step(state, edge)
            self._leaning_on = 0
        self.states[16 * state + 2] |= asked_bit(edge)
        self.transitions.put(self._key(state, edge), target)
        return target

    def _computed_step(self, state: cython.int, edge: cython.int) -> cython.int:
        first: cython.int = self.states[16 * state + 4]
        count: cython.int = self.states[16 * state + 5]
        loops: cython.int = self.states[16 * state + 10]
        if edge & 3 == 0:
            self._steps.by_loops(self.loops, loops, edge >> 2)
            self._steps.by_name(self.members, self.member_names, first, count, edge >> 2)
            return self._intern(loops)
        self._steps.by_edge(self.members, self.member_edges, first, count, edge)
        return self._intern(0)

    def _other_step(self, state: cython.int, edge: cython.int) -> cython.int:
        """The step of the state that this one leans on, or -1."""
        target: cython.int
        other: cython.int = self.states[16 * state + 11]
        if self.states[16 * other] != self.states[16 * state + 14]:
            self.states[16 * state + 11] = 0
            return -1
        if self.states[16 * other + 3] != self.states[16 * state + 15]:
            self._lean(state, other)
            if self.states[16 * state + 11] == 0:
                return -1
        target = self.transitions.recall(self._key(other, edge))
        return -1 if target > 0 and self._outdated(target) else target

    def _may_differ(self, state: cython.int, edge: cython.int) -> cython.bint:
        """Whether the state that this one leans on may lead elsewhere by an edge."""
        if edge & 3:
            return self.states[16 * state + 13] & edge_bit(edge) != 0
        return self.states[16 * state + 12] & (self.label_bits[edge >> 2] | name_bit(0)) != 0

    def _carried_step(self, state: cython.int, edge: cython.int) -> cython.int:
        """The step as the generation before knew it, or -1."""
        older: LazyStates | None = self.older
        twin: cython.int = self.states[16 * state + 6]
        target: cython.int = -1
        if older is not None and not older._outdated(twin):
            target = older.transitions.recall(older._key(twin, edge))
            if target > 0 and older._outdated(target):
                return -1
            if target > 0:
                self.carried += 1
                return self.carry(older, target)
        return target

    def _intern(self, loops: cython.int) -> cython.int:
        """The state of the nodes in the set and their loops, and some loops more; fresh."""
        state: cython.int
        key: cython.longlong
        nodes: NodeSet = self._set
        nodes.close()
        loops = self.loops.union(loops, nodes.loops, 0, nodes.loop_count)
        if nodes.count == 0 and loops == 0:
            return 0
        key = hash_of(loops, nodes.nodes, nodes.count)
        state = self._find(loops, nodes, key)
        if state == 0:
            return self._new_state(loops, key)
        if self._outdated(state):
            self._refresh(state)
        return state

    def _find(self, loops: cython.int, nodes: NodeSet, key: cython.longlong) -> cython.int:
        i: cython.int = 0
        first: cython.int
        state: cython.int = self._sets.recall(key)
        row: cython.int = 16 * state
        if state < 0 or self.states[row + 10] != loops or self.states[row + 5] != nodes.count:
            return 0
        first = self.states[row + 4]
        while i < nodes.count and self.members[first + i] == nodes.nodes[i]:
            i += 1
        return state if i == nodes.count else 0

    def _twin(self, loops: cython.int, nodes: NodeSet) -> cython.int:
        """The state with these members, if they are the same nodes still."""
        state: cython.int = 0
        if loops >= 0:
            state = self._find(loops, nodes, hash_of(loops, nodes.nodes, nodes.count))
        return 0 if self._outdated(state) else state

    def _new_state(self, loops: cython.int, key: cython.longlong) -> cython.int:
        i: cython.int
        nodes: NodeSet = self._set
        state: cython.int = self._bound
        row: cython.int = 16 * state
        first: cython.int = self._members_used
        if row + 16 > len(self.states):
            self.states = grown(self.states, 2 * len(self.states))
        if first + nodes.count > len(self.members):
            self.members = grown(self.members, 2 * (first + nodes.count))
            self.member_names = grown(self.member_names, 2 * (first + nodes.count))
            self.member_edges = grown(self.member_edges, 2 * (first + nodes.count))
        self._bound = state + 1
        for i in range(nodes.count):
            self.members[first + i] = nodes.nodes[i]
        self._members_used = first + nodes.count
        self.states[row + 4] = first
        self.states[row + 5] = nodes.count
        self.states[row + 10] = loops
        self._sets.put(key, state)
        self._refresh(state)
        if self._leaning_on:
            self._lean(state, self._leaning_on)
        if self.older is not None:
            self.states[row + 6] = self.older._twin(self.loops.sets[8 * loops + 5], nodes)
        return state

    def _refresh(self, state: cython.int) -> cython.int:
        """The set is right; all that was computed from it is not, or not there."""
        self.states[16 * state] = self._next_row
        self._next_row += 1
        self.states[16 * state + 6] = 0
        self.states[16 * state + 7] = -1
        self.states[16 * state + 3] = self.trie.clock
        self.states[16 * state + 11] = 0
        self.states[16 * state + 12] = 0
        self.states[16 * state + 13] = 0
        return self._derive(state)

    def _lean(self, state: cython.int, other: cython.int) -> cython.int:
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

    def _outdated(self, state: cython.int) -> cython.bint:
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
            self.states[16 * state] = self._next_row
            self._next_row += 1

    def _forget(self, state: cython.int, edge: cython.int) -> None:
        # PERF: most states were never asked for most edges, and looking that up is a cache miss.
        if self.states[16 * state + 2] & asked_bit(edge):
            self.transitions.retire(self._key(state, edge))
