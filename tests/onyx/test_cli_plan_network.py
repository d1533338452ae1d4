"""``onyx plan use`` and ``status``, ``onyx profile export``: against a running network."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from overlay.topology import parse_topology
from registration.planning.need_reader import NeedReader
from registration.planning.plan import Plan
from registration.planning.plan_file import plan_id, to_json
from registration.planning.planner import PlanOptions, make_plan
from registration.planning.value_loads import LocalPopulation, ProfileNeeds
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import small_topology_text
from tests.onyx.test_cli_network import Shell, shell

__all__ = ["shell"]

TEXTS = [f'/planned[@v = "{number}"]' for number in range(30)]


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """A plan for the network of the tests, in the directory ``plan``."""
    topology = parse_topology(small_topology_text(tmp_path / "data"), "small")
    reader = NeedReader()
    population = LocalPopulation(ProfileNeeds(reader.read(text)) for text in TEXTS)
    plan = make_plan(population, PlanOptions(6, topology))
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan" / "plan.json").write_text(to_json(plan))
    return plan


@pytest.fixture
def without_plan(shell: Shell) -> Iterator[None]:
    """The network is everybody's: afterwards it has no plan."""
    yield
    assert shell.run("plan", "use", "--none") == 0


@pytest.mark.usefixtures("without_plan")
def test_a_plan_in_force(shell: Shell, plan: Plan, tmp_path: Path) -> None:
    (used,) = shell.lines("plan", "use", tmp_path / "plan")
    assert used == f"new profiles are placed by plan {plan_id(plan)}"
    files = [tmp_path / f"{number}.xq" for number in range(4)]
    for file, text in zip(files, TEXTS, strict=False):
        file.write_text(text)
    added = shell.objects("profile", "add", *files, "--user", "planned", "--wait")
    hosts = [profile["host"] for profile in added]
    placed = shell.objects("plan", "place", tmp_path / "plan", *files)
    assert hosts == [placement["broker"] for placement in placed]

    near = ("--location", "30,0", "--near")
    (insisting,) = shell.objects("profile", "add", files[0], "--user", "planned", *near)
    assert insisting["host"] == "B3"
    assert insisting["near"] is True

    ids = [profile["id"] for profile in (*added, insisting)]
    exported = {
        entry["profile"]: entry for entry in map(json.loads, shell.lines("profile", "export"))
    }
    assert [exported[name]["text"] for name in ids] == [*TEXTS[:4], TEXTS[0]]

    (status,) = shell.objects("plan", "status")
    assert status["plan"] == plan_id(plan)
    assert status["profiles"] == len(exported)
    assert status["near"] == 1
    assert "NOW" in "\n".join(shell.lines("plan", "status"))

    (source,) = shell.lines("source", "register", "--name", "planned", "--location=10,0")
    for number in range(3):
        (tmp_path / f"{number}.xml").write_text(f'<planned v="{number}"/>')
    shell.lines("source", "publish", source, *(tmp_path / f"{number}.xml" for number in range(3)))
    give_up_at = time.monotonic() + SAFETY_SECONDS
    while not status["matched_share"]:  # soon: each broker reports what is new, on its own
        assert time.monotonic() < give_up_at
        (status,) = shell.objects("plan", "status")
    assert 0 < status["messages"] <= 3
    shell.lines("profile", "remove", *ids)


def test_without_a_plan_it_is_said_why_there_is_none(shell: Shell) -> None:
    said = shell.lines("plan", "status")
    assert said[0].startswith("there is no plan in force")
    assert "no plan is being made automatically: there are " in said[-1]
    (status,) = shell.objects("plan", "status")
    assert (status["plan"], status["auto"]["is_on"]) == ("", True)


def test_planning_is_switched_off_and_on(shell: Shell) -> None:
    assert "switched it off" in "\n".join(shell.lines("plan", "auto", "--off"))
    (auto,) = shell.objects("plan", "auto")
    assert auto["is_on"] and not auto["failures"]


def test_a_plan_for_other_brokers_is_refused(shell: Shell, plan: Plan, tmp_path: Path) -> None:
    other = replace(plan, brokers=("X",) * plan.partitions, topology="other")
    file = tmp_path / "other.json"
    file.write_text(to_json(other))
    assert shell.run("plan", "use", file) == 65
    assert "X is no broker of" in shell.err
