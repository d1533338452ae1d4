"""Interests within a budget: what is told covers all of them, is never too much, and is exact
again when there is room."""

from __future__ import annotations

from random import Random

import pytest

from overlay.routing.cover_forest import CoverForest
from overlay.routing.generalisation import UNBOUNDED, Budget, disjunct_bytes, generalise
from tests.overlay.test_cover_index import random_profile
from yfilter.engine.containment import Pattern, covers
from yfilter.engine.linear_paths import ANY_MESSAGE, Conjunction, routing_query
from yfilter.language.query_parser import parse_profile


def disjunct(profile: str) -> Conjunction:
    (only,) = routing_query(parse_profile(profile))
    return only


def is_covered(interest: Conjunction, told: set[Conjunction]) -> bool:
    return any(covers(Pattern(one), Pattern(interest)) for one in told)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_told_covers_every_interest_within_any_budget(seed: int) -> None:
    rng = Random(seed)
    budget = Budget(rng.choice([1, 3, 10, 40]), rng.choice([2_000, 20_000, 10**9]))
    forest = CoverForest(budget)
    known: set[Conjunction] = set()
    interests: list[Conjunction] = []
    pool = [disjunct(random_profile(rng, "abcdefgh")) for _ in range(150)]
    for _ in range(150):
        if interests and rng.random() < 0.4:
            gone = interests.pop(rng.randrange(len(interests)))
            delta = forest.change((), [gone])
        else:
            interests.append(rng.choice(pool))
            delta = forest.change([interests[-1]], ())
        assert not known & set(delta.added) and set(delta.removed) <= known
        known = (known - set(delta.removed)) | set(delta.added)
        assert known == set(forest.told)
        assert all(is_covered(interest, known) for interest in set(interests)), seed
        allowed = budget.allows(len(known), sum(map(disjunct_bytes, known)))
        assert allowed or len(known) == 1
    delta = forest.change((), interests)
    assert known - set(delta.removed) == set() == set(forest.told)
    assert forest.statistics()["generalisations"] == 0


def test_without_a_budget_nothing_is_generalised() -> None:
    rng = Random(5)
    forest = CoverForest()
    forest.change([disjunct(random_profile(rng)) for _ in range(100)], ())
    assert forest.statistics()["generalised"] == 0


def test_with_room_again_what_was_hidden_is_told_again() -> None:
    forest = CoverForest(Budget(10, 10**9))
    values = [disjunct(f'/a/b[@x = "v{number}"]') for number in range(50)]
    forest.change(values, ())
    assert len(set(forest.told)) <= 10
    forest.change((), values[2:])
    assert set(forest.told) == set(values[:2])


def test_a_restart_within_a_budget_tells_nothing_new() -> None:
    budget = Budget(10, 10**9)
    before = CoverForest(budget)
    interests = [disjunct(f'/a/b[@x = "v{number % 50}"][@y = {number}]') for number in range(200)]
    before.change(interests, ())
    told = set(before.told)
    after = CoverForest(budget)
    for one in told:
        after.restore(one)
    assert not after.change(reversed(interests), ())
    assert not after.settle()
    assert set(after.told) == told


def test_a_restart_without_a_budget_is_exact() -> None:
    forest = CoverForest()
    interests = [disjunct(f'/a/b[@x = "{number}"]') for number in range(20)]
    for one in interests[:15]:
        forest.restore(one)
    for one in interests[5:]:
        assert set(forest.change([one], ()).added) <= {one}
    assert set(forest.settle().removed) == set(interests[:5])
    assert set(forest.told) == set(interests[5:])


def test_a_smaller_budget_is_kept_at_once_and_a_larger_one_used() -> None:
    forest = CoverForest()
    interests = {disjunct(f'/a/b[@x = "{number}"]') for number in range(20)}
    forest.change(interests, ())
    delta = forest.set_budget(Budget(5, 10**9))
    assert len(set(forest.told)) <= 5
    assert interests - set(delta.removed) | set(delta.added) == set(forest.told)
    forest.set_budget(Budget(100, 10**9))
    assert set(forest.told) == interests


BUDGET = Budget(10, 10**9)


@pytest.mark.parametrize(
    ("profiles", "expected"),
    [
        # The condition that differs goes; the one that tells them from others stays.
        ([f'/a/b[@x = "1"][@y{n} = "v"]/c' for n in range(20)], '/a/b[@x = "1"]/c'),
        # Values that lie together become a range.
        ([f'/a/b[@x = "{n}"]' for n in range(20)], "/a/b[@x <= 19][@x >= 0]"),
        # What they have in common of several paths.
        ([f'/a[b[@x = "1"]][c{n}]' for n in range(20)], '/a/b[@x = "1"]'),
        # Names on the way to the same last step.
        ([f"/a/n{n}/c" for n in range(20)], "/a/*/c"),
    ],
)
def test_the_method_that_loses_least_is_chosen(profiles: list[str], expected: str) -> None:
    narrow = [disjunct(profile) for profile in profiles]
    chosen = generalise(narrow, BUDGET, excess=1.0)
    assert expected in [str(one) for one in chosen[:2]]
    for one in chosen:
        assert Conjunction.parse(one.text) == one
        assert sum(covers(Pattern(one), Pattern(other)) for other in narrow) >= 2


def test_what_has_nothing_in_common_becomes_everything() -> None:
    forest = CoverForest(Budget(3, 10**9))
    forest.change([disjunct(f"/n{number}") for number in range(5)], ())
    assert set(forest.told) == {ANY_MESSAGE}


def test_no_budget_allows_everything() -> None:
    assert UNBOUNDED.allows(10**9, 10**15)
