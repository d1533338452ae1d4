"""Rules over metadata: their normal form, what is refused and where, and what they match."""

from __future__ import annotations

from random import Random

import pyoxigraph
import pytest
import rdflib

from formats.graph.rdf_schema import RdfSchema, read_schema
from formats.graph.syntaxes import GraphSyntax
from formats.graph.vocabulary import RDF_TYPE, RDFS, XSD
from registration.metadata.documents import Statement
from registration.metadata.rules import (
    RESOURCE,
    Condition,
    Conjunction,
    Constant,
    Join,
    Rule,
    normal_text,
    parse_rule,
)
from tests.registration.metadata.brute import Graph, matches
from tests.registration.metadata.random_metadata import (
    RandomDocuments,
    RandomRules,
    meaning,
    n_triples,
    random_schema,
)
from yfilter.errors import ProfileRefused

NS = "http://objectglobe.example/#"
SCHEMA = b"""
@prefix : <http://objectglobe.example/#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
:CycleProvider a rdfs:Class . :ServerInformation a rdfs:Class . :Mirror a rdfs:Class .
<urn:other:Mirror> a rdfs:Class .
:serverHost a owl:FunctionalProperty ; rdfs:domain :CycleProvider ; rdfs:range xsd:string .
:serverPort a owl:FunctionalProperty ; rdfs:domain :CycleProvider ; rdfs:range xsd:integer .
:serverInformation a owl:FunctionalProperty, <urn:onyx:metadata:StrongReference> ;
    rdfs:domain :CycleProvider ; rdfs:range :ServerInformation .
:memory a owl:FunctionalProperty ; rdfs:domain :ServerInformation ; rdfs:range xsd:integer .
:cpu a owl:FunctionalProperty ; rdfs:domain :ServerInformation ; rdfs:range xsd:integer .
:built a owl:FunctionalProperty ; rdfs:domain :ServerInformation ; rdfs:range xsd:date .
:tag rdfs:domain :CycleProvider ; rdfs:range xsd:string .
:partner rdfs:domain :CycleProvider ; rdfs:range :CycleProvider .
:note rdfs:domain :CycleProvider .
"""
EXAMPLE_1 = """search CycleProvider c
register c
where c.serverHost contains 'uni-passau.de'
      and c.serverInformation.memory > 64"""
SECTION_3_3 = (
    "search CycleProvider c, ServerInformation s register c where "
    "c.serverHost contains 'uni-passau.de' and c.serverInformation = s and s.memory > 64"
)
FIGURE_1 = [
    Statement("doc.rdf#host", RDF_TYPE, f"{NS}CycleProvider", "", ""),
    Statement("doc.rdf#host", f"{NS}serverHost", "pirates.uni-passau.de", f"{XSD}string", ""),
    Statement("doc.rdf#host", f"{NS}serverPort", "5874", f"{XSD}integer", ""),
    Statement("doc.rdf#host", f"{NS}serverInformation", "doc.rdf#info", "", ""),
    Statement("doc.rdf#info", RDF_TYPE, f"{NS}ServerInformation", "", ""),
    Statement("doc.rdf#info", f"{NS}memory", "92", f"{XSD}integer", ""),
    Statement("doc.rdf#info", f"{NS}cpu", "600", f"{XSD}integer", ""),
]


@pytest.fixture(scope="module")
def schema() -> RdfSchema:
    return read_schema(SCHEMA, GraphSyntax.TURTLE)


def said(where: str) -> str:
    return f"search CycleProvider c register c where {where}"


def only(rule: Rule) -> Conjunction:
    (conjunction,) = rule.alternatives
    return conjunction


