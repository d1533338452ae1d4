"""Processes stand still, are replaced by standbys, and go on with an epoch that is over: nothing
is lost, doubled, out of order, or unexplained."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.simulation import test_exactly_once
from tests.simulation.scenario import Scenario
from tests.simulation.seeds import batch, seeds
from tests.simulation.sim_network import SimNode

SEEDS = seeds(20)


def run(seed: int) -> Scenario:
    scenario = Scenario(seed, brokers=2 + seed % 4)
    scenario.net.has_standbys = True
    scenario.net.may_crash = scenario.server_peers
    scenario.net.disturb_by_sleep(scenario.random.choice([1.0, 3.0]))
    test_exactly_once.live_through(
        *(scenario, 2, test_exactly_once.random_path),
        *(test_exactly_once.random_message, test_exactly_once.change_something),
    )
    return scenario


@pytest.mark.parametrize("first", SEEDS[::20])
def test_who_was_replaced_and_does_not_know_it_does_no_harm(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in (these := batch(SEEDS, first, 20)):
        scenario = run(seed)
        assert not scenario.missing(), f"seed {seed}"
        assert not scenario.wrong(), f"seed {seed}"
        assert not scenario.unexplained(), f"seed {seed}"
        seen += scenario.net.fenced
    assert seen["commit"] > len(these) // 2
    assert seen["told"] > 0


def test_it_shows_where_who_was_replaced_may_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimNode, "is_over", False)
    monkeypatch.setattr("tests.simulation.scenario.PATIENCE", 60.0)

    def shows(seed: int) -> bool:
        try:
            scenario = run(seed)
        except Exception:  # whatever comes of two that write into one store
            return True
        return bool(scenario.missing() or scenario.wrong() or scenario.unexplained())

    assert any(shows(seed) for seed in (8, *range(1, 21)))


def test_the_same_seed_gives_the_same_run() -> None:
    def story(seed: int) -> list[tuple[str, dict[tuple[str, int], int], Counter[str]]]:
        scenario = run(seed)
        return [
            (interest.profile, dict(interest.subscriber.got), scenario.net.fenced)
            for interest in scenario.interests.values()
        ]

    assert story(10) == story(10)
