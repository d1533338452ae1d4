"""``onyx transform show``: what a link's messages are cut down to, for whom, what it saves."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping

from onyx.cli.asking import add_command, asked, network
from onyx.cli.values import check_known, counted, first_of, tell_of
from onyx.cli.verb import Subparsers, add_noun
from onyx.errors import UsageError
from onyx.registration_client import NetworkClient
from overlay import verbs
from overlay.answers import LinkTransformation
from overlay.unfit import quote
from yfilter.language.namespaces import ShortNames

EXAMPLES = """\
  onyx transform show B1:B3
  onyx transform show B1:B3 --root B2 --json
"""

DETAILS = """\
Asks the broker that sends: B1:B3 is what B1 sends to B3. For the trees that have the same brokers
behind the link it prints the transformation query, that is what is left of a message, as XQuery;
the profiles behind the link, by their host brokers; and the bytes saved so far, since the broker
was started. Graphs are never cut, and for a graph profile an RDF/XML document is not, either.

A link cuts its messages when the topology says transformation = "projection" for it, or "full":
then parts of return clauses are computed on the way, too, where that makes messages smaller."""


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(
        subparsers,
        "transform",
        details="Messages are cut on the way to what somebody behind a link needs of them.",
        examples=EXAMPLES,
    )
    show = {"link LINK": "FROM:TO, the ids of two neighbours"}
    add_command(
        subverbs, verbs.TransformShow, run=run, takes=show, details=DETAILS, examples=EXAMPLES
    )


async def run(arguments: argparse.Namespace) -> None:
    answer, profiles = await _collect(arguments)
    facts = {**answer.shown(), "profiles": profiles}
    tell_of(arguments, facts, "\n".join(_lines(answer, profiles)))


async def _collect(
    arguments: argparse.Namespace,
) -> tuple[LinkTransformation, Mapping[str, list[str]]]:
    """What the sending broker says, and the profiles of every broker behind the link."""
    sender, colon, link = arguments.link.partition(":")
    if not colon:
        raise UsageError(f"{quote(arguments.link)} is no link, expected FROM:TO, such as B1:B3")
    async with network(arguments) as registration:
        brokers = await registration.brokers()
    async with NetworkClient(brokers[check_known(sender, brokers)]) as client:
        answer = await client.ask(asked(arguments, link=link))
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
            query = ShortNames().whole(branch.query)
            yield from (f"  {line}".rstrip() for line in query.splitlines())


def _named(profiles: list[str]) -> str:
    if not profiles:
        return "no profiles"
    return f"{counted(len(profiles), 'profile')}, {first_of(profiles, len(profiles))}"
