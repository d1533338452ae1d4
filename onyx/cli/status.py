"""``onyx status``: what every process of a network is doing."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

import trio

from onyx.cli.network_option import NETWORK_HELP, add_network_arguments, registration_address
from onyx.cli.store_rebuild import progress_text
from onyx.cli.values import counted, positive, print_json, table
from onyx.cli.verb import Subparsers, add_verb, set_run
from onyx.drawing import bandwidth_text
from onyx.errors import EXIT_OK, EXIT_UNAVAILABLE, NetworkUnreachable, UsageError
from onyx.registration_client import NetworkClient, RegistrationClient
from overlay.toml_table import did_you_mean, quote

DETAILS = f"""\
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

Of a network that runs --insecure, that it does.

Of a process that fails again and again: why, and when it is started again. Of one that has
failed at inputs, and passes over them: how many ("onyx dead list" says more).

Of a broker that has suspended profiles, as their users have spent the processor time that
messages may cost them: which, and why ("onyx profile update" gives them another text). Of one
that has slowed users, who have spent half of it: whom.

What there is very much of is not all there ("cut" of --json says how much there is). Of one
process --of shows all of a collection, or what has --match in its name, up to --limit.

Exit code 69 when a process does not answer or is down.
{NETWORK_HELP}"""

EXAMPLES = """\
  onyx status --topology topologies/figure4.toml
  onyx status --broker B4 --json
  onyx status --broker B4 --of links.connections --match subscriber/
  onyx status --broker B4 --of budgets.suspended --limit 1000
