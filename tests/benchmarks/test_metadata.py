"""``python -m benchmarks metadata`` on few rules; no time is asserted."""

from __future__ import annotations

import json

import pytest

from benchmarks.__main__ import main

KEYS = (
    "s_over_parse", "oid_over_s", "path_over_s", "join_over_s", "comp_match_over_s", "growth",
    "python_loop_ratio", "sql_loop_ratio", "sparql_loop_ratio", "update_over_register",
    "delete_over_register", "rehearse_over_register", "rebuild_over_register", "referrer_us",
    "rule_us", "late_rule_ms", "path_rule_bytes", "join_rule_bytes", "query_us", "resident_mb",
)  # fmt: skip


def test_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["metadata", "--quick", "--json"]) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(KEYS) <= set(found)
    assert all(isinstance(found[key], (int, float)) for key in KEYS)
    assert found["resident_mb"] > 10
