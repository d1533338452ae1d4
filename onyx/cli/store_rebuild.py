"""``onyx store rebuild``: the registration service has its catalog from the brokers."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import trio
from msgspec.structs import replace

from onyx.cli.topology_live import POLL_SECONDS
from onyx.cli.values import print_json, say
from onyx.cli.verb import Subparsers, add_verb
from onyx.data_directory import DataDirectory
from onyx.errors import EXIT_OK, EXIT_UNAVAILABLE, NetworkUnreachable, UnreadableInput
from onyx.registration_client import RegistrationClient
from overlay.statistics import RegistrationStatistics
from overlay.topology import Topology, load_topology

DETAILS = """\
For a registration service whose store is gone, or is an older copy: it ends with "the
store of the registration service was emptied, or is an older copy". Nothing else has to
be stopped; messages, deliveries and users' changes at their host brokers go on.

Gives it a new store, in which it asks every broker what it has: profiles with users,
texts, versions and policies, sources, moves, the network's shape, who may do what,
taxonomies and the plan. It goes on with the same ids, and gives none out twice. The
former store stays beside the new one, as earlier.sqlite; of an older copy that can be
read, keys, the audit log and single taxonomies are taken over.

What no broker was told is lost: requests under way, keys of profiles and sources,
drains, dead letters. How much there is, and what is missing, is said in the end, and in
onyx audit.

It waits until all brokers of the network have told what they have; clients are answered
after that. A broker that is gone for good is not waited for with --lost, and the network
goes on without it: the profiles that it hosted are gone.

Waits until it is done; interrupted, it goes on. The service must not run: it is started
again by onyx up within 30 s, or by you.

Exit code 69: it is not done after --timeout seconds; 75: the service runs."""

EXAMPLES = """\
  onyx store rebuild ~/.local/state/onyx/figure4
  onyx store rebuild ~/.local/state/onyx/figure4 --lost B3
  onyx store rebuild net.toml                      where onyx up --registration runs
  onyx store rebuild /var/lib/onyx --timeout 0     before onyx up is started
"""


def add_parser(subverbs: Subparsers) -> None:
    takes = {
        "path DIR": "the data directory of the network, or its topology file",
        "--data DIR": "the data directory, beside a file",
        "--lost ID...": "a broker that is gone for good",
        "--timeout SECONDS": "wait at most so long",
        "--json": "print JSON, one object",
    }
    summary = "have the catalog from the brokers"
    add_verb(subverbs, "rebuild", summary, run, takes, details=DETAILS, examples=EXAMPLES)


async def run(arguments: argparse.Namespace) -> int:
    # What it takes to read a store is of no use to the other verbs.
    from onyx.rebuilt_catalog import mark_for_rebuild  # noqa: PLC0415

    topology = _topology(arguments.path, arguments.data)
    aside = mark_for_rebuild(topology, arguments.lost)
    if aside:
        say(f"the former store is {aside}")
    where = topology.where(topology.registration[0].id)
    said = await _wait(where, arguments.timeout)
    if arguments.json:
        print_json({"done": said is not None, "former": aside, "said": said or ""})
    elif said is not None:
        print(f"The catalog is rebuilt {said}")
    else:
        say("not done yet; it goes on, onyx status says how far")
    return EXIT_OK if said is not None or arguments.timeout == 0 else EXIT_UNAVAILABLE


def _topology(path: Path, data: Path | None) -> Topology:
    if path.is_file():
        topology = load_topology(path)
        return topology if data is None else replace(topology, data_directory=data)
    file = DataDirectory(path).topology_file
    if not file.exists():
        raise UnreadableInput(
            f"there is no {file}; expected the data directory of a network that onyx up has "
            "started, or the topology file"
        )
    return replace(load_topology(file), data_directory=path)


async def _wait(where: str, timeout: float | None) -> str | None:
    """What the service says of it, None if it has not done it in time."""
    with trio.move_on_after(float("inf") if timeout is None else timeout):
        told = ""
        while True:
            try:
                async with RegistrationClient(where) as registration:
                    while True:
                        progress = (await registration.statistics(RegistrationStatistics)).rebuild
                        if progress.awaits is None:
                            return progress.said
                        told = _report(progress_text(progress.awaits), told)
                        await trio.sleep(POLL_SECONDS)
            except NetworkUnreachable:
                told = _report(f"waiting for the registration service at {where} to start", told)
            await trio.sleep(POLL_SECONDS)
    return None


def progress_text(awaits: Iterable[str]) -> str:
    """How far it is, in a sentence."""
    awaited = ", ".join(awaits)
    return f"the catalog is rebuilt from the brokers; {awaited} still have to say what they have"


def _report(text: str, told: str) -> str:
    if text != told:
        say(text)
    return text
