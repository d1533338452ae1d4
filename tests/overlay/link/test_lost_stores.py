"""A broker whose store was emptied, or is an older copy, is not let in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from overlay.link.frames import Ack, ErrorFrame, SourceReady
from tests.overlay.link.pair import Hand, closed, hello, make_links


def met() -> Hand:
    """Three frames went to B2, on two channels; of one it has acknowledged two."""
    hand = Hand(make_links())
    hand.meet()
    for key in ("a", "a", "b"):
        hand.links.send("broker/B2", key, SourceReady("s1"))
    hand.drain()
    hand.receive(Ack(1, "a", 2))
    hand.lose()
    return hand


@pytest.mark.parametrize("received", [[], [(1, "a", 1)], [(1, "a", 0), (1, "b", 1)]])
def test_who_has_less_than_he_acknowledged_is_told_and_sent_nothing(
    received: list[tuple[int, str, int]],
) -> None:
    hand = met()
    hand.open(2)
    anew = replace(hello(received=received), instance="another run")
    (error,) = hand.receive(anew, connection=2)
    assert isinstance(error, ErrorFrame)
    assert (error.code, error.fatal) == ("store-lost", True)
    assert error.detail.startswith("the store of broker/B2 was emptied, or is an older copy")
    assert closed(hand.actions) == [2]
    assert not hand.links.connected("broker/B2")
    assert hand.links.refusal("broker/B2").startswith("store-lost")


def test_who_finds_that_a_peer_has_more_than_he_ever_sent_has_lost_his_own() -> None:
    hand = Hand(make_links())
    hand.open()
    (error,) = hand.receive(hello(received=[(1, "a", 7)]))
    assert isinstance(error, ErrorFrame)
    assert error.code == "store-lost"
    assert error.detail.startswith("the store of broker/B1 was emptied")


def test_a_channel_may_be_forgotten_at_one_end_before_the_other() -> None:
    hand = met()
    hand.links.journal("broker/B2").forget_channels({"a"})
    hand.open(2)
    hand.receive(replace(hello(received=[(1, "a", 2)]), instance="another run"), connection=2)
    assert hand.links.connected("broker/B2")


def test_a_hello_may_be_older_than_acknowledgements_of_the_same_run() -> None:
    hand = met()
    hand.open(2)
    hand.receive(hello(), connection=2)
    assert hand.links.connected("broker/B2")


def test_whoever_has_what_he_acknowledged_is_welcome() -> None:
    hand = met()
    hand.open(2)
    hand.receive(replace(hello(received=[(1, "a", 2)]), instance="another run"), connection=2)
    assert hand.links.connected("broker/B2")
    assert hand.links.refusal("broker/B2") == ""


def test_sources_may_have_lost_their_memory() -> None:
    hand = Hand(make_links())
    hand.meet("source", "s1")
    hand.links.send("source/s1", "a", SourceReady("s1"))
    hand.drain()
    hand.receive(Ack(1, "a", 1))
    hand.lose()
    hand.open(2)
    hand.receive(replace(hello("source", "s1"), instance="another run"), connection=2)
    assert hand.links.connected("source/s1")
