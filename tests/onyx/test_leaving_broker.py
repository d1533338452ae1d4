"""A root broker of real processes that is drained, or lost, while messages flow."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest
import trio

from onyx import DataSource, User, launch
from onyx.cli.main import main
from overlay.routing.broadcast_tree import broadcast_tree
from overlay.topology import load_topology
from tests.onyx.test_changing_network import NORTH, SOUTH, Traffic, mesh
from tests.survival.separate_nodes import SeparateNodes

CODE = Path(__file__).parents[2]


async def say(*words: str) -> int:
    return await trio.to_thread.run_sync(main, list(words))


async def test_a_broker_is_drained_while_its_source_publishes_and_its_user_takes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    async with launch(mesh(tmp_path / "data"), write_line=said.append) as network:
        source = await DataSource.register(network.registration, location=NORTH)
        async with source, User(network.registration, "ada") as user:
            here = await user.add_profile("//n", location=NORTH)
            far = await user.add_profile("//n", location=SOUTH)
            assert (source.root, here.host, far.host) == ("B1", "B1", "B3")
            keyed = await source.publish(b"<m/>", key="report-1")  # which nobody wants
            traffic = Traffic(source, user)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(traffic.publish)
                nursery.start_soon(traffic.take, here.id)
                nursery.start_soon(traffic.take, far.id)
                await traffic.until(far.id, 20)
                where = ("--registration", network.registration)
                assert await say("broker", "drain", "B1", *where) == 0
                assert "B1 has left." in capfd.readouterr().out
                await traffic.until(far.id, traffic.published + 20)
                traffic.is_over = True
                await traffic.until(here.id, traffic.published)
                await traffic.until(far.id, traffic.published)
                assert traffic.got[here.id][0] == traffic.got[far.id][0] == keyed.number + 1
                assert source.root in ("B2", "B3")
                again = await source.publish(b"<m/>", key="report-1")
                assert (again.number, again.is_known) == (keyed.number, True)
                nursery.cancel_scope.cancel()
            assert (await user.profile(here.id)).host in ("B2", "B3")
            assert await say("broker", "drain", "B1", *where) == 65
            assert "there is no broker 'B1'" in capfd.readouterr().err


async def test_a_lost_root_broker_is_gone_round_and_its_source_and_profile_go_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ring = [("B1", "B2"), ("B2", "B3"), ("B1", "B3")]
    with SeparateNodes(tmp_path, 3, ring) as nodes:
        nodes.start(nodes.node_ids, CODE)
        await nodes.wait_ready()
        where = ("--registration", nodes.registration)
        source = await DataSource.register(nodes.registration)
        async with source, User(nodes.registration, "ada") as user:
            profiles = [await user.add_profile("//n") for _ in range(3)]
            assert {each.host for each in profiles} == {"B1", "B2", "B3"}
            results = user.results(*(each.id for each in profiles))
            await results.connect()
            await source.publish(b"<n>1</n>")
            for _ in profiles:
                assert (await anext(results)).results == [b"<n>1</n>"]
            lost = source.root
            assert await say("broker", "lost", lost, *where) == 65
            assert f"{lost} is here" in capfd.readouterr().err
            nodes.stop(lost, signal.SIGKILL)
            shutil.rmtree(nodes.data / "nodes" / lost)
            assert await say("broker", "lost", lost, *where) == 0
            assert (await source.publish(b"<n>2</n>")).number == 2
            assert source.root != lost
            got = [await anext(results) for _ in range(len(profiles) + 1)]
            (told,) = [each for each in got if each.limit]
            assert "host-lost" in str(told.limit)
            moved = next(each for each in profiles if each.host == lost)
            assert told.profile == moved.id
            assert sorted(each.profile for each in got if each.results == [b"<n>2</n>"]) == sorted(
                each.id for each in profiles
            )
            nodes.start([lost], CODE)
            while "given up for good" not in nodes.log(lost):
                await trio.sleep(0.1)


async def test_trees_go_round_a_broker_that_is_dead_until_it_is_back(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """While a source publishes: everybody else gets all meanwhile, its users when it is back."""
    ring = [("B1", "B2"), ("B2", "B3"), ("B3", "B4"), ("B1", "B4")]
    with SeparateNodes(tmp_path, 4, ring, "[limits]\nlink_down_after_s = 2\n") as nodes:
        nodes.start(nodes.node_ids, CODE)
        await nodes.wait_ready()
        show = ("topology", "show", "--live", "--registration", nodes.registration)
        source = await DataSource.register(nodes.registration)
        async with source, User(nodes.registration, "ada") as user:
            profiles = [await user.add_profile("//n") for _ in range(4)]
            at = {each.host: each.id for each in profiles}
            assert len(at) == 4
            tree = broadcast_tree(load_topology(nodes.file("B1")), source.root)
            (dead,) = (each for each in tree.children if tree.parent[each] and tree.children[each])
            (behind,) = tree.children[dead]
            traffic = Traffic(source, user)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(traffic.publish)
                for profile in at.values():
                    nursery.start_soon(traffic.take, profile)
                for profile in at.values():
                    await traffic.until(profile, 20)
                nodes.stop(dead, signal.SIGKILL)
                await traffic.until(at[behind], traffic.published + 20)
                assert await say(*show) == 0
                assert f"{dead} is away: all trees of others go round it." in capfd.readouterr().out
                waits = traffic.published
                nodes.start([dead], CODE)
                await traffic.until(at[dead], waits + 20)
                while await say(*show) != 0 or f"{dead} is away" in capfd.readouterr().out:
                    await trio.sleep(0.2)
                traffic.is_over = True
                for profile in at.values():
                    await traffic.until(profile, traffic.published)
                    assert traffic.got[profile][0] == 1
                nursery.cancel_scope.cancel()
