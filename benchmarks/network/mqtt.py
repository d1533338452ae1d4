"""Mqtt: MQTT 3.1.1 with QoS 1, as much of it as Mosquitto must be told.

::

    packet   kind and flags (1)  size (1 to 4, seven bits each)  payload
    PUBLISH  topic (2 + n)  number (2)  message

Sessions of subscribers are kept while they are away.  A PUBACK with its number confirms a message.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from benchmarks.network.service_protocol import SUBJECT, Arrived

_CONNECT, _CONNACK, _PUBLISH, _PUBACK = 0x10, 0x20, 0x30, 0x40
_SUBSCRIBE, _SUBACK = 0x82, 0x90
_QOS_1 = 0x02
_NEW_SESSION, _KEPT_SESSION = 0x02, 0x00
_NUMBERS = 0xFFFF


class Mqtt:
    """The number of the message published last."""

    def __init__(self) -> None:
        self._published = 0

    def declarations(self, number: int) -> Sequence[bytes]:
        return ()

    def subscription(self, number: int) -> bytes:
        topic = struct.pack(">H", 1) + _text(SUBJECT) + b"\x01"
        return _connect(b"s%d" % number, _KEPT_SESSION) + _packet(_SUBSCRIBE, topic)

    def publisher(self) -> bytes:
        return _connect(b"publisher", _NEW_SESSION)

    def publications(self, messages: Sequence[bytes]) -> tuple[bytes, int]:
        said = []
        for message in messages:
            self._published = self._published % _NUMBERS + 1
            payload = _text(SUBJECT) + struct.pack(">H", self._published) + message
            said.append(_packet(_PUBLISH | _QOS_1, payload))
        return b"".join(said), len(messages)

    def take(self, received: bytearray) -> Arrived:
        arrived = Arrived()
        at = 0
        replies = []
        while (found := _bounds(received, at)) is not None:
            start, end = found
            kind, payload, at = received[at], bytes(received[start:end]), end
            if kind & 0xF0 == _PUBLISH:
                number = 2 + int.from_bytes(payload[:2], "big")
                arrived.messages.append(payload[number + 2 :])
                replies.append(_packet(_PUBACK, payload[number : number + 2]))
            elif kind == _PUBACK or (kind == _SUBACK and payload[-1] == 1):
                arrived.confirmed += 1
            elif kind != _CONNACK or payload[-1]:
                raise ConnectionError(f"Mosquitto refuses: {kind:#x} {payload!r}")
        del received[:at]
        arrived.reply = b"".join(replies)
        return arrived


def _connect(client: bytes, session: int) -> bytes:
    return _packet(_CONNECT, _text(b"MQTT") + bytes([4, session, 0, 0]) + _text(client))


def _packet(kind: int, payload: bytes) -> bytes:
    size, left = bytearray(), len(payload)
    while left >= 0x80:
        size.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([kind, *size, left]) + payload


def _bounds(received: bytearray, at: int) -> tuple[int, int] | None:
    """Where the payload of the packet at a place starts and ends; None if it is not whole."""
    size = shift = 0
    for place in range(at + 1, len(received)):
        size |= (received[place] & 0x7F) << shift
        shift += 7
        if received[place] < 0x80:
            end = place + 1 + size
            return (place + 1, end) if len(received) >= end else None
    return None


def _text(text: bytes) -> bytes:
    return struct.pack(">H", len(text)) + text
