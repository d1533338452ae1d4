"""Graphs by chance: what is striped is the graph, in every syntax, there and back."""

from __future__ import annotations

import pyoxigraph
import pytest
from hypothesis import given, settings
from pyoxigraph import Quad

from formats import DEFAULT_LIMITS, GraphSyntax, decode, encode, read_graph, to_text, write_graph
from formats.codec import WireFormat
from formats.graph.oxigraph import FORMATS
from formats.text import parse_text
from tests.formats.graph.support import NAMED_PROPERTIES, canonical, canonical_stream, quads
from tests.formats.support import assert_invariants, columns

WITH_GRAPHS = [syntax for syntax in GraphSyntax if syntax.has_named_graphs]
WITHOUT = [syntax for syntax in GraphSyntax if not syntax.has_named_graphs]


def written(triples: list[Quad], syntax: GraphSyntax) -> bytes:
    data = pyoxigraph.serialize(triples, format=FORMATS[syntax])
    assert data is not None
    return data


@pytest.mark.parametrize("syntax", WITH_GRAPHS)
@settings(derandomize=True, deadline=None)
@given(triples=quads())
def test_a_dataset_is_the_same_in_every_syntax(syntax: GraphSyntax, triples: list[Quad]) -> None:
    stream = read_graph(written(triples, syntax), syntax)
    assert_invariants(stream)
    assert canonical_stream(stream) == canonical(triples)


@pytest.mark.parametrize("syntax", WITHOUT)
@settings(derandomize=True, deadline=None)
@given(triples=quads(named=False, properties=NAMED_PROPERTIES))
def test_a_graph_is_the_same_in_every_syntax(syntax: GraphSyntax, triples: list[Quad]) -> None:
    if syntax is GraphSyntax.RDF_XML:  # pyoxigraph writes some types as elements without a name
        turtle = written(triples, GraphSyntax.TURTLE)
        data = write_graph(read_graph(turtle, GraphSyntax.TURTLE), syntax)
        assert canonical(pyoxigraph.parse(data, FORMATS[syntax])) == canonical(triples)
    else:
        data = written(triples, syntax)
    stream = read_graph(data, syntax)
    assert_invariants(stream)
    assert canonical_stream(stream) == canonical(triples)


@settings(derandomize=True, deadline=None)
@given(triples=quads())
def test_what_is_written_is_read_as_it_was(triples: list[Quad]) -> None:
    stream = read_graph(written(triples, GraphSyntax.N_QUADS), GraphSyntax.N_QUADS)
    for syntax in WITH_GRAPHS:
        again = read_graph(write_graph(stream, syntax), syntax)
        assert canonical_stream(again) == canonical(triples)
    same = read_graph(write_graph(stream, GraphSyntax.N_QUADS), GraphSyntax.N_QUADS)
    assert columns(same) == columns(stream)


@settings(derandomize=True, deadline=None)
@given(triples=quads())
def test_a_striped_graph_is_a_message_as_any_other(triples: list[Quad]) -> None:
    stream = read_graph(written(triples, GraphSyntax.N_QUADS), GraphSyntax.N_QUADS)
    assert columns(decode(encode(stream, WireFormat.BINARY), WireFormat.BINARY)) == columns(stream)
    text = to_text(stream)
    assert to_text(parse_text(text, DEFAULT_LIMITS)) == text
