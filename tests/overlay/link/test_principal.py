"""Who is at the other end of a connection decides what its hello may say."""

from __future__ import annotations

import pytest

from overlay.link.events import ConnectionOpened
from overlay.link.frames import ErrorFrame, Hello
from overlay.link.link_layer import ANYONE
from overlay.link.principal import MAY_SAY, NOBODY, Principal
from tests.overlay.link.pair import Hand, closed, hello, make_links

EVERYTHING = [
    ("broker", "B2"),
    ("registration", "R1"),
    ("source", "s1"),
    ("subscriber", "1@ann"),
    ("client", "7"),
]


def met(principal: Principal | None, role: str, peer: str, dialled: str = "") -> str:
    """What a broker B1 answers to a hello: "" or the code of a fatal error."""
    hand = Hand(make_links())
    hand.event(ConnectionOpened(1, dialled, principal))
    frames = hand.receive(hello(role, peer))
    if not (frames and isinstance(frames[0], ErrorFrame)):
        assert hand.links.connected(f"{role}/{peer}")
        return ""
    assert frames[0].fatal and closed(hand.actions) == [1]
    assert hand.arrivals == [], "the core was told of a peer that is refused"
    assert not any(isinstance(frame, Hello) for frame in frames)
    return frames[0].code


@pytest.mark.parametrize(
    ("principal", "said"),
    [
        (Principal("broker", "B2"), {"broker/B2", "client/7"}),
        (Principal("broker", "B3"), {"client/7"}),
        (Principal("registration", "R1"), {"registration/R1", "client/7"}),
        (Principal("registration", "B2"), {"client/7"}),
        (Principal("user", "ann"), {"client/7", "subscriber/1@ann", "source/s1"}),
        (Principal("user", "bob"), {"client/7", "source/s1"}),
        (Principal("source", "s1"), {"client/7", "source/s1"}),
        (Principal("source", "s2"), {"client/7", "source/s1"}),
        (Principal("provider", "A"), {"client/7"}),
        (Principal("operator", "root"), {"client/7", "subscriber/1@ann", "source/s1"}),
        (None, {f"{role}/{peer}" for role, peer in EVERYTHING}),
    ],
    ids=lambda given: "" if isinstance(given, set) else str(given),
)
def test_a_hello_says_only_what_its_principal_may(
    principal: Principal | None, said: set[str]
) -> None:
    answers = {f"{role}/{peer}": met(principal, role, peer) for role, peer in EVERYTHING}
    assert {peer for peer, code in answers.items() if not code} == said
    assert {code for code in answers.values() if code} <= {"not-authorised"}


@pytest.mark.parametrize(("role", "peer"), EVERYTHING)
def test_nobody_may_say_anything(role: str, peer: str) -> None:
    assert met(NOBODY, role, peer) == "not-authenticated"


def test_whoever_is_dialled_is_who_their_certificate_says() -> None:
    assert met(Principal("broker", "B2"), "broker", "B2", dialled="broker/B2") == ""
    assert met(Principal("broker", "B2"), "broker", "B2", dialled=ANYONE) == ""
    assert met(Principal("broker", "B3"), "broker", "B2", dialled="broker/B2") == "wrong-peer"
    assert met(Principal("broker", "B2"), "broker", "B2", dialled="broker/B3") == "wrong-peer"


def test_no_user_answers_for_a_broker() -> None:
    for principal in (Principal("user", "ann"), Principal("operator", "root"), NOBODY):
        assert met(principal, "client", "7", dialled=ANYONE) == "wrong-peer"


def test_nobody_takes_the_place_of_another() -> None:
    """Somebody who knows the id of another's connection does not end it."""
    hand = Hand(make_links())
    for connection, name in enumerate(["ann", "bob", "ann"], start=1):
        hand.event(ConnectionOpened(connection, "", Principal("user", name)))
    assert [type(frame) for frame in hand.receive(hello("client", "7"))] == [Hello]
    (refused,) = hand.receive(hello("client", "7"), connection=2)
    assert isinstance(refused, ErrorFrame) and refused.code == "not-authorised"
    assert closed(hand.actions) == [2]
    assert hand.links.connection_of("client/7") == 1
    hand.receive(hello("client", "7"), connection=3)
    assert hand.links.connection_of("client/7") == 3


def test_a_part_may_ask_who_sent_something() -> None:
    hand = Hand(make_links())
    hand.event(ConnectionOpened(1, "", Principal("user", "ann")))
    hand.receive(hello("client", "7"))
    hand.open(2)
    assert hand.links.principal(1) == Principal("user", "ann")
    assert hand.links.principal(2) is None
    assert hand.links.principal(3) == NOBODY, "of a connection that is gone"


@pytest.mark.parametrize("role", sorted(MAY_SAY))
@pytest.mark.parametrize("name", ["B1", "ann@example.org", "Jörg Müller", "100%", "a?b#c:d"])
def test_a_uri_is_read_as_it_was_written(role: str, name: str) -> None:
    principal = Principal(role, name)
    assert Principal.of_uri(principal.uri("my net"), "my net") == principal
    assert Principal.parse(str(principal)) == principal


@pytest.mark.parametrize(
    "uri",
    [
        "onyx://other/broker/B1",
        "https://net/broker/B1",
        "onyx://net/broker",
        "onyx://net/broker/B1/x",
        "onyx://net/broker/",
        "onyx://net/king/B1",
        "onyx://net/broker/B1?x",
        "onyx://net/broker/a%2Fb",
        "onyx://net/broker/a%7Cb",
        "onyx://net/broker/a%0Ab",
        "onyx://[net/broker/B1",
        "",
    ],
)
def test_another_uri_is_no_principal(uri: str) -> None:
    with pytest.raises(ValueError):
        Principal.of_uri(uri, "net")
