"""``onyx trace``: the way of one message through the network, broker by broker, and why."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from formats.media_types import media_type_of, publish_format
from onyx.cli.asking import network
from onyx.cli.network_option import add_client_arguments, registration_address
from onyx.cli.values import MEDIA_TYPE, counted, first_of, print_json, read_input, tell_of
from onyx.cli.verb import Subparsers, add_verb
from onyx.data_source import DataSource
from onyx.errors import EXIT_DATA, EXIT_OK
from onyx.message_way import way_of
from onyx.registration_client import NetworkClient
from overlay import verbs
from overlay.answers import TraceLink, TraceStep
from yfilter.graph.said_paths import said_disjunct
from yfilter.language.namespaces import ShortNames

DETAILS = """\
Asks every broker on the way what it does with the message, as its parent would send it:
for a link that is taken, the bytes that came, those that cross and from how many they
were cut, and the routing query that holds; for one that is not, what of the closest
routing queries failed; and the profiles there that match. The message is published
afterwards, unless --dry-run is given.

Exit code 65 when the message is refused."""

EXAMPLES = """\
  onyx trace report.xml --source s1 --dry-run
  onyx trace planet.ttl --source s2 --dry-run
  cat report.xml | onyx trace - --source s1 --json
"""


def add_parser(subparsers: Subparsers) -> None:
    takes = {
        "file MESSAGE-FILE|-": "the message",
        "--source SOURCE!": "whose message it is: its id or its name",
        **MEDIA_TYPE,
        "--dry-run": "publish nothing",
    }
    parser = add_verb(subparsers, "trace", "", run, takes, details=DETAILS, examples=EXAMPLES)
    add_client_arguments(parser)


async def run(arguments: argparse.Namespace) -> int:
    message = read_input(arguments.file)
    media_type = arguments.media_type or media_type_of(arguments.file)
    answers = await _trace(arguments, message, media_type)
    outcome = None
    if not arguments.dry_run:
        async with DataSource(registration_address(arguments), arguments.source) as source:
            outcome = await source.publish(message, media_type)
    if arguments.json:
        for answer in answers.values():
            print_json(answer.shown())
    else:
        root = next(iter(answers))
        tree = answers[root].tree
        size = f"{len(message):,} bytes as {publish_format(media_type)}"
        print(f"message of {arguments.source}, {size}, on the tree {tree}")
        print(ShortNames().whole("\n".join(_tree(answers, root, len(message), "", ""))))
    if outcome is not None:
        said = f"accepted as number {outcome.number}" if outcome.accepted else outcome.reason
        facts = {"published": outcome.accepted, "number": outcome.number, "said": said}
        tell_of(arguments, facts, f"published: {said}")
    return EXIT_OK if outcome is None or outcome.accepted else EXIT_DATA


async def _trace(
    arguments: argparse.Namespace, message: bytes, media_type: str
) -> dict[str, TraceStep]:
    async with network(arguments) as registration:
        addresses = await registration.brokers()
        source = await registration.source(arguments.source)

    async def ask(broker: str, wanted: verbs.Asked) -> Any:
        async with NetworkClient(addresses[broker]) as client:
            return await client.ask(wanted)

    return await way_of(ask, source.root, source.id, message, media_type)


def _tree(
    answers: Mapping[str, TraceStep], broker: str, size: int, branch: str, trunk: str
) -> Iterator[str]:
    """A broker, what it says of its links, and the brokers behind those."""
    answer = answers[broker]
    yield f"{branch}{broker}{_profiles(answer)}"
    for link in answer.links:
        last = link is answer.links[-1]
        here, below = ("└── ", "    ") if last else ("├── ", "│   ")
        inner = trunk + below + "    "
        if not link.taken:
            yield f"{trunk}{here}{link.link}: not taken, {_count(link.disjuncts)}"
            for failed in link.failed or ():
                yield f"{inner}{said_disjunct(failed.disjunct)}"
                more = f", as do {failed.more:,} more" if failed.more else ""
                yield f"{inner}    fails at {said_disjunct(failed.part)}{more}"
            continue
        for number, line in enumerate(
            _tree(answers, link.link, link.bytes or 0, trunk + here, trunk + below)
        ):
            yield line
            if number == 0:
                yield f"{inner}{size:,} -> {link.bytes:,} bytes as {link.format}{_cut(link)}"
                yield from (
                    f"{inner}because of {said_disjunct(held)}" for held in (link.held or [])[:1]
                )


def _cut(link: TraceLink) -> str:
    if link.bytes == link.bytes_whole:
        return ""
    return f", cut from {link.bytes_whole:,} ({link.transformation})"


def _profiles(answer: TraceStep) -> str:
    matched, no_graph = answer.profiles_matched, answer.no_graph
    delivers = f"  delivers to {first_of(answer.profiles, matched)}" if matched else ""
    return delivers + (f"  it means no graph: {no_graph}" if no_graph else "")


def _count(disjuncts: int) -> str:
    return counted(disjuncts, "disjunct") if disjuncts else "nobody asks for anything"
