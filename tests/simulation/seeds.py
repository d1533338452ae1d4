"""Seeds: which seeds the tests of the simulation take.

The suite takes a few of each scenario.  A campaign by hand takes TIMES as many, from seed FIRST
on, and says at its end how many were lived through (``conftest.py``)::

    ONYX_SIMULATION_TIMES=50 ONYX_SIMULATION_FIRST=100000 pytest -n auto tests/simulation
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping

TIMES = int(os.environ.get("ONYX_SIMULATION_TIMES", "1"))
FIRST = os.environ.get("ONYX_SIMULATION_FIRST")

lived: set[tuple[str, int]] = set()
"""(test, seed) of the scenarios of this process."""


def seeds(usual: int, first: int = 1) -> range:
    """``usual`` seeds from ``first`` on, or what a campaign asks for."""
    begin = first if FIRST is None else int(FIRST)
    return range(begin, begin + usual * TIMES)


def until_seen(these: range, seen: Mapping[str, int], rare: Collection[str]) -> Iterator[int]:
    """These seeds, and up to three times as many behind them until each rare thing was seen, which
    the caller counts meanwhile."""
    for seed in range(these.start, these.start + 4 * len(these)):
        if seed >= these.stop and all(seen[each] for each in rare):
            return
        yield seed


def note(seed: int) -> None:
    """A scenario begins."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").partition("[")[0]
    lived.add((test.removesuffix(" (call)"), seed))
