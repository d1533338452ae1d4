"""``onyx dead list``, ``show``, ``replay`` and ``drop``: what could not be dealt with."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Any

import trio

from formats.media_types import XML
from onyx.cli.network_option import NETWORK_HELP, add_client_arguments, registration_address
from onyx.cli.values import print_json, table
from onyx.cli.verb import Subparsers, add_noun, add_verb, set_run
from onyx.data_source import DataSource
from onyx.errors import (
    EXIT_DATA,
    EXIT_OK,
    EXIT_UNAVAILABLE,
    NetworkUnreachable,
    RequestFailed,
    UsageError,
)
from onyx.registration_client import NetworkClient, RegistrationClient
from overlay import verbs
from overlay.answers import Letter, LetterReplayed
from overlay.link.dead_letters import KEPT_MAX, KINDS, OVER_LIMIT, POISON, REFUSED, UNDELIVERABLE
from overlay.toml_table import did_you_mean, quote

DETAILS = f"""\
Dead letters are of four kinds:

  poison         A broker or registration service that fails at a request, a message or a
                 frame, by an error of its own, starts anew from what it has on disk, keeps
                 that input aside and passes over it: whoever sent it is told "internal" and
                 the id under which it is kept here, and under which the log of the process
                 explains it. A request that fails before anything was changed is only
                 answered so, and kept as well; "passed over" says which of both it is.
  refused        a message that its source was refused, with the reason
  undeliverable  results that a user has rejected as often as the profile's policy allows
  over-limit     of each profile how many deliveries had to go, and why

Each process keeps the last 256 of each kind, of each up to 64 KiB. The last two kinds are
also shown to the user whose profile it is: --user.
{NETWORK_HELP}"""

REPLAY_DETAILS = f"""\
A message that was refused is published again, by whoever may publish for its source;
results that were rejected are delivered again; an input that is passed over is handled
when it comes again, after a new release, say. Then the letter is gone.
{NETWORK_HELP}"""

DROP_DETAILS = f"""\
An input that is passed over is handled again when it comes again.
{NETWORK_HELP}"""

EXAMPLES = """\
  onyx dead list
  onyx dead list --kind undeliverable --user ann
  onyx dead show 3f0a5c1e9b7d2846
  onyx dead replay 3f0a5c1e9b7d2846 77b0c1d2e3f40516
  onyx dead drop 3f0a5c1e9b7d2846 --node B1
