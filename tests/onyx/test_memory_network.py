"""Two brokers and the registration service as in production, but over memory streams.

The cores, the link layer, the Trio node and SQLite stores are the real ones; only TCP is replaced,
and the clock, so that keep-alives of minutes pass in no time.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio
import trio.testing

from onyx.broker.broker_core import BrokerCore
from overlay.link.door import Door
from overlay.link.events import Action, Event
from overlay.link.node import Core, run_node
from overlay.link.store import Store
from overlay.nodes import Address, Addresses
from overlay.topology import Topology, parse_topology
from registration.registration_core import RegistrationCore
from tests.simulation.sim_clients import AskingClient, SourceClient, SubscriberClient

TOPOLOGY = parse_topology(
    """
    name = "two"
    [registration]
    id = "R1"
    listen = "r1:1"
    [[broker]]
    id = "B1"
    listen = "b1:1"
    place = [0, 0]
    [[broker]]
    id = "B2"
    listen = "b2:1"
    place = [50, 50]
    [[link]]
    ends = ["B1", "B2"]
    """,
    "two",
)


class MemoryListener(trio.abc.Listener[trio.abc.Stream]):
    """Accepts what MemoryNet.connect dials."""

    def __init__(self) -> None:
        self.dialled, self._accepted = trio.open_memory_channel[trio.abc.Stream](math.inf)

    async def accept(self) -> trio.abc.Stream:
        return await self._accepted.receive()

    async def aclose(self) -> None:
        self.dialled.close()
        await trio.lowlevel.checkpoint()


class Progress:
    """Wraps a core; whoever waits for a condition looks again after every event of any core."""

    waiting = trio.lowlevel.ParkingLot()

    def __init__(self, core: Core) -> None:
        self.core = core

    def handle(self, event: Event, now: float) -> list[Action]:
        actions = self.core.handle(event, now)
        self.waiting.unpark_all()
        return actions


async def until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(3600):  # of the clock that jumps
        while not condition():
            await Progress.waiting.park()


class _NoStore:
    def commit(self, changes: object) -> None:
        """Clients of the test remember nothing."""


class MemoryNet:
    def __init__(self, topology: Topology, directory: Path, nursery: trio.Nursery) -> None:
        self.topology = topology
        self.directory = directory
        self.nursery = nursery
        self.streams: list[trio.abc.Stream] = []
        self._listeners: dict[str, MemoryListener] = {}
        self._running: dict[str, tuple[trio.CancelScope, trio.Event]] = {}

    async def connect(self, host: str, port: int, seconds: float) -> trio.abc.Stream | None:
        listener = self._listeners.get(host)
        if listener is None:
            return None
        ours, theirs = trio.testing.memory_stream_pair()
        try:
            await listener.dialled.send(theirs)
        except trio.ClosedResourceError:
            return None  # killed
        self.streams += [ours, theirs]
        return ours

    async def serve(self, node: str, dials: list[str]) -> None:
        """Start a node from its store."""
        scope, ended = self._running[node] = trio.CancelScope(), trio.Event()
        await self.nursery.start(self._serve, node, dials, scope, ended)

    async def kill(self, node: str) -> None:
        """Whatever it is doing."""
        scope, ended = self._running.pop(node)
        scope.cancel()
        await ended.wait()

    async def _serve(
        self,
        node: str,
        dials: list[str],
        scope: trio.CancelScope,
        ended: trio.Event,
        task_status: trio.TaskStatus[None],
    ) -> None:
        make = RegistrationCore if node == "R1" else BrokerCore
        listener = self._listeners[node.lower()] = MemoryListener()
        with Store(self.directory / f"{node}.db") as store, scope:
            core = Progress(make(self.topology, node, "1", store.rows()))
            async with trio.open_nursery() as nursery:

                async def run(task_status: trio.TaskStatus[None]) -> None:
                    await run_node(
                        core,
                        doors=[Door([listener])],
                        dials=self._addresses(dials),
                        store=store,
                        connect=self.connect,
                        task_status=task_status,
                    )

                await nursery.start(run)
                task_status.started()
        ended.set()

    def client(self, core: Core, peer: str) -> None:
        """A client that dials one node and goes on for ever."""

        async def run() -> None:
            await run_node(
                Progress(core),
                doors=[],
                dials=self._addresses([peer]),
                store=_NoStore(),
                connect=self.connect,
            )

        self.nursery.start_soon(run)

    async def cut(self) -> None:
        """Every connection breaks."""
        streams, self.streams = self.streams, []
        for stream in streams:
            await trio.aclose_forcefully(stream)

    @staticmethod
    def _addresses(peers: list[str]) -> dict[str, Addresses]:
        return {peer: (Address(peer.partition("/")[2].lower(), 1),) for peer in peers}


@asynccontextmanager
async def running(directory: Path) -> AsyncIterator[MemoryNet]:
    async with trio.open_nursery() as nursery:
        yield MemoryNet(TOPOLOGY, directory, nursery)
        nursery.cancel_scope.cancel()


async def test_a_message_crosses_two_brokers_that_break_and_restart(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    limits = TOPOLOGY.limits.link
    async with running(tmp_path) as net:
        await net.serve("R1", [])
        await net.serve("B1", ["broker/B2", "registration/R1"])
        await net.serve("B2", ["registration/R1"])
        asker = AskingClient("asker", "1", limits)
        net.client(asker, "registration/R1")

        added = asker.ask(
            "profile.add", text="for $m in /m[@k > 1] return <r>{$m/a}</r>", location=[50, 50],
            wait=True,
        )  # fmt: skip
        registered = asker.ask("source.register", location=[0, 0])
        await until(lambda: None not in (asker.answer(added), asker.answer(registered)))
        profile, source = asker.answer(added), asker.answer(registered)
        assert profile is not None and profile.result["host"] == "B2", profile
        assert source is not None and source.result["root"] == "B1", source

        publisher = SourceClient("s1", "B1", "1", limits)
        subscriber = SubscriberClient("p1", "1", limits)
        subscriber.host = "B2"
        net.client(publisher, "broker/B1")
        net.client(subscriber, "broker/B2")
        for number in range(1, 31):
            publisher.publish(f'<m k="{number % 3}"><a>{number}</a></m>'.encode())
            if number == 10:
                await net.cut()
            if number == 20:
                await net.kill("B1")
                await net.serve("B1", ["broker/B2", "registration/R1"])
            await trio.testing.wait_all_tasks_blocked()
        await until(lambda: len(subscriber.got) == 10)
        await trio.sleep(120)  # keep-alives come and go, nothing more arrives
        assert subscriber.got == {("s1", number): 1 for number in range(2, 31, 3)}
        assert subscriber.results["s1", 29] == [b"<r><a>29</a></r>"]
