"""Profiles move from broker to broker while links break, processes die and profiles change: every
message reaches each live profile once, before, during and after; see moving.py."""

from __future__ import annotations

import os

import pytest

from tests.simulation.moving import MovingScenario
from tests.simulation.test_exactly_once import change_something, random_message

RUNS = int(os.environ.get("ONYX_MOVE_RUNS", "16"))
FIRST_SEED = int(os.environ.get("ONYX_MOVE_SEED", "1"))
RUNS_PER_TEST = 8

# What test_exactly_once.random_path makes.
TEXTS = [
    text
    for key in "abc"
    for value in range(3)
    for text in (
        "/m",
        f"/m[@{key} = '{value}']",
        f"/m/part[@{key} = '{value}']",
        f"//part[@{key} > {value}]",
        f"/m[part[@a = '{value}']][part/@b = '{value}']",
        f"/m[@{key} = '{value}' or part/@c = '0']",
        f"//part[text() = 'word{value}']",
    )
]


def run(seed: int) -> MovingScenario:
    scenario = MovingScenario(seed, brokers=2 + seed % 5, texts=TEXTS)
    random = scenario.random
    scenario.net.disturb(
        cut_every=random.choice([0.5, 2.0, 10.0]),
        crash_every=random.choice([1.0, 3.0, 1000.0]),
        may_crash=scenario.server_peers,
    )
    for _ in range(random.randint(2, 6)):
        scenario.add_profile(random.choice(TEXTS))
    sources = [scenario.register_source()]
    for _ in range(random.randint(20, 60)):
        action = random.random()
        if action < 0.7:
            scenario.publish(random.choice(sources), random_message(scenario))
        elif action < 0.73 and len(sources) < 3:
            sources.append(scenario.register_source())
        elif action < 0.85:
            scenario.apply_plan()
        elif action < 0.9:
            scenario.change_course()
        else:
            change_something(scenario)
        scenario.net.run_until(lambda: False, random.uniform(0, 0.3))
    scenario.settle()
    return scenario


def check(seed: int) -> MovingScenario:
    scenario = run(seed)
    assert not scenario.missing(), f"seed {seed}"
    assert not scenario.wrong(), f"seed {seed}"
    assert not scenario.unexplained(), f"seed {seed}"
    assert not scenario.misplaced(), f"seed {seed}"
    return scenario


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + RUNS, RUNS_PER_TEST))
def test_profiles_move_and_every_message_arrives_once(first: int) -> None:
    moved = 0
    for seed in range(first, min(first + RUNS_PER_TEST, FIRST_SEED + RUNS)):
        moved += check(seed).moved()
    assert moved > 2 * RUNS_PER_TEST
