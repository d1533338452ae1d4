"""A broker is away for long: others do not notice, and nothing is lost when it is back."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from overlay.link.events import Flow
from tests.simulation.scenario import Scenario
from tests.simulation.seeds import known_seeds
from tests.simulation.sim_clients import SourceClient

KIB = 1024
MESSAGE = b'<m a="1">' + b"<part>x</part>" * 70 + b"</m>"  # of about a KiB


class DeadBrokerScenario(Scenario):
    """Without other faults; the limits are such that messages of a KiB soon reach them."""

    def __init__(self, seed: int, *, away_bytes_max: int, down_after_s: float = 10_000.0) -> None:
        super().__init__(seed, brokers=5)
        self.net.faulty = False
        limits = replace(
            self.topology.limits,
            link_backlog_bytes_max=KIB,
            link_away_bytes_max=away_bytes_max,
            link_down_after_s=down_after_s,
        )
        self.topology = replace(self.topology, limits=limits)

    def accepted(self, source: SourceClient) -> int:
        return source.links.acknowledged(f"broker/{source.root}", Flow.MESSAGE, source.source)

    def publish_many(self, source: SourceClient, count: int) -> None:
        for _ in range(count):
            self.publish(source, MESSAGE)
            self.net.run_until(lambda: False, self.random.uniform(0, 0.1))

    def missing_at(self, brokers: set[str]) -> list[tuple[str, str, int]]:
        return [
            each for each in self.missing() if self.interests[each[0]].subscriber.host in brokers
        ]


@pytest.mark.parametrize("seed", known_seeds(4))
def test_others_go_on_while_a_broker_is_away(seed: int) -> None:
    """Forty times what one tree may have waiting for a neighbour that is there."""
    scenario = DeadBrokerScenario(seed, away_bytes_max=1024 * KIB)
    for _ in range(10):
        scenario.add_profile("/m")
    source = scenario.register_source()
    others = [broker for broker in scenario.topology.broker_ids if broker != source.root]
    dead = scenario.random.choice(others)
    scenario.publish_many(source, 5)
    node = scenario.net.nodes[f"broker/{dead}"]
    scenario.net.crash(node, 200.0)
    scenario.publish_many(source, 40)
    scenario.wait(lambda: scenario.accepted(source) == 45, "the source waits")
    alive = set(scenario.topology.broker_ids) - scenario.behind(source, dead)
    scenario.net.run_until(lambda: False, 20.0)
    assert node.core is None
    assert not scenario.missing_at(alive)
    scenario.wait(lambda: node.core is not None, "it does not come back")
    scenario.settle()
    assert not scenario.missing()
    assert not scenario.wrong()
    for broker in others:
        assert scenario._core(broker).statistics().data.behind == {}


@pytest.mark.parametrize("seed", [1])
def test_beyond_the_quota_only_the_sources_with_users_behind_a_dead_broker_wait(seed: int) -> None:
    """And they go on when it is back."""
    scenario = DeadBrokerScenario(seed, away_bytes_max=4 * KIB)
    wanted = scenario.register_source()
    scenario.net.run_until(lambda: False, 1.0)
    other = scenario.register_source()
    while other.root == wanted.root:
        other = scenario.register_source()
    dead = next(
        broker for broker in scenario.topology.broker_ids if broker not in (wanted.root, other.root)
    )
    while not any(each.subscriber.host == dead for each in scenario.interests.values()):
        scenario.add_profile("/m")
    scenario.publish_many(wanted, 5)
    node = scenario.net.nodes[f"broker/{dead}"]
    scenario.net.crash(node, 300.0)
    for _ in range(60):
        scenario.publish(wanted, MESSAGE)
        scenario.publish(other, b"<nobody/>")
    scenario.wait(lambda: scenario.accepted(other) == 60, "the other source waits")
    scenario.net.run_until(lambda: node.core is not None, 30.0)
    assert scenario.accepted(wanted) < 65
    scenario.settle()
    assert scenario.accepted(wanted) == 65
    assert not scenario.missing()
    assert not scenario.wrong()


def presumed(scenario: DeadBrokerScenario) -> int:
    """How many branches want everything as long as nobody says what they want."""
    cores = [scenario._core(broker) for broker in scenario.topology.broker_ids]
    return sum(len(core.query.routes.presumed) for core in cores)


@pytest.mark.parametrize("seed", known_seeds(6))
def test_new_sources_and_profiles_do_not_wait_for_a_dead_broker(seed: int) -> None:
    """Nothing is lost or doubled when it is back, though its neighbours and the registration
    service have been started again meanwhile."""
    scenario = DeadBrokerScenario(seed, away_bytes_max=1024 * KIB, down_after_s=4.0)
    net = scenario.net
    dead = scenario.random.choice(scenario.topology.broker_ids)
    for _ in range(6):
        scenario.add_profile("/m")
    scenario.add_profile("/nobody")
    earlier = scenario.register_source()
    scenario.publish_many(earlier, 5)
    node = net.nodes[f"broker/{dead}"]
    net.crash(node, 300.0)
    net.run_until(lambda: False, 10.0)
    sources = [scenario.register_source() for _ in range(2)]
    assert dead not in {source.root for source in sources}
    for source in sources:
        scenario.publish_many(source, 10)
    for broker in scenario.topology.neighbours(dead):
        net.crash(net.nodes[f"broker/{broker}"], 1.0)
    net.crash(net.nodes[f"registration/{scenario.topology.registration[0].id}"], 1.0)
    net.run_until(lambda: False, 8.0)
    asked = net.now
    location = [scenario.random.uniform(-90, 90), scenario.random.uniform(-180, 180)]
    added = scenario.ask(
        *(scenario.registrar, "profile.add"), text="/m", location=location, wait=True, timeout=5.0
    )
    assert added["host"] != dead
    assert net.now < asked + 10.0
    alive = {broker for broker in scenario.topology.broker_ids if broker != dead}
    for source in sources:
        scenario.publish_many(source, 10)
        alive -= scenario.behind(source, dead)
    net.run_until(lambda: False, 20.0)
    assert node.core is None
    late = {source.source for source in sources}
    assert not [each for each in scenario.missing_at(alive) if each[1] in late]
    scenario.wait(lambda: node.core is not None, "it does not come back")
    scenario.settle()
    assert not scenario.missing()
    assert not scenario.wrong()
    assert not scenario.unexplained()
    assert not presumed(scenario)
