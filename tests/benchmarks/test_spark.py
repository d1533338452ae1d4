"""The benchmark of Spark: its keys are there, also of the parts that were not chosen."""

from __future__ import annotations

import json

import pytest

from benchmarks.__main__ import main
from benchmarks.spark import PROMISED


def test_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "--part", "archive", "--messages", "50", "--json"]) == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(PROMISED) <= report.keys()
    assert report["archive_write_ratio"] > 0
    assert report["cluster_compiled"] is None
