"""The workload of both papers of graph filtering: random graphs and parts of them.

*G*: Petrovic, Liu, Jacobsen, WWW 2005, section 5 and table 1.  *C*: Liu, Petrovic, Jacobsen, WWW
2008, section 5.  A publication is a path through its nodes and random edges between them.  Of the
subscriptions some are parts of a publication, which they match; some are contained in another one,
with a node in the place of a variable; the others are made as a publication is, and match none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random
from typing import TypeAlias

from benchmarks.graph.catalogue import EXAMPLE
from formats import ElementStream, GraphSyntax, read_graph
from formats.graph.vocabulary import XSD

_NODES, _PROPERTIES = 5_000, 40
_CHANGED = 0.1  # of the edges of one that is alike
_YEAR = f"<{EXAMPLE}year>"

Edge: TypeAlias = "tuple[str, str, str]"
"""Subject, property, object, as SPARQL writes them: an IRI in ``<>``, or a variable."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Table 1; ``subscription_edges`` is 10 in C, where G prints 35 for five nodes.

    ``matching``: the share of the subscriptions that match a publication; ``variables``: of one
    subscription; ``with_variables`` and ``overlap``: shares of the subscriptions."""

    publication_nodes: int = 35
    publication_edges: int = 90
    subscription_nodes: int = 5
    subscription_edges: int = 10
    subscriptions: int = 30_000
    matching: float = 0.001
    variables: int = 2
    with_variables: float = 0.9
    overlap: float = 0.5
    publications: int = 10
    seed: int = 1


TOPSS = Parameters()
CLUSTER = replace(TOPSS, publication_nodes=30, subscriptions=100_000)


class PaperWorkload:
    """Publications, and subscriptions of them in an order of chance; ``triples`` has those of each
    publication."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self._random = Random(f"papers {parameters}")
        self.triples = [
            self._graph(parameters.publication_nodes, parameters.publication_edges)
            for _ in range(parameters.publications)
        ]

    def publications(self) -> list[ElementStream]:
        """As brokers pass them on."""
        return [_read(triples) for triples in self.triples]

    def alike(self, number: int) -> list[ElementStream]:
        """So many more that are like those: a tenth of the edges is between other nodes."""
        return [_read(self._changed(self._random.choice(self.triples))) for _ in range(number)]

    def others(self, number: int) -> list[ElementStream]:
        """So many that no subscription is part of."""
        asked = self.parameters
        sizes = asked.publication_nodes, asked.publication_edges
        return [_read(self._graph(*sizes)) for _ in range(number)]

    def subscriptions(self) -> list[str]:
        """As SPARQL."""
        return [query_text(pattern) for pattern in self.patterns()]

    def patterns(self) -> list[list[Edge]]:
        """Of each publication the share that matches; then the share of overlap; then others."""
        asked = self.parameters
        contained = round(asked.subscriptions * asked.overlap)
        matching = round(asked.subscriptions * asked.matching)
        own = [self.part_of(triples) for triples in self.triples for _ in range(matching)]
        while len(own) < asked.subscriptions - contained:
            graph = self._graph(asked.subscription_nodes, asked.subscription_edges)
            own.append(self._starred(graph))
        general = [pattern for pattern in own if _variables_of(pattern)]
        found = own + [self._narrowed(self._random.choice(general)) for _ in range(contained)]
        self._random.shuffle(found)
        return found

    def part_of(self, triples: Sequence[Edge]) -> list[Edge]:
        """A subscription that matches a publication of these triples."""
        return self._starred(self._part(triples))

    def _graph(self, nodes: int, edges: int) -> list[Edge]:
        chosen = [_node(number) for number in self._random.sample(range(_NODES), nodes)]
        pairs = pairwise(chosen)
        found = dict.fromkeys(self._edge(subject, target) for subject, target in pairs)
        while len(found) < edges:
            subject, target = self._random.sample(chosen, 2)
            found[self._edge(subject, target)] = None
        return list(found)[: max(edges, nodes - 1)]

    def _changed(self, triples: Sequence[Edge]) -> list[Edge]:
        nodes = _nodes_of(triples)
        found = dict.fromkeys(edge for edge in triples if self._random.random() >= _CHANGED)
        while len(found) < len(triples):
            subject, target = self._random.sample(nodes, 2)
            found[self._edge(subject, target)] = None
        return list(found)

    def _edge(self, subject: str, target: str) -> Edge:
        return (subject, f"<{EXAMPLE}p{self._random.randrange(_PROPERTIES)}>", target)

    def _part(self, triples: Sequence[Edge]) -> list[Edge]:
        """Connected edges; a node is taken in when those there are have no other edge."""
        around: defaultdict[str, list[Edge]] = defaultdict(list)
        for edge in triples:
            around[edge[0]].append(edge)
            around[edge[2]].append(edge)
        nodes = {self._random.choice(triples)[0]}
        found: dict[Edge, None] = {}
        while len(found) < self.parameters.subscription_edges:
            left = [edge for node in sorted(nodes) for edge in around[node] if edge not in found]
            inside = [edge for edge in left if edge[0] in nodes and edge[2] in nodes]
            enough = len(nodes) >= self.parameters.subscription_nodes
            edge = self._random.choice(inside if enough and inside else left)
            nodes.update((edge[0], edge[2]))
            found[edge] = None
        return list(found)

    def _starred(self, edges: list[Edge]) -> list[Edge]:
        if self._random.random() >= self.parameters.with_variables:
            return edges
        nodes = _nodes_of(edges)
        starred = self._random.sample(nodes, min(self.parameters.variables, len(nodes)))
        return _renamed(edges, {node: f"?v{place}" for place, node in enumerate(starred)})

    def _narrowed(self, edges: list[Edge]) -> list[Edge]:
        """With a new node in the place of a variable."""
        variable = self._random.choice(_variables_of(edges))
        return _renamed(edges, {variable: _node(_NODES + self._random.randrange(10**6))})


