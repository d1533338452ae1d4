"""Processes stand still and go on, connections carry one way only: nothing is lost, doubled, out of
order, or unexplained."""

from __future__ import annotations

from collections import Counter

import pytest

from overlay.link.errors import ProtocolError
from overlay.link.link_layer import Session
from tests.simulation import test_exactly_once
from tests.simulation.scenario import Scenario
from tests.simulation.seeds import batch, known_seeds, seeds
from tests.simulation.silences import Silences

SEEDS = seeds(20)


def run(seed: int) -> tuple[Scenario, Silences]:
    """Until the last connection that carried one way only has been given up."""
    scenario = Scenario(seed, brokers=2 + seed % 4)
    scenario.net.may_crash = scenario.server_peers
    silences = Silences(scenario.net, scenario.random.choice([2.0, 6.0]))
    silences.begin()
    test_exactly_once.live_through(
        *(scenario, 2, test_exactly_once.random_path),
        *(test_exactly_once.random_message, test_exactly_once.change_something),
    )
    limits = scenario.topology.limits.link
    scenario.net.run_until(lambda: False, 3 * limits.keepalive_seconds + limits.hello_seconds)
    return scenario, silences


@pytest.mark.parametrize("first", SEEDS[::20])
def test_who_hears_nothing_for_a_while_misses_nothing(first: int) -> None:
    seen: Counter[str] = Counter()
    for seed in (these := batch(SEEDS, first, 20)):
        scenario, silences = run(seed)
        assert not scenario.missing(), f"seed {seed}"
        assert not scenario.wrong(), f"seed {seed}"
        assert not scenario.unexplained(), f"seed {seed}"
        seen += silences.seen
    assert seen["pause"] > len(these)
    assert seen["one way"] > len(these)


def missing_behind_a_silence(seed: int) -> bool:
    """Whether something has not come, a while after a connection of each broker has fallen silent
    for good in a network without other faults."""
    scenario = Scenario(seed, brokers=3)
    scenario.net.faulty = False
    for _ in range(4):
        scenario.add_profile("/m")
    source = scenario.register_source()
    scenario.settle()
    for broker in scenario.topology.broker_ids:
        scenario.net.deafen(scenario.net.nodes[f"broker/{broker}"])
    scenario.publish(source, b"<m/>")
    limits = scenario.topology.limits.link
    scenario.net.run_until(lambda: False, 4 * limits.keepalive_seconds + limits.hello_seconds)
    return bool(scenario.missing())


@pytest.mark.parametrize("are_given_up", [True, False])
def test_what_a_silent_connection_holds_up_comes_when_it_is_given_up(
    are_given_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = Session.report

    def report_others(self: Session, error: ProtocolError) -> None:
        if error.code != "silent":
            report(self, error)

    if not are_given_up:
        monkeypatch.setattr(Session, "report", report_others)
    assert any(map(missing_behind_a_silence, known_seeds(12))) is not are_given_up
