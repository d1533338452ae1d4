"""``python -m benchmarks.network.plain_fan_out``: fan-out of plain asyncio with TLS 1.3.

What people write who have asyncio and lxml: each message is parsed once, asked for each
subscriber's ``etree.XPath``, and written to those that it matches; nothing is kept.  The job
``{"feed": FILE, "certificate": FILE}`` is that of the server, which answers ``{"port":
PORT}``; ``{"feed": FILE, "port": PORT, "number": N}`` that of all subscribers, who are asked as
those of ``benchmarks.network.subscribers`` are, and answer the server after ANSWERED_EACH
deliveries.  The protocol is ``framed.Framed``.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
from collections.abc import Mapping
from struct import Struct
from typing import Any

import lxml.etree

from benchmarks.network.feed import Feed
from benchmarks.network.helper import say
from benchmarks.network.processor import allow_many_files

ANSWERED_EACH = 16
_LENGTH = Struct(">I")
_CONFIRMED = _LENGTH.pack(0)
_BACKLOG = 1_024
_READ_BYTES = 1 << 20


async def _framed(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(_LENGTH.unpack(await reader.readexactly(4))[0])


async def serve(feed: Feed, certificate: str) -> None:
    """Until there are no questions any more."""
    paths = [lxml.etree.XPath(f"boolean({profile})") for profile in feed.profiles]
    subscribers: dict[int, asyncio.StreamWriter] = {}

    async def publisher(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while message := await _framed(reader):
            tree = lxml.etree.fromstring(message)
            framed = _LENGTH.pack(len(message)) + message
            for number, subscriber in subscribers.items():
                if paths[number](tree):
                    subscriber.write(framed)
            writer.write(_CONFIRMED)
            await writer.drain()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            number = _LENGTH.unpack(await reader.readexactly(4))[0]
            if number == 0:
                await publisher(reader, writer)
            subscribers[number - 1] = writer
            writer.write(_CONFIRMED)
            while await reader.readexactly(4):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(certificate)
    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context, backlog=_BACKLOG)
    say({"port": server.sockets[0].getsockname()[1]})
    await asyncio.to_thread(sys.stdin.read)


class PlainUsers:
    """All subscribers of a process."""

    def __init__(self, feed: Feed, port: int, number: int) -> None:
        self._feed = feed
        self._port = port
        self._taken: list[list[bytes]] = [[] for _ in range(number)]
        self._checked = [0] * number
        self._wrong = ""
        self._count, self._awaited = 0, -1
        self._last = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until there are no questions any more."""
        while line := await asyncio.to_thread(sys.stdin.readline):
            question: Mapping[str, Any] = json.loads(line)
            if "connect" in question:
                await self._connect()
            elif "await" in question:
                self._awaited = question["await"]
                self._look()
            else:
                say(self._report())

    async def _connect(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        for number, taken in enumerate(self._taken):
            streams = await asyncio.open_connection("127.0.0.1", self._port, ssl=context)
            streams[1].write(_LENGTH.pack(number + 1))
            await _framed(streams[0])
            self._tasks.add(asyncio.create_task(self._take(*streams, taken)))
        say({"connected": len(self._taken)})

    async def _take(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, taken: list[bytes]
    ) -> None:
        while message := await _framed(reader):
            taken.append(message)
            self._count += 1
            if len(taken) % ANSWERED_EACH == 0:
                writer.write(_LENGTH.pack(ANSWERED_EACH))
            if self._count == self._awaited:
                self._last = time.perf_counter()
                self._look()

    def _look(self) -> None:
        if 0 <= self._awaited <= self._count:
            self._awaited = -1
            say({"at": self._last, "processor_seconds": time.process_time()})
            self._check()

    def _check(self) -> None:
        """The n-th message of a subscriber is the n-th that was published, or it is wrong."""
        for number, taken in enumerate(self._taken):
            wanted = self._feed.published(len(taken), self._checked[number])
            for right, message in zip(wanted, taken, strict=True):
                self._wrong = self._wrong or ("" if right == message else f"{message!r:.500}")
            self._checked[number] += len(taken)
            taken.clear()

    def _report(self) -> Mapping[str, object]:
        self._check()
        numbers = [list(range(1, checked + 1)) for checked in self._checked]
        return {"numbers": numbers, "wrong": self._wrong}


def main() -> None:
    """Reads the job, and does it."""
    allow_many_files()
    job = json.loads(sys.stdin.readline())
    feed = Feed.read(job["feed"])
    if "port" not in job:
        asyncio.run(serve(feed, job["certificate"]))
    else:
        say({"ready": True})
        asyncio.run(PlainUsers(feed, job["port"], job["number"]).run())


if __name__ == "__main__":
    main()
