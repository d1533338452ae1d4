"""Processes stand still and go on, connections carry one way only: nothing is lost, doubled, out of
order, or unexplained."""

from __future__ import annotations

from collections import Counter

import pytest

from overlay.link.errors import ProtocolError
from overlay.link.session import Session
from tests.simulation import test_exactly_once
from tests.simulation.scenario import Scenario
from tests.simulation.seeds import seeds
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
    for seed in range(first, first + 20):
        scenario, silences = run(seed)
        assert not scenario.missing(), f"seed {seed}"
        assert not scenario.wrong(), f"seed {seed}"
        assert not scenario.unexplained(), f"seed {seed}"
        seen += silences.seen
    assert seen["pause"] > 20
    assert seen["one way"] > 20


def test_it_shows_where_silent_connections_are_not_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = Session.report

    def without(self: Session, error: ProtocolError) -> None:
        if error.code != "silent":
            report(self, error)

    monkeypatch.setattr(Session, "report", without)

    def shows(seed: int) -> bool:
        try:
            scenario, _ = run(seed)
        except AssertionError:  # it waits for what does not come
            return True
        return bool(scenario.missing() or scenario.wrong() or scenario.unexplained())

    assert any(shows(seed) for seed in range(1, 9))
