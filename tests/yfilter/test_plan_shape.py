"""What is shared is shared: prefixes, comparisons, residuals, equal queries, across all classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from random import Random

import pytest

from formats.text import parse_text
from tests.yfilter.random_cases import (
    random_flwor,
    random_linear_profile,
    random_message,
    random_profile,
)
from yfilter import Conjunction, LinkTarget, Matcher, parse_profile, routing_query
from yfilter.index.automaton import ROOTS
from yfilter.language.query_ast import Profile

INDEX = ("queries", "nodes", "atoms", "records", "twigs", "symbols", "attributes")
# The queries of the paper's Figure 5.
FIGURE_5 = (
    """$msg/nitf[head/pubdata[@edition.area = "SF"]]
    [.//tobject.subject[@tobject.subject.type = "Stock"]]""",
    """$msg/nitf[head/pubdata[@edition.area = "SF"]]
    [.//tobject.subject[@tobject.subject.matter = "fishing"]]""",
    """<nitf>{ for $n in $msg/nitf where $n/head/pubdata/@edition.area = "SF"
    and $n//series/@series.name = "Tide Forecasts" return $n/body/body.content }</nitf>""",
)
NORTH, SOUTH = LinkTarget("r", "north"), LinkTarget("r", "south")


def matcher(
    profiles: Iterable[str] = (),
    routes: Iterable[tuple[str, LinkTarget]] = (),
) -> Matcher:
    made = Matcher()
    for profile in profiles:
        made.add(profile)
    for route, target in routes:
        made.add_route(Conjunction.parse(route), target)
    return made


def sizes(made: Matcher) -> dict[str, int]:
    """What is above zero; nodes without the roots."""
    found = made.statistics()
    counts = {name: getattr(found, f"index_{name}") for name in INDEX}
    counts["nodes"] -= ROOTS
    counts["operators"] = found.operators
    return {name: count for name, count in counts.items() if count}


# -- the index


@pytest.mark.parametrize(
    ("profiles", "shape"),
    [
        # Equal profiles, however written, are one query.
        (["/a/b", "/a/b", "$msg/a/b (: again :)"], {"queries": 1, "nodes": 2, "symbols": 2}),
        (
            ["/a[b][c]", "/a[c][b]", "/a[b and c]", "/a[c][b][c]"],
            {"queries": 4, "nodes": 1, "records": 3, "twigs": 2, "symbols": 3},
        ),
        # A common beginning is there once, with its access predicate; a // is one node.
        (["/a/b/c", "/a/b/d", "/a/b"], {"queries": 3, "nodes": 4, "symbols": 4}),
        (["/a//b", "/a//c", "/a//b/c"], {"queries": 3, "nodes": 5, "symbols": 3}),
        (
            ['/a[@x = "1"]/b', '/a[@x = "1"]/c', '/a[@x = "2"]/b'],
            {"queries": 3, "nodes": 7, "atoms": 2, "symbols": 3, "attributes": 1},
        ),
        # All numbers that an attribute is compared with in one way are one edge.
        (
            [f"/a[@n > {number}]" for number in range(50)],
            {"queries": 50, "nodes": 3, "atoms": 1, "symbols": 1, "attributes": 1},
        ),
        # A comparison is one atom, be it an access predicate or part of a residual.
        (
            ['/a[@x = "1"]', '/a[@x = "1"][@y = "2"]', '/b[@x = "1"]//c[@y = "2"]'],
            {"queries": 3, "nodes": 8, "atoms": 2, "symbols": 3, "attributes": 2},
        ),
        # A nested path is one twig, whatever it stands on.
        (
            ["/a[b/c]", "/x/y[b/c]", "/x//z[b/c]"],
            {"queries": 3, "nodes": 5, "records": 1, "twigs": 1, "symbols": 6},
        ),
        (
            [f'/a[@x = "{number}"][b][@z]' for number in range(20)],
            {
                "queries": 20,
                "nodes": 22,
                "atoms": 21,  # with that of @z
                "records": 2,
                "twigs": 1,
                "symbols": 2,
                "attributes": 2,
            },
        ),
    ],
)
def test_equal_parts_of_profiles_are_there_once(profiles: list[str], shape: dict[str, int]) -> None:
    assert sizes(matcher(profiles)) == shape


