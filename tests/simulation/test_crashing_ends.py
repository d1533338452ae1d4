"""Exactly once from a publisher's disk to a subscriber's, whoever dies on the way."""

from __future__ import annotations

import pytest

from onyx.broker.messages.publish_keys import PublishKeys
from tests.simulation.crashing_ends import CrashingEnds
from tests.simulation.seeds import batch, seeds

SEEDS = seeds(40)


def lived(seed: int) -> CrashingEnds:
    """Messages are written while publishers, brokers and subscribers die."""
    scenario = CrashingEnds(seed, brokers=1 + seed % 4)
    random, net = scenario.random, scenario.net
    for _ in range(random.randint(1, 3)):
        scenario.add_subscriber()
    publishers = [
        scenario.add_publisher(with_keys=random.random() < 0.7) for _ in range(random.randint(1, 2))
    ]
    for name in random.sample(["", "p2", "~"], random.randint(0, 2)):
        beside = random.choice(publishers)
        if name not in {disk.name for disk in publishers if disk.source == beside.source}:
            with_keys = name == "~" or random.random() < 0.5
            publishers.append(scenario.add_publisher(with_keys=with_keys, beside=beside, name=name))
    net.disturb(
        cut_every=random.choice([0.5, 2.0, 10.0]),
        crash_every=random.choice([0.3, 1.0, 3.0]),
        may_crash=[*scenario.server_peers, *3 * scenario.ends],
    )
    for _ in range(random.randint(10, 60)):
        scenario.write(random.choice(publishers))
        net.run_until(lambda: False, random.uniform(0, 0.3))
    net.faulty = False
    scenario.wait(scenario.is_done, "not all is settled and worked on")
    net.run_until(lambda: False, 10.0)
    return scenario


@pytest.mark.parametrize("first", SEEDS[::20])
def test_each_key_is_worked_on_once(first: int) -> None:
    """Although publishers really die, and publish again what is known."""
    crashes = again = 0
    for seed in (these := batch(SEEDS, first, 20)):
        scenario = lived(seed)
        assert scenario.faults() == [], f"seed {seed}"
        crashes += scenario.net.crashes
        again += sum(disk.again for disk in scenario.publishers)
    assert crashes > len(these)
    assert again


def test_a_broker_that_forgets_keys_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PublishKeys, "number", lambda self, source, digest: 0)
    assert any(lived(seed).faults() for seed in range(1, 21))
