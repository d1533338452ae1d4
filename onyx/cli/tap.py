"""``onyx tap``: what brokers accept, send on and deliver, as it happens."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import trio

from onyx.cli.asking import network
from onyx.cli.network_option import add_client_arguments
from onyx.cli.values import check_known, tell_of
from onyx.cli.verb import Subparsers, add_verb
from onyx.errors import EXIT_OK, EXIT_UNAVAILABLE, NetworkUnreachable
from onyx.registration_client import NetworkClient
from overlay import verbs

KINDS = ("accepted", "refused", "invalid", "crossing", "delivery")
RATE = 1_000
AGAIN_SECONDS = 1.0

DETAILS = """\
A line for each message that a broker accepts from a source or refuses, sends on to another
broker, or puts into the mailbox of a profile, until Ctrl-C. Filters are looked at in the
brokers; several of one kind are alternatives. --path shows the messages in which a path, or
any profile, finds something, by what of the message is at that broker.

No broker waits for who watches: beyond --rate events a second each leaves events out, and
says how many. Contents of messages are never shown.

Exit code 69 when no broker answers."""

EXAMPLES = """\
  onyx tap
  onyx tap --source s1 --kind crossing --json
  onyx tap --link B1:B4 --path "//alert[severity = 'Extreme']"
  onyx tap --profile p7-k3v9q2mx --count 10
"""


def add_parser(subparsers: Subparsers) -> None:
    takes = {
        f"--kind {{{','.join(KINDS)}}}...": "only these events",
        "--source SOURCE...": "only messages of these, by id or name",
        "--broker ID...": "only at these brokers",
        "--link FROM:TO...": "only crossings of these links",
        "--profile PROFILE...": "only deliveries to these, by id, own key or USER/KEY",
        "--path EXPRESSION =": "what messages have",
        "--count N": "end after so many events",
        f"--rate N = {RATE}": f"events a second of each broker, at most (default: {RATE:,})",
        "--seconds S": "end after so many seconds",
    }
    parser = add_verb(subparsers, "tap", "", run, takes, details=DETAILS, examples=EXAMPLES)
    add_client_arguments(parser)


@dataclass(frozen=True, slots=True)
class Wants:
    """What is asked of which brokers."""

    kinds: Sequence[str] = ()
    sources: Sequence[str] = ()
    brokers: Sequence[str] = ()
    links: Sequence[tuple[str, str]] = ()
    profiles: Sequence[str] = ()
    path: str = ""
    rate: int = RATE

    def of(self, broker: str) -> verbs.Observe | None:
        """The request to a broker; None: it need not be asked."""
        links = [to for begin, to in self.links if begin == broker]
        if (self.brokers and broker not in self.brokers) or (self.links and not links):
            return None
        return verbs.Observe(
            kinds=list(self.kinds),
            sources=list(self.sources),
            links=links,
            profiles=list(self.profiles),
            path=self.path,
            events_max=self.rate,
        )


async def run(arguments: argparse.Namespace) -> int:
    async with network(arguments) as registration:
        brokers = await registration.brokers()
        sources = [(await registration.source(name)).id for name in arguments.source]
        profiles = [(await registration.profile(name)).id for name in arguments.profile]
    wants = Wants(
        *(arguments.kind, sources, arguments.broker, arguments.link),
        *(profiles, arguments.path, arguments.rate),
    )
    for named in (*wants.brokers, *(end for link in wants.links for end in link)):
        check_known(named, brokers)
    shown = 0
    is_there = False

    def take(event: Mapping[str, Any]) -> None:
        nonlocal shown
        if arguments.count is not None and shown >= arguments.count:
            return
        tell_of(arguments, _with_time(event), line(event))
        shown += event["kind"] in KINDS
        if shown == arguments.count:
            nursery.cancel_scope.cancel()

    async def watch(broker: str, address: str, asked: verbs.Observe) -> None:
        nonlocal is_there
        while True:
            try:
                async with NetworkClient(address) as client:
                    is_there = True
                    await client.observe(asked, take)
            except NetworkUnreachable:
                take({"kind": "away", "broker": broker})
            await trio.sleep(AGAIN_SECONDS)

    async with trio.open_nursery() as nursery:
        if arguments.seconds is not None:
            nursery.cancel_scope.deadline = trio.current_time() + arguments.seconds
        for broker, address in brokers.items():
            asked = wants.of(broker)
            if asked is not None:
                nursery.start_soon(watch, broker, address, asked)
    return EXIT_OK if is_there else EXIT_UNAVAILABLE


def line(event: Mapping[str, Any]) -> str:
    """For people."""
    broker, kind = event["broker"], event["kind"]
    if kind == "dropped":
        return f"{'':12} {broker}: {event['count']:,} events left out"
    if kind == "away":
        return f"{'':12} {broker}: does not answer"
    at = datetime.fromtimestamp(event["time"], UTC).strftime("%H:%M:%S.%f")[:12]
    about = f"{at} {broker} {kind} {event['source']} #{event['number']}"
    if kind == "accepted":
        return f"{about} {event['bytes']:,} bytes"
    if kind == "crossing":
        return f"{about} to {event['link']}, {event['bytes']:,} bytes"
    if kind == "delivery":
        return f"{about} to {event['profile']}"
    return f"{about}: {event.get('code', event.get('reason', ''))}"


def _with_time(event: Mapping[str, Any]) -> dict[str, object]:
    """The time as RFC 3339 says."""
    if "time" not in event:
        return dict(event)
    at = datetime.fromtimestamp(event["time"], UTC).isoformat().replace("+00:00", "Z")
    return {**event, "time": at}