def test_example_1_in_the_normal_form_of_the_paper(schema: RdfSchema) -> None:
    rule = parse_rule(EXAMPLE_1, schema, {})
    assert only(rule) == Conjunction(
        {"c": f"{NS}CycleProvider", "s": f"{NS}ServerInformation"},
        "c",
        (
            Condition(
                "c",
                f"{NS}serverHost",
                "contains",
                Constant("text", "uni-passau.de", "'uni-passau.de'"),
            ),
            Condition("s", f"{NS}memory", ">", Constant("number", 64.0, "64")),
        ),
        (Join("c", f"{NS}serverInformation", "=", "s", ""),),
    )
    assert normal_text(only(rule), schema) == SECTION_3_3
    assert only(parse_rule(SECTION_3_3, schema, {})) == only(rule)
    assert rule.text == EXAMPLE_1
    assert rule.sparql == (
        f"SELECT DISTINCT ?c WHERE {{ ?c a <{NS}CycleProvider> . ?c <{NS}serverHost> ?_1 . "
        'FILTER(ISLITERAL(?_1) && CONTAINS(STR(?_1), "uni-passau.de")) '
        f"?c <{NS}serverInformation> ?s . ?s a <{NS}ServerInformation> . "
        f"?s <{NS}memory> ?_2 . FILTER(ISNUMERIC(?_2) && ?_2 > 64) }}"
    )


@pytest.mark.parametrize(("memory", "expected"), [("92", {"doc.rdf#host"}), ("32", set())])
def test_example_1_matches_figure_1(schema: RdfSchema, memory: str, expected: set[str]) -> None:
    rule = parse_rule(EXAMPLE_1, schema, {})
    statements = [each._replace(value=memory) if each.value == "92" else each for each in FIGURE_1]
    assert matches(rule, statements, schema) == expected


@pytest.mark.parametrize(
    ("where", "normal"),
    [
        ("64 < c.serverPort", "c.serverPort > 64"),
        ("not c.serverPort <= 64.0", "c.serverPort > 64"),
        ("not (c.serverPort = 1 or not c.tag? contains 'it''s')",
         "c.serverPort != 1 and c.tag? contains 'it''s'"),
        ("not c.tag? contains 'x'", "not c.tag? contains 'x'"),
        ("c.tag? = 'a' and c.tag? = 'b'", "c.tag? = 'a' and c.tag? = 'b'"),
        ("c = <urn:x>", "c = <urn:x>"),
        ("c.serverInformation.memory>6.5e1 and c.serverInformation.cpu<-1",
         "c.serverInformation = s and s.memory > 65 and s.cpu < -1"),
        ("c.partner?.serverPort = 1 and c.partner?.serverPort = 2",
         "c.partner? = c2 and c.partner? = c3 and c2.serverPort = 1 and c3.serverPort = 2"),
        (f"c.serverHost? = c.<{NS}tag>?", "c.serverHost = c.tag?"),
        ("c = c.partner?", "c.partner? = c"),
        ("c.serverInformation.built >= 2024-02-29Z",
         "c.serverInformation = s and s.built >= 2024-02-29Z"),
        ("c.serverInformation.built != 2024-02-29T12:00:00.5+01:00",
         "c.serverInformation = s and s.built != 2024-02-29T12:00:00.5+01:00"),
    ],
)  # fmt: skip
def test_a_condition_has_one_normal_form(schema: RdfSchema, where: str, normal: str) -> None:
    text = normal_text(only(parse_rule(said(where), schema, {})), schema)
    assert text.partition(" where ")[2] == normal
    assert normal_text(only(parse_rule(text, schema, {})), schema) == text


def test_or_and_not_are_split(schema: RdfSchema) -> None:
    where = "(c.serverPort = 1 or c.serverPort = 2) and not (c.tag? = 'a' and c.tag? = 'b')"
    rule = parse_rule(said(where), schema, {})
    texts = [normal_text(each, schema).partition(" where ")[2] for each in rule.alternatives]
    assert texts == [
        f"c.serverPort = {port} and c.tag? != '{tag}'" for port in (1, 2) for tag in "ab"
    ]
    assert rule.sparql.count("UNION") == 3


