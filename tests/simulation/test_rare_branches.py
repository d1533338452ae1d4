"""Networks whose bounds are so tiny that what is rare happens all the time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest

from onyx.broker.deliveries.delivery_log import BODY_SPACE
from overlay.link import early_leaving, journal
from overlay.link.errors import StoreError
from overlay.link.events import Delete, Put
from overlay.link.suspect import CoreFailed
from tests.simulation import test_exactly_once
from tests.simulation.rare_branches import LIMITS, LINK_LIMITS, TINY, tiny_bounds, with_tiny_limits
from tests.simulation.scenario import Scenario
from tests.simulation.seeds import seeds, until_seen
from tests.simulation.silences import Silences
from tests.simulation.sim_disk import MemoryDisk

SEEDS = seeds(12)


class TinyScenario(Scenario):
    """``bounds`` that are."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.topology, self.bounds = with_tiny_limits(self.topology, self.seed)


def run(seed: int) -> TinyScenario:
    with tiny_bounds(seed) as bounds:
        scenario = TinyScenario(seed, brokers=2 + seed % 4)
        scenario.net.early_deaths = 0.02
        if seed % 3 == 0:
            scenario.net.may_crash = scenario.server_peers
            Silences(scenario.net, 5.0).begin()
        Silences(scenario.net, 2.0, "subscriber").begin()
        test_exactly_once.live_through(
            *(scenario, 2, test_exactly_once.random_path),
            *(test_exactly_once.random_message, test_exactly_once.change_something),
        )
        scenario.net.run_until(lambda: False, 60.0)
    scenario.bounds += bounds
    return scenario


def faults(scenario: Scenario) -> list[object]:
    return [*scenario.missing(), *scenario.wrong(), *scenario.unexplained()]


def test_what_is_rare_loses_doubles_and_disorders_nothing() -> None:
    """In more seeds if something rare has not happened."""
    rare = TINY.keys() | LIMITS.keys() | LINK_LIMITS.keys()
    seen: Counter[str] = Counter()
    for seed in until_seen(SEEDS, seen, rare):
        scenario = run(seed)
        assert faults(scenario) == [], f"seed {seed}: {scenario.bounds}"
        seen.update(scenario.bounds)
    assert seen.keys() == rare


def test_the_usual_bounds_are_back() -> None:
    with tiny_bounds(3) as bounds:
        assert "overlay.link.early_leaving.EARLY_MAX" in bounds
        assert early_leaving.EARLY_MAX == journal.EARLY_MAX < 16
    assert early_leaving.EARLY_MAX == journal.EARLY_MAX == 16


def test_a_fault_in_a_rare_branch_shows_there_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies in rows of their own, which a disk forgets."""

    def forgetful(self: MemoryDisk, changes: Iterable[Put | Delete]) -> None:
        commit(self, (each for each in changes if each.space != BODY_SPACE))

    commit = MemoryDisk.commit
    monkeypatch.setattr(MemoryDisk, "commit", forgetful)
    monkeypatch.setattr("tests.simulation.scenario.PATIENCE", 60.0)
    assert all(faults(test_exactly_once.run(seed)) == [] for seed in range(1, 5))
    assert any(shows(seed) for seed in range(9, 41) if has_bodies(seed))


def has_bodies(seed: int) -> bool:
    with tiny_bounds(seed) as bounds:
        return "onyx.broker.deliveries.delivery_log.INLINE_BYTES" in bounds


def shows(seed: int) -> bool:
    """Whether a run finds that something is wrong."""
    try:
        return faults(run(seed)) != []
    except (AssertionError, CoreFailed, StoreError):
        return True
