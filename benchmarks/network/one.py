"""``one``: one publisher, one subscriber of everything, messages of 60 bytes.

One at a time they go over three links too, between four brokers in a line; what that takes is told
in commits, as long as one takes on the same disk in the same run.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import trio

from benchmarks.network.feed import SMALL_BYTES, Feed, small_feed
from benchmarks.network.onyx_network import (
    OnyxNetwork,
    onyx_network,
    publish,
    publisher,
    register,
)
from benchmarks.network.pings import NetworkReport, pinged
from benchmarks.network.sizes import Sizes
from benchmarks.network.syncs import counted_syncs
from benchmarks.network.takers import compare, onyx_takers
from benchmarks.samples import percentile
from onyx import DataSource, User
from overlay.link.events import Put
from overlay.link.store import Store

_WARM = 100
_LINE = 4  # brokers
_COMMITS = 200


async def measure_one(sizes: Sizes, directory: Path, report: NetworkReport) -> None:
    """Processor time a message, accepted messages a second, latency one at a time."""
    directory.mkdir()
    feed = small_feed(1)
    file = feed.write(directory / "feed.json")
    messages = sizes.one_messages
    async with onyx_network(directory / "network") as network, publisher(network) as source:
        (profile,) = await register(network, feed.profiles, 1)
        latencies = await _one_at_a_time(network, source, profile, feed, sizes)
        # Those who take results from here on start behind what was taken.
        first = sizes.latency_rounds
        async with onyx_takers(file, network.registration, [profile], sizes) as takers:
            await takers.connect()
            await publish(source, feed.published(_WARM, first))
            await takers.wait(_WARM)
            before = await network.processor_seconds()
            start = time.perf_counter()
            await publish(source, feed.published(messages, first + _WARM))
            accepted = time.perf_counter() - start
            taken = await takers.wait(_WARM + messages)
            used = await network.processor_seconds() - before
            async with pinged(network, report, "one"):
                await publish(source, feed.published(messages, first + _WARM + messages))
                await takers.wait(_WARM + 2 * messages)
            total = first + _WARM + 2 * messages
            async with counted_syncs(network.pid) as syncs:
                await publish(source, feed.published(sizes.synced_messages, total))
                total += sizes.synced_messages
                await takers.wait(total - first)
            checked = await takers.check([list(range(first + 1, total + 1))])
    report.condition("one_bytes", "one: bytes a message", SMALL_BYTES)
    report.figure("one_messages", "one: messages", messages)
    label = "one: processor time of the broker, a message"
    report.figure("cpu_us_one", label, used / messages * 1e6, "us")
    report.figure("accepted_per_s", "one: accepted", messages / accepted, "/s")
    rate = messages / (taken.at - start)
    report.figure("one_delivered_per_s", "one: delivered", rate, "/s")
    if syncs.count is None:
        report.remark("Onyx: fsyncs are not counted, which takes strace")
    label = f"one: fsyncs, {sizes.synced_messages:,} messages"
    report.figure("fsyncs_one", label, syncs.count)
    label = "one: published to taken, one at a time, median"
    report.figure("latency_p50_ms", label, percentile(latencies, 50), "ms")
    label = "one: the same, 99th percentile"
    report.figure("latency_p99_ms", label, percentile(latencies, 99), "ms")
    checked += len(latencies) + await _measure_line(sizes, directory / "line", report)
    report.figure("one_checked", "one: deliveries checked", checked)


async def _measure_line(sizes: Sizes, directory: Path, report: NetworkReport) -> int:
    """One at a time over three links; how many deliveries were checked."""
    feed = small_feed(1)
    async with onyx_network(directory, _LINE) as network, publisher(network) as source:
        (profile,) = await register(network, feed.profiles, 1, broker=_LINE)
        latencies = await _one_at_a_time(network, source, profile, feed, sizes)
        commit = await trio.to_thread.run_sync(_commit_ms, directory / "commits.sqlite")
    middle = percentile(latencies, 50)
    report.figure("commit_ms", "one: a commit on this disk, median", commit, "ms")
    label = f"one: over {_LINE - 1} links, one at a time, median"
    report.figure("line_p50_ms", label, middle, "ms", "commit_ms")
    report.figure("line_p50_commits", f"{label}, in commits", middle / commit)
    label = f"one: over {_LINE - 1} links, 99th percentile"
    report.figure("line_p99_ms", label, percentile(latencies, 99), "ms")
    return len(latencies)


def _commit_ms(file: Path) -> float:
    """Of one row of a small message, as a broker commits."""
    times = []
    with Store(file) as store:
        for number in range(_COMMITS):
            start = time.perf_counter()
            store.commit([Put("benchmark", str(number), bytes(SMALL_BYTES))])
            times.append((time.perf_counter() - start) * 1000)
    return median(times)


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
