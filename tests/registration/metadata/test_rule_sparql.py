"""Rules said as SPARQL: they match what SPARQL finds, or are refused."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyoxigraph
import pytest

from formats.graph.rdf_schema import RdfSchema, read_schema
from formats.graph.syntaxes import GraphSyntax
from formats.graph.vocabulary import RDF_TYPE
from onyx.metadata import MetadataCache, MetadataProvider
from registration.metadata.documents import Statement
from registration.metadata.rule_sparql import read_query, read_rule
from registration.metadata.rules import normal_text, parse_rule
from tests.registration.metadata.brute import matches
from tests.registration.metadata.random_metadata import (
    BASE,
    RandomDocuments,
    RandomRules,
    document_uri,
    n_triples,
    random_schema,
    schema_bytes,
)
from tests.registration.metadata.test_rules import EXAMPLE_1, NS, SCHEMA, SECTION_3_3
from yfilter.errors import ProfileRefused

PREFIXES = f"PREFIX : <{BASE}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
QUERIES = [
    "SELECT ?x { ?x a :A }",
    "SELECT ?x { ?x :b/:c ?c . ?c :size ?s FILTER(?s >= 1 && ?s < 4.5) }",
    "SELECT ?x { ?x :b/:price ?p . FILTER(2 < ?p) }",
    "SELECT ?x { ?x ^:b ?a ; a :B . ?a :number ?n FILTER(?n IN (1, 2, 3)) }",
    "SELECT DISTINCT ?x { ?x :number ?n FILTER(?n NOT IN (1, 2, 3)) }",
    "SELECT ?x { ?x :text ?t FILTER(!CONTAINS(?t, 'a') || STR(?t) = 'a') }",
    "SELECT ?x { ?x :texts ?t FILTER CONTAINS(?t, 'b') }",
    "SELECT ?x { ?x :any ?t FILTER(ISLITERAL(?t) && CONTAINS(STR(?t), '2')) }",
    "SELECT ?x { ?x :any ?t FILTER(?t > 3) }",
    "SELECT ?x { ?x :any ?t FILTER(ISNUMERIC(?t) && ?t != 3) }",
    "SELECT ?x { ?x :text 'a' }",
    "SELECT ?x { { ?x :numbers ?n FILTER(?n > 3) } UNION { ?x :b ?b . ?b :texts ?t } }",
    "SELECT ?x { ?x :bs|:b ?b . ?b :price ?p FILTER(?p = 1.5) ?b a :B1 }",
    "SELECT ?x { ?x :number ?n . ?y :b ?b . ?x :next ?y FILTER(!(?n > 3 && ?n < 5) && ?y != ?x) }",
    "SELECT ?x { ?x :number ?n ; :b/:price ?m FILTER(?n <= ?m) }",
    "SELECT ?x { ?x :b ?y ; :bs ?y }",
    "SELECT ?x { ?x :b ?y . ?z :b ?y ; :next ?x FILTER(?z != ?x) }",
    "SELECT ?x { ?x :b ?y ; :bs ?z FILTER(?y != ?z) }",
    "SELECT ?x { ?x :bs <http://documents.example/1.rdf#r1> }",
    "SELECT ?x { ?x :bs ?b FILTER(?b != <http://documents.example/1.rdf#r1>) }",
    "SELECT ?x { ?x a :A, :A1 FILTER(?x IN (<http://documents.example/1.rdf#r1>)) }",
    "SELECT ?x { ?x :a ?a { ?a :text ?t . ?x :label ?l FILTER(STR(?t) != STR(?l)) } }",
    "SELECT ?x { ?x :any ?b }",
    "SELECT ?x { VALUES ?t { :B :B1 } ?x a ?t }",
]  # fmt: skip

SEVERAL = [
    "SELECT ?n ?x { ?x :number ?n FILTER(?n > 2) }",
    "SELECT ?x ?t { ?x :numbers ?t }",
    "SELECT ?x ?b ?p { ?x :b ?b . ?b :price ?p }",
    "SELECT ?m ?p { ?x :bs ?m ; :bs/:price ?p }",
    "SELECT ?x ?b { ?x :bs ?b ; :b ?b }",
    "SELECT ?x ?n { { ?x :number ?n FILTER(?n > 3) } UNION { ?x :number ?n ; :b/:texts ?t } }",
    "SELECT DISTINCT ?x ?v ?z { ?x :b ?v . ?z :b ?v ; :next ?x }",
]


@pytest.fixture(scope="module")
def schema() -> RdfSchema:
    return read_schema(SCHEMA, GraphSyntax.TURTLE)


def with_all_above(statements: list[Statement], schema: RdfSchema) -> set[Statement]:
    """With the classes and properties above those that are said, as rules look at them."""
    found = set(statements)
    for each in statements:
        for above in schema.properties_above.get(each.property, ()):
            found.add(each._replace(property=above))
        if each.property == RDF_TYPE:
            found |= {each._replace(value=above) for above in schema.classes[each.value]}
    return found


@pytest.mark.parametrize("seed", range(100))
def test_rules_match_what_their_queries_find(seed: int) -> None:
    random, schema = Random(seed), random_schema()
    documents = RandomDocuments(random)
    statements = [each for number in range(6) for each in documents.document(number)]
    store = pyoxigraph.Store()
    whole = n_triples(with_all_above(statements, schema))
    store.load(whole, pyoxigraph.RdfFormat.N_TRIPLES)
    for query in QUERIES:
        rule = read_rule(PREFIXES + query, schema, {})
        found = {row[0].value for row in store.query(PREFIXES + query)}
        assert matches(rule, statements, schema) == found, query
        assert {row[0].value for row in store.query(rule.sparql)} == found, rule.sparql


@pytest.mark.parametrize("seed", range(4))
def test_queries_of_several_variables_find_what_sparql_does(seed: int, tmp_path: Path) -> None:
    documents = RandomDocuments(Random(seed))
    said = {document_uri(number): documents.document(number) for number in range(6)}
    statements = [each for of in said.values() for each in of]
    store = pyoxigraph.Store()
    whole = n_triples(with_all_above(statements, random_schema()))
    store.load(whole, pyoxigraph.RdfFormat.N_TRIPLES)
    texts = {uri: n_triples(of, has_blanks=True) for uri, of in said.items()}
    with MetadataProvider(tmp_path / "provider") as provider:
        provider.put_schema(schema_bytes(), "text/turtle")
        provider.add_rule("L1", "search A a register a")
        messages = provider.changes("L1")
    with MetadataCache(tmp_path / "cache", "L1") as cache:
        for message in messages:
            cache.apply(message)
        cache.register_local(texts, "application/n-triples")
        for query in SEVERAL:
            rows = {tuple(each.value for each in row) for row in store.query(PREFIXES + query)}
            assert {*map(told, cache.query(PREFIXES + query).rows)} == {*map(told, rows)}, query


def told(row: tuple[str, ...]) -> tuple[str | float, ...]:
    """Numbers by their values, as a store forgets how they were written."""
    return tuple(float(each) if each[0] in "+-.0123456789" else each for each in row)


@pytest.mark.parametrize(
    ("query", "code", "place"),
    [
        ("SELECT ?c ?t { ?c :tag ?t FILTER(?t != 'a') }", "several-values", "?t"),
        ("SELECT ?c ?t { ?c :serverHost ?h }", "unsupported", "?t"),
        ("SELECT ?c ?v { { ?c :serverHost ?v } UNION { ?c :serverPort ?v } }", "unsupported",
         "SELECT"),
    ],
)  # fmt: skip
def test_what_a_query_cannot_select_is_refused(
    schema: RdfSchema, query: str, code: str, place: str
) -> None:
    with pytest.raises(ProfileRefused) as refused:
        read_query(f"PREFIX : <{NS}>\n{query}", schema, {})
    assert refused.value.code == code, str(refused.value)
    assert query[refused.value.column - 1 :].startswith(place)


@pytest.mark.parametrize("seed", range(100))
def test_the_sparql_of_a_rule_is_the_rule(seed: int) -> None:
    """But for times, which SPARQL compares in words of its own."""
    random, schema = Random(seed), random_schema()
    documents = RandomDocuments(random)
    statements = [each for number in range(6) for each in documents.document(number)]
    made = RandomRules(random, documents.classes)
    for _ in range(20):
        rule = parse_rule(made.rule().text, schema, {})
        if "dateTime" not in rule.sparql and "|| ISNUMERIC" not in rule.sparql:
            again = read_rule(rule.sparql, schema, {})
            assert matches(again, statements, schema) == matches(rule, statements, schema)


def test_example_1_in_sparql_is_example_1(schema: RdfSchema) -> None:
    text = f"""PREFIX : <{NS}>
    SELECT ?c WHERE {{
      ?c a :CycleProvider ; :serverHost ?h ; :serverInformation ?s .
      ?s a :ServerInformation ; :memory ?m .
      FILTER(CONTAINS(STR(?h), 'uni-passau.de') && ?m > 64)
    }}"""
    rule = read_rule(text, schema, {})
    assert [normal_text(each, schema) for each in rule.alternatives] == [SECTION_3_3]
    assert rule.sparql == parse_rule(EXAMPLE_1, schema, {}).sparql
    assert rule.text == text
    assert read_rule(EXAMPLE_1, schema, {}) == parse_rule(EXAMPLE_1, schema, {})


def test_variables_get_names_that_rules_have(schema: RdfSchema) -> None:
    text = f"PREFIX : <{NS}> SELECT ?where {{ ?where :partner ?1 . ?1 :tag ?t }}"
    rule = read_rule(text, schema, {})
    normal = normal_text(rule.alternatives[0], schema)
    assert normal.partition(" where ")[2] == "v.partner? = v2 and v2.tag? = v2.tag?"
    assert parse_rule(normal, schema, {}).alternatives == rule.alternatives


def test_select_in_words_of_a_rule_is_no_sparql(schema: RdfSchema) -> None:
    with pytest.raises(ProfileRefused, match="expected 'search'"):
        read_rule("select CycleProvider c register c", schema, {})


@pytest.mark.parametrize(
    ("query", "code", "place"),
    [
        ("SELECT ?c ?s { ?c :partner ?s }", "unsupported", "SELECT"),
        ("ASK { ?c :partner ?s }", "syntax", "ASK"),
        ("SELECT ?c { ?c :partner ?s } LIMIT 5", "unsupported", "SELECT"),
        ("SELECT ?c { ?c :partner+ ?s }", "unsupported", "SELECT"),
        ("SELECT ?c { ?c a :CycleProvider OPTIONAL { ?c :tag ?t } }", "unsupported", "SELECT"),
        ("SELECT ?c { ?c ?p ?s }", "unsupported", "?c"),
        ("SELECT ?c { ?c a ?s }", "unsupported", "SELECT"),
        ("SELECT ?s { ?c :partner ?s }", "unsupported", "?s"),
        ("SELECT ?c { <urn:a> :partner ?c . ?c :tag ?t }", "unsupported", "{"),
        ("SELECT ?c { ?c a :CycleProvider . ?d :tag ?t }", "not-connected", "?d"),
        ("SELECT ?c { ?c a :Cycleprovider }", "unknown-class", "Cycleprovider"),
        ("SELECT ?c { ?c :Tag ?t }", "unknown-property", "Tag"),
        ("SELECT ?c { ?c :tag ?t FILTER(?t != 'a' && ?t != 'b') }", "several-values", "?t"),
        ("SELECT ?c { ?c :tag ?t FILTER(?t = 'a'@en) }", "range", "?c"),
        ("SELECT ?c { ?c :serverPort 5874 }", "range", "?c"),
        ("SELECT ?c { ?c :tag ?t . ?c :serverHost ?t }", "range", "?t"),
        ("SELECT ?c { ?c :tag ?t { ?c :serverPort ?p FILTER(?t = 'a') } }", "unsupported", "?t"),
        ("SELECT ?c { ?c :serverPort ?p FILTER(?p + 1 > 5) }", "unsupported", "SELECT"),
        ("SELECT ?c { ?c :serverPort ?p FILTER NOT EXISTS { ?c :tag ?t } }", "unsupported",
         "SELECT"),
        ("SELECT ?c { ?c :tag ?t FILTER(?u = 'a') }", "unsupported", "?u"),
        ("SELECT ?c { ?c :note ?n FILTER(?n != 3) }", "range", "?c"),
        ("SELECT ?c { ?c :serverPort 'x' }", "range", "?c"),
        ("SELECT ?c { ?c :tag ?t FILTER(?t IN ()) }", "unsupported", "SELECT"),
        ("SELECT ?c { VALUES ?t { :Mirror UNDEF } ?c a ?t }", "unsupported", "VALUES"),
        ("SELECT ?c { VALUES ?t { :Mirror } ?c a ?t . ?d a ?t ; :partner ?c }", "unsupported",
         "VALUES"),
        ("SELECT ?c { VALUES ?t { :Mirror } ?c a ?t FILTER(?t != :Mirror) }", "unsupported",
         "VALUES"),
        ("SELECT ?c { VALUES (?t ?u) { (:Mirror :Mirror) } ?c a ?t ; a ?u }", "unsupported",
         "VALUES"),
        ("SELECT ?c { ?c :tag ?t FILTER(ISNUMERIC(?t)) }", "range", "?t"),
    ],
)  # fmt: skip
def test_what_no_rule_says_is_refused(schema: RdfSchema, query: str, code: str, place: str) -> None:
    with pytest.raises(ProfileRefused) as refused:
        read_rule(f"PREFIX : <{NS}>\n{query}", schema, {})
    refusal = refused.value
    assert refusal.code == code, str(refusal)
    assert query[refusal.column - 1 :].startswith(place), str(refusal)
