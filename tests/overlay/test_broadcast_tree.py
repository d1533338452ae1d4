"""Broadcast trees against networkx and against every simple way there is."""

from __future__ import annotations

import itertools
import random

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overlay.routing.broadcast_tree import BroadcastTree, broadcast_tree, broadcast_trees
from overlay.topology import Topology, load_topology
from tests.examples import examples
from tests.overlay.topologies import EXAMPLES, network, topologies


@st.composite
def networks(draw: st.DrawFn, brokers_max: int = 12) -> Topology:
    """Connected networks with few different latencies, so that ties are frequent."""
    count = draw(st.integers(min_value=2, max_value=brokers_max))
    seed = draw(st.integers(min_value=0, max_value=2**32))
    rng = random.Random(seed)
    ids = [f"B{i}" for i in range(count)]
    rng.shuffle(ids)
    pairs = {(rng.randrange(b), b) for b in range(1, count)}
    pairs |= {(a, b) for b in range(count) for a in range(b) if rng.random() < 0.3}
    choices: list[list[float]] = [[1], [1, 2, 3], [0, 0.1, 0.2, 0.3], [0]]
    latencies = rng.choice(choices)
    return network(*((ids[a], ids[b], rng.choice(latencies)) for a, b in sorted(pairs)))


def graph_of(topology: Topology) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(topology.broker_ids)
    for link in topology.links:
        graph.add_edge(*link.ends, ms=link.latency_ms)
    return graph


def edges(tree: BroadcastTree) -> set[tuple[str, str]]:
    return {(parent, broker) for broker, parent in tree.parent.items() if parent is not None}


# --- figure 4 ------------------------------------------------------------------------------


def test_figure_4() -> None:
    trees = broadcast_trees(load_topology(EXAMPLES / "figure4.toml"))
    assert list(trees) == ["B1", "B2", "B3", "B4", "B5", "B6"]
    tree = trees["B1"]
    assert tree.root == "B1"
    assert tree.parent == {"B1": None, "B2": "B1", "B3": "B1", "B4": "B1", "B5": "B4", "B6": "B4"}
    assert tree.children == {
        "B1": ("B2", "B3", "B4"),
        "B2": (),
        "B3": (),
        "B4": ("B5", "B6"),
        "B5": (),
        "B6": (),
    }
    assert tree.path("B1") == ("B1",)
    assert tree.path("B6") == ("B1", "B4", "B6")
    assert [tree.latency_ms(b) for b in tree.breadth_first()] == [0, 6.5, 8.5, 16.5, 22.5, 19.5]
    assert trees["B5"].parent["B4"] == "B5"
    assert trees["B5"].children["B1"] == ("B2", "B3")


def test_next_hops_of_figure_4() -> None:
    tree = broadcast_tree(load_topology(EXAMPLES / "figure4.toml"), "B1")
    assert tree.next_hop_towards("B1", "B6") == "B4"
    assert tree.next_hop_towards("B4", "B6") == "B6"
    assert tree.next_hop_towards("B6", "B5") == "B4"
    assert tree.next_hop_towards("B5", "B2") == "B4"
    assert tree.next_hop_towards("B2", "B1") == "B1"
    with pytest.raises(ValueError, match="B2 is already there"):
        tree.next_hop_towards("B2", "B2")
    for pair in (("B1", "B9"), ("B9", "B1")):
        with pytest.raises(KeyError):
            tree.next_hop_towards(*pair)


def test_dump_of_figure_4() -> None:
    tree = broadcast_tree(load_topology(EXAMPLES / "figure4.toml"), "B4")
    assert tree.dump().splitlines() == [
        "B4 0 ms",
        "  B1 16.5 ms",
        "    B2 23 ms",
        "    B3 25 ms",
        "  B5 6 ms",
        "  B6 3 ms",
    ]


def test_a_tree_made_by_hand_has_no_latencies() -> None:
    tree = BroadcastTree("A", {"A": None, "B": "A"})
    assert tree.path("B") == ("A", "B")
    assert tree.dump() == "A\n  B"
    with pytest.raises(KeyError):
        tree.latency_ms("B")


def test_unknown_brokers() -> None:
    topology = network(("A", "B", 1))
    with pytest.raises(KeyError):
        broadcast_tree(topology, "C")
    tree = broadcast_tree(topology, "A")
    with pytest.raises(KeyError):
        tree.path("C")


# --- which way is taken --------------------------------------------------------------------


def test_latency_counts_before_the_number_of_links() -> None:
    tree = broadcast_tree(
        network(("A", "B", 1), ("B", "C", 1), ("C", "D", 1), ("A", "D", 3.1)), "A"
    )
    assert tree.path("D") == ("A", "B", "C", "D")


