"""The planning job on Spark: the same plan as in memory, from every kind of input."""

from __future__ import annotations

import json
from collections import Counter
from math import inf
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from formats import read_schema
from overlay.topology import load_topology
from registration.planning.choice import Choice
from registration.planning.need_reader import NeedReader
from registration.planning.plan import Placer
from registration.planning.planner import PlanOptions, make_plan
from registration.planning.value_loads import LocalPopulation, ProfileNeeds, ValueLoads
from registration.spark.inputs import read_profiles
from registration.spark.plan_job import PlanJob, _at_most, run_plan_job
from registration.spark.population import SparkPopulation
from registration.spark.session import UnreadableData
from tests.registration.planning.populations import PATTERNS, FigureNine, profile_text

TOPOLOGY = load_topology(Path(__file__).resolve().parents[3] / "topologies" / "figure4.toml")
PROFILES = 600


@pytest.fixture(params=["spark", "this process"])
def session(request: pytest.FixtureRequest) -> Any:
    """Of Spark, or None."""
    return request.getfixturevalue("spark") if request.param == "spark" else None


@pytest.fixture(scope="module")
def texts() -> list[str]:
    figure = FigureNine(1, values=40, zipf=True)
    texts = [profile_text(figure.needs()) for _ in range(PROFILES - 22)]
    texts += ['/m[f1/@v = "3" or f1/@v = "other"]', '/m[f1/@v = "3" or f1/@v = "4"]']
    return texts + [f"//x{number}" for number in range(20)]


