"""Which network a verb talks to: ``--registration``, ``--topology`` or ONYX_REGISTRATION; and on
which data directory it works: ``--data`` or ``--topology``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from onyx.cli.contexts import NO_CONTEXT, Context, read_contexts
from onyx.cli.values import has_terminal
from onyx.cli.verb import IDENTITY, JSON, NETWORK, add_arguments
from onyx.data_directory import DataDirectory
from onyx.errors import UsageError
from onyx.identity.known_networks import identity_of
from onyx.logs import USUAL_LOGS, log_options
from overlay.log_options import LogOptions
from overlay.nodes import Address
from overlay.topology import load_topology

VARIABLE = "ONYX_REGISTRATION"


def add_network_arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser, IDENTITY)
    add_network_choice(parser)


def add_network_choice(parser: argparse._ActionsContainer) -> None:
    """The options of ``registration_address``."""
    add_arguments(parser.add_mutually_exclusive_group(), NETWORK)


def add_client_arguments(parser: argparse.ArgumentParser) -> None:
    """What every verb that asks and prints ends with."""
    add_arguments(parser, JSON)
    add_network_arguments(parser)


def registration_address(arguments: argparse.Namespace) -> str:
    """Where the registration service is, as the command line, the topology file or the environment
    says: its address, or "host:port,host:port" with that of its standby."""
    if arguments.registration is not None:
        return parse_addresses(arguments.registration, "--registration")
    if arguments.topology is not None:
        return _address_in(arguments.topology)
    context = context_of(arguments)
    if context.registration:
        return context.registration
    text = os.environ.get(VARIABLE)
    if not text:
        raise UsageError(
            f"which network? give --registration HOST:PORT or --topology FILE, set {VARIABLE}, "
            "or onyx context add one"
        )
    return parse_addresses(text, VARIABLE)


def context_of(arguments: argparse.Namespace) -> Context:
    """The context by which a network is found, with credentials where nobody says others; an empty
    one where it is found otherwise."""
    name = arguments.context
    if name is None and (
        arguments.registration is not None
        or arguments.topology is not None
        or os.environ.get(VARIABLE)
    ):
        return NO_CONTEXT
    contexts = read_contexts()
    name = contexts.used if name is None else name
    return contexts.named(name) if name else NO_CONTEXT


def parse_addresses(text: str, what: str) -> str:
    """One address or several, with a comma between them; UsageError as of ``parse_address``."""
    return ",".join(str(parse_address(one, what)) for one in text.split(","))


def parse_address(text: str, what: str) -> Address:
    """ "host:port" with a port that can be dialled; UsageError naming ``what`` otherwise."""
    if "://" in text:
        from onyx.registration_client import NO_URL, url_as_address  # noqa: PLC0415 - seldom

        raise UsageError(f'{what} "{text}" is a URL; write {url_as_address(text)}: {NO_URL}')
    try:
        address = Address.parse(text)
    except ValueError as error:
        raise UsageError(f"{what} {error}") from None
    if not address.port:
        raise UsageError(f'{what} "{text}": the port is out of range, expected 1 to 65535')
    return address


def _address_in(file: Path) -> str:
    """Of a topology with port 0, what its launcher has written into the data directory."""
    topology = load_topology(file)
    node = topology.registration[0]
    if all(address.port for address in node.clients_at):
        return topology.where(node.id)
    resolved = DataDirectory(topology.data_directory).topology_file
    if not resolved.exists():
        raise UsageError(
            f"{file} leaves the port of the registration service open, and {resolved} is not "
            "there to say what it became; is the network running?"
        )
    resolved_topology = load_topology(resolved)
    return resolved_topology.where(resolved_topology.registration[0].id)


def log_reader(arguments: argparse.Namespace) -> Callable[[], LogOptions | None]:
    """How a process logs from its start on, and at SIGHUP: as the command line says, or the
    ``--topology`` by then; None where the terminal that it had is closed."""
    had_terminal, file = has_terminal(), arguments.topology

    def read() -> LogOptions | None:
        if had_terminal and not has_terminal():
            return None
        return log_options(arguments, USUAL_LOGS if file is None else load_topology(file).log)

    return read


WHERE = (
    "--data DIR, or --topology FILE with the data directory in it, or set "
    f"{VARIABLE} or use a context (onyx context) of one that you have started"
)


def add_data_options(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    add_arguments(where, {"--data DIR": "the data directory", "--topology FILE": "of the network"})


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
