"""What is delivered of a message: solutions, graphs, the message; and what limits say."""

from __future__ import annotations

import json

import pyoxigraph
import pytest

from formats.element_stream import ElementStream
from formats.graph.reader import read_graph
from formats.graph.striping import graph_of_document
from formats.graph.syntaxes import GraphSyntax
from formats.text import parse_text
from tests.formats.graph.support import canonical
from tests.yfilter.graph.messages import turtle
from tests.yfilter.graph.solution_sets import are_equal, solutions_of_json, solutions_of_xml
from yfilter.errors import MatchLimitExceeded
from yfilter.graph.graph_query import parse_graph_query
from yfilter.graph.join import MessageGraph
from yfilter.graph_answers import GraphAnswers, graph_results, has_solution
from yfilter.language.profile_limits import EvaluationLimits

LIMITS = EvaluationLimits()
POSTS = turtle(
    ':1 a :Post ; :by "Ann" ; :title "Fog"@en ; :price 9.50 . '
    ":2 a :Post ; :by 'Bob <b@c>' ; :price 12 ; :cites :1 , [ :by 'Cy' ] ."
)


def results(text: str, message: ElementStream = POSTS) -> list[bytes]:
    return graph_results(parse_graph_query(text), message, LIMITS)


def test_a_selection_delivers_all_solutions_in_one_document() -> None:
    (document,) = results("PREFIX : <urn:x:> SELECT ?p ?t { ?p :by ?n OPTIONAL { ?p :title ?t } }")
    assert json.loads(document) == {
        "head": {"vars": ["p", "t"]},
        "results": {
            "bindings": [
                {
                    "p": {"type": "uri", "value": "urn:x:1"},
                    "t": {"type": "literal", "value": "Fog", "xml:lang": "en"},
                },
                {"p": {"type": "uri", "value": "urn:x:2"}},
                {"p": {"type": "bnode", "value": "b0"}},
            ]
        },
    }


def test_solutions_in_xml_are_those_in_json() -> None:
    text = "PREFIX : <urn:x:> SELECT * { ?p ?q ?o BIND(?o AS ?again) BIND(str(?q) AS ?name) }"
    (in_json,) = results(text)
    (in_xml,) = results(f"# results: application/sparql-results+xml\n{text}")
    assert len(solutions_of_json(in_json)) == 10
    assert are_equal(solutions_of_json(in_json), solutions_of_xml(in_xml))
    assert b"<literal>Bob &lt;b@c&gt;</literal>" in in_xml


def test_nothing_is_delivered_where_there_is_no_solution() -> None:
    assert results("PREFIX : <urn:x:> SELECT * { ?p :by 'Dan' }") == []
    assert results("PREFIX : <urn:x:> ASK { ?p :by 'Dan' }") == []
    assert results("PREFIX : <urn:x:> CONSTRUCT WHERE { ?p :by 'Dan' }") == []
    assert results("PREFIX : <urn:x:> SELECT (COUNT(*) AS ?n) { ?p :by 'Dan' } GROUP BY ?p") == []


def test_equal_solutions_are_delivered_once_where_they_are_to_be_distinct() -> None:
    text = "PREFIX : <urn:x:> SELECT {} ?c {{ ?p a ?c }}"
    assert results(text.format("DISTINCT"))[0].count(b"urn:x:Post") == 1
    assert results(text.format(""))[0].count(b"urn:x:Post") == 2


def test_each_solution_has_blank_nodes_of_its_own_in_a_graph() -> None:
    (graph,) = results(
        "PREFIX : <urn:x:> CONSTRUCT { _:x :of ?p ; :by _:y . _:y :name ?n } "
        "{ ?p a :Post ; :by ?n }"
    )
    assert canonical_text(graph) == canonical_text(
        b'_:a <urn:x:of> <urn:x:1> .\n_:a <urn:x:by> _:b .\n_:b <urn:x:name> "Ann" .\n'
        b'_:c <urn:x:of> <urn:x:2> .\n_:c <urn:x:by> _:d .\n_:d <urn:x:name> "Bob <b@c>" .'
    )


