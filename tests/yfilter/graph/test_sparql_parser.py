"""Texts of graph profiles and their trees."""

from __future__ import annotations

import pytest

from formats.graph.vocabulary import RDF, RDF_TYPE, XSD
from yfilter import ProfileRefused
from yfilter.graph.graph_query import is_graph_query, parse_graph_query
from yfilter.graph.query_ast import (
    Alternatives,
    Bind,
    Closure,
    Exists,
    Filter,
    GraphQuery,
    Group,
    GroupElement,
    InGraph,
    Iri,
    LiteralTerm,
    Membership,
    Minus,
    Optionally,
    QueryForm,
    ResultSyntax,
    Term,
    TriplePattern,
    Values,
    Variable,
    negation,
)
from yfilter.graph.query_text import unparse
from yfilter.language import query_ast as ast
from yfilter.language.profile_limits import ProfileLimits
from yfilter.language.query_ast import Operator

E = "http://example.org/"
PROLOGUE = (
    f"PREFIX : <{E}> PREFIX xsd: <{XSD}> "
    "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
    f"PREFIX rdf: <{RDF}>\n"
)
X, Y, Z = Variable("x"), Variable("y"), Variable("z")
A, B, C = (Iri(E + name) for name in "abc")
TYPE = Iri(RDF_TYPE)


def integer(value: int) -> LiteralTerm:
    return LiteralTerm(str(value), XSD + "integer")


def blank(name: object) -> Variable:
    return Variable(f"_:{name}")


def triple(subject: Term, verb: Iri | Variable, value: Term) -> TriplePattern:
    return TriplePattern(subject, verb, value)


def parsed(text: str) -> GraphQuery:
    """The query; its own text says the same."""
    query = parse_graph_query(PROLOGUE + text)
    assert parse_graph_query(unparse(query)) == query
    return query


