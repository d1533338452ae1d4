"""Brokers that are drained, or lost for good, while messages, profiles, connections and processes
come and go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import pytest
from msgspec.structs import replace

from overlay.network_shape import is_connected, without_broker
from overlay.nodes import Link
from registration.released_keys import ReleasedKeys
from tests.simulation import test_exactly_once
from tests.simulation.crashing_ends import CrashingEnds
from tests.simulation.following import FollowingScenario
from tests.simulation.seeds import known_seeds
from tests.simulation.sim_clients import SourceClient
from tests.simulation.test_changing_shapes import ChangingScenario

MESSAGE = b'<m a="1"><part b="2">word1</part></m>'


@dataclass
class LeavingScenario(FollowingScenario, ChangingScenario):
    """Any broker can be done without: all are on a ring."""

    def __post_init__(self) -> None:
        super().__post_init__()
        ids = self.topology.broker_ids
        ring = [
            Link((a, b), latency_ms=float(self.random.randint(1, 50)))
            for a, b in pairwise((*ids, ids[0]))
            if b not in self.topology.neighbours(a)
        ]
        self.topology = replace(self.topology, links=(*self.topology.links, *ring))
        for broker in ids:
            node = self.net.nodes[f"broker/{broker}"]
            others = [other for other in self.topology.neighbours(broker) if broker < other]
            node.dials = (*(f"broker/{other}" for other in others), node.dials[-1])

    def begin(self) -> str:
        """Profiles, sources and traffic; one of the root brokers."""
        for _ in range(8):
            self.add_profile(test_exactly_once.random_path(self))
        for _ in range(3):
            self.register_source()
        self.publish_some(20)
        return self.random.choice(sorted(source.root for source in self.sources.values()))

    def publish_some(self, count: int) -> None:
        for _ in range(count):
            self.publish(self.random.choice(list(self.sources.values())), MESSAGE)
            self.net.run_until(lambda: False, self.random.uniform(0, 0.1))

    def check(self) -> None:
        assert not self.missing()
        assert not self.wrong()
        assert not self.left_over()

    def see_off(self, drained: str, rooted: Iterable[SourceClient]) -> None:
        """Publishes until a broker has left and what was ``rooted`` there is elsewhere; checks."""
        for _ in range(100):
            shown = self.ask(self.registrar, "broker.progress", broker=drained)
            if not shown["is_there"] and (shown["state"], shown["stage"]) == ("staying", "settled"):
                break
            self.publish_some(5)
        else:
            raise AssertionError(f"seed {self.seed}: {drained} does not leave")
        self.topology = without_broker(self.topology, drained)
        self.wait(lambda: all(source.root != drained for source in rooted), "a source stays")
        self.publish_some(10)
        self.settle()
        self.net.run_until(lambda: False, 5.0)
        self.check()


@pytest.mark.parametrize("seed", known_seeds(8))
def test_a_root_broker_that_is_drained_leaves_and_nobody_misses_anything(seed: int) -> None:
    scenario = LeavingScenario(seed, brokers=3 + seed % 4)
    if seed % 2:
        scenario.net.disturb(2.0, 5.0, scenario.server_peers)
    drained = scenario.begin()
    rooted = [s for s in scenario.sources.values() if s.root == drained]
    scenario.ask(scenario.registrar, "broker.drain", broker=drained)
    scenario.publish_some(40)
    scenario.net.faulty = False

    scenario.see_off(drained, rooted)
    hosts = [each.subscriber.host for each in scenario.interests.values()]
    assert drained not in hosts


class CrashingRoots(CrashingEnds, LeavingScenario):
    """Publishers that die, and whose root broker leaves."""

    def follow(self) -> None:
        """Publishers begin another run where their source has got another root broker."""
        for disk in self.publishers:
            shown = self.ask(self.registrar, "source.show", source=disk.source)
            if shown["ready"] and shown["root"] != disk.root:
                disk.root = str(shown["root"])
                node = self.net.nodes[disk.peer]
                node.dials = (f"broker/{disk.root}",)
                self.net.crash(node, 0.0)


def keys_moved(seed: int) -> CrashingRoots | None:
    """Messages are written while their root broker is drained; None: it hosts a subscriber."""
    scenario = CrashingRoots(seed, brokers=4 + seed % 3)
    net, random = scenario.net, scenario.random
    publishers = [scenario.add_publisher(with_keys=True) for _ in range(2)]
    # it has no keys: its root broker knows how far it is
    publishers.append(scenario.add_publisher(with_keys=False, beside=publishers[0], name="p2"))
    for _ in range(2):
        scenario.add_subscriber()
    drained = publishers[0].root
    assert scenario.registration is not None
    catalog = scenario.registration.catalog
    if drained in {profile.host for profile in catalog.profiles.values()}:
        return None
    net.disturb(cut_every=2.0, crash_every=1.0, may_crash=[*scenario.server_peers, *scenario.ends])
    for place in range(60):
        if place == 20:
            scenario.ask(scenario.registrar, "broker.drain", broker=drained)
        scenario.write(random.choice(publishers))
        net.run_until(lambda: False, random.uniform(0, 0.3))
        scenario.follow()
    net.faulty = False
    for _ in range(100):
        scenario.follow()
        net.run_until(lambda: False, 1.0)
        if publishers[0].root != drained and scenario.is_done():
            break
    else:
        raise AssertionError(f"seed {seed}: not all is settled and worked on")
    return scenario


def test_publish_keys_go_along_with_their_source() -> None:
    again = moved = 0
    for seed in (these := known_seeds(48)):
        scenario = keys_moved(seed)
        if scenario is not None:
            assert scenario.faults() == [], f"seed {seed}"
            again += sum(disk.again for disk in scenario.publishers)
            moved += 1
    assert moved > len(these) // 4
    assert again > 4 * len(these)


def test_keys_that_stay_behind_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReleasedKeys, "pass_on", lambda self, source, root: None)
    scenarios = map(keys_moved, range(1, 13))
    assert any(scenario is not None and scenario.faults() for scenario in scenarios)


@pytest.mark.parametrize("seed", known_seeds(8))
def test_a_lost_root_broker_takes_with_it_only_what_waited_there(seed: int) -> None:
    scenario = LeavingScenario(seed, brokers=3 + seed % 4)
    net = scenario.net
    net.faulty = False
    lost = scenario.begin()
    net.run_until(lambda: False, 20.0)
    assert not scenario.missing()
    hosted = {p for p, each in scenario.interests.items() if each.subscriber.host == lost}
    behind = {s.source: scenario.behind(s, lost) for s in scenario.sources.values()}
    hosts = {profile: each.subscriber.host for profile, each in scenario.interests.items()}
    net.remove(f"broker/{lost}")
    scenario.publish_some(10)
    said = scenario.ask(scenario.registrar, "broker.lost", broker=lost)
    assert said["profiles"] == len(hosted)
    if seed % 2:  # what waits for the lost broker goes past it, whoever starts again meanwhile
        for broker in scenario.random.sample(sorted({*scenario.topology.broker_ids} - {lost}), 2):
            net.crash(net.nodes[f"broker/{broker}"], scenario.random.uniform(0, 2.0))
    scenario.publish_some(10)
    scenario.topology = without_broker(scenario.topology, lost)
    scenario.wait(scenario.is_settled, "the change is not settled")
    scenario.wait(lambda: all(s.is_connected for s in scenario.sources.values()), "a source waits")
    assert scenario.registration is not None
    catalog = scenario.registration.catalog
    scenario.wait(lambda: all(p.live for p in catalog.profiles.values()), "a profile is not live")
    late = len(scenario.published)
    scenario.publish_some(20)
    net.run_until(lambda: False, 30.0)
    after = {(each.source, each.number) for each in scenario.published[late:]}
    missing = scenario.missing()
    assert not [
        (profile, source, number)
        for profile, source, number in missing
        if hosts[profile] not in behind[source] or (source, number) in after
    ]
    assert not scenario.wrong()
    assert not scenario.left_over()
    for profile in hosted:
        (reason,) = scenario.interests[profile].subscriber.results["", 0][1:]
        assert b"host-lost" in reason
    assert is_connected(scenario.topology)
