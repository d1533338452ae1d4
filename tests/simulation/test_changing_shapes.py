"""Networks whose links and brokers come and go while messages, profiles, connections and processes
do.

What holds is what holds of every scenario (scenario.py), and in the end that nothing of an earlier
shape is left anywhere.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from msgspec.structs import replace

from overlay.link.events import Flow
from overlay.network_shape import is_connected
from overlay.nodes import Address, BrokerNode, Link, Place, Transformation
from overlay.topology import Topology, to_toml
from registration.registration_core import RegistrationCore
from tests.simulation import test_exactly_once, test_transformation
from tests.simulation.scenario import Scenario
from tests.simulation.seeds import batch, known_seeds, seeds

SEEDS = seeds(10)
RUNS_PER_TEST = 5


class ChangingScenario(Scenario):
    """A scenario with an operator."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.named = self.joined = 0
        self.left: list[str] = []  # brokers that left with the last change

    @property
    def registration(self) -> RegistrationCore | None:
        core = self.net.nodes[f"registration/{self.topology.registration[0].id}"].core
        assert core is None or isinstance(core, RegistrationCore)
        return core

    def is_settled(self) -> bool:
        return self.registration is not None and self.registration.shapes.is_settled

    def change_shape(self) -> None:
        """Begin to change the network, once the last change is over."""
        self.wait(self.is_settled, "a change of shape is not settled")
        for peer in [f"broker/{broker}" for broker in self.left]:
            self.net.remove(peer)
        self.left.clear()
        cuts = len(self.transformations) > 1 and self.topology.links
        is_other_cut = cuts and self.random.random() < 0.4
        choice = self.random.random()
        if is_other_cut:
            changed = self.other_transformation()
        elif choice < 0.2:
            changed = self.with_another_broker()
        elif choice < 0.4:
            changed = self.without_a_broker()
        else:
            changed = self.other_links()
        if changed is None:
            return
        if not is_connected(changed, self.dead(self.net.broken)):
            self.net.broken.clear()
        request = self.registrar.ask("topology.apply", text=to_toml(changed))
        self.wait(lambda: self.registrar.answer(request) is not None, "no answer to apply")
        answer = self.registrar.answer(request)
        assert answer is not None
        if answer.result.get("code") in ("change-under-way", "broker-in-use"):
            return  # a link went down just before, or a profile is on its way there
        assert answer.ok, (self.seed, answer)
        before, self.topology = set(self.topology.broker_ids), changed
        for broker in changed.broker_ids:
            if broker not in before:
                self.joined += 1
                self._start_broker(broker)
                self.net.may_crash.append(f"broker/{broker}")
        self.left = [broker for broker in before if broker not in changed.broker_ids]

    def change_link(self) -> None:
        """A link dies, or one that is dead comes back; never all ways between two brokers."""
        if self.net.broken and self.random.random() < 0.4:
            self.net.broken.pop()
            return
        pairs = {frozenset(map("broker/{}".format, link.ends)) for link in self.topology.links}
        self.net.broken &= pairs
        if pairs == self.net.broken:
            return
        pair = self.random.choice(sorted(pairs - self.net.broken, key=sorted))
        if is_connected(self.topology, self.dead({*self.net.broken, pair})):
            self.net.break_link(*pair)

    @staticmethod
    def dead(pairs: set[frozenset[str]]) -> list[frozenset[str]]:
        return [frozenset(peer.partition("/")[2] for peer in pair) for pair in pairs]

    def with_another_broker(self) -> Topology:
        """With links to one or two of the others."""
        topology, random = self.topology, self.random
        self.named += 1
        new = BrokerNode(f"N{self.named}", Address("127.0.0.2", self.named))
        if random.random() < 0.8:
            new = replace(new, place=Place(random.uniform(-80, 80), random.uniform(-170, 170)))
        count = random.randint(1, min(2, len(topology.brokers)))
        links = [
            Link((new.id, other), latency_ms=float(random.randint(1, 50)))
            for other in random.sample(topology.broker_ids, count)
        ]
        return replace(topology, brokers=(*topology.brokers, new), links=(*topology.links, *links))

    def without_a_broker(self) -> Topology | None:
        """One that hosts nothing and is the root broker of nothing; its neighbours are joined."""
        assert self.registration is not None
        catalog = self.registration.catalog
        busy = {profile.host for profile in catalog.profiles.values()}
        busy |= {source.root for source in catalog.sources.values()}
        idle = [broker for broker in self.topology.broker_ids if broker not in busy]
        if not idle or len(self.topology.brokers) < 2:
            return None
        return self.without(self.random.choice(idle))

    def without(self, gone: str) -> Topology:
        """Without a broker; its neighbours are joined."""
        around = self.topology.neighbours(gone)
        joined = [
            Link((a, b), latency_ms=float(self.random.randint(1, 50)))
            for a, b in pairwise(around)
            if b not in self.topology.neighbours(a)
        ]
        return replace(
            self.topology,
            brokers=tuple(broker for broker in self.topology.brokers if broker.id != gone),
            links=(*(link for link in self.topology.links if gone not in link.ends), *joined),
        )

    def other_links(self) -> Topology | None:
        """One link more, one less, or with another latency; None when that cannot be."""
        topology, random = self.topology, self.random
        ids = topology.broker_ids
        absent = [(a, b) for a in ids for b in ids if a < b and b not in topology.neighbours(a)]
        choice = random.random()
        if choice < 0.4 and absent:
            link = Link(random.choice(absent), latency_ms=float(random.randint(1, 50)))
            return replace(topology, links=(*topology.links, link))
        if choice < 0.7 and topology.links:
            gone = random.choice(topology.links)
            left = tuple(link for link in topology.links if link is not gone)
            changed = replace(topology, links=left)
            return changed if is_connected(changed) else None
        if topology.links:
            chosen = random.choice(topology.links)
            other = replace(chosen, latency_ms=float(random.randint(1, 100)))
            links = tuple(other if link is chosen else link for link in topology.links)
            return replace(topology, links=links)
        return None

    def other_transformation(self) -> Topology:
        """Another one on a link."""
        topology, random = self.topology, self.random
        chosen = random.choice(topology.links)
        other = replace(chosen, transformation=random.choice(list(Transformation)))
        links = tuple(other if link is chosen else link for link in topology.links)
        return replace(topology, links=links)

    def left_over(self) -> list[str]:
        """What of earlier shapes is still known somewhere."""
        faults = []
        for broker in self.topology.broker_ids:
            core = self._core(broker)
            trees = sorted(core.trees._awaited), len(core.trees._held)
            shape = core.control.shapes.newest
            stale = [tree for tree in core.query.table.roots if not shape.has_tree(tree)]
            if stale or any(trees):
                faults.append(f"{broker}: {stale} {trees}")
            neighbours = {f"broker/{other}" for other in shape.declared.neighbours(broker)}
            known = {f"broker/{other}" for other in core._links.peers("broker")}
            if not known <= neighbours:
                faults.append(f"{broker} still knows {known - neighbours}")
        return faults


