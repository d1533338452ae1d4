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
    4 first of its members     5 their number
    6 the same set in the generation before, or 0
    7 the state behind a name that no member has an edge for, or -1
    8, 9 a bit for each name edge, and for each other edge, of the members (see trie.edge_bit)
    10   a bit for each member

``members`` are in order; ``member_edges`` has the edge bits of each, other than of names, so that
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
    from cython.cimports.yfilter.index.node_set import NodeSet
    from cython.cimports.yfilter.index.record_pool import RecordPool
    from cython.cimports.yfilter.index.symbols import SymbolTable
    from cython.cimports.yfilter.index.trie import Trie, edge_bit
else:
    from yfilter.index.accept_lists import AcceptLists
    from yfilter.index.atoms import AtomTable
    from yfilter.index.int_cache import IntCache
    from yfilter.index.node_set import NodeSet
    from yfilter.index.record_pool import RecordPool
    from yfilter.index.symbols import SymbolTable
    from yfilter.index.trie import Trie, edge_bit

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
        self.member_edges = reserved_ints(max(bytes_max // 4, 64))
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
        return self._intern(self._set.close())

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
        count: cython.int = older.states[16 * state + 5]
        self._set.cover(count)
        for i in range(count):
            self._set.nodes[i] = older.members[first + i]
        return self._intern(count)

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
        total = 8 * total + 64 * self._bound + self.accepts.used_bytes()
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
        i: cython.int
        node: cython.int
        found: cython.int = 0
        trie: Trie = self.trie
        nodes: NodeSet = self._set
        first: cython.int = self.states[16 * state + 4]
        end: cython.int = first + self.states[16 * state + 5]
        nodes.clear()
        nodes.cover(end - first)
        for i in range(first, end):
            node = self.members[i]
            if trie.nodes[10 * node + 1] == 1:
                nodes.push(node)
            nodes.parents[found] = node
            found += trie.nodes[10 * node + 4] & 1
        nodes.push_children(found, 0)
        if label:
            found = 0
            for i in range(first, end):
                nodes.parents[found] = self.members[i]
                found += (trie.nodes[10 * self.members[i] + 8] & self.label_bits[label]) != 0
            if self.exact[label]:
                nodes.push_children(found, self.exact[label] << 2)
            if self.in_namespace[label]:
                nodes.push_children(found, self.in_namespace[label] << 2)
            if self.any_namespace[label]:
                nodes.push_children(found, self.any_namespace[label] << 2)
        return self._intern(nodes.close())

    def _edge_step(self, state: cython.int, edge: cython.int) -> cython.int:
        i: cython.int
        found: cython.int = 0
        bit: cython.int = edge_bit(edge)
        nodes: NodeSet = self._set
        first: cython.int = self.states[16 * state + 4]
        end: cython.int = first + self.states[16 * state + 5]
        nodes.clear()
        nodes.cover(end - first)
        for i in range(first, end):
            nodes.parents[found] = self.members[i]
            found += (self.member_edges[i] & bit) != 0
        nodes.push_children(found, edge)
        return self._intern(nodes.close())

    def _atom_step(self, state: cython.int, edge: cython.int) -> cython.int:
        node: cython.int
        row: cython.int = 8 * (edge >> 2)
        # The shorter way: from the atom's edges up, or from the members down.
        if self.atoms.atoms[row + 6] > self.states[16 * state + 5] // 16:
            return self._edge_step(state, edge)
        self._set.clear()
        node = self.atoms.atoms[row + 5]
        while node:
            if self._member(state, self.trie.nodes[10 * node]) >= 0:
                self._set.push(node)
            node = self.trie.nodes[10 * node + 6]
        return self._intern(self._set.close())

    def _intern(self, count: cython.int) -> cython.int:
        """The state whose members stand in the set, in order; fresh."""
        i: cython.int
        state: cython.int
        key: cython.longlong
        mask: cython.ulonglong = 0x7FFFFFFFFFFFFFFF
        prime: cython.ulonglong = 0xFF51AFD7ED558CCD
        mixed: cython.ulonglong = count
        if count == 0:
            return 0
        for i in range(count):
            mixed = ((mixed ^ self._set.nodes[i]) * prime) & mask
            mixed ^= mixed >> 31
        key = mixed | 1
        state = self._find(self._set.nodes, count, key)
        if state == 0:
            return self._new_state(count, key)
        if self.states[16 * state + 3] != self.trie.clock and self._is_changed(state):
            self._refresh(state)
        return state

    def _is_changed(self, state: cython.int) -> cython.bint:
        """Whether any member changed, or is another node by now, since the state was right."""
        i: cython.int
        time: cython.int = self.states[16 * state + 3]
        first: cython.int = self.states[16 * state + 4]
        for i in range(first, first + self.states[16 * state + 5]):
            if self.trie.nodes[10 * self.members[i] + 5] >= time:
                return True
        self.states[16 * state + 3] = self.trie.clock
        return False

    def _find(self, buffer: cython.int[::1], count: cython.int, key: cython.longlong) -> cython.int:
        i: cython.int = 0
        first: cython.int
        state: cython.int = self._sets.recall(key)
        if state < 0 or self.states[16 * state + 5] != count:
            return 0
        first = self.states[16 * state + 4]
        while i < count and self.members[first + i] == buffer[i]:
            i += 1
        return state if i == count else 0

    def _twin(self, buffer: cython.int[::1], count: cython.int, key: cython.longlong) -> cython.int:
        """The state with these members, if they are the same nodes still."""
        state: cython.int = self._find(buffer, count, key)
        if state and self.states[16 * state + 3] != self.trie.clock and self._is_changed(state):
            return 0
        return state

    def _new_state(self, count: cython.int, key: cython.longlong) -> cython.int:
        i: cython.int
        state: cython.int = self._bound
        row: cython.int = 16 * state
        first: cython.int = self._members_used
        if row + 16 > len(self.states):
            self.states = grown(self.states, 2 * len(self.states))
        if first + count > len(self.members):
            self.members = grown(self.members, 2 * (first + count))
            self.member_edges = grown(self.member_edges, 2 * (first + count))
        self._bound = state + 1
        for i in range(count):
            self.members[first + i] = self._set.nodes[i]
        self._members_used = first + count
        self.states[row + 4] = first
        self.states[row + 5] = count
        self._sets.put(key, state)
        self._refresh(state)
        if self.older is not None:
            self.states[row + 6] = self.older._twin(self._set.nodes, count, key)
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
        accepting: cython.int = 0
        follows: cython.int = 0
        names: cython.int = 0
        edges: cython.int = 0
        members: cython.int = 0
        one: cython.int = 1
        for i in range(first, first + self.states[16 * state + 5]):
            row = 10 * self.members[i]
            follows |= self.trie.nodes[row + 4]
            members |= one << (self.members[i] % 31)
            names |= self.trie.nodes[row + 8]
            edges |= self.trie.nodes[row + 9]
            self.member_edges[i] = self.trie.nodes[row + 9]
            if self.trie.nodes[row + 1] == 1:
                follows |= 1
            if self.trie.nodes[row + 3]:
                accepting = -1
        self.states[16 * state + 1] = accepting
        self.states[16 * state + 8] = names
        self.states[16 * state + 10] = members
        self.states[16 * state + 9] = edges
        self.states[16 * state + 2] = (follows & 5 != 0) | (follows & 2)
        return 0

    def _outdated(self, state: cython.int) -> cython.bint:
        """Whether the set itself may be wrong by now; what else changed is put right."""
        trie: Trie = self.trie
        row: cython.int = 16 * state
        time: cython.int = self.states[row + 3]
        i: cython.int
        node: cython.int
        edge: cython.int
        label: cython.int
        member: cython.int
        if time == trie.clock:
            return False
        # The shorter way: through the members, or through the log.
        if trie.clock - time > self.states[row + 5] // 4 and not self._is_changed(state):
            return False
        if trie.clock - time >= 4096:
            return True
        for i in range(time + 1, trie.clock + 1):
            node = trie.log_node[i & 4095]
            member = -1
            if (self.states[row + 10] >> (node % 31)) & 1:
                member = self._member(state, node)
            if member < 0:
                continue
            edge = trie.log_edge[i & 4095]
            if edge == 1:
                return True
            if edge == -1:
                self.states[row + 1] = -1
            elif edge & 3:
                self.transitions.put(self._key(state, edge), -1)
                self.states[row + 2] |= 2
                self.states[row + 9] |= edge_bit(edge)
                self.member_edges[member] |= edge_bit(edge)
            else:
                self.states[row + 2] |= 1
                if edge:
                    self.states[row + 8] |= edge_bit(edge)
                else:
                    self.states[row + 7] = -1
                label = self.only_label[edge >> 2] if edge else -1
                if label > 0:
                    self.transitions.put(self._key(state, label << 2), -1)
                elif label < 0:
                    self.states[row] = self._next_row
                    self._next_row += 1
        self.states[row + 3] = trie.clock
        return False

    def _member(self, state: cython.int, node: cython.int) -> cython.int:
        """The place of a member, or -1."""
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
        return low if low < end and self.members[low] == node else -1
