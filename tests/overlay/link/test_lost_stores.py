"""A broker whose store was emptied, or is an older copy, is not let in; its sources hear of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from overlay.link.client_limits import FINAL_CODES
from overlay.link.events import Flow
from overlay.link.frames import Ack, ErrorFrame, Publish, Skipped, SourceReady
from overlay.link.lost_stores import STORE_LOST
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


def published(count: int) -> Hand:
    """A source whose broker has acknowledged that many messages, and is gone."""
    hand = Hand(make_links("source", "s1"))
    hand.meet("broker", "B1")
    for _ in range(count + 1):
        hand.links.send("broker/B1", "s1", Publish("s1", "xml", b"<a/>"))
    hand.drain()
    hand.receive(Ack(Flow.MESSAGE, "s1", count))
    hand.lose()
    hand.open(2)
    return hand


@pytest.mark.parametrize("has", [0, 2])
def test_a_source_is_told_that_its_broker_has_less_than_it_acknowledged(has: int) -> None:
    hand = published(3)
    received = [(int(Flow.MESSAGE), "s1", has)] if has else []
    anew = replace(hello("broker", "B1", received), instance="another run")
    (error,) = hand.receive(anew, connection=2)
    assert isinstance(error, ErrorFrame)
    assert (error.code, error.fatal) == (STORE_LOST, True)
    assert f"it has {has} of 3 frames of channel 's1' that it has acknowledged" in error.detail
    assert hand.links.refusal("broker/B1").startswith(STORE_LOST)
    assert STORE_LOST in FINAL_CODES, "who has the connection is told, for good"


def test_a_source_whose_broker_has_what_it_acknowledged_goes_on() -> None:
    hand = published(3)
    received = [(int(Flow.MESSAGE), "s1", 3)]
    hand.receive(replace(hello("broker", "B1", received), instance="another run"), connection=2)
    assert hand.links.connected("broker/B1")


@pytest.mark.parametrize("has", [0, 3])
def test_another_root_broker_has_acknowledged_nothing_and_goes_on_behind_it(has: int) -> None:
    """It may have been told what the one before has taken."""
    hand = published(3)
    hand.lose(2)
    hand.links.succeed("broker/B1", "broker/B2")
    hand.open(3)
    received = [(int(Flow.MESSAGE), "s1", has)] if has else []
    said = hand.receive(hello("broker", "B2", received), connection=3)
    assert hand.links.connected("broker/B2")
    assert [frame for frame in said if isinstance(frame, Skipped)] == (
        [] if has else [Skipped(Flow.MESSAGE, "s1", 3)]
    )
    assert [frame for frame in said if isinstance(frame, Publish)] == [
        Publish("s1", "xml", b"<a/>")
    ]
