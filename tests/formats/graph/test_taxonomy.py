"""Taxonomies: what counts of a graph, cycles, bounds; and what is above, held against owlrl."""

from __future__ import annotations

import gzip
from random import Random

import pytest

from formats.element_stream import ElementStream
from formats.errors import MessageRefused
from formats.graph import striped
from formats.graph.closure import TaxonomyClosure
from formats.graph.reader import read_graph
from formats.graph.syntaxes import GraphSyntax
from formats.graph.taxonomy import (
    Taxonomy,
    TaxonomyLimits,
    check_taxonomy,
    read_taxonomy,
    union,
)
from tests.formats.support import SHARED_DATA

SCHEMA_ORG = SHARED_DATA / "rdf" / "schemaorg-30.0.ttl.gz"
PREFIXES = """
    @prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
    @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    @prefix : <urn:t:> .
"""


def read(turtle: str, **limits: int) -> Taxonomy:
    return read_taxonomy((PREFIXES + turtle).encode(), GraphSyntax.TURTLE, TaxonomyLimits(**limits))


def iri(*names: str) -> tuple[bytes, ...]:
    return tuple(f"urn:t:{name}".encode() for name in names)


def test_classes_properties_and_instances_count_and_nothing_else() -> None:
    taxonomy = read("""
        :Cat rdfs:subClassOf :Animal, :Pet, [], "text" ; rdfs:label "cat" .
        [] rdfs:subClassOf :Animal .
        :author rdfs:subPropertyOf :contributor ; rdfs:domain :Work .
        :tom a :Cat, :Film .
    """)
    assert taxonomy == Taxonomy(
        classes={b"urn:t:Cat": iri("Animal", "Pet")},
        properties={b"urn:t:author": iri("contributor")},
        instances={b"urn:t:tom": iri("Cat", "Film")},
    )
    assert Taxonomy.from_bytes(taxonomy.to_bytes()).to_bytes() == taxonomy.to_bytes()


def test_rdf_xml_says_the_same() -> None:
    document = b"""
        <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
                 xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#" xml:base="urn:t:x">
          <rdf:Description rdf:about="urn:t:Cat">
            <rdfs:subClassOf rdf:resource="urn:t:Animal"/>
          </rdf:Description>
        </rdf:RDF>"""
    assert read_taxonomy(document, GraphSyntax.RDF_XML) == read(":Cat rdfs:subClassOf :Animal .")


def test_a_cycle_is_spelled_out() -> None:
    turtle = ":A rdfs:subClassOf :B . :B rdfs:subClassOf :C, :D . :D rdfs:subClassOf :B ."
    with pytest.raises(MessageRefused, match="urn:t:B → urn:t:D → urn:t:B") as refused:
        read(turtle)
    assert refused.value.code == "taxonomy-cycle"
    with pytest.raises(MessageRefused, match="urn:t:p → urn:t:q → urn:t:p"):
        read(":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :p .")


def test_what_is_below_itself_says_nothing() -> None:
    assert not read(":A rdfs:subClassOf :A .")


def test_two_that_have_no_cycle_may_have_one_together() -> None:
    one, other = read(":A rdfs:subClassOf :B ."), read(":B rdfs:subClassOf :A .")
    with pytest.raises(MessageRefused, match="urn:t:A → urn:t:B → urn:t:A"):
        check_taxonomy(union([one, other]))
    assert union([one, one, Taxonomy()]) == one


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        ({"terms_max": 4}, "too-many-classes"),
        ({"above_max": 3}, "too-many-above"),
        ({"closure_max": 9}, "closure-too-large"),
    ],
)
def test_what_is_beyond_a_bound_is_refused(limits: dict[str, int], code: str) -> None:
    chain = "".join(f":C{n} rdfs:subClassOf :C{n + 1} ." for n in range(4))
    read(chain, terms_max=5, above_max=4, closure_max=10)
    with pytest.raises(MessageRefused) as refused:
        read(chain, **limits)
    assert refused.value.code == code


def test_a_long_chain_is_walked_without_recursion() -> None:
    chain = Taxonomy(classes={b"%d" % n: (b"%d" % (n + 1),) for n in range(50_000)})
    with pytest.raises(MessageRefused) as refused:
        check_taxonomy(chain)
    assert refused.value.code == "too-many-above"


def test_a_subject_is_what_is_stated_what_is_listed_and_what_is_above() -> None:
    closure = TaxonomyClosure(
        read("""
            :Cat rdfs:subClassOf :Pet, :Animal . :Pet rdfs:subClassOf :Thing .
            :Animal rdfs:subClassOf :Thing . :tom a :Film . :Film rdfs:subClassOf :Work .
            :author rdfs:subPropertyOf :contributor . :contributor rdfs:subPropertyOf :agent .
        """)
    )
    assert closure.classes(b"", iri("Cat")) == list(iri("Cat", "Pet", "Animal", "Thing"))
    assert closure.classes(b"urn:t:tom", iri("Pet")) == list(iri("Pet", "Thing", "Film", "Work"))
    assert closure.classes(b"urn:t:tim", ()) == []
    assert closure.properties_above(b"urn:t:author") == list(iri("contributor", "agent"))
    assert closure.properties_above(b"urn:t:agent") == []
    assert closure.classes_above(b"urn:t:Cat") == list(iri("Pet", "Animal", "Thing"))
    assert not closure.classes_above(b"urn:t:Thing") and not closure.classes_above(b"urn:t:tom")
    assert closure.listed(b"urn:t:tom") == iri("Film") and not closure.listed(b"urn:t:Cat")


