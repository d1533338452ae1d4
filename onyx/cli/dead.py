"""``onyx dead list``, ``show`` and ``remove``: inputs at which a process of the network failed."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import trio

from onyx.cli.network_option import NETWORK_HELP, add_client_arguments, registration_address
from onyx.cli.values import print_json, table
from onyx.cli.verb import Subparsers, add_subverbs, add_verb, set_run
from onyx.errors import EXIT_OK, EXIT_UNAVAILABLE, NetworkUnreachable, RequestFailed, UsageError
from onyx.registration_client import NetworkClient, RegistrationClient
from overlay.toml_table import did_you_mean, quote

DETAILS = f"""\
A broker or registration service that fails at a request, a message or a frame, by an error
of its own, starts anew from what it has on disk, keeps that input aside and passes over it:
whoever sent it is told "internal" and the id under which it is kept here, and under which
the log of the process explains it. A request that fails before anything was changed is only
answered so, and kept as well. "passed over" says which of both it is.

Each process keeps the last 256, of each up to 64 KiB.
{NETWORK_HELP}"""

REMOVE_DETAILS = f"""\
From then on the input is handled again when it comes again: after a new release, say.
{NETWORK_HELP}"""

EXAMPLES = """\
  onyx dead list
  onyx dead show 3f0a5c1e9b7d2846
  onyx dead remove 3f0a5c1e9b7d2846 --node B1
"""

HEADING = ("NODE", "ID", "AT", "PASSED OVER", "BYTES", "WHAT", "ERROR")
SHOWN_LENGTH = 2_000  # of the input

Letter = Mapping[str, Any]


def add_parser(subparsers: Subparsers) -> None:
    verb = add_verb(
        subparsers, "dead", "show inputs at which a process of the network failed", details=DETAILS,
        examples=EXAMPLES,
    )  # fmt: skip
    verbs = add_subverbs(verb)
    listing = add_verb(verbs, "list", "list them, by process", details=DETAILS, examples=EXAMPLES)
    show = add_verb(verbs, "show", "print one, and how it failed", details=DETAILS)
    remove = add_verb(verbs, "remove", "keep one no longer", details=REMOVE_DETAILS)
    for parser, run in ((listing, run_list), (show, run_show), (remove, run_remove)):
        if parser is not listing:
            parser.add_argument("id", metavar="ID", help="as onyx dead list prints it")
        parser.add_argument("--node", metavar="ID", help="only this broker or registration service")
        set_run(parser, run)
        add_client_arguments(parser)


def run_list(arguments: argparse.Namespace) -> int:
    found = trio.run(_ask, arguments, "dead.list", {})
    rows = []
    for node, answer in found.items():
        for letter in () if answer is None else answer["letters"]:
            if arguments.json:
                print_json({"node": node, **letter})
            shown = (letter["id"], _time(letter), letter["has_ended"], letter["size"])
            rows.append((node, *shown, letter["what"], letter["error"]))
    if not arguments.json:
        print(table(HEADING, rows) if rows else "No process has failed at anything.")
        for node in (node for node, answer in found.items() if answer is None):
            print(f"{node} does not answer")
    return EXIT_UNAVAILABLE if None in found.values() else EXIT_OK


def run_show(arguments: argparse.Namespace) -> int:
    for node, letter in _of_all(arguments, "dead.show").items():
        data = bytes(letter["data"]).decode("utf-8", "backslashreplace")
        if arguments.json:
            print_json({"node": node, **letter, "data": data})
            continue
        print(f"{node}: {letter['what']}, {_time(letter)}, {letter['size']:,} bytes")
        print(f"\n{letter['trace']}\n{data[:SHOWN_LENGTH]}")
    return EXIT_OK


def run_remove(arguments: argparse.Namespace) -> int:
    for node in _of_all(arguments, "dead.remove"):
        if arguments.json:
            print_json({"node": node, "removed": arguments.id})
        else:
            print(f"{node} keeps {arguments.id} no longer")
    return EXIT_OK


def _of_all(arguments: argparse.Namespace, verb: str) -> dict[str, Letter]:
    """What those say that have it."""
    found = trio.run(_ask, arguments, verb, {"id": arguments.id})
    having = {node: answer for node, answer in found.items() if answer}
    if not having:
        silent = [node for node, answer in found.items() if answer is None]
        hint = f" ({', '.join(silent)} did not answer)" if silent else ""
        raise RequestFailed("unknown-letter", f"nobody keeps {quote(arguments.id)}{hint}")
    return having


async def _ask(
    arguments: argparse.Namespace, verb: str, about: Mapping[str, object]
) -> dict[str, Letter | None]:
    """The answers by process, the registration service first; None: there was none; empty: it has
    no such letter."""
    where = registration_address(arguments)
    found: dict[str, Letter | None] = {}

    async def ask(node: str, client: NetworkClient) -> None:
        try:
            found[node] = await client.call(verb, about)
        except RequestFailed as error:
            if error.code != "unknown-letter":
                raise
            found[node] = {}

    async with RegistrationClient(where) as registration:
        own = await registration.statistics()
        nodes = {str(own["registration"]): "", **await registration.brokers()}
        if arguments.node is not None and arguments.node not in nodes:
            hint = did_you_mean(arguments.node, nodes)
            raise UsageError(f"--node {quote(arguments.node)} is no process there{hint}")
        for node, address in nodes.items():
            if arguments.node not in (None, node):
                continue
            if not address:
                await ask(node, registration)
            elif node in own["processes"]["down"]:
                found[node] = None
            else:
                try:
                    async with NetworkClient(address) as client:
                        await ask(node, client)
                except NetworkUnreachable:
                    found[node] = None
    return found


def _time(letter: Letter) -> str:
    return datetime.fromtimestamp(letter["at"], UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
