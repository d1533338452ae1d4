"""``onyx broker drain`` and ``lost``: a broker leaves the network, alive or not."""

from __future__ import annotations

import argparse
from functools import partial

import trio

from onyx.cli.asking import FIELDS, Told, add_command, add_commands, asked, network, tell
from onyx.cli.topology_live import POLL_SECONDS, REPORT_SECONDS, wait_settled
from onyx.cli.values import say
from onyx.cli.verb import Subparsers, add_noun
from onyx.errors import EXIT_OK, EXIT_UNAVAILABLE
from onyx.registration_client import RegistrationClient
from overlay import verbs
from overlay.answers import BrokerLeaving, BrokerLoss

DRAIN_DETAILS = """\
Lets a broker leave a running network. Nothing is placed there any more; its profiles move to
other brokers, with what waits for their users; its sources get other root brokers, where
their publishers go on by themselves; then the network goes on without it, and the onyx up
that runs it stops it. Nothing is lost, comes twice or out of order. Publishers of its
sources wait for the last step, which takes some seconds.

Says what is left to be done. Interrupted, it goes on without being waited for: say it again
to wait for it, or with --stop to let the broker stay, with what is still there.

Exit code 65 when it is refused: without the broker the network would fall apart, or there
is no room for its profiles. 69 when it has not left after --timeout seconds."""

LOST_DETAILS = """\
Says that a broker is gone for good, with its disk. The network goes on without it, over the
links that are left. Its profiles go on at other brokers, under their ids; what waited there
is lost, and the next delivery of each says so (host-lost). Its sources get other root brokers,
and their publishers publish there what it had not accepted. What it had accepted and not
passed on is lost; what it had passed on and not said to be accepted may come twice.

If it comes back it is not let in: empty its data directory and add it to the network again.

Exit code 65 when it is refused: the broker is here, or without it the network would fall
apart. 69 when it is not in place after --timeout seconds."""

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
    timeout = {"--timeout SECONDS": "wait at most so long"}
    add = partial(add_command, subverbs)
    add(
        *(verbs.BrokerDrain, FIELDS, run_drain, timeout),
        but=("dry_run",),
        details=DRAIN_DETAILS,
        examples=DRAIN_EXAMPLES,
    )
    add(verbs.BrokerLost, FIELDS, run_lost, timeout, details=LOST_DETAILS, examples=LOST_EXAMPLES)
    add_commands(subverbs, "broker")


async def run_drain(arguments: argparse.Namespace) -> int:
    async with network(arguments) as registration:
        progress = await registration.ask(asked(arguments))
        if arguments.stop:
            tell(arguments, progress, Told(lambda _: f"{arguments.broker} stays."))
            return EXIT_OK
        with trio.move_on_after(_seconds(arguments)):
            await _wait_left(registration, arguments)
            return EXIT_OK
    return _late(arguments)


async def _wait_left(registration: RegistrationClient, arguments: argparse.Namespace) -> None:
    said, say_at = "", trio.current_time()
    while True:
        progress = await registration.ask(verbs.BrokerProgress(broker=arguments.broker))
        if not progress.is_there and progress.stage == "settled":
            tell(arguments, progress, Told(lambda _: f"{arguments.broker} has left."))
            return
        text = drain_text(progress)
        if text != said and trio.current_time() >= say_at and not arguments.json:
            said, say_at = text, trio.current_time() + REPORT_SECONDS
            say(text)
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


async def run_lost(arguments: argparse.Namespace) -> int:
    async with network(arguments) as registration:
        answer = await registration.ask(asked(arguments))
        tell(arguments, answer, Told(partial(_without, arguments.broker)))
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
    say(f"not done after {arguments.timeout:g} s; it goes on")
    return EXIT_UNAVAILABLE
