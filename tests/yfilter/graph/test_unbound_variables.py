"""Variables that no pattern of a query gives a value: valid in SPARQL, unbound in each solution."""

from __future__ import annotations

import pyoxigraph
import pytest

from formats.graph.reader import read_graph
from formats.graph.syntaxes import GraphSyntax
from tests.oracle.reference import ReferenceMatcher
from tests.yfilter.graph.solution_sets import (
    are_equal,
    solutions_of_json,
    solutions_of_oxigraph,
)
from yfilter import Matcher
from yfilter.graph.graph_query import parse_graph_query, unbound_variables
from yfilter.graph.query_text import unparse
from yfilter.language.query_parser import parse_profile

DATA = b"""@prefix : <urn:x:> .
:a :name "A" ; :size 3 . :b :name "B" ; :size 5 ; :nick "bee" . :c :nick "sea" ; :of :a .
"""
P = "PREFIX : <urn:x:> "
PATTERN = "?s :name ?n"
CONDITIONS = (
    *("?no = 1", "!bound(?no)", "bound(?no)", "?no != ?n", "!(?no = 1)", "?no > 1 || ?n = 'A'"),
    *("?no = 1 && ?n = 'A'", "coalesce(?no, ?n) = 'B'", "if(bound(?no), false, ?n = 'A')"),
    *("?n IN ('A', ?no)", "?n NOT IN ('A', ?no)", "isIRI(?no)", "contains(?n, ?no)", "?no + 1 = 2"),
    *("sameTerm(?no, ?no)", "lang(?no) = ''", "regex(?n, ?no)", "str(?no) = ''", "?no"),
    *("EXISTS { ?s :size ?z FILTER(?z > ?no) }", "NOT EXISTS { ?s :size ?z FILTER(?z > ?no) }"),
    *("EXISTS { ?no :of ?s }", "NOT EXISTS { ?no :of ?s }"),
)
QUERIES = (
    *(f"SELECT * {{ {PATTERN} FILTER({each}) }}" for each in CONDITIONS if "EXISTS" not in each),
    *(f"SELECT ?s {{ {PATTERN} FILTER {each} }}" for each in CONDITIONS if "EXISTS" in each),
    *(f"ASK {{ {PATTERN} FILTER({each}) }}" for each in CONDITIONS if "EXISTS" not in each),
    f"SELECT ?s ?property ?n {{ {PATTERN} }}",
    f"SELECT $this ?n {{ {PATTERN} }}",
    f"SELECT DISTINCT ?no {{ {PATTERN} }}",
    f"SELECT ?no {{ {PATTERN} OPTIONAL {{ ?s :nick ?k FILTER(?no = 1) }} }}",
    f"SELECT ?s ?k ?no {{ {PATTERN} OPTIONAL {{ ?s :nick ?k FILTER(!bound(?no)) }} }}",
    f"SELECT ?s ?y {{ {PATTERN} BIND(?no AS ?y) }}",
    f"SELECT ?s ?y {{ {PATTERN} BIND(coalesce(?no, 7) AS ?y) }}",
    f"SELECT ?s (?no + 1 AS ?y) {{ {PATTERN} }}",
    f"SELECT ?s (str(?no) AS ?y) {{ {PATTERN} }}",
    f"SELECT ?s ?no {{ {PATTERN} }} ORDER BY ?no DESC(?s) LIMIT 1",
    f"SELECT ?no (count(?s) AS ?c) {{ {PATTERN} }} GROUP BY ?no",
    f"SELECT (count(?no) AS ?c) {{ {PATTERN} }}",
    f"SELECT ?s (sample(?no) AS ?c) {{ {PATTERN} }} GROUP BY ?s",
    f"SELECT ?s (max(?z) AS ?m) {{ {PATTERN}; :size ?z }} GROUP BY ?s HAVING(!bound(?no))",
    f"SELECT ?s ?no {{ {{ {PATTERN} }} UNION {{ ?s :nick ?n }} FILTER(!bound(?no)) }}",
    f"SELECT ?s ?no {{ {PATTERN} MINUS {{ ?s :nick ?k FILTER(bound(?no)) }} }}",
    f"SELECT ?s ?no {{ {{ SELECT ?s ?no {{ {PATTERN} }} }} }}",
    f"SELECT ?s ?no {{ {{ SELECT ?s ?no {{ {PATTERN} }} }} ?no :of ?s }}",
    f"SELECT ?s ?no {{ {PATTERN} VALUES ?t {{ 1 2 }} }}",
    f"CONSTRUCT {{ ?s :is ?no . ?s :was ?n }} WHERE {{ {PATTERN} }}",
    f"CONSTRUCT {{ ?s ?no ?n }} WHERE {{ {PATTERN} }}",
)


