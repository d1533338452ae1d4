"""PlanGraph: a part of a plan as nodes and edges, written as DOT, the language of Graphviz.

A plan of a million queries makes no picture, so a graph has a bound; what is beyond it is counted
and said in the picture.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

NODES_MAX = 300
NAMES_MAX = 3  # of the targets of one query

_STYLES = {
    "state": "shape=circle, width=0.25, fixedsize=true, fontsize=8",
    "accepting": "shape=doublecircle, width=0.25, fixedsize=true, fontsize=8",
    "operator": "shape=box",
    "target": 'shape=box, style="rounded,filled", fillcolor="#e8eef7"',
}


class PlanGraph:
    """Add nodes, group by group, and edges between them; ``dot`` writes it all."""

    def __init__(self, nodes_max: int = NODES_MAX) -> None:
        self._nodes_max = nodes_max
        self._groups: list[tuple[str, list[str]]] = []
        self._numbers: dict[Hashable, int] = {}
        self._edges: dict[tuple[int, int, str], None] = {}
        self._cut = 0

    def group(self, title: str) -> None:
        """Nodes from here on stand in a frame with a title."""
        self._groups.append((title, []))

    @property
    def room(self) -> int:
        """How many nodes may still come."""
        return self._nodes_max - len(self._numbers)

    def cut(self, nodes: int) -> None:
        """So many nodes are not shown."""
        self._cut += nodes

    def node(self, key: Hashable, label: str, style: str) -> None:
        """A node, unless there is no room; ``style``: state, accepting, operator or target."""
        if self.room <= 0:
            self._cut += 1
            return
        number = self._numbers[key] = len(self._numbers)
        self._groups[-1][1].append(f"n{number} [label={_quoted(label)}, {_STYLES[style]}]")

    def edge(self, source: Hashable, end: Hashable, label: str = "") -> None:
        """An edge, if both nodes are there."""
        if source in self._numbers and end in self._numbers:
            self._edges[self._numbers[source], self._numbers[end], label] = None

    def dot(self) -> str:
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield "digraph plan {"
        yield "  rankdir=LR"
        yield '  node [fontname="sans-serif", fontsize=10]'
        yield '  edge [fontname="sans-serif", fontsize=9]'
        if self._cut:
            yield f"  label={_quoted(f'{self._cut} more nodes are not shown')}"
        for number, (title, nodes) in enumerate(self._groups):
            if nodes:
                yield f"  subgraph cluster_{number} {{"
                yield f"    label={_quoted(title)}"
                yield from (f"    {node}" for node in nodes)
                yield "  }"
        for source, end, label in self._edges:
            yield f"  n{source} -> n{end} [label={_quoted(label)}]"
        yield "}"


def some_of(names: list[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
