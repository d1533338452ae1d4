"""``onyx restore``: make a data directory of what ``onyx backup`` has written."""

from __future__ import annotations

import argparse

from onyx.cli.values import counted, tell_of
from onyx.cli.verb import Subparsers, add_verb

DETAILS = """\
Everything is checked: the digest of each file, and each row of each store. If something
is damaged it is named, and nothing is left behind.

The network that was copied must not run any more when the restored one is started: it
has the same keys and addresses. Sources and users that were told more after the backup
was made are told store-lost when they meet the restored network; begun anew, they go on
with what there is.

Exit code 74: the backup is damaged; 66: there is none; 73: DIR is not empty, or cannot be
written."""

EXAMPLES = """\
  onyx restore /var/backups/figure4-20260301T040000Z.tar.zst --data /srv/onyx/figure4
  onyx up /srv/onyx/figure4/topology.toml
"""


def add_parser(subparsers: Subparsers) -> None:
    takes = {
        "file FILE": "from onyx backup",
        "--data DIR!": "the data directory, which is new or empty",
        "--json": "print JSON, one object",
    }
    add_verb(subparsers, "restore", "", run, takes, details=DETAILS, examples=EXAMPLES)


def run(arguments: argparse.Namespace) -> None:
    # It takes long to load, and to show help nobody needs it.
    from onyx.network_backup import described, restore  # noqa: PLC0415

    directory = arguments.data.absolute()
    manifest = restore(arguments.file, directory)
    facts = {"file": str(arguments.file), **described(manifest), "data": str(directory)}
    text = (
        f"{directory}: network {manifest.network} as it was at {manifest.when}, "
        f"{counted(len(manifest.stores), 'store')}, all whole\n"
        "Stop the network that was copied, if it runs; then\n"
        f"  onyx up {directory}/topology.toml\n"
        "Sources and users that were told more since then are told store-lost; start them anew."
    )
    tell_of(arguments, facts, text)
