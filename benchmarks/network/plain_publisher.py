"""Publishing to a service that is not Onyx, on one socket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from benchmarks.network.service_protocol import ServiceProtocol, connect, receive

_READ_BYTES = 1 << 16
_AT_ONCE = 32  # messages that are written together
_OPEN_MAX = 256  # messages that are not confirmed, as many as a DataSource has open


class PlainPublisher:
    """A connection to publish on, until ``close``.  Blocks: for a thread."""

    def __init__(self, protocol: ServiceProtocol, port: int) -> None:
        self._protocol = protocol
        self._connection = connect(port)
        self._connection.sendall(protocol.publisher())
        self._received = bytearray()
        self._confirmed = 0
        self._awaited = 0

    def close(self) -> None:
        self._connection.close()

    def publish(self, messages: Iterator[bytes]) -> None:
        """All of them; returns when the service has confirmed all."""
        open_batches: list[int] = []  # the confirmation that ends each
        while batch := list(islice(messages, _AT_ONCE)):
            open_batches.append(self._send(batch))
            if len(open_batches) * _AT_ONCE >= _OPEN_MAX:
                self._wait(open_batches.pop(0))
        self._wait(self._awaited)

    def _send(self, batch: Sequence[bytes]) -> int:
        said, confirmations = self._protocol.publications(batch)
        self._connection.sendall(said)
        self._awaited += confirmations
        return self._awaited

    def _wait(self, confirmation: int) -> None:
        while self._confirmed < confirmation:
            arrived = receive(self._protocol, self._connection, self._received, _READ_BYTES)
            self._confirmed += arrived.confirmed
