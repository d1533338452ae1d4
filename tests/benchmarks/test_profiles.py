"""``profiles`` and ``results`` run, and say what they promise."""

from __future__ import annotations

import json

import pytest

from benchmarks.__main__ import EXIT_GOOD, main


def figures(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, float]:
    assert main([*arguments, "--json"]) == EXIT_GOOD
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert isinstance(found, dict)
    return found


def test_texts_are_parsed_with_and_without_repetition(capsys: pytest.CaptureFixture[str]) -> None:
    found = figures(capsys, "profiles", "--number", "60", "--shapes", "5")
    assert found["number"] == found["different_number"] == 60
    for key in (
        "parser_texts_per_second",
        "different_texts_per_second",
        "texts_per_second",
        "tree_texts_per_second",
        "elementpath_texts_per_second",
    ):
        assert found[key] > 0


def test_results_are_compared_with_those_of_lxml(capsys: pytest.CaptureFixture[str]) -> None:
    found = figures(capsys, "results", "--messages", "8", "--rounds", "1")
    assert found["own_us"] > 0
    assert found["lxml_us"] > 0
    assert found["speedup"] == pytest.approx(found["lxml_us"] / found["own_us"], rel=0.01)
