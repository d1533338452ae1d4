"""``onyx dead list``, ``show``, ``replay`` and ``drop``: what could not be dealt with."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from onyx.cli.asking import add_command, asked, moment, network
from onyx.cli.network_option import registration_address
from onyx.cli.values import check_known, print_json, table, tell_of
from onyx.cli.verb import Subparsers, add_noun
from onyx.data_source import DataSource
from onyx.errors import EXIT_DATA, EXIT_OK, EXIT_UNAVAILABLE, RequestFailed
from onyx.network_looks import ask_brokers
from onyx.registration_client import NetworkClient
from overlay import verbs
from overlay.answers import Letter, LetterReplayed
from overlay.link.dead_letters import KEPT_MAX, KINDS, OVER_LIMIT, POISON, REFUSED, UNDELIVERABLE
from overlay.unfit import quote

DETAILS = """\
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
also shown to the user whose profile it is: --user."""

REPLAY_DETAILS = """\
A message that was refused is published again, by whoever may publish for its source;
results that were rejected are delivered again; an input that is passed over is handled
when it comes again, after a new release, say. Then the letter is gone."""

DROP_DETAILS = """\
An input that is passed over is handled again when it comes again."""

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
    node = {"--node ID": "only this broker or registration service"}
    ids = {"ids ID...": "as onyx dead list prints it", **node}
    listed = {f"--kind {{{','.join(KINDS)}}}": "only those of this kind", **node}
    add = partial(add_command, subverbs)
    add(verbs.DeadList, run=run_list, takes=listed, details=DETAILS, examples=EXAMPLES)
    add(verbs.DeadShow, run=run_show, takes=node, details=DETAILS)
    add(verbs.DeadReplay, run=run_replay, takes=ids, but=("id",), details=REPLAY_DETAILS)
    add(verbs.DeadDrop, run=run_drop, takes=ids, but=("id",), details=DROP_DETAILS)


async def run_list(arguments: argparse.Namespace) -> int:
    found = await _ask(arguments, asked(arguments))
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


async def run_show(arguments: argparse.Namespace) -> None:
    for node, letter in (await _of_all(arguments, asked(arguments))).items():
        data = letter.data.decode("utf-8", "backslashreplace")
        about = f"{node}: {_what(letter)}, {_time(letter)}, {letter.size:,} bytes"
        text = f"{about}\n\n{letter.trace or letter.error}\n\n{data[:SHOWN_LENGTH]}"
        tell_of(arguments, {"node": node, **letter.shown(), "data": data}, text)


async def run_replay(arguments: argparse.Namespace) -> int:
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
            facts = {"node": node, "id": name, "kind": letter.kind, "said": said}
            tell_of(arguments, facts, f"{name}: {said}")
    return EXIT_OK if is_good else EXIT_DATA


_REPLAYED = {
    POISON: "is handled when it comes again",
    REFUSED: "published",
    UNDELIVERABLE: "delivered again",
    OVER_LIMIT: "",
}


async def _publish(arguments: argparse.Namespace, letter: LetterReplayed, source: str) -> str:
    """A message that was refused to its source, once more; why it is refused, "" if it is not."""
    async with DataSource(registration_address(arguments), source) as publishing:
        outcome = await publishing.publish(letter.data, letter.media_type)
    return "" if outcome.accepted else f"{outcome.reason} [{outcome.code}]"


async def run_drop(arguments: argparse.Namespace) -> None:
    for name in arguments.ids:
        for node in await _of_all(arguments, verbs.DeadDrop(id=name)):
            tell_of(arguments, {"node": node, "dropped": name}, f"{node} keeps {name} no longer")


async def _of_all(arguments: argparse.Namespace, wanted: verbs.DeadLetterNamed) -> dict[str, Any]:
    """What those say that have it."""
    found = await _ask(arguments, wanted)
    having = {node: answer for node, answer in found.items() if answer}
    if not having:
        silent = [node for node, answer in found.items() if answer is None]
        hint = f" ({', '.join(silent)} did not answer)" if silent else ""
        raise RequestFailed("unknown-letter", f"nobody keeps {quote(wanted.id)}{hint}")
    return having


async def _ask(arguments: argparse.Namespace, wanted: verbs.Asked) -> dict[str, Any]:
    """The answers by process, the registration service first; None: there was none; empty: it has
    no such letter."""

    async def ask(client: NetworkClient) -> Any:
        try:
            return await client.ask(wanted)
        except RequestFailed as error:
            if error.code != "unknown-letter":
                raise
            return ()

    async with network(arguments) as registration:
        processes = await registration.processes()
        own, brokers = processes.registration, processes.brokers
        if arguments.node is not None:
            check_known(arguments.node, (own, *brokers), "--node", "process there")
            brokers = {node: at for node, at in brokers.items() if node == arguments.node}
        found = {own: await ask(registration)} if arguments.node in (None, own) else {}
    return found | await ask_brokers(brokers, ask, but=processes.down)


def _what(letter: Letter) -> str:
    return f"{letter.count} {letter.what}" if letter.kind == OVER_LIMIT else letter.what


def _time(letter: Letter) -> str:
    return moment(letter.at).replace(" ", "T")