def results_of(engine: type[Matcher] | type[ReferenceMatcher], text: str) -> list[bytes]:
    matcher = engine()
    matcher.add(text)
    delivered = matcher.deliver(read_graph(DATA, GraphSyntax.TURTLE))
    return [result for each in delivered for result in each.results]


@pytest.mark.parametrize("engine", [Matcher, ReferenceMatcher])
@pytest.mark.parametrize("query", QUERIES)
def test_solutions_are_those_of_pyoxigraph(
    query: str, engine: type[Matcher] | type[ReferenceMatcher]
) -> None:
    store = pyoxigraph.Store()
    store.load(DATA, format=pyoxigraph.RdfFormat.TURTLE)
    expected, found = store.query(P + query), results_of(engine, P + query)
    if isinstance(expected, pyoxigraph.QueryBoolean):
        assert bool(found) is bool(expected)
    elif isinstance(expected, pyoxigraph.QueryTriples):
        made = pyoxigraph.parse(b"".join(found), format=pyoxigraph.RdfFormat.N_TRIPLES)
        assert {quad.triple for quad in made} == set(expected)
    else:
        names = [each.value for each in expected.variables]
        rows = [dict(zip(names, list(row), strict=True)) for row in expected]
        got = [solution for result in found for solution in solutions_of_json(result)]
        assert are_equal(got, solutions_of_oxigraph(rows))


@pytest.mark.parametrize("query", QUERIES)
def test_its_own_text_is_the_same_query(query: str) -> None:
    parsed = parse_graph_query(P + query)
    assert parse_graph_query(unparse(parsed)) == parsed


def test_an_unbound_column_is_named_and_has_no_values() -> None:
    (result,) = results_of(Matcher, f"{P}SELECT ?s ?property ?n {{ {PATTERN} }}")
    assert b'"vars":["s","property","n"]' in result.replace(b" ", b"")
    assert result.count(b'"property"') == 1


def test_what_may_be_misspelt_is_said_with_its_place() -> None:
    (said,) = unbound_variables(f"{P}SELECT ?titel {{ ?x :a ?title }}")
    assert (said.code, said.column, said.expected) == ("unbound-variable", len(P) + 8, "?title")
    assert unbound_variables(f"{P}SELECT ?x {{ ?x :a ?title }}") == []
    assert unbound_variables("/a[b]") == []
    assert unbound_variables("SELECT ?x WHERE (?x, e:p, ?z) USING e FOR <urn:e>") == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?s <urn:x:name> ?n }",
        "# results: application/sparql-results+xml\nSELECT * { ?s <urn:x:name> ?n }",
        "PREFIX : <urn:x:>\nASK { ?s :name 'A' }",
        "SELECT ?s WHERE (?s, <urn:x:name>, ?n)",
        "/a[b = 1]",
        "for $a in //a return $a",
    ],
)
def test_a_byte_order_mark_is_no_part_of_a_profile(text: str) -> None:
    marked, plain = parse_profile("\ufeff" + text), parse_profile(text)
    assert marked.body == plain.body