@pytest.mark.parametrize("seed", range(12))
def test_what_is_above_is_what_owlrl_says(seed: int) -> None:
    rdflib, owlrl = pytest.importorskip("rdflib"), pytest.importorskip("owlrl")
    random = Random(seed)
    names = [f"C{n}" for n in range(14)]
    edges = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :] if random.random() < 0.2]
    turtle = "".join(
        f":{a} rdfs:subClassOf :{b} . :p{a} rdfs:subPropertyOf :p{b} ." for a, b in edges
    )
    typed = {f"i{n}": random.sample(names, 2) for n in range(4)}
    turtle += "".join(f":{i} a :{a}, :{b} ." for i, (a, b) in typed.items())
    graph = rdflib.Graph().parse(data=PREFIXES + turtle, format="turtle")
    owlrl.DeductiveClosure(owlrl.RDFS_Semantics).expand(graph)
    closure = TaxonomyClosure(read(turtle))

    def said(subject: str, name: object) -> set[str]:
        found = graph.objects(rdflib.URIRef(f"urn:t:{subject}"), name)
        return {str(each) for each in found if str(each).startswith("urn:t:")}

    for instance in typed:
        mine = closure.classes(*iri(instance), ())
        assert set(map(bytes.decode, mine)) == said(instance, rdflib.RDF.type)
    for name in names:
        mine = closure.classes(b"", iri(name))
        assert set(map(bytes.decode, mine)) - {f"urn:t:{name}"} == said(
            name, rdflib.RDFS.subClassOf
        ) - {f"urn:t:{name}"}
        above = closure.properties_above(*iri(f"p{name}"))
        assert set(map(bytes.decode, above)) == said(f"p{name}", rdflib.RDFS.subPropertyOf) - {
            f"urn:t:p{name}"
        }


def striped_classes(stream: ElementStream) -> dict[str, set[str]]:
    """The classes below CLOSURE, by IRI of the subject."""
    found: dict[str, set[str]] = {}
    for subject in stream.children_of(0):
        said = values(stream, subject)
        for closed in children(stream, subject, striped.CLOSURE):
            classes = (values(stream, each) for each in children(stream, closed, striped.CLASS))
            found[said[striped.IRI_SUBJECT]] = {each[striped.IRI_OBJECT] for each in classes}
    return found


def children(stream: ElementStream, element: int, local: str) -> list[int]:
    return [each for each in stream.children_of(element) if stream.name_of(each).local == local]


def values(stream: ElementStream, element: int) -> dict[str, str]:
    return {
        stream.names[stream.attribute_name[each]].local: stream.attribute_value(each)
        for each in stream.attributes_of(element)
    }


@pytest.mark.parametrize("seed", range(12))
def test_a_striped_graph_is_closed_as_owlrl_closes_it(seed: int) -> None:
    rdflib, owlrl = pytest.importorskip("rdflib"), pytest.importorskip("owlrl")
    random = Random(seed)
    classes = [f"C{n}" for n in range(8)]
    taxonomy = "".join(
        f":{a} rdfs:subClassOf :{b} ."
        for place, a in enumerate(classes)
        for b in classes[place + 1 :]
        if random.random() < 0.3
    ) + "".join(f":i{n} a :{random.choice(classes)} ." for n in range(3))
    graph = "".join(
        f":i{random.randrange(6)} :p{random.randrange(2)} :i{random.randrange(6)} ."
        for _ in range(6)
    ) + "".join(f":i{random.randrange(6)} a :{random.choice(classes)} ." for _ in range(4))
    closure = TaxonomyClosure(read(taxonomy))
    stream = read_graph((PREFIXES + graph).encode(), GraphSyntax.TURTLE, closure=closure)

    plain = rdflib.Graph().parse(data=PREFIXES + graph, format="turtle")
    nodes = {*plain.subjects(), *(each for each in plain.objects() if "urn:t:i" in each)}
    plain.parse(data=PREFIXES + taxonomy, format="turtle")
    owlrl.DeductiveClosure(owlrl.RDFS_Semantics).expand(plain)
    expected = {
        str(node): {str(each) for each in plain.objects(node, rdflib.RDF.type) if "urn:t:C" in each}
        for node in nodes
    }
    assert striped_classes(stream) == {node: found for node, found in expected.items() if found}


def test_properties_above_say_what_a_property_says() -> None:
    closure = TaxonomyClosure(read(":author rdfs:subPropertyOf :agent ."))
    graph = PREFIXES + ':a :author "Ann", :b ; :title "x" .'
    stream = read_graph(graph.encode(), GraphSyntax.TURTLE, closure=closure)
    (subject,) = stream.children_of(0)
    (closed,) = children(stream, subject, striped.CLOSURE)
    assert [values(stream, each) for each in stream.children_of(closed)] == [
        {striped.PROPERTY_IRI: "urn:t:agent", striped.STRING: "Ann"},
        {striped.PROPERTY_IRI: "urn:t:agent", striped.IRI_OBJECT: "urn:t:b"},
    ]


@pytest.mark.skipif(not SCHEMA_ORG.exists(), reason="schema.org lies outside of the repository")
def test_schema_org_is_read_whole() -> None:
    taxonomy = read_taxonomy(gzip.decompress(SCHEMA_ORG.read_bytes()), GraphSyntax.TURTLE)
    assert taxonomy.sizes() == {"classes": 962, "properties": 268, "instances": 3235}
    classes = TaxonomyClosure(taxonomy).classes(b"", [b"https://schema.org/Hospital"])
    names = {each.decode().removeprefix("https://schema.org/") for each in classes}
    assert names >= {"Hospital", "LocalBusiness", "Organization", "Place", "Thing"}
