"""``onyx archive read`` on graphs, which archives have striped."""

from __future__ import annotations

import json

import pyoxigraph
import pytest

from formats import ElementStream, FormatError, to_text
from formats.graph.syntaxes import GraphSyntax
from formats.publication import read_publication
from onyx.cli.archive import with_graphs_as

GRAPH = b'<urn:a> <urn:b> "c"@en , "7"^^<http://www.w3.org/2001/XMLSchema#integer> .'
NAMED = b"<urn:g> { <urn:a> <urn:b> [ <urn:c> <urn:d> ] }"


def line(message: str) -> bytes:
    return json.dumps({"name": "s1/7", "number": 7, "message": message}).encode() + b"\n"


def archived(data: bytes, media_type: str) -> bytes:
    return line(to_text(read_publication(data, media_type)).decode())


def quads(data: bytes, media_type: str) -> set[str]:
    syntax = pyoxigraph.RdfFormat.from_media_type(media_type)
    dataset = pyoxigraph.Dataset(pyoxigraph.parse(data, format=syntax))
    dataset.canonicalize(pyoxigraph.CanonicalizationAlgorithm.UNSTABLE)
    return {str(quad) for quad in dataset}


@pytest.mark.parametrize("syntax", GraphSyntax)
def test_a_graph_comes_in_the_syntax_that_is_asked_for(syntax: GraphSyntax) -> None:
    found = json.loads(with_graphs_as(archived(GRAPH, "text/turtle"), syntax))
    assert (found["name"], found["number"], found["media_type"]) == ("s1/7", 7, syntax.value)
    assert quads(found["message"].encode(), syntax.value) == quads(GRAPH, "text/turtle")


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (GraphSyntax.N_TRIPLES, GraphSyntax.N_QUADS),
        (GraphSyntax.TURTLE, GraphSyntax.N_QUADS),
        (GraphSyntax.TRIG, GraphSyntax.TRIG),
    ],
)
def test_named_graphs_are_kept(asked: GraphSyntax, given: GraphSyntax) -> None:
    found = json.loads(with_graphs_as(archived(NAMED, "application/trig"), asked))
    assert found["media_type"] == given.value
    assert quads(found["message"].encode(), given.value) == quads(NAMED, "application/trig")


def test_what_a_syntax_cannot_say_stays_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(stream: ElementStream, syntax: GraphSyntax) -> bytes:
        raise FormatError("not-writable", f"{syntax} cannot say it")

    monkeypatch.setattr("onyx.cli.archive.write_graph", refuse)
    archive = archived(GRAPH, "text/turtle")
    assert with_graphs_as(archive, GraphSyntax.RDF_XML) == archive
    assert "s1/7" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["<m/>", "<m>urn:onyx:graph</m>", '<g xmlns="urn:onyx:graphs"/>'])
def test_documents_are_left_alone(text: str) -> None:
    assert with_graphs_as(line(text), GraphSyntax.TURTLE) == line(text)
