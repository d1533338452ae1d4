"""Messages against their source's schema at the root broker, B4."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from formats import WireFormat, encode, parse_text
from formats.schema_questions import MessagesChecked, answer
from onyx.broker.messages import message_validation
from onyx.broker.messages.data_plane import DataPlane
from onyx.broker.packing.parcel import Parcel
from overlay.link.dead_letters import keep_aside
from overlay.link.events import AskSchemaWorker, Delete, Flow, Put, SchemaAnswered
from overlay.link.frames import Message, Publish, Refused
from overlay.link.suspect import CoreFailed
from overlay.statistics import Data
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


def statistics_of(beside: Setting) -> Data:
    return beside.core.statistics().data


def held(beside: Setting) -> int:
    return sum(len(line.held) for line in beside.core.data.validation.lines.values())


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
    statistics = statistics_of(beside)
    assert (statistics.valid, statistics.invalid, statistics.refused) == (2, 1, 1)


def test_reported_and_passed_on() -> None:
    beside, source = setting("report")
    publish(source, GOOD, BAD)
    assert source.all(Refused) == []
    assert [frame.number for frame in beside.brokers["B5"].all(Message)] == [1, 2]
    statistics = statistics_of(beside)
    assert (statistics.invalid, statistics.invalid_by_source) == (1, {"s1": 1})


def test_off_looks_at_nothing() -> None:
    beside, source = setting("off")
    publish(source, BAD)
    assert [frame.number for frame in beside.brokers["B5"].all(Message)] == [1]
    assert not statistics_of(beside).invalid


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
        assert statistics_of(beside).not_validated == 1


# --- what is held until the worker has answered -----------------------------------------------


class Held(Setting):
    """Questions about the messages of s1 (and s2) are answered by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.sources = {}
        for source in ("s1", "s2"):
            self.announce(source, root="B4", schema=DTD, validation="reject")
            self.brokers["B5"].send("B4", delta("/nitf", root="B4"))
            self.children_ready(source, root="B4")
            self.sources[source] = self.beside.peer("source", source)
        self.questions: list[AskSchemaWorker] = []
        self.beside.schemas_asked = self.questions

    def publish(self, *texts: bytes, source: str = "s1") -> None:
        for text in texts:
            frame = Publish(source=source, format="text", payload=text)
            self.sources[source].send(source, frame)

    def answer(self, most: int = 64) -> None:
        """The question that was asked first; of at most so many messages."""
        asked = self.questions.pop(0)
        found = answer(asked.question)
        assert isinstance(found, MessagesChecked)
        self.beside.tell(SchemaAnswered(asked.key, MessagesChecked(found.findings[:most])))

    def accepted(self, source: str = "s1") -> list[int]:
        return [f.number for f in self.brokers["B5"].all(Message) if f.source == source]

    def acknowledged(self, source: str = "s1") -> int:
        return self.sources[source].links.acknowledged("broker/B4", Flow.MESSAGE, source)

    def refused(self) -> list[int]:
        return [frame.number for frame in self.sources["s1"].all(Refused)]


def test_nothing_is_said_of_a_message_until_its_schema_has_been_asked() -> None:
    setting = Held()
    before = dict(setting.beside.rows)
    setting.publish(GOOD)
    assert setting.beside.rows == before
    assert (setting.accepted(), setting.acknowledged()) == ([], 0)
    assert held(setting) == 1
    setting.answer()
    assert (setting.accepted(), setting.acknowledged()) == ([1], 1)
    assert held(setting) == 0


def test_what_came_meanwhile_is_asked_about_together_and_keeps_its_order() -> None:
    setting = Held()
    setting.publish(GOOD, GOOD, BAD, b"<nitf", GOOD)
    assert len(setting.questions) == 1  # one at a time of a source
    setting.answer()
    assert (setting.accepted(), setting.acknowledged()) == ([1], 1)
    assert len(setting.questions) == 1
    setting.answer(most=2)  # the others have to be asked again
    assert (setting.accepted(), setting.refused(), setting.acknowledged()) == ([1, 2], [3], 3)
    setting.answer()
    assert (setting.accepted(), setting.refused(), setting.acknowledged()) == ([1, 2, 5], [3, 4], 5)
    codes = [frame.code for frame in setting.sources["s1"].all(Refused)]
    assert codes == ["invalid", "malformed"]