def test_a_rule_stands_for_what_it_matches(schema: RdfSchema) -> None:
    big = parse_rule(EXAMPLE_1, schema, {})
    two = parse_rule(said("c.serverPort = 1 or c.tag? = 'a'"), schema, {})
    rules = {"big": big, "two": two}
    text = "search big s, two c register s where s.partner? = c"
    rules["third"] = third = parse_rule(text, schema, rules)
    assert [
        normal_text(each, schema).partition(" register ")[2] for each in third.alternatives
    ] == [
        "s where s.serverHost contains 'uni-passau.de' and s.serverInformation = s_s and "
        f"s.partner? = c and {condition} and s_s.memory > 64"
        for condition in ("c.serverPort = 1", "c.tag? = 'a'")
    ]
    assert third.names == {"big", "two"}
    again = parse_rule("search third c register c", schema, rules)
    assert again.names == {"big", "two", "third"}
    with pytest.raises(ProfileRefused, match=r"names third, which is made of it"):
        parse_rule("search third c register c", schema, rules, "two")
    with pytest.raises(ProfileRefused, match=r"the rule new names itself"):
        parse_rule("search new c register c", schema, rules, "new")
    with pytest.raises(ProfileRefused, match="did you mean the rule third"):
        parse_rule("search thrid c register c", schema, rules)
    with pytest.raises(ProfileRefused, match=f"write <{NS}CycleProvider> if you mean it"):
        parse_rule("search CycleProvider c register c", schema, {"CycleProvider": two})
    as_iri = f"search <{NS}CycleProvider> c register c"
    assert not parse_rule(as_iri, schema, {"CycleProvider": two}).names


def test_names_are_prefixed_or_whole_iris(schema: RdfSchema) -> None:
    text = f"""prefix g: <{NS}>
        search g:Mirror m, <urn:other:Mirror> o, <{RDFS}Resource> r register m
        where m = r and r = o and r.<{NS}note>? = 'x'"""
    rule = parse_rule(text, schema, {})
    assert [*only(rule).classes.values()] == [f"{NS}Mirror", "urn:other:Mirror", RESOURCE]


def test_an_open_schema_takes_all_names() -> None:
    schema = read_schema(SCHEMA, GraphSyntax.TURTLE, is_open=True)
    text = "prefix x: <urn:x:> search x:Thing t register t where t.x:p?.<urn:q>? > 5"
    conjunction = only(parse_rule(text, schema, {}))
    assert [*conjunction.classes.values()] == ["urn:x:Thing", RESOURCE]
    assert only(parse_rule(normal_text(conjunction, schema), schema, {})) == conjunction


