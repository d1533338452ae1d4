"""``one``: one publisher, one subscriber of everything, messages of 60 bytes."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.network.feed import SMALL_BYTES, Feed, small_feed
from benchmarks.network.onyx_network import (
    OnyxNetwork,
    onyx_network,
    publish,
    publisher,
    register,
)
from benchmarks.network.sizes import Sizes
from benchmarks.network.takers import compare, onyx_takers
from benchmarks.report import Report
from benchmarks.samples import percentile
from onyx import DataSource, User

_WARM = 100


async def measure_one(sizes: Sizes, directory: Path, report: Report) -> None:
    """Processor time a message, accepted messages a second, latency one at a time."""
    directory.mkdir()
    feed = small_feed(1)
    file = feed.write(directory / "feed.json")
    async with onyx_network(directory / "network") as network, publisher(network) as source:
        (profile,) = await register(network, feed.profiles, 1)
        latencies = await _one_at_a_time(network, source, profile, feed, sizes)
        # Those who take results from here on start behind what was taken.
        first = sizes.latency_rounds
        async with onyx_takers(file, network.registration, [profile], sizes.seconds) as takers:
            await takers.connect()
            await publish(source, feed.published(_WARM, first))
            await takers.wait(_WARM)
            before = await network.processor_seconds()
            start = time.perf_counter()
            await publish(source, feed.published(sizes.one_messages, first + _WARM))
            accepted = time.perf_counter() - start
            taken = await takers.wait(_WARM + sizes.one_messages)
            used = await network.processor_seconds() - before
            total = first + _WARM + sizes.one_messages
            checked = await takers.check([list(range(first + 1, total + 1))])
    report.condition("one_bytes", "one: bytes a message", SMALL_BYTES)
    report.figure("one_messages", "one: messages", sizes.one_messages)
    label = "one: processor time of the broker, a message"
    report.figure("cpu_us_one", label, used / sizes.one_messages * 1e6, "us")
    report.figure("accepted_per_s", "one: accepted", sizes.one_messages / accepted, "/s")
    rate = sizes.one_messages / (taken.at - start)
    report.figure("one_delivered_per_s", "one: delivered", rate, "/s")
    label = "one: published to taken, one at a time, median"
    report.figure("latency_p50_ms", label, percentile(latencies, 50), "ms")
    label = "one: the same, 99th percentile"
    report.figure("latency_p99_ms", label, percentile(latencies, 99), "ms")
    report.figure("one_checked", "one: deliveries checked", checked + len(latencies))


async def _one_at_a_time(
    network: OnyxNetwork, source: DataSource, profile: str, feed: Feed, sizes: Sizes
) -> list[float]:
    """Milliseconds from publishing to the result, for each message."""
    latencies, numbers = [], []
    async with User(network.registration) as user:
        results = user.results(profile)
        await results.connect()
        for message in feed.published(sizes.latency_rounds):
            start = time.perf_counter()
            await source.publish(message)
            delivery = await anext(results)
            latencies.append((time.perf_counter() - start) * 1000)
            results.acknowledge_nowait()
            numbers.append(delivery.number if delivery.results == [message] else 0)
        await results.flush()
    compare([list(range(1, sizes.latency_rounds + 1))], [numbers])
    return latencies
