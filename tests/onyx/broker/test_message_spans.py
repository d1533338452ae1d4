"""What a broker does with a message that is traced, as spans; and that others have none."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from onyx.broker.broker_core import BrokerCore, Rows
from onyx.broker.messages.message_spans import SpanRecord, Traceparent, parsed_traceparent
from overlay.link.core_context import Surroundings
from overlay.link.errors import ProtocolError
from overlay.link.frame_codec import LENGTH_BYTES, decode, encode
from overlay.link.frames import Message, Publish
from overlay.link.message_headers import HEADERS_BYTES_MAX, HEADERS_MAX
from tests.onyx.broker.test_broker_core import NEWS, SF, Setting, delta, message

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SAMPLED = f"00-{TRACE}-00f067aa0ba902b7-01"


class Traced(Setting):
    """B4, which tells its spans; a profile here and B5 want the news."""

    def __init__(self, root: str) -> None:
        self.told: list[SpanRecord] = []
        self.time = 1000.0
        super().__init__()
        self.announce(root=root)
        self.children_ready(root=root)
        self.brokers["B5"].send(root, delta(SF, root=root))
        self.place(SF)

    def new_core(self, instance: str, rows: Rows = ()) -> BrokerCore:
        tell = self.told.append
        what = self.topology, self.identity, instance, rows
        return BrokerCore(*what, around=Surroundings(wall=self._wall), tell_span=tell)

    def _wall(self) -> float:
        self.time += 1.0
        return self.time

    def sent_headers(self) -> list[dict[str, str] | None]:
        return [frame.headers and dict(frame.headers) for frame in self.brokers["B5"].take(Message)]


def by_name(spans: list[SpanRecord]) -> dict[str, SpanRecord]:
    assert len({span.name for span in spans}) == len(spans)
    return {span.name: span for span in spans}


@pytest.mark.parametrize(("root", "name"), [("B4", "accept"), ("B1", "hop")])
def test_each_broker_tells_what_it_did_and_is_the_parent_of_what_follows(
    root: str, name: str
) -> None:
    setting = Traced(root)
    headers = {"traceparent": SAMPLED, "tracestate": "a=b"}
    if root == "B4":
        source = setting.beside.peer("source", "s1")
        source.send("s1", Publish("s1", "text", NEWS, headers=headers))
    else:
        setting.brokers["B1"].send("B1", replace(message(), headers=headers))
    told = by_name(setting.told)
    assert told.keys() == {name, "match", "deliver"}
    begun = told[name]
    assert (begun.trace, begun.parent) == (TRACE, "00f067aa0ba902b7")
    assert {told["match"].parent, told["deliver"].parent} == {begun.span}
    assert begun.began < told["match"].began < told["match"].ended < begun.ended
    about = begun.attributes
    assert (about["onyx.broker"], about["onyx.source"], about["onyx.links"]) == ("B4", "s1", 1)
    assert told["deliver"].attributes["onyx.profiles"] == 1
    assert setting.sent_headers() == [
        {"traceparent": f"00-{TRACE}-{begun.span}-01", "tracestate": "a=b"}
    ]


def test_a_message_that_is_refused_says_so_in_its_span() -> None:
    setting = Traced("B4")
    source = setting.beside.peer("source", "s1")
    source.send("s1", Publish("s1", "text", b"<nitf>", headers={"traceparent": SAMPLED}))
    (span,) = setting.told
    assert (span.name, span.attributes["onyx.refused"]) == ("accept", "malformed")


@pytest.mark.parametrize(
    "headers",
    [None, {"traceparent": SAMPLED[:-1] + "0"}, {"traceparent": "no such"}, {"other": "x"}],
)
def test_what_is_not_sampled_has_no_span_and_keeps_its_headers(
    headers: dict[str, str] | None,
) -> None:
    setting = Traced("B1")
    setting.brokers["B1"].send("B1", replace(message(), headers=headers))
    assert setting.told == []
    assert setting.sent_headers() == [headers]


def test_forms_of_traceparent() -> None:
    assert parsed_traceparent(SAMPLED) == Traceparent(TRACE, "00f067aa0ba902b7", 1)
    assert parsed_traceparent("cc" + SAMPLED[2:] + "-what-comes-later") is not None
    for bad in (
        "ff" + SAMPLED[2:],
        SAMPLED.upper(),
        SAMPLED[:-3],
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
        f"00-{TRACE}-{'0' * 16}-01",
    ):
        assert parsed_traceparent(bad) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"n": "x" * HEADERS_BYTES_MAX},
        {str(number): "" for number in range(HEADERS_MAX + 1)},
        {"n": "\ud800"},
    ],
)
def test_headers_are_bounded_text(headers: dict[str, str]) -> None:
    with pytest.raises(ProtocolError, match="headers"):
        encode(Publish("s1", "text", b"<a/>", headers=headers), "s1", 1)


def test_a_message_without_headers_has_no_such_field() -> None:
    plain = encode(Publish("s1", "text", b"<a/>"), "s1", 1)
    assert b"headers" not in plain
    assert encode(Publish("s1", "text", b"<a/>", headers={}), "s1", 1) == plain
    frame = decode(
        encode(Publish("s1", "text", b"<a/>", headers={"a": "b"}), "s1", 1)[LENGTH_BYTES:]
    )
    assert frame.frame == Publish("s1", "text", b"<a/>", headers={"a": "b"})
