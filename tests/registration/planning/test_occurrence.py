"""How often a pattern can occur, by the schema and in messages."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from formats import parse_text, read_schema
from formats.content_model import read_content_model
from formats.publication import read_publication
from registration.planning.exclusiveness import needs_of
from registration.planning.occurrence import SchemaOccurrences
from registration.planning.pattern_reader import PatternReader
from yfilter import parse_profile

DTD = b"""
<!ELEMENT news (head?, body, note*)> <!ATTLIST news id CDATA #IMPLIED>
<!ELEMENT head (title, (author | editor)?)>
<!ELEMENT title (#PCDATA)> <!ELEMENT author (#PCDATA)> <!ELEMENT editor (#PCDATA)>
<!ELEMENT body (title, title, section+)>
<!ELEMENT section (title?, section*, p)> <!ELEMENT p (#PCDATA | author)*>
<!ELEMENT note EMPTY> <!ELEMENT box ANY>
"""

XSD = b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
<xs:element name="news"><xs:complexType><xs:sequence>
  <xs:element name="head" type="Head" minOccurs="0"/>
  <xs:element ref="body"/>
  <xs:element name="note" type="xs:string" maxOccurs="3"/>
</xs:sequence><xs:attribute name="id"/></xs:complexType></xs:element>
<xs:complexType name="Base"><xs:sequence>
  <xs:element name="title" type="xs:string"/></xs:sequence></xs:complexType>
<xs:complexType name="Head"><xs:complexContent><xs:extension base="Base"><xs:choice>
  <xs:element name="author" type="xs:string"/><xs:element name="editor" type="xs:string"/>
</xs:choice></xs:extension></xs:complexContent></xs:complexType>
<xs:element name="body"><xs:complexType><xs:sequence>
  <xs:group ref="Titles" maxOccurs="2"/></xs:sequence></xs:complexType></xs:element>
<xs:group name="Titles"><xs:sequence><xs:element name="title" type="xs:string"/></xs:sequence>
</xs:group></xs:schema>"""

RELAXNG = b"""<grammar xmlns="http://relaxng.org/ns/structure/1.0">
<start><ref name="news"/></start>
<define name="news"><element name="news"><optional><attribute name="id"/></optional>
  <optional><element name="head"><element name="title"><text/></element>
    <choice><element name="author"><text/></element>
      <element name="editor"><text/></element></choice>
  </element></optional>
  <element name="body"><ref name="titles"/><ref name="titles"/></element>
  <zeroOrMore><element name="note"><empty/></element></zeroOrMore></element></define>
<define name="titles"><element name="title"><text/></element></define></grammar>"""


def at_most(name: str, data: bytes, pattern: str) -> float:
    return SchemaOccurrences(read_content_model(read_schema(name, data))).at_most(pattern)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("/news/@id", 1),
        ("/news/head/title/.", 1),
        ("/news/head/author/text()", 1),
        ("/news/head/*/.", 3),
        ("/news/body/title/.", 2),
        ("/news/note/@x", inf),
        ("//note/@x", inf),
        ("//head/title/.", 1),
        ("//title/.", inf),  # sections are inside sections
        ("/news//editor/.", 1),
        ("//author/.", inf),
        ("/news/nothing/@x", 0),
        ("/head/title/.", 0),  # not the root element
        ("/news/head/text()", inf),
    ],
)
def test_dtd(pattern: str, expected: float) -> None:
    data = DTD.replace(b"<!ELEMENT box ANY>", b"")
    assert at_most("news.dtd", data, pattern) == expected


def test_where_anything_may_stand_nothing_is_bounded() -> None:
    data = DTD.replace(b"head?, body", b"head?, box, body")
    assert at_most("news.dtd", data, "//title/.") == inf
    assert at_most("news.dtd", data, "//head/title/.") == inf
    assert at_most("news.dtd", data, "/news/head/title/.") == 1


@pytest.mark.parametrize(("name", "data"), [("news.xsd", XSD), ("news.rng", RELAXNG)])
def test_other_schemas(name: str, data: bytes) -> None:
    notes = 3 if name == "news.xsd" else inf
    for pattern, expected in {
        "/news/@id": 1,
        "/news/head/title/.": 1,
        "/news/head/author/.": 1,
        "/news/body/title/.": 2,
        "//title/.": 3,
        "/news/note/@x": notes,
    }.items():
        assert at_most(name, data, pattern) == expected, pattern


def test_no_valid_message_has_more_than_the_schema_allows() -> None:
    folder = Path(__file__).resolve().parents[4] / "shared" / "data" / "yfilter"
    if not folder.is_dir():
        pytest.skip("the data is not beside the checkout")
    schema = read_schema("nitf.dtd", (folder / "nitf-2-5.dtd").read_bytes())
    occurrences = SchemaOccurrences(read_content_model(schema))
    patterns = ["/nitf/head/title/.", "/nitf/@version", "//hl1/.", "/nitf/body/body.head/*/@id"]
    bounds = {pattern: occurrences.at_most(pattern) for pattern in patterns}
    assert bounds["/nitf/head/title/."] == bounds["//hl1/."] == 1
    reader = PatternReader(patterns)
    for path in sorted(folder.rglob("*.xml"))[:200]:
        for pattern, values in reader.values(parse_text(path.read_bytes())).items():
            assert len(values) <= bounds[pattern], path


def test_values_at_patterns() -> None:
    message = parse_text(b'<a x="1"><b y="02">t<b y="3">u<c/>v</b></b></a>')
    assert PatternReader(
        ["/a/@x", "/a/b/@y", "//b/.", "//b/text()", "/a//b/@y", "//b//b/@y", "/*/b/@y", "/a/@z"]
    ).values(message) == {
        "/a/@x": ["1"],
        "/a/b/@y": ["2"],
        "/*/b/@y": ["2"],
        "//b/.": ["tuv", "uv"],
        "//b/text()": ["t", "u", "v"],
        "/a//b/@y": ["2", "3"],
        "//b//b/@y": ["3"],
    }


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (b'<urn:a> a <urn:T> ; <urn:x:b> "c" , 07 .', "text/turtle"),
        (
            (
                b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="urn:x:">'
                b'<r:Description r:about="urn:a"><r:type r:resource="urn:T"/><x:b>c</x:b>'
                b'<x:b r:datatype="http://www.w3.org/2001/XMLSchema#integer">07</x:b>'
                b"</r:Description></r:RDF>"
            ),
            "application/rdf+xml",
        ),
    ],
)
def test_values_at_patterns_of_graph_profiles(data: bytes, media_type: str) -> None:
    query = 'ASK { ?s a <urn:T> ; <urn:x:b> "c" . ?o <urn:x:b> ?v . FILTER(?v = 7) }'
    needs = needs_of(parse_profile(query))
    assert {value for need in needs for value in need.values} == {"urn:T", "c", "7"}
    reader = PatternReader([*(need.pattern for need in needs), "//Q{urn:x:}b/."])
    found = reader.values(read_publication(data, media_type))
    assert {need.pattern: list(need.values) for need in needs}.items() <= found.items()
    assert ("//Q{urn:x:}b/." in found) == (media_type == "application/rdf+xml")
