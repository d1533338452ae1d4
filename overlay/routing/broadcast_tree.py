"""BroadcastTree: the way of a root broker's messages to every other broker (control plane).

Section 3.2 of the paper: every broker has a broadcast tree rooted at it.  Messages go down the
tree, from parent to children; routing queries go up, each broker representing its whole subtree
in its parent::

    B1                 parent:   B1 -> None, B2 -> B1, B3 -> B1, B4 -> B1, B5 -> B4, B6 -> B4
    ├── B2             children: B1 -> (B2, B3, B4), B4 -> (B5, B6), others -> ()
    ├── B3
    └── B4             next_hop_towards(B5, B2) = B4      (up towards the common ancestor)
        ├── B5         next_hop_towards(B1, B6) = B4      (down)
        └── B6

Which tree: least latency from the root; among ways of equal latency the one with fewer links;
among those the parent with the smallest id.  So every broker computes the same trees from the
same topology, whatever the order of its file, without exchanging a word.  No way leads through a
broker that is ``away``, unless there is no other: it is a leaf of the trees of others.  Latencies
are counted in whole microseconds, so that equal sums are equal however they were added up.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from heapq import heappop, heappush
from types import MappingProxyType
from typing import TypeAlias

from overlay.topology import Topology


@dataclass(frozen=True)
class BroadcastTree:
    """One broadcast tree; every broker of the network is a key of ``parent`` and ``children``.

    ``parent``    None for the root, otherwise the neighbour one step nearer to it; those nearer to
                  the root come first
    ``latency_by_broker_ms``  from the root along the tree
    """

    root: str
    parent: Mapping[str, str | None]
    latency_by_broker_ms: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        """Sorted by id.  Made when they are asked for: of most trees nobody asks."""
        children: dict[str, list[str]] = {broker: [] for broker in self.parent}
        for broker in sorted(self.parent):
            if (nearer := self.parent[broker]) is not None:
                children[nearer].append(broker)
        return {broker: tuple(below) for broker, below in children.items()}

    @cached_property
    def mean_latency_ms(self) -> float:
        """From the root to another broker; 0 where there is none."""
        others = len(self.parent) - 1
        return math.fsum(self.latency_by_broker_ms.values()) / others if others else 0.0

    def path(self, broker: str) -> tuple[str, ...]:
        """The brokers from the root to ``broker``, both included; KeyError if it is unknown."""
        upwards = [broker]
        while (parent := self.parent[upwards[-1]]) is not None:
            upwards.append(parent)
        return tuple(reversed(upwards))

    def next_hop_towards(self, broker_from: str, broker_to: str) -> str:
        """The tree neighbour of ``broker_from`` on the way to ``broker_to``.

        KeyError if one of them is unknown, ValueError if they are the same.
        """
        if broker_from == broker_to:
            raise ValueError(f"{broker_from} is already there")
        parent = self.parent[broker_from]
        step = broker_to
        while (above := self.parent[step]) is not None:
            if above == broker_from:
                return step
            step = above
        # Only the root has everybody below it, and it is not the one we started from.
        assert parent is not None
        return parent

    def latency_ms(self, broker: str) -> float:
        """One way, from the root to ``broker`` along the tree; KeyError if it is unknown."""
        return self.latency_by_broker_ms[broker]

    def breadth_first(self) -> tuple[str, ...]:
        """All brokers, parents before children, siblings in the order of their ids."""
        order = [self.root]
        for broker in order:
            order.extend(self.children[broker])
        return tuple(order)

    def dump(self) -> str:
        """One line a broker, indented by depth, with its latency from the root."""
        lines = []
        stack = [(self.root, 0)]
        while stack:
            broker, depth = stack.pop()
            latency_ms = self.latency_by_broker_ms.get(broker)
            shown = "" if latency_ms is None else f" {latency_ms:.10g} ms"
            lines.append(f"{'  ' * depth}{broker}{shown}")
            stack.extend((child, depth + 1) for child in reversed(self.children[broker]))
        return "\n".join(lines)


def broadcast_tree(topology: Topology, root: str, away: Iterable[str] = ()) -> BroadcastTree:
    """The broadcast tree of ``root``; KeyError if it is no broker of ``topology``."""
    return Ways.of(topology, away).tree(root)


def broadcast_trees(topology: Topology, away: Iterable[str] = ()) -> Mapping[str, BroadcastTree]:
    """The broadcast tree of every broker, by its id, in the order of the topology; those of the
    last networks that were asked for are kept."""
    return _trees(*_lines(topology), frozenset(away))


class Ways:
    """All broadcast trees of a network, each made when it is asked for."""

    def __init__(
        self,
        brokers: Iterable[str],
        links: Iterable[tuple[str, str, int]],
        away: Iterable[str],
    ) -> None:
        """``links`` by their ends and latency in microseconds."""
        self._neighbours = _neighbours(brokers, links)
        self._away = frozenset(away)

    @classmethod
    def of(cls, topology: Topology, away: Iterable[str] = ()) -> Ways:
        return cls(*_lines(topology), away)

    def tree(self, root: str) -> BroadcastTree:
        """KeyError if there is no such broker."""
        return _tree(self._neighbours, root, self._away)


Lines: TypeAlias = tuple[tuple[str, ...], tuple[tuple[str, str, int], ...]]
"""All that trees are made of: brokers; links, by their ends and latency in microseconds."""


def _lines(topology: Topology) -> Lines:
    return tuple(topology.broker_ids), tuple(
        (*link.ends, round(link.latency_ms * 1000)) for link in topology.links
    )


# PERF: of 1,000 brokers they take a second; a change asks for those before it and behind it.
@lru_cache(maxsize=2)
def _trees(
    brokers: tuple[str, ...], links: tuple[tuple[str, str, int], ...], away: frozenset[str]
) -> Mapping[str, BroadcastTree]:
    ways = Ways(brokers, links, away)
    return MappingProxyType({root: ways.tree(root) for root in brokers})


def _neighbours(
    brokers: Iterable[str], links: Iterable[tuple[str, str, int]]
) -> dict[str, dict[str, int]]:
    """Of each broker the latency to its neighbours, in microseconds."""
    latencies: dict[str, dict[str, int]] = {broker: {} for broker in brokers}
    for one, other, latency in links:
        latencies[one][other] = latencies[other][one] = latency
    return latencies


def _tree(neighbours: dict[str, dict[str, int]], root: str, away: Container[str]) -> BroadcastTree:
    """By Dijkstra's algorithm: a way costs the brokers that are away between its ends, then its
    latency, then its number of links."""
    parent: dict[str, str | None] = {}
    latencies: dict[str, float] = {}
    # brokers that are away, latency, links, the last broker but one, the last
    open_ways = [(0, 0, 0, "", root)]
    best = {root: open_ways[0]}
    while open_ways:
        past, latency, links, above, broker = heappop(open_ways)
        if broker not in parent:
            parent[broker] = above or None
            latencies[broker] = latency / 1000
            past += broker != root and broker in away
            for below, more in neighbours[broker].items():
                if below not in parent:
                    way = past, latency + more, links + 1, broker, below
                    if below not in best or way < best[below]:
                        best[below] = way
                        heappush(open_ways, way)
    return BroadcastTree(root, parent, latencies)
