"""A network of real processes whose links and brokers come and go while messages flow."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from onyx import DataSource, RegistrationClient, User, launch
from onyx.cli.main import main
from onyx.launcher import RunningNetwork
from overlay.nodes import Address, BrokerNode, Link, Place
from overlay.topology import Topology, parse_topology, to_toml
from tests.onyx.networks import is_running

PAUSE_SECONDS = 0.01  # from message to message
NORTH, SOUTH, FAR = (10.0, 0.0), (30.0, 0.0), (-60.0, 0.0)  # where B1, B3 and B4 are


def mesh(data_directory: Path) -> Topology:
    """B1 - B2 - B3, and a longer way from B1 to B3."""
    lines = [
        'name = "mesh"',
        f"data_directory = {json.dumps(str(data_directory))}",
        '[registration]\nid = "registration"\nlisten = "127.0.0.1:0"',
    ]
    for number in (1, 2, 3):
        lines.append(f'[[broker]]\nid = "B{number}"\nlisten = "127.0.0.1:0"')
        lines.append(f"place = [{10 * number}, 0]")
    for a, b, latency in (("B1", "B2", 1), ("B2", "B3", 1), ("B1", "B3", 9)):
        lines.append(f'[[link]]\nends = ["{a}", "{b}"]\nlatency_ms = {latency}')
    return parse_topology("\n".join(lines), "mesh.toml")


def without(topology: Topology, a: str, b: str) -> Topology:
    return replace(
        topology, links=tuple(link for link in topology.links if set(link.ends) != {a, b})
    )


def with_fourth(topology: Topology) -> Topology:
    """B4 joins; its port is free now, and nobody else's for so long."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        address = Address("127.0.0.1", holder.getsockname()[1])
    return replace(
        topology,
        brokers=(*topology.brokers, BrokerNode("B4", address, place=Place(*FAR))),
        links=(*topology.links, Link(("B3", "B4"))),
    )


async def apply(network: RunningNetwork, file: Path, topology: Topology, *options: str) -> int:
    """As an operator does it."""
    file.write_text(to_toml(topology))
    where = ["--registration", network.registration]
    return await trio.to_thread.run_sync(main, ["topology", "apply", str(file), *where, *options])


class Traffic:
    """Messages without end from one source, and what profiles get of them."""

    def __init__(self, source: DataSource, user: User) -> None:
        self.source = source
        self.user = user
        self.got: dict[str, list[int]] = {}
        self.published = 0
        self.is_over = False

    async def publish(self) -> None:
        while not self.is_over:
            outcome = await self.source.publish(f"<n>{self.published + 1}</n>".encode())
            assert outcome.accepted
            self.published += 1
            await trio.sleep(PAUSE_SECONDS)

    async def take(self, profile: str) -> None:
        self.got[profile] = []
        async for delivery in self.user.results(profile):
            self.got[profile].append(delivery.number)

    async def until(self, profile: str, number: int) -> None:
        """Until a profile has got so far, each message once and in order."""
        while not self.got.get(profile) or self.got[profile][-1] < number:
            await trio.sleep(0.05)
        first, last = self.got[profile][0], self.got[profile][-1]
        assert self.got[profile] == list(range(first, last + 1))


async def test_nothing_is_missed_or_doubled_while_links_and_brokers_come_and_go(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "changed.toml"
    async with launch(mesh(tmp_path / "data"), write_line=lambda line: None) as network:
        source = await DataSource.register(network.registration, location=NORTH)
        async with source, User(network.registration, "ada") as user:
            near = await user.add_profile("//n", location=SOUTH)
            assert (source.root, near.host) == ("B1", "B3")
            traffic = Traffic(source, user)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(traffic.publish)
                nursery.start_soon(traffic.take, near.id)
                changed = without(network.topology, "B1", "B2")
                assert await apply(network, file, changed, "--dry-run") == 0
                assert await apply(network, file, changed) == 0
                assert "- link B1 - B2\nBroadcast trees: rebuilt: B1, B2" in capfd.readouterr().out
                assert await apply(network, file, with_fourth(changed)) == 0
                far = await user.add_profile("//n", location=FAR)
                live_from = traffic.published + 2  # one may have been on its way
                assert far.host == "B4"
                nursery.start_soon(traffic.take, far.id)
                network.kill("B3")  # on the way, in the new shape
                await traffic.until(far.id, live_from + 50)
                traffic.is_over = True
                await traffic.until(near.id, traffic.published)
                await traffic.until(far.id, traffic.published)
                assert traffic.got[near.id][0] == 1
                assert traffic.got[far.id][0] <= live_from
                nursery.cancel_scope.cancel()

            joined = network.pids["B4"]
            assert await apply(network, file, changed) == 65
            assert f"B4 cannot leave: it hosts {far.id}" in capfd.readouterr().err
            await user.remove_profile(far.id)
            assert await apply(network, file, changed) == 0
            while is_running(joined):
                await trio.sleep(0.05)
            async with RegistrationClient(network.registration) as registration:
                assert set(await registration.brokers()) == {"B1", "B2", "B3"}
            assert await apply(network, file, with_fourth(changed)) == 0  # with an empty store
            assert "B4 joins anew" in caplog.text
            assert (await user.add_profile("//n", location=FAR)).host == "B4"
