"""Dictionaries are trained, announced and replaced while links break and processes die."""

from __future__ import annotations

from itertools import chain

import pytest

from onyx.broker.broker_core import BrokerCore
from tests.simulation.scenario import Scenario
from tests.simulation.seeds import batch, seeds

SEEDS = seeds(12)
RUNS_PER_TEST = 6
MESSAGES = 120


def message(number: int) -> bytes:
    """What messages have in common changes on the way, so that a new version is worth it."""
    words = ("harbour", "storm", "evening") if number < MESSAGES // 2 else ("vote", "price", "gas")
    body = " ".join(words * 3)
    return f'<m a="{number % 2}"><part b="{number}">{body}</part></m>'.encode()


def run(seed: int) -> Scenario:
    scenario = Scenario(seed, 2 + seed % 4, ("text+zstd", "dictionary+zstd", "binary+zstd"))
    random = scenario.random
    for broker in range(2):
        scenario.add_profile(f"/m[@a = '{broker}']")
    scenario.add_profile("/m")
    source = scenario.register_source()
    scenario.net.disturb(
        cut_every=random.choice([1.0, 5.0]),
        crash_every=random.choice([3.0, 10.0]),
        may_crash=scenario.server_peers,
    )
    for number in range(MESSAGES):
        scenario.publish(source, message(number))
        scenario.net.run_until(lambda: False, random.uniform(0, 0.1))
    scenario.settle()
    return scenario


def trained(scenario: Scenario) -> list[dict[str, list[str]]]:
    """The versions at each broker, by source and form."""
    found = []
    for peer, node in scenario.net.nodes.items():
        if peer.startswith("broker/"):
            assert isinstance(node.core, BrokerCore)
            versions = chain(*node.core.trained._trained.values())
            assert not any(version.awaited for version in versions), (scenario.seed, peer)
            statistics = node.core.statistics()
            found.append(statistics.compression.trained)
            data = statistics.data
            assert not data.given_back and not data.abandoned, (scenario.seed, data)
    return found


@pytest.mark.parametrize("first", SEEDS[::RUNS_PER_TEST])
def test_messages_arrive_once_and_all_brokers_hold_the_same_version(first: int) -> None:
    numbers = []
    for seed in batch(SEEDS, first, RUNS_PER_TEST):
        scenario = run(seed)
        assert not scenario.missing(), f"seed {seed}"
        assert not scenario.wrong(), f"seed {seed}"
        at_root, *others = trained(scenario)
        assert all(versions == at_root for versions in others), f"seed {seed}"
        assert all(len(versions) == 1 for versions in at_root.values()), f"seed {seed}"
        numbers += [
            int(key.rpartition("|")[2])
            for node in scenario.net.nodes.values()
            for space, key in node.disk
            if space == "compression-dictionary"
        ]
    assert max(numbers) > 1, "none was ever replaced"
