"""Whatever limit leaves a profile without results of a message: its user is told which, once, at
the host broker B4, whether they are there or not."""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest
from msgspec import structs

from formats.limits import MessageLimits
from onyx.broker.deliveries.result_maker import LENGTH_BYTES, first_fitting, results_bytes_max
from overlay.link.frame_codec import encode
from overlay.link.frames import RESULTS_MAX, Contents, Deliveries, Delivery, Publish, contents
from tests.beside import Peer
from tests.onyx.broker.hosting import hosting
from tests.onyx.broker.test_broker_core import FIGURE4, Setting, message
from tests.onyx.broker.test_late_results import Steady
from tests.yfilter.hostile_profiles import MESSAGE
from tests.yfilter.test_hostile_profiles import Ticking
from yfilter.matcher import check_profile
from yfilter.matches import Delivered as Made
from yfilter.schematron import compile_schematron

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
    assert setting.core.statistics().data.match_over_limit == 1


# What is more than a frame holds: the first are told, with the count of the rest.

COPIES = "for $v in /o/v return <c n='{$v/@n}'>{string(/o/t)}</c>"
RULES = b"""<schema xmlns="http://purl.oclc.org/dsdl/schematron" queryBinding="xslt2">
  <pattern><rule context="v" flag="fatal"><assert id="a" test="@k">
  <value-of select="/o/t"/></assert></rule></pattern></schema>"""
(RULE,) = (profile.text for profile in compile_schematron(RULES).profiles)
MORE = "more: the results have"
FRAME = 70_000


def _narrow(frame: int = FRAME, bytes_max: int = 60_000) -> Setting:
    """At most so many bytes are in a frame, and in a message."""
    limits = structs.replace(FIGURE4.limits, message=MessageLimits(bytes_max=bytes_max))
    limits = structs.replace(limits, link=structs.replace(limits.link, frame_bytes_max=frame))
    setting = Setting(structs.replace(FIGURE4, limits=limits))
    setting.announce()
    return setting


def _send(setting: Setting, *messages: tuple[int, int]) -> None:
    """Each has so many elements, and a text of so many bytes."""
    for number, (count, size) in enumerate(messages, 1):
        items = "".join(f'<v n="{at}"/>' for at in range(1, count + 1))
        text = f"<o><t>{'x' * size}</t>{items}</o>"
        setting.brokers["B1"].send("B1", message(text.encode(), number))


def _taken(setting: Setting, profile: str = "p1") -> list[Contents]:
    return [
        contents(one.lengths, one.payload)
        for one in setting.beside.subscriber(profile).all(Delivery)
    ]


def test_results_that_fit_into_a_frame_are_told_with_the_count_of_the_rest() -> None:
    setting = _narrow()
    setting.place(COPIES)
    _send(setting, (33, 2_000), (34, 2_000), (400, 2_000), (9, 50_000), (7, 20))
    found = _taken(setting)
    assert [(len(one.results), one.limit[: one.limit.find(":")]) for one in found] == [
        (33, ""),
        (33, "1 more"),
        (33, "367 more"),
        (1, "8 more"),
        (7, ""),
    ]
    for one in found:
        for number, result in enumerate(one.results, 1):
            assert result.startswith(b'<c n="%d">x' % number)
    assert found[1].limit == (
        "1 more: the results have 68637 bytes, of which 67883 fit in a frame [result-too-large]"
    )
    assert setting.core.statistics().data.results_over_limit == 3


def test_those_of_who_is_there_and_those_of_a_former_text_as_well() -> None:
    setting = _narrow()
    setting.place(COPIES)
    _send(setting, (34, 2_000))
    setting.core.query.update("p1", check_profile("/never"))
    (former,) = _taken(setting)
    setting = _narrow()
    setting.place(COPIES)
    taker = setting.beside.subscriber("p1")
    _send(setting, (34, 2_000))
    (here,) = taker.all(Delivery)
    assert former == contents(here.lengths, here.payload)
    assert (len(former.results), former.limit[:6]) == (33, "1 more")


def test_of_failed_assertions_one_more_says_how_many_are_not_there() -> None:
    setting = _narrow()
    setting.place(RULE)
    _send(setting, (20, 3_000), (400, 3_000))
    whole, cut_short = _taken(setting)
    assert (len(whole.results), whole.limit, cut_short.limit) == (20, "", "")
    *told, last = cut_short.results
    assert len(told) == 21
    assert all(f"/v[{at}]".encode() in one for at, one in enumerate(told, 1))
    begin = b'<svrl:failed-assert xmlns:svrl="http://purl.oclc.org/dsdl/svrl" id="a" flag="fatal" '
    assert last.startswith(begin + b'location=""><svrl:text>379 more: the results have ')
    assert last.endswith(b" fit in a frame [result-too-large]</svrl:text></svrl:failed-assert>")