def test_what_is_no_triple_is_left_out_of_a_graph() -> None:
    (graph,) = results(
        "PREFIX : <urn:x:> CONSTRUCT { ?p :t ?t . ?n :of ?p } "
        "{ ?p :by ?n OPTIONAL { ?p :title ?t } }"
    )
    assert graph == b'<urn:x:1> <urn:x:t> "Fog"@en .\n'


@pytest.mark.parametrize("syntax", [GraphSyntax.N_TRIPLES, GraphSyntax.TURTLE, GraphSyntax.RDF_XML])
def test_graphs_are_written_in_the_syntax_that_is_asked_for(syntax: GraphSyntax) -> None:
    text = "PREFIX : <urn:x:> CONSTRUCT WHERE { ?p :price ?n ; :cites ?o . ?o :by ?a }"
    (expected,) = results(text)
    (written,) = results(f"# results: {syntax.value}\n{text}")
    form = pyoxigraph.RdfFormat.from_media_type(syntax.value)
    assert form is not None
    assert canonical(pyoxigraph.parse(written, format=form)) == canonical_text(expected)


def test_a_property_without_an_xml_name_cannot_be_written_in_rdf_xml() -> None:
    with pytest.raises(MatchLimitExceeded) as caught:
        results(
            "# results: application/rdf+xml\n"
            "CONSTRUCT { ?p <urn:x:1> ?c } { ?p a ?c FILTER(isIRI(?c)) }"
        )
    assert caught.value.code == "not-writable"


def test_a_question_delivers_the_message() -> None:
    (message,) = results("PREFIX : <urn:x:> ASK { ?p :by 'Ann' }")
    assert len(list(pyoxigraph.parse(message, format=pyoxigraph.RdfFormat.N_TRIPLES))) == 10
    named = read_graph(b"<urn:x:1> <urn:x:by> <urn:x:2> <urn:x:g> .", GraphSyntax.N_QUADS)
    (message,) = results("PREFIX : <urn:x:> ASK { GRAPH :g { ?p :by ?q } }", named)
    assert message == b"<urn:x:1> <urn:x:by> <urn:x:2> <urn:x:g> .\n"


def test_what_the_tree_does_not_say_is_answered_in_the_same_form() -> None:
    (document,) = results("PREFIX : <urn:x:> SELECT (MAX(?n) AS ?most) { ?p :price ?n }")
    assert b'"value":"12"' in document
    (document,) = results("PREFIX : <urn:x:> SELECT ?o { ?p :cites+ ?o } ORDER BY ?o")
    assert solutions_of_json(document)[0] == frozenset({("o", ("bnode", "b0", ""))})
    (graph,) = results("PREFIX : <urn:x:> CONSTRUCT { ?p :x ?o } { ?p (:by|:cites)+ ?o } LIMIT 1")
    assert graph.count(b"\n") == 1
    assert results("PREFIX : <urn:x:> ASK { ?p :cites/:cites ?o }") == []


def test_it_is_not_answered_among_other_things() -> None:
    query = parse_graph_query("PREFIX : <urn:x:> SELECT (MAX(?n) AS ?most) { ?p :price ?n }")
    with pytest.raises(MatchLimitExceeded) as caught:
        graph_results(query, POSTS, EvaluationLimits(late_messages=1))
    assert caught.value.code == "too-much-time"
    assert has_solution(query, POSTS, EvaluationLimits(late_messages=1))


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (EvaluationLimits(tuples_max=9), "too-many-tuples"),
        (EvaluationLimits(visits_max=9), "too-many-visits"),
        (EvaluationLimits(bytes_max=200), "result-too-large"),
    ],
)
def test_a_limit_is_told(limits: EvaluationLimits, code: str) -> None:
    for text in (
        "SELECT * { ?s ?p ?o }",
        "CONSTRUCT WHERE { ?s ?p ?o }",
        "# results: text/turtle\nCONSTRUCT WHERE { ?s ?p ?o }",
    ):
        with pytest.raises(MatchLimitExceeded) as caught:
            graph_results(parse_graph_query(text), POSTS, limits)
        assert caught.value.code == code


