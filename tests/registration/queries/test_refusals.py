"""A refused query says its code, its place and near misses; its code ends the command line."""

from __future__ import annotations

import pytest

from onyx.errors import exit_code_of
from registration.queries.refusals import QueryCode, QueryRefused, did_you_mean


def test_a_place_is_shown_with_a_caret() -> None:
    refused = QueryRefused(
        "unknown-column", "R has no column prise", "", 2, 9, "  WHERE prise > 3", "did you mean x?"
    )
    assert str(refused).splitlines() == [
        "line 2, column 9: R has no column prise [unknown-column]",
        "      WHERE prise > 3",
        "            ^",
        "    did you mean x?",
    ]


def test_of_a_very_long_line_the_part_around_the_place_is_shown() -> None:
    shown = str(QueryRefused("syntax", "no", "", 1, 5_001, "x" * 5_000 + "!" + "y" * 5_000))
    assert len(shown) < 500
    line, caret = shown.splitlines()[1:]
    assert line[caret.index("^")] == "!"


def test_a_rule_is_named() -> None:
    refused = QueryRefused("not-allowed", "ann may not read R", "urn:a#p1")
    assert refused.rule == "urn:a#p1"
    assert str(refused) == "urn:a#p1: ann may not read R [not-allowed]"


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        ("syntax", 65), ("forbidden-sql", 65), ("over-limit", 65), ("not-certified", 65),
        ("not-allowed", 77), ("no-plan", 65), ("provider-away", 69), ("no-resources", 75),
        ("function-failed", 70), ("function-over-cost", 70),
    ],
)  # fmt: skip
def test_the_command_line_ends_by_the_code(code: QueryCode, ending: int) -> None:
    assert exit_code_of(QueryRefused(code, "no")) == ending


def test_a_query_without_a_plan_ends_by_whether_rules_forbid_it() -> None:
    assert exit_code_of(QueryRefused("no-plan", "no", "urn:a#p1")) == 77


def test_near_misses() -> None:
    assert did_you_mean("PRIZE", ["price", "name"]) == "did you mean price?"
    assert did_you_mean("zzz", ["price"]) == ""
