"""What of a broker's needs its parent is told, and how that stays within a budget."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from overlay.transformation.need_set import NeedDelta, NeedSet
from yfilter.language.query_parser import parse_profile
from yfilter.projection.needs import EVERYTHING, Need
from yfilter.projection.profile_needs import needs_of

ROOMY = 1_000_000


def needs(*profiles: str) -> tuple[Need, ...]:
    return tuple(need for profile in profiles for need in needs_of(parse_profile(profile)))


def item(value: object, result: str = "$i/t") -> str:
    return f"for $i in /f/i where $i/@k = '{value}' return <x>{{{result}}}</x>"


def every(result: str) -> str:
    return f"for $i in /f/i return <x>{{{result}}}</x>"


def texts(delta: NeedDelta) -> tuple[list[str], list[str]]:
    return [need.text for need in delta.added], [need.text for need in delta.removed]


def test_equal_needs_are_told_once_and_untold_with_the_last() -> None:
    told = NeedSet(ROOMY)
    told.change(needs(item("a")), ())
    assert texts(told.take()) == (
        ['["/f/i","/*[@k = \\"a\\"]",["attribute @k","subtree t"]]'],
        [],
    )
    told.change(needs(item("a")), ())
    told.change((), needs(item("a")))
    assert not told.take()
    told.change((), needs(item("a")))
    assert len(told.take().removed) == 1
    assert not list(told.told)


def test_what_comes_and_goes_again_is_not_mentioned() -> None:
    told = NeedSet(ROOMY)
    told.change(needs(item("a"), item("b")), needs(item("a")))
    assert len(told.take().added) == 1


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        (item("a"), every("$i/@k, $i/t")),
        (item("a"), every("$i")),
        (item("a"), "//*"),
        (every("$i/t/u"), every("$i/t")),
    ],
)
def test_a_covered_need_is_told_only_while_nothing_covers_it(narrow: str, wide: str) -> None:
    told = NeedSet(ROOMY)
    told.change(needs(narrow), ())
    told.change(needs(wide), ())
    assert set(told.told) == set(needs(wide))
    told.take()
    told.change((), needs(wide))
    assert set(told.told) == set(needs(narrow))
    assert texts(told.take()) == (
        [need.text for need in needs(narrow)],
        [need.text for need in needs(wide)],
    )


def test_beyond_the_budget_conditions_go_and_come_back() -> None:
    many = [item(number) for number in range(20)]
    told = NeedSet(600)
    told.change(needs(*many[:5]), ())
    assert len(told.take().added) == 5
    told.change(needs(*many[5:]), ())
    told.take()
    assert [need.text for need in told.told] == ['["/f/i","",["attribute @k","subtree t"]]']
    assert told.statistics()["needs_widened"] == 1
    told.change((), needs(*many[3:]))
    told.take()
    assert set(told.told) == set(needs(*many[:3]))


def test_when_that_is_not_enough_everything_is_told() -> None:
    told = NeedSet(40)
    told.change(needs(item("a"), every("$i/u")), ())
    told.take()
    assert list(told.told) == [EVERYTHING]
    told.change((), needs(item("a"), every("$i/u")))
    assert told.take().removed == (EVERYTHING,)


def test_after_a_restart_only_differences_are_told() -> None:
    told = NeedSet(ROOMY)
    for need in needs(item("a"), item("b")):
        told.restore(need)
    told.change(needs(item("a"), item("c")), ())
    delta = told.take()
    assert (set(delta.added), set(delta.removed)) == (set(needs(item("c"))), set(needs(item("b"))))


PROFILES = [
    *(item(value) for value in range(6)),
    *(item(value, "$i") for value in range(3)),
    *(every(path) for path in ("$i/t", "$i/t/u", "$i/@k", "$i")),
    *("//*", "/f[@k]", "/f", "for $u in //u return <x>{$u/../@k}</x>"),
]


@pytest.mark.parametrize("seed", range(30))
def test_the_sum_of_what_is_told_is_what_is_told_and_covers_all(seed: int) -> None:
    rng = Random(seed)
    told = NeedSet(rng.choice((1, 200, 500, ROOMY)))
    takers: Counter[Need] = Counter()
    known: set[Need] = set()
    for _ in range(60):
        taken = needs(rng.choice(PROFILES))
        if rng.random() < 0.5 and all(takers[need] for need in taken):
            takers.subtract(taken)
            told.change((), taken)
        else:
            takers.update(taken)
            told.change(taken, ())
        if rng.random() < 0.5:
            delta = told.take()
            assert not known & set(delta.added)
            assert known >= set(delta.removed)
            known = (known | set(delta.added)) - set(delta.removed)
            assert known == set(told.told)
            for need in +takers:
                assert any(_covers(other, need) for other in known), (need, known)
            if not +takers:
                assert not known
    told.change((), list((+takers).elements()))
    delta = told.take()
    assert known | set(delta.added) == set(delta.removed) | set()


def _covers(other: Need, need: Need) -> bool:
    return other in (EVERYTHING, need) or (
        other.binding == need.binding
        and other.condition is None
        and all(any(mine.covers(theirs) for mine in other.kept) for theirs in need.kept)
    )
