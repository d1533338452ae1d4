"""``onyx backup``: copy a whole network into one file, while it runs or not."""

from __future__ import annotations

import argparse

from onyx.cli.network_option import add_data_options, data_directory_of
from onyx.cli.values import counted, tell_of
from onyx.cli.verb import Subparsers, add_arguments, add_verb

DETAILS = """\
All processes of the network have their data on this machine. Their stores are copied as
they are at one moment, for which commits wait some milliseconds; nothing else waits. So
a restored network is what a power cut at that moment would have left: its processes
agree, and what was accepted and not delivered by then is delivered.

FILE is a tar archive compressed by zstd, with the topology, the stores, and the keys of
the network, so it is for its owner only (mode 0600); keep it as you keep those. It is
read again and held against its digests before it gets its name. In a directory it gets
the name of the network and the time. Beside it there has to be room for the largest
store as well. Archives of messages (onyx up --archive) are not in it.

Rows in a PostgreSQL server are copied with pg_dump, and not by this command.

Exit code 74: a store is not whole (onyx store verify says why); 73: it cannot be written;
78: not all of the network is here."""

EXAMPLES = """\
  onyx backup /var/backups                    of ONYX_REGISTRATION, or the context in use
  onyx backup figure4.tar.zst --data ~/.local/state/onyx/figure4
  onyx restore figure4.tar.zst --data /srv/onyx/figure4
"""


def add_parser(subparsers: Subparsers) -> None:
    takes = {"target FILE": "a new file, or a directory for it"}
    verb = add_verb(subparsers, "backup", "", run, takes, details=DETAILS, examples=EXAMPLES)
    add_data_options(verb)
    add_arguments(verb, {"--json": "print JSON, one object"})


def run(arguments: argparse.Namespace) -> None:
    # It takes long to load, and to show help nobody needs it.
    from onyx.network_backup import back_up, described  # noqa: PLC0415

    made = back_up(data_directory_of(arguments), arguments.target)
    size = made.path.stat().st_size
    held_ms, manifest = made.held_seconds * 1000, made.manifest
    facts = {**described(manifest), "bytes": size, "held_ms": round(held_ms, 3)}
    text = (
        f"{made.path}: network {manifest.network} at {manifest.when}, "
        f"{counted(len(manifest.stores), 'store')}, {size:,} bytes, read again and good; "
        f"commits waited {held_ms:.1f} ms"
    )
    tell_of(arguments, {"file": str(made.path), **facts}, text)
