"""Profiles that ask for what is above a class, while taxonomies change, profiles move, links break
and processes die: whoever follows the taxonomies gets each message once; see scenario.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import networkx as nx
import pytest

from onyx.broker.broker_core import BrokerCore
from onyx.broker.profiles.live_wait import LiveVersion
from registration.registration_core import RegistrationCore
from tests.simulation.moving import MovingScenario
from tests.simulation.scenario import Interest, Version
from tests.simulation.seeds import batch, seeds
from yfilter.graph.query_text import said_above

SEEDS = seeds(12)
RUNS_PER_TEST = 6
STEPS = 40
E = "urn:x:"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
NAMES = [f"C{number}" for number in range(6)]


def sparql(name: str) -> str:
    return f"SELECT ?x {{ ?x a/^<{RDFS}subClassOf>* <{E}{name}> }}"


def rdql(name: str) -> str:
    return f"SELECT ?x WHERE (?x, <{E}is>, ?x) SUCHTHAT ?x >= <{E}{name}>"


@dataclass
class Above(MovingScenario):
    """``asked``: the class that a profile asks for.  Of a profile the versions are what it is to
    give by the taxonomies, without asking any, so that pyoxigraph answers."""

    asked: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.taxonomy = nx.DiGraph()
        self.recent = [self.taxonomy]  # which a broker may still go by; the last is that of now

    def put(self) -> None:
        """Another taxonomy; classes have several above them, and only those behind them."""
        self.taxonomy = nx.DiGraph(
            (below, above)
            for place, below in enumerate(NAMES)
            for above in NAMES[place + 1 :]
            if self.random.random() < 0.3
        )
        text = "".join(f"<{E}{a}> <{RDFS}subClassOf> <{E}{b}> .\n" for a, b in self.taxonomy.edges)
        put = {"name": "classes", "text": text.encode(), "syntax": "application/n-triples"}
        self.ask(self.registrar, "taxonomy.put", **put)
        self.recent.append(self.taxonomy)
        for interest in self.interests.values():
            self.expect(interest)

    def above(self, name: str, taxonomy: nx.DiGraph) -> set[str]:
        found = nx.descendants(taxonomy, name) if name in taxonomy else set()
        return {f"{E}{each}" for each in found}

    def add(self, name: str) -> None:
        interest = self.add_profile(self.random.choice((sparql, rdql))(name))
        self.asked[interest.profile] = name
        interest.versions[0].text = self.expected(name, self.taxonomy)

    def change(self, interest: Interest, name: str) -> None:
        self.asked[interest.profile] = name
        self.expect(interest)
        self.ask_host(interest, "profile.update", text=sparql(name), wait=True)

    def expected(self, name: str, taxonomy: nx.DiGraph) -> str:
        names = ", ".join(f"<{each}>" for each in sorted({E + name, *self.above(name, taxonomy)}))
        return f"SELECT DISTINCT ?x {{ ?x a ?c FILTER(?c IN ({names})) }}"

    def expect(self, interest: Interest) -> None:
        """What a profile asks for gives something else from now on: what it asks for now, by the
        taxonomies of before as well."""
        for taxonomy in self.recent:
            text = self.expected(self.asked[interest.profile], taxonomy)
            if text != interest.versions[-1].text:
                interest.versions.append(Version(text, self.net.now))

    def follow(self) -> None:
        """Wait until all profiles have followed, and are live."""
        for interest in self.interests.values():
            if interest.versions[-1].live > self.net.now:
                self.wait(partial(self.has_followed, interest), f"{interest} does not follow")
                interest.versions[-1].live = self.net.now
                for version in interest.versions[:-1]:
                    version.ended = min(version.ended, self.net.now)

        if self.is_known():
            self.recent = [self.taxonomy]

    def is_known(self) -> bool:
        """Whether all brokers go by the taxonomy of now."""
        registration = self.net.nodes[f"registration/{self.topology.registration[0].id}"].core
        cores = [self.net.nodes[f"broker/{broker}"].core for broker in self.topology.broker_ids]
        return isinstance(registration, RegistrationCore) and all(
            isinstance(core, BrokerCore)
            and core.taxonomies.version() == registration.statistics().taxonomies.version
            for core in cores
        )

    def has_followed(self, interest: Interest) -> bool:
        """At its host: what the registration service has heard of it may be what it was several
        taxonomies ago, and the same."""
        if not self.is_known():
            return False
        registration = self.net.nodes[f"registration/{self.topology.registration[0].id}"].core
        host = registration.catalog.profiles[interest.profile].host
        query = self.net.nodes[f"broker/{host}"].core.query
        hosted = query.profiles.get(interest.profile)
        if hosted is None or LiveVersion(hosted.profile, hosted.version) in query.waits:
            return False
        name = self.asked[interest.profile]
        said = said_above(hosted.text).get(E + name, ())
        return name in hosted.text and set(said) == self.above(name, self.taxonomy)

    def message(self) -> bytes:
        number = len(self.published)
        classes = self.random.sample(NAMES, self.random.randrange(1, 3))
        if self.random.random() < 0.5:
            types = " , ".join(f"x:{name}" for name in classes)
            return f"@prefix x: <{E}> . x:s{number} a {types} ; x:is x:s{number} .".encode()
        types = "".join(f'<r:type r:resource="{E}{name}"/>' for name in classes)
        said = f'<r:Description r:about="{E}{number}">{types}<x:is r:resource="{E}{number}"/>'
        return f'<r:RDF xmlns:r="{RDF}" xmlns:x="{E}">{said}</r:Description></r:RDF>'.encode()

    def settle(self) -> None:
        self.net.faulty = False
        self.follow()
        super().settle()


def run(seed: int) -> Above:
    texts = [kind(name) for kind in (sparql, rdql) for name in NAMES]
    scenario = Above(seed, brokers=2 + seed % 4, texts=texts)
    random = scenario.random
    scenario.put()
    for _ in range(4):
        scenario.add(random.choice(NAMES[:4]))
    sources = [scenario.register_source() for _ in range(2)]
    scenario.net.disturb(
        cut_every=random.choice([0.5, 2.0, 10.0]),
        crash_every=random.choice([2.0, 5.0, 1000.0]),
        may_crash=scenario.server_peers,
    )
    for _ in range(STEPS):
        action = random.random()
        if action < 0.7:
            scenario.publish(random.choice(sources), scenario.message())
        elif action < 0.8:
            scenario.put()
        elif action < 0.9:
            scenario.follow()
        elif action < 0.95:
            scenario.apply_plan()
        else:
            scenario.change(random.choice([*scenario.interests.values()]), random.choice(NAMES))
        scenario.net.run_until(lambda: False, random.uniform(0, 0.3))
    scenario.follow()
    scenario.apply_plan()
    for _ in range(6):
        scenario.publish(random.choice(sources), scenario.message())
    scenario.settle()
    return scenario


@pytest.mark.parametrize("first", SEEDS[::RUNS_PER_TEST])
def test_profiles_follow_the_taxonomies(first: int) -> None:
    delivered = by_later = moved = 0
    for seed in (these := batch(SEEDS, first, RUNS_PER_TEST)):
        scenario = run(seed)
        assert not scenario.missing(), f"seed {seed}"
        assert not scenario.wrong(), f"seed {seed}"
        assert not scenario.unexplained(), f"seed {seed}"
        assert not scenario.misplaced(), f"seed {seed}"
        moved += scenario.moved()
        for interest in scenario.interests.values():
            delivered += len(interest.subscriber.got)
            by_later += sum(
                bool(interest.subscriber.got[message.source, message.number])
                for message in scenario.published
                if message.at >= interest.versions[-1].live and len(interest.versions) > 1
            )
    assert delivered > 16 * len(these), delivered
    assert by_later >= len(these) and moved, (by_later, moved)
