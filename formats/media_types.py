"""The media types of messages that are published, and of results; by the names of files, too.

XML travels as text, whatever kind of XML its media type says; a graph in one of the other syntaxes
travels to its root broker under its media type (docs/graphs.md).
"""

from __future__ import annotations

from formats.graph.syntaxes import GraphSyntax, by_file_name, by_media_type

XML = "application/xml"
TEXT = "text"
"""The format of XML as it is published."""

_XML_TYPES = (XML, "text/xml")
_SUFFIXES = {
    "application/sparql-results+json": ".json",
    GraphSyntax.N_TRIPLES: ".nt",
    GraphSyntax.N_QUADS: ".nq",
    GraphSyntax.TURTLE: ".ttl",
    GraphSyntax.TRIG: ".trig",
    GraphSyntax.JSON_LD: ".jsonld",
    GraphSyntax.RDF_XML: ".rdf",
}


def media_type_of(name: str) -> str:
    """That of a file by its name: XML where it says nothing else."""
    syntax = by_file_name(name)
    return XML if syntax is None else syntax.value


def publish_format(media_type: str) -> str:
    """The ``format`` of a Publish frame; parameters such as a charset count for nothing."""
    syntax = by_media_type(media_type)
    if syntax is not None and syntax is not GraphSyntax.RDF_XML:
        return syntax.value
    kind = media_type.partition(";")[0].strip().lower()
    return TEXT if kind in _XML_TYPES or kind.endswith("+xml") else kind


def suffix_of(media_type: str) -> str:
    """What the name of a file ends in: .xml where the media type is not of graphs or solutions."""
    return _SUFFIXES.get(media_type, ".xml")
