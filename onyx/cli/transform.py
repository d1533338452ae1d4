"""``onyx transform show``: what a link's messages are cut down to, for whom, what it saves."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping

import trio

from onyx.cli.network_option import NETWORK_HELP, add_client_arguments, registration_address
from onyx.cli.values import counted, first_of, print_json
from onyx.cli.verb import Subparsers, add_noun, add_verb
from onyx.errors import UsageError
from onyx.registration_client import NetworkClient, RegistrationClient
from overlay import verbs
from overlay.answers import LinkTransformation
from overlay.toml_table import did_you_mean, quote

EXAMPLES = """\
  onyx transform show B1:B3
  onyx transform show B1:B3 --root B2 --json
"""

DETAILS = f"""\
Asks the broker that sends: B1:B3 is what B1 sends to B3. For the trees that have the same brokers
behind the link it prints the transformation query, that is what is left of a message, as XQuery;
the profiles behind the link, by their host brokers; and the bytes saved so far, since the broker
was started. Graphs are never cut, and for a graph profile an RDF/XML document is not, either.

A link cuts its messages when the topology says transformation = "projection" for it, or "full":
then parts of return clauses are computed on the way, too, where that makes messages smaller.
{NETWORK_HELP}"""


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(
        subparsers,
        "transform",
        details="Messages are cut on the way to what somebody behind a link needs of them.",
        examples=EXAMPLES,
    )
    show = add_verb(
        subverbs,
        "show",
        "print the transformation query of a link, for whom it is and what it saves",
        details=DETAILS,
        examples=EXAMPLES,
        run=run,
    )
    show.add_argument("link", metavar="LINK", help="FROM:TO, the ids of two neighbours")
    show.add_argument("--root", metavar="ID", help="only the tree of this root broker")
    add_client_arguments(show)


def run(arguments: argparse.Namespace) -> None:
    answer, profiles = trio.run(_collect, arguments)
    if arguments.json:
        print_json({**answer.shown(), "profiles": profiles})
    else:
        print("\n".join(_lines(answer, profiles)))


async def _collect(
    arguments: argparse.Namespace,
) -> tuple[LinkTransformation, Mapping[str, list[str]]]:
    """What the sending broker says, and the profiles of every broker behind the link."""
    sender, colon, link = arguments.link.partition(":")
    if not colon:
        raise UsageError(f"{quote(arguments.link)} is no link, expected FROM:TO, such as B1:B3")
    async with RegistrationClient(registration_address(arguments)) as registration:
        brokers = await registration.brokers()
    if sender not in brokers:
        raise UsageError(f"{quote(sender)} is no broker there{did_you_mean(sender, brokers)}")
    asked = verbs.TransformShow(link=link, root=verbs.given(arguments.root))
    async with NetworkClient(brokers[sender]) as client:
        answer = await client.ask(asked)
    behind = {broker for branch in answer.branches for broker in branch.brokers}
    profiles = {}
    for broker in sorted(behind):
        async with NetworkClient(brokers[broker]) as client:
            profiles[broker] = (await client.ask(verbs.HostedList())).profiles
    return answer, profiles


def _lines(answer: LinkTransformation, profiles: Mapping[str, list[str]]) -> Iterator[str]:
    yield f"{answer.broker} -> {answer.link}: transformation is {answer.transformation}"
    sent = answer.sent
    if sent.get("messages"):
        saved, whole = sent.get("bytes_saved", 0), sent["bytes"] + sent.get("bytes_saved", 0)
        yield (
            f"{counted(sent['messages'], 'message')} in {counted(sent['bytes'], 'byte')}, "
            f"{sent.get('cut', 0):,} of them cut; about {saved:,} bytes saved, {saved / whole:.0%}"
        )
    if not answer.branches:
        yield "no open tree goes over it in this direction"
    for branch in answer.branches:
        yield ""
        yield f"trees of {', '.join(branch.roots)}: {counted(branch.needs, 'need')}"
        for broker in branch.brokers:
            yield f"  {broker}: {_named(profiles[broker])}"
        if branch.has_graph_profiles:
            yield "  graph profiles: graphs and RDF/XML documents whole, where their patterns match"
        if branch.query != "()" or not branch.has_graph_profiles:
            yield from (f"  {line}" for line in branch.query.splitlines())


def _named(profiles: list[str]) -> str:
    if not profiles:
        return "no profiles"
    return f"{counted(len(profiles), 'profile')}, {first_of(profiles, len(profiles))}"