@pytest.mark.parametrize(
    ("text", "code", "place", "hint"),
    [
        ("serach CycleProvider c register c", "syntax", (1, 1), "'search'"),
        ("select CycleProvider c register c", "syntax", (1, 1), "'search'"),
        ("search CycleProvider c", "syntax", (1, 23), "'register'"),
        ("search CycleProvider register c", "variable", (1, 22), "no word of the language"),
        ("search CycleProvider c-d register c-d", "variable", (1, 22), "letters"),
        ("search CycleProvider c, ServerInformation c register c", "variable", (1, 43),
         "another name"),
        ("search CycleProvider c register c WHERE c = c", "syntax", (1, 35), "'where'"),
        ("search CycleProvider c register\nd", "unknown-variable", (2, 1), "variables are c"),
        ("search Cycleprovider c register c", "unknown-class", (1, 8), "CycleProvider"),
        ("search Mirror c register c", "unknown-class", (1, 8), "<urn:other:Mirror>"),
        ("search p:Mirror c register c", "unknown-class", (1, 8), ""),
        ("prefix p <urn:x> search p:C c register c", "syntax", (1, 10), "':'"),
        ("prefix p: 'x' search p:C c register c", "syntax", (1, 11), "an IRI"),
        ("search CycleProvider c register c where", "syntax", (1, 40), "a path"),
        (said("c.serverhost = 'x'"), "unknown-property", (1, 43), "serverHost"),
        (said("c.memory > 64"), "unknown-property", (1, 43),
         "did you mean serverInformation.memory"),
        (said("c.<urn:p>? > 64"), "unknown-property", (1, 43), ""),
        (said("d.memory > 64"), "unknown-variable", (1, 41), "variables are c"),
        (said("c.serverHost = passau"), "unknown-variable", (1, 56), "'passau'"),
        (said("c.tag = 'x'"), "several-values", (1, 46), "'?'"),
        (said("c.tag? like 'x'"), "syntax", (1, 48), "'contains'"),
        (said("c.serverHost == 'x'"), "syntax", (1, 54), "'='"),
        (said('c.serverHost = "x"'), "syntax", (1, 56), "''"),
        (said("c.serverHost = 'x"), "syntax", (1, 56), "a closing '"),
        (said("c.serverHost = \u2019x\u2019"), "syntax", (1, 56), "straight"),
        (said("c.serverPort = 64"), "", (0, 0), ""),
        (said("c.serverPort = 64c"), "syntax", (1, 56), "white space"),
        (said("c.serverPort = '64'"), "range", (1, 56), "a number"),
        (said("c.serverPort contains '64'"), "range", (1, 63), "'='"),
        (said("c.serverHost < 'x'"), "range", (1, 56), "'='"),
        (said("c.serverHost = 64"), "range", (1, 56), "a text"),
        (said("'x' contains c.serverHost"), "range", (1, 41), "on the left"),
        (said("c.serverInformation = 'x'"), "range", (1, 63), "a resource"),
        (said("c.serverInformation.built = 64"), "range", (1, 69), "2024-02-29"),
        (said("c.serverInformation.built = 2023-02-29"), "moment", (1, 69), "2024-02-29"),
        (said("c = 'x'"), "range", (1, 45), "<http"),
        (said("c > 5"), "range", (1, 45), "'='"),
        (said("c.serverInformation = c"), "range", (1, 63), "one class"),
        (said("c.serverPort = c.serverHost"), "range", (1, 56), "a number"),
        (said("c.serverPort.memory = 5"), "range", (1, 54), "an operator"),
        (said("1 = 1"), "constants", (1, 41), "a path"),
        (said(f"c.<{RDF_TYPE}>? = <urn:x>"), "unknown-property", (1, 43), ""),
        (said("c.serverPort = 1234567890123456"), "number", (1, 56), "15 digits"),
        (said("c.serverPort = 1e999"), "number", (1, 56), "digits"),
        (said("c.serverPort = 1 c"), "syntax", (1, 58), "'and'"),
        (said("(c.serverPort = 1"), "syntax", (1, 58), "')'"),
        (said("c.serverPort = 1 && c = c"), "syntax", (1, 58), "'and'"),
        (said("not " * 65 + "c.serverPort = 1"), "too-deep", (1, 297), ""),
        (said("c" + ".partner?" * 17 + " = c"), "too-long-path", (1, 187), "a variable"),
        (said(" and ".join(["c.partner?.partner?.serverPort = 1"] * 8)), "too-many-variables",
         (1, 314), "two rules"),
        (said(" and ".join(["(c.serverPort = 1 or c.tag? = 'x')"] * 6)),
         "too-many-alternatives", (1, 232), "several rules"),
        ("search CycleProvider c, CycleProvider s register c where c.partner? = s or s = <u:s>",
         "not-connected", (1, 39), "in each alternative"),
    ],
)  # fmt: skip
def test_refusals_say_where_and_what_was_meant(
    schema: RdfSchema, text: str, code: str, place: tuple[int, int], hint: str
) -> None:
    if not code:
        parse_rule(text, schema, {})
        return
    with pytest.raises(ProfileRefused) as refused:
        parse_rule(text, schema, {})
    refusal = refused.value
    assert (refusal.code, (refusal.line, refusal.column)) == (code, place), str(refusal)
    assert hint in f"{refusal.expected} {refusal.hint}", str(refusal)


