"""The report: one table for people, one object for programs."""

from __future__ import annotations

import json

import pytest

from benchmarks.report import Report


def example() -> Report:
    report = Report("example")
    report.condition("number", "profiles", 100_000)
    report.figure("lxml_us", "lxml parses (U)", 90.0, "us")
    report.figure("all_in_us", "all-in", 450.0, "us", "lxml_us")
    report.figure("loop_us", "not measured", None, "us", "all_in_us")
    report.figure("size", "memory", 0.1 + 0.2, "MB")
    report.detail("statistics", {"states": 7})
    report.remark("on a quiet machine")
    return report


def test_every_figure_stands_under_its_key() -> None:
    values = example().to_json()
    assert json.loads(json.dumps(values)) == {
        "benchmark": "example",
        "number": 100_000,
        "lxml_us": 90.0,
        "all_in_us": 450.0,
        "loop_us": None,
        "size": 0.3,
        "statistics": {"states": 7},
        "ratios": {
            "all_in_us": {"to": "lxml_us", "is": 5.0},
            "loop_us": {"to": "all_in_us", "is": None},
        },
        "remarks": ["on a quiet machine"],
    }


def test_the_table_has_both_sides_of_a_ratio() -> None:
    lines = example().to_text().splitlines()
    assert lines[0] == "example"
    assert lines[1].split() == ["profiles", "100,000"]
    assert lines[3].split() == ["lxml", "parses", "(U)", "90", "us"]
    assert lines[4].split() == ["all-in", "450", "us", "5", "x", "lxml", "parses", "(U)"]
    assert lines[5].split() == ["not", "measured", "-", "us"]
    assert lines[-1].strip() == "* on a quiet machine"


def test_a_key_is_used_once() -> None:
    report = example()
    with pytest.raises(ValueError, match="all_in_us"):
        report.figure("all_in_us", "again", 1.0)
    with pytest.raises(ValueError, match="number"):
        report.condition("number", "again", 1)
    with pytest.raises(ValueError, match="number"):
        report.detail("number", {})
    with pytest.raises(ValueError, match="statistics"):
        report.figure("statistics", "again", 1.0)


def test_seconds_are_not_compared_with_microseconds() -> None:
    report = example()
    with pytest.raises(ValueError, match="'s'"):
        report.figure("build_s", "building", 3.0, "s", "lxml_us")
    with pytest.raises(KeyError):
        report.figure("other_us", "other", 3.0, "us", "nothing_us")


def test_a_ratio_to_nothing_is_no_number() -> None:
    report = example()
    report.figure("none_us", "nothing", 0.0, "us")
    report.figure("some_us", "something", 1.0, "us", "none_us")
    assert report.ratio("some_us") is None
    assert report.ratio("all_in_us") == 5
