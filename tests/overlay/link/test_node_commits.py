"""When a node commits: before it tells anybody, and else at the next tick or at its end."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import trio
import trio.testing

from overlay.link.events import Action, DataReceived, Delete, Event, Flow, Put, SendData
from overlay.link.node import run_node
from overlay.nodes import Address
from tests.hanging import SAFETY_SECONDS
from tests.overlay.link.sockets import held, stream_pair


class Scribe:
    """Stores every byte it gets; answers "!" only."""

    def handle(self, event: Event, now: float) -> list[Action]:
        if not isinstance(event, DataReceived):
            return []
        actions: list[Action] = [Put("byte", str(byte), b"") for byte in event.data]
        if b"!" in event.data:
            actions.append(SendData(event.connection, Flow.CONTROL, b"stored"))
        return actions


class ListStore:
    """``begun`` is set when a commit waits for ``may_go_on``."""

    def __init__(self) -> None:
        self.commits: list[list[str]] = []
        self.begun = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def commit(self, changes: Iterable[Put | Delete]) -> None:
        self.begun.set()
        assert self.may_go_on.wait(SAFETY_SECONDS)
        self.commits.append([chr(int(change.key)) for change in changes])

    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]:
        return ()


async def start(nursery: trio.Nursery, store: ListStore) -> trio.abc.Stream:
    """A node with one connection; gives the other end."""
    ours, theirs = stream_pair()
    nursery.start_soon(held, [ours])

    async def connect(host: str, port: int, seconds: float) -> trio.abc.Stream:
        return theirs

    async def run(task_status: trio.TaskStatus[None]) -> None:
        await run_node(
            Scribe(),
            doors=[],
            dials={"broker/B": (Address("b", 1),)},
            store=store,
            connect=connect,
            task_status=task_status,
        )

    await nursery.start(run)
    await trio.testing.wait_all_tasks_blocked()
    return ours


async def test_what_nobody_is_told_about_waits_for_what_somebody_is(
    autojump_clock: trio.testing.MockClock,
) -> None:
    store = ListStore()
    async with trio.open_nursery() as nursery:
        stream = await start(nursery, store)
        for byte in (b"a", b"b"):
            await stream.send_all(byte)
            await trio.testing.wait_all_tasks_blocked()
        assert store.commits == []
        await stream.send_all(b"!")
        assert await stream.receive_some() == b"stored"
        assert store.commits == [["a", "b", "!"]]
        nursery.cancel_scope.cancel()
    assert store.commits == [["a", "b", "!"]]


async def test_what_comes_while_a_commit_is_running_shares_the_next() -> None:
    store = ListStore()
    store.may_go_on.clear()
    async with trio.open_nursery() as nursery:
        stream = await start(nursery, store)
        await stream.send_all(b"!")
        await trio.to_thread.run_sync(store.begun.wait)
        for byte in (b"a", b"b", b"!", b"c", b"!"):
            await stream.send_all(byte)
            await trio.testing.wait_all_tasks_blocked()
        assert store.commits == []
        store.may_go_on.set()
        told = b""
        while len(told) < len(b"stored") * 3:
            told += await stream.receive_some()
        assert store.commits == [["!"], ["a", "b", "!", "c", "!"]]
        nursery.cancel_scope.cancel()


async def test_it_waits_for_a_tick_at_most(autojump_clock: trio.testing.MockClock) -> None:
    store = ListStore()
    async with trio.open_nursery() as nursery:
        stream = await start(nursery, store)
        await stream.send_all(b"a")
        await trio.testing.wait_all_tasks_blocked()
        assert store.commits == []
        await trio.sleep(1.5)
        await stream.send_all(b"!")  # handled when the commit of the tick is done
        assert await stream.receive_some() == b"stored"
        assert store.commits == [["a"], ["!"]]
        nursery.cancel_scope.cancel()


async def test_a_node_that_stops_saves_what_waits() -> None:
    store = ListStore()
    async with trio.open_nursery() as nursery:
        stream = await start(nursery, store)
        await stream.send_all(b"a")
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert store.commits == [["a"]]
