"""Networks whose brokers have a fault: what meets it is passed over, all else comes once."""

from __future__ import annotations

import pytest

from onyx.broker.messages.data_plane import DataPlane
from onyx.broker.packing.parcel import Parcel
from overlay.link import dead_letters
from tests.simulation.scenario import Scenario
from tests.simulation.seeds import seeds
from tests.simulation.test_exactly_once import (
    change_something,
    live_through,
    random_path,
    refused_at_times,
)

SEEDS = seeds(24, first=9_000)


def break_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Root brokers fall over a message with an element ``poison``."""
    match = DataPlane._match

    def faulty(self: DataPlane, parcel: Parcel) -> object:
        if not parcel.hops and b"poison" in parcel.payload:
            raise ZeroDivisionError
        return match(self, parcel)

    monkeypatch.setattr(DataPlane, "_match", faulty)
    monkeypatch.setattr(dead_letters, "FELLED_MAX", 1_000)  # who sends a lot of it stays


@pytest.mark.parametrize("seed", SEEDS)
def test_all_but_the_poison_comes_once_and_its_source_is_told(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_brokers(monkeypatch)
    check(seed)


def check(seed: int) -> None:
    scenario = Scenario(seed, brokers=1 + seed % 5)
    live_through(scenario, 1, random_path, refused_at_times("poison"), change_something)
    poison = [message for message in scenario.published if b"poison" in message.data]
    assert not scenario.missing()
    assert not scenario.wrong()
    assert not scenario.unexplained()
    assert scenario.net.fallen == len(poison)  # each fells a broker once
    told = [frame for source in scenario.sources.values() for frame in source.refused]
    assert sum(frame.code == "internal" for frame in told) == len(poison)
