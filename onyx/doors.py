"""The two doors of a node's process, as the topology bounds them: one for sources and users, one
for the other processes of the network."""

from __future__ import annotations

import socket

import trio

from onyx.listening import NodeSockets
from overlay.limits import Limits
from overlay.link.door import CLIENT_ROLES, Door, DoorLimits
from overlay.link.node_limits import NodeLimits
from overlay.link.open_files import allow_connections
from overlay.link.principal import PROCESS_ROLES
from overlay.topology import Topology


def doors_of(sockets: NodeSockets, topology: Topology) -> tuple[Door, Door]:
    """The door of clients, the door of links; whoever runs them closes what they listen with, and
    the sockets stay."""
    limits = topology.limits
    connections = allow_connections(limits, len(topology.brokers), gives_way=True)
    clients = DoorLimits.of(limits, connections.clients, is_of_links=False)
    links = DoorLimits.of(limits, connections.links, is_of_links=True)
    return (
        Door([_listener(sockets.clients)], CLIENT_ROLES, clients),
        Door([_listener(sockets.links)], PROCESS_ROLES, links),
    )


def node_limits(limits: Limits, caution: int = 0) -> NodeLimits:
    """What the buffers of a process may take; in ``caution`` turns at first one frame is handled
    each."""
    return NodeLimits(cautious_turns=caution).bounded(limits)


def _listener(listener: socket.socket) -> trio.SocketListener:
    own = listener.dup()
    own.setblocking(False)
    return trio.SocketListener(trio.socket.from_stdlib_socket(own))
