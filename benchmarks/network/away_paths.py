"""``away-paths``: very many path profiles whose users are away; the broker is killed with what
waits for them; then they come and take all."""

from __future__ import annotations

import time
from pathlib import Path

import trio

from benchmarks.network.feed import Feed, path_feed, yfilter_feed
from benchmarks.network.onyx_network import onyx_network, publish, publisher, register
from benchmarks.network.pings import NetworkReport, pinged
from benchmarks.network.sizes import Sizes
from benchmarks.network.takers import onyx_takers


async def measure_away_paths(sizes: Sizes, directory: Path, report: NetworkReport) -> None:
    """How long it takes until all messages are accepted."""
    directory.mkdir()
    messages, number = sizes.waiting_messages, sizes.waiting_profiles
    feed = _feed(sizes)
    expected = await trio.to_thread.run_sync(feed.expected, messages)
    deliveries = sum(map(len, expected))
    file = feed.write(directory / "feed.json")
    async with onyx_network(directory / "network") as network, publisher(network) as source:
        ids = await register(network, feed.profiles, sizes.at_once)
        empty = network.disk_bytes()
        before = await network.processor_seconds()
        async with pinged(network, report, "away-paths", "away_paths"):
            start = time.perf_counter()
            await publish(source, feed.published(messages))
            accepted = time.perf_counter() - start
        used = await network.processor_seconds() - before
        stored = network.disk_bytes() - empty
        killed = time.perf_counter()
        await network.kill_broker()
        ready = time.perf_counter() - killed
        async with onyx_takers(file, network.registration, ids, sizes) as takers:
            start = time.perf_counter()
            await takers.connect()
            taken = await takers.wait(deliveries)
            checked = await takers.check(expected)
    source_of = "generated" if sizes.yfilter is None else "YFilter's release"
    report.condition("away_paths_feed", "away-paths: messages and profiles", source_of)
    report.figure("away_paths_profiles", "away-paths: profiles", number)
    report.figure("away_paths_messages", "away-paths: messages", messages)
    matching = deliveries / messages / number * 100
    report.figure("away_paths_matching", "away-paths: profiles that match", matching, "%")
    report.figure("away_paths_accepted_s", "away-paths: until all are accepted", accepted, "s")
    label = "away-paths: processor time, a message"
    report.figure("away_paths_cpu_us", label, used / messages * 1e6, "us")
    label = "away-paths: bytes on disk over bytes of the messages"
    report.figure("away_paths_disk_ratio", label, stored / feed.size(messages))
    report.figure("away_paths_restart_s", "away-paths: killed, until ready again", ready, "s")
    seconds = taken.at - start
    report.figure("away_paths_drain_s", "away-paths: until all is taken", seconds, "s")
    report.figure("away_paths_checked", "away-paths: deliveries checked", checked)


def _feed(sizes: Sizes) -> Feed:
    if sizes.yfilter is not None:
        return yfilter_feed(sizes.yfilter, sizes.waiting_profiles)
    return path_feed(sizes.waiting_profiles, sizes.waiting_messages, sizes)
