"""Amqp: AMQP 0-9-1, as much of it as RabbitMQ must be told.

::

    frame    kind (1)  channel (2)  size (4)  payload  0xCE
    method   class (2)  method (2)  arguments
    header   class (2)  0 (2)  size of the body (8)  flags (2)  properties

A fanout exchange, and a durable queue of each subscriber.  Messages are persistent and the
publisher's are confirmed; a consumer acknowledges all that it has been given so far.  All that is
said first is said at once, and answered in its order.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from benchmarks.network.service_protocol import SUBJECT, Arrived

_METHOD, _HEADER, _BODY = 1, 2, 3
_FRAME = struct.Struct(">BHI")
_FRAME_MAX = 131_072
_PREFETCH = 10_000  # messages of a consumer that are not acknowledged
_DURABLE = b"\x02"
_NO_TABLE = bytes(4)
_PERSISTENT = b"\x10\x00\x02"  # the one property that is given
_CONNECTION_START_OK, _CONNECTION_TUNE_OK, _CONNECTION_OPEN = (10, 11), (10, 31), (10, 40)
_CONNECTION_CLOSE, _CHANNEL_CLOSE = (10, 50), (20, 40)
_CHANNEL_OPEN, _CONFIRM_SELECT = (20, 10), (85, 10)
_EXCHANGE_DECLARE, _EXCHANGE_DECLARE_OK = (40, 10), (40, 11)
_QUEUE_DECLARE, _QUEUE_BIND, _QUEUE_BIND_OK = (50, 10), (50, 20), (50, 21)
_QOS, _CONSUME, _CONSUME_OK = (60, 10), (60, 20), (60, 21)
_PUBLISH, _DELIVER, _ACK, _NACK = (60, 40), (60, 60), (60, 80), (60, 120)


class Amqp:
    """What is published and not confirmed; the message that is being received."""

    def __init__(self) -> None:
        self._published = 0
        self._unconfirmed: set[int] = set()
        self._body = bytearray()
        self._left = 0

    def declarations(self, number: int) -> Sequence[bytes]:
        kind = bytes(2) + _text(SUBJECT) + _text(b"fanout") + _DURABLE + _NO_TABLE
        said = [_begin() + _method(_EXCHANGE_DECLARE, kind)]
        for consumer in range(number):
            queue = bytes(2) + _queue(consumer)
            said.append(
                _method(_QUEUE_DECLARE, queue + _DURABLE + _NO_TABLE)
                + _method(_QUEUE_BIND, queue + _text(SUBJECT) + _text(b"") + b"\0" + _NO_TABLE)
            )
        return said

    def subscription(self, number: int) -> bytes:
        consume = bytes(2) + _queue(number) + _text(b"") + b"\0" + _NO_TABLE
        prefetch = struct.pack(">IHB", 0, _PREFETCH, 0)
        return _begin() + _method(_QOS, prefetch) + _method(_CONSUME, consume)

    def publisher(self) -> bytes:
        return _begin() + _method(_CONFIRM_SELECT, b"\0")

    def publications(self, messages: Sequence[bytes]) -> tuple[bytes, int]:
        publish = _method(_PUBLISH, bytes(2) + _text(SUBJECT) + _text(b"") + b"\0")
        said = []
        for message in messages:
            header = struct.pack(">HHQ", 60, 0, len(message)) + _PERSISTENT
            said += [publish, _frame(_HEADER, header)]
            said += [
                _frame(_BODY, message[at : at + _FRAME_MAX - 8])
                for at in range(0, len(message), _FRAME_MAX - 8)
            ]
            self._published += 1
            self._unconfirmed.add(self._published)
        return b"".join(said), len(messages)

    def take(self, received: bytearray) -> Arrived:
        arrived = Arrived()
        at = delivered = 0
        while len(received) - at >= _FRAME.size:
            kind, _, size = _FRAME.unpack_from(received, at)
            start, end = at + _FRAME.size, at + _FRAME.size + size
            if len(received) <= end:
                break
            payload = bytes(received[start:end])
            at = end + 1
            if kind == _METHOD:
                delivered = self._take_method(payload, arrived) or delivered
            elif kind == _HEADER:
                (self._left,) = struct.unpack_from(">Q", payload, 4)
            elif kind == _BODY:
                self._body += payload
                self._left -= len(payload)
                if not self._left:
                    arrived.messages.append(bytes(self._body))
                    self._body.clear()
        del received[:at]
        if delivered:
            arrived.reply = _method(_ACK, struct.pack(">QB", delivered, True))
        return arrived

    def _take_method(self, payload: bytes, arrived: Arrived) -> int:
        """The number of what is delivered, 0 if it is something else."""
        method = struct.unpack_from(">HH", payload)
        if method == _DELIVER:
            number: int = struct.unpack_from(">Q", payload, 5 + payload[4])[0]
            return number
        if method == _ACK:
            number, several = struct.unpack_from(">QB", payload, 4)
            of = (
                {one for one in self._unconfirmed if one <= number}
                if several
                else {number} & self._unconfirmed
            )
            self._unconfirmed -= of
            arrived.confirmed += len(of)
        elif method in (_EXCHANGE_DECLARE_OK, _QUEUE_BIND_OK, _CONSUME_OK):
            arrived.confirmed += 1
        elif method in (_CONNECTION_CLOSE, _CHANNEL_CLOSE, _NACK):
            raise ConnectionError(f"RabbitMQ refuses: {payload[4:]!r}")
        return 0


def _begin() -> bytes:
    """A connection, and channel 1 on it."""
    start = _NO_TABLE + _text(b"PLAIN") + _long_text(b"\0guest\0guest") + _text(b"en_US")
    return (
        b"AMQP\x00\x00\x09\x01"
        + _method(_CONNECTION_START_OK, start, 0)
        + _method(_CONNECTION_TUNE_OK, struct.pack(">HIH", 1, _FRAME_MAX, 0), 0)
        + _method(_CONNECTION_OPEN, _text(b"/") + _text(b"") + b"\0", 0)
        + _method(_CHANNEL_OPEN, _text(b""))
    )


def _queue(consumer: int) -> bytes:
    return _text(b"q%d" % consumer)


def _method(method: tuple[int, int], arguments: bytes, channel: int = 1) -> bytes:
    return _frame(_METHOD, struct.pack(">HH", *method) + arguments, channel)


def _frame(kind: int, payload: bytes, channel: int = 1) -> bytes:
    return _FRAME.pack(kind, channel, len(payload)) + payload + b"\xce"


def _text(text: bytes) -> bytes:
    return bytes([len(text)]) + text


def _long_text(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text
