"""``paths``: path profiles whose users are connected, beside a service made with lxml.

While messages are published a client asks the broker every 20 ms.  After that the broker is killed
among its deliveries, once, and nothing may be lost or doubled.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import trio

from benchmarks.network.feed import Feed, path_feed
from benchmarks.network.helper import helper
from benchmarks.network.onyx_network import (
    OnyxNetwork,
    onyx_network,
    publish,
    publisher,
    register,
)
from benchmarks.network.plain_publisher import PlainPublisher
from benchmarks.network.processor import processor_seconds
from benchmarks.network.protocols import PROTOCOLS
from benchmarks.network.sizes import Sizes
from benchmarks.network.takers import Takers, onyx_takers, plain_takers
from benchmarks.report import Report
from benchmarks.samples import percentile
from onyx import DataSource

_WARM = 20  # messages before any counts, on either side


@dataclass(frozen=True, slots=True)
class _Run:
    """One side: seconds from the first message published to the last delivery taken; processor
    seconds of the service and of the takers; deliveries in that time, and those checked."""

    seconds: float
    used: float
    theirs: float
    deliveries: int
    checked: int


async def measure_paths(sizes: Sizes, directory: Path, report: Report) -> None:
    """Messages a second and processor time, for each number of profiles."""
    for profiles in sizes.path_profiles:
        here = directory / str(profiles)
        here.mkdir(parents=True)
        feed = path_feed(profiles, _WARM + sizes.path_messages, sizes)
        last = profiles == sizes.path_profiles[-1]
        suffix = "1k" if profiles == 1_000 else str(profiles)
        onyx = await _measure_onyx(feed, sizes, here, report, suffix if not last else "")
        theirs = await _measure_lxml(feed, sizes, here)
        _tell(report, suffix, sizes, (onyx, theirs), profiles)


async def _measure_onyx(
    feed: Feed, sizes: Sizes, directory: Path, report: Report, suffix: str
) -> _Run:
    """``suffix`` of the keys of pings; "" for the largest number of profiles."""
    messages = sizes.path_messages
    warm, both = await _counts(feed, (_WARM, _WARM + messages))
    file = feed.write(directory / "feed.json")
    async with onyx_network(directory / "network") as network, publisher(network) as source:
        ids = await register(network, feed.profiles, sizes.at_once)
        async with (
            onyx_takers(file, network.registration, ids, sizes.seconds) as takers,
            helper("benchmarks.network.ping", {"address": network.broker}) as ping,
        ):
            await ping.answer()
            await takers.connect()
            await publish(source, feed.published(_WARM))
            before_theirs = (await takers.wait(warm)).processor_seconds
            before = await network.processor_seconds()
            await ping.tell({"begin": True})
            start = time.perf_counter()
            await publish(source, feed.published(messages, _WARM))
            taken = await takers.wait(both)
            times = (await ping.ask({"end": True}))["times_ms"]
            used = await network.processor_seconds() - before
            total = _WARM + messages + sizes.crash_messages
            recovery = await _crash(network, source, takers, feed, sizes)
            checked = await takers.check(await _expected(feed, total))
    _tell_pings(report, times, f"_{suffix}" if suffix else "")
    key = f"crash_s_{suffix}" if suffix else "crash_s"
    report.figure(key, f"paths, {len(ids):,}: killed, until all is delivered", recovery, "s")
    theirs = taken.processor_seconds - before_theirs
    return _Run(taken.at - start, used, theirs, both - warm, checked)


async def _crash(
    network: OnyxNetwork, source: DataSource, takers: Takers, feed: Feed, sizes: Sizes
) -> float:
    """Kills the broker when a third of the deliveries has come; seconds from then to the last."""
    after = _WARM + sizes.path_messages
    before, all_of_them = await _counts(feed, (after, after + sizes.crash_messages))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(publish, source, feed.published(sizes.crash_messages, after))
        await takers.wait(before + (all_of_them - before) // 3)
        killed = time.perf_counter()
        await network.kill_broker()
    return (await takers.wait(all_of_them)).at - killed


async def _measure_lxml(feed: Feed, sizes: Sizes, directory: Path) -> _Run:
    """The same messages through ``lxml_service``."""
    file = str(directory / "feed.json")
    warm, both = await _counts(feed, (_WARM, _WARM + sizes.path_messages))
    async with helper("benchmarks.network.lxml_service", {"feed": file}) as service:
        port = (await service.answer())["port"]
        number = len(feed.profiles)
        async with plain_takers(file, "framed", port, number, sizes.seconds) as takers:
            await takers.connect()
            line = await trio.to_thread.run_sync(PlainPublisher, PROTOCOLS["framed"], port)
            with closing(line):
                await trio.to_thread.run_sync(line.publish, feed.published(_WARM))
                before_theirs = (await takers.wait(warm)).processor_seconds
                before = processor_seconds(service.pid)
                start = time.perf_counter()
                timed = feed.published(sizes.path_messages, _WARM)
                await trio.to_thread.run_sync(line.publish, timed)
                taken = await takers.wait(both)
                used = processor_seconds(service.pid) - before
            checked = await takers.check(await _expected(feed, _WARM + sizes.path_messages))
    theirs = taken.processor_seconds - before_theirs
    return _Run(taken.at - start, used, theirs, both - warm, checked)


async def _counts(feed: Feed, numbers: Sequence[int]) -> list[int]:
    """Deliveries of the first so many messages, by lxml."""
    most = await _expected(feed, max(numbers))
    return [sum(one <= number for of in most for one in of) for number in numbers]


async def _expected(feed: Feed, number: int) -> list[list[int]]:
    """In a thread: whoever is connected goes on meanwhile."""
    return await trio.to_thread.run_sync(feed.expected, number)


def _tell_pings(report: Report, times: Sequence[float], suffix: str) -> None:
    of = "" if not suffix else f", {suffix.strip('_')} profiles"
    report.figure(f"pings{suffix}", f"pings{of}: asked", len(times))
    for percent in (50, 99):
        label = f"pings{of}: answered, {percent}th percentile"
        report.figure(f"ping_p{percent}_ms{suffix}", label, percentile(times, percent), "ms")
    report.figure(f"ping_max_ms{suffix}", f"pings{of}: the longest", max(times), "ms")


def _tell(
    report: Report, suffix: str, sizes: Sizes, sides: tuple[_Run, _Run], profiles: int
) -> None:
    onyx, theirs = sides
    messages = sizes.path_messages
    name = f"paths, {profiles:,}"
    matching = onyx.deliveries / messages / profiles * 100
    report.figure(f"paths_messages_{suffix}", f"{name}: messages", messages)
    report.figure(f"paths_matching_{suffix}", f"{name}: profiles that match", matching, "%")
    for key, who, run in (("lxml_service", "lxml service", theirs), ("paths", "Onyx", onyx)):
        against = None if run is theirs else f"lxml_service_messages_per_s_{suffix}"
        rate = messages / run.seconds
        label = f"{name}: {who}, delivered messages"
        report.figure(f"{key}_messages_per_s_{suffix}", label, rate, "/s", against)
        for per, what, number in (
            ("message", "a message", messages),
            ("delivery", "a delivery", run.deliveries),
        ):
            against = None if run is theirs else f"lxml_service_cpu_us_{per}_{suffix}"
            label = f"{name}: {who}, processor time {what}"
            us = run.used / max(number, 1) * 1e6
            report.figure(f"{key}_cpu_us_{per}_{suffix}", label, us, "us", against)
        label = f"{name}: {who}, processor time of the users, a delivery"
        us = run.theirs / max(run.deliveries, 1) * 1e6
        report.figure(f"{key}_users_cpu_us_{suffix}", label, us, "us")
    label = f"{name}: Onyx over the lxml service, messages"
    report.figure(f"lxml_service_ratio_{suffix}", label, theirs.seconds / onyx.seconds)
    checked = onyx.checked + theirs.checked
    report.figure(f"paths_checked_{suffix}", f"{name}: deliveries checked", checked)
