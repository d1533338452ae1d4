"""run_node over loopback sockets: exactly once across restarts, commit before sending."""

from __future__ import annotations

import select
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trio
import trio.testing

from overlay.backoff import Backoff
from overlay.link.credentials import Credentials
from overlay.link.door import Door, DoorLimits
from overlay.link.event_queue import PIECES_MAX, EventQueue
from overlay.link.events import (
    Action,
    CallAgain,
    CalledAgain,
    CalledLater,
    CallLater,
    ConnectionLost,
    DataOfMany,
    DataReceived,
    Delete,
    DiskRoom,
    Event,
    Flow,
    Put,
    ReadOn,
    SendData,
    TimePassed,
)
from overlay.link.frame_codec import decode, encode
from overlay.link.frames import Ack, ErrorFrame, Hello, Publish
from overlay.link.node import run_node
from overlay.link.node_limits import NodeLimits
from overlay.link.row_store import RowStore
from overlay.link.store import Store
from overlay.nodes import Address
from tests.hanging import SAFETY_SECONDS
from tests.overlay.link.counter_core import CounterCore, until
from tests.overlay.link.pair import hello

HOST = "127.0.0.1"
FAST = NodeLimits(redial=Backoff(0.01, 0.05), tick_seconds=0.05)


class Network:
    """Nodes on loopback that find each other by fixed ports chosen by the system."""

    def __init__(self, directory: Path, credentials: Mapping[str, Credentials] | None = None):
        """With ``credentials``, by name of the node, with TLS."""
        self.directory = directory
        self.credentials = dict(credentials or {})
        self.ports: dict[str, int] = {}

    @asynccontextmanager
    async def run(
        self,
        name: str,
        dials: Iterable[str] = (),
        prepare: Callable[[CounterCore], None] | None = None,
        limits: NodeLimits = FAST,
        door: DoorLimits = DoorLimits(),  # noqa: B008
        **link_limits: int,
    ) -> AsyncIterator[CounterCore]:
        """A node with its store, until the block ends (then it is cut off at any point)."""
        with Store(self.directory / f"{name}.db") as store:
            core = CounterCore(name, store.rows(), **link_limits)
            if prepare is not None:
                prepare(core)
                store.commit(row for row in core.links.drain() if isinstance(row, Put | Delete))
            listeners = await trio.open_tcp_listeners(self.ports.get(name, 0), host="127.0.0.1")
            self.ports[name] = listeners[0].socket.getsockname()[1]
            async with trio.open_nursery() as nursery:

                async def run(
                    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
                ) -> None:
                    await run_node(
                        core,
                        doors=[Door(listeners, limits=door)],
                        dials={
                            f"broker/{p}": (Address("127.0.0.1", self.ports[p]),) for p in dials
                        },
                        store=store,
                        limits=limits,
                        credentials=self.credentials.get(name),
                        task_status=task_status,
                    )

                await nursery.start(run)
                yield core
                nursery.cancel_scope.cancel()


async def test_messages_cross_a_real_socket(tmp_path: Path) -> None:
    network = Network(tmp_path)
    payloads = [b"%d" % number for number in range(500)]
    async with (
        network.run("B") as receiver,
        network.run("A", ["B"], lambda core: core.send_messages("broker/B", payloads)) as sender,
    ):
        await until(lambda: sender.backlog("broker/B") == 0)
        assert receiver.taken == payloads


async def test_restarts_of_both_sides_lose_and_double_nothing(tmp_path: Path) -> None:
    network = Network(tmp_path)
    payloads = [b"%d" % number for number in range(200)]

    def prepare(core: CounterCore) -> None:
        core.send_messages("broker/B", payloads)

    taken = 0
    rounds = 0
    async with network.run("B"):
        pass  # only to have a port
    first: Callable[[CounterCore], None] | None = prepare
    while taken < len(payloads):
        rounds += 1
        assert rounds < 50, "nothing is kept from one round to the next"
        async with (
            network.run("A", ["B"], first, window_frames=5, journal_memory_bytes=1),
            network.run("B", window_frames=5) as receiver,
        ):
            first = None
            before = len(receiver.taken)
            # Cut both off as soon as something has moved.
            goal = min(before + 30, len(payloads))
            await until(lambda r=receiver, g=goal: len(r.taken) >= g)  # type: ignore[misc]
        with Store(tmp_path / "B.db") as store:
            rows = [value for _, _, value in store.load(["taken"])]
        assert rows == payloads[: len(rows)]
        taken = len(rows)
    assert rounds > 3
    async with network.run("B") as receiver, network.run("A", ["B"]) as sender:
        await until(lambda: sender.backlog("broker/B") == 0)
        assert receiver.taken == payloads


