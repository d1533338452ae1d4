# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Steps: which nodes are behind an edge of some others.

Nodes come as a range of a column, with a column of their edge bits beside it (see edge_bits.py),
so that the few that may have the edge are found without a look at all.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from formats import cython_stub as cython

if cython.compiled:
    from cython.cimports.yfilter.index.atoms import AtomTable
    from cython.cimports.yfilter.index.edge_bits import edge_bit, name_bit
    from cython.cimports.yfilter.index.loop_sets import LoopSets
    from cython.cimports.yfilter.index.node_set import NodeSet
    from cython.cimports.yfilter.index.sorting import place_of
    from cython.cimports.yfilter.index.symbols import SymbolTable
    from cython.cimports.yfilter.index.trie import Trie
else:
    from yfilter.index.atoms import ATOM_EDGES, ATOM_FIRST_EDGE, ATOM_WIDTH, AtomTable
    from yfilter.index.edge_bits import edge_bit, name_bit
    from yfilter.index.loop_sets import LOOPS_COUNT, LOOPS_FIRST, LOOPS_WIDTH, LoopSets
    from yfilter.index.node_set import NodeSet
    from yfilter.index.sorting import place_of
    from yfilter.index.symbols import SymbolTable
    from yfilter.index.trie import (
        EDGE_ATOM,
        EDGE_KIND,
        EDGE_SHIFT,
        NODE_NEXT,
        NODE_PARENT,
        NODE_WIDTH,
        Trie,
    )


class Steps:
    """``found`` has the nodes; ``by_loops`` begins a step by a name, ``by_name`` adds to it."""

    def __init__(self, trie: Trie, atoms: AtomTable) -> None:
        self.found = NodeSet(trie)
        self._trie = trie
        self._atoms = atoms

    def begin(self, symbols: SymbolTable) -> None:
        """For a new message, whose names were translated."""
        self._exact = symbols.exact
        self._in_namespace = symbols.in_namespace
        self._any_namespace = symbols.any_namespace
        self._label_bits = symbols.label_bits

    def by_loops(self, loops: LoopSets, number: cython.int, label: cython.int) -> cython.int:
        """Begin with what is behind a name of a set of loops, which stay themselves."""
        row: cython.int = LOOPS_WIDTH * number
        self.found.clear()
        return self.by_name(
            loops.members,
            loops.names,
            loops.sets[row + LOOPS_FIRST],
            loops.sets[row + LOOPS_COUNT],
            label,
        )

    def by_name(
        self,
        members: cython.int[::1],
        names: cython.int[::1],
        first: cython.int,
        count: cython.int,
        label: cython.int,
    ) -> cython.int:
        """Add what is behind a name, by each symbol of its label and ``*``."""
        nodes: NodeSet = self.found
        parents: cython.int = nodes.choose_parents(members, names, first, count, name_bit(0))
        nodes.push_children(parents, 0)
        if label:
            parents = nodes.choose_parents(members, names, first, count, self._label_bits[label])
            if self._exact[label]:
                nodes.push_children(parents, self._exact[label] << EDGE_SHIFT)
            if self._in_namespace[label]:
                nodes.push_children(parents, self._in_namespace[label] << EDGE_SHIFT)
            if self._any_namespace[label]:
                nodes.push_children(parents, self._any_namespace[label] << EDGE_SHIFT)
        return 0

    def by_edge(
        self,
        members: cython.int[::1],
        edges: cython.int[::1],
        first: cython.int,
        count: cython.int,
        edge: cython.int,
    ) -> cython.int:
        """What is behind an attribute or an atom."""
        nodes: NodeSet = self.found
        node: cython.int
        row: cython.int = ATOM_WIDTH * (edge >> EDGE_SHIFT)
        nodes.clear()
        # The shorter way: from the atom's edges up, or from the members down.
        if edge & EDGE_KIND == EDGE_ATOM and self._atoms.atoms[row + ATOM_EDGES] <= count // 16:
            node = self._atoms.atoms[row + ATOM_FIRST_EDGE]
            while node:
                if (
                    place_of(
                        members, first, count, self._trie.nodes[NODE_WIDTH * node + NODE_PARENT]
                    )
                    >= 0
                ):
                    nodes.push(node)
                node = self._trie.nodes[NODE_WIDTH * node + NODE_NEXT]
            return 0
        return nodes.push_children(
            nodes.choose_parents(members, edges, first, count, edge_bit(edge)), edge
        )
