"""Terms to those of pyoxigraph and back."""

from __future__ import annotations

import pyoxigraph

from yfilter.graph.query_ast import BlankNode, GroundTerm, Iri, LiteralTerm


def to_oxigraph(
    term: GroundTerm,
) -> pyoxigraph.NamedNode | pyoxigraph.BlankNode | pyoxigraph.Literal:
    """ValueError for an IRI that is none."""
    if isinstance(term, Iri):
        return pyoxigraph.NamedNode(term.value)
    if isinstance(term, BlankNode):
        return pyoxigraph.BlankNode(term.label)
    if term.language:
        return pyoxigraph.Literal(term.lexical, language=term.language)
    return pyoxigraph.Literal(term.lexical, datatype=pyoxigraph.NamedNode(term.datatype))


def from_oxigraph(term: object) -> GroundTerm | None:
    """None for what a message's graph cannot have."""
    if isinstance(term, pyoxigraph.NamedNode):
        return Iri(term.value)
    if isinstance(term, pyoxigraph.BlankNode):
        return BlankNode(term.value)
    if isinstance(term, pyoxigraph.Literal):
        if term.language:
            return LiteralTerm(term.value, language=term.language)
        return LiteralTerm(term.value, term.datatype.value)
    return None
