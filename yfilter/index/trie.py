# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Trie: the paths of all indexed queries at once, with shared prefixes (section 4.1).

The NFA of the paper, where one predicate of each query, its access predicate, is an edge in two
levels, so that a query is touched only where its predicate holds::

    /nitf/head[@id = "x"]//series       1 ─nitf─▶ 2 ─head─▶ 3 ─@id─▶ 4 ─"x"─▶ 5 ─ε─▶ 6⟲ ─series─▶ 7

An edge is a number: ``symbol << EDGE_SHIFT | EDGE_NAME`` a name test, EDGE_LOOP the ε-move to a
state that stays; EDGE_ATTRIBUTE is made so of an attribute, EDGE_ATOM of an atom of that attribute.

Each priority class of queries of each reading has a root of its own, nodes 1 to ROOTS, so that a
run of one meets nothing of the others.

A node is a row of NODE_WIDTH numbers in ``nodes``, 40 bytes::

    PARENT, EDGE       the node above and the edge from it
    LOOP, FIRST_QUERY  the node behind the ε-move, the first query accepted; or 0
    USES               how many children, loops and queries it has
    CHANGED            time of the last change
    NEXT, PREVIOUS     node on an edge of the same atom
    NAMES, EDGES       a bit for each name edge, for each other edge, that it had (edge_bits.py)

A query is a row of QUERY_WIDTH in ``queries``, 20 bytes::

    NODE               where it is accepted
    NEXT, PREVIOUS     query of the node
    RESIDUAL, NUMBER   what is left to verify (residual_rows.py); of its range

A query that stands for another one, a second way in which that is found, has it in ``alias``.

Children are found by an open-addressing table of node numbers, 6 to 12 bytes a node, whose keys
are parent and edge of the node itself.  A node lives as long as something uses it; free rows are
linked by PARENT, or NODE, and used again.

Every change is noted under a time: which node, which edge it has now, or LOG_QUERIES for the
queries accepted, or LOG_REUSED, and when the node changed before.  The last LOG_SIZE changes can be
looked up.  An added query is one change, of the node where its own part of the trie begins; a
removed one is one of its node.  That nodes are gone is not noted: who still knows them finds
nothing behind them, and is told when their numbers are used again, LOG_REUSED.  To make that rare,
an eighth of the rows stays free.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

from array import array

from yfilter.index.columns import grown, ints

if cython.compiled:
    from cython.cimports.yfilter.index.atoms import AtomTable
    from cython.cimports.yfilter.index.edge_bits import edge_bit, name_bit
else:
    from yfilter.index.atoms import ATOM_EDGES, ATOM_FIRST_EDGE, ATOM_WIDTH, AtomTable
    from yfilter.index.edge_bits import edge_bit, name_bit

if not cython.compiled:
    NODE_PARENT, NODE_EDGE, NODE_LOOP, NODE_FIRST_QUERY, NODE_USES, NODE_CHANGED = range(6)
    NODE_NEXT, NODE_PREVIOUS, NODE_NAMES, NODE_EDGES, NODE_WIDTH = range(6, 11)

    QUERY_NODE, QUERY_NEXT, QUERY_PREVIOUS, QUERY_RESIDUAL, QUERY_NUMBER, QUERY_WIDTH = range(6)

    ROOTS = 6

    EDGE_NAME, EDGE_LOOP, EDGE_ATTRIBUTE, EDGE_ATOM = range(4)
    EDGE_KIND, EDGE_SHIFT = 3, 2

    LOG_QUERIES, LOG_REUSED = -1, -2
    LOG_SIZE, LOG_MASK = 4096, 4095


def root_of(priority: int, reading: int) -> int:
    """The root of a class of queries of a reading."""
    return 1 + priority + ROOTS // 2 * reading


