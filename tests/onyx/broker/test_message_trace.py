"""What a broker says a message would come to there: B4 between its parent B1 and its children."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from formats import WireFormat, decode
from overlay.link.frames import Delivery, Message, NeedsDelta, Response
from tests.onyx.broker import test_compression_dictionaries as trained
from tests.onyx.broker.test_broker_core import Setting, delta
from tests.onyx.broker.test_transformation import (
    FEED,
    TITLE_OF_A,
    TITLES,
    message,
    needs,
    open_setting,
    results,
    subscriber,
)


def as_arguments(frame: Message) -> dict[str, object]:
    return {
        "source": frame.source,
        "message": frame.payload,
        "format": frame.format,
        "reflects": frame.reflects,
        "pieces": frame.pieces,
    }


def ask(setting: Setting, verb: str, arguments: Mapping[str, object]) -> Response:
    answer = setting.beside.peer("client", "ann").ask(verb, **arguments)
    assert answer is not None
    return answer


def links_of(answer: Response) -> dict[str, dict[str, Any]]:
    assert answer.ok, answer
    links = cast("list[dict[str, Any]]", answer.result["links"])
    return {link["link"]: link for link in links}


def test_a_child_is_asked_with_what_it_would_get() -> None:
    setting = open_setting()
    for child, profile in (("B5", TITLES), ("B6", "/f")):
        setting.brokers[child].send("B1", needs(profile, number=3))
        setting.brokers[child].send("B1", delta("/f"))
    came = message(1, reflects=0)
    links = links_of(ask(setting, "trace", as_arguments(came)))
    carried = {
        child: ask(setting, "trace.carried", {**as_arguments(came), "link": child}).result
        for child in ("B5", "B6")
    }
    assert setting.core.statistics().data.crossings == {}
    setting.brokers["B1"].send("B1", came)
    for child in ("B5", "B6"):
        (sent,) = setting.brokers[child].take(Message)
        assert {**carried[child], "source": "s1"} == as_arguments(sent)
        assert links[child]["bytes"] == len(sent.payload) + len(sent.pieces)
    assert links["B5"]["bytes"] < links["B6"]["bytes"] == links["B6"]["bytes_whole"]


def test_a_profile_that_a_cut_message_does_not_reflect_takes_no_part() -> None:
    setting = open_setting()
    setting.place(TITLES)
    told = setting.brokers["B1"].all(NeedsDelta)[-1].number
    peer = subscriber(setting)
    for reflects, matched in ((told - 1, []), (told, ["p1"]), (0, ["p1"])):
        came = message(1, reflects)
        assert ask(setting, "trace", as_arguments(came)).result["profiles"] == matched
    assert not setting.core.statistics().query.transformation.not_reflected
    setting.brokers["B1"].send("B1", message(1, told - 1))
    assert peer.take(Delivery) == []
    setting.brokers["B1"].send("B1", message(2, told))
    assert results(peer) == [[TITLE_OF_A]]


def test_a_child_need_not_have_a_trained_dictionary_yet() -> None:
    dictionary = trained.trained()
    setting = trained.setting()
    setting.brokers["B1"].send("B1", trained.announcement(dictionary))
    came = trained.message(1, dictionary)
    links = links_of(ask(setting, "trace", as_arguments(came)))
    carried = ask(setting, "trace.carried", {**as_arguments(came), "link": "B5"}).result
    setting.brokers["B1"].send("B1", came)
    (sent,) = setting.brokers["B5"].take(Message)
    assert trained.version_of(sent)
    assert links["B5"]["bytes"] == len(sent.payload)
    assert links["B5"]["format"] == sent.format == "text+zstd"
    assert carried["format"] == "text"
    assert carried["message"] == trained.news(2, 1)[0]


def test_a_text_is_asked_about_without_more_words() -> None:
    setting = open_setting()
    setting.brokers["B5"].send("B1", delta("/f"))
    shown = ask(setting, "trace", {"source": "s1", "message": FEED})
    assert links_of(shown)["B5"]["held"] == ["/f"]
    assert shown.result["root"] == shown.result["tree"] == "B1"
    carried = ask(setting, "trace.carried", {"source": "s1", "message": FEED, "link": "B5"}).result
    format_name, payload = str(carried["format"]), cast("bytes", carried["message"])
    assert len(decode(payload, WireFormat(format_name))) == 1


def test_the_time_at_which_it_would_be_accepted_may_be_said() -> None:
    setting = open_setting()
    setting.place('/f[current-date() > xs:date("1970-01-02")]')
    came = {"source": "s1", "message": FEED}
    for said, matched in ({}, []), ({"accepted": 86_400.0}, []), ({"accepted": 1.8e9}, ["p1"]):
        assert ask(setting, "trace", {**came, **said}).result["profiles"] == matched


@pytest.mark.parametrize(
    ("verb", "changed", "code"),
    [
        ("trace.carried", {"link": "B1"}, "unknown-link"),
        ("trace.carried", {"link": "nobody"}, "unknown-link"),
        ("trace.carried", {"link": 5}, "bad-argument"),
        ("trace.carried", {}, "bad-argument"),
        ("trace", {"source": "nobody"}, "unknown-source"),
        ("trace", {"message": "text"}, "bad-argument"),
        ("trace", {"message": b"<a>"}, "message-refused"),
        ("trace", {"format": "nothing"}, "message-refused"),
        ("trace", {"format": "binary"}, "message-refused"),
        ("trace", {"reflects": -1}, "bad-argument"),
        ("trace", {"reflects": "all"}, "bad-argument"),
        ("trace", {"pieces": "none"}, "bad-argument"),
        ("trace", {"pieces": b"\x07"}, "message-refused"),
        ("trace", {"pieces": b"\x00\xc1"}, "message-refused"),
    ],
)
def test_what_cannot_be_answered_is_refused(
    verb: str, changed: Mapping[str, object], code: str
) -> None:
    setting = open_setting()
    answer = ask(setting, verb, {"source": "s1", "message": FEED, **changed})
    assert (answer.ok, answer.result["code"]) == (False, code)
    assert ask(setting, "trace", {"source": "s1", "message": FEED}).ok