def elements(group: str) -> tuple[GroupElement, ...]:
    query = parsed(f"ASK {{ {group} }}")
    assert not query.whole
    return query.where.elements


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("", ()),
        ("?x :a 5", (triple(X, A, integer(5)),)),
        ("$x :a -5", (triple(X, A, integer(-5)),)),
        (
            "?x a :c ; :a ?y , 'b' ;",
            (triple(X, TYPE, C), triple(X, A, Y), triple(X, A, LiteralTerm("b"))),
        ),
        (
            "?x ?y true . :a :b 2.50",
            (
                triple(X, Y, LiteralTerm("true", XSD + "boolean")),
                triple(A, B, LiteralTerm("2.50", XSD + "decimal")),
            ),
        ),
        ('?x :a "b"@EN-gb', (triple(X, A, LiteralTerm("b", language="en-gb")),)),
        (r'?x :a "a\t\"\u00e9"^^xsd:string', (triple(X, A, LiteralTerm('a\t"é')),)),
        ("_:n :a _:m . _:m :b _:n", (triple(blank(0), A, blank(1)), triple(blank(1), B, blank(0)))),
        (
            "?x :a [ :b [ :c 1 ] ]",
            (
                triple(X, A, blank(0)),
                triple(blank(0), B, blank(1)),
                triple(blank(1), C, integer(1)),
            ),
        ),
        ("[ :a 1 ]", (triple(blank(0), A, integer(1)),)),
        ("?x :a ()", (triple(X, A, Iri(RDF + "nil")),)),
        (
            "?x :a (1 ?y)",
            (
                triple(X, A, blank(0)),
                triple(blank(0), Iri(RDF + "first"), integer(1)),
                triple(blank(0), Iri(RDF + "rest"), blank(1)),
                triple(blank(1), Iri(RDF + "first"), Y),
                triple(blank(1), Iri(RDF + "rest"), Iri(RDF + "nil")),
            ),
        ),
        ("?x :a/^:b ?y", (triple(X, A, blank(0)), triple(Y, B, blank(0)))),
        ("?x ^(:a/:b) ?y", (triple(Y, A, blank(0)), triple(blank(0), B, X))),
        ("?x :a|:b ?y", (Alternatives((Group((triple(X, A, Y),)), Group((triple(X, B, Y),)))),)),
        ("?x a/rdfs:subClassOf* :c", (TriplePattern(X, TYPE, C, Closure.INSTANCE),)),
        ("?x rdf:type/(rdfs:subClassOf*) :c", (TriplePattern(X, TYPE, C, Closure.INSTANCE),)),
        ("?x a ?t . ?t rdfs:subClassOf* :c", (TriplePattern(X, TYPE, C, Closure.INSTANCE),)),
        (":c rdfs:subClassOf* ?t . ?x a ?t", (TriplePattern(X, TYPE, C, Closure.INSTANCE_ABOVE),)),
        ("?x a/^rdfs:subClassOf* :c", (TriplePattern(X, TYPE, C, Closure.INSTANCE_ABOVE),)),
        (
            "?x ?y ?z . ?y rdfs:subPropertyOf* :a",
            (TriplePattern(X, Y, Z, Closure.PROPERTY, E + "a"),),
        ),
        (
            "?x ?y ?z . ?y rdfs:subPropertyOf* :a, :b",
            (
                TriplePattern(X, Y, Z, Closure.PROPERTY, E + "a"),
                TriplePattern(X, Y, Z, Closure.PROPERTY, E + "b"),
            ),
        ),
        ("{ ?x :a 1 }", (Group((triple(X, A, integer(1)),)),)),
        (
            "{ ?x :a 1 } UNION { } UNION { ?x :b 2 }",
            (
                Alternatives(
                    (
                        Group((triple(X, A, integer(1)),)),
                        Group(()),
                        Group((triple(X, B, integer(2)),)),
                    )
                ),
            ),
        ),
        ("OPTIONAL { ?x :a ?y }", (Optionally(Group((triple(X, A, Y),))),)),
        (
            "MINUS { ?x :a ?y } . ?x :b 1",
            (Minus(Group((triple(X, A, Y),))), triple(X, B, integer(1))),
        ),
        ("GRAPH ?z { ?x :a ?y }", (InGraph(Z, Group((triple(X, A, Y),))),)),
        ("GRAPH :c { ?x :a ?y }", (InGraph(C, Group((triple(X, A, Y),))),)),
        ("VALUES ?x { :a UNDEF 5 }", (Values((X,), ((A,), (None,), (integer(5),))),)),
        ("VALUES (?x ?y) { (:a 1) }", (Values((X, Y), ((A, integer(1)),)),)),
        ("?x :a ?y BIND(?y AS ?z)", (triple(X, A, Y), Bind(Y, Z))),
    ],
)
def test_groups(group: str, expected: tuple[GroupElement, ...]) -> None:
    assert elements(group) == expected


def test_what_is_computed_of_each_solution_is_bound_behind_the_pattern() -> None:
    query = parse_graph_query(f"{PROLOGUE}SELECT ?x (?y AS ?z) {{ ?x :a ?y }}")
    assert query.where.elements == (triple(X, A, Y), Bind(Y, Z))
    assert query.variables == (X, Z) and not query.whole
    query = parse_graph_query(
        f"{PROLOGUE}SELECT (?y AS ?z) {{ ?x :a ?y FILTER NOT EXISTS {{ ?x :b ?z }} }}"
    )
    assert isinstance(query.where.elements[0], Group)  # which does not see it
    assert query.where.elements[1:] == (Bind(Y, Z),)


