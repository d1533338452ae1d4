"""ClientConnection against a real node on loopback."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from overlay.link.client_connection import (
    ClientConnection,
    ClientLimits,
    ConnectionFailed,
    RemoteError,
    open_client,
)
from overlay.link.client_stream import ClientStream
from overlay.link.events import Flow
from overlay.link.frame import FEATURES, PUBLISHERS
from overlay.link.inbox import Arrived, Inbox, InboxQueue
from overlay.link.limits import LinkLimits
from overlay.nodes import Address
from tests.hanging import SAFETY_SECONDS
from tests.overlay.link.counter_core import REFUSED, until
from tests.overlay.link.test_node import Network


async def test_calls(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with (
        network.run("B"),
        open_client("127.0.0.1", network.ports["B"], role="client", identity="c1") as client,
    ):
        assert client.peer == "broker/B"
        assert client.hello is not None and client.hello.formats == ["xml"]
        with trio.fail_after(SAFETY_SECONDS):
            assert await client.call("echo", {"a": [1, "x"]}) == {"a": [1, "x"]}
            with pytest.raises(RemoteError, match="it failed") as caught:
                await client.call("fail", {})
            assert caught.value.code == "no-way"

            async def echo(number: int) -> None:
                assert await client.call("echo", {"n": number}) == {"n": number}

            async with trio.open_nursery() as nursery:
                for number in range(50):
                    nursery.start_soon(echo, number)


async def test_who_asks_the_same_again_meanwhile_is_answered_too(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with (
        network.run("B"),
        open_client("127.0.0.1", network.ports["B"], role="client", identity="c1") as client,
    ):
        answers: list[int] = []

        async def echo(number: int) -> None:
            answer = await client.call("echo", {"n": number}, request="the same")
            assert answer == {"n": number}
            answers.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(echo, number)
        assert sorted(answers) == list(range(20))

        with trio.move_on_after(0):
            await client.call("silent", {}, request="the same")
        await echo(20)


async def test_observed_events(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with (
        network.run("B"),
        open_client("127.0.0.1", network.ports["B"], role="client", identity="c1") as client,
    ):
        seen = []
        with trio.fail_after(SAFETY_SECONDS):
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
        with trio.fail_after(SAFETY_SECONDS), pytest.raises(RemoteError) as caught:
            async with open_client(
                "127.0.0.1", network.ports["B"], role="source", identity="stranger"
            ):
                pytest.fail("a stranger was let in")
    assert caught.value.code == "unknown-peer"


@pytest.mark.parametrize("code", ["keys-awaited", "hello-timeout"])
async def test_who_is_told_to_come_again_does(tmp_path: Path, code: str) -> None:
    network = Network(tmp_path)
    async with network.run("B") as core:
        core.refused_first = [code, code]
        with trio.fail_after(SAFETY_SECONDS):
            async with open_client(
                "127.0.0.1", network.ports["B"], role="client", identity="c1"
            ) as client:
                assert await client.call("echo", {"a": 1}) == {"a": 1}
        assert not core.refused_first


async def test_a_full_disk_is_told_to_who_begins_and_outlasted_by_who_was_here(
    tmp_path: Path,
) -> None:
    network = Network(tmp_path)

    async def run(
        refusals: list[str], stop: trio.Event, task_status: trio.TaskStatus[None]
    ) -> None:
        async with network.run("B") as core:
            core.refused_first = refusals
            task_status.started()
            await stop.wait()
        ended.set()

    ended = trio.Event()
    stop, full = trio.Event(), ["disk-full", "disk-full"]
    async with trio.open_nursery() as first:
        await first.start(run, full[:1], stop)
        where = "127.0.0.1", network.ports["B"]
        with pytest.raises(RemoteError) as caught:
            async with open_client(*where, role="client", identity="c1"):
                pytest.fail("let in")
        assert caught.value.code == "disk-full"
        async with open_client(*where, role="client", identity="c1") as client:
            assert await client.call("echo", {"a": 1}) == {"a": 1}
            stop.set()
            async with trio.open_nursery() as again:
                stop = trio.Event()
                await ended.wait()
                await again.start(run, full, stop)
                while full:
                    await trio.sleep(0.01)
                await client.wait_connected()
                assert await client.call("echo", {"a": 2}) == {"a": 2}
                stop.set()


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
        with trio.fail_after(SAFETY_SECONDS):
            numbers = [
                await source.publish(payload, "xml") for payload in (b"<a/>", REFUSED, b"<b/>")
            ]
            assert numbers == [1, 2, 3]
            assert (await source.outcome(1)).said is None
            refused = (await source.outcome(2)).said
            assert refused is not None
            assert (refused.number, refused.code) == (2, "malformed")
            assert (await source.outcome(3)).said is None
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
        with trio.fail_after(SAFETY_SECONDS):
            await source.outcome(4)
        assert numbers == [4]
        assert len(core.taken) == 4


async def test_publishing_across_restarts_of_the_broker(tmp_path: Path) -> None:
    network = Network(tmp_path)
    payloads = [b"<m%d/>" % number for number in range(120)]
    stop = False
    with trio.fail_after(SAFETY_SECONDS):
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
                assert source.connection_number != 1
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
                assert (await source.outcome(expected)).said is None
            assert not source.connected, "who follows it would wait for nothing, for ever"
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
            with trio.fail_after(SAFETY_SECONDS), pytest.raises(RemoteError) as caught:
                await first.wait_lost()
                await first.publish(b"<a/>", "xml")
            assert caught.value.code == "replaced"
            assert second.connected


async def test_publishers_with_names_are_here_together(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with network.run("B"):
        where = "127.0.0.1", network.ports["B"]
        async with (
            open_client(*where, role="source", identity="s1") as first,
            open_client(*where, role="source", identity="s1", publisher="p") as second,
            open_client(*where, role="source", identity="s1", publisher="p") as third,
        ):
            with trio.fail_after(SAFETY_SECONDS), pytest.raises(RemoteError, match="newer"):
                await second.wait_lost()
                await second.publish(b"<a/>", "xml")
            assert first.connected and third.connected


async def test_a_publisher_has_no_name_where_the_broker_knows_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later release of the broker takes it for the one that it was before."""
    network = Network(tmp_path)
    known = FEATURES - {PUBLISHERS}
    monkeypatch.setattr("overlay.link.link_layer.FEATURES", known)
    async with (
        network.run("B"),
        open_client(
            *("127.0.0.1", network.ports["B"]), role="source", identity="s1", publisher="p"
        ) as source,
    ):
        assert source._links.publisher == ""


