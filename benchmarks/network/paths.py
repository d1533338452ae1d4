"""``paths``: path profiles whose users are connected, beside a service made with lxml.

After what is timed as many messages again are published while the broker is pinged.  Then it is
killed among its deliveries, once, and nothing may be lost or doubled.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import trio

from benchmarks.network.feed import Feed, path_feed
from benchmarks.network.framed import Framed
from benchmarks.network.helper import helper
from benchmarks.network.onyx_network import (
    OnyxNetwork,
    onyx_network,
    publish,
    publisher,
    register,
)
from benchmarks.network.pings import NetworkReport, pinged
from benchmarks.network.plain_publisher import PlainPublisher
from benchmarks.network.processor import processor_seconds
from benchmarks.network.sizes import Sizes
from benchmarks.network.takers import Takers, onyx_takers, plain_takers
from onyx import DataSource

_WARM = 20  # messages before any counts, on either side
_MANY = 1_000  # profiles, above which the lxml service gets fewer messages
_FEWEST = 20


@dataclass(frozen=True, slots=True)
class _Run:
    """One side: ``messages``; seconds from the first published to the last delivery taken; seconds
    of processor time of the service and of the takers; deliveries meanwhile, and those checked."""

    messages: int
    seconds: float
    used: float
    theirs: float
    deliveries: int
    checked: int


async def measure_paths(sizes: Sizes, directory: Path, report: NetworkReport) -> None:
    """Messages a second and processor time, for each number of profiles."""
    for profiles in sizes.path_profiles:
        here = directory / str(profiles)
        here.mkdir(parents=True)
        feed = path_feed(profiles, _WARM + sizes.path_messages, sizes)
        suffix = f"{profiles // 1_000}k" if profiles % 1_000 == 0 else str(profiles)
        onyx = await _measure_onyx(feed, sizes, here, report, suffix)
        theirs = await _measure_lxml(feed, sizes, here)
        _tell(report, suffix, (onyx, theirs), profiles)


async def _measure_onyx(
    feed: Feed, sizes: Sizes, directory: Path, report: NetworkReport, suffix: str
) -> _Run:
    messages = sizes.path_messages
    warm, both, again = await _counts(feed, (_WARM, _WARM + messages, _WARM + 2 * messages))
    file = feed.write(directory / "feed.json")
    async with onyx_network(directory / "network") as network, publisher(network) as source:
        ids = await register(network, feed.profiles, sizes.at_once)
        async with onyx_takers(file, network.registration, ids, sizes) as takers:
            await takers.connect()
            await publish(source, feed.published(_WARM))
            before_theirs = (await takers.wait(warm)).processor_seconds
            before = await network.processor_seconds()
            start = time.perf_counter()
            await publish(source, feed.published(messages, _WARM))
            taken = await takers.wait(both)
            used = await network.processor_seconds() - before
            async with pinged(network, report, f"paths, {len(ids):,}", f"paths_{suffix}"):
                await publish(source, feed.published(messages, _WARM + messages))
                await takers.wait(again)
            after = _WARM + 2 * messages
            recovery = await _crash(network, source, takers, feed, after, sizes.crash_messages)
            checked = await takers.check(await _expected(feed, after + sizes.crash_messages))
    label = f"paths, {len(ids):,}: killed, until all is delivered"
    report.figure(f"crash_s_{suffix}", label, recovery, "s")
    theirs = taken.processor_seconds - before_theirs
    return _Run(messages, taken.at - start, used, theirs, both - warm, checked)


async def _crash(
    network: OnyxNetwork, source: DataSource, takers: Takers, feed: Feed, after: int, messages: int
) -> float:
    """Kills the broker when a third of the deliveries of further messages has come; seconds from
    then to the last."""
    before, all_of_them = await _counts(feed, (after, after + messages))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(publish, source, feed.published(messages, after))
        await takers.wait(before + (all_of_them - before) // 3)
        killed = time.perf_counter()
        await network.kill_broker()
    return (await takers.wait(all_of_them)).at - killed


async def _measure_lxml(feed: Feed, sizes: Sizes, directory: Path) -> _Run:
    """The same messages through ``lxml_service``, fewer where it has many profiles."""
    file = str(directory / "feed.json")
    messages = sizes.path_messages
    if len(feed.profiles) > _MANY:
        messages = min(messages, max(_FEWEST, messages * _MANY // len(feed.profiles)))
    warm, both = await _counts(feed, (_WARM, _WARM + messages))
    async with helper("benchmarks.network.lxml_service", {"feed": file}) as service:
        port = (await service.answer())["port"]
        number = len(feed.profiles)
        async with plain_takers(file, "framed", port, number, sizes.seconds) as takers:
            await takers.connect()
            line = await trio.to_thread.run_sync(PlainPublisher, Framed(), port)
            with closing(line):
                await trio.to_thread.run_sync(line.publish, feed.published(_WARM))
                before_theirs = (await takers.wait(warm)).processor_seconds
                before = processor_seconds(service.pid)
                start = time.perf_counter()
                timed = feed.published(messages, _WARM)
                await trio.to_thread.run_sync(line.publish, timed)
                taken = await takers.wait(both)
                used = processor_seconds(service.pid) - before
            checked = await takers.check(await _expected(feed, _WARM + messages))
    theirs = taken.processor_seconds - before_theirs
    return _Run(messages, taken.at - start, used, theirs, both - warm, checked)


async def _counts(feed: Feed, numbers: Sequence[int]) -> list[int]:
    """Deliveries of the first so many messages, by lxml."""
    most = await _expected(feed, max(numbers))
    return [sum(one <= number for of in most for one in of) for number in numbers]


async def _expected(feed: Feed, number: int) -> list[list[int]]:
    """In a thread: whoever is connected goes on meanwhile."""
    return await trio.to_thread.run_sync(feed.expected, number)


def _tell(report: NetworkReport, suffix: str, sides: tuple[_Run, _Run], profiles: int) -> None:
    onyx, theirs = sides
    name = f"paths, {profiles:,}"
    matching = onyx.deliveries / onyx.messages / profiles * 100
    report.figure(f"paths_matching_{suffix}", f"{name}: profiles that match", matching, "%")
    for key, who, run in (("lxml_service", "lxml service", theirs), ("paths", "Onyx", onyx)):
        report.figure(f"{key}_messages_{suffix}", f"{name}: {who}, messages", run.messages)
        against = None if run is theirs else f"lxml_service_messages_per_s_{suffix}"
        rate = run.messages / run.seconds
        label = f"{name}: {who}, delivered messages"
        report.figure(f"{key}_messages_per_s_{suffix}", label, rate, "/s", against)
        for per, what, number in (
            ("message", "a message", run.messages),
            ("delivery", "a delivery", run.deliveries),
        ):
            against = None if run is theirs else f"lxml_service_cpu_us_{per}_{suffix}"
            label = f"{name}: {who}, processor time {what}"
            us = run.used / max(number, 1) * 1e6
            report.figure(f"{key}_cpu_us_{per}_{suffix}", label, us, "us", against)
        label = f"{name}: {who}, processor time of the users, a delivery"
        us = run.theirs / max(run.deliveries, 1) * 1e6
        report.figure(f"{key}_users_cpu_us_{suffix}", label, us, "us")
    label = f"{name}: Onyx over the lxml service, messages a second"
    ratio = onyx.messages / onyx.seconds / (theirs.messages / theirs.seconds)
    report.figure(f"lxml_service_ratio_{suffix}", label, ratio)
    checked = onyx.checked + theirs.checked
    report.figure(f"paths_checked_{suffix}", f"{name}: deliveries checked", checked)
