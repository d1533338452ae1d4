"""Brokers die between passing a message on and committing it, in chains where that is the rule."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from onyx.broker.broker_core import BrokerCore
from tests.simulation import test_exactly_once
from tests.simulation.scenario import Scenario
from tests.simulation.seeds import batch, known_seeds, seeds

SEEDS = seeds(20)


def message(scenario: Scenario) -> bytes:
    """One that several brokers want, most of the time."""
    if scenario.random.random() < 0.5:
        return b'<m a="1" b="2"><part a="1" c="0">word1</part></m>'
    return test_exactly_once.random_message(scenario)


def run(seed: int) -> Scenario:
    scenario = Scenario(seed, brokers=3 + seed % 4)
    scenario.net.early_deaths = 0.5
    test_exactly_once.live_through(
        scenario, 3, test_exactly_once.random_path, message, test_exactly_once.change_something
    )
    return scenario


@pytest.mark.parametrize("first", SEEDS[::20])
def test_who_dies_behind_what_left_early_loses_and_doubles_nothing(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in (these := batch(SEEDS, first, 20)):
        scenario = run(seed)
        assert not scenario.missing(), f"seed {seed}"
        assert not scenario.wrong(), f"seed {seed}"
        assert not scenario.unexplained(), f"seed {seed}"
        seen["early"] += scenario.net.early
        for node in scenario.net.nodes.values():
            if isinstance(node.core, BrokerCore):
                seen["passed_over"] += int(str(node.core.statistics().data.passed_over))
    assert seen["early"] > len(these)
    assert seen["passed_over"] > len(these) // 10


@pytest.mark.parametrize("seed", known_seeds(5))
@pytest.mark.parametrize("times", [1, 2, 4])
@pytest.mark.parametrize("with_next", [False, True])
@pytest.mark.parametrize("changes", [False, True])
def test_who_dies_right_behind_an_early_message(
    seed: int, times: int, with_next: bool, changes: bool
) -> None:
    """So many times in a row, alone or with neighbours, with what is wanted below as it was or
    changed meanwhile."""
    scenario = Scenario(seed, brokers=5)
    net = scenario.net
    net.faulty = False
    for _ in range(6):
        scenario.add_profile("/m[@a = '1']")
    source = scenario.register_source()
    for _ in range(3):
        scenario.publish(source, b'<m a="1"/>')
        net.run_until(lambda: False, 1.0)
    for _ in range(times):
        before = net.early
        scenario.publish(source, b'<m a="2"/>')
        scenario.publish(source, b'<m a="1"/>')
        if not net.run_until(lambda before=before: net.early > before, 2.0):  # type: ignore[misc]
            continue  # everybody is a link from the root
        dying = net.left_early.partition("/")[2]
        net.crash(net.nodes[net.left_early], 0.3)
        if with_next:
            for child in scenario.topology.neighbours(dying):
                if child != source.root and net.random.random() < 0.7:
                    die = partial(net.crash, net.nodes[f"broker/{child}"], 0.3)
                    net.after(net.random.uniform(0, 0.1), die)
        if changes:
            scenario.add_profile("/m")
    for _ in range(3):
        scenario.publish(source, b'<m a="1"/>')
    scenario.settle()
    assert not scenario.missing()
    assert not scenario.wrong()
