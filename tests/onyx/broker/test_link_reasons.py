"""Why a link is taken or not, when there are very many disjuncts."""

from __future__ import annotations

from formats import parse_text
from onyx.broker.requests.request_parts import why_not, why_taken
from yfilter.engine.linear_paths import Conjunction, routing_query
from yfilter.language.query_parser import parse_profile

TEXT = '<m a="1234"><part b="z"/></m>'
STREAM = parse_text(TEXT.encode())


def disjuncts(*profiles: str) -> list[Conjunction]:
    return [one for profile in profiles for one in routing_query(parse_profile(profile))]


MANY = disjuncts(*(f'/m[@a = "v{number}"][part]' for number in range(2_500)))


def test_what_holds_is_found_among_all() -> None:
    odd = disjuncts('//part[@b > "y"]')
    held = disjuncts('/m[@a = "1234"]')
    assert why_taken([*MANY, *odd, *held], STREAM, TEXT)[0] == held[0].text
    assert why_taken([*MANY, *odd], STREAM, TEXT) == [odd[0].text]
    assert why_taken(MANY, STREAM, TEXT) == []


def test_the_nearest_misses_are_shown_one_for_each_part_that_fails() -> None:
    near = disjuncts('/m[@a = "1234"][part/@b = "x"]', '/m[@a = "1234"][part/@b = "x"][@c]')
    said = why_not([*MANY, *near], STREAM, TEXT)
    assert said[0].disjunct in {one.text for one in near}
    assert '"x"' in said[0].part or "@c" in said[0].part
    assert len({case.part for case in said}) == len(said) <= 3
    assert why_not([], STREAM, TEXT) == []


def test_equal_failures_are_counted() -> None:
    same = disjuncts(*(f'/m[@a = "1234"]/none[@n = "{n}"]' for n in range(5)))
    said = why_not(same, STREAM, TEXT)
    assert [case.more for case in said] == [4]
