"""``registering``: many profiles through the registration service; the broker killed with them."""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path

from benchmarks.network.onyx_network import onyx_network, publish, publisher, register
from benchmarks.network.sizes import Sizes
from benchmarks.report import Report
from benchmarks.workload import ProfileMaker, make_messages, make_schema


async def measure_registering(sizes: Sizes, directory: Path, report: Report) -> None:
    """Profiles a second, until each is live; seconds until a killed broker accepts a message."""
    schema = make_schema(sizes.seed)
    profiles = list(islice(ProfileMaker(schema, sizes.seed).distinct(), sizes.registered))
    messages = make_messages(schema, sizes.seed, 2, sizes.message_bytes)
    async with onyx_network(directory) as network, publisher(network) as source:
        before = await network.processor_seconds()
        start = time.perf_counter()
        await register(network, profiles, sizes.at_once)
        seconds = time.perf_counter() - start
        used = await network.processor_seconds() - before
        await publish(source, iter(messages[:1]))
        start = time.perf_counter()
        await network.kill_broker()
        ready = time.perf_counter() - start
        async with publisher(network) as another:
            await publish(another, iter(messages[1:]))
        again = time.perf_counter() - start
    report.figure("registered", "registering: profiles", sizes.registered)
    report.figure("register_at_once", "registering: requests at a time", sizes.at_once)
    rate = sizes.registered / seconds
    report.figure("register_per_s", "registering: live", rate, "/s")
    label = "registering: processor time of the broker, a profile"
    report.figure("register_cpu_us", label, used / sizes.registered * 1e6, "us")
    report.figure("restart_ready_s", "registering: killed, until ready again", ready, "s")
    report.figure("restart_s", "registering: killed, until a message is accepted", again, "s")
