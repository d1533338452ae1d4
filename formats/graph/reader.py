"""read_graph: a graph in any of its syntaxes, from bytes of a stranger to a striped ElementStream.

Nothing outside the bytes given is ever read.  Bytes are counted before, triples, terms and names
while they come; what is beyond a bound, or is not taken, is refused as a whole.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from typing import TYPE_CHECKING

from formats.element_stream import ElementStream
from formats.errors import MessageRefused
from formats.graph import json_ld
from formats.graph.graph_limits import DEFAULT_GRAPH_LIMITS, GraphLimits
from formats.graph.nesting import TURTLE_TERMS, check_nesting
from formats.graph.plain_striping import plain_stripes
from formats.graph.rdf_xml_places import with_place
from formats.graph.striped import Closure
from formats.graph.syntaxes import GraphSyntax
from formats.graph.writer import FORMATS
from formats.kernel import AVAILABLE
from formats.text import parse_text

if TYPE_CHECKING or AVAILABLE:
    from formats.graph import oxigraph, striping
    from formats.graph.striping import GraphBuilder, graph_of_document
else:
    from formats.graph.plain_striping import plain_graph_of_document as graph_of_document

__all__ = ["graph_of_document", "read_graph"]


def read_graph(
    data: bytes,
    syntax: GraphSyntax,
    limits: GraphLimits = DEFAULT_GRAPH_LIMITS,
    context: bytes | None = None,
    closure: Closure | None = None,
    base: str | None = None,
) -> ElementStream:
    """The striped form (``striped.py``) of a graph.

    ``context``: what JSON-LD of this source means by its words, a document with an ``@context``;
    no other syntax looks at it.  ``closure``: what taxonomies make of types and properties.
    ``base``: the IRI that relative ones are relative to, where the graph does not say one; without
    either they are refused.

    Raises MessageRefused; the codes are in docs/graphs.md.
    """
    bytes_max = limits.message.bytes_max
    if len(data) > bytes_max:
        raise MessageRefused(
            "too-large", f"the graph has {len(data)} bytes; at most {bytes_max} allowed"
        )
    if syntax is GraphSyntax.RDF_XML:
        document = parse_text(data, limits.message)
        try:
            return graph_of_document(document, limits, base or "", closure)
        except MessageRefused as refusal:
            raise with_place(refusal, data) from None
    data, limits = data.removeprefix(BOM_UTF8), limits.of(len(data) // 64)
    if not AVAILABLE:
        return _plain_graph(data, syntax, limits, context, closure, base)
    builder = GraphBuilder(limits)
    if syntax is GraphSyntax.JSON_LD:
        builder = _json_ld(data, limits, context, base)
    elif not striping.scan(data, syntax, builder):  # which takes no relative IRI
        check_nesting(data, TURTLE_TERMS, limits.depth_max)
        builder = GraphBuilder(limits)
        oxigraph.add_triples(builder, data, syntax, base)
    return builder.finish(closure)


def _plain_graph(
    data: bytes,
    syntax: GraphSyntax,
    limits: GraphLimits,
    context: bytes | None,
    closure: Closure | None,
    base: str | None,
) -> ElementStream:
    """By pyoxigraph alone."""
    if syntax is GraphSyntax.JSON_LD:
        data = _checked_json_ld(data, limits, context)
        base = base or json_ld.RELATIVE_BASE
    else:
        check_nesting(data, TURTLE_TERMS, limits.depth_max)
    stream = plain_stripes(data, FORMATS[syntax], limits, base, closure)
    if base == json_ld.RELATIVE_BASE and base.encode() in stream.attribute_values:
        raise _relative_iri()
    return stream


def _checked_json_ld(data: bytes, limits: GraphLimits, context: bytes | None) -> bytes:
    json_ld.check_bounds(data, limits)
    if context is not None:
        data = json_ld.with_context(data, context)
        json_ld.check_bounds(data, limits)
    return json_ld.without_type_maps(data)


def _relative_iri() -> MessageRefused:
    """Without a base relative IRIs would be left out without a word."""
    return MessageRefused(
        "relative-iri", "a relative IRI, and nothing that it is relative to: say @base"
    )


def _json_ld(
    data: bytes, limits: GraphLimits, context: bytes | None, base: str | None
) -> GraphBuilder:
    data = _checked_json_ld(data, limits, context)
    builder = GraphBuilder(limits)
    oxigraph.add_triples(builder, data, GraphSyntax.JSON_LD, base or json_ld.RELATIVE_BASE)
    if builder.terms.has_iri_below(json_ld.RELATIVE_BASE.encode()):
        raise _relative_iri()
    return builder
