"""A long message is matched in pieces; what happens in the pauses makes no difference to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

import pytest

from formats.element_stream import ElementStream
from formats.text import parse_text
from tests.yfilter.random_cases import random_flwor, random_message, random_profile
from yfilter.engine.linear_paths import routing_query
from yfilter.engine.targets import LinkTarget
from yfilter.errors import MatchLimitExceeded
from yfilter.index import index as index_module
from yfilter.language.query_parser import parse_profile
from yfilter.language.query_text import unparse
from yfilter.matcher import Matcher
from yfilter.matches import PAUSE

Meanwhile = Callable[[Matcher, ElementStream], object]


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "PIECE_VISITS", 1)


def at_once(matcher: Matcher, message: ElementStream) -> dict[str, list[bytes]]:
    return {
        matcher.id_of(number): one.results
        for one in matcher.deliver(message)
        for number in one.numbers
    }


def in_steps(
    matcher: Matcher, message: ElementStream, meanwhile: Callable[[], object]
) -> tuple[dict[str, list[bytes]], int]:
    """The same, and how many pauses there were."""
    _, delivered = matcher.deliver_in_stages(message)
    found: dict[str, list[bytes]] = {}
    pauses = 0
    for one in delivered:
        if one is PAUSE:
            pauses += 1
            meanwhile()
        else:
            found.update((matcher.id_of(number), one.results) for number in one.numbers)
    return found, pauses


def results_of_another(matcher: Matcher, other: ElementStream) -> object:
    return list(matcher.deliver_to(other, ["p1", "p2", "p3"]))


def a_change(matcher: Matcher, other: ElementStream) -> None:
    matcher.add("//a", "new")
    matcher.remove("new")


def a_route(matcher: Matcher, other: ElementStream) -> None:
    (conjunction,) = routing_query(parse_profile("//b"))
    target = LinkTarget("", "B2")
    matcher.add_route(conjunction, target)
    list(matcher.match_in_stages(other)[0])
    matcher.remove_route(conjunction, target)


MEANWHILE: dict[str, Meanwhile] = {
    "nothing": lambda matcher, other: None,
    "another message": lambda matcher, other: matcher.matched_ids(other),
    "results of another": results_of_another,
    "a change": a_change,
    "a route": a_route,
}


@pytest.mark.parametrize("meanwhile", MEANWHILE.values(), ids=MEANWHILE.keys())
def test_what_happens_between_two_pieces_makes_no_difference(meanwhile: Meanwhile) -> None:
    pauses = 0
    for seed in range(40):
        random = Random(seed)
        matcher = Matcher()
        for number in range(1, 21):
            text = random_flwor(random) if number % 2 else unparse(random_profile(random))
            matcher.add(text, f"p{number}")
        for _ in range(3):
            message, other = random_message(random).stream, random_message(random).stream
            expected = at_once(matcher, message)
            found, some = in_steps(matcher, message, partial(meanwhile, matcher, other))
            assert found == expected, f"seed {seed}"
            pauses += some
    assert pauses > 50


def test_a_profile_that_comes_in_a_pause_gets_nothing_and_one_that_goes_neither() -> None:
    matcher = Matcher()
    for name in ("p1", "p2"):
        matcher.add("//a", name)
    message = parse_text(b"<x><y><a/></y><y><a/></y></x>")
    assert at_once(matcher, message).keys() == {"p1", "p2"}

    def change() -> None:
        if matcher.changes == 2:
            matcher.add("//a", "p3")
            matcher.remove("p1")

    found, pauses = in_steps(matcher, message, change)
    assert (found.keys(), pauses > 0) == ({"p2"}, True)


def test_what_costs_too_much_does_so_in_pieces_too() -> None:
    matcher = Matcher()
    matcher.add("//a//b//c", "p1")
    message = parse_text(b"<x><a><b><c/></b></a><a><b><c/></b></a></x>")
    at_once(matcher, message)
    visits = matcher.statistics().index_visits
    matcher.limits = replace(matcher.limits, visits_max=visits - 1)
    with pytest.raises(MatchLimitExceeded):
        in_steps(matcher, message, lambda: None)
    matcher.limits = replace(matcher.limits, visits_max=visits)
    in_steps(matcher, message, lambda: None)
