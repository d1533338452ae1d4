"""``clients``: small messages that wait, taken one at a time on a connection, by each interface."""

from __future__ import annotations

from pathlib import Path

from benchmarks.benchmark import WrongAnswers
from benchmarks.network.feed import small_feed
from benchmarks.network.helper import helper
from benchmarks.network.onyx_network import onyx_network, publish, publisher, register
from benchmarks.network.pings import NetworkReport
from benchmarks.network.sizes import Sizes

WAYS = ("onyx", "aio", "blocking")


async def measure_clients(sizes: Sizes, directory: Path, report: NetworkReport) -> None:
    """Processor time of the user's process a delivery; of the others over that of ``onyx``."""
    directory.mkdir()
    feed, count = small_feed(2 * len(WAYS)), sizes.client_messages
    times: dict[str, float] = {}
    async with onyx_network(directory / "network") as network, publisher(network) as source:
        ids = iter(await register(network, feed.profiles, sizes.at_once))
        await publish(source, feed.published(count))
        for way in (*WAYS, *reversed(WAYS)):
            job = {"way": way, "registration": network.registration, "count": count}
            async with helper("benchmarks.network.client", job | {"profile": next(ids)}) as client:
                found = await client.answer()
            if found["results"] != [each.decode() for each in feed.published(count)]:
                raise WrongAnswers(f"{way}: the results are not those that were published")
            times[way] = times.get(way, 0.0) + found["seconds"] / 2
    label = "clients: processor time of a user's process with onyx, a delivery"
    report.figure("client_us", label, times["onyx"] / (count - 1) * 1e6, "us")
    for way in WAYS[1:]:
        label = f"clients: the same with onyx.{way}, over onyx"
        report.figure(f"client_{way}_ratio", label, times[way] / times["onyx"])
    report.figure("clients_checked", "clients: deliveries checked", 2 * len(WAYS) * count)
