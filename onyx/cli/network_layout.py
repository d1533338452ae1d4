"""Where the brokers of a topology stand in a picture: pure and deterministic.

Two layouts.  A broadcast tree is drawn in layers, the root first and every broker centred over
its children.  A network by itself is laid out by stress majorisation (Gansner, Koren, North 2004):
starting from the map, brokers are moved until their distance in the picture is close to the
number of links between them, which keeps east and west but spreads crowded cities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import networkx as nx

from overlay.routing.broadcast_tree import BroadcastTree
from overlay.topology import Topology

Point: TypeAlias = tuple[float, float]

GOOD_ASPECT = 1.6  # width : height of a picture that is easy to look at
LINK_LENGTH_MIN = 40.0  # between the cells of two neighbours, so that a note has room
STRETCHES = (1.2, 1.35, 1.5, 1.65, 1.8, 2.0)
MOVES_MAX = 4_000_000  # bound on the work of the stress layout, pairs of brokers looked at


def tree_layout(tree: BroadcastTree, cell_width: float, cell_height: float) -> dict[str, Point]:
    """Top-down, or from left to right where that gives the better proportions.

    ``cell_width`` and ``cell_height`` are the room that one broker needs.
    """
    slots = _tree_slots(tree)
    across = max(slot for slot, _ in slots.values()) + 1
    deep = max(depth for _, depth in slots.values()) + 1
    # A layer also needs room for the labels on the links to the next one.
    down = (cell_width, cell_height * 1.45)
    sideways = (cell_width * 1.55, cell_height)
    aspect_down = across * down[0] / (deep * down[1])
    aspect_sideways = deep * sideways[0] / (across * sideways[1])
    if _badness(aspect_down) <= _badness(aspect_sideways):
        return {b: (slot * down[0], depth * down[1]) for b, (slot, depth) in slots.items()}
    return {b: (depth * sideways[0], slot * sideways[1]) for b, (slot, depth) in slots.items()}


def network_layout(topology: Topology, cell_width: float, cell_height: float) -> dict[str, Point]:
    """By stress, stretched to the proportions of a cell, and without overlaps."""
    ids = topology.broker_ids
    graph = nx.Graph()
    graph.add_nodes_from(ids)
    graph.add_edges_from(link.ends for link in topology.links)
    hops = dict(nx.all_pairs_shortest_path_length(graph))
    points = _start_from_map(topology) or _start_from_circle(ids)
    rounds = max(3, min(200, MOVES_MAX // len(ids) ** 2))
    for _ in range(rounds):
        for broker in ids:
            points[broker] = _least_stress(broker, points, hops[broker])
    for stretch in STRETCHES:
        scaled = {
            b: (x * cell_width * stretch, y * cell_height * stretch * 1.2)
            for b, (x, y) in points.items()
        }
        scaled = _without_overlaps(scaled, cell_width, cell_height)
        if all(
            _between_cells(scaled[a], scaled[b], cell_width, cell_height) >= LINK_LENGTH_MIN
            for a, b in (link.ends for link in topology.links)
        ):
            break
    return scaled


def _badness(aspect: float) -> float:
    return abs(math.log(aspect / GOOD_ASPECT))


def _tree_slots(tree: BroadcastTree) -> dict[str, tuple[float, int]]:
    """(place across, depth): leaves side by side, parents in the middle of their children."""
    depth = {tree.root: 0}
    order = tree.breadth_first()
    for broker in order:
        depth.update((child, depth[broker] + 1) for child in tree.children[broker])
    across: dict[str, float] = {}
    stack = [tree.root]
    while stack:  # depth first, so that the leaves of a subtree stand together
        broker = stack.pop()
        stack.extend(reversed(tree.children[broker]))
        if not tree.children[broker]:
            across[broker] = float(len(across))
    for broker in reversed(order):
        below = tree.children[broker]
        if below:
            across[broker] = (across[below[0]] + across[below[-1]]) / 2
    return {broker: (across[broker], depth[broker]) for broker in order}


def _start_from_map(topology: Topology) -> dict[str, Point]:
    """Places on a flat map, north up; empty unless every broker has a place of its own."""
    places = {b.id: b.place for b in topology.brokers if b.place is not None}
    if len(places) < len(topology.brokers) or len(set(places.values())) < len(places):
        return {}
    middle = sum(place.latitude for place in places.values()) / len(places)
    narrowing = math.cos(math.radians(middle))
    points = {b: (p.longitude * narrowing, -p.latitude) for b, p in places.items()}
    extent = max(math.dist(a, b) for a in points.values() for b in points.values()) or 1.0
    size = math.sqrt(len(points))
    return {b: (x / extent * size, y / extent * size) for b, (x, y) in points.items()}


def _start_from_circle(ids: tuple[str, ...]) -> dict[str, Point]:
    turn = 2 * math.pi / len(ids)
    return {b: (math.cos(i * turn), math.sin(i * turn)) for i, b in enumerate(ids)}


def _least_stress(broker: str, points: Mapping[str, Point], hops: Mapping[str, int]) -> Point:
    """Where the others, each pulling or pushing to its distance, would have ``broker``."""
    x, y = points[broker]
    sum_x = sum_y = total = 0.0
    for other, (other_x, other_y) in points.items():
        if other == broker:
            continue
        wanted = hops[other]
        # Never divide by nothing: two brokers in one spot are pushed apart sideways.
        distance = math.hypot(x - other_x, y - other_y) or 1e-9
        direction_x = (x - other_x) / distance or 1e-3
        weight = 1 / wanted**2
        sum_x += weight * (other_x + wanted * direction_x)
        sum_y += weight * (other_y + wanted * (y - other_y) / distance)
        total += weight
    return (sum_x / total, sum_y / total) if total else (x, y)


def _without_overlaps(
    points: dict[str, Point], cell_width: float, cell_height: float
) -> dict[str, Point]:
    """Push overlapping cells apart, each time along the axis where less is to be pushed."""
    ids = list(points)
    for _ in range(max(1, min(200, MOVES_MAX // len(ids) ** 2))):
        moved = False
        for index, a in enumerate(ids):
            for b in ids[index + 1 :]:
                (ax, ay), (bx, by) = points[a], points[b]
                push_x = (cell_width - abs(ax - bx)) / 2
                push_y = (cell_height - abs(ay - by)) / 2
                if push_x <= 1e-6 or push_y <= 1e-6:
                    continue
                moved = True
                if push_x < push_y:
                    push_x = math.copysign(push_x, ax - bx)
                    points[a], points[b] = (ax + push_x, ay), (bx - push_x, by)
                else:
                    push_y = math.copysign(push_y, ay - by)
                    points[a], points[b] = (ax, ay + push_y), (bx, by - push_y)
        if not moved:
            break
    return points


def _between_cells(a: Point, b: Point, cell_width: float, cell_height: float) -> float:
    """The length of the straight line between two cells that lies in neither of them."""
    dx, dy = abs(a[0] - b[0]), abs(a[1] - b[1])
    inside = min(cell_width / dx if dx else math.inf, cell_height / dy if dy else math.inf, 1.0)
    return math.hypot(dx, dy) * (1 - inside)