def test_the_queries_of_figure_5_share_their_comparison() -> None:
    shape = {
        "queries": 3,
        "nodes": 5,  # nitf, head, pubdata, @edition.area, "SF"
        "atoms": 4,
        "records": 6,  # a residual and a nested path of each
        "symbols": 5,
        "attributes": 4,
    }
    assert sizes(matcher(FIGURE_5)) == shape
    (line,) = (line for line in matcher(FIGURE_5).dump().splitlines() if "-> p" in line)
    assert sorted(line.partition("-> ")[2].split(", ")) == [f"p{n} if …" for n in (1, 2, 3)]


def test_what_a_removed_profile_shared_stays() -> None:
    made = matcher(FIGURE_5)
    made.remove("p3")
    assert sizes(made) == sizes(matcher(FIGURE_5[:2]))
    made.remove("p1")
    made.remove("p2")
    assert structure(made) == structure(Matcher())


def test_the_routing_queries_of_figure_6_are_a_query_each() -> None:
    made = Matcher()
    for text, link in zip(FIGURE_5, (NORTH, NORTH, SOUTH), strict=True):
        (conjunction,) = routing_query(parse_profile(text))
        made.add_route(conjunction, link)
    found = sizes(made)
    assert (found["queries"], found["atoms"], made.statistics().target_groups) == (3, 4, 2)


def test_a_step_with_thousands_of_conditions_needs_no_deep_recursion() -> None:
    conditions = "".join(f"[@a{number}]" for number in range(10_000, 15_000))
    conjunction = Conjunction.parse(f"/a{conditions}")
    made = Matcher()
    made.add_route(conjunction, NORTH)
    assert made.statistics().index_attributes == 5_000
    attributes = " ".join(f'a{number}=""' for number in range(10_000, 11_000))
    assert list(made.match(f"<a {attributes}/>".encode(), "r")) == []
    made.remove_route(conjunction, NORTH)
    assert structure(made) == structure(Matcher())


def test_an_equal_conjunction_for_several_links_and_trees_is_one_query() -> None:
    once = matcher(routes=[("/a/b and /a/c", NORTH)])
    more = matcher(
        routes=[
            ("/a/b and /a/c", target)
            for target in (NORTH, SOUTH, LinkTarget("s", "north"), LinkTarget("t", "west"))
        ]
    )
    assert sizes(once) == sizes(more) == {"queries": 1, "nodes": 2, "records": 2, "symbols": 3}
    assert (more.statistics().routes, more.statistics().route_queries) == (4, 1)


def test_conjunctions_share_the_paths_that_are_found_anywhere() -> None:
    made = matcher(
        routes=[(f'/a[@x = "{number}"] and /b//c/d and /e[@y]', NORTH) for number in range(30)]
    )
    # The two other paths are a record each, and all thirty have the same residual.
    assert sizes(made) == {
        "queries": 30,
        "nodes": 32,
        "atoms": 31,  # with that of @y
        "records": 3,
        "symbols": 5,
        "attributes": 2,
    }


def test_a_path_found_anywhere_is_looked_for_once_a_message() -> None:
    made = matcher(
        routes=[(f'/a//b/nothing and /a[@x{number} = "1"]', NORTH) for number in range(30)]
    )
    attributes = " ".join(f'x{number}="1"' for number in range(30))
    message = f"<a {attributes}>{'<b><nothing2/></b>' * 100}</a>".encode()
    list(made.match(message, "r"))
    before = made.statistics().index_visits
    assert made.statistics().candidates_route == 30
    made.remove_route(Conjunction.parse('/a//b/nothing and /a[@x0 = "1"]'), NORTH)
    list(made.match(message, "r"))
    assert made.statistics().index_visits - before >= before - 10  # one less costs nothing less


