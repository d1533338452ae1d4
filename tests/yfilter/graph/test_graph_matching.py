"""Graph profiles in the engine: what matches, against pyoxigraph on each message alone.

A store of pyoxigraph takes numbers that are equal for the same term, and orders IRIs, which SPARQL
does not; so neither occurs here.
"""

from __future__ import annotations

import json
from random import Random

import pyoxigraph
import pytest

from formats.element_stream import ElementStream
from formats.graph.reader import read_graph
from formats.graph.syntaxes import GraphSyntax
from formats.graph.writer import write_graph
from formats.text import parse_text
from tests.yfilter.evaluated import select
from tests.yfilter.random_cases import random_message, random_profile
from yfilter.engine.containment import Pattern, covers
from yfilter.engine.linear_paths import Conjunction, routing_query
from yfilter.engine.readings import Readings
from yfilter.engine.targets import LinkTarget
from yfilter.graph.query_ast import GraphQuery
from yfilter.language.matching_path import matching_path
from yfilter.language.profile_limits import MatchLimits
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_profile
from yfilter.language.query_text import unparse
from yfilter.matcher import Matcher, Message, check_profile
from yfilter.matches import ProfileMatch, RouteMatch

PREFIX = "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
NODES = [":a", ":b", ":c", ":d", "_:x", "_:y"]
PROPERTIES = [":p", ":q", ":r", "a"]
LITERALS = ['"u"', '"v"', '"u"@en', "1", "2", "3.5", '"w"^^:type']
VARIABLES = ["?i", "?j", "?k"]


def random_triples(rng: Random) -> str:
    """A graph as Turtle."""
    triples = []
    for _ in range(rng.randint(1, 14)):
        things = NODES if rng.random() < 0.5 else LITERALS
        triples.append(f"{rng.choice(NODES)} {rng.choice(PROPERTIES)} {rng.choice(things)} .")
    return "\n".join(triples)


def stream_of(triples: str) -> ElementStream:
    prefixes = "@prefix : <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n"
    return read_graph((prefixes + triples).encode(), GraphSyntax.TURTLE)


def store_of(stream: ElementStream) -> pyoxigraph.Store:
    store = pyoxigraph.Store()
    data = write_graph(stream, GraphSyntax.N_TRIPLES)
    store.extend(pyoxigraph.parse(data, pyoxigraph.RdfFormat.N_TRIPLES))
    return store


def random_pattern(rng: Random, nested: int = 0) -> str:
    parts = []
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        subject = rng.choice([*VARIABLES, *VARIABLES, ":a", ":b"])
        verb = rng.choice([*PROPERTIES, ":p", "?v"] if rng.random() < 0.2 else PROPERTIES)
        thing = rng.choice([*VARIABLES, ":a", ":c", *LITERALS])
        parts.append(f"{subject} {verb} {thing} .")
    if rng.random() < 0.3:
        right = rng.choice(["= 2", '= "u"', "= :a", "!= :b", "= ?j", "!= ?k", "< 3", ">= 2"])
        parts.append(f"FILTER({rng.choice(VARIABLES)} {right})")
    if nested < 2 and rng.random() < 0.35:
        inner = random_pattern(rng, nested + 1)
        more = {
            "OPTIONAL": f"OPTIONAL {{ {inner} }}",
            "MINUS": f"MINUS {{ {inner} }}",
            "UNION": f"{{ {inner} }} UNION {{ {random_pattern(rng, nested + 1)} }}",
            "NOT EXISTS": f"FILTER NOT EXISTS {{ {inner} }}",
        }
        parts.append(more[rng.choice(sorted(more))])
    return " ".join(parts)


def random_query(rng: Random) -> str:
    pattern = random_pattern(rng)
    form = rng.choice(["SELECT * WHERE", "ASK", "CONSTRUCT { ?i :found ?j } WHERE"])
    return f"{PREFIX}{form} {{ {pattern} }}"


def matches(store: pyoxigraph.Store, text: str) -> bool:
    found = store.query(text)
    if isinstance(found, pyoxigraph.QueryBoolean):
        return bool(found)
    return any(True for _ in found)


def results_of(matcher: Matcher, message: Message) -> dict[str, list[bytes]]:
    """By profile id."""
    return {
        matcher.id_of(number): one.results
        for one in matcher.deliver(message)
        for number in one.numbers
    }


