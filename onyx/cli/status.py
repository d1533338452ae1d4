"""``onyx status``: what every process of a network is doing."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import astuple

from onyx.cli.asking import network
from onyx.cli.network_option import add_network_arguments
from onyx.cli.store_rebuild import progress_text
from onyx.cli.values import check_known, counted, print_json, table
from onyx.cli.verb import Subparsers, add_verb
from onyx.drawing import bandwidth_text
from onyx.errors import EXIT_OK, EXIT_UNAVAILABLE, RequestFailed, UserError
from onyx.network_looks import ask_brokers
from onyx.network_view import certificate_ends, read_statistics
from onyx.registration_client import NetworkClient, Result
from overlay import verbs
from overlay.statistics import (
    BrokerStatistics,
    ChosenFormat,
    NodeStatistics,
    RegistrationStatistics,
)

DETAILS = """\
For every broker: the profiles it hosts, the sources it is the root broker of, messages
published here, received from and sent to other brokers, delivered to users, refused,
the bytes that wait for a neighbour or a user, and the longest time that its processor was
busy with one thing, so that everybody else waited (--json also says with what, and the
longest of the last minute). Counted since the process started.

For every link whose format is "auto": what each format would cost there, the quickest
first, and which one is in force ("now").

For every link whose messages are cut to what is needed behind it: how many were, and
about how many bytes that has saved ("onyx transform show" says more).

For every broker that keeps an archive: how much is in it, what waits to be written,
and what was left out, with the reason.

Of a node that has a standby: the address of the process that it is now, and its epoch.

Of a network that runs --insecure, that it does. Of a certificate that ends within 30 days, of a
process, of the authority or of who is connected: when.

A process that does not answer, or refuses to, is a row; why stands below.

Of a process that fails again and again: why, and when it is started again. Of one that has
failed at inputs, and passes over them: how many ("onyx dead list" says more).

Of a broker that has suspended profiles, as their users have spent the processor time that
messages may cost them: which, and why ("onyx profile update" gives them another text). Of one
that has slowed users, who have spent half of it: whom.

What there is very much of is not all there ("cut" of --json says how much there is). Of one
process --of shows all of a collection, or what has --match in its name, up to --limit.

Exit code 69 when a process does not answer or is down."""

EXAMPLES = """\
  onyx status --topology topologies/figure4.toml
  onyx status --broker B4 --json
  onyx status --broker B4 --of links.connections --match subscriber/
  onyx status --broker B4 --of budgets.suspended --limit 1000
