"""How many bytes a second a link carries, from what was sent and acknowledged."""

from __future__ import annotations

import pytest

from overlay.link.frames import Ack, Message
from overlay.link.journal import BYTES_LEAST, KEPT_RATES, SECONDS_MAX, DeliveryRate
from tests.overlay.link.pair import Hand, make_links

BURST = 2 * BYTES_LEAST


def test_a_burst_measures_the_link() -> None:
    rate = DeliveryRate()
    assert rate.bytes_per_second is None
    rate.sent(BURST, 10.0)
    rate.acknowledged(BURST, 10.5)
    assert rate.bytes_per_second == BURST / 0.5


def test_little_says_nothing() -> None:
    rate = DeliveryRate()
    for second in range(100):
        rate.sent(BYTES_LEAST - 1, second)
        rate.acknowledged(BYTES_LEAST - 1, second + 0.001)
    assert rate.bytes_per_second is None


def test_a_link_that_is_never_idle_is_measured_all_the_time() -> None:
    rate = DeliveryRate()
    now = 0.0
    rate.sent(BURST, now)
    for _ in range(50):
        now += SECONDS_MAX / 10
        rate.sent(100_000, now)
        rate.acknowledged(100_000, now)
    assert rate.bytes_per_second == pytest.approx(1_000_000)


def test_the_best_of_the_last_few_counts() -> None:
    rate = DeliveryRate()
    for number, seconds in enumerate([0.1] + [1.0] * (KEPT_RATES - 1)):
        rate.sent(BURST, 10.0 * number)
        rate.acknowledged(BURST, 10.0 * number + seconds)
    assert rate.bytes_per_second == pytest.approx(BURST / 0.1)
    rate.sent(BURST, 1000.0)
    rate.acknowledged(BURST, 1001.0)
    assert rate.bytes_per_second == pytest.approx(BURST)


def test_what_a_lost_connection_had_on_the_wire_does_not_count() -> None:
    rate = DeliveryRate()
    rate.sent(BURST, 0.0)
    rate.lost()
    rate.sent(BURST, 100.0)
    rate.acknowledged(BURST, 101.0)
    assert rate.bytes_per_second == BURST


def test_the_link_layer_measures_its_own_sends() -> None:
    hand = Hand(make_links())
    hand.meet()
    payload = bytes(BURST)
    hand.links.send("broker/B2", "B1", Message("B1", "s1", 1, "text", 1, payload))
    hand.drain()
    assert hand.links.delivery_rate("broker/B2") is None
    hand.now = 2.0
    hand.receive(Ack(3, "B1", 1))
    assert hand.links.delivery_rate("broker/B2") == pytest.approx(BURST / 2, rel=0.01)
