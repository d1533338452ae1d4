"""Tables and trees as text: the brokers and links of a topology, its broadcast trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from overlay.topology import BrokerNode, Place, Topology

if TYPE_CHECKING:
    from overlay.routing.broadcast_tree import BroadcastTree


def draw_network(topology: Topology) -> str:
    """The nodes and links, one a line."""
    nodes = [("broker", "address", "", "place", "capacity")]
    nodes += [
        (b.id, str(b.listen), b.label, place_text(b.place), f"{b.capacity:,}")
        for b in topology.brokers
    ]
    links = [("link", "latency", "bandwidth", "format")]
    width = max((len(link.ends[0]) for link in topology.links), default=0)
    for link in topology.links:
        a, b = link.ends
        latency, bandwidth = latency_text(link.latency_ms), bandwidth_text(link.bandwidth_kbps)
        links.append((f"{a:{width}} ── {b}", latency, bandwidth, link.format))
    registration = [("registration", node.id, str(node.listen)) for node in topology.registration]
    parts = [columns(registration, "<<<"), columns(nodes, "<<<<>")]
    if topology.links:
        parts.append(columns(links, "<>><"))
    return "\n\n".join(parts)


def draw_tree(topology: Topology, tree: BroadcastTree) -> str:
    """A root broker's broadcast tree, with the latency of each link and from the root."""
    rows = [(f"broadcast tree of {tree.root}", "link", f"from {tree.root}")]
    for branch, broker in _branches(tree):
        parent = tree.parent[broker]
        name = f"{branch}{broker_text(topology.broker(broker))}"
        if parent is None:
            rows.append((name, "", ""))
        else:
            link_ms = topology.link(parent, broker).latency_ms
            rows.append((name, latency_text(link_ms), latency_text(tree.latency_ms(broker))))
    return columns(rows, "<>>")


def broker_text(broker: BrokerNode) -> str:
    """``B1 Chicago``, or ``B1`` when its label says nothing new."""
    return broker.id if broker.label in ("", broker.id) else f"{broker.id} {broker.label}"


def latency_text(latency_ms: float) -> str:
    return f"{latency_ms:.10g} ms"


def bandwidth_text(bandwidth_kbps: float) -> str:
    """In the unit that leaves the fewest zeros."""
    for size, unit in ((1_000_000, "Gbit/s"), (1_000, "Mbit/s")):
        if bandwidth_kbps >= size:
            return f"{bandwidth_kbps / size:.4g} {unit}"
    return f"{bandwidth_kbps:.4g} kbit/s"


def place_text(place: Place | None) -> str:
    """``41.88° N   87.63° W``; "" for a broker without a place."""
    if place is None:
        return ""
    north = "N" if place.latitude >= 0 else "S"
    east = "E" if place.longitude >= 0 else "W"
    return f"{abs(place.latitude):5.2f}° {north}  {abs(place.longitude):6.2f}° {east}"


def columns(rows: Sequence[Sequence[str]], alignment: Iterable[str]) -> str:
    """Two spaces apart, each aligned as ``<`` or ``>`` says; empty ones are left out."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    shown = [each for each in enumerate(zip(alignment, widths, strict=True)) if each[1][1]]
    lines = ("  ".join(f"{row[at]:{how}{wide}}" for at, (how, wide) in shown) for row in rows)
    return "\n".join(map(str.rstrip, lines))


def _branches(tree: BroadcastTree) -> Iterator[tuple[str, str]]:
    """Every broker, depth first, with the lines to draw before it."""
    stack = [("", "", tree.root)]  # the lines before the broker, before its children, itself
    while stack:
        branch, trunk, broker = stack.pop()
        yield branch, broker
        below = tree.children[broker]
        for child in reversed(below):
            last = child == below[-1]
            lines = (trunk + "└── ", trunk + "    ") if last else (trunk + "├── ", trunk + "│   ")
            stack.append((*lines, child))
