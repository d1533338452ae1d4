"""Epochs: of two processes that say they are the same node the older one is refused, and ends."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from overlay.link.errors import Fenced
from overlay.link.events import CloseConnection
from overlay.link.frame import Frame
from overlay.link.frames import ErrorFrame, Hello
from overlay.link.link_layer import ANYONE, CODE
from overlay.link.principal import NOBODY, Principal
from tests.overlay.link.pair import Hand, hello, make_links

STALE = ErrorFrame(CODE, "broker/B1 is another process now: epoch 5, not 4", True)


def said(hand: Hand, epoch: int, connection: int, role: str = "broker") -> list[Frame]:
    hand.open(connection)
    return hand.receive(replace(hello(role), epoch=epoch), connection=connection)


def test_a_hello_says_the_epoch() -> None:
    hand = Hand(make_links(epoch=7))
    (first,) = hand.open(1, dialled="broker/B2")
    assert isinstance(first, Hello) and first.epoch == 7
    (first,) = Hand(make_links()).open(1, dialled="broker/B2")
    assert isinstance(first, Hello) and first.epoch == 0


@pytest.mark.parametrize("role", ["broker", "registration"])
def test_an_older_process_is_refused_once_a_newer_one_was_seen(role: str) -> None:
    hand = Hand(make_links())
    assert isinstance(said(hand, 4, 1, role)[0], Hello)
    assert isinstance(said(hand, 5, 2, role)[0], ErrorFrame | Hello)
    assert hand.links.connection_of(f"{role}/B2") == 2
    (error,) = said(hand, 4, 3, role)
    assert isinstance(error, ErrorFrame) and (error.code, error.fatal) == (CODE, True)
    assert any(isinstance(action, CloseConnection) for action in hand.actions)
    assert hand.links.connection_of(f"{role}/B2") == 2  # which is as it was
    assert isinstance(said(hand, 5, 4, role)[-1], Hello)  # the same one may come back


def test_so_it_is_where_it_was_dialled() -> None:
    hand = Hand(make_links(role="client", identity="c"))
    hand.open(1, dialled=ANYONE)
    hand.receive(replace(hello(), epoch=5))
    hand.lose()
    hand.open(2, dialled="broker/B2")
    (error,) = hand.receive(replace(hello(), epoch=4), connection=2)
    assert isinstance(error, ErrorFrame) and error.code == CODE


def test_clients_and_sources_have_no_epoch_that_counts() -> None:
    hand = Hand(make_links())
    assert isinstance(said(hand, 5, 1, "source")[0], Hello)
    assert isinstance(said(hand, 4, 2, "source")[-1], Hello)


def test_who_is_told_that_it_is_over_ends() -> None:
    hand = Hand(make_links(epoch=4))
    hand.meet()
    with pytest.raises(Fenced, match="epoch 5, not 4"):
        hand.receive(STALE)


def test_a_process_without_a_lease_is_never_over() -> None:
    hand = Hand(make_links())
    hand.meet()
    hand.receive(STALE)
    assert hand.links.refusal("broker/B2").startswith("the peer says stale-epoch")


@pytest.mark.parametrize("principal", [NOBODY, Principal("user", "eve"), Principal("source", "s")])
def test_only_processes_of_the_network_can_say_so(principal: Principal) -> None:
    links = make_links(epoch=4)
    hand = Hand(links)
    hand.open_as(principal)
    hand.receive(STALE)
    assert hand.links.connection_of("broker/B2") is None