def test_of_equal_latency_the_way_with_fewer_links_is_taken() -> None:
    tree = broadcast_tree(network(("A", "B", 1), ("B", "C", 1), ("C", "D", 1), ("A", "D", 3)), "A")
    assert tree.path("D") == ("A", "D")
    assert tree.latency_ms("D") == 3


def test_of_equal_ways_the_parent_with_the_smallest_id_is_taken() -> None:
    topology = network(("A", "C", 1), ("A", "B", 1), ("C", "D", 1), ("B", "D", 1))
    assert broadcast_tree(topology, "A").path("D") == ("A", "B", "D")


def test_sums_that_floats_would_tell_apart_are_equal() -> None:
    assert 0.1 + 0.2 != 0.3
    topology = network(("A", "B", 0.1), ("B", "C", 0.2), ("A", "C", 0.3))
    assert broadcast_tree(topology, "A").path("C") == ("A", "C")
    assert broadcast_tree(topology, "A").latency_ms("C") == 0.3


def test_a_microsecond_counts() -> None:
    tree = broadcast_tree(network(("A", "B", 1.001), ("B", "C", 1), ("A", "C", 2)), "A")
    assert tree.latency_ms("B") == 1.001  # 1.001 * 1000 is a little less than 1001
    assert tree.path("C") == ("A", "C")


def test_links_without_latency() -> None:
    tree = broadcast_tree(network(("A", "B", 0), ("B", "C", 0), ("A", "C", 0)), "A")
    assert tree.children["A"] == ("B", "C")
    assert tree.latency_ms("C") == 0


# --- any network ---------------------------------------------------------------------------


@examples(150)
@given(networks())
def test_trees_span_the_network_on_least_latency(topology: Topology) -> None:
    graph = graph_of(topology)
    for root, tree in broadcast_trees(topology).items():
        assert set(tree.parent) == set(tree.children) == set(topology.broker_ids)
        as_graph = nx.DiGraph(sorted(edges(tree)))
        assert nx.is_arborescence(as_graph)
        assert all(graph.has_edge(*edge) for edge in edges(tree))
        assert {(p, c) for p, below in tree.children.items() for c in below} == edges(tree)
        assert all(list(below) == sorted(below) for below in tree.children.values())
        order = tree.breadth_first()
        assert sorted(order) == sorted(topology.broker_ids)
        assert order[0] == root
        least = nx.single_source_dijkstra_path_length(graph, root, weight="ms")
        for broker in topology.broker_ids:
            path = tree.path(broker)
            assert path[0] == root
            assert path[-1] == broker
            assert tree.latency_ms(broker) == pytest.approx(least[broker], abs=1e-9)
            along = sum(topology.link(a, b).latency_ms for a, b in itertools.pairwise(path))
            assert tree.latency_ms(broker) == pytest.approx(along, abs=1e-9)


@examples(60)
@given(networks(brokers_max=6))
def test_ties_are_broken_as_among_all_simple_ways(topology: Topology) -> None:
    graph = graph_of(topology)
    for root, tree in broadcast_trees(topology).items():
        for broker in topology.broker_ids:
            if broker == root:
                continue
            ways = list(nx.all_simple_paths(graph, root, broker))

            def cost(way: list[str]) -> tuple[int, int, str]:
                microseconds = sum(
                    round(topology.link(a, b).latency_ms * 1000) for a, b in itertools.pairwise(way)
                )
                return microseconds, len(way), way[-2]

            assert tree.parent[broker] == min(map(cost, ways))[2]


@examples(60)
@given(networks(), st.randoms(use_true_random=False))
def test_every_broker_computes_the_same_trees(topology: Topology, rng: random.Random) -> None:
    brokers, links = list(topology.brokers), list(topology.links)
    rng.shuffle(brokers)
    rng.shuffle(links)
    other = Topology(
        topology.name,
        topology.data_directory,
        topology.registration,
        tuple(brokers),
        tuple(type(link)(link.ends[::-1], link.latency_ms) for link in links),
    )
    trees = broadcast_trees(topology)
    assert broadcast_trees(other) == trees
    assert {root: broadcast_tree(other, root) for root in topology.broker_ids} == trees


@examples(60)
@given(topologies())
def test_next_hops_lead_along_the_tree(topology: Topology) -> None:
    for root, tree in broadcast_trees(topology).items():
        undirected = nx.Graph(sorted(edges(tree)))
        undirected.add_node(root)
        for start, ways in nx.all_pairs_shortest_path(undirected):
            for end, way in ways.items():
                if start != end:
                    assert tree.next_hop_towards(start, end) == way[1]
