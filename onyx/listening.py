"""Listening sockets: bound all together, before the first process is started.

So a network starts as a whole or not at all, and port 0 becomes a real port that everybody can be
told.  Names of hosts are resolved here; where one has several addresses the first that this
machine has is taken.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass

from overlay.nodes import Address, BrokerNode, RegistrationNode
from overlay.topology import Topology, TopologyError

BACKLOG = 1024  # of those who come all at once


@dataclass(frozen=True, slots=True)
class NodeSockets:
    """The listening sockets of a node: for sources and users, and for other processes of the
    network, which clients can not keep out."""

    clients: socket.socket
    links: socket.socket

    def __enter__(self) -> NodeSockets:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.clients.close()
        self.links.close()


def bind_all(topology: Topology, stack: ExitStack, file: str) -> dict[str, NodeSockets]:
    """The listening sockets of every node, by its id, closed when ``stack`` unwinds.

    TopologyError, naming ``file``, the key and the address, when one cannot be had.
    """
    return {
        node.id: stack.enter_context(bind_node(node, file, key)) for key, node in nodes_of(topology)
    }


def nodes_of(topology: Topology) -> Iterable[tuple[str, RegistrationNode | BrokerNode]]:
    """(its table in the file, node) of every node, in the order of the file."""
    for index, node in enumerate(topology.registration):
        yield "registration" if len(topology.registration) == 1 else f"registration[{index}]", node
    for index, broker in enumerate(topology.brokers):
        yield f"broker[{index}]", broker


def bind_node(node: RegistrationNode | BrokerNode, file: str, key: str) -> NodeSockets:
    """TopologyError as in ``bind_all``."""
    clients = bind(node.listen, file, f"{key}.listen")
    try:
        return NodeSockets(clients, bind(node.links, file, f"{key}.links"))
    except TopologyError:
        clients.close()
        raise


def bind(address: Address, file: str = "", key: str = "") -> socket.socket:
    """One listening socket; TopologyError as in ``bind_all``."""
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TopologyError(file, key, f'"{address}": no such host: {reason}') from None
    failure: OSError | None = None
    for family, kind, protocol, _, where in found:
        try:
            return _listen(family, kind, protocol, where)
        except OSError as error:
            failure = failure or error
            if error.errno == errno.EADDRINUSE:
                failure = error
                break
    assert failure is not None
    raise TopologyError(file, key, f'"{address}" {_say(failure)}') from None


def bound_address(listener: socket.socket, configured: Address) -> tuple[str, int]:
    """Where others reach it: the host as it was written, the port as it is."""
    return configured.host, int(listener.getsockname()[1])


def _listen(family: int, kind: int, protocol: int, where: tuple[object, ...]) -> socket.socket:
    listener = socket.socket(family, kind, protocol)
    try:
        # A port in TIME_WAIT after the last run is free; one that somebody listens at is not.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _say(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "is already in use by another process"
    if error.errno == errno.EADDRNOTAVAIL:
        return "is no address of this machine"
    if error.errno == errno.EACCES:
        return "may not be used: ports below 1024 need special rights"
    return f"cannot be listened at: {error.strerror}"