@pytest.mark.parametrize(
    "wheres",
    [
        ("c.serverPort = 1 and c.serverPort != 2", "c.serverPort = 3 and c.serverPort != 3"),
        ("c.serverPort = 2 and c.serverPort != 2", "c.serverPort = 1 and c.serverPort != 3"),
        ("c.tag? contains'a = 5' or c.note? = 1", "c.tag? contains'b <= ''6''' or c.note? = 1e3"),
        ("'x = 1' = c.tag? and c.serverPort < 7", "'x = 2' = c.tag? and c.serverPort < 7"),
        ("'x = 1' = c.tag?", "'x = 2' = c.tag?"),
        ("c = <urn:a?b=1> or c != <urn:c>", "c = <urn:d?e=2> or c != <urn:f>"),
        ("c.note? = 1", "c.note? = '1'", "c.note? = 2024-02-29", "c.note? = 2024-02-28Z"),
    ],
)
def test_rules_that_differ_in_constants_are_read_as_each_alone(
    schema: RdfSchema, wheres: tuple[str, ...]
) -> None:
    for where in (*wheres, *wheres):
        alone = read_schema(SCHEMA, GraphSyntax.TURTLE)
        rule = parse_rule(said(where), schema, {})
        assert rule.alternatives == parse_rule(said(where), alone, {}).alternatives
        assert rule.text == said(where)
    with pytest.raises(ProfileRefused, match="is a class and a rule"):
        parse_rule(said(wheres[0]), schema, {"CycleProvider": rule})
    with pytest.raises(ProfileRefused, match="names itself"):
        parse_rule(said(wheres[0]), schema, {}, "CycleProvider")


@pytest.mark.parametrize("constant", ["1234567890123456", "5x", "2023-02-29", "'a"])
def test_a_constant_that_is_refused_is_so_where_others_were_read(
    schema: RdfSchema, constant: str
) -> None:
    parse_rule(said("c.note? = 5"), schema, {})
    with pytest.raises(ProfileRefused) as refused:
        parse_rule(said(f"c.note? = {constant}"), schema, {})
    assert refused.value.column == len(said("c.note? = ")) + 1


def test_classes_are_not_asked_for_by_a_property() -> None:
    schema = read_schema(SCHEMA, GraphSyntax.TURTLE, is_open=True)
    with pytest.raises(ProfileRefused, match="'search', with a class"):
        parse_rule(said(f"c.<{RDF_TYPE}>? = <urn:x>"), schema, {})


def test_named_rules_multiply_and_are_counted(schema: RdfSchema) -> None:
    six = said(" or ".join(f"c.serverPort = {port}" for port in range(6)))
    rules = {"six": parse_rule(six, schema, {})}
    text = "search six a, six b register a where a.partner? = b"
    with pytest.raises(ProfileRefused, match="36 alternatives") as refused:
        parse_rule(text, schema, rules)
    assert refused.value.column == 19
    long = said("c" + ".partner?" * 13 + " = c")
    rules = {"long": parse_rule(long, schema, {})}
    with pytest.raises(ProfileRefused, match="more than 16 variables") as refused:
        parse_rule("search long a, long b register a where a.partner? = b", schema, rules)
    assert refused.value.column == 21


# -- random rules


@pytest.mark.parametrize("seed", range(100))
def test_random_rules_mean_what_loops_and_sparql_find(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rdflib, "NORMALIZE_LITERALS", False)  # which takes the zones off days
    random, schema = Random(seed), random_schema()
    documents = RandomDocuments(random)
    statements = [each for number in range(6) for each in documents.document(number)]
    graph, data = Graph(statements, schema), n_triples(statements)
    store, other_store = pyoxigraph.Store(), rdflib.Graph()
    store.load(data, pyoxigraph.RdfFormat.N_TRIPLES)
    other_store.parse(data, format="nt")
    made = RandomRules(random, documents.classes)
    rules: dict[str, Rule] = {}
    for number in range(20):
        name = f"R{number}" if number < 5 else ""
        given = made.rule(name)
        try:
            rule = parse_rule(given.text, schema, rules)
        except ProfileRefused as refused:
            assert refused.code in ("too-many-alternatives", "too-many-variables"), given.text
            if name:
                made.forget(name)
            continue
        if name:
            rules[name] = rule
        expected = meaning(given, made.others, graph)
        assert matches(rule, statements, schema) == expected, given.text
        assert {row[0].value for row in store.query(rule.sparql)} == expected, rule.sparql
        for each in rule.alternatives:
            again = only(parse_rule(normal_text(each, schema), schema, {}))
            assert [set(part) for part in again[2:]] == [set(part) for part in each[2:]]
        if number % 5 == 4:
            assert {str(row[0]) for row in other_store.query(rule.sparql)} == expected, rule.sparql
