"""Where brokers stand in a picture of a network."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import mean

import pytest
import trio

from onyx import network_layout as layout
from onyx.gateway import map_feed as map_layout
from tests.onyx.gateway.test_overlay_map import network

CELL = 96.0, 56.0


@pytest.mark.parametrize("brokers", [9, 64, 65, 300])
def test_neighbours_stand_together_and_no_broker_on_another(brokers: int) -> None:
    topology = network(brokers)
    points = layout.network_layout(topology, *CELL)
    assert points == layout.network_layout(topology, *CELL)
    apart = {
        pair: math.dist(points[pair[0]], points[pair[1]])
        for pair in combinations(topology.broker_ids, 2)
    }
    linked = {tuple(sorted(link.ends, key=topology.broker_ids.index)) for link in topology.links}
    if brokers >= 64:
        assert mean(apart[pair] for pair in linked) < 0.45 * mean(apart.values())
    for (a, b), (c, d) in ((points[x], points[y]) for x, y in apart):
        assert abs(a - c) >= CELL[0] - 1 or abs(b - d) >= CELL[1] - 1


def test_work_grows_with_brokers_and_not_with_their_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0
    least_stress = layout._least_stress

    def counted(broker, points, held):  # type: ignore[no-untyped-def]
        nonlocal looked
        looked += len(held)
        return least_stress(broker, points, held)

    monkeypatch.setattr(layout, "_least_stress", counted)
    points = layout.network_layout(network(1_000), *CELL)
    assert len(points) == 1_000
    assert looked <= 1_000_000, "a round of all pairs alone would be as much"


def test_the_map_is_laid_out_once_for_a_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    found = map_layout.Layout()

    async def twice() -> None:
        first = await found.points(network(9))
        monkeypatch.setattr(map_layout, "network_layout", None)
        assert await found.points(network(9)) is first
        with pytest.raises(TypeError):
            await found.points(network(10))

    trio.run(twice)
