"""Peers: other brokers, where their program is installed, on the scenarios one, fan and away.

They look at a subject where Onyx reads a message: what is compared is the price of a message on its
way through a broker, and of keeping it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

import trio

from benchmarks.network.feed import Feed, everything_feed, small_feed
from benchmarks.network.peer_process import PeerProcess, Program, peer_process
from benchmarks.network.plain_publisher import PlainPublisher
from benchmarks.network.processor import processor_seconds
from benchmarks.network.protocols import PROTOCOLS
from benchmarks.network.service_protocol import declare
from benchmarks.network.sizes import Sizes
from benchmarks.network.syncs import counted_syncs
from benchmarks.network.takers import Takers, plain_takers
from benchmarks.report import Report

_WARM = 100


@dataclass(frozen=True, slots=True)
class Peer:
    """``name`` in keys; ``protocol`` of PROTOCOLS; the ``scenarios`` that it can do, with
    ``rounds`` times as many small messages as Onyx, as processor time is known to 10 ms only;
    ``kept``: where what is confirmed is; ``ratios``: its name in the key of a scenario's ratio,
    where it is another."""

    name: str
    program: Program
    protocol: str
    kept: str
    scenarios: Sequence[str] = ("one", "fan")
    rounds: int = 20
    ratios: Mapping[str, str] = field(default_factory=dict)


_NATS = ["-a", "127.0.0.1", "-p", "{port}"]
_REDIS = ["--bind", "127.0.0.1", "--port", "{port}", "--dir", "{directory}", "--appendonly", "no"]
_RABBITMQ = Program(
    "rabbitmq-server",
    environment={
        "HOME": "{directory}",
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "ERL_EPMD_PORT": "{third_port}",
        "RABBITMQ_CONF_ENV_FILE": "{directory}/none",
        "RABBITMQ_CONFIG_FILE": "{directory}/rabbitmq.conf",
        "RABBITMQ_DIST_PORT": "{second_port}",
        "RABBITMQ_ENABLED_PLUGINS_FILE": "{directory}/plugins",
        "RABBITMQ_LOG_BASE": "{directory}/log",
        "RABBITMQ_MNESIA_BASE": "{directory}/mnesia",
        "RABBITMQ_NODENAME": "benchmark@localhost",
    },
    files={
        ".erlang.cookie": "benchmark",
        "plugins": "[].",
        "rabbitmq.conf": "listeners.tcp.1 = 127.0.0.1:{port}\n",
    },
    beside=["epmd", "-port", "{third_port}"],
    # What Debian puts on the path changes the user, who may not read the directory.
    places=["/usr/lib/rabbitmq/bin"],
)
_MOSQUITTO = """\
listener {port} 127.0.0.1
allow_anonymous true
user root
persistence true
persistence_location {directory}/
max_queued_messages 0
max_inflight_messages 0
set_tcp_nodelay true
"""
_ACTIVEMQ = """\
<beans xmlns="http://www.springframework.org/schema/beans"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
    xsi:schemaLocation="http://www.springframework.org/schema/beans
      http://www.springframework.org/schema/beans/spring-beans-2.0.xsd
      http://activemq.apache.org/schema/core
      http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="benchmark" useJmx="false"
      dataDirectory="{directory}/data">
    <persistenceAdapter><kahaDB directory="{directory}/data/kahadb"/></persistenceAdapter>
    <transportConnectors>
      <transportConnector name="stomp" uri="stomp+nio://127.0.0.1:{port}"/>
    </transportConnectors>
  </broker>
