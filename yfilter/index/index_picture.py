"""IndexPicture: the trie of an index, for people: as text and as a graph.

One node a line, with the targets of the queries that it accepts; ``if …`` stands where a residual
is left to verify::

    local profiles
      nitf
        //
          series  -> bob
        head
          pubdata
            [@edition.area]
              = "SF"  -> alice if …

A picture of the twigs is made in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from yfilter.engine.readings import Reading
from yfilter.engine.targets import Priority
from yfilter.index.automaton import (
    EDGE_ATTRIBUTE,
    EDGE_KIND,
    EDGE_LOOP,
    EDGE_NAME,
    EDGE_SHIFT,
    NODE_EDGE,
    NODE_FIRST_QUERY,
    NODE_PARENT,
    NODE_WIDTH,
    QUERY_NEXT,
    QUERY_NODE,
    QUERY_NUMBER,
    QUERY_RESIDUAL,
    QUERY_WIDTH,
    ROOTS,
    AtomTable,
    SymbolTable,
    Trie,
    root_of,
)
from yfilter.language.numbers import number_text
from yfilter.plan_graph import PlanGraph, some_of

_TITLES = {
    Priority.ROUTE: "routing queries",
    Priority.TRANSFORMATION: "needs of links",
    Priority.PROFILE: "local profiles",
}
# By root.
QUERIES = {
    root_of(priority, reading): title if reading is Reading.DOCUMENT else f"{title}, of graphs"
    for priority, title in _TITLES.items()
    for reading in Reading
}
TWIGS = {1: "twigs (nested paths of names alone)"}


class IndexPicture:
    """``names`` gives the targets of a query, for people, ``titles`` the name of each root."""

    def __init__(
        self,
        trie: Trie,
        symbols: SymbolTable,
        atoms: AtomTable,
        names: Callable[[int], list[str]],
        titles: Mapping[int, str],
    ) -> None:
        self._trie = trie
        self._symbols = symbols
        self._atoms = atoms
        self._names = names
        self._titles = titles
        self._kind = "twigs" if titles is TWIGS else "index"

    def lines(self, nodes_max: int) -> Iterator[str]:
        """The oldest nodes, and how many more there are."""
        children = self._trie.children(nodes_max)
        for root, title in self._titles.items():
            if root not in children:
                continue
            yield title
            pending = [(child, 1) for child in reversed(children[root])]
            while pending:
                node, depth = pending.pop()
                targets = ", ".join(self._targets(node))
                yield "  " * depth + self._edge(node) + (f"  -> {targets}" if targets else "")
                pending.extend((child, depth + 1) for child in reversed(children.get(node, [])))
        more = self._more(children)
        if more:
            yield f"… and {more} nodes more"

    def draw(self, graph: PlanGraph) -> None:
        """The oldest nodes, as far as there is room; targets take half of it."""
        children = self._trie.children(graph.room // 2)
        for root, title in self._titles.items():
            if root not in children:
                continue
            graph.group(f"Index: {title}")
            graph.node((self._kind, root), "", "state")
            pending = list(reversed(children[root]))
            while pending:
                node = pending.pop()
                self._draw_node(graph, node)
                pending.extend(reversed(children.get(node, [])))
        graph.cut(self._more(children))

    def describe_query(self, query: int) -> str:
        """The access paths of a query, and whether there is more to verify."""
        queries = self._trie.queries
        rows = [
            row for row in range(1, len(queries) // QUERY_WIDTH) if self._trie.answers(row) == query
        ]
        left = any(queries[QUERY_WIDTH * row + QUERY_RESIDUAL] for row in rows)
        paths = " or ".join(self._access_path(row) for row in rows)
        return f"the index, by {paths}{', then what is left' if left else ''}"

    def _access_path(self, row: int) -> str:
        node = self._trie.queries[QUERY_WIDTH * row + QUERY_NODE]
        text = ""
        while node > ROOTS:
            text = self._as_path(node, row) + text
            node = self._trie.nodes[NODE_WIDTH * node + NODE_PARENT]
        return text

    def _draw_node(self, graph: PlanGraph, node: int) -> None:
        targets = self._targets(node)
        key = (self._kind, node)
        graph.node(key, "", "accepting" if targets else "state")
        is_loop = self._trie.nodes[NODE_WIDTH * node + NODE_EDGE] == EDGE_LOOP
        parent = (self._kind, self._trie.nodes[NODE_WIDTH * node + NODE_PARENT])
        graph.edge(parent, key, "ε" if is_loop else self._edge(node))
        if is_loop:
            graph.edge(key, key, "*")
        if targets:
            graph.node((self._kind, "targets", node), "\n".join(targets), "target")
            graph.edge(key, (self._kind, "targets", node))

    def _edge(self, node: int) -> str:
        edge = self._trie.nodes[NODE_WIDTH * node + NODE_EDGE]
        if edge == EDGE_LOOP:
            return "//"
        if edge & EDGE_KIND == EDGE_NAME:
            return self._symbols.describe(edge >> EDGE_SHIFT)
        if edge & EDGE_KIND == EDGE_ATTRIBUTE:
            return f"[{self._symbols.describe_attribute(edge >> EDGE_SHIFT)}]"
        return self._atoms.describe(edge >> EDGE_SHIFT)

    def _as_path(self, node: int, query: int) -> str:
        edge = self._trie.nodes[NODE_WIDTH * node + NODE_EDGE]
        text = self._edge(node)
        if edge == EDGE_LOOP:
            return "/"
        if edge & EDGE_KIND == EDGE_NAME:
            return f"/{text}"
        if edge & EDGE_KIND == EDGE_ATTRIBUTE:
            return f"{text[:-1]} "
        if self._atoms.is_range(edge >> EDGE_SHIFT):
            bound = self._atoms.numbers[self._trie.queries[QUERY_WIDTH * query + QUERY_NUMBER]]
            text = f"{text.split()[0]} {number_text(bound)}"
        return f"{text}]"

    def _targets(self, node: int) -> list[str]:
        """A line for each of the first queries that a node accepts."""
        lines: list[str] = []
        more = 0
        query = self._trie.nodes[NODE_WIDTH * node + NODE_FIRST_QUERY]
        while query:
            if len(lines) < 3:
                residual = self._trie.queries[QUERY_WIDTH * query + QUERY_RESIDUAL]
                lines.append(
                    some_of(self._names(self._trie.answers(query))) + (" if …" if residual else "")
                )
            else:
                more += 1
            query = self._trie.queries[QUERY_WIDTH * query + QUERY_NEXT]
        return lines + ([f"{more} queries more"] if more else [])

    def _more(self, children: dict[int, list[int]]) -> int:
        shown = sum(map(len, children.values()))
        return self._trie.statistics()["index_nodes"] - ROOTS - shown