@pytest.mark.parametrize("seed", range(6))
def test_random_graph_profiles_match_what_they_should(seed: int) -> None:
    """While profiles of graphs and of documents come and go in one matcher, which is empty in the
    end; with routes, of which each is reached by all that its profile matches."""
    rng = Random(seed)
    matcher = Matcher(MatchLimits(lazy_bytes_max=4096) if seed % 2 else MatchLimits())
    counted = ("index_nodes", "index_queries", "operators", "index_bytes_used", "queries")
    empty = {key: getattr(matcher.statistics(), key) for key in counted}
    profiles: dict[str, str | Profile] = {}
    routes: dict[str, tuple[Conjunction, ...]] = {}
    found_some = 0
    for _ in range(40):
        for _ in range(6):
            profile = random_query(rng) if rng.random() < 0.7 else Profile(random_profile(rng))
            name = matcher.add(profile)
            profiles[name] = profile
            parsed = parse_profile(profile) if isinstance(profile, str) else profile
            routes[name] = routing_query(parsed)
            for disjunct in routes[name]:
                assert disjunct.reading == isinstance(profile, str)
                matcher.add_route(disjunct, LinkTarget("r", name))
        for name in rng.sample(sorted(profiles), 3) if rng.random() < 0.6 else ():
            matcher.remove(name)
            for disjunct in routes.pop(name):
                matcher.remove_route(disjunct, LinkTarget("r", name))
            del profiles[name]
        graph = stream_of(random_triples(rng)) if rng.random() < 0.9 else None
        document = random_message(rng).stream if graph is None or rng.random() < 0.3 else None
        store = pyoxigraph.Store() if graph is None else store_of(graph)
        expected = set()
        for name, profile in profiles.items():
            if isinstance(profile, str):
                if graph is not None and matches(store, profile):
                    expected.add(name)
            elif document is not None and select(matching_path(profile), document):
                expected.add(name)
        found_some += len(expected)
        message = Readings(document, graph)
        found = list(matcher.match(message, "r"))
        names = {one.profile_id for one in found if isinstance(one, ProfileMatch)}
        assert names == expected, [profiles[name] for name in names ^ expected]
        assert expected <= {one.link for one in found if isinstance(one, RouteMatch)}
        assert set(matcher.matched_ids(message)) == expected
        delivered = results_of(matcher, message)
        assert delivered.keys() == expected
        for name in expected:
            assert delivered[name] and all(delivered[name])
    assert found_some > 100
    for name in profiles:
        matcher.remove(name)
        for disjunct in routes[name]:
            matcher.remove_route(disjunct, LinkTarget("r", name))
    assert {key: getattr(matcher.statistics(), key) for key in counted} == empty


@pytest.mark.parametrize("seed", range(3))
def test_a_routing_query_that_covers_is_wanted_by_all_messages_of_the_other(seed: int) -> None:
    """Disjuncts of random graph profiles: whenever one covers another, no graph satisfies the
    special one and not the general one."""
    rng = Random(seed)
    graphs = [stream_of(random_triples(rng)) for _ in range(120)]
    disjuncts = {one for _ in range(60) for one in routing_query(parse_profile(random_query(rng)))}
    cases = []
    for disjunct in sorted(disjuncts, key=str):
        holds = frozenset(
            number
            for number, graph in enumerate(graphs)
            if all(select(path.expression, graph) for path in disjunct.paths)
        )
        cases.append((Pattern(disjunct), holds))
    said_yes = 0
    for general, more in cases:
        for special, fewer in cases:
            if general is not special and covers(general, special):
                said_yes += 1
                assert fewer <= more, (str(general.disjunct), str(special.disjunct))
    assert said_yes > 30


def test_what_is_kept_of_a_graph_profile_is_its_text() -> None:
    matcher = Matcher()
    text = PREFIX + 'SELECT ?i WHERE { ?i :p "u" ; :q ?j FILTER(?j > 1) }'
    one = matcher.add(text)
    other = matcher.add(parse_profile(unparse(parse_profile(text))))
    assert matcher.statistics().queries == 1
    graph = stream_of(':a :p "u" ; :q 2 . :b :p "u" ; :q 1 .')
    (delivered,) = matcher.deliver(graph)
    assert {matcher.id_of(number) for number in delivered.numbers} == {one, other}
    (result,) = delivered.results
    assert [row["i"]["value"] for row in json.loads(result)["results"]["bindings"]] == [
        "http://e/a"
    ]
    assert check_profile(text) == parse_profile(text)


def test_ask_delivers_the_message_as_it_came() -> None:
    matcher = Matcher()
    matcher.add(PREFIX + "ASK { :a :p ?x }", "exact")
    matcher.add(PREFIX + "ASK { ?x :p ?x }", "joined")
    matcher.add("/*", "document")
    graph = stream_of(":a :p :a .")
    delivered = results_of(matcher, graph)
    triples = b"<http://e/a> <http://e/p> <http://e/a> .\n"
    assert delivered == {"exact": [triples], "joined": [triples]}
    text = (
        b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://e/">'
        b'<rdf:Description rdf:about="http://e/a"><p rdf:resource="http://e/a"/></rdf:Description>'
        b"</rdf:RDF>"
    )
    delivered = results_of(matcher, text)
    assert delivered == {"exact": [text], "joined": [text], "document": [text]}