class Trie:
    """Nodes, queries and the log of changes; ``clock`` is the time of the last one."""

    def __init__(self, atoms: AtomTable) -> None:
        self.nodes = ints(NODE_WIDTH * 64)
        self.queries = ints(QUERY_WIDTH * 64)
        self.alias = ints(1)
        self.log_node = ints(LOG_SIZE)
        self.log_edge = ints(LOG_SIZE)
        self.log_before = ints(LOG_SIZE)
        self.clock = 1
        self._recent = array("Q", bytes(8 * 512))  # a bit for nodes changed since a time
        self._recent_since = 0
        self._slots = ints(64)
        self._node_bound = ROOTS + 1
        self._node_count = ROOTS
        self._first_free = 0
        self._last_free = 0
        self._query_bound = 1
        self._query_count = 0
        self._free_query = 0
        self._atoms = atoms
        for root in range(1, ROOTS + 1):
            self.nodes[NODE_WIDTH * root + NODE_USES] = 1  # a root is never pruned

    def child(self, node: cython.int, edge: cython.int) -> cython.int:
        """The node behind an edge, or 0; not for EDGE_LOOP."""
        mask: cython.uint = len(self._slots) - 1
        slot: cython.uint = _hash(node, edge) & mask
        found: cython.int = self._slots[slot]
        while found != 0:
            if (
                self.nodes[NODE_WIDTH * found + NODE_PARENT] == node
                and self.nodes[NODE_WIDTH * found + NODE_EDGE] == edge
            ):
                return found
            slot = (slot + 1) & mask
            found = self._slots[slot]
        return 0

    def child_of_all(
        self,
        parents: cython.int[::1],
        count: cython.int,
        edge: cython.int,
        found: cython.int[::1],
    ) -> cython.int:
        """``child`` of many nodes at once, by the same edge."""
        # PERF: each loop is of cache misses that do not wait for each other.
        nodes: cython.int[::1] = self.nodes
        slots: cython.int[::1] = self._slots
        mask: cython.uint = len(self._slots) - 1
        other: cython.int = 0
        i: cython.int
        for i in range(count):
            found[i] = slots[_hash(parents[i], edge) & mask]
        for i in range(count):
            other |= nodes[NODE_WIDTH * found[i] + NODE_PARENT] ^ parents[i]
            other |= nodes[NODE_WIDTH * found[i] + NODE_EDGE] ^ edge
        if other:
            for i in range(count):
                if (
                    nodes[NODE_WIDTH * found[i] + NODE_PARENT] != parents[i]
                    or nodes[NODE_WIDTH * found[i] + NODE_EDGE] != edge
                ):
                    found[i] = self.child(parents[i], edge)
        return 0

    def next_changed(
        self, column: cython.int[::1], first: cython.int, end: cython.int, time: cython.int
    ) -> cython.int:
        """The first place, from ``first`` on, of a node that changed after a time; or ``end``."""
        # PERF: the filter spares the look at nearly all nodes, each a cache miss.
        i: cython.int
        node: cython.int
        filtered: cython.bint = time >= self._recent_since
        for i in range(first, end):
            node = column[i]
            if filtered and not (self._recent[(node >> 6) & 511] >> (node & 63)) & 1:
                continue
            if self.nodes[NODE_WIDTH * node + NODE_CHANGED] > time:
                return i
        return end

    def extend(self, node: cython.int, edge: cython.int) -> cython.int:
        """The node behind an edge, made if there is none."""
        made: cython.int = self.child(node, edge)
        if made:
            return made
        if 3 * (self._node_count + 1) > 2 * len(self._slots):
            self._rehash(2 * len(self._slots))
        if self._is_known(node):
            self._note(node, edge)
        made = self._new_node(node, edge)
        self._insert(made)
        if edge & EDGE_ATTRIBUTE:  # or an atom, which has that bit, too
            self.nodes[NODE_WIDTH * node + NODE_EDGES] |= edge_bit(edge)
        else:
            self.nodes[NODE_WIDTH * node + NODE_NAMES] |= name_bit(edge)
        if edge & EDGE_KIND == EDGE_ATOM:
            self._link_edge(made, edge >> EDGE_SHIFT)
        return made

    def loop_of(self, node: cython.int) -> cython.int:
        """The looping node behind the ε-move, made if there is none."""
        made: cython.int = self.nodes[NODE_WIDTH * node + NODE_LOOP]
        if made == 0:
            if self._is_known(node):
                self._note(node, EDGE_LOOP)
            made = self._new_node(node, EDGE_LOOP)
            self.nodes[NODE_WIDTH * node + NODE_LOOP] = made
        return made

    def add_query(self, node: cython.int, residual: cython.int, number: cython.int) -> cython.int:
        """A query accepted at a node; its number, from 1."""
        query: cython.int = self._free_query
        row: cython.int
        first: cython.int
        if query:
            self._free_query = self.queries[QUERY_WIDTH * query + QUERY_NODE]
        else:
            query = self._query_bound
            if QUERY_WIDTH * (query + 1) > len(self.queries):
                self.queries = grown(self.queries, QUERY_WIDTH * (query + query // 2 + 8))
            self._query_bound = query + 1
        self._query_count += 1
        row = QUERY_WIDTH * query
        first = self.nodes[NODE_WIDTH * node + NODE_FIRST_QUERY]
        self.queries[row + QUERY_NODE] = node
        self.queries[row + QUERY_NEXT] = first
        self.queries[row + QUERY_PREVIOUS] = 0
        self.queries[row + QUERY_RESIDUAL] = residual
        self.queries[row + QUERY_NUMBER] = number
        if first:
            self.queries[QUERY_WIDTH * first + QUERY_PREVIOUS] = query
        self.nodes[NODE_WIDTH * node + NODE_FIRST_QUERY] = query
        if self._is_known(node):
            self._note(node, LOG_QUERIES)
        self.nodes[NODE_WIDTH * node + NODE_USES] += 1
        return query

    def set_alias(self, query: cython.int, other: cython.int) -> cython.int:
        """A query stands for another one, which is found where it is."""
        if query >= len(self.alias):
            self.alias = grown(self.alias, query + query // 2 + 8)
        self.alias[query] = other
        return 0

    def answers(self, query: cython.int) -> cython.int:
        """The query that is found where this one is: itself, or the one that it stands for."""
        if query < len(self.alias) and self.alias[query]:
            return self.alias[query]
        return query

    def remove_query(self, query: cython.int) -> cython.int:
        """Take a query out, and the nodes that only it used."""
        row: cython.int = QUERY_WIDTH * query
        node: cython.int = self.queries[row + QUERY_NODE]
        following: cython.int = self.queries[row + QUERY_NEXT]
        previous: cython.int = self.queries[row + QUERY_PREVIOUS]
        if following:
            self.queries[QUERY_WIDTH * following + QUERY_PREVIOUS] = previous
        if previous:
            self.queries[QUERY_WIDTH * previous + QUERY_NEXT] = following
        else:
            self.nodes[NODE_WIDTH * node + NODE_FIRST_QUERY] = following
        if query < len(self.alias):
            self.alias[query] = 0
        self.queries[row + QUERY_NODE] = self._free_query
        self._free_query = query
        self._query_count -= 1
        self._note(node, LOG_QUERIES)
        self.nodes[NODE_WIDTH * node + NODE_USES] -= 1
        self._prune(node)
        return 0

    def edges_to(self, node: int) -> list[int]:
        """The edges from the root to a node, backwards."""
        edges = []
        while node > ROOTS:
            edges.append(self.nodes[NODE_WIDTH * node + NODE_EDGE])
            node = self.nodes[NODE_WIDTH * node + NODE_PARENT]
        return edges

    def restart_clock(self) -> None:
        """Begin at time 1 again; whoever remembers a time has to forget it."""
        for node in range(self._node_bound):
            self.nodes[NODE_WIDTH * node + NODE_CHANGED] = 0
        self.clock = 1
        self._recent_since = 0

    def statistics(self) -> dict[str, int]:
        return {"index_nodes": self._node_count, "index_queries": self._query_count}

    def size_bytes(self) -> int:
        return 4 * (
            len(self.nodes) + len(self.queries) + len(self.alias) + len(self._slots) + 3 * LOG_SIZE
        )

    def used_bytes(self) -> int:
        return 48 * self._node_count + 20 * self._query_count

    @property
    def query_bound(self) -> int:
        """All queries are below."""
        return self._query_bound

    def children(self, nodes_max: int) -> dict[int, list[int]]:
        """About so many of the oldest nodes under their parents, up to the roots; for people."""
        found: dict[int, list[int]] = {}
        seen = set(range(1, ROOTS + 1))
        for oldest in range(ROOTS + 1, self._node_bound):
            if len(seen) - ROOTS >= nodes_max:
                break
            node = oldest
            while node not in seen and self.nodes[NODE_WIDTH * node + NODE_EDGE] != -1:
                seen.add(node)
                parent = self.nodes[NODE_WIDTH * node + NODE_PARENT]
                found.setdefault(parent, []).append(node)
                node = parent
        return found

    def _is_known(self, node: cython.int) -> cython.bint:
        """Whether a node is in use; one that is not was made, or is freed, by the same change."""
        return self.nodes[NODE_WIDTH * node + NODE_USES] != 0

    def _prune(self, node: cython.int) -> cython.int:
        """Free a node that nothing uses, and then what only led to it."""
        parent: cython.int
        edge: cython.int
        while not self._is_known(node):
            parent = self.nodes[NODE_WIDTH * node + NODE_PARENT]
            edge = self.nodes[NODE_WIDTH * node + NODE_EDGE]
            if edge == EDGE_LOOP:
                self.nodes[NODE_WIDTH * parent + NODE_LOOP] = 0
            else:
                self._delete(node)
                if edge & EDGE_KIND == EDGE_ATOM:
                    self._unlink_edge(node, edge >> EDGE_SHIFT)
            self.nodes[NODE_WIDTH * node + NODE_PARENT] = 0
            self.nodes[NODE_WIDTH * node + NODE_EDGE] = -1
            if self._first_free:
                self.nodes[NODE_WIDTH * self._last_free + NODE_PARENT] = node
            else:
                self._first_free = node
            self._last_free = node
            self._node_count -= 1
            self.nodes[NODE_WIDTH * parent + NODE_USES] -= 1
            node = parent
        return 0

    def _new_node(self, parent: cython.int, edge: cython.int) -> cython.int:
        node: cython.int = self._first_free
        i: cython.int
        # Those freed long ago, and only if many are free: few states know them still.
        if node and 8 * (self._node_bound - 1 - self._node_count) > self._node_bound:
            self._first_free = self.nodes[NODE_WIDTH * node + NODE_PARENT]
            self._note(node, LOG_REUSED)
        else:
            node = self._node_bound
            if NODE_WIDTH * (node + 1) > len(self.nodes):
                self.nodes = grown(self.nodes, NODE_WIDTH * (node + node // 2 + 8))
            self._node_bound = node + 1
        self._node_count += 1
        for i in range(NODE_WIDTH):
            if i != NODE_CHANGED:
                self.nodes[NODE_WIDTH * node + i] = 0
        self.nodes[NODE_WIDTH * node + NODE_PARENT] = parent
        self.nodes[NODE_WIDTH * node + NODE_EDGE] = edge
        self.nodes[NODE_WIDTH * parent + NODE_USES] += 1
        return node

    def _note(self, node: cython.int, edge: cython.int) -> cython.int:
        i: cython.int
        bit: cython.ulonglong = 1
        self.clock += 1
        self.log_node[self.clock & LOG_MASK] = node
        self.log_edge[self.clock & LOG_MASK] = edge
        self.log_before[self.clock & LOG_MASK] = self.nodes[NODE_WIDTH * node + NODE_CHANGED]
        if self.clock - self._recent_since > 1024:
            for i in range(512):
                self._recent[i] = 0
            self._recent_since = self.clock - 1
        self.nodes[NODE_WIDTH * node + NODE_CHANGED] = self.clock
        self._recent[(node >> 6) & 511] |= bit << (node & 63)
        return 0

    def _link_edge(self, node: cython.int, atom: cython.int) -> cython.int:
        rows: cython.int[::1] = self._atoms.atoms
        first: cython.int = rows[ATOM_WIDTH * atom + ATOM_FIRST_EDGE]
        self.nodes[NODE_WIDTH * node + NODE_NEXT] = first
        self.nodes[NODE_WIDTH * node + NODE_PREVIOUS] = 0
        if first:
            self.nodes[NODE_WIDTH * first + NODE_PREVIOUS] = node
        rows[ATOM_WIDTH * atom + ATOM_FIRST_EDGE] = node
        rows[ATOM_WIDTH * atom + ATOM_EDGES] += 1
        return 0

    def _unlink_edge(self, node: cython.int, atom: cython.int) -> cython.int:
        rows: cython.int[::1] = self._atoms.atoms
        following: cython.int = self.nodes[NODE_WIDTH * node + NODE_NEXT]
        previous: cython.int = self.nodes[NODE_WIDTH * node + NODE_PREVIOUS]
        if following:
            self.nodes[NODE_WIDTH * following + NODE_PREVIOUS] = previous
        if previous:
            self.nodes[NODE_WIDTH * previous + NODE_NEXT] = following
        else:
            rows[ATOM_WIDTH * atom + ATOM_FIRST_EDGE] = following
        rows[ATOM_WIDTH * atom + ATOM_EDGES] -= 1
        return 0

    def _insert(self, node: cython.int) -> cython.int:
        mask: cython.uint = len(self._slots) - 1
        slot: cython.uint = (
            _hash(
                self.nodes[NODE_WIDTH * node + NODE_PARENT],
                self.nodes[NODE_WIDTH * node + NODE_EDGE],
            )
            & mask
        )
        while self._slots[slot] != 0:
            slot = (slot + 1) & mask
        self._slots[slot] = node
        return 0

    def _delete(self, node: cython.int) -> cython.int:
        mask: cython.uint = len(self._slots) - 1
        hole: cython.uint = (
            _hash(
                self.nodes[NODE_WIDTH * node + NODE_PARENT],
                self.nodes[NODE_WIDTH * node + NODE_EDGE],
            )
            & mask
        )
        slot: cython.uint
        home: cython.uint
        other: cython.int
        while self._slots[hole] != node:
            hole = (hole + 1) & mask
        slot = (hole + 1) & mask
        while self._slots[slot] != 0:
            other = self._slots[slot]
            home = (
                _hash(
                    self.nodes[NODE_WIDTH * other + NODE_PARENT],
                    self.nodes[NODE_WIDTH * other + NODE_EDGE],
                )
                & mask
            )
            if ((slot - home) & mask) >= ((slot - hole) & mask):
                self._slots[hole] = other
                hole = slot
            slot = (slot + 1) & mask
        self._slots[hole] = 0
        return 0

    def _rehash(self, capacity: cython.int) -> cython.int:
        i: cython.int
        old = self._slots
        self._slots = ints(capacity)
        for i in range(len(old)):
            if old[i] != 0:
                self._insert(old[i])
        return 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _hash(node: cython.int, edge: cython.int) -> cython.uint:
    key: cython.ulonglong = node
    multiplier: cython.ulonglong = 0x9E3779B97F4A7C15
    mask: cython.ulonglong = 0xFFFFFFFFFFFFFFFF
    key = (key << 32) ^ edge
    key = ((key ^ (key >> 29)) * multiplier) & mask
    return key >> 32
