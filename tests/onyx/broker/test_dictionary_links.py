"""Links whose format is a dictionary form: B4 between its parent B1 and its children B5, B6."""

from __future__ import annotations

import pytest

from formats import (
    Dictionary,
    WireFormat,
    decode,
    derive_dictionary,
    encode,
    only,
    parse_text,
    read_schema,
)
from overlay.link.frames import Message, MessageAgain, Undecoded
from overlay.topology import parse_topology
from tests.beside import EVERY_FORMAT
from tests.onyx.broker.test_broker_core import Setting, delta

DTD = b"<!ELEMENT nitf (head)><!ELEMENT head EMPTY><!ATTLIST head kind (flash|feature) #IMPLIED>"
NEWS = b'<nitf><head kind="feature"/></nitf>'
TOPOLOGY = parse_topology(
    """
    name = "four"
    registration = {id = "r1", listen = "127.0.0.1:1"}
    broker = [
        {id = "B1", listen = "127.0.0.1:2"},
        {id = "B4", listen = "127.0.0.1:3"},
        {id = "B5", listen = "127.0.0.1:4"},
        {id = "B6", listen = "127.0.0.1:5"},
    ]
    link = [
        {ends = ["B1", "B4"]},
        {ends = ["B4", "B5"], format = "dictionary+zstd"},
        {ends = ["B4", "B6"], format = "dictionary"},
    ]
    """,
    "four",
)


def dictionary() -> Dictionary:
    derived = derive_dictionary(read_schema("news.dtd", DTD))
    assert derived is not None
    return derived


def message(xml: bytes = NEWS, number: int = 1, fmt: WireFormat = WireFormat.DICTIONARY) -> Message:
    payload = encode(parse_text(xml), fmt, dictionary())
    return Message(root="B1", source="s1", number=number, format=fmt.value, hops=1, payload=payload)


def back_again(sent: Message) -> MessageAgain:
    return sent.carried_by(MessageAgain)


def setting(schema: bytes = DTD) -> Setting:
    made = Setting(TOPOLOGY)
    if schema is not None:
        made.announce(schema=schema)
    for child in ("B5", "B6"):
        made.brokers[child].send("B1", delta("/nitf"))
    return made


def test_the_words_of_the_schema_do_not_travel() -> None:
    beside = setting()
    beside.brokers["B1"].send("B1", message(fmt=WireFormat.BINARY))
    (packed,) = beside.brokers["B5"].all(Message)
    (plain,) = beside.brokers["B6"].all(Message)
    assert (packed.format, plain.format) == ("dictionary+zstd", "dictionary")
    assert not any(word in plain.payload for word in (b"nitf", b"head", b"kind", b"feature"))
    for frame in (packed, plain):
        stream = decode(frame.payload, WireFormat(frame.format), dictionaries=only(dictionary()))
        assert [name.local for name in stream.names] == ["nitf", "head", "kind"]
    assert beside.core.statistics().control.dictionaries == 1


def test_bytes_in_the_next_links_format_are_passed_on_untouched() -> None:
    beside = setting()
    beside.brokers["B1"].send("B1", message())
    (same,) = beside.brokers["B6"].all(Message)
    assert same.payload == message().payload


def test_a_source_without_a_schema_is_sent_in_binary() -> None:
    beside = setting(schema=b"")
    beside.brokers["B1"].send("B1", message(fmt=WireFormat.BINARY))
    assert [frame.format for frame in beside.brokers["B5"].all(Message)] == ["binary+zstd"]
    assert [frame.format for frame in beside.brokers["B6"].all(Message)] == ["binary"]


def test_a_child_that_does_not_list_the_format_gets_binary() -> None:
    beside = setting()
    beside.brokers["B6"].read_only("text", "binary")
    beside.brokers["B1"].send("B1", message())
    assert [frame.format for frame in beside.brokers["B6"].all(Message)] == ["binary"]
    assert [frame.format for frame in beside.brokers["B5"].all(Message)] == ["dictionary+zstd"]
    statistics = beside.core.statistics().data
    assert statistics.unlisted_format == 1
    assert "dictionary" in EVERY_FORMAT


def test_it_is_the_same_after_a_restart() -> None:
    beside = setting()
    beside.restart()
    beside.brokers["B1"].send("B1", message())
    (same,) = beside.brokers["B6"].all(Message)
    assert same.payload == message().payload