def compared(left: object, operator: str, right: object) -> ast.Comparison:
    return ast.Comparison(left, Operator(operator), right)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("(?x < 5)", compared(X, "<", integer(5))),
        ("(?x<?y &&?y>=1)", ast.And((compared(X, "<", Y), compared(Y, ">=", integer(1))))),
        (
            "((?x = 1 && ?x = 2) && ?x = 3 || ?y)",
            ast.Or((ast.And(tuple(compared(X, "=", integer(one)) for one in (1, 2, 3))), Y)),
        ),
        ("(!bound(?x))", negation(ast.FunctionCall("bound", (X,)))),
        ("(?x IN (1, :a))", Membership(X, (integer(1), A))),
        ("(?x NOT IN ())", Membership(X, (), is_negated=True)),
        (
            "(?x -1 * 2 > -?y)",
            compared(
                ast.FunctionCall("-", (X, ast.FunctionCall("*", (integer(1), integer(2))))),
                ">",
                ast.FunctionCall("-", (Y,)),
            ),
        ),
        (
            "regex(str(?x), '^a', 'i')",
            ast.FunctionCall(
                "regex", (ast.FunctionCall("str", (X,)), LiteralTerm("^a"), LiteralTerm("i"))
            ),
        ),
        ("isURI(?x)", ast.FunctionCall("isiri", (X,))),
        (
            "(xsd:integer(?x) = 1)",
            compared(ast.FunctionCall(XSD + "integer", (X,)), "=", integer(1)),
        ),
        (
            "(if(?x, coalesce(?x, ?y), 1))",
            ast.FunctionCall("if", (X, ast.FunctionCall("coalesce", (X, Y)), integer(1))),
        ),
        ("EXISTS { ?x :b ?y }", Exists(Group((triple(X, B, Y),)))),
        ("NOT EXISTS { ?x :b ?y }", Exists(Group((triple(X, B, Y),)), is_negated=True)),
    ],
)
def test_filters(condition: str, expected: object) -> None:
    found = elements(f"?x :a ?y FILTER {condition}")
    assert found == (triple(X, A, Y), Filter(expected))  # type: ignore[arg-type]


def test_select_writes_the_star_out_and_leaves_blank_nodes_out() -> None:
    query = parsed("SELECT * { ?y :a [ :b ?x ] OPTIONAL { ?x :c ?z } FILTER EXISTS { ?w :a 1 } }")
    assert query.variables == (Y, X, Z)
    assert not query.is_distinct
    assert query.results is ResultSyntax.JSON


def test_distinct_and_reduced() -> None:
    assert parsed("SELECT DISTINCT ?x { ?x :a 1 }").is_distinct
    assert parsed("SELECT REDUCED ?x { ?x :a 1 }") == parsed("SELECT ?x WHERE { ?x :a 1 }")


def test_construct_makes_blank_nodes_of_its_own() -> None:
    query = parsed("CONSTRUCT { ?x :b _:n . _:n :c [] } WHERE { ?x :a _:n }")
    assert query.form is QueryForm.CONSTRUCT
    assert query.template == (triple(X, B, blank("t0")), triple(blank("t0"), C, blank("t1")))
    assert query.where == Group((triple(X, A, blank(0)),))
    assert query.results is ResultSyntax.N_TRIPLES


def test_construct_where_has_the_pattern_for_its_template() -> None:
    query = parsed("CONSTRUCT WHERE { ?x :a [ :b 1 ] }")
    assert query.where == Group((triple(X, A, blank(0)), triple(blank(0), B, integer(1))))
    assert query.template == (triple(X, A, blank("t0")), triple(blank("t0"), B, integer(1)))


def test_values_behind_a_query_are_joined_with_it() -> None:
    query = parsed("SELECT * { ?x :a 1 } VALUES ?y { 1 }")
    assert query.where == Group(
        (Group((triple(X, A, integer(1)),)), Values((Y,), ((integer(1),),)))
    )
    assert query.variables == (X, Y)


def test_a_base_is_what_references_start_from() -> None:
    query = parse_graph_query("BASE <http://example.org/x/y> PREFIX p: <../> ASK { <#z> p:a <b> }")
    assert query.where.elements == (triple(Iri(E + "x/y#z"), A, Iri(E + "x/b")),)


# -- how results are written


@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        ("#results:application/sparql-results+xml\nSELECT * { }", ResultSyntax.XML),
        ("# a\n\n#  Results\n# results: text/turtle\nCONSTRUCT WHERE { }", ResultSyntax.TURTLE),
        ("# results: application/rdf+xml\nASK { }", ResultSyntax.RDF_XML),
        ("ASK { } # results: text/turtle", ResultSyntax.AS_PUBLISHED),
    ],
)
def test_a_comment_in_front_says_how_results_are_written(text: str, syntax: ResultSyntax) -> None:
    query = parse_graph_query(text.replace("#  Results\n", "# Results follow\n"))
    assert query.results is syntax
    assert parse_graph_query(unparse(query)) == query


