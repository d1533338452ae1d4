"""read_graph: what becomes of a graph, what is refused where, and that all is bounded."""

from __future__ import annotations

import gzip
import json

import pyoxigraph
import pytest

from formats import GraphLimits, GraphSyntax, MessageLimits, MessageRefused, read_graph, to_text
from formats.graph.graph_limits import DEFAULT_GRAPH_LIMITS
from formats.graph.syntaxes import by_file_name, by_media_type
from tests.formats.graph.support import RDF_DATA, canonical, canonical_stream

PREFIXES = b"""@prefix : <http://e.example/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
"""
NAMES = b'xmlns="urn:onyx:graph" xmlns:n1="http://e.example/"'


def striped(turtle: bytes, syntax: GraphSyntax = GraphSyntax.TURTLE) -> bytes:
    text = to_text(read_graph(PREFIXES + turtle, syntax))
    return text.replace(b" " + NAMES, b"").replace(
        b' t="http://www.w3.org/2001/XMLSchema#', b' t="'
    )


def refusal(
    data: bytes,
    syntax: GraphSyntax = GraphSyntax.TURTLE,
    limits: GraphLimits | None = None,
    context: bytes | None = None,
) -> MessageRefused:
    with pytest.raises(MessageRefused) as caught:
        read_graph(data, syntax, limits or GraphLimits(), context)
    return caught.value


def test_every_subject_is_an_element() -> None:
    text = striped(b':a :p :b, "x", "y"@EN . :b :p :a . :a :q _:z . _:z :p :a .')
    assert text == (
        b'<g><d s="http://e.example/a"><n1:p r="http://e.example/b"/><n1:p v="x"/>'
        b'<n1:p u="y" l="en"/><n1:q b="0"/></d>'
        b'<d s="http://e.example/b"><n1:p r="http://e.example/a"/></d>'
        b'<d b="0"><n1:p r="http://e.example/a"/></d></g>'
    )


def test_a_triple_stands_once() -> None:
    assert striped(b":a :p 1, 1, 01 .").count(b"<n1:p ") == 2


def test_a_named_graph_has_subjects_of_its_own() -> None:
    text = striped(b":a :p :b . :g { :a :p :b, :b } _:g { :a :p :b }", GraphSyntax.TRIG)
    assert text == (
        b'<g><d s="http://e.example/a"><n1:p r="http://e.example/b"/></d>'
        b'<n g="http://e.example/g" s="http://e.example/a"><n1:p r="http://e.example/b"/></n>'
        b'<n gb="0" s="http://e.example/a"><n1:p r="http://e.example/b"/></n></g>'
    )


def test_a_property_without_an_xml_name_says_its_iri() -> None:
    assert b'<p i="http://e.example/9" v="x"/>' in striped(b':a <http://e.example/9> "x" .')
    assert b'<p i="urn:onyx:" v="x"/>' in striped(b':a <urn:onyx:> "x" .')
    assert b'<p i="http://www.w3.org/2000/xmlns/p"' in striped(
        b':a <http://www.w3.org/2000/xmlns/p> "x" .'
    )


def test_iris_of_properties_without_names_are_counted_as_values() -> None:
    """There was no room for them: compiled, they were written behind the buffer."""
    prefix = b"@prefix x: <urn:%s:> .\n" % (b"x" * 2000)
    lines = [b"<urn:a> x:9 <urn:%d> .\n" % number for number in range(9_000)]
    stream = read_graph(prefix + b"".join(lines[:4_000]), GraphSyntax.TURTLE)
    assert len(stream.attribute_values) > 2_000 * 4_000
    assert refusal(prefix + b"".join(lines)).code == "entity-expansion"


def test_classes_and_members_stand_below_the_closure() -> None:
    text = striped(b":a a :C ; rdf:_1 :x ; rdf:_10 'y' ; rdf:_01 :z .")
    assert (
        b'<k><c r="http://e.example/C" o=""/><m r="http://e.example/x"/><m v="y"/></k></d>' in text
    )


