"""``onyx profile plan``: what the engine makes of some profiles together."""

from __future__ import annotations

import argparse
import sys

from onyx.cli.values import check_once, positive, print_json, read_text
from onyx.cli.verb import Subparsers, add_verb, set_run
from onyx.errors import EXIT_DATA, EXIT_OK
from yfilter import Conjunction, LinkTarget, Matcher, ProfileRefused, parse_profile, routing_query
from yfilter.plan_graph import NODES_MAX

EXAMPLES = """\
  onyx profile plan storms.xq floods.xq
  onyx profile plan profiles/*.xq --dot | dot -Tsvg > plan.svg
  onyx profile plan storms.xq --link north=floods.xq --link south=storms.xq
"""


def add_plan(verbs: Subparsers) -> None:
    parser = add_verb(
        verbs,
        "plan",
        "show the shared plan that the engine makes of profiles",
        details="The trie of the index, with what it leads to, and the operators; what\n"
        "profiles have in common is there once. No network is needed.",
        examples=EXAMPLES,
    )
    parser.add_argument("files", metavar="FILE|-", nargs="+", help="the text of a profile")
    parser.add_argument(
        "--link",
        metavar="NAME=FILE",
        type=_link,
        action="append",
        default=[],
        help="the routing query of a profile, for messages that go over this link",
    )
    parser.add_argument("--json", action="store_true", help="print it as one JSON object")
    parser.add_argument(
        "--dot",
        action="store_true",
        help="print a graph in DOT, which Graphviz draws (dot -Tsvg)",
    )
    parser.add_argument(
        "--nodes-max",
        metavar="N",
        type=positive,
        default=NODES_MAX,
        help="show so many nodes, and how many more there are (default: %(default)s)",
    )
    set_run(parser, run_plan)


def run_plan(arguments: argparse.Namespace) -> int:
    files = dict.fromkeys(arguments.files)
    routes = dict.fromkeys(arguments.link)
    check_once([*files, *(name for _, name in routes)])
    matcher = Matcher()
    name = ""
    try:
        for name in files:
            matcher.add(read_text(name), name)
        wanted: dict[tuple[Conjunction, LinkTarget], None] = {}
        for link, name in routes:
            for conjunction in routing_query(parse_profile(read_text(name))):
                wanted[conjunction, LinkTarget("any root broker", link)] = None
        for conjunction, target in wanted:
            matcher.add_route(conjunction, target)
    except ProfileRefused as refused:
        print(f"onyx: {name}: {refused}", file=sys.stderr)
        return EXIT_DATA
    nodes_max = arguments.nodes_max
    plan = matcher.dump_graphviz(nodes_max) if arguments.dot else matcher.dump(nodes_max)
    if arguments.json:
        print_json({"plan": plan})
    else:
        print(plan)
    return EXIT_OK


def _link(text: str) -> tuple[str, str]:
    """A name and a file, for argparse."""
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise argparse.ArgumentTypeError(f'"{text}" is not NAME=FILE')
    return name, file
