"""OnyxNetwork: ``onyx up`` of a few brokers, in processes and a directory of their own."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from benchmarks.benchmark import BenchmarkError
from benchmarks.network.helper import Helper, running
from benchmarks.network.processor import (
    disk_bytes,
    processor_seconds,
    settled_processor_seconds,
)
from onyx import DataSource, User
from onyx.registration_client import NetworkClient
from overlay.statistics import NodeStatistics

BROKER = "B1"
REGISTRATION = "R1"
_START_SECONDS = 60.0


class OnyxNetwork:
    """A network that is up: ``registration`` and ``broker``, the first, are "host:port", ``pid``
    the broker's process, another one after ``kill_broker``, ``gateway`` its URL where one was
    asked for."""

    def __init__(self, launcher: Helper, directory: Path) -> None:
        self.registration = ""
        self.broker = self.gateway = ""
        self.pid = 0
        self._pids: dict[str, int] = {}
        self._launcher = launcher
        self._data = directory / "data"

    async def come_up(self) -> None:
        """Until everything is ready."""
        up = await self._event("up")
        self.registration, self.broker = up["registration"], up["brokers"][BROKER]
        self.gateway = up.get("gateway") or ""
        self.pid = up["pids"][BROKER]
        self._pids = dict(up["pids"])

    async def processor_seconds(self, node: str = BROKER) -> float:
        """Of the broker, since it was started; waits until it has nothing to do."""
        return await settled_processor_seconds(self._pids[node])

    def processor_seconds_now(self) -> float:
        """Of the broker, whatever it does."""
        return processor_seconds(self.pid)

    @property
    def certificate(self) -> Path:
        """The file of the broker's certificate and key."""
        return self._data / "identity" / f"broker.{BROKER}.pem"

    def disk_bytes(self) -> int:
        """The data directory, all of it."""
        return disk_bytes(self._data)

    async def longest_turn(self) -> tuple[float, str] | None:
        """Of the broker: milliseconds of processor time, and what took most of it; None where it
        does not tell."""
        async with NetworkClient(self.broker) as client:
            node = (await client.statistics(NodeStatistics)).node
        return node.longest_turn_ms, node.longest_turn_of

    async def kill_broker(self) -> None:
        """SIGKILL; returns when the launcher has started it again and it is ready."""
        await self.kill(BROKER)
        self.pid = self._pids[BROKER]

    async def kill(self, node: str) -> None:
        """The same of any process."""
        os.kill(self._pids[node], signal.SIGKILL)
        self._pids[node] = (await self._event("ready", node))["pid"]

    async def _event(self, name: str, node: str = BROKER) -> Any:
        event: Any = {}
        while event.get("event") != name or event.get("node", node) != node:
            with trio.move_on_after(_START_SECONDS) as waiting:
                event = await self._launcher.answer()
            if waiting.cancelled_caught:
                raise BenchmarkError(
                    f"the network was not {name}, and nothing happened for {_START_SECONDS:g} s"
                )
        return event


@asynccontextmanager
async def onyx_network(
    directory: Path, brokers: int = 1, *options: str, capacity: int = 0
) -> AsyncIterator[OnyxNetwork]:
    """A network that is new, of brokers in a line, with its data below a directory and options of
    ``onyx up``; ended with the block.  ``capacity`` of each broker, 0: the usual one."""
    directory.mkdir(parents=True)
    file = directory / "network.toml"
    file.write_text(_line(brokers, capacity), encoding="utf-8")
    data = str(directory / "data")
    command = [sys.executable, "-m", "onyx", "up", str(file), "--data", data, "--json", *options]
    async with running("onyx up", command) as launcher:
        network = OnyxNetwork(launcher, directory)
        await network.come_up()
        yield network


def place_of(broker: int) -> tuple[float, float]:
    """Where the n-th broker of a line stands, from 1: latitude and longitude."""
    return 0.0, 10.0 * broker


def _line(brokers: int, capacity: int) -> str:
    parts = ['name = "benchmark"', _node("registration", REGISTRATION)]
    parts.append("[planning]\nauto = false")  # nothing else runs while something is measured
    room = f"\ncapacity = {capacity}" if capacity else ""
    for number in range(1, brokers + 1):
        parts.append(_node("[broker]", f"B{number}") + f"\nplace = {list(place_of(number))}{room}")
    for number in range(1, brokers):
        parts.append(f'[[link]]\nends = ["B{number}", "B{number + 1}"]')
    return "\n\n".join(parts) + "\n"


def _node(kind: str, name: str) -> str:
    return f'[{kind}]\nid = "{name}"\nlisten = "127.0.0.1:0"'


@asynccontextmanager
async def publisher(network: OnyxNetwork) -> AsyncIterator[DataSource]:
    """A new source, connected, at the first broker."""
    source = await DataSource.register(network.registration, name="benchmark", location=place_of(1))
    async with source:
        yield source


async def publish(source: DataSource, messages: Iterator[bytes]) -> None:
    """All of them, many before the outcome of the first is known; BenchmarkError for a refusal."""
    async for outcome in source.publish_all(messages):
        if not outcome.accepted:
            raise BenchmarkError(f"message {outcome.number} was refused: {outcome.reason}")


async def register(
    network: OnyxNetwork, texts: Sequence[str], at_once: int, broker: int = 1
) -> list[str]:
    """Profiles at the n-th broker, so many requests at once, until all are live; their ids."""
    ids = [""] * len(texts)
    left = iter(enumerate(texts))
    async with User(network.registration, "benchmark") as user, trio.open_nursery() as nursery:

        async def work() -> None:
            for place, text in left:
                ids[place] = (await user.add_profile(text, location=place_of(broker))).id

        for _ in range(at_once):
            nursery.start_soon(work)
    return ids
