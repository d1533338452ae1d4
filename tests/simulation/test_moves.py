"""Profiles move from broker to broker while links break, come and go, processes die and profiles
change: every message reaches each live profile once, before, during and after; see moving.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from onyx.broker.broker_core import BrokerCore
from tests.simulation.held_reader import HeldReader
from tests.simulation.moving import MovingScenario
from tests.simulation.scenario import Scenario
from tests.simulation.seeds import batch, seeds, until_seen
from tests.simulation.test_changing_shapes import ChangingScenario
from tests.simulation.test_exactly_once import change_something, random_message, random_path
from tests.simulation.test_graphs import PREFIXES, random_graph

SEEDS = seeds(12)
RUNS_PER_TEST = 6

# What test_exactly_once.random_path makes.
TEXTS = [
    text
    for key in "abc"
    for value in range(3)
    for text in (
        "/m",
        f"/m[@{key} = '{value}']",
        f"/m/part[@{key} = '{value}']",
        f"//part[@{key} > {value}]",
        f"/m[part[@a = '{value}']][part/@b = '{value}']",
        f"/m[@{key} = '{value}' or part/@c = '0']",
        f"//part[text() = 'word{value}']",
    )
]


GRAPH_TEXTS = [
    PREFIXES + query
    for key in "abc"
    for value in range(3)
    for query in (
        f'SELECT * WHERE {{ ?s x:{key} "{value}" }}',
        f'ASK {{ ?s x:{key} "{value}" ; x:next ?other }}',
        f'CONSTRUCT {{ ?s x:found ?o }} WHERE {{ ?s x:next ?o . ?o x:{key} "{value}" }}',
    )
]


class MovingAndChanging(MovingScenario, ChangingScenario):
    """Also the broadcast trees are rebuilt; no broker leaves, as profiles may be on their way to
    any."""

    def without_a_broker(self) -> None:
        return None

    def settle(self) -> None:
        super().settle()
        self.wait(self.is_settled, "the last change is not settled")
        self.net.run_until(lambda: False, 30.0)


@dataclass(frozen=True)
class Traffic:
    """What profiles say at first, what they are changed to, and what is published."""

    texts: Sequence[str] = tuple(TEXTS)
    profile: Callable[[Scenario], str] = random_path
    message: Callable[[Scenario], bytes] = random_message


DOCUMENTS = Traffic()
GRAPHS = Traffic(GRAPH_TEXTS, lambda scenario: scenario.random.choice(GRAPH_TEXTS), random_graph)


def run(
    seed: int, kind: type[MovingScenario] = MovingScenario, traffic: Traffic = DOCUMENTS
) -> MovingScenario:
    scenario = kind(seed, brokers=2 + seed % 5, texts=list(traffic.texts))
    random = scenario.random
    scenario.net.disturb(
        cut_every=random.choice([0.5, 2.0, 10.0]),
        crash_every=random.choice([1.0, 3.0, 1000.0]),
        may_crash=scenario.server_peers,
    )
    for _ in range(random.randint(2, 6)):
        scenario.add_profile(random.choice(traffic.texts))
    sources = [scenario.register_source()]
    for _ in range(random.randint(20, 60)):
        action = random.random()
        if action < 0.7:
            scenario.publish(random.choice(sources), traffic.message(scenario))
        elif action < 0.73 and len(sources) < 3:
            sources.append(scenario.register_source())
        elif action < 0.85:
            scenario.apply_plan()
        elif action < 0.9:
            if isinstance(scenario, ChangingScenario) and random.random() < 0.8:
                scenario.change_shape() if random.random() < 0.7 else scenario.change_link()
            else:
                scenario.change_course()
        else:
            change_something(scenario, traffic.profile)
        scenario.net.run_until(lambda: False, random.uniform(0, 0.3))
    scenario.settle()
    return scenario


def check(
    seed: int, kind: type[MovingScenario] = MovingScenario, traffic: Traffic = DOCUMENTS
) -> MovingScenario:
    scenario = run(seed, kind, traffic)
    assert not scenario.missing(), f"seed {seed}"
    assert not scenario.wrong(), f"seed {seed}"
    assert not scenario.unexplained(), f"seed {seed}"
    assert not scenario.misplaced(), f"seed {seed}"
    return scenario


@pytest.mark.parametrize("first", SEEDS[::RUNS_PER_TEST])
def test_profiles_move_and_every_message_arrives_once(first: int) -> None:
    moved = 0
    for seed in (these := batch(SEEDS, first, RUNS_PER_TEST)):
        moved += check(seed).moved()
    assert moved > 2 * len(these)


class HeldMoves(MovingScenario):
    subscriber = HeldReader


def test_what_is_held_moves_and_is_read_again_as_it_was() -> None:
    again = moved = released = 0
    for seed in SEEDS:
        scenario = check(seed, HeldMoves)
        moved += scenario.moved()
        for interest in scenario.interests.values():
            reader = interest.subscriber
            assert isinstance(reader, HeldReader)
            assert not reader.different, f"seed {seed}"
            again += reader.again
        for broker in scenario.topology.broker_ids:
            core = scenario.net.nodes[f"broker/{broker}"].core
            assert isinstance(core, BrokerCore)
            released += sum(box.floor for box in core.mailboxes._boxes.values())
    assert again
    assert released
    assert moved > len(SEEDS)


def test_graph_profiles_move_under_graphs() -> None:
    moved = sum(check(seed, traffic=GRAPHS).moved() for seed in SEEDS)
    assert moved > len(SEEDS)


def test_profiles_move_while_trees_are_rebuilt() -> None:
    """In more seeds if no tree was rebuilt."""
    seen: Counter[str] = Counter()
    these = SEEDS[: len(SEEDS) // 2]
    for seed in until_seen(these, seen, ["versions"]):
        scenario = check(seed, MovingAndChanging)
        assert isinstance(scenario, MovingAndChanging)
        assert not scenario.left_over(), f"seed {seed}"
        assert scenario.registration is not None
        seen["moved"] += scenario.moved()
        seen["versions"] += scenario.registration.shapes.newest.version
    assert seen["moved"] > len(SEEDS) // 3 and seen["versions"]
