"""Placement: who becomes root broker, who host broker, and why."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.link.request_server import RequestRefused
from overlay.nodes import Address, BrokerNode, Link, Place
from overlay.routing.broadcast_tree import broadcast_trees
from overlay.topology import Topology, load_topology
from registration.placement import (
    EARTH_RADIUS_KM,
    FIBRE_KM_PER_MS,
    HALF_EARTH_KM,
    brokers_with_room,
    choose_host_broker,
    choose_root_broker,
    great_circle_km,
    rank_root_brokers,
)
from tests.examples import examples
from tests.overlay.topologies import EXAMPLES, topology_of

FIGURE_4 = load_topology(EXAMPLES / "figure4.toml")
MBIT = 125_000  # bytes


def broker(broker_id: str, longitude: float | None = None, capacity: int = 10) -> BrokerNode:
    place = None if longitude is None else Place(0.0, longitude)
    return BrokerNode(broker_id, Address("127.0.0.1", 0), place=place, capacity=capacity)


def chain(*brokers: BrokerNode, latency_ms: float = 1, kbps: float = 8_000) -> Topology:
    links = itertools.pairwise(brokers)
    return topology_of(brokers, tuple(Link((a.id, b.id), latency_ms, kbps) for a, b in links))


def root(
    topology: Topology,
    location: tuple[float, float] | None = None,
    *,
    rate: float = 0,
    size: int = 0,
    volume: dict[str, float] | None = None,
) -> str:
    return choose_root_broker(
        topology, broadcast_trees(topology), location, rate, size, volume or {}
    )


# --- distance ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "km"),
    [
        ((0, 0), (0, 0), 0),
        ((0, 0), (0, 90), math.pi / 2 * EARTH_RADIUS_KM),
        ((90, 0), (-90, 77), math.pi * EARTH_RADIUS_KM),
        ((0, 179.5), (0, -179.5), math.pi / 180 * EARTH_RADIUS_KM),
        ((10, 20), (11, 20), math.pi / 180 * EARTH_RADIUS_KM),
        ((52.52, 13.405), (48.8566, 2.3522), 877.46),  # Berlin - Paris
    ],
)
def test_great_circle(a: tuple[float, float], b: tuple[float, float], km: float) -> None:
    assert great_circle_km(a, b) == pytest.approx(km, rel=1e-4)
    assert great_circle_km(b, a) == great_circle_km(a, b)


@examples(100)
@given(*[st.tuples(st.floats(-90, 90), st.floats(-180, 180))] * 2)
def test_great_circle_by_the_angle_between_vectors(
    a: tuple[float, float], b: tuple[float, float]
) -> None:
    def vector(point: tuple[float, float]) -> tuple[float, float, float]:
        phi, lam = math.radians(point[0]), math.radians(point[1])
        return math.cos(phi) * math.cos(lam), math.cos(phi) * math.sin(lam), math.sin(phi)

    chord = math.dist(vector(a), vector(b))
    oracle = 2 * EARTH_RADIUS_KM * math.asin(min(1.0, chord / 2))
    assert great_circle_km(a, b) == pytest.approx(oracle, abs=0.5)


# --- root brokers --------------------------------------------------------------------------


@pytest.mark.parametrize("node", FIGURE_4.brokers, ids=lambda node: node.label)
def test_a_source_beside_a_broker_of_figure_4_gets_that_broker(node: BrokerNode) -> None:
    assert root(FIGURE_4, node.place, rate=10, size=2_000) == node.id


def test_without_a_location_the_root_is_in_the_middle_of_the_network() -> None:
    assert root(chain(broker("A"), broker("B"), broker("C"))) == "B"
    assert root(load_topology(EXAMPLES / "chain5.toml")) == "B3"


def test_distance_adds_the_way_to_the_broker_and_the_mean_of_its_tree() -> None:
    topology = chain(broker("A", 0), broker("B", 10), broker("C", 20), latency_ms=4)
    candidates = rank_root_brokers(topology, broadcast_trees(topology), (0, 20), 0, 0, {})
    degree_ms = math.pi / 180 * EARTH_RADIUS_KM / FIBRE_KM_PER_MS
    assert {c.broker: c.source_ms for c in candidates} == pytest.approx(
        {"A": 20 * degree_ms, "B": 10 * degree_ms, "C": 0}
    )
    assert {c.broker: c.tree_ms for c in candidates} == {"A": 6, "B": 4, "C": 6}
    assert [c.broker for c in candidates] == ["C", "B", "A"]
    assert candidates[1].distance_ms == pytest.approx(10 * degree_ms + 4, abs=1e-6)


def test_a_slow_link_to_the_nearest_broker_makes_a_farther_one_nearer_to_everybody() -> None:
    topology = chain(broker("A", 0), broker("B", 1), broker("C", 2), latency_ms=100)
    assert root(topology, (0, 0)) == "B"


def test_a_broker_without_a_place_counts_as_far_away() -> None:
    topology = chain(broker("A"), broker("B", 170))
    assert root(topology, (0, 0)) == "B"
    trees = broadcast_trees(topology)
    ranked = rank_root_brokers(topology, trees, (0, 0), 0, 0, {})
    assert ranked[1].source_ms == HALF_EARTH_KM / FIBRE_KM_PER_MS
    assert root(topology) == "A"


def test_the_nearest_broker_is_passed_over_when_its_link_is_too_thin() -> None:
    # A - B has 1 Mbit/s, B - C and C - D have 100.
    topology = topology_of(
        (broker("A", 0), broker("B", 10), broker("C", 20), broker("D", 30)),
        (Link(("A", "B"), 1, 1_000), Link(("B", "C"), 1, 100_000), Link(("C", "D"), 1, 100_000)),
    )
    assert root(topology, (0, 0), rate=1, size=MBIT) == "A"
    # B feeds A over the same thin link; C feeds only fat ones.
    assert root(topology, (0, 0), rate=1, size=MBIT + 1) == "C"


def test_when_no_broker_has_enough_the_one_exceeded_least_is_taken() -> None:
    topology = topology_of(
        (broker("A", 0), broker("B", 10), broker("C", 20)),
        (Link(("A", "B"), 1, 1_000), Link(("B", "C"), 1, 2_000)),
    )
    assert root(topology, (0, 0), rate=3, size=MBIT) == "C"
    # Equally exceeded (both over A - B): the nearer one, then the smaller id.
    same = topology_of((broker("A", 0), broker("B", 10)), (Link(("A", "B"), 1, 1_000),))
    assert root(same, (0, 10), rate=3, size=MBIT) == "B"
    assert root(same, rate=3, size=MBIT) == "A"


def test_what_is_expected_of_other_sources_takes_bandwidth_in_its_direction() -> None:
    topology = chain(broker("A", 0), broker("B", 10), broker("C", 20), kbps=1_000)
    trees = broadcast_trees(topology)

    def headroom(volume: dict[str, float]) -> dict[str, float]:
        ranked = rank_root_brokers(topology, trees, None, 1, 0, volume)
        return {c.broker: c.headroom_bytes_per_second / MBIT for c in ranked}

    assert headroom({}) == {"A": 1, "B": 1, "C": 1}
    # A's messages go A -> B -> C: B feeds C over the second of these links, C feeds B backwards.
    assert headroom({"A": 0.75 * MBIT}) == {"A": 0.25, "B": 0.25, "C": 1}
    assert headroom({"B": 0.5 * MBIT}) == {"A": 1, "B": 0.5, "C": 1}
    assert headroom({"A": 0.25 * MBIT, "B": 0.25 * MBIT, "gone": 9e9}) == {
        "A": 0.75,
        "B": 0.5,
        "C": 1,
    }
    assert root(topology, (0, 0), rate=0.5, size=MBIT, volume={"A": 0.75 * MBIT}) == "C"


def test_a_single_broker_takes_everything() -> None:
    topology = load_topology(EXAMPLES / "single.toml")
    assert root(topology, (1, 2), rate=1e9, size=10**9, volume={"B1": 1e18}) == "B1"
    (only,) = rank_root_brokers(topology, broadcast_trees(topology), None, 1, 1, {})
    assert (only.tree_ms, only.headroom_bytes_per_second) == (0, math.inf)
    assert only.suffices


def test_ties_of_root_brokers_go_to_the_smallest_id_in_any_order_of_the_file() -> None:
    brokers = (broker("C", 0), broker("A", 0), broker("B", 0))
    links = (Link(("C", "A"), 1), Link(("A", "B"), 1), Link(("B", "C"), 1))
    assert root(topology_of(brokers, links), (0, 50)) == "A"
    assert root(topology_of(brokers[::-1], links[::-1]), (0, 50)) == "A"


@pytest.mark.parametrize(
    ("rate", "size"), [(-1, 1), (1, -1), (math.nan, 1), (math.inf, 1), (math.inf, 0)]
)
def test_impossible_expectations(rate: float, size: int) -> None:
    with pytest.raises(ValueError, match="rate and size must not be negative or endless"):
        root(FIGURE_4, rate=rate, size=size)


# --- host brokers --------------------------------------------------------------------------


def test_the_nearest_broker_hosts_whatever_its_load_while_it_has_room() -> None:
    topology = chain(broker("A", 0), broker("B", 10, capacity=3), broker("C", 20))
    assert choose_host_broker(topology, (0, 11), {"B": 2}) == "B"
    assert choose_host_broker(topology, (0, 11), {"B": 3}) == "C"
    assert choose_host_broker(topology, (0, 11), {"B": 4, "C": 10}) == "A"


def test_without_a_location_the_load_in_proportion_to_the_capacity_decides() -> None:
    topology = chain(broker("A", 0, 10), broker("B", 10, 100), broker("C", 20, 1_000))
    assert choose_host_broker(topology, None, {}) == "A"
    assert choose_host_broker(topology, None, {"A": 1}) == "B"
    assert choose_host_broker(topology, None, {"A": 1, "B": 11, "C": 99}) == "C"
    assert choose_host_broker(topology, None, {"A": 1, "B": 10, "C": 100}) == "A"


def test_equally_near_brokers_share_the_load() -> None:
    topology = chain(broker("B", 5), broker("A", 5), broker("C", 6))
    assert choose_host_broker(topology, (0, 5), {}) == "A"
    assert choose_host_broker(topology, (0, 5), {"A": 1, "C": 0}) == "B"
    assert choose_host_broker(topology, (0, 5), {"A": 10, "B": 9}) == "B"


def test_unplaced_brokers_host_when_no_placed_one_can() -> None:
    topology = chain(broker("A"), broker("B", 179), broker("C"))
    assert choose_host_broker(topology, (0, 0), {}) == "B"
    assert choose_host_broker(topology, (0, 0), {"B": 10, "A": 1}) == "C"


def test_a_broker_without_capacity_only_routes() -> None:
    topology = load_topology(EXAMPLES / "tree15.toml")
    outer = [f"B{number:02}" for number in range(8, 16)]
    hosts = {choose_host_broker(topology, node.place, {}) for node in topology.brokers}
    assert hosts == set(outer)
    assert [node.id for node in brokers_with_room(topology, {})] == outer


def test_a_full_network_refuses() -> None:
    topology = chain(broker("A", 0, 1), broker("B", 10, 2), broker("C", 10, 0))
    assert choose_host_broker(topology, (0, 0), {"A": 1, "B": 1}) == "B"
    with pytest.raises(RequestRefused) as caught:
        choose_host_broker(topology, (0, 0), {"A": 1, "B": 2})
    assert caught.value.code == "network-full"
    assert str(caught.value) == (
        "every broker is full: the 3 brokers of test have room for 3 profiles in all"
    )