def test_a_closure_adds_what_it_says() -> None:
    class Two:
        def classes(self, subject: bytes, types: list[bytes]) -> list[bytes]:
            return [*types, b"http://e.example/Top", *self.listed(subject)]

        def properties_above(self, name: bytes) -> list[bytes]:
            return [b"http://e.example/about"] if name.endswith(b"/p") else []

        def listed(self, iri: bytes) -> list[bytes]:
            return [b"http://e.example/Listed"] if iri.endswith(b"/a") else []

    stream = read_graph(PREFIXES + b":a a :C, _:t ; :p 5 .", GraphSyntax.TURTLE, closure=Two())
    assert to_text(stream).partition(b"<k>")[2] == (
        b'<c r="http://e.example/C" o=""/><c r="http://e.example/Top"/>'
        b'<c r="http://e.example/Listed" o=""/><c b="0" o=""/>'
        b'<q i="http://e.example/about" y="5" t="http://www.w3.org/2001/XMLSchema#integer" n="5"/>'
        b"</k></d></g>"
    )


@pytest.mark.parametrize(
    ("literal", "number"),
    [
        ("'5'^^xsd:integer", "5"),
        ("'+05'^^xsd:integer", "5"),
        ("'-0'^^xsd:integer", "0"),
        ("'12345678901234567890'^^xsd:integer", "1.2345678901234567e+19"),
        ("'1_0'^^xsd:integer", None),
        ("' 5'^^xsd:integer", None),
        ("'5.0'^^xsd:integer", None),
        ("'-9.50'^^xsd:decimal", "-9.5"),
        ("'.5'^^xsd:decimal", "0.5"),
        ("'9.99999999999999999999'^^xsd:decimal", "9.999999999999998"),  # less than 10
        ("'10.00000000000000000000'^^xsd:decimal", "10"),
        ("'-10.0000000000000000001'^^xsd:decimal", "-10.000000000000002"),
        ("'1e3'^^xsd:decimal", None),
        ("'.'^^xsd:decimal", None),
        ("'1e3'^^xsd:double", "1000"),
        ("'1e999'^^xsd:double", "INF"),
        ("'-INF'^^xsd:double", "-INF"),
        ("'NaN'^^xsd:float", "NaN"),
        ("'nan'^^xsd:double", None),
        ("'infinity'^^xsd:double", None),
        ("'9.1'^^xsd:float", "9.1"),
        ("'9.10000000001'^^xsd:float", "9.1"),
        ("'16777217'^^xsd:float", "16777216"),
        ("'1e39'^^xsd:float", "INF"),
        ("'127'^^xsd:byte", "127"),
        ("'128'^^xsd:byte", None),
        ("'-1'^^xsd:nonNegativeInteger", None),
        ("'-000'^^xsd:unsignedLong", "0"),
        ("'0'^^xsd:negativeInteger", None),
        ("'18446744073709551616'^^xsd:unsignedLong", None),
        ("'5'^^xsd:string", None),
        ("'5'", None),
        ("'5'^^:mine", None),
    ],
)
def test_a_valid_numeric_literal_has_its_number(literal: str, number: str | None) -> None:
    text = striped(f":a :p {literal} .".encode()).decode()
    assert text.partition(' n="')[2].partition('"')[0] == (number or ""), text


@pytest.mark.parametrize(
    ("literal", "seconds"),
    [
        ("'1970-01-01T00:00:00Z'^^xsd:dateTime", "0"),
        ("'1970-01-01T00:00:00'^^xsd:dateTime", "0"),
        ("'2024-02-29T12:30:15.250+01:30'^^xsd:dateTime", "1709204415.25"),
        ("'1969-12-31T23:59:59.5Z'^^xsd:dateTime", "-0.5"),
        ("'1999-12-31T24:00:00Z'^^xsd:dateTime", "946684800"),
        ("'-0001-03-01T00:00:00Z'^^xsd:dateTime", "-62193657600"),
        ("'12024-01-01T00:00:00Z'^^xsd:dateTime", "317273587200"),
        ("'2023-02-29T00:00:00Z'^^xsd:dateTime", None),
        ("'2023-01-01T24:00:01Z'^^xsd:dateTime", None),
        ("'2023-01-01T00:00:60Z'^^xsd:dateTime", None),
        ("'2023-01-01T00:00:00+14:30'^^xsd:dateTime", None),
        ("'02023-01-01T00:00:00Z'^^xsd:dateTime", None),
        ("'2023-01-01'^^xsd:dateTime", None),
        ("'2000-01-01'^^xsd:date", "946684800"),
        ("'2000-01-01-05:00'^^xsd:date", "946702800"),
        ("'2000-01-01T00:00:00'^^xsd:dateTimeStamp", None),
        ("'2000-01-01T00:00:00Z'^^xsd:dateTimeStamp", "946684800"),
        ("'2000'^^xsd:gYear", None),
    ],
)
def test_a_valid_time_has_its_seconds(literal: str, seconds: str | None) -> None:
    text = striped(f":a :p {literal} .".encode()).decode()
    assert text.partition(' w="')[2].partition('"')[0] == (seconds or ""), text


