"""Budget: what may still be spent on one profile and one message; see EvaluationLimits.

What is looked at and made is counted, in visits.  How long that takes is not known from the count,
so after FIRST_LOOK of them somebody looks at the clock, and then about every half millisecond, by
what the last visits took: what costs less never does.  Values are charged by their size before they
are built, and of much that is charged at once each visit is thought to take AHEAD_SECONDS.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from yfilter.errors import MatchLimitExceeded
from yfilter.language.profile_limits import EvaluationLimits, no_time

ELEMENTPATH_COST = 32  # of a call of elementpath, in visits
CALL_COST = 16  # of a call of a declared function
FIRST_LOOK = 128  # visits, of some microseconds each
FIRST_STEP = 16  # between the first look and the second
LOOK_VISITS_MAX = 1024
LOOK_SECONDS = 5e-4
AHEAD_SECONDS = 1e-7
MUCH = 4096  # visits that are charged at once
NOT_BEGUN = -1.0
SMALL = 65_536  # bytes of a value that is not charged: time bounds how many there can be
ITEM_BYTES = 32  # of an item of a sequence, about
POINTER_BYTES = 8  # of one that is there already
ROW_BYTES = 48  # of a node of a constructed tree, in all columns
TEXT_VISIT = 64  # characters that cost as much as a visit


class Budget:
    """Each ``charge`` raises MatchLimitExceeded when there is not enough left.

    ``began``: when the evaluation did, by the clock of processor time, as far as it has looked.
    """

    def __init__(self, limits: EvaluationLimits) -> None:
        self.limits = limits
        self.renew()

    def renew(self) -> None:
        """All of it may be spent again."""
        self._visits_before = 0
        self.tuples_left = self.limits.tuples_max
        self.visits_left = self.limits.visits_max
        self.bytes_left = self.limits.bytes_max
        self.memory_left = self.limits.memory_max
        self.began = self._looked = NOT_BEGUN
        self._looked_left = self.visits_left
        self._step = FIRST_STEP
        self._look_at = max(self.visits_left - FIRST_LOOK, 0)

    @property
    def visits(self) -> int:
        """What was charged since then."""
        return self._visits_before + self.limits.visits_max - self.visits_left

    def go_on(self) -> None:
        """All of it may be spent once more, for something else."""
        visits = self.visits
        self.renew()
        self._visits_before = visits

    def charge(self, amount: int = 1) -> None:
        """Counts nodes looked at and items made."""
        self.visits_left -= amount
        if self.visits_left < self._look_at:
            self._look(amount)

    def charge_text(self, size: int) -> None:
        """Counts a text of so many characters that is gone through."""
        if size >= TEXT_VISIT:
            self.charge(size // TEXT_VISIT)

    def charge_rows(self, rows: int) -> None:
        """Counts the rows of a tree, which stay until the message ends."""
        self.charge(rows)
        self.charge_memory(ROW_BYTES * rows, small=0)

    def charge_memory(self, size: int, small: int = SMALL) -> None:
        """Counts a value of about so many bytes that is about to be built."""
        if size > small:
            self.memory_left -= size
            if self.memory_left < 0:
                raise MatchLimitExceeded(
                    "too-much-memory",
                    f"the values of a profile take more than {self.limits.memory_max} bytes",
                )

    def charge_tuple(self) -> None:
        self.visits_left -= 1
        if self.visits_left < self._look_at:
            self._look()
        self.tuples_left -= 1
        if self.tuples_left < 0:
            raise too_many_tuples(self.limits)

    def charge_bytes(self, size: int) -> None:
        """Counts what is about to be written, so that a bound holds before memory is spent."""
        self.bytes_left -= size
        self.charge_text(size)
        if self.bytes_left < 0:
            raise MatchLimitExceeded(
                "result-too-large",
                f"the results of a profile are larger than {self.limits.bytes_max} bytes",
            )

    def _look(self, amount: int = 0) -> None:
        if self.visits_left < 0:
            raise too_many_visits()
        now = since(self.began, self.limits, AHEAD_SECONDS * amount if amount > MUCH else 0.0)
        if self.began == NOT_BEGUN:
            self.began = now
        elif self._looked != NOT_BEGUN:
            spent = max(self._looked_left - self.visits_left - amount, 1)
            self._step = paced(min(spent, self._step), now - self._looked)
        self._looked, self._looked_left = now, self.visits_left
        self._look_at = max(self.visits_left - self._step, 0)


def since(began: float, limits: EvaluationLimits, ahead: float = 0.0) -> float:
    """What time it is; MatchLimitExceeded where an evaluation began too long ago, with so many
    seconds more that it is about to take."""
    now = limits.clock()
    if limits.clock is no_time:
        ahead = 0.0
    if ahead + (0.0 if began == NOT_BEGUN else now - began) > limits.seconds_max:
        raise too_much_time(limits)
    return now


def paced(visits: int, seconds: float) -> int:
    """Visits until the next look, by what the last so many took; at most twice as many."""
    if seconds * 2 <= LOOK_SECONDS:
        return min(2 * visits, LOOK_VISITS_MAX)
    return max(int(visits * LOOK_SECONDS / seconds), 1)


def too_much_time(limits: EvaluationLimits) -> MatchLimitExceeded:
    return MatchLimitExceeded(
        "too-much-time",
        f"a profile takes more than {1000 * limits.seconds_max:g} ms for this message",
    )


def too_many_tuples(limits: EvaluationLimits) -> MatchLimitExceeded:
    return MatchLimitExceeded(
        "too-many-tuples", f"a profile binds more than {limits.tuples_max} tuples"
    )


def too_many_visits() -> MatchLimitExceeded:
    return MatchLimitExceeded(
        "too-many-visits", "a condition looks at too many nodes of this message"
    )


# -------------------------------------------------------------------------------------------------
# Room for what declared functions nest: Python's own bound is for mistakes, ours are limits.


# Calls of Python within each other; far below what a thread's stack can take.
FRAMES_MAX = 8_000

_Made = TypeVar("_Made")


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Evaluates what may nest deeply.  Raises MatchLimitExceeded where FRAMES_MAX is not enough."""
    before = sys.getrecursionlimit()
    if before >= FRAMES_MAX:  # within another one
        yield
        return
    sys.setrecursionlimit(FRAMES_MAX)
    try:
        yield
    except RecursionError:
        raise MatchLimitExceeded(
            "too-many-calls", "a profile's functions call each other too deeply on this message"
        ) from None
    finally:
        sys.setrecursionlimit(before)


def deeply(work: Callable[[], _Made]) -> _Made:
    """What ``work`` makes, which is asked once more, with room, if it nests deeply."""
    try:
        return work()
    except RecursionError:
        if sys.getrecursionlimit() >= FRAMES_MAX:
            raise
        with deep_recursion():
            return work()