async def test_a_source_that_starts_again_is_told_what_became_of_its_messages(
    tmp_path: Path,
) -> None:
    """The broker has refused messages of runs of which this one knows nothing."""
    network = Network(tmp_path)
    async with network.run("B") as core:
        for expected in (1, 2, 3):
            async with open_client(
                "127.0.0.1", network.ports["B"], role="source", identity="s1"
            ) as source:
                with trio.fail_after(SAFETY_SECONDS):
                    assert await source.publish(REFUSED, "xml") == expected
                    refused = (await source.outcome(expected)).said
                assert refused is not None
                assert refused.number == expected
                await until(lambda: core.links.backlog_bytes("source/s1", Flow.MESSAGE, "s1") == 0)
            await until(lambda: not core.links.connected("source/s1"))


@asynccontextmanager
async def subscribed(network: Network, identity: str = "u1") -> AsyncIterator[ClientConnection]:
    with trio.fail_after(SAFETY_SECONDS):
        async with open_client(
            "127.0.0.1", network.ports["B"], role="subscriber", identity=identity
        ) as subscriber:
            yield subscriber


async def take(subscriber: ClientConnection, inbox: Inbox, count: int) -> list[Arrived]:
    return [await subscriber.next_delivery(inbox) for _ in range(count)]


def numbers(arrived: Iterable[Arrived]) -> list[int]:
    found = []
    for each in arrived:
        assert each.number == each.frame.number
        found.append(each.number)
    return found


