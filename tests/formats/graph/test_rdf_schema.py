"""Schemas of metadata: what counts of a graph, what is inherited, what is refused, and names."""

from __future__ import annotations

import gzip
from random import Random

import pytest

from formats.errors import MessageRefused, Refusal, SchemaRefused
from formats.graph.rdf_schema import LITERAL, Property, RdfSchema, UnknownName, read_schema
from formats.graph.syntaxes import GraphSyntax
from formats.graph.vocabulary import RDFS, XSD
from tests.formats.support import SHARED_DATA

SCHEMA_ORG = SHARED_DATA / "rdf" / "schemaorg-30.0.ttl.gz"
PREFIXES = """
    @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
    @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    @prefix owl: <http://www.w3.org/2002/07/owl#> .
    @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
    @prefix m: <urn:onyx:metadata:> .
    @prefix : <urn:t:> .
"""
PAPER = """
    :Provider a rdfs:Class .
    :CycleProvider rdfs:subClassOf :Provider .
    :ServerInformation a owl:Class .
    :serverHost a owl:FunctionalProperty ; rdfs:domain :Provider ; rdfs:range xsd:string .
    :serverInformation a m:StrongReference ;
        rdfs:domain :CycleProvider ; rdfs:range :ServerInformation .
    :memory rdfs:domain :ServerInformation ; rdfs:range xsd:integer .
"""


def read(turtle: str, is_open: bool = False) -> RdfSchema:
    return read_schema((PREFIXES + turtle).encode(), GraphSyntax.TURTLE, is_open)


def iri(name: str) -> str:
    return f"urn:t:{name}"


def test_classes_and_properties() -> None:
    schema = read(PAPER)
    assert schema.classes == {
        iri("Provider"): (),
        iri("ServerInformation"): (),
        iri("CycleProvider"): (iri("Provider"),),
    }
    assert schema.properties == {
        each.name: each
        for each in (
            Property(iri("serverHost"), (iri("Provider"),), XSD + "string", is_single=True),
            Property(
                iri("serverInformation"),
                (iri("CycleProvider"),),
                iri("ServerInformation"),
                is_reference=True,
                is_strong=True,
            ),
            Property(iri("memory"), (iri("ServerInformation"),), XSD + "integer"),
        )
    }
    assert schema.below(iri("Provider")) == {iri("Provider"), iri("CycleProvider")}
    assert schema.below(iri("Other")) == {iri("Other")}
    assert not schema.is_open


def test_rdf_xml_says_the_same() -> None:
    document = b"""
        <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
                 xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#" xml:base="urn:t:x">
          <rdfs:Class rdf:about="urn:t:A"/>
          <rdf:Property rdf:about="urn:t:p">
            <rdfs:range rdf:resource="urn:t:A"/>
          </rdf:Property>
        </rdf:RDF>"""
    found = read_schema(document, GraphSyntax.RDF_XML)
    same = read(":A a rdfs:Class . :p rdfs:range :A .")
    assert (found.classes, found.properties) == (same.classes, same.properties)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("a rdf:Property", Property(iri("p"))),
        ("rdfs:range rdfs:Resource ; rdfs:domain owl:Thing", Property(iri("p"))),
        ("a owl:DatatypeProperty", Property(iri("p"), range=LITERAL)),
        ("a owl:ObjectProperty", Property(iri("p"), is_reference=True)),
        ("a m:WeakReference", Property(iri("p"), is_reference=True)),
        ("rdfs:range :Colour", Property(iri("p"), range=iri("Colour"))),
        ("rdfs:range :A, :B", Property(iri("p"), range=iri("B"), is_reference=True)),
        ("rdfs:range xsd:int, rdfs:Literal", Property(iri("p"), range=XSD + "int")),
        ("rdfs:range [ a owl:Class ], 'A'", Property(iri("p"))),
    ],
)
def test_the_values_of_a_property(said: str, expected: Property) -> None:
    schema = read(f"""
        :A a rdfs:Class . :B rdfs:subClassOf :A . :Colour a rdfs:Datatype, rdfs:Class .
        :p a rdf:Property ; {said} .
    """)
    assert schema.properties[iri("p")] == expected


def test_what_a_property_inherits() -> None:
    schema = read("""
        :A a rdfs:Class . :B a rdfs:Class .
        :top a owl:FunctionalProperty, m:StrongReference ; rdfs:domain :A ; rdfs:range :A .
        :middle rdfs:subPropertyOf :top ; rdfs:range :B .
        :low rdfs:subPropertyOf :middle .
        :size rdfs:range xsd:int . :height a owl:DatatypeProperty ; rdfs:subPropertyOf :size .
    """)
    assert schema.properties[iri("height")].range == XSD + "int"
    assert schema.properties_above[iri("low")] == (iri("middle"), iri("top"))
    low = Property(iri("low"), (iri("A"),), iri("B"), True, True, True)
    assert schema.properties[iri("low")] == low
    assert schema.below(iri("top")) == {iri("top"), iri("middle"), iri("low")}


