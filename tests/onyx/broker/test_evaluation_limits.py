"""A profile that costs too much at its host broker, B4: its user is told, and others get theirs."""

from __future__ import annotations

from overlay.link.delivery_frames import Delivery
from overlay.link.frames import Publish
from tests.beside import Peer
from tests.onyx.broker.test_broker_core import Setting
from tests.yfilter.hostile_profiles import HOSTILE, MESSAGE
from tests.yfilter.test_hostile_profiles import Ticking

PAIRS = "pairs that never sum"
TOLD = b"a profile takes more than 50 ms for this message [too-much-time]"


def published(*profiles: str) -> tuple[Setting, Peer]:
    setting = Setting(clock=Ticking(10))
    setting.announce(root="B4")
    for number, text in enumerate(profiles):
        setting.place(text, profile=f"p{number}")
    setting.children_ready(root="B4")
    return setting, setting.beside.peer("source", "s1")


def publish(source: Peer, *texts: bytes) -> None:
    for text in texts:
        source.send("s1", Publish(source="s1", format="text", payload=text))


def told(delivery: Delivery) -> bytes:
    """Why there are no results; there is a first one of no bytes then."""
    none, why = delivery.results()
    assert none == b""
    return why


def test_a_condition_or_results_beyond_the_budget_are_a_delivery_that_says_so() -> None:
    setting, source = published(HOSTILE[PAIRS], HOSTILE["loops in results"], "/a[v = 7]")
    takers = [setting.beside.subscriber(f"p{number}") for number in range(3)]
    publish(source, MESSAGE, b"<a/>", b"<b/>")
    for taker in takers[:2]:
        first, *others = taker.all(Delivery)
        assert (first.number, told(first)) == (1, TOLD)
        assert [other.number for other in others] == [2]  # and nothing of <b/>
    assert [(one.number, one.results()) for one in takers[2].all(Delivery)] == [(1, [MESSAGE])]


def test_who_is_away_is_told_later_and_after_a_restart_once() -> None:
    setting, source = published(HOSTILE[PAIRS], HOSTILE["loops in results"])
    publish(source, MESSAGE)
    source.disconnect()
    setting.restart()
    for profile in ("p0", "p1"):
        (delivery,) = setting.beside.subscriber(profile).all(Delivery)
        assert delivery.number == 1
        assert b"[too-" in told(delivery)


def _suspended(client: Peer) -> str:
    shown = client.ask("profile.show", profile="p0")
    assert shown is not None
    return str(shown.result["suspended"])


def costly_messages(source: Peer) -> None:
    """Of a hundred milliseconds a second twenty messages take what was saved."""
    publish(source, *[MESSAGE] * 25)


def test_who_costs_too_much_message_after_message_is_suspended_and_told() -> None:
    setting, source = published(HOSTILE[PAIRS], "/a[v = 7]")
    taker, other = (setting.beside.subscriber(profile) for profile in ("p0", "p1"))
    costly_messages(source)
    *limits, last = taker.all(Delivery)
    assert [told(one) for one in limits] == [TOLD] * 20
    assert (last.number, told(last).endswith(b"[suspended]")) == (20, True)
    assert b"user ann has spent 1 s" in told(last)
    assert [one.number for one in other.all(Delivery)] == list(range(1, 26))
    why = setting.core.statistics()["budgets"]
    assert list(why["suspended"]) == ["p0"]  # type: ignore[index]


def test_it_stays_suspended_over_a_restart_and_until_it_is_updated() -> None:
    setting, source = published(HOSTILE[PAIRS])
    costly_messages(source)
    source.disconnect()
    setting.restart()
    source.connect()
    publish(source, MESSAGE)
    taker = setting.beside.subscriber("p0")
    assert len(taker.all(Delivery)) == 21  # as before
    client = setting.beside.peer("client", "c")
    assert _suspended(client).startswith("the profile is suspended")
    client.ask("profile.update", profile="p0", text="/a[t]")
    assert _suspended(client) == ""
    publish(source, MESSAGE)
    assert taker.all(Delivery)[-1].results() == [MESSAGE]
    client.ask("profile.remove", profile="p0")


def test_what_is_saved_comes_back_with_time() -> None:
    setting, source = published(HOSTILE[PAIRS])
    taker = setting.beside.subscriber("p0")
    for _ in range(40):
        publish(source, MESSAGE)
        setting.beside.now += 1.0
    assert [told(one) for one in taker.all(Delivery)] == [TOLD] * 40
    assert setting.core.statistics()["budgets"] == {"suspended": {}}
