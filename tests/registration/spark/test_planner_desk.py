"""The planning process: what becomes of it and of what it has started, whoever dies."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import util
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest
import trio
from msgspec import structs

from overlay.archive import ArchiveOptions
from overlay.errors import TopologyError
from overlay.planning import PlanningOptions
from overlay.topology import Topology, parse_topology, to_toml
from registration.catalog import ProfileEntry
from registration.plan_questions import (
    PROFILES_FILE,
    TASK_FILE,
    PlanFailed,
    PlanMade,
    PlannerTask,
    PlanWanted,
)
from registration.planner_desk import PlannerDesk, what_it_lacks
from registration.planning.plan_file import from_json
from tests.registration.test_auto_planning import TOPOLOGY

NetworkMaker = Callable[[str], Topology]

SAYS_IT_IS_JAVA = "echo 'openjdk version \"17.0.1\"' >&2"
ON_SPARK = structs.replace(TOPOLOGY, planning=PlanningOptions(master="local[1]"))
"""Which small populations are not otherwise."""
WANTED = PlanWanted(
    [ProfileEntry("p1", "ann", "B1", "/m"), ProfileEntry("p2", "ann", "B1", "/n", near=True)],
    ON_SPARK,
)


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NetworkMaker:
    """With a Java that is a script."""

    def make(script: str) -> Topology:
        java = tmp_path / "jdk" / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(f"#!/bin/sh\n{script}\n")
        java.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
        monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
        (tmp_path / "data").mkdir()
        return structs.replace(ON_SPARK, data_directory=tmp_path / "data")

    return make


async def test_a_java_that_does_not_run_spark_is_said(network: NetworkMaker) -> None:
    topology = network(f'[ "$1" = -version ] && {SAYS_IT_IS_JAVA}\nexit 1')
    answer = await PlannerDesk(topology).answer(WANTED)
    assert isinstance(answer, PlanFailed)
    assert answer.reason.startswith("Spark did not start: ")
    assert not list(topology.data_directory.iterdir())


async def test_a_small_population_is_planned_without_java_and_that_is_told_once(
    network: NetworkMaker, caplog: pytest.LogCaptureFixture
) -> None:
    topology = structs.replace(network("exit 1"), planning=PlanningOptions())
    desk = PlannerDesk(topology)
    for _ in range(2):
        answer = await desk.answer(replace(WANTED, topology=topology))
    (told,) = caplog.records
    assert told.levelname == "WARNING" and "a plan of 2 profiles by itself" in told.message
    assert isinstance(answer, PlanMade) and from_json(answer.text.decode()).facts.load == 1


async def test_a_process_that_is_killed_is_said(network: NetworkMaker) -> None:
    topology = network("echo 'it is late' >&2; kill -9 $PPID")
    answer = await PlannerDesk(topology).answer(WANTED)
    assert answer == PlanFailed("the planning process ended by SIGKILL")
    assert not list(topology.data_directory.iterdir())


async def test_it_ends_with_the_service_and_takes_all_along(
    network: NetworkMaker, tmp_path: Path
) -> None:
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    topology = network(f"echo started > {alive}; exec sleep 1000 > {alive}")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(PlannerDesk(topology).answer, WANTED)
        with await trio.to_thread.run_sync(alive.open) as there:
            assert await trio.to_thread.run_sync(there.readline) == "started\n"
            (directory,) = topology.data_directory.iterdir()
            assert (directory / PROFILES_FILE).read_text() == '{"profile":"p1","text":"/m"}\n'
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                assert await trio.to_thread.run_sync(there.read) == "", "nobody is there any more"
    assert not list(topology.data_directory.iterdir())


async def test_a_real_spark_tells_the_setting_that_it_refuses(tmp_path: Path) -> None:
    planning = PlanningOptions(master="local[2]", conf={"spark.serializer": "no.such.Class"})
    topology = structs.replace(TOPOLOGY, data_directory=tmp_path, planning=planning)
    answer = await PlannerDesk(topology).answer(replace(WANTED, topology=topology))
    told = '"spark.serializer" = "no.such.Class"'
    assert answer == PlanFailed(
        f"Spark did not start: ClassNotFoundException: no.such.Class; it is set: {told}"
    )


def test_it_ends_when_the_service_is_killed(network: NetworkMaker, tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    os.mkfifo(alive)
    directory = network(f"exec sleep 1000 > {alive}").data_directory / "planning-1"
    directory.mkdir()
    task = PlannerDesk(ON_SPARK)._task(WANTED)
    (directory / TASK_FILE).write_bytes(msgspec.msgpack.encode(task))
    (directory / PROFILES_FILE).touch()
    command = [sys.executable, "-m", "registration.planner_process", str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0) as process:
        with alive.open() as there:
            assert process.stdin is not None
            process.stdin.close()
            assert there.read() == ""
        assert process.wait() == -9
    assert not directory.exists()


def test_the_process_gets_the_archive_and_the_settings_of_spark(tmp_path: Path) -> None:
    conf = {"spark.executor.memory": "4g"}

    def task(master: str, directory: Path) -> PlannerTask:
        planning = PlanningOptions(master=master, conf=conf)
        topology = structs.replace(TOPOLOGY, archive=ArchiveOptions(directory), planning=planning)
        assert parse_topology(to_toml(topology), "x").planning == planning
        return PlannerDesk(topology)._task(replace(WANTED, topology=topology))

    assert task("", tmp_path).archive == []
    (tmp_path / "s1.jsonl.gz").touch()
    for master in ("", "local[2]", "spark://host:7077"):
        found = task(master, tmp_path)
        asked = parse_topology(found.topology, "x").planning
        assert (found.archive, asked.master, asked.conf) == ([str(tmp_path)], master, conf)


def test_with_credentials_the_brokers_of_the_network_are_asked(tmp_path: Path) -> None:
    planning = PlanningOptions(credentials=tmp_path / "planner.pem")
    asked = structs.replace(TOPOLOGY, archive=ArchiveOptions(tmp_path), planning=planning)
    assert parse_topology(to_toml(asked), "x").planning == planning
    (found,) = PlannerDesk(asked)._task(replace(WANTED, topology=asked)).archive
    address = TOPOLOGY.registration[0].listen
    wanted = f"onyx://{address}?credentials={quote(str(planning.credentials), safe='')}"
    assert found == wanted
    without = structs.replace(asked, archive=ArchiveOptions())
    assert PlannerDesk(without)._task(replace(WANTED, topology=without)).archive == []


def test_without_spark_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    assert what_it_lacks(TOPOLOGY) == ""
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    assert "pip install 'onyx-dissemination[spark]'" in what_it_lacks(TOPOLOGY)
    must = structs.replace(TOPOLOGY, planning=PlanningOptions(auto=True))
    with pytest.raises(TopologyError, match=r"planning\.auto: pyspark is not installed"):
        what_it_lacks(must)