@pytest.mark.parametrize(
    ("data", "syntax", "code", "place"),
    [
        (b"<http://e/a> <http://e/p>\n  nothing .", GraphSyntax.TURTLE, "malformed", (2, 3)),
        (b"<http://e/a> <http://e/p>\n <rel> .", GraphSyntax.TURTLE, "relative-iri", (2, 2)),
        (b"<http://e/a> x:p 1 .", GraphSyntax.TURTLE, "undeclared-prefix", (1, 14)),
        (b"<http://e/a> <http://e/p> '\xff' .", GraphSyntax.TURTLE, "unknown-encoding", (1, 28)),
        (b"<http://e/a> <http://e/p> '\\u0000' .", GraphSyntax.TURTLE, "bad-character", (1, 35)),
        (b"<http://e/a> <http://e/p> '\\uFFFF' .", GraphSyntax.TURTLE, "bad-character", (1, 35)),
        (b"<http://e/a> <http://e/p> 'x'@en--ltr .", GraphSyntax.TURTLE, "text-direction", (0, 0)),
        (
            b"<http://e/a> <http://e/p> <<( <http://e/a> <http://e/p> 1 )>> .",
            GraphSyntax.TURTLE,
            "triple-term",
            (0, 0),
        ),
        (b'{"@id": "http://e/a" "p": 1}', GraphSyntax.JSON_LD, "malformed", (1, 22)),
        (b'{"@context": "http://e/c"}', GraphSyntax.JSON_LD, "remote-context", (0, 0)),
        (
            b'{"@context": {"@import": "http://e/c"}}',
            GraphSyntax.JSON_LD,
            "remote-context",
            (0, 0),
        ),
        (b'{"@id": "a", "http://e/p": 1}', GraphSyntax.JSON_LD, "relative-iri", (0, 0)),
    ],
)
def test_a_refusal_says_what_and_where(
    data: bytes, syntax: GraphSyntax, code: str, place: tuple[int, int]
) -> None:
    said = refusal(data, syntax)
    assert (said.code, (said.line, said.column)) == (code, place)
    assert said.reason and "Parser error" not in said.reason


MANY = b"".join(b"<http://e/a> <http://e/p> <http://e/%d> .\n" % n for n in range(100))


@pytest.mark.parametrize(
    ("data", "limits", "code"),
    [
        (MANY, GraphLimits(triples_max=99), "too-many-triples"),
        (MANY, GraphLimits(message=MessageLimits(bytes_max=1000)), "too-large"),
        (MANY, GraphLimits(message=MessageLimits(elements_max=101)), "too-many-elements"),
        (MANY, GraphLimits(message=MessageLimits(expansion_max=1200)), "entity-expansion"),
        (MANY.replace(b"/p", b"/p/a:"), GraphLimits(iri_bytes_max=11), "iri-too-long"),
        (
            b"<http://e/a> <http://e/p> 'ten bytes' .",
            GraphLimits(literal_bytes_max=8),
            "literal-too-long",
        ),
        (
            b"".join(b"<http://e/a> <http://e/%d/p> 1 .\n" % n for n in range(11)),
            GraphLimits(namespaces_max=10),
            "too-many-namespaces",
        ),
        (
            b"".join(b"<http://e/a> <http://e/p%d> 1 .\n" % n for n in range(11)),
            GraphLimits(message=MessageLimits(names_max=10)),
            "too-many-names",
        ),
    ],
)
def test_a_graph_beyond_a_bound_is_refused(data: bytes, limits: GraphLimits, code: str) -> None:
    assert refusal(data, limits=limits).code == code
    read_graph(data, GraphSyntax.TURTLE)


