"""A real network whose disk is full: nothing is lost, nobody starts again and again."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from onyx import DataSource, RequestFailed, User, launch
from tests.onyx.networks import small_topology as topology_in

SIZE = 24 * 1024 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, in memory."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(disk)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


async def test_below_the_reserve_nothing_new_is_taken_and_all_else_goes_on(tmp_path: Path) -> None:
    topology = topology_in(tmp_path / "data", brokers=1)
    async with launch(topology) as network, User(network.registration, "ada") as user:
        source = (await DataSource.register(network.registration)).id
        profile = (await user.add_profile("//n")).id
    topology = replace(topology, limits=replace(topology.limits, disk_reserve_bytes=2**50))
    async with launch(topology) as network, User(network.registration, "ada") as user:
        async with DataSource(network.registration, source) as publisher:
            outcome = await publisher.publish(b"<n/>")
        assert (outcome.accepted, outcome.code) == (False, "disk-full")
        with pytest.raises(RequestFailed, match="than its reserve"):
            await user.add_profile("//m")
        with pytest.raises(RequestFailed, match="than its reserve"):
            await DataSource.register(network.registration)
        await user.remove_profile(profile)


async def test_commits_wait_for_room_on_a_full_disk(small_disk: Path) -> None:
    topology = topology_in(small_disk / "data", brokers=1)
    topology = replace(topology, limits=replace(topology.limits, disk_reserve_bytes=0))
    said: list[str] = []
    async with launch(topology, write_line=said.append) as network:
        pids = network.pids
        source = await DataSource.register(network.registration)
        async with source, User(network.registration, "ada") as user:
            profile = await user.add_profile("//n")
            await source.publish(b"<n>1</n>")
            filler = small_disk / "filler"
            with filler.open("wb", buffering=0) as file:
                while _fill(file.fileno()):
                    pass
            long = b"<n>" + 100_000 * b"x" + b"</n>"
            outcomes = []

            async def publish() -> None:
                for _ in range(60):
                    outcomes.append(await source.publish(long))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(publish)
                while not any("the disk is full" in line for line in said):
                    await trio.sleep(0.05)
                assert len(outcomes) < 60
                filler.unlink()
            assert all(outcome.accepted for outcome in outcomes) and len(outcomes) == 60
            results = user.results(profile.id)
            assert [(await anext(results)).number for _ in range(61)] == list(range(1, 62))
        assert network.pids == pids, "nobody had to start again"
    assert any("there is room on the disk again" in line for line in said)


async def test_a_store_may_have_a_disk_of_its_own(small_disk: Path, tmp_path: Path) -> None:
    """Its reserve is kept there.  With nothing left the service tells all that it knows."""
    topology = topology_in(tmp_path / "data", brokers=1)
    registration = topology.registration[0].id
    nodes = tmp_path / "data" / "nodes"
    nodes.mkdir(parents=True)
    (nodes / registration).symlink_to(small_disk)
    topology = replace(topology, limits=replace(topology.limits, disk_reserve_bytes=SIZE // 4))
    said: list[str] = []
    async with (
        launch(topology, write_line=said.append) as network,
        User(network.registration, "ada") as user,
    ):
        profiles = [(await user.add_profile("//n")).id for _ in range(2)]
        filler = small_disk / "filler"
        with filler.open("wb", buffering=0) as file:
            os.posix_fallocate(file.fileno(), 0, SIZE * 3 // 4)
            with pytest.raises(RequestFailed, match="than its reserve"):
                while True:
                    await user.add_profile("//m")
            while _fill(file.fileno()):
                pass
        async with trio.open_nursery() as nursery, User(network.registration, "ada") as other:
            nursery.start_soon(user.remove_profile, profiles[0])
            while not any("the disk is full" in line for line in said):
                await trio.sleep(0.05)
            assert profiles[1] in [each.id for each in await other.profiles()]
            with pytest.raises(RequestFailed, match="the registration service is full"):
                await other.add_profile("//m")
            filler.unlink()
        assert profiles[0] not in [each.id for each in await user.profiles()]


def _fill(file: int) -> bool:
    for size in (1 << 20, 4096):
        try:
            os.write(file, bytes(size))
            return True
        except OSError as error:
            assert error.errno == errno.ENOSPC
    return False
