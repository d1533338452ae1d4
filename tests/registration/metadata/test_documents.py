"""Documents of metadata: equal statements however they are written, and what is refused, where."""

from __future__ import annotations

import gzip
from random import Random

import pyoxigraph
import pytest
from hypothesis import given, settings
from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from formats import GraphSyntax, MessageRefused, read_graph, write_graph
from formats.graph.literal_forms import NO_VALUE, derived_value, value_kind
from formats.graph.rdf_schema import RdfSchema, read_schema
from formats.graph.vocabulary import RDF, RDF_TYPE, XSD
from formats.graph.writer import FORMATS
from registration.metadata.documents import (
    BLANK,
    DOCUMENT_BYTES_MAX,
    Statement,
    read_document,
)
from tests.formats.graph.support import NAMED_PROPERTIES, RDF_DATA, canonical, quads, w3c_tests

URI = "http://passau.example/doc.rdf"
S = "http://e/s#"
PREFIXES = f"""
    @prefix rdf: <{RDF}> .
    @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    @prefix owl: <http://www.w3.org/2002/07/owl#> .
    @prefix xsd: <{XSD}> .
    @prefix m: <urn:onyx:metadata:> .
    @prefix : <{S}> .
"""
SCHEMA = """
    :Provider a rdfs:Class . :CycleProvider rdfs:subClassOf :Provider .
    :ServerInformation a rdfs:Class .
    :serverHost a owl:FunctionalProperty ; rdfs:domain :Provider ; rdfs:range xsd:string .
    :serverPort rdfs:domain :CycleProvider ; rdfs:range xsd:int .
    :serverInformation a m:StrongReference ; rdfs:domain :CycleProvider ;
        rdfs:range :ServerInformation .
    :memory a owl:FunctionalProperty ; rdfs:domain :ServerInformation ; rdfs:range xsd:integer .
    :cpu rdfs:domain :ServerInformation ; rdfs:range xsd:double .
    :mainMemory rdfs:subPropertyOf :memory .
    :note a rdf:Property . :text rdfs:range rdfs:Literal . :name rdfs:range rdf:langString .
    :isUp rdfs:range xsd:boolean . :since rdfs:range xsd:dateTime .
"""


def schema_of(turtle: str, is_open: bool = False) -> RdfSchema:
    return read_schema((PREFIXES + turtle).encode(), GraphSyntax.TURTLE, is_open)


CLOSED, OPEN, EMPTY = schema_of(SCHEMA), schema_of(SCHEMA, is_open=True), schema_of("", True)
HEAD = f'<rdf:RDF xmlns:rdf="{RDF}" xmlns="{S}" xmlns:s="{S}">\n'
NESTED = """<CycleProvider rdf:ID="host">
  <serverHost>pirates.uni-passau.de</serverHost>
  <serverPort>5874</serverPort>
  <serverInformation>
    <ServerInformation rdf:ID="info" s:memory="92" s:cpu="600"/>
  </serverInformation>
</CycleProvider>"""
FLAT = """<rdf:Description rdf:ID="info">
  <cpu>600</cpu><memory>92</memory><rdf:type rdf:resource="http://e/s#ServerInformation"/>
</rdf:Description>
<CycleProvider rdf:about="#host">
  <serverPort>5874</serverPort>
  <serverHost>pirates.uni-passau.de</serverHost>
  <serverInformation rdf:resource="#info"/>
</CycleProvider>"""
PARTS = (
    """<CycleProvider rdf:ID="host">
      <serverHost>pirates.uni-passau.de</serverHost><serverPort>5874</serverPort>
      <serverInformation rdf:resource="#info"/>
    </CycleProvider>""",
    f'<ServerInformation rdf:about="{URI}#info" s:memory="92" s:cpu="600"/>',
)
FIGURE_1 = {
    Statement(f"{URI}#host", RDF_TYPE, S + "CycleProvider", "", ""),
    Statement(f"{URI}#host", S + "serverHost", "pirates.uni-passau.de", XSD + "string", ""),
    Statement(f"{URI}#host", S + "serverPort", "5874", XSD + "int", ""),
    Statement(f"{URI}#host", S + "serverInformation", f"{URI}#info", "", ""),
    Statement(f"{URI}#info", RDF_TYPE, S + "ServerInformation", "", ""),
    Statement(f"{URI}#info", S + "memory", "92", XSD + "integer", ""),
    Statement(f"{URI}#info", S + "cpu", "600", XSD + "double", ""),
}


