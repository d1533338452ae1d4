"""``onyx gateway``: a network over HTTP, with pages to look at it."""

from __future__ import annotations

import argparse
import socket

import trio
from msgspec.structs import replace

from onyx.cli.network_option import (
    add_network_arguments,
    log_reader,
    parse_address,
    registration_address,
)
from onyx.cli.values import tell_of
from onyx.cli.verb import Subparsers, add_verb
from onyx.errors import UsageError
from onyx.gateway.options import GatewayOptions
from onyx.gateway_child import gateway_lacks
from onyx.listening import bind, bound_address
from onyx.logs import USUAL_LOGS, add_log_arguments, configure_logging
from onyx.service_manager import tell_service_manager
from overlay.gateway import DEFAULT_LISTEN
from overlay.nodes import Address

DETAILS = """\
A client of the network that speaks HTTP: publish with POST, take results as Server-Sent
Events, add and change profiles; and pages that show the network as it works, with a
playground for profiles. docs/gateway.md has the API with examples in curl.

On loopback it is whoever starts it, unless a request shows a token (onyx token issue) by
Authorization: Bearer. On another address it takes a certificate (--tls-certificate,
--tls-key), and every request shows a token. onyx up --gateway starts one with a network.

With --topology FILE it logs as its [log] says, and at SIGHUP as that says by then; where
that has [admin], metrics, /livez and /readyz are there, or where --admin says."""

EXAMPLES = """\
  onyx gateway
  onyx gateway --listen 127.0.0.1:8080 --topology topologies/figure4.toml
  onyx gateway --listen 0.0.0.0:443 --tls-certificate onyx.pem --tls-key onyx.key \\
    --host onyx.example --credentials gateway.pem
"""


SERVED = {
    "--tls-certificate FILE": "PEM, with its chain",
    "--tls-key FILE": "of the certificate, in PEM",
    "--host NAME...": "a name by which browsers know it, as in their Host header",
}


def add_parser(subparsers: Subparsers) -> None:
    takes = {
        f"--listen HOST:PORT = {DEFAULT_LISTEN}": f"where (default: {DEFAULT_LISTEN})",
        **SERVED,
        "--origin ORIGIN...": "a site whose pages may use the API (*: any, by tokens)",
        "--catalog FILE...": "a catalog of providers, for a page that draws query plans",
        "--admin HOST:PORT": "where metrics are, plain HTTP",
        "--json": "print where it is as a JSON object",
    }
    parser = add_verb(subparsers, "gateway", "", run, takes, details=DETAILS, examples=EXAMPLES)
    add_log_arguments(parser)
    add_network_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    catalog, origins = tuple(arguments.catalog), tuple(arguments.origin)
    options = replace(served_options(arguments), catalog=catalog, origins=origins)
    options.check()
    # What only a gateway needs takes long to load.
    from onyx.gateway.gateway_process import admin_address, run_gateway  # noqa: PLC0415

    registration = registration_address(arguments)

    logs = log_reader(arguments)
    configure_logging("gateway", logs() or USUAL_LOGS)
    with bind(options.listen, "--listen") as listener:
        where, url = served_at(options, listener)

        def ready() -> None:
            tell_service_manager(f"the network is at {url}", is_ready=True)
            text = f"The network is at {url}; Ctrl-C stops it"
            tell_of(arguments, {"event": "up", "url": url}, text)

        if arguments.admin is None:
            admin = admin_address(arguments.topology, where)
        else:
            admin = listen_address(arguments.admin, "--admin")
        served = registration, options, listener, ready, None, logs, admin
        trio.run(run_gateway, *served)


def served_options(arguments: argparse.Namespace) -> GatewayOptions:
    """Of ``--listen`` and SERVED; UsageError where it cannot be, or would be open to strangers."""
    if why := gateway_lacks():
        raise UsageError(f"this {why}")
    listen = listen_address(arguments.listen, "--listen")
    certificate, key = arguments.tls_certificate, arguments.tls_key
    options = GatewayOptions(listen, certificate, key, tuple(arguments.host))
    options.check()
    return options


def served_at(options: GatewayOptions, listener: socket.socket) -> tuple[Address, str]:
    """Its address, and its URL."""
    where = Address(*bound_address(listener, options.listen))
    return where, f"{'https' if options.tls_certificate else 'http'}://{where}/"


def listen_address(text: str, what: str) -> Address:
    """ "HOST:PORT", port 0 for any free one; UsageError."""
    if text.endswith(":0"):
        return Address(parse_address(f"{text[:-1]}1", what).host, 0)
    return parse_address(text, what)
