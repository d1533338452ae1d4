"""``onyx topology check | show | apply``: a topology file, and the network that runs."""

from __future__ import annotations

import argparse
import math
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from html import escape

from msgspec import to_builtins

from formats.codec import WireFormat
from onyx.cli.network_option import add_network_arguments
from onyx.cli.topology_live import APPLY_EXAMPLES, add_apply, show_live
from onyx.cli.values import check_known, counted, print_json, say, tell_of
from onyx.cli.verb import Subparsers, add_arguments, add_noun, add_verb
from onyx.data_directory import write_atomically
from onyx.drawing import (
    bandwidth_text,
    broker_text,
    draw_network,
    draw_tree,
    latency_text,
    place_text,
)
from onyx.errors import EXIT_CONFIG, UsageError
from onyx.network_layout import Point, network_layout, tree_layout
from overlay.routing.broadcast_tree import BroadcastTree, broadcast_tree, broadcast_trees
from overlay.topology import BrokerNode, Link, Topology, TopologyError, load_topology

# -------------------------------------------------------------------------------------------------
# A topology as a picture: one SVG file without references to anything outside of it.
#
# Brokers are cards, links are lines (the thicker the more bandwidth), and with a broadcast tree its
# links are arrows from the root.  Colours follow the reader's choice of light or dark.


CARD_WIDTH = 148.0
CARD_HEIGHT = 60.0
CELL_WIDTH = 184.0
CELL_HEIGHT = 96.0
MARGIN = 36.0
HEADER = 36.0
TEXT_MAX = 20  # characters that fit on a card
# How far a link may leave the straight line (of its length), and where on it its note may stand:
# the first that touches nothing is taken.
BENDS = (0.0, 0.2, -0.2, 0.4, -0.4, 0.7, -0.7, 1.0, -1.0)
NOTE_STOPS = (0.5, 0.36, 0.64)
NOTE_HEIGHT = 30.0

STYLE = """
text { font-family: "Inter", "Segoe UI", "Helvetica Neue", "DejaVu Sans", Arial, sans-serif; }
.paper { fill: #ffffff; stroke: #d8dee6; }
.title { font-size: 18px; font-weight: 600; fill: #17202b; }
.subtitle { font-size: 12px; fill: #5b6876; }
.card { fill: #f4f7fa; stroke: #8fa1b5; stroke-width: 1.2; }
.card.routes-only { stroke-dasharray: 4 3; }
.card.root { fill: #0b6e99; stroke: #0b6e99; }
.id { font-size: 14px; font-weight: 600; fill: #17202b; }
.label { font-size: 12px; fill: #3d4a59; }
.address { font-size: 10px; fill: #5b6876; }
.on-root { fill: #ffffff; }
.link { fill: none; stroke: #a9b7c6; stroke-linecap: round; }
.link.tree { stroke: #0b6e99; }
.head { fill: #0b6e99; }
.behind-note { fill: #ffffff; }
.note { font-size: 11px; fill: #3d4a59; }
@media (prefers-color-scheme: dark) {
.paper { fill: #10161d; stroke: #2b3643; }
.title, .id { fill: #e8eef5; }
.subtitle, .address { fill: #93a3b5; }
.label { fill: #c2cdd9; }
.card { fill: #1a232d; stroke: #5c6f84; }
.card.root { fill: #1583b3; stroke: #1583b3; }
.on-root { fill: #ffffff; }
.link { stroke: #4c5c6e; }
.link.tree { stroke: #4db6e2; }
.head { fill: #4db6e2; }
.behind-note { fill: #10161d; }
.note { fill: #c2cdd9; }
}
"""


def network_svg(topology: Topology, tree: BroadcastTree | None = None) -> str:
    """The picture as a text; with ``tree`` laid out from its root, which is marked."""
    if tree is None:
        points = network_layout(topology, CELL_WIDTH, CELL_HEIGHT)
    else:
        points = tree_layout(tree, CELL_WIDTH, CELL_HEIGHT)
    curves = _draw_links(topology, points, tree)
    left, top, width, height = _extent(points, curves)
    lines = [
        *_frame(topology, tree, width, height),
        f'<g transform="translate({-left:.1f} {-top:.1f})">',
        *(line for curve in reversed(curves) for line in curve.stroke()),
        *(line for curve in curves for line in curve.note()),
    ]
    for broker in topology.brokers:
        lines += _card(broker, points[broker.id], tree is not None and tree.root == broker.id)
    return "\n".join([*lines, "</g>", "</svg>", ""])