def read_xml(body: str, uri: str = URI, schema: RdfSchema = CLOSED) -> list[Statement]:
    return read_document(uri, f"{HEAD}{body}</rdf:RDF>".encode(), GraphSyntax.RDF_XML, schema)


def read(turtle: str, schema: RdfSchema = CLOSED) -> list[Statement]:
    return read_document(URI, (PREFIXES + turtle).encode(), GraphSyntax.TURTLE, schema)


def test_figure_1_is_the_same_nested_flat_and_split() -> None:
    for body in (NESTED, FLAT):
        found = read_xml(body)
        assert set(found) == FIGURE_1
        assert len(found) == len(FIGURE_1)
    first, second = read_xml(PARTS[0]), read_xml(PARTS[1], "http://other.example/part")
    assert {*first, *second} == FIGURE_1


@pytest.mark.parametrize("syntax", GraphSyntax)
def test_every_syntax_says_the_same(syntax: GraphSyntax) -> None:
    data = f"{HEAD}{NESTED}</rdf:RDF>".encode()
    triples = [*pyoxigraph.parse(data, FORMATS[GraphSyntax.RDF_XML], base_iri=URI)]
    written = pyoxigraph.serialize(triples, format=FORMATS[syntax])
    assert written is not None
    assert set(read_document(URI, written, syntax, CLOSED)) == FIGURE_1


def test_blank_nodes_are_named_by_their_places() -> None:
    found = read("<#a> :note _:y . _:y :note _:x . _:x :text 'é'@DE, 'é' .")
    first, second = f"{URI}#_:0", f"{URI}#_:1"
    assert found == [
        Statement(f"{URI}#a", S + "note", first, "", ""),
        Statement(first, S + "note", second, "", ""),
        Statement(second, S + "text", "é", RDF + "langString", "de"),
        Statement(second, S + "text", "é", XSD + "string", ""),
    ]


def test_a_statement_that_is_written_twice_is_there_once() -> None:
    found = read("<#i> :memory '92', 92 ; :cpu '1', '1'^^xsd:double ; :mainMemory 92 .")
    assert [(each.property.removeprefix(S), each.value) for each in found] == [
        ("memory", "92"),
        ("cpu", "1"),
        ("mainMemory", "92"),
    ]


@pytest.mark.parametrize(
    "turtle",
    [
        ":serverHost 'a'^^xsd:token",
        ":cpu 600, 1.5, 'INF', '1e3'^^xsd:float",
        ":serverPort '12'^^xsd:byte, 13",
        ":note 'a', 1, <#b>, [], 'a'@en",
        ":text 'a', 1, 'a'@en, '2'^^<urn:own>",
        ":name 'a'@en",
        ":isUp true, '0', '1'^^xsd:boolean",
        ":since '2024-02-29T12:00:00', '2024-02-29T12:00:00Z'^^xsd:dateTimeStamp",
        ":memory 123456789012345678901",
        ":serverInformation <#x>",
    ],
)
def test_values_that_are_taken(turtle: str) -> None:
    assert read(f"<#a> {turtle} .")


@pytest.mark.parametrize(
    ("body", "code", "place", "reason", "hint"),
    [
        ("<CycleProvide/>", "unknown-class", (2, 1), "", f"did you mean {S}CycleProvider?"),
        (
            "<Provider rdf:about='a'>\n <rdf:type rdf:resource='http://e/X'/></Provider>",
            "unknown-class",
            (3, 2),
            "the schema has no class http://e/X",
            "",
        ),
        (
            "<CycleProvider>\n  <serverhost>a</serverhost></CycleProvider>",
            "unknown-property",
            (3, 3),
            f"the schema has no property {S}serverhost",
            f"did you mean {S}serverHost?",
        ),
        (
            "<CycleProvider>\n\n<serverInformation>x</serverInformation></CycleProvider>",
            "literal-for-reference",
            (4, 1),
            f"{S}serverInformation refers to a resource, and 'x' is a literal",
            "",
        ),
        (
            "<Provider/><Provider rdf:about='a'><serverHost rdf:resource='b'/></Provider>",
            "reference-for-literal",
            (2, 36),
            "http://passau.example/b is a resource",
            "",
        ),
        (
            "<Provider><serverPort>1</serverPort></Provider>",
            "wrong-domain",
            (2, 11),
            f"{S}serverPort belongs to a {S}CycleProvider, and {URI}#_:0 is a {S}Provider",
            "",
        ),
        (
            "<CycleProvider><serverInformation>\n<Provider/></serverInformation></CycleProvider>",
            "wrong-range",
            (2, 16),
            f"refers to a {S}ServerInformation, and {URI}#_:1 is a {S}Provider",
            "",
        ),
        (
            "<ServerInformation s:memory='1'>\n<mainMemory>2</mainMemory></ServerInformation>",
            "second-value",
            (3, 1),
            f"{S}memory has one value, and {URI}#_:0 has '1' and '2'",
            "",
        ),
        (
            "<ServerInformation>\n<memory>1.5</memory></ServerInformation>",
            "bad-form",
            (3, 1),
            f"'1.5' is no {XSD}integer",
            "",
        ),
        ("<Provider rdf:about='#_:0'/>", "blank-name", (2, 1), f"{URI}#_:0", ""),
        ("<Provider>", "malformed", (2, 13), "", ""),
        ("<Provider/>text", "rdf-syntax", (1, 1), "", ""),
    ],
)
def test_what_is_refused_in_rdf_xml(
    body: str, code: str, place: tuple[int, int], reason: str, hint: str
) -> None:
    with pytest.raises(MessageRefused) as caught:
        read_xml(body)
    fault = caught.value.fault
    assert (fault.code, fault.line, fault.column) == (code, *place)
    assert reason in fault.reason
    assert (fault.hint, fault.where) == (hint, URI)


