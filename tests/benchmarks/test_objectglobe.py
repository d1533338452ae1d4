"""The benchmark of query plans gives its figures, and no plan is missed."""

from __future__ import annotations

import json

import pytest

from benchmarks.__main__ import EXIT_GOOD, main
from registration.spark.sandbox import missing


def test_planning_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["objectglobe", "--part", "planning", "--queries", "3", "--json"]) == EXIT_GOOD
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["dp10_ms"] > 0
    assert found["idp30_ms"] > 0
    assert 1 - 1e-9 <= found["idp_p50_ratio"] <= found["idp_p90_ratio"] <= found["idp_worst_ratio"]


def test_lookups_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["objectglobe", "--part", "lookup", "--json"]) == EXIT_GOOD
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["lookup_ms"] > 0 and found["lookup_first_ms"] > 0


def test_estimates_of_archives_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--part", "estimates", "--queries", "12", "--json"]
    assert main(["objectglobe", *options]) == EXIT_GOOD
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert 1 <= found["estimate_q_median"] < 2


@pytest.mark.skipif(bool(missing()), reason=f"this machine lacks {missing()}")
def test_the_sandbox_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["objectglobe", "--part", "sandbox", "--json"]) == EXIT_GOOD
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["sandbox_row_us"] > 0
    assert (found["escaped"], found["hostile"] >= 40) == (0, True)
