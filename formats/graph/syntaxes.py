"""GraphSyntax: the syntaxes in which a graph is published and delivered, by their media types."""

from __future__ import annotations

from enum import StrEnum


class GraphSyntax(StrEnum):
    """A syntax of RDF; its value is its media type."""

    TURTLE = "text/turtle"
    TRIG = "application/trig"
    N_TRIPLES = "application/n-triples"
    N_QUADS = "application/n-quads"
    JSON_LD = "application/ld+json"
    RDF_XML = "application/rdf+xml"

    @property
    def has_named_graphs(self) -> bool:
        """Whether it can say of a triple in which graph of several it is."""
        return self in {GraphSyntax.TRIG, GraphSyntax.N_QUADS, GraphSyntax.JSON_LD}


_FILE_NAME_ENDINGS = {
    ".ttl": GraphSyntax.TURTLE,
    ".trig": GraphSyntax.TRIG,
    ".nt": GraphSyntax.N_TRIPLES,
    ".nq": GraphSyntax.N_QUADS,
    ".jsonld": GraphSyntax.JSON_LD,
    ".rdf": GraphSyntax.RDF_XML,
}

_BY_MEDIA_TYPE = {syntax.value: syntax for syntax in GraphSyntax}


def by_media_type(media_type: str) -> GraphSyntax | None:
    """The syntax of a media type, whose parameters (``; charset=utf-8``) and case do not matter."""
    essence = media_type.partition(";")[0].strip().lower()
    return _BY_MEDIA_TYPE.get(essence)


def by_file_name(file_name: str) -> GraphSyntax | None:
    """The syntax that a file's name ends in (``.ttl``, ``.trig``, ``.nt``, ``.nq``, ``.jsonld``,
    ``.rdf``)."""
    name = file_name.lower()
    return next(
        (syntax for ending, syntax in _FILE_NAME_ENDINGS.items() if name.endswith(ending)), None
    )
