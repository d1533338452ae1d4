"""Standbys with real processes and a real PostgreSQL: who is killed, or stands still, is replaced
while messages flow, and none is lost, doubled or out of order."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import trio

from onyx import User, launch
from onyx.errors import EXIT_BUSY, UserError
from onyx.registration_client import NetworkClient
from overlay.statistics import NodeStatistics
from overlay.stores import StoreOptions
from overlay.topology import parse_topology
from tests.onyx.networks import is_running, small_topology_text
from tests.postgres import LEASE_SECONDS, Postgres
from tests.survival.replicas import replicated_postgres
from tests.survival.standbys import standbys


async def test_who_is_killed_is_replaced_by_its_standby(postgres: Postgres, tmp_path: Path) -> None:
    async with standbys(postgres, tmp_path / "data", LEASE_SECONDS) as net, net.traffic():
        for count, node in enumerate(("R1", "B1", "B2", "B1"), 1):
            await net.wait_delivered(50 * count)
            process = net.active[node]
            epoch = net.epochs[node][-1]
            net.network.kill(process)
            await net.wait_epoch(node, epoch + 1)
            await net.network.wait_ready(process)
        assert net.epochs == {"R1": [1, 2], "B1": [1, 2, 3], "B2": [1, 2]}
        for node in net.active:
            async with NetworkClient(net.network.topology.where(node)) as client:
                store = (await client.statistics(NodeStatistics)).node.store
                assert store.epoch == net.epochs[node][-1]
                active = net.active[node] == node
                assert client.at == str(net.network.topology.node(node).clients_at[not active])


async def test_who_stands_still_is_replaced_and_ends_when_it_wakes_up(
    postgres: Postgres, tmp_path: Path
) -> None:
    async with standbys(postgres, tmp_path / "data", LEASE_SECONDS) as net, net.traffic():
        await net.wait_delivered(50)
        for count, node in enumerate(("B1", "B2"), 1):
            process, pid = net.active[node], net.pid(node)
            child = next(c for c in net.network.children if c.node_id == process)
            os.kill(pid, signal.SIGSTOP)
            await net.another_than(node, process)
            os.kill(pid, signal.SIGCONT)
            while child.restarts == 0:
                await trio.sleep(0.05)
            await net.network.wait_ready(process)
            assert not is_running(pid)
            assert child.exit_code == EXIT_BUSY, "\n".join(net.lines[-60:])
            assert net.epochs[node] == [1, 2]
            over = [line for line in net.lines if "this process's any more (epoch 1)" in line]
            assert len(over) >= count, over
            await net.wait_delivered(len(net.delivered) + 50)


async def test_a_synchronous_replica_takes_the_place_of_a_primary_that_is_lost(
    tmp_path: Path,
) -> None:
    with replicated_postgres() as server:
        async with standbys(server, tmp_path / "data", LEASE_SECONDS) as net, net.traffic():
            await net.wait_delivered(50)
            await trio.to_thread.run_sync(server.lose_primary)
            await trio.to_thread.run_sync(server.promote)
            published = len(net.published)
            await net.wait_delivered(published + 50)


async def test_a_network_starts_a_server_of_its_own(tmp_path: Path) -> None:
    text = small_topology_text(tmp_path / "data", 1) + '[stores]\nurl = "trial"\n'
    topology = parse_topology(text, "trial.toml")
    assert topology.stores == StoreOptions(url="trial")
    if os.geteuid() == 0:
        with pytest.raises(UserError, match=r"PostgreSQL does not run as root; .* another account"):
            async with launch(topology):
                pass
        return
    for _ in range(2):
        async with launch(topology) as network:
            assert (tmp_path / "data" / "postgres" / "data" / "PG_VERSION").exists()
            async with NetworkClient(network.topology.where("B1")) as client:
                assert (await client.statistics(NodeStatistics)).node.store.epoch
            pid = (tmp_path / "data" / "postgres" / "data" / "postmaster.pid").read_text()
            os.kill(int(pid.partition("\n")[0]), signal.SIGKILL)
            async with User(network.registration, "ada") as user:
                assert await user.add_profile("//n")
