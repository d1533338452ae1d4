"""JSON-LD with type maps (``@container: @type``) says what the same message says with its types
written into the nodes; PyLD, where it is installed, says so too."""

from __future__ import annotations

import json
from importlib.util import find_spec
from itertools import product
from typing import Any

import pyoxigraph
import pytest

from formats.errors import MessageRefused
from formats.graph.json_ld import without_type_maps
from formats.graph.reader import read_graph
from formats.graph.syntaxes import GraphSyntax
from formats.graph.writer import write_graph

BASE = "http://base.example/"
CONTAINERS: tuple[Any, ...] = ("@type", ["@type"], ["@type", "@set"], ["@set", "@type"])
# A type map, and its nodes with their types written down.
MAPS: tuple[tuple[Any, Any], ...] = (
    ({"P": {"@id": "x:a", "n": "A"}}, {"@type": "P", "@id": "x:a", "n": "A"}),
    ({"P": {"n": "A", "@id": "x:a"}}, {"@type": "P", "@id": "x:a", "n": "A"}),
    ({"P": {"n": "A"}}, {"@type": "P", "n": "A"}),
    ({"P": {"@id": "x:a", "@type": "Q"}}, {"@type": ["P", "Q"], "@id": "x:a"}),
    ({"P": {"@id": "x:a", "@type": ["Q", "R"]}}, {"@type": ["P", "Q", "R"], "@id": "x:a"}),
    ({"P": {"id": "x:a", "type": "Q"}}, {"@type": ["P", "Q"], "@id": "x:a"}),
    (
        {"P": [{"@id": "x:a"}, {"@id": "x:b", "n": 2.5}]},
        [{"@type": "P", "@id": "x:a"}, {"@type": "P", "@id": "x:b", "n": 2.5}],
    ),
    ({"P": "x:a"}, {"@type": "P", "@id": "x:a"}),
    ({"P": ["x:a", {"n": "B"}]}, [{"@type": "P", "@id": "x:a"}, {"@type": "P", "n": "B"}]),
    ({"@none": {"@id": "x:a", "n": "A"}}, {"@id": "x:a", "n": "A"}),
    ({"none": {"@id": "x:a", "n": "A"}}, {"@id": "x:a", "n": "A"}),
    ({"http://t.example/T": {"@id": "x:a"}}, {"@type": "http://t.example/T", "@id": "x:a"}),
    ({"t:T": {"@id": "x:a"}}, {"@type": "http://t.example/T", "@id": "x:a"}),
    ({"S": {"@id": "x:a", "n": "A"}}, {"@type": "S", "@id": "x:a", "n": "A"}),  # a scoped context
    (
        {"P": {"@id": "x:a", "by": {"Q": {"@id": "x:d", "n": "D"}}}},
        {"@type": "P", "@id": "x:a", "http://v.example/by": {"@type": "Q", "@id": "x:d", "n": "D"}},
    ),
    (
        {"P": {"@context": {"n": "http://m.example/n"}, "@id": "x:a", "n": "A"}},
        {"@type": "P", "@id": "x:a", "http://m.example/n": "A"},
    ),
    (
        {"P": {"@id": "x:a"}, "Q": {"@id": "x:a", "n": "A"}},
        [{"@type": "P", "@id": "x:a"}, {"@type": "Q", "@id": "x:a", "n": "A"}],
    ),
    ({}, []),
    (None, []),
    ("x:a", {"@id": "x:a"}),
)


def context(container: Any, **more: Any) -> dict[str, Any]:
    return {
        "@version": 1.1,
        "@vocab": "http://v.example/",
        "t": "http://t.example/",
        "id": "@id",
        "type": "@type",
        "none": {"@id": "@none"},
        "S": {"@id": "http://s.example/S", "@context": {"n": "http://s.example/n"}},
        "by": {"@id": "http://v.example/by", "@container": container, **more},
    }


def triples(message: Any, given: Any = None) -> set[str]:
    said = None if given is None else json.dumps({"@context": given}).encode()
    graph = read_graph(json.dumps(message).encode(), GraphSyntax.JSON_LD, context=said, base=BASE)
    return canonical(write_graph(graph, GraphSyntax.N_QUADS))


