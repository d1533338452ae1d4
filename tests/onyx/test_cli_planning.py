"""``onyx plan`` and ``onyx backtest`` on the command line, on the Spark that all tests share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from onyx.cli import backtest, spark_options
from onyx.cli.main import main
from registration.spark.session import SparkOptions

TOPOLOGY = str(Path(__file__).resolve().parents[2] / "topologies" / "figure4.toml")


@pytest.fixture
def shared_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> list[SparkOptions]:
    """The options of the sessions that verbs have asked for."""
    asked: list[SparkOptions] = []

    @contextmanager
    def session(options: SparkOptions) -> Iterator[Any]:
        asked.append(options)
        yield spark

    monkeypatch.setattr(spark_options, "spark_session", session)
    return asked


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """profiles.txt (one is none), and messages."""
    lines = [f'/m[f{n % 2}/@v = "{n % 7}"]' for n in range(40)] + ["/m[", "//x"]
    (tmp_path / "profiles.txt").write_text("\n".join(lines))
    (tmp_path / "messages").mkdir()
    for number in range(5):
        text = f'<m><f0 v="{number}"/><f1 v="{number}"/></m>'
        (tmp_path / "messages" / f"{number}.xml").write_text(text)
    return tmp_path


def make(inputs: Path, out: str, *more: str) -> int:
    profiles, archive = inputs / "profiles.txt", inputs / "messages"
    given = ("--partitions", "12", "--archive", str(archive), "--out", str(inputs / out))
    return main(["plan", "make", str(profiles), *given, *more])


def test_make_show_place_and_diff(
    inputs: Path, capsys: pytest.CaptureFixture[str], shared_spark: list[SparkOptions]
) -> None:
    on_spark = ("--master", "local[2]", "--conf", "a=b=c")
    assert make(inputs, "one", "--topology", TOPOLOGY, "--json", *on_spark) == 0
    assert shared_spark == [SparkOptions("local[2]", {"a": "b=c"})]
    out, err = capsys.readouterr()
    facts = json.loads(out)
    assert (facts["load"], facts["refused"], facts["samples"]) == (41, 1, 5)
    assert set(facts["partitions_by_broker"]) == {f"B{n}" for n in range(1, 7)}
    assert sum(facts["partitions_by_broker"].values()) == 12
    assert "reading sampled messages" in err
    assert "left out: line 1, column 4" in err
    names = {path.name for path in (inputs / "one").iterdir()}
    pictures = {"coverage.svg", "load.svg"}
    assert names == {"plan.json", "report.html", "assignment.parquet", *pictures}
    page = (inputs / "one" / "report.html").read_text()
    assert "/m/f0/@v" in page
    assert page.count("<svg") == 2
    for picture in pictures:
        etree.fromstring((inputs / "one" / picture).read_bytes())

    assert main(["plan", "show", str(inputs / "one")]) == 0
    assert "/m/f0/@v" in capsys.readouterr().out

    profile = inputs / "new.xq"
    profile.write_text('/m[f0/@v = "77"]')
    assert main(["plan", "place", str(inputs / "one"), str(profile), "--json"]) == 0
    placed = json.loads(capsys.readouterr().out)
    assert placed["pattern"] == "/m/f0/@v"
    assert placed["broker"] in facts["partitions_by_broker"]

    (inputs / "profiles.txt").write_text("\n".join(f'/m[f1/@v = "{n}"]' for n in range(42)))
    assert make(inputs, "two", "--topology", TOPOLOGY) == 0
    capsys.readouterr()
    assert main(["plan", "diff", str(inputs / "one"), str(inputs / "two"), "--json"]) == 0
    diff = json.loads(capsys.readouterr().out)
    assert diff["patterns_removed"] == ["/m/f0/@v"]
    assert diff["profiles_in_both"] == 41
    assert sum(move["profiles"] for move in diff["moves"]) == diff["profiles_that_move"] > 0
    assert main(["plan", "diff", str(inputs / "one"), str(inputs / "two")]) == 0
    assert "FROM" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "is_one"),
    [
        ("//a", True),
        ("$msg/a", True),
        ("for $a in //a return $a", True),
        ("ASK { ?x a <http://e/Storm> }", True),
        ("PREFIX : <http://e/> SELECT ?x { ?x a :Storm }", True),
        ("<r>{//a}</r>" + " " * 5_000, True),
        ("storms.xq", False),
        ("format.txt", False),
        ("ask.rq", False),
    ],
)
def test_what_is_backtested_is_a_profile_or_a_file(given: str, is_one: bool) -> None:
    assert backtest.is_profile(given) is is_one


def test_a_file_is_one_whatever_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "for all").touch()
    assert not backtest.is_profile("for all")


@pytest.mark.usefixtures("shared_spark")
def test_backtest(inputs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = str(inputs / "messages")
    command = ["backtest", '/m[f0/@v = "3"]/f1', "--archive", archive]
    assert main([*command, "--messages-per-day", "50", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["messages"], record["matches"], record["match_rate"]) == (5, 1, 0.2)
    assert record["bytes_a_day"] == record["bytes"] * 10
    assert record["samples"][0][0] == "3.xml"
    assert main(command) == 0
    assert "20.00%" in capsys.readouterr().out

    weights = str(inputs / "weights.parquet")
    profiles = str(inputs / "profiles.txt")
    assert main(["backtest", profiles, "--archive", archive, "--weights", weights]) == 0
    assert "profiles match some of 5 messages" in capsys.readouterr().out
    assert make(inputs, "weighted", "--weights", weights, "--json") == 0
    assert json.loads(capsys.readouterr().out)["coverage"] > 40 / 41  # what matches counts more


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["plan", "make", "none.txt", "--out", "plan"], 66, "no such file"),
        (["plan", "make", "empty.txt", "--out", "plan"], 65, "there are no profiles"),
        (["backtest", "empty.txt", "--archive", "."], 65, "there are no profiles"),
        (["backtest", "/m[", "--archive", "messages"], 65, "line 1, column 4"),
        (["backtest", "/m", "--archive", "none"], 66, "no such file"),
        (["backtest", "/m", "--archive", "messages", "--plan", "x"], 2, "--topology"),
        (["plan", "show", "none"], 66, "cannot be read"),
    ],
)
@pytest.mark.usefixtures("shared_spark")
def test_what_goes_wrong_is_said(
    inputs: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    reason: str,
) -> None:
    (inputs / "empty.txt").write_text("\n")
    places = {"none.txt", "empty.txt", "messages", "none", ".", "plan"}
    full = [arguments[0]] + [
        str(inputs / word) if word in places else word for word in arguments[1:]
    ]
    if arguments[0] == "plan":
        full[1] = arguments[1]
    assert main(full) == code
    assert reason in capsys.readouterr().err


def test_without_pyspark_it_says_what_to_install(
    inputs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("registration.spark.session.util.find_spec", lambda name: None)
    assert make(inputs, "plan") == 69
    assert "pip install 'onyx-dissemination[spark]'" in capsys.readouterr().err