# -- what the tree cannot say


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("SELECT ?x { ?x :a ?y } ORDER BY ?y LIMIT 2", "?x :a ?y"),
        ("SELECT (COUNT(*) AS ?n) { ?x :a ?y }", ""),
        ("SELECT ?x (COUNT(*) AS ?n) { ?x :a ?y } GROUP BY ?x HAVING (?n > 1)", "?x :a ?y"),
        ("SELECT (md5(?y) AS ?n) { ?x :a ?y }", "?x :a ?y"),
        ("SELECT ?x (?y + 1 AS ?n) { ?x :a ?y } LIMIT 1", "?x :a ?y BIND(?y + 1 AS ?n)"),
        ("ASK { ?x :a+ ?y FILTER(?y > 5) }", "?x :a _:u . _:v :a ?y FILTER(?y > 5)"),
        ("ASK { ?x :a* ?y FILTER(?y > 5) . ?x :b ?z FILTER(?z > 5) }", "?x :b ?z FILTER(?z > 5)"),
        ("ASK { ?x :b ?y ; :a? ?y FILTER(?y > 5) }", "?x :b ?y FILTER(?y > 5)"),
        ("ASK { ?x !:a ?y }", "?x _:p ?y"),
        ("ASK { ?x !(:a|^:b) ?y }", "{ ?x _:p ?y } UNION { ?y _:q ?x }"),
        (
            "ASK { ?x :a ?y FILTER(?y > 5 && md5(?y) = 'a' && ?x != :b) }",
            "?x :a ?y FILTER(?y > 5 && ?x != :b)",
        ),
        ("ASK { ?x :a ?y FILTER(?y > 5 || md5(?y) = 'a') }", "?x :a ?y"),
        ("ASK { ?x :a ?y FILTER(regex(?y, ?x)) }", "?x :a ?y"),
        ("ASK { ?x :a ?y FILTER NOT EXISTS { ?x :b+ ?z } }", "?x :a ?y"),
        ("ASK { ?x :a ?y MINUS { ?x :b ?z FILTER(md5(?z) = 'a') } }", "?x :a ?y"),
        (
            "ASK { ?x :a ?y OPTIONAL { ?x :b+ ?z } FILTER(!bound(?z)) FILTER(?y = 1) }",
            "?x :a ?y FILTER(?y = 1)",
        ),
        ("ASK { ?x :a ?y BIND(md5(?y) AS ?z) FILTER(?z = 'a') OPTIONAL { ?x :b ?z } }", "?x :a ?y"),
        (
            "ASK { ?x :a ?y . { SELECT ?y { ?y :b ?x ; :c ?n } LIMIT 1 } }",
            "?x :a ?y . { ?y :b ?v ; :c ?w }",
        ),
        ("ASK { ?x :a ?y . { SELECT (MAX(?n) AS ?y) { ?x :c ?n } } }", "?x :a ?y"),
        (
            "ASK { { SELECT ?x (MAX(?n) AS ?m) { ?x :c ?n } GROUP BY ?x } FILTER(?m > 2) }",
            "{ ?x :c ?n }",
        ),
        ("DESCRIBE ?x { ?x :a ?y }", "?x :a ?y"),
        ("DESCRIBE :a", ""),
    ],
)
def test_a_necessary_part_of_what_the_tree_cannot_say(text: str, where: str) -> None:
    """Which of the variables that nobody sees are blank nodes makes no difference here."""
    query = parsed(text)
    assert query.whole
    names = {"_:u": "?u", "_:v": "?v", "_:p": "?p", "_:q": "?q"}
    for blank_node, variable in names.items():
        where = where.replace(blank_node, variable)
    assert _shape(query.where) == _shape(elements_of(where))


def elements_of(where: str) -> Group:
    return parse_graph_query(f"{PROLOGUE}ASK {{ {where} }}").where


def _shape(group: Group) -> str:
    """The text of a group, with variables by first appearance."""
    names: dict[str, str] = {}
    words = unparse(GraphQuery(QueryForm.ASK, group, results=ResultSyntax.AS_PUBLISHED)).split(" ")
    return " ".join(
        names.setdefault(word, f"?v{len(names)}") if word.startswith("?") else word
        for word in words
    )


