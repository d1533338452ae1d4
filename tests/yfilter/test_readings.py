"""Readings: a profile looks at the document or at the graph of a message, never at both."""

from __future__ import annotations

from random import Random

import pytest

from formats.element_stream import ElementStream
from formats.text import parse_text
from tests.yfilter.evaluated import select
from tests.yfilter.random_cases import random_message, random_profile
from yfilter.engine.linear_paths import ANY_GRAPH, Conjunction, routing_query
from yfilter.engine.readings import GRAPH_ROOT, Reading, Readings, reading_of, readings_of
from yfilter.engine.targets import LinkTarget
from yfilter.errors import MatchLimitExceeded
from yfilter.language.matching_path import matching_path
from yfilter.language.profile_limits import MatchLimits
from yfilter.language.query_ast import (
    LocationStep,
    NameTest,
    NodeKind,
    Origin,
    PathExpression,
    Profile,
)
from yfilter.language.query_parser import parse_profile
from yfilter.matcher import Matcher
from yfilter.matches import ProfileMatch, RouteMatch, TransformationMatch
from yfilter.projection.needs import EVERYTHING, Need
from yfilter.projection.profile_needs import needs_of

G = "/Q{urn:onyx:graph}g"
GRAPH = parse_text(b'<g xmlns="urn:onyx:graph"><d s="x"><a xmlns="" v="1"/></d></g>')
RDF_XML = parse_text(
    b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><a v="2"/></rdf:RDF>'
)
XML = parse_text(b"<a><b/></a>")