def test_targets_that_are_equal_sets_are_one_group() -> None:
    made = matcher(
        routes=[(f"/a/b{number}", target) for number in range(50) for target in (NORTH, SOUTH)]
    )
    assert made.statistics().target_groups == 1


def test_classes_share_comparisons_residuals_and_names_but_no_nodes() -> None:
    text = '/a[@x = "1"][b/c]/d'
    local = sizes(matcher([text]))
    routed = sizes(matcher([text], routes=[('/a/d and /a[@x = "1"]/b/c', NORTH)]))
    assert routed["symbols"] == local["symbols"]


# -- operators


@pytest.mark.parametrize(
    ("profiles", "operators"),
    [
        # An equal condition is one operator, whatever it stands on and however it is written.
        (["/a[not(b)]", "/x//y[not(b)]", "/a[ not( b ) ]/c", "/a[@z = 1][not(b)]"], 1),
        (["for $a in /a where not($a/b) return $a", "/a[not(b)]"], 1),
        # Conditions of one step are asked one by one.
        (["/a[not(b)][count(c) > 2]", "/a[count(c) > 2]"], 2),
        (["/a[not(b) and count(c) > 2]", "/a[count(c) > 2]"], 2),
        # What depends on the message alone is one part of all that ask for it.
        (["/a[@k = /r/@k]", "/b[@k = /r/@k]"], 1),
        (["/a[not(/r/s = 1)]", "/a[contains(@k, string(/r/t))]", "/b[not(/r/s = 1)]"], 4),
        # What the index looks up needs none.
        (['/a[@k = "x" or @k = "y"]', '/a[@k = ("x", "y", "z")]', "/a | /b", "/a[b/c][@d]"], 0),
        (["/a[2]", "/a[2]", "//b[last()]/c"], 2),
    ],
)
def test_equal_conditions_are_one_operator(profiles: list[str], operators: int) -> None:
    made = matcher(profiles)
    assert made.statistics().operators == operators


def test_a_route_and_a_profile_share_their_operators() -> None:
    alone = sizes(matcher(["/a[@x or @y]//b"]))
    assert alone == {"queries": 1, "nodes": 3, "records": 1, "symbols": 2, "operators": 1}
    routes = [("/a[@x or @y]//b", NORTH), ("/a[@x or @y]//b", SOUTH)]
    assert sizes(matcher(["/a[@x or @y]//b"], routes)) == alone | {"queries": 2, "nodes": 6}


def test_a_twig_goes_with_the_last_who_asks_for_its_path_in_whatever_way() -> None:
    made = matcher(["/a[b/c]"], [("/b/c and /d[@x = 1]", NORTH)])
    assert made.statistics().index_twigs == 1
    made.remove("p1")
    made.remove_route(Conjunction.parse("/b/c and /d[@x = 1]"), NORTH)
    assert structure(made) == structure(Matcher())


# -- several ways


@pytest.mark.parametrize(
    ("profile", "ways", "message"),
    [
        ('/a[@k = "x" or @k = "y" or @l = "z"]', 3, b'<a k="x" l="z"/>'),
        ('//i[@k = ("x", "y", "x")]', 2, b'<i k="x"><i k="y"/><i k="x"/></i>'),
        ("//a | //b | /c", 3, b"<a><b/><b/><a/></a>"),
        ("(//a | //b)[@k]/d", 2, b'<a k=""><d/><b k=""><d/></b></a>'),
        ('for $a in /a | /b where $a/@k = ("x", "y") return $a', 4, b'<a k="x"/>'),
        ('/a[b = "1" or c = 2]/d[@x = "1" or @y = "1"]', 1, b'<a><b>1</b><d x="1" y="1"/></a>'),
    ],
)
def test_what_is_found_in_several_ways_is_one_query_and_delivered_once(
    profile: str, ways: int, message: bytes
) -> None:
    made = matcher()
    empty = sizes(made)
    made.add(profile, "p")
    made.add(profile, "q")
    made.add_route(Conjunction.parse("//*"), NORTH)
    statistics = made.statistics()
    assert statistics.queries == 1
    assert statistics.index_queries >= ways + 1
    found = list(made.match(message, "r"))
    assert [type(match).__name__ for match in found] == [
        *("RouteMatch", "ProfileMatch", "ProfileMatch")
    ]
    assert sorted(made.matched_ids(message)) == ["p", "q"]
    made.remove("p")
    assert made.matched_ids(message) == ["q"]
    made.remove("q")
    made.remove_route(Conjunction.parse("//*"), NORTH)
    assert made.matched_ids(message) == []
    assert sizes(made) == empty


