"""Archives of a real network: written by its brokers, shown by status, read by backtest."""

from __future__ import annotations

import json
import os
import re
import signal
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from onyx import DataSource
from onyx.cli.main import main
from overlay.archive_file import rows_of_file
from overlay.topology import load_topology
from registration import planner_process
from registration.catalog import ProfileEntry
from registration.plan_questions import PROFILES_FILE, PlanWanted
from registration.planner_desk import PlannerDesk, _write_profiles
from registration.planning.plan_file import from_json
from registration.spark.backtest_job import BacktestJob, run_backtest
from registration.spark.inputs import UnreadableData
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import RunningProcess, small_topology_text

MESSAGES = [f'<m n="{n}"><t>text "{n}"\u00e4\n</t></m>'.encode() for n in range(30)]


def archived(directory: Path) -> list[dict[str, Any]]:
    return [
        json.loads(row.line())
        for path in sorted(directory.glob("onyx-*.msgpack.zst"))
        for row in rows_of_file(path)
    ]


async def publish(registration: str, pids: dict[str, int]) -> int:
    """Two parts, between which the root broker is killed; how many came before that."""
    with trio.fail_after(SAFETY_SECONDS):
        source = await DataSource.register(registration, name="news", location=(10, 0))
        before = len(MESSAGES) // 2
        async with source:
            for number, message in enumerate(MESSAGES):
                if number == before:
                    os.kill(pids[source.root], signal.SIGKILL)
                await source.publish(message)
        return before


def check_what_spark_reads(spark: Any, registration: str, read: list[dict[str, Any]]) -> None:
    """The same messages, and the results of a profile, asked for by its workers."""
    frame = spark.read.format("onyx").option("registration", registration).option("source", "news")
    rows = {row.number: row for row in frame.load().collect()}
    for said in read:
        row = rows.pop(said["number"])
        assert (row.source, row.message) == (said["source"], said["message"])
        assert row.time == datetime.fromisoformat(said["time"]).replace(tzinfo=None)
    last = read[-1]["number"]  # that of n is one less
    text = f"for $m in /m[@n = {last - 1}] return <n>{{string($m/@n)}}</n>"
    hits = frame.option("profile", text).load().collect()
    assert [(row.number, row.result) for row in hits] == [(last, f"<n>{last - 1}</n>")]
    with pytest.raises(Exception, match=f"network {registration}, asked from .*: .*no source"):
        frame.option("source", "olds").load()


def check_what_planners_read(spark: Any, running: RunningProcess, folder: Path, least: int) -> None:
    """The network's own planner by the credentials of its file, and a backtest by an address."""
    shown = Path(running.up["topology"]).parent / "identity" / "operator.pem"
    topology = load_topology(Path(running.up["topology"]))
    planning = replace(topology.planning, credentials=shown)
    profiles = [ProfileEntry(f"p{n}", "ann", "B1", f"/m[@n = {n}]") for n in range(30)]
    wanted = PlanWanted(profiles, replace(topology, planning=planning))
    _write_profiles(folder / PROFILES_FILE, wanted)
    task = PlannerDesk(topology)._task(wanted)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(planner_process, "spark_session", lambda _: nullcontext(spark))
        plan = from_json(planner_process.make(task, folder))
        assert least <= plan.facts.samples <= len(MESSAGES)
        nobody = replace(planning, credentials=folder / "no.pem")
        task = PlannerDesk(topology)._task(PlanWanted(profiles, replace(topology, planning=nobody)))
        with pytest.raises(UnreadableData, match=r"^credentials .*no.pem: there is no such file"):
            planner_process.make(task, folder)
    address = f"onyx://{running.registration}?source=news"
    result = run_backtest(spark, BacktestJob({"p": "/m[@n >= 0]"}, (address,)))
    assert result.messages == result.records["p"].matches >= least
    assert result.records["p"].samples[0][0].partition("/")[2].isdecimal()


def test_what_brokers_write_a_backtest_reads(
    tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """A broker that is killed loses no more of it than what was not written yet, and writes
    nothing twice; nobody sees half a file."""
    file, news = tmp_path / "small.toml", tmp_path / "news"
    text = small_topology_text(tmp_path / "data") + "[archive]\nsegment_bytes_max = 1024\n"
    file.write_text(text, encoding="utf-8")
    running = RunningProcess.start(file, "--archive", str(news))
    try:
        before = trio.run(publish, running.registration, running.up["pids"])
        assert main(["status", "--registration", running.registration]) == 0
        assert "LEFT OUT" in capsys.readouterr().out
        where = ["--registration", running.registration]
        assert main(["source", "list", "--json", *where]) == 0
        source = json.loads(capsys.readouterr().out)["id"]
        read: list[dict[str, Any]] = []
        while not read:  # it is written each second
            assert main(["archive", "read", source, "--from", "2020-01-01", *where]) == 0
            read = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert main(["archive", "read", source, "--to", "2020-01-01", *where]) == 0
        assert capsys.readouterr().out == ""
        check_what_spark_reads(spark, running.registration, read)
        check_what_planners_read(spark, running, tmp_path, len(read))
    finally:
        assert running.stop() == 0
    found = archived(news)
    assert read == found[: len(read)], "but for the last second"
    texts = [record["message"].encode() for record in found]
    first, second = texts[: -(len(MESSAGES) - before)], texts[-(len(MESSAGES) - before) :]
    assert second == MESSAGES[before:]
    assert first == MESSAGES[: len(first)]
    assert list(news.glob(".*")) == []
    result = run_backtest(spark, BacktestJob({"p": "/m[@n >= 20]"}, (str(news),)))
    days = {record["time"][:10] for record in found}
    assert (result.messages, result.refused, result.days) == (len(found), 0, len(days))
    assert result.records["p"].matches == 10
    assert result.records["p"].samples[0][0].endswith("/21")


def test_options_without_an_archive_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "small.toml"
    file.write_text(small_topology_text(tmp_path / "data"), encoding="utf-8")
    assert main(["up", str(file), "--archive-share", "0.5"]) == 2
    assert "--archive DIR" in capsys.readouterr().err
    for option, value, expected in (("share", "nan", "0 to 1"), ("bytes", str(2**60), "1 to")):
        beyond = ["up", str(file), "--archive", "x", f"--archive-{option}", value]
        assert main(beyond) == 2
        said = capsys.readouterr().err
        assert re.search(rf"--archive-{option}: must be .* from {expected}.*, not {value}", said)
