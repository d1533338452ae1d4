"""What it costs a broker that somebody reads its metrics once a second.

Two networks of one broker each, with the same profiles: one has an admin address, which is scraped,
the other has none.  They take turns with the same messages, as fast as they take them; compared is
the processor time of the broker's process for a message.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import trio

from benchmarks.benchmark import WrongAnswers
from onyx import DataSource, User, launch
from onyx.launcher import RunningNetwork
from onyx.registration_client import NetworkClient
from overlay.admin import AdminOptions
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
    """Microseconds of the broker's processor time for a message, in the round that took least, as
    other work on a machine only adds; how often it was scraped, and milliseconds of one such when
    the broker has nothing else to do."""

    scraped_us: float
    plain_us: float
    scrapes: int
    scrape_ms: float


def measure(rounds: int, messages: int, profiles: int) -> Overhead:
    """Rounds of so many messages, with so many profiles; WrongAnswers where a scrape gives none."""
    return trio.run(_measure, rounds, messages, profiles)


@dataclass(slots=True)
class _Side:
    """One network; ``admin`` is "" where it has none."""

    source: DataSource
    pid: int
    admin: str
    times: list[float]


async def _measure(rounds: int, messages: int, profiles: int) -> Overhead:
    scrapes = 0
    with tempfile.TemporaryDirectory(prefix="onyx-metrics-") as place:
        data = Path(place)
        async with (
            _side(data / "plain", profiles, None) as plain,
            _side(data / "scraped", profiles, AdminOptions(port_offset=0)) as scraped,
        ):
            for number in range(rounds + 1):
                for side in (plain, scraped):
                    took, count = await _round(side, messages)
                    scrapes += count
                    if number:  # the first fills caches
                        side.times.append(took / messages * 1e6)
            before = _cpu_seconds(scraped.pid)
            async with _Scraper(scraped.admin) as scraper:
                for _ in range(IDLE_SCRAPES):
                    await scraper.scrape()
            scrape_ms = (_cpu_seconds(scraped.pid) - before) / IDLE_SCRAPES * 1e3
    return Overhead(min(scraped.times), min(plain.times), scrapes, scrape_ms)


@asynccontextmanager
async def _side(data: Path, profiles: int, admin: AdminOptions | None) -> AsyncIterator[_Side]:
    topology = replace(_topology(data), admin=admin)
    async with launch(topology, write_line=lambda line: None) as network:
        source = await DataSource.register(network.registration)
        async with source, User(network.registration, "ann") as user:
            wanted = [f"//m[n = {number % ASKED_FOR}][k = {number}]" for number in range(profiles)]
            async for _ in user.add_profiles(wanted):
                pass
            where = "" if admin is None else await _admin(network)
            yield _Side(source, network.pids["B1"], where, [])


async def _admin(network: RunningNetwork) -> str:
    async with NetworkClient(network.topology.where("B1")) as client:
        return str((await client.statistics())["node"]["admin"])


def _topology(data: Path) -> Topology:
    return parse_topology(
        f'name = "metrics"\ndata_directory = "{data}"\n'
        '[registration]\nid = "R1"\nlisten = "127.0.0.1:0"\n'
        '[[broker]]\nid = "B1"\nlisten = "127.0.0.1:0"\n',
        "metrics.toml",
    )


async def _round(side: _Side, messages: int) -> tuple[float, int]:
    """Seconds of processor time, and how many scrapes."""
    scrapes = 0

    async def scrape() -> None:
        nonlocal scrapes
        async with _Scraper(side.admin) as scraper:
            while True:
                await scraper.scrape()
                scrapes += 1
                next_at = _cpu_seconds(side.pid) + SCRAPE_SECONDS
                while _cpu_seconds(side.pid) < next_at:
                    await trio.sleep(LOOK_SECONDS)

    before = _cpu_seconds(side.pid)
    texts = [f"<m><n>{n % ASKED_FOR}</n><k>{n}</k></m>".encode() for n in range(messages)]
    async with trio.open_nursery() as nursery:
        if side.admin:
            nursery.start_soon(scrape)
        outcomes = [outcome.accepted async for outcome in side.source.publish_all(texts)]
        nursery.cancel_scope.cancel()
    if not all(outcomes):
        raise WrongAnswers("a message was refused")
    return _cpu_seconds(side.pid) - before, scrapes


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
