"""Connection over streams in memory: back-pressure, closing, slow peers."""

from __future__ import annotations

import trio
import trio.testing

from overlay.link.events import ConnectionLost, DataReceived, Event, Flow
from overlay.link.link_io import Connection, ConnectionLimits, SchedulerLimits


async def test_bytes_both_ways_and_the_end() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    connection = Connection(7, ours)
    inbox_send, inbox = trio.open_memory_channel[Event](10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run, inbox_send.send)
        await theirs.send_all(b"hello")
        assert await inbox.receive() == DataReceived(7, b"hello")
        connection.send_nowait(Flow.MESSAGE, b"world")
        assert await theirs.receive_some() == b"world"
        await theirs.aclose()
        assert await inbox.receive() == ConnectionLost(7)


async def test_control_overtakes_what_waits() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    connection = Connection(1, ours)
    connection.send_nowait(Flow.MESSAGE, b"m")
    connection.send_nowait(Flow.CONTROL, b"c")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run, _ignore)
        assert await theirs.receive_some() == b"cm"
        nursery.cancel_scope.cancel()


async def test_a_full_inbox_stops_reading(autojump_clock: trio.testing.MockClock) -> None:
    ours, theirs = trio.testing.lockstep_stream_pair()
    connection = Connection(1, ours, ConnectionLimits(read_bytes_max=1))
    inbox_send, inbox = trio.open_memory_channel[Event](2)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run, inbox_send.send)
        with trio.move_on_after(5) as scope:
            await theirs.send_all(b"12345")  # two in the inbox, one in the reader's hand
        assert scope.cancelled_caught
        seen = [await inbox.receive() for _ in range(3)]
        assert seen == [DataReceived(1, digit) for digit in (b"1", b"2", b"3")]
        nursery.cancel_scope.cancel()


async def test_closing_sends_what_is_queued() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    connection = Connection(1, ours)
    inbox_send, inbox = trio.open_memory_channel[Event](10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run, inbox_send.send)
        connection.send_nowait(Flow.MESSAGE, b"last words")
        connection.close_nowait("test")
        connection.send_nowait(Flow.MESSAGE, b"too late")
        assert await theirs.receive_some() == b"last words"
        assert await theirs.receive_some() == b""
        await theirs.send_all(b"not read any more")
        await theirs.aclose()
        assert await inbox.receive() == ConnectionLost(1)
    assert connection.close_reason == "test"


async def test_a_peer_that_does_not_close_is_cut_off(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ours, theirs = trio.testing.lockstep_stream_pair()
    connection = Connection(1, ours, ConnectionLimits(close_seconds=3))
    inbox_send, inbox = trio.open_memory_channel[Event](10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run, inbox_send.send)
        connection.send_nowait(Flow.MESSAGE, b"nobody reads this")
        start = trio.current_time()
        connection.close_nowait("test")
        assert await inbox.receive() == ConnectionLost(1)
        assert trio.current_time() - start == 3
    await theirs.aclose()


async def test_a_peer_that_does_not_read_is_given_up() -> None:
    ours, theirs = trio.testing.lockstep_stream_pair()
    limits = ConnectionLimits(scheduler=SchedulerLimits(control_bytes_max=100))
    connection = Connection(1, ours, limits)
    inbox_send, inbox = trio.open_memory_channel[Event](10)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run, inbox_send.send)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(4):
            connection.send_nowait(Flow.CONTROL, bytes(60))
            await trio.testing.wait_all_tasks_blocked()
        assert await inbox.receive() == ConnectionLost(1)
    assert "too slow" in connection.close_reason
    await theirs.aclose()


async def _ignore(event: Event) -> None:
    await trio.lowlevel.checkpoint()
