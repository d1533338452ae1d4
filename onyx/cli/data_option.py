"""``--data`` and ``--topology``: which network, for verbs that work on its data directory."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from onyx.cli.contexts import read_contexts
from onyx.cli.network_option import VARIABLE, parse_address
from onyx.data_directory import DataDirectory
from onyx.errors import UsageError
from onyx.identity.known_networks import identity_of
from overlay.topology import load_topology

WHERE = (
    "--data DIR, or --topology FILE with the data directory in it, or set "
    f"{VARIABLE} or use a context (onyx context) of one that you have started"
)


def add_data_options(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--data", metavar="DIR", type=Path, help="the data directory")
    where.add_argument("--topology", metavar="FILE", type=Path, help="of the network")


def data_directory_of(arguments: argparse.Namespace) -> DataDirectory:
    """That of the network which is meant; UsageError when that is not said."""
    if arguments.data is not None:
        return DataDirectory(arguments.data)
    if arguments.topology is not None:
        return DataDirectory(load_topology(arguments.topology).data_directory)
    contexts = read_contexts()
    text, what = os.environ.get(VARIABLE), VARIABLE
    if not text and contexts.used:
        text, what = contexts.named(contexts.used).registration, f"the context {contexts.used}"
    if text:
        where = parse_address(text.partition(",")[0], what)
        identity = identity_of(where.host, where.port)
        if identity is None:
            raise UsageError(f"you have started no network at {where}; give {WHERE}")
        return DataDirectory(identity.parent)
    raise UsageError(f"which network? give {WHERE}")
