"""``fan``: one publisher, many profiles of everything whose users are connected."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.network.feed import small_feed
from benchmarks.network.onyx_network import onyx_network, publish, publisher, register
from benchmarks.network.pings import NetworkReport, pinged
from benchmarks.network.sizes import Sizes
from benchmarks.network.takers import onyx_takers

_WARM = 20


async def measure_fan(sizes: Sizes, directory: Path, report: NetworkReport) -> None:
    """Processor time a delivery."""
    directory.mkdir()
    number, messages = sizes.fan_profiles, sizes.fan_messages
    feed = small_feed(number)
    file = feed.write(directory / "feed.json")
    async with onyx_network(directory / "network") as network, publisher(network) as source:
        ids = await register(network, feed.profiles, sizes.at_once)
        async with onyx_takers(file, network.registration, ids, sizes) as takers:
            await takers.connect()
            await publish(source, feed.published(_WARM))
            warm = await takers.wait(_WARM * number)
            before = await network.processor_seconds()
            start = time.perf_counter()
            await publish(source, feed.published(messages, _WARM))
            taken = await takers.wait((_WARM + messages) * number)
            used = await network.processor_seconds() - before
            async with pinged(network, report, "fan"):
                await publish(source, feed.published(messages, _WARM + messages))
                await takers.wait((_WARM + 2 * messages) * number)
            checked = await takers.check(feed.expected(_WARM + 2 * messages))
    deliveries = messages * number
    report.figure("fan_profiles", "fan: profiles of everything", number)
    report.figure("fan_users", "fan: users, each with a connection", min(sizes.users, number))
    report.figure("fan_messages", "fan: messages", messages)
    label = "fan: processor time of the broker, a delivery"
    report.figure("cpu_us_fan", label, used / deliveries * 1e6, "us")
    rate = deliveries / used if used else None
    report.figure("deliveries_per_core_s", "fan: deliveries, a core of the broker", rate, "/s")
    rate = deliveries / (taken.at - start)
    report.figure("fan_deliveries_per_s", "fan: deliveries, as time passes", rate, "/s")
    theirs = (taken.processor_seconds - warm.processor_seconds) / deliveries * 1e6
    label = "fan: processor time of the users' process, a delivery"
    report.figure("fan_users_cpu_us", label, theirs, "us")
    report.figure("fan_checked", "fan: deliveries checked", checked)
