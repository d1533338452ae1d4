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
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
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
    topology.broker(root)
    return Ways(topology, away).tree(root)


def broadcast_trees(topology: Topology, away: Iterable[str] = ()) -> Mapping[str, BroadcastTree]:
    """The broadcast tree of every broker, by its id, in the order of the topology; those of the
    last networks that were asked for are kept."""
    return _trees(*_lines(topology), frozenset(away))


class Ways:
    """All broadcast trees of a network, each made when it is asked for."""

    def __init__(self, topology: Topology, away: Iterable[str] = ()) -> None:
        self._brokers, self._latencies_us = _around(*_lines(topology))
        self._away = [broker in frozenset(away) for broker in self._brokers]

    def tree(self, root: str) -> BroadcastTree:
        """KeyError if there is no such broker."""
        at = bisect_left(self._brokers, root)
        if self._brokers[at : at + 1] != [root]:
            raise KeyError(root)
        return _tree(self._brokers, self._latencies_us, self._away, at)


Around: TypeAlias = tuple[list[str], list[list[tuple[int, int]]]]
"""Brokers by their ids; of each, in that order, the places and latencies of its neighbours."""


def _lines(topology: Topology) -> tuple[tuple[str, ...], tuple[tuple[str, str, int], ...]]:
    """All that trees are made of: brokers; links, by their ends and latency in microseconds."""
    return tuple(topology.broker_ids), tuple(
        (*link.ends, round(link.latency_ms * 1000)) for link in topology.links
    )


# PERF: of 1,000 brokers they take a second; a change asks for those before it and behind it.
@lru_cache(maxsize=2)
def _trees(
    brokers: tuple[str, ...], links: tuple[tuple[str, str, int], ...], away: frozenset[str]
) -> Mapping[str, BroadcastTree]:
    ascending, latencies_us = _around(brokers, links)
    is_away = [broker in away for broker in ascending]
    places = {broker: at for at, broker in enumerate(ascending)}
    return MappingProxyType(
        {root: _tree(ascending, latencies_us, is_away, places[root]) for root in brokers}
    )


def _around(brokers: Iterable[str], links: Iterable[tuple[str, str, int]]) -> Around:
    ascending = sorted(brokers)
    places = {broker: at for at, broker in enumerate(ascending)}
    around: list[list[tuple[int, int]]] = [[] for _ in ascending]
    for one, other, latency in links:
        around[places[one]].append((places[other], latency))
        around[places[other]].append((places[one], latency))
    return ascending, around


_PLACE_BITS, _LINK_BITS, _LATENCY_BITS = 24, 24, 64
_PLACE = (1 << _PLACE_BITS) - 1
_PAST = 1 << _LINK_BITS + _LATENCY_BITS


def _tree(
    brokers: Sequence[str],
    around: Sequence[Sequence[tuple[int, int]]],
    is_away: Sequence[bool],
    root: int,
) -> BroadcastTree:
    """By Dijkstra's algorithm: a way costs the brokers that are away between its ends, then its
    latency, then its number of links.

    PERF: a way is one number, of (what it costs, its last broker but one, its last).
    """
    parent: dict[str, str | None] = {}
    latencies: dict[str, float] = {}
    open_ways = [root]
    best: list[int | None] = [None] * len(brokers)
    is_done = bytearray(len(brokers))
    while open_ways:
        way = heappop(open_ways)
        at = way & _PLACE
        if is_done[at]:
            continue
        is_done[at] = 1
        cost = way >> 2 * _PLACE_BITS
        above = brokers[way >> _PLACE_BITS & _PLACE] if at != root else None
        parent[brokers[at]] = above
        latencies[brokers[at]] = (cost >> _LINK_BITS & (1 << _LATENCY_BITS) - 1) / 1000
        if is_away[at] and at != root:
            cost += _PAST
        for below, latency in around[at]:
            if not is_done[below]:
                longer = cost + (latency << _LINK_BITS) + 1
                way = (longer << _PLACE_BITS | at) << _PLACE_BITS | below
                known = best[below]
                if known is None or way < known:
                    best[below] = way
                    heappush(open_ways, way)
    return BroadcastTree(brokers[root], parent, latencies)
