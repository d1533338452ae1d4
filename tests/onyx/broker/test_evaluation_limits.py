"""A profile that costs too much at its host broker, B4: its user is told, and others get theirs."""

from __future__ import annotations

from itertools import groupby

import pytest

from onyx.broker import processor_accounts
from overlay.link.events import TimePassed
from overlay.link.frames import Delivery
from overlay.statistics import Budgets
from tests.beside import Peer, SubscriberPeer
from tests.onyx.broker.hosting import hosting, publish
from tests.onyx.broker.test_broker_core import Setting
from tests.yfilter.hostile_profiles import HOSTILE, MESSAGE
from tests.yfilter.test_hostile_profiles import Ticking

PAIRS = "pairs that never sum"
TOLD = b"a profile takes more than 50 ms for this message [too-much-time]"


def published(*profiles: str) -> tuple[Setting, Peer]:
    return hosting(Ticking(10), *profiles)


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


SLOWED = b"the profiles of user ann have spent half of the 1 s of processor time"


def costly_messages(source: Peer) -> None:
    """Of a hundred milliseconds a second they take what was saved."""
    publish(source, *[MESSAGE] * 60)


def reasons(taker: SubscriberPeer) -> list[str]:
    """The codes of what was told, without repeats."""
    codes = [told(one).decode().rpartition("[")[2][:-1] for one in taker.all(Delivery)]
    return [code for code, _ in groupby(codes)]


def test_who_costs_too_much_is_slowed_then_suspended_and_told() -> None:
    setting, source = published(HOSTILE[PAIRS], "/a[v = 7]")
    taker, other = (setting.beside.subscriber(profile) for profile in ("p0", "p1"))
    costly_messages(source)
    assert reasons(taker) == ["too-much-time", "slowed", "too-much-time", "suspended"]
    said = list(map(told, taker.all(Delivery)))
    allowed = [int(one.split(b" ms ")[0].split()[-1]) for one in said if b"[too-much" in one]
    assert list(dict.fromkeys(allowed)) == [50, 25, 10]
    assert any(one.startswith(SLOWED) for one in said)
    assert said[-1].startswith(b"the profile is suspended until it is updated: of what user ann")
    assert [one.number for one in other.all(Delivery)] == list(range(1, 61))
    budgets = setting.core.statistics().budgets
    assert (list(budgets.suspended), budgets.slowed) == (["p0"], ["ann"])


def test_who_has_been_slowed_recovers_as_the_account_fills() -> None:
    setting, source = published(HOSTILE[PAIRS])
    taker = setting.beside.subscriber("p0")
    while "slowed" not in reasons(taker):
        publish(source, MESSAGE)
    for _ in range(10):
        setting.beside.now += 1.0
        setting.beside.tell(TimePassed())
    assert setting.core.statistics().budgets == Budgets()
    publish(source, MESSAGE)
    assert told(taker.all(Delivery)[-1]) == TOLD


def test_of_several_profiles_the_one_that_has_taken_most_is_suspended() -> None:
    setting, source = published(HOSTILE[PAIRS], "for $v in /a/v return <r>{$v}</r>")
    takers = [setting.beside.subscriber(profile) for profile in ("p0", "p1")]
    for _ in range(30):
        publish(source, MESSAGE, MESSAGE)
        setting.beside.tell(TimePassed())
    assert reasons(takers[0])[-1] == "suspended"
    assert len(takers[1].all(Delivery)) == 60
    assert all(one.lengths[0] for one in takers[1].all(Delivery))


@pytest.mark.parametrize(
    "text",
    [
        "for $v in /a/v return <r>{$v}</r>",
        "/a[string(number(v)) = 'x']",
        "/a[string-length(string(t)) > 7]",
    ],
)
def test_what_is_cheap_is_charged_as_well_when_there_is_much_of_it(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody looks at the clock for any of it: what it comes to is estimated."""
    monkeypatch.setattr(processor_accounts, "BURST_SECONDS", 0.05)
    setting, source = hosting(Ticking(), text, "//nothing")
    taker = setting.beside.subscriber("p0")
    for _ in range(40):
        publish(source, *[MESSAGE] * 20)
        setting.beside.tell(TimePassed())
        if any(b"[slowed]" in one.payload for one in taker.all(Delivery)):
            return
    raise AssertionError("nothing is charged")


def test_it_stays_suspended_over_a_restart_and_until_it_is_updated() -> None:
    setting, source = published(HOSTILE[PAIRS])
    first = setting.beside.subscriber("p0")
    costly_messages(source)
    source.disconnect()
    before = len(first.all(Delivery))
    setting.restart()
    source.connect()
    publish(source, MESSAGE)
    taker = setting.beside.subscriber("p0")
    assert len(taker.all(Delivery)) <= before  # nothing of the last message
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
        setting.beside.now += 1.5
    assert [told(one) for one in taker.all(Delivery)] == [TOLD] * 40
    assert setting.core.statistics().budgets == Budgets()
