"""A broker keeps profiles as their users say, and passes it on; B4 of Figure 4."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import asdict, astuple

from overlay.delivery_policy import DROP_NEWEST, USUAL, DeliveryPolicy
from overlay.link.events import TimePassed
from overlay.link.frames import Delivery, DeliveryPolicies, MoveEnded, Refused, Response, StandBy
from tests.onyx.broker.hosting import hosting, publish
from tests.onyx.broker.test_broker_core import NEWS, SF, Setting
from tests.registration.test_registration_core import refused

ONE = DeliveryPolicy(DROP_NEWEST, deliveries_max=1)


def result(answer: Response | None) -> dict[str, Any]:
    assert answer is not None and answer.ok, answer
    return dict(answer.result)


def clock() -> float:
    return 0.0


def test_a_policy_that_comes_ahead_of_the_profile_is_kept() -> None:
    setting = Setting()
    setting.registration.send("registration", DeliveryPolicies([("p1", *astuple(ONE))]))
    setting.place(SF)
    client = setting.beside.peer("client", "c")
    assert result(client.ask("profile.policy", profile="p1"))["policy"] == asdict(ONE)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_change_is_in_force_and_told_to_the_registration_service(restarts: bool) -> None:
    setting, source = hosting(clock, "/nitf")
    client = setting.beside.peer("client", "c")
    changed = client.ask("profile.policy", profile="p0", policy=asdict(ONE))
    assert result(changed)["policy"] == asdict(ONE)
    assert setting.registration.all(DeliveryPolicies) == [DeliveryPolicies([("p0", *astuple(ONE))])]
    if restarts:
        setting.restart()
        source.connect()
    publish(source, NEWS, NEWS, NEWS)
    assert len(setting.beside.subscriber("p0").all(Delivery)) == 1


def test_what_is_no_policy_changes_nothing() -> None:
    setting, _ = hosting(clock, "/nitf")
    client = setting.beside.peer("client", "c")
    answer = client.ask("profile.policy", profile="p0", policy={"ttl_s": -1})
    assert refused(answer) == "bad-argument"
    assert result(client.ask("profile.policy", profile="p0"))["policy"] == asdict(USUAL)


def test_without_the_registration_service_nothing_is_changed_that_it_would_not_know() -> None:
    setting, _ = hosting(clock, "/nitf")
    setting.registration.disconnect()
    client = setting.beside.peer("client", "c")
    assert refused(client.ask("profile.policy", profile="p0", policy=asdict(ONE))) == (
        "no-policies"
    )


def test_of_a_profile_that_stays_elsewhere_nothing_is_kept() -> None:
    setting = Setting()
    setting.registration.send("registration", DeliveryPolicies([("p1", *astuple(ONE))]))
    setting.registration.send("registration", StandBy("p1", 5, "ann", SF, 1))
    setting.registration.send("registration", MoveEnded("p1", 5))
    assert not len(setting.core.mailboxes.policies)
    assert not any(space == "delivery-policy" for space, _ in setting.beside.rows)


def test_messages_that_were_refused_are_dead_letters_as_many_as_can_be_looked_at() -> None:
    setting, source = hosting(clock, "/nitf")
    publish(source, *[b"<nitf>%d" % number for number in range(20)])
    assert len(source.all(Refused)) == 20
    client = setting.beside.peer("client", "c")
    letters = result(client.ask("dead.list"))["letters"]
    assert [letter["kind"] for letter in letters] == ["refused"] * 8
    assert letters[0]["who"] == "source/s1" and "[malformed]" in letters[0]["error"]
    shown = result(client.ask("dead.show", id=letters[1]["id"]))
    assert (shown["data"], shown["format"], shown["number"]) == (b"<nitf>1", "text", 2)
    setting.beside.tell(TimePassed())
    publish(source, b"<")
    assert len(result(client.ask("dead.list"))["letters"]) == 9, "a second later"


def test_a_refused_message_is_given_back_to_be_published_and_stays_until_it_is_dropped() -> None:
    setting, source = hosting(clock, "/nitf")
    publish(source, b"<nitf>")
    client = setting.beside.peer("client", "c")
    (letter,) = result(client.ask("dead.list"))["letters"]
    replayed = result(client.ask("dead.replay", id=letter["id"]))
    assert (replayed["format"], replayed["data"]) == ("text", b"<nitf>")
    assert len(result(client.ask("dead.list"))["letters"]) == 1
    client.ask("dead.drop", id=letter["id"])
    assert not result(client.ask("dead.list"))["letters"]