WHOLE = (
    ("off",),
    test_exactly_once.random_path,
    test_exactly_once.random_message,
    test_exactly_once.change_something,
)
CUT = (
    ("off", "projection", "full"),
    test_transformation.random_profile,
    test_transformation.random_message,
    test_transformation.change_something,
)


def run(seed: int, *, cut: bool = False) -> ChangingScenario:
    """``cut``: on some links messages are cut, and which these are changes as well."""
    transformations, random_profile, random_message, change_something = CUT if cut else WHOLE
    scenario = ChangingScenario(seed, brokers=2 + seed % 6, transformations=transformations)
    random = scenario.random
    scenario.net.disturb(
        cut_every=random.choice([0.5, 2.0, 10.0, 1000.0]),
        crash_every=random.choice([2.0, 5.0, 1000.0]),
        may_crash=scenario.server_peers,
    )
    for _ in range(random.randint(1, 5)):
        scenario.add_profile(random_profile(scenario))
    sources = [scenario.register_source()]
    for _ in range(random.randint(20, 50)):
        action = random.random()
        if action < 0.65:
            scenario.publish(random.choice(sources), random_message(scenario))
        elif action < 0.7 and len(sources) < 4:
            sources.append(scenario.register_source())
        elif action < 0.8:
            change_something(scenario)
        else:
            scenario.change_shape() if random.random() < 0.6 else scenario.change_link()
            if random.random() < 0.2:  # long enough for a link to count as down
                scenario.net.run_until(lambda: False, random.uniform(4, 10))
        scenario.net.run_until(lambda: False, random.uniform(0, 0.3))
    if random.random() < 0.5:
        scenario.net.broken.clear()
    scenario.settle()
    scenario.wait(scenario.is_settled, "the last change is not settled")
    scenario.net.run_until(lambda: False, 30.0)
    return scenario


