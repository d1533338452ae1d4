"""Stomp: STOMP 1.2, as much of it as ActiveMQ must be told.

::

    COMMAND\\n  name:value\\n ...  \\n  body  \\0

Durable subscriptions of a topic.  A RECEIPT confirms each persistent message; a subscriber
acknowledges all that it has been given so far.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.network.service_protocol import SUBJECT, Arrived

_TOPIC = b"destination:/topic/" + SUBJECT
_PREFETCH = b"activemq.prefetchSize:1000"


class Stomp:
    """It has no state."""

    def declarations(self, number: int) -> Sequence[bytes]:
        return ()

    def subscription(self, number: int) -> bytes:
        name = b"s%d" % number
        durable = b"activemq.subscriptionName:" + name
        subscribe = (b"id:1", _TOPIC, b"ack:client", _PREFETCH, durable, b"receipt:1")
        return _connect(name) + _frame(b"SUBSCRIBE", *subscribe)

    def publisher(self) -> bytes:
        return _connect(b"publisher")

    def publications(self, messages: Sequence[bytes]) -> tuple[bytes, int]:
        send = (_TOPIC, b"persistent:true", b"receipt:1")
        said = [
            _frame(b"SEND", *send, b"content-length:%d" % len(message), body=message)
            for message in messages
        ]
        return b"".join(said), len(messages)

    def take(self, received: bytearray) -> Arrived:
        arrived = Arrived()
        at = 0
        while True:
            while received[at : at + 1] == b"\n":  # between frames
                at += 1
            end = received.find(b"\n\n", at)
            if end < 0:
                break
            command, *lines = bytes(received[at:end]).split(b"\n")
            parted = (line.partition(b":") for line in lines)
            headers = {name: value for name, _, value in parted}
            start = end + 2
            size = headers.get(b"content-length")
            end = received.find(b"\0", start) if size is None else start + int(size)
            if end < 0 or len(received) <= end:
                break
            self._take_frame(command, headers, bytes(received[start:end]), arrived)
            at = end + 1
        del received[:at]
        return arrived

    def _take_frame(
        self, command: bytes, headers: dict[bytes, bytes], body: bytes, arrived: Arrived
    ) -> None:
        if command == b"MESSAGE":
            arrived.messages.append(body)
            arrived.reply = _frame(b"ACK", b"id:" + headers[b"ack"])
        elif command == b"RECEIPT":
            arrived.confirmed += 1
        elif command != b"CONNECTED":
            raise ConnectionError(f"ActiveMQ refuses: {headers.get(b'message', body)!r}")


def _connect(client: bytes) -> bytes:
    return _frame(b"CONNECT", b"accept-version:1.2", b"host:benchmark", b"client-id:" + client)


def _frame(command: bytes, *headers: bytes, body: bytes = b"") -> bytes:
    return b"\n".join([command, *headers, b"", body]) + b"\0"
