"""``onyx topology apply`` and ``show --live``: the shape of a network while it runs."""

from __future__ import annotations

import argparse
import os

import trio

from onyx.cli.asking import ask, network
from onyx.cli.network_option import VARIABLE, add_network_arguments
from onyx.cli.values import print_json, read_text, say
from onyx.cli.verb import JSON, Subparsers, add_verb
from onyx.drawing import draw_network, draw_tree
from onyx.errors import EXIT_OK, EXIT_UNAVAILABLE
from onyx.registration_client import RegistrationClient
from overlay import verbs
from overlay.answers import ShapeChange
from overlay.network_shape import without_links
from overlay.routing.broadcast_tree import broadcast_trees
from overlay.topology import load_topology, parse_topology
from overlay.tree_name import tree_name

APPLY_DETAILS = """\
Changes a running network into the one that FILE describes, without stopping it: links and
brokers come and go, broadcast trees are rebuilt. No message is lost or comes twice over it,
every source's messages stay in order, and trees that stay the same are not touched.

Prints what is different, then waits until nothing of the old shape is left anywhere, and
says meanwhile which brokers are not there yet. Interrupted, it goes on without being waited
for; onyx topology show --live says how far it is.

A broker that joins is started by the onyx up that runs the network, or on its own machine by
onyx up FILE --broker ID. One that leaves must host no profiles: onyx broker drain moves them
away, and does the rest as well. One that died with its disk is taken out by --lost, which
says what is lost with it, or by onyx broker lost.
Most limits, the bounds of archives and the level of the log are taken by every process, as
at SIGHUP to onyx up. What takes a new start is named, with whose; nothing of it is changed.
Name, data directory and the addresses of running processes cannot be changed so.

Exit code 65 when the change is refused, 69 when it is not in place after --timeout seconds.
FILE itself says which network, unless it is said otherwise:"""

APPLY_EXAMPLES = """\
  onyx topology apply network.toml --dry-run
  onyx topology apply network.toml
"""

POLL_SECONDS = 0.2
REPORT_SECONDS = 2.0


def add_apply(subverbs: Subparsers) -> None:
    takes = {
        "file FILE": "the new topology (TOML)",
        "--lost ID...": "this broker died with its disk and is not in FILE (may be repeated)",
        "--dry-run": "only say what would change",
        "--timeout SECONDS": "wait at most so long",
        **JSON,
    }
    parser = add_verb(
        *(subverbs, "apply", "change a running network", run_apply, takes),
        details=APPLY_DETAILS,
        examples=APPLY_EXAMPLES,
    )
    add_network_arguments(parser)


async def run_apply(arguments: argparse.Namespace) -> int:
    """Ask for the change, and wait until it is in place."""
    load_topology(arguments.file)  # a mistake is better shown with the file's name
    given = arguments.registration is not None or arguments.topology is not None
    if not given and not os.environ.get(VARIABLE):
        arguments.topology = arguments.file
    text = read_text(arguments.file)
    async with network(arguments) as registration:
        asked = verbs.TopologyApply(text=text, dry_run=arguments.dry_run, lost=arguments.lost)
        answer = await registration.ask(asked)
        _print_change(answer, arguments)
        if arguments.dry_run or not answer.changes:
            return EXIT_OK
        with trio.move_on_after(float("inf") if arguments.timeout is None else arguments.timeout):
            await wait_settled(registration, answer.version, arguments.json)
            return EXIT_OK
    say(f"not in place after {arguments.timeout:g} s; it goes on")
    return EXIT_UNAVAILABLE


async def wait_settled(registration: RegistrationClient, version: int, as_json: bool) -> None:
    """Until a version, or a later one, is in place everywhere."""
    said, said_at = "", trio.current_time()
    while True:
        progress = await registration.ask(verbs.TopologyProgress())
        if progress.version >= version and progress.stage == "settled":
            break
        text = progress.sentence()
        if text != said and trio.current_time() >= said_at:
            said, said_at = text, trio.current_time() + REPORT_SECONDS
            if not as_json:
                say(text)
        await trio.sleep(POLL_SECONDS)
    if as_json:
        print_json({"event": "settled", "version": progress.version})
    else:
        print(f"Version {progress.version} of the network is in place.")


def _print_change(answer: ShapeChange, arguments: argparse.Namespace) -> None:
    if arguments.json:
        print_json({"event": "plan" if arguments.dry_run else "begun", **answer.shown()})
        return
    for key, whose in answer.takes_a_start.items():
        print(f"! {key}: takes a new start of {whose}, with this file")
    if not answer.changes:
        others = "nothing else" if answer.takes_a_start else "nothing"
        print(f"The network is like that already; {others} changes.")
        return
    trees = answer.trees
    print("\n".join(answer.changes))
    rebuilt = f"rebuilt: {', '.join(trees)}" if trees else "none is rebuilt"
    print(f"Broadcast trees: {rebuilt}.", flush=True)
    if arguments.lost:
        lost = answer.lost
        print(
            f"Lost with {', '.join(arguments.lost)}: what waited there for the users of its "
            f"profiles ({', '.join(lost.profiles) or 'none'}), which go on at other brokers; "
            "and the messages that it had taken and not passed on, or that waited for it, for "
            f"everybody behind it. Its sources ({', '.join(lost.sources) or 'none'}) get other "
            "root brokers.",
            flush=True,
        )


async def show_live(arguments: argparse.Namespace) -> int:
    """Print the network as it runs."""
    if arguments.file is not None and arguments.registration is None:
        arguments.topology = arguments.file
    answer = await ask(arguments, verbs.TopologyShow())
    if arguments.json:
        print_json(answer.shown())
        return EXIT_OK
    declared = parse_topology(answer.text, "the running network")
    print(f"network {declared.name}, {answer.sentence()}\n")
    print(draw_network(declared))
    down = [frozenset(pair) for pair in answer.down]
    for a, b in answer.down:
        print(f"\nThe link {a} - {b} is down.")
    away = answer.away
    for broker in away:
        print(f"\n{broker} is away: all trees of others go round it.")
    in_use = without_links(declared, frozenset(down))
    for root, tree in broadcast_trees(in_use, away).items():
        if arguments.root in (None, root):
            print(f"\n{tree_name(root, answer.trees[root])}: {draw_tree(in_use, tree)}")
    return EXIT_OK
