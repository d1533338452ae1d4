"""The choice of a format: the same figures lead to the same choice, and small ones to none."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from formats import WireFormat
from onyx.broker.packing.format_choice import (
    CANDIDATES,
    GAP_MAX,
    MEASURED_LEAST,
    Cost,
    FormatChoice,
)
from overlay.statistics import Estimate

TEXT, BINARY, PACKED = WireFormat.TEXT, WireFormat.BINARY, WireFormat.BINARY_ZSTD
COSTS = {TEXT: Cost(1000, 40, 200), BINARY: Cost(800, 10, 20), PACKED: Cost(300, 40, 35)}
SLOW, FAST = 10_000.0, 100_000_000.0  # bytes a second


def settled(bandwidth: float, costs: dict[WireFormat, Cost] = COSTS) -> FormatChoice:
    choice = FormatChoice()
    for _ in range(MEASURED_LEAST):
        choice.measured(costs, bandwidth)
    return choice


def test_bytes_decide_on_a_slow_link_and_processor_time_on_a_fast_one() -> None:
    assert settled(SLOW).chosen is PACKED
    assert settled(FAST).chosen is BINARY


def test_the_estimate_is_bytes_over_bandwidth_and_both_ends_time() -> None:
    estimates = settled(SLOW).statistics("").estimates
    assert estimates == [
        Estimate("binary+zstd", bytes=300, encode_us=40, decode_us=35, us=30_075),
        Estimate("binary", bytes=800, encode_us=10, decode_us=20, us=80_030),
        Estimate("text", bytes=1000, encode_us=40, decode_us=200, us=100_240),
    ]
    assert settled(SLOW).why() == "30,075 us a message, binary 80,030"


def test_nothing_is_chosen_before_enough_is_measured() -> None:
    choice = FormatChoice()
    for number in range(MEASURED_LEAST):
        assert choice.chosen is BINARY
        assert choice.why() == f"{number} of {MEASURED_LEAST} measurements made"
        choice.measured(COSTS, SLOW)
    assert choice.chosen is PACKED


def test_a_small_gain_changes_nothing() -> None:
    costs = {BINARY: Cost(1000, 0, 0), PACKED: Cost(900, 0, 0)}
    choice = settled(SLOW, costs)
    assert choice.chosen is BINARY
    assert "not 15% less" in choice.why()
    assert settled(SLOW, {**costs, PACKED: Cost(840, 0, 0)}).chosen is PACKED


def test_costs_that_swing_do_not_make_the_choice_swing() -> None:
    random = Random(1)
    choice = FormatChoice()
    for _ in range(2000):
        noise = {PACKED: Cost(1000, random.uniform(0, 200), 0), BINARY: Cost(1000, 100, 0)}
        choice.measured(noise, FAST)
    changes = choice.statistics("").changes
    assert isinstance(changes, int) and changes <= 2000 // (10 * MEASURED_LEAST)


def test_it_follows_what_has_really_changed() -> None:
    choice = settled(FAST)
    for _ in range(40):
        choice.measured(COSTS, SLOW)
    assert choice.chosen is PACKED
    for _ in range(40):
        choice.measured({**COSTS, PACKED: Cost(300, 90_000, 0)}, SLOW)
    assert choice.chosen is BINARY


def test_a_format_that_is_spoken_no_longer_is_given_up_at_once() -> None:
    choice = settled(SLOW)
    choice.measured({TEXT: COSTS[TEXT]}, SLOW)
    assert choice.chosen is TEXT
    choice.measured({}, SLOW)
    assert choice.chosen is TEXT


def test_of_equal_formats_the_plainest_is_taken() -> None:
    costs = dict.fromkeys(reversed(CANDIDATES), Cost(100, 1, 1))
    costs[BINARY] = Cost(900, 1, 1)
    assert settled(SLOW, costs).chosen is TEXT


def test_measurements_become_rare_and_are_frequent_again_after_a_change() -> None:
    choice = FormatChoice()
    due = []
    for number in range(4 * GAP_MAX):
        if choice.is_due():
            due.append(number)
            choice.measured(COSTS, FAST)
    assert due[:MEASURED_LEAST] == list(range(MEASURED_LEAST))
    assert len(due) < 16
    gaps = [after - before for before, after in pairwise(due)]
    assert gaps == sorted(gaps) and gaps[-1] == GAP_MAX
    while choice.chosen is BINARY:
        choice.measured(COSTS, SLOW)
    waited = next(number for number in range(GAP_MAX + 1) if choice.is_due())
    assert waited <= GAP_MAX
    assert next(number for number in range(GAP_MAX) if choice.is_due()) <= 1


@pytest.mark.parametrize("bandwidth", [SLOW, FAST])
def test_it_is_deterministic(bandwidth: float) -> None:
    assert settled(bandwidth).statistics("") == settled(bandwidth).statistics("")
