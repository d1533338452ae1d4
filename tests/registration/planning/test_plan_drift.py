"""When a new plan pays."""

from __future__ import annotations

from dataclasses import replace

from overlay.answers import Drift
from overlay.topology import parse_topology
from registration.planning.drift import Measured, reasons_for_another
from registration.planning.need_reader import NeedReader
from registration.planning.plan import Placer, Plan
from registration.planning.plan_drift import DriftCount, PlacedProfile
from registration.planning.planner import PlanOptions, make_plan
from registration.planning.value_loads import LocalPopulation, ProfileNeeds

TOPOLOGY = parse_topology(
    'name = "two"\n[registration]\nid = "R"\nlisten = "r:1"\n'
    '[[broker]]\nid = "B1"\nlisten = "a:1"\n[[broker]]\nid = "B2"\nlisten = "b:1"\n'
    '[[link]]\nends = ["B1", "B2"]\n',
    "two",
)
TEXTS = [f'/m/f[@v = "{number}"]' for number in range(400)]
READER = NeedReader()
PLAN = make_plan(
    LocalPopulation(ProfileNeeds(READER.read(text)) for text in TEXTS), PlanOptions(10, TOPOLOGY)
)


def placed(texts: list[str]) -> list[PlacedProfile]:
    placer = Placer(PLAN)
    return [PlacedProfile(text, PLAN.broker_of(placer.place(text).partition)) for text in texts]


def measure(profiles: list[PlacedProfile], plan: Plan = PLAN) -> Drift:
    count = DriftCount(plan)
    for profile in profiles:
        count.add(profile)
    return count.drift()


def test_as_it_was_made_a_plan_is_good() -> None:
    drift = measure(placed(TEXTS))
    assert (drift.profiles, drift.misplaced, drift.near) == (400, 0, 0)
    assert drift.coverage == 1
    assert reasons_for_another(PLAN, drift) == []


def test_profiles_that_its_patterns_do_not_cover() -> None:
    drift = measure(placed(TEXTS + [f"//other{n}" for n in range(60)]))
    (reason, *_) = reasons_for_another(PLAN, drift)
    assert reason == "the patterns cover 87.0% of the profiles, 100.0% when the plan was made"


def test_partitions_that_became_uneven() -> None:
    drift = measure(placed(TEXTS + [TEXTS[0]] * 100))
    assert drift.imbalance > 2
    assert any("largest partition" in reason for reason in reasons_for_another(PLAN, drift))


def test_messages_that_match_at_more_brokers_than_predicted() -> None:
    predicted = replace(PLAN, facts=replace(PLAN.facts, brokers_share=0.2))
    drift = measure([], predicted)
    assert reasons_for_another(predicted, drift, Measured(0.24)) == []
    (reason,) = reasons_for_another(predicted, drift, Measured(0.5))
    assert reason == "a message matches at 50.0% of the brokers, predicted were 20.0%"


def test_messages_that_match_in_more_partitions_than_predicted() -> None:
    predicted = replace(PLAN, facts=replace(PLAN.facts, matched_share=0.1))
    drift = measure([], predicted)
    few, good, bad = Measured(None, 99, 0.5), Measured(None, 1e5, 0.12), Measured(None, 100, 0.3)
    assert reasons_for_another(predicted, drift, few) == []
    assert reasons_for_another(predicted, drift, good) == []
    (reason,) = reasons_for_another(predicted, drift, bad)
    assert reason == "a message matches in 30.0% of the partitions, predicted were 10.0%"


def test_profiles_elsewhere_and_profiles_that_insist_are_told_apart() -> None:
    home = placed(TEXTS[:1])[0]
    away = replace(home, host="B2" if home.host == "B1" else "B1")
    drift = measure([home, away, replace(away, near=True)])
    assert (drift.misplaced, drift.near) == (1, 1)
    assert drift.moves == [(away.host, home.host, 1)]