def test_many_equal_stars_end_at_the_limit_of_visits() -> None:
    """A join of k stars over m subjects has m ** k ways."""
    message = turtle(" ".join(f":s{number} :p :o ." for number in range(60)))
    stars = " ".join(f"?s{number} :p ?o{number} ." for number in range(8))
    query = parse_graph_query(f"PREFIX : <urn:x:> SELECT ?s0 {{ {stars} FILTER(?s7 = :none) }}")
    for ask in (has_solution, graph_results):
        with pytest.raises(MatchLimitExceeded) as caught:
            ask(query, message, EvaluationLimits(visits_max=100_000))
        assert caught.value.code == "too-many-visits"


def test_rows_that_are_kept_count_as_memory() -> None:
    message = turtle(" ".join(f":s{number} :p :o ." for number in range(40)))
    columns = " ".join(f"?c{number}" for number in range(120))
    binds = " ".join(f"BIND(?s AS ?c{number})" for number in range(120))
    text = f"PREFIX : <urn:x:> SELECT {columns} {{ ?s :p ?o . ?t :p ?o . ?u :p ?o {binds} }}"
    with pytest.raises(MatchLimitExceeded) as caught:
        graph_results(parse_graph_query(text), message, EvaluationLimits(memory_max=4_000_000))
    assert caught.value.code == "too-much-memory"


def test_a_profile_may_have_very_many_patterns() -> None:
    patterns = " . ".join(f"?s :p ?o{number % 200}" for number in range(1_000))
    query = parse_graph_query(f"PREFIX : <urn:x:> ASK {{ {patterns} }}")
    assert has_solution(query, turtle(":s :p :o ."), LIMITS)


def test_one_message_is_read_once_for_many_profiles() -> None:
    graph = MessageGraph(POSTS)
    texts = ["SELECT * { ?s ?p ?o }", "PREFIX : <urn:x:> SELECT ?s { ?s :price ?n }"]
    for text in texts * 2:
        query = parse_graph_query(text)
        assert graph_results(query, graph, LIMITS) == graph_results(query, POSTS, LIMITS)


def canonical_text(data: bytes) -> str:
    return canonical(pyoxigraph.parse(data, format=pyoxigraph.RdfFormat.N_TRIPLES))


@pytest.mark.parametrize(("path", "is_there"), [(":by+", True), (":to+", False)])
def test_a_message_of_named_graphs_is_asked_what_the_tree_cannot_say(
    path: str, is_there: bool
) -> None:
    named = read_graph(
        b"<urn:x:1> <urn:x:by> <urn:x:2> .\n<urn:x:1> <urn:x:by> <urn:x:2> <urn:x:g> .",
        GraphSyntax.N_QUADS,
    )
    query = parse_graph_query(f"PREFIX : <urn:x:> ASK {{ ?p {path} ?q }}")
    assert query.whole
    assert GraphAnswers(EvaluationLimits()).has_results(query, named) is is_there


def test_an_iri_that_only_the_reader_takes_fails_the_query_and_no_more() -> None:
    """RDF/XML is read here, and pyoxigraph looks into the authority of an IRI."""
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    document = (
        f'<rdf:RDF xmlns:rdf="{rdf}" xmlns:e="http://e/"><rdf:Description rdf:about="urn:a">'
        '<e:p rdf:resource="http://h.example:80x"/></rdf:Description></rdf:RDF>'
    )
    graph = graph_of_document(parse_text(document.encode()))
    query = parse_graph_query("SELECT (COUNT(?o) AS ?n) { ?s ?p ?o }")
    message = MessageGraph(graph)
    for _ in range(2):
        with pytest.raises(MatchLimitExceeded) as failed:
            graph_results(query, message, LIMITS)
        assert failed.value.code == "query-failed"
