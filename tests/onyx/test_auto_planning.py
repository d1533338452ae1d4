"""A network plans by itself: real processes, a real Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import trio

from onyx import DataSource, RegistrationClient, User
from onyx.results import Results
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import RunningProcess, small_topology_text

TEXTS = [f'/planned[@v = "{number}"]' for number in range(12)]
LOOK_SECONDS = 0.2


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProcess]:
    directory = tmp_path_factory.mktemp("planning")
    text = small_topology_text(directory / "data")
    text += "[planning]\nauto = true\nat_profiles = 12\nsettle_s = 0\nmoves_per_second = 10\n"
    file = directory / "network.toml"
    file.write_text(text)
    running = RunningProcess.start(file)
    yield running
    running.stop()


def status(registration: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "onyx", "plan", "status", "--json"]
    found = subprocess.run([*command, "--registration", registration], check=True, stdout=-1)
    return dict(json.loads(found.stdout))


async def take(results: Results, numbers: list[int]) -> None:
    async for delivery in results:
        numbers.append(delivery.number)


async def test_profiles_are_planned_and_moved_while_messages_flow(
    network: RunningProcess,
) -> None:
    """Each message comes to each profile that wants it once and in order, whenever it came: before
    there is a plan, one behind the other while profiles move, and after that."""
    address = network.registration
    before = status(address)
    assert before["plan"] == "" and "fewer than 12" in before["auto"]["why"]
    taken: dict[int, list[int]] = {}
    wanted: dict[int, list[int]] = {}
    source = await DataSource.register(address)
    with trio.fail_after(SAFETY_SECONDS):
        async with (
            source,
            User(address, "ann") as user,
            RegistrationClient(address) as client,
            trio.open_nursery() as nursery,
        ):
            place = (10.0, 0.0)  # all are near B1
            profiles = [await user.add_profile(text, location=place) for text in TEXTS]
            assert {profile.host for profile in profiles} == {"B1"}
            for number, profile in enumerate(profiles):
                taken[number], wanted[number] = [], []
                results = user.results(profile.id)
                await results.connect()
                nursery.start_soon(take, results, taken[number])

            async def publish() -> None:
                for number, numbers in wanted.items():
                    receipt = await source.publish(f'<planned v="{number}"/>'.encode())
                    numbers.append(receipt.number)

            await publish()
            while (await client.plan_progress()).state == "never":
                auto = await client.auto_plan()
                assert auto.failures == 0, auto.failure
                await trio.sleep(LOOK_SECONDS)
            while (await client.plan_progress()).state != "done":
                await publish()
            await publish()
            assert {entry.host for entry in await user.profiles()} == {"B1", "B2", "B3"}
            while any(len(taken[number]) < len(wanted[number]) for number in wanted):
                await trio.sleep(LOOK_SECONDS)
            nursery.cancel_scope.cancel()
    assert taken == wanted
    after = status(address)
    assert after["plan"] == after["auto"]["plan"] and after["misplaced"] == 0
    assert after["auto"]["reason"] == "there was no plan" and after["auto"]["is_on"]
    assert after["applied"]["moved"] > 0
