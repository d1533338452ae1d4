"""The plan of the demo."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.planning import PARTITIONS_A_BROKER, PlanningFailure, demo_plan
from demo.scenario import Scenario, built_in_scenario
from overlay.topology import load_topology
from registration.planning.plan_file import from_json

TOPOLOGY = load_topology(Path(__file__).resolve().parents[2] / "topologies" / "figure4.toml")


def test_every_profile_has_a_partition_by_what_messages_say() -> None:
    scenario = built_in_scenario(2004, 10)
    made = demo_plan(scenario, TOPOLOGY)
    partitions = PARTITIONS_A_BROKER * len(TOPOLOGY.brokers)
    assert made.plan.partitions == partitions
    assert len(made.partition_of) == len(scenario.profiles)
    assert set(made.partition_of) <= set(range(partitions))
    assert made.plan.facts.load == len(scenario.profiles)
    assert made.plan.facts.refused == 0
    spoilt = len(scenario.messages) - made.plan.facts.samples
    assert 0 < spoilt < len(scenario.messages)
    assert from_json(made.text) == made.plan


def test_no_profiles_no_plan() -> None:
    scenario = built_in_scenario(2004, 1)
    nothing = Scenario(scenario.title, scenario.sources, [], scenario.messages)
    with pytest.raises(PlanningFailure):
        demo_plan(nothing, TOPOLOGY)
