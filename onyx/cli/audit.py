"""``onyx audit list``: who has changed who may do what, the network's shape, or a source."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

import trio

from onyx.cli.network_option import NETWORK_HELP, add_client_arguments, registration_address
from onyx.cli.values import print_json, table
from onyx.cli.verb import Subparsers, add_subverbs, add_verb, set_run
from onyx.errors import EXIT_OK
from onyx.registration_client import RegistrationClient
from overlay import verbs

DETAILS = f"""\
One line a change, the oldest first: when, by whom, what. The registration service keeps
the newest 20,000 with its other state, and writes each to its log as well.
{NETWORK_HELP}"""
EXAMPLES = "  onyx audit list\n  onyx audit list --json > audit.jsonl"


def add_parser(subparsers: Subparsers) -> None:
    summary = "show who has changed who may do what, the network's shape, or a source"
    verb = add_verb(subparsers, "audit", summary, details=DETAILS, examples=EXAMPLES)
    verbs = add_subverbs(verb)
    listing = add_verb(verbs, "list", summary, details=DETAILS, examples=EXAMPLES)
    set_run(listing, run_list)
    add_client_arguments(listing)


def run_list(arguments: argparse.Namespace) -> int:
    entries = trio.run(_entries, arguments)
    if arguments.json:
        for number, second, who, what, detail in entries:
            known = {"number": number, "at": _time(second), "who": who}
            print_json({**known, "what": what, "detail": detail})
    elif entries:
        rows = [(_time(second), *rest) for _, second, *rest in entries]
        print(table(("AT", "WHO", "WHAT", "DETAIL"), rows))
    else:
        print("Nothing was changed yet.")
    return EXIT_OK


async def _entries(arguments: argparse.Namespace) -> list[list[object]]:
    found: list[list[object]] = []
    async with RegistrationClient(registration_address(arguments)) as registration:
        more = True
        while more:
            after = int(str(found[-1][0])) if found else 0
            answer = await registration.ask(verbs.AuditList(after=after))
            found += answer["entries"]
            more = answer["more"]
    return found


def _time(second: object) -> str:
    return datetime.fromtimestamp(int(str(second)), UTC).strftime("%Y-%m-%d %H:%M:%SZ")
