"""Knowing when a network has nothing left to do."""

from __future__ import annotations

from typing import Any

import pytest

from demo.quiescence import Counters, abnormal, is_over, read_counters
from overlay.statistics import BrokerStatistics, Data, Journal, Sending

DONE = Counters(published=3, crossings=4, received=4, delivered=2, backlog_bytes=0)


def statistics(**data: Any) -> BrokerStatistics:
    return BrokerStatistics(data=Data(**data))


def test_over_when_two_rounds_agree_and_all_is_received_acknowledged_and_delivered() -> None:
    assert is_over(DONE, DONE, published=3, arrived=2)


def test_more_deliveries_than_made_are_no_reason_to_wait() -> None:
    assert is_over(DONE, DONE, published=3, arrived=3)


@pytest.mark.parametrize(
    ("before", "now", "published", "arrived"),
    [
        (None, DONE, 3, 2),
        (Counters(3, 3, 4, 2, 0), DONE, 3, 2),
        (Counters(3, 4, 3, 2, 0), Counters(3, 4, 3, 2, 0), 3, 2),
        (Counters(3, 4, 4, 2, 9), Counters(3, 4, 4, 2, 9), 3, 2),
        (DONE, DONE, 4, 2),
        (DONE, DONE, 3, 1),
    ],
)
def test_not_over(before: Counters | None, now: Counters, published: int, arrived: int) -> None:
    assert not is_over(before, now, published, arrived)


def test_counters_are_sums_over_all_brokers() -> None:
    one = statistics(published=3, crossings={"B2": 2, "B3": 2}, delivered=1)
    other = statistics(received=4, delivered=1)
    other.links.journals = {
        "broker/B1": Journal(sending={"message:B1": Sending(7)}),
        "broker/B3": Journal(sending={"query:B1": Sending(100)}),
    }
    other.mailboxes.waiting_bytes = 5
    counters = read_counters({"B1": one, "B2": other})
    assert counters == Counters(3, 4, 4, 2, 12)
    assert not counters.balanced


def test_what_must_not_happen_is_named() -> None:
    assert abnormal({"B1": statistics()}) == []
    bad = statistics(abandoned=1, dropped_deliveries=2, results_over_limit=3)
    bad.unexpected = {"not-expected": 4}
    bad.query.matcher.over_limit = 5
    assert len(abnormal({"B1": bad})) == 5
