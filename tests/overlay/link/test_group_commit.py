"""While a commit runs the next batches are handled, and nothing leaves before its own commit."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random

import pytest
import trio
import trio.testing

from overlay.link.errors import DiskFull
from overlay.link.events import (
    Action,
    CallAgain,
    CalledAgain,
    DataReceived,
    Delete,
    Event,
    Flow,
    Put,
    ReadRows,
    RowsRead,
    SendData,
)
from overlay.link.group_commit import CommitLimits
from overlay.link.node import run_node
from overlay.link.node_limits import NodeLimits
from overlay.nodes import Address
from tests.hanging import SAFETY_SECONDS
from tests.overlay.link.sockets import stream_pair

SEEDS = range(1, 21)
IDLE = CommitLimits(beside_seconds=60)  # the core is never so busy that a commit is waited for


class Clerk:
    """A row for every byte; says the byte for a capital, and what there is in the store for "?";
    works on at "+", once more for each in a row."""

    def __init__(self) -> None:
        self.handled: list[int] = []
        self.called = 0
        self._more = 0
        self._asker = 0

    def handle(self, event: Event, now: float) -> list[Action]:
        if isinstance(event, CalledAgain):
            self.called += 1
            self._more -= 1
            row = Put("work", str(self.called), b"")
            return [row, CallAgain()] if self._more > 0 else [row]
        if isinstance(event, RowsRead):
            found = b"".join(value for _, value in event.rows)
            return [SendData(self._asker, Flow.CONTROL, b"<" + found + b">")]
        if not isinstance(event, DataReceived):
            return []
        actions: list[Action] = []
        for byte in event.data:
            self.handled.append(byte)
            actions.append(Put("byte", f"{len(self.handled):06d}", bytes([byte])))
            if chr(byte).isupper():
                actions.append(SendData(event.connection, Flow.MESSAGE, bytes([byte])))
            elif byte == ord("?"):
                self._asker = event.connection
                actions.append(ReadRows("byte", "0", "9"))
            elif byte == ord("+"):
                self._more += 1
                actions.append(CallAgain())
        return actions


class SlowStore:
    """A disk whose commits wait for the test, each for one ``let_go``."""

    def __init__(self) -> None:
        self.disk: dict[tuple[str, str], bytes] = {}
        self.sizes: list[int] = []
        self.begun = threading.Semaphore(0)
        self.is_free = False
        self._may_go_on = threading.Semaphore(0)

    def let_go(self) -> None:
        self._may_go_on.release()

    def free(self) -> None:
        self.is_free = True
        self._may_go_on.release()

    def commit(self, changes: Iterable[Put | Delete]) -> None:
        changes = list(changes)
        self.begun.release()
        if not self.is_free:
            assert self._may_go_on.acquire(timeout=SAFETY_SECONDS)
        self.sizes.append(len(changes))
        for change in changes:
            if isinstance(change, Put):
                self.disk[change.space, change.key] = change.value
            else:
                self.disk.pop((change.space, change.key), None)

    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]:
        rows = sorted((key, value) for (of, key), value in self.disk.items() if of == space)
        return tuple((key, value) for key, value in rows if first <= key <= last)

    @property
    def bytes_kept(self) -> bytes:
        return b"".join(value for _, value in self.read("byte", "0", "9"))


async def run(
    core: Clerk,
    store: SlowStore,
    ours: Callable[[], trio.abc.Stream],
    limits: CommitLimits,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    async def connect(host: str, port: int, seconds: float) -> trio.abc.Stream:
        return ours()

    await run_node(
        core,
        doors=[],
        dials={"broker/B": (Address("b", 1),)},
        store=store,
        connect=connect,
        limits=NodeLimits(commit=limits, tick_seconds=1e6),
        task_status=task_status,
    )


@asynccontextmanager
async def connected(
    core: Clerk, store: SlowStore, **limits: float
) -> AsyncIterator[trio.abc.Stream]:
    """The other end of the only connection of a node, which is stopped at the end of the block."""
    ours, theirs = stream_pair()
    async with theirs, trio.open_nursery() as nursery:
        await nursery.start(run, core, store, lambda: ours, replace(IDLE, **limits))
        await trio.testing.wait_all_tasks_blocked()
        try:
            yield theirs
        finally:
            store.free()
            nursery.cancel_scope.cancel()


async def send(stream: trio.abc.Stream, data: bytes) -> None:
    """Each byte is an event, and all have been handled."""
    for byte in data:
        await stream.send_all(bytes([byte]))
        await trio.testing.wait_all_tasks_blocked()


async def begun(store: SlowStore) -> None:
    assert await trio.to_thread.run_sync(store.begun.acquire, True, 60)


async def test_batches_are_handled_while_a_commit_runs_and_share_the_next() -> None:
    core, store = Clerk(), SlowStore()
    async with connected(core, store) as stream:
        await send(stream, b"A")
        await begun(store)
        await send(stream, b"bCdE")
        assert bytes(core.handled) == b"AbCdE"
        store.let_go()
        assert await stream.receive_some() == b"A"
        await begun(store)
        assert store.bytes_kept == b"A"
        store.let_go()
        assert await stream.receive_some() == b"CE"
        assert store.sizes == [1, 4]


async def test_what_needs_no_commit_of_its_own_waits_for_those_before_it() -> None:
    """Order: an answer without a row does not overtake what was said before."""

    class Answering(Clerk):
        def handle(self, event: Event, now: float) -> list[Action]:
            if isinstance(event, DataReceived) and event.data == b"!":
                return [SendData(event.connection, Flow.MESSAGE, b"!")]
            return super().handle(event, now)

    core, store = Answering(), SlowStore()
    async with connected(core, store) as stream:
        await send(stream, b"!")
        assert await stream.receive_some() == b"!"
        assert store.sizes == []
        await send(stream, b"A!")
        await begun(store)
        store.let_go()
        got = await stream.receive_some()
        while len(got) < 2:
            got += await stream.receive_some()
        assert got == b"A!"
        assert store.sizes == [1]


class Hasty(Clerk):
    """Passes a digit on early, with a row for it."""

    def handle(self, event: Event, now: float) -> list[Action]:
        actions = super().handle(event, now)
        if isinstance(event, DataReceived) and event.data.isdigit():
            actions.append(SendData(event.connection, Flow.MESSAGE, event.data, is_early=True))
        return actions


async def test_what_may_leave_early_does_before_its_commit_and_while_one_runs() -> None:
    core, store = Hasty(), SlowStore()
    async with connected(core, store) as stream:
        await send(stream, b"1")
        assert await stream.receive_some() == b"1"
        await begun(store)
        assert store.bytes_kept == b""
        await send(stream, b"2")
        assert await stream.receive_some() == b"2"
        store.let_go()
        await begun(store)
        assert store.bytes_kept == b"1"


async def test_nothing_leaves_early_where_something_waits_for_a_commit() -> None:
    core, store = Hasty(), SlowStore()
    async with connected(core, store) as stream:
        await send(stream, b"A")
        await begun(store)
        await send(stream, b"1")
        store.let_go()
        assert await stream.receive_some() == b"A"
        await begun(store)
        store.let_go()
        assert await stream.receive_some() == b"1"
        assert store.bytes_kept == b"A1"


async def test_no_more_is_handled_than_may_be_gathered() -> None:
    core, store = Clerk(), SlowStore()
    async with connected(core, store, gathered_rows=6) as stream:
        await send(stream, b"A")
        await begun(store)
        await send(stream, b"BCDEFGHI")
        assert bytes(core.handled) == b"ABCD", "three rows and what leaves behind each"
        store.let_go()
        await begun(store)
        await trio.testing.wait_all_tasks_blocked()
        assert bytes(core.handled) == b"ABCDEFGHI", "what waited is one batch"


async def test_no_more_bytes_are_handled_than_may_be_gathered() -> None:
    core, store = Clerk(), SlowStore()
    async with connected(core, store, gathered_bytes=4) as stream:
        await send(stream, b"A")
        await begun(store)
        await send(stream, b"abcdef")
        assert bytes(core.handled) == b"Aabcd"


async def test_a_commit_gets_its_turn_beside_a_busy_core() -> None:
    core, store = Clerk(), SlowStore()
    async with connected(core, store, beside_seconds=1e-9) as stream:
        await send(stream, b"A")
        await begun(store)
        await send(stream, b"bcd")
        assert bytes(core.handled) == b"Ab", "the time beside the commit is spent"
        store.let_go()
        assert await stream.receive_some() == b"A"
        await trio.testing.wait_all_tasks_blocked()
        assert bytes(core.handled) == b"Abcd"


async def test_rows_are_read_as_all_before_have_left_them() -> None:
    core, store = Clerk(), SlowStore()
    async with connected(core, store) as stream:
        await send(stream, b"A")
        await begun(store)
        await send(stream, b"bc?d")
        assert bytes(core.handled) == b"Abc?", "nothing between the question and the answer"
        store.let_go()
        await begun(store)
        store.free()
        got = b""
        while not got.endswith(b">"):
            got += await stream.receive_some()
        assert got == b"A<Abc?>"
        await trio.testing.wait_all_tasks_blocked()
        assert bytes(core.handled) == b"Abc?d"


async def test_work_goes_on_while_a_commit_runs_if_nothing_of_it_has_to_leave() -> None:
    core, store = Clerk(), SlowStore()
    async with connected(core, store) as stream:
        await send(stream, b"A")
        await begun(store)
        await send(stream, b"+")
        assert core.called == 1
        await send(stream, b"B+")
        assert core.called == 1, "B has to leave first"
        store.let_go()
        await begun(store)
        assert core.called == 1
        store.let_go()
        got = await stream.receive_some()
        while len(got) < 2:
            got += await stream.receive_some()
        await trio.testing.wait_all_tasks_blocked()
        assert core.called == 2


async def test_an_error_of_the_store_ends_the_node_and_stores_nothing_behind_it() -> None:
    class Broken(SlowStore):
        def commit(self, changes: Iterable[Put | Delete]) -> None:
            assert not self.sizes, "stored behind a commit that failed"
            super().commit(changes)
            self.disk.clear()
            raise OSError("the disk is full")

    core, store = Clerk(), Broken()
    with pytest.RaisesGroup(pytest.RaisesGroup(OSError)):
        async with connected(core, store) as stream:
            await send(stream, b"A")
            await begun(store)
            await send(stream, b"bC")
            store.let_go()
            await trio.sleep_forever()
    assert bytes(core.handled) == b"AbC"


class Full(SlowStore):
    """Refuses so many commits, or all."""

    def __init__(self, refusals: int) -> None:
        super().__init__()
        self.refusals = refusals

    def commit(self, changes: Iterable[Put | Delete]) -> None:
        changes = list(changes)
        if self.refusals:
            self.refusals -= 1
            self.begun.release()
            raise DiskFull("the disk is full")
        super().commit(changes)


async def test_a_commit_waits_for_room_on_the_disk_and_all_else_behind_it() -> None:
    core, store = Clerk(), Full(refusals=3)
    async with connected(core, store, full_seconds=0, beside_seconds=1e9) as stream:
        await send(stream, b"A")
        for _ in range(4):
            await begun(store)
        assert store.sizes == []
        await send(stream, b"bC")
        store.let_go()
        assert await stream.receive_some() == b"A"
        await begun(store)
        store.let_go()
        assert await stream.receive_some() == b"C"
        assert store.bytes_kept == b"AbC"


async def test_a_node_whose_disk_is_full_can_be_stopped(caplog: pytest.LogCaptureFixture) -> None:
    core, store = Clerk(), Full(refusals=10**9)
    async with connected(core, store, full_seconds=1e9) as stream:
        await send(stream, b"A")
        await begun(store)
    assert store.disk == {}
    assert "what nobody was told about is not stored" in caplog.text


@pytest.mark.parametrize("seed", SEEDS)
async def test_whatever_is_killed_has_stored_all_that_it_has_said(seed: int) -> None:
    """A node with a slow disk is cut off at any moment, its disk with it: what it said is there,
    whole and in order, and it goes on from there."""
    random = Random(seed)
    core, store = Clerk(), SlowStore()
    said = bytearray()
    async with connected(core, store, unsaved_rows=5, gathered_rows=12) as stream:
        async with trio.open_nursery() as nursery:

            async def listen() -> None:
                while True:
                    said.extend(await stream.receive_some())
                    stored = bytes(byte for byte in store.bytes_kept if chr(byte).isupper())
                    assert stored.startswith(said), "said before it was stored"

            nursery.start_soon(listen)
            for _ in range(random.randrange(5, 60)):
                some = bytes(random.choices(b"abABCD+", k=random.randrange(1, 4)))
                await stream.send_all(some)
                if random.random() < 0.6:
                    await trio.testing.wait_all_tasks_blocked()
                if random.random() < 0.5 and store.begun.acquire(blocking=False):
                    store.let_go()
            killed = store.bytes_kept
            nursery.cancel_scope.cancel()
        assert bytes(byte for byte in killed if chr(byte).isupper()).startswith(said)
        assert bytes(core.handled).startswith(killed)
    assert store.bytes_kept == bytes(core.handled), "a node that is stopped stores what waits"
