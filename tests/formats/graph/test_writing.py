"""What cannot be written, and why."""

from __future__ import annotations

import pytest

from formats import FormatError, GraphSyntax, parse_text, write_graph
from formats.graph.striped import GRAPH_NAMESPACE


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("<d><p i='urn:b' v='x'/></d>", "the attribute 'b'"),
        ("<d s='urn:a'><p v='x'/></d>", "the attribute 'i'"),
        ("<d s='urn:a'><p i='urn:b'/></d>", "the attribute 'b'"),
        ("<d s='urn:a'><p i='urn:b' u='x'/></d>", "the attribute 'l'"),
        ("<d s='urn:a'><p i='urn:b' y='x'/></d>", "the attribute 't'"),
        ("<n s='urn:a'><p i='urn:b' v='x'/></n>", "the attribute 'gb'"),
    ],
)
def test_an_element_stream_that_is_no_striped_graph(content: str, said: str) -> None:
    stream = parse_text(f"<g xmlns='{GRAPH_NAMESPACE}'>{content}</g>".encode())
    with pytest.raises(FormatError) as refusal:
        write_graph(stream, GraphSyntax.N_QUADS)
    assert refusal.value.code == "not-striped"
    assert said in str(refusal.value)


@pytest.mark.parametrize("syntax", GraphSyntax)
def test_one_with_another_root(syntax: GraphSyntax) -> None:
    with pytest.raises(FormatError, match="begins with g, not with a"):
        write_graph(parse_text(b"<a/>"), syntax)


def test_rdf_xml_says_it_too() -> None:
    text = f"<g xmlns='{GRAPH_NAMESPACE}'><d><b xmlns='urn:x:' v='x'/></d></g>"
    with pytest.raises(FormatError, match="the attribute 'b'"):
        write_graph(parse_text(text.encode()), GraphSyntax.RDF_XML)
