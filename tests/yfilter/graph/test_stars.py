"""Paths of graph profiles: what they look like, and that they select what has a solution."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from random import Random

import pytest

from formats.graph.closure import TaxonomyClosure
from formats.graph.reader import read_graph
from formats.graph.syntaxes import GraphSyntax
from formats.graph.taxonomy import read_taxonomy
from tests.yfilter.evaluated import select
from tests.yfilter.graph.random_graphs import PROLOGUE_OF_DATA, RandomCase
from yfilter.graph.graph_query import parse_graph_query, with_classes_above
from yfilter.graph.join import MessageGraph
from yfilter.graph.join_program import JoinProgram
from yfilter.graph.stars import ALTERNATIVES_MAX, GraphPart, graph_part
from yfilter.language.budget import Budget
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_parser import parse_path
from yfilter.language.query_text import unparse

pyoxigraph = pytest.importorskip("pyoxigraph")
E = "http://e/"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
PROLOGUE = f"PREFIX : <{E}> PREFIX xsd: <{XSD}> PREFIX rdfs: <{RDFS}>\n"
EXACT, NECESSARY = True, False


def part_of(where: str, head: str = "ASK", tail: str = "") -> GraphPart:
    part = graph_part(parse_graph_query(f"{PROLOGUE}{head} {{ {where} }} {tail}"))
    for path in part.paths:
        assert parse_path(unparse(path)) == path  # as it travels between brokers
    return part


def paths_of(part: GraphPart) -> list[str]:
    """As text, names of the striped graph and of the examples without their namespace."""
    return [
        unparse(path)
        .replace("Q{urn:onyx:graph}", "")
        .replace(f"Q{{{RDF}}}", "rdf:")
        .replace(f"Q{{{E}}}", ":")
        for path in part.paths
    ]


@pytest.mark.parametrize(
    ("where", "path", "is_exact"),
    [
        ("", "/g", EXACT),
        ("?x ?p ?y", "/g/d", EXACT),
        ("?x :p ?y", "/g/d[:p]", EXACT),
        ("?x :p :a", '/g/d[:p[@r = "http://e/a"]]', EXACT),
        ('?x :p "Ann"', '/g/d[:p[@v = "Ann"]]', EXACT),
        ('?x :p "Ann"@EN', '/g/d[:p[@u = "Ann"][@l = "en"]]', EXACT),
        ("?x :p 05", f'/g/d[:p[@y = "05"][@t = "{XSD}integer"]]', EXACT),
        (":a :p ?y ; :q ?z", '/g/d[@s = "http://e/a"][:p][:q]', EXACT),
        ("?x a :C", '/g/d[rdf:type[@r = "http://e/C"]]', EXACT),
        ("?x a/rdfs:subClassOf* :C", '/g/d[k/c[@r = "http://e/C"]]', EXACT),
        ("?x a/^rdfs:subClassOf* :C", '/g/d[k/c[@o][@r = "http://e/C"]]', EXACT),
        ("?x <http://e/9> ?y", '/g/d[p[@i = "http://e/9"]]', EXACT),
        ("?x ?p 'a'", '/g/d[*[@v = "a"]]', EXACT),
        ("GRAPH :g { ?x :p ?y }", '/g/n[@g = "http://e/g"][:p]', EXACT),
        ("GRAPH ?g { ?x :p ?y }", "/g/n[:p]", EXACT),
        (":a ?p ?y", '/g/d[@s = "http://e/a"]', NECESSARY),  # it may have nothing but classes
        (":a ?p ?y ; :q ?z", '/g/d[@s = "http://e/a"][:q]', EXACT),
        ("?x :p ?x", "/g/d[:p]", NECESSARY),
        ("?x :p ?y ; :q ?y", "/g/d[:p][:q]", NECESSARY),
        # Several stars: what selects most is last.
        ("?x :p 'a' . ?z :q ?w", '/g[d[:q]]/d[:p[@v = "a"]]', EXACT),
        ("?x :p ?y . ?y :q 'a'", '/g[d[:p]]/d[:q[@v = "a"]]', NECESSARY),
        (
            "?x a :C ; :p ?y . ?y :q 'a'",
            '/g[d[rdf:type[@r = "http://e/C"]][:p]]/d[:q[@v = "a"]]',
            NECESSARY,
        ),
        ("?x ?p ?y . ?y :q ?z", "/g/d[:q]", NECESSARY),
        # Filters.
        ("?x :p ?y FILTER(?y < 10)", "/g/d[:p[@n < 10]]", EXACT),
        (
            "?x :p ?y FILTER(2.5 <= ?y && ?y < 1e1)",
            "/g/d[:p[@n >= 2.5][@n <= 10.000000000000002]]",
            NECESSARY,
        ),
        ("?x :p ?y FILTER(?y = 5)", "/g/d[:p[@n = 5]]", EXACT),
        ("?x :p ?y FILTER(?y > '2004-01-01'^^xsd:date)", "/g/d[:p[@w >= 1072915200]]", NECESSARY),
        ("?x :p ?y FILTER(?y = 'Ann')", '/g/d[:p[@v = "Ann"]]', EXACT),
        ("?x :p ?y FILTER(?y > 'Ann')", '/g/d[:p[@v > "Ann"]]', EXACT),
        ("?x :p ?y FILTER(?y != :a)", '/g/d[:p[not(@r = "http://e/a")]]', EXACT),
        ("?x :p ?y FILTER(?y != 'Ann')", '/g/d[:p[not(@v = "Ann")]]', NECESSARY),
        ("?x :p ?y FILTER(?y != 5)", "/g/d[:p]", NECESSARY),
        ("?x :p ?y FILTER(?y IN ('a', 'b'))", '/g/d[:p[@v = ("a", "b")]]', EXACT),
        ("?x :p ?y FILTER(?x = :a)", '/g/d[@s = "http://e/a"][:p]', EXACT),
        ("?x :p ?y FILTER(isIRI(?x) && isBlank(?y))", "/g/d[@s][:p[@b]]", EXACT),
        (
            "?x :p ?y FILTER(strstarts(str(?x), 'http:'))",
            '/g/d[starts-with(@s, "http:")][:p]',
            EXACT,
        ),
        ("?x :p ?y FILTER(lang(?y) = 'en')", '/g/d[:p[@l = "en"]]', EXACT),
        ("?x :p ?y FILTER(datatype(?y) = xsd:date)", f'/g/d[:p[@t = "{XSD}date"]]', EXACT),
        (
            "?x :p ?y FILTER(year(?y) = 2004)",
            "/g/d[:p[@w >= 1072864800][@w <= 1104588000]]",
            NECESSARY,
        ),
        ("?x :p ?y FILTER(?y + 1 > 5)", "/g/d[:p[@n >= 3.99999523163]]", NECESSARY),
        (
            "?x :p ?y FILTER(lcase(str(?x)) = 'a')",
            '/g/d[@s/lower-case(.) = "a"][:p]',
            NECESSARY,
        ),
        (
            "?x :p ?y FILTER(strlen(str(?x)) > 5)",
            "/g/d[@s/string-length(.) >= 5][:p]",
            NECESSARY,
        ),
        ("?x :p ?y ; :q ?z FILTER(?y < ?z)", "/g/d[:p][:q]", NECESSARY),
        ("?x :p ?y FILTER EXISTS { ?x :q 'a' }", '/g/d[:p][:q[@v = "a"]]', NECESSARY),
        ("?x :p ?y FILTER NOT EXISTS { ?x :q 'a' }", "/g/d[:p]", NECESSARY),
        ("?x :p ?y VALUES ?y { 'a' :b }", None, EXACT),
        # What only adds to solutions.
        ("?x :p ?y OPTIONAL { ?x :q ?z }", "/g/d[:p]", EXACT),
        ("?x :p ?y OPTIONAL { ?x :q ?z } FILTER(!bound(?z))", "/g/d[:p]", NECESSARY),
        ("?x :p ?y OPTIONAL { ?x :q ?z } ?z :r ?w", None, NECESSARY),
        ("?x :p ?y BIND(?y AS ?z)", "/g/d[:p]", EXACT),
        ("?x :p ?y MINUS { ?x :q ?z }", "/g/d[:p]", NECESSARY),
        # What no graph has.
        ("'a' :p ?y", "/g[@b]", EXACT),
        ("?x :p ?y FILTER(?y IN ())", "/g[@b]", EXACT),
        ("?x :p ?y FILTER(isLiteral(?x))", "/g[@b]", EXACT),
        ("?x :p ?y VALUES ?y { }", "/g[@b]", EXACT),
    ],
)
def test_one_path(where: str, path: str | None, is_exact: bool) -> None:
    part = part_of(where)
    assert path is None or paths_of(part) == [path]
    assert part.is_exact is is_exact


@pytest.mark.parametrize(
    ("where", "paths"),
    [
        (
            "{ ?x :p 1 } UNION { ?x :q ?y }",
            [f'/g/d[:p[@y = "1"][@t = "{XSD}integer"]]', "/g/d[:q]"],
        ),
        ("?x :p|:q ?y", ["/g/d[:p]", "/g/d[:q]"]),
        (
            "?x :p ?y FILTER(contains(?y, 'a'))",
            ['/g/d[:p[contains(@v, "a")]]', '/g/d[:p[contains(@u, "a")]]'],
        ),
        (
            "?x :p ?y ; :q ?z FILTER(?y = 'a' || ?z = 'b')",
            ['/g/d[:p[@v = "a"]][:q]', '/g/d[:p][:q[@v = "b"]]'],
        ),
        ("?x ?p ?y . ?p rdfs:subPropertyOf* :q", ["/g/d[:q]", '/g/d[k/q[@i = "http://e/q"]]']),
        (
            "?x ?p 'a' . ?p rdfs:subPropertyOf* :q",
            ['/g/d[:q[@v = "a"]]', '/g/d[k/q[@i = "http://e/q"][@v = "a"]]'],
        ),
    ],
)
def test_alternatives(where: str, paths: list[str]) -> None:
    part = part_of(where)
    assert paths_of(part) == paths
    assert part.is_exact


def test_too_many_alternatives_leave_what_they_have_in_common() -> None:
    choices = [f"{{ ?x :{p} 1 }} UNION {{ ?x :{p} 2 }} UNION {{ ?x :{p} 3 }}" for p in "abcd"]
    part = part_of("?x :q ?y . " + " . ".join(choices))
    assert len(part.paths) == 27
    assert not part.is_exact
    part = part_of("?x :q ?y ." + " UNION ".join(f"{{ ?x :p {n} }}" for n in range(33)))
    assert paths_of(part) == ["/g/d[:q]"]
    texts = " && ".join(f"contains(str(?y{n}), 'a')" for n in range(4))
    part = part_of("?x :p ?y0, ?y1, ?y2, ?y3 FILTER(" + texts + ")")
    assert len(part.paths) == 1
    assert part.is_exact


def test_what_the_tree_does_not_say_is_not_exact() -> None:
    part = part_of("?x :p ?y", "SELECT ?x", "LIMIT 1")
    assert paths_of(part) == ["/g/d[:p]"]
    assert not part.is_exact


class Oracle:
    """A graph, striped and in another processor."""

    def __init__(self, data: str) -> None:
        self.data = data
        self.store = pyoxigraph.Store()
        self.store.load(data.encode(), format=pyoxigraph.RdfFormat.TRIG)
        self.stream = read_graph(data.encode(), GraphSyntax.TRIG)


@pytest.mark.parametrize("seed", range(8))
def test_graphs_with_a_solution_are_selected(seed: int) -> None:
    """By the interpreter of paths; the index is held to it elsewhere."""
    case = RandomCase(Random(seed))
    graphs = [Oracle(case.graph()) for _ in range(10)]
    solved = exact = 0
    for _ in range(60):
        text = case.query()
        query = parse_graph_query(text)
        part = graph_part(query)
        assert 1 <= len(part.paths) <= ALTERNATIVES_MAX
        exact += part.is_exact
        for graph in graphs:
            has_solution = bool(graph.store.query(text))
            is_selected = any(select(path, graph.stream) for path in part.paths)
            told = f"{text}\n{paths_of(part)}\n{graph.data.removeprefix(PROLOGUE_OF_DATA)}"
            assert is_selected or not has_solution, told
            assert has_solution or not is_selected or not part.is_exact, told
            solved += has_solution
    assert solved > 5 and exact > 5


def near(random: Random, bound: str) -> str:
    """A numeric literal at a bound, or so near that a double hardly tells, or not."""
    value = Decimal(bound)
    kind = random.choice(("integer", "decimal", "decimal", "double", "float"))
    step = Decimal(10) ** -random.choice((0, 1, 6, 7, 8, 13, 15, 16, 17))
    value += random.choice((-1, 0, 0, 1)) * step * random.randint(1, 3)
    text = f"{value:f}" if kind != "integer" else str(int(value))
    return f'"{text}"^^xsd:{kind}'


@pytest.mark.parametrize("seed", range(4))
def test_numbers_are_compared_as_they_are_written(seed: int) -> None:
    random = Random(seed)
    for _ in range(150):
        bound = random.choice(("0", "10", "0.1", "-2.5", "16777217", "999999", "0.30000001", "1e1"))
        operator = random.choice(("<", "<=", ">", ">=", "="))
        query = f"PREFIX : <urn:> ASK {{ ?x :p ?y FILTER(?y {operator} {bound}) }}"
        part = graph_part(parse_graph_query(query))
        for _ in range(8):
            graph = Oracle(f"{PROLOGUE_OF_DATA} :s :p {near(random, bound)} .")
            has_solution = bool(graph.store.query(query))
            is_selected = any(select(path, graph.stream) for path in part.paths)
            assert is_selected or not has_solution, (query, graph.data)
            assert has_solution or not is_selected or not part.is_exact, (query, graph.data)


COMPUTED: tuple[tuple[str, Callable[[Decimal], Decimal]], ...] = (
    ("?y + 0.1", lambda value: value + Decimal("0.1")),
    ("1000000 - ?y", lambda value: 1_000_000 - value),
    ("?y * 0.7", lambda value: value * Decimal("0.7")),
    ("-3 * ?y - 5", lambda value: -3 * value - 5),
    ("?y / -8e0", lambda value: value / -8),
    ("abs(?y - 7)", lambda value: abs(value - 7)),
    ("floor(?y * 1.1)", lambda value: (value * Decimal("1.1")).to_integral_value("ROUND_FLOOR")),
    ("round(-?y)", lambda value: (-value).to_integral_value()),
    ("ceil(?y)", lambda value: value.to_integral_value("ROUND_CEILING")),
    ("xsd:decimal(str(?y)) + 1", lambda value: value + 1),
    ("xsd:integer(?y) + 1", lambda value: value.to_integral_value("ROUND_DOWN") + 1),
)


@pytest.mark.parametrize("seed", range(4))
def test_bounds_of_computed_numbers_lose_no_graph(seed: int) -> None:
    """By filters evaluated one by one."""
    random = Random(seed)
    selected = solved = 0
    for _ in range(150):
        value = random.choice(("0", "10", "0.1", "-2.5", "16777217", "999999", "0.30000001"))
        computed, compute = random.choice(COMPUTED)
        bound = near(random, f"{compute(Decimal(value)):f}")
        operator = random.choice(("<", "<=", ">", ">=", "="))
        query = parse_graph_query(
            f"{PROLOGUE} ASK {{ ?x :p ?y FILTER({computed} {operator} {bound}) }}"
        )
        data = f"{PROLOGUE_OF_DATA} :s :p {near(random, value)} ."
        stream = read_graph(data.encode(), GraphSyntax.TRIG)
        is_selected = any(select(path, stream) for path in graph_part(query).paths)
        has_solution = JoinProgram(query.where, ()).holds(
            MessageGraph(stream), Budget(EvaluationLimits())
        )
        assert is_selected or not has_solution, (computed, operator, bound, data)
        selected, solved = selected + is_selected, solved + has_solution
    assert 40 < solved <= selected < 150, (solved, selected)


CLOSED = (
    "?x a/rdfs:subClassOf* :A",
    "?x a/rdfs:subClassOf* :A ; :p ?y",
    "?x a ?t . ?t rdfs:subClassOf* :B",
    "?x a/^rdfs:subClassOf* :C",
    "?x a/^rdfs:subClassOf* :D ; :p ?y",
    ":C rdfs:subClassOf* ?t . ?x a ?t ; ?p 'a'",
    "?x ?p ?y . ?p rdfs:subPropertyOf* :p",
    "?x ?p 'a' . ?p rdfs:subPropertyOf* :q",
    "?x ?p ?y FILTER(isIRI(?y)) ?p rdfs:subPropertyOf* :p",
    "?x a/rdfs:subClassOf* :A . ?x ?p 'a' . ?p rdfs:subPropertyOf* :p",
)


@pytest.mark.parametrize("seed", range(4))
def test_closed_graphs_are_selected_as_by_paths_in_graph_and_taxonomy(seed: int) -> None:
    random = Random(seed)
    selected = 0
    for _ in range(30):
        above = {
            f"<{E}{below}> <{RDFS}{word}> <{E}{higher}> ."
            for names, word in (("ABCD", "subClassOf"), ("pqrs", "subPropertyOf"))
            for place, below in enumerate(names)
            for higher in names[:place]  # so that there are no cycles
            if random.random() < 0.4
        }
        taxonomy = "\n".join(sorted(above)).encode()
        data = "\n".join(
            random.choice(
                (
                    f"<{E}{random.choice('xy')}> <{RDF}type> <{E}{random.choice('ABCD')}> .",
                    f"<{E}{random.choice('xy')}> <{E}{random.choice('pqrs')}> "
                    + random.choice(('"a" .', f"<{E}o> .")),
                )
            )
            for _ in range(random.randrange(4))
        ).encode()
        closure = TaxonomyClosure(read_taxonomy(taxonomy, GraphSyntax.N_TRIPLES))
        stream = read_graph(data, GraphSyntax.N_TRIPLES, closure=closure)
        store = pyoxigraph.Store()
        # It takes no property for a node, which a path of no steps leads from.
        nodes = "".join(f"<{E}{name}> <{RDFS}subPropertyOf> <{E}{name}> .\n" for name in "pqrs")
        for triples in (data, taxonomy, nodes.encode()):
            store.load(triples, format=pyoxigraph.RdfFormat.N_TRIPLES)
        for where in CLOSED:
            text = with_classes_above(f"{PROLOGUE}ASK {{ {where} }}", closure.classes_above)
            part = graph_part(parse_graph_query(text))
            found = any(select(path, stream) for path in part.paths)
            has_solution = bool(store.query(f"{PROLOGUE}ASK {{ {where} }}"))
            assert found or not has_solution, (where, data, taxonomy)
            assert has_solution or not found or not part.is_exact, (where, data, taxonomy)
            selected += found
    assert selected > 20