def canonical(quads: bytes) -> set[str]:
    dataset = pyoxigraph.Dataset(pyoxigraph.parse(quads, format=pyoxigraph.RdfFormat.N_QUADS))
    dataset.canonicalize(pyoxigraph.CanonicalizationAlgorithm.UNSTABLE)
    return set(map(str, dataset))


@pytest.mark.parametrize(("mapped", "plain"), MAPS)
@pytest.mark.parametrize("container", CONTAINERS, ids=str)
def test_a_type_map_says_the_types_of_its_nodes(container: Any, mapped: Any, plain: Any) -> None:
    own = {**context(container), "by": {"@id": "http://v.example/by"}}
    expected = triples({"@context": own, "@id": "x:s", "http://v.example/by": plain})
    message = {"@id": "x:s", "by": mapped}
    for coerced in ({}, {"@type": "@id"}):
        said = context(container, **coerced)
        assert triples({"@context": said, **message}) == expected
        assert triples({"@context": [{}, said], "@graph": [message]}) == expected
        assert triples(message, said) == expected  # the context of the source
        if find_spec("pyld") is not None:
            from pyld import jsonld  # type: ignore[import-not-found]  # noqa: PLC0415

            options = {"format": "application/n-quads", "base": BASE}
            quads = jsonld.to_rdf({"@context": said, **message}, options)
            assert canonical(quads.encode()) == expected


@pytest.mark.parametrize(
    ("other", "value"),
    [
        ("@id", {"x:a": {"n": "A"}}),
        ("@index", {"i": {"n": "A", "@id": "x:a"}}),
        ("@language", {"en": ["A", "B"], "de": "C"}),
        ("@graph", {"n": "A", "@id": "x:a"}),
    ],
)
def test_a_set_beside_another_container_changes_nothing(other: str, value: Any) -> None:
    alone = triples({"@context": context(other), "@id": "x:s", "by": value})
    assert alone
    for both in ([other, "@set"], ["@set", other]):
        assert triples({"@context": context(both), "@id": "x:s", "by": value}) == alone


def test_what_is_no_type_map_everywhere_stays_as_it_is() -> None:
    inner = {"by": {"@id": "http://v.example/by"}}
    mixed = {"@context": context("@type"), "by": {"P": {"@context": inner, "by": "x"}}}
    literal = {"@context": context("@type", **{"@type": "@json"}), "by": {"P": {"@id": "x:a"}}}
    for message in (mixed, literal, {"@container": 1}, ["@type"]):
        data = json.dumps(message).encode()
        assert without_type_maps(data) == data
    with pytest.raises(MessageRefused):
        read_graph(b'{"@container": ', GraphSyntax.JSON_LD)


TURTLE = b"<http://e/s> <http://e/p> <http://e/o> ."


@pytest.mark.parametrize(
    ("syntax", "data"),
    [
        *product((GraphSyntax.TURTLE, GraphSyntax.TRIG, GraphSyntax.N_TRIPLES), [TURTLE]),
        (GraphSyntax.TURTLE, b"@prefix : <http://e/> . :s :p :o ."),
        (GraphSyntax.TURTLE, b"PREFIX : <o> <http://e/s> <http://e/p> : ."),
        (GraphSyntax.N_QUADS, b"<http://e/s> <http://e/p> <http://e/o> <http://e/g> ."),
        (GraphSyntax.JSON_LD, b'{"@id": "http://e/s", "http://e/p": {"@id": "http://e/o"}}'),
        (
            GraphSyntax.RDF_XML,
            (
                b'<r:Description xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
                b'r:about="http://e/s" xmlns:e="http://e/" e:p="http://e/o"/>'
            ),
        ),
    ],
)
def test_a_byte_order_mark_is_no_part_of_a_graph(syntax: GraphSyntax, data: bytes) -> None:
    plain, marked = (
        write_graph(read_graph(each, syntax, base="http://e/"), GraphSyntax.N_QUADS)
        for each in (data, b"\xef\xbb\xbf" + data)
    )
    assert marked == plain and b"http://e/o" in plain
    if syntax is GraphSyntax.TURTLE:
        with pytest.raises(MessageRefused):  # a second one is text
            read_graph(b"\xef\xbb\xbf\xef\xbb\xbf" + data, syntax, base="http://e/")
