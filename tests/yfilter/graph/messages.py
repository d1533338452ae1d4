"""Graphs as messages, for tests of what looks at them."""

from __future__ import annotations

from collections.abc import Iterable

import pyoxigraph

from formats.element_stream import ElementStream
from formats.graph.reader import read_graph
from formats.graph.syntaxes import GraphSyntax


def striped(quads: Iterable[pyoxigraph.Quad]) -> ElementStream:
    """The message of some triples."""
    data = pyoxigraph.serialize(quads, format=pyoxigraph.RdfFormat.N_QUADS)
    assert data is not None
    return read_graph(data, GraphSyntax.N_QUADS)


def turtle(text: str) -> ElementStream:
    """The message of a text in Turtle, with the prefix ``:``."""
    return read_graph(f"@prefix : <urn:x:> . {text}".encode(), GraphSyntax.TURTLE)
