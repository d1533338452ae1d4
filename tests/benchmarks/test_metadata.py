"""``python -m benchmarks metadata`` on few rules; no time is asserted."""

from __future__ import annotations

import json

import pytest
from lxml import etree

from benchmarks.__main__ import main
from benchmarks.metadata.plots import picture

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


def test_the_figures_of_the_paper_are_one_picture() -> None:
    kinds = ("oid", "path", "comp", "join", "shares")
    tree = etree.fromstring(picture({kind: {"10 rules": [(1, 20), (2, 10)]} for kind in kinds}))
    titles = [each.text for each in tree.iterfind(".//{*}text[@class='title']")]
    assert [title.partition(":")[0] for title in titles] == [f"Figure {n}" for n in range(11, 16)]
