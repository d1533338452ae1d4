"""The launcher with real processes: all or nothing, restarts, and nothing left behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from onyx import DataSource, RegistrationClient, User, launch
from onyx.child_process import ChildProcess, RestartPolicy
from onyx.data_directory import DataDirectory
from onyx.errors import (
    DataDirectoryError,
    DataDirectoryInUse,
    LaunchError,
    NetworkUnreachable,
)
from onyx.registration_client import NetworkClient
from overlay.backoff import Backoff
from overlay.gateway import GatewayTable
from overlay.nodes import Address
from overlay.statistics import NodeStatistics, RegistrationStatistics
from overlay.topology import AdminOptions, TopologyError, load_topology
from tests.onyx.networks import RunningProcess, is_running, open_files
from tests.onyx.networks import small_topology as topology_in
from tests.onyx.networks import small_topology_text as topology_text

NORTH, SOUTH = (10.0, 0.0), (30.0, 0.0)  # where B1 and B3 are


async def test_a_killed_broker_comes_back_and_no_message_is_lost_or_doubled(
    tmp_path: Path,
) -> None:
    """B2 in the middle of the chain, then B3, the host broker, then B1, the root broker, die by
    SIGKILL while messages flow through them."""
    count = 300
    victims = {75: "B2", 150: "B3", 225: "B1"}  # after so many deliveries
    said: list[str] = []
    async with launch(topology_in(tmp_path / "data"), write_line=said.append) as network:
        pids = dict(network.pids)
        source = await DataSource.register(network.registration, location=NORTH)
        async with source, User(network.registration, "ada") as user:
            profile = await user.add_profile("//n", location=SOUTH)
            assert (source.root, profile.host) == ("B1", "B3")
            numbers: list[int] = []

            async def messages() -> AsyncIterator[bytes]:
                for number in range(1, count + 1):
                    while number - len(numbers) > 20:  # so that some are always on their way
                        await delivered.wait()
                    yield f"<n>{number}</n>".encode()

            async def publish() -> None:
                outcomes = [outcome async for outcome in source.publish_all(messages())]
                assert [outcome.number for outcome in outcomes] == list(range(1, count + 1))
                assert all(outcome.accepted for outcome in outcomes)

            delivered = trio.Event()
            results = user.results(profile.id)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(publish)
                async for delivery in results:
                    assert delivery.results == [f"<n>{delivery.number}</n>".encode()]
                    numbers.append(delivery.number)
                    delivered.set()
                    delivered = trio.Event()
                    if len(numbers) in victims:
                        network.kill(victims[len(numbers)])
                    if len(numbers) == count:
                        break
            assert numbers == list(range(1, count + 1))
            await network.wait_ready()
            # Nothing comes a second time: the next delivery is of a new message.
            await source.publish(b"<n>last</n>")
            assert (await anext(results)).results == [b"<n>last</n>"]
            assert results.lost == 0
        assert network.pids["registration"] == pids["registration"]
        assert not [victim for victim in victims.values() if network.pids[victim] == pids[victim]]


async def test_a_request_whose_answer_is_lost_is_carried_out_once(tmp_path: Path) -> None:
    """The registration service dies while profiles are being added; every one is there once."""
    async with launch(topology_in(tmp_path / "data", brokers=2)) as network:
        await DataSource.register(network.registration)
        added: list[str] = []

        async def add(number: int) -> None:
            async with User(network.registration, "ada") as user:
                profile = await user.add_profile(f"//n[. = {number}]")
                added.append(profile.id)
                if len(added) == 3:
                    network.kill("registration")

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(add, number)
        async with User(network.registration, "ada") as user:
            texts = [(await user.profile(known.id)).text or "" for known in await user.profiles()]
        assert sorted(texts) == sorted(f"//n[. = {number}]" for number in range(20))
        assert len(set(added)) == 20


async def test_a_source_without_patience_gives_up_when_its_broker_is_gone(tmp_path: Path) -> None:
    async with launch(topology_in(tmp_path / "data", brokers=1)) as network:
        address = network.topology.address("B1")
        known = await DataSource.register(network.registration)
        with pytest.raises(NetworkUnreachable, match=f"connection to {address} was lost"):
            # No Python process starts as fast as that.
            async with DataSource(network.registration, known.id, patience_seconds=0.01):
                network.kill("B1")
                await trio.sleep_forever()
        await network.wait_ready("B1")
        async with NetworkClient(address) as client:
            assert (await client.statistics(NodeStatistics)).node.restarts == 1


async def test_everything_survives_a_stop_of_the_whole_network(tmp_path: Path) -> None:
    topology = topology_in(tmp_path / "data", brokers=2)
    async with launch(topology) as network:
        source = await DataSource.register(network.registration, name="weather")
        async with source, User(network.registration, "ada") as user:
            profile = await user.add_profile("//city")
            await source.publish(b"<city>Oslo</city>")
    async with launch(topology) as network:
        async with RegistrationClient(network.registration) as registration:
            (known,) = await registration.sources()
            (listed,) = await registration.profiles()
        assert (known.id, known.name, known.ready) == (source.id, "weather", True)
        assert (listed.id, listed.user, listed.live) == (profile.id, "ada", True)
        async with DataSource(network.registration, source.id) as again:
            assert (await again.publish(b"<city>Rome</city>")).number == 2
        async with User(network.registration) as user:
            results = user.results(profile.id)
            found = [(await anext(results)).results for _ in range(2)]
            assert found == [[b"<city>Oslo</city>"], [b"<city>Rome</city>"]]
            assert (await user.profile(profile.id)).text == "//city"


@pytest.mark.parametrize("key", ["broker[2].listen", "admin", "gateway.listen"])
async def test_a_port_in_use_is_named_and_nothing_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        topology, gateway = topology_in(tmp_path / "data"), GatewayTable(Address("127.0.0.1", 0))
        if key == "broker[2].listen":
            topology = topology_in(tmp_path / "data", port=port)
        elif key == "admin":
            monkeypatch.setattr(AdminOptions, "address", lambda *_: Address("127.0.0.1", port))
            topology = replace(topology, admin=AdminOptions())
        else:
            gateway = GatewayTable(Address("127.0.0.1", port))
        before = open_files()
        events: list[str] = []
        with pytest.raises(TopologyError) as failure:
            async with launch(
                topology,
                file="small.toml",
                gateway=gateway,
                report=lambda event, child: events.append(event),
            ):
                pytest.fail("launched")
        said = f'small.toml: {key}: "127.0.0.1:{port}" is already in use by process {os.getpid()} ('
        assert str(failure.value).startswith(said)
        assert not events
        assert open_files() == before
        assert not (tmp_path / "data" / "topology.toml").exists()


async def test_leaving_the_block_leaves_no_process_port_or_descriptor(tmp_path: Path) -> None:
    before = open_files()
    with pytest.raises(ZeroDivisionError):  # by whatever way it is left
        async with launch(topology_in(tmp_path / "data", brokers=2)) as network:
            pids = network.pids
            assert set(pids) == {"registration", "B1", "B2"}
            assert all(is_running(pid) for pid in pids.values())
            addresses = [broker.listen for broker in network.topology.brokers]
            raise ZeroDivisionError
    assert not [pid for pid in pids.values() if is_running(pid)]
    assert open_files() == before
    for address in addresses:
        with socket.create_server(address):
            pass
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    left = {path.name for path in files if path.parent.name != "identity"}
    assert left == {"topology.toml", "lock", "store.sqlite", "store.sqlite-head"}


async def test_a_process_that_does_not_listen_to_sigterm_is_killed(tmp_path: Path) -> None:
    policy = RestartPolicy(stop_seconds=0.05)
    async with launch(topology_in(tmp_path / "data", brokers=1), policy=policy) as network:
        pids = network.pids
        os.kill(pids["B1"], signal.SIGSTOP)
    assert not [pid for pid in pids.values() if is_running(pid)]


async def test_the_resolved_topology_says_where_everything_is(tmp_path: Path) -> None:
    data = tmp_path / "other"
    topology = topology_in(tmp_path / "data", brokers=1)
    async with launch(topology, data_directory=data) as network:
        assert network.topology_file == data / "topology.toml"
        assert load_topology(network.topology_file) == network.topology
        assert network.topology.address("B1").port != 0
        with pytest.raises(DataDirectoryInUse, match=f"process {os.getpid()}"):
            async with launch(topology, data_directory=data):
                pytest.fail("launched twice")
        (b1,) = (child for child in network.children if child.node_id == "B1")
        assert (b1.state, b1.restarts) == ("ready", 0)


async def test_a_process_that_cannot_run_is_given_up_with_what_it_said(tmp_path: Path) -> None:
    topology = topology_in(tmp_path / "data", brokers=2)
    store = DataDirectory(tmp_path / "data").store_file("B2")
    store.parent.mkdir(parents=True)
    store.write_bytes(b"this is not a database, and longer than the header of one" * 10)
    children: list[ChildProcess] = []
    with pytest.raises(LaunchError) as failure:
        async with launch(topology, report=lambda _, child: children.append(child)):
            pytest.fail("launched")
    assert (failure.value.node, failure.value.exit_code) == ("B2", 70)
    assert "store.sqlite" in failure.value.last_lines[-1]
    assert not [child.node_id for child in children if child.pid is not None]
    assert not [child.node_id for child in children if child.restarts]


async def test_a_process_that_dies_again_and_again_at_the_start_is_given_up(
    tmp_path: Path,
) -> None:
    policy = RestartPolicy(delay=Backoff(0.001, 30.0), failures_max=2)
    deaths: list[int | None] = []

    def kill_when_started(event: str, child: ChildProcess) -> None:
        if child.node_id == "B1" and event == "started" and child.pid is not None:
            os.kill(child.pid, signal.SIGKILL)
        if event == "died":
            deaths.append(child.exit_code)

    with pytest.raises(LaunchError, match=r"B1 failed 2 times in a row.*SIGKILL"):
        async with launch(
            topology_in(tmp_path / "data", brokers=1), policy=policy, report=kill_when_started
        ):
            pytest.fail("launched")
    assert deaths == [-signal.SIGKILL, -signal.SIGKILL]


async def test_a_leaf_that_dies_again_and_again_leaves_the_others_up(tmp_path: Path) -> None:
    """Six deaths in a row, one more than was once the end of all; then it may live again."""
    policy = RestartPolicy(delay=Backoff(0.001, 30.0))
    pauses: list[float] = []
    enough = trio.Event()

    def kill_when_started(event: str, child: ChildProcess) -> None:
        if child.node_id == "B2" and event == "died":
            pauses.append(child.pause_seconds)
            if len(pauses) == 6:
                enough.set()
        elif child.node_id == "B2" and pauses and not enough.is_set() and child.pid is not None:
            os.kill(child.pid, signal.SIGKILL)

    topology = topology_in(tmp_path / "data", brokers=2)
    async with launch(topology, policy=policy, report=kill_when_started) as network:
        pids = network.pids
        os.kill(pids["B2"], signal.SIGKILL)
        await enough.wait()
        assert (network.pids["B1"], network.pids["registration"]) == (
            *(pids["B1"], pids["registration"]),
        )
        await network.wait_ready()
        await DataSource.register(network.registration)  # all brokers have a part in it
    assert pauses == [0.001 * 2**failures for failures in range(6)]


async def test_the_status_says_who_is_down_and_why(tmp_path: Path) -> None:
    policy, kind = RestartPolicy(delay=Backoff(3600.0, 3600.0)), RegistrationStatistics
    async with launch(topology_in(tmp_path / "data", brokers=1), policy=policy) as network:
        os.kill(network.pids["B1"], signal.SIGKILL)
        async with RegistrationClient(network.registration) as registration:
            while not (said := (await registration.statistics(kind)).processes.down):
                await trio.lowlevel.checkpoint()
    why = "failed 1 times in a row (killed by SIGKILL); started again after"
    assert said == {"B1": f"{why} 3600 s"}


async def test_data_of_a_network_of_another_shape_is_refused(tmp_path: Path) -> None:
    topology = topology_in(tmp_path / "data", brokers=2)
    DataDirectory(tmp_path / "data").path.mkdir()
    DataDirectory(tmp_path / "data").write_topology(topology_in(tmp_path / "data", brokers=3))
    with pytest.raises(DataDirectoryError, match="another shape"):
        async with launch(topology):
            pytest.fail("launched")
    relabelled = replace(topology.brokers[0], label="Oslo", capacity=7)
    DataDirectory(tmp_path / "data").write_topology(
        replace(topology, brokers=(relabelled, *topology.brokers[1:]))
    )
    DataDirectory(tmp_path / "data").check_shape(topology)


async def test_children_stop_when_the_launcher_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "small.toml"
    file.write_text(topology_text(tmp_path / "data", brokers=1), encoding="utf-8")
    running = RunningProcess.start(file)
    children = [os.pidfd_open(pid) for pid in running.pids]
    assert len(children) == 2
    assert running.stop(signal.SIGKILL) == -signal.SIGKILL
    for child in children:
        await trio.lowlevel.wait_readable(child)  # which a pidfd is when its process has ended
        os.close(child)


async def test_a_registration_service_without_its_store_does_not_begin_anew(
    tmp_path: Path,
) -> None:
    """Without the file it knows by itself; without the disk it is told by its brokers."""
    topology = topology_in(tmp_path / "data", brokers=2)
    async with launch(topology) as network, User(network.registration, "ada") as user:
        await user.add_profile("//city")
    store = DataDirectory(tmp_path / "data").store_file("registration")
    for lose, said in (
        (store.unlink, "is empty or of an older format"),
        (lambda: shutil.rmtree(store.parent), "was emptied, or is an older copy"),
    ):
        lose()
        with pytest.raises(LaunchError) as failure:
            async with launch(topology):
                raise AssertionError("it came up")
        assert said in "\n".join(failure.value.last_lines)
