"""A network of two brokers in which every node has a standby, its rows in a real PostgreSQL server.

It says which process is a node by now; ``messages`` flow from B1 to B2, one after the other, and
each has to arrive once and in order, whoever is killed meanwhile or stands still.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from msgspec.structs import replace

from onyx import DataSource, RunningNetwork, User, launch
from overlay.topology import parse_topology
from tests.postgres import Postgres
from tests.survival.replicas import Replicated

NORTH, SOUTH = (10.0, 0.0), (20.0, 0.0)
TOPOLOGY = """
name = "{name}"
[stores]
url = "{url}"
lease_s = {lease}
[limits.link]
keepalive_seconds = 1
[registration]
id = "R1"
listen = "127.0.0.1:0"
standby = "127.0.0.1:0"
[[broker]]
id = "B1"
listen = "127.0.0.1:0"
standby = "127.0.0.1:0"
place = [10, 0]
[[broker]]
id = "B2"
listen = "127.0.0.1:0"
standby = "127.0.0.1:0"
place = [20, 0]
[[link]]
ends = ["B1", "B2"]
"""
IS_NODE = re.compile(r"(\S+) info \S+ is (\S+) from now on, epoch (\d+)$")
WINDOW = 20  # messages that are published and not delivered, so that some always are on their way


class Standbys:
    """The network while it runs; ``active`` is the process that is a node, of each."""

    network: RunningNetwork

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.active: dict[str, str] = {}
        self.epochs: dict[str, list[int]] = defaultdict(list)
        self.published: list[float] = []  # when, by number
        self.delivered: list[float] = []
        self._changed = trio.Event()
        self._news = trio.Event()

    def take_line(self, line: str) -> None:
        self.lines.append(line)
        if found := IS_NODE.search(line):
            process, node, epoch = found.groups()
            self.active[node] = process
            self.epochs[node].append(int(epoch))
            self._changed.set()
            self._changed = trio.Event()

    def pid(self, node: str) -> int:
        """Of the process that it is."""
        return self.network.pids[self.active[node]]

    async def another_than(self, node: str, process: str) -> None:
        while self.active[node] == process:
            await self._changed.wait()

    async def wait_epoch(self, node: str, epoch: int) -> None:
        """Until a process is the node with that epoch: its standby, or the same one, if that has
        started again before the standby looked."""
        while self.epochs[node][-1] < epoch:
            await self._changed.wait()

    async def wait_delivered(self, count: int) -> None:
        while len(self.delivered) < count:
            await self._news.wait()

    @asynccontextmanager
    async def traffic(self, interval: float = 0.0) -> AsyncIterator[Callable[[], None]]:
        """Messages, so many seconds apart, until what is yielded is called; all have arrived in
        the end, each once and in order."""
        is_over = False

        def end() -> None:
            nonlocal is_over
            is_over = True

        async def messages() -> AsyncIterator[bytes]:
            while not is_over:
                await trio.sleep(interval)
                while not interval and len(self.published) - len(self.delivered) > WINDOW:
                    await self._news.wait()
                self.published.append(trio.current_time())
                yield f"<n>{len(self.published)}</n>".encode()

        async def publish() -> None:
            outcomes = [outcome async for outcome in source.publish_all(messages())]
            assert [outcome.number for outcome in outcomes] == list(
                range(1, len(self.published) + 1)
            )
            assert all(outcome.accepted for outcome in outcomes)

        async def take() -> None:
            async for delivery in user.results(profile.id):
                assert delivery.number == len(self.delivered) + 1
                assert delivery.results == [f"<n>{delivery.number}</n>".encode()]
                self.delivered.append(trio.current_time())
                self._news.set()
                self._news = trio.Event()

        source = await DataSource.register(self.network.registration, location=NORTH)
        async with source, User(self.network.registration, "ada") as user:
            profile = await user.add_profile("//n", location=SOUTH)
            assert (source.root, profile.host) == ("B1", "B2")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(take)
                async with trio.open_nursery() as publishing:
                    publishing.start_soon(publish)
                    yield end
                    end()
                await self.wait_delivered(len(self.published))
                nursery.cancel_scope.cancel()


@asynccontextmanager
async def standbys(
    postgres: Postgres | Replicated, data: Path, lease_seconds: float
) -> AsyncIterator[Standbys]:
    """The network, each time another one in the server."""
    schema = postgres.new_schema().replace("/", "-")
    text = TOPOLOGY.format(name=schema, url=postgres.url, lease=lease_seconds)
    topology = replace(parse_topology(text, "standbys"), data_directory=data)
    found = Standbys()
    async with launch(topology, write_line=found.take_line) as found.network:
        yield found