@pytest.mark.parametrize("fmt", [WireFormat.DICTIONARY, WireFormat.DICTIONARY_ZLIB])
def test_a_message_whose_dictionary_is_unknown_goes_back_to_the_parent(fmt: WireFormat) -> None:
    """As the schema is, from which it is derived."""
    beside = Setting(TOPOLOGY)
    beside.announce()
    beside.place("/nitf")
    sent = message(fmt=fmt)
    beside.brokers["B1"].send("B1", sent)
    (back,) = beside.brokers["B1"].all(Undecoded)
    assert (back.source, back.number, back.hops) == ("s1", 1, 1)
    assert (back.format, back.payload) == (sent.format, sent.payload)
    assert beside.core.statistics().data.given_back == 1
    # What comes then needs no dictionary.
    again = message(fmt=WireFormat.BINARY)
    beside.brokers["B1"].send("B1", back_again(again))
    assert len(beside.brokers["B1"].all(Undecoded)) == 1


def test_a_format_of_tomorrow_goes_back_to_the_parent() -> None:
    beside = setting()
    beside.brokers["B1"].send("B1", Message("B1", "s1", 1, "holographic", 1, b"?"))
    assert [frame.format for frame in beside.brokers["B1"].all(Undecoded)] == ["holographic"]


def test_what_a_child_gives_back_is_sent_again_in_binary_and_so_is_what_follows() -> None:
    beside = setting()
    beside.brokers["B1"].send("B1", message())
    (first,) = beside.brokers["B6"].take(Message)
    back = Undecoded("B1", "s1", first.number, first.format, first.hops, first.payload)
    beside.brokers["B6"].send("B1", back)
    (again,) = beside.brokers["B6"].take(MessageAgain)
    beside.brokers["B6"].got.clear()
    assert (again.source, again.number, again.hops) == ("s1", 1, first.hops)
    assert (again.format, again.payload) == ("binary", message(fmt=WireFormat.BINARY).payload)
    beside.brokers["B1"].send("B1", message(number=2))
    assert [frame.format for frame in beside.brokers["B6"].all(Message)] == ["binary"]
    # The other child has lost nothing.
    assert [frame.format for frame in beside.brokers["B5"].all(Message)] == ["dictionary+zstd"] * 2
    statistics = beside.core.statistics().data
    assert (statistics.sent_again, len(beside.core._give_backs.lacking)) == (1, 1)


def test_what_nobody_can_read_is_counted_and_goes_back_as_it_came() -> None:
    beside = setting()
    payload = bytearray(message().payload)
    payload[4] ^= 1
    back = Undecoded("B1", "s1", 1, "dictionary", 2, bytes(payload))
    beside.brokers["B6"].send("B1", back)
    (same,) = beside.brokers["B6"].all(Message)
    assert (same.format, same.payload) == ("dictionary", bytes(payload))
    assert beside.core.statistics().data.abandoned == 1


def test_what_comes_back_and_cannot_be_read_again_is_given_up() -> None:
    beside = Setting(TOPOLOGY)
    beside.announce()
    beside.place("/nitf")
    sent = message(fmt=WireFormat.DICTIONARY)
    beside.brokers["B1"].send("B1", sent)
    assert beside.core._give_backs.awaits("B1")
    beside.restart()
    beside.brokers["B1"].send("B1", back_again(sent))
    statistics = beside.core.statistics().data
    assert not beside.core._give_backs.awaits("B1")
    assert (statistics.abandoned, statistics.given_back) == (1, 0)
    assert not any(space == "given-back" for space, _ in beside.beside.rows)


def test_a_child_cannot_give_back_what_nobody_published() -> None:
    beside = setting()
    for number in range(3):
        back = Undecoded("B1", f"made up {number}", 1, "text", 2, NEWS)
        beside.brokers["B6"].send("B1", back)
    assert [frame.payload for frame in beside.brokers["B6"].all(Message)] == [NEWS] * 3
    statistics = beside.core.statistics().data
    assert (statistics.abandoned, len(beside.core._give_backs.lacking)) == (3, 0)


def test_only_a_child_gives_messages_back() -> None:
    beside = setting()
    beside.brokers["B1"].send("B1", Undecoded("B1", "s1", 1, "dictionary", 1, b""))
    assert beside.brokers["B1"].all(Message) == []
    assert beside.core.statistics().unexpected == {"not-expected": 1}
