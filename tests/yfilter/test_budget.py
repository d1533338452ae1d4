"""How near a bound of time is kept, by a clock that goes on as the work does."""

from __future__ import annotations

import pytest

from yfilter.errors import MatchLimitExceeded
from yfilter.language.budget import FIRST_LOOK, MUCH, Budget
from yfilter.language.profile_limits import EvaluationLimits

BOUND = 0.01


class Worker:
    """Spends a budget; every visit takes ``each`` seconds."""

    def __init__(self, each: float) -> None:
        self.each = each
        self.spent = 0.0
        self.looks = 0
        self.budget = Budget(EvaluationLimits(seconds_max=BOUND, clock=self._clock))

    def _clock(self) -> float:
        self.looks += 1
        return self.spent

    def work(self, visits: int, amount: int = 1) -> None:
        for _ in range(visits // amount):
            self.budget.charge(amount)
            self.spent += amount * self.each


@pytest.mark.parametrize("each", [1e-7, 1e-6, 1e-5, 1e-4])
def test_time_is_kept_within_a_tenth_from_the_first_look_on(each: float) -> None:
    worker = Worker(each)
    worker.work(FIRST_LOOK)
    before = worker.spent
    with pytest.raises(MatchLimitExceeded, match="10 ms"):
        worker.work(10**6)
    assert BOUND <= worker.spent - before <= 1.1 * BOUND + 2 * each


def test_what_becomes_dearer_is_looked_at_more_often() -> None:
    worker = Worker(1e-7)
    worker.work(20_000)
    worker.each = 1e-5
    before = worker.spent
    with pytest.raises(MatchLimitExceeded):
        worker.work(10**6)
    assert worker.spent <= 1.2 * BOUND + before


def test_little_work_is_little_looking() -> None:
    worker = Worker(1e-7)
    worker.work(FIRST_LOOK)
    assert worker.looks == 0
    worker.work(50_000)
    assert worker.looks < 60


def test_much_at_once_is_not_begun_where_it_cannot_end_in_time() -> None:
    worker = Worker(1e-7)
    with pytest.raises(MatchLimitExceeded):
        worker.budget.charge(MUCH * 100)
    assert worker.spent == 0.0
