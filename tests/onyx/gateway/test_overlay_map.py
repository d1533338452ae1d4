"""What is told of a network to those who look at its map."""

from __future__ import annotations

import json

from onyx.gateway.api_answers import Tick
from onyx.gateway.event_stream import event_text
from onyx.gateway.map_feed import OverlayMap
from overlay.statistics import Figures, LinkFigures
from overlay.topology import Topology, parse_topology

BYTES_MAX = 200_000


def network(brokers: int) -> Topology:
    """A ring with chords."""
    lines = ['name = "ring"', '[registration]\nid = "R"\nlisten = "127.0.0.1:0"']
    lines += [f'[[broker]]\nid = "broker-{n}"\nlisten = "127.0.0.1:0"' for n in range(brokers)]
    ends = {tuple(sorted((n, (n + step) % brokers))) for n in range(brokers) for step in (1, 7)}
    lines += [f'[[link]]\nends = ["broker-{a}", "broker-{b}"]' for a, b in sorted(ends)]
    return parse_topology("\n".join(lines), "the ring")


def overlay(brokers: int) -> OverlayMap:
    topology = network(brokers)
    points = {broker: (100 * at, 50 * at) for at, broker in enumerate(topology.broker_ids)}
    return OverlayMap(topology, points)


def figures(topology: Topology, broker: str, crossed: int, waiting: int = 0) -> Figures:
    of_link = LinkFigures(crossed, waiting, "binary+zstd", is_here=True)
    links = dict.fromkeys(topology.neighbours(broker), of_link)
    return Figures(crossed, crossed, crossed, crossed, waiting, links)


def test_a_crossing_is_told_once_to_each_viewer_with_its_direction() -> None:
    seen = overlay(3)
    early = seen.look()
    early.take()
    seen.apply("broker-0", figures(seen.topology, "broker-0", 5))
    told = early.take()
    assert told is not None
    assert [link[1:3] for link in told.links] == [(0, 0), (0, 0)], "what was before is no news"
    seen.apply("broker-0", figures(seen.topology, "broker-0", 7, waiting=40))
    seen.apply("broker-1", figures(seen.topology, "broker-1", 1))
    seen.apply("broker-1", figures(seen.topology, "broker-1", 4))
    told = early.take()
    assert told is not None
    assert (0, 2, 3, 40, 0, "binary+zstd", True) in told.links
    assert early.take() is None


def test_a_broker_that_is_away_and_comes_back_is_told() -> None:
    seen = overlay(3)
    viewer = seen.look()
    seen.apply("broker-0", figures(seen.topology, "broker-0", 5))
    viewer.take()
    seen.gone("broker-0")
    assert viewer.take() == Tick([(0, "away", 5, 5, 5, 5, 0)], [])
    seen.gone("broker-0")
    assert viewer.take() is None
    seen.apply("broker-0", figures(seen.topology, "broker-0", 0))  # its counters begin anew
    told = viewer.take()
    assert told is not None
    assert all(link[1:3] == (0, 0) for link in told.links)


def test_what_waits_for_a_slow_viewer_is_bounded_by_the_network() -> None:
    seen = overlay(1_000)
    slow = seen.look()
    for crossed in range(3):
        for broker in seen.topology.broker_ids:
            seen.apply(broker, figures(seen.topology, broker, crossed, waiting=1_000_000))
    shape = event_text("map", seen.snapshot())
    told = slow.take()
    assert told is not None
    tick = event_text("tick", told)
    assert (len(told.brokers), len(told.links)) == (1_000, 2_000)
    assert all(link[1:3] == (2, 2) for link in told.links)
    assert len(shape.encode()) + len(tick.encode()) < BYTES_MAX
    assert json.loads(shape.splitlines()[1].removeprefix("data: "))["brokers"][1] == [
        *("broker-1", "", 100, 50)
    ]
