"""Messages against their source's schema at the root broker, B4."""

from __future__ import annotations

from formats import WireFormat, encode, parse_text
from overlay.link.frames import Message, Publish, Refused
from tests.beside import Peer
from tests.formats.test_schema_worker import PATTERN, TRIED
from tests.onyx.broker.test_broker_core import Setting, delta

DTD = b"<!ELEMENT nitf (head)><!ELEMENT head EMPTY>"
GOOD = b"<nitf><head/></nitf>"
BAD = b"<nitf>\n<head>text</head>\n</nitf>"


def setting(validation: str) -> tuple[Setting, Peer]:
    made = Setting()
    made.announce(root="B4", schema=DTD, validation=validation)
    made.brokers["B5"].send("B4", delta("/nitf", root="B4"))
    made.children_ready(root="B4")
    return made, made.beside.peer("source", "s1")


def publish(source: Peer, *texts: bytes) -> None:
    for text in texts:
        source.send("s1", Publish(source="s1", format="text", payload=text))


def test_rejected_with_reason_and_place() -> None:
    beside, source = setting("reject")
    publish(source, GOOD, BAD, GOOD)
    (refused,) = source.all(Refused)
    assert (refused.number, refused.code, refused.line) == (2, "invalid", 2)
    assert "head" in refused.reason
    assert [frame.number for frame in beside.brokers["B5"].all(Message)] == [1, 3]
    statistics = beside.core.data.statistics()
    assert (statistics["valid"], statistics["invalid"], statistics["refused"]) == (2, 1, 1)


def test_reported_and_passed_on() -> None:
    beside, source = setting("report")
    publish(source, GOOD, BAD)
    assert source.all(Refused) == []
    assert [frame.number for frame in beside.brokers["B5"].all(Message)] == [1, 2]
    statistics = beside.core.data.statistics()
    assert (statistics["invalid"], statistics["invalid_by_source"]) == (1, {"s1": 1})


def test_off_looks_at_nothing() -> None:
    beside, source = setting("off")
    publish(source, BAD)
    assert [frame.number for frame in beside.brokers["B5"].all(Message)] == [1]
    assert "invalid" not in beside.core.data.statistics()


def test_messages_in_another_form_too_and_after_a_restart() -> None:
    beside, source = setting("reject")
    source.disconnect()
    beside.restart()
    source = beside.beside.peer("source", "s1")
    for text in (BAD, GOOD):
        payload = encode(parse_text(text), WireFormat.BINARY_ZSTD)
        source.send("s1", Publish(source="s1", format="binary+zstd", payload=payload))
    assert [frame.number for frame in source.all(Refused)] == [1]
    assert [frame.number for frame in beside.brokers["B5"].all(Message)] == [2]


def test_a_schema_that_is_tried_for_ever_costs_its_own_source_only() -> None:
    for mode, numbers in (("reject", [1, 3]), ("report", [1, 2, 3])):
        beside = Setting()
        beside.announce(root="B4", schema=PATTERN, kind="xsd", validation=mode)
        beside.brokers["B5"].send("B4", delta("/a", root="B4"))
        beside.children_ready(root="B4")
        source = beside.beside.peer("source", "s1")
        publish(source, b"<a>aab</a>", TRIED, b"<a>b</a>")
        refused = [(frame.number, frame.code) for frame in source.all(Refused)]
        assert refused == ([(2, "schema-too-costly")] if mode == "reject" else [])
        assert [frame.number for frame in beside.brokers["B5"].all(Message)] == numbers
        assert beside.core.data.statistics()["not_validated"] == 1
