# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""LazyStates: one generation of the automaton's deterministic states, made as messages need them.

A state is a set of trie nodes, closed under ε.  Its transitions, on labels, attributes and atoms,
and the lists of what it accepts are computed at the first use and kept.  States, transitions and
lists are a cache with a bound: when a generation is full, a new one begins, and what messages
still use is carried over, so that no message pays for all.  With the one before, which is then
dropped, there are two generations at most.

A change makes another set of few states only (see state_table.py): what it does not concern is
kept, and a new set leans on the one whose place it takes.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from yfilter.index.columns import touch

if cython.compiled:
    from cython.cimports.yfilter.index.accept_lists import AcceptLists
    from cython.cimports.yfilter.index.atoms import AtomTable
    from cython.cimports.yfilter.index.int_cache import IntCache, former
    from cython.cimports.yfilter.index.loop_sets import LoopSets, hash_of
    from cython.cimports.yfilter.index.node_set import NodeSet
    from cython.cimports.yfilter.index.record_pool import RecordPool
    from cython.cimports.yfilter.index.state_table import StateTable, asked_bit
    from cython.cimports.yfilter.index.steps import Steps
    from cython.cimports.yfilter.index.symbols import SymbolTable
    from cython.cimports.yfilter.index.trie import Trie
else:
    from yfilter.index.accept_lists import AcceptLists
    from yfilter.index.atoms import AtomTable
    from yfilter.index.int_cache import IntCache, former
    from yfilter.index.loop_sets import (
        LOOPS_COUNT,
        LOOPS_FIRST,
        LOOPS_TWIN,
        LOOPS_WIDTH,
        LoopSets,
        hash_of,
    )
    from yfilter.index.node_set import NodeSet
    from yfilter.index.record_pool import RecordPool
    from yfilter.index.state_table import (
        STATE_ACCEPTS,
        STATE_COUNT,
        STATE_ELSEWHERE,
        STATE_FIRST,
        STATE_FLAGS,
        STATE_LEANS_ON,
        STATE_LOOPS,
        STATE_ROW_THEN,
        STATE_TIME,
        STATE_TIME_THEN,
        STATE_TWIN,
        STATE_WIDTH,
        StateTable,
        asked_bit,
    )
    from yfilter.index.steps import Steps
    from yfilter.index.symbols import SymbolTable
    from yfilter.index.trie import EDGE_KIND, EDGE_NAME, EDGE_SHIFT, Trie


