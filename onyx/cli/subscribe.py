"""``onyx subscribe``: take the results of profiles as they come."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import trio

from formats.media_types import XML, suffix_of
from onyx.background import background_tasks
from onyx.cli.network_option import add_network_arguments, registration_address
from onyx.cli.values import print_json, say
from onyx.cli.verb import Subparsers, add_verb
from onyx.client_values import Delivery
from onyx.clients import User, user_name
from onyx.data_directory import write_atomically
from onyx.data_source import FAREWELL_SECONDS
from onyx.errors import CommandFailed, RequestFailed, UsageError, file_errors
from onyx.positions import PositionFile
from onyx.results import Results

# -------------------------------------------------------------------------------------------------
# ``onyx subscribe --exec``: a command for each delivery, which accepts it by its exit code.


STDERR_SHOWN = 500  # of what a command that failed has said, its last

EXEC_DETAILS = """\
With --exec COMMAND a shell runs COMMAND for each delivery, with the results on its standard
input and ONYX_PROFILE, ONYX_SOURCE, ONYX_NUMBER and ONYX_MEDIA_TYPE in its environment. Exit
code 0 accepts it. With --share any other rejects it: it comes again later, to any of those
who share the profile, and is a dead letter in the end (onyx profile policy); without, it
ends onyx subscribe, and the delivery comes again with the next run."""


async def deal_with(results: Results, delivery: Delivery, command: str, is_shared: bool) -> str:
    """Why a command did not accept a delivery, "" if it did."""
    run = partial(
        trio.run_process,
        command,
        shell=True,
        stdin=b"\n".join(delivery.results),
        capture_stderr=True,
        check=False,
        env={
            **os.environ,
            "ONYX_PROFILE": delivery.profile,
            "ONYX_SOURCE": delivery.source,
            "ONYX_NUMBER": str(delivery.number),
            "ONYX_MEDIA_TYPE": delivery.media_type,
        },
    )
    ended: subprocess.CompletedProcess[bytes] = await run()
    if not ended.returncode:
        results.acknowledge_nowait()
        return ""
    said = ended.stderr.decode("utf-8", "replace").strip()[-STDERR_SHOWN:]
    why = f"exit code {ended.returncode}" + (f": {said}" if said else "")
    if is_shared:
        results.reject_nowait(why)
    return why


DETAILS = f"""\
Results are printed one a message, or written to a directory, one file each, named
PROFILE-SOURCE-NUMBER.xml after the message they come from (with -1, -2, ... before
.xml when one message gave several); what a graph profile delivers ends in .json, .nt
or .ttl, as its media type, which --json says, has it.

A result counts as delivered once it is written: what came while nobody was subscribed
comes with the next run, and what was written does not come again (but after a crash of
this very process the last 64 may).

With --positions FILE the process keeps itself, in FILE, how far it is with each profile:
after a crash the very last may be printed again, no other; with --directory its file is
written again under the same name.

When a message takes a profile more time or memory than a broker's limits allow, or its
results are larger than a message may be, standard error says so, and how many are not
there (with --json: "over_limit": true, "limit": why); the first ones are, if any fit.

With --share several of these commands divide the work: each delivery goes to one of
them. What one had not written when it ended or lost its connection goes to the others;
if that was cut off in the midst of it, it may be written twice. Order is kept for each
command, not among them. A command without --share ends those with it, and the other
way round.

With --ephemeral nothing is kept while nobody subscribes: what was not written when the
last of these commands ended, or lost its connection, is lost, and so is all that comes
until the next one, which is told of nothing. Also when a broker restarts. That counts
until somebody subscribes without --ephemeral.

{EXEC_DETAILS}

With --once it takes what waits at the host brokers when it connects, and ends, with exit code 0
if nothing waits, too. What comes meanwhile waits for the next run.

Runs until it is interrupted, for --count messages, or --once."""

EXAMPLES = """\
  onyx subscribe p1
  onyx subscribe storms                         by its key (onyx profile add --key)
  onyx subscribe p1 p2 --directory results/
  onyx subscribe p1 --directory results/ --positions p1.positions
  onyx subscribe                                all profiles that you have
  onyx subscribe --user ann                     all profiles that ann has
  onyx subscribe p1 --share --directory a/      as often as there is work for
  onyx subscribe p1 --share --exec 'curl -sf --data-binary @- https://shop.example/in'
  onyx subscribe p1 --count 1 --json
  onyx subscribe --once                         what waits, then end
