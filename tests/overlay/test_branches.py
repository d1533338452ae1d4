"""Branches: what trees have in common, and how a table's bytes are shared out by them."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings

from onyx.broker.profiles.query_plane import table_budget
from overlay.routing.branches import Branches
from overlay.routing.broadcast_tree import BroadcastTree, broadcast_trees
from overlay.topology import Topology
from tests.overlay.test_broadcast_tree import networks


def test_a_routing_table_is_shared_out_by_the_brokers_behind_each_link() -> None:
    """Of B1 - B2 - {B3, B4 - B5}: all entries of one broker together are its table."""
    tree = BroadcastTree(
        "B1",
        {"B1": None, "B2": "B1", "B3": "B2", "B4": "B2", "B5": "B4"},
    )
    branches = Branches(lambda root: tree, ["B1"])

    def share(broker: str) -> int:
        own = branches.of("B1", broker)
        assert own is not None
        beside = [branches.of("B1", child) for child in tree.children[own.parent]]
        return table_budget(own, [one for one in beside if one is not None], 1200, 10).bytes_max

    assert [share(broker) for broker in ("B2", "B3", "B4", "B5")] == [1200, 400, 800, 1200]


@given(networks())
@settings(max_examples=30)
def test_branches_are_the_same_where_all_below_is_the_same(topology: Topology) -> None:
    """A branch against its definition."""
    trees = broadcast_trees(topology)
    branches = Branches(trees.__getitem__, trees)

    def below(root: str, broker: str) -> tuple[object, ...]:
        tree = trees[root]
        links = tuple(below(root, child) for child in tree.children[broker])
        return (broker, tree.parent[broker], *links)

    for root, broker in product(trees, trees):
        branch = branches.of(root, broker)
        if branch is None:
            assert root == broker
            continue
        same = {other for other in trees if below(other, broker) == below(root, broker)}
        assert branch.roots == same
        assert branch.name == min(same)
        assert branch.parent == trees[root].parent[broker]
        under = [other for other in trees if broker in trees[root].path(other)]
        assert branch.brokers == len(under)
    with pytest.raises(KeyError):
        branches.of("B0", "nobody")