def test_results_have_the_media_type_that_was_asked_for() -> None:
    asked = {
        "ASK { :a :p ?x }": "application/n-triples",
        "ASK { ?x :p ?x }": "application/n-triples",
        "SELECT * { :a :p ?x }": "application/sparql-results+json",
        "CONSTRUCT { :b :p ?x } WHERE { :a :p ?x }": "application/n-triples",
    }
    texts = {name: PREFIX + name for name in asked}
    for media_type in ("text/turtle", "application/rdf+xml"):
        name = f"CONSTRUCT in {media_type}"
        asked[name] = media_type
        texts[name] = f"# results: {media_type}\n{PREFIX}CONSTRUCT WHERE {{ :a :p ?x }}"
    matcher = Matcher()
    for name, text in texts.items():
        matcher.add(text, name)
    graph = stream_of(":a :p :a .")
    for given in (matcher.deliver(graph), matcher.deliver_to(graph, list(texts))):
        found = {matcher.id_of(n): one.media_type for one in given for n in one.numbers}
        assert found == asked
    document = Readings(parse_text(b"<a/>"), graph)
    found = {
        matcher.id_of(n): one.media_type for one in matcher.deliver(document) for n in one.numbers
    }
    assert found == asked | dict.fromkeys(["ASK { :a :p ?x }", "ASK { ?x :p ?x }"], "")
    named = read_graph(
        b"<http://e/a> <http://e/p> <http://e/a> <http://e/g> .", GraphSyntax.N_QUADS
    )
    matcher.add("ASK { GRAPH ?g { ?s ?p ?o } }", "named")
    (one,) = matcher.deliver_to(named, ["named"])
    assert one.media_type == "application/n-quads" and b"<http://e/g>" in one.results[0]


def test_rdf_xml_that_is_no_graph_is_a_document_still() -> None:
    matcher = Matcher()
    matcher.add("/*", "document")
    matcher.add(PREFIX + "ASK { ?s ?p ?o }", "graph")
    text = (
        b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        b'<rdf:Description rdf:nothing="x"/><rdf:li/></rdf:RDF>'
    )
    assert matcher.matched_ids(text) == ["document"]


def test_a_graph_profile_that_costs_too_much_is_told_and_the_others_are_matched() -> None:
    limits = MatchLimits()
    matcher = Matcher(limits)
    stars = " ".join(f"?a{number} :p ?b{number} ." for number in range(12))
    matcher.add(f"{PREFIX}SELECT * WHERE {{ {stars} }}", "costly")
    matcher.add(PREFIX + "ASK { :n1 :p ?x }", "cheap")
    graph = stream_of(" ".join(f":n{number} :p {number} ." for number in range(200)))
    given = {matcher.id_of(number): one for one in matcher.deliver(graph) for number in one.numbers}
    assert given["costly"].exceeded is not None and not given["costly"].results
    assert given["cheap"].results
    assert matcher.statistics().over_limit == 1


def test_an_explanation_says_what_each_part_leaves() -> None:
    matcher = Matcher()
    text = PREFIX + 'SELECT * WHERE { ?i :p "u" . FILTER(?j > 2) ?i :q ?j }'
    explained = matcher.explain(text, stream_of(':a :p "u" ; :q 1, 2 . :b :q 5 .'))
    assert [(part.kind, part.outcome and part.outcome.kept) for part in explained.parts] == [
        ("triple pattern", 1),
        ("triple pattern", 2),
        ("filter", 0),
    ]
    assert not explained.matched and explained.failure is not None
    assert explained.failure.text.startswith("FILTER(?j > ")
    assert "served" not in explained.served_by and "creator" not in str(explained)
    assert "(?i = <http://e/a>)" in str(explained)
    matched = matcher.explain(text, stream_of(':a :p "u" ; :q 3 .'))
    assert matched.matched and matched.results == 1
    absent = matcher.explain(text, parse_text(b"<a/>"))
    assert absent.matched is False and absent.results == 0
    assert matcher.explain(text).matched is None


@pytest.mark.parametrize(
    ("template", "pattern", "expected"),
    [
        ("?i :found ?j", "?i :p ?j", True),
        ("?j :found ?i", "?i :p ?j", False),  # ?j may be a literal
        ("?i ?v ?j", "?i ?v ?j", True),
        ("?i ?j ?i", "?i :p ?j", False),
        (":a :found ?j", "?i :p ?i OPTIONAL { ?i :p ?j }", False),
        ("[] :found ?i", "?i :p ?j", True),
        (":a :b 1", "?i :p ?j", True),
        ("?j :found ?i . ?i :found ?j", "?i :p ?j", True),
    ],
)
def test_of_which_templates_every_solution_makes_a_triple(
    template: str, pattern: str, expected: bool
) -> None:
    query = parse_profile(f"{PREFIX}CONSTRUCT {{ {template} }} WHERE {{ {pattern} }}").body
    assert isinstance(query, GraphQuery)
    assert query.always_constructs is expected
