"""``wide``: one publisher, and 300 users with a connection each who take every message of 10 KB;
beside a fan-out server and clients of plain asyncio (plain_fan_out.py), all with TLS 1.3.  And what
1,000 users cost to whom nothing happens."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from benchmarks.network.feed import Feed, everything_feed
from benchmarks.network.helper import helper
from benchmarks.network.onyx_network import (
    OnyxNetwork,
    onyx_network,
    publish,
    publisher,
    register,
)
from benchmarks.network.pings import NetworkReport, pinged
from benchmarks.network.processor import settled_processor_seconds
from benchmarks.network.sizes import Sizes
from benchmarks.network.takers import Takers, onyx_takers
from onyx import DataSource

_WARM = 5
_FRAME = 4
_ROUNDS = 2  # of each side, in turns


async def measure_wide(sizes: Sizes, directory: Path, report: NetworkReport) -> None:
    """Processor time a delivery, of the broker and of the users' process, over the plain ones'."""
    directory.mkdir()
    number, messages = sizes.wide_users, sizes.wide_messages
    feed = everything_feed(number, messages, sizes)
    file = feed.write(directory / "feed.json")
    ours, plain = _Used(), _Used()
    checked = 0
    async with onyx_network(directory / "network") as network, publisher(network) as source:
        ids = await register(network, feed.profiles, sizes.at_once)
        async with (
            onyx_takers(file, network.registration, ids, sizes) as takers,
            _plain(file, network, number, sizes.seconds) as (server, stream, theirs),
        ):
            await takers.connect()
            await publish(source, feed.published(_WARM))
            await takers.wait(_WARM * number)
            await _send(stream, feed, _WARM)
            await theirs.wait(_WARM * number)
            for done in range(_WARM, _WARM + _ROUNDS * messages, messages):
                await ours.add(network, source, takers, feed, done, messages)
                before = await settled_processor_seconds(server)
                users = await theirs.wait(done * number)
                await _send(stream, feed, messages, done)
                after = await theirs.wait((done + messages) * number)
                plain.server += await settled_processor_seconds(server) - before
                plain.users += after.processor_seconds - users.processor_seconds
            done = _WARM + _ROUNDS * messages
            async with pinged(network, report, "wide"):
                await publish(source, feed.published(messages, done))
                await takers.wait((done + messages) * number)
            checked += await takers.check(feed.expected(done + messages))
            checked += await theirs.check(feed.expected(done))
    deliveries = _ROUNDS * messages * number
    report.figure("wide_users", "wide: users, each with a connection", number)
    label = "wide: processor time of the broker, a delivery"
    report.figure("cpu_us_wide", label, ours.server / deliveries * 1e6, "us")
    label = "wide: processor time of the users' process, a delivery"
    report.figure("wide_users_cpu_us", label, ours.users / deliveries * 1e6, "us")
    label = "wide: the same of the plain server"
    report.figure("wide_plain_cpu_us", label, plain.server / deliveries * 1e6, "us")
    label = "wide: the same of the plain server's users"
    report.figure("wide_plain_users_cpu_us", label, plain.users / deliveries * 1e6, "us")
    label = "wide: Onyx over the plain server"
    report.figure("wide_plain_ratio", label, ours.server / plain.server)
    label = "wide: users of Onyx over those of the plain server"
    report.figure("wide_users_plain_ratio", label, ours.users / plain.users)
    report.figure("wide_checked", "wide: deliveries checked", checked)
    await _measure_idle(sizes, directory / "idle", report)


class _Used:
    """Seconds of processor time."""

    def __init__(self) -> None:
        self.server = self.users = 0.0

    async def add(
        self,
        network: OnyxNetwork,
        source: DataSource,
        takers: Takers,
        feed: Feed,
        done: int,
        messages: int,
    ) -> None:
        """So many messages more through Onyx."""
        number = len(feed.profiles)
        before = await network.processor_seconds()
        users = await takers.wait(done * number)
        await publish(source, feed.published(messages, done))
        after = await takers.wait((done + messages) * number)
        self.server += await network.processor_seconds() - before
        self.users += after.processor_seconds - users.processor_seconds


@asynccontextmanager
async def _plain(
    file: str, network: OnyxNetwork, number: int, seconds: float
) -> AsyncIterator[tuple[int, trio.abc.Stream, Takers]]:
    """The plain server's process, a stream to publish on, and its users, who are connected."""
    module = "benchmarks.network.plain_fan_out"
    job = {"feed": file, "certificate": str(network.certificate)}
    async with helper(module, job) as server:
        port = (await server.answer())["port"]
        async with helper(module, {"feed": file, "port": port, "number": number}) as users:
            await users.answer()
            takers = Takers(users, seconds)
            await takers.connect()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            stream = trio.SSLStream(await trio.open_tcp_stream("127.0.0.1", port), context)
            async with stream:
                await stream.send_all(bytes(_FRAME))
                yield server.pid, stream, takers
                await stream.send_all(bytes(_FRAME))


async def _send(stream: trio.abc.Stream, feed: Feed, messages: int, after: int = 0) -> None:
    """So many, each behind the confirmation of the one before."""
    for message in feed.published(messages, after):
        await stream.send_all(len(message).to_bytes(_FRAME, "big") + message)
        confirmed = 0
        while confirmed < _FRAME:
            confirmed += len(await stream.receive_some(_FRAME - confirmed))


async def _measure_idle(sizes: Sizes, directory: Path, report: NetworkReport) -> None:
    """Milliseconds of processor time in a second."""
    number = sizes.idle_users
    feed = everything_feed(number, 1, sizes)
    directory.mkdir()
    file = feed.write(directory / "feed.json")
    async with onyx_network(directory / "network") as network:
        ids = await register(network, feed.profiles, sizes.at_once)
        async with onyx_takers(file, network.registration, ids, sizes) as takers:
            await takers.connect()
            await network.processor_seconds()
            before, began = network.processor_seconds_now(), time.perf_counter()
            first = await takers.wait(0)
            await trio.sleep(sizes.idle_seconds)
            last = await takers.wait(0)
            seconds = time.perf_counter() - began
            broker = network.processor_seconds_now() - before
    users = last.processor_seconds - first.processor_seconds
    label = f"idle: processor time in a second, of the process of {number:,} users"
    report.figure("idle_users_ms_1k", label, users / seconds * 1e3, "ms")
    label = "idle: the same of their broker"
    report.figure("idle_broker_ms_1k", label, broker / seconds * 1e3, "ms")
