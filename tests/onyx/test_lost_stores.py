"""A broker whose store is an older copy, head and all: its source and its user are told at once."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from onyx import DataSource, RequestFailed, User, launch
from onyx.data_directory import DataDirectory
from tests.onyx.networks import small_topology as topology_in


async def test_who_was_told_more_than_the_store_has_is_told_so(tmp_path: Path) -> None:
    node = DataDirectory(tmp_path / "data").node_directory("B1")
    older = tmp_path / "older"
    async with launch(topology_in(tmp_path / "data", brokers=1)) as network:
        source = await DataSource.register(network.registration)
        async with source, User(network.registration, "ada") as user:
            profile = await user.add_profile("//n")
            results = user.results(profile.id)

            async def publish_and_take(numbers: range) -> None:
                for number in numbers:
                    assert (await source.publish(f"<n>{number}</n>".encode())).number == number
                    assert (await anext(results)).number == number
                results.acknowledge_nowait()
                await results.flush()

            await publish_and_take(range(1, 4))
            os.kill(network.pids["B1"], signal.SIGSTOP)
            older.mkdir()
            for file in node.glob("store.sqlite*"):
                shutil.copy(file, older)
            os.kill(network.pids["B1"], signal.SIGCONT)
            await publish_and_take(range(4, 8))
            os.kill(network.pids["B1"], signal.SIGSTOP)
            for file in node.glob("store.sqlite*"):
                file.unlink()
            for file in older.iterdir():
                shutil.copy(file, node)
            os.kill(network.pids["B1"], signal.SIGKILL)
            with pytest.raises(RequestFailed, match="3 of 7 frames") as told_source:
                await source.publish(b"<n>8</n>")
            assert told_source.value.code == "store-lost"
            with pytest.raises(
                RequestFailed, match=r"7 deliveries of .*it knows of 3"
            ) as told_user:
                await anext(results)
            assert told_user.value.code == "store-lost"
        # Who begins anew goes on with what there is, behind the number that a publisher has said.
        async with (
            DataSource(network.registration, source.id) as source,
            User(network.registration, "ada") as user,
        ):
            assert (await source.publish(b"<n>again</n>")).number == 8
            assert (await anext(user.results(profile.id))).results == [b"<n>again</n>"]
