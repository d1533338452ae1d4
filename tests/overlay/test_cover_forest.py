"""Interests within a budget: what is told covers all of them, is never too much, and is exact
again when there is room."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from random import Random

import pytest

from formats import ElementStream, parse_text
from overlay.routing.generalisation import UNBOUNDED, Budget, disjunct_bytes, generalise
from overlay.routing.message_sample import SAMPLED_BYTES_MAX, SAMPLED_MAX, MessageSample
from overlay.routing.routing_table import CoverForest
from overlay.statistics import RoutingTableFigures
from tests.overlay.test_cover_index import random_profile
from yfilter import LinkTarget, Matcher
from yfilter.engine.containment import Pattern, covers
from yfilter.engine.linear_paths import ANY_DOCUMENT, ANY_GRAPH, Conjunction, routing_query
from yfilter.engine.readings import Reading
from yfilter.language.query_parser import parse_profile


def figures(forest: CoverForest) -> RoutingTableFigures:
    forest.report(said := RoutingTableFigures())
    return said


def disjunct(profile: str) -> Conjunction:
    (only,) = routing_query(parse_profile(profile))
    return only


pattern_of = cache(Pattern)  # the same ones are compared again and again


def is_covered(interest: Conjunction, told: set[Conjunction]) -> bool:
    wanted = pattern_of(interest)
    return any(covers(pattern_of(one), wanted) for one in told)


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
    assert figures(forest).generalisations == 0


def test_without_a_budget_nothing_is_generalised() -> None:
    rng = Random(5)
    forest = CoverForest()
    forest.change([disjunct(random_profile(rng)) for _ in range(100)], ())
    assert figures(forest).generalised == 0


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
    after.blame(parse_text(b'<a><b x="v1" y="-1"/></a>'))
    assert (figures(after).useless, figures(after).unexplained) == (1, 0)


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
        # Texts become a list, with the rest if that is the same, or alone.
        (
            [f'/a[@z = 1]/b[@x = "{name}"]' for name in "qrstuvwxyz"],
            '/a[@z = 1]/b[@x = ("q", "r", "s", "t", "u", "v", "w", "x", "y", "z")]',
        ),
        (
            [f'/a[@y{name} > 1]/b[@x = "{name}"]' for name in "qrs"],
            '/a/b[@x = ("q", "r", "s")]',
        ),
        # What they have in common of several paths.
        ([f'/a[b[@x = "1"]][c{n}]' for n in range(20)], '/a/b[@x = "1"]'),
        # Names on the way to the same last step.
        ([f"/a/n{n}/c" for n in range(20)], "/a/*/c"),
    ],
)
def test_the_method_that_loses_least_is_chosen(profiles: list[str], expected: str) -> None:
    narrow = [disjunct(profile) for profile in profiles]
    found = generalise(narrow, BUDGET, excess=1.0)
    chosen = [wider.disjunct for wider in found if wider is not None]
    assert expected in [str(one) for one in chosen[:2]]
    for one in chosen:
        assert Conjunction.parse(one.text) == one
        assert sum(covers(Pattern(one), Pattern(other)) for other in narrow) >= 2


def test_what_has_nothing_in_common_becomes_everything() -> None:
    forest = CoverForest(Budget(3, 10**9))
    forest.change([disjunct(f"/n{number}") for number in range(5)], ())
    assert set(forest.told) == {ANY_DOCUMENT}


GRAPH = "/Q{urn:onyx:graph}g"
SUBJECT = f"{GRAPH}/Q{{urn:onyx:graph}}d"


def test_what_has_nothing_in_common_becomes_everything_of_its_reading() -> None:
    forest = CoverForest(Budget(3, 10**9))
    interests = [disjunct(f"/n{number}") for number in range(5)]
    interests += [disjunct(f"{SUBJECT}/n{number}") for number in range(5)]
    forest.change(interests, ())
    assert set(forest.told) == {ANY_DOCUMENT, ANY_GRAPH}


def test_one_of_each_reading_is_told_though_the_budget_has_room_for_one() -> None:
    forest = CoverForest(Budget(1, 10**9))
    forest.change([disjunct(f"/n{number}") for number in range(5)], ())
    forest.change([disjunct(f"{SUBJECT}/n{number}") for number in range(5)], ())
    while forest.is_working:
        forest.work()
    assert set(forest.told) == {ANY_DOCUMENT, ANY_GRAPH}


@pytest.mark.parametrize("seed", range(4))
def test_generalisations_are_of_the_reading_of_what_they_stand_for(seed: int) -> None:
    rng = Random(seed)
    objects = ['r = "http://e/%d"', 'v = "w%d"', "n = %d", 'l = "l%d"', 's = "http://s/%d"']
    interests = []
    for number in range(150):
        test = rng.choice(objects) % rng.randrange(20)
        other = rng.choice(["", '[@l = "en"]', "[@n > 3]"])
        start = SUBJECT if number % 3 else "/m/d"
        interests.append(disjunct(f"{start}[p{rng.randrange(3)}[@{test}]{other}]"))
    budget = Budget(25, 10**9)
    for found in generalise(interests, budget, 5.0):
        if found is None:
            continue
        wider = found.disjunct
        assert Conjunction.parse(wider.text) == wider
        below = [one for one in interests if covers(Pattern(wider), Pattern(one))]
        assert len(below) > 1 and {one.reading for one in below} == {wider.reading}
        if wider.reading is Reading.GRAPH:
            assert wider.text.startswith(GRAPH) and wider not in (ANY_GRAPH, disjunct(SUBJECT))
            assert not any(f"@{name} >=" in wider.text for name in "rsl")


def test_no_budget_allows_everything() -> None:
    assert UNBOUNDED.allows(10**9, 10**15)


def passing(told: Iterable[Conjunction], messages: Iterable[ElementStream]) -> list[ElementStream]:
    matcher = Matcher()
    for one in told:
        matcher.add_route(one, LinkTarget("", "parent"))
    return [one for one in messages if any(True for _ in matcher.match(one))]


def test_a_generalisation_that_lets_much_pass_gives_way_and_choices_settle() -> None:
    """One equality seems to be better than two tests, for who would know that all have a = 1."""
    rng = Random(3)
    forest = CoverForest(Budget(40, 10**9))
    interests = [
        disjunct(f'/m[@a = "1"][contains(@id, "{"xy"[n % 2]}")][@k{n} = "v"]') for n in range(200)
    ]
    forest.change(interests, ())
    texts = [b'<m a="1" id="%d"/>' % rng.randrange(400, 8_000) for _ in range(64)]
    messages = list(map(parse_text, texts))
    passed, revised = [], []
    for day in range(16):
        came = passing(forest.told, messages)
        passed.append(len(came))
        revised.append(figures(forest).revised)
        for message in came:
            forest.arrived("s1", day * len(messages) + messages.index(message))
            forest.blame(message)
        while forest.is_working:
            forest.work()
    assert passed[0] > 50
    assert passed[-1] < passed[0] / 5
    assert 0 < revised[-3] == revised[-1]
    assert all(is_covered(interest, set(forest.told)) for interest in interests)
    assert len(set(forest.told)) <= 40
    assert figures(forest).unexplained == 0


def test_a_sample_tells_which_values_are_rare() -> None:
    """All messages have one of ten areas; topics are many, of which more are asked for."""
    rng = Random(5)
    interests = [disjunct(f'/m[@area = "a{n % 10}"][@topic = "t{n}"]') for n in range(100)]

    def messages(count: int) -> list[ElementStream]:
        pairs = ((rng.randrange(10), rng.randrange(2_000)) for _ in range(count))
        texts = (f'<m area="a{area}" topic="t{topic}"/>' for area, topic in pairs)
        return [parse_text(text.encode()) for text in texts]

    unseen = messages(200)
    wanted = passing(interests, unseen)
    passed = {}
    for is_sampled in (False, True):
        sample = MessageSample()
        for message in messages(256) if is_sampled else ():
            sample.add(message)
        forest = CoverForest(Budget(5, 10**9), sample=sample)
        forest.change(interests, ())
        while forest.is_working:
            forest.work()
        assert len(set(forest.told)) <= 5
        assert all(is_covered(interest, set(forest.told)) for interest in interests)
        passed[is_sampled] = len(passing(forest.told, unseen))
    assert passed[False] > 100
    assert passed[True] <= len(wanted) + 20


def test_a_sample_keeps_the_last_messages_within_its_bounds() -> None:
    sample = MessageSample()
    for number in range(SAMPLED_MAX + 10):
        sample.add(parse_text(b'<message n="%d"/>' % number))
    assert len(sample) == SAMPLED_MAX
    asked = [disjunct(f'/message[@n = "{number}"]') for number in (9, 10, SAMPLED_MAX + 9)]
    holdings = [holding for _, holding in sample.holdings(asked)]
    assert holdings == [0, 1, 1 << (SAMPLED_MAX - 1)]
    sample.add(parse_text(b"<m>" + b"x" * (SAMPLED_BYTES_MAX - 10) + b"</m>"))
    assert len(sample) == 1


def test_a_large_forest_is_generalised_in_steps_that_are_never_less_than_wanted() -> None:
    rng = Random(4)
    forest = CoverForest(Budget(200, 10**9))
    interests = [
        disjunct(f'/m[@a = "{rng.randrange(200)}"][@b = "{number}"]') for number in range(800)
    ]
    forest.change(interests, ())
    assert forest.is_working
    assert len(set(forest.told)) > 200
    steps = 0
    while forest.is_working:
        forest.work()
        steps += 1
        gone = interests.pop()
        forest.change((), [gone])
    assert steps > 1
    told = set(forest.told)
    assert len(told) <= 200
    assert all(is_covered(interest, told) for interest in interests)
