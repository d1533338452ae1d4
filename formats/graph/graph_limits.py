"""What one graph message may cost, before it is an element stream."""

from __future__ import annotations

from dataclasses import dataclass

from formats.limits import DEFAULT_LIMITS, MessageLimits


@dataclass(frozen=True, slots=True)
class GraphLimits:
    """Bounds for one graph; sizes in bytes of UTF-8.  A graph beyond one is refused with the code.

    message             those of any message; of the graph as it comes ``bytes_max``, of its striped
                        form all others
    triples_max         triples as they come, doubles included (``too-many-triples``)
    iri_bytes_max       an IRI (``iri-too-long``)
    literal_bytes_max   a literal without its datatype (``literal-too-long``)
    namespaces_max      namespaces that properties are of (``too-many-namespaces``)
    json_bytes_max      JSON-LD as it comes (``too-large``): it is read in one go, while nobody else
                        in the process has their turn, 0.08 s a MiB and up to 0.5
    json_depth_max      nesting of arrays and objects of JSON-LD (``too-deep``)
    json_contexts_max   ``@context`` members of JSON-LD (``too-many-contexts``)
    json_context_work_max   terms of all contexts, times how often one may have to be copied: as
                        often as there are contexts, or objects where a context has contexts of its
                        own (``too-many-contexts``)
    """

    message: MessageLimits = DEFAULT_LIMITS
    triples_max: int = 200_000
    iri_bytes_max: int = 8 * 1024
    literal_bytes_max: int = 1024 * 1024
    namespaces_max: int = 1_000
    json_bytes_max: int = 1024 * 1024
    json_depth_max: int = 64
    json_contexts_max: int = 64
    json_context_work_max: int = 500_000


DEFAULT_GRAPH_LIMITS = GraphLimits()
