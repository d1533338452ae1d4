"""``onyx plan apply``: profiles move between real brokers while messages flow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from onyx import DataSource, RegistrationClient, User
from onyx.results import Results
from overlay.topology import parse_topology
from registration.planning.need_reader import NeedReader
from registration.planning.plan import Plan
from registration.planning.plan_file import to_json
from registration.planning.planner import PlanOptions, make_plan
from registration.planning.value_loads import LocalPopulation, ProfileNeeds
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import small_topology_text
from tests.onyx.test_cli_network import Shell, shell

__all__ = ["shell"]

TEXTS = [f'/moving[@v = "{number}"]' for number in range(12)]
FOLLOWED = 6  # profiles with somebody who takes their results all the time
EACH = 20  # messages for each profile


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "plan").mkdir()
    return tmp_path / "plan"


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    topology = parse_topology(small_topology_text(tmp_path / "data"), "small")
    reader = NeedReader()
    population = LocalPopulation(ProfileNeeds(reader.read(text)) for text in TEXTS)
    return make_plan(population, PlanOptions(6, topology))


@pytest.fixture(autouse=True)
def no_plan(shell: Shell) -> Iterator[None]:
    """The network is everybody's: afterwards it has no plan, and none of these profiles."""
    yield
    profiles = [entry["id"] for entry in shell.objects("profile", "list", "--user", "mover")]
    if profiles:
        shell.lines("profile", "remove", *profiles)
    shell.lines("plan", "use", "--none")


def write(plan: Plan, directory: Path, *brokers: str) -> None:
    """The plan with its partitions at these brokers, in turn."""
    where = tuple(brokers[n % len(brokers)] for n in range(plan.partitions))
    (directory / "plan.json").write_text(to_json(replace(plan, brokers=where)))


async def take(results: Results, numbers: list[int], count: int) -> None:
    while len(numbers) < count:
        numbers.append((await anext(results)).number)


async def take_shared(results: Results, numbers: list[int], count: int, done: trio.Event) -> None:
    """``done`` when there are so many, whoever took them."""
    async for delivery in results:
        numbers.append(delivery.number)
        if len(set(numbers)) == count:
            done.set()


async def publish(source: DataSource, messages: int) -> None:
    for number in range(messages):
        await source.publish(f'<moving v="{number % len(TEXTS)}"/>'.encode())
        await trio.sleep(0)  # let others run


async def read_waiting(user: User, profile: str, after: int, end: int) -> list[tuple[int, int]]:
    """Position and number of all behind a position, through an end."""
    found: list[tuple[int, int]] = []
    while after < end:
        page = await user.waiting(profile, after, min(after + 7, end))
        found += [(each.position, each.number) for each in page.deliveries]
        after = page.through
    return found