</beans>
"""
_ACTIVEMQ_JAR = "/usr/share/activemq/bin/activemq.jar"
_ACTIVEMQ_OPTIONS = [
    "-Xmx1g",
    "-Dactivemq.home=/usr/share/activemq",
    "-Dactivemq.base={directory}",
    "-Dactivemq.conf={directory}",
    "-Dactivemq.data={directory}/data",
    "-jar",
    _ACTIVEMQ_JAR,
    "start",
    "xbean:file:activemq.xml",
]
PEERS: Mapping[str, Sequence[Peer]] = {
    "nats": (
        Peer(
            "jetstream",
            Program("nats-server", [*_NATS, "-js", "-sd", "{directory}"]),
            "jetstream",
            "in files",
            scenarios=("one", "fan", "away"),
            rounds=5,
            ratios={"one": "nats"},
        ),
        Peer("nats", Program("nats-server", _NATS), "nats", "nowhere", ratios={"one": "nats_core"}),
    ),
    "rabbitmq": (
        Peer("rabbitmq", _RABBITMQ, "amqp", "in files", ("one", "fan", "away"), rounds=5),
    ),
    "mosquitto": (
        Peer(
            "mosquitto",
            Program(
                "mosquitto",
                ["-c", "{directory}/mosquitto.conf"],
                files={"mosquitto.conf": _MOSQUITTO},
            ),
            "mqtt",
            "in memory",
            rounds=5,
        ),
    ),
    "activemq": (
        Peer(
            "activemq",
            Program(
                "java",
                _ACTIVEMQ_OPTIONS,
                files={"activemq.xml": _ACTIVEMQ},
                needs=[_ACTIVEMQ_JAR],
            ),
            "stomp",
            "in files",
            rounds=2,
        ),
    ),
    "redis": (Peer("redis", Program("redis-server", [*_REDIS, "--save", ""]), "redis", "nowhere"),),
}


async def measure_peers(
    name: str, scenarios: Sequence[str], sizes: Sizes, directory: Path, report: Report
) -> None:
    """What it can do of the scenarios; a remark where its program is not installed."""
    for peer in PEERS[name]:
        if peer.program.found() is None:
            report.remark(f"{peer.name}: {peer.program.name} is not installed")
            continue
        for scenario in peer.scenarios:
            if scenario in scenarios:
                here = directory / peer.name / scenario
                here.mkdir(parents=True)
                await _MEASURES[scenario](peer, sizes, here, report)


async def _measure_one(peer: Peer, sizes: Sizes, directory: Path, report: Report) -> None:
    messages = peer.rounds * sizes.one_messages
    async with _small(peer, 1, sizes, directory) as line:
        used, accepted = await line.publish(messages)
        async with counted_syncs(line.process.pid) as syncs:
            await line.publish(sizes.synced_messages)
        await line.check()
    us = used / messages * 1e6
    label = f"one: {peer.name}, processor time a message"
    report.figure(f"cpu_us_one_{peer.name}", label, us, "us")
    label = f"one: {peer.name}, accepted, kept {peer.kept}"
    report.figure(f"accepted_per_s_{peer.name}", label, messages / accepted, "/s")
    if syncs.count is None:
        report.remark(f"{peer.name}: fsyncs are not counted, which takes strace")
    label = f"one: {peer.name}, fsyncs, {sizes.synced_messages:,} messages"
    report.figure(f"fsyncs_one_{peer.name}", label, syncs.count)
    _tell_ratio(report, "one", peer, us)


async def _measure_fan(peer: Peer, sizes: Sizes, directory: Path, report: Report) -> None:
    messages, number = peer.rounds * sizes.fan_messages, sizes.fan_profiles
    async with _small(peer, number, sizes, directory) as line:
        used, _ = await line.publish(messages)
        await line.check()
    us = used / messages / number * 1e6
    label = f"fan: {peer.name}, processor time a delivery"
    report.figure(f"cpu_us_fan_{peer.name}", label, us, "us")
    _tell_ratio(report, "fan", peer, us)


async def _measure_away(peer: Peer, sizes: Sizes, directory: Path, report: Report) -> None:
    messages, number, name = sizes.away_messages, sizes.away_profiles, peer.name
    feed = everything_feed(number, messages, sizes)
    file = feed.write(directory / "feed.json")
    rounds = peer.rounds
    async with _line(peer, feed, 0, directory / "nobody") as line:
        alone = (await line.publish(rounds * messages))[0] / rounds
    async with _line(peer, feed, number, directory / "away") as line:
        process = line.process
        empty = process.disk_bytes()
        used, _ = await line.publish(messages)
        stored = process.disk_bytes() - empty
        await line.publish(messages)
        job = (file, peer.protocol, process.port, number, sizes.seconds)
        async with plain_takers(*job) as takers:
            before, start = processor_seconds(process.pid), time.perf_counter()
            await takers.connect()
            taken = await takers.wait(2 * messages * number)
            drained = await process.processor_seconds() - before
            await takers.check([list(range(1, 2 * messages + 1))] * number)
    label = f"away: {name}, bytes on disk over bytes of the messages"
    report.figure(f"away_disk_ratio_{name}", label, stored / feed.size(messages))
    label = f"away: {name}, processor time, a message, without subscriptions"
    report.figure(f"away_alone_cpu_us_{name}", label, alone / messages * 1e6, "us")
    label = f"away: {name}, processor time, a message"
    report.figure(f"away_cpu_us_{name}", label, used / messages * 1e6, "us")
    if alone:
        label = f"away: {name}, processor time over that without subscriptions"
        report.figure(f"away_publish_ratio_{name}", label, used / alone)
    report.figure(f"drain_s_{name}", f"away: {name}, until they are taken", taken.at - start, "s")
    label = f"away: {name}, processor time while they are taken, a delivery"
    us = drained / (2 * messages * number) * 1e6
    report.figure(f"drain_cpu_us_{name}", label, us, "us")


_MEASURES = {"one": _measure_one, "fan": _measure_fan, "away": _measure_away}


def _tell_ratio(report: Report, scenario: str, peer: Peer, theirs: float) -> None:
    """Where Onyx was measured in this run."""
    us = report.value(f"cpu_us_{scenario}")
    if us is not None and theirs:
        name = peer.ratios.get(scenario, peer.name)
        label = f"{scenario}: Onyx over {peer.name}, processor time"
        report.figure(f"cpu_ratio_{name}_{scenario}", label, us / theirs)


class _Line:
    """A publisher at a peer, and the takers of all that it publishes, where there are any."""

    def __init__(
        self, process: PeerProcess, publisher: PlainPublisher, feed: Feed, takers: Takers | None
    ) -> None:
        self.process = process
        self._publisher = publisher
        self._feed = feed
        self._takers = takers
        self._published = 0

    async def publish(self, messages: int) -> tuple[float, float]:
        """Processor seconds of the peer until all is taken; seconds until all was confirmed."""
        before, start = await self.process.processor_seconds(), time.perf_counter()
        feed = self._feed.published(messages, self._published)
        await trio.to_thread.run_sync(self._publisher.publish, feed)
        accepted = time.perf_counter() - start
        self._published += messages
        if self._takers is not None:
            await self._takers.wait(self._published * len(self._feed.profiles))
        return await self.process.processor_seconds() - before, accepted

    async def check(self) -> None:
        """Every delivery."""
        assert self._takers is not None
        numbers = list(range(1, self._published + 1))
        await self._takers.check([numbers] * len(self._feed.profiles))


@asynccontextmanager
async def _line(
    peer: Peer, feed: Feed, number: int, directory: Path, taken_s: float = 0.0
) -> AsyncIterator[_Line]:
    """A new one with so many subscriptions; ``taken_s``: the patience of takers who are there."""
    make = PROTOCOLS[peer.protocol]
    async with peer_process(peer.program, directory) as process:
        port = process.port
        await trio.to_thread.run_sync(declare, make(), port, number)
        with closing(await trio.to_thread.run_sync(PlainPublisher, make(), port)) as publisher:
            if not taken_s:
                yield _Line(process, publisher, feed, None)
                return
            file = feed.write(directory.with_suffix(".json"))
            async with plain_takers(file, peer.protocol, port, number, taken_s) as takers:
                await takers.connect()
                yield _Line(process, publisher, feed, takers)


@asynccontextmanager
async def _small(peer: Peer, number: int, sizes: Sizes, directory: Path) -> AsyncIterator[_Line]:
    """One of small messages that is warm, with so many takers."""
    feed = small_feed(number)
    async with _line(peer, feed, number, directory / "peer", sizes.seconds) as line:
        await line.publish(_WARM)
        yield line
