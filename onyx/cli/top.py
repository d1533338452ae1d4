"""``onyx top``: what a network does, now and again."""

from __future__ import annotations

import argparse

import trio

from onyx.cli.network_option import add_client_arguments, registration_address
from onyx.cli.top_rows import HEADINGS, KINDS, objects, shown
from onyx.cli.values import print_json, table
from onyx.cli.verb import Subparsers, add_verb
from onyx.errors import UsageError
from onyx.network_looks import watch_network
from onyx.network_view import NetworkView
from onyx.release import lacks

DETAILS = """\
Brokers, links, sources and the profiles that take most processor time, with what waits for
neighbours and users and for how long; looked at every --interval seconds. Keys: q ends.

--once prints it once, as tables, or with --json as objects, one a line.

Without --once it takes textual: pip install 'onyx-dissemination[top]'"""

EXAMPLES = """\
  onyx top --topology topologies/figure4.toml
  onyx top --once --json
"""


def add_parser(subparsers: Subparsers) -> None:
    takes = {
        "--once": "print it once",
        "--interval S = 1": "seconds between two looks (default: 1)",
    }
    parser = add_verb(subparsers, "top", "", run, takes, details=DETAILS, examples=EXAMPLES)
    add_client_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    where = registration_address(arguments)
    if not arguments.once:
        if arguments.json:
            raise UsageError("--json prints what there is once: say --once too")
        if why := lacks("top", textual="textual"):
            raise UsageError(f"{why}; --once does without")
        from onyx.cli.top_screen import TopScreen  # noqa: PLC0415 - half a second

        TopScreen(where, arguments.interval).run_to_end()
        return
    view = trio.run(_first, where, arguments.interval)
    if arguments.json:
        for line in objects(view):
            print_json(line)
    else:
        print(
            "\n\n".join(
                table(HEADINGS[kind], [tuple(shown(row).values()) for row in rows])
                for kind in KINDS
                if (rows := getattr(view, kind))
            )
        )


async def _first(where: str, interval: float) -> NetworkView:
    found: list[NetworkView] = []

    def take(view: NetworkView) -> None:
        found.append(view)
        scope.cancel()

    with trio.CancelScope() as scope:
        await watch_network(where, interval, take)
    return found[0]
