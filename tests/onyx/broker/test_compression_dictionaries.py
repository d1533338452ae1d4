"""Compression dictionaries of sources: B4 between its parent B1 and its children B5, B6."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.wire.news import make_news
from formats import (
    Compression,
    CompressionDictionary,
    WireFormat,
    compress,
    decode,
    encode,
    parse_text,
    train,
    trained_version,
)
from onyx.broker.packing.compression_dictionaries import VERSIONS_MAX
from overlay.link.frames import (
    DictionaryHeld,
    DictionaryTrained,
    Message,
    Publish,
    SourceAnnounced,
    SourceRemoved,
    Undecoded,
)
from overlay.topology import Topology, parse_topology
from tests.onyx.broker.test_broker_core import Setting, delta

SAMPLES = 40


def topology(formats: str = 'format = "text+zstd"', training: str = "") -> Topology:
    return parse_topology(
        f"""
        name = "four"
        registration = {{id = "r1", listen = "127.0.0.1:1"}}
        broker = [
            {{id = "B1", listen = "127.0.0.1:2"}},
            {{id = "B4", listen = "127.0.0.1:3"}},
            {{id = "B5", listen = "127.0.0.1:4"}},
            {{id = "B6", listen = "127.0.0.1:5"}},
        ]
        link = [
            {{ends = ["B1", "B4"], format = "text+zstd"}},
            {{ends = ["B4", "B5"], {formats}}},
            {{ends = ["B4", "B6"], format = "binary"}},
        ]
        [limits.training]
        samples = {SAMPLES}
        retrain_messages = 20
        {training}
        """,
        "four",
    )


def news(seed: int, count: int) -> list[bytes]:
    random = Random(seed)
    return [make_news(random, 4, 1) for _ in range(count)]


def trained(seed: int = 1) -> CompressionDictionary:
    dictionary = train(news(seed, 60), 8192).dictionary
    assert dictionary is not None
    return dictionary


def announcement(dictionary: CompressionDictionary, source: str = "s1") -> DictionaryTrained:
    return DictionaryTrained("B1", source, "text", dictionary.data)


def message(number: int, dictionary: CompressionDictionary | None, seed: int = 2) -> Message:
    payload = compress(news(seed, 1)[0], Compression.ZSTD, trained=dictionary)
    return Message("B1", "s1", number, "text+zstd", 1, payload)


def version_of(frame: Message) -> int:
    return trained_version(frame.payload, WireFormat(frame.format).compression)


def setting(made: Topology | None = None, *, root: str = "B1") -> Setting:
    beside = Setting(made or topology())
    beside.announce(root=root)
    beside.children_ready(root=root)
    for child in beside.core.control.children(root):
        beside.brokers[child].send(root, delta("/news", root=root))
    return beside


# --- at the root ------------------------------------------------------------------------------


def root_setting(made: Topology | None = None) -> Setting:
    return setting(made, root="B4")


def publish(beside: Setting, texts: list[bytes]) -> None:
    source = beside.beside.peer("source", "s1")
    for text in texts:
        source.send("s1", Publish("s1", "text", text))


def test_the_root_trains_on_what_comes_and_announces_before_it_uses_it() -> None:
    beside = root_setting()
    publish(beside, news(1, SAMPLES))
    assert {version_of(frame) for frame in beside.brokers["B5"].take(Message)} == {0}
    announced = {}
    for child in ("B1", "B5", "B6"):
        (frame,) = beside.brokers[child].take(DictionaryTrained)
        announced[child] = frame
    assert len(set(announced.values())) == 1
    dictionary = CompressionDictionary(announced["B5"].payload)
    publish(beside, news(3, 5))
    for frame in beside.brokers["B5"].all(Message):
        assert version_of(frame) == dictionary.version
        decode(frame.payload, WireFormat.TEXT_ZSTD, trained={dictionary.version: dictionary}.get)
    # A link that is not compressed has nothing of it.
    assert {frame.format for frame in beside.brokers["B6"].all(Message)} == {"binary"}
    beside.registration.send("registration", SourceRemoved(source="s1"))
    for _ in range(2):
        assert beside.core.statistics().compression.trained == {}
        beside.restart()


def test_small_messages_are_smaller_with_it() -> None:
    beside = root_setting()
    texts = news(1, SAMPLES + 20)
    publish(beside, texts[:SAMPLES])
    before = beside.brokers["B5"].take(Message)
    publish(beside, texts[SAMPLES:])
    after = beside.brokers["B5"].take(Message)
    mean = [sum(len(frame.payload) for frame in part) / len(part) for part in (before, after)]
    assert mean[1] < 0.6 * mean[0]


def test_it_trains_anew_only_when_all_have_the_version_before() -> None:
    beside = root_setting()
    publish(beside, news(1, SAMPLES))
    assert sum(len(v.awaited) for v in beside.core.trained._trained["s1", WireFormat.TEXT]) == 3
    other = [text.replace(b"news", b"olds").replace(b"o", b"0") for text in news(4, 150)]
    fresh = [b"<news><x>" + text[:0] + b"abc-%d-lorem-ipsum-dolor" % n + b"</x></news>"
             for n, text in enumerate(other)]  # fmt: skip
    publish(beside, fresh)
    assert beside.core.statistics().compression.trainings == 1
    (first,) = beside.brokers["B5"].take(DictionaryTrained)
    version = CompressionDictionary(first.payload).version
    for child in ("B1", "B5", "B6"):
        beside.brokers[child].send("B4", DictionaryHeld("B4", "s1", "text", version))
    publish(beside, fresh)
    statistics = beside.core.statistics().compression
    assert statistics.trainings == 2
    (second,) = beside.brokers["B5"].take(DictionaryTrained)
    assert second.payload != first.payload
    assert len(statistics.trained["s1 text"]) == 2


def test_training_is_bounded_and_can_be_switched_off() -> None:
    beside = root_setting(topology(training="dictionary_bytes_max = 0"))
    publish(beside, news(1, SAMPLES + 5))
    assert beside.brokers["B5"].all(DictionaryTrained) == []
    beside = root_setting(topology(training="sample_bytes_max = 10"))
    publish(beside, news(1, SAMPLES + 5))
    assert beside.brokers["B5"].all(DictionaryTrained) == []
    assert len(beside.core.trained._sampled) == 0
    beside = root_setting(topology(training="sources_max = 1"))
    publish(beside, news(1, 5))
    assert len(beside.core.trained._sampled) == 1
    beside = root_setting(topology(training="dictionary_bytes_max = 2000"))
    publish(beside, news(1, SAMPLES))
    (frame,) = beside.brokers["B5"].all(DictionaryTrained)
    assert len(frame.payload) <= 2000


def test_nothing_is_trained_for_links_without_zstd() -> None:
    made = topology('format = "text+zlib"')
    beside = setting(made, root="B4")
    publish(beside, news(1, SAMPLES))
    # The link to B1 is text+zstd, so only that form is.
    (frame,) = beside.brokers["B1"].all(DictionaryTrained)
    assert frame.form == "text"
    assert {f.format for f in beside.brokers["B5"].all(Message)} == {"text+zlib"}


# --- on the way -------------------------------------------------------------------------------


def test_a_version_is_passed_on_used_and_reported_when_all_below_hold_it() -> None:
    beside = setting()
    dictionary = trained()
    beside.brokers["B1"].send("B1", announcement(dictionary))
    for child in ("B5", "B6"):
        (passed,) = beside.brokers[child].all(DictionaryTrained)
        assert passed.payload == dictionary.data
    beside.brokers["B1"].send("B1", message(1, dictionary))
    (same,) = beside.brokers["B5"].all(Message)
    assert same.payload == message(1, dictionary).payload
    held = DictionaryHeld("B1", "s1", "text", dictionary.version)
    beside.brokers["B5"].send("B1", held)
    assert beside.brokers["B1"].all(DictionaryHeld) == []
    beside.brokers["B6"].send("B1", held)
    assert beside.brokers["B1"].all(DictionaryHeld) == [held]


def test_a_version_is_announced_ahead_of_the_messages_that_take_it() -> None:
    """Also to a child that was away: both are in its journal, in this order."""
    beside = setting()
    beside.brokers["B5"].disconnect()
    beside.brokers["B1"].send("B1", announcement(trained()))
    beside.brokers["B1"].send("B1", message(1, trained()))
    beside.brokers["B5"].connect()
    kinds = [type(frame) for frame in beside.brokers["B5"].got]
    assert kinds.index(DictionaryTrained) < kinds.index(Message)


def test_what_came_uncompressed_is_packed_with_it() -> None:
    beside = setting()
    beside.brokers["B1"].send("B1", announcement(trained()))
    payload = encode(parse_text(news(5, 1)[0]), WireFormat.BINARY)
    beside.brokers["B1"].send("B1", Message("B1", "s1", 1, "binary", 1, payload))
    (frame,) = beside.brokers["B5"].all(Message)
    assert version_of(frame) == trained().version


def test_old_versions_are_read_until_all_below_hold_the_next() -> None:
    beside = setting()
    old, new = trained(1), trained(7)
    for dictionary in (old, new):
        beside.brokers["B1"].send("B1", announcement(dictionary))
    back = Undecoded("B1", "s1", 1, "text+zstd", 2, message(1, old).payload)
    beside.brokers["B6"].send("B1", back)
    (again,) = beside.brokers["B6"].take(Message)
    assert again.format == "binary"
    for child in ("B5", "B6"):
        beside.brokers[child].send("B1", DictionaryHeld("B1", "s1", "text", new.version))
    assert beside.core.statistics().compression.trained == {"s1 text": [f"{new.version:08x}"]}
    beside.brokers["B6"].send("B1", back)  # against the rules: it said that it had the new one
    (same,) = beside.brokers["B6"].all(Message)
    assert same.payload == back.payload
    assert beside.core.statistics().data.abandoned == 1


def test_it_is_the_same_after_a_restart() -> None:
    beside = setting()
    old, new = trained(1), trained(7)
    beside.brokers["B1"].send("B1", announcement(old))
    beside.brokers["B1"].send("B1", announcement(new))
    before = beside.core.statistics().compression
    beside.restart()
    assert beside.core.statistics().compression == before
    beside.brokers["B1"].send("B1", message(1, new))
    (same,) = beside.brokers["B5"].all(Message)
    assert version_of(same) == new.version
    for child in ("B5", "B6"):
        beside.brokers[child].send("B1", DictionaryHeld("B1", "s1", "text", new.version))
    beside.restart()
    assert beside.core.statistics().compression.trained == {"s1 text": [f"{new.version:08x}"]}


def test_a_broker_that_knows_no_such_version_gives_the_message_back() -> None:
    beside = Setting(topology())
    beside.announce()
    beside.place("/news")
    sent = message(1, trained())
    beside.brokers["B1"].send("B1", sent)
    (back,) = beside.brokers["B1"].all(Undecoded)
    assert back.payload == sent.payload


def test_a_child_that_lacks_it_is_sent_messages_without_it() -> None:
    beside = setting()
    beside.brokers["B1"].send("B1", announcement(trained()))
    beside.brokers["B1"].send("B1", message(1, trained()))
    (first,) = beside.brokers["B5"].take(Message)
    back = Undecoded("B1", "s1", 1, first.format, first.hops, first.payload)
    beside.brokers["B5"].send("B1", back)
    assert [frame.format for frame in beside.brokers["B5"].take(Message)] == ["binary"]
    beside.brokers["B1"].send("B1", message(2, trained()))
    (plain,) = beside.brokers["B5"].all(Message)
    assert (plain.format, version_of(plain)) == ("text+zstd", 0)
    decode(plain.payload, WireFormat.TEXT_ZSTD)


def test_a_parent_against_the_rules_fills_nothing() -> None:
    beside = setting()
    for seed in range(VERSIONS_MAX + 3):
        beside.brokers["B1"].send("B1", announcement(trained(seed)))
    kept = beside.core.statistics().compression.trained
    assert len(kept["s1 text"]) == VERSIONS_MAX  # type: ignore[index]
    assert sum(space == "compression-dictionary" for space, _ in beside.beside.rows) == VERSIONS_MAX
    beside.brokers["B1"].send("B1", DictionaryTrained("B1", "s1", "text", b"no dictionary"))
    beside.brokers["B1"].send("B1", DictionaryTrained("B1", "s1", "?", trained().data))
    beside.brokers["B5"].send("B1", DictionaryHeld("B1", "s1", "?", 1))
    beside.brokers["B5"].send("B1", DictionaryHeld("B1", "s9", "text", 1))
    assert beside.core.statistics().compression.bad_dictionaries == 2


# --- given ------------------------------------------------------------------------------------


def test_a_given_dictionary_comes_with_the_catalog_and_is_not_replaced() -> None:
    beside = Setting(topology())
    given = trained()
    beside.announce(root="B4", compression=[("text", given.data)])
    beside.children_ready(root="B4")
    (passed,) = beside.brokers["B5"].take(SourceAnnounced)
    assert passed.compression == [("text", given.data)]
    beside.brokers["B5"].send("B4", delta("/news", root="B4"))
    for _ in range(2):
        publish(beside, news(3, SAMPLES))
        assert {version_of(frame) for frame in beside.brokers["B5"].take(Message)} == {
            given.version
        }
        beside.restart()
    assert beside.brokers["B5"].all(DictionaryTrained) == []


@pytest.mark.parametrize("bad", [("text", b"no dictionary"), ("?", b"")])
def test_a_bad_given_dictionary_is_not_used(bad: tuple[str, bytes]) -> None:
    beside = Setting(topology())
    beside.announce(compression=[bad])
    assert beside.core.statistics().compression.bad_dictionaries == 1