@pytest.mark.parametrize(
    ("first", "cut"),
    [
        *((first, False) for first in SEEDS[::RUNS_PER_TEST]),
        *((first, True) for first in SEEDS[: len(SEEDS) // 2 : RUNS_PER_TEST]),
    ],
)
def test_nothing_is_lost_or_doubled_when_links_and_brokers_come_and_go(
    first: int, cut: bool
) -> None:
    these = batch(SEEDS, first, RUNS_PER_TEST)
    scenarios = [run_well(seed, cut=cut) for seed in these[: len(these) // 2 if cut else None]]
    cores = [scenario.registration for scenario in scenarios]
    assert sum(core.shapes.newest.version for core in cores if core) > len(scenarios)


def run_well(seed: int, *, cut: bool) -> ChangingScenario:
    scenario = run(seed, cut=cut)
    assert not scenario.missing(), f"seed {seed}"
    assert not scenario.wrong(), f"seed {seed}"
    assert not scenario.unexplained(), f"seed {seed}"
    assert not scenario.left_over(), f"seed {seed}"
    return scenario


@pytest.mark.parametrize("seed", known_seeds(3))
def test_a_lost_broker_takes_with_it_only_what_is_said(seed: int) -> None:
    """It dies with its disk while messages are on their way; those that are published when it has
    been taken out reach everybody else, and nothing ever comes twice or out of order."""
    scenario = ChangingScenario(seed, brokers=5)
    random, net = scenario.random, scenario.net
    net.faulty = False
    for _ in range(8):
        scenario.add_profile(test_exactly_once.random_path(scenario))
    sources = [scenario.register_source() for _ in range(3)]

    def publish(count: int) -> None:
        for _ in range(count):
            scenario.publish(random.choice(sources), b'<m a="1"><part b="2">word1</part></m>')
            net.run_until(lambda: False, random.uniform(0, 0.05))

    publish(20)
    lost = random.choice(scenario.topology.broker_ids)
    net.remove(f"broker/{lost}")
    sources = [source for source in sources if source.root != lost]
    hosted = [name for name, each in scenario.interests.items() if each.subscriber.host == lost]
    published_there = [s.source for s in scenario.sources.values() if s.root == lost]
    publish(10 if sources else 0)
    changed = scenario.without(lost)
    answer = scenario.ask(scenario.registrar, "topology.apply", text=to_toml(changed), lost=[lost])
    assert answer["lost"] == {"profiles": hosted, "sources": published_there}
    scenario.topology = changed
    scenario.wait(scenario.is_settled, "the change is not settled")
    for profile in hosted:
        del scenario.interests[profile]
    before = len(scenario.published)
    publish(20 if sources else 0)
    net.run_until(lambda: False, 60.0)
    late = {(each.source, each.number) for each in scenario.published[before:]}
    assert not [each for each in scenario.missing() if (each[1], each[2]) in late]
    assert not scenario.wrong()
    assert not scenario.left_over()


@pytest.mark.parametrize("seed", [2, 5, 8])
def test_what_a_lost_root_broker_had_passed_on_goes_its_way(seed: int) -> None:
    """It waits for a broken link when the root dies, and takes the words of the source's schema."""
    scenario = ChangingScenario(seed, brokers=5, formats=("dictionary",))
    random, net = scenario.random, scenario.net
    net.faulty = False
    for _ in range(4):
        scenario.add_profile("/m")
    source = scenario.register_source()
    lost = source.root
    for _ in range(10):
        scenario.publish(source, b'<m a="1"><part b="2">word1</part></m>')
    net.run_until(lambda: False, 0.2)
    beside = [link.ends for link in scenario.topology.links if lost not in link.ends]
    net.break_link(*map("broker/{}".format, random.choice(beside)))
    for _ in range(10):
        scenario.publish(source, b'<m a="1"><part b="2">word1</part></m>')
    key = f"broker/{lost}", Flow.MESSAGE, source.source
    scenario.wait(lambda: source.links.acknowledged(*key) == 20, "not all are accepted")
    net.run_until(lambda: False, 2.0)
    net.remove(f"broker/{lost}")
    changed = scenario.without(lost)
    scenario.ask(scenario.registrar, "topology.apply", text=to_toml(changed), lost=[lost])
    net.run_until(lambda: False, 0.05)
    net.broken.clear()
    scenario.topology = changed
    scenario.wait(scenario.is_settled, "the change is not settled")
    net.run_until(lambda: False, 30.0)
    for broker in changed.broker_ids:
        assert not scenario._core(broker).statistics().data.abandoned, broker
        assert scenario._core(broker).control.sources[source.source].root != lost
    gone = [i.profile for i in scenario.interests.values() if i.subscriber.host == lost]
    assert not [each for each in scenario.missing() if each[0] not in gone]
    assert not scenario.wrong()
    assert not scenario.left_over()