def test_the_whole_text_is_standard_and_in_full() -> None:
    query = parsed(
        "# c\nSELECT ?x { ?x a/rdfs:subClassOf* :c ; :a 'it''s' # d\n } ORDER BY ?x".replace(
            "''s'", "s'"
        )
    )
    assert query.whole == (
        "SELECT ?x { ?x <urn:onyx:graph:instance> <http://example.org/c> ;"
        ' <http://example.org/a> "its" } ORDER BY ?x'
    )
    assert query.where.elements[0] == TriplePattern(X, TYPE, C, Closure.INSTANCE)


# -- which language a text is in


@pytest.mark.parametrize(
    "text",
    [
        "select * {}",
        " #x\n#y\r\nPREFIX : <a:b> ASK {}",
        "BASE<a:b>ASK{}",
        "construct{}where{}",
        "DESCRIBE <a:b>",
        "INSERT DATA { }",
    ],
)
def test_graph_queries_are_known_by_their_first_word(text: str) -> None:
    assert is_graph_query(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/a",
        "//select",
        "for $x in //a return $x",
        "selected",
        "<ask/>",
        "ask/x",
        "delete node //a",
    ],
)
def test_other_profiles_are_not_graph_queries(text: str) -> None:
    assert not is_graph_query(text)


# -- refusals


@pytest.mark.parametrize(
    ("text", "code", "column", "expected"),
    [
        ("SELECT ?x { ?x dcx:a 1 }", "undeclared-prefix", 16, "PREFIX dcx: <…> in front"),
        (
            "SELECT ?x { ?x foaf:name 1 }",
            "undeclared-prefix",
            16,
            "PREFIX foaf: <http://xmlns.com/foaf/0.1/>",
        ),
        ("SELECT ?x { ?x xds:a 1 }", "undeclared-prefix", 16, "'xsd:'"),
        ("SELECT ?x { ?x !(:a|?y) 1 }", "syntax", 21, "an IRI"),
        ("SELCT ?x { ?x :a 1 }", "syntax", 1, "SELECT"),
        ("SELECT ?x { ?x :a 1 OPTONAL { ?x :b 2 } }", "syntax", 21, "OPTIONAL"),
        ("SELECT x { ?x :a 1 }", "syntax", 8, "a variable: ?x"),
        ("SELECT ?x { //item[@a = 1] }", "syntax", 13, "a pattern of triples"),
        ("SELECT ?x { ?x :a ?y FILTER(?y == 1) }", "syntax", 33, "one '='"),
        ("SELECT ?x { ?x :a ?y FILTER(?x<?y&&?y>1) }", "syntax", 31, "white space behind '<'"),
        ("SELECT ?x { ?x :a ?y FILTER(?y <> 1) }", "syntax", 32, "'!='"),
        ("SELECT ?x { ?x :a ?y FILTER(?y = 1 and ?x = 1) }", "syntax", 36, "'&&'"),
        ("SELECT ?x { ?x :a ?y FILTER(starts-with(?y, 'a')) }", "syntax", 29, "strstarts(…)"),
        ("SELECT ?x { ?x :a ?y FILTER(matches(?y, 'a')) }", "unknown-function", 29, "regex(…)"),
        (
            "SELECT ?x { ?x :a ?y FILTER(strstart(?y, 'a')) }",
            "unknown-function",
            29,
            "strstarts(…)",
        ),
        ("SELECT ?x { ?x :a ?y FILTER(:f(?y)) }", "unknown-function", 29, "xsd:integer"),
        ("SELECT ?x { ?x :a ?y FILTER(regex(?y, '(')) }", "pattern", 29, ""),
        ("SELECT ?x { ?x :a ?y FILTER(contains(?y)) }", "arguments", 29, ""),
        ("SELECT ?x { ?x :a ?y ?z }", "syntax", 22, "'.' between triples"),
        ("SELECT ?x { ?x :a 'b }", "syntax", 19, "a closing '"),
        ("SELECT ?x { ?x :a “b” }", "syntax", 19, "a straight quotation mark"),
        ("SELECT ?x { ?x :a 'b'@waytoolongtag }", "language", 22, "@en"),
        ("SELECT ?x { ?x :a <b> }", "iri", 19, "BASE"),
        ("SELECT ?x { ?x :a <http://e/%zz> }", "iri", 19, ""),
        ("SELECT ?x { ?x :a '\\u0000' }", "character", 19, ""),
        ("SELECT ?x FROM <a:b> { ?x :a 1 }", "unsupported", 11, "GRAPH"),
        ("SELECT ?x { SERVICE <a:b> { ?x :a 1 } }", "unsupported", 13, ""),
        ("SELECT ?x { << ?x :a 1 >> :b 2 }", "unsupported", 13, ""),
        ("INSERT DATA { :a :b :c }", "unsupported", 1, "SELECT"),
        ("SELECT ?x { ?x :a ?y BIND(1 AS ?y) }", "duplicate-variable", 32, ""),
        ("SELECT ?x ?y { ?x :a ?y } GROUP BY ?x", "grouping", 11, "sample(?y)"),
        ("SELECT ?x { _:n :a ?x . { _:n :b ?x } }", "blank-node", 27, "?n"),
        ("SELECT ?x { VALUES (?x ?y) { (1) } }", "values", 30, "UNDEF"),
        ("SELECT ?__0 { ?__0 :a 1 }", "reserved", 8, ""),
        ("SELECT ?t { :c rdfs:subClassOf* ?t . ?x a ?t }", "unsupported", 33, "rdfs:subClassOf*"),
        ("SELECT ?x { :c rdfs:subClassOf* ?t . ?x a ?t } LIMIT 1", "unsupported", 33, ""),
        ("SELECT ?x { ?x :a 1 ", "syntax", 21, "'}'"),
    ],
)
def test_refusals_say_where_and_what_was_meant(
    text: str, code: str, column: int, expected: str
) -> None:
    with pytest.raises(ProfileRefused) as refusal:
        parse_graph_query(PROLOGUE + text)
    assert (refusal.value.code, refusal.value.line, refusal.value.column) == (code, 2, column)
    assert expected in refusal.value.expected


