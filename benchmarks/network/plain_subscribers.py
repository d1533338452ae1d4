"""``python -m benchmarks.network.plain_subscribers``: subscribers of a service that is not Onyx.

Each has a socket.  The job is ``{"feed": FILE, "protocol": NAME, "port": PORT, "number": N}``; the
questions and answers are those of ``benchmarks.network.subscribers``.  A message is known by its
bytes: the feed's n-th gives the numbers n, n + its length and so on, in this order.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.network.feed import Feed
from benchmarks.network.helper import say
from benchmarks.network.processor import allow_many_files
from benchmarks.network.protocols import PROTOCOLS
from benchmarks.network.service_protocol import ServiceProtocol, connect, receive

_READ_BYTES = 1 << 18


@dataclass(slots=True)
class _Subscriber:
    connection: socket.socket
    protocol: ServiceProtocol
    received: bytearray = field(default_factory=bytearray)
    numbers: list[int] = field(default_factory=list)


class PlainSubscribers:
    """All subscribers of the process."""

    def __init__(self, feed: Feed, protocol: str, port: int, number: int) -> None:
        self._places = {message: place + 1 for place, message in enumerate(feed.messages)}
        self._protocol = protocol
        self._port = port
        self._number = number
        self._selector = selectors.DefaultSelector()
        self._subscribers: list[_Subscriber] = []
        self._confirmed = self._count = 0
        self._wrong = ""
        self._last = 0.0
        self._awaited: int | None = None

    def run(self) -> None:
        """Until there are no questions any more."""
        self._selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        rest = b""
        while True:
            for key, _ in self._selector.select():
                if isinstance(key.data, _Subscriber):
                    self._receive(key.data)
                    continue
                data = os.read(sys.stdin.fileno(), _READ_BYTES)
                if not data:
                    return
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._answer(json.loads(line))
            if self._awaited is not None and self._count >= self._awaited:
                self._awaited = None
                say({"at": self._last, "processor_seconds": time.process_time()})

    def _answer(self, question: Mapping[str, Any]) -> None:
        if "connect" in question:
            self._connect()
            say({"connected": self._number})
        elif "await" in question:
            self._awaited = question["await"]
        else:
            numbers = [subscriber.numbers for subscriber in self._subscribers]
            say({"numbers": numbers, "wrong": self._wrong})

    def _connect(self) -> None:
        for number in range(self._number):
            connection, protocol = connect(self._port), PROTOCOLS[self._protocol]()
            subscriber = _Subscriber(connection, protocol)
            self._subscribers.append(subscriber)
            connection.sendall(protocol.subscription(number))
            while self._confirmed <= number:
                self._receive(subscriber)
            self._selector.register(connection, selectors.EVENT_READ, subscriber)
            for key, _ in self._selector.select(0):  # those who are there are not to be waited for
                if isinstance(key.data, _Subscriber):
                    self._receive(key.data)

    def _receive(self, subscriber: _Subscriber) -> None:
        connection, received = subscriber.connection, subscriber.received
        arrived = receive(subscriber.protocol, connection, received, _READ_BYTES)
        self._confirmed += arrived.confirmed
        numbers = subscriber.numbers
        for message in arrived.messages:
            place = self._places.get(message)
            if place is None:
                self._wrong = self._wrong or f"{message!r:.500}"
                continue
            rounds = (numbers[-1] if numbers else 0) // len(self._places)
            number = rounds * len(self._places) + place
            if numbers and number <= numbers[-1]:
                number += len(self._places)
            numbers.append(number)
        if arrived.messages:
            self._count += len(arrived.messages)
            self._last = time.perf_counter()


def main() -> None:
    """Reads the job and serves."""
    allow_many_files()
    # Byte by byte: whatever follows the job is read by the selector.
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(sys.stdin.fileno(), 1)
    job = json.loads(line)
    subscribers = PlainSubscribers(
        Feed.read(job["feed"]), job["protocol"], job["port"], job["number"]
    )
    say({"ready": True})
    subscribers.run()


if __name__ == "__main__":
    main()
