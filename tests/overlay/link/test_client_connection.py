"""ClientConnection against a real node on loopback."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from overlay.link.client_connection import (
    ClientLimits,
    ConnectionFailed,
    RemoteError,
    open_client,
)
from overlay.link.events import Flow
from overlay.link.frames import Delivery
from overlay.link.limits import LinkLimits
from tests.overlay.link.counter_core import REFUSED, until
from tests.overlay.link.test_node import Network


async def test_calls(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with (
        network.run("B"),
        open_client("127.0.0.1", network.ports["B"], role="client", identity="c1") as client,
    ):
        assert client.peer == "broker/B"
        assert client.formats == ["xml"]
        with trio.fail_after(20):
            assert await client.call("echo", {"a": [1, "x"]}) == {"a": [1, "x"]}
            with pytest.raises(RemoteError, match="it failed") as caught:
                await client.call("fail", {})
            assert caught.value.code == "no-way"

            async def echo(number: int) -> None:
                assert await client.call("echo", {"n": number}) == {"n": number}

            async with trio.open_nursery() as nursery:
                for number in range(50):
                    nursery.start_soon(echo, number)


async def test_observed_events(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with (
        network.run("B"),
        open_client("127.0.0.1", network.ports["B"], role="client", identity="c1") as client,
    ):
        seen = []
        with trio.fail_after(20):
            await client.call("observe", {"count": 5})
            async for event in client.observed():
                seen.append(event["number"])
                if len(seen) == 5:
                    break
        assert seen == [0, 1, 2, 3, 4]


async def test_nobody_there(autojump_clock: trio.testing.MockClock) -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    with pytest.raises(ConnectionFailed, match="no answer"):
        async with open_client("127.0.0.1", port, role="client", identity="c1"):
            pytest.fail("connected to nobody")


async def test_refused_at_the_hello(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with network.run("B"):
        with trio.fail_after(20), pytest.raises(RemoteError) as caught:
            async with open_client(
                "127.0.0.1", network.ports["B"], role="source", identity="stranger"
            ):
                pytest.fail("a stranger was let in")
    assert caught.value.code == "unknown-peer"


async def test_an_error_in_the_block_comes_out_as_it_is(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with network.run("B"):
        with pytest.raises(KeyError):
            async with open_client("127.0.0.1", network.ports["B"], role="client", identity="c1"):
                raise KeyError("mine")


async def test_a_call_fails_when_the_connection_is_lost(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with network.run("B"):
        pass
    async with trio.open_nursery() as nursery:
        running = trio.Event()
        stop = trio.Event()

        async def run() -> None:
            async with network.run("B"):
                running.set()
                await stop.wait()

        nursery.start_soon(run)
        await running.wait()
        async with open_client(
            "127.0.0.1", network.ports["B"], role="client", identity="c1"
        ) as client:

            async def wait() -> None:
                with pytest.raises(ConnectionFailed, match="lost"):
                    await client.call("silent", {})
                with pytest.raises(ConnectionFailed, match="not connected"):
                    await client.call("echo", {})

            async with trio.open_nursery() as inner:
                inner.start_soon(wait)
                await trio.testing.wait_all_tasks_blocked()
                stop.set()


async def test_publishing(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with (
        network.run("B") as core,
        open_client("127.0.0.1", network.ports["B"], role="source", identity="s1") as source,
    ):
        with trio.fail_after(20):
            numbers = [
                await source.publish(payload, "xml") for payload in (b"<a/>", REFUSED, b"<b/>")
            ]
            assert numbers == [1, 2, 3]
            assert await source.outcome(1) is None
            refused = await source.outcome(2)
            assert refused is not None
            assert (refused.number, refused.code) == (2, "malformed")
            assert await source.outcome(3) is None
            with pytest.raises(KeyError):
                await source.outcome(3)
        assert core.taken == [b"<a/>", REFUSED, b"<b/>"]


async def test_publishing_waits_for_room(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with (
        network.run("B") as core,
        open_client(
            "127.0.0.1",
            network.ports["B"],
            role="source",
            identity="s1",
            limits=ClientLimits(publishes_max=3),
        ) as source,
    ):
        core.hold = True
        for _ in range(3):
            await source.publish(b"<a/>", "xml")
        numbers: list[int] = []

        async def publish_one_more() -> None:
            numbers.append(await source.publish(b"<a/>", "xml"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(publish_one_more)
            await until(lambda: len(core.taken) == 3)
            await trio.testing.wait_all_tasks_blocked()
            assert numbers == [], "nothing was acknowledged, so there is no room"
            core.hold = False
        with trio.fail_after(20):
            await source.outcome(4)
        assert numbers == [4]
        assert len(core.taken) == 4


async def test_publishing_across_restarts_of_the_broker(tmp_path: Path) -> None:
    network = Network(tmp_path)
    payloads = [b"<m%d/>" % number for number in range(120)]
    stop = False
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            up = trio.Event()

            async def keep_restarting() -> None:
                while not stop:
                    async with network.run("B") as core:
                        up.set()
                        before = len(core.taken)
                        await until(lambda c=core, b=before: stop or len(c.taken) >= b + 25)  # type: ignore[misc]

            nursery.start_soon(keep_restarting)
            await up.wait()
            async with open_client(
                "127.0.0.1",
                network.ports["B"],
                role="source",
                identity="s1",
                limits=ClientLimits(link=LinkLimits(window_frames=4)),
            ) as source:
                numbers = [await source.publish(payload, "xml") for payload in payloads]
                for number in numbers:
                    await source.outcome(number)
                assert source.statistics()["connections"] != 1
            stop = True
    async with network.run("B") as core:
        assert core.taken == payloads


async def test_a_source_that_starts_again_goes_on_with_the_next_number(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with network.run("B") as core:
        for expected in (1, 2, 3):
            async with open_client(
                "127.0.0.1", network.ports["B"], role="source", identity="s1"
            ) as source:
                assert await source.publish(b"<a/>", "xml") == expected
                assert await source.outcome(expected) is None
            await until(lambda: not core.links.connected("source/s1"))
        assert len(core.taken) == 3


async def test_a_second_process_of_the_same_source_replaces_the_first(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with network.run("B"):
        port = network.ports["B"]
        async with (
            open_client("127.0.0.1", port, role="source", identity="s1") as first,
            open_client("127.0.0.1", port, role="source", identity="s1") as second,
        ):
            with trio.fail_after(20), pytest.raises(RemoteError) as caught:
                await first.wait_lost()
                await first.publish(b"<a/>", "xml")
            assert caught.value.code == "replaced"
            assert second.connected


async def test_deliveries_are_acknowledged_when_the_next_is_asked_for(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with network.run("B", (), lambda core: core.deliver(5)) as core:

        async def take(count: int) -> list[int]:
            """Take some, and leave while still at work on the last."""
            taken: list[int] = []
            async with open_client(
                "127.0.0.1", network.ports["B"], role="subscriber", identity="p7"
            ) as subscriber:
                with trio.fail_after(20):
                    async for delivery in subscriber.deliveries():
                        assert isinstance(delivery, Delivery)
                        taken.append(delivery.number)
                        if len(taken) == count:
                            await until(lambda: _backlog(core) == 6 - taken[-1])
                            break
                assert subscriber.lost == 0
            await until(lambda: not core.links.connected("subscriber/p7"))
            return taken

        assert await take(3) == [1, 2, 3]
        assert await take(3) == [3, 4, 5]
        assert await take(1) == [5]


def _backlog(core: object) -> int:
    """Deliveries that p7 has not acknowledged."""
    statistics = core.links.statistics()  # type: ignore[attr-defined]
    channel = statistics["journals"]["subscriber/p7"]["sending"]["message:p7"]
    return int(channel["last"] - channel["acknowledged"])


async def test_a_subscriber_learns_how_many_were_dropped(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with network.run("B", (), lambda core: core.deliver(9)) as core:
        size = core.links.backlog_bytes("subscriber/p7", Flow.MESSAGE, "p7")
        core.links.drop_oldest("subscriber/p7", Flow.MESSAGE, "p7", size // 3)
        async with open_client(
            "127.0.0.1", network.ports["B"], role="subscriber", identity="p7"
        ) as subscriber:
            with trio.fail_after(20):
                async for delivery in subscriber.deliveries():
                    assert delivery.number == 7
                    break
            assert subscriber.lost == 6
