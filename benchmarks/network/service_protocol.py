"""ServiceProtocol: what is said to other services on a socket, and what they say; no sockets here.

Messages are published on one subject, ``benchmark``.  A service confirms a declaration, a
subscription, and what was published, one way or another; whoever publishes many messages waits for
that.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

SUBJECT = b"benchmark"
PATIENCE_SECONDS = 120.0  # a service that says nothing for so long is broken


@dataclass(slots=True)
class Arrived:
    """What bytes from a service meant: messages, so many confirmations, and what it is to be
    told at once."""

    messages: list[bytes] = field(default_factory=list)
    confirmed: int = 0
    reply: bytes = b""


class ServiceProtocol(Protocol):
    """One service's, on one connection, whose owner keeps the bytes that are not whole yet."""

    def declarations(self, number: int) -> Sequence[bytes]:
        """What is said once, on a connection of its own, before so many subscribers come, who may
        miss nothing from then on; each is confirmed once, before the next is said."""

    def subscription(self, number: int) -> bytes:
        """What subscriber ``number``, from 0, says first; it is confirmed once."""

    def publisher(self) -> bytes:
        """What a publisher says first; not confirmed."""

    def publications(self, messages: Sequence[bytes]) -> tuple[bytes, int]:
        """Messages to be published, and how often they will be confirmed, all together."""

    def take(self, received: bytearray) -> Arrived:
        """Takes what is whole off the front; ConnectionError for what the service refuses."""


def connect(port: int) -> socket.socket:
    """To a service of this machine; nothing on it takes longer than the patience."""
    connection = socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def receive(
    protocol: ServiceProtocol, connection: socket.socket, received: bytearray, bytes_max: int
) -> Arrived:
    """What comes next on a connection, of which ``received`` is not whole yet; it is told what it
    is to be told at once.  ConnectionError when the service has closed it, or says nothing."""
    try:
        data = connection.recv(bytes_max)
    except TimeoutError:
        raise ConnectionError(f"the service says nothing for {PATIENCE_SECONDS:g} s") from None
    if not data:
        raise ConnectionError("the service has closed the connection")
    received += data
    arrived = protocol.take(received)
    if arrived.reply:
        connection.sendall(arrived.reply)
    return arrived


def declare(protocol: ServiceProtocol, port: int, number: int) -> None:
    """Says the declarations for so many subscribers.  Blocks: for a thread."""
    with connect(port) as connection:
        received = bytearray()
        for declaration in protocol.declarations(number):
            connection.sendall(declaration)
            while not receive(protocol, connection, received, 1 << 16).confirmed:
                pass
