"""Places in RDF/XML that is refused: by the path of an element, and by the statement it makes."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode, parse

from formats import GraphSyntax, MessageRefused, read_graph
from formats.graph.rdf_xml_places import place_of_statement
from formats.graph.vocabulary import RDF
from formats.graph.writer import FORMATS
from tests.formats.graph.support import w3c_tests

BASE = "http://e/doc"
HEAD = f"""<?xml version="1.0" encoding="ENCODING"?>
<!-- é --><rdf:RDF xmlns:rdf="{RDF}" xmlns:x="urn:x#">
"""


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1", "utf-16", "shift_jis", "us-ascii"])
@pytest.mark.parametrize(
    ("document", "place"),
    [
        ("<x:A/>\n <x:A rdf:about='a' rdf:ID='b'/>", (4, 2)),
        ("<x:A><x:b>1</x:b> <x:b>2</x:b>\n  <x:b><x:A/>text</x:b></x:A>", (4, 3)),
        ("<x:A x:b='é'/><rdf:li/>", (3, 15)),
    ],
)
def test_a_refusal_that_names_an_element_has_its_place(
    document: str, place: tuple[int, int], encoding: str
) -> None:
    text = HEAD.replace("ENCODING", encoding) + document + "</rdf:RDF>"
    if encoding in ("shift_jis", "us-ascii"):
        text = text.replace("é", "e")
    with pytest.raises(MessageRefused) as caught:
        read_graph(text.encode(encoding), GraphSyntax.RDF_XML, base=BASE)
    assert (caught.value.line, caught.value.column) == place
    assert caught.value.code == "rdf-syntax"


DOCUMENT = """<x:A rdf:ID="a" x:q="3" rdf:type="t">
<x:b>1</x:b>
<x:b>2</x:b>
<x:c rdf:resource="#z" x:q="5"/>
<x:c><x:A rdf:about="#n">
  <x:b>2</x:b></x:A></x:c>
<x:c rdf:parseType="Resource">
  <x:b>2</x:b></x:c>
<x:c rdf:parseType="Collection"><rdf:Description rdf:about="k">
  <rdf:li>4</rdf:li></rdf:Description></x:c>
<x:c xml:base="/other/"><x:A rdf:about="n">
  <x:b>9</x:b></x:A></x:c>
</x:A>
"""


@pytest.mark.parametrize(
    ("subject", "name", "value", "line"),
    [
        ("http://e/doc#a", "urn:x#b", "2", 5),
        ("http://e/doc#a", "urn:x#b", "other", 4),
        ("http://e/doc#a", "urn:x#q", "3", 3),
        ("http://e/doc#a", "urn:x#c", "http://e/doc#n", 7),
        ("http://e/doc#a", RDF + "type", "http://e/t", 3),
        ("http://e/doc#a", RDF + "type", "urn:x#A", 3),
        ("http://e/doc#n", RDF + "type", "urn:x#A", 7),
        ("http://e/doc#n", "urn:x#b", "2", 8),
        ("http://e/doc#z", "urn:x#q", "5", 6),
        ("", "urn:x#b", "2", 10),
        ("http://e/k", RDF + "_1", "4", 12),
        ("http://e/other/n", "", "", 13),
        ("http://e/doc#a", "urn:x#none", "", 0),
    ],
)
def test_the_place_of_a_statement(subject: str, name: str, value: str, line: int) -> None:
    data = (HEAD.replace("ENCODING", "utf-8") + DOCUMENT + "</rdf:RDF>").encode()
    assert place_of_statement(data, BASE, subject, name, value)[0] == line


def test_each_statement_of_the_w3c_has_a_place() -> None:
    tests = [each for each in w3c_tests() if each.syntax is GraphSyntax.RDF_XML and each.good]
    if not tests:
        pytest.skip("the shared data is not here")
    for test in tests:
        for quad in parse(test.data, FORMATS[test.syntax], base_iri=test.base):
            about, thing = quad.subject, quad.object
            assert isinstance(quad.predicate, NamedNode)
            if quad.predicate.value.startswith(RDF):  # reification, lists
                continue
            subject = about.value if isinstance(about, NamedNode) else ""
            value = thing.value if isinstance(thing, NamedNode | Literal) else ""
            assert test.base is not None
            place = place_of_statement(test.data, test.base, subject, quad.predicate.value, value)
            assert place[0] > 0, (test.name, quad)