def test_what_repeats_a_long_iri_is_counted_as_often_as_it_is_written() -> None:
    data = b"@prefix : <http://e/%s> .\n" % (b"x" * 8000)
    data += b"".join(b"<urn:s:%d> <urn:p:p> :o .\n" % n for n in range(3000))
    assert refusal(data).code == "entity-expansion"


def test_deep_json_ld_is_refused_before_it_is_read() -> None:
    assert refusal(b"[" * 1_000_000, GraphSyntax.JSON_LD).code == "too-deep"
    assert refusal(b'{"a":' * 200_000, GraphSyntax.JSON_LD).code == "too-deep"
    assert refusal(b'"' + b'\\"' * 500_000, GraphSyntax.JSON_LD).code == "malformed"
    assert refusal(b" " * 1_048_577, GraphSyntax.JSON_LD).code == "too-large"
    nested = b'{"http://e/p":' * 60 + b"1" + b"}" * 60
    assert len(read_graph(nested, GraphSyntax.JSON_LD)) == 1 + 2 * 60
    in_a_string = b'{"http://e/p": "%s"}' % (b"[{" * 100)
    assert len(read_graph(in_a_string, GraphSyntax.JSON_LD)) == 3


def test_contexts_are_counted_however_they_are_written() -> None:
    inside = b",".join([b'{"\\u0040conte\\u0078t": {"a": "http://e/a"}, "a": 1}'] * 65)
    data = b'{"http://e/p": [%s]}' % inside
    assert refusal(data, GraphSyntax.JSON_LD).code == "too-many-contexts"


@pytest.mark.parametrize("rare", ["http://[::1]/last", "http://e/last"])
def test_long_json_ld_is_read_in_pieces_whatever_is_in_the_last(rare: str) -> None:
    members = [{"p": [number, f"line\\n{number}", {"p": number / 2}]} for number in range(2_000)]
    members += [{"@graph": [{"@id": "e:s", "p": "x" * 200_000}]}, {"@id": rare, "p": "é"}]
    data = json.dumps({"@context": {"p": "http://e/p", "e": "http://e/"}, "@graph": members})
    assert canonical_stream(read_graph(data.encode(), GraphSyntax.JSON_LD)) == canonical(
        pyoxigraph.parse(data, pyoxigraph.RdfFormat.JSON_LD)
    )


def test_an_iri_of_json_ld_that_is_too_long_is_refused_without_a_place() -> None:
    data = b'{"@context": {"e": "http://e/%s/"}, "@id": "e:x", "http://e/p": 1}' % (
        b"x" * 5_000_000
    )
    limits = GraphLimits(MessageLimits(bytes_max=6_000_000), json_bytes_max=6_000_000)
    said = refusal(data, GraphSyntax.JSON_LD, limits)
    assert (said.code, said.line) == ("iri-too-long", 0)


def test_a_bracket_too_many_is_refused_with_its_place() -> None:
    most = DEFAULT_GRAPH_LIMITS.depth_max
    for begin, end in ((b"(", b")"), (b"[ <http://e/p> ", b"]")):
        graph = b"<http://e/a> <http://e/p>\n"
        stream = read_graph(graph + begin * most + b"1" + end * most + b" .", GraphSyntax.TURTLE)
        assert len(stream) > most
        said = refusal(graph + b"'(' , " * 100 + begin * 50_000)
        assert (said.code, said.line) == ("too-deep", 2)
        assert said.column == 1 + 600 + most * len(begin)


