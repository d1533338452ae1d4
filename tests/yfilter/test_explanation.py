"""What people are told about a profile."""

from __future__ import annotations

import pytest

from formats.text import parse_text
from yfilter import parse_profile
from yfilter.explanation import explain, try_on

MESSAGE = parse_text(b"<o><a n='1'><b>5</b></a><a n='2'/></o>")


def test_what_is_indexed_and_what_is_not() -> None:
    found = explain(parse_profile("/o/a[@n = 1][b > 3][not(c)]"))
    assert found.matching_path == "/o/a[@n = 1][b > 3][not(c)]"
    assert found.linear_paths == ("/o/a", "/o/a/b")
    assert found.indexed == ("/o/a[@n = 1]", "/o/a/b[. > 3]")
    assert found.residual == ("/o/a[not(c)]",)
    assert found.remainder == ""
    assert found.routing_query == (("/o/a[@n = 1]/b[. > 3]",),)


def test_positions_are_left_to_the_end() -> None:
    found = explain(parse_profile("//a[2]/b"))
    assert (found.matching_path, found.remainder) == ("//a/b", "//a[2]/b")
    assert found.routing_query == (("//a/b",),)


@pytest.mark.parametrize(
    ("profile", "failure", "results"),
    [
        ("/o/a[b = 5]", "", 1),
        ("/o/a[b = 6]/c", "/o/a[b = 6]", 0),
        ("/o/x/a", "/o/x", 0),
        ("//a[2]/b", "//a[2]/b", 0),
        ("for $a in //a where $a/@n > 1 return <r/>", "", 1),
        ("for $a in //a, $b in $a/c return <r/>", "for $a in //a for $b in $a/c return <r/>", 0),
    ],
)
def test_the_first_part_that_does_not_hold(profile: str, failure: str, results: int) -> None:
    trial = try_on(parse_profile(profile), MESSAGE)
    assert (trial.first_failure, trial.results) == (failure, results)


def test_parts_are_counted() -> None:
    assert try_on(parse_profile("/o/a[@n][b]"), MESSAGE).parts == (
        ("/o", 1),
        ("/o/a", 2),
        ("/o/a[@n]", 2),
        ("/o/a[@n][b]", 1),
    )