class LazyStates(StateTable):
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
        loops = LoopSets(trie, bytes_max, older.loops if older else None)
        super().__init__(trie, loops, bytes_max)
        bits_max = max(6, (bytes_max // 64).bit_length() - 1)
        self.older = older
        self.accepts = AcceptLists(trie, atoms, records, bytes_max)
        self._sets = IntCache(min(8, bits_max), bits_max)
        self._steps = Steps(trie, atoms)
        self._set = self._steps.found
        self._leaning_on = 0
        self.bytes_max = bytes_max
        self.computed = 0
        self.gone_through = 0  # nodes, while steps were computed
        self.carried = 0
        self.begin(symbols)

    def start(self, root: cython.int) -> cython.int:
        """The state of the document node, for the queries behind a root of the trie."""
        self._set.clear()
        self._set.push(root)
        return self._intern(0)

    def follow(self, state: cython.int, edge: cython.int) -> cython.int:
        """The state behind an edge, for when ``transitions`` does not have it: it may be stale."""
        target: cython.int = -1
        # PERF: most states were never asked for most edges, and looking that up is a cache miss.
        if self.states[STATE_WIDTH * state + STATE_FLAGS] & asked_bit(edge):
            target = self.transitions.recall(self.key(state, edge))
        if target >= 0:
            return target
        return self._step(state, edge, former(target))

    def elsewhere(self, state: cython.int) -> cython.int:
        """The state behind a name that no member has an edge for; it may be stale."""
        target: cython.int = self.states[STATE_WIDTH * state + STATE_ELSEWHERE]
        if target < 0:
            target = self._step(state, 0, 0)
            self.states[STATE_WIDTH * state + STATE_ELSEWHERE] = target
        return target

    def fresh(self, target: cython.int, state: cython.int, edge: cython.int) -> cython.int:
        """The state behind an edge, given what it was some time ago."""
        if self.outdated(target):
            target = self._step(state, edge, target)
            if edge == 0:
                self.states[STATE_WIDTH * state + STATE_ELSEWHERE] = target
        return target

    def carry(self, older: LazyStates, state: cython.int) -> cython.int:
        """The state with the same members as one of the generation before."""
        i: cython.int
        first: cython.int = older.states[STATE_WIDTH * state + STATE_FIRST]
        self._set.clear()
        for i in range(first, first + older.states[STATE_WIDTH * state + STATE_COUNT]):
            self._set.push(older.members[i])
        self._set.loop_count = 0
        return self._intern(
            self.loops.carry(older.loops, older.states[STATE_WIDTH * state + STATE_LOOPS])
        )

    def accepted(self, state: cython.int, ranged: cython.bint) -> cython.int:
        """The place of a state's list, made if it is NOT_YET there; 0 for nothing."""
        place: cython.int = 0
        older: LazyStates | None = self.older
        twin: cython.int = self.states[STATE_WIDTH * state + STATE_TWIN]
        first: cython.int = self.states[STATE_WIDTH * state + STATE_FIRST]
        count: cython.int = self.states[STATE_WIDTH * state + STATE_COUNT]
        self.gone_through += count
        if older is not None and twin and not older.outdated(twin):
            place = older.states[STATE_WIDTH * twin + STATE_ACCEPTS]
        if older is not None and place > 0:
            place = self.accepts.copy(older.accepts, place)
        elif ranged:
            place = self.accepts.make_range(self.members, first, count)
        else:
            place = self.accepts.make(self.members, first, count)
        self.states[STATE_WIDTH * state + STATE_ACCEPTS] = place
        return place

    def is_full(self) -> cython.bint:
        return self.used_bytes() > self.bytes_max or self.next_row > 2_000_000_000

    def used_bytes(self) -> cython.longlong:
        total: cython.longlong = self.table_bytes()
        return total + self.accepts.used_bytes() + self._sets.size_bytes()

    def get_ready(self, size: cython.longlong) -> None:
        """Ask the system for about so many bytes of memory that new states will take."""
        touch(self.states, size // 10)
        touch(self.members, size // 5)
        touch(self.member_names, size // 5)
        touch(self.member_edges, size // 5)
        touch(self.loops.members, size // 20)
        touch(self.loops.names, size // 20)
        touch(self.accepts.lists, size // 5)
        self.transitions.cover(size // 64)
        self._sets.cover(size // 160)

    def begin(self, symbols: SymbolTable) -> None:
        """For a new message, whose names were translated."""
        self.look_at(symbols)
        self._steps.begin(symbols)

    def forget_older(self) -> None:
        """Let the generation before go."""
        self.older = None
        self.loops.older = None

    def statistics(self) -> dict[str, int]:
        return {
            "index_lazy_states": self.bound - 1,
            "index_lazy_bytes": self.used_bytes(),
            "index_lazy_steps_computed": self.computed,
            "index_lazy_steps_carried": self.carried,
        }

    def _step(self, state: cython.int, edge: cython.int, before: cython.int) -> cython.int:
        """The state behind an edge, which was another one before, or 0."""
        target: cython.int = -1
        known: cython.int
        if self.older is not None and self.states[STATE_WIDTH * state + STATE_TWIN] > 0:
            target = self._carried_step(state, edge)
        if target < 0 and self.states[STATE_WIDTH * state + STATE_LEANS_ON]:
            known = self._other_step(state, edge)
            if known >= 0 and not self._differs:
                target = self._with_loops(known, state) if edge & EDGE_KIND == EDGE_NAME else known
            elif known > 0:
                before = known
        if before == 0 and edge & EDGE_KIND == EDGE_NAME:
            before = max(
                0, self.states[STATE_WIDTH * state + STATE_ELSEWHERE]
            )  # it may have been as elsewhere
        if target < 0:
            self.computed += 1
            self._leaning_on = before
            target = self._computed_step(state, edge)
            self._leaning_on = 0
        self.states[STATE_WIDTH * state + STATE_FLAGS] |= asked_bit(edge)
        self.transitions.put(self.key(state, edge), target)
        return target

    def _with_loops(self, target: cython.int, state: cython.int) -> cython.int:
        """The state with the members of one, and the loops of another besides its own."""
        i: cython.int
        row: cython.int = STATE_WIDTH * target
        loops: cython.int = self.states[row + STATE_LOOPS] if target else 0
        more: cython.int = LOOPS_WIDTH * self.states[STATE_WIDTH * state + STATE_LOOPS]
        first: cython.int = self.loops.sets[more + LOOPS_FIRST]
        if LOOPS_WIDTH * loops == more:
            return target
        more = self.loops.union(
            loops, self.loops.members, first, self.loops.sets[more + LOOPS_COUNT]
        )
        if more == loops:
            return target
        self._set.clear()
        for i in range(
            self.states[row + STATE_FIRST],
            self.states[row + STATE_FIRST] + self.states[row + STATE_COUNT],
        ):
            self._set.push(self.members[i])
        self._set.loop_count = 0
        self._leaning_on = target
        state = self._intern(more)
        self._leaning_on = 0
        if self.states[STATE_WIDTH * state + STATE_ACCEPTS] < 0:
            # They accept the same.
            self.states[STATE_WIDTH * state + STATE_ACCEPTS] = self.states[row + STATE_ACCEPTS]
        return state

    def _computed_step(self, state: cython.int, edge: cython.int) -> cython.int:
        first: cython.int = self.states[STATE_WIDTH * state + STATE_FIRST]
        count: cython.int = self.states[STATE_WIDTH * state + STATE_COUNT]
        loops: cython.int = self.states[STATE_WIDTH * state + STATE_LOOPS]
        self.gone_through += count
        if edge & EDGE_KIND == EDGE_NAME:
            self._steps.by_loops(self.loops, loops, edge >> EDGE_SHIFT)
            self._steps.by_name(self.members, self.member_names, first, count, edge >> EDGE_SHIFT)
            return self._intern(loops)
        self._steps.by_edge(self.members, self.member_edges, first, count, edge)
        return self._intern(0)

    def _other_step(self, state: cython.int, edge: cython.int) -> cython.int:
        """The step of a state that this one leans on, or that one leans on, and so on; or -1.

        ``_differs``: whether this one's may be another.
        """
        target: cython.int = -1
        left: cython.int = 8
        other: cython.int = self.states[STATE_WIDTH * state + STATE_LEANS_ON]
        row: cython.longlong
        self._differs = False
        if (
            other != state
            and self.leans(state)
            and self.states[STATE_WIDTH * other + STATE_TIME]
            != self.states[STATE_WIDTH * state + STATE_TIME_THEN]
        ):
            self.lean(state, other)
        while target < 0 and left > 0 and self.leans(state):
            left -= 1
            other = self.states[STATE_WIDTH * state + STATE_LEANS_ON]
            if (
                other != state
                and self.states[STATE_WIDTH * other + STATE_TIME]
                != self.states[STATE_WIDTH * state + STATE_TIME_THEN]
            ):
                break  # it was put right since then
            self._differs |= self.may_differ(state, edge)
            if self.states[STATE_WIDTH * other + STATE_FLAGS] & asked_bit(edge):
                row = self.states[STATE_WIDTH * state + STATE_ROW_THEN]
                target = self.transitions.recall((row << 32) | edge)
            if other == state:
                break
            state = other
        return -1 if target > 0 and self.outdated(target) else target

    def _carried_step(self, state: cython.int, edge: cython.int) -> cython.int:
        """The step as the generation before knew it, or -1."""
        older: LazyStates | None = self.older
        twin: cython.int = self.states[STATE_WIDTH * state + STATE_TWIN]
        target: cython.int = -1
        if older is not None and not older.outdated(twin):
            target = older.transitions.recall(older.key(twin, edge))
            if target > 0 and older.outdated(target):
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
        self.gone_through += nodes.count + nodes.loop_count
        loops = self.loops.union(loops, nodes.loops, 0, nodes.loop_count)
        if nodes.count == 0 and loops == 0:
            return 0
        key = hash_of(loops, nodes.nodes, nodes.count)
        state = self._find(loops, nodes, key)
        # One of nodes that have been used again stays as it is: what led to it may do so still.
        return self._new_state(loops, key) if state == 0 or self.outdated(state) else state

    def _find(self, loops: cython.int, nodes: NodeSet, key: cython.longlong) -> cython.int:
        i: cython.int = 0
        first: cython.int
        state: cython.int = self._sets.recall(key)
        row: cython.int = STATE_WIDTH * state
        if (
            state < 0
            or self.states[row + STATE_LOOPS] != loops
            or self.states[row + STATE_COUNT] != nodes.count
        ):
            return 0
        first = self.states[row + STATE_FIRST]
        while i < nodes.count and self.members[first + i] == nodes.nodes[i]:
            i += 1
        return state if i == nodes.count else 0

    def _twin(self, loops: cython.int, nodes: NodeSet) -> cython.int:
        """The state with these members, if they are the same nodes still."""
        state: cython.int = 0
        if loops >= 0:
            state = self._find(loops, nodes, hash_of(loops, nodes.nodes, nodes.count))
        return 0 if self.outdated(state) else state

    def _new_state(self, loops: cython.int, key: cython.longlong) -> cython.int:
        nodes: NodeSet = self._set
        state: cython.int = self.append(loops, nodes.nodes, nodes.count)
        self._sets.put(key, state)
        if self._leaning_on:
            self.lean(state, self._leaning_on)
        if self.older is not None:
            self.states[STATE_WIDTH * state + STATE_TWIN] = self.older._twin(
                self.loops.sets[LOOPS_WIDTH * loops + LOOPS_TWIN], nodes
            )
        return state
