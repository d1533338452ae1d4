"""Framed: the protocol of ``lxml_service``: a length of four bytes, then the message.

A message of no bytes confirms.  A connection begins with four bytes: 0 from a publisher, from a
subscriber its number from 1.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from benchmarks.network.service_protocol import Arrived

_LENGTH = struct.Struct(">I")


class Framed:
    """See above; it has no state."""

    def declarations(self, number: int) -> Sequence[bytes]:
        return ()

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
