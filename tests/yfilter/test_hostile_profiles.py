"""What hostile profiles cost: so many looks at the clock, and so much memory, whatever they say."""

from __future__ import annotations

import tracemalloc

import pytest

from formats.text import parse_text
from tests.yfilter.hostile_profiles import HARMLESS, HOSTILE, MESSAGE
from yfilter import Matcher, MatchLimits
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.matches import Delivered

LOOKS = 10  # that a profile has for a message, a millisecond each
STREAM = parse_text(MESSAGE)


class Ticking:
    """A clock of processor time: between two looks a millisecond passes, or so many."""

    def __init__(self, milliseconds: int = 1) -> None:
        self.looks = 0
        self._milliseconds = milliseconds

    def __call__(self) -> float:
        self.looks += 1
        return self.looks * self._milliseconds / 1000


def deliver(*profiles: str, clock: Ticking | None = None) -> dict[str, Delivered]:
    """What profiles get of the message, by their texts."""
    limits = EvaluationLimits(seconds_max=LOOKS / 1000, clock=clock or Ticking())
    matcher = Matcher(MatchLimits(evaluation=limits))
    texts = {matcher.add(text): text for text in profiles}
    return {
        texts[matcher.id_of(number)]: one
        for one in matcher.deliver(STREAM)
        for number in one.numbers
    }


def test_there_are_sixty() -> None:
    assert len(HOSTILE) >= 60


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_profile_ends_in_bounded_time_and_says_so(name: str) -> None:
    profile = HOSTILE[name]
    clock = Ticking()
    found = deliver(profile, "/a/t", clock=clock)
    assert clock.looks <= 4 * LOOKS  # conditions and results, and a path within them, each its own
    assert found["/a/t"].results
    if name not in HARMLESS:
        told = found[profile]
        assert not told.results
        assert told.exceeded is not None
        assert told.exceeded.code.startswith("too-") or told.exceeded.code == "result-too-large"


def test_a_search_that_would_take_long_is_not_begun_and_its_user_is_told() -> None:
    """A clock that stands still: what a search takes can only be known ahead."""
    limits = EvaluationLimits(seconds_max=0.005, clock=lambda: 0.0)
    matcher = Matcher(MatchLimits(evaluation=limits))
    long, short = "/a[matches(t, 'a.{50}c')]/x", "/a[matches(x, 'a.{50}c')]/x"
    texts = {matcher.add(text): text for text in (long, short, "/a[matches(t, '^ab')]/x", "/a/x")}
    message = parse_text(f"<a><t>{'ab' * 30_000}</t><x>a{'b' * 50}c</x></a>".encode())
    found = {
        texts[matcher.id_of(number)]: one
        for one in matcher.deliver(message)
        for number in one.numbers
    }
    assert found.pop(long).exceeded is not None
    assert set(found) == set(texts.values()) - {long}
    assert all(one.results for one in found.values())


@pytest.mark.parametrize(
    "name",
    [
        *("a range of all integers", "a range for a condition", "ranges beside each other"),
        *("sequences that double", "texts that double", "joined by a long text"),
        *("reversed and doubled", "inserted and doubled", "copies that a path begins in"),
    ],
)
def test_memory_is_charged_before_it_is_built(name: str) -> None:
    tracemalloc.start()
    try:
        matcher = Matcher(MatchLimits())  # nothing but memory ends these
        matcher.add(HOSTILE[name])
        (found,) = matcher.deliver(STREAM)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.exceeded is not None and found.exceeded.code == "too-much-memory"
    assert peak < 64 * 1024 * 1024


def test_replace_in_replace_is_charged_before_it_is_built() -> None:
    """Three gigabytes of a message of two hundred bytes, and with no clock to stop it."""
    matcher = Matcher()
    matcher.add(HOSTILE["replace in replace"])
    (told,) = matcher.deliver(b"<a><t>" + b"a" * 200 + b"</t></a>")
    assert told.exceeded is not None
    assert told.exceeded.code in ("too-much-memory", "too-many-visits")


def test_a_condition_that_is_given_up_is_told_beside_what_others_get() -> None:
    costly = HOSTILE["pairs that never sum"]
    found = deliver(costly, costly.replace("/a[", "/a[t]["), "/a[v = 7]", "/a[v = 'x']")
    assert set(found) == {costly, costly.replace("/a[", "/a[t]["), "/a[v = 7]"}
    assert found["/a[v = 7]"].results == [MESSAGE]


def test_what_is_false_for_another_reason_is_not_told() -> None:
    costly = HOSTILE["pairs that never sum"]
    assert deliver(costly.replace("/a[", "/a[nothing][")) == {}
    assert deliver(costly.replace("/a[", "/a[@x = 1][")) == {}


def test_a_cheap_profile_never_looks_at_the_clock() -> None:
    clock = Ticking()
    deliver("/a[v = 7]", "for $v in /a/v return <r>{$v}</r>", "/a[count(v) > 7]/v", clock=clock)
    assert clock.looks == 0


def test_the_time_of_a_condition_is_that_of_all_its_elements() -> None:
    """On one element it is cheap, and it is asked of three hundred."""
    clock = Ticking()
    profile = "/a/v[(some $x in 1 to 1000 satisfies $x + . = -1)]"
    told = deliver(profile, clock=clock)[profile]
    assert told.exceeded is not None and told.exceeded.code == "too-much-time"
    assert clock.looks <= 4 * LOOKS
