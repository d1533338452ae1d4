"""``onyx broker drain`` and ``lost``: a broker leaves the network, alive or not."""

from __future__ import annotations

import argparse
import sys
from functools import partial

import trio

from onyx.cli.asking import Told, add_commands, tell
from onyx.cli.network_option import NETWORK_HELP, add_client_arguments, registration_address
from onyx.cli.topology_live import POLL_SECONDS, REPORT_SECONDS, wait_settled
from onyx.cli.values import not_negative
from onyx.cli.verb import Subparsers, add_noun, add_verb, set_run
from onyx.errors import EXIT_OK, EXIT_UNAVAILABLE
from onyx.registration_client import RegistrationClient
from overlay import verbs
from overlay.answers import BrokerLeaving, BrokerLoss

DRAIN_DETAILS = f"""\
Lets a broker leave a running network. Nothing is placed there any more; its profiles move to
other brokers, with what waits for their users; its sources get other root brokers, where
their publishers go on by themselves; then the network goes on without it, and the onyx up
that runs it stops it. Nothing is lost, comes twice or out of order. Publishers of its
sources wait for the last step, which takes some seconds.

Says what is left to be done. Interrupted, it goes on without being waited for: say it again
to wait for it, or with --stop to let the broker stay, with what is still there.

Exit code 65 when it is refused: without the broker the network would fall apart, or there
is no room for its profiles. 69 when it has not left after --timeout seconds.
{NETWORK_HELP}"""

LOST_DETAILS = f"""\
Says that a broker is gone for good, with its disk. The network goes on without it, over the
links that are left. Its profiles go on at other brokers, under their ids; what waited there
is lost, and the next delivery of each says so (host-lost). Its sources get other root brokers,
and their publishers publish there what it had not accepted. What it had accepted and not
passed on is lost; what it had passed on and not said to be accepted may come twice.

If it comes back it is not let in: empty its data directory and add it to the network again.

Exit code 65 when it is refused: the broker is here, or without it the network would fall
apart. 69 when it is not in place after --timeout seconds.
{NETWORK_HELP}"""

DRAIN_EXAMPLES = """\
  onyx broker drain B4
  onyx broker drain B4 --stop
"""
LOST_EXAMPLES = """\
  onyx broker lost B4 --dry-run
  onyx broker lost B4
"""


def add_parser(subparsers: Subparsers) -> None:
    subverbs = add_noun(subparsers, "broker")
    drain = add_verb(
        *(subverbs, "drain", "move all away from a broker, and let it leave"),
        details=DRAIN_DETAILS,
        examples=DRAIN_EXAMPLES,
    )
    drain.add_argument("--stop", action="store_true", help="let it stay, if it is not too late")
    lost = add_verb(
        *(subverbs, "lost", "go on without a broker that is gone for good"),
        details=LOST_DETAILS,
        examples=LOST_EXAMPLES,
    )
    lost.add_argument("--dry-run", action="store_true", help="only say what would be")
    for parser, run in ((drain, run_drain), (lost, run_lost)):
        parser.add_argument("id", metavar="ID", help="the broker, as the topology has it")
        parser.add_argument(
            "--timeout", metavar="SECONDS", type=not_negative, help="wait at most so long"
        )
        set_run(parser, run)
        add_client_arguments(parser)
    add_commands(subverbs, "broker")


def run_drain(arguments: argparse.Namespace) -> int:
    return trio.run(_drain, arguments)


def run_lost(arguments: argparse.Namespace) -> int:
    return trio.run(_lose, arguments)


async def _drain(arguments: argparse.Namespace) -> int:
    async with RegistrationClient(registration_address(arguments)) as registration:
        asked = verbs.BrokerDrain(broker=arguments.id, stop=arguments.stop)
        progress = await registration.ask(asked)
        if arguments.stop:
            tell(arguments, progress, Told(lambda _: f"{arguments.id} stays."))
            return EXIT_OK
        with trio.move_on_after(_seconds(arguments)):
            await _wait_left(registration, arguments)
            return EXIT_OK
    return _late(arguments)


async def _wait_left(registration: RegistrationClient, arguments: argparse.Namespace) -> None:
    said, say_at = "", trio.current_time()
    while True:
        progress = await registration.ask(verbs.BrokerProgress(broker=arguments.id))
        if not progress.is_there and progress.stage == "settled":
            tell(arguments, progress, Told(lambda _: f"{arguments.id} has left."))
            return
        text = drain_text(progress)
        if text != said and trio.current_time() >= say_at and not arguments.json:
            said, say_at = text, trio.current_time() + REPORT_SECONDS
            print(f"onyx: {text}", file=sys.stderr, flush=True)
        await trio.sleep(POLL_SECONDS)


def drain_text(progress: BrokerLeaving) -> str:
    """How far a broker is, in a sentence."""
    broker = progress.broker
    if not progress.is_there:
        return f"{broker} leaves: {progress.sentence()}"
    waits = f"; {progress.waits}" if progress.waits else ""
    return (
        f"{broker} still has {progress.profiles} profiles, of which {progress.moving} are "
        f"moving, and {progress.sources} sources{waits}"
    )


async def _lose(arguments: argparse.Namespace) -> int:
    async with RegistrationClient(registration_address(arguments)) as registration:
        asked = verbs.BrokerLost(broker=arguments.id, dry_run=arguments.dry_run)
        answer = await registration.ask(asked)
        tell(arguments, answer, Told(partial(_without, arguments.id)))
        if arguments.dry_run:
            return EXIT_OK
        with trio.move_on_after(_seconds(arguments)):
            await wait_settled(registration, answer.version, arguments.json)
            return EXIT_OK
    return _late(arguments)


def _without(broker: str, answer: BrokerLoss) -> str:
    return (
        f"Without {broker}: {answer.profiles} profiles go on at other brokers, "
        f"without what waited there; {answer.sources} sources get other root brokers."
    )


def _seconds(arguments: argparse.Namespace) -> float:
    return float("inf") if arguments.timeout is None else arguments.timeout


def _late(arguments: argparse.Namespace) -> int:
    print(f"onyx: not done after {arguments.timeout:g} s; it goes on", file=sys.stderr)
    return EXIT_UNAVAILABLE