def _frame(
    topology: Topology, tree: BroadcastTree | None, width: float, height: float
) -> Iterator[str]:
    title = escape(_title(topology, tree))
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{title}">'
    )
    yield f"<title>{title}</title>"
    yield f"<style>{STYLE}</style>"
    yield (
        f'<rect class="paper" x="0.5" y="0.5" width="{width - 1:.0f}" '
        f'height="{height - 1:.0f}" rx="12"/>'
    )
    yield f'<text class="title" x="{MARGIN:.0f}" y="34">{escape(topology.name)}</text>'
    subtitle = escape(_subtitle(topology, tree))
    yield f'<text class="subtitle" x="{MARGIN:.0f}" y="53">{subtitle}</text>'


def _draw_links(
    topology: Topology, points: Mapping[str, Point], tree: BroadcastTree | None
) -> list[_Curve]:
    """Those of the tree first, so that the others make way for them."""
    curves: list[_Curve] = []
    for link in sorted(topology.links, key=lambda link: not _in_tree(link, tree)):
        curves.append(_Curve(link, points, tree, [curve.note_at for curve in curves]))
    return curves


def _in_tree(link: Link, tree: BroadcastTree | None) -> bool:
    a, b = link.ends
    return tree is not None and (tree.parent[b] == a or tree.parent[a] == b)


class _Curve:
    """A link as a line from card to card, bent where a straight one would cross a third card."""

    def __init__(
        self,
        link: Link,
        points: Mapping[str, Point],
        tree: BroadcastTree | None,
        notes: list[Point],
    ) -> None:
        """``notes`` are the middles of the notes that stand already."""
        self.link = link
        self.in_tree = _in_tree(link, tree)
        a, b = link.ends
        if tree is not None and tree.parent[a] == b:
            a, b = b, a  # the arrow goes from parent to child
        others = [point for broker, point in points.items() if broker not in (a, b)]
        ways = []
        for bend in BENDS:
            control = _control(points[a], points[b], bend)
            start, end = _card_border(points[a], control), _card_border(points[b], control)
            crossings = _crossings(start, control, end, others)
            for stop in NOTE_STOPS:
                note_at = _bezier(start, control, end, stop)
                collisions = crossings + 4 * _note_collisions(note_at, points, notes)
                ways.append((collisions, (start, control, end), note_at))
        _, self.way, self.note_at = min(ways, key=lambda way: way[0])

    def stroke(self) -> Iterator[str]:
        (x0, y0), (cx, cy), (x1, y1) = self.way
        width = _stroke_width(self.link.bandwidth_kbps)
        kind = "link tree" if self.in_tree else "link"
        tip = 9 + width if self.in_tree else 0.0
        angle = math.atan2(y1 - cy, x1 - cx)
        back_x, back_y = x1 - tip * math.cos(angle), y1 - tip * math.sin(angle)
        yield (
            f'<path class="{kind}" stroke-width="{width:.1f}" '
            f'd="M{x0:.1f} {y0:.1f} Q{cx:.1f} {cy:.1f} {back_x:.1f} {back_y:.1f}"/>'
        )
        if self.in_tree:
            half = 4.5 + width / 2
            yield (
                f'<path class="head" transform="translate({x1:.1f} {y1:.1f}) '
                f'rotate({math.degrees(angle):.1f})" d="M0 0 L{-tip - 1:.1f} {-half:.1f} '
                f'L{-tip - 1:.1f} {half:.1f} Z"/>'
            )

    def note(self) -> Iterator[str]:
        x, y = self.note_at
        form = "" if self.link.format == WireFormat.BINARY else f", {self.link.format}"
        latency = latency_text(self.link.latency_ms)
        bandwidth = bandwidth_text(self.link.bandwidth_kbps) + form
        width = 6.4 * max(len(latency), len(bandwidth)) + 6
        yield (
            f'<rect class="behind-note" x="{x - width / 2:.1f}" y="{y - NOTE_HEIGHT / 2:.1f}" '
            f'width="{width:.1f}" height="{NOTE_HEIGHT:.0f}" rx="4"/>'
        )
        yield (
            f'<text class="note" text-anchor="middle" x="{x:.1f}" y="{y - 3:.1f}">{latency}'
            f'<tspan x="{x:.1f}" dy="14">{bandwidth}</tspan></text>'
        )


