"""Seeds: which seeds the tests of the simulation take.

CI takes a sixth of the usual seeds of each scenario, the first ones.  A campaign by hand takes
TIMES as many as usual, from seed FIRST on if that is set, and says at its end how many were lived
through (``conftest.py``)::

    ONYX_SIMULATION_TIMES=50 ONYX_SIMULATION_FIRST=100000 pytest -n auto tests/simulation
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from fractions import Fraction
from math import ceil

TIMES = Fraction(os.environ.get("ONYX_SIMULATION_TIMES", "1/6"))
FIRST = os.environ.get("ONYX_SIMULATION_FIRST")
LEAST = 2
FURTHER = 48

lived: set[tuple[str, int]] = set()
"""(test, seed) of the scenarios of this process."""


def seeds(usual: int, first: int = 1) -> range:
    """``usual`` seeds from ``first`` on, as many of them as CI or a campaign asks for."""
    begin = first if FIRST is None else int(FIRST)
    return range(begin, begin + max(LEAST, ceil(usual * TIMES)))


def known_seeds(usual: int) -> range:
    """The same of a scenario whose seeds are known to show something: never others than usual."""
    return range(1, 1 + min(usual, max(LEAST, ceil(usual * TIMES))))


def batch(these: range, first: int, count: int) -> range:
    """The seeds of one test, which begin at ``first``: ``count``, or as many as are left."""
    return these[first - these.start :][:count]


def until_seen(
    these: range, seen: Mapping[str, int], rare: Collection[str], known: Iterable[int] = ()
) -> Iterator[int]:
    """These seeds, and until each rare thing was seen, which the caller counts meanwhile, those
    that are known to show one, and up to three times as many as these, or FURTHER."""
    yield from these
    for seed in (*known, *range(these.stop, these.stop + max(3 * len(these), FURTHER))):
        if all(seen[each] for each in rare):
            return
        yield seed


def note(seed: int) -> None:
    """A scenario begins."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition("[")[0]
    lived.add((test.removesuffix(" (call)"), seed))