def test_a_source_does_not_wait_for_another() -> None:
    setting = Held()
    setting.publish(GOOD)
    setting.publish(GOOD, source="s2")
    assert [asked.key for asked in setting.questions] == ["source/s1", "source/s2"]
    del setting.questions[0]  # it takes long
    setting.answer()
    assert (setting.accepted("s1"), setting.accepted("s2")) == ([], [1])


def test_what_is_held_when_the_connection_ends_comes_again() -> None:
    setting = Held()
    setting.publish(GOOD)
    setting.answer()
    setting.publish(BAD, GOOD)
    setting.sources["s1"].disconnect()
    setting.sources["s1"].connect()  # sends both again
    assert len(setting.questions) == 1  # that of before is under way
    setting.answer()
    assert (setting.accepted(), setting.refused()) == ([1], [])
    setting.answer()
    assert (setting.accepted(), setting.refused(), setting.acknowledged()) == ([1, 3], [2], 3)


def test_what_is_held_when_the_broker_ends_comes_again() -> None:
    setting = Held()
    setting.publish(BAD, GOOD)
    for peer in setting.sources.values():
        peer.disconnect()
    setting.questions.clear()
    setting.restart()
    setting.sources["s1"].connect()
    setting.answer()
    setting.answer()
    assert (setting.accepted(), setting.refused(), setting.acknowledged()) == ([2], [1], 2)


def test_a_number_that_is_held_and_comes_again_is_the_same() -> None:
    setting = Held()
    source = setting.sources["s1"]
    setting.publish(GOOD, GOOD)
    channel = setting.core._links.journal("source/s1").receiving
    (received,) = channel.values()
    assert (received.last, received.held) == (0, 2)
    assert not any(received.accept(number) for number in (1, 2))
    assert source.error == ""
    setting.answer()
    setting.answer()
    assert (setting.accepted(), setting.acknowledged()) == ([1, 2], 2)


def test_what_is_held_of_all_sources_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_validation, "HELD_BYTES_MAX", 3 * len(GOOD))
    setting = Held()
    setting.publish(GOOD, source="s2")
    setting.publish(GOOD, GOOD, GOOD)
    assert [peer.error for peer in setting.sources.values()] == ["no-room", ""]
    setting.answer()
    setting.sources["s1"].connect()
    while setting.questions:
        setting.answer()
    assert (setting.accepted("s1"), setting.accepted("s2")) == ([1, 2, 3], [1])


class Store:
    def __init__(self, rows: dict[tuple[str, str], bytes]) -> None:
        self.rows = rows

    def commit(self, changes: Iterable[Put | Delete]) -> None:
        for change in changes:
            assert isinstance(change, Put)
            self.rows[change.space, change.key] = change.value

    def read(self, space: str, first: str, last: str) -> tuple[tuple[str, bytes], ...]:
        return ()


@pytest.mark.parametrize("place", [(DataPlane, "_match"), (Parcel, "in_form")])
def test_what_ends_the_broker_is_refused_in_its_turn(
    place: tuple[type, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both where it is asked about, and where it is taken."""
    kind, name = place
    original = getattr(kind, name)

    def faulty(self: Any, given: Any) -> Any:
        parcel = given if kind is DataPlane else self
        if b"<!--poison-->" in parcel.payload:
            raise ZeroDivisionError
        return original(self, given)

    monkeypatch.setattr(kind, name, faulty)
    setting = Held()
    poison = b"<nitf><!--poison--><head/></nitf>"
    with pytest.raises(CoreFailed) as caught:
        setting.publish(GOOD, poison, GOOD)
        setting.answer()
        setting.answer()
    failure = caught.value
    assert failure.suspect is not None and failure.suspect.who == "source/s1"
    keep_aside(Store(setting.beside.rows), failure.suspect, failure, 0.0)
    setting.beside.core = setting.new_core("none", setting.beside.stored())
    setting.beside._busy = False
    setting.questions.clear()
    for peer in setting.sources.values():
        peer.disconnect()
    setting.restart()
    source = setting.sources["s1"].connect()
    while setting.questions:
        setting.answer()
    assert setting.accepted() == [1, 3]
    assert [(frame.number, frame.code) for frame in source.all(Refused)] == [(2, "internal")]
