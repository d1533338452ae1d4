"""One client for both loops: the same scenario on asyncio and on Trio."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Iterator

import anyio
import pytest

from onyx import DataSource, DeliveryPolicy, ProfileNotAccepted, RequestFailed, User
from onyx.errors import NetworkUnreachable
from onyx.registration_client import NetworkClient
from overlay.link.client_connection import ClientLimits
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import RunningProcess, small_topology_text

NORTH, SOUTH = (10.0, 0.0), (20.0, 0.0)  # where B1 and B2 are
both_loops = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProcess]:
    """A network of two brokers that die."""
    directory = tmp_path_factory.mktemp("fragile")
    file = directory / "small.toml"
    file.write_text(small_topology_text(directory / "data", 2), encoding="utf-8")
    running = RunningProcess.start(file)
    try:
        yield running
    finally:
        running.stop()


@both_loops
def test_a_client_does_the_same_on_either_loop(fragile: RunningProcess, backend: str) -> None:
    async def messages() -> AsyncIterator[bytes]:
        for number in range(2, 302):
            yield b"<n>%d</n>" % number

    async def scenario() -> None:
        source = await DataSource.register(fragile.registration, location=NORTH)
        async with source, User(fragile.registration, backend) as user:
            policy = DeliveryPolicy(retry_s=0)
            profile = await user.add_profile("//n", location=SOUTH, policy=policy)
            assert (source.root, profile.host, profile.live) == ("B1", "B2", True)
            results = user.results(profile.id, share=True)
            assert (await source.publish(b"<n>1</n>")).number == 1
            outcomes = [outcome.number async for outcome in source.publish_all(messages())]
            assert outcomes == list(range(2, 302))
            assert [(await anext(results)).number for _ in range(300)] == list(range(1, 301))
            with results.attempt():
                raise ValueError("not today")
            await anext(results)
            async with results.attempt():
                raise ValueError("not today either")
            again = {(await anext(results)).number for _ in range(2)}
            assert again == {300, 301}

            with anyio.move_on_after(0.05) as scope:
                await anext(results)
            assert scope.cancelled_caught
            for broker in ("B1", "B2"):  # the root broker of the source, and the host
                os.kill(fragile.up["pids"][broker], signal.SIGKILL)
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(source.publish, b"<n>after</n>")
            for broker in ("B1", "B2"):
                fragile.up["pids"][broker] = None
            while None in fragile.up["pids"].values():
                event = await anyio.to_thread.run_sync(fragile.next_event)
                if event["event"] == "ready":
                    fragile.up["pids"][event["node"]] = event["pid"]
            after = [await anext(results) for _ in range(3)]
            assert [each.results for each in after] == [[b"<n>after</n>"]] * 3
            results.acknowledge_nowait()
            await results.flush()
        async with source, User(fragile.registration, backend) as user:  # nothing comes again
            assert (await source.publish(b"<n>last</n>")).accepted
            results = user.results(profile.id, share=True)
            assert (await anext(results)).results == [b"<n>last</n>"]
            await user.remove_profile(profile.id)
            with pytest.raises(RequestFailed, match="was removed"):
                await anext(results)
            with pytest.raises(ProfileNotAccepted, match="line 1"):
                await user.add_profile("//[")

    async def in_time() -> None:
        with anyio.fail_after(SAFETY_SECONDS):
            await scenario()

    anyio.run(in_time, backend=backend)


@both_loops
def test_where_nobody_listens_nobody_answers(
    monkeypatch: pytest.MonkeyPatch, unused_port: int, backend: str
) -> None:
    monkeypatch.setattr("onyx.registration_client.CLIENT_LIMITS", ClientLimits(open_seconds=0.05))

    async def ask() -> None:
        async with NetworkClient(("localhost", unused_port)):
            pytest.fail("connected to nobody")

    with pytest.raises(NetworkUnreachable, match="nobody answers"):
        anyio.run(ask, backend=backend)
