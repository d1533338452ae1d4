"""``onyx.spark.plan`` and ``place``: the planner in memory is the oracle."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

import onyx.spark
from formats.errors import Refusal
from onyx.spark.filtering import SparkMisused
from overlay.topology import load_topology
from registration.planning.need_reader import NeedReader
from registration.planning.plan import Placer
from registration.planning.plan_file import from_json
from registration.planning.planner import PlanOptions, make_plan
from registration.planning.value_loads import LocalPopulation, ProfileNeeds

FILE = Path(__file__).resolve().parents[3] / "topologies" / "figure4.toml"
TEXTS = {f"p{n}": f'/m[f/@v = "{n % 7}"][g/@w = "{n % 11}"]' for n in range(150)} | {"all": "//x"}
DTD = """<!ELEMENT m (f?, g*)> <!ELEMENT f EMPTY> <!ELEMENT g EMPTY>
<!ATTLIST f v CDATA #IMPLIED> <!ATTLIST g w CDATA #IMPLIED>"""


def in_memory(options: PlanOptions) -> Any:
    reader = NeedReader()
    population = LocalPopulation(ProfileNeeds(reader.read(text)) for text in TEXTS.values())
    return make_plan(population, options)


def test_a_plan_is_that_of_the_planner_and_places_as_it_says(spark: Any, tmp_path: Path) -> None:
    wanted = in_memory(PlanOptions(24, load_topology(FILE)))
    table = spark.createDataFrame(list(TEXTS.items()), "profile string, text string")
    for profiles in (TEXTS, table):
        assert onyx.spark.plan(profiles, topology=FILE, partitions=24) == wanted
    (tmp_path / "plan.json").write_text(onyx.spark.plan_json(wanted))
    placer = Placer(wanted)
    expected = {name: wanted.broker_of(placer.place(t).partition) for name, t in TEXTS.items()}
    for planned in (wanted, str(tmp_path)):
        frame = onyx.spark.place(table, planned)
        assert frame.columns == ["profile", "broker"]
        assert dict(frame.collect()) == expected
    assert from_json((tmp_path / "plan.json").read_bytes()) == wanted


def test_messages_schemas_loads_and_the_plan_in_force_are_seen(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "onyx.spark")
    (tmp_path / "m.dtd").write_text(DTD)
    messages = spark.createDataFrame(
        [(f'<m><f v="{n}"/><g w="{n}"/><g w="{n + 1}"/></m>',) for n in range(7)] + [("<m>",)],
        "message string",
    )
    rows = [(name, text, 2.0, False) for name, text in TEXTS.items()]
    rows += [("none", "/m[", 1.0, False), ("near", "/m", 1.0, True)]
    profiles = spark.createDataFrame(rows, "profile string, text string, load double, near boolean")
    plan = onyx.spark.plan(
        profiles, schemas=[str(tmp_path / "m.dtd")], messages=messages, partitions=6
    )
    assert (plan.facts.load, plan.facts.refused, plan.facts.samples) == (2.0 * len(TEXTS), 1, 7)
    expected = {rule.pattern: (rule.at_most, rule.expected) for rule in plan.rules}
    assert expected["/m/f/@v"] == (1.0, 1.0)
    assert "profile none left out: line 1" in caplog.text
    assert "step='reading the profiles'" in caplog.text
    assert onyx.spark.plan(profiles, partitions=6, keep=plan).rules[0].pattern == "/m/f/@v"


def test_bad_input_is_told_in_a_sentence(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("p", 1)], "profile string, body int")
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (frame, {}, "profiles: no column text; there are profile, body"),
        (TEXTS, {"messages": frame}, "messages: no column message; there are profile, body"),
        (TEXTS, {"messages": frame.selectExpr("body as message")}, "column message is int"),
        (TEXTS, {"partitions": 0}, "a plan needs at least one partition"),
        (TEXTS, {"topology": tmp_path / "no.toml"}, "no.toml"),
        ({}, {}, "there are no profiles"),
        (str(tmp_path / "none.txt"), {}, "there is no such file"),
    ]
    for profiles, others, said in wrong:
        with pytest.raises((Refusal, OSError), match=said):
            onyx.spark.plan(profiles, **others)
    with pytest.raises(SparkMisused, match="the plan has no brokers"):
        onyx.spark.place(TEXTS, in_memory(PlanOptions(2)))
