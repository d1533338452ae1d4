"""``registering``: many profiles, in bulk and one by one; both processes killed with them.

The same then with brokers in a line, where the profiles are at the other end than the source:
narrow ones, of which none covers another, so that every broker of the line knows of each of them.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from pathlib import Path

from benchmarks.network.onyx_network import (
    BROKER,
    REGISTRATION,
    OnyxNetwork,
    onyx_network,
    place_of,
    publish,
    publisher,
    register,
)
from benchmarks.network.sizes import Sizes
from benchmarks.report import Report
from benchmarks.workload import ProfileMaker, make_messages, make_schema
from onyx import NewProfile, User

_MANY = 100_000  # profiles with which a restart is measured
_LINE = 3  # brokers


async def measure_registering(sizes: Sizes, directory: Path, report: Report) -> None:
    """Profiles a second, until each is live; seconds until a killed process is ready again."""
    schema = make_schema(sizes.seed)
    total = sizes.registered_in_bulk + sizes.registered
    profiles = list(islice(ProfileMaker(schema, sizes.seed).distinct(), total))
    messages = make_messages(schema, sizes.seed, 2, sizes.message_bytes)
    at_once, one_by_one = profiles[: sizes.registered_in_bulk], profiles[sizes.registered_in_bulk :]
    async with onyx_network(directory) as network, publisher(network) as source:

        async def in_bulk() -> None:
            async with User(network.registration, "benchmark") as user:
                async for _ in user.add_profiles(at_once):
                    pass

        async def singly() -> None:
            await register(network, one_by_one, sizes.at_once)

        await _measure(network, BROKER, "register_bulk", "in bulk", at_once, in_bulk, report)
        await _measure(network, BROKER, "register", "one by one", one_by_one, singly, report)
        report.figure("register_at_once", "registering: requests at a time", sizes.at_once)
        await publish(source, iter(messages[:1]))
        start = time.perf_counter()
        await network.kill_broker()
        ready = time.perf_counter() - start
        async with publisher(network) as another:
            await publish(another, iter(messages[1:]))
        again = time.perf_counter() - start
        used = await network.processor_seconds()
        start = time.perf_counter()
        await network.kill(REGISTRATION)
        registration = time.perf_counter() - start
    report.figure("restarted", "registering: profiles at the restart", total)
    report.figure("restart_ready_s", "registering: broker killed, until ready again", ready, "s")
    report.figure("restart_cpu_s", "registering: its processor time", used, "s")
    report.figure("restart_s", "registering: broker killed, until it accepts", again, "s")
    label = "registering: registration service killed, until ready again"
    report.figure("restart_registration_s", label, registration, "s")
    if total == _MANY:
        report.figure("restart_100k_s", "registering: broker of 100,000, until ready", ready, "s")
    await _measure_line(sizes, directory / "line", report)


async def _measure_line(sizes: Sizes, directory: Path, report: Report) -> None:
    count = sizes.registered
    narrow = ProfileMaker(make_schema(sizes.seed), sizes.seed).distinct(ordinary=0.0)
    profiles = list(islice(narrow, 2 * count))
    host = f"B{_LINE}"
    async with onyx_network(directory, _LINE) as network, publisher(network):

        async def in_bulk() -> None:
            asked = [NewProfile(text, location=place_of(_LINE)) for text in profiles[:count]]
            async with User(network.registration, "benchmark") as user:
                async for _ in user.add_profiles(asked):
                    pass

        async def singly() -> None:
            await register(network, profiles[count:], sizes.at_once, _LINE)

        how = f"in a line of {_LINE}"
        some = profiles[:count]
        await _measure(
            network, host, "register_line_bulk", f"{how}, in bulk", some, in_bulk, report
        )
        some = profiles[count:]
        await _measure(network, host, "register_line", f"{how}, one by one", some, singly, report)
        start = time.perf_counter()
        await network.kill(host)
        ready = time.perf_counter() - start
        used = await network.processor_seconds(host)
    label = f"registering {how}: host broker of {2 * count:,} killed, until ready again"
    report.figure("restart_line_s", label, ready, "s")
    label = f"registering {how}: its processor time"
    report.figure("restart_line_cpu_s", label, used, "s")


async def _measure(
    network: OnyxNetwork,
    host: str,
    key: str,
    how: str,
    profiles: Sequence[str],
    add: Callable[[], Awaitable[None]],
    report: Report,
) -> None:
    """Profiles a second, as time passes, and what each costs the two processes."""
    before = await network.processor_seconds(host), await network.processor_seconds(REGISTRATION)
    start = time.perf_counter()
    await add()
    seconds = time.perf_counter() - start
    after = await network.processor_seconds(host), await network.processor_seconds(REGISTRATION)
    broker, registration = (
        (b - a) / len(profiles) * 1e6 for a, b in zip(before, after, strict=True)
    )
    name = f"registering {how}"
    report.figure(f"{key}_profiles", f"{name}: profiles", len(profiles))
    report.figure(f"{key}_per_s", f"{name}: live", len(profiles) / seconds, "/s")
    report.figure(f"{key}_cpu_us", f"{name}: processor time of the broker, each", broker, "us")
    label = f"{name}: of the registration service"
    report.figure(f"{key}_registration_cpu_us", label, registration, "us")
