"""Doors: clients do not keep a node off its links, and strangers take little of it."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from overlay.limits import Limits
from overlay.link.door import CLIENT_ROLES, Door, Doorkeeper, DoorLimits, address_counted
from overlay.link.events import (
    Action,
    ConnectionOpened,
    PeerKnown,
    TakeSettings,
)
from overlay.link.frame_codec import LENGTH_BYTES, FrameDecoder, decode, encode
from overlay.link.frames import ErrorFrame, Hello, Request
from overlay.link.handshake import announced_bytes
from overlay.link.limits import LinkLimits
from overlay.link.node import run_node
from overlay.link.node_limits import NodeLimits
from overlay.link.principal import PROCESS_ROLES
from overlay.link.store import Store
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import small_topology
from tests.overlay.link.counter_core import CounterCore, until
from tests.overlay.link.pair import Hand, hello, make_links, sent

KIB = 1024
PREAUTH_BYTES_MAX = 64 * KIB


class House:
    """A node with a door for clients and one for links."""

    def __init__(self, core: CounterCore, clients: int, links: int) -> None:
        self.core = core
        self.ports = {"clients": clients, "links": links}

    async def visit(self, door: str, said: Hello | None = None) -> trio.SocketStream:
        stream = await trio.open_tcp_stream("127.0.0.1", self.ports[door])
        if said is not None:
            await stream.send_all(encode(said))
        return stream


@asynccontextmanager
async def house(
    directory: Path,
    clients: DoorLimits | None = None,
    limits: NodeLimits | None = None,
    **link_limits: int,
) -> AsyncIterator[House]:
    with Store(directory / "B.db") as store:
        core = CounterCore("B", store.rows(), **link_limits)
        doors, ports = [], []
        for roles, bounds in ((CLIENT_ROLES, clients), (PROCESS_ROLES, None)):
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
            ports.append(listeners[0].socket.getsockname()[1])
            doors.append(Door(listeners, roles, bounds or DoorLimits()))
        async with trio.open_nursery() as nursery:

            async def run(task_status: trio.TaskStatus[None]) -> None:
                await run_node(
                    core,
                    doors=doors,
                    dials={},
                    store=store,
                    limits=limits or NodeLimits(),
                    task_status=task_status,
                )

            await nursery.start(run)
            with trio.fail_after(SAFETY_SECONDS):
                yield House(core, *ports)
            nursery.cancel_scope.cancel()


async def answer(stream: trio.SocketStream) -> Hello | ErrorFrame | None:
    """The first frame that comes; None: the connection is over without one."""
    data = b""
    with suppress(trio.BrokenResourceError):
        async for part in stream:
            data += part
            if len(data) >= LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "big"):
                break
    if not data:
        return None
    length = int.from_bytes(data[:LENGTH_BYTES], "big")
    frame = decode(data[LENGTH_BYTES : LENGTH_BYTES + length]).frame
    assert isinstance(frame, Hello | ErrorFrame)
    return frame


async def code(stream: trio.SocketStream) -> str:
    frame = await answer(stream)
    return frame.code if isinstance(frame, ErrorFrame) else type(frame).__name__


# --- two doors -------------------------------------------------------------------------------


async def test_however_many_clients_there_are_a_broker_keeps_its_link(tmp_path: Path) -> None:
    async with house(tmp_path, DoorLimits(inside_max=3)) as node, AsyncExitStack() as stack:
        for _ in range(3):
            idle = await stack.enter_async_context(await node.visit("clients"))
            await trio.testing.wait_all_tasks_blocked()
        too_many = await node.visit("clients", hello("source", "s1"))
        assert await code(too_many) == "too-many-connections"
        async with await node.visit("links", hello("broker", "A")) as link:
            assert await code(link) == "Hello"
        await too_many.aclose()
        await idle.aclose()


async def test_as_many_come_in_as_the_settings_in_force_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Action] = []

    async with house(tmp_path, DoorLimits(inside_max=1)) as node, AsyncExitStack() as stack:
        handle = node.core.handle
        monkeypatch.setattr(node.core, "handle", lambda *what: [*told, *handle(*what)])
        first = await stack.enter_async_context(await node.visit("clients", hello("client", "c1")))
        assert await code(first) == "Hello"
        for most in (1, 2):
            limits = Limits(connections_max=most, link_connections_max=1)
            told[:] = [TakeSettings(replace(small_topology(tmp_path), limits=limits), ("limits",))]
            await first.send_all(encode(Request(str(most), "echo", {})))
            assert await first.receive_some()
            second = await node.visit("clients", hello("source", "s1"))
            await stack.enter_async_context(second)
            assert await code(second) == ("too-many-connections" if most == 1 else "Hello")
        async with await node.visit("links", hello("broker", "A")) as link:
            assert await code(link) == "Hello"
            one_more = await node.visit("links", hello("broker", "C"))
            assert await code(one_more) == "too-many-connections"
            await one_more.aclose()


@pytest.mark.parametrize(
    ("door", "role", "peer", "gets"),
    [
        ("clients", "source", "s1", "Hello"),
        ("clients", "client", "c1", "Hello"),
        ("clients", "broker", "A", "wrong-door"),
        ("clients", "registration", "A", "wrong-door"),
        ("links", "broker", "A", "Hello"),
        ("links", "source", "s1", "wrong-door"),
        ("links", "subscriber", "u1", "wrong-door"),
        ("links", "client", "c1", "wrong-door"),
    ],
)
async def test_each_door_has_its_roles(
    tmp_path: Path, door: str, role: str, peer: str, gets: str
) -> None:
    async with house(tmp_path) as node, await node.visit(door, hello(role, peer)) as stream:
        assert await code(stream) == gets


# --- until it is known who somebody is -------------------------------------------------------


async def test_a_newcomer_takes_the_place_of_whoever_has_waited_longest(tmp_path: Path) -> None:
    async with house(tmp_path, DoorLimits(unknown_max=2)) as node, AsyncExitStack() as stack:
        known = await stack.enter_async_context(await node.visit("clients", hello("client", "c1")))
        assert await code(known) == "Hello"
        silent = []
        for _ in range(3):
            silent.append(await stack.enter_async_context(await node.visit("clients")))
            await trio.testing.wait_all_tasks_blocked()
        assert await answer(silent[0]) is None
        async with await node.visit("clients", hello("source", "s1")) as last:
            assert await code(last) == "Hello"
        await known.send_all(encode(Request("1", "echo", {})))
        assert await known.receive_some()


def test_all_brokers_may_come_to_the_door_of_links_at_once() -> None:
    limits = Limits(unknown_connections_max=256)
    assert DoorLimits.of(limits, 2_000, is_of_links=True).unknown_max == 1_000
    assert DoorLimits.of(limits, 256, is_of_links=True).unknown_max == 256
    assert DoorLimits.of(limits, 10_000, is_of_links=False).unknown_max == 256


async def test_a_hello_of_a_stranger_is_short(tmp_path: Path) -> None:
    channels = [(3, f"a tree with a long name {number}", 1) for number in range(2_000)]
    async with house(tmp_path) as node:
        async with await node.visit("clients", hello("source", "s1", channels)) as stream:
            assert await code(stream) == "too-long"
        async with await node.visit("links", hello("broker", "A", channels)) as stream:
            assert await code(stream) == "store-lost"  # so it was read


async def test_strangers_take_little_memory(tmp_path: Path) -> None:
    """A hello announced as long as it may be, all of it sent but the last byte."""
    length = LinkLimits().unknown_bytes_max
    nearly = length.to_bytes(LENGTH_BYTES, "big") + bytes(length - 1)
    async with house(tmp_path) as node, AsyncExitStack() as stack:
        taken = []
        tracemalloc.start()
        try:
            for _ in range(100):
                stream = await stack.enter_async_context(await node.visit("clients"))
                await stream.send_all(nearly)
                await trio.testing.wait_all_tasks_blocked()
                taken.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
        assert (taken[-1] - taken[9]) / 90 < PREAUTH_BYTES_MAX


def test_the_shell_is_told_when_it_is_known() -> None:
    hand = Hand(make_links())
    hand.event(ConnectionOpened(1, "", roles=CLIENT_ROLES))
    hand.receive(hello("client", "c1"))
    assert PeerKnown(1, "client") in hand.actions
    hand.meet(connection=2)  # not by a door
    assert PeerKnown(2, "client") not in hand.actions


# --- from one address ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "announced"),
    [
        (b"\x16\x03\x01\x40\x00\x01\x01\xff\xff" + bytes(9), 0x1FFFF),
        (b"\x16\x03\x01\x40\x00\x02\x01\xff\xff", 0),
        (b"\x17\x03\x01\x40\x00\x01\x01\xff\xff", 0),
        (b"\x16\x03\x01\x40\x00\x01\x01\xff", 0),
        (b"", 0),
    ],
)
def test_a_hello_of_tls_says_how_long_it_is(data: bytes, announced: int) -> None:
    assert announced_bytes(data) == announced


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("127.0.0.1", ""),
        ("127.3.2.1", ""),
        ("::1", ""),
        ("::ffff:127.0.0.1", ""),
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_by_what_an_address_is_counted(host: str, counted: str) -> None:
    assert address_counted(host) == counted


def test_from_one_address_only_so_many_come_in() -> None:
    keeper = Doorkeeper(Door([], CLIENT_ROLES, DoorLimits(9, 9, address_max=2)))
    for number in range(2):
        assert keeper.refusal("192.0.2.7") is None
        keeper.enter(number, "192.0.2.7")
    refusal = keeper.refusal("192.0.2.7")
    assert refusal is not None and refusal.code == "too-many-connections"
    assert refusal.detail.startswith("2 connections from 192.0.2.7 are here already")
    assert keeper.refusal("192.0.2.8") is keeper.refusal("") is None
    keeper.leave(0)
    assert keeper.refusal("192.0.2.7") is None
    assert (len(keeper._inside), len(keeper._unknown)) == (1, 1)


# --- all buffers of a process ----------------------------------------------------------------


def test_of_frames_that_are_not_all_there_the_longest_is_given_up() -> None:
    hand = Hand(make_links(limits=LinkLimits(unfinished_bytes_max=1_000)))
    for connection, role in enumerate(("client", "source", "broker"), 1):
        hand.meet(role, f"x{connection}", connection=connection)
    begun = (5_000).to_bytes(LENGTH_BYTES, "big")
    assert hand.bytes(begun + bytes(400), 1) == []
    assert hand.bytes(begun + bytes(2_000), 3) == []  # of a broker: its links are few
    assert hand.bytes(begun + bytes(500), 2) == []
    (error,) = hand.bytes(bytes(500), 1)
    assert isinstance(error, ErrorFrame)
    assert (error.code, error.fatal) == ("no-room", True)
    hand.bytes(bytes(400), 2)  # there is room again
    assert not any(isinstance(frame, ErrorFrame) for frame in sent(hand.actions))
    hand.lose(2)
    hand.meet("client", "c9", connection=4)
    assert hand.bytes(begun + bytes(900), 4) == []


def test_nothing_is_kept_of_a_frame_that_was_taken() -> None:
    frame = encode(Request("1", "echo", {"text": "x" * 500_000}))
    decoders = [FrameDecoder(1 << 20) for _ in range(10)]
    tracemalloc.start()
    try:
        for decoder in decoders:
            decoder.feed(frame + b"\0\0")
            assert decoder.next_frame() == frame[LENGTH_BYTES:]
            assert decoder.next_frame() is None
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()


async def test_too_much_to_send_costs_the_client_with_the_most(tmp_path: Path) -> None:
    """Three that do not read: two of them have asked for more than there is room for."""
    limits = NodeLimits(send_bytes=24 * KIB * KIB)
    async with house(tmp_path, limits=limits) as node, AsyncExitStack() as stack:
        node.core.known |= {"c2", "c3"}
        streams = []
        for name, times in (("c1", 1), ("c2", 16), ("c3", 8)):
            stream = await stack.enter_async_context(
                await node.visit("clients", hello("client", name))
            )
            streams.append(stream)
            await until(lambda name=name: node.core.links.connected(f"client/{name}"))
            for _ in range(times):
                await stream.send_all(encode(Request("1", "echo", {"text": "x" * (1 << 20)})))
            await trio.testing.wait_all_tasks_blocked(0.01)
        await until(lambda: not node.core.links.connected("client/c2"))
        assert node.core.links.connected("client/c1")
