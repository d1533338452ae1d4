"""What it costs a broker that somebody reads its metrics once a second.

One broker takes the same messages in rounds, as fast as it takes them; in every second round it is
scraped.  Compared is the processor time of its process for a message, each round with its
neighbour: two processes of the same program differ by more than a scrape costs.  What a broker
counts it counts whether anybody reads it or not.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import trio

from benchmarks.benchmark import WrongAnswers
from onyx import DataSource, User, launch
from onyx.launcher import RunningNetwork
from onyx.registration_client import NetworkClient
from overlay.statistics import NodeStatistics
from overlay.topology import Topology, parse_topology

SCRAPE_SECONDS = 1.0
"""Of the broker's processor time: of one that is busy all the time, on a processor of its own, that
is once a second; on a machine with other work it is as often for as many messages."""
LOOK_SECONDS = 0.05
IDLE_SCRAPES = 50
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: b\r\n\r\n"
ASKED_FOR = 10  # different values, of which each message has one


@dataclass(frozen=True, slots=True)
class Overhead:
    """Microseconds of the broker's processor time for a message, by round, scraped and not, pairs
    that follow each other; how often it was scraped, and milliseconds of one such when the broker
    has nothing else to do."""

    scraped_us: list[float]
    plain_us: list[float]
    scrapes: int
    scrape_ms: float

    @property
    def ratios(self) -> list[float]:
        """Of each pair of rounds."""
        return [a / b for a, b in zip(self.scraped_us, self.plain_us, strict=True)]


def measure(rounds: int, messages: int, profiles: int) -> Overhead:
    """Pairs of rounds of so many messages, with so many profiles; WrongAnswers where a scrape gives
    none."""
    return trio.run(_measure, rounds, messages, profiles)


async def _measure(rounds: int, messages: int, profiles: int) -> Overhead:
    with tempfile.TemporaryDirectory(prefix="onyx-metrics-") as place:
        topology = _topology(Path(place))
        async with launch(topology, write_line=lambda line: None) as network:
            source = await DataSource.register(network.registration)
            async with source, User(network.registration, "ann") as user:
                wanted = [f"//m[n = {n % ASKED_FOR}][k = {n}]" for n in range(profiles)]
                async for _ in user.add_profiles(wanted):
                    pass
                return await _rounds(network, source, rounds, messages)


async def _rounds(
    network: RunningNetwork, source: DataSource, rounds: int, messages: int
) -> Overhead:
    pid, admin = network.pids["B1"], await _admin(network)
    found = Overhead([], [], 0, 0.0)
    await _round(source, pid, "", messages)  # the first fills caches
    scrapes = 0
    for number in range(rounds):
        sides = [("", found.plain_us), (admin, found.scraped_us)]
        for where, times in reversed(sides) if number % 2 else sides:
            took, count = await _round(source, pid, where, messages)
            times.append(took / messages * 1e6)
            scrapes += count
    before = _cpu_seconds(pid)
    async with _Scraper(admin) as scraper:
        for _ in range(IDLE_SCRAPES):
            await scraper.scrape()
    scrape_ms = (_cpu_seconds(pid) - before) / IDLE_SCRAPES * 1e3
    return replace(found, scrapes=scrapes, scrape_ms=scrape_ms)


async def _admin(network: RunningNetwork) -> str:
    async with NetworkClient(network.topology.where("B1")) as client:
        return str((await client.statistics(NodeStatistics)).node.admin)


def _topology(data: Path) -> Topology:
    return parse_topology(
        f'name = "metrics"\ndata_directory = "{data}"\n'
        '[registration]\nid = "R1"\nlisten = "127.0.0.1:0"\n'
        '[[broker]]\nid = "B1"\nlisten = "127.0.0.1:0"\n'
        "[admin]\nport_offset = 0\n",
        "metrics.toml",
    )


async def _round(source: DataSource, pid: int, admin: str, messages: int) -> tuple[float, int]:
    """Seconds of processor time, and how many scrapes; ``admin`` is "" where nobody scrapes."""
    scrapes = 0

    async def scrape() -> None:
        nonlocal scrapes
        async with _Scraper(admin) as scraper:
            while True:
                await scraper.scrape()
                scrapes += 1
                next_at = _cpu_seconds(pid) + SCRAPE_SECONDS
                while _cpu_seconds(pid) < next_at:
                    await trio.sleep(LOOK_SECONDS)

    before = _cpu_seconds(pid)
    texts = [f"<m><n>{n % ASKED_FOR}</n><k>{n}</k></m>".encode() for n in range(messages)]
    async with trio.open_nursery() as nursery:
        if admin:
            nursery.start_soon(scrape)
        outcomes = [outcome.accepted async for outcome in source.publish_all(texts)]
        nursery.cancel_scope.cancel()
    if not all(outcomes):
        raise WrongAnswers("a message was refused")
    return _cpu_seconds(pid) - before, scrapes


class _Scraper:
    """A connection that is kept, as Prometheus does; a context manager."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def __aenter__(self) -> Self:
        host, _, port = self._address.rpartition(":")
        self._stream = await trio.open_tcp_stream(host, int(port))
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stream.aclose()

    async def scrape(self) -> None:
        """WrongAnswers unless it is answered with metrics."""
        await self._stream.send_all(REQUEST)
        answer = b""
        while True:
            part = await self._stream.receive_some()
            answer += part
            head, end, body = answer.partition(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
            if not part or (end and len(body) >= int(length)):
                break
        if b"onyx_published_total" not in answer:
            raise WrongAnswers(f"{self._address} gave no metrics, but {answer[:80]!r}")


def _cpu_seconds(pid: int) -> float:
    """Of all threads of a process that runs, to the nanosecond."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    spent = ((thread / "schedstat").read_text(encoding="ascii").split()[0] for thread in threads)
    return sum(map(int, spent)) / 1e9
