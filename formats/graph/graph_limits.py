"""What one graph message may cost, before it is an element stream."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

from formats.errors import MessageRefused
from formats.limits import DEFAULT_LIMITS, MessageLimits


@dataclass(frozen=True, slots=True)
class GraphLimits:
    """Bounds for one graph; sizes in bytes of UTF-8.  A graph beyond one is refused with the code.

    message             those of any message; of the graph as it comes ``bytes_max``, of its striped
                        form all others
    triples_max         triples as they come, doubles included (``too-many-triples``)
    iri_bytes_max       an IRI (``iri-too-long``)
    literal_bytes_max   a literal without its datatype (``literal-too-long``)
    depth_max           nesting of brackets in JSON-LD, Turtle and TriG (``too-deep``)
    blank_nodes_max     blank nodes, of which each item of a list is one; or one for each 64 bytes
                        of a graph, four elements of RDF/XML (``too-many-nodes``)
    markup_max          elements within XML literals of RDF/XML (``too-many-elements``)
    namespaces_max      namespaces that properties are of (``too-many-namespaces``)
    json_bytes_max      JSON-LD as it comes (``too-large``): it is read in one go, while nobody else
                        in the process has their turn, 0.08 s a MiB and up to 0.5
    json_values_max     objects, arrays and commas of JSON-LD, or one for each 10 bytes
                        (``too-many-triples``)
    json_contexts_max   ``@context`` members of JSON-LD (``too-many-contexts``)
    json_context_work_max   terms of all contexts, times how often one may have to be copied: as
                        often as there are contexts, or objects where a context has contexts of its
                        own (``too-many-contexts``)
    """

    message: MessageLimits = DEFAULT_LIMITS
    triples_max: int = 200_000
    iri_bytes_max: int = 8 * 1024
    literal_bytes_max: int = 1024 * 1024
    depth_max: int = 64
    blank_nodes_max: int = 10_000
    markup_max: int = 2_000
    namespaces_max: int = 1_000
    json_bytes_max: int = 1024 * 1024
    json_values_max: int = 6_000
    json_contexts_max: int = 64
    json_context_work_max: int = 50_000

    def of(self, nodes: int) -> GraphLimits:
        """The limits of a graph that may have so many blank nodes by its size."""
        return self if nodes <= self.blank_nodes_max else replace(self, blank_nodes_max=nodes)


def refuse_nodes(blank_nodes_max: int) -> NoReturn:
    raise MessageRefused(
        "too-many-nodes",
        f"more than {blank_nodes_max} blank nodes, of which each item of a list is one",
    )


def refuse_markup(markup_max: int) -> NoReturn:
    reason = f"XML literals have more than {markup_max} elements"
    raise MessageRefused("too-many-elements", reason)


DEFAULT_GRAPH_LIMITS = GraphLimits()