@pytest.mark.parametrize(
    ("mebibytes", "count", "said"),
    [
        (32, 20, "the results of a profile are larger than 16777216 bytes [result-too-large]"),
        (16, 19, "1 more, and others that were not made: the results have 16700"),
    ],
)
def test_results_that_are_too_large_to_be_made_are_told_as_far_as_they_were(
    mebibytes: int, count: int, said: str
) -> None:
    setting = _narrow(mebibytes * 1024 * 1024, 1_000_000)
    setting.place(COPIES)
    _send(setting, (30, 835_000))
    (found,) = _taken(setting)
    assert len(found.results) == count
    for number, result in enumerate(found.results, 1):
        assert result.startswith(b'<c n="%d">x' % number)
    assert found.limit.startswith(said)
    assert setting.core.statistics().data.results_over_limit == 1


def test_one_result_that_is_more_than_a_frame_is_refused_with_the_count_of_all() -> None:
    setting = _narrow()
    setting.place("for $v in /o/v return <c>{string(/o/t), string(/o/t)}</c>", "p1")
    setting.place(RULE.replace("string($_value)", "concat($_value, $_value)"), "p2")
    _send(setting, (5, 40_000))
    for profile in ("p1", "p2"):
        (found,) = _taken(setting, profile)
        assert found.results == []
        assert found.limit.startswith("none of 5: the results have 40")
        assert found.limit.endswith(" fit in a frame [result-too-large]")


def _made(results: list[bytes], media_type: str = "") -> Made:
    return Made(array("i"), results, None, media_type=media_type)


@pytest.mark.parametrize("length", [1, 120, 200, 70_000])
def test_a_frame_has_room_for_what_is_told(length: int) -> None:
    """Also for the lengths of very many, which were forgotten."""
    made = [b"x" * length] * (300_000 // length)
    room = results_bytes_max(structs.replace(FIGURE4.limits.link, frame_bytes_max=FRAME))
    for media_type, text in (("", ""), ("text/turtle", ""), ("", RULE)):
        cut_short = first_fitting(_made(made, media_type), room, text)
        frame = Deliveries("s" * 256, 1, cut_short.lengths, b"1234", bytes(8), cut_short.payload)
        assert len(encode(frame)) <= FRAME
        found = contents(cut_short.lengths, cut_short.payload)
        told = len(found.results) - (text == RULE and length < FRAME)
        assert found.media_type == (media_type if told else "")
        assert (length + LENGTH_BYTES) * (told + 1) > room - 500
        said = found.limit or found.results[-1].decode().partition("text>")[2]
        assert said.startswith(f"{len(made) - told} {MORE}" if told else f"none of {len(made)}: ")


def test_very_many_are_cut_as_well_and_the_engine_has_its_word() -> None:
    many = [b"x"] * (RESULTS_MAX + 10)
    found = first_fitting(_made(many), 2**30, "")
    told = contents(found.lengths, found.payload)
    assert len(found.lengths) <= RESULTS_MAX
    assert told.limit.startswith(
        f"{len(many) - len(told.results)} more: these are 1000010 results,"
    )
    *_, engine = first_fitting(_made([b"x" * 900] * 9), 5_000, RULE).payload.partition(
        b"<svrl:failed"
    )
    last = b"<svrl:failed" + engine
    given = first_fitting(_made([b"y" * 900] * 9 + [last]), 4_000, RULE)
    assert given.payload.endswith(last)
    assert (
        contents(given.lengths, given.payload).results[-2].partition(b"text>")[2][:7] == b"6 more:"
    )


def test_failures_found_before_the_time_is_over_are_told_by_the_process_as_well() -> None:
    slow = "count(//v[string-length(concat(@k, current()/@k)) gt 100]) = 0"
    asked = RULES.replace(b'test="@k"', f'test="@k != 3 and {slow}"'.encode())
    (rule,) = compile_schematron(asked).profiles
    setting, source = hosting(Steady(), rule.text)
    taker = setting.beside.subscriber("p0")
    items = "".join(f'<v k="{number % 4}"/>' for number in range(400))
    source.send("s1", Publish(source="s1", format="text", payload=f"<o>{items}</o>".encode()))
    (found,) = taker.all(Delivery)
    assert setting.beside.evaluations == 1
    *told, last = contents(found.lengths, found.payload).results
    assert len(told) > 1
    for at, result in enumerate(told, 1):
        assert f'location="/o[1]/v[{4 * at}]"'.encode() in result
    why = last.decode().partition("<svrl:text>")[2].partition("</svrl:text>")[0]
    unseen = why.removesuffix(
        " not looked at: a profile takes more than 50 ms for this message [too-much-time]"
    )
    assert (400 - int(unseen)) // 4 == len(told)