def crowd(
    number: int, matched: int, parameters: Parameters, *, is_one_star: bool
) -> tuple[list[str], ElementStream]:
    """Subscriptions of one structure that differ in the bound of a number, of which ``matched``
    match; and the publication.  The structure is a part of the publication, or an edge from a
    variable.  The number is 50."""
    workload = PaperWorkload(replace(parameters, publications=1, with_variables=1.0))
    (triples,) = workload.triples
    if is_one_star:
        edges = _renamed(triples[:1], {triples[0][0]: "?v0"})
    else:
        edges = workload.part_of(triples)
    subject = _variables_of(edges)[0]
    bounds = [at * 49 / matched for at in range(matched)]
    bounds += [51.0 + at for at in range(number - matched)]
    Random(parameters.seed).shuffle(bounds)
    texts = [
        query_text([*edges, (subject, _YEAR, "?year")], f"FILTER(?year > {bound})")
        for bound in bounds
    ]
    years = [(node, _YEAR, f'"50"^^<{XSD}integer>') for node in _nodes_of(triples)]
    numbered = [*triples, *years]
    return texts, _read(numbered)


def query_text(edges: Sequence[Edge], condition: str = "") -> str:
    """A subscription as SPARQL."""
    return f"ASK {{ {' . '.join(map(' '.join, edges))} {condition} }}"


def n_triples(edges: Sequence[Edge]) -> str:
    return "".join(f"{' '.join(edge)} .\n" for edge in edges)


def _read(triples: Sequence[Edge]) -> ElementStream:
    return read_graph(n_triples(triples).encode(), GraphSyntax.N_TRIPLES)


def _node(number: int) -> str:
    return f"<{EXAMPLE}n{number}>"


def _nodes_of(edges: Iterable[Edge]) -> list[str]:
    return list(dict.fromkeys(node for edge in edges for node in (edge[0], edge[2])))


def _variables_of(edges: Iterable[Edge]) -> list[str]:
    return [node for node in _nodes_of(edges) if node.startswith("?")]


def _renamed(edges: Sequence[Edge], names: dict[str, str]) -> list[Edge]:
    return [
        (names.get(subject, subject), label, names.get(target, target))
        for subject, label, target in edges
    ]
