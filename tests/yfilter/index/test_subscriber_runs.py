"""Runs of registrations against a dict of sets."""

from __future__ import annotations

from array import array
from random import Random

import pytest

from yfilter.index.automaton import SubscriberRuns


@pytest.mark.parametrize("seed", range(4))
def test_runs_hold_what_was_added_and_not_removed(seed: int) -> None:
    rng = Random(seed)
    runs = SubscriberRuns()
    wanted: dict[int, set[int]] = {query: set() for query in range(1, 400)}
    for registration in range(1, 3_000):
        query = rng.choice((1, 2, rng.randint(1, 399)))
        if wanted[query] and rng.random() < 0.45:
            gone = rng.choice(sorted(wanted[query]))
            wanted[query].remove(gone)
            runs.remove(query, gone)
        else:
            wanted[query].add(registration)
            runs.add(query, registration)
        if registration % 100 == 0:
            queries = rng.sample(sorted(wanted), rng.randint(0, 399))
            found = runs.collect(array("i", queries), len(queries))
            assert sorted(found) == sorted(n for query in queries for n in wanted[query])


def test_the_memory_of_runs_is_used_again() -> None:
    runs = SubscriberRuns()
    sizes = []
    for _ in range(3):
        for registration in range(1, 1_000):
            runs.add(1, registration)
        for registration in range(1, 1_000):
            runs.remove(1, registration)
        sizes.append(runs.size_bytes())
    assert sizes[0] == sizes[1] == sizes[2]