"""

HEADING = (
    *("NODE", "ADDRESS", "STATE", "PROFILES", "PUBLISHED", "RECEIVED", "SENT", "DELIVERED"),
    *("REFUSED", "WAITING BYTES", "LONGEST TURN MS"),
)

FORMAT_HEADING = ("LINK", "", "FORMAT", "BYTES", "ENCODING US", "DECODING US", "MESSAGE US")

CUT_HEADING = ("LINK", "MESSAGES", "CUT", "BYTES", "BYTES SAVED")

ARCHIVE_HEADING = ("ARCHIVE", "WRITTEN", "LEFT OUT", "WAITING", "FILES", "BYTES", "PROBLEM")

BEHIND = "who is behind it on a tree waits for it"
SLOWED = "is slowed, whose profiles have spent half of their processor time"
COSTLY = "whose messages take more processor time than their size explains"
INSECURE = "INSECURE: this network runs without TLS; whoever reaches a port of this machine owns it"


@dataclass(frozen=True, slots=True)
class Found:
    """A process; ``told`` None: it does not answer, and ``why``.  ``down``: why its launcher says
    that it does not run."""

    node: str
    address: str
    told: Result | None = None
    down: str = ""
    why: str = ""

    @property
    def statistics(self) -> NodeStatistics | RequestFailed | None:
        return read_statistics(self.told)


def add_parser(subparsers: Subparsers) -> None:
    takes = {
        "--broker ID": "only this broker",
        "--json": "print all statistics, one object a process",
        "--of COLLECTION": "all of this that the process has, by its name in --json",
        "--match TEXT =": "with --of: names that have it",
        "--limit N = 100": "with --of (default 100)",
    }
    parser = add_verb(subparsers, "status", "", run, takes, details=DETAILS, examples=EXAMPLES)
    add_network_arguments(parser)


def _lines(found: Found, statistics: NodeStatistics | RequestFailed | None) -> Iterator[str]:
    """What is not as it should be, a sentence each."""
    node = found.node
    if found.down:
        yield f"{node} is down: {found.down}"
    if found.why:
        yield f"{node} at {found.address}: {found.why}"
    if isinstance(statistics, RequestFailed):
        yield statistics.reason
    if not isinstance(statistics, NodeStatistics):
        return
    for whose, until in certificate_ends(statistics.node):
        yield f"{node}: {whose} {until}"
    if restarts := statistics.node.restarts:
        yield f"{node} was started again {counted(restarts, 'time')}: its log says why"
    if kept := statistics.dead.kept:
        yield f"{node} has failed at {counted(kept, 'input')}: onyx dead list"
    if statistics.disk_is_short:
        what = "published" if isinstance(statistics, BrokerStatistics) else "registered"
        yield f"{node}: its disk is nearly full; what is {what} there is refused (disk-full)"
    if isinstance(statistics, RegistrationStatistics):
        if statistics.rebuild.awaits is not None:
            yield f"{node}: {progress_text(statistics.rebuild.awaits)}"
        for broker in statistics.processes.away:
            goes_round = broker in statistics.shape.gone_round
            yield (
                f"{broker} is away for long: what is for it waits on its neighbours' disks, and "
                "what is new goes to others; "
                + ("all trees of others go round it" if goes_round else BEHIND)
                + f"; if it never comes back: onyx broker lost {broker}"
            )
    if isinstance(statistics, BrokerStatistics):
        for profile, why in statistics.budgets.suspended.items():
            yield f"{node}: {profile}: {why}"
        for user in statistics.budgets.slowed:
            yield f"{node}: user {user} {SLOWED}"
        for who in statistics.budgets.slowed_sources:
            yield f"{node}: {who} is slowed, {COSTLY}"
        for who in statistics.budgets.kept_out_sources:
            yield f"{node}: {who} is kept out, {COSTLY}"


async def run(arguments: argparse.Namespace) -> int:
    if arguments.of is not None:
        entries = await _entries(arguments)
        if arguments.json:
            for name, entry in entries:
                print_json({"of": arguments.of, "name": name, "says": entry})
        else:
            said = [(name, e if isinstance(e, str) else json.dumps(e)) for name, e in entries]
            print(table((arguments.of.upper(), "SAYS"), said))
        return EXIT_OK
    found = await _collect(arguments)
    if arguments.json:
        for each in found:
            statistics = {"down": each.down} if each.down else each.told
            print_json({"node": each.node, "address": each.address, "statistics": statistics})
    else:
        told = [(each, each.statistics) for each in found]
        print(table(HEADING, [_row(*each) for each in told]))
        if any(isinstance(each, NodeStatistics) and each.node.tls is None for _, each in told):
            print(f"\n{INSECURE}")
        for line in (line for each in told for line in _lines(*each)):
            print(f"\n{line}")
        brokers = [each for _, each in told if isinstance(each, BrokerStatistics)]
        for broker in brokers:
            for child, choice in broker.data.formats.items():
                print(f"\n{_said(broker.broker, child, choice)}")
                print(table(FORMAT_HEADING, _estimates(broker.broker, child, choice)))
        if cuts := [row for broker in brokers for row in _cuts(broker)]:
            print(f"\n{table(CUT_HEADING, cuts)}")
        if archives := [_archive(b) for b in brokers if b.archive.directory is not None]:
            print(f"\n{table(ARCHIVE_HEADING, archives)}")
    is_whole = all(isinstance(each.statistics, NodeStatistics) for each in found)
    return EXIT_OK if is_whole else EXIT_UNAVAILABLE


async def _entries(arguments: argparse.Namespace) -> list[tuple[str, object]]:
    """Page after page, so that nobody there waits long for it."""
    async with network(arguments) as registration:
        if arguments.broker is None:
            return await _all_pages(registration, arguments)
        brokers = await registration.brokers()
    async with NetworkClient(_address(arguments, brokers)) as broker:
        return await _all_pages(broker, arguments)


async def _all_pages(
    client: NetworkClient, arguments: argparse.Namespace
) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    first: int | None = 0
    while first is not None and len(found) < arguments.limit:
        page, first = await client.statistics_of(arguments.of, match=arguments.match, first=first)
        found += page
    return found[: arguments.limit]


def _address(arguments: argparse.Namespace, brokers: Mapping[str, str]) -> str:
    return brokers[check_known(arguments.broker, brokers, "--broker")]


async def _collect(arguments: argparse.Namespace) -> list[Found]:
    """The registration service first."""
    async with network(arguments) as registration:
        brokers = await registration.brokers()
        told = await registration.ask(verbs.Statistics())
        own = read_statistics(told)
        down = own.processes.down if isinstance(own, RegistrationStatistics) else {}
        found = [Found(str(told.get("registration", "")), registration.at, told)]
    if arguments.broker is not None:
        brokers, found = {arguments.broker: _address(arguments, brokers)}, []

    async def ask(client: NetworkClient) -> tuple[str, Result]:
        return client.at, await client.ask(verbs.Statistics())

    why: dict[str, UserError] = {}
    heard = await ask_brokers(brokers, ask, but=down, silent=UserError, why=why)
    for broker, said in heard.items():
        at, told = said or (brokers[broker], {})
        found.append(
            Found(broker, at, told or None, down.get(broker, ""), str(why.get(broker, "")))
        )
    return found


def _row(found: Found, statistics: NodeStatistics | RequestFailed | None) -> tuple[object, ...]:
    if not isinstance(statistics, NodeStatistics):
        state = "down" if found.down else "no answer" if statistics is None else "unreadable"
        return (found.node, found.address, state, *(None for _ in HEADING[3:]))
    epoch, longest = statistics.node.store.epoch, statistics.node.longest_turn_ms
    head = (found.node, found.address, f"up, epoch {epoch}" if epoch else "up")
    if isinstance(statistics, RegistrationStatistics):
        profiles, waiting = statistics.catalog.profiles, statistics.links.backlog_bytes
        return (*head, profiles, *[None] * 5, waiting, longest)
    assert isinstance(statistics, BrokerStatistics)
    data = statistics.data
    return (
        *head,
        statistics.query.profiles,
        *(data.published, data.received, sum(data.crossings.values())),
        *(data.delivered, data.refused, statistics.waiting_bytes, longest),
    )


def _cuts(broker: BrokerStatistics) -> list[tuple[object, ...]]:
    """The links of a broker that cut messages."""
    return [
        (f"{broker.broker} -> {child}", sent.messages, sent.cut, sent.bytes, sent.bytes_saved)
        for child, sent in broker.query.transformation.links.items()
        if sent.cut
    ]


def _archive(broker: BrokerStatistics) -> tuple[object, ...]:
    archive = broker.archive
    counts = (archive.written, archive.left_out, archive.waiting, archive.segments, archive.bytes)
    return (broker.broker, *counts, archive.problem or None)


def _said(node: str, child: str, choice: ChosenFormat) -> str:
    bandwidth = bandwidth_text(choice.bytes_per_second * 8 / 1000)
    said = f"{node} to {child}: {choice.format}; {choice.why}"
    return f"{said}; {bandwidth} ({choice.bandwidth})"


def _estimates(node: str, child: str, choice: ChosenFormat) -> list[tuple[object, ...]]:
    return [
        (
            f"{node} -> {child}",
            "now" if estimate.format == choice.format else "",
            *astuple(estimate),
        )
        for estimate in choice.estimates
    ]