"""


def add_parser(subparsers: Subparsers) -> None:
    takes = {
        "profiles PROFILE*": "the id of a profile, its key or USER/KEY",
        "--user NAME": "all profiles of this user (default without PROFILE: you)",
        "--directory DIR": "write each result to a file in DIR",
        "--count N": "end after the results of N messages",
        "--once": "take what waits by now, then end",
        "--positions FILE": "keep in FILE how far it is",
        "--share": "divide the results with others who --share",
        "--ephemeral": "keep nothing when nobody subscribes any more: it is lost",
        "--exec COMMAND": "run a shell command for each, results on its input",
        "--json": "print JSON, one object for each matching message",
    }
    parser = add_verb(subparsers, "subscribe", "", run, takes, details=DETAILS, examples=EXAMPLES)
    add_network_arguments(parser)


async def run(arguments: argparse.Namespace) -> None:
    if arguments.profiles and arguments.user is not None:
        raise UsageError("name profiles, or a user with --user, not both")
    if arguments.exec is not None and (arguments.directory is not None or arguments.json):
        raise UsageError("--exec takes the place of --directory and --json")
    writer = _Writer(arguments.directory, arguments.json, arguments.count)
    with ExitStack() as stack:
        kept = None
        if arguments.positions is not None:
            kept = stack.enter_context(PositionFile(arguments.positions))
        await _subscribe(arguments, writer, kept)


async def _subscribe(
    arguments: argparse.Namespace, writer: _Writer, positions: PositionFile | None
) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        where = registration_address(arguments)
        async with User(where, arguments.user or user_name(where)) as user:
            results = user.results(
                *arguments.profiles,
                share=arguments.share,
                ephemeral=arguments.ephemeral,
                once=arguments.once,
                positions=positions,
            )
            await results.connect()
            if not results.profile_ids:
                what = f"user {user.name!r} has no profiles; onyx profile add gives them some"
                raise RequestFailed("unknown-profile", what)
            async with background_tasks(trio.open_nursery()) as nursery:
                if arguments.exec is None:
                    nursery.start_soon(_take, results, writer, nursery.cancel_scope)
                else:
                    nursery.start_soon(_run, results, arguments, nursery.cancel_scope)
                async for _ in signals:
                    break
            await _say_farewell(results)
            for profile, lost in results.lost_by_profile().items():
                why = "because nobody took them in time"
                say(f"{profile}: {lost} deliveries were thrown away {why}")


async def _say_farewell(results: Results) -> None:
    """See to it that the brokers know what was taken, if they are there."""
    with trio.move_on_after(FAREWELL_SECONDS) as scope:
        await results.flush()
    if scope.cancelled_caught:
        say("a broker does not answer; the last results may come again")


async def _take(results: Results, writer: _Writer, scope: trio.CancelScope) -> None:
    """Write what comes; a delivery counts as taken once it is written."""
    async for delivery in results:
        is_last = writer.write(delivery)
        results.acknowledge_nowait()
        if is_last:
            break
    scope.cancel()


async def _run(results: Results, arguments: argparse.Namespace, scope: trio.CancelScope) -> None:
    """A command for each delivery; --count counts those that were accepted."""
    left = arguments.count
    async for delivery in results:
        why = await deal_with(results, delivery, arguments.exec, arguments.share)
        what = f"{delivery.profile}: message {delivery.number} of {delivery.source}"
        if why and not arguments.share:
            raise CommandFailed(f"{what}: {arguments.exec} has ended with {why}")
        if why:
            say(f"{what}: rejected, {why}")
            continue
        left = None if left is None else left - 1
        if left == 0:
            break
    scope.cancel()


class _Writer:
    """Where results go; counts the messages they come from."""

    def __init__(self, directory: Path | None, as_json: bool, count: int | None) -> None:
        self._directory = directory
        self._as_json = as_json
        self._left = count
        if directory is not None:
            with file_errors(directory, "made"):
                directory.mkdir(parents=True, exist_ok=True)

    @property
    def is_done(self) -> bool:
        return self._left == 0

    def write(self, delivery: Delivery) -> bool:
        """All results of one delivery, written through before the return; whether it was the
        last one wanted."""
        if delivery.is_over_limit and not self._as_json:
            given = "no results, as a limit of the broker forbids it"
            if count := len(delivery.results):
                given = f"the first {count} of its results, as a limit of the broker forbids more"
            message = f"message {delivery.number} of {delivery.source}"
            say(f"{delivery.profile}: {message} gave {given}: {delivery.limit}")
        files = []
        if self._directory is not None:
            for name, result in _named(delivery):
                write_atomically(self._directory / name, result)
                files.append(name)
        if self._as_json:
            results = [result.decode("utf-8", "replace") for result in delivery.results]
            print_json(
                {
                    "profile": delivery.profile,
                    "source": delivery.source,
                    "number": delivery.number,
                    **({"over_limit": True} if delivery.is_over_limit else {}),
                    **({"limit": delivery.limit} if delivery.limit else {}),
                    **({"media_type": delivery.media_type} if delivery.media_type != XML else {}),
                    **({"files": files} if self._directory is not None else {"results": results}),
                }
            )
        elif self._directory is None:
            for result in delivery.results:
                is_ended = delivery.media_type != XML and result.endswith(b"\n")
                sys.stdout.buffer.write(result if is_ended else result + b"\n")
            sys.stdout.buffer.flush()
        if self._left is not None:
            self._left -= 1
        return self.is_done


def _named(delivery: Delivery) -> Iterator[tuple[str, bytes]]:
    stem = f"{delivery.profile}-{delivery.source}-{delivery.number}"
    suffix = suffix_of(delivery.media_type)
    if len(delivery.results) == 1:
        yield f"{stem}{suffix}", delivery.results[0]
        return
    for index, result in enumerate(delivery.results, start=1):
        yield f"{stem}-{index}{suffix}", result
