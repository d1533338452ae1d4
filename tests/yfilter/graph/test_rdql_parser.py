"""RDQL as two papers write it: Petrovic, Liu, Jacobsen, WWW 2005, and the same, WWW 2008."""

from __future__ import annotations

import pytest

from yfilter import ProfileRefused
from yfilter.graph.graph_query import is_graph_query, parse_graph_query
from yfilter.graph.query_ast import GraphQuery
from yfilter.graph.query_text import unparse

E = "http://example.org/"
PREFIXES = f"PREFIX : <{E}> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\n"
USING = f" USING e FOR <{E}>"


def same(rdql: str, sparql: str) -> None:
    """Both texts say the same."""
    query = read(rdql)
    assert query == parse_graph_query(PREFIXES + sparql)
    assert parse_graph_query(unparse(query)) == query


def read(rdql: str) -> GraphQuery:
    assert is_graph_query(rdql)
    return parse_graph_query(rdql)


def test_the_query_that_xpath_cannot_say() -> None:
    """2008, section 1."""
    same(
        "SELECT ?a, ?b WHERE (?a, http://somewhere/pred1, ?c), (?c, http://somewhere/pred2, ?b)",
        "SELECT ?a ?b { ?a <http://somewhere/pred1> ?c . ?c <http://somewhere/pred2> ?b }",
    )


def test_the_query_of_the_first_figure() -> None:
    """2008, figure 1, with IRIs for its labels."""
    same(
        "SELECT * FROM Publications WHERE"
        " (e:HomePage325, e:project, e:RssFilter) AND"
        " (e:RssFilter, e:supervisor, 'Prof A') AND"
        f" ((e:RssFilter, e:year, ?x) SUCHTHAT (?x > 2003)) {USING}",
        "SELECT * { :HomePage325 :project :RssFilter . :RssFilter :supervisor 'Prof A' ."
        " :RssFilter :year ?x FILTER(?x > 2003) }",
    )


def test_the_subscription_for_papers_of_a_conference() -> None:
    """2005, figure 5 (b): a publication of Arno after 1999, by the taxonomy."""
    same(
        "SELECT ?p, ?y WHERE (?p, e:author, e:Arno), (?p, e:year, ?y)"
        f" AND ?y > 1999 && ?p <= e:Publication {USING}",
        "SELECT ?p ?y { ?p :author :Arno ; :year ?y FILTER(?y > 1999)"
        " ?p a/rdfs:subClassOf* :Publication }",
    )


@pytest.mark.parametrize(
    ("condition", "pattern"),
    [
        ("?x <= e:C", "?x a/rdfs:subClassOf* :C"),
        ("?x isa e:C", "?x a/rdfs:subClassOf* :C"),
        ("?x = e:C", "?x a :C"),
        ("?x >= e:C", "?x a/^rdfs:subClassOf* :C"),
        ("?x == e:C", "FILTER(?x = :C)"),
        ("?x eq e:C", "FILTER(?x = :C)"),
        ("?x ne 'a'", "FILTER(?x != 'a')"),
        ("?x = 5 && ?x != 6", "FILTER(?x = 5) FILTER(?x != 6)"),
        ("?x < 5 || ?x isa e:C", "FILTER(?x < 5 || EXISTS { ?x a/rdfs:subClassOf* :C })"),
        ("!(?x isa e:C)", "FILTER(!(EXISTS { ?x a/rdfs:subClassOf* :C }))"),
        ("?x =~ /^a\\/b/i", 'FILTER(regex(str(?x), "^a/b", "i"))'),
        ("?x !~ /b/", 'FILTER(!regex(str(?x), "b"))'),
        ("(?x + 1) * 2 >= 7", "FILTER((?x + 1) * 2 >= 7)"),
    ],
)
def test_conditions(condition: str, pattern: str) -> None:
    same(
        f"SELECT ?x WHERE (?y, e:p, ?x) AND {condition}{USING}",
        f"SELECT ?x {{ ?y :p ?x . {pattern} }}",
    )
    same(
        f"SELECT ?x WHERE ((?y e:p ?x) SUCHTHAT {condition}){USING}",
        f"SELECT ?x {{ ?y :p ?x . {pattern} }}",
    )


def test_prefixes_in_angle_brackets_and_several_of_them() -> None:
    same(
        f"# comment\nselect * where (?x <dc:title> 'a'@en) using dc for <{E}>, f: for <{E}f/>",
        "SELECT * { ?x :title 'a'@en }",
    )


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("SELECT ?x WHERE (?y, e:p, ?z)" + USING, "unbound-variable", 8),
        ("SELECT ?x WHERE (?x, e:p, ?z)", "undeclared-prefix", 22),
        ("SELECT ?x WHERE (?x, e:p)" + USING, "syntax", 25),
        ("SELECT ?x WHERE (?x, 'p', ?y)" + USING, "syntax", 22),
        ("SELECT ?x WHERE (?x, p, ?y)" + USING, "syntax", 22),
        ("SELECT ?x WHERE (?x, e:p, ?y) LIMIT 3" + USING, "syntax", 31),
        ("SELECT ?x WHERE (?x, e:p, ?y) AND ?y =~ /(/" + USING, "pattern", 38),
        ("SELECT ?x WHERE (?x, e:p, ?y) AND EXISTS { ?x e:p 1 }" + USING, "unsupported", 42),
        ("SELECT ?x, ?x WHERE (?x, e:p, ?y)" + USING, "duplicate-variable", 12),
    ],
)
def test_refusals(text: str, code: str, column: int) -> None:
    with pytest.raises(ProfileRefused) as refusal:
        parse_graph_query(text)
    assert (refusal.value.code, refusal.value.line, refusal.value.column) == (code, 1, column)


def test_sparql_is_not_taken_for_rdql() -> None:
    assert parse_graph_query(
        "SELECT ?where (COUNT(?y) AS ?x) { ?where ?y ?z } GROUP BY ?where"
    ).whole
    assert not parse_graph_query("SELECT ?x WHERE { ?x ?y ?z FILTER (?x = 1) }").whole
