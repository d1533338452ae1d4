"""Taxonomies change under messages while links break and processes die: every broker closes a
message by what its root broker knew, so that equal profiles anywhere get the same."""

from __future__ import annotations

import pytest

from onyx.broker.broker_core import BrokerCore
from tests.simulation.scenario import Scenario
from tests.simulation.seeds import batch, seeds

SEEDS = seeds(12)
RUNS_PER_TEST = 6
MESSAGES = 60
CHANGES = 5

STEP = "Q{urn:onyx:graph}"
CLASS = f"{STEP}d/{STEP}k/{STEP}c/@r"
SUB_CLASS = "http://www.w3.org/2000/01/rdf-schema#subClassOf"
TAXONOMIES = (
    f"<urn:Cat> <{SUB_CLASS}> <urn:Pet> .".encode(),
    f"<urn:Cat> <{SUB_CLASS}> <urn:Animal> .".encode(),
)


def message(number: int) -> bytes:
    return (
        '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        f'<r:Description r:about="urn:{number}"><r:type r:resource="urn:Cat"/></r:Description>'
        "</r:RDF>"
    ).encode()


def asking(name: str) -> str:
    return f"/{STEP}g[{CLASS} = 'urn:{name}']"


class Classes(Scenario):
    """What must be delivered is what is asked for by a class that is stated."""

    def missing(self) -> list[tuple[str, str, int]]:
        return [
            (interest.profile, message.source, message.number)
            for interest in self.interests.values()
            for message in self.published
            if interest.versions[0].text == asking("Cat")
            and not interest.subscriber.got[message.source, message.number]
        ]


def run(seed: int) -> Classes:
    scenario = Classes(seed, 3 + seed % 4)
    random = scenario.random
    for name in ("Pet", "Pet", "Pet", "Animal", "Animal", "Cat"):
        scenario.add_profile(asking(name))
    sources = [scenario.register_source() for _ in range(2)]
    scenario.net.disturb(
        cut_every=random.choice([1.0, 5.0]),
        crash_every=random.choice([3.0, 10.0]),
        may_crash=scenario.server_peers,
    )
    for number in range(MESSAGES):
        if number % (MESSAGES // CHANGES) == 0:
            put(scenario, TAXONOMIES[random.randrange(2)])
        scenario.publish(random.choice(sources), message(number))
        scenario.net.run_until(lambda: False, random.uniform(0, 0.1))
    scenario.settle()
    return scenario


def put(scenario: Scenario, text: bytes) -> None:
    asked = {"name": "classes", "text": text, "syntax": "application/n-triples"}
    scenario.ask(scenario.registrar, "taxonomy.put", **asked)


def taken(scenario: Scenario) -> dict[str, list[set[tuple[str, int]]]]:
    """What each profile got, by its text."""
    found: dict[str, list[set[tuple[str, int]]]] = {}
    for interest in scenario.interests.values():
        got = interest.subscriber.got
        assert set(got.values()) <= {1}, (scenario.seed, interest.profile)
        found.setdefault(interest.versions[0].text, []).append(set(got))
    return found


@pytest.mark.parametrize("first", SEEDS[::RUNS_PER_TEST])
def test_equal_profiles_get_the_same_wherever_they_are(first: int) -> None:
    shares = []
    for seed in batch(SEEDS, first, RUNS_PER_TEST):
        scenario = run(seed)
        found = taken(scenario)
        for text, all_got in found.items():
            assert all(got == all_got[0] for got in all_got), f"seed {seed}: {text}"
        pets, animals = found[asking("Pet")][0], found[asking("Animal")][0]
        assert not pets & animals, f"seed {seed}: closed by one taxonomy or the other"
        everything = {(each.source, each.number) for each in scenario.published}
        assert found[asking("Cat")] == [everything], f"seed {seed}"
        shares.append(len(pets) / len(everything))
    assert any(0 < share < 1 for share in shares), "none was closed in two ways"


def test_after_a_change_all_brokers_have_it() -> None:
    scenario = run(1)
    put(scenario, TAXONOMIES[0])
    scenario.net.run_until(lambda: False, 30.0)
    for source in scenario.sources.values():
        before = {name: got[0] for name, got in taken(scenario).items()}
        scenario.publish(source, message(MESSAGES))
        scenario.settle()
        after = taken(scenario)
        assert all(len(got - before[asking("Pet")]) == 1 for got in after[asking("Pet")])
        assert all(got == before[asking("Animal")] for got in after[asking("Animal")])
    for node in scenario.net.nodes.values():
        if isinstance(node.core, BrokerCore):
            known = node.core.taxonomies
            assert {row.version for row in known._in_force.values()} == {known.version()}
