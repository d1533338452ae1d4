"""ConnectionTable over sockets: back-pressure, turns, closing, slow peers."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from random import Random

import pytest
import trio
import trio.testing

from overlay.link.events import Flow
from overlay.link.link_io import (
    APART_SECONDS,
    READ_BYTES_LEAST,
    Connection,
    ConnectionLimits,
    ConnectionTable,
    Pieces,
    SchedulerLimits,
    SendQueues,
)
from tests.hanging import SAFETY_SECONDS
from tests.overlay.link.sockets import narrow_pair

KIB = 1024


class Reader:
    """Keeps what comes; ``room`` pieces are taken, and more when there is room again."""

    def __init__(self, room: float = inf) -> None:
        self.turns: list[list[tuple[int, bytes]]] = []
        self.room = room
        self.ended: list[int] = []
        self.ends: list[trio.SocketStream] = []  # of the others
        self._has_room = trio.Event()

    @property
    def pieces(self) -> list[tuple[int, bytes]]:
        return [piece for turn in self.turns for piece in turn]

    def take(self, pieces: Pieces) -> None:
        self.turns.append([(connection.number, data) for connection, data in pieces])

    async def all_taken(self) -> None:
        while len(self.pieces) > self.room:
            await self._has_room.wait()

    def make_room(self) -> None:
        self.room = inf
        self._has_room.set()


@asynccontextmanager
async def running(
    reader: Reader, turn_bytes_max: int = 1024 * KIB
) -> AsyncIterator[ConnectionTable]:
    table = ConnectionTable(reader.take, reader.all_taken, turn_bytes_max)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(table.run)
        yield table
        nursery.cancel_scope.cancel()
    for theirs in reader.ends:
        await theirs.aclose()


def entered(
    table: ConnectionTable,
    reader: Reader,
    number: int = 1,
    limits: ConnectionLimits | None = None,
    *,
    is_known: bool = True,
    queues: SendQueues | None = None,
) -> tuple[Connection, trio.SocketStream]:
    """A connection in a table, and its other end."""
    ours, theirs = narrow_pair()
    made = Connection(
        number,
        ours,
        limits or ConnectionLimits(),
        is_known=is_known,
        queues=queues,
        on_end=lambda: reader.ended.append(number),
    )
    table.add(made)
    reader.ends.append(theirs)
    return made, theirs


async def test_bytes_both_ways_and_the_end() -> None:
    reader = Reader()
    async with running(reader) as table:
        connection, theirs = entered(table, reader, 7)
        await theirs.send_all(b"hello")
        await trio.testing.wait_all_tasks_blocked()
        assert reader.pieces == [(7, b"hello")]
        connection.send_nowait(Flow.MESSAGE, b"world")
        connection.flush_nowait()
        assert await theirs.receive_some() == b"world"
        await theirs.aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert reader.ended == [7] and len(table) == 0


async def test_control_overtakes_what_waits() -> None:
    reader = Reader()
    async with running(reader) as table:
        connection, theirs = entered(table, reader)
        connection.send_nowait(Flow.MESSAGE, b"m")
        connection.send_nowait(Flow.CONTROL, b"c")
        connection.flush_nowait()
        assert await theirs.receive_some() == b"cm"


async def test_what_many_have_said_is_taken_together() -> None:
    reader = Reader()
    async with running(reader) as table:
        ends = [entered(table, reader, number)[1] for number in range(10)]
        for number, theirs in enumerate(ends):
            os.write(theirs.socket.fileno(), b"%d" % number)  # nobody has a turn meanwhile
        await trio.testing.wait_all_tasks_blocked()
    (turn,) = reader.turns
    assert sorted(turn) == [(number, b"%d" % number) for number in range(10)]


async def test_nothing_is_read_until_all_is_taken(
    autojump_clock: trio.testing.MockClock,
) -> None:
    reader = Reader(room=1)
    async with running(reader) as table:
        _, one = entered(table, reader, 1)
        _, other = entered(table, reader, 2)
        os.write(one.socket.fileno(), b"1")
        os.write(other.socket.fileno(), b"2")
        await trio.testing.wait_all_tasks_blocked()
        await one.send_all(b"more")
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(reader.pieces) == [(1, b"1"), (2, b"2")]
        reader.make_room()
        await trio.sleep(APART_SECONDS)
        await trio.testing.wait_all_tasks_blocked()
        assert reader.pieces[2:] == [(1, b"more")]


async def test_what_is_begun_is_written_on_while_nothing_is_read() -> None:
    reader = Reader(room=0)
    async with running(reader) as table:
        connection, theirs = entered(table, reader)
        await theirs.send_all(b"?")
        await trio.testing.wait_all_tasks_blocked()
        connection.send_nowait(Flow.MESSAGE, bytes(100 * KIB))
        connection.flush_nowait()
        assert await received(theirs, 100 * KIB) == bytes(100 * KIB)


async def test_all_that_are_readable_are_read_in_a_turn_however_little_there_is_room(
    autojump_clock: trio.testing.MockClock,
) -> None:
    reader = Reader()
    async with running(reader, turn_bytes_max=1) as table:
        ends = [entered(table, reader, number)[1] for number in range(3)]
        for theirs in ends:
            os.write(theirs.socket.fileno(), bytes(READ_BYTES_LEAST + 1))
        await trio.sleep(2 * APART_SECONDS)
        await trio.testing.wait_all_tasks_blocked()
    assert [[len(data) for _, data in turn] for turn in reader.turns] == [
        [READ_BYTES_LEAST] * 3,
        [1] * 3,
    ]


async def test_little_is_read_at_once_until_it_is_known_who_sends_it() -> None:
    reader = Reader()
    async with running(reader) as table:
        limits = ConnectionLimits(read_bytes_few=2)
        connection, theirs = entered(table, reader, 7, limits, is_known=False)
        await theirs.send_all(b"hello")
        await trio.testing.wait_all_tasks_blocked()
        assert [data for _, data in reader.pieces] == [b"he", b"ll", b"o"]
        connection.is_known = True
        await theirs.send_all(b"hello")
        await trio.testing.wait_all_tasks_blocked()
        assert reader.pieces[3:] == [(7, b"hello")]


async def test_a_connection_that_is_paused_is_not_read() -> None:
    reader = Reader()
    async with running(reader) as table:
        connection, theirs = entered(table, reader)
        table.pause(connection)
        await theirs.send_all(b"hello")
        await trio.testing.wait_all_tasks_blocked()
        assert reader.pieces == []
        table.resume(connection)
        await trio.testing.wait_all_tasks_blocked()
        assert reader.pieces == [(1, b"hello")]
        table.pause(connection)
        connection.cut_nowait("test")
        assert reader.ended == [1]


async def test_closing_sends_what_is_queued() -> None:
    reader = Reader()
    async with running(reader) as table:
        connection, theirs = entered(table, reader)
        connection.send_nowait(Flow.MESSAGE, bytes(100 * KIB) + b"last words")
        connection.close_nowait("test")
        connection.send_nowait(Flow.MESSAGE, b"too late")
        assert (await received(theirs, 100 * KIB + 10))[-10:] == b"last words"
        assert await theirs.receive_some() == b""
        await theirs.send_all(b"not read any more")
        await theirs.aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert reader.ended == [1] and reader.pieces == []
    assert connection.close_reason == "test"


@pytest.mark.parametrize("seed", range(5))
async def test_each_frame_leaves_once_and_each_flow_in_its_order(seed: int) -> None:
    """However much of it waits."""
    print(f"seed {seed}")
    random, reader = Random(seed), Reader()
    sent: dict[Flow, list[bytes]] = {flow: [] for flow in Flow}
    came: dict[Flow, list[bytes]] = {flow: [] for flow in Flow}
    async with running(reader) as table:
        connection, theirs = entered(table, reader)
        data = bytearray()
        for number in range(1, 301):
            flow = random.choice(list(Flow))
            frame = b"%d %05d %05d " % (
                flow,
                number,
                length := random.choice((0, 9, 9_000, 70_000)),
            )
            sent[flow].append(frame)
            connection.send_nowait(flow, frame, bytes(length))
            if random.random() < 0.5:
                connection.flush_nowait()
            if random.random() < 0.3:
                await trio.testing.wait_all_tasks_blocked()
                data += await theirs.receive_some() if connection.queued_bytes else b""
        connection.close_nowait("test")
        async for part in theirs:
            data += part
        assert connection.queued_bytes == 0
    at = 0
    while at < len(data):
        frame = bytes(data[at : at + 14])
        came[Flow(int(frame[:1]))].append(frame)
        at += 14 + int(frame[8:13])
    assert came == sent


async def test_a_peer_that_does_not_close_is_cut_off(mock_clock: trio.testing.MockClock) -> None:
    reader = Reader()
    async with running(reader) as table:
        connection, _theirs = entered(table, reader, 1, ConnectionLimits(close_seconds=3))
        connection.send_nowait(Flow.MESSAGE, b"nobody reads this")
        connection.close_nowait("test")
        mock_clock.jump(2.9)
        table.tick()
        assert reader.ended == []
        mock_clock.jump(0.1)
        table.tick()
        assert reader.ended == [1]


async def test_a_peer_that_does_not_read_is_given_up() -> None:
    limits = ConnectionLimits(scheduler=SchedulerLimits(control_bytes_max=100 * KIB))
    reader = Reader()
    async with running(reader) as table:
        connection, _theirs = entered(table, reader, 1, limits)
        for _ in range(4):
            connection.send_nowait(Flow.CONTROL, bytes(60 * KIB))
            connection.flush_nowait()
        assert reader.ended == [1]
    assert "too slow" in connection.close_reason


async def test_a_slow_reader_is_given_up(mock_clock: trio.testing.MockClock) -> None:
    queues, reader = SendQueues(), Reader()
    async with running(reader) as table:
        limits = ConnectionLimits(slow_seconds=20)
        connection, theirs = entered(table, reader, 7, limits, queues=queues)
        connection.send_nowait(Flow.CONTROL, b"hello")
        assert (queues.bytes, connection.queued_bytes) == (5, 5)
        connection.flush_nowait()
        assert await theirs.receive_some(5) == b"hello"
        assert (queues.bytes, connection.queued_bytes) == (0, 0)
        connection.send_nowait(Flow.CONTROL, bytes(1_000_000))
        connection.flush_nowait()
        mock_clock.jump(19)
        table.tick()
        assert connection.close_reason == ""
        mock_clock.jump(1)
        table.tick()
    assert connection.close_reason == "the peer took nothing in 20 seconds"
    assert reader.ended == [7] and (queues.bytes, connection.queued_bytes) == (0, 0)


async def test_a_long_frame_may_take_as_long_as_it_is_taken_at_all(
    mock_clock: trio.testing.MockClock,
) -> None:
    reader = Reader()
    async with running(reader) as table:
        connection, theirs = entered(table, reader, 7, ConnectionLimits(slow_seconds=20))
        connection.send_nowait(Flow.CONTROL, bytes(1_000_000))
        connection.flush_nowait()
        taken = 0
        while taken < 1_000_000:
            mock_clock.jump(15)
            table.tick()
            taken += len(await theirs.receive_some(64 * KIB))
            await trio.testing.wait_all_tasks_blocked()
        assert connection.close_reason == ""


@pytest.mark.parametrize("is_closing", [False, True])
async def test_a_peer_that_resets_its_connection_has_ended_it(*, is_closing: bool) -> None:
    reader = Reader()
    async with running(reader) as table:
        connection, theirs = entered(table, reader)
        if is_closing:
            connection.close_nowait("test")
        theirs.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes(8))
        await theirs.aclose()
        connection.send_nowait(Flow.MESSAGE, b"x")
        connection.flush_nowait()
        await trio.testing.wait_all_tasks_blocked()
        assert reader.ended == [1]


async def test_a_connection_that_is_reset_while_it_is_paused_is_written_no_more() -> None:
    """Its socket would be writable without end."""
    reader = Reader()
    async with running(reader) as table:
        connection, theirs = entered(table, reader)
        connection.send_nowait(Flow.MESSAGE, bytes(1_000_000))
        connection.flush_nowait()
        table.pause(connection)
        assert len(table.writable.get_map()) == 1
        await theirs.aclose()
        with trio.fail_after(SAFETY_SECONDS):
            while table.writable.get_map():
                await trio.lowlevel.checkpoint()
        table.resume(connection)
        await trio.testing.wait_all_tasks_blocked()
        assert reader.ended == [1]


async def received(theirs: trio.SocketStream, size: int) -> bytes:
    found = b""
    while len(found) < size:
        found += await theirs.receive_some()
    return found