async def test_what_is_held_goes_with_its_profile(
    registration: str, plan: Plan, directory: Path
) -> None:
    """To B1, and to B2 in the midst of a reader; half of it is released."""
    source = await DataSource.register(registration)
    with trio.fail_after(SAFETY_SECONDS):
        async with source, User(registration, "mover") as user:
            profile = (await user.add_profile(TEXTS[0])).id
            await apply(plan, directory, "B1")
            await publish(source, EACH * len(TEXTS))
            first = await read_waiting(user, profile, 0, EACH)
            followed = user.results(profile, held=True)
            begun = [await anext(followed) for _ in range(EACH // 2)]
            await apply(plan, directory, "B2")
            await publish(source, EACH * len(TEXTS))
            begun += [await anext(followed) for _ in range(EACH // 2, 2 * EACH)]
            both = [(each.position, each.number) for each in begun]
            assert both[: len(first)] == first
            assert await read_waiting(user, profile, 3, 2 * EACH) == both[3:]
            assert [position for position, _ in both] == list(range(1, 2 * EACH + 1))
            assert len({number for _, number in both}) == 2 * EACH
            said = await user.positions(released={profile: EACH})
            assert (said[profile].gone, said[profile].last) == (EACH, 2 * EACH)
            assert await read_waiting(user, profile, EACH, 2 * EACH) == both[EACH:]
            page = await user.waiting(profile, 0, EACH + 1)
            assert (page.through, page.lost) == (EACH + 1, EACH)


async def apply(plan: Plan, directory: Path, *brokers: str) -> None:
    """With the command; all partitions to these brokers."""
    write(plan, directory, *brokers)
    command = [sys.executable, "-m", "onyx", "plan", "apply", str(directory)]
    await trio.run_process(command, capture_stdout=True)


async def test_nothing_is_missed_or_doubled_while_profiles_move(
    registration: str, plan: Plan, directory: Path
) -> None:
    """All to B1, then all to B2 and B3: most are followed by the library, one by
    ``onyx subscribe``, and the users of the others come when all is over."""
    taken: dict[str, list[int]] = {}
    source = await DataSource.register(registration)
    with trio.fail_after(SAFETY_SECONDS):
        async with source, User(registration, "mover") as user, trio.open_nursery() as nursery:
            profiles = [await user.add_profile(text) for text in TEXTS]
            command = [sys.executable, "-m", "onyx", "subscribe", profiles[0].id]
            command += ["--count", str(2 * EACH)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE)
            for profile in profiles[1:FOLLOWED]:
                taken[profile.id] = []
                results = user.results(profile.id)
                await results.connect()
                nursery.start_soon(take, results, taken[profile.id], 2 * EACH)
            for brokers in ("B1",), ("B2", "B3"):
                async with trio.open_nursery() as meanwhile:
                    meanwhile.start_soon(publish, source, EACH * len(TEXTS))
                    await apply(plan, directory, *brokers)
                assert {entry.host for entry in await user.profiles()} == set(brokers)
            for profile in profiles[FOLLOWED:]:
                taken[profile.id] = []
                await take(user.results(profile.id), taken[profile.id], 2 * EACH)
            out, _ = await trio.to_thread.run_sync(process.communicate)
            assert out == b'<moving v="0"/>\n' * (2 * EACH)
    for number, got in enumerate(taken.values(), start=1):
        expected = [n + 1 for n in range(2 * EACH * len(TEXTS)) if n % len(TEXTS) == number]
        assert got == expected


async def test_those_who_share_a_profile_follow_it(
    registration: str, plan: Plan, directory: Path
) -> None:
    """Nothing is missed; twice may come what one had when the profile left."""
    taken: list[int] = []
    done = trio.Event()
    source = await DataSource.register(registration)
    with trio.fail_after(SAFETY_SECONDS):
        async with (
            source,
            User(registration, "mover") as first,
            User(registration, "mover") as second,
            trio.open_nursery() as nursery,
        ):
            profiles = [await first.add_profile(text) for text in TEXTS]
            for user in (first, second):
                results = user.results(profiles[0].id, share=True)
                await results.connect()
                nursery.start_soon(take_shared, results, taken, 2 * EACH, done)
            for brokers in ("B1",), ("B2", "B3"):
                async with trio.open_nursery() as meanwhile:
                    meanwhile.start_soon(publish, source, EACH * len(TEXTS))
                    await apply(plan, directory, *brokers)
            await done.wait()
            nursery.cancel_scope.cancel()
    assert set(taken) == {n + 1 for n in range(2 * EACH * len(TEXTS)) if n % len(TEXTS) == 0}


def test_an_application_is_shown_steered_and_reported(
    shell: Shell, plan: Plan, directory: Path, tmp_path: Path
) -> None:
    file = tmp_path / "all.txt"
    file.write_text(TEXTS[0])
    shell.lines("profile", "add", *[file] * 4, "--user", "mover", "--wait")
    here, there = "B1", "B3"
    write(plan, directory, here)
    (first, *_) = shell.lines("plan", "apply", directory)
    assert " is applied: " in first
    write(plan, directory, there)
    (diff,) = shell.objects("plan", "diff", directory)
    (move,) = diff["moves"]
    count = move["profiles"]  # and those that other tests have left behind
    assert (move["from"], move["to"], count >= 4) == (here, there, True)
    shown = shell.lines("plan", "apply", directory, "--dry-run")
    assert f"{here}    {there}{count:10}" in shown
    (begun,) = shell.objects("plan", "apply", directory, "--rate", "0.01", "--detach")
    assert begun["state"] == "running"
    assert shell.objects("plan", "pause")[0]["state"] == "paused"
    assert "being applied: paused" in "\n".join(shell.lines("plan", "status"))
    (aborted,) = shell.objects("plan", "abort")
    assert aborted["state"] == "aborted" and aborted["moved"] < count
    (done,) = shell.objects("plan", "apply", directory)
    assert (done["state"], done["put_off"]) == ("done", {})
    assert {entry["host"] for entry in shell.objects("profile", "list", "--user", "mover")} == {
        there
    }
    assert shell.run("plan", "use", "--none") == 0
    assert shell.run("plan", "apply") == 65
    assert "there is no plan in force" in shell.err


async def test_a_profile_is_changed_and_removed_wherever_it_is(
    registration: str, plan: Plan
) -> None:
    """While it moves to and fro."""
    async with RegistrationClient(registration) as client, User(registration, "mover") as user:
        profile = await user.add_profile(TEXTS[0])
        for version in range(2, 8):
            where = ("B1", "B2", "B3")[version % 3]
            brokers = (where,) * plan.partitions
            await client.use_plan(to_json(replace(plan, brokers=brokers)).encode())
            await client.apply_plan(rate=1000)
            changed = await user.update_profile(profile.id, TEXTS[0])
            assert changed.version == version and changed.live
        while not (await client.plan_progress()).is_over:
            await trio.sleep(0.02)
        assert (await user.profile(profile.id)).host == where
        await user.remove_profile(profile.id)
        assert await user.profiles() == []