@pytest.mark.parametrize(
    ("turtle", "code", "where"),
    [
        ("<#a> a :Nothing .", "unknown-class", f"{URI}#a {RDF_TYPE}"),
        ("<#a> a [] .", "unknown-class", f"{URI}#a {RDF_TYPE}"),
        ("<#a> a 'Provider' .", "literal-for-reference", f"{URI}#a {RDF_TYPE}"),
        ("<#a> <urn:p#9> 1 .", "unknown-property", f"{URI}#a urn:p#9"),
        ("<#a> rdfs:label 'a' .", "unknown-property", ""),
        ("<#a> :serverInformation 'a'@en .", "literal-for-reference", ""),
        ("<#a> :serverInformation 1 .", "literal-for-reference", ""),
        ("<#a> :memory [] .", "reference-for-literal", ""),
        ("<#a> :serverPort '3000000000' .", "bad-form", f"{URI}#a {S}serverPort"),
        ("<#a> :serverPort 3000000000 .", "wrong-range", ""),
        ("<#a> :serverPort 'x'^^xsd:int .", "bad-form", ""),
        ("<#a> :note '2024-02-30'^^xsd:date .", "bad-form", ""),
        ("<#a> :note 'yes'^^xsd:boolean .", "bad-form", ""),
        ("<#a> :isUp 'yes' .", "bad-form", ""),
        ("<#a> :name 'a' .", "bad-form", ""),
        ("<#a> :serverHost 'a'@en .", "wrong-range", ""),
        ("<#a> :serverHost 1 .", "wrong-range", ""),
        ("<#a> :since '2024-02-29'^^xsd:date .", "wrong-range", ""),
        ("<#a> :since 1 .", "wrong-range", ""),
        ("<#a> :memory 1 . <#a> :memory 01 .", "second-value", ""),
        ("<#a> :serverHost 'a', 'b' .", "second-value", ""),
        ("<#a> :serverInformation <#b> . <#b> a :Provider .", "wrong-range", ""),
        ("<#_:7> :note 1 .", "blank-name", f"{URI}#_:7"),
        ("<#a> :note", "malformed", ""),
    ],
)
def test_what_is_refused_in_other_syntaxes(turtle: str, code: str, where: str) -> None:
    with pytest.raises(MessageRefused) as caught:
        read(turtle)
    assert caught.value.code == code
    assert caught.value.fault.where.startswith(f"{URI}: " if code != "malformed" else URI)
    assert where in caught.value.fault.where


@pytest.mark.parametrize("uri", ["", "doc", "urn:a#b", "urn:a b", "http://e/<"])
def test_the_uri_of_a_document(uri: str) -> None:
    with pytest.raises(MessageRefused, match="fragment"):
        read_document(uri, b"", GraphSyntax.TURTLE, CLOSED)


