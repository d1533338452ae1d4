"""What is shared is shared: prefixes, comparisons, residuals, equal queries, across all classes."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from formats.text import parse_text
from tests.yfilter.random_cases import random_linear_profile, random_profile
from yfilter import Conjunction, LinkTarget, Matcher, routing_query
from yfilter.language.query_ast import Profile

INDEX = ("queries", "nodes", "atoms", "records", "twigs", "symbols", "attributes")
NETWORK = ("path", "selection", "join", "residual", "and")
NORTH, SOUTH = LinkTarget("r", "north"), LinkTarget("r", "south")


def matcher(
    profiles: Iterable[str] = (),
    routes: Iterable[tuple[str, LinkTarget]] = (),
    *,
    index: bool = True,
) -> Matcher:
    made = Matcher(index=index)
    for profile in profiles:
        made.add(profile)
    for route, target in routes:
        made.add_route(Conjunction.parse(route), target)
    return made


def sizes(made: Matcher) -> dict[str, int]:
    """Of index or network, what is above zero; nodes without the three roots."""
    found = made.statistics()
    counts = {name: found.get(f"index_{name}", 0) for name in INDEX}
    counts["nodes"] = max(counts["nodes"] - 3, 0)
    counts |= {name: found[f"operators_{name}"] for name in NETWORK}
    counts["states"] = found["nfa_states"] - 1
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
                "atoms": 20,
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


def test_an_equal_conjunction_for_several_links_and_trees_is_one_query() -> None:
    once = matcher(routes=[("/a/b and /a/c", NORTH)])
    more = matcher(
        routes=[
            ("/a/b and /a/c", target)
            for target in (NORTH, SOUTH, LinkTarget("s", "north"), LinkTarget("t", "west"))
        ]
    )
    assert sizes(once) == sizes(more) == {"queries": 1, "nodes": 2, "records": 2, "symbols": 3}
    assert (more.statistics()["routes"], more.statistics()["route_queries"]) == (4, 1)


def test_conjunctions_share_the_paths_that_are_found_anywhere() -> None:
    made = matcher(
        routes=[(f'/a[@x = "{number}"] and /b//c/d and /e[@y]', NORTH) for number in range(30)]
    )
    # The two other paths are a record each, and all thirty have the same residual.
    assert sizes(made) == {
        "queries": 30,
        "nodes": 32,
        "atoms": 30,
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
    before = made.statistics()["index_visits"]
    assert made.statistics()["candidates_route"] == 30
    made.remove_route(Conjunction.parse('/a//b/nothing and /a[@x0 = "1"]'), NORTH)
    list(made.match(message, "r"))
    assert made.statistics()["index_visits"] - before >= before - 10  # one less costs nothing less


def test_targets_that_are_equal_sets_are_one_group() -> None:
    made = matcher(
        routes=[(f"/a/b{number}", target) for number in range(50) for target in (NORTH, SOUTH)]
    )
    assert made.statistics()["target_groups"] == 1


def test_classes_share_comparisons_residuals_and_names_but_no_nodes() -> None:
    text = '/a[@x = "1"][b/c]/d'
    local = sizes(matcher([text]))
    routed = sizes(matcher([text], routes=[('/a/d and /a[@x = "1"]/b/c', NORTH)]))
    assert routed["symbols"] == local["symbols"]


# -- the network


def test_routes_and_a_profile_are_one_operator() -> None:
    text = "/a[@x or @y]//b"
    alone = sizes(matcher([text], index=False))
    together = matcher([text], [(text, NORTH), (text, SOUTH)], index=False)
    assert sizes(together) == alone == {"path": 2, "selection": 1, "join": 1, "states": 3}
    lines = [line for line in together.dump().splitlines() if "->" in line and "#" in line]
    assert len(lines) == 1  # all three targets stand at one operator
    assert lines[0].count("->") == 3


def test_what_the_index_cannot_say_shares_the_network_with_other_classes() -> None:
    made = matcher(["/a/b[not(c)]"], [("/a/b and /a[@x or @y]", NORTH)])
    assert sizes(made) == {"path": 2, "selection": 1, "residual": 1, "and": 1, "states": 2}


# -- in general


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_adding_a_population_again_under_other_names_adds_no_structure(
    seed: int, index: bool
) -> None:
    rng = Random(seed)
    pool = [Profile(random_profile(rng)) for _ in range(40)]
    pool += [Profile(random_linear_profile(rng)) for _ in range(40)]
    made = Matcher(index=index)
    for profile in pool:
        made.add(profile)
        for conjunction in routing_query(profile):
            add_once(made, conjunction, NORTH)
    before, queries = sizes(made), made.statistics()["queries"]
    names = [made.add(profile) for profile in pool]
    for profile in pool:
        for conjunction in routing_query(profile):
            add_once(made, conjunction, SOUTH)
    assert sizes(made) == before
    assert made.statistics()["queries"] == queries
    for name in names:
        made.remove(name)
    assert sizes(made) == before


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
    assert first.statistics()["index_nodes"] < sum(len(str(p.body)) for p in pool)


def add_once(made: Matcher, conjunction: Conjunction, target: LinkTarget) -> None:
    try:
        made.add_route(conjunction, target)
    except ValueError as error:
        assert "already" in str(error)


def test_states_are_made_once_for_messages_alike() -> None:
    made = matcher([f"/a/b{number}//c[@x = '{number}']".replace("'", '"') for number in range(50)])
    stream = parse_text(b"<a>" + b"<b7><d><c x='7'/></d></b7>" * 20 + b"</a>")
    made.matched_ids(stream)
    once = made.statistics()["index_lazy_steps_computed"]
    made.matched_ids(parse_text(b"<a>" + b"<b7><d><c x='7'/></d></b7>" * 50 + b"</a>"))
    assert made.statistics()["index_lazy_steps_computed"] == once