def test_an_unknown_syntax_of_results_is_refused() -> None:
    with pytest.raises(ProfileRefused) as refusal:
        parse_graph_query("# results: text/turtel\nCONSTRUCT WHERE { }")
    assert (refusal.value.code, refusal.value.column) == ("results", 12)
    assert refusal.value.expected == "text/turtle"


# -- bounds

LIMITS = ProfileLimits(length_max=400, depth_max=8, steps_max=4, clauses_max=3)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("ASK { " + " " * 400 + "}", "too-long"),
        ("ASK { ?x <a:b> 1, 2, 3, 4, 5 }", "too-long"),
        ("ASK { ?x <a:b>/<a:b>/<a:b>/<a:b>/<a:b> 1 }", "too-long"),
        ("ASK { VALUES ?x { 1 2 3 4 5 } }", "too-long"),
        ("ASK { ?x ?y ?z . ?v <a:b> 1 }", "too-many-variables"),
        ("ASK { ?x <a:b> " + "[ <a:b> " * 8 + "1" + "]" * 8 + " }", "too-deep"),
        ("ASK " + "{" * 9 + "}" * 9, "too-deep"),
        ("ASK { FILTER(" + "!" * 9 + "1) }", "too-deep"),
        ("ASK { FILTER(" + "(" * 9 + "1" + ")" * 9 + ") }", "too-deep"),
        ("ASK { FILTER(" + "1+" * 9 + "1) }", "too-deep"),
        ("ASK { FILTER(" + "1||" * 9 + "1) }", "too-long"),
        ("ASK { ?x " + "(" * 9 + "<a:b>" + ")" * 9 + " 1 }", "too-deep"),
    ],
)
def test_bounds(text: str, code: str) -> None:
    with pytest.raises(ProfileRefused) as refusal:
        parse_graph_query(text, LIMITS)
    assert refusal.value.code == code


@pytest.mark.parametrize(
    "part",
    ["(", "{", "[", "!", "1+", "1||", "<a:b>/", "^", "a.", "?x ", "<a", "(:a|", "'''", '"\\'],
)
def test_hostile_texts_are_read_in_time(part: str) -> None:
    """64 K characters of anything are refused as anything else is, and not by a RecursionError."""
    for head in ("ASK { ", "ASK { FILTER(", "ASK { ?x ", "ASK { ?x :a "):
        text = head + part * ((65_000 - len(head)) // len(part))
        with pytest.raises(ProfileRefused):
            parse_graph_query(text)