def test_a_document_is_one_graph_of_at_most_four_mebibytes() -> None:
    with pytest.raises(MessageRefused) as caught:
        read_document(URI, b"<urn:a> <urn:p> <urn:b> <urn:g> .", GraphSyntax.N_QUADS, OPEN)
    assert (caught.value.code, caught.value.fault.where) == ("named-graph", URI)
    for more, code in ((0, ""), (1, "too-large")):
        data = b"#" * (DOCUMENT_BYTES_MAX + more)
        try:
            assert read_document(URI, data, GraphSyntax.TURTLE, CLOSED) == []
        except MessageRefused as refusal:
            assert refusal.code == code
        else:
            assert not code


def test_an_open_schema_takes_names_that_it_lacks() -> None:
    assert len(read("<#a> a :X, [] ; :x 1, <#b>, 'a'@en ; :serverPort 5 .", OPEN)) == 6
    assert read("<#a> :serverInformation <#b> . <#b> a :X .", OPEN)
    for turtle in ("<#a> :memory 1, 2 .", "<#a> a :Provider ; :serverPort 1 .", "<#a> :cpu 'x' ."):
        with pytest.raises(MessageRefused):
            read(turtle, OPEN)


def quads_of(statements: list[Statement]) -> list[Quad]:
    def node(name: str) -> NamedNode | BlankNode:
        document, blank, number = name.partition(BLANK)
        return BlankNode(f"b{number}") if blank and document else NamedNode(name)

    def thing(said: Statement) -> NamedNode | BlankNode | Literal:
        if not said.datatype:
            return node(said.value)
        if said.language:
            return Literal(said.value, language=said.language)
        return Literal(said.value, datatype=NamedNode(said.datatype))

    return [Quad(node(each.subject), NamedNode(each.property), thing(each)) for each in statements]


def test_the_w3c_s_documents_are_read_as_it_says() -> None:
    tests = [each for each in w3c_tests() if each.syntax is GraphSyntax.RDF_XML]
    if not tests:
        pytest.skip("the shared data is not here")
    taken = 0
    for test in tests:
        assert test.base is not None
        try:
            found = read_document(test.base, test.data, test.syntax, EMPTY)
        except MessageRefused as refusal:
            has_bad_form = test.name == "rdf-xml/datatypes-test002"  # "flargh"^^xsd:integer
            assert has_bad_form == (refusal.code == "bad-form"), test.name
            assert has_bad_form or not test.good, test.name
            continue
        assert test.good, test.name
        assert test.expected is not None
        triples = pyoxigraph.parse(test.expected, FORMATS[GraphSyntax.N_TRIPLES])
        assert canonical(quads_of(found)) == canonical(triples), test.name
        assert len(set(found)) == len(found)
        taken += 1
    assert taken == 125


@pytest.mark.parametrize("folder", ["dcat", "grid"])
def test_real_documents_are_read_as_pyoxigraph_reads_them(folder: str) -> None:
    files = sorted((RDF_DATA / folder).glob("*.*"))
    if not files:
        pytest.skip("the shared data is not here")
    for file in files:
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        syntax = GraphSyntax.TURTLE if file.suffix == ".ttl" else GraphSyntax.RDF_XML
        triples = [*pyoxigraph.parse(data, FORMATS[syntax], base_iri=URI)]
        assert canonical(quads_of(read_document(URI, data, syntax, EMPTY))) == canonical(triples)


def wrong(triples: list[Quad]) -> set[str]:
    """The codes for what no schema takes."""
    codes = set()
    for _, predicate, thing, _ in triples:
        if isinstance(thing, Literal):
            datatype = thing.datatype.value
            kind = value_kind(datatype.encode())
            is_boolean = datatype == XSD + "boolean"
            if (kind != NO_VALUE and not derived_value(thing.value.encode(), kind)) or (
                is_boolean and thing.value not in ("true", "false", "0", "1")
            ):
                codes.add("bad-form")
            if predicate.value == RDF_TYPE:
                codes.add("literal-for-reference")
    return codes


@pytest.mark.parametrize("syntax", GraphSyntax)
@settings(derandomize=True, deadline=None)
@given(triples=quads(named=False, properties=NAMED_PROPERTIES))
def test_random_graphs_are_read_as_they_are(syntax: GraphSyntax, triples: list[Quad]) -> None:
    turtle = pyoxigraph.serialize(triples, format=FORMATS[GraphSyntax.TURTLE])
    assert turtle is not None
    data = write_graph(read_graph(turtle, GraphSyntax.TURTLE), syntax)
    codes = wrong(triples)
    try:
        found = read_document(URI, data, syntax, EMPTY)
    except MessageRefused as refusal:
        assert refusal.code in codes
        assert syntax is not GraphSyntax.RDF_XML or refusal.line > 0
    else:
        assert not codes
        assert canonical(quads_of(found)) == canonical(triples)


