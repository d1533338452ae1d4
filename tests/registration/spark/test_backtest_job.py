"""Backtests on Spark, held against the engine alone."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from overlay.routing.broadcast_tree import broadcast_tree
from overlay.topology import load_topology
from registration.planning.need_reader import NeedReader
from registration.planning.planner import PlanOptions, make_plan
from registration.planning.value_loads import LocalPopulation, ProfileNeeds
from registration.spark.backtest_job import (
    BacktestJob,
    RoutingBefore,
    run_backtest,
    run_population_backtest,
)
from yfilter import Matcher, ProfileRefused

FIGURE4 = load_topology(Path(__file__).resolve().parents[3] / "topologies" / "figure4.toml")
MESSAGES = [
    f'<m><f v="{n % 4}"/><g w="{n % 3}"/><t>text {n}</t></m>'.encode() for n in range(24)
] + [b"<m>"]
PROFILES = {
    "paths": '/m[f/@v = "1"]',
    "both": '/m[f/@v = "1"][g/@w = "2"]',
    "texts": 'for $t in /m[f/@v = "3"]/t return <r>{string($t)}</r>',
    "never": '/m[f/@v = "9"]',
    "apart": '/m[t[. = "text 3"]/@x = "1" or not(f/@v = "0")]',
}


@pytest.fixture(params=["spark", "this process"])
def session(request: pytest.FixtureRequest) -> Any:
    """Of Spark, or None."""
    return request.getfixturevalue("spark") if request.param == "spark" else None


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "messages.parquet"
    days = [datetime(2026, 5, 1 + n // 10) for n in range(len(MESSAGES))]
    names = [f"m{n}" for n in range(len(MESSAGES))]
    table = pa.table({"name": names, "time": days, "message": MESSAGES})
    pq.write_table(table, path, row_group_size=5)
    return path


def test_a_few_profiles(session: Any, archive: Path) -> None:
    result = run_backtest(session, BacktestJob(PROFILES, (str(archive),), samples=2))
    assert (result.messages, result.refused, result.days) == (25, 1, 3)
    for name, text in PROFILES.items():
        matcher = Matcher()
        matcher.add(text, name)
        found = [match for data in MESSAGES[:-1] for match in matcher.match(data)]
        results = [result for match in found for result in match.results()]  # type: ignore[union-attr]
        record = result.records[name]
        assert (record.matches, record.results) == (len(found), len(results)), name
        assert record.bytes == sum(map(len, results))
        assert record.routed >= record.matches
        assert len(record.samples) == min(2, len(results))
    assert result.records["texts"].samples[0] == ("m3", "<r>text 3</r>")
    # The routing query leaves out what linear paths cannot say.
    assert result.records["both"].routed == result.records["both"].matches
    assert result.records["apart"].routed == 24


def test_what_a_profile_adds_to_a_network(session: Any, archive: Path) -> None:
    reader = NeedReader()
    others = [f'/m[f/@v = "{n % 2}"]' for n in range(40)]
    plan = make_plan(
        LocalPopulation(ProfileNeeds(reader.read(text)) for text in others),
        PlanOptions(12, FIGURE4),
    )
    routing = RoutingBefore(plan, broadcast_tree(FIGURE4, "B1"))
    profiles = {"known": '/m[f/@v = "1"]', "all": "/m"}
    result = run_backtest(session, BacktestJob(profiles, (str(archive),), routing=routing))
    known, everything = result.records["known"], result.records["all"]
    assert (known.matches, known.new_visits, known.crossings) == (6, 0, 0)
    assert everything.matches == 24
    assert everything.host in {plan.broker_of(p) for p in plan.dont_care}
    assert 0 < everything.new_visits <= 24
    assert everything.new_visits <= everything.crossings


def test_a_profile_that_is_none_is_refused(session: Any, archive: Path) -> None:
    with pytest.raises(ProfileRefused):
        run_backtest(session, BacktestJob({"p": "/m["}, (str(archive),)))


def test_a_population_becomes_loads(spark: Any, archive: Path, tmp_path: Path) -> None:
    lines = tmp_path / "profiles.txt"
    at_first = '/m[current-date() < xs:date("2026-05-02")]'
    lines.write_text(f'/m[f/@v = "1"]\n/m[\n/m\n/m[f/@v = "9"]\n{at_first}\n')
    out = tmp_path / "loads.parquet"
    found = run_population_backtest(spark, [str(lines)], "", [str(archive)], 100, str(out))
    assert found == (25, 3, [])
    rows = sorted(pq.read_table(out).to_pylist(), key=lambda row: row["profile"])
    assert [row["matches"] for row in rows] == [6, 0, 24, 0, 10]
    loads = [row["load"] for row in rows]
    assert sum(loads) == pytest.approx(5)
    assert loads[1] == loads[3] == 0.5 < loads[0] < loads[2]
