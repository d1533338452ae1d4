"""Where the brokers of a topology stand in a picture: pure and deterministic.

Two layouts.  A broadcast tree is drawn in layers, the root first and every broker centred over
its children.  A network by itself is laid out by stress majorisation (Gansner, Koren, North 2004):
starting from the map, brokers are moved until their distance in the picture is close to the
number of links between them, which keeps east and west but spreads crowded cities.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from overlay.routing.broadcast_tree import BroadcastTree
from overlay.topology import Topology

Point: TypeAlias = tuple[float, float]

GOOD_ASPECT = 1.6  # width : height of a picture that is easy to look at
LINK_LENGTH_MIN = 40.0  # between the cells of two neighbours, so that a note has room
STRETCHES = (1.2, 1.35, 1.5, 1.65, 1.8, 2.0)
PIVOTS_MAX = 64
MOVES_MAX = 600_000  # bound on the work of the stress layout, pairs of brokers looked at
PUSHES_MAX = 20_000
ROUNDS_LEAST = 3
POWER_STEPS = 40


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
    """By stress, stretched to the proportions of a cell, and without overlaps.

    Of a large network each broker is held to some *pivots* far from each other and to its
    neighbours (sparse stress; Ortmann, Klimenta, Brandes 2016), so that work grows with the brokers
    and not with their pairs: about half a second for 1,000.
    """
    ids = topology.broker_ids
    is_large = len(ids) > PIVOTS_MAX
    hops = _hops_to_pivots(topology)
    points = _start_from_map(topology) or (_spread(ids, hops) if is_large else _circle(ids))
    rounds = max(ROUNDS_LEAST, min(200, MOVES_MAX // (len(ids) * len(hops))))
    held = _held(topology, hops)
    for _ in range(rounds):
        for broker in ids:
            points[broker] = _least_stress(broker, points, held[broker])
    for stretch in STRETCHES[-1:] if is_large else STRETCHES:
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
    spans = [max(values) - min(values) for values in zip(*points.values(), strict=True)]
    extent = math.hypot(*spans) or 1.0
    size = math.sqrt(len(points))
    return {b: (x / extent * size, y / extent * size) for b, (x, y) in points.items()}


def _circle(ids: tuple[str, ...]) -> dict[str, Point]:
    turn = 2 * math.pi / len(ids)
    return {b: (math.cos(i * turn), math.sin(i * turn)) for i, b in enumerate(ids)}


def _hops_to_pivots(topology: Topology) -> dict[str, dict[str, int]]:
    """By pivot, and by broker, the links between them.  All are pivots where they are few; else
    each next one is the one that is farthest from those before it."""
    ids = topology.broker_ids
    around = {broker: topology.neighbours(broker) for broker in ids}
    if len(ids) <= PIVOTS_MAX:
        return {broker: _hops(broker, around) for broker in ids}
    hops: dict[str, dict[str, int]] = {}
    nearest = dict.fromkeys(ids, len(ids))
    for _ in range(PIVOTS_MAX):
        pivot = max(ids, key=nearest.__getitem__)  # the first of equals
        found = hops[pivot] = _hops(pivot, around)
        nearest = {broker: min(nearest[broker], found[broker]) for broker in ids}
    return hops


def _hops(start: str, around: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    hops = {start: 0}
    queue = [start]
    for broker in queue:
        for other in around[broker]:
            if other not in hops:
                hops[other] = hops[broker] + 1
                queue.append(other)
    return hops


def _held(
    topology: Topology, hops: Mapping[str, Mapping[str, int]]
) -> dict[str, list[tuple[str, int, float]]]:
    """By broker what it is held to: whom, how far, how much.  A pivot stands for several."""
    ids = topology.broker_ids
    share = len(ids) / len(hops)
    held: dict[str, list[tuple[str, int, float]]] = {}
    for broker in ids:
        near = dict.fromkeys(topology.neighbours(broker), 1)
        far = {pivot: found[broker] for pivot, found in hops.items() if pivot != broker}
        others = far if share == 1 else near | far
        held[broker] = [
            (other, wanted, (1.0 if wanted == 1 else share) / wanted**2)
            for other, wanted in others.items()
        ]
    return held


def _spread(ids: tuple[str, ...], hops: Mapping[str, Mapping[str, int]]) -> dict[str, Point]:
    """Pivot MDS (Brandes, Pich 2006): the two directions in which distances to the pivots differ
    most, found by power iteration."""
    columns = [[found[broker] ** 2 for broker in ids] for found in hops.values()]
    means = [sum(column) / len(ids) for column in columns]
    rows = []
    for row in zip(*columns, strict=True):
        middle = sum(row) / len(row) - sum(means) / len(means)
        rows.append([mean + middle - value for value, mean in zip(row, means, strict=True)])
    products = [[_dot(a, b) for b in zip(*rows, strict=True)] for a in zip(*rows, strict=True)]
    axes: list[list[float]] = []
    for axis in range(2):
        found = [1.0 + (at * (axis + 2)) % 7 for at in range(len(columns))]
        for _ in range(POWER_STEPS):
            found = [_dot(line, found) for line in products]
            for other in axes:
                along = _dot(found, other)
                found = [a - along * b for a, b in zip(found, other, strict=True)]
            length = math.sqrt(_dot(found, found)) or 1.0
            found = [value / length for value in found]
        axes.append(found)
    places = [(_dot(row, axes[0]), _dot(row, axes[1])) for row in rows]
    extent = max(max(map(abs, place)) for place in places) or 1.0
    size = max(max(found.values()) for found in hops.values()) / extent / 2
    return {b: (x * size, y * size) for b, (x, y) in zip(ids, places, strict=True)}


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(map(operator.mul, a, b))


def _least_stress(
    broker: str, points: Mapping[str, Point], held: Sequence[tuple[str, int, float]]
) -> Point:
    """Where the others, each pulling or pushing to its distance, would have ``broker``."""
    x, y = points[broker]
    sum_x = sum_y = total = 0.0
    for other, wanted, weight in held:
        other_x, other_y = points[other]
        # Never divide by nothing: two brokers in one spot are pushed apart sideways.
        distance = math.hypot(x - other_x, y - other_y) or 1e-9
        direction_x = (x - other_x) / distance or 1e-3
        sum_x += weight * (other_x + wanted * direction_x)
        sum_y += weight * (other_y + wanted * (y - other_y) / distance)
        total += weight
    return (sum_x / total, sum_y / total) if total else (x, y)


def _without_overlaps(
    points: dict[str, Point], cell_width: float, cell_height: float
) -> dict[str, Point]:
    """Push overlapping cells apart, each time along the axis where less is to be pushed."""
    for _ in range(max(ROUNDS_LEAST, min(200, PUSHES_MAX // len(points)))):
        moved = False
        for a, b in _close(points, cell_width, cell_height):
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


def _close(
    points: Mapping[str, Point], cell_width: float, cell_height: float
) -> Iterator[tuple[str, str]]:
    """Pairs that may overlap: of one square of a grid of cells, or of two that touch."""
    grid: dict[tuple[int, int], list[tuple[int, str]]] = {}
    for number, (broker, (x, y)) in enumerate(points.items()):
        square = math.floor(x / cell_width), math.floor(y / cell_height)
        grid.setdefault(square, []).append((number, broker))
    for (column, row), here in grid.items():
        around = [(column + dx, row + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]
        others = [each for square in around for each in grid.get(square, ())]
        for number, broker in here:
            yield from ((broker, other) for after, other in others if after > number)


def _between_cells(a: Point, b: Point, cell_width: float, cell_height: float) -> float:
    """The length of the straight line between two cells that lies in neither of them."""
    dx, dy = abs(a[0] - b[0]), abs(a[1] - b[1])
    inside = min(cell_width / dx if dx else math.inf, cell_height / dy if dy else math.inf, 1.0)
    return math.hypot(dx, dy) * (1 - inside)