# -- in general


@pytest.mark.parametrize("seed", range(4))
def test_adding_a_population_again_under_other_names_adds_no_structure(seed: int) -> None:
    rng = Random(seed)
    pool = [Profile(random_profile(rng)) for _ in range(40)]
    pool += [Profile(random_linear_profile(rng)) for _ in range(40)]
    made = Matcher()
    for profile in pool:
        made.add(profile)
        for conjunction in routing_query(profile):
            add_once(made, conjunction, NORTH)
    before, queries = sizes(made), made.statistics().queries
    names = [made.add(profile) for profile in pool]
    for profile in pool:
        for conjunction in routing_query(profile):
            add_once(made, conjunction, SOUTH)
    assert sizes(made) == before
    assert made.statistics().queries == queries
    for name in names:
        made.remove(name)
    assert sizes(made) == before


@pytest.mark.parametrize("seed", range(4))
def test_removing_everything_in_any_order_leaves_an_empty_matcher(seed: int) -> None:
    rng = Random(seed)
    made = Matcher()
    empty = structure(made)
    removals: list[Callable[[], None]] = []
    for number in range(80):
        profile = Profile(random_profile(rng, conditions=0.6))
        text = random_flwor(rng)
        for name, one in ((f"path {number}", profile), (f"flwor {number}", parse_profile(text))):
            removals.append(partial(made.remove, made.add(one, name)))
            target = LinkTarget(rng.choice("rs"), rng.choice(("north", "south")))
            for conjunction in routing_query(one):
                with suppress(ValueError):
                    made.add_route(conjunction, target)
                    removals.append(partial(made.remove_route, conjunction, target))
        if number % 10 == 0:
            list(made.match(random_message(rng).stream, "r"))
    assert made.statistics().operators > 20
    rng.shuffle(removals)
    for remove in removals:
        remove()
    assert structure(made) == empty


def structure(made: Matcher) -> dict[str, int]:
    """All that says what there is now, but what is only allocated."""
    counts = made.statistics()
    names = ("profiles", "queries", "routes", "route_queries", "target_groups", "operators")
    of_index = ("index_bytes_used", "index_twig_nodes", "index_nodes")
    return sizes(made) | {name: getattr(counts, name) for name in names + of_index}


@pytest.mark.parametrize("seed", range(4))
def test_paths_without_conditions_have_one_shape_in_whatever_order_they_come(seed: int) -> None:
    rng = Random(seed)
    pool = [Profile(random_profile(rng, conditions=0)) for _ in range(60)]
    first = Matcher()
    for profile in pool:
        first.add(profile)
    rng.shuffle(pool)
    other = Matcher()
    for profile in pool:
        other.add(profile)
    assert sizes(first) == sizes(other)
    assert first.statistics().index_nodes < sum(len(str(p.body)) for p in pool)


def add_once(made: Matcher, conjunction: Conjunction, target: LinkTarget) -> None:
    try:
        made.add_route(conjunction, target)
    except ValueError as error:
        assert "already" in str(error)


def test_states_are_made_once_for_messages_alike() -> None:
    made = matcher([f"/a/b{number}//c[@x = '{number}']".replace("'", '"') for number in range(50)])
    stream = parse_text(b"<a>" + b"<b7><d><c x='7'/></d></b7>" * 20 + b"</a>")
    made.matched_ids(stream)
    once = made.statistics().index_lazy_steps_computed
    made.matched_ids(parse_text(b"<a>" + b"<b7><d><c x='7'/></d></b7>" * 50 + b"</a>"))
    assert made.statistics().index_lazy_steps_computed == once