def test_a_source_gives_the_context_of_its_messages() -> None:
    data = (
        b'{"@context": "https://schema.org/", "@id": "urn:x:a", "name": "n", "k": {"name": 1.50}}'
    )
    context = b'{"@context": {"@vocab": "http://schema.org/"}}'
    text = to_text(read_graph(data, GraphSyntax.JSON_LD, context=context))
    assert b'<schema:name v="n"/>' in text and b'n="1.5"' in text
    without = b'[{"@id": "urn:x:a", "name": "n"}, {"@id": "urn:x:b", "@context": [], "name": "n"}]'
    text = to_text(read_graph(without, GraphSyntax.JSON_LD, context=context))
    assert text.count(b"<schema:name") == 2
    own = b'{"@context": {"name": "http://mine/n"}, "@id": "urn:x:a", "name": 1}'
    text = to_text(read_graph(own, GraphSyntax.JSON_LD, context=context))
    assert b'xmlns:n1="http://mine/"' in text


@pytest.mark.parametrize("context", [b"[]", b"{", b'{"@context": "http://e/"}', b'{"a": 1}'])
def test_a_context_that_is_none_is_refused(context: bytes) -> None:
    assert refusal(b"{}", GraphSyntax.JSON_LD, context=context).code == "bad-context"


def test_syntaxes_are_known_by_media_type_and_by_file_name() -> None:
    assert by_media_type("Text/Turtle; charset=utf-8") is GraphSyntax.TURTLE
    assert by_media_type("application/xml") is None
    assert {by_media_type(each) for each in GraphSyntax} == set(GraphSyntax)
    assert by_file_name("A.TTL") is GraphSyntax.TURTLE
    assert by_file_name("a.jsonld") is GraphSyntax.JSON_LD
    assert by_file_name("ttl") is None


def many(form: bytes, count: int) -> bytes:
    return b",".join(form % number for number in range(count))


TERMS = many(b'"k%d": "http://e/k"', 5_000)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        # It took minutes: all terms were copied for each object.
        (
            b'{"@context": {%s, "t": {"@id": "e:t", "@context": {"z": "e:z"}}}, "t": [%s]}'
            % (TERMS, many(b'{"z": %d}', 5_000)),
            "too-many-contexts",
        ),
        (b'{"@context" : [%s]}' % many(b'{"k%d": "http://e/k"}', 5_000), "too-many-contexts"),
        # It killed the process: each term of a chain was one more call.
        (
            b'{"@context": {%s "a9": 1}}'
            % b"".join(b'"a%d": "a%d:x",' % (n, n + 1) for n in range(10, 7_000)),
            "too-deep",
        ),
        (
            b'{"@context": {%s "a9": 1}}'
            % b"".join(b'"a%d": {"@id": "a%d"},' % (n, n - 1) for n in range(10, 7_000)),
            "too-deep",
        ),
    ],
)
def test_contexts_are_bounded_by_what_they_may_cost(data: bytes, code: str) -> None:
    assert refusal(data, GraphSyntax.JSON_LD).code == code


def test_the_context_of_a_source_is_bounded_with_the_message() -> None:
    context = b'{"@context": {%s}}' % many(b'"k%d":"e:k"', 5_000)
    once = b'{"@context": "http://e/c", "@id": "urn:a", "k1": 1}'
    assert len(read_graph(once, GraphSyntax.JSON_LD, context=context)) == 3
    often = b'{"http://e/p": [%s]}' % b",".join([once] * 12)
    assert refusal(often, GraphSyntax.JSON_LD, context=context).code == "too-many-contexts"


def test_large_contexts_are_taken() -> None:
    words = many(b'"w%d": "e:w"', 1_900)
    data = b'{"@context": {"e": "http://e/", %s}, "e:p": [%s]}' % (
        words,
        many(b'{"w1": %d}', 1_900),
    )
    assert len(read_graph(data, GraphSyntax.JSON_LD)) == 2 + 3 * 1_900


def test_schema_org_is_a_graph() -> None:
    file = RDF_DATA / "schemaorg-30.0.ttl.gz"
    if not file.exists():
        pytest.skip("the shared data is not here")
    data = gzip.decompress(file.read_bytes())
    assert canonical_stream(read_graph(data, GraphSyntax.TURTLE)) == canonical(
        pyoxigraph.parse(data, pyoxigraph.RdfFormat.TURTLE)
    )
