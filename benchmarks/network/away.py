"""``away``: profiles of everything whose users are away while messages are published; then they
come and take all."""

from __future__ import annotations

import time
from pathlib import Path

import trio

from benchmarks.network.feed import Feed, everything_feed
from benchmarks.network.onyx_network import onyx_network, publish, publisher, register
from benchmarks.network.pings import NetworkReport, pinged
from benchmarks.network.processor import processor_seconds
from benchmarks.network.sizes import Sizes
from benchmarks.network.takers import onyx_takers

_ROUNDS_ALONE = 20


async def measure_away(sizes: Sizes, directory: Path, report: NetworkReport) -> None:
    """What is on disk then, what storing it cost, and how long the users take."""
    directory.mkdir()
    messages = sizes.away_messages
    feed = everything_feed(sizes.away_profiles, messages, sizes)
    expected = await trio.to_thread.run_sync(feed.expected, 2 * messages)
    file = feed.write(directory / "feed.json")
    alone = await _publish_to_nobody(feed, sizes, directory / "nobody")
    async with onyx_network(directory / "network") as network, publisher(network) as source:
        ids = await register(network, feed.profiles, sizes.at_once)
        empty = network.disk_bytes()
        before = await network.processor_seconds()
        await publish(source, feed.published(messages))
        used = await network.processor_seconds() - before
        stored = network.disk_bytes() - empty
        async with onyx_takers(file, network.registration, ids, sizes) as takers:
            async with pinged(network, report, "away"):
                await publish(source, feed.published(messages, messages))
                before = processor_seconds(network.pid)
                start = time.perf_counter()
                await takers.connect()
                taken = await takers.wait(sum(map(len, expected)))
            drained = await network.processor_seconds() - before
            checked = await takers.check(expected)
    published = feed.size(messages)
    report.figure("away_profiles", "away: profiles of everything", sizes.away_profiles)
    report.figure("away_messages", "away: messages", messages)
    report.figure("away_bytes", "away: bytes of the messages", published)
    report.figure("away_disk_bytes", "away: bytes on disk", stored)
    label = "away: bytes on disk over bytes of the messages"
    report.figure("away_disk_ratio", label, stored / published)
    label = "away: processor time, a message, without profiles"
    report.figure("away_alone_cpu_us", label, alone / messages * 1e6, "us")
    label = "away: processor time, a message"
    report.figure("away_cpu_us", label, used / messages * 1e6, "us", "away_alone_cpu_us")
    ratio = used / alone if alone else None
    report.figure("away_publish_ratio", "away: processor time over that without profiles", ratio)
    report.figure("away_deliveries", "away: deliveries, of twice as many messages", checked)
    report.figure("drain_s", "away: until they are taken", taken.at - start, "s")
    rate = checked / (taken.at - start)
    report.figure("drain_per_s", "away: deliveries taken", rate, "/s")
    label = "away: processor time while they are taken, a delivery"
    report.figure("drain_cpu_us", label, drained / max(checked, 1) * 1e6, "us")


async def _publish_to_nobody(feed: Feed, sizes: Sizes, directory: Path) -> float:
    """Processor seconds of the same messages where there is no profile; they are published round
    and round, as processor time is known to 10 ms only."""
    number = _ROUNDS_ALONE * sizes.away_messages
    async with onyx_network(directory) as network, publisher(network) as source:
        before = await network.processor_seconds()
        await publish(source, feed.published(number))
        return (await network.processor_seconds() - before) / _ROUNDS_ALONE
