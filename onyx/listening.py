"""Listening sockets: bound all together, before the first process is started.

So a network starts as a whole or not at all, and port 0 becomes a real port that everybody can be
told.  Names of hosts are resolved here; where one has several addresses the first that this
machine has is taken.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from overlay.gateway import GatewayTable
from overlay.nodes import Address, BrokerNode, RegistrationNode, standby_name
from overlay.plain_text import plain
from overlay.topology import AdminOptions, Topology, TopologyError

BACKLOG = 1024  # of those who come all at once
COMMAND_MAX = 80  # characters of the command of a process that has a port


@dataclass(frozen=True, slots=True)
class NodeSockets:
    """The listening sockets of a process: for sources and users; for other processes of the
    network, which clients can not keep out; and where it says how it is, if anywhere."""

    clients: socket.socket
    links: socket.socket
    admin: socket.socket | None = None

    def __enter__(self) -> NodeSockets:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def listen(self) -> None:
        """From now on, where they do not yet."""
        self.clients.listen(BACKLOG)
        self.links.listen(BACKLOG)

    @property
    def fds(self) -> tuple[int, ...]:
        """In the order of the fields."""
        return tuple(each.fileno() for each in self._all)

    def close(self) -> None:
        for each in self._all:
            each.close()

    @property
    def _all(self) -> tuple[socket.socket, ...]:
        return (self.clients, self.links, *([] if self.admin is None else [self.admin]))


@dataclass(frozen=True, slots=True)
class NodeProcess:
    """A process of a network: a node, or its standby.

    ``node`` with the addresses where this one listens; ``keys``: of these in the file; ``waits``
    until it may listen, as there is another one."""

    name: str
    node: RegistrationNode | BrokerNode
    keys: tuple[str, str]
    waits: bool
    admin: AdminOptions | None

    @property
    def admin_address(self) -> Address | None:
        """Where it says how it is, if anywhere."""
        return None if self.admin is None else self.admin.address(self.node.listen)


def bind_all(topology: Topology, stack: ExitStack, file: str) -> dict[str, NodeSockets]:
    """The listening sockets of every process, by its name, closed when ``stack`` unwinds.  Of one
    that waits they keep the addresses for it.

    TopologyError, naming ``file``, the key and the address, when one cannot be had.
    """
    return {
        process.name: stack.enter_context(bind_process(process, file))
        for process in processes_of(topology)
    }


def bind_gateway(
    gateway: GatewayTable, admin: AdminOptions | None, stack: ExitStack, file: str
) -> tuple[socket.socket, ...]:
    """That of a gateway's pages, and where there are admin addresses its own; as ``bind_all``."""
    page = stack.enter_context(bind(gateway.listen, file, "gateway.listen"))
    return page, *_bind_admin(admin, page, gateway.listen, stack, file)


def _bind_admin(
    admin: AdminOptions | None, at: socket.socket, listen: Address, stack: ExitStack, file: str
) -> Iterable[socket.socket]:
    """Of the process that is bound ``at`` the address to ``listen`` at, if there are such."""
    if admin is not None:
        wanted = admin.address(Address(*bound_address(at, listen)))
        yield stack.enter_context(bind(wanted, file, "admin", listens=False))


def processes_of(topology: Topology) -> Iterable[NodeProcess]:
    """Of every node, in the order of the file."""
    admin = topology.admin
    for index, node in enumerate(topology.registration):
        is_only = len(topology.registration) == 1
        key = "registration" if is_only else f"registration[{index}]"
        yield from _of_node(node, key, admin)
    for index, broker in enumerate(topology.brokers):
        yield from _of_node(broker, f"broker[{index}]", admin)


def process_of(topology: Topology, name: str) -> NodeProcess:
    """By its name; KeyError."""
    return {process.name: process for process in processes_of(topology)}[name]


def _of_node(
    node: RegistrationNode | BrokerNode, key: str, admin: AdminOptions | None
) -> Iterable[NodeProcess]:
    def made(name: str, own: RegistrationNode | BrokerNode, listen: str, links: str) -> NodeProcess:
        keys = f"{key}.{listen}", f"{key}.{links}"
        return NodeProcess(name, own, keys, node.has_standby, admin)

    yield made(node.id, node, "listen", "links")
    if node.has_standby:
        yield made(standby_name(node.id), node.as_standby(), "standby", "standby_links")


def bind_process(process: NodeProcess, file: str) -> NodeSockets:
    """TopologyError as in ``bind_all``."""
    node, listens = process.node, not process.waits
    with ExitStack() as stack:
        clients = stack.enter_context(bind(node.listen, file, process.keys[0], listens=listens))
        links = stack.enter_context(bind(node.links, file, process.keys[1], listens=listens))
        admin = _bind_admin(process.admin, clients, node.listen, stack, file)
        sockets = NodeSockets(clients, links, *admin)
        stack.pop_all()
        return sockets


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
    raise TopologyError(file, key, f'"{address}" {_say(failure, address.port)}') from None


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


def holder_of_port(port: int) -> str:
    """The process of this machine that has a TCP port, "process 7 (nginx)"; "another process" where
    that cannot be told."""
    sockets: set[str] = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):  # there is no /proc
            for line in Path("/proc/net", table).read_text().splitlines()[1:]:
                own, inode = line.split()[1], line.split()[9]
                if int(own.rpartition(":")[2], 16) == port:
                    sockets.add(f"socket:[{inode}]")
    for pid in sorted(int(path.name) for path in Path("/proc").glob("[0-9]*")) if sockets else ():
        process = Path("/proc", str(pid))
        with suppress(OSError):  # it is another account's, or has just ended
            if any(str(file.readlink()) in sockets for file in (process / "fd").iterdir()):
                words = (process / "cmdline").read_bytes().replace(b"\0", b" ").strip()
                command = plain(words.decode(errors="replace"), "")
                return f"process {pid} ({command[:COMMAND_MAX]})"
    return "another process"


def _say(error: OSError, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"is already in use by {holder_of_port(port)}"
    if error.errno == errno.EADDRNOTAVAIL:
        return "is no address of this machine"
    if error.errno == errno.EACCES:
        return "may not be used: ports below 1024 need special rights"
    return f"cannot be listened at: {error.strerror}"