@pytest.mark.parametrize(
    ("turtle", "code", "reason"),
    [
        (":A rdfs:subClassOf :B . :B rdfs:subClassOf :A .", "taxonomy-cycle", "urn:t:A → urn:t:B"),
        (":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :p .", "taxonomy-cycle", "urn:t:p"),
        (":Server a rdfs:Class . :p rdfs:range :Sever .", "unknown-class", "is urn:t:Sever, which"),
        (":p rdfs:domain xsd:string .", "unknown-class", "the domain of urn:t:p"),
        (":A a rdfs:Class . :p rdfs:range :A, xsd:int .", "several-ranges", "has the ranges"),
        (":p rdfs:range xsd:date ; a m:StrongReference .", "range-conflict", "literals"),
        (
            ":A a rdfs:Class . :p rdfs:range :A . :q rdfs:subPropertyOf :p ; rdfs:range xsd:int .",
            "range-conflict",
            "urn:t:p has resources as its values, and urn:t:q literals",
        ),
        (":p a m:StrongReference, m:WeakReference .", "strong-and-weak", "urn:t:p"),
        (":p a", "malformed", ""),
    ],
)
def test_a_schema_is_refused(turtle: str, code: str, reason: str) -> None:
    with pytest.raises((SchemaRefused, MessageRefused)) as caught:
        read(turtle)
    assert caught.value.code == code
    assert reason in caught.value.reason
    assert caught.value.hint == ("did you mean urn:t:Server?" if "Sever" in reason else "")


def test_a_schema_has_no_named_graphs() -> None:
    with pytest.raises(SchemaRefused, match="named"):
        read_schema(b"<urn:a> <urn:b> <urn:c> <urn:g> .", GraphSyntax.N_QUADS)


def test_an_open_schema_takes_names_that_it_lacks() -> None:
    schema = read(":p rdfs:domain :A ; rdfs:range :B .", is_open=True)
    assert schema.properties[iri("p")] == Property(iri("p"), (iri("A"),), iri("B"), True)
    assert set(schema.classes) == {iri("A"), iri("B")}
    assert schema.find("class", "http://e/C", {}) == "http://e/C"
    assert schema.find("property", "e:q", {"e": "http://e/"}) == "http://e/q"
    for name in ("C", "e:C"):
        with pytest.raises(UnknownName):
            schema.find("class", name, {})


NAMES = """
    :Server a rdfs:Class . <http://e/Server> a rdfs:Class . <http://e/v#Disk> a rdfs:Class .
    :memory a rdf:Property .
"""


@pytest.mark.parametrize("name", ["Disk", "http://e/v#Disk", "v:Disk"])
def test_a_name_is_found(name: str) -> None:
    assert read(NAMES).find("class", name, {"v": "http://e/v#"}) == "http://e/v#Disk"


@pytest.mark.parametrize(
    ("name", "reason", "hint"),
    [
        (
            "Server",
            "more than one class is named Server",
            "write <urn:t:Server> or <http://e/Server>",
        ),
        ("disc", "the schema has no class disc", "did you mean http://e/v#Disk?"),
        ("w:Disk", "the prefix w is not declared", ""),
        ("vv:Disk", "the prefix vv is not declared", "did you mean v?"),
        (
            "v:Server",
            "the schema has no class http://e/v#Server",
            "did you mean urn:t:Server or http://e/Server?",
        ),
        ("memory", "the schema has no class memory", ""),
    ],
)
def test_an_unknown_name_is_refused_with_what_was_meant(name: str, reason: str, hint: str) -> None:
    with pytest.raises(UnknownName) as caught:
        read(NAMES).find("class", name, {"v": "http://e/v#"})
    assert (caught.value.reason, caught.value.hint) == (reason, hint)
    assert isinstance(caught.value, Refusal)
    assert read(NAMES).find("property", "memory", {}) == iri("memory")


@pytest.mark.parametrize("seed", range(20))
def test_what_is_above_is_what_another_reasoner_finds(seed: int) -> None:
    rdflib, owlrl = pytest.importorskip("rdflib"), pytest.importorskip("owlrl")
    random = Random(seed)
    lines = []
    for kind, word in (("C", "subClassOf"), ("p", "subPropertyOf")):
        for number in range(1, 12):
            for above in random.sample(range(number), min(number, random.randrange(3))):
                lines.append(f":{kind}{number} rdfs:{word} :{kind}{above} .")
    turtle = "\n".join(lines)
    schema = read(turtle)
    graph = rdflib.Graph().parse(data=PREFIXES + turtle, format="turtle")
    owlrl.DeductiveClosure(owlrl.RDFS_Semantics).expand(graph)
    for table, word in (
        (schema.classes, "subClassOf"),
        (schema.properties_above, "subPropertyOf"),
    ):
        for name, higher in table.items():
            found = map(str, graph.objects(rdflib.URIRef(name), rdflib.URIRef(RDFS + word)))
            expected = {each for each in found if each.startswith("urn:t:")} - {name}
            assert set(higher) == expected
            assert len(higher) == len(expected)
            assert all(name in schema.below(each) for each in (name, *higher))


def test_a_large_schema_is_read() -> None:
    if not SCHEMA_ORG.exists():
        pytest.skip("the shared data is not here")
    schema = read_schema(gzip.decompress(SCHEMA_ORG.read_bytes()), GraphSyntax.TURTLE)
    thing = schema.find("class", "Thing", {})
    assert len(schema.below(thing)) > 800
    assert schema.find("property", "s:author", {"s": "https://schema.org/"}) in schema.properties
