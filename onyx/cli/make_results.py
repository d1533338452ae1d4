"""``onyx make-results``: before an upgrade, make the results that wait for users."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from msgspec.structs import replace

from onyx.cli.values import check_known, tell_of
from onyx.cli.verb import Subparsers, add_verb
from onyx.data_directory import DataDirectory
from overlay.topology import Topology, load_topology

DETAILS = """\
Messages wait for users who are away, and their results are made when they are taken. A
release that would make other results of them refuses to start on such a store (exit
code 74). Then stop the network, say this with the release of before, and start the new
one: users get exactly the results that the former release would have given them.

Offline: the network is stopped, its data directory is there. All brokers of TOPOLOGY
that have a store in it are gone through, or those that are named. What is done is kept
when it is interrupted; said again it goes on with the rest. Results may be longer than
their messages: what waits can take more room on disk afterwards.

Exit code 75: a broker is running; 74: its store cannot be used."""

EXAMPLES = """\
  onyx make-results topologies/figure4.toml
  onyx make-results topologies/single.toml --data /var/lib/onyx
  onyx make-results topologies/figure4.toml --broker B4   on the machine of B4
"""


def add_parser(subparsers: Subparsers) -> None:
    takes = {
        "file TOPOLOGY": "as given to onyx up",
        "--broker ID...": "only this one",
        "--data DIR": "the data directory",
        "--json": "print one JSON object for each broker",
    }
    add_verb(subparsers, "make-results", "", run, takes, details=DETAILS, examples=EXAMPLES)


def run(arguments: argparse.Namespace) -> None:
    """One broker after the other."""
    # The engine takes long to load, and every other verb loads this module.
    from onyx.made_results import make_results  # noqa: PLC0415

    topology = load_topology(arguments.file)
    if arguments.data is not None:
        topology = replace(topology, data_directory=arguments.data)
    for broker in _brokers(topology, arguments):
        made = make_results(topology, broker, _told(broker))
        text = f"{broker}: the results of {made:,} messages are made"
        tell_of(arguments, {"broker": broker, "messages": made}, text)


def _brokers(topology: Topology, arguments: argparse.Namespace) -> list[str]:
    """Those that are named, or have a store."""
    if arguments.broker:
        of = f"broker of {arguments.file}"
        return [check_known(each, topology.broker_ids, "--broker", of) for each in arguments.broker]
    directory = DataDirectory(topology.data_directory)
    return [broker for broker in topology.broker_ids if directory.store_file(broker).exists()]


def _told(broker: str) -> Callable[[int, int], None]:
    """Says how far it is, for people who look on."""

    def progress(made: int, total: int) -> None:
        if sys.stderr.isatty():
            end = "\n" if made == total else ""
            print(
                f"\r{broker}: {made:,} of {total:,} messages", end=end, file=sys.stderr, flush=True
            )

    return progress
