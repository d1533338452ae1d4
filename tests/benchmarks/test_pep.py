"""The pep benchmark in small: what must hold of its figures, and their keys."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lxml import etree

from benchmarks import __main__ as command


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert command.main(["pep", *arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert isinstance(found, dict)
    return found


def test_figure_9(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    picture = tmp_path / "figure9.svg"
    small = ("--number", "5000", "--values", "50", "--partitions", "20", "--messages", "20")
    found = run(capsys, "--figure9", "--zipf", *small, "--svg", str(picture))
    curves = found["curves"]
    assert isinstance(curves, dict)
    assert curves["repeats"] == list(range(0, 41, 5))
    assert found["random_percent_at_0_repeats"] == curves["random"][0] == 100
    assert found["pep_percent_at_0_repeats"] == curves["pep"][0] <= 45  # 9 of 20
    for scheme in ("random", "paper", "pep"):
        pairs = zip(curves[f"{scheme}_whole"], curves[scheme], strict=True)
        assert all(whole <= by_pattern for whole, by_pattern in pairs)
    assert found["pep_imbalance"] <= 1.1
    for name in ("figure9.svg", "figure9-zipf.svg"):
        etree.fromstring((tmp_path / name).read_bytes())


def test_real_messages(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.xml").write_text(
            f'<m xmlns="urn:m" id="{number}"><a x="{number % 5}">t{number % 7}</a><b>é"</b></m>'
        )
    small = ("--derived", "100", "--partitions", "5")
    found = run(capsys, "--data", str(tmp_path), *small)
    assert isinstance(found["real_matches"], float)
    assert found["real_matches"] > 0
    assert found["real_coverage"] == 1


def test_network(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "--network", "--brokers", "6", "--hosted", "120", "--messages", "10")
    assert found["flooding_crossings"] == 5
    crossings = [found[f"{name}_crossings"] for name in ("random", "location", "pep")]
    assert all(isinstance(value, float) and 0 <= value <= 5 for value in crossings)


def test_too_few_messages(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert command.main(["pep", "--data", str(tmp_path)]) == 2
    assert "fewer than 10 messages" in capsys.readouterr().err