def _title(topology: Topology, tree: BroadcastTree | None) -> str:
    text = f"Network {topology.name}"
    return text if tree is None else f"{text}, broadcast tree of broker {tree.root}"


def _subtitle(topology: Topology, tree: BroadcastTree | None) -> str:
    if tree is not None:
        return f"broadcast tree of {tree.root}"
    brokers, links = len(topology.brokers), len(topology.links)
    return f"{brokers} broker{'s' * (brokers != 1)}, {links} link{'s' * (links != 1)}"


def _extent(points: Mapping[str, Point], curves: list[_Curve]) -> tuple[float, float, float, float]:
    """Left, top, width and height of the whole picture."""
    xs = [x + side for x, _ in points.values() for side in (-CARD_WIDTH / 2, CARD_WIDTH / 2)]
    ys = [y + side for _, y in points.values() for side in (-CARD_HEIGHT / 2, CARD_HEIGHT / 2)]
    for curve in curves:
        middle = _bezier(*curve.way, 0.5)
        xs += [x + side for x, _ in (middle, curve.note_at) for side in (-40, 40)]
        ys += [y + side for _, y in (middle, curve.note_at) for side in (-16, 16)]
    left, top = min(xs) - MARGIN, min(ys) - MARGIN - HEADER
    width, height = max(xs) + MARGIN - left, max(ys) + MARGIN - top
    # Never narrower than the header.
    spare = max(0.0, 300 - width)
    return left - spare / 2, top, width + spare, height


def _card(broker: BrokerNode, point: Point, is_root: bool) -> Iterator[str]:
    x, y = point
    kind = "card root" if is_root else "card" if broker.capacity else "card routes-only"
    colour = " on-root" if is_root else ""
    place = " ".join(place_text(broker.place).split())
    facts = [broker_text(broker), str(broker.listen), place]
    facts.append(f"room for {broker.capacity:,} profiles" if broker.capacity else "routes only")
    yield f"<g><title>{escape(', '.join(filter(None, facts)))}</title>"
    yield (
        f'<rect class="{kind}" x="{x - CARD_WIDTH / 2:.1f}" y="{y - CARD_HEIGHT / 2:.1f}" '
        f'width="{CARD_WIDTH:.0f}" height="{CARD_HEIGHT:.0f}" rx="10"/>'
    )
    rows = [("id", broker.id), ("label", broker.label), ("address", str(broker.listen))]
    rows = [(name, text) for name, text in rows if text]
    baseline = y - 8.5 * (len(rows) - 1) + 4
    for index, (name, text) in enumerate(rows):
        shown = text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 1] + "…"
        yield (
            f'<text class="{name}{colour}" text-anchor="middle" x="{x:.1f}" '
            f'y="{baseline + 17 * index:.1f}">{escape(shown)}</text>'
        )
    yield "</g>"


def _stroke_width(bandwidth_kbps: float) -> float:
    """1 px for a modem, 5 px for 10 Gbit/s and more: a factor of ten is a little less than 1."""
    return min(5.0, max(1.0, math.log10(bandwidth_kbps) - 2))


def _control(start: Point, end: Point, bend: float) -> Point:
    (x0, y0), (x1, y1) = start, end
    return (x0 + x1) / 2 - bend * (y1 - y0), (y0 + y1) / 2 + bend * (x1 - x0)


def _bezier(start: Point, control: Point, end: Point, t: float) -> Point:
    a, b, c = (1 - t) ** 2, 2 * t * (1 - t), t**2
    return (a * start[0] + b * control[0] + c * end[0], a * start[1] + b * control[1] + c * end[1])


