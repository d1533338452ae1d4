"""A message's whole way, timed: from its bytes to the results of all profiles that it matches.

Messages that count have not been seen by the engine before.  Blocks of them take turns with lxml's
parse of the same messages, so that a machine that slows down slows all of them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TypeVar

import lxml.etree

from benchmarks.delivery.job import Clock, DeliverJob
from benchmarks.samples import mean
from yfilter import Matcher, MatchLimits, ProfileMatch

_BLOCK = 25
_LEAST = 3

_Item = TypeVar("_Item")


def make_matcher(profiles: Sequence[str]) -> Matcher:
    """A Matcher with these; the id of each is its place in the sequence."""
    matcher = Matcher(MatchLimits(profiles_max=len(profiles) + 1))
    for number, profile in enumerate(profiles):
        matcher.add(profile, str(number))
    matcher.prepare()
    return matcher


def delivered(matcher: Matcher, message: bytes) -> Iterator[tuple[Sequence[int], list[bytes]]]:
    """Numbers of registrations, and the results that all of these have in common."""
    deliver = getattr(matcher, "deliver", None)
    if deliver is not None:
        for one in deliver(message):
            yield one.numbers, one.results
        return
    for match in matcher.match(message):
        if isinstance(match, ProfileMatch):
            yield (matcher.number_of(match.profile_id),), match.results()


def results_of(matcher: Matcher, message: bytes) -> dict[int, list[bytes]]:
    """The results of each profile that matches, by its place; see ``make_matcher``."""
    return {
        int(matcher.id_of(number)): results
        for numbers, results in delivered(matcher, message)
        for number in numbers
    }


@dataclass(slots=True)
class Times:
    """Microseconds, one for each message; ``matches`` and ``results`` of each.

    all_in          parsed, matched, results there; a message not seen before
    lxml_parse      U
    matched         parsed and matched, numbers alone, after that
    all_in_again    all-in once more
    """

    all_in: list[float] = field(default_factory=list)
    lxml_parse: list[float] = field(default_factory=list)
    matched: list[float] = field(default_factory=list)
    all_in_again: list[float] = field(default_factory=list)
    matches: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)

    @property
    def results_us(self) -> float:
        """What results cost a message, beyond matching."""
        return mean(self.all_in_again) - mean(self.matched)


def measure(
    matcher: Matcher, warm: Sequence[bytes], messages: Sequence[bytes], job: DeliverJob
) -> Times:
    """Warms up and measures, as many messages as the job has time for."""
    clock = job.clock()

    def whole(message: bytes) -> tuple[int, int]:
        matches = results = 0
        for numbers, made in delivered(matcher, message):
            matches += len(numbers)
            results += len(made)
        return matches, results

    within(warm[: job.warmup], whole, job.seconds)
    times = Times()
    end = perf_counter() + job.seconds
    gc.collect()
    chosen = messages[: job.measured]
    first, size = 0, _LEAST
    while first < len(chosen):
        block = chosen[first : first + size]
        first, size = first + size, min(2 * size, _BLOCK)
        counted = _time(whole, block, times.all_in, clock)
        times.matches += [matches for matches, _ in counted]
        times.results += [results for _, results in counted]
        _time(lxml.etree.fromstring, block, times.lxml_parse, clock)
        _time(lambda message: len(matcher.matched_numbers(message)), block, times.matched, clock)
        _time(whole, block, times.all_in_again, clock)
        if perf_counter() > end:
            break
    return times


def within(items: Sequence[_Item], function: Callable[[_Item], object], seconds: float) -> int:
    """Calls it on one after the other, at least three, until the time is up; how many."""
    end = perf_counter() + seconds
    done = 0
    for done, item in enumerate(items, 1):
        function(item)
        if done >= _LEAST and perf_counter() > end:
            break
    return done


def _time(
    function: Callable[[bytes], _Item], messages: Sequence[bytes], times: list[float], clock: Clock
) -> list[_Item]:
    """Calls the function on each message, appends microseconds, gives what it gave."""
    found = []
    for message in messages:
        start = clock()
        one = function(message)
        times.append((clock() - start) / 1000)
        found.append(one)
    return found
