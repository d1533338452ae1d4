"""Pictures of broadcast trees, and the counting behind them."""

from __future__ import annotations

from pathlib import Path

from demo.picture import draw_crossings
from demo.traffic import Crossing, Traffic
from overlay.routing.broadcast_tree import broadcast_tree
from overlay.topology import load_topology

TOPOLOGY = load_topology(Path(__file__).resolve().parents[2] / "topologies" / "figure4.toml")


def test_a_tree_with_its_crossings() -> None:
    crossings = {
        Crossing("B1", "B1", "B2"): 1,
        Crossing("B1", "B1", "B4"): 200,
        Crossing("B1", "B4", "B5"): 199,
        Crossing("B4", "B4", "B6"): 50,
    }
    assert draw_crossings(broadcast_tree(TOPOLOGY, "B1"), str, crossings, 200) == [
        "B1",
        "├── B2      █░░░░░░░░░░░░░░░░░░░     1    0%",
        "├── B3      ░░░░░░░░░░░░░░░░░░░░     0    0%",
        "└── B4      ████████████████████   200  100%",
        "    ├── B5  ███████████████████░   199  100%",
        "    └── B6  ░░░░░░░░░░░░░░░░░░░░     0    0%",
    ]


def test_no_messages() -> None:
    lines = draw_crossings(broadcast_tree(TOPOLOGY, "B6"), str, {}, 0)
    assert len(lines) == 6
    assert all(line.endswith("0    0%") for line in lines[1:])


def test_traffic_is_counted_and_told_message_by_message() -> None:
    traffic = Traffic()
    traffic.roots = {"s1": "B1"}
    event = {"broker": "B1", "source": "s1", "number": 1}
    finished = [
        traffic.take({**event, "kind": "accepted"}),
        traffic.take({**event, "kind": "crossing", "link": "B2", "bytes": 10}),
        traffic.take({**event, "broker": "B2", "kind": "delivery", "profile": "p1"}),
        traffic.take({**event, "kind": "crossing", "link": "B4", "bytes": 5}),
        traffic.take({**event, "number": 2, "kind": "refused", "code": "malformed"}),
    ]
    assert finished[:4] == [None] * 4
    first = finished[4]
    assert first is not None
    assert (first.broker, first.number, first.accepted) == ("B1", 1, True)
    assert first.links == [("B2", 10), ("B4", 5)]
    rest = {(visit.broker, visit.number): visit for visit in traffic.finish()}
    assert rest["B2", 1].profiles == ["p1"]
    assert rest["B1", 2].refused == "malformed"
    assert traffic.finish() == []
    assert (traffic.total, traffic.bytes_total) == (2, 15)
    assert traffic.crossings[Crossing("B1", "B1", "B4")] == 1