"""

HEADING = ("NODE", "ID", "KIND", "AT", "PASSED OVER", "BYTES", "WHAT", "ERROR")
SHOWN_LENGTH = 2_000  # of the input


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(subparsers, "dead", details=DETAILS, examples=EXAMPLES)
    listing = add_verb(
        subverbs, "list", "list them, by process", details=DETAILS, examples=EXAMPLES
    )
    listing.add_argument("--kind", choices=KINDS, help="only those of this kind")
    listing.add_argument("--user", metavar="NAME", help="only those of this user's profiles")
    show = add_verb(subverbs, "show", "print one, and why it is one", details=DETAILS)
    show.add_argument("id", metavar="ID", help="as onyx dead list prints it")
    replay = add_verb(subverbs, "replay", "deal with some once more", details=REPLAY_DETAILS)
    drop = add_verb(subverbs, "drop", "keep some no longer", details=DROP_DETAILS)
    for parser in (replay, drop):
        parser.add_argument("ids", metavar="ID", nargs="+", help="as onyx dead list prints it")
    runs = ((listing, run_list), (show, run_show), (replay, run_replay), (drop, run_drop))
    for parser, run in runs:
        parser.add_argument("--node", metavar="ID", help="only this broker or registration service")
        set_run(parser, run)
        add_client_arguments(parser)


def run_list(arguments: argparse.Namespace) -> int:
    asked = verbs.DeadList(user=arguments.user or "")
    found = trio.run(_ask, arguments, asked)
    rows = []
    for node, answer in found.items():
        for letter in () if answer is None else answer.letters:
            if arguments.kind not in (None, letter.kind):
                continue
            if arguments.json:
                print_json({"node": node, **letter.shown()})
            shown = (letter.id, letter.kind, _time(letter), letter.has_ended)
            rows.append((node, *shown, letter.size, _what(letter), letter.error))
    if not arguments.json:
        print(table(HEADING, rows) if rows else "There are no dead letters.")
        for node, answer in found.items():
            if answer is None:
                print(f"{node} does not answer")
            elif let_go := answer.let_go:
                print(f"{node} keeps the newest {KEPT_MAX} of each kind: {let_go:,} older are gone")
    return EXIT_UNAVAILABLE if None in found.values() else EXIT_OK


def run_show(arguments: argparse.Namespace) -> int:
    for node, letter in trio.run(_of_all, arguments, verbs.DeadShow(id=arguments.id)).items():
        data = letter.data.decode("utf-8", "backslashreplace")
        if arguments.json:
            print_json({"node": node, **letter.shown(), "data": data})
            continue
        print(f"{node}: {_what(letter)}, {_time(letter)}, {letter.size:,} bytes")
        print(f"\n{letter.trace or letter.error}\n\n{data[:SHOWN_LENGTH]}")
    return EXIT_OK


def run_replay(arguments: argparse.Namespace) -> int:
    async def replay() -> bool:
        is_good = True
        for name in arguments.ids:
            for node, letter in (await _of_all(arguments, verbs.DeadReplay(id=name))).items():
                said = _REPLAYED[letter.kind]
                if letter.kind == REFUSED:
                    shown = await _of_all(arguments, verbs.DeadShow(id=name))
                    refused = await _publish(arguments, letter, shown[node].source)
                    is_good = is_good and not refused
                    said = f"refused again: {refused}" if refused else said
                    if not refused:
                        await _of_all(arguments, verbs.DeadDrop(id=name))
                if arguments.json:
                    print_json({"node": node, "id": name, "kind": letter.kind, "said": said})
                else:
                    print(f"{name}: {said}")
        return is_good

    return EXIT_OK if trio.run(replay) else EXIT_DATA


_REPLAYED = {
    POISON: "is handled when it comes again",
    REFUSED: "published",
    UNDELIVERABLE: "delivered again",
    OVER_LIMIT: "",
}


async def _publish(arguments: argparse.Namespace, letter: LetterReplayed, source: str) -> str:
    """A message that was refused to its source, once more; why it is refused, "" if it is not."""
    media_type = letter.format if "/" in letter.format else XML
    async with DataSource(registration_address(arguments), source) as publishing:
        outcome = await publishing.publish(letter.data, media_type)
    return "" if outcome.accepted else f"{outcome.reason} [{outcome.code}]"


def run_drop(arguments: argparse.Namespace) -> int:
    async def drop() -> None:
        for name in arguments.ids:
            for node in await _of_all(arguments, verbs.DeadDrop(id=name)):
                if arguments.json:
                    print_json({"node": node, "dropped": name})
                else:
                    print(f"{node} keeps {name} no longer")

    trio.run(drop)
    return EXIT_OK


async def _of_all(arguments: argparse.Namespace, asked: verbs.DeadLetterNamed) -> dict[str, Any]:
    """What those say that have it."""
    found = await _ask(arguments, asked)
    having = {node: answer for node, answer in found.items() if answer}
    if not having:
        silent = [node for node, answer in found.items() if answer is None]
        hint = f" ({', '.join(silent)} did not answer)" if silent else ""
        raise RequestFailed("unknown-letter", f"nobody keeps {quote(asked.id)}{hint}")
    return having


async def _ask(arguments: argparse.Namespace, asked: verbs.Asked) -> dict[str, Any]:
    """The answers by process, the registration service first; None: there was none; empty: it has
    no such letter."""
    where = registration_address(arguments)
    found: dict[str, Any] = {}

    async def ask(node: str, client: NetworkClient) -> None:
        try:
            found[node] = await client.ask(asked)
        except RequestFailed as error:
            if error.code != "unknown-letter":
                raise
            found[node] = ()

    async with RegistrationClient(where) as registration:
        processes = await registration.processes()
        nodes = {processes.registration: "", **processes.brokers}
        if arguments.node is not None and arguments.node not in nodes:
            hint = did_you_mean(arguments.node, nodes)
            raise UsageError(f"--node {quote(arguments.node)} is no process there{hint}")
        for node, address in nodes.items():
            if arguments.node not in (None, node):
                continue
            if not address:
                await ask(node, registration)
            elif node in processes.down:
                found[node] = None
            else:
                try:
                    async with NetworkClient(address) as client:
                        await ask(node, client)
                except NetworkUnreachable:
                    found[node] = None
    return found


def _what(letter: Letter) -> str:
    return f"{letter.count} {letter.what}" if letter.kind == OVER_LIMIT else letter.what


def _time(letter: Letter) -> str:
    return datetime.fromtimestamp(letter.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