class Deriving:
    """Gives GRAPH for any document, and counts how often."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, document: ElementStream) -> ElementStream:
        self.asked += 1
        return GRAPH


@pytest.mark.parametrize(
    ("text", "reading"),
    [
        (G, Reading.GRAPH),
        (f"{G}/d[@s]", Reading.GRAPH),
        (f"{G}/d | {G}/n", Reading.GRAPH),
        (f"for $d in {G}/d return $d", Reading.GRAPH),
        ("/g", Reading.DOCUMENT),
        ("//Q{urn:onyx:graph}g", Reading.DOCUMENT),
        ("/Q{urn:onyx:graph}*", Reading.DOCUMENT),
        ("/*:g", Reading.DOCUMENT),
        ("/*", Reading.DOCUMENT),
        (f"{G}/d | /a", Reading.DOCUMENT),
    ],
)
def test_the_root_test_decides_the_reading(text: str, reading: Reading) -> None:
    profile = parse_profile(text)
    assert reading_of(matching_path(profile).steps) is reading
    # By the way of shapes, in the index, and in the routing query.
    matcher = Matcher()
    matcher.add(text)
    graphs = dict.fromkeys(Reading, 0) | {reading: 1}
    assert len(matcher._local.graphs) == graphs[Reading.GRAPH]
    if "|" not in text:
        assert {one.reading for one in routing_query(profile)} == {reading}


def test_a_disjunct_with_a_path_of_the_graph_is_of_the_graph() -> None:
    assert Conjunction.parse(f"/* and {G}/a").reading is Reading.GRAPH
    assert Conjunction.parse("/*").reading is Reading.DOCUMENT


def test_what_is_left_of_a_routing_query_that_is_too_long_is_of_its_reading() -> None:
    long = LocationStep(False, NodeKind.ELEMENT, NameTest("urn:" + "u" * 4_000, "a"))
    root = LocationStep(False, NodeKind.ELEMENT, GRAPH_ROOT)
    (kept,) = routing_query(Profile(PathExpression(Origin.MESSAGE, (root, *(80 * (long,))))))
    assert kept == ANY_GRAPH


def test_the_root_element_says_which_readings_a_message_has() -> None:
    derive = Deriving()
    assert readings_of(XML, derive).document is XML and readings_of(XML, derive).graph is None
    assert readings_of(GRAPH, derive).document is None and readings_of(GRAPH, derive).graph is GRAPH
    both = readings_of(RDF_XML, derive)
    assert both.document is both.carried is RDF_XML
    assert derive.asked == 0
    assert both.graph is both.graph is both.of(Reading.GRAPH) is GRAPH
    assert derive.asked == 1


def test_a_document_profile_never_sees_a_striped_graph() -> None:
    matcher = Matcher()
    for text in ("/*", "//a", "//*[@v]", "/Q{urn:onyx:graph}*", "//Q{urn:onyx:graph}d"):
        matcher.add(text)
    graph = matcher.add(G)
    assert matcher.matched_ids(GRAPH) == [graph]
    assert [
        match.profile_id for match in matcher.match(GRAPH) if isinstance(match, ProfileMatch)
    ] == [graph]


def test_a_message_with_both_readings_is_asked_in_both_and_derived_once() -> None:
    derive = Deriving()
    message = Readings(RDF_XML, None, derive)
    matcher = Matcher()
    matcher.add("//a[@v = 2]", "document")
    matcher.add("//a[@v = 1]", "not")
    matcher.add(G + "/a", "not-either")
    matcher.add(f"for $a in {G}//a[@v = 1] return <x>{{$a/@v}}</x>", "graph")
    assert sorted(matcher.matched_ids(message)) == ["document", "graph"]
    results = {
        matcher.id_of(number): one.results
        for one in matcher.deliver(message)
        for number in one.numbers
    }
    assert results["graph"] == [b'<x v="1"/>']
    assert results["document"][0].startswith(b"<rdf:RDF")
    found = {
        match.profile_id: match
        for match in matcher.match(message)
        if isinstance(match, ProfileMatch)
    }
    assert found["graph"].bindings == (2,) and found["document"].bindings == (1,)
    assert found["document"].results()[0].startswith(b"<rdf:RDF")
    assert derive.asked == 1


def test_a_graph_that_nobody_asks_for_is_not_derived() -> None:
    derive = Deriving()
    matcher = Matcher()
    matcher.add("/*")
    matcher.add_route(Conjunction.parse("//a"), LinkTarget("r", "one"))
    matcher.open_needs(LinkTarget("r", "one"))
    list(matcher.match(Readings(RDF_XML, None, derive), "r"))
    assert derive.asked == 0
    matcher.add_route(Conjunction.parse(f"{G}/d"), LinkTarget("r", "one"))
    list(matcher.match(Readings(RDF_XML, None, derive), "other"))
    assert derive.asked == 0  # no link of that tree
    list(matcher.match(Readings(RDF_XML, None, derive), "r"))
    assert derive.asked == 1


def test_links_are_reached_by_either_reading_and_once() -> None:
    matcher = Matcher()
    for text, link in (("//a", "one"), (G, "one"), (f"{G}/*:d", "two"), ("//b", "three")):
        matcher.add_route(Conjunction.parse(text), LinkTarget("r", link))
    message = Readings(RDF_XML, GRAPH)
    links = [match.link for match in matcher.match(message, "r") if isinstance(match, RouteMatch)]
    assert sorted(links) == ["one", "two"]
    links = [match.link for match in matcher.match(GRAPH, "r") if isinstance(match, RouteMatch)]
    assert sorted(links) == ["one", "two"]
    links = [match.link for match in matcher.match(RDF_XML, "r") if isinstance(match, RouteMatch)]
    assert links == ["one"]


def test_a_graph_profile_needs_all_of_rdf_xml_and_nothing_of_other_documents() -> None:
    (need,) = needs_of(parse_profile(f"for $d in {G}/d return $d"))
    assert need != EVERYTHING and Need.parse(need.text) == need
    link = LinkTarget("r", "link")
    matcher = Matcher()
    matcher.add_route(Conjunction.parse("/*"), link)
    matcher.add_route(Conjunction.parse(G), link)
    matcher.open_needs(link)
    matcher.add_need(need, link)

    def left(message: ElementStream) -> int:
        (one,) = [m for m in matcher.match(message, "r") if isinstance(m, TransformationMatch)]
        return len(one.stream)

    assert left(RDF_XML) == len(RDF_XML)
    assert left(XML) == 1
    matcher.remove_need(need, link)
    assert left(RDF_XML) == 1
    assert left(GRAPH) == len(GRAPH)  # a striped graph is never cut


def graph_profile(path: PathExpression) -> PathExpression:
    root = LocationStep(False, NodeKind.ELEMENT, GRAPH_ROOT)
    return PathExpression(path.origin, (root, *path.steps))


def random_graph(rng: Random) -> ElementStream:
    inside = random_message(rng).text.decode()
    return parse_text(f'<k:g xmlns:k="urn:onyx:graph">{inside}</k:g>'.encode())


@pytest.mark.parametrize("seed", range(5))
def test_random_profiles_of_both_readings_in_one_matcher(seed: int) -> None:
    """Against the interpreter, while profiles and routes come and go; what goes leaves nothing."""
    rng = Random(seed)
    limits = MatchLimits(lazy_bytes_max=4096) if seed % 2 else MatchLimits()
    matcher = Matcher(limits)
    empty = {
        key: getattr(matcher.statistics(), key)
        for key in ("index_nodes", "index_queries", "operators", "index_bytes_used")
    }
    profiles: dict[str, Profile] = {}
    routes: dict[str, Conjunction] = {}
    for _ in range(60):
        for _ in range(4):
            path = random_profile(rng)
            profile = Profile(graph_profile(path) if rng.random() < 0.5 else path)
            profiles[matcher.add(profile)] = profile
            if rng.random() < 0.5:
                link = f"L{len(profiles)}{rng.random()}"
                routes[link] = rng.choice(routing_query(profile))
                matcher.add_route(routes[link], LinkTarget("r", link))
        if rng.random() < 0.5:
            for name in rng.sample(sorted(profiles), 4):
                matcher.remove(name)
                del profiles[name]
            for link in rng.sample(sorted(routes), min(2, len(routes))):
                matcher.remove_route(routes.pop(link), LinkTarget("r", link))
        document = random_message(rng).stream if rng.random() < 0.7 else None
        graph = random_graph(rng) if document is None or rng.random() < 0.5 else None
        message = Readings(document, graph)
        expected = {
            name
            for name, profile in profiles.items()
            if (stream := message.of(reading_of(matching_path(profile).steps))) is not None
            and select(matching_path(profile), stream)
        }
        reached = {
            link
            for link, route in routes.items()
            if (stream := message.of(route.reading)) is not None
            and all(select(path.expression, stream) for path in route.paths)
        }
        found = list(matcher.match(message, "r"))
        assert {one.profile_id for one in found if isinstance(one, ProfileMatch)} == expected, seed
        links = [one.link for one in found if isinstance(one, RouteMatch)]
        assert len(links) == len(reached) and set(links) == reached, seed
        assert set(matcher.matched_ids(message)) == expected
        if document is None:
            continue  # these streams are no graphs that could be written
        numbers = [number for one in matcher.deliver(message) for number in one.numbers]
        assert {matcher.id_of(number) for number in numbers} == expected and len(numbers) == len(
            expected
        )
    for name in profiles:
        matcher.remove(name)
    for link, route in routes.items():
        matcher.remove_route(route, LinkTarget("r", link))
    assert {key: getattr(matcher.statistics(), key) for key in empty} == empty


def test_both_readings_share_one_budget_of_visits() -> None:
    both = Readings(
        parse_text(b"<r>" + b"<a/>" * 400 + b"</r>"),
        parse_text(b'<k:g xmlns:k="urn:onyx:graph">' + b"<a/>" * 400 + b"</k:g>"),
    )
    matcher = Matcher()
    matcher.add("/r/a[@x]")
    assert both.document is not None and matcher.matched_ids(both.document) == []
    visits = matcher.statistics().index_visits
    for limit, suffices in ((visits + visits // 2, False), (3 * visits, True)):
        matcher = Matcher(MatchLimits(visits_max=limit))
        matcher.add("/r/a[@x]")
        matcher.add(f"{G}/a[@x]")
        for one in (both.document, both.graph):
            assert one is not None and matcher.matched_ids(one) == []
        if suffices:
            assert matcher.matched_ids(both) == []
        else:
            with pytest.raises(MatchLimitExceeded):
                matcher.matched_ids(both)


def test_a_long_message_of_both_readings_is_matched_in_pieces() -> None:
    long = b"".join(b'<a n="%d"/>' % number for number in range(20_000))
    document = parse_text(b"<r>" + long + b"</r>")
    graph = parse_text(b'<k:g xmlns:k="urn:onyx:graph">' + long + b"</k:g>")
    matcher = Matcher()
    matcher.add("/r/a[@n = 19999]", "document")
    matcher.add(f"{G}/a[@n = 19998]", "graph")
    for disturbed in (False, True):
        _, delivered = matcher.deliver_in_stages(Readings(document, graph))
        names = []
        pauses = 0
        for one in delivered:
            pauses += not one.is_made
            names += [matcher.id_of(number) for number in one.numbers]
            if disturbed:
                matcher.matched_ids(XML)
        assert sorted(names) == ["document", "graph"]
        assert pauses > 0


def test_an_explanation_looks_at_the_reading_of_the_profile() -> None:
    matcher = Matcher()
    explained = matcher.explain(f"{G}/*:d[@s = 'x']", GRAPH)
    assert explained.matched
    assert not matcher.explain(f"{G}/*:d[@s = 'y']", GRAPH).matched
    absent = matcher.explain(G, XML)
    assert absent.matched is False and absent.failure is not None
    assert absent.failure.text == G
    assert matcher.explain("/*", GRAPH).matched is False
    assert "does not match" in str(absent)
