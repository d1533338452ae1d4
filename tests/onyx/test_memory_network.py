"""Two brokers and the registration service as in production, but over sockets without ports.

The cores, the link layer, the Trio node and SQLite stores are the real ones; only TCP is replaced,
and the clock, so that keep-alives of minutes pass in no time.
"""

from __future__ import annotations

import math
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trio
import trio.testing

from onyx.broker.broker_core import BrokerCore
from overlay.link.door import CLIENT_ROLES, Door
from overlay.link.events import Action, Event, Flow
from overlay.link.frames import Response
from overlay.link.node import Core, run_node
from overlay.link.principal import PROCESS_ROLES
from overlay.link.store import Store
from overlay.nodes import Address, Addresses
from overlay.topology import Topology, parse_topology
from registration.registration_core import RegistrationCore
from tests.overlay.link.sockets import stream
from tests.simulation.sim_clients import AskingClient, SourceClient, SubscriberClient

NAMED: dict[str, object] = {
    "source": "s1",
    "profile": "p1",
    "profiles": ["p1"],
    "link": "B2",
    "broker": "B2",
    "message": b"<m/>",
    "version": 1,
}
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


LINKS = "-links"  # behind the name of a host: its door for processes of the network


class MemoryListener(trio.abc.Listener[trio.abc.Stream]):
    """Accepts what MemoryNet.connect dials."""

    def __init__(self) -> None:
        self.dialled, self._accepted = trio.open_memory_channel[trio.SocketStream](math.inf)

    async def accept(self) -> trio.abc.Stream:
        return await self._accepted.receive()

    async def aclose(self) -> None:
        self.dialled.close()
        async for waiting in self._accepted:
            waiting.socket.close()


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
        self.sockets: list[socket.socket] = []  # of all connections, to break them
        self.stores: dict[str, Store] = {}
        self.cores: dict[str, BrokerCore | RegistrationCore] = {}
        self._listeners: dict[str, MemoryListener] = {}
        self._running: dict[str, tuple[trio.CancelScope, trio.Event]] = {}

    async def connect(self, host: str, port: int, seconds: float) -> trio.abc.Stream | None:
        listener = self._listeners.get(host)
        if listener is None:
            return None
        ours, theirs = socket.socketpair()
        self.sockets.append(ours.dup())
        try:
            await listener.dialled.send(stream(theirs))
        except trio.ClosedResourceError:  # killed
            ours.close()
            theirs.close()
            return None
        return stream(ours)

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
        doors = []
        for door, roles in (("", CLIENT_ROLES), (LINKS, PROCESS_ROLES)):
            listener = self._listeners[node.lower() + door] = MemoryListener()
            doors.append(Door([listener], roles))
        with Store(self.directory / f"{node}.db") as store, scope:
            self.stores[node] = store
            made = self.cores[node] = make(self.topology, node, "1", store.rows())
            core = Progress(made)
            async with trio.open_nursery() as nursery:

                async def run(task_status: trio.TaskStatus[None]) -> None:
                    await run_node(
                        core,
                        doors=doors,
                        dials=self._addresses(dials, LINKS),
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

    def cut(self) -> None:
        """Every connection breaks."""
        while self.sockets:
            broken = self.sockets.pop()
            with suppress(OSError):
                broken.shutdown(socket.SHUT_RDWR)
            broken.close()

    @staticmethod
    def _addresses(peers: list[str], door: str = "") -> dict[str, Addresses]:
        return {peer: (Address(peer.partition("/")[2].lower() + door, 1),) for peer in peers}


@asynccontextmanager
async def running(directory: Path) -> AsyncIterator[MemoryNet]:
    async with trio.open_nursery() as nursery:
        net = MemoryNet(TOPOLOGY, directory, nursery)
        yield net
        nursery.cancel_scope.cancel()
    net.cut()


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
                net.cut()
            if number == 20:
                await net.kill("B1")
                await net.serve("B1", ["broker/B2", "registration/R1"])
            await trio.testing.wait_all_tasks_blocked()
        await until(lambda: len(subscriber.got) == 10)
        await trio.sleep(120)  # keep-alives come and go, nothing more arrives
        assert subscriber.got == {("s1", number): 1 for number in range(2, 31, 3)}
        assert subscriber.results["s1", 29] == [b"<r><a>29</a></r>"]


def code_of(answer: Response | None) -> str:
    assert answer is not None
    return "" if answer.ok else str(answer.result["code"])


def bound(store: Store, pages: int) -> None:
    """SQLite itself says that the disk is full beyond so many pages, or beyond those it has."""
    store._connection.execute(f"PRAGMA max_page_count = {pages}")


@pytest.mark.parametrize("node", ["R1", "B1"])
async def test_a_process_whose_disk_is_full_answers_all_that_changes_nothing(
    node: str, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """SQLITE_FULL is the real store's.  Nothing that was accepted is lost, and all else goes on
    once there is room."""
    limits = TOPOLOGY.limits.link
    peer = "registration/R1" if node == "R1" else f"broker/{node}"
    async with running(tmp_path) as net:
        await net.serve("R1", [])
        await net.serve("B1", ["broker/B2", "registration/R1"])
        await net.serve("B2", ["registration/R1"])
        setting = AskingClient("setting", "1", limits)
        net.client(setting, "registration/R1")
        added = setting.ask("profile.add", text="/m", location=[0, 0], near=True, wait=True)
        registered = setting.ask("source.register", location=[0, 0])
        await until(lambda: None not in (setting.answer(added), setting.answer(registered)))
        publisher = SourceClient("s1", "B1", "1", limits)
        net.client(publisher, "broker/B1")

        bound(net.stores[node], 1)
        late = []
        for number in range(20):
            publisher.publish(b"<m>%d%s</m>" % (number, b" " * 10_000))
            text = f"/m[{number} = {number}]" + " " * 10_000
            late.append(setting.ask("profile.add", text=text))
        await trio.sleep(10)  # of the clock that jumps: the commit is tried again and again
        accepted = publisher.links.acknowledged("broker/B1", Flow.MESSAGE, "s1")
        assert (accepted == 20) == (node == "R1")
        newcomer = AskingClient("newcomer", "1", limits)
        net.client(newcomer, peer)
        asked = {}
        for verb, at in net.cores[node].verbs.items():
            fields = at.asked.__struct_fields__
            named = {name: NAMED[name] for name in fields if name in NAMED}
            asked[newcomer.ask(verb, **named)] = at.asked
        await until(lambda: None not in map(newcomer.answer, asked))
        answered = set()
        for request, kind in asked.items():
            code = code_of(newcomer.answer(request))
            assert (code == "disk-full") == kind.needs_store(), (kind.verb, code)
            answered |= set() if code else {kind.verb}
        assert {"statistics", "profile.list", "profile.show", "dead.list"} <= answered
        subscriber = SubscriberClient("p1", "1", limits)
        subscriber.host = "B1"
        net.client(subscriber, "broker/B1")
        await trio.sleep(10)
        assert (len(subscriber.got) == 20) == (node == "R1")

        bound(net.stores[node], 100_000)
        await until(lambda: len(subscriber.got) == 20)
        await until(lambda: None not in map(setting.answer, late))
        codes = {code_of(setting.answer(request)) for request in late}
        assert codes == ({"", "disk-full"} if node == "R1" else {""})
