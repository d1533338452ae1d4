"""``onyx topology check | show | apply``: a topology file, and the network that runs."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from onyx.cli.drawing import broker_text, draw_network, draw_tree, latency_text
from onyx.cli.network_option import add_network_arguments
from onyx.cli.network_svg import network_svg
from onyx.cli.topology_live import APPLY_EXAMPLES, add_apply, show_live
from onyx.cli.values import counted
from onyx.cli.verb import Subparsers, add_subverbs, add_verb, set_run
from onyx.errors import EXIT_CONFIG, EXIT_USAGE, UnwritableOutput, UsageError, UserError
from overlay.routing.broadcast_tree import BroadcastTree, broadcast_tree, broadcast_trees
from overlay.toml_table import did_you_mean, quote
from overlay.topology import Topology, TopologyError, load_topology

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
    verb = add_verb(
        subparsers,
        "topology",
        "check or show a topology file, or make a running network follow it",
        details="A topology file names the brokers of a network, the links between them and the\n"
        "registration service; its format is described in docs/topologies.md.",
        examples=CHECK_EXAMPLES + SHOW_EXAMPLES + APPLY_EXAMPLES,
    )
    verbs = add_subverbs(verb)
    check = add_verb(
        verbs,
        "check",
        "check a topology file and sum it up",
        details="Exit code 0 when it can be used, 78 with the first problem when it cannot.",
        examples=CHECK_EXAMPLES,
    )
    show = add_verb(
        verbs,
        "show",
        "show brokers, links and broadcast trees",
        details="A broker's broadcast tree is the way that the messages of its sources take. With "
        "--live\nthe network as it runs, whatever file it was started from: links that are down, "
        "trees with the\nversion they have since, and how far a change is.",
        examples=SHOW_EXAMPLES,
    )
    check.add_argument("file", metavar="FILE", type=Path, help="a topology file (TOML)")
    show.add_argument("file", metavar="FILE", type=Path, nargs="?", help="a topology file (TOML)")
    show.add_argument("--live", action="store_true", help="the network as it runs")
    add_network_arguments(show)
    add_apply(verbs)
    for parser in (check, show):
        parser.add_argument("--json", action="store_true", help="print JSON")
    show.add_argument("--root", metavar="ID", help="only the broadcast tree of this broker")
    show.add_argument(
        "--svg",
        metavar="OUT.svg",
        type=Path,
        help="also draw a picture; with --root the tree of that broker",
    )
    set_run(check, run_check)
    set_run(show, run_show)


def run_check(arguments: argparse.Namespace) -> int:
    """Print a summary of the file, or raise what is wrong with it (with --json: print that)."""
    try:
        topology = load_topology(arguments.file)
    except TopologyError as error:
        if not arguments.json:
            raise
        print(_json({"ok": False, "file": error.file, "key": error.key, "reason": error.reason}))
        return EXIT_CONFIG
    facts = summarise(topology)
    if arguments.json:
        print(_json({"ok": True, "file": str(arguments.file), **asdict(facts)}))
    else:
        print(textwrap.fill(f"{arguments.file}: {_summary_text(topology, facts)}", WIDTH))
    return 0


def run_show(arguments: argparse.Namespace) -> int:
    """Print the network and its trees, and write the picture that --svg asks for."""
    if arguments.live:
        return show_live(arguments)
    if arguments.file is None:
        raise UsageError("which topology? give a FILE, or --live for the network that runs")
    topology = load_topology(arguments.file)
    root: str | None = arguments.root
    if root is None:
        trees = broadcast_trees(topology)
    elif root in topology.broker_ids:
        trees = {root: broadcast_tree(topology, root)}
    else:
        hint = did_you_mean(root, topology.broker_ids)
        message = f"--root {quote(root)} is no broker of {arguments.file}{hint}"
        raise UserError(message, EXIT_USAGE)
    if arguments.svg is not None:
        _write_picture(arguments.svg, network_svg(topology, trees[root] if root else None))
    if arguments.json:
        print(_json(describe(topology, trees)))
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
        "links": [asdict(link) for link in topology.links],
        "limits": asdict(topology.limits),
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


def _write_picture(path: Path, picture: str) -> None:
    try:
        path.write_text(picture, encoding="utf-8")
    except OSError as error:
        raise UnwritableOutput(f"{path} cannot be written: {error.strerror}") from None
    print(f"onyx: wrote {path}", file=sys.stderr)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
