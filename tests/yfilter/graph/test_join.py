"""Where SPARQL's algebra and a join from left to right could differ; and what taxonomies add."""

from __future__ import annotations

import pytest

from formats.element_stream import ElementStream
from formats.graph.closure import TaxonomyClosure
from formats.graph.reader import read_graph
from formats.graph.syntaxes import GraphSyntax
from formats.graph.taxonomy import Taxonomy
from tests.yfilter.graph.messages import turtle
from yfilter.graph.graph_query import parse_graph_query, with_classes_above
from yfilter.graph.join import MessageGraph
from yfilter.graph.join_program import in_order
from yfilter.graph.query_ast import BlankNode, Iri, LiteralTerm, TriplePattern, Variable
from yfilter.graph_answers import program_of
from yfilter.language.budget import Budget
from yfilter.language.profile_limits import EvaluationLimits

DATA = turtle(
    ":a :p :b , :c ; :n 1 ; :t 'x' . :b :p :c ; :n 2.0 . :c :p :c , [ :n 3 ] ; :t 'y'@en . "
)


def rows(pattern: str, columns: str, message: ElementStream = DATA) -> list[str]:
    """The solutions, each as its terms without their namespace; ``-``: no term."""
    text = (
        "PREFIX : <urn:x:> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
        f"SELECT {columns} {{ {pattern} }}"
    )
    query = parse_graph_query(with_classes_above(text, TaxonomyClosure(TAXONOMY).classes_above))
    run = program_of(query).solutions(MessageGraph(message), Budget(EvaluationLimits()))
    return sorted(
        " ".join("-" if number == 0 else said(run.term(number)) for number in row)
        for row in run.rows
    )


def said(term: Iri | BlankNode | LiteralTerm) -> str:
    if isinstance(term, Iri):
        return term.value.removeprefix("urn:x:")
    return term.label if isinstance(term, BlankNode) else term.lexical


@pytest.mark.parametrize(
    ("pattern", "columns", "expected"),
    [
        pytest.param("?x :p ?y . ?y :p ?x", "?x", ["c"], id="a cycle"),
        pytest.param("?x :p ?x", "?x", ["c"], id="a variable twice"),
        pytest.param("?x :n ?n . ?y :t ?t", "?x ?t", 6, id="nothing in common"),
        pytest.param(":a ?p 'x'", "?p", ["t"], id="a property"),
        pytest.param(":a :p [ :p [ :n ?n ] ]", "?n", ["3"], id="blank nodes are variables"),
        pytest.param(
            "?x :t ?t OPTIONAL { ?x :n ?n FILTER(?t = 'x') }",
            "?x ?n",
            ["a 1", "c -"],
            id="a filter of an optional part sees what stands before it",
        ),
        pytest.param(
            "?x :t ?t OPTIONAL { { ?x :n ?n FILTER(?t = 'x') } }",
            "?x ?n",
            ["a -", "c -"],
            id="but one in a group of its own does not",
        ),
        pytest.param(
            "?x :t ?t { FILTER(bound(?t)) }", "?x", [], id="a filter of a group sees the group"
        ),
        pytest.param(
            "?x :t ?t FILTER(bound(?n)) OPTIONAL { ?x :n ?n }",
            "?x",
            ["a"],
            id="a filter is of the whole group, wherever it stands",
        ),
        pytest.param(
            ":a :n ?n { :b :t ?z OPTIONAL { ?x :n ?n } }", "?n", [], id="nested, nothing found"
        ),
        pytest.param(
            "VALUES ?n { 1 } { :c :t ?z OPTIONAL { ?x :n ?n } }",
            "?x ?n",
            ["a 1"],
            id="an optional part is found before it is joined",
        ),
        pytest.param("?x :p ?y MINUS { ?x :t ?t }", "?x", ["b"], id="minus"),
        pytest.param("?x :t ?t MINUS { ?y :p ?z }", "?x", ["a", "c"], id="minus of others"),
        pytest.param(
            "?x :t ?t MINUS { ?x :p ?z FILTER(?t = 'x') }",
            "?x",
            ["a", "c"],
            id="a filter of minus sees its own group",
        ),
        pytest.param(
            "?x :t ?t FILTER NOT EXISTS { ?x :n ?n FILTER(?t = 'x') }",
            "?x",
            ["c"],
            id="one of exists sees all",
        ),
        pytest.param("?x :t ?t BIND(strlen(?t) + 1 AS ?n)", "?n", ["2", "2"], id="computed"),
        pytest.param("?x :n ?n BIND(1 / (?n - 1) AS ?z)", "?z", ["-", "0.5", "1"], id="an error"),
        pytest.param(
            "VALUES (?x ?n) { (:a UNDEF) (UNDEF 2) } ?x :n ?n",
            "?x ?n",
            ["a 1"],
            id="equal terms, not equal values",
        ),
        pytest.param(
            "{ ?x :t 'x' } UNION { ?x :t 'y'@en } ?x :p :c",
            "?x",
            ["a", "c"],
            id="alternatives",
        ),
    ],
)
def test_solutions(pattern: str, columns: str, expected: list[str] | int) -> None:
    found = rows(pattern, columns)
    assert (len(found) if isinstance(expected, int) else found) == expected