THINGS: list[int | str] = [1, 2, "a", "b", "c"]


def random_schema(random: Random) -> tuple[dict[int, int], list[dict[str, object]], str]:
    """What is next above each class, what is said of each property, and both in Turtle."""
    classes = {number: random.randrange(-1, number) for number in range(5)}
    properties: list[dict[str, object]] = []
    turtle = ""
    for number, above in classes.items():
        turtle += f":C{number} a rdfs:Class {f'; rdfs:subClassOf :C{above}' * (above >= 0)} .\n"
    for number in range(6):
        above = random.randrange(-1, number)
        said: dict[str, object] = {"above": above, "single": random.random() < 0.4}
        said["domain"] = random.choice([None, None, *classes])
        said["range"] = random.choice([None, "literal", *classes])
        if above >= 0:  # of the same kind, whatever the class
            said["range"] = random.choice([None, properties[above]["range"]])
        properties.append(said)
        turtle += f":p{number} a rdf:Property"
        turtle += f"; rdfs:subPropertyOf :p{above}" * (above >= 0)
        turtle += "; a owl:FunctionalProperty" * bool(said["single"])
        turtle += f"; rdfs:domain :C{said['domain']}" * (said["domain"] is not None)
        if said["range"] is not None:
            name = "xsd:integer" if said["range"] == "literal" else f":C{said['range']}"
            turtle += f"; rdfs:range {name}"
        turtle += " .\n"
    return classes, properties, turtle


def faults(
    classes: dict[int, int],
    properties: list[dict[str, object]],
    triples: set[tuple[str, int, str | int]],
    types: set[tuple[str, int]],
) -> set[str]:
    """The codes of all that is wrong in a document, by loops."""

    def up(number: int, above: dict[int, int]) -> list[int]:
        return [number, *up(above.get(number, -1), above)] if number >= 0 else []

    higher = {number: int(str(said["above"])) for number, said in enumerate(properties)}

    def inherited(number: int, word: str) -> object:
        found = (properties[each][word] for each in up(number, higher))
        return next((each for each in found if each is not None), None)

    def fits(resource: str, wanted: object) -> bool:
        own = [number for about, number in types if about == resource]
        return not own or any(wanted in up(number, classes) for number in own)

    codes = {"unknown-class" for _, number in types if number not in classes}
    for subject, number, thing in triples:
        if number >= len(properties):
            codes.add("unknown-property")
            continue
        wanted, domain = inherited(number, "range"), inherited(number, "domain")
        if isinstance(thing, int) and wanted not in (None, "literal"):
            codes.add("literal-for-reference")
        if isinstance(thing, str) and wanted == "literal":
            codes.add("reference-for-literal")
        if isinstance(thing, str) and isinstance(wanted, int) and not fits(thing, wanted):
            codes.add("wrong-range")
        if domain is not None and not fits(subject, domain):
            codes.add("wrong-domain")
        for single in up(number, higher):
            same = {t for s, p, t in triples if s == subject and single in up(p, higher)}
            if properties[single]["single"] and len(same) > 1:
                codes.add("second-value")
    return codes


@pytest.mark.parametrize("seed", range(200))
def test_a_random_document_conforms_if_loops_find_nothing(seed: int) -> None:
    random = Random(seed)
    classes, properties, turtle = random_schema(random)
    schema = schema_of(turtle)
    for _ in range(20):
        names = [*range(6), *([6] * (random.random() < 0.1))]
        triples: set[tuple[str, int, str | int]] = {
            (random.choice("abc"), random.choice(names), random.choice(THINGS))
            for _ in range(random.randrange(4))
        }
        kinds = [*classes, *([7] * (random.random() < 0.1))]
        types = {(random.choice("abc"), random.choice(kinds)) for _ in range(random.randrange(3))}
        lines = [f"<#{about}> a :C{number} ." for about, number in types]
        for subject, number, thing in triples:
            lines.append(
                f"<#{subject}> :p{number} {thing if isinstance(thing, int) else f'<#{thing}>'} ."
            )
        random.shuffle(lines)
        expected = faults(classes, properties, triples, types)
        try:
            found = read("\n".join(lines), schema)
        except MessageRefused as refusal:
            assert refusal.code in expected, (turtle, lines, refusal)
        else:
            assert not expected, (turtle, lines)
            assert len(found) == len(lines)
