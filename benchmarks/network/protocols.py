"""Protocols of other services, as far as publishing and subscribing to one subject needs them.

Each subscriber has a connection.  A service confirms a subscription, and what was published, one
way or another; whoever publishes many messages waits for that.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

_SUBJECT = b"benchmark"
_LENGTH = struct.Struct(">I")


@dataclass(slots=True)
class Arrived:
    """What bytes from a service meant: messages, so many confirmations, and what it is to be
    told at once."""

    messages: list[bytes] = field(default_factory=list)
    confirmed: int = 0
    reply: bytes = b""


class ServiceProtocol(Protocol):
    """One service's, without a state: whoever uses it keeps the bytes that are not whole yet."""

    def subscription(self, number: int) -> bytes:
        """What subscriber ``number``, from 0, says first; it is confirmed once."""

    def publisher(self) -> bytes:
        """What a publisher says first; not confirmed."""

    def publications(self, messages: Sequence[bytes]) -> tuple[bytes, int]:
        """Messages to be published, and how often they will be confirmed, all together."""

    def take(self, received: bytearray) -> Arrived:
        """Takes what is whole off the front."""


def receive(
    protocol: ServiceProtocol, connection: socket.socket, received: bytearray, bytes_max: int
) -> Arrived:
    """What comes next on a connection, of which ``received`` is not whole yet; it is told what it
    is to be told at once.  ConnectionError when the service has closed it."""
    data = connection.recv(bytes_max)
    if not data:
        raise ConnectionError("the service has closed the connection")
    received += data
    arrived = protocol.take(received)
    if arrived.reply:
        connection.sendall(arrived.reply)
    return arrived


class Framed:
    """That of ``lxml_service``: a length of four bytes, then the message; one of no bytes confirms.

    A connection begins with four bytes: 0 from a publisher, from a subscriber its number from 1.
    """

    def subscription(self, number: int) -> bytes:
        return _LENGTH.pack(number + 1)

    def publisher(self) -> bytes:
        return _LENGTH.pack(0)

    def publications(self, messages: Sequence[bytes]) -> tuple[bytes, int]:
        framed = b"".join(_LENGTH.pack(len(message)) + message for message in messages)
        return framed, len(messages)

    def take(self, received: bytearray) -> Arrived:
        arrived = Arrived()
        at = 0
        while len(received) - at >= 4:
            end = at + 4 + _LENGTH.unpack_from(received, at)[0]
            if len(received) < end:
                break
            if end == at + 4:
                arrived.confirmed += 1
            else:
                arrived.messages.append(bytes(received[at + 4 : end]))
            at = end
        del received[:at]
        return arrived


class Nats:
    """NATS core: a PONG confirms all that was said before the PING."""

    _BEGIN = b'CONNECT {"verbose":false,"pedantic":false}\r\n'

    def subscription(self, number: int) -> bytes:
        return self._BEGIN + b"SUB " + _SUBJECT + b" 1\r\nPING\r\n"

    def publisher(self) -> bytes:
        return self._BEGIN

    def publications(self, messages: Sequence[bytes]) -> tuple[bytes, int]:
        lines = [b"PUB %b %d\r\n%b\r\n" % (_SUBJECT, len(one), one) for one in messages]
        return b"".join([*lines, b"PING\r\n"]), 1

    def take(self, received: bytearray) -> Arrived:
        arrived = Arrived()
        at = 0
        while (end := received.find(b"\r\n", at)) >= 0:
            words = bytes(received[at:end]).split()
            after = end + 2
            if words[:1] == [b"MSG"]:
                size = int(words[-1])
                if len(received) < after + size + 2:
                    break
                arrived.messages.append(bytes(received[after : after + size]))
                after += size + 2
            elif words == [b"PING"]:
                arrived.reply += b"PONG\r\n"
            elif words == [b"PONG"]:
                arrived.confirmed += 1
            elif words[:1] == [b"-ERR"]:
                raise ConnectionError(bytes(received[at:end]).decode(errors="replace"))
            at = after
        del received[:at]
        return arrived


class Redis:
    """Redis publish/subscribe: each message is confirmed by the number of its subscribers."""

    def subscription(self, number: int) -> bytes:
        return _command(b"SUBSCRIBE", _SUBJECT)

    def publisher(self) -> bytes:
        return b""

    def publications(self, messages: Sequence[bytes]) -> tuple[bytes, int]:
        said = b"".join(_command(b"PUBLISH", _SUBJECT, message) for message in messages)
        return said, len(messages)

    def take(self, received: bytearray) -> Arrived:
        arrived = Arrived()
        at = 0
        while (found := _resp(received, at)) is not None:
            value, at = found
            if isinstance(value, list) and value[0] == b"message":
                arrived.messages.append(value[2])
            else:
                arrived.confirmed += 1
        del received[:at]
        return arrived


def _command(*words: bytes) -> bytes:
    parts = [b"*%d\r\n" % len(words)]
    parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"".join(parts)


def _resp(received: bytearray, at: int) -> tuple[bytes | list[bytes], int] | None:
    """A number, a string or a list of them, and where it ends; None if it is not whole."""
    end = received.find(b"\r\n", at)
    if end < 0:
        return None
    kind, rest, after = received[at : at + 1], bytes(received[at + 1 : end]), end + 2
    if kind == b"-":
        raise ConnectionError(rest.decode(errors="replace"))
    if kind == b"$":
        size = int(rest)
        if len(received) < after + size + 2:
            return None
        return bytes(received[after : after + size]), after + size + 2
    if kind != b"*":
        return rest, after
    items = []
    for _ in range(int(rest)):
        found = _resp(received, after)
        if found is None:
            return None
        item, after = found
        assert isinstance(item, bytes)
        items.append(item)
    return items, after


PROTOCOLS: Mapping[str, ServiceProtocol] = {
    "framed": Framed(),
    "nats": Nats(),
    "redis": Redis(),
}
