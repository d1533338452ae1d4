"""A gateway beside a network that runs (beside.py).

Nothing of the gateway itself is loaded here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import chain
from typing import TYPE_CHECKING

from onyx.beside import running_beside
from onyx.errors import UsageError
from onyx.identity.known_networks import is_loopback
from onyx.listening import bound_address
from onyx.release import lacks
from overlay.gateway import GatewayTable
from overlay.nodes import Address
from overlay.topology import TopologyError

if TYPE_CHECKING:
    from onyx.launcher import Report, RunningNetwork

NAME = "gateway"
MODULE = "onyx.gateway.gateway_process"


def gateway_lacks() -> str:
    """What a gateway takes and is not installed, "" where all is."""
    return lacks("gateway", starlette="starlette", hypercorn="hypercorn")


def check_gateway(gateway: GatewayTable, file: str) -> None:
    """TopologyError or UsageError where a gateway cannot run, or would be open to strangers."""
    if why := gateway_lacks():
        raise UsageError(f"a gateway {why}")
    if gateway.tls_certificate is None and not is_loopback(gateway.listen.host):
        reason = f'"{gateway.listen}" is not of this machine alone: expected tls_certificate'
        raise TopologyError(file, "gateway.listen", reason)


@asynccontextmanager
async def running_gateway(
    network: RunningNetwork, gateway: GatewayTable, report: Report
) -> AsyncIterator[str]:
    """The address of its page, as a URL, once it is there; it ends with the block.  The network was
    launched with the ``gateway``.

    LaunchError when it does not come up.
    """
    listener = network.gateway_sockets[0]
    fds = tuple(each.fileno() for each in network.gateway_sockets)
    options = {
        "--certificate": gateway.tls_certificate,
        "--key": gateway.tls_key,
        "--credentials": network.identity.client,
        "--topology-file": network.topology_file,
    }
    said = [(name, str(value)) for name, value in options.items() if value is not None]
    said += [("--name", name) for name in gateway.names]
    said += [("--origin", origin) for origin in gateway.origins]
    words = [MODULE, network.registration, gateway.listen.host, *chain.from_iterable(said)]
    words += ["--listen-fds", *map(str, fds)]
    async with running_beside(network, NAME, words, report, fds):
        scheme = "http" if gateway.tls_certificate is None else "https"
        yield f"{scheme}://{Address(*bound_address(listener, gateway.listen))}/"
