"""A real network whose disk fails at a commit: its processes end, say why, and come back on files
that are new."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from onyx import DataSource, User, launch
from onyx.child_process import RestartPolicy
from onyx.data_directory import DataDirectory
from overlay.backoff import Backoff
from tests.onyx.networks import small_topology as topology_in
from tests.overlay.link.faulty_disk import faulty_disk


async def test_a_broker_comes_back_on_a_new_file_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = faulty_disk(tmp_path)
    for name in ("LD_PRELOAD", "FAULT"):
        monkeypatch.setenv(name, disk[name])
    fault = Path(disk["FAULT"])
    said: list[str] = []
    policy = RestartPolicy(delay=Backoff(0.1, 0.2))
    topology = topology_in(tmp_path / "data", brokers=1)
    async with launch(topology, policy=policy, write_line=said.append) as network:
        store = DataDirectory(tmp_path / "data").store_file("B1")
        before = store.stat().st_ino
        source = await DataSource.register(network.registration)
        async with source, User(network.registration, "ada") as user:
            profile = await user.add_profile("//n")
            assert (await source.publish(b"<n>1</n>")).accepted
            fault.write_text("unsynced B1/store.sqlite-wal")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(source.publish, b"<n>2</n>")
                while not any("has not taken a commit (disk I/O error)" in line for line in said):
                    await trio.sleep(0.05)
                fault.write_text("")
            results = user.results(profile.id)
            assert [(await anext(results)).results for _ in range(2)] == [
                *([b"<n>1</n>"], [b"<n>2</n>"]),
            ]
        assert store.stat().st_ino != before
    assert not any("Traceback" in line for line in said)