async def test_what_was_not_acknowledged_comes_again_in_the_next_run(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with network.run("B", (), lambda core: core.deliver(5)) as core:

        async def run(count: int) -> list[int]:
            """Take some, and leave while still at work on the last."""
            async with subscribed(network) as subscriber:
                inbox = subscriber.attach("p7")
                arrived = await take(subscriber, inbox, count)
                for each in arrived[:-1]:
                    subscriber.acknowledge(each)
                await subscriber.call("echo", {})
                assert core.mailboxes["p7"].taken == arrived[-1].number - 1
                assert inbox.processed == arrived[-1].number - 1
                assert inbox.lost == 0
            await until(lambda: not core.links.connected("subscriber/u1"))
            return numbers(arrived)

        assert await run(3) == [1, 2, 3]
        assert await run(3) == [3, 4, 5]
        assert await run(1) == [5]


async def test_over_a_lost_connection_nothing_comes_twice(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with (
        network.run("B", (), lambda core: core.deliver(5)) as core,
        open_client("127.0.0.1", network.ports["B"], role="client", identity="c1") as client,
        subscribed(network) as subscriber,
    ):
        inbox = subscriber.attach("p7")
        arrived = await take(subscriber, inbox, 5)
        subscriber.acknowledge(arrived[1])
        with pytest.raises(ConnectionFailed, match="lost"):
            await subscriber.call("hang-up", {})
        await subscriber.wait_connected()
        assert subscriber.connection_number == 2
        await client.call("deliver", {"count": 2})
        again = await take(subscriber, inbox, 2)
        assert numbers([*arrived, *again]) == [1, 2, 3, 4, 5, 6, 7]
        assert subscriber._subscription.duplicates == 3
        subscriber.acknowledge(arrived[4])
        await subscriber.call("echo", {})
        assert core.mailboxes["p7"].taken == 5, "of the connection before"


async def test_a_connection_that_never_was_answered_is_lost_as_any_other() -> None:
    """The other side takes it, says no hello, and hangs up: nothing was connected meanwhile."""
    ours, server = socket.socketpair()
    ours.setblocking(False)
    client = ClientStream(ours)
    connection = ClientConnection((Address("nowhere", 1),), "client", "c1", (), ClientLimits())
    with trio.fail_after(SAFETY_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection._run_connection, client, 1.0)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(connection.wait_lost)
            await trio.testing.wait_all_tasks_blocked()
            server.close()


async def test_acknowledgements_are_said_soon_and_together(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with (
        network.run("B", (), lambda core: core.deliver(200)) as core,
        subscribed(network) as subscriber,
    ):
        for arrived in await take(subscriber, subscriber.attach("p7"), 200):
            subscriber.acknowledge(arrived)
        await until(lambda: core.mailboxes["p7"].taken == 200)


async def test_a_subscriber_learns_how_many_were_missed(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with network.run("B", (), lambda core: core.deliver(9)) as core:
        core.mailboxes["p7"].taken, core.mailboxes["p7"].gone = 2, 6
        async with subscribed(network) as subscriber:
            inbox = subscriber.attach("p7")
            assert numbers(await take(subscriber, inbox, 3)) == [7, 8, 9]
            assert inbox.lost == 4


async def test_a_gap_ends_the_connection_and_is_closed_by_the_next(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with (
        network.run("B", (), lambda core: core.deliver(1)) as core,
        open_client("127.0.0.1", network.ports["B"], role="client", identity="c1") as client,
        subscribed(network) as subscriber,
    ):
        inbox = subscriber.attach("p7")
        arrived = await take(subscriber, inbox, 1)
        await client.call("deliver", {"left_out": 2, "count": 1})
        arrived += await take(subscriber, inbox, 3)
        assert numbers(arrived) == [1, 2, 3, 4]
        assert subscriber.connection_number == 2
        assert core.mailboxes["p7"].sent == 4


async def test_profiles_share_a_connection_and_a_queue(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with network.run("B") as core, subscribed(network) as subscriber:
        queue = InboxQueue()
        inboxes = [subscriber.attach(profile, queue=queue) for profile in ("p7", "p8")]
        await subscriber.call("echo", {})
        core.deliver(1)
        core.deliver(2, "p8")
        await subscriber.call("echo", {})
        arrived = await take(subscriber, inboxes[0], 3)
        assert sorted((each.inbox.profile, each.number) for each in arrived) == [
            ("p7", 1),
            ("p8", 1),
            ("p8", 2),
        ]


@pytest.mark.parametrize("code", ["moved", "forgotten"])
async def test_an_inbox_ends_with_what_the_broker_says(tmp_path: Path, code: str) -> None:
    network = Network(tmp_path)
    async with network.run("B") as core, subscribed(network) as subscriber:
        ended, other = subscriber.attach("p7"), subscriber.attach("p8")
        await subscriber.call("deliver", {"count": 1})
        assert numbers(await take(subscriber, ended, 1)) == [1]
        await subscriber.call("detach", {"code": code})
        with pytest.raises(RemoteError) as caught:
            await subscriber.next_delivery(ended)
        assert caught.value.code == code
        assert ended.ended is not None
        core.deliver(1, "p8")
        await subscriber.call("echo", {})
        assert numbers(await take(subscriber, other, 1)) == [1]
        assert len(subscriber._inboxes) == 1


async def test_a_profile_that_the_broker_does_not_have(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with network.run("B"), subscribed(network) as subscriber:
        with pytest.raises(RemoteError) as caught:
            await subscriber.next_delivery(subscriber.attach("p9"))
        assert caught.value.code == "unknown-profile"


async def test_who_attaches_later_takes_the_profile(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with (
        network.run("B") as core,
        subscribed(network) as first,
        subscribed(network, "u2") as second,
    ):
        taken, kept = first.attach("p7"), first.attach("p8")
        await first.call("echo", {})
        inbox = second.attach("p7")
        with pytest.raises(RemoteError) as caught:
            await first.next_delivery(taken)
        assert caught.value.code == "replaced"
        assert kept.ended is None
        core.deliver(1)
        await second.call("echo", {})
        assert numbers(await take(second, inbox, 1)) == [1]


async def test_all_inboxes_end_with_the_connection(tmp_path: Path) -> None:
    network = Network(tmp_path)
    async with network.run("B"), subscribed(network) as first:
        inboxes = [first.attach(profile) for profile in ("p7", "p8")]
        async with subscribed(network):
            for inbox in inboxes:
                with pytest.raises(RemoteError) as caught:
                    await first.next_delivery(inbox)
                assert caught.value.code == "replaced"
        with pytest.raises(RemoteError):
            first.attach("p7")
