"""Graphs and documents, and profiles of both, in networks that break; see scenario.py."""

from __future__ import annotations

from collections import Counter

from tests.simulation.scenario import Scenario, media_type_of
from tests.simulation.seeds import seeds
from tests.simulation.test_exactly_once import (
    change_something,
    live_through,
    random_message,
    random_path,
)

SEEDS = seeds(24)
PREFIXES = "PREFIX x: <urn:x:> "
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def random_profile(scenario: Scenario) -> str:
    """Half of them of graphs: stars, joins, a filter, each form."""
    random = scenario.random
    if random.random() < 0.4:
        return random.choice([random_path(scenario), "/*", "//*[@about]"])
    key, value = random.choice("abc"), random.randrange(3)
    where = random.choice(
        [
            f'?s x:{key} "{value}"',
            f'?s x:{key} "{value}" ; x:next ?other',
            f'?s x:next ?o . ?o x:{key} "{value}"',
            f'?s x:{key} ?v FILTER(?v != "{value}")',
            f'{{ ?s x:{key} "{value}" }} UNION {{ ?s x:next ?o }}',
            f"?s ?p x:s{value}",
            f"?s x:n ?v FILTER(?v > {value})",
        ]
    )
    form = random.choice(["SELECT * WHERE", "ASK", "CONSTRUCT { ?s x:found ?s } WHERE"])
    return f"{PREFIXES}{form} {{ {where} }}"


def random_graph(scenario: Scenario) -> bytes:
    """Turtle, RDF/XML, or a document that is no graph; one in fifteen is cut off."""
    random = scenario.random
    kind = random.random()
    if kind < 0.3:
        return random_message(scenario)
    facts = [
        (subject, [(key, random.randrange(3)) for key in random.sample("abc", 2)])
        for subject in range(random.randrange(1, 4))
    ]
    return turtle(scenario, facts) if kind < 0.7 else rdf_xml(scenario, facts)


def turtle(scenario: Scenario, facts: list[tuple[int, list[tuple[str, int]]]]) -> bytes:
    lines = ["@prefix x: <urn:x:> ."]
    if scenario.random.random() < 1 / 15:
        return (lines[0] + " x:s x:cut of").encode()
    for subject, values in facts:
        said = " ; ".join(f'x:{key} "{value}"' for key, value in values)
        after = scenario.random.randrange(4)
        lines.append(f"x:s{subject} {said} ; x:next x:s{after} ; x:n {subject} .")
    return "\n".join(lines).encode()


def rdf_xml(scenario: Scenario, facts: list[tuple[int, list[tuple[str, int]]]]) -> bytes:
    described = []
    for subject, values in facts:
        said = "".join(f"<x:{key}>{value}</x:{key}>" for key, value in values)
        after = scenario.random.randrange(4)
        described.append(
            f'<rdf:Description rdf:about="urn:x:s{subject}">{said}'
            f'<x:next rdf:resource="urn:x:s{after}"/></rdf:Description>'
        )
    text = "".join(described)
    return f'<rdf:RDF xmlns:rdf="{RDF}" xmlns:x="urn:x:">{text}</rdf:RDF>'.encode()


def right(seed: int) -> Scenario:
    transformations = ("off", "projection", "full") if seed % 2 else ("off",)
    scenario = Scenario(seed, 1 + seed % 5, transformations=transformations)

    def change(scenario: Scenario) -> None:
        change_something(scenario, random_profile)

    live_through(scenario, 2, random_profile, random_graph, change)
    assert not scenario.missing(), f"seed {seed}"
    assert not scenario.wrong(), f"seed {seed}"
    assert not scenario.unexplained(), f"seed {seed}"
    return scenario


def test_every_message_reaches_each_live_profile_of_its_readings_once() -> None:
    delivered: Counter[tuple[str, bool]] = Counter()
    for seed in SEEDS:
        scenario = right(seed)
        data = {(one.source, one.number): one.data for one in scenario.published}
        for interest in scenario.interests.values():
            is_graph = interest.versions[-1].text.startswith("PREFIX")
            for key in interest.subscriber.got:
                delivered[media_type_of(data[key]), is_graph] += 1
    turtles, documents = "text/turtle", "application/xml"
    assert delivered[turtles, True] > 20
    assert delivered[documents, True] > 20
    assert delivered[documents, False] > 8
