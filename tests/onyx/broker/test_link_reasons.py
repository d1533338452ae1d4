"""Why a link is taken or not, when there are very many disjuncts."""

from __future__ import annotations

import pytest

from formats import parse_text
from onyx.broker.requests.request_parts import why_not, why_taken
from yfilter.engine.linear_paths import Conjunction, routing_query
from yfilter.language.query_parser import parse_profile

TEXT = '<m a="1234"><part b="z"/></m>'
STREAM = parse_text(TEXT.encode())


def disjuncts(*profiles: str) -> list[Conjunction]:
    return [one for profile in profiles for one in routing_query(parse_profile(profile))]


@pytest.fixture(scope="module")
def many() -> list[Conjunction]:
    """Made when they are wanted: each process that shares the tests imports all files."""
    return disjuncts(*(f'/m[@a = "v{number}"][part]' for number in range(2_500)))


def test_what_holds_is_found_among_all(many: list[Conjunction]) -> None:
    odd = disjuncts('//part[@b > "y"]')
    held = disjuncts('/m[@a = "1234"]')
    assert why_taken([*many, *odd, *held], STREAM, TEXT)[0] == held[0].text
    assert why_taken([*many, *odd], STREAM, TEXT) == [odd[0].text]
    assert why_taken(many, STREAM, TEXT) == []


def test_the_nearest_misses_are_shown_one_for_each_part_that_fails(
    many: list[Conjunction],
) -> None:
    near = disjuncts('/m[@a = "1234"][part/@b = "x"]', '/m[@a = "1234"][part/@b = "x"][@c]')
    said = why_not([*many, *near], STREAM, TEXT)
    assert said[0].disjunct in {one.text for one in near}
    assert '"x"' in said[0].part or "@c" in said[0].part
    assert len({case.part for case in said}) == len(said) <= 3
    assert why_not([], STREAM, TEXT) == []


def test_equal_failures_are_counted() -> None:
    same = disjuncts(*(f'/m[@a = "1234"]/none[@n = "{n}"]' for n in range(5)))
    said = why_not(same, STREAM, TEXT)
    assert [case.more for case in said] == [4]