def _crossings(start: Point, control: Point, end: Point, others: list[Point]) -> int:
    """How much of the way lies on (or very near) the cards of others, in 24ths."""
    way = [_bezier(start, control, end, step / 24) for step in range(1, 24)]
    return sum(
        abs(x - other_x) < CARD_WIDTH / 2 + 8 and abs(y - other_y) < CARD_HEIGHT / 2 + 8
        for x, y in way
        for other_x, other_y in others
    )


def _note_collisions(note_at: Point, points: Mapping[str, Point], notes: list[Point]) -> int:
    x, y = note_at
    on_cards = sum(
        abs(x - card_x) < CARD_WIDTH / 2 + 30 and abs(y - card_y) < (CARD_HEIGHT + NOTE_HEIGHT) / 2
        for card_x, card_y in points.values()
    )
    on_notes = sum(abs(x - nx) < 70 and abs(y - ny) < NOTE_HEIGHT for nx, ny in notes)
    return on_cards + on_notes


def _card_border(centre: Point, towards: Point) -> Point:
    """Where the line from the centre of a card leaves it, with a little air."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    reach = min(
        (CARD_WIDTH / 2 + 3) / abs(dx) if dx else math.inf,
        (CARD_HEIGHT / 2 + 3) / abs(dy) if dy else math.inf,
        1.0,
    )
    return centre[0] + dx * reach, centre[1] + dy * reach


CHECK_EXAMPLES = """\
  onyx topology check topologies/figure4.toml
  onyx topology check --json my-network.toml
"""

SHOW_EXAMPLES = """\
  onyx topology show topologies/figure4.toml
  onyx topology show --live --registration 127.0.0.1:7000
  onyx topology show topologies/mesh.toml --root Tokyo
  onyx topology show topologies/figure4.toml --root B1 --svg figure4.svg
