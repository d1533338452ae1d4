"""Whatever limit leaves a profile without results of a message: its user is told which, once, at
the host broker B4, whether they are there or not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from overlay.link.frames import Delivery, Publish
from tests.beside import Peer
from tests.onyx.broker.hosting import hosting
from tests.onyx.broker.test_broker_core import Setting, message
from tests.yfilter.hostile_profiles import MESSAGE
from tests.yfilter.test_hostile_profiles import Ticking

SOME = "some $x in {0}v, $y in {0}v, $z in {0}v satisfies $x + $y + $z = -1"
HERE, THERE = SOME.format(""), SOME.format("$a/")
LONG = "string-join(for $l in 1 to 90000 return string(/a/t), '')"
LIMITS = ("too-much-time", "too-many-tuples", "too-much-memory", "result-too-large")
WAYS = {
    "a condition": f"/a[{HERE}]",
    "a condition of one of many elements": "/a/v[some $x in ../v, $y in ../v, $z in ../v "
    "satisfies $x + $y + $z = -1]",
    "one of several ways": f"/a[@x = 1 or ({HERE})]",
    "what must not be": f"/a[not({HERE})]",
    "behind a nested path": f"/a[v/@k][t][{HERE}]",
    "a union": f"/a[@x] | /a[{HERE}]",
    "a condition by elementpath": f"/a[encode-for-uri({LONG}) = 'x']",
    "a remainder": f"for $a in /a where {THERE} return <r/>",
    "a remainder behind a second for": f"for $a in /a for $b in $a/t where {THERE} return <r/>",
    "a let": f"for $a in /a let $b := ({THERE}) where $b return <r/>",
    "tuples": "for $a in /a for $x in $a/v for $y in $a/v for $z in $a/v return <r/>",
    "results that are planned": "for $a in /a return <r>{for $x in $a/v return $a}"
    "{for $x in $a/v return $a}{for $x in $a/v for $y in $a/v return $a}</r>",
    "results that are interpreted": "for $a in /a return <r>{for $x in 1 to 9000 order by -$x "
    "return $a}</r>",
    "results in a constructor": "<all>{for $a in /a return for $x in 1 to 9000 return $a}</all>",
    "an attribute": f"for $a in /a return <r k='{{for $x in 1 to 90000 return {LONG}}}'/>",
    "a text": f"for $a in /a return <r>{{text {{for $x in 1 to 9 return {LONG}}}}}</r>",
    "what is caught": f"for $a in /a return <r>{{try {{ {LONG} }} catch * {{ 1 }}}}</r>",
}


def published(*profiles: str) -> tuple[Setting, Peer]:
    return hosting(Ticking(), *profiles)


def codes(deliveries: list[Delivery]) -> list[tuple[int, str]]:
    """(number of the message, the limit that was told; "" for results)."""
    found = []
    for one in deliveries:
        first, *why = one.results()
        is_told = first == b"" and len(why) == 1
        found.append((one.number, why[0].decode().rpartition("[")[2][:-1] if is_told else ""))
    return found


@pytest.mark.parametrize("way", WAYS)
def test_a_limit_is_told_once_with_its_name(way: str) -> None:
    setting, source = published(WAYS[way], "/a[v = 7]")
    taker, other = (setting.beside.subscriber(profile) for profile in ("p0", "p1"))
    source.send("s1", Publish(source="s1", format="text", payload=MESSAGE))
    source.send("s1", Publish(source="s1", format="text", payload=b"<b/>"))
    ((number, code),) = codes(taker.all(Delivery))
    assert number == 1
    assert code in LIMITS
    assert [one.results() for one in other.all(Delivery)] == [[MESSAGE]]


@pytest.mark.parametrize("way", ["a condition", "a remainder", "results that are planned"])
def test_who_was_away_is_told_as_well(way: str) -> None:
    setting, source = published(WAYS[way])
    source.send("s1", Publish(source="s1", format="text", payload=MESSAGE))
    source.disconnect()
    setting.restart()
    ((number, code),) = codes(setting.beside.subscriber("p0").all(Delivery))
    assert number == 1
    assert code in LIMITS


def test_a_message_that_is_too_much_for_all_profiles_together_is_told_to_all() -> None:
    """It comes from another broker, so it cannot be refused any more."""
    setting = Setting()
    setting.announce()
    for number, text in enumerate(["/a[v = 7]", "//v[@k = 1]/@k", "/b"]):
        setting.place(text, profile=f"p{number}")
    matcher = setting.core.query.matcher
    matcher.limits = replace(matcher.limits, visits_max=20)
    takers = [setting.beside.subscriber(f"p{number}") for number in range(3)]
    setting.brokers["B1"].send("B1", message(MESSAGE))
    for taker in takers:
        assert codes(taker.all(Delivery)) == [(1, "too-many-visits")]
    assert setting.core.statistics()["data"]["match_over_limit"] == 1  # type: ignore[index]
