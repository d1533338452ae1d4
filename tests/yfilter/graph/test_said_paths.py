"""Disjuncts of the graph reading, said as graph patterns: they mean what they say."""

from __future__ import annotations

import re
from random import Random

import pytest

from formats.graph.reader import read_graph
from formats.graph.syntaxes import GraphSyntax
from tests.yfilter.graph.random_graphs import RandomCase
from yfilter import LinkTarget, Matcher, ProfileRefused
from yfilter.engine.linear_paths import Conjunction, routing_query
from yfilter.graph.said_paths import said_disjunct
from yfilter.language.query_parser import parse_profile

pyoxigraph = pytest.importorskip("pyoxigraph")
PROLOGUE = (
    "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
    "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\n"
)


def disjuncts_of(query: str) -> list[Conjunction]:
    return list(routing_query(parse_profile(PROLOGUE + query)))


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("?x ?p ?y", "?s1 ?p1 ?o1"),
        ("?x :p ?y", "?s1 :p ?o1"),
        ("?x a :C", "?s1 a :C"),
        (":a :p ?y", ":a :p ?o1"),
        ('?x :p "An\\"n"', '?s1 :p "An\\"n"'),
        ('?x :p "Ann"@en', '?s1 :p "Ann"@en'),
        ("?x :p 05", '?s1 :p "05"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        ("?x :p ?y FILTER(?y > 3)", "?s1 :p ?o1 FILTER(?o1 > 3)"),
        ("?x :p :a . ?y :q ?z", "?s1 :p :a . ?s2 :q ?o2"),
        ("?x a/rdfs:subClassOf* :C", "?s1 a/rdfs:subClassOf* :C"),
        ("GRAPH ?g { ?x :p ?y }", "GRAPH ?g1 { ?s1 :p ?o1 }"),
        ("GRAPH :g { ?x :p ?y }", "GRAPH :g { ?s1 :p ?o1 }"),
    ],
)
def test_a_disjunct_is_a_graph_pattern(where: str, said: str) -> None:
    (disjunct,) = disjuncts_of(f"ASK {{ {where} }}")
    found = re.sub(r"<http://e/(\w)>", r":\1", said_disjunct(disjunct.text))
    found = re.sub(r"<http://www.w3.org/2000/01/rdf-schema#(\w+)>", r"rdfs:\1", found)
    assert found == f"{{ {said} }}"


@pytest.mark.parametrize("text", ["//a", '/a/b[@c = "x"] and /d', "/Q{urn:other}g"])
def test_one_of_documents_stays_the_path_that_it_is(text: str) -> None:
    assert said_disjunct(text) == text


@pytest.mark.parametrize("seed", range(20))
def test_a_graph_has_a_solution_where_the_disjunct_holds(seed: int) -> None:
    """As pyoxigraph finds it; filters are left out, which may say more by a rounding."""
    asked = 0
    for number in range(40):
        random = Random(seed * 1_000 + number)
        case = RandomCase(random)
        data = case.graph().encode()
        try:
            profile = parse_profile(case.query())
        except ProfileRefused:  # a variable without a value
            continue
        for disjunct in routing_query(profile):
            said = said_disjunct(disjunct.text)
            if "FILTER" in said or "/Q{" in said:
                continue
            matcher = Matcher()
            matcher.add_route(disjunct, LinkTarget("", "x"))
            stream = read_graph(data, GraphSyntax.TRIG)
            store = pyoxigraph.Store()
            store.load(data, pyoxigraph.RdfFormat.TRIG)
            asked += 1
            holds = bool(list(matcher.matched_links(stream)))
            assert holds == bool(store.query(f"ASK {said}")), said
    assert asked
