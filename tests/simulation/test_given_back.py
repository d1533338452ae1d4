"""Brokers that cannot read what comes give it back, while links and brokers come and go.

What is given back comes again behind later messages, so order is the one thing that does not hold.
"""

from __future__ import annotations

import pytest

from formats import DecodeError
from onyx.broker.broker_core import BrokerCore
from tests.simulation import test_exactly_once
from tests.simulation.seeds import seeds
from tests.simulation.test_changing_shapes import ChangingScenario

SEEDS = seeds(3)


class UnableScenario(ChangingScenario):
    """Every broker but a root broker lacks the means to read one message in three as it comes."""

    keeps_order = False

    def __post_init__(self) -> None:
        super().__post_init__()
        watched = self.witness.watched
        self.witness.watched = lambda core: unable(watched(core))  # type: ignore[method-assign]


def unable(core: BrokerCore) -> BrokerCore:
    open_ = core.data._open

    def opened(root, source, number, hops, format_name, *rest):  # type: ignore[no-untyped-def]
        if hops and format_name == "text" and number % 3 == 0:
            raise DecodeError("unknown-format", "lost")
        return open_(root, source, number, hops, format_name, *rest)

    core.data._open = opened  # type: ignore[method-assign]
    return core


def run(seed: int) -> UnableScenario:
    scenario = UnableScenario(seed, brokers=3 + seed % 4, formats=("text",))
    random = scenario.random
    for _ in range(3):
        scenario.add_profile("/m")
    sources = [scenario.register_source() for _ in range(2)]
    scenario.net.disturb(
        cut_every=random.choice([0.5, 2.0, 1000.0]),
        crash_every=random.choice([3.0, 1000.0]),
        may_crash=scenario.server_peers,
    )
    for _ in range(60):
        if random.random() < 0.8:
            scenario.publish(random.choice(sources), test_exactly_once.random_message(scenario))
        else:
            scenario.change_shape()
        scenario.net.run_until(lambda: False, random.uniform(0, 0.1))
    scenario.settle()
    scenario.wait(scenario.is_settled, "the last change is not settled")
    scenario.net.run_until(lambda: False, 30.0)
    return scenario


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_given_back_while_its_tree_goes_is_not_lost(seed: int) -> None:
    scenario = run(seed)
    assert not scenario.missing(), f"seed {seed}"
    assert not scenario.wrong(), f"seed {seed}"
    assert not scenario.left_over(), f"seed {seed}"
