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
    2 something follows | has attribute edges << 1
    3 time when it was last known to be right
    4 first of its members     5 their number; without loops
    6 the same set in the generation before, or 0
    7 the state behind a name that no member has an edge for, or -1
    8, 9 a bit for each name edge, and for each other edge, of the members (see trie.name_bit)
   10   its looping nodes (see loop_sets.py)

``members`` are in order; ``member_names`` and ``member_edges`` have the edge bits of each, so that
the few that have an edge are found without a look at all their nodes.

The trie's log says what changed since a state was last used; only what that concerns is computed
anew.
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
    from cython.cimports.yfilter.index.int_cache import IntCache
    from cython.cimports.yfilter.index.loop_sets import LoopSets, hash_of
    from cython.cimports.yfilter.index.node_set import NodeSet
    from cython.cimports.yfilter.index.record_pool import RecordPool
    from cython.cimports.yfilter.index.symbols import SymbolTable
    from cython.cimports.yfilter.index.trie import Trie, edge_bit, name_bit
else:
    from yfilter.index.accept_lists import AcceptLists
    from yfilter.index.atoms import AtomTable
    from yfilter.index.int_cache import IntCache
    from yfilter.index.loop_sets import LoopSets, hash_of
    from yfilter.index.node_set import NodeSet
    from yfilter.index.record_pool import RecordPool
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
        self.begin(symbols)
        self.states = reserved_ints(max(bytes_max // 4, 1024))
        self.members = reserved_ints(max(bytes_max // 4, 64))
        self.member_names = reserved_ints(max(bytes_max // 4, 64))
        self.member_edges = reserved_ints(max(bytes_max // 4, 64))
        self.loops: LoopSets = LoopSets(trie, bytes_max, older.loops if older else None)
        self.accepts = AcceptLists(trie, atoms, records, bytes_max)
        self.transitions = IntCache(min(10, bits_max), bits_max)
        self._sets = IntCache(min(8, bits_max), bits_max)
        self._set = NodeSet(trie)
        self._bound = 1
        self._next_row = 1
        self._members_used = 0
        self.bytes_max = bytes_max
        self.computed = 0
        self.carried = 0

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
        return self._step(state, edge)

    def elsewhere(self, state: cython.int) -> cython.int:
        """The state behind a name that no member has an edge for; it may be stale."""
        target: cython.int = self.states[16 * state + 7]
        if target < 0:
            target = self._step(state, 0)
            self.states[16 * state + 7] = target
        return target

    def fresh(self, target: cython.int, state: cython.int, edge: cython.int) -> cython.int:
        """The state behind an edge, given what it was some time ago."""
        if self._outdated(target):
            target = self._step(state, edge)
            if edge == 0:
                self.states[16 * state + 7] = target
        return target

    def carry(self, older: LazyStates, state: cython.int) -> cython.int:
        """The state with the same members as one of the generation before."""
        i: cython.int
        first: cython.int = older.states[16 * state + 4]
        row: cython.int = 8 * older.states[16 * state + 10]
        self._set.clear()
        for i in range(first, first + older.states[16 * state + 5]):
            self._set.push(older.members[i])
        self._set.loop_count = 0
        return self._intern(
            self.loops.union(
                0, older.loops.members, older.loops.sets[row], older.loops.sets[row + 1]
            )
        )

    def accepted(self, state: cython.int, ranged: cython.bint) -> cython.int:
        """The place of a state's list, made if it is NOT_YET there; 0 for nothing."""
        older: LazyStates | None = self.older
        twin: cython.int = self.states[16 * state + 6]
        first: cython.int = self.states[16 * state + 4]
        count: cython.int = self.states[16 * state + 5]
        place: cython.int = 0
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
        self.exact = symbols.exact
        self.in_namespace = symbols.in_namespace
        self.any_namespace = symbols.any_namespace
        self.only_label = symbols.only_label
        self.label_bits = symbols.label_bits

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

    def _step(self, state: cython.int, edge: cython.int) -> cython.int:
        target: cython.int = -1
        if self.older is not None and self.states[16 * state + 6] > 0:
            target = self._carried_step(state, edge)
        if target < 0:
            self.computed += 1
            if edge & 3 == 0:
                target = self._name_step(state, edge >> 2)
            elif edge & 3 == 2:
                target = self._edge_step(state, edge)
            else:
                target = self._atom_step(state, edge)
        self.transitions.put(self._key(state, edge), target)
        return target

    def _carried_step(self, state: cython.int, edge: cython.int) -> cython.int:
        """The step as the generation before knew it, or -1."""
        older: LazyStates | None = self.older
        twin: cython.int = self.states[16 * state + 6]
        target: cython.int
        if older is None or older._outdated(twin):
            return -1
        target = older.transitions.recall(older._key(twin, edge))
        if target <= 0:
            return target
        if older._outdated(target):
            return -1
        self.carried += 1
        return self.carry(older, target)

    def _name_step(self, state: cython.int, label: cython.int) -> cython.int:
        found: cython.int
        nodes: NodeSet = self._set
        loops: cython.int = self.states[16 * state + 10]
        nodes.clear()
        nodes.cover(self.states[16 * state + 5] + self.loops.sets[8 * loops + 1])
        nodes.push_children(self._take_parents(state, name_bit(0)), 0)
        if label:
            found = self._take_parents(state, self.label_bits[label])
            if self.exact[label]:
                nodes.push_children(found, self.exact[label] << 2)
            if self.in_namespace[label]:
                nodes.push_children(found, self.in_namespace[label] << 2)
            if self.any_namespace[label]:
                nodes.push_children(found, self.any_namespace[label] << 2)
        return self._intern(loops)

    def _take_parents(self, state: cython.int, bits: cython.int) -> cython.int:
        """How many members and loops, now the set's parents, may have such a name edge."""
        i: cython.int
        found: cython.int = 0
        parents: cython.int[::1] = self._set.parents
        loops: LoopSets = self.loops
        row: cython.int = 8 * self.states[16 * state + 10]
        first: cython.int = self.states[16 * state + 4]
        for i in range(loops.sets[row], loops.sets[row] + loops.sets[row + 1]):
            parents[found] = loops.members[i]
            found += (loops.names[i] & bits) != 0
        for i in range(first, first + self.states[16 * state + 5]):
            parents[found] = self.members[i]
            found += (self.member_names[i] & bits) != 0
        return found

    def _edge_step(self, state: cython.int, edge: cython.int) -> cython.int:
        i: cython.int
        found: cython.int = 0
        bit: cython.int = edge_bit(edge)
        nodes: NodeSet = self._set
        first: cython.int = self.states[16 * state + 4]
        count: cython.int = self.states[16 * state + 5]
        nodes.clear()
        nodes.cover(count)
        for i in range(first, first + count):
            nodes.parents[found] = self.members[i]
            found += (self.member_edges[i] & bit) != 0
        nodes.push_children(found, edge)
        return self._intern(0)

    def _atom_step(self, state: cython.int, edge: cython.int) -> cython.int:
        node: cython.int
        row: cython.int = 8 * (edge >> 2)
        # The shorter way: from the atom's edges up, or from the members down.
        if self.atoms.atoms[row + 6] > self.states[16 * state + 5] // 16:
            return self._edge_step(state, edge)
        self._set.clear()
        node = self.atoms.atoms[row + 5]
        while node:
            if self._has_member(state, self.trie.nodes[10 * node]):
                self._set.push(node)
            node = self.trie.nodes[10 * node + 6]
        return self._intern(0)

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
        if state < 0 or self.states[16 * state + 10] != loops:
            return 0
        if self.states[16 * state + 5] != nodes.count:
            return 0
        first = self.states[16 * state + 4]
        while i < nodes.count and self.members[first + i] == nodes.nodes[i]:
            i += 1
        return state if i == nodes.count else 0

    def _twin(self, loops: cython.int, nodes: NodeSet) -> cython.int:
        """The state with these members, if they are the same nodes still."""
        state: cython.int
        if loops < 0:
            return 0
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
        return self._derive(state)

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
        i: cython.int
        end: cython.int
        trie: Trie = self.trie
        loops: LoopSets = self.loops
        row: cython.int = 16 * state
        time: cython.int = self.states[row + 3]
        if time == trie.clock:
            return False
        end = self.states[row + 4] + self.states[row + 5]
        i = trie.next_changed(self.members, self.states[row + 4], end, time)
        while i < end:
            self.member_names[i] = trie.nodes[10 * self.members[i] + 8]
            self.member_edges[i] = trie.nodes[10 * self.members[i] + 9]
            if self._put_right(state, self.members[i]):
                return True
            i = trie.next_changed(self.members, i + 1, end, time)
        if loops.last_change(self.states[row + 10]) > time:
            row = 8 * self.states[row + 10]
            end = loops.sets[row] + loops.sets[row + 1]
            i = trie.next_changed(loops.members, loops.sets[row], end, time)
            while i < end:
                if self._put_right(state, loops.members[i]):
                    return True
                i = trie.next_changed(loops.members, i + 1, end, time)
        self.states[16 * state + 3] = trie.clock
        return False

    def _put_right(self, state: cython.int, node: cython.int) -> cython.bint:
        """Forget what a node's changes concern; whether the set itself may be wrong."""
        trie: Trie = self.trie
        row: cython.int = 16 * state
        change: cython.int = trie.nodes[10 * node + 5]
        edge: cython.int
        while change > self.states[row + 3]:
            edge = trie.log_edge[change & 4095]
            # Too long ago, or made anew, or with another loop.
            if trie.clock - change >= 4096 or trie.log_node[change & 4095] != node or edge == 1:
                return True
            if edge == -1:
                self.states[row + 1] = -1
            elif edge & 3:
                self.states[row + 2] |= 2
                self.states[row + 9] |= edge_bit(edge)
                self.transitions.put(self._key(state, edge), -1)
            else:
                self.states[row + 2] |= 1
                self.states[row + 8] |= name_bit(edge)
                self._forget_name(state, edge >> 2)
            change = trie.log_before[change & 4095]
        return False

    def _forget_name(self, state: cython.int, symbol: cython.int) -> None:
        """The transitions on labels that have a symbol, 0 for ``*``."""
        label: cython.int = self.only_label[symbol] if symbol else -1
        if symbol == 0:
            self.states[16 * state + 7] = -1
        if label > 0:
            self.transitions.put(self._key(state, label << 2), -1)
        elif label < 0:
            self.states[16 * state] = self._next_row
            self._next_row += 1

    def _has_member(self, state: cython.int, node: cython.int) -> cython.bint:
        low: cython.int = self.states[16 * state + 4]
        end: cython.int = low + self.states[16 * state + 5]
        high: cython.int = end
        middle: cython.int
        while low < high:
            middle = (low + high) >> 1
            if self.members[middle] < node:
                low = middle + 1
            else:
                high = middle
        return low < end and self.members[low] == node
