"""``python -m benchmarks map`` on a few brokers, in a real browser; no time is asserted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.benchmark import WrongAnswers
from benchmarks.map.benchmark import QUICK, Phase, behind
from benchmarks.map.shape import make_shape
from overlay.topology import parse_topology, to_toml

SEED = 1


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium")
def test_a_small_map_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    for needed in ("playwright", "starlette", "hypercorn"):
        pytest.importorskip(needed)
    assert main(["map", *QUICK, "--seconds", "5", "--json"]) == 0
    values = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert 10_000 < values["map_bytes"] < 200_000
    assert values["probed"] > 0
    assert values["map_bytes_per_s"] > values["map_bytes_per_s_idle"]
    for key in ("map_behind_p99_s", "map_frame_p95_ms", "map_first_s", "gateway_cpu_share"):
        assert values[key] > 0


@pytest.mark.skipif(shutil.which("chromium") is not None, reason="there is a chromium")
def test_without_a_browser_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["map"]) == 2
    assert "this needs" in capsys.readouterr().err


def test_nothing_but_a_probe_crosses_its_link() -> None:
    shape = make_shape(40, 5, 3, 20, Path("data"), SEED)
    assert len(shape.topology.brokers) == 40
    for place, (root, host) in enumerate(shape.probes):
        assert shape.topology.neighbours(host) == (root,)
        assert shape.topology.links[place].ends == (root, host)
        assert host not in (*shape.roots, *shape.hosts)
    assert parse_topology(to_toml(shape.topology), "map.toml").links == shape.topology.links


def test_each_message_of_a_probe_has_its_light() -> None:
    lights = [("A-P1", 10.2), ("A-B", 10.2), ("A-P1", 14.5)]
    phase = Phase(0, 10.0, [], 0.0, lights, 0.0)
    found = behind([("A", "P1")], [[10.0, 14.0]], [phase])
    assert found == pytest.approx([0.2, 0.5])
    with pytest.raises(WrongAnswers, match="A-P1 was lit 2 times by 3 messages"):
        behind([("A", "P1")], [[10.0, 14.0, 18.0]], [phase])
    with pytest.raises(WrongAnswers, match="before its message"):
        behind([("A", "P1")], [[10.3, 14.0]], [phase])
