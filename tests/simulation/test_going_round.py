"""Brokers that die for long and come back, in networks with several ways.

Everybody else gets everything meanwhile, within seconds; when the broker is back its users get all
that was for them.  What holds of every scenario holds of these: once, in order, nothing that nobody
asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from onyx.broker.broker_core import BrokerCore
from onyx.broker.shape.tree_versions import TreeVersions
from overlay.routing.broadcast_tree import broadcast_tree
from tests.simulation.scenario import PATIENCE
from tests.simulation.seeds import batch, known_seeds, seeds
from tests.simulation.test_leaving_brokers import LeavingScenario

SEEDS = seeds(20)
RUNS_PER_TEST = 5
AWAY = 1e9  # seconds: until it is brought back


@dataclass
class AwayScenario(LeavingScenario):
    """All brokers are on a ring; one at a time dies."""

    def die(self, broker: str) -> None:
        """Which a fault may have done a moment ago; from that it comes back by itself first."""
        node = self.net.nodes[f"broker/{broker}"]
        assert self.net.run_until(lambda: node.core is not None, PATIENCE)
        self.net.crash(node, AWAY)

    def come_back(self, broker: str) -> None:
        self.net.boot(self.net.nodes[f"broker/{broker}"])

    def gone_round(self) -> frozenset[str]:
        core = self.registration
        return frozenset() if core is None else core.shapes.newest.away

    def is_replaced(self, broker: str) -> bool:
        """Whether its neighbours have all that it may not have passed on: not where it died while
        it missed one of them for long."""
        neighbours = self.topology.neighbours(broker)
        return all(self._core(other).trees.is_whole(broker) for other in neighbours)

    def missing_but_at(self, broker: str) -> list[tuple[str, str, int]]:
        return [
            each for each in self.missing() if self.interests[each[0]].subscriber.host != broker
        ]


def run(seed: int) -> AwayScenario:
    scenario = AwayScenario(seed, brokers=3 + seed % 5)
    random, net = scenario.random, scenario.net
    is_calm = seed % 3 == 0
    if is_calm:
        net.faulty = False
    else:
        net.disturb(random.choice([2.0, 10.0]), random.choice([5.0, 20.0]), scenario.server_peers)
    scenario.begin()
    for _ in range(random.randint(1, 2)):
        dead = random.choice(scenario.topology.broker_ids)
        net.may_crash = [peer for peer in scenario.server_peers if peer != f"broker/{dead}"]
        scenario.publish_some(random.randint(0, 10))
        is_steady = scenario.is_settled() and not scenario.gone_round()
        scenario.die(dead)
        for _ in range(random.randint(2, 8)):
            scenario.publish_some(random.randint(0, 10))
            net.run_until(lambda: False, random.uniform(0, 3.0))
        if is_steady and random.random() < 0.7:
            net.faulty = False
            net.run_until(lambda: False, 10.0)
            if scenario.is_replaced(dead):
                settle_without(scenario, dead)
                if random.random() < 0.3:
                    scenario.register_source()
                scenario.publish_some(random.randint(0, 20))
                settle_without(scenario, dead)
            net.faulty = not is_calm
        scenario.come_back(dead)
        for _ in range(random.randint(0, 8)):
            scenario.publish_some(random.randint(0, 10))
            net.run_until(lambda: False, random.uniform(0, 2.0))
    scenario.settle()
    scenario.wait(
        lambda: not scenario.gone_round() and scenario.is_settled(), "the network is not as before"
    )
    scenario.publish_some(5)
    scenario.settle()
    return scenario


def settle_without(scenario: AwayScenario, dead: str) -> None:
    """Everybody else gets everything of sources that can publish."""
    published = {s.source for s in scenario.sources.values() if s.root != dead}
    scenario.wait(
        lambda: not [each for each in scenario.missing_but_at(dead) if each[1] in published],
        f"others wait for {dead}",
    )


def check(scenario: AwayScenario) -> None:
    scenario.check()
    # A bypass carries whatever the broker wanted that is gone round.
    assert not [each for each in scenario.unexplained() if " came to " not in each]


@pytest.mark.parametrize("first", SEEDS[::RUNS_PER_TEST])
def test_nobody_else_waits_for_a_broker_that_is_dead(first: int) -> None:
    versions = 0
    for seed in batch(SEEDS, first, RUNS_PER_TEST):
        print(f"seed {seed}")
        scenario = run(seed)
        check(scenario)
        assert scenario.registration is not None
        versions += scenario.registration.shapes.newest.version
    assert versions > 0 or first > 10  # of a campaign, five may change nothing


def cut_off(seed: int) -> AwayScenario:
    """A broker takes messages that it cannot pass on, as a link is broken, and dies."""
    scenario = AwayScenario(seed, brokers=6)
    net = scenario.net
    net.faulty = False
    source = scenario.register_source()
    tree = broadcast_tree(scenario.topology, source.root)
    dead, behind = next(
        (above, broker)
        for broker, above in tree.parent.items()
        if above is not None and tree.parent[above] is not None
    )
    while not any(each.subscriber.host == behind for each in scenario.interests.values()):
        scenario.add_profile("/m")
    scenario.publish_some(5)
    net.run_until(lambda: False, 3.0)
    net.break_link(f"broker/{dead}", f"broker/{behind}")
    scenario.publish_some(10)
    net.run_until(lambda: False, 1.0)
    scenario.die(dead)
    net.broken.clear()
    assert net.run_until(lambda: not scenario.missing_but_at(dead), 40.0), "others wait for it"
    assert scenario.gone_round() == {dead}
    scenario.come_back(dead)
    scenario.settle()
    return scenario


@pytest.mark.parametrize("seed", known_seeds(2))
def test_what_a_dead_broker_had_not_passed_on_its_parent_has(seed: int) -> None:
    check(cut_off(seed))


def seen_again(seed: int) -> AwayScenario:
    """A broker that was missed is there for a moment, takes what its parent has for it, and cannot
    pass it on; its parent was started again meanwhile."""
    scenario = AwayScenario(seed, brokers=6)
    net = scenario.net
    net.faulty = False
    source = scenario.register_source()
    tree = broadcast_tree(scenario.topology, source.root)
    above, dead, behind = next(
        (above, between, broker)
        for broker, between in tree.parent.items()
        if between is not None and (above := tree.parent[between]) is not None
    )
    while not any(each.subscriber.host == behind for each in scenario.interests.values()):
        scenario.add_profile("/m")

    def let(seconds: float) -> None:
        net.run_until(lambda: False, seconds)

    def restart(broker: str) -> None:
        net.crash(net.nodes[f"broker/{broker}"], 0.1)

    scenario.publish_some(5)
    let(3.0)
    others = [f"broker/{each}" for each in scenario.topology.neighbours(dead) if each != behind]
    for other in [*others, "registration/r1"]:
        net.break_link(f"broker/{dead}", other)
    scenario.publish_some(10)
    let(7.0)  # the parent says that it misses it, and has all
    net.break_link(f"broker/{dead}", f"broker/{behind}")
    let(3.0)
    restart(behind)  # so that it says later than the others that it misses it
    let(0.5)
    restart(above)
    let(0.6)
    net.broken.discard(frozenset((f"broker/{above}", f"broker/{dead}")))
    let(2.4)
    scenario.die(dead)
    net.broken.clear()
    assert net.run_until(lambda: scenario.gone_round() == {dead}, 40.0)
    assert net.run_until(lambda: not scenario.missing_but_at(dead), 40.0), "others wait for it"
    scenario.come_back(dead)
    scenario.settle()
    return scenario


@pytest.mark.parametrize("seed", known_seeds(8))
def test_a_broker_that_was_seen_for_a_moment_takes_nothing_with_it(seed: int) -> None:
    check(seen_again(seed))


@pytest.mark.parametrize("seed", known_seeds(2))
def test_without_what_its_parent_keeps_it_would_show(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BrokerCore, "_keeps", lambda self, peer, flow, tree: False)
    monkeypatch.setattr(TreeVersions, "is_whole", lambda self, neighbour: True)
    with pytest.raises(AssertionError, match="others wait for"):
        cut_off(seed)