@pytest.fixture(scope="module")
def lines(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("profiles") / "profiles.txt"
    path.write_text("\n".join(texts) + "\n\n")
    return path


def local(texts: list[str]) -> LocalPopulation:
    reader = NeedReader()
    return LocalPopulation(ProfileNeeds(reader.read(text)) for text in texts)


def test_spark_sums_what_memory_sums(spark: Any, lines: Path, texts: list[str]) -> None:
    in_memory = local(texts)
    population = SparkPopulation(spark, read_profiles(spark, [str(lines)]))
    assert population.refused(5) == (0, [])
    assert sorted(population.signatures(), key=str) == sorted(in_memory.signatures(), key=str)
    choice = Choice(
        {pattern: rank for rank, pattern in enumerate(PATTERNS[:7])}, {PATTERNS[0]: {"0": 9.0}}
    )
    slots = dict.fromkeys(PATTERNS[:7], 8)
    asked = {(PATTERNS[0], "0"), (PATTERNS[1], "3"), (PATTERNS[1], "never")}
    asked |= {(PATTERNS[1], "other"), (PATTERNS[1], "4")}
    found, expected = (
        other.value_loads(choice, slots, 6.0, asked) for other in (population, in_memory)
    )
    assert isinstance(found, ValueLoads)
    assert found == expected
    assert found.heavy
    assert found.present[PATTERNS[1], "other"] == {"3"}
    assert found.present[PATTERNS[1], "4"] == {"3", "4"}
    population.close()


def test_plan_and_assignment(session: Any, lines: Path, texts: list[str], tmp_path: Path) -> None:
    out = tmp_path / "assignment.parquet"
    options = PlanOptions(24, TOPOLOGY)
    result = run_plan_job(session, PlanJob((str(lines),), options, assignment=str(out)))
    assert result.plan == make_plan(local(texts), options)
    rows = pq.read_table(out).to_pylist()
    assert len({row["profile"] for row in rows}) == PROFILES == len(rows)
    placer = Placer(result.plan)
    assert Counter(row["partition"] for row in rows) == Counter(
        placer.place(text).partition for text in texts
    )
    for row in rows:
        assert row["broker"] == result.plan.brokers[row["partition"]]
        assert (row["pattern"] is None) == (row["partition"] in result.plan.dont_care)


DTD = b"""<!ELEMENT m (f0?, f1, r*)> <!ELEMENT f0 EMPTY> <!ELEMENT f1 EMPTY> <!ELEMENT r EMPTY>
<!ATTLIST f0 v CDATA #IMPLIED> <!ATTLIST f1 v CDATA #IMPLIED> <!ATTLIST r v CDATA #IMPLIED>"""


def test_schemas_and_samples_say_what_repeats(session: Any, tmp_path: Path) -> None:
    profiles = tmp_path / "p.parquet"
    texts = [f'/m[f0/@v = "{n % 9}"][r/@v = "{n}"]' for n in range(100)] + ["/m[", "/m/f1"]
    ids = [f"p{n}" for n in range(len(texts))]
    pq.write_table(pa.table({"profile": ids, "text": texts}), profiles)
    archive = tmp_path / "archive"
    (archive / "inner").mkdir(parents=True)
    for number in range(20):
        repeated = "".join(f'<r v="{number + n}"/>' for n in range(5))
        message = f'<m><f0 v="{number % 9}"/><f1/>{repeated}</m>'
        (archive / "inner" / f"{number}.xml").write_text(message)
    (archive / "bad.xml").write_text("<m>")
    (archive / "not-a-message.txt").write_text("x")
    job = PlanJob(
        (str(profiles),),
        PlanOptions(5),
        schemas=(read_schema("m.dtd", DTD),),
        archive=(str(archive),),
    )
    result = run_plan_job(session, job)
    (rule,) = result.plan.rules
    assert (rule.pattern, rule.at_most, rule.expected) == ("/m/f0/@v", 1, 1)
    assert result.plan.facts.samples == 20
    assert result.messages_refused == 1
    assert [refused.profile for refused in result.refused] == ["p100"]
    assert "line 1" in result.refused[0].reason
    # One partition for the value, one for the profile that has no pattern.
    assert result.plan.facts.matched_share == pytest.approx(2 / 5)


def test_kinds_of_files(session: Any, tmp_path: Path) -> None:
    profile = 'for $n in /m\nwhere $n/f0/@v = "1"\nreturn $n'
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.xq").write_text(profile)
    (folder / "b.xq").write_text("//m")
    rows = sorted(read_profiles(session, [str(folder)]).collect())
    assert rows == [("a.xq", profile, 1.0), ("b.xq", "//m", 1.0)]
    lines = tmp_path / "catalog.jsonl"
    entries = [
        {"profile": "p7", "text": profile, "user": "ada", "near": False},
        {"profile": "p8", "text": profile, "user": "bob", "near": True},
    ]
    lines.write_text("\n".join(map(json.dumps, [*entries, {"text": "/a"}, {"text": "/b"}])))
    found = read_profiles(session, [str(lines)]).collect()
    assert [tuple(row)[1:] for row in found] == [(profile, 1.0), ("/a", 1.0), ("/b", 1.0)]
    assert len({row[0] for row in found}) == 3 and found[0][0] == "p7"


def test_weights_are_loads(session: Any, lines: Path, tmp_path: Path) -> None:
    weights = tmp_path / "weights.parquet"
    ids = [row[0] for row in read_profiles(session, [str(lines)]).collect()]
    pq.write_table(pa.table({"profile": ids[:100], "load": [3.0] * 100}), weights)
    plan = run_plan_job(session, PlanJob((str(lines),), PlanOptions(4), weights=str(weights))).plan
    assert plan.facts.load == PROFILES + 200


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("none.txt", None, "there is no such file"),
        ("no.parquet", "this is no Parquet", "no.parquet"),
        ("other.jsonl", '{"query": "/a"}\n', "text"),
    ],
)
def test_what_cannot_be_read_is_named(
    session: Any, tmp_path: Path, name: str, text: str | None, reason: str
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises((UnreadableData, ValueError), match=reason):
        run_plan_job(session, PlanJob((str(path),), PlanOptions(2)))


def test_what_no_schema_knows_may_be_of_a_source_without() -> None:
    schema = read_schema("m.dtd", b"<!ELEMENT m EMPTY><!ATTLIST m v CDATA #IMPLIED>")
    known, unknown = "/m/@v", "/other/@v"
    all_have_one = _at_most([schema], have_none=False)
    assert (all_have_one(known), all_have_one(unknown)) == (1, 0)
    some_have_none = _at_most([schema], have_none=True)
    assert (some_have_none(known), some_have_none(unknown)) == (1, inf)