"""

WIDTH = 88
LINK_FACTS = (
    *("ends", "latency_ms", "bandwidth_kbps", "format", "level", "bandwidth_given"),
    "transformation",
)


@dataclass(frozen=True, slots=True)
class Summary:
    """A network in figures, as ``onyx topology check --json`` prints them.

    ``capacity`` profiles of all brokers; ``diameter_ms`` between the two brokers ``farthest``
    apart; ``links_crossed_max`` by one message; ``unused_links`` are on no broadcast tree.
    """

    name: str
    brokers: int
    links: int
    registration: tuple[str, ...]
    capacity: int
    diameter_ms: float
    farthest: tuple[str, str]
    links_crossed_max: int
    unused_links: tuple[tuple[str, str], ...]


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(
        subparsers,
        "topology",
        details="A topology file names the brokers of a network, the links between them and the\n"
        "registration service; its format is described in docs/topologies.md.",
        examples=CHECK_EXAMPLES + SHOW_EXAMPLES + APPLY_EXAMPLES,
    )
    add_verb(
        *(subverbs, "check", "check a topology file and sum it up", run_check),
        {"file FILE": "a topology file (TOML)", "--json": "print JSON"},
        details="Exit code 0 when it can be used, 78 with the first problem when it cannot.",
        examples=CHECK_EXAMPLES,
    )
    file = {"file [FILE]": "a topology file (TOML)", "--live": "the network as it runs"}
    show = add_verb(
        *(subverbs, "show", "show brokers, links and broadcast trees", run_show, file),
        details="A broker's broadcast tree is the way that the messages of its sources take. With "
        "--live\nthe network as it runs, whatever file it was started from: links that are down, "
        "trees with the\nversion they have since, and how far a change is.",
        examples=SHOW_EXAMPLES,
    )
    add_network_arguments(show)
    drawn = {
        "--json": "print JSON",
        "--root ID": "only the broadcast tree of this broker",
        "--svg OUT.svg": "also draw a picture (with --root: the tree of that broker)",
    }
    add_arguments(show, drawn)
    add_apply(subverbs)


def run_check(arguments: argparse.Namespace) -> int:
    """Print a summary of the file, or raise what is wrong with it (with --json: print that)."""
    try:
        topology = load_topology(arguments.file)
    except TopologyError as error:
        if not arguments.json:
            raise
        print_json({"ok": False, "file": error.file, "key": error.key, "reason": error.reason})
        return EXIT_CONFIG
    facts = summarise(topology)
    text = textwrap.fill(f"{arguments.file}: {_summary_text(topology, facts)}", WIDTH)
    tell_of(arguments, {"ok": True, "file": str(arguments.file), **asdict(facts)}, text)
    return 0


async def run_show(arguments: argparse.Namespace) -> int:
    """Print the network and its trees, and write the picture that --svg asks for."""
    if arguments.live:
        return await show_live(arguments)
    if arguments.file is None:
        raise UsageError("which topology? give a FILE, or --live for the network that runs")
    topology = load_topology(arguments.file)
    root: str | None = arguments.root
    if root is None:
        trees = broadcast_trees(topology)
    else:
        check_known(root, topology.broker_ids, "--root", f"broker of {arguments.file}")
        trees = {root: broadcast_tree(topology, root)}
    if arguments.svg is not None:
        picture = network_svg(topology, trees[root] if root else None)
        write_atomically(arguments.svg, picture.encode())
        say(f"wrote {arguments.svg}")
    if arguments.json:
        print_json(describe(topology, trees))
    else:
        print(f"network {topology.name}\n")
        print(draw_network(topology))
        for tree in trees.values():
            print(f"\n{draw_tree(topology, tree)}")
    return 0


def summarise(topology: Topology) -> Summary:
    """What there is to say about a network as a whole."""
    trees = broadcast_trees(topology)
    diameter_ms, root, farthest = max(
        ((tree.latency_ms(b), root, b) for root, tree in trees.items() for b in tree.parent),
        key=lambda entry: entry[0],
    )
    used = {
        frozenset((broker, parent))
        for tree in trees.values()
        for broker, parent in tree.parent.items()
    }
    return Summary(
        name=topology.name,
        brokers=len(topology.brokers),
        links=len(topology.links),
        registration=tuple(str(node.listen) for node in topology.registration),
        capacity=sum(broker.capacity for broker in topology.brokers),
        diameter_ms=diameter_ms,
        farthest=(root, farthest),
        links_crossed_max=max(
            len(tree.path(b)) - 1 for tree in trees.values() for b in tree.parent
        ),
        unused_links=tuple(
            link.ends for link in topology.links if frozenset(link.ends) not in used
        ),
    )


def describe(topology: Topology, trees: Mapping[str, BroadcastTree]) -> dict[str, object]:
    """The whole network as ``onyx topology show --json`` prints it."""
    return {
        "name": topology.name,
        "data_directory": str(topology.data_directory),
        "registration": [
            {"id": node.id, "listen": str(node.listen), "links": str(node.links)}
            for node in topology.registration
        ],
        "brokers": [
            {
                "id": broker.id,
                "label": broker.label,
                "listen": str(broker.listen),
                "links": str(broker.links),
                "place": broker.place and list(broker.place),
                "capacity": broker.capacity,
                "neighbours": list(topology.neighbours(broker.id)),
            }
            for broker in topology.brokers
        ],
        "links": [{name: getattr(link, name) for name in LINK_FACTS} for link in topology.links],
        "limits": to_builtins(topology.limits),
        "trees": {
            root: {
                "parent": dict(tree.parent),
                "children": {broker: list(below) for broker, below in tree.children.items()},
                "latency_ms": dict(tree.latency_by_broker_ms),
            }
            for root, tree in trees.items()
        },
    }


def _summary_text(topology: Topology, facts: Summary) -> str:
    text = (
        f"the network {facts.name} is in order. It has {counted(facts.brokers, 'broker')} and "
        f"{counted(facts.links, 'link')}, with room for {facts.capacity:,} profiles; sources and "
        f"users register at {' and '.join(facts.registration)}."
    )
    if facts.brokers > 1:
        a, b = (broker_text(topology.broker(end)) for end in facts.farthest)
        text += (
            f" Farthest apart are {a} and {b}, {latency_text(facts.diameter_ms)}; a message "
            f"crosses at most {counted(facts.links_crossed_max, 'link')}."
        )
    if facts.unused_links:
        unused = ", ".join(f"{a} - {b}" for a, b in facts.unused_links)
        text += f" No broadcast tree uses {unused}: other ways are quicker."
    return text