async def test_a_lost_node_is_dialled_until_it_is_there(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with network.run("B"):
        pass
    async with network.run("A", ["B"], lambda core: core.send_messages("broker/B", [b"x"])) as a:
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(2):
            assert not a.links.connected("broker/B")
            async with network.run("B") as b:
                await until(lambda: a.links.connected("broker/B"))
                await until(lambda b=b: b.taken == [b"x"])  # type: ignore[misc]
            await until(lambda: not a.links.connected("broker/B"))


async def test_withheld_acknowledgements_hold_the_sender_back(tmp_path: Path) -> None:
    network = Network(tmp_path)
    payloads = [b"%d" % number for number in range(50)]

    def hold(core: CounterCore) -> None:
        core.hold = True

    async with (
        network.run("B", (), hold) as receiver,
        network.run(
            "A", ["B"], lambda core: core.send_messages("broker/B", payloads), window_frames=7
        ) as sender,
    ):
        await until(lambda: len(receiver.taken) == 7)
        assert sender.backlog("broker/B") > 0
        for _ in range(20):
            await trio.testing.wait_all_tasks_blocked()
        assert len(receiver.taken) == 7
        receiver.hold = False
        await until(lambda: receiver.taken == payloads)


class _GatedStore:
    """A store whose commits wait for the test, in their thread."""

    def __init__(self) -> None:
        self.began = trio.Event()
        self.rows: list[Put | Delete] = []
        self.gate = trio.Event()

    def commit(self, changes: Iterable[Put | Delete]) -> None:
        self.rows.extend(changes)
        trio.from_thread.run_sync(self.began.set)
        trio.from_thread.run(self.gate.wait)


async def test_nothing_leaves_before_the_commit() -> None:
    core = CounterCore("B")
    store = _GatedStore()
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    async with trio.open_nursery() as nursery:

        async def run(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
            await run_node(
                core, doors=[Door([listener])], dials={}, store=store, task_status=task_status
            )

        await nursery.start(run)
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        with trio.fail_after(SAFETY_SECONDS):
            await stream.send_all(encode(hello("source", "s1")))
            assert isinstance(decode((await stream.receive_some())[4:]).frame, Hello)
            await stream.send_all(encode(Publish("s1", "xml", b"<a/>"), "s1", 1))
            await store.began.wait()
        await trio.testing.wait_all_tasks_blocked()
        readable, _, _ = select.select([stream.socket.fileno()], [], [], 0)
        assert not readable, "something left before the commit was done"
        assert {row.space for row in store.rows} == {"taken", "inbox"}
        store.gate.set()
        with trio.fail_after(SAFETY_SECONDS):
            assert decode((await stream.receive_some())[4:]).frame == Ack(3, "s1", 1)
        await stream.aclose()
        nursery.cancel_scope.cancel()


class _TwoStages:
    """Answers at once, and looks from its second call whether the answer has left."""

    def __init__(self) -> None:
        self.peer: trio.SocketStream | None = None
        self.seen: list[bool] = []
        self.looked = trio.Event()

    def handle(self, event: Event, now: float) -> list[Action]:
        if isinstance(event, DataReceived):
            row = Put("byte", event.data.decode(), b"")
            return [row, SendData(event.connection, Flow.MESSAGE, b"answer"), CallAgain()]
        if isinstance(event, CalledAgain):
            assert self.peer is not None
            self.seen.append(bool(select.select([self.peer.socket.fileno()], [], [], 0)[0]))
            self.looked.set()
        return []


async def test_what_leaves_has_left_when_the_core_is_called_again(tmp_path: Path) -> None:
    core = _TwoStages()
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    with Store(tmp_path / "two.db") as store:
        async with trio.open_nursery() as nursery:

            async def run(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
                await run_node(
                    core, doors=[Door([listener])], dials={}, store=store, task_status=task_status
                )

            await nursery.start(run)
            core.peer = await trio.open_tcp_stream("127.0.0.1", port)
            with trio.fail_after(SAFETY_SECONDS):
                for number in range(20):
                    core.looked = trio.Event()
                    await core.peer.send_all(b"%d" % number)
                    await core.looked.wait()
                    assert await core.peer.receive_some() == b"answer"
            await trio.testing.wait_all_tasks_blocked()
            await core.peer.aclose()
            nursery.cancel_scope.cancel()
    assert core.seen == [True] * 20


class _Tireless:
    """Works on for ever once it has begun, longer each time than a turn takes; answers."""

    def handle(self, event: Event, now: float) -> list[Action]:
        if isinstance(event, DataReceived):
            return [SendData(event.connection, Flow.CONTROL, event.data), CallAgain()]
        return [CallAgain()] if isinstance(event, CalledAgain) else []


async def test_who_asks_is_answered_while_the_core_works_on(tmp_path: Path) -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    limits = NodeLimits(batch_seconds=0)
    with Store(tmp_path / "busy.db") as store:
        async with trio.open_nursery() as nursery:

            async def run(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
                await run_node(
                    _Tireless(),
                    doors=[Door([listener])],
                    dials={},
                    store=store,
                    limits=limits,
                    task_status=task_status,
                )

            await nursery.start(run)
            peer = await trio.open_tcp_stream("127.0.0.1", port)
            with trio.fail_after(SAFETY_SECONDS):
                for number in range(20):
                    await peer.send_all(b"%d" % number)
                    assert await peer.receive_some() == b"%d" % number
            await peer.aclose()
            nursery.cancel_scope.cancel()


class _Later:
    """Asks to be called later, and answers then."""

    def handle(self, event: Event, now: float) -> list[Action]:
        if isinstance(event, DataReceived):
            self.connection, self.asked = event.connection, now
            return [CallLater(0.25)]
        if not isinstance(event, CalledLater):
            return []
        self.called = now
        return [SendData(self.connection, Flow.CONTROL, b"now")]


async def test_a_core_is_called_when_it_asked_to(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    core = _Later()
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    autojump_clock.autojump_threshold = 0.01  # a socket may take a while
    with Store(tmp_path / "later.db") as store:
        async with trio.open_nursery() as nursery:

            async def run(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
                await run_node(
                    core, doors=[Door([listener])], dials={}, store=store, task_status=task_status
                )

            await nursery.start(run)
            peer = await trio.open_tcp_stream("127.0.0.1", port)
            await peer.send_all(b"later")
            assert await peer.receive_some() == b"now"
            await peer.aclose()
            nursery.cancel_scope.cancel()
    assert core.called - core.asked >= 0.25


class _OneAtATime:
    """Answers one byte of what a connection has brought, and asks to go on with it."""

    def __init__(self) -> None:
        self.left: dict[int, bytes] = {}
        self.answered: list[bytes] = []

    def handle(self, event: Event, now: float) -> list[Action]:
        if not isinstance(event, DataReceived):
            return []
        data = self.left.pop(event.connection, b"") + event.data
        self.answered.append(data[:1])
        if len(data) == 1:
            return []
        self.left[event.connection] = data[1:]
        return [ReadOn(event.connection)]


def given(queue: EventQueue) -> list[Event]:
    """All that a queue has to give."""
    events = []
    while (event := queue.next_nowait()) is not None:
        events.append(event)
    return events


async def test_who_has_brought_much_takes_turns_with_the_others() -> None:
    told: list[str] = []
    core = _OneAtATime()
    queue = EventQueue(lambda n: told.append(f"pause {n}"), lambda n: told.append(f"resume {n}"))
    for connection, data in ((1, b"abc"), (2, b"xy"), (3, b"z")):
        queue.put_nowait(DataReceived(connection, data))
    while (event := queue.next_nowait()) is not None:
        for action in core.handle(event, 0.0):
            assert isinstance(action, ReadOn)
            queue.put_back_nowait(action.connection)
    assert b"".join(core.answered) == b"axzbyc"
    assert told == [f"{word} {n}" for n in (1, 2) for word in ("pause",)] + [
        *("resume 1", "pause 1", "resume 2", "resume 1")
    ]


async def test_what_many_have_said_is_one_event_until_something_else_has_happened() -> None:
    queue = EventQueue()
    pieces = [(number, b"%d" % number) for number in range(1, 2 * PIECES_MAX)]
    queue.put_pieces_nowait(pieces)
    queue.put_nowait(ConnectionLost(7))
    queue.put_pieces_nowait([(8, b"!")])
    assert given(queue) == [
        DataOfMany(pieces[:PIECES_MAX]),
        DataOfMany(pieces[PIECES_MAX:]),
        ConnectionLost(7),
        DataReceived(8, b"!"),
    ]
    queue.put_pieces_nowait(pieces)
    assert queue.next_nowait(1) == DataReceived(*pieces[0])


async def test_nothing_more_is_read_until_all_is_taken() -> None:
    queue = EventQueue()
    queue.put_pieces_nowait([(1, b"a"), (2, b"b")])
    with trio.fail_after(SAFETY_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(queue.all_taken)
            await trio.testing.wait_all_tasks_blocked()
            queue.next_nowait(1)
            await trio.testing.wait_all_tasks_blocked()
            assert nursery.child_tasks
            queue.next_nowait(1)


async def test_while_a_disk_is_full_only_clients_that_ask_have_their_turn() -> None:
    paused: set[int] = set()
    queue = EventQueue(paused.add, paused.discard)
    peers = {1: "client", 2: "subscriber", 3: ""}
    for number, role in peers.items():
        queue.enter(number)
        if role:
            queue.recognise(number, role)
    pieces = [(number, b"?") for number in (*peers, 4)]
    queue.put_pieces_nowait(pieces)
    queue.put_nowait(ConnectionLost(3))
    queue.put_nowait(TimePassed())
    queue.is_for_askers = True
    assert paused == {2, 4}
    queue.put_pieces_nowait([(1, b"!")])
    assert given(queue) == [
        DataOfMany([(1, b"?"), (3, b"?")]),
        ConnectionLost(3),
        DataReceived(1, b"!"),
    ]
    assert not queue
    with trio.fail_after(SAFETY_SECONDS):
        await queue.all_taken()
    queue.put_ahead_nowait([DiskRoom()])
    assert queue.next_nowait() == DiskRoom()
    queue.is_for_askers = False
    assert given(queue) == [DataOfMany([(2, b"?"), (4, b"?")]), TimePassed()]
    assert paused == set()


async def test_a_node_goes_on_with_what_a_connection_has_brought(tmp_path: Path) -> None:
    core = _OneAtATime()
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    with Store(tmp_path / "slow.db") as store:
        async with trio.open_nursery() as nursery:

            async def run(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
                await run_node(
                    core, doors=[Door([listener])], dials={}, store=store, task_status=task_status
                )

            await nursery.start(run)
            port = listener.socket.getsockname()[1]
            async with await trio.open_tcp_stream("127.0.0.1", port) as peer:
                await peer.send_all(b"abcdefgh")
                with trio.fail_after(SAFETY_SECONDS):
                    while len(core.answered) < 8:
                        await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    assert b"".join(core.answered) == b"abcdefgh"


async def test_one_connection_too_many_is_told_so_and_closed(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with network.run("B", door=DoorLimits(inside_max=1)):
        first = await trio.open_tcp_stream("127.0.0.1", network.ports["B"])
        await trio.testing.wait_all_tasks_blocked()
        second = await trio.open_tcp_stream("127.0.0.1", network.ports["B"])
        with trio.fail_after(SAFETY_SECONDS):
            await second.send_all(encode(hello("source", "s1")))  # it is read, and thrown away
            said = b"".join([part async for part in second])
            error = decode(said[4:]).frame
            assert isinstance(error, ErrorFrame)
            assert (error.code, error.fatal) == ("too-many-connections", True)
            assert "1 connections" in error.detail
            await second.aclose()
            await first.aclose()
            await trio.testing.wait_all_tasks_blocked()
            third = await trio.open_tcp_stream("127.0.0.1", network.ports["B"])
            await third.send_all(encode(hello("source", "s1")))
            assert isinstance(decode((await third.receive_some())[4:]).frame, Hello)
            await third.aclose()


async def test_very_many_too_many_are_closed_right_away(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with network.run("B", door=DoorLimits(inside_max=1, refused_max=0)):
        first = await trio.open_tcp_stream("127.0.0.1", network.ports["B"])
        await trio.testing.wait_all_tasks_blocked()
        second = await trio.open_tcp_stream("127.0.0.1", network.ports["B"])
        with trio.fail_after(SAFETY_SECONDS):
            with suppress(trio.BrokenResourceError):
                assert await second.receive_some() == b""
        await first.aclose()
        await second.aclose()


async def test_an_error_of_the_core_ends_the_node() -> None:
    class Broken:
        def handle(self, event: Event, now: float) -> list[Action]:
            raise ZeroDivisionError

    class NoStore:
        def commit(self, changes: Iterable[Put | Delete]) -> None:
            raise AssertionError("nothing to commit")

    store: RowStore = NoStore()
    with pytest.RaisesGroup(ZeroDivisionError):
        await run_node(Broken(), doors=[], dials={}, store=store, limits=FAST)
