"""What of a broker's needs its parent is told, and how that stays within a budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest

from overlay.transformation.need_set import NeedDelta, NeedSet, weaker
from yfilter.engine.linear_paths import Conjunction, routing_query
from yfilter.language.query_parser import parse_profile
from yfilter.projection.needs import EVERYTHING, Kept, Need
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


def test_a_condition_of_two_paths_is_widened_by_what_one_of_them_says_less() -> None:
    (condition,) = routing_query(parse_profile('/f[i/@k = "a"][j/x]'))
    first, second = '/f/i[@k = "a"]', "/f/j/x"
    assert str(condition) == f"{first} and {second}"
    found = [*map(str, weaker(condition))]
    assert found[:3] == [second, f"/f/i[@k] and {second}", first]
    assert found[-1] == "None"


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
    _, widened = sorted(need.text for need in told.told)
    assert told.widened >= 18
    assert "starts-with" in widened or "[@k]" in widened
    told.change((), needs(*many[3:]))
    told.take()
    assert set(told.told) == set(needs(*many[:3]))


def of_two(number: int) -> str:
    """With a condition of two parts, of which one is long."""
    value = f"{number} and many words that nobody can tell in less"
    return f"for $i in /f/j where $i/@k = '{number}' and $i/w = '{value}' return <x>{{$i/v}}</x>"


def test_single_needs_are_widened_by_what_that_saves_and_lets_through() -> None:
    """Those with a long part that hardly lets more through, and no more of them than is needed."""
    short, long = needs(*map(item, range(10))), needs(*map(of_two, range(10)))
    everything = sum(len(need.text) for need in short + long)
    told = NeedSet(everything - 60)
    told.change(short + long, ())
    told.take()
    assert set(told.told) >= set(short)
    left = [need for need in told.told if need in long]
    widened = [need for need in told.told if need not in short + long]
    assert len(widened) + len(left) == len(long)
    assert len(widened) == told.widened
    for need in widened:  # the rest of its condition is left
        assert "@k = " in need.text and "starts-with(., " in need.text
    # One at a time they are exact again when there is room to spare.
    told.change((), short + long[:5])
    told.take()
    assert set(told.told) == set(long[5:])


def test_a_need_that_comes_to_what_is_widened_is_told_by_that() -> None:
    told = NeedSet(600)
    told.change(needs(*map(item, range(100, 120))), ())
    assert len(told.take().added) < 10
    told.change(needs(item(111)), ())
    assert not told.take()
    told.change((), needs(*map(item, range(100, 120))))
    told.take()
    assert list(told.told) == list(needs(item(111)))
    told.change((), needs(item(111)))
    told.take()
    assert not list(told.told)


def test_work_for_a_need_does_not_grow_with_the_needs() -> None:
    """How often paths are compared is linear in what comes and goes."""
    compared = []
    for many in (100, 400):
        told = NeedSet(ROOMY)
        with counted_covers() as count:
            for number in range(many):
                told.change(needs(every(f"$i/n{number}"), item("a", f"$i/n{number}")), ())
            told.take()
            for number in range(many):
                told.change((), needs(item("a", f"$i/n{number}"), every(f"$i/n{number}")))
        compared.append(count[0] / many)
    assert compared[1] <= 1.1 * compared[0]


@contextmanager
def counted_covers() -> Iterator[list[int]]:
    count = [0]
    covers = Kept.covers

    def counting(self: Kept, other: Kept) -> bool:
        count[0] += 1
        return covers(self, other)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kept, "covers", counting)
        yield count


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


# In 28 what was widened before covers what is to be.
@pytest.mark.parametrize("seed", (28, *range(28), 29))
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
    if other in (EVERYTHING, need):
        return True
    if other.binding != need.binding:
        return False
    if other.condition is None:
        return all(any(mine.covers(theirs) for mine in other.kept) for theirs in need.kept)
    return other.kept == need.kept and other.condition in _weaker(need.condition)


def _weaker(condition: Conjunction | None) -> set[Conjunction | None]:
    """All that ``weaker`` leads to."""
    found: set[Conjunction | None] = {condition}
    waiting = [condition]
    while waiting:
        one = waiting.pop()
        for other in weaker(one) if one is not None else ():
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found
