"""Which broker hosts which partition: by capacity, and near to what matches together.

A message that visits several partitions of one broker crosses the links to it once.  So each
broker, in the order in which the network branches, takes the partition that most often matches
together with those that it and its nearer neighbours have, until its share of the load is reached.
Shares are in proportion to capacity.  A partition stays with the broker that has most of its
profiles already, as long as that is not more than the broker's share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from overlay.routing.broadcast_tree import broadcast_trees
from overlay.topology import Topology

# What matching together with a neighbour's partition is worth, against one of the same broker.
_NEIGHBOUR = 0.3
# Partitions that were never seen together: neighbours in the plan have similar patterns.
_SIMILAR = 1e-3


def assign_brokers(
    topology: Topology,
    loads: Sequence[float],
    visits: Sequence[tuple[frozenset[int], float]],
    held: Sequence[tuple[str, float]] = (),
) -> tuple[str, ...]:
    """The broker of each partition.

    ``visits``: the partitions that each of some messages visits, and how often that counts;
    ``held``: for each partition, the broker that has the most of its load already, and how much.
    ValueError when no broker has capacity.
    """
    quotas = _quotas(topology, sum(loads))
    affinity = _affinity(len(loads), visits)
    brokers = _kept(quotas, loads, held)
    free = {partition for partition, broker in enumerate(brokers) if not broker}
    drawn = [0.0] * len(loads)  # to what the broker that is being filled has
    order = [broker for broker in _in_tree_order(topology) if quotas.get(broker, 0.0) > 0]
    carried = 0.0  # what earlier brokers took beyond their quota, or left
    for place, broker in enumerate(order):
        last = place == len(order) - 1
        kept = [partition for partition, by in enumerate(brokers) if by == broker]
        room = quotas[broker] - carried - sum(loads[partition] for partition in kept)
        drawn = [_NEIGHBOUR * pull for pull in drawn]
        for partition in kept:
            for other, together in affinity[partition].items():
                drawn[other] += together
        while free:
            partition = max(free, key=lambda p: (drawn[p], -p))
            # The partition that fits by half is still taken, so that errors do not add up.
            if not last and loads[partition] > 2 * max(room, 0.0):
                break
            if not last and room <= 0:
                break
            room -= loads[partition]
            free.discard(partition)
            brokers[partition] = broker
            for other, together in affinity[partition].items():
                drawn[other] += together
        carried = -room
    return tuple(brokers)


def _kept(
    quotas: Mapping[str, float], loads: Sequence[float], held: Sequence[tuple[str, float]]
) -> list[str]:
    """The broker of each partition that stays, else ""; where most would move, first."""
    brokers = [""] * len(loads)
    room = {
        broker: quota + sum(loads) / len(loads) / 2 for broker, quota in quotas.items() if quota
    }
    for partition in sorted(range(len(held)), key=lambda p: (-held[p][1], p)):
        broker, load = held[partition]
        if load > loads[partition] / 2 and loads[partition] <= room.get(broker, 0.0):
            room[broker] -= loads[partition]
            brokers[partition] = broker
    return brokers


def _quotas(topology: Topology, load: float) -> dict[str, float]:
    capacity = sum(broker.capacity for broker in topology.brokers)
    if capacity <= 0:
        raise ValueError(f"no broker of {topology.name} has room for profiles (capacity)")
    return {broker.id: load * broker.capacity / capacity for broker in topology.brokers}


def _affinity(
    partitions: int, visits: Sequence[tuple[frozenset[int], float]]
) -> list[dict[int, float]]:
    """partition -> other -> how often both were visited by one message."""
    affinity: list[dict[int, float]] = [{} for _ in range(partitions)]
    for partition in range(partitions - 1):
        affinity[partition][partition + 1] = affinity[partition + 1][partition] = _SIMILAR
    for visited, times in visits:
        for one in visited:
            row = affinity[one]
            for other in visited:
                if other != one:
                    row[other] = row.get(other, 0.0) + times
    return affinity


def _in_tree_order(topology: Topology) -> list[str]:
    """Depth first from the broker in the middle, near children first: neighbours follow."""

    trees = broadcast_trees(topology)
    tree = min(trees.values(), key=lambda t: (max(t.latency_by_broker_ms.values()), t.root))
    order: list[str] = []
    stack = [tree.root]
    while stack:
        broker = stack.pop()
        order.append(broker)
        children = sorted(tree.children[broker], key=lambda b: (tree.latency_ms(b), b))
        stack.extend(reversed(children))
    return order
