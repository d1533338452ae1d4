"""A provider that ``onyx up`` keeps beside its network, and a copy of both."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import trio

from onyx.cli.main import main
from onyx.metadata import MetadataClient, MetadataProvider, MetadataRepository
from tests.hanging import SAFETY_SECONDS
from tests.onyx.metadata.test_explanation import DOCUMENT, HOST, SCHEMA, URI
from tests.onyx.metadata.test_metadata_network import ASKED, RULE, saying
from tests.onyx.networks import RunningProcess, small_topology_text

TABLE = '[[metadata]]\nname = "mdv"\n'


async def test_it_outlives_every_process_and_is_in_a_backup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "net.toml").write_text(small_topology_text(tmp_path / "data", 1) + TABLE)
    running = RunningProcess.start(tmp_path / "net.toml")
    try:
        assert running.up["metadata"] == ["mdv"]
        at = running.registration
        with trio.fail_after(SAFETY_SECONDS):
            async with (
                MetadataClient(at, "mdv") as client,
                MetadataRepository(tmp_path / "l1", at, "L1", provider="mdv") as repository,
            ):
                await client.put_schema(SCHEMA, "text/turtle")
                await client.register({URI: DOCUMENT}, "text/turtle")
                await repository.add_rule(RULE)
                provider = int((tmp_path / "data/metadata/mdv/lock").read_text())
                for killed in (provider, *running.pids):
                    os.kill(killed, signal.SIGKILL)
                ready = 0
                while ready < 3:
                    ready += (await trio.to_thread.run_sync(running.next_event))["event"] == "ready"
                outcome = await client.register(saying(128), "text/turtle")
                await repository.wait(outcome.revision)
                assert (await repository.query(ASKED)).rows == [(HOST, "128")]
        copy, data = str(tmp_path / "copy"), tmp_path / "restored"
        assert main(["backup", copy, "--data", str(tmp_path / "data")]) == 0
    finally:
        assert running.stop() == 0
    assert main(["restore", copy, "--data", str(data)]) == 0
    assert main(["store", "verify", str(data)]) == 0
    assert "metadata/mdv/rows.onyx: whole" in capsys.readouterr().out
    files = {each.name for each in (data / "metadata/mdv").iterdir()}
    assert files == {"rows.onyx", "rows.onyx-head"}  # no filter, which is made anew
    with MetadataProvider(data / "metadata/mdv", "mdv") as restored:
        assert restored.matches("r1") == [HOST]
