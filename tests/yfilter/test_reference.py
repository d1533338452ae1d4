"""The reference engine against processors of others, and the compiled engine against it.

Each case is drawn from its seed, which a failure prints; ``ONYX_REFERENCE_SEEDS=200`` runs more,
from ``ONYX_REFERENCE_FIRST`` on.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from random import Random

import pytest

from demo.oracle import canonical, expected_results
from formats.element_stream import ElementStream
from formats.graph.closure import TaxonomyClosure
from formats.graph.reader import read_graph
from formats.graph.syntaxes import GraphSyntax
from formats.graph.taxonomy import Taxonomy
from formats.text import parse_text
from tests.oracle.reference import ReferenceMatcher
from tests.oracle.reference_answers import ReferenceGraph
from tests.yfilter.graph.messages import striped
from tests.yfilter.graph.random_graphs import RandomCase
from tests.yfilter.graph.solution_sets import XSD, are_equal, solutions_of_json, solutions_of_xml
from tests.yfilter.graph.test_graph_matching import (
    PREFIX,
    matches,
    random_query,
    random_triples,
    store_of,
    stream_of,
)
from tests.yfilter.graph.test_join_oracle import case, oxigraph_solutions
from tests.yfilter.hostile_profiles import HOSTILE, MESSAGE
from tests.yfilter.projection.test_transformations import (
    FEED,
    PROFILES,
    OneLink,
    needs_of_all,
    sent,
)
from tests.yfilter.random_cases import (
    Message,
    random_flwor,
    random_linear_profile,
    random_message,
    random_profile,
    xpath1,
)
from tests.yfilter.test_matcher_oracle import _several
from yfilter import LinkTarget, Matcher, MatchLimits, ProfileRefused
from yfilter.engine.linear_paths import Conjunction, routing_query
from yfilter.engine.readings import Readings
from yfilter.engine.targets import Transforming
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_profile
from yfilter.language.query_text import unparse
from yfilter.matches import Delivered, ProfileMatch, RouteMatch, TransformationMatch
from yfilter.projection.needs import EVERYTHING

FIRST = int(os.environ.get("ONYX_REFERENCE_FIRST", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("ONYX_REFERENCE_SEEDS", "8")))
LIMITS = EvaluationLimits()


# -- the reference engine against others


@pytest.mark.parametrize("seed", SEEDS)
def test_paths_bind_the_elements_that_lxml_selects(seed: int) -> None:
    rng = Random(seed)
    matcher = ReferenceMatcher()
    paths = {}
    for number in range(20):
        path = random_profile(rng)
        paths[matcher.add(unparse(path) if number % 2 else Profile(path))] = xpath1(path)
    for _ in range(4):
        message = random_message(rng)
        selected = {name: message.select(xpath) for name, xpath in paths.items()}
        expected = {name: elements for name, elements in selected.items() if elements}
        assert _bindings(matcher, message) == expected, message.text
        assert sorted(matcher.matched_ids(message.stream)) == sorted(expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_flwor_profiles_deliver_the_results_of_elementpath(seed: int) -> None:
    rng = Random(seed)
    matcher = ReferenceMatcher()
    profiles = {matcher.add(text): text for text in (random_flwor(rng) for _ in range(15))}
    for _ in range(2):
        message = random_message(rng)
        wanted = {
            name: [canonical(result) for result in results]
            for name, text in profiles.items()
            if (results := expected_results(text, message.text))
        }
        delivered = {
            match.profile_id: [canonical(result) for result in match.results()]
            for match in matcher.match(message.text)
            if isinstance(match, ProfileMatch)
        }
        assert delivered == wanted, message.text


@pytest.mark.parametrize("seed", SEEDS)
def test_the_routing_query_of_a_linear_path_holds_where_lxml_selects(seed: int) -> None:
    rng = Random(seed)
    paths = [random_linear_profile(rng) for _ in range(20)]
    matcher = ReferenceMatcher()
    for number, path in enumerate(paths):
        for conjunction in routing_query(Profile(path)):
            matcher.add_route(conjunction, LinkTarget("root", str(number)))
    for _ in range(4):
        message = random_message(rng)
        wanted = {str(number) for number, path in enumerate(paths) if message.select(xpath1(path))}
        found = list(matcher.match(message.stream, "root"))
        assert {match.link for match in found if isinstance(match, RouteMatch)} == wanted
        assert len(found) == len(wanted)


@pytest.mark.parametrize("seed", SEEDS)
def test_graph_profiles_match_and_bind_as_pyoxigraph_says(seed: int) -> None:
    rng = Random(seed)
    texts = [random_query(rng) for _ in range(12)]
    matcher = ReferenceMatcher()
    names = {matcher.add(text): text for text in texts}
    for _ in range(4):
        graph = stream_of(random_triples(rng))
        store = store_of(graph)
        wanted = {name for name, text in names.items() if matches(store, text)}
        assert set(matcher.matched_ids(graph)) == wanted, seed
    for number in range(20):
        message, query = case(f"{seed}/{number}")
        results = ReferenceGraph(striped(message), LIMITS).results(query)
        found = [solution for result in results for solution in solutions_of_json(result)]
        assert are_equal(found, oxigraph_solutions(query, message)), f"{seed}/{number}"


# -- the compiled engine against the reference engine


@pytest.mark.parametrize("seed", SEEDS)
def test_both_engines_say_the_same_while_profiles_and_routes_come_and_go(seed: int) -> None:
    """Of documents, of graphs, and of messages that have both readings."""
    rng = Random(seed)
    both = (Matcher(), ReferenceMatcher())
    texts: dict[str, Profile] = {}
    routes: list[tuple[Conjunction, LinkTarget]] = []
    for _ in range(14):
        for name in rng.sample(sorted(texts), min(len(texts), rng.randrange(4))):
            del texts[name]
            for matcher in both:
                matcher.remove(name)
        for pair in rng.sample(routes, min(len(routes), rng.randrange(4))):
            routes.remove(pair)
            for matcher in both:
                matcher.remove_route(*pair)
        for profile in _random_profiles(rng):
            (name, other) = [matcher.add(profile) for matcher in both]
            assert name == other
            texts[name] = profile
            target = LinkTarget(rng.choice("rs"), rng.choice("abc"))
            for conjunction in routing_query(profile, rng.choice((1, 32))):
                if (conjunction, target) not in routes:
                    routes.append((conjunction, target))
                    for matcher in both:
                        matcher.add_route(conjunction, target)
        graph = stream_of(random_triples(rng)) if rng.random() < 0.6 else None
        document = random_message(rng).stream if graph is None or rng.random() < 0.5 else None
        message = Readings(document, graph)
        for root in "rs":
            links, profiles = _matched(both[0], message, root)
            assert (links, profiles) == _matched(both[1], message, root), _told(texts)
        assert _delivered(both[0], message) == _delivered(both[1], message)
        again = (_delivered_to(matcher, message, sorted(profiles)) for matcher in both)
        assert next(again) == next(again)
        assert sorted(both[0].matched_ids(message)) == sorted(both[1].matched_ids(message))
    for matcher in both:
        for name in texts:
            matcher.remove(name)
        for pair in routes:
            matcher.remove_route(*pair)
        statistics = matcher.statistics()
        assert not any(getattr(statistics, each) for each in ("profiles", "queries", "routes"))


@pytest.mark.parametrize("seed", SEEDS)
def test_both_engines_find_the_same_in_graphs_with_taxonomies(seed: int) -> None:
    rng = Random(seed)
    some = 0
    for number in range(25):
        closure = _random_taxonomy(rng)
        triples = f"{random_triples(rng)} {_typed(rng)}"
        if rng.random() < 0.3:
            triples = f"{triples} GRAPH :g {{ {random_triples(rng)} {_typed(rng)} }}"
        graph = read_graph(
            f"@prefix : <http://e/> . {triples}".encode(), GraphSyntax.TRIG, closure=closure
        )
        text = _query_of_classes(rng)
        expected, found = (
            [solution for one in matcher.deliver(graph) for solution in _solutions(one)]
            for matcher in _with_both(text)
        )
        assert are_equal(found, expected), f"{seed}/{number}: {text}\n{triples}"
        some += bool(expected)
    assert some > 4


@pytest.mark.parametrize("seed", SEEDS)
def test_both_engines_find_the_same_literals_and_graphs(seed: int) -> None:
    """Numbers by their digits, dates with and without a zone, the variables of GRAPH."""
    rng = Random(seed)
    some = 0
    for number in range(40):
        trig = "@prefix : <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> ."
        for name in ("", ":g", ":h", "_:i"):
            triples = " ".join(
                f":{rng.choice('abg')} :p {rng.choice(LITERALS)} ." for _ in range(rng.randrange(4))
            )
            trig += f" {name} {{ {triples} }}"
        graph = read_graph(trig.encode(), GraphSyntax.TRIG)
        text = _query_of_literals(rng)
        expected, found = (
            [solution for one in matcher.deliver(graph) for solution in _solutions(one)]
            for matcher in _with_both(text)
        )
        assert are_equal(found, expected), f"{seed}/{number}: {text}\n{trig}"
        some += bool(expected)
    assert some > 4


@pytest.mark.parametrize(
    "literal", ["'1'^^xsd:boolean", "true", "'2020'^^xsd:gYear", "'05'^^xsd:integer", "'1'^^xsd:x"]
)
@pytest.mark.parametrize("condition", ["?v = {}", "?v IN ({}, 7)", "?v = {} || ?v = 7"])
def test_a_literal_is_equal_to_itself_alone_in_a_message(literal: str, condition: str) -> None:
    """Digits do not make it a number."""
    graph = read_graph(
        f"@prefix xsd: <{XSD}> . <http://e/a> <http://e/p> {literal} .".encode(), GraphSyntax.TURTLE
    )
    for matcher in _with_both(f"{PREFIX}ASK {{ ?s :p ?v FILTER({condition.format(literal)}) }}"):
        assert matcher.matched_ids(graph) == ["p1"]


@pytest.mark.parametrize("seed", SEEDS)
def test_both_engines_find_the_same_by_conditions_of_every_kind(seed: int) -> None:
    some = 0
    for number in range(80):
        drawn = RandomCase(Random(f"{seed}/{number}"))
        trig, text = drawn.graph(), drawn.query()
        try:
            compiled, reference = _with_both(text)
        except ProfileRefused:
            continue
        graph = read_graph(trig.encode(), GraphSyntax.TRIG)
        found = compiled.matched_ids(graph)
        assert found == reference.matched_ids(graph), f"{seed}/{number}: {text}\n{trig}"
        some += bool(found)
    assert some


@pytest.mark.parametrize("seed", SEEDS)
def test_a_message_that_links_have_cut_has_the_same_results(seed: int) -> None:
    """Also one with pieces, which stand for parts of results."""
    rng = Random(seed)
    texts = rng.sample(PROFILES, rng.randint(1, 5))
    stream = parse_text(FEED)
    matcher = ReferenceMatcher()
    names = [matcher.add(text) for text in texts]
    expected = _results(matcher, stream)
    link = OneLink(needs_of_all(texts))
    for _ in range(3):
        left = sent(link, stream)
        assert _results(matcher, left) == expected, (texts, left.pieces)
    assert expected.keys() <= set(names)


@pytest.mark.parametrize("name", HOSTILE)
def test_the_reference_engine_ends_hostile_profiles_too(name: str) -> None:
    profile = HOSTILE[name]
    stream = parse_text(MESSAGE)
    compiled, reference = (
        {
            number: (bool(one.results), one.exceeded is not None)
            for one in matcher.deliver(stream)
            for number in one.numbers
        }
        for matcher in _with_both(profile, EvaluationLimits(visits_max=20_000))
    )
    assert reference in (compiled, {1: (False, True)})  # it has no index that spares it visits


# -- its own


def test_it_has_the_interface_of_the_compiled_engine() -> None:
    for name, member in vars(Matcher).items():
        if not name.startswith("_") or name == "__init__":
            own = vars(ReferenceMatcher)[name]
            if inspect.isfunction(member):
                theirs = inspect.signature(member).parameters
                assert list(inspect.signature(own).parameters) == list(theirs), name
            else:
                assert type(own) is type(member), name


def test_an_iterator_goes_on_with_the_links_and_profiles_of_its_beginning() -> None:
    matcher = ReferenceMatcher()
    matcher.add("/a", "stays")
    matcher.add("/a", "goes")
    (conjunction,) = routing_query(parse_profile("/a"))
    matcher.add_route(conjunction, LinkTarget("r", "moved"))
    found = matcher.match(b"<a/>", "r")
    matcher.remove_route(conjunction, LinkTarget("r", "moved"))
    matcher.remove("goes")
    matcher.add("/a", "comes")
    assert next(found) == RouteMatch("moved")
    assert [match.profile_id for match in found if isinstance(match, ProfileMatch)] == ["stays"]
    assert sorted(matcher.matched_ids(b"<a/>")) == ["comes", "stays"]


def test_a_link_whose_needs_are_open_gets_the_whole_message() -> None:
    matcher = ReferenceMatcher()
    target = LinkTarget("r", "l")
    (conjunction,) = routing_query(parse_profile("/a"))
    matcher.add_route(conjunction, target)
    stream = parse_text(b"<a><b/></a>")
    matcher.add_need(EVERYTHING, target)
    assert list(matcher.match(stream, "r")) == [RouteMatch("l"), TransformationMatch("l", stream)]
    assert matcher.transformed(stream, "r", ["l", "m"]) == {"l": stream}
    matcher.set_transforming("l", Transforming.NOT)
    assert list(matcher.match(stream, "r")) == [RouteMatch("l")]
    matcher.remove_need(EVERYTHING, target)
    with pytest.raises(KeyError):
        matcher.remove_need(EVERYTHING, target)
    matcher.close_needs(target)


def test_limits_are_those_of_the_compiled_engine() -> None:
    matcher = ReferenceMatcher(MatchLimits(profiles_max=1, routes_max=1))
    matcher.add("/a", "one")
    with pytest.raises(ValueError, match="in use"):
        matcher.add("/a", "one")
    with pytest.raises(ProfileRefused) as refused:
        matcher.add("/b")
    assert refused.value.code == "too-many-profiles"
    first, second = (routing_query(parse_profile(text))[0] for text in ("/a", "/b"))
    matcher.add_route(first, LinkTarget("r", "l"))
    with pytest.raises(ValueError, match="already"):
        matcher.add_route(first, LinkTarget("r", "l"))
    with pytest.raises(ProfileRefused) as refused:
        matcher.add_route(second, LinkTarget("r", "l"))
    assert refused.value.code == "too-many-routes"
    with pytest.raises(KeyError):
        matcher.remove("two")


def test_a_slice_of_time_leaves_a_long_graph_profile_to_another_process() -> None:
    limits = EvaluationLimits(late_messages=2)
    triples = " ".join(f":a{n} :p {n} ." for n in range(120))
    text = f"{PREFIX}SELECT * {{ ?a :p ?x . ?b :p ?y . ?c :p ?z }}"
    matcher = ReferenceMatcher(MatchLimits(evaluation=limits))
    matcher.add(text)
    (one,) = matcher.deliver(stream_of(triples))
    assert one.exceeded is not None and one.exceeded.code == "too-much-time"
    (other,) = matcher.deliver(stream_of(":a :p 1 ."))
    assert other.exceeded is not None  # it is not tried for two messages
    assert matcher.statistics().over_limit == 0


def test_an_explanation_says_which_engine_it_is() -> None:
    matcher = ReferenceMatcher()
    told = matcher.explain("/a[b = 1]", b"<a><b>1</b></a>")
    assert told.matched and told.results == 1 and "reference" in str(told)
    assert matcher.explain("/a[b = 2]", b"<a><b>1</b></a>").failure is not None
    matcher.add("/a[b = 1]")
    matcher.add_route(routing_query(parse_profile("/c"))[0], LinkTarget("r", "l"))
    assert "p1" in matcher.dump() and "l (tree of r)" in matcher.dump()
    assert matcher.dump_graphviz().startswith("digraph")


# -- helpers


def _bindings(matcher: Matcher | ReferenceMatcher, message: Message) -> dict[str, tuple[int, ...]]:
    found = [match for match in matcher.match(message.stream) if isinstance(match, ProfileMatch)]
    assert len({match.profile_id for match in found}) == len(found)
    return {match.profile_id: match.bindings for match in found}


def _with_both(text: str, limits: EvaluationLimits = LIMITS) -> tuple[Matcher, ReferenceMatcher]:
    both = Matcher(MatchLimits(evaluation=limits)), ReferenceMatcher(MatchLimits(evaluation=limits))
    for matcher in both:
        matcher.add(text)
    return both


def _random_profiles(rng: Random) -> Iterator[Profile]:
    yield Profile(random_profile(rng, conditions=0.6))
    yield parse_profile(rng.choice((random_flwor, _several))(rng))
    yield parse_profile(random_query(rng))


def _matched(
    matcher: Matcher | ReferenceMatcher, message: Readings, root: str
) -> tuple[list[str], dict[str, tuple[tuple[int, ...], object]]]:
    links: list[str] = []
    profiles: dict[str, tuple[tuple[int, ...], object]] = {}
    for match in matcher.match(message, root):
        if isinstance(match, RouteMatch):
            links.append(match.link)
        elif isinstance(match, ProfileMatch):
            profiles[match.profile_id] = (match.bindings, _comparable(match.results()))
    return sorted(links), profiles


def _delivered(
    matcher: Matcher | ReferenceMatcher, message: Readings
) -> dict[str, tuple[object, str, bool]]:
    _, delivered = matcher.deliver_in_stages(message)
    return _by_name(matcher, delivered)


def _delivered_to(
    matcher: Matcher | ReferenceMatcher, message: Readings, names: list[str]
) -> dict[str, tuple[object, str, bool]]:
    return _by_name(matcher, matcher.deliver_to(message, names))


def _by_name(
    matcher: Matcher | ReferenceMatcher, delivered: Iterator[Delivered]
) -> dict[str, tuple[object, str, bool]]:
    return {
        matcher.id_of(number): (_comparable(one.results), one.media_type, one.exceeded is None)
        for one in delivered
        for number in one.numbers
    }


def _results(matcher: ReferenceMatcher, stream: ElementStream) -> dict[str, list[bytes]]:
    return {
        match.profile_id: [canonical(result) for result in match.results()]
        for match in matcher.match(stream)
        if isinstance(match, ProfileMatch)
    }


def _comparable(results: list[bytes]) -> object:
    """Rows of solutions, and lines of triples, are in no order."""
    return [
        sorted(map(str, solutions_of_json(result)))
        if result.startswith(b'{"head"')
        else sorted(result.splitlines())
        for result in results
    ]


def _solutions(delivered: Delivered) -> list[frozenset[tuple[str, tuple[str, ...]]]]:
    assert delivered.exceeded is None
    read = solutions_of_xml if delivered.media_type.endswith("xml") else solutions_of_json
    return [solution for result in delivered.results for solution in read(result)]


def _random_taxonomy(rng: Random) -> TaxonomyClosure:
    """Of classes C0 .. C3 and of properties p, q and r, each below some of those behind it."""

    def below(names: list[str]) -> dict[bytes, tuple[bytes, ...]]:
        iris = [f"http://e/{name}".encode() for name in names]
        drawn = {
            iri: tuple(other for other in iris[place + 1 :] if rng.random() < 0.5)
            for place, iri in enumerate(iris)
        }
        return {iri: above for iri, above in drawn.items() if above}

    return TaxonomyClosure(
        Taxonomy(classes=below(["C0", "C1", "C2", "C3"]), properties=below(["p", "q", "r"]))
    )


def _typed(rng: Random) -> str:
    return " ".join(f":{rng.choice('ab')} a :C{rng.randrange(4)} ." for _ in range(2))


def _query_of_classes(rng: Random) -> str:
    """A SELECT with one or two patterns that ask for the taxonomies."""
    rdfs = "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
    parts = []
    for number in range(rng.choice((1, 1, 2))):
        asked = rng.choice((f":C{rng.randrange(4)}", "?k"))
        parts.append(
            rng.choice(
                (
                    f"?i a/rdfs:subClassOf* {asked} .",
                    f"?i a/^rdfs:subClassOf* :C{rng.randrange(4)} .",
                    f"?i ?p{number} ?j . ?p{number} rdfs:subPropertyOf* :{rng.choice('qr')} .",
                )
            )
        )
    if rng.random() < 0.5:
        parts.append(rng.choice(("?i ?v ?w .", "OPTIONAL { ?i :p ?w }", "FILTER(isIRI(?i))")))
    head = "# results: application/sparql-results+xml\n" if rng.random() < 0.3 else ""
    pattern = " ".join(parts)
    if rng.random() < 0.2:
        pattern = f"GRAPH ?g {{ {pattern} }}"
    return f"{head}{PREFIX}{rdfs}SELECT * {{ {pattern} }}"


LITERALS = (
    *("1", "01", "1.0", "1e0", "'1'", "true", "'1'^^xsd:boolean", "'+2'^^xsd:integer", "2", ":g"),
    *("'2026-08-23'^^xsd:date", "'2026-08-23Z'^^xsd:date", "'2026-08-23+00:00'^^xsd:date"),
    *("'2026-08-25'^^xsd:date", "'2026-08-23T00:00:00.50Z'^^xsd:dateTime", "'x'^^xsd:integer"),
)


def _query_of_literals(rng: Random) -> str:
    one = rng.choice(LITERALS)
    more = rng.choice(
        (
            *(f"FILTER(?v = {one})", f"FILTER(?v != {one})", f"FILTER(?v >= {one})", "FILTER(?v)"),
            *(f"FILTER(sameTerm(?v, {one}))", f"FILTER(str(?v) = str({one}))", f"?s :p {one} ."),
            *(f"BIND(if(?v = {one}, ?v, 7) AS ?w)", "BIND(?v + 1 AS ?w)", "BIND(?v AS ?w)"),
            *(f"VALUES ?v {{ {one} }}", "?t :p ?v .", "?t :p ?w . FILTER(?v = ?w)"),
            *(f"FILTER(?v IN ({one}, 2))", "FILTER(datatype(?v) = xsd:integer)"),
            *("MINUS { ?t :p ?w }", "MINUS { ?t :p ?v }", "OPTIONAL { ?v :p ?w }"),
            *("FILTER NOT EXISTS { ?t :p ?v FILTER(?t != ?s) }", "OPTIONAL { ?g :p ?w }"),
            *("FILTER(?g = :g)", "OPTIONAL { ?s :p ?g }", "VALUES ?g { :g UNDEF }"),
            *("OPTIONAL { ?t :p ?w FILTER(?g = ?t) }", "FILTER(bound(?g))"),
        )
    )
    pattern = f"?s :p ?v . {more}"
    if "?g" in more or rng.random() < 0.5:
        pattern = f"GRAPH ?g {{ {pattern} }}"
    return f"{PREFIX}SELECT {rng.choice(('', 'DISTINCT '))}* {{ {pattern} }}"


def _told(texts: dict[str, Profile]) -> str:
    return "\n".join(f"{name}: {unparse(profile)}" for name, profile in texts.items())
