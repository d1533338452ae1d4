"""Redis: publish/subscribe of a Redis server; each message is confirmed by the number of its
subscribers."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.network.service_protocol import SUBJECT, Arrived


class Redis:
    """It has no state."""

    def declarations(self, number: int) -> Sequence[bytes]:
        return ()

    def subscription(self, number: int) -> bytes:
        return _command(b"SUBSCRIBE", SUBJECT)

    def publisher(self) -> bytes:
        return b""

    def publications(self, messages: Sequence[bytes]) -> tuple[bytes, int]:
        said = b"".join(_command(b"PUBLISH", SUBJECT, message) for message in messages)
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
