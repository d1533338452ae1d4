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
from functools import partial

from overlay.nodes import Address, BrokerNode, RegistrationNode, standby_name
from overlay.topology import Topology, TopologyError

BACKLOG = 1024  # of those who come all at once


@dataclass(frozen=True, slots=True)
class NodeSockets:
    """The listening sockets of a process: for sources and users, and for other processes of the
    network, which clients can not keep out."""

    clients: socket.socket
    links: socket.socket

    def __enter__(self) -> NodeSockets:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def listen(self) -> None:
        """From now on, where they do not yet."""
        self.clients.listen(BACKLOG)
        self.links.listen(BACKLOG)

    def close(self) -> None:
        self.clients.close()
        self.links.close()


@dataclass(frozen=True, slots=True)
class NodeProcess:
    """A process of a network: a node, or its standby.

    ``node`` with the addresses where this one listens; ``keys``: of these in the file; ``waits``
    until it may listen, as there is another one."""

    name: str
    node: RegistrationNode | BrokerNode
    keys: tuple[str, str]
    waits: bool


def bind_all(topology: Topology, stack: ExitStack, file: str) -> dict[str, NodeSockets]:
    """The listening sockets of every process, by its name, closed when ``stack`` unwinds.  Of one
    that waits they keep the addresses for it.

    TopologyError, naming ``file``, the key and the address, when one cannot be had.
    """
    return {
        process.name: stack.enter_context(bind_process(process, file))
        for process in processes_of(topology)
    }


def processes_of(topology: Topology) -> Iterable[NodeProcess]:
    """Of every node, in the order of the file."""
    for index, node in enumerate(topology.registration):
        is_only = len(topology.registration) == 1
        yield from _of_node(node, "registration" if is_only else f"registration[{index}]")
    for index, broker in enumerate(topology.brokers):
        yield from _of_node(broker, f"broker[{index}]")


def process_of(topology: Topology, name: str) -> NodeProcess:
    """By its name; KeyError."""
    return {process.name: process for process in processes_of(topology)}[name]


def _of_node(node: RegistrationNode | BrokerNode, key: str) -> Iterable[NodeProcess]:
    made = partial(NodeProcess, waits=node.has_standby)
    yield made(node.id, node, (f"{key}.listen", f"{key}.links"))
    if node.has_standby:
        keys = f"{key}.standby", f"{key}.standby_links"
        yield made(standby_name(node.id), node.as_standby(), keys)


def bind_process(process: NodeProcess, file: str) -> NodeSockets:
    """TopologyError as in ``bind_all``."""
    node, listens = process.node, not process.waits
    clients = bind(node.listen, file, process.keys[0], listens=listens)
    try:
        links = bind(node.links, file, process.keys[1], listens=listens)
        return NodeSockets(clients, links)
    except TopologyError:
        clients.close()
        raise


def bind(address: Address, file: str = "", key: str = "", *, listens: bool = True) -> socket.socket:
    """One socket, listening if it ``listens``; TopologyError as in ``bind_all``."""
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
            return _bound(family, kind, protocol, where, listens)
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


def _bound(
    family: int, kind: int, protocol: int, where: tuple[object, ...], listens: bool
) -> socket.socket:
    listener = socket.socket(family, kind, protocol)
    try:
        # A port in TIME_WAIT after the last run is free; one that somebody listens at is not.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        if listens:
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
