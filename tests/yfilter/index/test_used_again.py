"""Nodes and numbers of the index that are used again, while states of before are remembered."""

from __future__ import annotations

from formats.text import parse_text
from yfilter.engine.linear_paths import routing_query
from yfilter.engine.readings import Readings
from yfilter.engine.targets import LinkTarget
from yfilter.index.derived_condition import condition_of
from yfilter.index.index import Index
from yfilter.language.query_parser import parse_profile

VISITS_MAX = 1_000_000


def add_place(index: Index, path: str) -> int:
    """A query of what links need; ``path`` ends in a predicate with a condition."""
    (conjunction,) = routing_query(parse_profile(path))
    (linear,) = conjunction.paths
    (selection,) = linear.steps[-1].selections
    condition = condition_of(selection)
    assert condition is not None
    return index.add_place(tuple(step.structure for step in linear.steps), (condition,))


def add_route(index: Index, path: str) -> int:
    (conjunction,) = routing_query(parse_profile(path))
    return index.add_conjunction(conjunction)


def located(index: Index, message: bytes) -> list[int]:
    found = index.locate(parse_text(message), VISITS_MAX)
    return [found.query[hit] for hit in range(found.count)]


def test_a_node_used_again_for_a_route_is_none_of_what_links_need() -> None:
    # The node of the removed place becomes one of the routing query, with its number, and the text
    # of the one becomes that of the other: a remembered step led from the place's parent to it.
    index = Index()
    former = add_place(index, '/f/i[@a = "1"]')
    add_route(index, '/f/i[@a = "0"]')
    assert located(index, b'<f><i a="1"/></f>') == [former]
    place = add_place(index, '/f/i[@b = "1"]')
    index.remove(former)
    route = add_route(index, '/f/i[@a = "2"]')
    assert route == former
    index.add_target(route, LinkTarget(root="B0", link="B5", others=frozenset()))
    message = parse_text(b'<f><i a="2"/><i b="1"/></f>')
    assert index.links(Readings(message), "B0", VISITS_MAX) == ["B5"]
    assert located(index, b'<f><i a="2"/><i b="1"/></f>') == [place]
