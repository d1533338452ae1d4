"""Processor time of a piece of work, in microseconds: the least of some rounds, so that what else
the machine does counts as little as it can."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")


def microseconds(work: Callable[[_Item], object], items: Sequence[_Item], rounds: int) -> float:
    """Per item, all items one after the other."""
    best = float("inf")
    for _ in range(rounds):
        begun = time.process_time_ns()
        for item in items:
            work(item)
        best = min(best, time.process_time_ns() - begun)
    return best / 1000 / len(items)