@pytest.mark.parametrize(
    ("pattern", "columns", "expected"),
    [
        ("?x :p ?y", "?x", ["a"]),
        ("GRAPH :g { ?x :p ?y }", "?x ?y", ["b a", "b c"]),
        ("GRAPH ?g { ?x :p ?y }", "?g ?x", ["g b", "g b", "h c"]),
        ("?y :p ?x GRAPH ?g { ?x :p ?y }", "?g ?x", ["g b"]),
        ("GRAPH :none { ?x :p ?y }", "?x", []),
        ("GRAPH ?g { FILTER(bound(?g)) ?x :p ?y }", "?g", []),
        ("GRAPH ?g { ?x :p ?y } FILTER(?g = :h)", "?g", ["h"]),
        ("GRAPH ?g { ?x :q ?g }", "?g", ["h"]),
    ],
)
def test_named_graphs_are_asked_by_name(pattern: str, columns: str, expected: list[str]) -> None:
    message = read_graph(
        b"@prefix : <urn:x:> . :a :p :b . :g { :b :p :a , :c } :h { :c :p :a ; :q :h , :g }",
        GraphSyntax.TRIG,
    )
    assert rows(pattern, columns, message) == expected


TAXONOMY = Taxonomy(
    classes={
        b"urn:x:Fog": (b"urn:x:Weather",),
        b"urn:x:Weather": (b"urn:x:News",),
        b"urn:x:Harbour": (b"urn:x:Place",),
    },
    properties={b"urn:x:title": (b"urn:x:name",)},
    instances={b"urn:x:bay": (b"urn:x:Place",)},
)


@pytest.mark.parametrize(
    ("pattern", "columns", "expected"),
    [
        ("?x a/rdfs:subClassOf* :News", "?x", ["1", "3"]),
        (
            "?x a/rdfs:subClassOf* ?c",
            "?c",
            ["Fog", "News", "News", "Note", "Place", "Weather", "Weather"],
        ),
        (":2 :of ?x . ?x a/rdfs:subClassOf* :Place", "?x", ["bay"]),
        ("?x a/^rdfs:subClassOf* :Fog", "?x", ["1", "3"]),
        ("?x a/^rdfs:subClassOf* :Weather", "?x", ["3"]),
        ("?x a/^rdfs:subClassOf* :Note . ?x ?p ?y", "?y", ["Note", "b", "bay"]),
        ("?x :of ?y . ?y a/^rdfs:subClassOf* :Harbour", "?x ?y", ["2 bay"]),
        ("?x :title ?y FILTER NOT EXISTS { ?x a/^rdfs:subClassOf* :Weather }", "?x", ["1"]),
        ("?x a :News", "?x", ["3"]),
        ("?x a ?c", "?c", ["Fog", "News", "Note", "Weather"]),
        ("?x ?p ?y . ?p rdfs:subPropertyOf* :name", "?p ?y", ["name b", "title a"]),
        ("?x :name ?y", "?y", ["b"]),
        ("?x ?p 'a'", "?p", ["title"]),
    ],
)
def test_only_who_asks_for_a_closure_sees_it(
    pattern: str, columns: str, expected: list[str]
) -> None:
    data = (
        b"@prefix : <urn:x:> . :1 a :Fog ; :title 'a' . :2 a :Note ; :name 'b' ; :of :bay . "
        b":3 a :Weather , :News ."
    )
    message = read_graph(data, GraphSyntax.TURTLE, closure=TaxonomyClosure(TAXONOMY))
    assert rows(pattern, columns, message) == expected


def test_most_given_comes_first() -> None:
    x, y, z = (Variable(name) for name in "xyz")
    links = TriplePattern(x, Iri("urn:links"), y)
    names = TriplePattern(y, Iri("urn:name"), LiteralTerm("Ann"))
    other = TriplePattern(z, Iri("urn:other"), z)
    assert in_order([other, links, names], frozenset()) == [names, links, other]
    assert in_order([links, names], frozenset({x})) == [links, names]
