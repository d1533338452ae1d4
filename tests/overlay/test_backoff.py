"""Backoff: how long to wait before the next try of what failed."""

from __future__ import annotations

from overlay.backoff import Backoff

BACKOFF = Backoff(0.1, 10.0)


def test_a_pause_doubles_up_to_the_longest() -> None:
    assert [BACKOFF.after(failures) for failures in (1, 2, 3, 7)] == [0.1, 0.2, 0.4, 6.4]
    assert BACKOFF.after(8) == BACKOFF.after(10**9) == 10.0


def test_a_spread_pause_is_half_of_it_at_least_and_the_same_each_time() -> None:
    for failures in range(1, 60):
        pause = BACKOFF.spread(failures, "broker/B")
        assert BACKOFF.after(failures) / 2 <= pause < BACKOFF.after(failures)
        assert pause == BACKOFF.spread(failures, "broker/B")


def test_those_who_failed_together_do_not_try_again_together() -> None:
    assert len({BACKOFF.spread(9, f"broker/{name}") for name in "ABCDEFGH"}) == 8