"""

HEADING = (
    "NODE",
    "ADDRESS",
    "STATE",
    "PROFILES",
    "PUBLISHED",
    "RECEIVED",
    "SENT",
    "DELIVERED",
    "REFUSED",
    "WAITING BYTES",
    "LONGEST TURN MS",
)

FORMAT_HEADING = ("LINK", "", "FORMAT", "BYTES", "ENCODING US", "DECODING US", "MESSAGE US")

CUT_HEADING = ("LINK", "MESSAGES", "CUT", "BYTES", "BYTES SAVED")

ARCHIVE_HEADING = ("ARCHIVE", "WRITTEN", "LEFT OUT", "WAITING", "FILES", "BYTES", "PROBLEM")

INSECURE = "INSECURE: this network runs without TLS; whoever reaches a port of this machine owns it"

Statistics = Mapping[str, Any]


def add_parser(subparsers: Subparsers) -> None:
    parser = add_verb(
        subparsers,
        "status",
        "show what the processes of a network do",
        details=DETAILS,
        examples=EXAMPLES,
    )
    parser.add_argument("--broker", metavar="ID", help="only this broker")
    parser.add_argument(
        "--json", action="store_true", help="print all statistics, one object a process"
    )
    parser.add_argument(
        "--of",
        metavar="COLLECTION",
        help="all that the process has of this, by its name in --json; without --broker the "
        "registration service",
    )
    parser.add_argument("--match", metavar="TEXT", default="", help="with --of: names that have it")
    parser.add_argument(
        "--limit", metavar="N", type=positive, default=100, help="with --of (default 100)"
    )
    set_run(parser, run)
    add_network_arguments(parser)


def _suspended(found: Mapping[str, tuple[str, Mapping[str, Any] | None]]) -> list[str]:
    return [
        f"{node}: {profile}: {why}"
        for node, (_, statistics) in found.items()
        for profile, why in (statistics or {}).get("budgets", {}).get("suspended", {}).items()
    ]


def _slowed(found: Mapping[str, tuple[str, Mapping[str, Any] | None]]) -> list[str]:
    return [
        f"{node}: user {user} is slowed, whose profiles have spent half of their processor time"
        for node, (_, statistics) in found.items()
        for user in (statistics or {}).get("budgets", {}).get("slowed", ())
    ]


def _short_disks(found: Mapping[str, tuple[str, Mapping[str, Any] | None]]) -> list[str]:
    return [
        f"{node}: its disk is nearly full; what is {what} there is refused (disk-full)"
        for node, (_, statistics) in found.items()
        for section, what in (("data", "published"), ("requests", "registered"))
        if (statistics or {}).get(section, {}).get("disk_is_short")
    ]


def _away(found: Mapping[str, tuple[str, Mapping[str, Any] | None]]) -> list[str]:
    return [
        f"{broker} is away for long: what is for it waits on its neighbours' disks, and what is "
        f"new goes to others; {_goes_on(broker, statistics)}; "
        f"if it never comes back: onyx broker lost {broker}"
        for _, statistics in found.values()
        if statistics
        for broker in statistics.get("processes", {}).get("away", ())
    ]


def _goes_on(broker: str, statistics: Mapping[str, Any]) -> str:
    if broker in statistics.get("shape", {}).get("gone_round", ()):
        return "all trees of others go round it"
    return "who is behind it on a tree waits for it"


def _rebuilt(found: Mapping[str, tuple[str, Mapping[str, Any] | None]]) -> list[str]:
    return [
        f"{node}: {progress_text(statistics['rebuild'])}"
        for node, (_, statistics) in found.items()
        if "awaits" in (statistics or {}).get("rebuild", {}) and statistics
    ]


def run(arguments: argparse.Namespace) -> int:
    if arguments.of is not None:
        entries = trio.run(_entries, arguments)
        if arguments.json:
            for name, entry in entries:
                print_json({"of": arguments.of, "name": name, "says": entry})
        else:
            said = [(name, e if isinstance(e, str) else json.dumps(e)) for name, e in entries]
            print(table((arguments.of.upper(), "SAYS"), said))
        return EXIT_OK
    found = trio.run(_collect, arguments)
    if arguments.json:
        for node, (address, statistics) in found.items():
            print_json({"node": node, "address": address, "statistics": statistics})
    else:
        rows = [_row(node, address, statistics) for node, (address, statistics) in found.items()]
        print(table(HEADING, rows))
        if any(_is_insecure(statistics) for _, statistics in found.values()):
            print(f"\n{INSECURE}")
        for node, (_, statistics) in found.items():
            if statistics and "down" in statistics:
                print(f"\n{node} is down: {statistics['down']}")
        for node, (_, statistics) in found.items():
            if kept := (statistics or {}).get("dead", {}).get("kept"):
                print(f"\n{node} has failed at {counted(kept, 'input')}: onyx dead list")
        absences = (*_rebuilt(found), *_away(found))
        for line in (*absences, *_short_disks(found), *_suspended(found), *_slowed(found)):
            print(f"\n{line}")
        for node, (_, statistics) in found.items():
            for child, choice in _choices(statistics).items():
                print(f"\n{_said(node, child, choice)}")
                print(table(FORMAT_HEADING, _estimates(node, child, choice)))
        cuts = [row for node, (_, statistics) in found.items() for row in _cuts(node, statistics)]
        if cuts:
            print(f"\n{table(CUT_HEADING, cuts)}")
        archives = [
            (node, *_archive(statistics["archive"]))
            for node, (_, statistics) in found.items()
            if statistics and "directory" in statistics.get("archive", {})
        ]
        if archives:
            print(f"\n{table(ARCHIVE_HEADING, archives)}")
    missing = any(not said or "down" in said for _, said in found.values())
    return EXIT_UNAVAILABLE if missing else EXIT_OK


async def _entries(arguments: argparse.Namespace) -> list[tuple[str, object]]:
    """Page after page, so that nobody there waits long for it."""
    async with RegistrationClient(registration_address(arguments)) as registration:
        if arguments.broker is None:
            return await _all_pages(registration, arguments)
        brokers = await registration.brokers()
    async with NetworkClient(_address(arguments.broker, brokers)) as broker:
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


def _address(broker: str, brokers: Mapping[str, str]) -> str:
    if broker not in brokers:
        raise UsageError(
            f"--broker {quote(broker)} is no broker there{did_you_mean(broker, brokers)}"
        )
    return brokers[broker]


async def _collect(
    arguments: argparse.Namespace,
) -> dict[str, tuple[str, Statistics | None]]:
    """(address, statistics) by node, the registration service first; None: no answer."""
    where = registration_address(arguments)
    async with RegistrationClient(where) as registration:
        brokers = await registration.brokers()
        own = await registration.statistics()
        own_address = registration.at
    if arguments.broker is not None:
        brokers = {arguments.broker: _address(arguments.broker, brokers)}
    answers: dict[str, Statistics | None] = {}
    down = own["processes"]["down"]

    async def ask(broker: str, address: str) -> None:
        if broker in down:  # its address is kept for it, but nobody answers there
            answers[broker] = {"down": down[broker]}
            return
        try:
            async with NetworkClient(address) as client:
                answers[broker] = await client.statistics()
                brokers[broker] = client.at
        except NetworkUnreachable:
            answers[broker] = None

    async with trio.open_nursery() as nursery:
        for broker, address in brokers.items():
            nursery.start_soon(ask, broker, address)
    found = {broker: (address, answers[broker]) for broker, address in brokers.items()}
    if arguments.broker is not None:
        return found
    return {str(own["registration"]): (own_address, own), **found}


def _is_insecure(statistics: Statistics | None) -> bool:
    """Of a process that says how it is connected."""
    return (statistics or {}).get("node", {}).get("tls", "") is None


def _state(statistics: Statistics) -> str:
    epoch = statistics["node"].get("store", {}).get("epoch")
    return f"up, epoch {epoch}" if epoch else "up"


def _row(node: str, address: str, statistics: Statistics | None) -> tuple[object, ...]:
    if statistics is None:
        return (node, address, "no answer", *(None for _ in HEADING[3:]))
    if "down" in statistics:
        return (node, address, "down", *(None for _ in HEADING[3:]))
    waiting = statistics["links"]["backlog_bytes"]
    longest = statistics["node"]["longest_turn_ms"]
    if "catalog" in statistics:
        profiles = statistics["catalog"]["profiles"]
        return (node, address, _state(statistics), profiles, *[None] * 5, waiting, longest)
    waiting += statistics["mailboxes"]["stored_bytes"]
    data = statistics["data"]
    return (
        node,
        address,
        _state(statistics),
        statistics["query"]["profiles"],
        *(data.get(key, 0) for key in ("published", "received")),
        sum(data["crossings"].values()),
        *(data.get(key, 0) for key in ("delivered", "refused")),
        waiting,
        longest,
    )


def _choices(statistics: Statistics | None) -> Mapping[str, Any]:
    """The links of a broker that choose their format, by neighbour."""
    formats: Mapping[str, Any] = (statistics or {}).get("data", {}).get("formats", {})
    return formats


def _cuts(node: str, statistics: Statistics | None) -> list[tuple[object, ...]]:
    """The links of a broker that cut messages."""
    transformation = (statistics or {}).get("query", {}).get("transformation", {})
    keys = ("messages", "cut", "bytes", "bytes_saved")
    return [
        (f"{node} -> {child}", *(sent.get(key, 0) for key in keys))
        for child, sent in transformation.get("links", {}).items()
        if sent.get("cut")
    ]


def _archive(archive: Statistics) -> tuple[object, ...]:
    keys = ("written", "left_out", "waiting", "segments", "bytes")
    return (*(archive[key] for key in keys), archive["problem"] or None)


def _said(node: str, child: str, choice: Statistics) -> str:
    bandwidth = bandwidth_text(choice["bytes_per_second"] * 8 / 1000)
    said = f"{node} to {child}: {choice['format']}; {choice['why']}"
    return f"{said}; {bandwidth} ({choice['bandwidth']})"


def _estimates(node: str, child: str, choice: Statistics) -> list[tuple[object, ...]]:
    return [
        (
            f"{node} -> {child}",
            "now" if estimate["format"] == choice["format"] else "",
            estimate["format"],
            *(estimate[key] for key in ("bytes", "encode_us", "decode_us", "us")),
        )
        for estimate in choice["estimates"]
    ]
